"""Codes of classes over a fixed dictionary: problem 3 of US-SVM, by an interior-point method.

Minimises, for each scorer, over its code ``z`` (A,) and its intercept ``b``,

    alpha/2 ||D z||^2 + beta (r ||z||_1 + (1 - r) ||z||^2)
        + sum_i w_i hinge(y_i (p_i . z + b)) / sum_i w_i,        p_i = D' x_i,

with ``z >= 0`` if asked (equations 3 and 5 of Lyu, Zepeda and Perez, 2015). This is a quadratic
program: Mehrotra's method takes 10 to 100 steps (the most with many rows of which few are
positive), however much the atoms resemble each other; a step solves one system of A + 1 unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from loclin.engine.schedule import auto_alpha

# Rows whose part of the system is formed at once, so that it stays near the processor.
_BLOCK = 1024
# Part of the way to the nearest boundary that a step goes.
_REACH = 0.99
# Relative addition to the diagonal of a system, which may be singular where atoms are alike.
_JITTER = 1e-13
_MOST_STEPS = 300
# The corrector's second-order terms are kept within so many times the mean product: a few rows that
# move far would else send it astray.
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

    def quadratic(self, D: NDArray[Any]) -> NDArray[np.float64]:
        """Matrix Q (A, A) of ``z'Qz / 2``, the smooth terms, for a dictionary (d, A)."""
        Q = np.diag(np.full(D.shape[1], 2.0 * self.ridge))
        if self.alpha:
            D = D.astype(np.float64, copy=False)
            Q += self.alpha * (D.T @ D)
        return Q

    def value(self, D: NDArray[Any], Z: NDArray[Any]) -> float:
        """Sum of the penalties of codes (s, A)."""
        total = self.l1 * float(np.abs(Z).sum()) + self.ridge * float(np.vdot(Z, Z))
        if self.alpha:
            maps = D @ Z.T
            total += 0.5 * self.alpha * float(np.vdot(maps, maps))
        return total


class CodeProblem:
    """One scorer's problem on its way to the optimum.

    `code` and `intercept` are the solution as it stands, with exact zeros; `objective` is its value
    and `gap` the distance to a lower bound of the optimum (infinite until measured). `value` is a
    running estimate of the objective.

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

    def __init__(self, P: NDArray[Any], target: NDArray[Any], weights: NDArray[Any],
                 penalty: Penalty, Q: NDArray[Any],
                 total: float | None = None) -> None:  # fmt: skip
        n, m = len(P), P.shape[1] - 1
        # All is n times the objective, so that multipliers are of the size of 1.
        self.P, self.y = P, target.astype(np.float64)
        self.w = weights.astype(np.float64)
        self.w *= n / (total or self.w.sum())
        self.l1, self.nonnegative = n * penalty.l1, penalty.nonnegative
        self.Q = np.zeros((m + 1, m + 1))
        self.Q[:m, :m] = n * Q
        # A code is u - v, parts that are at least 0; u alone if it must not be negative; and has no
        # parts where there is no l1 term.
        self.signs = np.array([1.0] if penalty.nonnegative else [1.0, -1.0] if self.l1 else [])
        self.n_steps, self.gap, self.objective, self.value = 0, np.inf, np.inf, 0.0
        self.code, self.intercept = np.zeros(m), 0.0
        if np.all(self.y == self.y[0]):  # one side only: an intercept is enough
            self.intercept, self.gap, self.objective = float(self.y[0]), 0.0, 0.0
            return
        size = float(np.sqrt(np.einsum("ij,ij->", P[:, :m], P[:, :m]) / n)) or 1.0
        self.unit = 1.0 / size  # of codes
        slope = max(self.l1, size)
        self.parts = np.full((len(self.signs), m), 0.5 / slope)
        self.z = np.append(self.signs @ self.parts, 0.0)
        # Pairs that must not be negative and whose products are zero at the optimum: multipliers
        # with margin - 1 + loss, multipliers with losses, parts with their slopes.
        excess, losses, slopes = np.ones(n), np.ones(n), np.full_like(self.parts, slope)
        self.pairs = [(self.w / 2, excess), (self.w / 2, losses), (self.parts, slopes)]
        self.n_products = 2 * n + self.parts.size

    @property
    def features(self) -> NDArray[Any]:
        """The precomputed features, (n, A)."""
        return self.P[:, :-1]

    def again(self, penalty: Penalty, D: NDArray[Any],
              kept: NDArray[np.intp] | None = None) -> Self:  # fmt: skip
        """Return the problem of the same rows with another penalty, on the atoms kept."""
        P = self.P if kept is None else self.P[:, np.append(kept, -1)]
        return type(self)(P, self.y, self.w, penalty, penalty.quadratic(D), len(P))

    def solved(self, tol: float) -> bool:
        """Tell whether the gap is at most `tol` of the objective."""
        return self.gap < np.inf and self.gap <= tol * self.objective

    def step(self, tol: float) -> None:
        """Take one step; measure the gap where it can be `tol` of the objective."""
        self.n_steps += 1
        solve, mean = self._linearise(), self._mean_product()
        _, ahead = solve([-p * q for p, q in self.pairs])
        later = self._mean_product(ahead, min(1.0, self._reach(ahead)))
        center = mean * (later / mean) ** 3
        most = _SECOND_ORDER * mean
        dz, moves = solve(
            [
                center - p * q - np.clip(dp * dq, -most, most)
                for (p, q), (dp, dq) in zip(self.pairs, ahead, strict=True)
            ]
        )
        length = min(1.0, _REACH * self._reach(moves))
        self.z += length * dz
        for pair, move in zip(self.pairs, moves, strict=True):
            for value, change in zip(pair, move, strict=True):
                value += length * change
        losses = self.pairs[1][1]
        objective = self.w @ losses + 0.5 * self.z @ self.Q @ self.z + self.l1 * self.parts.sum()
        self.value = float(objective) / len(self.y)
        if self.n_products * self._mean_product() <= 10 * tol * objective:
            self._measure()

    def _mean_product(self, moves: Any = None, length: float = 0.0) -> float:
        """Mean of the products of the pairs, after moves of that length."""
        moves = moves or [(0.0, 0.0)] * 3
        total = 0.0
        for (p, q), (dp, dq) in zip(self.pairs, moves, strict=True):
            total += float(np.vdot(p + length * dp, q + length * dq))
        return total / self.n_products

    def _reach(self, moves: Any) -> float:
        """Return the longest step that keeps all pairs from being negative."""
        rates = [
            float(np.max(-change / value, initial=0.0))
            for pair, move in zip(self.pairs, moves, strict=True)
            for value, change in zip(pair, move, strict=True)
        ]
        return 1.0 / max(max(rates), 1e-300)

    def _linearise(self) -> Callable[[Sequence[Any]], tuple[NDArray[Any], list[Any]]]:
        """Factorise the system of the state as it stands.

        Returns a function that takes what the products of the pairs shall change by, and gives the
        change of (code, intercept) and the changes of the pairs.
        """
        P, y, (a, excess), (room, losses), (u, slopes) = self.P, self.y, *self.pairs
        short = y * (P @ self.z) - 1.0 + losses - excess
        smooth = self.Q @ self.z - P.T @ (y * a)
        off = self.signs[:, None] * smooth[:-1] + self.l1 - slopes
        theta = 1.0 / (losses / room + excess / a)
        give = u / slopes
        stiff = np.zeros(len(self.z))
        if len(self.signs):
            stiff[:-1] = 1.0 / give.sum(axis=0)
        system = self.Q + np.diag(stiff)
        for first in range(0, len(P), _BLOCK):
            rows = slice(first, first + _BLOCK)
            scaled = np.sqrt(theta[rows])[:, None] * P[rows]
            system += scaled.T @ scaled
        scale = np.sqrt(system.diagonal())
        scale[scale == 0.0] = 1.0
        system /= scale * scale[:, None]
        system[np.diag_indices_from(system)] += _JITTER
        factor = linalg.cho_factor(system, overwrite_a=True)

        def solve(by: Sequence[Any]) -> tuple[NDArray[Any], list[Any]]:
            lead = by[0] / a - by[1] / room - short
            pull = by[2] / u - off
            right = P.T @ (y * theta * lead)
            right[-1] += y @ a
            in_parts = stiff[:-1] * (self.signs @ (give * pull))
            wish = in_parts if len(self.signs) else -smooth[:-1]
            right[:-1] += wish
            dz = linalg.cho_solve(factor, right / scale) / scale
            da = theta * (lead - y * (P @ dz))
            du = give * (pull - self.signs[:, None] * (wish - stiff[:-1] * dz[:-1]))
            return dz, [
                (da, (by[0] - excess * da) / a),
                (-da, (by[1] + losses * da) / room),
                (du, (by[2] - slopes * du) / u),
            ]

        return solve

    def _measure(self) -> None:
        """Set the solution, its value and its gap.

        The lower bound is the value of the dual at a feasible point: multipliers are scaled until
        their signed sum is zero; then, with an l1 term, together with the code until no slope is
        beyond it; without one, the code is moved to where the slopes vanish.
        """
        n, Q, P = len(self.y), self.Q[:-1, :-1], self.P[:, :-1]
        a = np.minimum(self.pairs[0][0], self.w)
        below, above = (float(a[self.y == sign].sum()) for sign in (-1.0, 1.0))
        a *= np.where(self.y > 0, min(1.0, below / above), min(1.0, above / below))
        c, z = P.T @ (self.y * a), self.z[:-1].copy()
        slopes = Q @ z - c
        # A coefficient that a proximal step sets to zero is one.
        step = max(self.unit, np.abs(z).max()) / max(self.l1, np.abs(c).max(), 1e-300)
        moved = z - step * slopes
        if len(self.signs):
            z[(moved if self.nonnegative else np.abs(moved)) <= step * self.l1] = 0.0
        slopes = Q @ z - c
        wrong = np.maximum(-slopes, 0.0) if self.nonnegative else -slopes
        share, shadow = 1.0, z
        if self.l1:
            share = self.l1 / max(self.l1, np.abs(wrong).max())
        else:
            shadow = z + linalg.lstsq(Q, wrong, cond=1e-10)[0]
            if not np.allclose(Q @ (shadow - z), wrong, rtol=1e-6, atol=1e-6 * np.abs(c).max()):
                return  # no penalty on some direction: no bound
        bound = share * a.sum() - 0.5 * share**2 * shadow @ Q @ shadow
        losses = np.maximum(0.0, 1.0 - self.y * (P @ z + self.z[-1]))
        value = self.w @ losses + 0.5 * z @ Q @ z + self.l1 * np.abs(z).sum()
        gap = max(0.0, float(value - bound)) / n
        if gap < self.gap:
            self.code, self.intercept, self.gap = z, float(self.z[-1]), gap
            self.value = self.objective = float(value) / n


class CodesFit:
    """Problems of all scorers side by side, each iteration one step of every unsolved one.

    Parameters
    ----------
    problems : list of CodeProblem or ManyRowsProblem
    dictionary : ndarray of shape (d, A)
    tol : float
        Gap to reach, as a part of the objective.
    """

    def __init__(self, problems: Sequence[Any], dictionary: NDArray[Any],
                 tol: float) -> None:  # fmt: skip
        self.problems, self.dictionary, self.tol = problems, dictionary, tol

    @property
    def gap(self) -> float:
        """The largest gap as a part of its objective; infinite while one is not known."""
        return max((p.gap / p.objective if p.objective < np.inf else np.inf) if p.gap else 0.0
                   for p in self.problems)  # fmt: skip

    def iterate(self, *, average: bool) -> float:
        """Take a step of every problem that is not solved; return the sum of the objectives."""
        for problem in self.problems:
            if not problem.solved(self.tol) and problem.n_steps < _MOST_STEPS:
                problem.step(self.tol)
        return float(sum(problem.value for problem in self.problems))

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        dtype = self.dictionary.dtype
        codes = sparse.csr_matrix(np.array([p.code for p in self.problems], dtype))
        return {
            "dictionary_": self.dictionary,
            "codes_": codes,
            "intercept_": np.array([p.intercept for p in self.problems], dtype),
            "dual_gap_": np.array([p.gap for p in self.problems]),
        }


def with_ones(P: NDArray[Any]) -> NDArray[np.float64]:
    """Precomputed features as the problems take them: float64, and a column of ones."""
    return np.hstack([P, np.ones((len(P), 1))], dtype=np.float64)


def root_mean_square(P: NDArray[Any]) -> float:
    """Root mean square of precomputed features; 1 if all are zero."""
    return float(np.sqrt(np.einsum("ij,ij->", P, P, dtype=np.float64) / P.size)) or 1.0


def solve_problem(problem: Any, tol: float) -> Any:
    """Step until the gap is `tol` of the objective (at least 1e-9), or steps are useless."""
    tol = max(tol, 1e-9)
    while not problem.solved(tol) and problem.n_steps < _MOST_STEPS:
        problem.step(tol)
    return problem


def pruned(problem: Any, D: NDArray[Any], n_nonzero: int, penalty: Penalty,
           tol: float) -> tuple[NDArray[Any], float]:  # fmt: skip
    """Keep the largest coefficients of a solved problem, and fit these again with ``beta = 0``.

    The fewer coefficients are to stay, the less does a code of many tell which. So beta is doubled
    first, until at most twice as many are left. A coefficient counts as much as it is long in the
    space of `X`. Without an alpha, that of `auto_alpha` for the precomputed features kept keeps the
    margin large.

    Returns
    -------
    code : ndarray of shape (A,)
    intercept : float
    """
    stricter = penalty
    while penalty.l1 and np.count_nonzero(problem.code) > 2 * n_nonzero:
        stricter = stricter._replace(beta=2 * stricter.beta)
        following = problem.again(stricter, D)
        if np.count_nonzero(solve_problem(following, tol).code) < n_nonzero:
            break
        problem = following
    sizes = np.abs(problem.code) * np.linalg.norm(D, axis=0)
    kept = np.sort(np.argsort(-sizes, kind="stable")[:n_nonzero])
    kept = kept[sizes[kept] > 0.0]
    code = np.zeros_like(problem.code)
    if not len(kept):
        return code, problem.intercept
    P = problem.features[:, kept]
    norm2 = float(np.einsum("ij,ij->", P, P, dtype=np.float64)) / len(P)
    alpha = penalty.alpha or auto_alpha(norm2, len(P))
    again = problem.again(Penalty(alpha, 0.0, 1.0, penalty.nonnegative), D[:, kept], kept)
    code[kept] = solve_problem(again, tol).code
    return code, again.intercept


def largest(codes: Any, D: NDArray[Any], n_nonzero: int) -> Any:
    """Keep the largest coefficients of each code (CSR), by their length in the space of `X`."""
    dense = codes.toarray()
    sizes = np.abs(dense) * np.linalg.norm(D, axis=0)
    np.put_along_axis(dense, np.argsort(-sizes, axis=1, kind="stable")[:, n_nonzero:], 0, axis=1)
    return sparse.csr_matrix(dense)
