"""One loader for dense and sparse rows, so that no solver is written twice.

Dense data is an array (n, d); its weights are (s * m, d), so that a score product is one
BLAS call. Sparse data is the tuple (data, indices, indptr) of a CSR matrix; its weights
are (d, s * m), so that every nonzero of a row touches one contiguous run of weights. The
compiler picks the right form from the type of `X`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from loclin.engine.data import Matrix, is_sparse
from loclin.engine.jit import OPTIONS, read_only

# Procedures keep weights as scale * W; below this they multiply the scale out.
SMALLEST_SCALE = 1e-4


def compiled_form(X: Matrix) -> Any:
    """Return what the compiled loops take for `X`:
    an array, or the parts of a CSR matrix.
    """
    if is_sparse(X):
        return read_only(X.data), read_only(X.indices), read_only(X.indptr)
    return read_only(X)


def weights_for(X: Matrix, n_outputs: int) -> np.ndarray:
    """Return zero weights in the layout that the rows of `X` need."""
    shape = (X.shape[1], n_outputs) if is_sparse(X) else (n_outputs, X.shape[1])
    return np.zeros(shape, dtype=X.dtype)


def as_models(W: np.ndarray, X_is_sparse: bool, n_models: int) -> np.ndarray:
    """View weights of either layout as (s, m, d), without a copy."""
    flat = W.T if X_is_sparse else W
    return flat.reshape(-1, n_models, flat.shape[1])


def row_buffer(X, size, d):
    """Room for `size` gathered rows; sparse rows need none."""


def gather(X, rows, buffer):
    """Copy the given rows of `X` into the buffer."""


def score(X, rows, buffer, W, first, m, out):
    """Products of the rows with the models first .. first + m - 1: (len(rows), m)."""


def add_outer(X, row, buffer, i, coef, first, W, step):
    """Add ``step * coef_j * x`` to model first + j,
    for every j, x being the i-th gathered row.
    """


def squared_norm(X, row):
    """Squared Euclidean norm of a row of `X`."""


def is_dense(X) -> bool:
    """Tell from the type of `X` whether it is an array."""
    return isinstance(X, types.Array)


@overload(row_buffer, jit_options=OPTIONS)
def _row_buffer(X, size, d):
    if is_dense(X):
        return lambda X, size, d: np.empty((size, d), X.dtype)
    return lambda X, size, d: np.empty((0, 0), X[0].dtype)


@overload(gather, jit_options=OPTIONS)
def _gather(X, rows, buffer):
    if not is_dense(X):
        return lambda X, rows, buffer: None

    def dense(X, rows, buffer):
        for i in range(rows.shape[0]):
            row = rows[i]
            for f in range(X.shape[1]):
                buffer[i, f] = X[row, f]

    return dense


@overload(score, jit_options=OPTIONS)
def _score(X, rows, buffer, W, first, m, out):
    if is_dense(X):

        def dense(X, rows, buffer, W, first, m, out):
            n = rows.shape[0]
            np.dot(buffer[:n], W[first : first + m].T, out[:n])

        return dense

    def csr(X, rows, buffer, W, first, m, out):
        data, indices, indptr = X
        for i in range(rows.shape[0]):
            for j in range(m):
                out[i, j] = 0
            for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
                value, f = data[entry], indices[entry]
                for j in range(m):
                    out[i, j] += value * W[f, first + j]

    return csr


@overload(add_outer, jit_options=OPTIONS)
def _add_outer(X, row, buffer, i, coef, first, W, step):
    if is_dense(X):

        def dense(X, row, buffer, i, coef, first, W, step):
            for j in range(coef.shape[0]):
                if coef[j] != 0:
                    weight = step * coef[j]
                    for f in range(W.shape[1]):
                        W[first + j, f] += weight * buffer[i, f]

        return dense

    def csr(X, row, buffer, i, coef, first, W, step):
        data, indices, indptr = X
        for entry in range(indptr[row], indptr[row + 1]):
            value, f = step * data[entry], indices[entry]
            for j in range(coef.shape[0]):
                W[f, first + j] += value * coef[j]

    return csr


@overload(squared_norm, jit_options=OPTIONS)
def _squared_norm(X, row):
    if is_dense(X):

        def dense(X, row):
            total = X.dtype.type(0)
            for f in range(X.shape[1]):
                total += X[row, f] * X[row, f]
            return math.fabs(total)

        return dense

    def csr(X, row):
        data, _, indptr = X
        total = data.dtype.type(0)
        for entry in range(indptr[row], indptr[row + 1]):
            total += data[entry] * data[entry]
        return math.fabs(total)

    return csr
