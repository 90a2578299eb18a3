"""Compiled selection of the nearest anchors from the products of anchors and rows.

Rows run along the last axis, so that every step is the same for many of them: vector operations,
without branches to mispredict.
"""

from __future__ import annotations

import math

import numpy as np

from loclin.engine.jit import inner, jit

_BYTES = 256  # of a number of all rows that are looked at together: products stay in the cache


@inner
def rows_together(products):
    """Return how many rows `nearest` takes at once."""
    return _BYTES // products.itemsize


@inner
def nearest_room(products, k):
    """Make room for `nearest`: numbers and columns of the k nearest, and of the anchor in hand."""
    n, dtype = rows_together(products), products.dtype
    return np.empty((k, n), dtype), np.empty((k, n), dtype), np.empty(n, dtype), np.empty(n, dtype)


@inner
def nearest(squares, products, first, last, room):
    """Find the columns of the k least ``squares - 2 products``, nearest first, and these numbers.

    `products` is (m, n), of which the rows ``first .. last - 1`` count, at most `rows_together`.
    Anchors are inserted one by one, the last one first: of equally near ones, the smaller column
    stays in front. Columns are written as floating numbers: all parts of a vector have one size.
    """
    keys, columns, key, column = room
    keys[:] = math.inf
    columns[:] = 0
    for j in range(squares.shape[0] - 1, -1, -1):
        for i in range(last - first):
            key[i] = squares[j] - 2 * products[j, first + i]
            column[i] = j
        for e in range(keys.shape[0]):
            for i in range(last - first):
                kept, at, new, new_at = keys[e, i], columns[e, i], key[i], column[i]
                before = new <= kept
                columns[e, i] = new_at if before else at
                column[i] = at if before else new_at
                keys[e, i] = new if new < kept else kept
                key[i] = kept if new < kept else new


@jit
def nearest_rows(products, squares, anchor_squares, rounding, indices, distances, doubtful):
    """Write the nearest anchors of each row, nearest first, and their squared distances.

    `products` is (m, n). `doubtful` tells where so little is left of a sum of squares that rounding
    counts.
    """
    n, k = indices.shape
    room = nearest_room(products, k)
    keys, columns, _, _ = room
    step = rows_together(products)
    for first in range(0, n, step):
        last = min(n, first + step)
        nearest(anchor_squares, products, first, last, room)
        for i in range(first, last):
            doubtful[i] = False
            for e in range(k):
                at = int(columns[e, i - first])
                distance = keys[e, i - first] + squares[i]
                doubtful[i] |= distance <= rounding * (squares[i] + anchor_squares[at])
                indices[i, e], distances[i, e] = at, max(distance, products.dtype.type(0))
