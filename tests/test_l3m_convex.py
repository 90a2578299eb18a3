"""The convex program of L3M against CVXPY, its certificate, and proposition 1.1."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from loclin import L3MClassifier
from loclin.datasets import make_xor
from loclin.engine.data import Rows
from loclin.engine.losses import HINGE, LOGISTIC, SQUARED_HINGE
from loclin.l3m.convex import ConvexFit, Problem, Run
from loclin.l3m.kernels import surrogate_rows

LOSS = {"hinge": lambda z: np.maximum(0, 1 - z), "logistic": lambda z: np.logaddexp(0, -z)}
LOSSES = {"hinge": HINGE, "logistic": LOGISTIC}
N, D, ALPHA, MARGIN = 60, 3, 0.01, 2.0


def each(**values):
    return pytest.mark.parametrize(list(values), list(product(*values.values())))


def rows_of(n_classes, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    y = (X[:, 0] * X[:, 1] > 0).astype(np.int32) + (n_classes == 3) * (X[:, 2] > 0.5)
    weights = rng.uniform(0.5, 2, N)
    return Rows(X.astype(dtype), y.astype(np.int32), (weights / weights.mean()).astype(dtype))


def signs_of(y, s):
    return np.where(y[:, None] == (np.arange(s) if s > 1 else 1), 1.0, -1.0)


def plain_surrogate(f, g, y, loss):
    """Eqs. 7 and 8 for scores f (n, r, s) and g (n, r), to the letter."""
    r, L, worst = g.shape[1], LOSS[loss], []
    for k in range(r):
        others = [L(g[:, j]) for j in range(r) if j != k]
        phi = np.max([L(-g[:, k]), *others], axis=0)
        worst.append(L(signs_of(y, f.shape[2]) * f[:, k]).max(axis=1) + phi - 1)
    return np.max(worst, axis=0)


def plain_objective(model, X, y, weights, loss, alpha):
    f = np.einsum("srd,nd->nrs", model.local_coef_, X) + model.local_intercept_.T
    g = X @ model.partition_coef_.T + model.partition_intercept_
    mean = np.average(plain_surrogate(f, g, y, loss), weights=weights)
    return mean + alpha / 2 * np.sum(model.local_coef_**2)


def by_cvxpy(rows, r, s, loss, held):
    cp = pytest.importorskip("cvxpy")
    X, y, weights, _ = rows
    F, b = [cp.Variable((D, s)) for _ in range(r)], [cp.Variable((1, s)) for _ in range(r)]
    V, c = cp.Variable((D, r)), cp.Variable((1, r))

    def L(z):
        return cp.pos(1 - z) if loss == "hinge" else cp.logistic(-z)

    g, ones, terms = X @ V + np.ones((N, 1)) @ c, np.ones((N, 1)), []
    for k in range(r):
        hinge = cp.max(L(cp.multiply(signs_of(y, s), X @ F[k] + ones @ b[k])), axis=1)
        signs = np.where(np.arange(r) == k, -1.0, 1.0) * np.ones((N, 1))
        terms.append(hinge + cp.max(L(cp.multiply(signs, g)), axis=1) - 1)
    mean = (weights / weights.sum()) @ cp.max(cp.vstack(terms), axis=0)
    penalty = ALPHA / 2 * sum(cp.sum_squares(f) for f in F)
    constraints = [g[i, k] >= MARGIN for k, i in enumerate(held)]
    return cp.Problem(cp.Minimize(mean + penalty), constraints).solve(solver="CLARABEL")


def quick(n_regions, **changed):
    settings = {"solver": "convex", "n_restarts": 1, "random_state": 0} | changed
    return L3MClassifier(n_regions, **settings, standardize=False)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # its own tolerance is 1e-8
@pytest.mark.parametrize(
    ("n_classes", "r", "loss"),
    [
        *product([2, 3], [2, 3], ["hinge"]),
        *(
            pytest.param(
                n_classes, r, loss, marks=[] if r == n_classes == 2 else [pytest.mark.slow]
            )
            for n_classes, r, loss in product([2, 3], [2, 3], LOSS)
            if loss != "hinge"
        ),
        pytest.param(2, 6, "hinge", marks=pytest.mark.slow),
    ],
)
def test_the_optimum_is_cvxpy_s(n_classes, r, loss):
    rows, s = rows_of(n_classes), 1 if n_classes == 2 else 3
    model = quick(r, loss=loss, alpha=ALPHA, margin=MARGIN).fit(rows.X, rows.y, rows.weights)
    held = model.constraint_rows_
    assert (len(set(held.tolist())), held.min() >= 0, held.max() < N) == (r - 1, True, True)
    optimum = by_cvxpy(rows, r, s, loss, held)
    objective = plain_objective(model, rows.X, rows.y, rows.weights, loss, ALPHA)
    assert objective == pytest.approx(model.objective_[-1], rel=1e-6)
    assert -1e-5 < objective / optimum - 1 < 1e-3
    assert model.dual_gap_ <= 1e-3
    assert objective * (1 - model.dual_gap_) <= optimum * (1 + 1e-5)
    found = rows.X[held] @ model.partition_coef_.T + model.partition_intercept_
    assert (np.diag(found) >= MARGIN * (1 - 1e-9)).all()


@pytest.mark.parametrize(("n_classes", "r"), [(2, 4), (3, 2)])
def test_proposition_1_1_without_constraints_the_optimum_is_one_classifier(n_classes, r):
    rows, s = rows_of(n_classes), 1 if n_classes == 2 else 3
    problem = Problem(rows, r, s, ALPHA, MARGIN, HINGE)
    run = Run(problem, np.arange(0))
    rng = np.random.default_rng(0)
    run.v[:] = rng.normal(size=len(run.v))  # away from the symmetric point
    run.objective = np.inf
    for _ in range(15):
        run.round()
    # one global classifier f, r times penalised: max_k becomes hinge(f), and phi = 1 at G = 0
    one = Problem(rows, 1, s, ALPHA * r, MARGIN, HINGE)
    single = Run(one, np.arange(0))
    for _ in range(15):
        single.round()
    # with r = 1, phi = max(0, 1 + g) can be 0: the objective is mean hinge - 1
    assert run.gap < 1e-3
    assert run.objective == pytest.approx(single.objective + 1, rel=2e-3)
    W = run.outputs.split(run.v)[0][: r * s].reshape(r, -1)
    np.testing.assert_allclose(W, np.broadcast_to(W.mean(axis=0), W.shape), atol=0.05)


@each(s=[1, 3], loss=LOSS)
def test_smoothed_rows_have_the_gradient_and_the_support_they_claim(s, loss):
    rng, n, r, mu = np.random.default_rng(1), 5, 3, 0.2
    p = r * s + r
    Z, weights = rng.normal(size=(n, p)) * 2, rng.uniform(0.5, 2, n)
    y = rng.integers(max(s, 2), size=n).astype(np.int32)
    A, constants, none = np.empty((n, p)), np.empty((n, p)), np.empty((0, 0))

    def value(Z, mu, keep=none):
        return surrogate_rows(Z, y, weights, r, s, mu, LOSSES[loss].compiled, A, keep)

    def exact(Z):
        f, g = Z[:, : r * s].reshape(n, r, s), Z[:, r * s :]
        return weights @ plain_surrogate(f, g, y, loss)

    assert value(Z, 1e-12) == pytest.approx(exact(Z), rel=1e-9)
    numeric = np.zeros_like(Z)
    for index, step in product(np.ndindex(Z.shape), (1e-5, -1e-5)):
        moved = Z.copy()
        moved[index] += step
        numeric[index] += value(moved, mu) / (2 * step)
    value(Z, mu, constants)
    np.testing.assert_allclose(A, numeric, atol=1e-8)
    for _ in range(50):  # a lower bound everywhere
        other = rng.normal(size=Z.shape) * 4
        assert np.sum(A * other) + constants.sum() <= exact(other) + 1e-9


@pytest.mark.slow  # compiled for alone
def test_sparse_rows_and_single_precision():
    X, y, weights, _ = rows_of(3, dtype=np.float32)
    base = quick(3, tol=0.05).fit(X.astype(float), y, weights)
    for kind, dtype in product([np.asarray, sparse.csr_matrix], [np.float32, np.float64]):
        if kind is np.asarray and dtype is np.float64:
            continue  # the base
        Z = kind(X.astype(dtype))
        same = clone(base).fit(Z, y, weights)
        assert same.partition_coef_.dtype == same.local_coef_.dtype == dtype
        assert same.decision_function(Z).dtype == dtype
        np.testing.assert_array_equal(same.constraint_rows_, base.constraint_rows_)
        assert same.objective_[-1] == pytest.approx(base.objective_[-1], rel=2e-3)


def test_restarts_keep_the_least_training_error_whatever_n_jobs():
    rows = rows_of(2)
    problem = Problem(rows, 2, 1, ALPHA, MARGIN, HINGE)
    fits = [ConvexFit(problem, 6, np.random.default_rng(0), jobs, 0.05) for jobs in (None, 2)]
    for fit in fits:
        while fit.gap > 0.05:
            fit.iterate(average=False)
    errors = [run.error() for run in fits[0].runs]
    assert len(set(errors)) > 1
    assert fits[0].best().error() == min(errors)
    for one, other in zip(*(fit.runs for fit in fits), strict=True):
        np.testing.assert_array_equal(one.v, other.v)


def test_constraint_rows_are_places_in_the_user_s_rows():
    X, y, weights, _ = rows_of(2)
    weights = np.where(np.arange(N) < 40, 0, weights)
    model = quick(4, tol=0.5).fit(X, y, weights)
    assert model.constraint_rows_.min() >= 40
    values = X[model.constraint_rows_] @ model.partition_coef_.T + model.partition_intercept_
    assert (np.diag(values) >= 10 * (1 - 1e-9)).all()


def test_two_regions_solve_xor_with_the_paper_s_thirty_draws(monkeypatch):
    X, y = make_xor(100, random_state=0)
    draws, real = [], Run.__init__

    def spy(self, problem, constrained):
        draws.append(constrained)
        real(self, problem, constrained)

    monkeypatch.setattr(Run, "__init__", spy)
    model = quick(2, loss="hinge", n_restarts=None, tol=0.2).fit(X, y)
    assert model.score(X, y) > 0.97
    assert len(draws) == 30 + 5  # and one for each fold that tells the temperature


def test_the_gap_left_is_warned_of():
    rows = rows_of(2)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        quick(3, max_iter=1).fit(rows.X, rows.y)


def test_a_loss_that_is_not_of_the_program_raises():
    with pytest.raises(ValueError, match="squared_hinge"):
        Problem(rows_of(2), 2, 1, ALPHA, MARGIN, SQUARED_HINGE)


@each(alpha=[1e-4, 1e4], margin=[1e-2, 1e6])
def test_weak_and_strong_alpha_and_margin(alpha, margin):
    rows = rows_of(3)
    model = quick(3, loss="hinge", alpha=alpha, margin=margin, tol=1e-2)
    model.fit(rows.X, rows.y, rows.weights)
    assert 0 <= model.dual_gap_ <= 1e-2
    at = rows.X[model.constraint_rows_]
    g = np.diag(at @ model.partition_coef_[:2].T + model.partition_intercept_[:2])
    assert (g >= margin * (1 - 1e-9)).all()
    plain = plain_objective(model, rows.X, rows.y, rows.weights, "hinge", alpha)
    np.testing.assert_allclose(model.objective_[-1], plain, rtol=1e-6)
