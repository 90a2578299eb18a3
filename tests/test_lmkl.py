"""L-MKL against finite differences, against its passes in plain Python, and against CVXPY."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.preprocessing import StandardScaler

import loclin
import loclin.io
from loclin.datasets import make_sine, make_xor
from loclin.engine.codes import Intercepts
from loclin.engine.data import Rows
from loclin.engine.losses import LOSSES
from loclin.engine.rows import as_models
from loclin.engine.sgd import SGD
from loclin.engine.sgd_pass import PassSettings
from loclin.lmkl.gates import LearnedGates
from loclin.lmkl.recipe import LMKLRecipe

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

# By the rule alone: what alpha="auto" does beside it is tested in test_strength.py.
LMKLClassifier = partial(loclin.LMKLClassifier, alpha="scale", random_state=0)

IRIS = load_iris(return_X_y=True)
IRIS = StandardScaler().fit_transform(IRIS[0]), IRIS[1]
SINE = make_sine(400, random_state=0)
SINE = StandardScaler().fit_transform(SINE[0]), SINE[1]
KINDS = [np.asarray, sparse.csr_matrix]
LEARNED = "local_coef_", "local_intercept_", "intercept_", "gate_coef_", "gate_intercept_"
LOSS = {  # value and slope
    "hinge": (lambda z: np.maximum(0, 1 - z), lambda z: -1.0 * (z < 1)),
    "squared_hinge": (lambda z: np.maximum(0, 1 - z) ** 2, lambda z: -2 * np.maximum(0, 1 - z)),
    "logistic": (lambda z: np.logaddexp(0, -z), lambda z: -1 / (1 + np.exp(z))),
}
ALPHA, N, D, M = 0.3, 24, 4, 3


def each(**values):
    return pytest.mark.parametrize(list(values), list(product(*values.values())))


def signs_of(y, s):
    return np.where(y[:, None] == (np.arange(s) if s > 1 else 1), 1, -1)


class Problem:
    """Rows and a state at random: W, b, g, V, v0; the solver there."""

    def __init__(self, kind, n_classes, loss, local, rate=0.0, batch=N):
        rng = np.random.default_rng(3)
        self.X, self.loss, self.local = rng.normal(size=(N, D)), loss, local
        self.X[rng.random((N, D)) < 0.2] = 0
        self.y, w = rng.integers(n_classes, size=N).astype(np.int32), rng.uniform(0.5, 2, N)
        self.weights, s = w / w.mean(), 1 if n_classes == 2 else n_classes
        W, b, g = (0.7 * rng.normal(size=shape) for shape in ((s, M, D), (s, M), (s,)))
        self.start = W, b * local, g * (not local), rng.normal(size=(M, D)), rng.normal(size=M)
        settings = PassSettings(
            ALPHA, LOSSES[loss].compiled, batch, False, Intercepts(local, not local)
        )
        rows = kind(self.X)
        self.seen = rows, rows, self.y, self.weights
        gates = LearnedGates(self.start[3].copy(), self.start[4].copy(), rate)
        self.solver = SGD(rows, s, M, settings, gates).set_models(*self.start[:3])
        self.solver.t = 5.0

    def state(self):
        W, b, g, V, v0 = self.solver.current()
        return as_models(W, self.solver.is_sparse, M), b.reshape(-1, M), g, V, v0

    def risk(self, W, b, g, V, v0):
        codes = softmax(self.X @ V.T + v0, axis=1)
        scores = np.einsum("nm,nsm->ns", codes, np.einsum("smd,nd->nsm", W, self.X) + b) + g
        losses = LOSS[self.loss][0](signs_of(self.y, len(W)) * scores).sum(axis=1)
        return np.average(losses, weights=self.weights)

    def penalty(self, W, b, g, *_):
        return ALPHA / 2 * (np.sum(W**2) + np.sum(b**2) + np.sum(g**2))

    def objective(self, *state):
        return self.risk(*state) + self.penalty(*state)

    def differences(self, part):
        gradient = np.zeros_like(self.start[part])
        for index, step in product(np.ndindex(gradient.shape), (1e-5, -1e-5)):
            state = [one.copy() for one in self.start]
            state[part][index] += step
            gradient[index] += self.objective(*state) / (2 * step)
        return gradient


@each(kind=KINDS, n_classes=[2, 3], loss=LOSS, local=[True, False])
def test_a_batch_steps_along_the_gradient(kind, n_classes, loss, local):
    case = Problem(kind, n_classes, loss, local, rate=1e8)
    # after a history so long that it hides the gradient itself, AdaGrad's step is one
    case.solver.coder.history[:] = 1e16
    got, stepped = case.solver.iterate(*case.seen, np.random.default_rng(0)), case.state()
    assert got - case.penalty(*stepped) == pytest.approx(case.risk(*case.start))
    steps = N / (ALPHA * (5 + N)) * np.array([1, local, not local]), [N] * 2
    for part, step in enumerate(np.concatenate(steps)):
        gradient = case.differences(part)
        close = {"rtol": 1e-6, "atol": 1e-6 * step * np.abs(gradient).max() + 1e-12}
        np.testing.assert_allclose(case.start[part] - stepped[part], step * gradient, **close)


@each(kind=KINDS, n_classes=[2, 3], batch=[1, 7])
def test_passes_in_plain_python(kind, n_classes, batch):
    case = Problem(kind, n_classes, "hinge", True, 0.2, batch)
    W, b, _, V, v0 = (part.copy() for part in case.start)
    history, t, iterates = np.zeros(M), 5.0, []
    ours, rng = np.random.default_rng(7), np.random.default_rng(7)
    for _ in range(2):
        case.solver.iterate(*case.seen, ours, average=True)
        order = rng.permutation(np.arange(N, dtype=np.int32))
        for first in range(0, N, batch):
            by_W, by_b, by_V, by_v0 = (np.zeros_like(part) for part in (W, b, V, v0))
            rows = order[first : first + batch]
            for i in rows:
                x, code, said = case.X[i], softmax(V @ case.X[i] + v0), W @ case.X[i] + b
                signs = signs_of(case.y[[i]], len(W))[0]
                slopes = case.weights[i] * signs * LOSS["hinge"][1](signs * (said @ code))
                by_b += np.outer(slopes, code)
                by_W += np.outer(slopes, code)[:, :, None] * x
                by_code = (np.diag(code) - np.outer(code, code)) @ (slopes @ said)
                by_V += np.outer(by_code, x)
                by_v0 += by_code
            t += len(rows)
            W, b = (
                (1 - len(rows) / t) * W - by_W / (ALPHA * t),
                (1 - len(rows) / t) * b - (by_b / (ALPHA * t)),
            )
            history += np.sum(by_V**2, axis=1) + by_v0**2
            length = np.sqrt(history + 1e-99)
            V, v0 = V - 0.2 * by_V / length[:, None], v0 - 0.2 * by_v0 / length
            iterates += [(W, b, np.zeros(len(W)), V, v0)] * len(rows)
    for part, values in zip(case.state(), zip(*iterates, strict=True), strict=True):
        np.testing.assert_allclose(part, np.mean(values, axis=0), rtol=1e-8, atol=1e-8)


def begun(model, X, y, tol):
    """The alternation of a model at its start."""
    given = model.set_params(tol=tol, alpha=ALPHA).get_params()
    recipe = LMKLRecipe.of(given, classes=np.unique(y))
    rows = Rows(X, y.astype(np.int32), np.random.default_rng(0).uniform(0.5, 1.5, len(y)))
    return recipe.start(rows, np.random.default_rng(0), None), rows


@pytest.mark.slow
@each(n_classes=[2, 3], loss=["hinge", "squared_hinge"], bias=["local", "global"])
def test_the_svms_and_the_slopes_of_their_least_risk(n_classes, loss, bias):
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % n_classes
    model = LMKLClassifier(3, solver="alternating", loss=loss, bias=bias, standardize=False)
    fit, rows = begun(model, X, y, 1e-10)
    s = 1 if n_classes == 2 else n_classes
    signs, weights = signs_of(y, s), rows.weights / rows.weights.sum()

    def least(V, v0):
        codes, total = softmax(X @ V.T + v0, axis=1), 0.0
        said = X if bias == "global" else np.column_stack([X, np.ones(30)])
        features = (codes[:, :, None] * said[:, None]).reshape(30, -1)
        features = np.column_stack([features, np.ones(30)]) if bias == "global" else features
        for k in range(s):
            w = cvxpy.Variable(features.shape[1])
            losses = cvxpy.pos(1 - cvxpy.multiply(signs[:, k], features @ w))
            losses = losses if loss == "hinge" else cvxpy.square(losses)
            objective = ALPHA / 2 * cvxpy.sum_squares(w) + weights @ losses
            problem = cvxpy.Problem(cvxpy.Minimize(objective))
            total += problem.solve(
                solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
            )
        return total

    assert fit.models.objectives.sum() == pytest.approx(least(fit.V, fit.v0), rel=1e-7)
    by_V, by_v0 = fit.slopes()
    step = 1e-4
    for index in np.ndindex(by_V.shape):
        change = np.zeros_like(by_V)
        change[index] = step
        slope = (least(fit.V + change, fit.v0) - least(fit.V - change, fit.v0)) / (2 * step)
        assert -by_V[index] == pytest.approx(slope, abs=2e-6)
    for j in range(3):
        change = step * np.eye(3)[j]
        slope = (least(fit.V, fit.v0 + change) - least(fit.V, fit.v0 - change)) / (2 * step)
        assert -by_v0[j] == pytest.approx(slope, abs=2e-6)


@each(kind=KINDS, solver=["sgd", "alternating"], bias=["local", "global"], n_classes=[2, 3])
def test_scores_codes_and_local_models(kind, solver, bias, n_classes):
    X, y = (part[IRIS[1] < n_classes] for part in IRIS)
    model = LMKLClassifier(5, solver=solver, bias=bias, max_iter=4, standardize=False).fit(
        kind(X), y
    )
    s = 1 if n_classes == 2 else n_classes
    assert model.local_coef_.shape == (s, 5, 4)
    assert model.local_intercept_.any() == (bias == "local")
    assert model.intercept_.any() == (bias == "global")
    codes = softmax(X @ model.gate_coef_.T + model.gate_intercept_, axis=1)
    assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    assert_close(model.local_weights(kind(X)).toarray(), codes)
    said = np.einsum("smd,nd->nsm", model.local_coef_, X) + model.local_intercept_
    scores = np.einsum("nm,nsm->ns", codes, said) + model.intercept_
    decision = scores[:, 0] if s == 1 else scores
    assert_close(model.decision_function(kind(X)), decision)
    winners = (decision > 0).astype(int) if s == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(kind(X)), winners)
    coef, intercept = model.local_model(kind(X))
    assert_close(np.einsum("n...d,nd->n...", coef, X) + intercept, decision)


@each(solver=["sgd", "alternating"], kind=KINDS)
def test_it_learns_what_one_linear_model_cannot(solver, kind):
    X, y = SINE
    model = LMKLClassifier(
        5, solver=solver, alpha=1e-3, n_iter_no_change=20, standardize=False
    ).fit(kind(X), y)
    still = clone(model).set_params(gate_lr=0.0).fit(kind(X), y)
    assert model.score(kind(X), y) > 0.95
    assert model.objective_[-1] < 0.9 * still.objective_[-1]
    if solver == "alternating":
        assert np.all(np.diff(model.objective_) <= 0)


def test_both_solvers_minimise_the_same_risk():
    X, y = SINE
    model = LMKLClassifier(5, gate_lr=0.0, alpha=1e-3, tol=1e-6, max_iter=300, standardize=False)
    model.set_params(n_iter_no_change=99).fit(X, y)
    other = clone(model).set_params(solver="alternating", max_iter=1).fit(X, y)
    assert model.objective_[-1] == pytest.approx(other.objective_[-1], rel=0.01)
    assert (other.dual_gap_ <= 1e-6 * other.objective_[-1]).all()


def test_many_classes_share_the_gates():
    X, y = load_digits(return_X_y=True)
    model = LMKLClassifier(standardize=False).fit(X[:1200] / 16, y[:1200])
    assert model.score(X[1200:] / 16, y[1200:]) > 0.92


@each(solver=["sgd", "alternating"])
def test_dense_and_sparse_rows_give_the_same_model(solver):
    known = {"solver": solver, "max_iter": 4, "tol": 1e-6}
    models = [
        LMKLClassifier(3, **known, standardize=False).fit(kind(IRIS[0]), IRIS[1]) for kind in KINDS
    ]
    if solver == "alternating":  # with the same risk; dual variables, and so slopes, may be others
        np.testing.assert_allclose(*(model.objective_ for model in models), rtol=0.02)
        return
    for name in LEARNED:
        np.testing.assert_allclose(*(getattr(model, name) for model in models), atol=1e-7)


@pytest.mark.slow
@each(solver=["sgd", "alternating"])
def test_single_precision(solver):
    model = LMKLClassifier(3, solver=solver, max_iter=5, standardize=False).fit(*IRIS)
    single = clone(model).fit(IRIS[0].astype(np.float32), IRIS[1])
    assert {getattr(single, name).dtype for name in LEARNED} == {np.dtype(np.float32)}
    assert single.decision_function(IRIS[0]).dtype == single.local_weights(IRIS[0]).dtype
    assert single.objective_[-1] == pytest.approx(model.objective_[-1], rel=0.05)


def test_streams_files_and_fits_that_go_on(tmp_path):
    X, y = make_xor(1000, random_state=0)
    model = LMKLClassifier(4, gate_lr=1.0, standardize=False)
    for _ in range(10):
        for rows in np.array_split(np.arange(1000), 5):
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert model.score(X, y) > 0.95
    loclin.io.save(model, tmp_path / "model.loclin")
    again = loclin.io.load(tmp_path / "model.loclin")
    for one in (model, again):
        one.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    fitted = LMKLClassifier(
        4, solver="alternating", max_iter=3, warm_start=True, standardize=False
    ).fit(X, y)
    first = fitted.objective_[-1]
    assert fitted.fit(X, y).objective_[-1] < first
    fitted.set_params(solver="sgd").partial_fit(X[:50], y[:50])
    assert not hasattr(LMKLClassifier(solver="alternating", standardize=False), "partial_fit")
    assert len(LMKLClassifier(max_iter=1, standardize=False).fit(X[:60], y[:60]).gate_coef_) == 6
    assert len(LMKLClassifier(max_iter=1, standardize=False).fit(X, y).gate_coef_) == 20
    with pytest.raises(ValueError, match=r"n_models=3 differs from the 4"):
        fitted.set_params(n_models=3).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("n_models", 0, ValueError), ("n_models", 2.0, TypeError), ("solver", "mkl", ValueError),
     ("bias", "none", ValueError), ("gate_lr", -1.0, ValueError), ("loss", "square", ValueError),
     ("eta0", 0, ValueError), ("alpha", 0, ValueError)],
)  # fmt: skip
def test_bad_parameters(name, value, error):
    with pytest.raises(error, match=name):
        LMKLClassifier(standardize=False).set_params(**{name: value}).fit(*IRIS)
    with pytest.raises(ValueError, match="'squared_hinge'] with solver='alternating'"):
        LMKLClassifier(solver="alternating", loss="logistic", standardize=False).fit(*IRIS)
