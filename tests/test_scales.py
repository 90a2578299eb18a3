"""Weights, features and parameters of any size: the same model, or one line that says the cure."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from loclin import (
    CSVMClassifier,
    L3MClassifier,
    LDKLClassifier,
    LLSVMClassifier,
    LMKLClassifier,
    ML3Classifier,
    SAPLClassifier,
    SVMKNNClassifier,
    USSVMClassifier,
)
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows", "no_metric")

FEW = {"alpha": "scale", "random_state": 0}
MODELS = {
    "ML3": ML3Classifier(4, max_iter=20, **FEW, standardize=False),
    "LL-SVM": LLSVMClassifier(SoftAssignmentCoding(6, 3), max_iter=20, **FEW, standardize=False),
    "LL-SVM, dual": LLSVMClassifier(
        SoftAssignmentCoding(6, 3), solver="dual_cd", **FEW, standardize=False
    ),
    "SAPL": SAPLClassifier(6, 3, max_iter=20, **FEW, standardize=False),
    "L3M, refined": L3MClassifier(2, n_restarts=1, **FEW, standardize=False),
    "L3M, online": L3MClassifier(
        2, solver="online", max_iter=20, n_restarts=1, **FEW, standardize=False
    ),
    "CSVM": CSVMClassifier(3, **FEW, standardize=False),
    "LDKL": LDKLClassifier(2, max_iter=20, **FEW, standardize=False),
    "SVM-KNN": SVMKNNClassifier(standardize=False),
    "L-MKL": LMKLClassifier(3, max_iter=20, **FEW, standardize=False),
    "US-SVM": USSVMClassifier(beta="scale", random_state=0),
}
STREAMING = [name for name in MODELS if name not in ("LL-SVM, dual", "L3M, refined", "SVM-KNN")]
MULTIPLYING = [name for name in MODELS if name not in ("US-SVM", "SVM-KNN")]
N = 60


@pytest.fixture(scope="module")
def rows():
    """Three classes far apart."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    X = rng.normal(size=(N, 3))
    X[np.arange(N), y] += 8
    return X, y


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        pytest.param(name, scale, marks=[pytest.mark.slow] if scale == 1e-300 else [])
        for name in MODELS
        for scale in (1e308, 1e-300, 5e-324)
    ],
)
def test_only_the_ratios_of_weights_count(name, scale, rows):
    X, y = rows
    weights = 1.0 + (np.arange(N) % 2 == 0)  # and twice 1e308 would be too large
    one, other = clone(MODELS[name]), clone(MODELS[name])
    one.fit(X, y, weights / 2)
    other.fit(X, y, np.maximum(weights / 2 * scale, 5e-324) if scale > 1e-310 else None)
    if scale > 1e-310:
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    plain = clone(MODELS[name]).fit(X, y, np.full(N, scale))
    assert plain.score(X, y) == 1


@pytest.mark.parametrize("name", MODELS)
def test_class_weights_and_weights_may_overflow_together(name, rows):
    X, y = rows
    huge = clone(MODELS[name]).set_params(class_weight={0: 1e308, 1: 1e308, 2: 1e308})
    assert huge.fit(X, y, np.full(N, 1e300)).score(X, y) == 1


@pytest.mark.parametrize("name", MODELS)
def test_weights_over_hundreds_of_decades(name, rows):
    X, y = rows
    weights = 10.0 ** np.random.default_rng(1).uniform(-300, 300, N)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "n_anchors=")  # few rows are left
        model = clone(MODELS[name]).fit(X, y, weights)
    heaviest = [np.argmax(weights)]
    assert model.predict(X[heaviest]) == y[heaviest]


@pytest.mark.parametrize("first", [1e300, 1e-300])
@pytest.mark.parametrize("name", STREAMING)
def test_a_stream_s_weights_count_beside_their_mean(name, first, rows):
    X, y = rows
    model = clone(MODELS[name])
    for k in range(20):
        weights = np.full(N, first if k % 2 == 0 else 1 / first)
        model.partial_fit(X, y, [0, 1, 2], weights)
    assert model.score(X, y) == 1


@pytest.mark.parametrize("weights", [{0: -1.0, 1: 1.0, 2: 1.0}, {0: np.nan, 1: 1.0, 2: 1.0}])
def test_class_weights_that_are_none(weights, rows):
    with pytest.raises(ValueError, match=r"class_weight=.* is not valid"):
        ML3Classifier(class_weight=weights, standardize=False).fit(*rows)


def test_weights_that_leave_no_row(rows):
    X, y = rows
    model = ML3Classifier(class_weight={0: 0.0, 1: 1.0, 2: 1.0}, standardize=False)
    with pytest.raises(ValueError, match="Every row has weight zero"):
        model.fit(X, y, (y == 0).astype(float))


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("power", [pytest.param(-20, marks=pytest.mark.slow), -400])
@pytest.mark.parametrize("name", MULTIPLYING)
def test_small_features_give_the_same_model(name, power, dtype, rows):
    if dtype == np.float32 and power < -30:
        pytest.skip("below what single precision can square")
    X, y = rows[0].astype(dtype), rows[1]
    scale = dtype(2.0) ** power
    small, smaller = X * 2.0**-6, X * scale
    one = clone(MODELS[name]).fit(small.astype(dtype), y)
    other = clone(MODELS[name]).fit(smaller.astype(dtype), y)
    np.testing.assert_array_equal(
        one.decision_function(small.astype(dtype)), other.decision_function(smaller.astype(dtype))
    )
    assert other.score(smaller.astype(dtype), y) == 1
    if name in STREAMING:
        stream = clone(MODELS[name])
        for _ in range(20):
            stream.partial_fit(smaller.astype(dtype), y, [0, 1, 2])
        assert stream.score(smaller.astype(dtype), y) > 0.9


@pytest.mark.parametrize("name", MULTIPLYING)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_of_small_features_goes_on(name, rows):
    X, y = rows[0] * 1e-8, rows[1]
    model = clone(MODELS[name]).set_params(warm_start=True, max_iter=3).fit(X, y)
    assert model.fit(X, y).score(X, y) > 0.9
    coef, intercept = model.local_model(X)
    np.testing.assert_allclose(
        np.einsum("ncd,nd->nc", coef, X) + intercept, model.decision_function(X), rtol=1e-9
    )


@pytest.mark.parametrize("name", MODELS)
def test_features_whose_squares_vanish_are_refused(name, rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"X has values as small as .*StandardScaler"):
        clone(MODELS[name]).fit(X * 1e-200, y)
    with pytest.raises(ValueError, match=r"X has values as small as .*StandardScaler"):
        clone(MODELS[name]).fit(X.astype(np.float32) * np.float32(1e-30), y)


@pytest.mark.parametrize("per_class", [False, True])
def test_codings_refuse_them_too(per_class, rows):
    with pytest.raises(ValueError, match="X has values as small as"):
        OrthogonalCoding(2, per_class=per_class, random_state=0).fit(rows[0] * 1e-310, rows[1])


@pytest.mark.parametrize("solver", ["sgd", "dual_cd"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_global_intercept_stands_beside_small_features(solver, rows):
    X, y = rows
    model = LLSVMClassifier(bias="global", solver=solver, max_iter=50, **FEW, standardize=False)
    assert model.fit(X * 1e-5, y).score(X * 1e-5, y) == 1


def test_anchors_and_bandwidth_are_in_the_units_of_the_rows(rows):
    X, y = rows
    small = 2.0**-30
    models = [
        SAPLClassifier(
            3,
            2,
            anchors=X[:3] * scale,
            bandwidth=0.1 / scale**2,
            max_iter=5,
            **FEW,
            standardize=False,
        ).fit(X * scale, y)
        for scale in (2.0**-6, small)
    ]
    np.testing.assert_array_equal(models[0].anchors_ * 2.0**6, models[1].anchors_ / small)
    assert models[1].bandwidth_ == 0.1 / small**2


@pytest.mark.parametrize("name", STREAMING)
def test_a_chunk_out_of_all_proportion_is_refused(name, rows):
    X, y = rows
    model = clone(MODELS[name]).partial_fit(X, y, [0, 1, 2])
    said = model.decision_function(X)
    with pytest.raises(ValueError, match="the rows before had none above"):
        model.partial_fit(X * 1e14, y)
    np.testing.assert_array_equal(model.decision_function(X), said)


@pytest.mark.parametrize("name", ["LL-SVM", "SAPL", "ML3"])
def test_indices_may_be_long(name, rows):
    X, y = sparse.csr_array(rows[0]), rows[1]
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    models = [
        clone(MODELS[name]).set_params(**({"init": "kmeans"} if name == "ML3" else {})).fit(rows, y)
        for rows in (X, wide)
    ]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))
    np.testing.assert_array_equal(models[0].predict(wide), models[0].predict(X))


COUNTS = [
    (ML3Classifier(), "n_models"), (ML3Classifier(), "batch_size"), (SAPLClassifier(), "n_anchors"),
    (L3MClassifier(), "n_restarts"), (L3MClassifier(), "n_regions"), (USSVMClassifier(), "n_atoms"),
    (USSVMClassifier(), "n_nonzero"), (LLSVMClassifier(), "max_iter"),
    (CSVMClassifier(), "n_clusters"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "name"), COUNTS, ids=lambda value: str(value))
def test_counts_beyond_all_reason_are_refused(model, name, rows):
    model = clone(model).set_params(**{name: 10**400})
    with pytest.raises(ValueError, match=rf"{name}=10+ is not valid; {name} must be at most"):
        model.fit(*rows)


@pytest.mark.parametrize("name", ["ML3", "LL-SVM", "SAPL", "US-SVM"])
def test_a_batch_has_at_most_all_rows(name, rows):
    X, y = rows
    models = [clone(MODELS[name]).set_params(batch_size=size).fit(X, y) for size in (N, 10**9)]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_labels_are_of_one_type(call, rows):
    X, _ = rows
    mixed = np.array(["a", 1, 2] * (N // 3), dtype=object)
    with pytest.raises(TypeError, match=re.escape("y mixes labels of the types numbers and str")):
        getattr(ML3Classifier(standardize=False), call)(
            X, mixed, **({} if call == "fit" else {"classes": [1, 2]})
        )
    for classes in (["a", 1, 2], ("a", 1, 2)):
        with pytest.raises(TypeError, match="classes mixes labels"):
            ML3Classifier(standardize=False).partial_fit(X, rows[1], classes=classes)


def test_strings_of_numpy_are_strings(rows):
    X, _ = rows
    mixed = np.array(["a", np.str_("b"), "c"] * (N // 3), dtype=object)
    assert clone(MODELS["ML3"]).fit(X, mixed).classes_.tolist() == ["a", "b", "c"]


def test_the_interior_point_method_ends_where_rounding_ends_it():
    X = np.random.default_rng(7).normal(size=(6, 5))
    model = USSVMClassifier(
        5, alpha=1e6, beta="scale", nonnegative=True, max_iter=3, random_state=7
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, np.arange(6) % 2)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.slow  # compiled for alone
def test_an_extreme_bandwidth_is_the_nearest_anchor(rows):
    X, y = rows
    models = [
        SAPLClassifier(6, 3, bandwidth=bandwidth, anchor_lr=0.0, **FEW, standardize=False).fit(
            X.astype(np.float32), y
        )
        for bandwidth in (1e6, 1e300)
    ]
    np.testing.assert_array_equal(*(model.predict(X) for model in models))
    assert models[1].score(X, y) > 0.9
    codes = SoftAssignmentCoding(6, 3, bandwidth=1e300, random_state=0).fit(X.astype(np.float32))
    np.testing.assert_array_equal(codes.transform(X.astype(np.float32)).toarray().max(axis=1), 1)


@pytest.mark.slow  # compiled for alone
def test_anchors_below_what_rows_may_be():
    # The means of small rows are smaller still.
    rng = np.random.default_rng(0)
    X, y = (rng.standard_normal((13, 2)) * 1e-12).astype(np.float32), np.arange(13) % 3
    model = SAPLClassifier(
        n_neighbors=1, share_anchors=False, max_iter=2, random_state=0, standardize=False
    )
    assert np.isfinite(model.fit(X, y).decision_function(X)).all()
