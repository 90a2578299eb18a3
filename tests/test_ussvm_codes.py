"""Problem 3 of US-SVM (codes over a fixed dictionary) against CVXPY, and its own certificate."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from loclin.ussvm.codes import (
    CodeProblem,
    NewtonSystem,
    Penalty,
    solve_problem,
    with_ones,
)
from loclin.ussvm.solver import pruned

N, D = 70, 5
VARIANTS = {  # l1_ratio, nonnegative
    "US-SVM": (1.0, False),
    "US-SVM-N": (1.0, True),
    "US-SVM-E": (0.4, False),
    "US-SVM-NE": (0.4, True),
    "ridge": (0.0, False),
    "ridge, nonnegative": (0.0, True),
}
STRENGTHS = [(0.0, 0.02), (0.1, 0.02), (0.1, 0.0), (0.01, 0.3)]


def each(**values):
    return pytest.mark.parametrize(list(values), list(product(*values.values())))


class Case:
    """Rows at random, a dictionary with two equal atoms and one of zeros, weights."""

    def __init__(self, n_atoms=8, scale=1.0):
        rng = np.random.default_rng(1)
        self.X = scale * rng.normal(size=(N, D))
        self.y = np.where(self.X[:, 0] + scale * (0.4 * rng.normal(size=N) + 0.3) > 0, 1, -1)
        self.D = rng.normal(size=(D, n_atoms))
        self.D /= np.linalg.norm(self.D, axis=0)
        self.w = rng.uniform(0.5, 2, N)
        if n_atoms > D:
            self.D[:, 1], self.D[:, 2] = self.D[:, 0], 0

    def solve(self, penalty, tol=1e-7):
        problem = self.problem(penalty)
        solve_problem(problem, tol)
        return problem

    def problem(self, penalty):
        P, Q = with_ones(self.X @ self.D), penalty.quadratic(self.D)
        return CodeProblem(P, self.y, self.w, penalty, Q)

    def objective(self, penalty, z, b):  # equation 5, word for word
        alpha, beta, r, _ = penalty
        hinge = np.maximum(0, 1 - self.y * (self.X @ (self.D @ z) + b))
        elastic = beta * (r * np.abs(z).sum() + (1 - r) * np.sum(z**2))
        return np.average(hinge, weights=self.w) + alpha / 2 * np.sum((self.D @ z) ** 2) + elastic


@each(variant=VARIANTS, strength=STRENGTHS, scale=[0.01, 1.0, 100.0])
def test_the_optimum_of_cvxpy(variant, strength, scale):
    cp = pytest.importorskip("cvxpy")
    (alpha, beta), (r, nonnegative), case = strength, VARIANTS[variant], Case(scale=scale)
    penalty = Penalty(alpha * scale**2, beta * scale, r, nonnegative)
    solution = case.solve(penalty)
    z, b = cp.Variable(8), cp.Variable()
    hinge = cp.pos(1 - cp.multiply(case.y, case.X @ case.D @ z + b))
    objective = (
        case.w @ hinge / case.w.sum()
        + penalty.alpha / 2 * cp.sum_squares(case.D @ z)
        + penalty.beta * (r * cp.norm1(z) + (1 - r) * cp.sum_squares(z))
    )
    problem = cp.Problem(cp.Minimize(objective), [z >= 0] if nonnegative else [])
    optimum = problem.solve(solver="CLARABEL")
    assert solution.objective == pytest.approx(optimum, rel=1e-6)
    found = case.objective(penalty, solution.code, solution.intercept)
    assert solution.objective == pytest.approx(found, rel=1e-9)
    assert 0 <= solution.gap <= 1e-7 * found
    assert found - solution.gap <= optimum * (1 + 1e-6)
    assert (solution.code >= 0).all() or not nonnegative
    if penalty.l1:  # exact zeros, where CVXPY has small numbers
        assert (solution.code[[2]] == 0).all()
        assert (solution.code == 0).sum() >= (np.abs(z.value) < 1e-9 / scale).sum()


@each(variant=VARIANTS, strength=STRENGTHS)
def test_the_gap_is_one_at_every_step(variant, strength):
    (alpha, beta), (r, nonnegative), case = strength, VARIANTS[variant], Case()
    penalty = Penalty(alpha, beta, r, nonnegative)
    optimum = case.solve(penalty, 1e-9).objective
    problem = case.problem(penalty)
    measured = 0
    while not problem.solved(1e-6):
        problem.step(0.5)
        if problem.gap < np.inf:
            measured += 1
            assert problem.objective >= optimum * (1 - 1e-9)
            assert problem.objective - problem.gap <= optimum * (1 + 1e-9)
    assert 2 <= measured <= problem.n_steps < 25


@each(variant=VARIANTS, strength=STRENGTHS)
def test_a_step_solves_newtons_equations(variant, strength):
    problem = Case().problem(Penalty(*strength, *VARIANTS[variant]))
    for _ in range(3):
        problem.step(0.0)
    P, y, sigma, (x, s, xi, u, a, c, v) = problem.P, problem.y, problem.sigma, problem.point
    rng = np.random.default_rng(0)
    t_s, t_xi, t_u = (rng.normal(size=part.shape) for part in (s, xi, u))
    dx, ds, dxi, du, da, dc, dv = NewtonSystem(problem).step(t_s, t_xi, t_u)
    # The equations as they are before any elimination.
    g, dg = problem.Q @ x - P.T @ (y * a), problem.Q @ dx - P.T @ (y * da)
    equations = [
        (s * da + a * ds, t_s),
        (xi * dc + c * dxi, t_xi),
        (u * dv + v * du, t_u),
        (y * (P @ dx) + dxi - ds, -(y * (P @ x) - 1 + xi - s)),
        (dc, -da),
        (dv - sigma[:, None] * dg[:-1], sigma[:, None] * g[:-1] + problem.l1 - v),
        (dg[-1], -g[-1]),
        (dx[:-1], sigma @ du) if len(sigma) else (dg[:-1], -g[:-1]),
        (a + c, problem.w),  # kept by the steps before
        (x[:-1], sigma @ u) if len(sigma) else (0, 0),
    ]
    for left, right in equations:
        size = max(1.0, np.abs(right).max(initial=0.0))
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-7 * size)


def test_a_square_dictionary_without_beta_is_the_svm():
    X, y = load_iris(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[50:], np.where(y[50:] == 2, 1, -1)
    rng, alpha = np.random.default_rng(0), 0.02
    dictionary = rng.normal(size=(4, 4))
    penalty = Penalty(alpha, 0.0, 1.0, False)
    problem = CodeProblem(
        with_ones(X @ dictionary), y, np.ones(100), penalty, penalty.quadratic(dictionary)
    )
    solve_problem(problem, 1e-10)
    svm = SVC(C=1 / (100 * alpha), kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(dictionary @ problem.code, svm.coef_[0], rtol=1e-5, atol=1e-6)
    assert problem.intercept == pytest.approx(svm.intercept_[0], rel=1e-5)


def test_weights_are_repetitions():
    case, penalty = Case(), Penalty(0.05, 0.02, 1.0, False)
    times = np.random.default_rng(0).integers(1, 4, N)
    case.w = times.astype(float)
    one = case.solve(penalty, 1e-9)
    case.X, case.y, case.w = (np.repeat(part, times, axis=0) for part in (case.X, case.y, case.w))
    case.w = np.ones(len(case.y))
    other = case.solve(penalty, 1e-9)
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    np.testing.assert_allclose(case.D @ one.code, case.D @ other.code, atol=1e-5)


@each(sign=[1, -1])
def test_one_side_only_needs_no_code(sign):
    case = Case()
    case.y[:] = sign
    solution = case.solve(Penalty(0.0, 0.1, 1.0, False))
    assert (solution.intercept, solution.gap, solution.objective) == (sign, 0, 0)
    assert not solution.code.any()


def test_a_strong_penalty_leaves_no_code():
    case, penalty = Case(), Penalty(0.0, 10.0, 1.0, False)
    solution = case.solve(penalty)
    assert not solution.code.any()
    balance = 2 * min(case.w[case.y > 0].sum(), case.w[case.y < 0].sum()) / case.w.sum()
    assert solution.objective == pytest.approx(balance, rel=1e-6)


def test_without_any_penalty_there_is_no_certificate():
    solution = Case().solve(Penalty(0.0, 0.0, 1.0, False))
    assert solution.gap == np.inf
    assert not solution.solved(0.5)


@each(variant=VARIANTS, alpha=[0.0, 0.05])
def test_pruned_codes_are_svms_in_the_span_of_few_good_atoms(variant, alpha):
    n_nonzero = 2
    r, nonnegative = VARIANTS[variant]
    case, penalty = Case(), Penalty(alpha, 0.005, r, nonnegative)
    problem = case.solve(penalty)
    assert np.count_nonzero(problem.code) > 3
    code, intercept = pruned(problem, case.D, n_nonzero, penalty, 1e-8)
    kept, whole = np.flatnonzero(code), case.D
    assert len(kept) == n_nonzero
    used = alpha or 0.05 * np.mean(np.sum((case.X @ whole[:, kept]) ** 2, axis=1)) / N
    refit, found = Penalty(used, 0.0, 1.0, nonnegative), {}
    for subset in combinations(range(8), n_nonzero):
        case.D = whole[:, subset]
        found[subset] = case.solve(refit, 1e-8).objective
    case.D = whole
    assert case.objective(refit, code, intercept) == pytest.approx(found[tuple(kept)], rel=1e-6)
    assert found[tuple(kept)] <= np.quantile(list(found.values()), 0.25)


def test_a_code_that_is_sparse_enough_is_pruned_by_length_alone():
    case, penalty = Case(), Penalty(0.0, 0.005, 1.0, False)
    problem = case.solve(penalty)
    n = np.count_nonzero(problem.code)
    shorter = case.D * np.where(np.arange(8) == np.abs(problem.code).argmax(), 1e-3, 1)
    kept = np.flatnonzero(pruned(problem, shorter, n - 1, penalty, 1e-6)[0])
    assert set(np.flatnonzero(problem.code)) - set(kept) == {np.abs(problem.code).argmax()}


def test_few_rows_of_many_are_positive():
    rng = np.random.default_rng(0)
    P = rng.normal(size=(4000, 20))
    y = np.where(P[:, 0] + P[:, 1] + 0.5 * rng.normal(size=4000) > 3.5, 1, -1)
    penalty = Penalty(0.0, 1e-3, 1.0, False)
    weights = np.ones(4000, np.float32)
    problem = CodeProblem(with_ones(P), y, weights, penalty, penalty.quadratic(np.eye(20)))
    solve_problem(problem, 1e-6)
    assert problem.solved(1e-6)
    assert problem.n_steps < 90
