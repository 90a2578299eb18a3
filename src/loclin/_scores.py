"""The hall: local scores of every model, and the ways to combine them into class scores.

Local models are ``coef`` (s, m, d) and ``intercept`` (s, m) for s scorers of m models each. Their
responses on n rows are an array (n, s * m), scorer by scorer; it is made in blocks of rows that
stay in the cache, and is never held whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loclin import _pooling_fast

# Responses of a block take about a megabyte, the size of a core's cache.
_BLOCK_BYTES = 2**20


def local_products(X: Any, coef: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield (rows, responses) block by block; the responses are overwritten by the next block.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    coef : ndarray of shape (s, m, d)

    Yields
    ------
    rows : slice
    responses : ndarray of shape (n_rows, s * m)
        ``w_yj . x`` for every scorer y and model j, without the intercepts.
    """
    W = coef.reshape(-1, coef.shape[-1])
    n, width = X.shape[0], len(W)
    size = min(max(16, _BLOCK_BYTES // max(1, width * W.itemsize)), max(1, n))
    is_sparse = sparse.issparse(X)
    if is_sparse:
        transposed = np.ascontiguousarray(W.T)
    room = np.empty((size, width), dtype=W.dtype)
    for first in range(0, n, size):
        rows = slice(first, min(first + size, n))
        if is_sparse:
            responses = X[rows] @ transposed
        else:
            responses = np.matmul(X[rows], W.T, out=room[: rows.stop - first])
        yield rows, responses


def pooled_scores(X: Any, coef: NDArray[Any], intercept: NDArray[Any], q: float) -> NDArray[Any]:
    """Score of every scorer by dual-norm pooling: ``|| max(W_y x + b_y, 0) ||_q``, (n, s)."""
    pooled = np.empty((X.shape[0], len(coef)), dtype=coef.dtype)
    b, ones = intercept.ravel(), np.ones(coef.shape[1], coef.dtype)
    powers = np.empty((0, 0), coef.dtype)
    for rows, products in local_products(X, coef):
        if len(powers) < len(products):
            powers = np.empty_like(products)
        _pooling_fast.pool_rows(products, b, q, powers, ones, pooled[rows])
    return pooled


def pooling_codes(X: Any, coef: NDArray[Any], intercept: NDArray[Any], q: float) -> NDArray[Any]:
    """Codes behind `pooled_scores`: (n, s, m)."""
    s, m, _ = coef.shape
    codes = np.empty((X.shape[0], s, m), dtype=coef.dtype)
    for rows, responses in local_products(X, coef):
        responses += intercept.ravel()
        _pooling_fast.argmax_code_rows(responses.reshape(-1, m), q, codes[rows].reshape(-1, m))
    return codes


def combine_models(
    code: NDArray[Any], coef: NDArray[Any], intercept: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Combine the models themselves: the linear model that acts at each row.

    Parameters
    ----------
    code : ndarray of shape (n, s, m)
    coef : ndarray of shape (s, m, d)
    intercept : ndarray of shape (s, m)

    Returns
    -------
    coef : ndarray of shape (n, s, d)
    intercept : ndarray of shape (n, s)
    """
    # One matrix product a scorer: (n, m) @ (m, d).
    by_scorer = np.matmul(code.transpose(1, 0, 2), coef)
    return by_scorer.transpose(1, 0, 2), np.einsum("nsm,sm->ns", code, intercept)
