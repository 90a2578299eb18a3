"""Problem 3 of US-SVM over many rows, solved on those that matter.

At the optimum a row whose hinge is zero has no say. Leaving rows out only takes nonnegative terms
from the objective, so the lower bound of a part's optimum is one of the whole problem's; and what
the rows left out lose by the part's code is all that its gap is short of. So: solve a part, add the
rows outside that lose, until the gap over all rows is small. A new class of a thousand rows among a
hundred thousand needs about three thousand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loclin.ussvm.codes import CodeProblem, Penalty, solve_problem, with_ones

# From so many rows on a problem is solved on a part of them.
MANY_ROWS = 8192
# Rows of each side that a first code is learned from, and how well.
_FIRST_ROWS, _FIRST_TOL = 1000, 1e-2
# Rows beyond those that lose: this part of them, and so many. Other codes make these lose.
_SPARE, _SPARE_ROWS = 0.5, 500


class ManyRowsProblem:
    """One scorer's problem over many rows; as `CodeProblem`, but a step is a round on a part.

    Parameters
    ----------
    P : ndarray of shape (n, A)
        Precomputed features ``X @ D``.
    target : ndarray of shape (n,)
        +1 and -1.
    weights : ndarray of shape (n,)
        Positive.
    penalty : Penalty
    Q : ndarray of shape (A, A)
        ``penalty.quadratic(D)``.
    total : float
        What the losses are divided by.
    part : ndarray of bool of shape (n,), default=None
        Rows to begin with; None draws some.
    """

    def __init__(self, P: NDArray[Any], target: NDArray[Any], weights: NDArray[Any],
                 penalty: Penalty, Q: NDArray[Any], total: float,
                 part: NDArray[np.bool_] | None = None) -> None:  # fmt: skip
        self.P, self.y, self.w = P, target.astype(P.dtype), weights
        self.penalty, self.Q, self.total = penalty, Q, total
        self.n_steps, self.gap, self.objective, self.value = 0, np.inf, np.inf, 0.0
        self.code, self.intercept = np.zeros(P.shape[1]), 0.0
        self.part = part

    @property
    def features(self) -> NDArray[Any]:
        """The precomputed features, (n, A)."""
        return self.P

    def again(self, penalty: Penalty, D: NDArray[Any],
              kept: NDArray[np.intp] | None = None) -> Self:  # fmt: skip
        """Return the problem of the same rows with another penalty, on the atoms kept."""
        P = self.P if kept is None else self.P[:, kept]
        Q = penalty.quadratic(D)
        return type(self)(P, self.y, self.w, penalty, Q, self.total, self.part)

    def solved(self, tol: float) -> bool:
        """Tell whether the gap is at most `tol` of the objective."""
        return self.gap < np.inf and self.gap <= tol * self.objective

    def step(self, tol: float) -> None:
        """Solve the problem of a part of the rows, and add rows where the gap is above `tol`."""
        if self.part is None:
            self.part = self._first_part()
        rows = np.flatnonzero(self.part)
        found, share = self._solve(rows, self.w[rows], tol / 2)
        self.n_steps += found.n_steps
        losses = 1 - self._margins(found)
        losses[rows] = 0
        np.maximum(losses, 0, out=losses)
        outside = float(losses @ self.w) / self.total
        gap = share * found.gap + outside
        self.value = share * found.objective + outside
        if gap < self.gap or self.gap == np.inf:
            self.code, self.intercept = found.code, found.intercept
            self.gap, self.objective = gap, self.value
        most = len(rows) + _SPARE_ROWS
        worst = np.argpartition(-losses, most)[:most] if most < len(losses) else slice(None)
        self.part = self.part.copy()  # others began with it
        self.part[worst] |= losses[worst] > 0

    def _solve(self, rows: NDArray[np.intp], weights: NDArray[Any],
               tol: float) -> tuple[CodeProblem, float]:  # fmt: skip
        """Solve the problem of some rows; return it, and their share of all the weight."""
        share = float(weights.sum(dtype=np.float64)) / self.total
        alpha, beta = self.penalty.alpha / share, self.penalty.beta / share
        penalty = self.penalty._replace(alpha=alpha, beta=beta)
        P = with_ones(self.P[rows])
        problem = CodeProblem(P, self.y[rows], weights, penalty, self.Q / share)
        return solve_problem(problem, tol), share

    def _margins(self, found: CodeProblem) -> NDArray[Any]:
        code, intercept = (np.asarray(v, self.P.dtype) for v in (found.code, found.intercept))
        return self.y * (self.P @ code + intercept)

    def _first_part(self) -> NDArray[np.bool_]:
        """Rows of small margins by a first code, learned from rows that stand for all."""
        rng = np.random.default_rng(0)
        sides = [side for side in (np.flatnonzero(self.y == sign) for sign in (1, -1)) if len(side)]
        drawn = [rng.permutation(side)[:_FIRST_ROWS] for side in sides]
        weights = np.concatenate([
            np.full(len(some), self.w[side].sum(dtype=np.float64) / len(some))
            for side, some in zip(sides, drawn, strict=True)
        ])  # fmt: skip
        margins = self._margins(self._solve(np.concatenate(drawn), weights, _FIRST_TOL)[0])
        part = np.zeros(len(self.y), bool)
        for side in sides:
            wanted = int((1 + _SPARE) * np.sum(margins[side] < 1)) + _SPARE_ROWS
            wanted = min(wanted, len(side))
            part[side[np.argpartition(margins[side], wanted - 1)[:wanted]]] = True
        return part


def code_problems(P: NDArray[Any], D: NDArray[Any], signs: NDArray[Any], weights: NDArray[Any],
                  penalty: Penalty, positive_weight: float = 1.0) -> Iterator[Any]:  # fmt: skip
    """Yield the problem of every scorer: a column of `signs` (n, s)."""
    Q = penalty.quadratic(D)
    many = len(P) >= MANY_ROWS
    kind: Any = ManyRowsProblem if many else CodeProblem
    P = P if many else with_ones(P)
    total, heavier = float(weights.sum(dtype=np.float64)), weights.dtype.type(positive_weight)
    for target in signs.T:
        by_sign = np.where(target > 0, heavier * weights, weights)
        yield kind(P, target, by_sign, penalty, Q, total)
