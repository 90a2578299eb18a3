"""Dual coordinate descent for locally linear SVMs (LIB-LLSVM).

Minimises, for each score, over the models ``W`` (m, d), ``b`` (m,) and a global intercept ``g``,

    alpha/2 (||W||^2 + ||b||^2 + g^2) + 1/(sum w) sum_i w_i loss(y_i f(x_i)),
    f(x) = sum_j code_j(x) (w_j . x + b_j) + g,

a linear SVM on the features ``code (x) [x; 1]``, which are never formed (Hsieh et al., A dual
coordinate descent method for large-scale linear SVM, 2008, on the kernel of eq. 10 of the OCC
paper), or Crammer and Singer's problem of all scores. Stops at a duality gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.codes import squared_norms
from loclin.engine.losses import Loss
from loclin.engine.rows import as_models, compiled_form, weights_for
from loclin.llsvm.competing_kernels import competing_losses_and_gap, competing_pass
from loclin.llsvm.dual_kernels import dual_pass, losses_and_gap, set_scores, set_weights

# Rows that share a block of the kernel, where all models are scored by one product.
_BLOCK = 32
# Rows scored at once where nothing moves.
_CHECKED = 64


def _block_size(X: Any, codes: Any) -> int:
    """Return a block where its kernel costs no more than the scores of its rows, else 1."""
    if sparse.issparse(X):
        return 1
    width, m = X.shape[1], codes.shape[1]
    used = codes.nnz / codes.shape[0] if sparse.issparse(codes) else m
    return _BLOCK if m + width <= 2 * used * width else 1


class DualProblem(ABC):
    """The state of one problem: dual variables, weights, active rows.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    codes : {ndarray, csr} of shape (n, m)
    n_scorers : int
    weights : ndarray of shape (n,)
        Positive.
    alpha : float
    local, extra : bool
        Are there local intercepts; is there a global one. Both are penalised.
    """

    dual: NDArray[Any]

    def __init__(self, X: Any, codes: Any, n_scorers: int, weights: NDArray[Any], alpha: float,
                 *, local: bool, extra: bool) -> None:  # fmt: skip
        n, m = codes.shape
        self.is_sparse, self.n_models = sparse.issparse(X), m
        self.alpha, self.extra = alpha, X.dtype.type(extra)
        self.bounds = weights.astype(np.float64) / (alpha * weights.sum(dtype=np.float64))
        self.W, self.b = weights_for(X, n_scorers * m), np.zeros(n_scorers * m, X.dtype)
        self.g = np.zeros(n_scorers, X.dtype)
        self._data = compiled_form(X), compiled_form(codes)
        self._flags = X.dtype.type(local), self.extra
        self._block = _block_size(X, codes)
        self._squares = np.empty(n)
        squared_norms(*self._data, 0, *self._flags, self._squares)
        self._squares = np.maximum(self._squares, np.finfo(np.float64).tiny)
        self._scores = np.zeros((n, n_scorers))
        self._active, self._n_active = np.arange(n), n
        self.gap = np.inf

    @abstractmethod
    def _visit(self, active: NDArray[Any], limited: bool) -> int:
        """Visit these rows once; return how many stay active, at the front."""

    @abstractmethod
    def _slopes(self) -> NDArray[Any]:
        """Dual variables with the signs of the targets, (n, s): W is their sum of features."""

    @abstractmethod
    def _losses_and_gap(self) -> tuple[float, float]:
        """Return sums over the rows, at the scores last met."""

    def iterate(self, rng: np.random.Generator, tol: float) -> float:
        """Visit the active rows once; return the objective, exact once `gap` is below tol of it.

        Until then it is the running estimate, from the scores met.
        """
        whole = self._n_active == len(self._active)
        active = self._active[: self._n_active]
        rng.shuffle(active)
        self._n_active = self._visit(active, self.gap == np.inf or not whole)
        self.gap = np.inf
        objective, gap = self._objective_and_gap()
        if gap <= tol * objective or not self._n_active:
            objective = self.check()
            if self.gap > tol * objective:
                self._n_active = len(self._active)
        return objective

    def check(self) -> float:
        """Return the exact objective, with weights free of rounding; set the exact `gap`."""
        self.set_weights()
        set_scores(*self._data, self.W, self.b, self.g, _CHECKED, self.extra, self._scores)
        objective, self.gap = self._objective_and_gap()
        return objective

    def set_weights(self) -> None:
        """Let the weights be what the dual variables mean."""
        set_weights(*self._data, self._slopes(), self.W, self.b, self.g, _CHECKED, self._flags[0])

    @property
    def relative_dual(self) -> NDArray[Any]:
        """Dual variables in units of their bounds, to start from at another alpha."""
        return (self.dual.T / self.bounds).T

    def _objective_and_gap(self) -> tuple[float, float]:
        norm = sum(float(np.vdot(w, w)) for w in (self.W, self.b, self.g * self.extra))
        losses, gap = self._losses_and_gap()
        return self.alpha * (0.5 * norm + losses), self.alpha * gap


class BinaryDual(DualProblem):
    """One score against zero: `target` (n,) has +1 and -1.

    `start` (n,) are dual variables in units of their bounds ``w_i / (alpha sum w)``.
    """

    def __init__(self, X: Any, codes: Any, target: NDArray[Any], weights: NDArray[Any],
                 alpha: float, loss: Loss, *, local: bool, extra: bool,
                 start: NDArray[Any] | None = None) -> None:  # fmt: skip
        super().__init__(X, codes, 1, weights, alpha, local=local, extra=extra)
        self.target, self.loss = target.astype(np.float64), int(loss)
        self._limits = np.inf, -np.inf
        self.dual = np.zeros(len(target)) if start is None else start * self.bounds
        if start is not None:
            self.set_weights()

    def _visit(self, active: NDArray[Any], limited: bool) -> int:
        limits = np.array(self._limits if limited else (np.inf, -np.inf))
        kept, high, low = dual_pass(
            *self._data, self.target, self.bounds, self.loss, active, self.dual, self._scores,
            self.W, self.b, self.g, self._squares, limits, self._block, *self._flags,
        )  # fmt: skip
        self._limits = high if high > 0 else np.inf, low if low < 0 else -np.inf
        return kept

    def _slopes(self) -> NDArray[Any]:
        return (self.dual * self.target)[:, None]

    def _losses_and_gap(self) -> tuple[float, float]:
        return losses_and_gap(self.loss, self._scores, self.target, self.dual, self.bounds)


class CompetingDual(DualProblem):
    """Classes that compete, hinge loss: `labels` (n,) are 0 .. s - 1; `start` is (n, s)."""

    def __init__(self, X: Any, codes: Any, labels: NDArray[Any], n_classes: int,
                 weights: NDArray[Any], alpha: float, *, local: bool, extra: bool,
                 start: NDArray[Any] | None = None) -> None:  # fmt: skip
        super().__init__(X, codes, n_classes, weights, alpha, local=local, extra=extra)
        self.labels, self._limit = labels, np.inf
        self.dual = np.zeros((len(labels), n_classes))
        if start is not None:
            self.dual += start * self.bounds[:, None]
            self.set_weights()

    def _visit(self, active: NDArray[Any], limited: bool) -> int:
        kept, worst = competing_pass(
            *self._data, self.labels, self.bounds, active, self.dual, self._scores, self.W, self.b,
            self.g, self._squares, self._limit if limited else np.inf, self._block, *self._flags,
        )  # fmt: skip
        self._limit = worst if worst > 0 else np.inf
        return kept

    def _slopes(self) -> NDArray[Any]:
        return self.dual

    def _losses_and_gap(self) -> tuple[float, float]:
        return competing_losses_and_gap(self.labels, self._scores, self.dual, self.bounds)


class DualFit:
    """Problems of all scorers side by side, each iteration one pass of every unfinished one.

    Parameters
    ----------
    problems : list of DualProblem
    tol : float
        Duality gap to reach, as a part of the objective.
    rng : Generator
    n_jobs : int or None
        Threads over the problems; the result does not depend on it.
    keep_dual : bool
        Keep what the next fit can start from.
    """

    def __init__(self, problems: Sequence[DualProblem], tol: float, rng: np.random.Generator,
                 n_jobs: int | None = None, *, keep_dual: bool = False) -> None:  # fmt: skip
        self.problems, self.tol, self.keep_dual = problems, tol, keep_dual
        seeds = rng.integers(2**63, size=len(problems))
        self.generators = [np.random.default_rng(seed) for seed in seeds]
        self.objectives = np.zeros(len(problems))
        n_threads = min(effective_n_jobs(n_jobs), len(problems))
        self.map = ThreadPoolExecutor(n_threads).map if n_threads > 1 else map

    @property
    def gap(self) -> float:
        """The largest duality gap as a part of its objective; infinite while one is not known."""
        gaps = [problem.gap for problem in self.problems]
        return float(np.max(gaps / np.maximum(self.objectives, np.finfo(float).tiny)))

    def iterate(self, *, average: bool) -> float:
        """Pass once over the active rows of every unsolved problem; sum of the objectives."""
        open_ = [
            k for k, problem in enumerate(self.problems)
            if not problem.gap <= self.tol * self.objectives[k]
        ]  # fmt: skip
        passes = self.map(lambda k: self.problems[k].iterate(self.generators[k], self.tol), open_)
        self.objectives[open_] = list(passes)
        return float(self.objectives.sum())

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        for k, problem in enumerate(self.problems):
            if problem.gap == np.inf:
                self.objectives[k] = problem.check()
        found = {
            "local_coef_": [as_models(p.W, p.is_sparse, p.n_models) for p in self.problems],
            "local_intercept_": [p.b.reshape(-1, p.n_models) for p in self.problems],
            "intercept_": [p.g * p.extra for p in self.problems],
        }
        return {name: np.concatenate(parts) for name, parts in found.items()} | {
            "dual_gap_": np.array([p.gap for p in self.problems]),
            "_dual": [p.relative_dual for p in self.problems] if self.keep_dual else None,
        }
