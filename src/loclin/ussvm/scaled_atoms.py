"""Atoms of US-SVM during a pass over sparse rows,
at the cost of the columns of each batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.rows import SMALLEST_SCALE


class ScaledAtoms:
    """Atoms as ``scale_a * V[:, a]``,
    so that a step touches only the columns of its rows.

    Their sum after every batch is kept as ``c_a * V[:, a] - lag[:, a]``, c being the sum
    of the scales: a step u of V is missing from the iterates before it, so the lag grows
    by ``c u``.

    Parameters
    ----------
    atoms : ndarray of shape (A, d)
        In the unit ball.
    average : bool
        Whether to keep the sum.
    """

    def __init__(self, atoms: NDArray[np.floating], average: bool) -> None:
        self.V = np.array(atoms.T, order="C")
        self.average = average
        self.sum = np.zeros_like(self.V) if average else self.V[:0]
        self.lag = np.zeros_like(self.V) if average else self.V[:0]
        self.c = np.zeros(len(atoms))
        self.scale = np.ones(len(atoms))
        self._multiply_out()
        # Scratch: is a column in the batch, and where among its columns?
        self.in_batch = np.zeros(len(self.V), bool)
        self.place = np.empty(len(self.V), np.intp)

    def _multiply_out(self) -> None:
        """Let V be the atoms, and add the sum of those before;
        c would else grow without bounds.
        """
        if self.average:
            self.sum += self.V * self.c.astype(self.V.dtype) - self.lag
            self.lag[:] = 0
            self.c[:] = 0
        self.V *= self.scale.astype(self.V.dtype)
        self.scale = np.ones(len(self.scale))
        self.squared_norms = np.einsum("da,da->a", self.V, self.V, dtype=np.float64)

    def finish(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the atoms, (A, d), and the sum of the atoms
        after every batch, if it was kept.
        """
        self._multiply_out()
        return np.ascontiguousarray(self.V.T), self.sum.T

    def precompute(self, X: sparse.csr_matrix) -> NDArray[np.floating]:
        """Precomputed features of the rows, (n, A)."""
        return (X @ self.V) * self.scale.astype(self.V.dtype)

    def gradient(
        self, X: sparse.csr_matrix, slopes: NDArray[np.floating]
    ) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
        """Columns that the rows have, and ``X' slopes`` there, (n_columns, A)."""
        self.in_batch[X.indices] = True
        columns = np.flatnonzero(self.in_batch)
        self.in_batch[columns] = False
        self.place[columns] = np.arange(len(columns))
        compact = type(X)(
            (X.data, self.place[X.indices], X.indptr), shape=(X.shape[0], len(columns))
        )
        return columns, np.ascontiguousarray(compact.T @ slopes)

    def step(self, columns: NDArray[np.intp], step: NDArray[np.floating]) -> None:
        """Subtract a step (n_columns, A) from the atoms,
        and take them back to the unit ball.
        """
        dtype = self.V.dtype
        step = step / self.scale.astype(dtype)
        old = self.V[columns]
        self.V[columns] = old - step
        self.squared_norms += np.einsum(
            "da,da->a", step, step - 2 * old, dtype=np.float64
        )
        if self.average:
            self.lag[columns] -= self.c.astype(dtype) * step
        self.scale /= np.maximum(
            self.scale * np.sqrt(np.maximum(self.squared_norms, 0)), 1
        )
        if self.scale.min() < SMALLEST_SCALE:
            self._multiply_out()

    def end_batch(self) -> None:
        """Add the atoms to the sum."""
        self.c += self.scale
