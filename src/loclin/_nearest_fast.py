"""Compiled selection of the nearest anchors from the products of rows and anchors."""

from __future__ import annotations

import math

import numpy as np

from loclin._jit import jit


@jit
def insert(key, column, keys, columns):
    """Insert into rising keys, before those that are equal; the last drops out."""
    for e in range(keys.shape[0]):
        kept, at = keys[e], columns[e]
        before = key <= kept
        columns[e] = column if before else at
        column = at if before else column
        keys[e] = key if key < kept else kept
        key = kept if key < kept else key


@jit
def nearest(squares, products, keys, columns, least, candidates):
    """Columns of the k least ``squares - 2 products``, nearest first, and these numbers.

    Of equal ones the smaller column comes first. Without branches to mispredict: anchors are dealt
    to 2 k lanes, and the k-th least of the lanes' minima is a bound that few anchors besides the k
    nearest pass.
    """
    m = squares.shape[0]
    lanes = min(least.shape[0], m)
    for j in range(m):
        products[j] = squares[j] - 2 * products[j]
    for lane in range(lanes):
        least[lane] = products[lane]
    for first in range(lanes, m, lanes):
        for lane in range(min(lanes, m - first)):
            key = products[first + lane]
            least[lane] = key if key < least[lane] else least[lane]
    keys[:] = math.inf
    columns[:] = 0
    for lane in range(lanes):
        insert(least[lane], 0, keys, columns)
    bound, found = keys[-1], 0
    for j in range(m):
        candidates[found] = j
        found += products[j] <= bound
    keys[:] = math.inf
    for c in range(found - 1, -1, -1):
        insert(products[candidates[c]], candidates[c], keys, columns)


@jit
def nearest_rows(products, squares, anchor_squares, rounding, indices, distances, doubtful):
    """Write the nearest anchors of each row, nearest first, and their squared distances.

    `doubtful` tells where so little is left of a sum of squares that rounding counts.
    """
    m, k = anchor_squares.shape[0], indices.shape[1]
    least, candidates = np.empty(2 * k, products.dtype), np.zeros(m + 1, np.int64)
    for i in range(products.shape[0]):
        near, at = distances[i], indices[i]
        nearest(anchor_squares, products[i], near, at, least, candidates)
        doubtful[i] = False
        for e in range(k):
            near[e] += squares[i]
            doubtful[i] |= near[e] <= rounding * (squares[i] + anchor_squares[at[e]])
            near[e] = max(near[e], products.dtype.type(0))
