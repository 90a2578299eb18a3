"""CSVM against CVXPY on the paper's problem, and scikit-learn's linear SVM on the long vectors."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import loclin
from loclin.datasets import make_sine

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

# By the rule alone: what alpha="auto" does beside it is tested in test_strength.py.
CSVMClassifier = partial(loclin.CSVMClassifier, alpha="scale", random_state=0)

ALPHA = 0.01
KINDS = [np.asarray, sparse.csr_matrix]
LOSSES = {
    "hinge": lambda z: np.maximum(0, 1 - z),
    "squared_hinge": lambda z: np.maximum(0, 1 - z) ** 2,
}


def solved(n_clusters=4, **changed):
    values = {"alpha": ALPHA, "tol": 1e-5, "max_iter": 20_000}
    return CSVMClassifier(n_clusters, **values | changed, standardize=False)


def some_digits(n_classes, n=120):
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    return X[:n, ::3] / 16, y[:n]


@pytest.fixture(scope="module")
def sine():
    X, y = make_sine(300, random_state=0)
    return StandardScaler().fit_transform(X), y


# The same problem in the open.


def nearest(X, centers):
    return ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def long_vectors(X, clusters, m, global_penalty):
    """[x, 1] over the square root of lambda, then [x, 1] in the block of its cluster."""
    blocks = np.eye(m)[clusters][:, :, None] * with_ones(X)[:, None]
    shared = with_ones(X) / np.sqrt(global_penalty)
    return np.hstack([shared, blocks.reshape(len(X), -1)])


def models_of(model, k):
    """Global model of a score, and those of the clusters, with intercepts last."""
    shared = np.append(model.global_coef_[k], model.global_intercept_[k])
    return shared, np.column_stack([model.local_coef_[k], model.local_intercept_[k]])


def penalty(model, k):
    shared, local = models_of(model, k)
    return model.global_penalty * shared @ shared + ((local - shared) ** 2).sum()


def objective(model, X, y, k, weights=None):
    _, local = models_of(model, k)
    clusters = nearest(X, model.cluster_centers_)
    scores = np.einsum("nd,nd->n", with_ones(X), local[clusters])
    positive = model.classes_[1 if len(model.local_coef_) == 1 else k]
    losses = LOSSES[model.loss](np.where(y == positive, 1, -1) * scores)
    return model.alpha_ / 2 * penalty(model, k) + np.average(losses, weights=weights)


def primal_by_cvxpy(X, signs, clusters, weights, loss, global_penalty):
    """The problem as the paper has it, in w and w_l."""
    cp = pytest.importorskip("cvxpy")
    F, m = with_ones(X), clusters.max() + 1
    w, local = cp.Variable(F.shape[1]), cp.Variable((m, F.shape[1]))
    scores = cp.sum(cp.multiply(F, np.eye(m)[clusters] @ local), axis=1)
    losses = cp.pos(1 - cp.multiply(signs, scores))
    losses = cp.square(losses) if loss == "squared_hinge" else losses
    pulls = sum(cp.sum_squares(local[j] - w) for j in range(m))
    risk = weights @ losses / weights.sum()
    cost = ALPHA / 2 * (global_penalty * cp.sum_squares(w) + pulls) + risk
    optimum = cp.Problem(cp.Minimize(cost)).solve()
    return optimum, w.value, local.value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("loss", "global_penalty"), [("hinge", 0.3), ("squared_hinge", 5.0)])
def test_the_optimum_is_cvxpy_s(sine, loss, global_penalty, kind):
    X, y = sine
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = solved(loss=loss, global_penalty=global_penalty).fit(kind(X), y, weights)
    clusters, signs = nearest(X, model.cluster_centers_), np.where(y == model.classes_[1], 1, -1)
    optimum, w, local = primal_by_cvxpy(X, signs, clusters, weights, loss, global_penalty)
    found = objective(model, X, y, 0, weights)
    assert found == pytest.approx(optimum, rel=1e-4)
    assert model.objective_[-1] == pytest.approx(found, rel=1e-9)
    assert found - optimum <= model.dual_gap_[0] + 1e-6 * optimum
    shared, ours = models_of(model, 0)
    np.testing.assert_allclose(shared, w, atol=0.03 * abs(w).max())
    np.testing.assert_allclose(ours, local, atol=0.03 * abs(local).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_one_class_against_the_rest_is_linear_svc_on_the_long_vectors(loss, kind):
    X, y = some_digits(4)
    model = solved(3, loss=loss, global_penalty=2.0).fit(kind(X), y)
    F = long_vectors(X, nearest(X, model.cluster_centers_), 3, 2.0)
    linear = LinearSVC(
        C=1 / (len(y) * ALPHA), loss=loss, tol=1e-7, fit_intercept=False, max_iter=10**6
    ).fit(F, y)
    for k, c in enumerate(model.classes_):
        losses = LOSSES[loss](np.where(y == c, 1, -1) * (F @ linear.coef_[k]))
        optimum = ALPHA / 2 * linear.coef_[k] @ linear.coef_[k] + losses.mean()
        assert objective(model, X, y, k) == pytest.approx(optimum, rel=1e-4)
    np.testing.assert_allclose(model.decision_function(kind(X)), F @ linear.coef_.T, atol=0.02)


def test_competing_classes_are_linear_svc_on_the_long_vectors():
    X, y = some_digits(4)
    model = solved(3, multi_class="crammer_singer", global_penalty=0.5).fit(X, y)
    F = long_vectors(X, nearest(X, model.cluster_centers_), 3, 0.5)
    linear = LinearSVC(
        C=1 / (len(y) * ALPHA), multi_class="crammer_singer", tol=1e-7, fit_intercept=False,
        max_iter=10**6,
    ).fit(F, y)  # fmt: skip

    def cost(scores, squares):
        leads = np.where(np.eye(4)[y] > 0, -np.inf, scores).max(axis=1)
        return ALPHA / 2 * squares + np.maximum(0, 1 - scores[np.arange(len(y)), y] + leads).mean()

    found = cost(model.decision_function(X), sum(penalty(model, k) for k in range(4)))
    optimum = cost(F @ linear.coef_.T, (linear.coef_**2).sum())
    assert found == pytest.approx(optimum, rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (np.asarray, np.float64),
        (sparse.csr_matrix, np.float64),
        pytest.param(np.asarray, np.float32, marks=pytest.mark.slow),
        pytest.param(sparse.csr_matrix, np.float32, marks=pytest.mark.slow),
    ],
)
def test_the_model_of_the_nearest_centre_acts(sine, kind, dtype):
    X, y = sine
    X = X.astype(dtype)
    model = CSVMClassifier(5, standardize=False).fit(kind(X), y)
    codes = model.local_weights(kind(X))
    clusters = nearest(X, model.cluster_centers_)
    np.testing.assert_array_equal(codes.toarray(), np.eye(5)[clusters])
    coef, intercept = model.local_model(kind(X))
    np.testing.assert_array_equal(coef, model.local_coef_[0][clusters])
    np.testing.assert_allclose(
        np.einsum("nd,nd->n", coef, X) + intercept, model.decision_function(kind(X)),
        atol=1e-4 if dtype == np.float32 else 1e-12,
    )  # fmt: skip
    assert model.decision_function(kind(X)).dtype == dtype


def test_the_pull_goes_from_one_model_to_separate_ones(sine):
    X, y = sine
    one = solved(global_penalty=1e-4, alpha=1e4 * ALPHA).fit(X, y)
    spread = np.abs(one.local_coef_ - one.global_coef_[:, None]).max()
    assert spread < 1e-2 * np.abs(one.global_coef_).max()
    separate = solved(global_penalty=1e9).fit(X, y)
    assert np.abs(separate.global_coef_).max() < 1e-6 * np.abs(separate.local_coef_).max()
    clusters = nearest(X, separate.cluster_centers_)
    for j in range(4):
        rows = clusters == j
        linear = LinearSVC(
            C=1 / (len(y) * ALPHA), loss="hinge", tol=1e-6, intercept_scaling=1, max_iter=10**6
        ).fit(X[rows], y[rows])
        own = LOSSES["hinge"](np.where(y[rows] == 1, 1, -1) * linear.decision_function(X[rows]))
        size = linear.coef_[0] @ linear.coef_[0] + linear.intercept_[0] ** 2
        optimum = ALPHA / 2 * size + own.sum() / len(y)
        ours = LOSSES["hinge"](np.where(y[rows] == 1, 1, -1) * separate.decision_function(X[rows]))
        w = np.append(separate.local_coef_[0, j], separate.local_intercept_[0, j])
        assert ALPHA / 2 * w @ w + ours.sum() / len(y) == pytest.approx(optimum, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_comes_near_the_solution(sine, kind):
    X, y = sine
    exact = solved().fit(X, y)
    stream = CSVMClassifier(centers=exact.cluster_centers_, alpha=ALPHA, standardize=False)
    rng = np.random.default_rng(0)
    for _ in range(40):
        rows = rng.permutation(len(y))
        stream.partial_fit(kind(X[rows]), y[rows], classes=np.unique(y))
    assert stream.t_ == 40 * len(y)
    least = objective(exact, X, y, 0)
    assert least <= objective(stream, X, y, 0) < 1.05 * least
    before = objective(exact.partial_fit(kind(X), y), X, y, 0)  # goes on from the solution
    assert before < 1.05 * least


def test_a_fit_goes_on_from_the_dual_variables(sine):
    X, y = sine
    model = solved(warm_start=True, tol=1e-4).fit(X, y)
    passes, centers = model.n_iter_, model.cluster_centers_
    assert model.fit(X, y).n_iter_ < passes / 5
    model.set_params(alpha=0.9 * ALPHA).fit(X, y)
    np.testing.assert_array_equal(model.cluster_centers_, centers)
    fresh = solved(centers=centers, alpha=0.9 * ALPHA, tol=1e-4).fit(X, y)
    assert model.objective_[-1] == pytest.approx(fresh.objective_[-1], rel=1e-3)


def test_clusters_of_one_class_and_of_no_rows(sine):
    X, y = sine
    far = np.vstack([X[y == 0][:1], X[y == 1].mean(axis=0, keepdims=True), [[1e6, 1e6]]])
    model = solved(centers=far).fit(X, y)
    np.testing.assert_array_equal(model.local_coef_[:, 2], model.global_coef_)
    np.testing.assert_array_equal(model.local_intercept_[:, 2], model.global_intercept_)
    apart = np.array([[0.0], [0.1], [5.0], [5.1]]), [0, 0, 1, 1]
    assert solved(2, global_penalty=1.0).fit(*apart).score(*apart) == 1.0


def test_fewer_distinct_rows_than_clusters():
    X, y = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0), np.repeat(["a", "b"], 10)
    with pytest.warns(UserWarning, match=r"n_clusters=5 is too large: .* only 2 distinct"):
        model = CSVMClassifier(5, standardize=False).fit(X, y)
    assert model.cluster_centers_.shape == (2, 2)
    assert model.score(X, y) == 1.0
    with pytest.warns(UserWarning, match="n_clusters=30"):
        CSVMClassifier(30, standardize=False).fit(X, y)
    model = CSVMClassifier(standardize=False).fit(
        np.ones((20, 2)), y
    )  # all rows equal: one cluster
    assert model.cluster_centers_.shape == (1, 2)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"n_clusters": 0}, ValueError, r"n_clusters=0 is not valid; .* or None"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters=2.5"),
        ({"global_penalty": 0.0}, ValueError, "global_penalty=0.0"),
        ({"centers": "median"}, ValueError, r"centers='median' is not valid; .*kmeans"),
        ({"centers": [[1.0]]}, ValueError, r"X has 2 features, so centers must have"),
        ({"centers": [[1.0, np.nan]]}, ValueError, "centers contains NaN"),
        ({"loss": "logistic"}, ValueError, r"use one of \['hinge', 'squared_hinge'\]"),
        (
            {"loss": "squared_hinge", "multi_class": "crammer_singer"},
            ValueError,
            "needs multi_class='ovr'",
        ),
        ({"alpha": 0.0}, ValueError, 'or "auto" or "scale"'),
    ],
)
def test_errors_say_what_to_change(sine, changed, error, message):
    with pytest.raises(error, match=message):
        CSVMClassifier(**changed, standardize=False).fit(*sine)


def test_given_centres_are_those_of_rows_of_any_size(sine):
    """Features are multiplied while they are learned from; so are centres."""
    X, y = sine
    centers = X[:6]
    usual = CSVMClassifier(centers=centers, standardize=False).fit(X, y)
    small = CSVMClassifier(centers=centers * 2.0**-20, standardize=False).fit(X * 2.0**-20, y)
    np.testing.assert_allclose(small.cluster_centers_, centers * 2.0**-20)
    assert small.score(X * 2.0**-20, y) > usual.score(X, y) - 0.02
