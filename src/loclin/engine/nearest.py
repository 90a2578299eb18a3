"""Compiled selection of the nearest anchors from the products of anchors and rows.

Rows run along the last axis, so that most steps are the same for many of them: vector
operations, without branches to mispredict. Many anchors are taken in groups: the k
nearest are in the k groups whose nearest ones are nearest, and only these are looked
through, row by row.
"""

from __future__ import annotations

import math

import numpy as np

from loclin.engine.jit import inner, jit

_LEAST_GROUP = 4  # in single precision, groups of fewer anchors save no time
# One number of all rows that are looked at together takes so many bytes: products
# stay in the cache.
_BYTES = 256


@inner
def rows_together(products):
    """Return how many rows `nearest` takes at once."""
    return _BYTES // products.itemsize


@inner
def nearest_room(products, k):
    """Make room for `nearest`: numbers and columns of the k nearest,
    of what is in hand, groups.
    """
    n, dtype = rows_together(products), products.dtype
    numbers, columns = np.empty((k, n), dtype), np.empty((k, n), dtype)
    return numbers, columns, np.empty(n, dtype), np.empty(n, dtype), np.empty(k, np.int64)


@inner
def nearest(squares, products, first, last, room):
    """Find the columns of the k least ``squares - 2 products``,
    nearest first, and these numbers.

    `products` is (m, n), of which the rows ``first .. last - 1`` count, at most
    `rows_together`. Of equally near anchors, the one with the smaller column is in front.
    Columns are written as floating numbers: all parts of a vector have one size.
    """
    keys, columns, key, column, groups = room
    m = squares.shape[0]
    k = keys.shape[0]
    n = last - first
    size = int(math.sqrt(m / k))
    size = size if size >= _LEAST_GROUP else 1
    keys[:] = math.inf
    columns[:] = 0
    for group in range((m - 1) // size, -1, -1):
        key[:] = math.inf
        column[:] = group
        for j in range(group * size, min(m, group * size + size)):
            for i in range(n):
                new = squares[j] - products.dtype.type(2) * products[j, first + i]
                key[i] = new if new < key[i] else key[i]
        _insert(key, column, n, keys, columns)
    if size > 1:
        for i in range(n):
            most = keys[k - 1, i]
            for e in range(k):
                groups[e] = int(columns[e, i])
                keys[e, i], columns[e, i] = math.inf, 0
            for group in groups:
                for j in range(group * size, min(m, group * size + size)):
                    new = squares[j] - products.dtype.type(2) * products[j, first + i]
                    if new <= most:
                        _insert_one(new, j, keys[:, i], columns[:, i])


@inner
def _insert(key, column, n, keys, columns):
    """Insert a number and its column into those of each row; equal ones go to the front."""
    for e in range(keys.shape[0]):
        for i in range(n):
            kept = keys[e, i]
            at = columns[e, i]
            new = key[i]
            new_at = column[i]
            before = new <= kept
            columns[e, i] = new_at if before else at
            column[i] = at if before else new_at
            keys[e, i] = new if new < kept else kept
            key[i] = kept if new < kept else new


@inner
def _insert_one(new, j, keys, columns):
    """Insert a number and its column into those of one row."""
    e = keys.shape[0]
    while e > 0 and (new < keys[e - 1] or (new == keys[e - 1] and j < columns[e - 1])):
        e -= 1
        if e + 1 < keys.shape[0]:
            keys[e + 1], columns[e + 1] = keys[e], columns[e]
    if e < keys.shape[0]:
        keys[e], columns[e] = new, j


@jit
def nearest_rows(
    products, squares, anchor_squares, rounding, indices, distances, doubtful
):
    """Write the nearest anchors of each row, nearest first, and their squared distances.

    `products` is (m, n). `doubtful` tells where so little is left of a sum of squares
    that rounding counts.
    """
    n, k = indices.shape
    room = nearest_room(products, k)
    keys, columns = room[:2]
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
