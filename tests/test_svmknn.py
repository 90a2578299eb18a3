"""SVM-KNN against a loop of libsvm over the neighbourhoods."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from loclin import SVMKNNClassifier
from loclin.datasets import make_sine
from loclin.io import load, save
from loclin.svmknn import classifier
from loclin.svmknn.kernels import solve_svm

KINDS = [np.asarray, sparse.csr_matrix, sparse.csr_array]
DENSE_FIRST = [KINDS[0], *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[1:])]


@pytest.fixture(scope="module")
def sine():
    X, y = make_sine(400, random_state=0)
    return X[:300], np.where(y[:300] == 1, "b", "a"), X[300:]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = (
        X[:560, ::2] / 16 * np.random.default_rng(0).normal(1, 1e-3, (560, 32))
    )  # no equal distances
    return X[:500], y[:500], X[500:]


def nearest(X, Z, k):
    return np.argsort(cdist(Z, X), axis=1, kind="stable")[:, :k]


def strength(X, alpha):
    """That of a neighbourhood; "scale" is in units of the mean squared deviation over k."""
    if alpha != "scale":
        return alpha
    return 0.3 * ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean() / len(X)


def by_libsvm(X, y, weights, Z, k, alpha, classes):
    """Scores and models of the rows of Z: one class against the rest on their neighbours."""
    d, positives = X.shape[1], classes[1:] if len(classes) == 2 else classes
    scores, models = np.zeros((len(Z), len(positives))), np.zeros((len(Z), len(positives), d + 1))
    for row, near in enumerate(nearest(X, Z, k)):
        C = 1 / (strength(X[near], alpha) * weights[near].sum())
        for s, positive in enumerate(positives):
            signs = np.where(y[near] == positive, 1, -1)
            if (signs == 1).all() or ((signs == -1).all() and len(classes) == 2):
                models[row, s, d] = signs[0]
            elif (signs == -1).all():
                models[row, s, d] = np.nan
            else:
                svm = SVC(kernel="linear", C=C, tol=1e-9).fit(X[near], signs, weights[near])
                models[row, s] = np.append(svm.coef_[0], svm.intercept_)
        scores[row] = models[row, :, :d] @ Z[row] + models[row, :, d]
        absent = np.isnan(scores[row])
        scores[row, absent] = min(0, np.nanmin(scores[row])) - 1
        models[row, absent, d] = scores[row, absent]
    return scores, models


@pytest.mark.parametrize("kind", DENSE_FIRST)
@pytest.mark.parametrize("alpha", [0.05, "scale"])
def test_two_classes_are_libsvm_on_every_neighbourhood(sine, alpha, kind):
    X, y, Z = sine
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = SVMKNNClassifier(12, alpha=alpha, tol=1e-8, standardize=False).fit(kind(X), y, weights)
    np.testing.assert_array_equal(model.neighbors(kind(Z)), nearest(X, Z, 12))
    scores, models = by_libsvm(X, y, weights, Z, 12, alpha, model.classes_)
    assert 0.1 < np.mean(np.abs(models[:, 0, :2]).max(axis=1) == 0) < 0.9  # one label, or two
    np.testing.assert_allclose(model.decision_function(kind(Z)), scores[:, 0], 1e-3, 1e-4)
    np.testing.assert_array_equal(model.predict(kind(Z)), np.where(scores[:, 0] > 0, "b", "a"))
    coef, intercept = model.local_model(kind(Z))
    np.testing.assert_allclose(coef, models[:, 0, :2], 1e-3, 1e-3)
    np.testing.assert_allclose(intercept, models[:, 0, 2], 1e-3, 1e-3)


@pytest.mark.parametrize("kind", DENSE_FIRST)
def test_many_classes_are_libsvm_on_every_neighbourhood(digits, kind):
    X, y, Z = digits
    model = SVMKNNClassifier(25, tol=1e-8, standardize=False).fit(kind(X), y)
    scores, models = by_libsvm(X, y, np.ones(len(y)), Z, 25, "scale", model.classes_)
    np.testing.assert_allclose(model.decision_function(kind(Z)), scores, 1e-3, 1e-4)
    np.testing.assert_array_equal(model.predict(kind(Z)), model.classes_[scores.argmax(axis=1)])
    coef, intercept = model.local_model(kind(Z[:20]))
    np.testing.assert_allclose(coef, models[:20, :, :-1], 1e-3, 1e-3)
    np.testing.assert_allclose(
        np.einsum("ncd,nd->nc", coef, Z[:20]) + intercept, model.decision_function(Z[:20]),
        atol=1e-12,
    )  # fmt: skip


def test_what_rounding_leaves_of_a_dual_variable_is_not_on_the_margin():
    """One of 1e-16 moved an intercept by 0.014."""
    X, y = make_sine(400, random_state=0)
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = SVMKNNClassifier(12, alpha=0.05, tol=1e-8, standardize=False).fit(X, y, weights)
    Z = X[:100] + 0.01
    scores, _ = by_libsvm(X, y, weights, Z, 12, 0.05, model.classes_)
    np.testing.assert_allclose(model.decision_function(Z), scores[:, 0], 1e-3, 1e-4)


def test_single_precision(digits):
    X, y, Z = digits
    double, single = (
        SVMKNNClassifier(standardize=False).fit(X, y),
        SVMKNNClassifier(standardize=False).fit(X.astype("f"), y),
    )
    scores = single.decision_function(Z.astype("f"))
    assert scores.dtype == single.X_.dtype == np.float32
    np.testing.assert_allclose(scores, double.decision_function(Z), atol=2e-3)


def test_rows_far_from_the_origin(sine):
    """Products are taken from a row of the neighbourhood."""
    X, y, Z = sine
    near = SVMKNNClassifier(tol=1e-6, standardize=False).fit(X, y).decision_function(Z)
    far = (
        SVMKNNClassifier(tol=1e-6, standardize=False)
        .fit(X + 2.0**20, y)
        .decision_function(Z + 2.0**20)
    )
    np.testing.assert_allclose(far, near, atol=1e-3)


def test_scale_has_no_unit(sine):
    X, y, Z = sine
    usual = SVMKNNClassifier(standardize=False).fit(X, y).decision_function(Z)
    small = SVMKNNClassifier(standardize=False).fit(X * 2.0**-30, y).decision_function(Z * 2.0**-30)
    np.testing.assert_allclose(small, usual, rtol=1e-9)


def test_rows_with_the_same_neighbours_share_an_svm(sine, monkeypatch):
    X, y, Z = sine
    model, solved = SVMKNNClassifier(12, standardize=False).fit(X, y), []
    real = classifier.solve_sets

    def spy(K, *rest):
        solved.append(len(K))
        return real(K, *rest)

    monkeypatch.setattr(classifier, "solve_sets", spy)
    many = np.vstack([Z[:5], Z[:5] + 1e-9, Z[:5]])
    scores = model.decision_function(many)
    assert solved == [5]
    np.testing.assert_array_equal(scores[:5], scores[10:])
    monkeypatch.setattr(classifier, "_BLOCK_ROWS", 4)
    np.testing.assert_array_equal(model.decision_function(many), scores)


def test_optimality_of_hard_problems():
    """Rows given twice with both labels, rows on one another, bounds of all sizes."""
    rng = np.random.default_rng(0)
    for turn in range(200):
        k = rng.integers(2, 15)
        Z = rng.integers(0, 3, (k, 2)).astype(float)
        signs = np.where(np.arange(k) % 2, 1.0, -1.0)
        bounds = 10.0 ** rng.uniform(*((-4, 4), (-20, 4))[turn % 2], k)
        dual = np.empty(k)
        b, violation = solve_svm(Z @ Z.T, signs * bounds, 1e-8, dual)
        dual *= signs
        assert violation <= 1e-8
        assert abs(dual @ signs) < 1e-9 * bounds.max()
        assert np.isfinite(b)
        assert (dual >= 0).all()
        assert (dual <= bounds).all()
        margins = signs * (Z @ Z.T @ (dual * signs) + b)
        primal = 0.5 * np.sum((Z.T @ (dual * signs)) ** 2) + bounds @ np.maximum(0, 1 - margins)
        value = dual.sum() - 0.5 * np.sum((Z.T @ (dual * signs)) ** 2)
        assert primal - value < 1e-8 * bounds.sum() + 1e-9 * primal


def test_svms_that_are_cut_off_warn(sine):
    X, y, Z = sine
    model = SVMKNNClassifier(30, alpha=1e-6, standardize=False).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="after 100,000 steps, more than tol=1e-20"):
        model.set_params(tol=1e-20).predict(Z[:20])


@pytest.mark.filterwarnings("ignore:SVMs of neighbours:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("repeats", [2, 30])  # 30: all neighbours are one point
def test_rows_that_contradict_one_another_without_a_penalty(repeats):
    """Their dual variables grow without bound, but for the least strength."""
    rng = np.random.default_rng(0)
    X = np.repeat((1e3 * rng.standard_normal((20, 3))).astype(np.float32), repeats, axis=0)
    y = np.arange(20 * repeats) % 2
    model = SVMKNNClassifier(20, alpha=1e-300, standardize=False).fit(X, y)
    coef, intercept = model.local_model(X)
    assert np.isfinite(coef).all()
    assert np.isfinite(intercept).all()
    assert np.isfinite(model.decision_function(X)).all()


def test_temperature_is_of_rows_without_themselves(sine):
    X, y, _ = sine
    model = SVMKNNClassifier(10, standardize=False).fit(X, y)
    rng = np.random.default_rng(0)
    noise = rng.permutation(y)  # labels that say nothing of the rows: nothing is known
    P = SVMKNNClassifier(10, standardize=False).fit(X, noise).predict_proba(X)
    assert np.abs(P - 0.5).mean() < 0.1
    P = model.predict_proba(X)
    assert np.abs(P - 0.5).mean() > 0.4
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    own = classifier.without(np.array([[3, 1, 2], [0, 5, 4]]), np.array([1, 7]))
    np.testing.assert_array_equal(own, [[3, 2], [0, 5]])


def test_weights_of_zero_and_metrics(sine):
    X, y, Z = sine
    kept = np.arange(len(y)) % 3 > 0
    weighed = SVMKNNClassifier(7, metric="manhattan", standardize=False).fit(
        X, y, kept.astype(float)
    )
    without = SVMKNNClassifier(7, metric="manhattan", standardize=False).fit(X[kept], y[kept])
    np.testing.assert_array_equal(weighed.decision_function(Z), without.decision_function(Z))
    near = np.argsort(cdist(Z, X[kept], "cityblock"), axis=1)[:, :7]
    np.testing.assert_array_equal(np.sort(weighed.neighbors(Z)), np.sort(near))


def test_few_rows_and_rows_that_are_equal():
    X, y = np.array([[0.0], [1.0], [2.0]]), ["a", "a", "b"]
    with pytest.warns(UserWarning, match="n_neighbors=5 is too large: X has 3 rows"):
        model = SVMKNNClassifier(5, standardize=False).fit(X, y)
    assert model.n_neighbors_ == 3
    assert model.score(X, y) == 1.0
    assert SVMKNNClassifier(1, standardize=False).fit(X, y).score(X, y) == 1.0  # the nearest row
    equal = SVMKNNClassifier(4, standardize=False).fit(np.ones((6, 2)), [0, 1, 1, 1, 1, 1])
    assert np.isfinite(equal.decision_function(np.ones((1, 2)))).all()
    np.testing.assert_array_equal(equal.predict(np.ones((3, 2))), [1, 1, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_files_predict_the_same(sine, kind, tmp_path):
    X, y, Z = sine
    model = SVMKNNClassifier(9, standardize=False).fit(kind(X), y)
    save(model, tmp_path / "model.loclin")
    for copied in (load(tmp_path / "model.loclin"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copied.decision_function(Z), model.decision_function(Z))


def test_a_failed_fit_changes_nothing(sine):
    X, y, Z = sine
    model = SVMKNNClassifier(9, standardize=False).fit(X, y)
    before = model.decision_function(Z)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, np.zeros(len(y)))
    np.testing.assert_array_equal(model.decision_function(Z), before)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, r"n_neighbors=0 is not valid; .* or None"),
        ({"n_neighbors": 1.5}, TypeError, "n_neighbors=1.5"),
        ({"alpha": "auto"}, TypeError, 'or "scale"'),
        ({"alpha": 0.0}, ValueError, 'or "scale"'),
        ({"tol": 0.0}, ValueError, "tol=0.0"),
        ({"metric": "none"}, ValueError, "metric"),
    ],
)
def test_errors_say_what_to_change(sine, changed, error, message):
    X, y, _ = sine
    with pytest.raises(error, match=message):
        SVMKNNClassifier(**changed, standardize=False).fit(X, y)


def test_any_number_of_jobs_is_at_most_a_part_a_row():
    X, y = load_digits(return_X_y=True)
    model = SVMKNNClassifier(10).fit(X, y)
    expected = model.predict(X[:5])
    np.testing.assert_array_equal(model.set_params(n_jobs=10**9).predict(X[:5]), expected)
