"""Problem 3 of US-SVM over many rows, solved on those that matter.

At the optimum a row whose hinge is zero has no say. Leaving rows out only takes
nonnegative terms from the objective, so the lower bound of a subset's optimum is one of
the whole problem's; and what the rows left out lose by the subset's code is all that its
gap is short of. So: solve a subset, add the rows outside that lose, until the gap over
all rows is small. A new class of a thousand rows among a hundred thousand needs about
three thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from loclin.ussvm.codes import CodeProblem, Penalty, Problem, solve_problem, with_ones

# From so many rows on a problem is solved on a subset of them.
MANY_ROWS = 8192
# Rows of each side that a first code is learned from, and how well.
_FIRST_ROWS = 1000
_FIRST_TOL = 1e-2
# Rows beyond those that lose: this part of them, and so many. Other codes make these
# lose.
_SPARE = 0.5
_SPARE_ROWS = 500


class ManyRowsProblem(Problem):
    """The problem over many rows, a step being the solution of a subset and its growth.

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
    subset : ndarray of bool of shape (n,), default=None
        Rows to begin with; None draws some.
    """

    def __init__(
        self,
        P: NDArray[np.floating],
        target: NDArray[np.number],
        weights: NDArray[np.floating],
        penalty: Penalty,
        Q: NDArray[np.float64],
        total: float,
        subset: NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__(P.shape[1])
        self.P = P
        self.y = target.astype(P.dtype)
        self.w = weights
        self.penalty = penalty
        self.Q = Q
        self.total = total
        self.subset = subset

    @property
    def features(self) -> NDArray[np.floating]:
        """The precomputed features, (n, A)."""
        return self.P

    def with_penalty(
        self,
        penalty: Penalty,
        D: NDArray[np.floating],
        kept: NDArray[np.intp] | None = None,
    ) -> Self:
        """Return the problem of the same rows with another penalty;
        it begins with this subset.
        """
        P = self.P if kept is None else self.P[:, kept]
        Q = penalty.quadratic(D)
        return type(self)(P, self.y, self.w, penalty, Q, self.total, self.subset)

    def step(self, tol: float) -> None:
        """Solve the problem of the subset, and add rows where the gap is above `tol`."""
        subset = self._first_subset() if self.subset is None else self.subset
        rows = np.flatnonzero(subset)
        solution, share = self._solve(rows, self.w[rows], tol / 2)
        self.n_steps += solution.n_steps
        losses = 1 - self._margins(solution)
        losses[rows] = 0
        np.maximum(losses, 0, out=losses)
        loss_outside = float(losses @ self.w) / self.total
        gap = share * solution.gap + loss_outside
        self.running_objective = share * solution.objective + loss_outside
        if gap < self.gap or self.gap == np.inf:
            self.code = solution.code
            self.intercept = solution.intercept
            self.gap = gap
            self.objective = self.running_objective
        most = len(rows) + _SPARE_ROWS
        worst = (
            np.argpartition(-losses, most)[:most] if most < len(losses) else slice(None)
        )
        self.subset = subset.copy()  # others began with it
        self.subset[worst] |= losses[worst] > 0

    def _solve(
        self, rows: NDArray[np.intp], weights: NDArray[np.floating], tol: float
    ) -> tuple[CodeProblem, float]:
        """Solve the problem of some rows; return it, and their share of all the weight."""
        share = float(weights.sum(dtype=np.float64)) / self.total
        penalty = self.penalty._replace(
            alpha=self.penalty.alpha / share, beta=self.penalty.beta / share
        )
        P = with_ones(self.P[rows])
        problem = CodeProblem(P, self.y[rows], weights, penalty, self.Q / share)
        solve_problem(problem, tol)
        return problem, share

    def _margins(self, solution: CodeProblem) -> NDArray[np.floating]:
        code = solution.code.astype(self.P.dtype)
        return self.y * (self.P @ code + self.P.dtype.type(solution.intercept))

    def _first_subset(self) -> NDArray[np.bool_]:
        """Rows of small margins by a first code, learned from rows that stand for all."""
        rng = np.random.default_rng(0)
        sides = [
            side
            for side in (np.flatnonzero(self.y == sign) for sign in (1, -1))
            if len(side)
        ]
        drawn = [rng.permutation(side)[:_FIRST_ROWS] for side in sides]
        weights = [
            np.full(len(some), self.w[side].sum(dtype=np.float64) / len(some))
            for side, some in zip(sides, drawn, strict=True)
        ]
        first, _ = self._solve(np.concatenate(drawn), np.concatenate(weights), _FIRST_TOL)
        margins = self._margins(first)
        subset = np.zeros(len(self.y), bool)
        for side in sides:
            wanted = int((1 + _SPARE) * np.sum(margins[side] < 1)) + _SPARE_ROWS
            wanted = min(wanted, len(side))
            subset[side[np.argpartition(margins[side], wanted - 1)[:wanted]]] = True
        return subset


def code_problems(
    P: NDArray[np.floating],
    D: NDArray[np.floating],
    signs: NDArray[np.int8],
    weights: NDArray[np.floating],
    penalty: Penalty,
    positive_weight: float = 1.0,
) -> Iterator[Problem]:
    """Yield the problem of every scorer: a column of `signs` (n, s)."""
    many = len(P) >= MANY_ROWS
    kind: Callable[..., Problem] = ManyRowsProblem if many else CodeProblem
    features = P if many else with_ones(P)
    Q = penalty.quadratic(D)
    total = float(weights.sum(dtype=np.float64))
    heavier = weights.dtype.type(positive_weight) * weights
    for target in signs.T:
        yield kind(
            features, target, np.where(target > 0, heavier, weights), penalty, Q, total
        )
