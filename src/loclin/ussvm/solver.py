"""Codes of all scorers over a dictionary:
problem 3 of each, then the few nonzeros asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from loclin.engine.schedule import auto_alpha
from loclin.engine.threads import threads_for
from loclin.engine.warned import warn
from loclin.ussvm.codes import Penalty, Problem, solve_problem
from loclin.ussvm.many_rows import code_problems

# tol=0 asks for all passes of the descent, not for codes beyond rounding.
_SMALLEST_GAP = 1e-8


class Codes(NamedTuple):
    """Codes of the scorers over a dictionary."""

    codes: sparse.csr_matrix  # shape: (s, A)
    intercept: NDArray[np.floating]  # shape: (s,)
    dual_gap: NDArray[np.float64]  # before `n_nonzero` prunes the codes, shape: (s,)


@dataclass(frozen=True)
class CodeSolver:
    """What problem 3 takes besides the rows and the dictionary.

    Parameters
    ----------
    penalty : Penalty
    positive_weight : float
        What the losses of a scorer's positive rows are multiplied by.
    n_nonzero : int or None
        Maximum number of nonzeros in a code.
    tol : float
        Gap to reach, as a part of the objective.
    """

    penalty: Penalty
    positive_weight: float
    n_nonzero: int | None
    tol: float

    def problems(
        self,
        P: NDArray[np.floating],
        D: NDArray[np.floating],
        signs: NDArray[np.int8],
        weights: NDArray[np.floating],
    ) -> Iterator[Problem]:
        """Yield the problem of every scorer.

        Parameters
        ----------
        P : ndarray of shape (n, A)
            Precomputed features ``X @ D``.
        D : ndarray of shape (d, A)
        signs : ndarray of shape (n, s)
            +1 and -1: the scorers' targets.
        weights : ndarray of shape (n,)
        """
        return code_problems(P, D, signs, weights, self.penalty, self.positive_weight)

    def solve(self, problems: Iterable[Problem], D: NDArray[np.floating]) -> Codes:
        """Solve the problems from where they stand, and prune their codes.

        Warns
        -----
        ConvergenceWarning
            Where a gap stays above `tol` (at least 1e-8).
        """
        tol = max(self.tol, _SMALLEST_GAP)
        codes = []
        intercepts = []
        gaps = []
        for problem in problems:
            with threads_for(products_of(problem)):
                solve_problem(problem, tol)
                if not problem.solved(tol):
                    _warn_of(problem, tol)
                code, intercept = problem.code, problem.intercept
                if self.n_nonzero is not None:
                    code, intercept = pruned(
                        problem, D, self.n_nonzero, self.penalty, tol
                    )
            codes.append(code)
            intercepts.append(intercept)
            gaps.append(problem.gap)
        return as_codes(codes, intercepts, gaps, D.dtype)


def as_codes(
    codes: list[NDArray[np.float64]],
    intercepts: list[float],
    gaps: list[float],
    dtype: np.dtype,
) -> Codes:
    """Codes of the scorers, from those of each, in the precision of the dictionary."""
    return Codes(
        sparse.csr_matrix(np.array(codes, dtype)),
        np.array(intercepts, dtype),
        np.array(gaps),
    )


def products_of(problem: Problem) -> float:
    """Multiply-adds of the largest product of a step."""
    n, n_atoms = problem.features.shape
    return float(n) * n_atoms**2


def _warn_of(problem: Problem, tol: float) -> None:
    warn(
        f"The duality gap of a code is {problem.gap:.2g}, with an objective of "
        f"{problem.objective:.2g}: above tol={tol:g}. Scale the features, raise beta or tol.",
        ConvergenceWarning,
    )


def pruned(
    problem: Problem,
    D: NDArray[np.floating],
    n_nonzero: int,
    penalty: Penalty,
    tol: float,
) -> tuple[NDArray[np.float64], float]:
    """Keep the largest coefficients of a solved problem,
    and fit these again with ``beta = 0``.

    The fewer coefficients are to stay, the less does a code of many tell which. So beta
    is doubled first, until at most twice as many are left. A coefficient counts as much
    as it is long in the space of `X`. Without an alpha, that of `auto_alpha` for the
    precomputed features kept keeps the margin large.

    Returns
    -------
    code : ndarray of shape (A,)
    intercept : float
    """
    stricter = penalty
    while penalty.l1 and np.count_nonzero(problem.code) > 2 * n_nonzero:
        stricter = stricter._replace(beta=2 * stricter.beta)
        following = problem.with_penalty(stricter, D)
        solve_problem(following, tol)
        if np.count_nonzero(following.code) < n_nonzero:
            break
        problem = following
    code = np.zeros_like(problem.code)
    lengths = _lengths(problem.code, D)
    kept = np.sort(np.argsort(-lengths, kind="stable")[:n_nonzero])
    kept = kept[lengths[kept] > 0.0]
    if not len(kept):
        return code, problem.intercept
    P = problem.features[:, kept]
    mean_squared_norm = float(np.einsum("ij,ij->", P, P, dtype=np.float64)) / len(P)
    alpha = penalty.alpha or auto_alpha(mean_squared_norm, len(P))
    refit = problem.with_penalty(
        Penalty(alpha, 0.0, 1.0, penalty.nonnegative), D[:, kept], kept
    )
    solve_problem(refit, tol)
    code[kept] = refit.code
    return code, refit.intercept


def largest(
    codes: NDArray[np.floating], D: NDArray[np.floating], n_nonzero: int
) -> NDArray[np.floating]:
    """Keep the largest coefficients of each code (s, A),
    by their length in the space of `X`.
    """
    codes = codes.copy()
    smallest = np.argsort(-_lengths(codes, D), axis=1, kind="stable")[:, n_nonzero:]
    np.put_along_axis(codes, smallest, 0, axis=1)
    return codes


def _lengths(
    codes: NDArray[np.floating], D: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Lengths of the coefficients' parts of the map, ``|z_a| ||D_a||``."""
    return np.abs(codes) * np.linalg.norm(D, axis=0)
