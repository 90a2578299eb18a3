"""The linear functions of L3M as one: local classifiers and partition, scored and moved together.

They are p = r s + r outputs ``w_p . (x - pivot_p) + b_p``: region by region those of its s scorers,
then the partition's, one for each region. So ``b_p`` is the value at the pivot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from loclin._scores import local_products

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
    """

    def __init__(self, X: Any, n_regions: int, n_scorers: int, pivots: NDArray[Any],
                 dtype: Any = None) -> None:  # fmt: skip
        self.X, self.pivots, self.dtype = X, pivots, np.dtype(dtype or X.dtype)
        self.n_regions, self.n_scorers = n_regions, n_scorers
        self.n_local = n_regions * n_scorers
        self.n_outputs = self.n_local + n_regions

    def _pivots(self) -> NDArray[Any]:
        return np.broadcast_to(self.pivots, (self.n_outputs, self.pivots.shape[1]))

    def split(self, v: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """View a vector of unknowns as W (p, d) and b (p,)."""
        p = self.n_outputs
        return v[:-p].reshape(p, -1), v[-p:]

    def score(self, v: NDArray[Any], kernel: Kernel) -> tuple[float, NDArray[Any]]:
        """Sum of a function of the scores over the rows, and its gradient.

        ``kernel(Z, rows, A)`` gets the scores of some rows, returns their sum and writes its
        gradient by Z into A.
        """
        W, b = self.split(v)
        intercept = (b - np.einsum("pd,pd->p", W, self._pivots())).astype(self.dtype)
        gradient = np.zeros_like(v)
        by_W, by_b = self.split(gradient)
        total = 0.0
        for rows, Z in local_products(self.X, W[None].astype(self.dtype)):
            Z += intercept
            A = np.empty_like(Z)
            total += kernel(Z, rows, A)
            by_W += A.T @ self.X[rows]
            by_b += A.sum(axis=0)
        by_W -= by_b[:, None] * self.pivots
        return total, gradient

    def minimise(
        self, v: NDArray[Any], kernel: Kernel, penalties: NDArray[Any], max_passes: int,
        tol: float, lower: NDArray[Any] | None = None,
        bases: tuple[NDArray[Any], NDArray[Any]] | None = None,
        scales: NDArray[Any] | None = None, least_fall: float = 0.0,
    ) -> tuple[NDArray[Any], float]:  # fmt: skip
        """Minimise the sum plus ``1/2 sum_p penalties_p ||w_p||^2``, by L-BFGS.

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
        scales = np.ones(self.n_outputs) if scales is None else scales

        def turned(v: NDArray[Any], B: NDArray[Any], scales: NDArray[Any]) -> NDArray[Any]:
            W, b = self.split(v)
            return np.concatenate([(scales[:, None] * (W @ B)).ravel(), b])

        def objective(u: NDArray[Any]) -> tuple[float, NDArray[Any]]:
            v = u if bases is None else turned(u, bases[0], scales)
            total, gradient = self.score(v, kernel)
            W, by_W = self.split(v)[0], self.split(gradient)[0]
            pull = penalties[:, None] * W
            by_W += pull
            gradient = gradient if bases is None else turned(gradient, bases[0].T, scales)
            return total + 0.5 * float(np.vdot(W, pull)), gradient

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
        b = b - np.einsum("pd,pd->p", W, self._pivots())
        local = W[: self.n_local].reshape(*shape, -1).transpose(1, 0, 2)
        return {
            "local_coef_": np.ascontiguousarray(local, dtype),
            "local_intercept_": np.ascontiguousarray(b[: self.n_local].reshape(shape).T, dtype),
            "intercept_": np.zeros(self.n_scorers, dtype),
            "partition_coef_": W[self.n_local :].astype(dtype),
            "partition_intercept_": b[self.n_local :].astype(dtype),
        }

    def of_models(self, partition: NDArray[Any], thresholds: NDArray[Any], coef: NDArray[Any],
                  intercept: NDArray[Any]) -> NDArray[np.float64]:  # fmt: skip
        """Return the unknowns with these models, as `models_of` gives them."""
        d = partition.shape[1]
        W = np.vstack([coef.transpose(1, 0, 2).reshape(-1, d), partition]).astype(np.float64)
        b = np.concatenate([intercept.T.ravel(), thresholds]).astype(np.float64)
        return np.concatenate([W.ravel(), b + np.einsum("pd,pd->p", W, self._pivots())])


def models_of(model: Any) -> tuple[NDArray[Any], ...]:
    """Partition and local models of a fitted model, as `regional_scores` takes them."""
    return (
        model.partition_coef_, model.partition_intercept_, model.local_coef_,
        model.local_intercept_,
    )  # fmt: skip
