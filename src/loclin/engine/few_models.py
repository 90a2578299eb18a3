"""Compiled scores of rows that meet few models each: their codes are CSR."""

from __future__ import annotations

import numpy as np

from loclin.engine.jit import inner, jit


@inner
def add_responses(X, one, other, weights, coef, j, scores):
    """Add what model j of every scorer says of two rows
    (or of one twice, the second for nothing).

    Two rows and four scorers at once: a number that is loaded serves in several products.
    """
    s = coef.shape[0]
    d = X.shape[1]
    x = X[one]
    z = X[other]
    c, g = weights
    for y in range(0, s - 3, 4):
        t = coef[y, j]
        u = coef[y + 1, j]
        v = coef[y + 2, j]
        w = coef[y + 3, j]
        xt = xu = xv = xw = zt = zu = zv = zw = X.dtype.type(0)
        for f in range(d):
            xt += x[f] * t[f]
            xu += x[f] * u[f]
            xv += x[f] * v[f]
            xw += x[f] * w[f]
            zt += z[f] * t[f]
            zu += z[f] * u[f]
            zv += z[f] * v[f]
            zw += z[f] * w[f]
        scores[one, y] += c * xt
        scores[one, y + 1] += c * xu
        scores[one, y + 2] += c * xv
        scores[one, y + 3] += c * xw
        scores[other, y] += g * zt
        scores[other, y + 1] += g * zu
        scores[other, y + 2] += g * zv
        scores[other, y + 3] += g * zw
    for y in range(s - s % 4, s):
        u = coef[y, j]
        xu = zu = X.dtype.type(0)
        for f in range(d):
            xu += x[f] * u[f]
            zu += z[f] * u[f]
        scores[one, y] += c * xu
        scores[other, y] += g * zu


@jit
def scores_by_model(X, codes, coef, block, scores):
    """Add ``sum_j code_j (w_yj . x)`` to the scores, for the CSR parts of the codes.

    Rows are taken block by block, and in a block model by model, so that both stay near
    the processor.
    """
    values, columns, starts = codes
    n, m = X.shape[0], coef.shape[1]
    ends = np.empty(m + 1, np.int64)
    for first in range(0, n, block):
        last = min(n, first + block)
        n_entries = starts[last] - starts[first]
        rows, weights = np.empty(n_entries, np.int64), np.empty(n_entries, values.dtype)
        ends[:] = 0
        for e in range(starts[first], starts[last]):
            ends[columns[e] + 1] += 1
        for j in range(m):
            ends[j + 1] += ends[j]
        for row in range(first, last):  # each model's begin becomes its end
            for e in range(starts[row], starts[row + 1]):
                at = ends[columns[e]]
                rows[at], weights[at] = row, values[e]
                ends[columns[e]] += 1
        at = 0
        for j in range(m):
            while at < ends[j]:
                if at + 1 < ends[j]:
                    pair = weights[at], weights[at + 1]
                    add_responses(X, rows[at], rows[at + 1], pair, coef, j, scores)
                else:
                    pair = weights[at], values.dtype.type(0)
                    add_responses(X, rows[at], rows[at], pair, coef, j, scores)
                at += 2
            at = ends[j]


@jit
def scores_by_row(X, codes, coef, scores):
    """Do what `scores_by_model` does, row by row:
    faster where the cache holds all models.
    """
    values, columns, starts = codes
    s = coef.shape[0]
    d = coef.shape[2]
    for row in range(X.shape[0]):
        for e in range(starts[row], starts[row + 1]):
            for y in range(s):
                response = X.dtype.type(0)
                for f in range(d):
                    response += coef[y, columns[e], f] * X[row, f]
                scores[row, y] += values[e] * response


@jit
def scores_of_sparse_rows(X, codes, by_feature, scores):
    """Do the same for the CSR parts of X; `by_feature` are the weights as (d, m, s)."""
    data, features, row_starts = X
    values, columns, starts = codes
    for row in range(scores.shape[0]):
        for entry in range(row_starts[row], row_starts[row + 1]):
            at_feature = by_feature[features[entry]]
            for e in range(starts[row], starts[row + 1]):
                weight = data[entry] * values[e]
                for y in range(scores.shape[1]):
                    scores[row, y] += weight * at_feature[columns[e], y]


@jit
def find_regions(X, partition, thresholds, regions):
    """Write the region of each row: the partition function that is largest there."""
    n, r = X.shape[0], len(thresholds)
    values = np.empty((2, r), X.dtype)
    models = partition.reshape((r, 1, partition.shape[1]))
    for first in range(0, n, 2):
        rows = X[first : min(n, first + 2)]
        last = len(rows) - 1
        for i in range(last + 1):
            for k in range(r):  # an array for an array takes the compiler two seconds
                values[i, k] = thresholds[k]
        weights = X.dtype.type(1), X.dtype.type(last)
        add_responses(rows, 0, last, weights, models, 0, values)
        for i in range(last + 1):
            regions[first + i] = np.argmax(values[i])


@jit
def scores_by_region(X, partition, thresholds, coef, intercept, block, regions, scores):
    """Find the region of each row, and write what its models say of it.

    Both while a block of rows is near the processor.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    partition, thresholds : ndarray of shape (r, d) and (r,)
        Partition functions.
    coef, intercept : ndarray of shape (s, r, d) and (r, s)
    block : int
        Rows of a block.
    regions : ndarray of shape (n,)
        Overwritten.
    scores : ndarray of shape (n, s)
        Overwritten.
    """
    ones, starts = np.ones(block, scores.dtype), np.arange(block + 1)
    for first in range(0, X.shape[0], block):
        last = min(X.shape[0], first + block)
        rows, reached = X[first:last], regions[first:last]
        find_regions(rows, partition, thresholds, reached)
        for i in range(last - first):
            for y in range(scores.shape[1]):
                scores[first + i, y] = intercept[reached[i], y]
        codes = ones, reached, starts[: last - first + 1]
        scores_by_model(rows, codes, coef, block, scores[first:last])


@jit
def find_largest(scores, largest):
    """Write the place of the largest score of each row, the first of equals."""
    for i in range(scores.shape[0]):
        best, top = 0, scores[i, 0]
        for y in range(1, scores.shape[1]):
            best = y if scores[i, y] > top else best
            top = max(top, scores[i, y])
        largest[i] = best
