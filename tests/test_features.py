"""Units do not matter: features are standardized inside, and all that is told is of those given."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import loclin
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding
from loclin.engine.data import Rows
from loclin.fitting.features import FeatureMap, no_moments
from loclin.portable import describe

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, y = load_wine(return_X_y=True)  # spreads from 0.1 to 300
RAW = {"standardize": False}
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


def behind_a_scaler(name, **parameters):
    model = model_of(name, **RAW)
    for member in getattr(model, "estimators", []):
        member.set_params(**RAW)
    return make_pipeline(StandardScaler(**parameters), model)


def assert_close(found, expected, rtol):
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


@each
def test_it_is_the_model_behind_a_scaler(name):
    model, expected = model_of(name).fit(X, y), behind_a_scaler(name).fit(X, y)
    assert_close(model.decision_function(X), expected.decision_function(X), 1e-8)
    assert_close(model.predict_proba(X), expected.predict_proba(X), 1e-8)
    if name == "Ensemble":
        np.testing.assert_array_equal(model.shares_, expected[-1].shares_)
    elif hasattr(model, "alpha_"):
        assert model.alpha_ == pytest.approx(expected[-1].alpha_)


@each
def test_units_and_origins_do_not_matter(name):
    rng = np.random.default_rng(0)
    other = X * 10.0 ** rng.uniform(-8, 8, X.shape[1]) * rng.choice([-1, 1], X.shape[1])
    other += rng.normal(size=X.shape[1]) * 100 * other.std(axis=0)
    expected = model_of(name).fit(X, y).decision_function(X)
    assert_close(model_of(name).fit(other, y).decision_function(other), expected, 1e-3)


@each
def test_single_precision_takes_the_mean_first(name):
    far = (X + 1e5 * X.std(axis=0)).astype(np.float32)
    model, expected = model_of(name).fit(far, y), behind_a_scaler(name).fit(far, y)
    assert_close(model.decision_function(far), expected.decision_function(far), 1e-4)
    assert model.score(far, y) > 0.9


@each
def test_attributes_are_of_the_features_as_given(name):
    model = model_of(name).fit(X, y)
    scores, codes = model.decision_function(X), model.local_weights(X)
    codes = codes.toarray()[:, None] if sparse.issparse(codes) else codes
    responses = np.einsum("smd,nd->nsm", model.local_coef_, X) + model.local_intercept_
    assert_close((codes * responses).sum(axis=2) + model.intercept_, scores, 1e-8)
    coef, intercept = model.local_model(X)
    assert_close(np.einsum("ncd,nd->nc", coef, X) + intercept, scores, 1e-8)
    assert_close(describe(model).decision_function(X), scores, 1e-10)
    told = describe(model).local_model(X)
    assert_close(told[0], coef, 1e-8)
    assert_close(told[1], intercept, 1e-8)


def test_points_planes_and_gates_are_of_the_features_as_given():
    csvm = model_of("CSVM").fit(X, y)
    scale = X.std(axis=0)
    away = ((X[:, None] - csvm.cluster_centers_) / scale) ** 2
    found = away.sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(csvm.local_weights(X).toarray().argmax(axis=1), found)
    l3m = model_of("L3M").fit(X, y)
    regions = (X @ l3m.partition_coef_.T + l3m.partition_intercept_).argmax(axis=1)
    np.testing.assert_array_equal(l3m.regions(X), regions)
    lmkl = model_of("L-MKL").fit(X, y)
    gates = softmax(X @ lmkl.gate_coef_.T + lmkl.gate_intercept_, axis=1)
    assert_close(lmkl.local_weights(X).toarray(), gates, 1e-8)
    sapl = model_of("SAPL", metric=None, n_neighbors=1).fit(X, y)
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
        model.set_params(random_state=0).fit(X, y)
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
    model = model_of("L3M").fit(X, y, counts)
    expected = StandardScaler().fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(model._features.centre, expected.mean_)
    np.testing.assert_allclose(model._features.scale, expected.scale_)


def test_constant_columns_keep_their_unit():
    wide = np.hstack([X, np.full((len(X), 2), [0.0, 12345.678])])
    model, expected = model_of("ML3").fit(wide, y), model_of("ML3").fit(X, y)
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
    assert moved._features_moved(moved._stream, rows)
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
