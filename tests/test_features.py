"""Units do not matter: features are standardized inside, and all that is told is of those given."""

import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import loclin
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding
from loclin.engine.data import Rows
from loclin.fitting.features import FeatureMap, no_moments, standardized
from loclin.portable import describe
from loclin.portable.reader import with_pieces

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, y = load_wine(return_X_y=True)  # spreads from 0.1 to 300
RAW = {"standardize": False}
BARE = {"pieces": None}
MODELS = {
    "ML3": loclin.ML3Classifier(3, random_state=0),
    "SAPL": loclin.SAPLClassifier(8, 4, random_state=0),
    "SAPL, own anchors": loclin.SAPLClassifier(6, 3, share_anchors=False, random_state=0),
    "LL-SVM": loclin.LLSVMClassifier(random_state=0),
    "LL-SVM, planes": loclin.LLSVMClassifier(OrthogonalCoding(3), bias="both", random_state=0),
    "LL-SVM, constant": loclin.LLSVMClassifier(weights="constant", random_state=0),
    "CSVM": loclin.CSVMClassifier(3, random_state=0),
    "L3M": loclin.L3MClassifier(2, random_state=0),
    "LDKL": loclin.LDKLClassifier(2, random_state=0),
    "L-MKL": loclin.LMKLClassifier(3, random_state=0),
    "Ensemble": loclin.LocallyLinearEnsemble(
        [loclin.ML3Classifier(2), loclin.LLSVMClassifier()], n_folds=2, random_state=0
    ),
}
STREAMS = ["ML3", "SAPL", "SAPL, own anchors", "LDKL", "L-MKL"]  # whose map may move
each = pytest.mark.parametrize("name", MODELS)


def model_of(name, **parameters):
    return clone(MODELS[name]).set_params(**parameters)


def bare(name):
    """Return the model without pieces, which raw rows have none of."""
    model = clone(MODELS[name])
    for one in getattr(model, "estimators", [model]):
        one.set_params(**BARE)
    return model


def behind_a_scaler(name, **parameters):
    model = bare(name).set_params(**RAW)
    for member in getattr(model, "estimators", []):
        member.set_params(**RAW)
    return make_pipeline(StandardScaler(**parameters), model)


def assert_close(found, expected, rtol):
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


@each
def test_it_is_the_model_behind_a_scaler(name):
    model, expected = bare(name).fit(X, y), behind_a_scaler(name).fit(X, y)
    assert_close(model.decision_function(X), expected.decision_function(X), 1e-8)
    assert_close(model.predict_proba(X), expected.predict_proba(X), 1e-8)
    if name == "Ensemble":
        np.testing.assert_array_equal(model.shares_, expected[-1].shares_)
    elif hasattr(model, "alpha_"):
        assert model.alpha_ == pytest.approx(expected[-1].alpha_)


@each
def test_units_and_origins_do_not_matter(name):
    rng = np.random.default_rng(0)
    other = X * 10.0 ** rng.uniform(-8, 8, X.shape[1])
    other += rng.normal(size=X.shape[1]) * 100 * other.std(axis=0)
    expected = model_of(name).fit(X, y).decision_function(X)
    assert_close(model_of(name).fit(other, y).decision_function(other), expected, 1e-3)
    # of pieces that hold as many rows each there may be others, counted from the other side
    signs = rng.choice([-1, 1], X.shape[1])
    expected = bare(name).fit(X, y).decision_function(X)
    assert_close(bare(name).fit(X * signs, y).decision_function(X * signs), expected, 1e-3)


@pytest.mark.slow
@each
def test_single_precision_takes_the_mean_first(name):
    far = (X + 1e5 * X.std(axis=0)).astype(np.float32)
    model, expected = bare(name).fit(far, y), behind_a_scaler(name).fit(far, y)
    assert_close(model.decision_function(far), expected.decision_function(far), 1e-4)
    assert model.score(far, y) > 0.9


def seen_by(model):
    """Return the rows with the pieces of all members, as attributes are of them."""
    if not hasattr(model, "members_"):
        return X if model.pieces_ is None else with_pieces(X, model.pieces_)
    standard, pieces = model._features.of_matrix(X), []
    for member, _ in model._factors():
        if member.pieces_ is not None:
            pieces.append(with_pieces(standard, member.pieces_)[:, X.shape[1] :])
    return np.hstack([X, *pieces])


@each
def test_attributes_are_of_the_features_as_given(name):
    model = model_of(name).fit(X, y)
    scores, codes = model.decision_function(X), model.local_weights(X)
    codes = codes.toarray()[:, None] if sparse.issparse(codes) else codes
    seen = seen_by(model)
    responses = np.einsum("smd,nd->nsm", model.local_coef_, seen) + model.local_intercept_
    assert_close((codes * responses).sum(axis=2) + model.intercept_, scores, 1e-8)
    coef, intercept = model.local_model(X)
    assert_close(np.einsum("ncd,nd->nc", coef, X) + intercept, scores, 1e-8)
    assert_close(describe(model).decision_function(X), scores, 1e-10)
    told = describe(model).local_model(X)
    assert_close(np.einsum("ncd,nd->nc", told[0], X) + told[1], scores, 1e-8)
    if name == "Ensemble":  # where rows are at knots, it sees them standardized first
        return
    assert_close(told[0], coef, 1e-8)
    assert_close(told[1], intercept, 1e-8)


def test_points_planes_and_gates_are_of_the_features_as_given():
    csvm = model_of("CSVM", **BARE).fit(X, y)
    scale = X.std(axis=0)
    away = ((X[:, None] - csvm.cluster_centers_) / scale) ** 2
    found = away.sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(csvm.local_weights(X).toarray().argmax(axis=1), found)
    l3m = model_of("L3M", **BARE).fit(X, y)
    regions = (X @ l3m.partition_coef_.T + l3m.partition_intercept_).argmax(axis=1)
    np.testing.assert_array_equal(l3m.regions(X), regions)
    lmkl = model_of("L-MKL", **BARE).fit(X, y)
    gates = softmax(X @ lmkl.gate_coef_.T + lmkl.gate_intercept_, axis=1)
    assert_close(lmkl.local_weights(X).toarray(), gates, 1e-8)
    sapl = model_of("SAPL", metric=None, n_neighbors=1, **BARE).fit(X, y)
    away = (((X[:, None] - sapl.anchors_) / scale) ** 2).sum(axis=2)
    nearest = sapl.local_weights(X).toarray().argmax(axis=1)
    np.testing.assert_array_equal(nearest, away.argmin(axis=1))


def test_points_that_are_given_are_in_the_units_of_the_rows():
    V, scaler = X[::15], StandardScaler().fit(X)
    seen = scaler.transform(V)
    pairs = [
        (loclin.SAPLClassifier(anchors=V), loclin.SAPLClassifier(anchors=seen)),
        (loclin.CSVMClassifier(centers=V), loclin.CSVMClassifier(centers=seen)),
        (
            loclin.LLSVMClassifier(SoftAssignmentCoding(anchors=V)),
            loclin.LLSVMClassifier(SoftAssignmentCoding(anchors=seen)),
        ),
        (
            loclin.ML3Classifier(12, init=SoftAssignmentCoding(anchors=V)),
            loclin.ML3Classifier(12, init=SoftAssignmentCoding(anchors=seen)),
        ),
    ]
    for model, other in pairs:
        model.set_params(random_state=0, **BARE).fit(X, y)
        other.set_params(random_state=0, **RAW).fit(scaler.transform(X), y)
        expected = other.decision_function(scaler.transform(X))
        assert_close(model.decision_function(X), expected, 1e-8)


def test_a_frozen_coding_sees_the_rows_as_they_are_given():
    coding = FrozenEstimator(SoftAssignmentCoding(8, random_state=0).fit(X))
    model = loclin.LLSVMClassifier(coding, metric=None, random_state=0).fit(X, y)
    expected = clone(model).set_params(**RAW).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


def test_weights_count():
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    model = model_of("L3M", **BARE).fit(X, y, counts)
    expected = StandardScaler().fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(model._features.centre, expected.mean_)
    np.testing.assert_allclose(model._features.scale, expected.scale_)


def test_constant_columns_keep_their_unit():
    wide = np.hstack([X, np.full((len(X), 2), [0.0, 12345.678])])
    model, expected = bare("ML3").fit(wide, y), bare("ML3").fit(X, y)
    np.testing.assert_array_equal(model._features.scale[-2:], 1.0)
    wide[:, -1] += 1.0  # afterwards it is something else
    assert_close(model.decision_function(wide), expected.decision_function(X), 0.5)


def test_sparse_rows_are_scaled_and_stay_sparse():
    rows = sparse.csr_matrix(np.where(np.median(X, axis=0) < X, X, 0.0))
    expected = behind_a_scaler("ML3", with_mean=False).fit(rows, y)
    model = model_of("ML3").fit(rows, y)
    assert_close(model.decision_function(rows), expected.decision_function(rows), 1e-8)
    assert model._features.centre is None
    of_one_length = Normalizer().fit_transform(rows)
    plain = model_of("ML3", **RAW).fit(of_one_length, y).decision_function(of_one_length)
    found = model_of("ML3").fit(of_one_length, y).decision_function(of_one_length)
    np.testing.assert_array_equal(found, plain)


@each
def test_sparse_rows_of_a_dense_model_are_centred_too(name):
    model = model_of(name).fit(X, y)
    expected = model.decision_function(X)
    assert_close(model.decision_function(sparse.csr_matrix(X)), expected, 1e-10)


@pytest.mark.parametrize("name", [name for name in STREAMS if "SAPL" not in name])  # distances do
def test_the_map_of_a_stream_moves_and_no_score_changes(name):
    model = model_of(name).partial_fit(X[::9], y[::9], classes=[0, 1, 2])
    before, first = model.decision_function(X), model._features
    moved = clone(model)
    vars(moved).update(vars(model))
    rows = Rows(X, y.astype(np.int32), np.ones(len(y)))
    moved._follow(moved._stream, rows)
    assert (moved._features.scale != first.scale).all()
    assert_close(moved.decision_function(X), before, 1e-8)


@pytest.mark.filterwarnings("ignore:n_")  # few rows come first
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_of_any_units_learns(name):
    rng = np.random.default_rng(0)
    order = rng.permutation(np.tile(np.arange(len(y)), 8))
    errors = []
    for rows in (X * 10.0 ** rng.uniform(-6, 6, 13) + 1e7, StandardScaler().fit_transform(X)):
        model = model_of(name)
        for part in np.split(order, [3, 10, *range(50, len(order), 50)]):
            model.partial_fit(rows[part], y[part], classes=[0, 1, 2])
        errors.append(1 - model.score(rows, y))
    assert errors[0] < errors[1] + 0.05
    np.testing.assert_allclose(model._moments.moments.mean, rows[order].mean(axis=0), atol=1e-8)


def test_a_stream_goes_on_with_the_map_of_its_fit():
    model = model_of("ML3").fit(X[:150], y[:150])
    features = model._features
    model.partial_fit(X, y)
    assert model._features is features
    assert model.score(X, y) > 0.9


def test_moments_of_parts_are_those_of_all():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(5e6, 3, (1000, 4)), rng.uniform(0, 2, 1000)
    rows *= [1e200, 1e-200, 1.0, 1e10]
    found = no_moments(4)
    for part in np.split(np.arange(1000), [1, 2, 40, 700]):
        found = found.after(Rows(rows[part], part, weights[part]))
    unit = [1e200, 1e-200, 1.0, 1e10]
    mean = np.average(rows / unit, weights=weights, axis=0)
    spread = np.sqrt(np.average((rows / unit - mean) ** 2, weights=weights, axis=0))
    np.testing.assert_allclose(found.mean / unit, mean)
    np.testing.assert_allclose((found.spread / unit)[[0, 2, 3]], spread[[0, 2, 3]])


def test_what_a_file_says_of_features_is_looked_at():
    assert FeatureMap()._what_is_wrong({}) is None
    assert FeatureMap(None, np.array([1.0, 0.0]))._what_is_wrong({})
    assert FeatureMap(np.zeros(2))._what_is_wrong({})


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_keeps_its_kind_whatever_comes(name):
    rows = StandardScaler().fit_transform(X) + 5.0
    model = model_of(name).partial_fit(rows.astype(np.float32), y, classes=[0, 1, 2])
    model.partial_fit(sparse.csr_matrix(rows), y)  # the rows have doubled: the map moves
    assert model._features.centre is not None
    assert model._features.scale.dtype == np.float32
    assert model.score(rows, y) > 0.9


def test_a_stream_may_begin_with_one_row_of_any_size():
    order = np.random.default_rng(0).permutation(np.arange(len(y)))
    for unit, dtype in ((1e12, np.float32), (1e17, float), (1e-160, float)):
        model, rows = model_of("ML3"), (X * unit).astype(dtype)
        for k in order:
            model.partial_fit(rows[[k]], y[[k]], classes=[0, 1, 2])
        assert model.score(rows, y) > 0.9


def test_a_column_that_begins_to_vary_is_scaled():
    rows = StandardScaler().fit_transform(X)
    rows[:, 0] = 0.0
    model = model_of("ML3").partial_fit(rows, y, classes=[0, 1, 2])
    rows[:, 0] = 1e7 * np.random.default_rng(0).normal(size=len(y))
    model.partial_fit(rows[:50], y[:50])
    assert model._features.scale[0] > 1e6


@pytest.mark.parametrize(
    "kind",
    [
        loclin.SAPLClassifier(anchors=X[::20], n_neighbors=4, random_state=0),
        loclin.CSVMClassifier(centers=X[::20], random_state=0),
        loclin.LLSVMClassifier(SoftAssignmentCoding(anchors=X[::20]), random_state=0),
        loclin.LLSVMClassifier(FrozenEstimator(SoftAssignmentCoding(8).fit(X)), metric=None),
    ],
    ids=["SAPL", "CSVM", "LL-SVM", "frozen"],
)
def test_points_of_an_ensemble_s_kinds_are_in_the_units_of_the_rows(kind):
    model = loclin.LocallyLinearEnsemble([kind], n_folds=2, random_state=0).fit(X, y)
    assert model._features.scale is None
    assert model.score(X, y) > clone(kind).fit(X, y).score(X, y) - 0.05


def test_rules_are_of_the_features_as_given():
    model = model_of("L3M").fit(X, y)
    rule = model.region_rules(n_top=1)[0].splitlines()[1].split(": ")[-1]
    value, feature = rule.split()[:2]
    partition = model.partition_coef_ - model.partition_coef_.mean(axis=0)
    assert float(value) == pytest.approx(partition[0, int(feature[1:])], rel=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_what_is_constant_and_what_is_not(form, dtype):
    rng = np.random.default_rng(0)
    seconds = 1.7e9 + 1000 * rng.normal(size=(300, 1))  # of Unix, in a week
    constant = np.tile([0.123, 0.1, 1 / 3, 7.7], (300, 1))
    rows = np.hstack([seconds, constant]).astype(dtype)
    found = standardized(Rows(form(rows), np.zeros(300, np.int32), np.ones(300)))
    assert found.scale[0] == pytest.approx(rows[:, 0].astype(float).std(), rel=1e-3)
    np.testing.assert_array_equal(found.scale[1:], 1.0)


@pytest.mark.parametrize("unit", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_moments_of_sparse_rows(unit):
    rng = np.random.default_rng(0)
    rows = rng.normal(3, 1, (200, 5)) * (rng.random((200, 5)) < 0.4)
    weights = rng.uniform(0, 2, 200)
    expected = StandardScaler(with_mean=False).fit(rows, sample_weight=weights).scale_
    found = standardized(Rows(sparse.csr_matrix(rows * unit), np.zeros(200, np.int32), weights))
    np.testing.assert_allclose(found.scale / unit, expected)


def test_moments_of_very_wide_rows_do_not_go_row_by_row():
    rng, n, width = np.random.default_rng(0), 500, 2**20
    parts = rng.normal(size=10 * n), rng.integers(0, width, 10 * n), np.arange(0, 10 * n + 1, 10)
    rows = sparse.csr_matrix(parts, shape=(n, width))
    start = time.process_time()
    standardized(Rows(rows, np.zeros(n, np.int32), np.ones(n)))
    assert time.process_time() - start < 2


def test_distances_of_values_see_the_features_as_they_are():
    values = np.random.default_rng(0).random((200, 12)) < 0.3
    labels = values[:, :3].any(axis=1)
    model = loclin.SVMKNNClassifier(5, metric=_of_values).fit(values, labels)
    assert model._features.scale is None


def _of_values(a, b):
    """Return a distance that needs zeros and ones."""
    assert 0 <= min(*a, *b) <= max(*a, *b) <= 1  # also of means, by which a tree looks
    return np.sum(a != b)


def test_a_coding_with_a_frozen_step_sees_the_rows_as_they_are_given():
    coding = make_pipeline(FrozenEstimator(StandardScaler().fit(X)), SoftAssignmentCoding(10))
    model = loclin.LLSVMClassifier(coding, metric=None, random_state=0).fit(X, y)
    assert model._features.scale is None


@pytest.mark.parametrize("unit", [1e-308, 1e-306])
def test_units_that_coefficients_cannot_have(unit):
    tiny = X / X.max() * unit
    with pytest.raises(ValueError, match="X has values as small as"):
        loclin.ML3Classifier(2, alpha="scale", random_state=0, **BARE).fit(tiny, y)
    model = loclin.ML3Classifier(2, alpha="scale", random_state=0, **BARE).fit(1e9 * tiny, y)
    assert np.isfinite(model.local_coef_).all()
    mixed = np.c_[tiny[:, :1], X[:, 1:]]  # the first counts for nothing
    model = loclin.ML3Classifier(2, alpha="scale", random_state=0, **BARE).fit(mixed, y)
    assert model.score(mixed, y) > 0.9
    assert np.isfinite(model.local_coef_).all()


@each
def test_what_is_learned_cannot_be_written(name):
    model = model_of(name).fit(X, y)
    for attribute in ("local_coef_", "local_intercept_", "intercept_"):
        if attribute in dir(type(model)):
            with pytest.raises(ValueError, match="read-only"):
                getattr(model, attribute)[...] = 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", [loclin.ML3Classifier(), loclin.LocallyLinearEnsemble()])
def test_a_value_far_from_all_others_is_told(model, dtype):
    X, y = load_iris(return_X_y=True)
    X = np.vstack([X[:-1], [5.0, 1e30, 2.0, 1.0]]).astype(dtype)
    short = {"alpha": "scale", "max_iter": 2, "calibrate": False} if "alpha" in vars(model) else {}
    with pytest.warns(UserWarning, match=r"Feature 1, counted from 0, has a value of 1e\+30"):
        clone(model).set_params(random_state=0, **short).fit(X, y)
    X[-1, 1] = 1e4
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        clone(model).set_params(random_state=0, **short).fit(X, y)
