"""Codes of classes over a fixed dictionary:
problem 3 of US-SVM, by an interior-point method.

Minimises, for each scorer, over its code ``z`` (A,) and its intercept ``b``,

    alpha/2 ||D z||^2 + beta (r ||z||_1 + (1 - r) ||z||^2)
        + sum_i w_i hinge(y_i (p_i . z + b)) / sum_i w_i,        p_i = D' x_i,

with ``z >= 0`` if asked (equations 3 and 5). This is a quadratic program: Mehrotra's
predictor-corrector method takes 10 to 100 steps (the most with many rows of which few are
positive), however much the atoms resemble each other; a step solves one system of A + 1
unknowns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

# Steps after which a problem counts as one that more steps do not solve.
MOST_STEPS = 300
# Rows whose part of the system is formed at once, so that it stays near the processor.
_BLOCK_ROWS = 1024
# Part of the way to the nearest boundary that a step goes.
_REACH = 0.99
# Relative addition to the diagonal of a system, which may be singular where atoms are
# alike.
_JITTER = 1e-13
_SMALLEST_TOL = 1e-9  # what steps reach in spite of rounding
# The corrector's second-order terms are kept within so many times the mean product: a few
# rows that move far would else send it astray.
_SECOND_ORDER = 10.0


class Penalty(NamedTuple):
    """The terms of equation 5 besides the loss, and the sign of the codes."""

    alpha: float
    beta: float
    l1_ratio: float
    nonnegative: bool

    @property
    def l1(self) -> float:
        """Strength of ``||z||_1``."""
        return self.beta * self.l1_ratio

    @property
    def ridge(self) -> float:
        """Strength of ``||z||^2``."""
        return self.beta * (1.0 - self.l1_ratio)

    def quadratic(self, D: NDArray[np.floating]) -> NDArray[np.float64]:
        """Matrix Q (A, A) of ``z'Qz / 2``, the smooth terms, for a dictionary (d, A)."""
        Q = np.diag(np.full(D.shape[1], 2.0 * self.ridge))
        if self.alpha:
            D = D.astype(np.float64, copy=False)
            Q += self.alpha * (D.T @ D)
        return Q

    def value(self, D: NDArray[np.floating], Z: NDArray[np.floating]) -> float:
        """Sum of the penalties of codes (s, A)."""
        total = self.l1 * float(np.abs(Z).sum()) + self.ridge * float(np.vdot(Z, Z))
        if self.alpha:
            maps = D @ Z.T
            total += 0.5 * self.alpha * float(np.vdot(maps, maps))
        return total


class Problem(ABC):
    """One scorer's problem on its way to the optimum.

    `code` and `intercept` are the solution as it stands, with exact zeros; `objective` is
    its value and `gap` the distance to a lower bound of the optimum (infinite until
    measured). `running_objective` is an estimate of the objective from the first step on.
    """

    def __init__(self, n_atoms: int) -> None:
        self.code = np.zeros(n_atoms)
        self.intercept = 0.0
        self.objective = np.inf
        self.gap = np.inf
        self.running_objective = 0.0
        self.n_steps = 0

    def solved(self, tol: float) -> bool:
        """Tell whether the gap is at most `tol` of the objective."""
        return self.gap < np.inf and self.gap <= tol * self.objective

    @property
    def relative_gap(self) -> float:
        """The gap as a part of the objective; infinite while it is not known."""
        if self.gap == 0.0:
            return 0.0
        return self.gap / self.objective if self.objective < np.inf else np.inf

    @property
    @abstractmethod
    def features(self) -> NDArray[np.floating]:
        """The precomputed features, (n, A)."""

    @abstractmethod
    def step(self, tol: float) -> None:
        """Take one step; measure the gap where it can be `tol` of the objective."""

    @abstractmethod
    def with_penalty(
        self,
        penalty: Penalty,
        D: NDArray[np.floating],
        kept: NDArray[np.intp] | None = None,
    ) -> Self:
        """Return the problem of the same rows with another penalty, unsolved.

        Parameters
        ----------
        penalty : Penalty
        D : ndarray of shape (d, n_kept)
            The dictionary: the atoms kept.
        kept : ndarray of shape (n_kept,), default=None
            Their places among the atoms of this problem; None keeps all.
        """


class Iterate(NamedTuple):
    """Primal and dual variables of `NewtonSystem`; or a step, from one point to another."""

    x: NDArray[np.float64]  # code and intercept, shape: (A + 1,)
    s: NDArray[np.float64]  # slacks of the margins, shape: (n,)
    xi: NDArray[np.float64]  # losses, shape: (n,)
    u: NDArray[np.float64]  # parts of the code, shape: (k, A)
    a: NDArray[np.float64]  # multipliers of s, shape: (n,)
    c: NDArray[np.float64]  # multipliers of xi, shape: (n,)
    v: NDArray[np.float64]  # multipliers of u, shape: (k, A)

    @property
    def pairs(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Complementary pairs: neither may be negative, and one is zero at the optimum."""
        return [(self.a, self.s), (self.c, self.xi), (self.v, self.u)]

    def moved(self, step: Iterate, length: float) -> Iterate:
        """Return the point after a part of a step."""
        return Iterate(
            *(value + length * change for value, change in zip(self, step, strict=True))
        )

    def reach(self, step: Iterate) -> float:
        """Longest part of a step, at most 1e300,
        after which no variable of a pair is negative.
        """
        rates = [
            float(np.max(-change / value, initial=0.0))
            for pair, changes in zip(self.pairs, step.pairs, strict=True)
            for value, change in zip(pair, changes, strict=True)
        ]
        return 1.0 / max(max(rates), 1e-300)

    def sum_of_products(self) -> float:
        """Sum of the products of the pairs: n times the duality gap of a feasible point."""
        return sum(float(np.vdot(multiplier, value)) for multiplier, value in self.pairs)

    def mean_product(self) -> float:
        """Mean of the products of the pairs: the barrier parameter mu of the point."""
        return self.sum_of_products() / sum(value.size for _, value in self.pairs)


class CodeProblem(Problem):
    """The problem as a quadratic program, a step being one of Mehrotra's method.

    All is n times the objective, so that multipliers are of the size of 1. The weights
    sum to n, Q has the smooth terms times n, and a row and a column of zeros for the
    intercept; lambda is n times the strength of the l1 term. With ``x = (z, b)``, the
    features and a column of ones as P, and the targets as Y = diag(y),

        minimise      w'xi + x'Q x / 2 + lambda 1'u
        subject to    Y P x - 1 + xi = s,    z = sum_j sigma_j u_j,    s, xi, u >= 0.

    `xi` are the losses and `s` the slacks of the margins. A code is the sum of k parts
    times their signs sigma: ``u_1 - u_2``, or ``u_1`` alone where it must not be
    negative. A code that may have any sign, without an l1 term, is free: it has no parts
    (k = 0).

    Parameters
    ----------
    P : ndarray of shape (n, A + 1), float64
        Precomputed features ``X @ D``, and a column of ones.
    target : ndarray of shape (n,)
        +1 and -1.
    weights : ndarray of shape (n,)
        Positive.
    penalty : Penalty
    Q : ndarray of shape (A, A)
        ``penalty.quadratic(D)``.
    total : float, default=None
        What the losses are divided by; None takes the sum of the weights.
    """

    def __init__(
        self,
        P: NDArray[np.float64],
        target: NDArray[np.number],
        weights: NDArray[np.floating],
        penalty: Penalty,
        Q: NDArray[np.float64],
        total: float | None = None,
    ) -> None:
        n = len(P)
        m = P.shape[1] - 1
        super().__init__(m)
        self.P = P
        self.y = target.astype(np.float64)
        self.w = weights.astype(np.float64)
        self.w *= n / (total or self.w.sum())
        self.l1 = n * penalty.l1
        self.nonnegative = penalty.nonnegative
        self.Q = np.zeros((m + 1, m + 1))
        self.Q[:m, :m] = n * Q
        self.sigma = np.array(
            [1.0] if penalty.nonnegative else [1.0, -1.0] if self.l1 else []
        )
        if np.all(self.y == self.y[0]):  # one side only: an intercept is enough
            self.intercept = float(self.y[0])
            self.gap = 0.0
            self.objective = 0.0
            return
        size = float(np.sqrt(np.einsum("ij,ij->", P[:, :m], P[:, :m]) / n)) or 1.0
        self.unit = 1.0 / size  # of codes
        slope = max(self.l1, size)
        u = np.full((len(self.sigma), m), 0.5 / slope)
        self.point = Iterate(
            x=np.append(self.sigma @ u, 0.0),
            s=np.ones(n),
            xi=np.ones(n),
            u=u,
            a=self.w / 2,
            c=self.w / 2,
            v=np.full_like(u, slope),
        )

    @property
    def features(self) -> NDArray[np.float64]:
        """The precomputed features, (n, A)."""
        return self.P[:, :-1]

    def with_penalty(
        self,
        penalty: Penalty,
        D: NDArray[np.floating],
        kept: NDArray[np.intp] | None = None,
    ) -> Self:
        """Return the problem of the same rows with another penalty, unsolved."""
        P = self.P if kept is None else self.P[:, np.append(kept, -1)]
        return type(self)(P, self.y, self.w, penalty, penalty.quadratic(D), len(P))

    def step(self, tol: float) -> None:
        """Take one step; measure the gap where it can be `tol` of the objective."""
        self.n_steps += 1
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                self._newton_step(tol)
        except (ArithmeticError, linalg.LinAlgError, ValueError):
            # Rounding has left no step to take: the solution is the best point so far.
            self.n_steps = MOST_STEPS
            if self.gap == np.inf:
                self.code, self.intercept = (
                    self.point.x[:-1].copy(),
                    float(self.point.x[-1]),
                )

    def _newton_step(self, tol: float) -> None:
        """Take one step of Mehrotra's method."""
        newton = NewtonSystem(self)
        point = self.point
        mu = point.mean_product()
        # Predictor: how far the products fall on the way to zero tells what to aim at.
        predictor = newton.step(*(-p * q for p, q in point.pairs))
        affine = point.moved(predictor, min(1.0, point.reach(predictor)))
        aim = mu * (affine.mean_product() / mu) ** 3
        # Corrector: with the second-order terms that the predictor has left out.
        most = _SECOND_ORDER * mu
        corrector = newton.step(
            *(
                aim - p * q - np.clip(dp * dq, -most, most)
                for (p, q), (dp, dq) in zip(point.pairs, predictor.pairs, strict=True)
            )
        )
        point = point.moved(corrector, min(1.0, _REACH * point.reach(corrector)))
        self.point = point
        smooth = 0.5 * point.x @ self.Q @ point.x
        objective = float(self.w @ point.xi + smooth + self.l1 * point.u.sum())
        self.running_objective = objective / len(self.y)
        if point.sum_of_products() <= 10 * max(tol, _SMALLEST_TOL) * objective:
            self._measure()

    def _measure(self) -> None:
        """Set the solution, its value and its gap.

        The lower bound is the value of the dual,

            1'a - z'Q z / 2    where    0 <= a <= w,    y'a = 0,    |P'Y a - Q z| <= lambda,

        at a point made feasible (the last without the absolute value if z must not be
        negative). The multipliers of the heavier side are scaled until ``y'a = 0``. With
        an l1 term, a and z are then scaled together until the last holds; without one, z
        is moved to where it does.
        """
        Q, P = self.Q[:-1, :-1], self.features
        a = np.minimum(self.point.a, self.w)
        positive = float(a[self.y > 0].sum())
        negative = float(a[self.y < 0].sum())
        a *= np.where(
            self.y > 0, min(1.0, negative / positive), min(1.0, positive / negative)
        )
        correlations = P.T @ (self.y * a)
        z = self._with_zeros(correlations)
        slopes = correlations - Q @ z
        if self.nonnegative:
            slopes = np.maximum(slopes, 0.0)
        scale, dual_z = 1.0, z
        if self.l1:
            scale = self.l1 / max(self.l1, np.abs(slopes).max())
        else:
            dual_z = z + linalg.lstsq(Q, slopes, cond=1e-10)[0]
            atol = 1e-6 * np.abs(correlations).max()
            if not np.allclose(Q @ (dual_z - z), slopes, rtol=1e-6, atol=atol):
                return  # no penalty on some direction: no bound
        bound = scale * a.sum() - 0.5 * scale**2 * dual_z @ Q @ dual_z
        intercept = float(self.point.x[-1])
        losses = np.maximum(0.0, 1.0 - self.y * (P @ z + intercept))
        objective = float(self.w @ losses + 0.5 * z @ Q @ z + self.l1 * np.abs(z).sum())
        gap = max(0.0, objective - float(bound)) / len(self.y)
        if gap < self.gap:
            self.code = z
            self.intercept = intercept
            self.gap = gap
            self.objective = objective / len(self.y)
            self.running_objective = self.objective

    def _with_zeros(self, correlations: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the code with a zero where a proximal gradient
        step sets a coefficient to zero.
        """
        z = self.point.x[:-1].copy()
        if len(self.sigma):
            length = max(self.unit, np.abs(z).max())
            length /= max(self.l1, np.abs(correlations).max(), 1e-300)
            moved = z - length * (self.Q[:-1, :-1] @ z - correlations)
            z[(moved if self.nonnegative else np.abs(moved)) <= length * self.l1] = 0.0
        return z


class NewtonSystem:
    """Newton's equations of the KKT conditions of a `CodeProblem`,
    factorised at its point.

    With multipliers a of ``s >= 0``, c of ``xi >= 0`` and v of ``u >= 0``, and the
    gradient of the smooth terms of the Lagrangian ``g = Q x - P'Y a``, the KKT conditions
    are

        r_p = Y P x - 1 + xi - s = 0,          c = w - a,    z = sum_j sigma_j u_j,
        r_d = sigma_j g_z + lambda - v_j = 0   (``g_z = 0`` where there are no parts),    g_b = 0,
        a s = 0,    c xi = 0,    v u = 0,      none of these negative.

    The two equations on the right of the first line hold from the start, and steps keep
    them. A step is to change the products by t_s, t_xi and t_u (zero is reached by
    ``t_s = -a s``), and to remove the residuals r_p, r_d and g_b:

        s da + a ds = t_s,    xi dc + c dxi = t_xi,    u dv + v du = t_u,
        Y P dx + dxi - ds = -r_p,    dc = -da,    dz = sum_j sigma_j du_j,
        dv_j - sigma_j dg_z = r_d,   dg = Q dx - P'Y da,    dg_b = -g_b.

    Elimination of ds, dxi, dc and of dv:

        da = Theta (rho - Y P dx),    1/Theta = s/a + xi/c,    rho = t_s/a - t_xi/c - r_p;
        du_j = H_j (eta_j - sigma_j dg_z),    H = u/v,    eta = t_u/u - r_d.

    Here Theta, H_j and E are diagonal. The sum of the last over the parts is dz, so that
    ``dg = h - E dx`` with

        E_z = 1 / sum_j H_j,    h_z = E_z sum_j sigma_j H_j eta_j,    E_b = 0,    h_b = -g_b

    (``E_z = 0`` and ``h_z = -g_z`` where there are no parts). The Schur complement is
    left:

        (Q + E + P' Theta P) dx = h + P'Y Theta rho.

    Parameters
    ----------
    problem : CodeProblem
    """

    def __init__(self, problem: CodeProblem) -> None:
        self.problem = problem
        point = problem.point
        P = problem.P
        y = problem.y
        self.r_p = y * (P @ point.x) - 1.0 + point.xi - point.s
        self.g = problem.Q @ point.x - P.T @ (y * point.a)
        self.r_d = problem.sigma[:, None] * self.g[:-1] + problem.l1 - point.v
        self.Theta = 1.0 / (point.xi / point.c + point.s / point.a)
        self.H = point.u / point.v
        self.E = np.zeros(len(point.x))
        if len(problem.sigma):
            self.E[:-1] = 1.0 / self.H.sum(axis=0)
        schur = problem.Q + np.diag(self.E)
        for first in range(0, len(P), _BLOCK_ROWS):
            rows = slice(first, first + _BLOCK_ROWS)
            scaled = np.sqrt(self.Theta[rows])[:, None] * P[rows]
            schur += scaled.T @ scaled
        # The system is solved for dx times `scale`: the diagonal is then one.
        self.scale = np.sqrt(schur.diagonal())
        self.scale[self.scale == 0.0] = 1.0
        schur /= self.scale * self.scale[:, None]
        schur[np.diag_indices_from(schur)] += _JITTER
        self.factor = linalg.cho_factor(schur, overwrite_a=True)

    def step(
        self,
        t_s: NDArray[np.float64],
        t_xi: NDArray[np.float64],
        t_u: NDArray[np.float64],
    ) -> Iterate:
        """Return the step that changes the products of the pairs by these."""
        point = self.problem.point
        sigma = self.problem.sigma
        P = self.problem.P
        y = self.problem.y
        rho = t_s / point.a - t_xi / point.c - self.r_p
        eta = t_u / point.u - self.r_d
        h = -self.g
        if len(sigma):
            h[:-1] = self.E[:-1] * (sigma @ (self.H * eta))
        right = h + P.T @ (y * self.Theta * rho)
        dx = linalg.cho_solve(self.factor, right / self.scale) / self.scale
        da = self.Theta * (rho - y * (P @ dx))
        dg = h - self.E * dx
        du = self.H * (eta - sigma[:, None] * dg[:-1])
        return Iterate(
            x=dx,
            s=(t_s - point.s * da) / point.a,
            xi=(t_xi + point.xi * da) / point.c,
            u=du,
            a=da,
            c=-da,
            v=(t_u - point.v * du) / point.u,
        )


def solve_problem(problem: Problem, tol: float) -> None:
    """Step until the gap is `tol` of the objective (at least 1e-9), or steps are useless."""
    tol = max(tol, _SMALLEST_TOL)
    while not problem.solved(tol) and problem.n_steps < MOST_STEPS:
        problem.step(tol)


def with_ones(P: NDArray[np.floating]) -> NDArray[np.float64]:
    """Precomputed features as `CodeProblem` takes them: float64, and a column of ones."""
    return np.hstack([P, np.ones((len(P), 1))], dtype=np.float64)


def root_mean_square(P: NDArray[np.floating]) -> float:
    """Root mean square of precomputed features; 1 if all are zero."""
    return float(np.sqrt(np.einsum("ij,ij->", P, P, dtype=np.float64) / P.size)) or 1.0
