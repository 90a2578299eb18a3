"""Local scores of every model, and the ways to combine them into class scores.

Local models are ``coef`` (s, m, d) and ``intercept`` (s, m) for s scorers of m models
each. Their responses on n rows are an array (n, s * m), scorer by scorer; it is made in
blocks of rows that stay in the cache, and is never held whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.few_models import (
    find_largest,
    find_regions,
    scores_by_model,
    scores_by_region,
    scores_by_row,
    scores_of_sparse_rows,
)
from loclin.engine.jit import read_only
from loclin.engine.pooling import argmax_code_rows, pool_rows
from loclin.engine.rows import compiled_form

# Responses of a block take half a megabyte: they stay in a core's cache, and are small
# enough for malloc to keep for the next call. Of a megabyte each page is fetched anew,
# which takes as long as product and pooling together.
_BLOCK_BYTES = 2**19
_CACHED_BYTES = 2**17  # so many bytes of weights stay in the cache beside rows
_CODED_ROWS = 256  # so many dense rows with sparse codes make a block
# So many rows that all have the same sparse codes make a block.
_SHARED_CODE_ROWS = 64
_SPARSE_TERM = 8.0  # a term of a sparse product takes so many times that of a dense one


def check_models(X: Matrix, coef: Floats, intercept: Floats) -> None:
    """Raise ValueError where rows and models do not fit:
    compiled loops would read beside them.
    """
    if (
        intercept.shape != coef.shape[:2]
        or X.shape[1:] != coef.shape[2:]
        or not X.dtype == coef.dtype == intercept.dtype
        or coef.dtype.char not in "fd"
        or not intercept.size
    ):
        raise ValueError(
            f"Models of shape {coef.shape} ({coef.dtype}) and intercepts of shape "
            f"{intercept.shape} ({intercept.dtype}) do not fit rows of shape {X.shape} "
            f"({X.dtype}). Load or fit the model again."
        )


def local_products(X: Matrix, coef: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield (rows, responses) block by block;
    the responses are overwritten by the next block.

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
    size = min(block_rows(width, W.itemsize), max(1, n))
    if is_sparse(X):
        transposed = np.ascontiguousarray(W.T)
    room = np.empty((size, width), dtype=W.dtype)
    for first in range(0, n, size):
        rows = slice(first, min(first + size, n))
        if is_sparse(X):
            responses = X[rows] @ transposed
        else:
            responses = np.matmul(X[rows], W.T, out=room[: rows.stop - first])
        yield rows, responses


def block_rows(n_models: int, itemsize: int) -> int:
    """Rows of a block, the responses of which stay in the cache."""
    return max(16, _BLOCK_BYTES // max(1, n_models * itemsize))


def pooled_scores(
    X: Matrix, coef: Floats, intercept: Floats, q: float, rooted: bool = True
) -> Floats:
    """Score of every scorer by dual-norm pooling:
    ``|| max(W_y x + b_y, 0) ||_q``, (n, s).

    Not `rooted`, numbers in their order, row by row, that are found faster.
    """
    check_models(X, coef, intercept)
    pooled = np.empty((X.shape[0], len(coef)), dtype=coef.dtype)
    b, ones = read_only(intercept.ravel()), np.ones(coef.shape[1], coef.dtype)
    powers = np.empty((0, 0), coef.dtype)
    for rows, products in local_products(X, coef):
        if len(powers) < len(products):
            powers = np.empty_like(products)
        pool_rows(products, b, q, powers, ones, pooled[rows], rooted)
    return pooled


def pooling_codes(X: Matrix, coef: Floats, intercept: Floats, q: float) -> Floats:
    """Codes behind `pooled_scores`: (n, s, m)."""
    check_models(X, coef, intercept)
    s, m = coef.shape[:2]
    codes = np.empty((X.shape[0], s, m), dtype=coef.dtype)
    for rows, responses in local_products(X, coef):
        responses += intercept.ravel()
        argmax_code_rows(responses.reshape(-1, m), q, codes[rows].reshape(-1, m))
    return codes


def coded_scores(X: Matrix, codes: Any, coef: Floats | None, intercept: Floats) -> Floats:
    """Score of every scorer with given codes:
    ``sum_j code_yj (w_yj . x + b_yj)``, (n, s).

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    codes : {ndarray, csr} of shape (n, m) or ndarray of shape (n, s, m)
        With a CSR matrix, a row meets only the models with a nonzero code.
    coef : ndarray of shape (s, m, d) or None
        None where the models say constants.
    intercept : ndarray of shape (s, m)
    """
    if coef is None:
        if codes.ndim == 3:
            return np.einsum("nsm,sm->ns", codes, intercept)
        return codes @ intercept.T
    check_models(X, coef, intercept)
    s, m = coef.shape[:2]
    if (
        codes.shape not in ((X.shape[0], m), (X.shape[0], s, m))
        or codes.dtype != coef.dtype
    ):
        raise ValueError(
            f"Codes of shape {codes.shape} ({codes.dtype}) do not fit {X.shape[0]} rows and "
            f"models of shape {coef.shape} ({coef.dtype}). Load or fit the model again."
        )
    if is_sparse(codes):
        return _scores_by_model(X, codes, coef) + codes @ intercept.T
    scores = np.empty((X.shape[0], s), coef.dtype)
    by = "nsm,nsm->ns" if codes.ndim == 3 else "nsm,nm->ns"
    for rows, responses in local_products(X, coef):
        responses += intercept.ravel()
        np.einsum(by, responses.reshape(-1, s, m), codes[rows], out=scores[rows])
    return scores


def shared_code_scores(X: Matrix, D: Floats, codes: Any, intercept: Floats) -> Floats:
    """Score of every scorer whose code is the same at every row:
    ``codes D' x + b``, (n, s).

    Codes and atoms are folded into one linear map, or the atoms are asked and then the
    codes: whichever costs less.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    D : ndarray of shape (d, m)
        Atoms as columns.
    codes : csr of shape (s, m)
    intercept : ndarray of shape (s,)
    """
    (d, m), s = D.shape, codes.shape[0]
    width = X.nnz / X.shape[0] if is_sparse(X) else d
    if width * s <= width * m + _SPARSE_TERM * codes.nnz:
        return X @ (codes @ D.T).T + intercept
    scores = np.empty((X.shape[0], s), D.dtype)
    size = _SHARED_CODE_ROWS
    for first in range(0, len(scores), size):
        rows = slice(first, first + size)
        answers = (X[rows] @ D).T if is_sparse(X) else D.T @ X[rows].T
        np.add((codes @ answers).T, intercept, out=scores[rows])
    return scores


def answer_scores(P: Floats, codes: Any, intercept: Floats) -> Floats:
    """Scores as of `shared_code_scores`, from the answers of the atoms ``X D``, (n, m)."""
    scores = np.empty((len(P), codes.shape[0]), P.dtype)
    for first in range(0, len(P), _SHARED_CODE_ROWS):
        rows = slice(first, first + _SHARED_CODE_ROWS)
        np.add((codes @ P[rows].T).T, intercept, out=scores[rows])
    return scores


def _scores_by_model(X: Matrix, codes: Any, coef: Floats) -> Floats:
    """Scores without the intercepts;
    of a row, only the models with a nonzero code are asked.
    """
    scores = np.zeros((X.shape[0], len(coef)), coef.dtype)
    if is_sparse(X):
        by_feature = read_only(coef.T)
        scores_of_sparse_rows(compiled_form(X), compiled_form(codes), by_feature, scores)
        return scores
    coef = read_only(np.ascontiguousarray(coef))
    if coef.nbytes <= _CACHED_BYTES:
        scores_by_row(read_only(X), compiled_form(codes), coef, scores)
    else:
        scores_by_model(read_only(X), compiled_form(codes), coef, _CODED_ROWS, scores)
    return scores


def regions_of(X: Matrix, partition: Floats, intercept: Floats) -> NDArray[np.intp]:
    """Return the region of each row:
    the partition function (r, d), (r,) that is largest there.

    The same bits as in `regional_scores`, also for rows between two regions.
    """
    check_models(X, partition[None], intercept[None])
    regions = np.empty(X.shape[0], np.intp)
    if not is_sparse(X):
        parts = (read_only(np.ascontiguousarray(part)) for part in (partition, intercept))
        find_regions(read_only(X), *parts, regions)
        return regions
    for rows, products in local_products(X, partition[None]):
        products += intercept
        products.argmax(axis=1, out=regions[rows])
    return regions


def _region_rows(X: Floats) -> int:
    """Rows of a block that stays near the processor."""
    return int(max(16, _CACHED_BYTES // (X.shape[1] * X.itemsize)))


def regional_scores(
    X: Matrix, partition: Floats, thresholds: Floats, coef: Floats,
    intercept: Floats,
) -> Floats:  # fmt: skip
    """Score of every scorer by the model of the row's region: (n, s).

    Only the models of a row's region are asked.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    partition, thresholds : ndarray of shape (r, d) and (r,)
        Partition functions.
    coef, intercept : ndarray of shape (s, r, d) and (s, r)
    """
    check_models(X, coef, intercept)
    check_models(X, partition[None], thresholds[None])
    if len(partition) != coef.shape[1]:
        raise ValueError(
            f"There are {len(partition)} partition functions, but models of {coef.shape[1]} "
            "regions. Load or fit the model again."
        )
    scores = np.empty((X.shape[0], len(coef)), coef.dtype)
    if not is_sparse(X):
        regions = np.empty(len(X), np.intp)
        parts = (
            read_only(np.ascontiguousarray(part))
            for part in (partition, thresholds, coef, intercept.T)
        )
        scores_by_region(read_only(X), *parts, _region_rows(X), regions, scores)
        return scores
    regions = regions_of(X, partition, thresholds)
    for k in range(len(partition)):
        in_region = np.flatnonzero(regions == k)
        scores[in_region] = X[in_region] @ coef[:, k].T + intercept[:, k]
    return scores


def combine_models(codes: Any, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    """Combine the models themselves: the linear model that acts at each row.

    Parameters
    ----------
    codes : csr of shape (n, m) or ndarray of shape (n, s, m)
    coef : ndarray of shape (s, m, d)
    intercept : ndarray of shape (s, m)

    Returns
    -------
    coef : ndarray of shape (n, s, d)
    intercept : ndarray of shape (n, s)
    """
    if is_sparse(codes):
        if not any(coef.strides) and not coef.flat[0]:  # of many leaves: constants
            zeros = np.zeros((codes.shape[0], len(coef), coef.shape[2]), coef.dtype)
            return zeros, codes @ intercept.T
        return np.stack(
            [codes @ of_scorer for of_scorer in coef], axis=1
        ), codes @ intercept.T
    n = codes.shape[0]
    if n > 1 and codes.strides[0] == 0:  # the same code at every row
        once = combine_models(codes[:1], coef, intercept)
        return np.repeat(once[0], n, axis=0), np.repeat(once[1], n, axis=0)
    # One matrix product a scorer: (n, m) @ (m, d).
    by_scorer = np.matmul(codes.transpose(1, 0, 2), coef)
    return by_scorer.transpose(1, 0, 2), np.einsum("nsm,sm->ns", codes, intercept)


def winners(scores: Floats, multilabel: bool = False) -> NDArray[np.intp]:
    """Index of the class with the largest score; one score is that of the second class.

    Of several labels a row, those with positive scores: an indicator (n, s).
    """
    if multilabel:
        return (scores > 0).astype(np.intp)
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    largest = np.empty(len(scores), np.intp)
    find_largest(scores, largest)  # NumPy's takes 7 times as long with 10 classes
    return largest


def difference(by_class: Floats, n_classes: int) -> Floats:
    """Scorers to decisions, on axis 1:
    second minus first for two classes, else all of them.
    """
    if by_class.shape[1] == 1:
        return by_class[:, 0]
    return by_class[:, 1] - by_class[:, 0] if n_classes == 2 else by_class
