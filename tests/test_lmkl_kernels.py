"""L-MKL with kernels: its gradient by finite differences, SVC, and CVXPY for fixed gates."""

from copy import copy
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, add_dummy_feature
from sklearn.svm import SVC

from loclin import KernelLMKLClassifier
from loclin.engine.targets import signs_of
from loclin.lmkl.kernel_classifier import solved

IRIS = load_iris(return_X_y=True)
IRIS = StandardScaler().fit_transform(IRIS[0]), IRIS[1]


def of_feature(f, X, Y):
    return rbf_kernel(X[:, [f]], Y[:, [f]], gamma=10)


SECOND, THIRD = partial(of_feature, 1), partial(of_feature, 2)


def halves(n, seed):
    """On the left the second feature tells the label, on the right the third."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 3))
    return X, (np.sin(6 * np.where(X[:, 0] < 0, X[:, 1], X[:, 2])) > 0).astype(int)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_slopes_are_those_of_the_value_of_the_svms(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % n_classes
    kernels = [linear_kernel(X), polynomial_kernel(X, degree=2), rbf_kernel(X)]
    bounds, Z, V = rng.uniform(0.5, 2, 40), add_dummy_feature(X), rng.normal(size=(4, 3))
    signs = signs_of(y, 1 if n_classes == 2 else n_classes)

    def at(V):
        return solved(kernels, softmax(Z @ V, axis=1), signs, bounds, 1e-10)

    slopes, step = Z.T @ at(V).slopes, 1e-4
    for index in np.ndindex(V.shape):
        change = np.zeros_like(V)
        change[index] = step
        difference = (at(V + change).value - at(V - change).value) / (2 * step)
        assert slopes[index] == pytest.approx(difference, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_kernel_is_an_svc(n_classes):
    X, y = (part[IRIS[1] < n_classes] for part in IRIS)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = KernelLMKLClassifier(["rbf"], alpha=1e-3, tol=1e-8).fit(X, y, weights)
    scores = model.decision_function(X).reshape(len(X), -1)
    for k, positive in enumerate([1] if n_classes == 2 else [0, 1, 2]):
        svc = SVC(gamma=1 / 4, C=1e3, tol=1e-8).fit(X, y == positive, weights / weights.sum())
        np.testing.assert_allclose(scores[:, k], svc.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(model.local_weights(X), 1)


def test_linear_kernels_and_gates_at_rest_by_cvxpy():
    """The same problem as that of the linear form, with an intercept that is not penalised."""
    cvxpy = pytest.importorskip("cvxpy")
    X, y = halves(60, 0)
    weights = np.random.default_rng(0).uniform(0.5, 2, 60)
    model = KernelLMKLClassifier(["linear"] * 3, gate_lr=0.0, alpha=0.01, tol=1e-10, random_state=0)
    model.fit(X, y, weights)
    codes = softmax(X @ model.gate_coef_.T + model.gate_intercept_, axis=1)
    features = (codes[:, :, None] * X[:, None]).reshape(60, -1)
    w, b = cvxpy.Variable(9), cvxpy.Variable()
    losses = cvxpy.pos(1 - cvxpy.multiply(2 * y - 1, features @ w + b))
    risk = 0.005 * cvxpy.sum_squares(w) + weights / weights.sum() @ losses
    least = cvxpy.Problem(cvxpy.Minimize(risk)).solve(solver="CLARABEL")
    assert model.objective_[-1] == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), features @ w.value + b.value, atol=1e-3)


def test_two_kernels_beat_either_where_each_has_its_half():
    train, test = halves(250, 0), halves(2000, 1)
    known = {"alpha": 1e-3, "random_state": 0}
    errors = [
        1 - KernelLMKLClassifier(kernels, **known).fit(*train).score(*test)
        for kernels in ([SECOND, THIRD], [SECOND], [THIRD])
    ]
    assert errors[0] < 0.1 < 0.25 < min(errors[1:])


def test_the_value_falls_and_gates_learn():
    X, y = halves(250, 0)
    model = KernelLMKLClassifier([SECOND, THIRD], alpha=1e-3, random_state=0).fit(X, y)
    still = KernelLMKLClassifier([SECOND, THIRD], alpha=1e-3, random_state=0, gate_lr=0.0)
    assert model.objective_[-1] < 0.9 * still.fit(X, y).objective_[-1]
    assert (np.diff(model.objective_) <= 0).all()
    assert len(model.objective_) == model.n_iter_
    codes = softmax(X @ model.gate_coef_.T + model.gate_intercept_, axis=1)
    np.testing.assert_allclose(model.local_weights(X), codes)
    assert codes[X[:, 0] > 0.3, 1].mean() > 0.6


def test_dense_and_sparse_rows_give_the_same_model():
    model = KernelLMKLClassifier(random_state=0).fit(*IRIS)
    other = KernelLMKLClassifier(random_state=0).fit(sparse.csr_matrix(IRIS[0]), IRIS[1])
    found = other.decision_function(sparse.csr_matrix(IRIS[0]))
    np.testing.assert_allclose(found, model.decision_function(IRIS[0]), atol=1e-6)
    assert model.score(*IRIS) > 0.95


def test_steps_that_are_used_up_warn():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 steps .* Raise max_iter or tol"):
        KernelLMKLClassifier(max_iter=2, tol=1e-9, random_state=0).fit(*IRIS)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("kernels", [], ValueError), ("kernels", "rbf", ValueError), ("kernels", ["no"], ValueError),
     ("gate_lr", -1.0, ValueError), ("alpha", 0.0, ValueError), ("alpha", "auto", TypeError),
     ("max_iter", 0, ValueError), ("tol", 0.0, ValueError)],
)  # fmt: skip
def test_bad_parameters(name, value, error):
    with pytest.raises(error, match=name):
        KernelLMKLClassifier().set_params(**{name: value}).fit(*IRIS)


def test_kernels_that_are_no_matrix_of_numbers():
    for kernel in (lambda X, Y: np.ones(3), lambda X, Y: X @ Y.T / 0):
        with (
            np.errstate(all="ignore"),
            pytest.raises(ValueError, match="a matrix of finite numbers"),
        ):
            KernelLMKLClassifier([kernel]).fit(*IRIS)


def test_svms_that_would_go_on_for_hours_end_with_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    with pytest.warns(ConvergenceWarning, match="SVMs were not solved to tol=0.001 in 100,000"):
        KernelLMKLClassifier(alpha=1e-9, max_iter=2, random_state=0).fit(X, y)


def times(factor, X, Y):
    return factor * rbf_kernel(X, Y)


@pytest.mark.parametrize("factor", [1e-40, 1e40])
def test_kernels_of_any_scale_give_the_same_scores(factor):
    scores = [
        KernelLMKLClassifier([partial(times, f), partial(times, f)], random_state=0)
        .fit(*IRIS)
        .decision_function(IRIS[0])
        for f in (1.0, factor)
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_near_the_best_of_any_temperature(n_classes):
    X, y = make_classification(
        500, 5, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.15, random_state=0
    )
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = KernelLMKLClassifier(max_iter=10, random_state=0).fit(X_train, y_train)
    found = model.predict_proba(X_test)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(X_test))
    best = min(
        log_loss(y_test, clone_with(model, t).predict_proba(X_test)) for t in np.logspace(-2, 2, 60)
    )
    assert log_loss(y_test, found) < 1.05 * best


def clone_with(model, temperature):
    other = copy(model)
    other.temperature_ = temperature
    return other


def test_a_class_of_one_row_has_probabilities():
    X, y = np.vstack([IRIS[0], [[9.0, 9.0, 9.0, 9.0]]]), np.append(IRIS[1], 3)
    model = KernelLMKLClassifier(max_iter=2, tol=1.0, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (len(y), 4)
    assert model.smoothing_ == 1 / (len(y) + 2)


def test_without_calibration_there_are_no_probabilities():
    model = KernelLMKLClassifier(max_iter=2, tol=10.0, calibrate=False).fit(*IRIS)
    assert model.temperature_ is None
    assert not hasattr(model, "predict_proba")
    with pytest.raises(TypeError, match="calibrate='yes'"):
        KernelLMKLClassifier(calibrate="yes").fit(*IRIS)
