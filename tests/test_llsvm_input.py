"""What LLSVMClassifier does with odd parameters, codings and data; ML3's start from a coding."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from loclin import LLSVMClassifier, ML3Classifier
from loclin.codings import LLCCoding, OrthogonalCoding, SoftAssignmentCoding, TangentCoding
from loclin.datasets import make_xor
from loclin.ml3 import recipe as ml3

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows", "no_metric")

SOFT, OCC = SoftAssignmentCoding(6, 3, random_state=0), OrthogonalCoding()
C_OCC = OrthogonalCoding(per_class=True)
CODINGS = pytest.mark.parametrize("coding", [SOFT, OCC, C_OCC], ids=["soft", "occ", "c-occ"])
SOLVERS = pytest.mark.parametrize("solver", ["sgd", "dual_cd"])


def quick(coding=SOFT, **changed):
    settings = {"alpha": "scale", "max_iter": 200, "tol": 0.1, "random_state": 0}
    return LLSVMClassifier(coding, **(settings | changed), standardize=False)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


# Parameters.

BAD_VALUES = {
    "coding": ([0, "soft", SoftAssignmentCoding, OrthogonalCoding.fit], "give a transformer such"),
    "solver": (["cd", None, ["sgd"]], r"use one of \['dual_cd', 'sgd'\]"),
    "weights": (["none", 1], r"use one of \['constant', 'linear'\]"),
    "bias": ([True, "neither"], r"use one of \['both', 'global', 'local'\]"),
    "loss": (["ramp", None], r"use one of \['hinge', 'logistic', 'squared_hinge'\]"),
    "multi_class": (["ovo"], r"use one of \['crammer_singer', 'ovr'\]"),
    "alpha": ([0, -1.0, np.inf, np.nan, "best", None], r'a number in \(0, inf\); or "auto"'),
    "penalize_intercept": ([1, None, "no"], "use True or False"),
    "max_iter": ([0, 1.5, "many"], r"must be an integer in \[1, inf\]"),
    "tol": ([-1, np.nan, np.inf, "small"], r"must be a number in \[0, inf\)"),
    "n_iter_no_change": ([0, 2.0], r"must be an integer in \[1, inf\]"),
    "batch_size": ([0, 1.5, "all"], r'must be an integer in \[1, inf\]; or "auto"'),
    "average": ([-1, True, 0.5], r"must be an integer in \[0, inf\]"),
    "eta0": ([0, -1, np.nan, "big"], r"must be a number in \(0, inf\]"),
    "early_stopping": (["yes", 1], "use True or False"),
    "validation_fraction": ([0, 1.0, "half"], r"must be a number in \(0, 1\)"),
    "warm_start": ([1, "yes"], "use True or False"),
    "n_jobs": ([0, 1.5, "two"], ""),
}  # fmt: skip


@SOLVERS
@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [(name, value, valid) for name, (values, valid) in BAD_VALUES.items() for value in values],
)
def test_bad_parameters_are_named(iris, solver, name, value, valid):
    model = quick(**({"solver": solver} | {name: value}))
    with pytest.raises((TypeError, ValueError)) as caught:
        model.fit(*iris)
    assert f"{name}={value!r}" in str(caught.value)
    caught.match(valid)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"loss": "logistic"}, r"loss='logistic'.*needs solver='sgd'.*takes.*'squared_hinge'"),
        ({"penalize_intercept": False}, "penalize_intercept=False needs solver='sgd'.*takes True"),
        (
            {"multi_class": "crammer_singer", "loss": "squared_hinge"},
            r"loss='squared_hinge' with multi_class='crammer_singer' needs solver='sgd'.*'hinge'",
        ),
        (
            {"multi_class": "crammer_singer", "coding": C_OCC},
            "multi_class='crammer_singer' with a coding for each class needs solver='sgd'",
        ),
    ],
)
def test_what_only_sgd_can_do(iris, changed, message):
    model = quick(solver="dual_cd").set_params(**changed)
    with pytest.raises(ValueError, match=message):
        model.fit(*iris)
    assert model.set_params(solver="sgd", eta0=0.1).fit(*iris).score(*iris) > 0.7


# Codings.


def test_the_default_coding():
    X, y = make_xor(400, random_state=0)
    model = LLSVMClassifier(random_state=0, standardize=False).fit(X, y)
    assert isinstance(model.coding_, SoftAssignmentCoding)
    assert model.local_coef_.shape == (1, 40, 2)  # 100 from 1000 rows on
    assert model.score(X, y) > 0.99


@SOLVERS
@pytest.mark.parametrize(
    ("coding", "message", "n_models"),
    [
        (SoftAssignmentCoding(40, 2), "n_anchors=40 is too large: .*Using n_anchors=3", 3),
        (OrthogonalCoding(9), r"n_planes=9 is too large: the rank of X is 2\. Using n_planes=2", 2),
        (OrthogonalCoding(9, per_class=True), r"n_planes=9.*rank of a class.*Using n_planes=2", 2),
    ],
)  # fmt: skip
def test_too_large_numbers_are_cut_with_one_warning(solver, coding, message, n_models):
    X = np.array([[0.0, 1, 1], [1, 0, 0], [1, 1, 1]])[np.arange(30) % 3]  # 3 rows, of rank 2
    y = np.array([0, 1, 0])[np.arange(30) % 3] if n_models == 3 else np.arange(30) % 2
    with pytest.warns(UserWarning, match=message) as caught:
        model = quick(coding, solver=solver).fit(X, y)
    assert len(caught) == 1
    assert model.local_coef_.shape[1] == n_models
    assert np.isfinite(model.decision_function(X)).all()


@SOLVERS
@CODINGS
def test_a_coding_frozen_on_other_features(iris, solver, coding):
    X, y = iris
    frozen = FrozenEstimator(clone(coding).fit(X[:, :3], y))
    with pytest.raises(ValueError, match=r"was fitted on 3 features, but X has 4\. .*unfitted"):
        quick(frozen, solver=solver).fit(X, y)


@SOLVERS
@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2, 3], [0, 1, 5]], ids=str)
def test_a_coding_frozen_on_other_classes(iris, solver, labels):
    X, y = iris
    frozen = FrozenEstimator(clone(C_OCC).fit(X, np.resize(labels, 150)))
    with pytest.raises(ValueError, match=r"learned planes for the classes .* are \[0 1 2\]"):
        quick(frozen, solver=solver).fit(X, y)


@SOLVERS
@CODINGS
def test_a_frozen_coding_is_used_as_it_is(iris, solver, coding):
    X, y = iris
    fitted = clone(coding).fit(X, y)
    model = quick(FrozenEstimator(fitted), solver=solver).fit(X[::2] * 0.5, y[::2])
    codes = fitted.transform(X).toarray()
    if coding is C_OCC:
        codes = codes.reshape(150, 3, -1)
    got = model.local_weights(X)
    np.testing.assert_array_equal(got.toarray() if sparse.issparse(got) else got, codes)


def test_a_coding_frozen_on_a_data_frame(iris):
    X, y = pd.DataFrame(iris[0], columns=list("abcd")), iris[1]
    model = quick(FrozenEstimator(clone(SOFT).fit(X))).fit(X, y)
    assert model.score(X, y) > 0.7


def in_parts(A, n_parts):
    """Return a CSR matrix that stores each entry in several parts, as SciPy allows."""
    A = sparse.csr_matrix(A)
    parts = np.repeat(A.data / n_parts, n_parts), np.repeat(A.indices, n_parts), n_parts * A.indptr
    return sparse.csr_matrix(parts, shape=A.shape)


@pytest.mark.parametrize("what", ["X", "codes"])
def test_entries_that_are_stored_in_parts(iris, what):
    def region_of(X, n_parts=1):
        X = X.toarray() if sparse.issparse(X) else X
        return in_parts(np.eye(6)[2 * (X[:, 0] > 0) + (X[:, 1] > 0)], n_parts)

    def fitted(n_parts):
        of = {"X": 1, "codes": 1} | {what: n_parts}
        coding = FunctionTransformer(region_of, kw_args={"n_parts": of["codes"]})
        X = in_parts(iris[0], of["X"])
        model = quick(coding, solver="dual_cd", alpha=0.01, tol=1e-4, max_iter=1000)
        return model.fit(X, iris[1])

    assert fitted(3).objective_[-1] == pytest.approx(fitted(1).objective_[-1], rel=1e-3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@SOLVERS
def test_any_transformer_is_a_coding(iris, solver, kind):
    X, y = iris
    for coding in (FunctionTransformer(np.abs), StandardScaler(with_mean=False), LLCCoding(5, 3)):
        model = quick(coding, solver=solver).fit(kind(X), y)
        assert model.score(kind(X), y) > 0.8


# Data.


@SOLVERS
@CODINGS
@pytest.mark.parametrize(
    "change",
    [
        lambda X: np.repeat(X[::5], 5, axis=0),
        lambda X: np.hstack([X, np.ones((150, 2)), np.zeros((150, 1))]),
        lambda X: np.where(np.arange(150)[:, None] % 10 == 0, 0.0, X),
    ],
    ids=["duplicate rows", "constant features", "rows of zeros"],
)
@pytest.mark.parametrize("weights", ["linear", pytest.param("constant", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("metric", [None, pytest.param("diagonal", marks=pytest.mark.slow)])
def test_odd_but_valid_data(iris, metric, kind, weights, change, coding, solver):
    X, y = change(iris[0]), iris[1]
    model = quick(coding, solver=solver, weights=weights, metric=metric).fit(kind(X), y)
    assert np.isfinite(model.decision_function(kind(X))).all()
    assert model.score(kind(X), y) > 0.7


@SOLVERS
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("bias", ["local", "global"])
def test_rows_that_are_all_zero(solver, kind, bias):
    X, y = kind(np.zeros((12, 2))), np.arange(12) % 3 == 0
    with pytest.warns(UserWarning, match="Using n_anchors=1"):
        model = quick(SoftAssignmentCoding(2, 1), solver=solver, bias=bias).fit(X, y)
    assert not model.predict(X).any()  # the majority
    with pytest.raises(ValueError, match="X is zero everywhere"):
        quick(OCC, solver=solver).fit(X, y)


def put(value):
    def change(X, y):
        X[3, 1] = value
        return X, y

    return change


BAD_DATA = [
    (put(np.nan), "contains NaN"),
    (put(np.inf), "infinity"),
    (put(1e30), "Scale the features"),
    (lambda X, y: ((X * 1e30).astype(np.float32), y), "Scale the features"),
    (lambda X, y: (X, np.zeros(20)), "y has one class only"),
    (lambda X, y: (X[:, 0], y), "Expected 2D array"),
    (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    (lambda X, y: (X, np.linspace(0, 1, 20)), "Unknown label type"),
    (lambda X, y: (X[:0], y[:0]), "0 sample"),
    (lambda X, y: (X[:, :0], y), "0 feature"),
]


@SOLVERS
@CODINGS
@pytest.mark.parametrize(("change", "message"), BAD_DATA)
def test_bad_data_is_refused_with_its_cure(change, message, coding, solver):
    X, y = change(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2)
    with pytest.raises(ValueError, match=message):
        quick(coding, solver=solver).fit(X, y)


@SOLVERS
@CODINGS
def test_wrong_width_and_unfitted(iris, coding, solver):
    X, y = iris
    model = quick(coding, solver=solver)
    methods = ("predict", "decision_function", "local_weights", "local_model")
    for method in methods:
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(model, method)(X)
    model.fit(X, y)
    for method in methods:
        with pytest.raises(ValueError, match=r"X has 3 features, but LLSVM.* expecting 4"):
            getattr(model, method)(X[:, :3])


@CODINGS
def test_features_of_1e12_are_learned_or_refused(iris, coding):
    X, y = iris[0] * 1e12, iris[1]
    model = quick(coding, max_iter=20).fit(X, y)
    assert model.score(X, y) > 0.7


# ML3's start from a coding.


@pytest.mark.slow  # compiled for alone
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    "coding", [SoftAssignmentCoding(4, 2), LLCCoding(4, 3), OrthogonalCoding(4)], ids=str
)
def test_ml3_starts_from_a_coding(iris, coding, kind):
    X, y = iris
    model = ML3Classifier(
        4, alpha="scale", init=coding, max_iter=20, random_state=0, standardize=False
    )
    model.fit(kind(X), y)
    assert model.local_coef_.shape == (3, 4, 4)
    assert model.score(kind(X), y) > 0.9
    again = clone(model).fit(kind(X), y)
    np.testing.assert_array_equal(model.local_coef_, again.local_coef_)


def test_ml3_needs_as_many_codes_as_models(iris):
    with pytest.raises(ValueError, match=r"gives 5 codes a row, but n_models=4\. Make"):
        ML3Classifier(4, init=SoftAssignmentCoding(5, 2), standardize=False).fit(*iris)
    for bad in ("zeros", SoftAssignmentCoding, 3):
        with pytest.raises(ValueError, match=r"init=.* is not valid; use one of \['kmeans'"):
            ML3Classifier(init=bad, standardize=False).fit(*iris)
    frozen = FrozenEstimator(clone(OCC).fit(iris[0][:, :3]))
    with pytest.raises(ValueError, match="was fitted on 3 features, but X has 4"):
        ML3Classifier(3, init=frozen, standardize=False).fit(*iris)


@pytest.mark.parametrize("p", [1.0, 1.5, np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ml3_s_starting_codes_are_the_positive_part_on_the_sphere(iris, monkeypatch, p, dtype):
    X, y = iris[0].astype(dtype), iris[1]
    X[7] = 0
    coding = OrthogonalCoding(4).fit(X)
    codes = np.maximum(coding.transform(X).toarray(), 0)
    assert (coding.transform(X).data < 0).any()
    norms = np.linalg.norm(codes, ord=p, axis=1, keepdims=True)
    started = []

    class Begun(Exception):
        pass

    def begin(init, m, p, rounds, classes, rng):
        started.append(plain(init, m, p, rounds, classes, rng)(rounds.rows.X, rng))
        raise Begun  # what comes of the codes is tested elsewhere

    plain = ml3.starting_codes
    monkeypatch.setattr(ml3, "starting_codes", begin)
    model = ML3Classifier(
        4, p=p, alpha="scale", metric=None, init=FrozenEstimator(coding), standardize=False
    )
    with pytest.raises(Begun):
        model.fit(X, y)
    assert started[0].dtype == dtype
    np.testing.assert_allclose(started[0], codes / np.where(norms > 0, norms, 1), rtol=1e-5)


def test_a_coding_gives_ml3_a_better_start():
    # Each quadrant of XOR is one anchor's: a start that solves the problem before it is run.
    X, y = make_xor(400, std=0.25, random_state=0)
    corners = [[a, b] for a in (X.min(), X.max()) for b in (X.min(), X.max())]
    coding = SoftAssignmentCoding(4, 1, anchors=corners)
    scores = {
        name: [
            ML3Classifier(
                4, alpha="scale", init=init, max_iter=1, random_state=seed, standardize=False
            )
            .fit(X, y)
            .objective_[0]
            for seed in range(4)
        ]
        for name, init in (("coding", coding), ("random", "random"))
    }  # fmt: skip
    assert max(scores["coding"]) < min(scores["random"])


@pytest.mark.parametrize(
    "coding", [SOFT, TangentCoding(SOFT, n_tangents=1)], ids=["soft", "tangents"]
)
def test_codings_with_data_frames_as_output(coding, iris):
    X, y = iris
    plain = quick(coding).fit(X, y)
    start = ML3Classifier(6, init=SOFT, alpha="scale", random_state=0, standardize=False)
    plain_start = clone(start).fit(X, y).decision_function(X)
    with config_context(transform_output="pandas"):
        model = quick(coding).fit(X, y)
        np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
        np.testing.assert_array_equal(start.fit(X, y).decision_function(X), plain_start)


def test_anchors_of_a_coding_inside_are_in_the_units_of_the_rows(iris):
    X, y = iris
    inner = SoftAssignmentCoding(anchors=X[::30], n_neighbors=2, bandwidth=1.0)
    model = quick(TangentCoding(inner, n_tangents=1), metric="diagonal").fit(X, y)
    inside = model.coding_.coding_.anchors_ / model.feature_weights_
    np.testing.assert_allclose(inside, X[::30])
