"""The linear functions of L3M as one:
local classifiers and partition, scored and moved together.

They are p = r s + r outputs ``w_p . (x - pivot_p) + b_p``: region by region those of its
s scorers, then the partition's, one for each region. So ``b_p`` is the value at the
pivot. The unknowns are W, output by output for dense rows and feature by feature for
sparse rows, and then b.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from scipy.optimize import Bounds, minimize

from loclin.engine.scores import block_rows, local_products
from loclin.l3m.models import RegionalModels

CORRECTIONS = 20  # pairs that L-BFGS keeps

Floats = NDArray[np.floating]
Vector = NDArray[np.float64]
Kernel = Callable[[Floats, slice, Floats], float]
Objective = Callable[[Vector], tuple[float, Vector]]


class Limits(NamedTuple):
    """When a descent ends."""

    passes: int
    tol: float  # no entry of the (projected) gradient is above it
    # a pass lowers the value by less than this part of it (of 1, if less)
    least_fall: float = 0.0


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

    def __init__(
        self,
        X: Any,
        n_regions: int,
        n_scorers: int,
        pivots: Vector,
        dtype: DTypeLike | None = None,
        columns: NDArray[np.intp] | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype or X.dtype)
        self.by_feature: bool = sparse.issparse(X)
        self.n_features, self.columns = X.shape[1], columns
        self.X, self.pivots = self._some(X), self._some(pivots)
        self.n_regions, self.n_scorers = n_regions, n_scorers
        self.n_local = n_regions * n_scorers
        self.n_outputs = self.n_local + n_regions

    def over(self, X: Any) -> Self:
        """Return the same outputs over other rows."""
        other = copy(self)
        other.X = self._some(X)
        return other

    @property
    def has_few_rows(self) -> bool:
        """Are the rows sparse and so few that a descent in
        their span (`Span`) is cheaper?
        """
        n, d = self.X.shape
        return self.by_feature and 2 * n < d

    def _some(self, M: Any) -> Any:
        return M if self.columns is None else M[:, self.columns]

    def _at_pivots(self, W: Floats) -> Floats:
        if self.by_feature and len(self.pivots) == 1:
            return W @ self.pivots[0]
        return np.einsum("pd,pd->p", W, np.broadcast_to(self.pivots, W.shape))

    def split(self, v: Vector) -> tuple[Vector, Vector]:
        """View a vector of unknowns as W (p, d) and b (p,)."""
        p = self.n_outputs
        W = v[:-p].reshape(-1, p).T if self.by_feature else v[:-p].reshape(p, -1)
        return W, v[-p:]

    def joined(self, W: Floats, b: Floats) -> Vector:
        """Return the vector of unknowns, see `split`."""
        return np.concatenate(
            [(W.T if self.by_feature else W).ravel(), b], dtype=np.float64
        )

    def score(self, v: Vector, kernel: Kernel) -> tuple[float, Vector]:
        """Sum of a function of the scores over the rows, and its gradient.

        ``kernel(Z, rows, A)`` gets the scores of some rows, returns their sum and writes
        its gradient by Z into A.
        """
        W, b = self.split(v)
        intercept = (b - self._at_pivots(W)).astype(self.dtype)
        gradient = np.zeros_like(v)
        by_W, by_b = self.split(gradient)
        coef, total = W[None].astype(self.dtype, copy=False), 0.0
        # adding the gradient of some sparse rows costs as much as all weights: so of many
        # at once
        size = max(W.shape[1] * self.by_feature, block_rows(len(W), self.dtype.itemsize))
        for first in range(0, self.X.shape[0], size):
            X = self.X[first : first + size]
            A = np.empty((X.shape[0], len(W)), self.dtype)
            for rows, Z in local_products(X, coef):
                Z += intercept
                total += kernel(Z, slice(first + rows.start, first + rows.stop), A[rows])
            by_W += A.T @ X
            by_b += A.sum(axis=0)
        by_W -= np.multiply(
            by_b[:, None], self.pivots, order="F" if self.by_feature else "C"
        )
        return total, gradient

    def penalized(self, kernel: Kernel, penalties: Vector) -> Objective:
        """Return the sum plus ``1/2 sum_p penalties_p ||w_p||^2`` as a function."""

        def objective(v: Vector) -> tuple[float, Vector]:
            total, gradient = self.score(v, kernel)
            W, by_W = self.split(v)[0], self.split(gradient)[0]
            slopes = penalties[:, None] * W
            by_W += slopes
            square = np.vdot(W.ravel(order="K"), slopes.ravel(order="K"))
            return total + 0.5 * float(square), gradient

        return objective

    def models(self, v: Vector) -> RegionalModels:
        """Return the models with these unknowns,
        in the dtype of the rows; nothing is shared.
        """
        W, b = self.split(v)
        dtype, shape = self.X.dtype, (self.n_regions, self.n_scorers)
        b = b - self._at_pivots(W)
        if self.columns is not None:
            some, W = W, np.zeros((self.n_outputs, self.n_features))
            W[:, self.columns] = some
        local = W[: self.n_local].reshape(*shape, -1).transpose(1, 0, 2)
        return RegionalModels(
            np.array(W[self.n_local :], dtype, order="C"),
            np.array(b[self.n_local :], dtype),
            np.array(local, dtype, order="C"),
            np.array(b[: self.n_local].reshape(shape).T, dtype, order="C"),
        )

    def of_models(self, models: RegionalModels) -> Vector:
        """Return the unknowns with these models."""
        partition, thresholds, coef, intercept = models
        d = partition.shape[1]
        W = np.vstack([coef.transpose(1, 0, 2).reshape(-1, d), partition]).astype(
            np.float64
        )
        W = self._some(W)
        b = np.concatenate([intercept.T.ravel(), thresholds]).astype(np.float64)
        return self.joined(W, b + self._at_pivots(W))


class ChangeOfVariables:
    """Unknowns U in the place of W: ``W = diag(scales) U B``; b stays.

    Parameters
    ----------
    outputs : Outputs
    basis, inverse : ndarray of shape (d, d)
        B and its inverse.
    scales : ndarray of shape (p,)
    """

    def __init__(
        self, outputs: Outputs, basis: Floats, inverse: Floats, scales: Vector
    ) -> None:
        self.outputs, self.scales = outputs, scales
        self.basis, self.inverse = basis, inverse

    def _mapped(self, v: Vector, B: Floats, scales: Vector) -> Vector:
        W, b = self.outputs.split(v)
        return self.outputs.joined(scales[:, None] * (W @ B), b)

    def back(self, u: Vector) -> Vector:
        """Return the unknowns (W, b) of (U, b)."""
        return self._mapped(u, self.basis, self.scales)

    def there(self, v: Vector) -> Vector:
        """Return (U, b) of the unknowns (W, b)."""
        return self._mapped(v, self.inverse, 1.0 / self.scales)

    def of(self, objective: Objective) -> Objective:
        """Return the objective as a function of (U, b)."""

        def changed(u: Vector) -> tuple[float, Vector]:
            value, gradient = objective(self.back(u))
            return value, self._mapped(gradient, self.basis.T, self.scales)

        return changed


def minimise(
    objective: Objective, start: Vector, limits: Limits, bounds: Bounds | None = None
) -> tuple[Vector, float]:
    """Return where L-BFGS ends, and the value there."""
    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={
            "maxiter": limits.passes,
            "maxfun": limits.passes,
            "maxcor": CORRECTIONS,
            "ftol": limits.least_fall,
            "gtol": limits.tol,
        },
    )
    return result.x, float(result.fun)


def block_products(X: Any, n_outputs: int) -> float:
    """Multiply-adds of the scores of a block of rows."""
    n, d = X.shape
    return float(min(n, block_rows(n_outputs, X.dtype.itemsize))) * d * n_outputs


def occurring_columns(X: Any) -> NDArray[np.intp] | None:
    """Return the columns that sparse rows have, at least one;
    None for all, and of dense rows.
    """
    is_sparse: bool = sparse.issparse(X)
    columns = np.unique(X.indices if X.nnz else [0]) if is_sparse else None
    return None if columns is None or len(columns) == X.shape[1] else columns
