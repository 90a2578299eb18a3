"""Compiled scores of dense rows that meet few models each: their codes are CSR."""

from __future__ import annotations

import numpy as np

from loclin._jit import jit


@jit
def add_responses(X, one, other, weights, coef, j, scores):
    """Add what model j of every scorer says of two rows (or of one twice, the second for nothing).

    Two rows and two scorers at once: a number that is loaded serves in two products.
    """
    s, d = coef.shape[0], X.shape[1]
    x, z, (c, g) = X[one], X[other], weights
    for y in range(0, s - 1, 2):
        u, v = coef[y, j], coef[y + 1, j]
        xu = xv = zu = zv = X.dtype.type(0)
        for f in range(d):
            xu += x[f] * u[f]
            xv += x[f] * v[f]
            zu += z[f] * u[f]
            zv += z[f] * v[f]
        scores[one, y] += c * xu
        scores[one, y + 1] += c * xv
        scores[other, y] += g * zu
        scores[other, y + 1] += g * zv
    if s % 2:
        u = coef[s - 1, j]
        xu = zu = X.dtype.type(0)
        for f in range(d):
            xu += x[f] * u[f]
            zu += z[f] * u[f]
        scores[one, s - 1] += c * xu
        scores[other, s - 1] += g * zu


@jit
def scores_by_model(X, codes, coef, block, scores):
    """Add ``sum_j code_j (w_yj . x)`` to the scores, for the CSR parts of the codes.

    Rows are taken block by block, and in a block model by model, so that both stay near the
    processor.
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
    """Do what `scores_by_model` does, row by row: faster where the cache holds all models."""
    values, columns, starts = codes
    s, _, d = coef.shape
    for row in range(X.shape[0]):
        for e in range(starts[row], starts[row + 1]):
            for y in range(s):
                response = X.dtype.type(0)
                for f in range(d):
                    response += coef[y, columns[e], f] * X[row, f]
                scores[row, y] += values[e] * response


@jit
def find_regions(X, partition, thresholds, block, regions):
    """Write the region of each row: the partition function that is largest there."""
    for first in range(0, X.shape[0], block):
        last = min(X.shape[0], first + block)
        products = np.dot(X[first:last], partition.T)
        for i in range(last - first):
            best = 0
            for k in range(1, len(thresholds)):
                if products[i, k] + thresholds[k] > products[i, best] + thresholds[best]:
                    best = k
            regions[first + i] = best


@jit
def scores_by_region(X, partition, thresholds, coef, block, regions, scores):
    """Find the region of each row, and add what its models say of it.

    Both while a block of rows is near the processor.
    """
    ones, starts = np.ones(block, scores.dtype), np.arange(block + 1)
    for first in range(0, X.shape[0], block):
        last = min(X.shape[0], first + block)
        rows, found = X[first:last], regions[first:last]
        find_regions(rows, partition, thresholds, block, found)
        codes = ones, found, starts[: last - first + 1]
        scores_by_model(rows, codes, coef, block, scores[first:last])
