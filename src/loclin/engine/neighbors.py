"""The nearest anchors of rows, and codes by them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist

from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.nearest import nearest_rows
from loclin.engine.prediction import codes_by, one_hot
from loclin.portable.words import NearestAnchors

_BLOCK_NUMBERS = 2**16  # a block of so many numbers stays near the processor
# Up to so many nearest anchors, insertion beats sorting (measured: 9 us against 16).
_MOST_INSERTED = 128


@codes_by.register
def nearest_codes(coder: NearestAnchors, X: Matrix) -> csr_matrix:
    """Codes of rows by their nearest anchors, CSR (n, m)."""
    anchors = coder.anchors
    indices, distances = nearest_of_checked(
        X.astype(anchors.dtype, copy=False), anchors, coder.n_neighbors
    )
    if coder.n_neighbors == 1:
        return one_hot(indices[:, 0], len(anchors), X.dtype)
    match coder.by:
        case "exp":
            weights = _by_exp(distances, coder.parameter)
        case "inverse":
            weights = _by_inverse(distances)
        case _:
            weights = _by_rebuilding(distances, indices, coder)
    n, k = indices.shape
    parts = (
        weights.astype(X.dtype, copy=False).ravel(),
        indices.ravel(),
        np.arange(0, n * k + 1, k),
    )
    codes = csr_matrix(parts, shape=(n, len(anchors)))
    codes.sort_indices()
    codes.eliminate_zeros()
    return codes


def soft_assignment(
    anchors: Floats, n_neighbors: int, bandwidth: float
) -> NearestAnchors:
    """Say the codes of soft assignment by these anchors,
    at most all of them, in their type.
    """
    bandwidth = min(bandwidth, float(np.finfo(anchors.dtype).max))
    return NearestAnchors(anchors, min(n_neighbors, len(anchors)), "exp", bandwidth)


def _by_exp(distances: Floats, bandwidth: float) -> Floats:
    with np.errstate(over="ignore"):  # exp(-inf) is the 0 that is meant
        weights = np.exp(-bandwidth * (distances - distances[:, :1]))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _by_inverse(distances: Floats) -> Floats:
    nearest = distances[:, :1]
    on_anchor = nearest == 0
    weights = np.sqrt(
        np.where(on_anchor, 1, nearest) / np.where(distances == 0, 1, distances)
    )
    weights = np.where(on_anchor, distances == 0, weights)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _by_rebuilding(
    distances: Floats, indices: NDArray[np.intp], coder: NearestAnchors
) -> Floats:
    n_samples, k = indices.shape
    between = coder.between
    if between is None:
        between = cdist(coder.anchors, coder.anchors, "sqeuclidean")
    weights = np.empty((n_samples, k))
    for rows in row_blocks(n_samples, k * k):
        near, at = distances[rows].astype(float), indices[rows]
        # (v_j - x).(v_l - x) from the three squared sides of a triangle: no differences
        # (n, k, d), and a sparse X stays sparse.
        C = near[:, :, None] + near[:, None, :] - between[at[:, :, None], at[:, None, :]]
        C /= 2
        trace = near.sum(axis=1)
        trace[trace == 0] = 1  # all k anchors on the row: equal weights
        C += (coder.parameter * trace)[:, None, None] * np.eye(k)
        weights[rows] = np.linalg.solve(C, np.ones((len(near), k, 1)))[:, :, 0]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def nearest_of_checked(
    X: Matrix, anchors: Floats, k: int
) -> tuple[NDArray[np.intp], Floats]:
    """Do what `loclin.anchors.nearest_anchors` does with checked
    rows and anchors of one type.
    """
    n_samples, n_anchors = X.shape[0], anchors.shape[0]
    if not 1 <= k <= n_anchors or X.dtype != anchors.dtype or X.dtype.char not in "fd":
        raise ValueError(
            f"No {k} nearest of anchors of shape {anchors.shape} ({anchors.dtype}) can be found. "
            "Load or fit the coding again."
        )
    squares, anchor_squares = squared_norms("X", X), squared_norms("anchors", anchors)
    indices = np.empty((n_samples, k), np.intp)
    distances = np.empty((n_samples, k), X.dtype)
    rounding = X.dtype.type(np.sqrt(np.finfo(X.dtype).eps))
    for rows in row_blocks(n_samples, n_anchors):
        products = np.ascontiguousarray(anchors @ X[rows].T)  # rows along the last axis
        near, at = distances[rows], indices[rows]
        of_rows = squares[rows]
        if k <= _MOST_INSERTED:
            doubtful = np.empty(len(near), np.bool_)
            nearest_rows(products, of_rows, anchor_squares, rounding, at, near, doubtful)
        else:
            doubtful = _nearest_of_many(
                products, of_rows, anchor_squares, rounding, at, near
            )
        again = np.flatnonzero(doubtful)
        if len(again):
            _measure(X[rows][again], anchors, again, at, near)
    return indices, distances


def row_blocks(n_rows: int, row_size: int) -> Iterator[slice]:
    """Cut the rows into blocks, `row_size` numbers a row."""
    step = max(1, _BLOCK_NUMBERS // max(1, row_size))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def squared_norms(name: str, X: Matrix) -> Floats:
    """Return the squared norms of rows;
    ValueError, which names them, where they overflow.
    """
    with np.errstate(over="ignore"):
        if is_sparse(X):
            norms = np.asarray(X.multiply(X).sum(axis=1), X.dtype).ravel()
        else:
            norms = np.einsum("nd,nd->n", X, X)
    if not norms.max(initial=0) < np.finfo(X.dtype).max / 8:
        raise ValueError(
            f"{name} has rows so long that their squared norms overflow in {X.dtype}. Scale the "
            "features first, for example with make_pipeline(StandardScaler(), ...)."
        )
    return norms


def _nearest_of_many(
    products: Floats,
    squares: Floats,
    anchor_squares: Floats,
    rounding: np.floating,
    indices: NDArray[np.intp],
    distances: Floats,
) -> NDArray[np.bool_]:
    """Do what `nearest_rows` does by sorting all anchors, for many neighbours."""
    whole = squares[:, None] - 2 * products.T + anchor_squares
    indices[:] = np.argsort(whole, axis=1, kind="stable")[:, : indices.shape[1]]
    distances[:] = np.maximum(np.take_along_axis(whole, indices, axis=1), 0)
    doubtful = distances <= rounding * (squares[:, None] + anchor_squares[indices])
    return np.asarray(doubtful.any(axis=1))


def _measure(
    X: Matrix,
    anchors: Floats,
    rows: NDArray[np.intp],
    indices: NDArray[np.intp],
    distances: Floats,
) -> None:
    """Take the distances of these rows, X, again from the differences, and sort anew."""
    k = indices.shape[1]
    for block in row_blocks(len(rows), k * anchors.shape[1]):
        chosen = np.sort(indices[rows[block]], axis=1)
        gaps = _dense(X[block])[:, None, :] - anchors[chosen]
        near = np.einsum("nkd,nkd->nk", gaps, gaps)
        order = np.argsort(near, axis=1, kind="stable")
        indices[rows[block]] = np.take_along_axis(chosen, order, axis=1)
        distances[rows[block]] = np.take_along_axis(near, order, axis=1)


def _dense(X: Matrix) -> Floats:
    return X.toarray() if is_sparse(X) else X
