"""Dual coordinate descent for locally linear SVMs (LIB-LLSVM), one binary problem at a time.

Minimises, over the models ``W`` (m, d), ``b`` (m,) and a global intercept ``g``,

    alpha/2 (||W||^2 + ||b||^2 + g^2) + 1/(sum w) sum_i w_i loss(y_i f(x_i)),
    f(x) = sum_j code_j(x) (w_j . x + b_j) + g,

a linear SVM on the features ``code (x) [x; 1]``, which are never formed (Hsieh et al., A dual
coordinate descent method for large-scale linear SVM, 2008, on the kernel of eq. 10 of the OCC
paper). Stops at a duality gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse

from loclin.losses import Loss
from loclin.solvers import dual_cd_fast
from loclin.solvers.codes_fast import squared_norms
from loclin.solvers.rows_fast import as_models, compiled_form, weights_for

# Rows that share a block of the kernel, where all models are scored by one product.
_BLOCK = 32


class DualCD:
    """The state of one binary problem: dual variables, weights, active rows.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    codes : {ndarray, csr} of shape (n, m)
    target : ndarray of shape (n,)
        +1 and -1.
    weights : ndarray of shape (n,)
        Positive.
    alpha : float
    loss : {Loss.HINGE, Loss.SQUARED_HINGE}
    local, extra : bool
        Are there local intercepts; is there a global one. Both are penalised.
    dual : ndarray of shape (n,), default=None
        Dual variables to start from, in units of their bounds ``w_i / (alpha sum w)``.
    """

    def __init__(self, X: Any, codes: Any, target: NDArray[Any], weights: NDArray[Any],
                 alpha: float, loss: Loss, *, local: bool, extra: bool,
                 dual: NDArray[Any] | None = None) -> None:  # fmt: skip
        n, m = codes.shape
        self.is_sparse = sparse.issparse(X)
        self.alpha, self.loss = alpha, int(loss)
        self._data = compiled_form(X), compiled_form(codes), target.astype(np.float64)
        self.extra = X.dtype.type(extra)
        self._flags = X.dtype.type(local), self.extra
        self._block = 1 if sparse.issparse(X) or sparse.issparse(codes) else _BLOCK
        self.bounds = weights / (alpha * float(weights.sum(dtype=np.float64)))
        self.bounds = self.bounds.astype(np.float64)
        self.dual = np.zeros(n) if dual is None else dual * self.bounds
        self.W, self.b = weights_for(X, m), np.zeros(m, X.dtype)
        self.g = np.zeros(1, X.dtype)
        self._squares = np.empty(n)
        squared_norms(*self._data[:2], 0, *self._flags, self._squares)
        self._squares = np.maximum(self._squares, np.finfo(np.float64).tiny)
        self._margins = np.zeros(n)
        self._active = np.arange(n)
        self._n_active = n
        self._limits = np.inf, -np.inf
        self.gap = np.inf
        if dual is not None:
            self._set_weights()

    def iterate(self, rng: np.random.Generator, tol: float) -> float:
        """Visit the active rows once; return the objective, exact once `gap` is below tol of it.

        Until then it is the running estimate, from the margins met.
        """
        active = self._active[: self._n_active]
        rng.shuffle(active)
        kept, high, low = dual_cd_fast.dual_pass(
            *self._data, self.bounds, self.loss, active, self.dual, self._margins, self.W, self.b,
            self.g, self._squares, np.array(self._limits), self._block, *self._flags,
        )  # fmt: skip
        self.gap = np.inf
        self._n_active = kept
        self._limits = high if high > 0 else np.inf, low if low < 0 else -np.inf
        objective, gap = self._objective_and_gap()
        if gap <= tol * objective or not kept:
            objective = self.check()
            if self.gap > tol * objective:
                self._n_active, self._limits = len(self._active), (np.inf, -np.inf)
        return objective

    def check(self) -> float:
        """Return the exact objective, with weights free of rounding; set the exact `gap`."""
        self._set_weights()
        dual_cd_fast.set_margins(*self._data, self.W, self.b, self.g, 64, self.extra, self._margins)
        objective, self.gap = self._objective_and_gap()
        return objective

    def _set_weights(self) -> None:
        dual_cd_fast.set_weights(
            *self._data, self.dual, self.W, self.b, self.g, 64, self._flags[0]
        )  # fmt: skip

    def _objective_and_gap(self) -> tuple[float, float]:
        """From the margins last met."""
        norm = sum(float(np.vdot(w, w)) for w in (self.W, self.b, self.g * self.extra))
        losses, gap = dual_cd_fast.losses_and_gap(self.loss, self._margins, self.dual, self.bounds)
        return self.alpha * (0.5 * norm + losses), self.alpha * gap

    @property
    def relative_dual(self) -> NDArray[Any]:
        """Dual variables in units of their bounds, for a warm start at another alpha."""
        return self.dual / self.bounds


class DualFit:
    """Problems of all scorers side by side, each iteration one pass of every unfinished one.

    Parameters
    ----------
    problems : list of DualCD
    tol : float
        Duality gap to reach, as a part of the objective.
    rng : Generator
    n_jobs : int or None
        Threads over the problems; the result does not depend on it.
    """

    def __init__(self, problems: list[DualCD], tol: float, rng: np.random.Generator,
                 n_jobs: int | None) -> None:  # fmt: skip
        self.problems, self.tol = problems, tol
        seeds = rng.integers(2**63, size=len(problems))
        self.generators = [np.random.default_rng(seed) for seed in seeds]
        self.objectives = np.zeros(len(problems))
        self.parallel = Parallel(n_jobs=n_jobs, prefer="threads")

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
        self.objectives[open_] = self.parallel(
            delayed(self.problems[k].iterate)(self.generators[k], self.tol) for k in open_
        )
        return float(self.objectives.sum())

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        for k, problem in enumerate(self.problems):
            if problem.gap == np.inf:
                self.objectives[k] = problem.check()
        first = self.problems[0]
        return {
            "local_coef_": np.concatenate(
                [as_models(p.W, first.is_sparse, len(p.b)) for p in self.problems]
            ),
            "local_intercept_": np.stack([p.b for p in self.problems]),
            "intercept_": np.concatenate([p.g * p.extra for p in self.problems]),
            "dual_gap_": np.array([p.gap for p in self.problems]),
        }
