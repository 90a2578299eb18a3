"""Atoms of US-SVM during a pass over sparse rows, at the cost of the columns of each batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.rows import SMALLEST_SCALE


class SparseRowsAtoms:
    """Atoms as ``scale_a * V[:, a]``, so that a step touches only the columns of its rows.

    Their sum after every batch is kept as ``c_a * V[:, a] - lag[:, a]``, c being the sum of the
    scales: a step u of V is missing from the iterates before it, so the lag grows by ``c u``.

    Parameters
    ----------
    atoms : ndarray of shape (A, d)
        In the unit ball.
    average : bool
        Whether to keep the sum.
    """

    def __init__(self, atoms: NDArray[Any], average: bool) -> None:
        self.V, self.average = np.array(atoms.T, order="C"), average
        self.sum, self.lag = (np.zeros_like(self.V) if average else self.V[:0] for _ in range(2))
        self.c = np.zeros(len(atoms))
        self._multiply_out(np.ones(len(atoms)))
        self.seen, self.places = np.zeros(len(self.V), bool), np.empty(len(self.V), np.intp)

    def _multiply_out(self, scale: NDArray[Any]) -> None:
        """Let V be the atoms, and add the sum of those before; c would else grow without bounds."""
        if self.average:
            self.sum += self.V * self.c.astype(self.V.dtype) - self.lag
            self.lag[:] = self.c[:] = 0
        self.V *= scale.astype(self.V.dtype)
        self.scale = np.ones(len(scale))
        self.squares = np.einsum("da,da->a", self.V, self.V, dtype=np.float64)

    def finish(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the atoms, (A, d), and the sum of the atoms after every batch, if it was kept."""
        self._multiply_out(self.scale)
        return np.ascontiguousarray(self.V.T), self.sum.T

    def answers(self, X: Any) -> NDArray[Any]:
        """Precomputed features of the rows, (n, A)."""
        return (X @ self.V) * self.scale.astype(self.V.dtype)

    def gradient(self, X: Any, left: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Columns that the rows have, and ``X' left`` there, (n_columns, A)."""
        self.seen[X.indices] = True
        columns = np.flatnonzero(self.seen)
        self.seen[columns] = False
        self.places[columns] = np.arange(len(columns))
        parts = X.data, self.places[X.indices], X.indptr
        compact = type(X)(parts, shape=(X.shape[0], len(columns)))
        return columns, np.ascontiguousarray(compact.T @ left)

    def move(self, columns: NDArray[np.intp], step: NDArray[Any]) -> None:
        """Subtract a step (n_columns, A) from the atoms, and take them back to the unit ball."""
        dtype = self.V.dtype
        step = step / self.scale.astype(dtype)
        old = self.V[columns]
        self.V[columns] = old - step
        self.squares += np.einsum("da,da->a", step, step - 2 * old, dtype=np.float64)
        if self.average:
            self.lag[columns] -= self.c.astype(dtype) * step
        self.scale /= np.maximum(self.scale * np.sqrt(np.maximum(self.squares, 0)), 1)
        if self.scale.min() < SMALLEST_SCALE:
            self._multiply_out(self.scale)

    def end_batch(self) -> None:
        """Add the atoms to the sum."""
        self.c += self.scale
