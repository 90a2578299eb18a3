"""The linear functions of L3M as one: local classifiers and partition, scored and moved together.

They are p = r s + r outputs ``w_p . (x - pivot_p) + b_p``: region by region those of its s scorers,
then the partition's, one for each region. So ``b_p`` is the value at the pivot. The unknowns are W,
output by output for dense rows and feature by feature for sparse rows, and then b.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

from loclin.engine.scores import block_rows, local_products
from loclin.l3m.span import Span, minimise_in_span

_CORRECTIONS = 20  # pairs that L-BFGS keeps

Kernel = Callable[[NDArray[Any], slice, NDArray[Any]], float]


class Outputs:
    """Outputs over given rows.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    n_regions, n_scorers : int
    pivots : ndarray of shape (p, d) or (1, d)
    dtype : dtype, default=None
        In which to score; None takes that of X.
    columns : ndarray of int or None
        Features that count; all others have weights of 0. None stands for all.
    """

    def __init__(self, X: Any, n_regions: int, n_scorers: int, pivots: NDArray[Any],
                 dtype: Any = None, columns: NDArray[np.intp] | None = None) -> None:  # fmt: skip
        self.dtype, self.n_features, self.columns = np.dtype(dtype or X.dtype), X.shape[1], columns
        self.X, self.pivots, self.by_feature = self._some(X), self._some(pivots), sparse.issparse(X)
        self.n_regions, self.n_scorers = n_regions, n_scorers
        self.n_local = n_regions * n_scorers
        self.n_outputs = self.n_local + n_regions

    def over(self, X: Any) -> Self:
        """Return the same outputs over other rows."""
        other = copy(self)
        other.X = self._some(X)
        return other

    def _some(self, M: Any) -> Any:
        return M if self.columns is None else M[:, self.columns]

    def _at_pivots(self, W: NDArray[Any]) -> NDArray[Any]:
        if self.by_feature and len(self.pivots) == 1:
            return W @ self.pivots[0]
        return np.einsum("pd,pd->p", W, np.broadcast_to(self.pivots, W.shape))

    def split(self, v: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """View a vector of unknowns as W (p, d) and b (p,)."""
        p = self.n_outputs
        return v[:-p].reshape(-1, p).T if self.by_feature else v[:-p].reshape(p, -1), v[-p:]

    def _joined(self, W: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([(W.T if self.by_feature else W).ravel(), b])

    def score(self, v: NDArray[Any], kernel: Kernel) -> tuple[float, NDArray[Any]]:
        """Sum of a function of the scores over the rows, and its gradient.

        ``kernel(Z, rows, A)`` gets the scores of some rows, returns their sum and writes its
        gradient by Z into A.
        """
        W, b = self.split(v)
        intercept = (b - self._at_pivots(W)).astype(self.dtype)
        gradient = np.zeros_like(v)
        by_W, by_b = self.split(gradient)
        coef, total = W[None].astype(self.dtype, copy=False), 0.0
        # adding the gradient of some sparse rows costs as much as all weights: so of many at once
        size = max(W.shape[1] * self.by_feature, block_rows(len(W), self.dtype.itemsize))
        for first in range(0, self.X.shape[0], size):
            X = self.X[first : first + size]
            A = np.empty((X.shape[0], len(W)), self.dtype)
            for rows, Z in local_products(X, coef):
                Z += intercept
                total += kernel(Z, slice(first + rows.start, first + rows.stop), A[rows])
            by_W += A.T @ X
            by_b += A.sum(axis=0)
        by_W -= np.multiply(by_b[:, None], self.pivots, order="F" if self.by_feature else "C")
        return total, gradient

    def minimise(
        self, v: NDArray[Any], kernel: Kernel, penalties: NDArray[Any], max_passes: int,
        tol: float, lower: NDArray[Any] | None = None,
        bases: tuple[NDArray[Any], NDArray[Any]] | None = None,
        scales: NDArray[Any] | None = None, least_fall: float = 0.0,
    ) -> tuple[NDArray[Any], float]:  # fmt: skip
        """Minimise the sum plus ``1/2 sum_p penalties_p ||w_p||^2``, by L-BFGS.

        Where sparse rows are fewer than half the features, in the span of the rows (`Span`).

        Parameters
        ----------
        v : ndarray of shape (p (d + 1),)
            Where to start.
        kernel : callable
        penalties : ndarray of shape (p,)
        max_passes : int
        tol : float
            The descent ends where no entry of the projected gradient is above it.
        lower : ndarray of shape (p,) or None
            Lower bounds of b.
        bases : tuple of ndarray of shape (d, d) or None
            B and its inverse: the descent is in U, where W = diag(scales) U B.
        scales : ndarray of shape (p,) or None
            See `bases`; None stands for ones.
        least_fall : float, default=0.0
            The descent ends where a pass lowers the value by less than this part of it (of 1,
            where it is smaller).

        Returns
        -------
        v : ndarray of shape (p (d + 1),)
        value : float
        """
        free = lower is None and bases is None and len(self.pivots) == 1
        if free and self.by_feature and 2 * self.X.shape[0] < self.X.shape[1]:
            W, b = self.split(v)
            span = Span(self.X, self.pivots[0], W, penalties, kernel, self.dtype)
            x, value = minimise_in_span(span, b, max_passes, tol, least_fall, _CORRECTIONS)
            return self._joined(*span.unknowns(x)), value
        scales = np.ones(self.n_outputs) if scales is None else scales

        def turned(v: NDArray[Any], B: NDArray[Any], scales: NDArray[Any]) -> NDArray[Any]:
            W, b = self.split(v)
            return self._joined(scales[:, None] * (W @ B), b)

        def objective(u: NDArray[Any]) -> tuple[float, NDArray[Any]]:
            v = u if bases is None else turned(u, bases[0], scales)
            total, gradient = self.score(v, kernel)
            W, by_W = self.split(v)[0], self.split(gradient)[0]
            pull = penalties[:, None] * W
            by_W += pull
            gradient = gradient if bases is None else turned(gradient, bases[0].T, scales)
            square = np.vdot(W.ravel(order="K"), pull.ravel(order="K"))
            return total + 0.5 * float(square), gradient

        bounds = None
        if lower is not None:
            lowest = np.full(len(v), -np.inf)
            lowest[-len(lower) :] = lower
            bounds = np.column_stack([lowest, np.full(len(v), np.inf)])
        options = {"maxiter": max_passes, "maxfun": max_passes, "maxcor": _CORRECTIONS,
                   "ftol": least_fall, "gtol": tol}  # fmt: skip
        start = v if bases is None else turned(v, bases[1], 1.0 / scales)
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return found.x if bases is None else turned(found.x, bases[0], scales), float(found.fun)

    def attributes(self, v: NDArray[Any]) -> dict[str, Any]:
        """Fitted attributes: (s, r, d), (s, r), (s,), (r, d), (r,)."""
        W, b = self.split(v)
        dtype, shape = self.X.dtype, (self.n_regions, self.n_scorers)
        b = b - self._at_pivots(W)
        if self.columns is not None:
            found, W = W, np.zeros((self.n_outputs, self.n_features))
            W[:, self.columns] = found
        local = W[: self.n_local].reshape(*shape, -1).transpose(1, 0, 2)
        return {
            "local_coef_": np.ascontiguousarray(local, dtype),
            "local_intercept_": np.ascontiguousarray(b[: self.n_local].reshape(shape).T, dtype),
            "intercept_": np.zeros(self.n_scorers, dtype),
            "partition_coef_": np.ascontiguousarray(W[self.n_local :], dtype),
            "partition_intercept_": b[self.n_local :].astype(dtype),
        }

    def of_models(self, partition: NDArray[Any], thresholds: NDArray[Any], coef: NDArray[Any],
                  intercept: NDArray[Any]) -> NDArray[np.float64]:  # fmt: skip
        """Return the unknowns with these models, as `models_of` gives them."""
        d = partition.shape[1]
        W = np.vstack([coef.transpose(1, 0, 2).reshape(-1, d), partition]).astype(np.float64)
        W = self._some(W)
        b = np.concatenate([intercept.T.ravel(), thresholds]).astype(np.float64)
        return self._joined(W, b + self._at_pivots(W))


def occurring_columns(X: Any) -> NDArray[np.intp] | None:
    """Return the columns that sparse rows have; None where they have all, or are dense."""
    columns = np.unique(X.indices) if sparse.issparse(X) else None
    return None if columns is None or len(columns) == X.shape[1] else columns


def models_of(model: Any) -> tuple[NDArray[Any], ...]:
    """Partition and local models of a fitted model, as `regional_scores` takes them."""
    return (
        model.partition_coef_, model.partition_intercept_, model.local_coef_,
        model.local_intercept_,
    )  # fmt: skip
