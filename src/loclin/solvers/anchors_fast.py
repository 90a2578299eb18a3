"""Compiled half of the anchors that learn: codes made batch by batch, and the anchors' steps.

A pass of `sgd_fast` takes them as an argument, or None where the codes are fixed. The codes are the
parts of a CSR matrix with k entries a row, which are written anew whenever the row comes up.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from loclin._jit import jit
from loclin._nearest_fast import nearest, nearest_room, rows_together
from loclin.solvers.codes_fast import add_code
from loclin.solvers.rows_fast import JIT_OPTIONS, gather, is_dense, score


class MovingAnchors(NamedTuple):
    """Anchors of localised soft assignment, as a pass takes them.

    `V` has the layout of weights, one output an anchor, and `gradient` has it too; `history` sums
    the squared lengths of the gradients (AdaGrad: one number an anchor, and a last one for the
    logarithm of the bandwidth). `rates` are the step of the anchors, in units of length, and that
    of the logarithm of the bandwidth. `sums` is like V, or empty where nothing is averaged.
    """

    X: Any
    V: Any
    squares: Any  # (m,) squared lengths
    bandwidth: Any  # (1,)
    rates: Any  # (2,)
    history: Any  # (m + 1,)
    gradient: Any
    pulls: Any  # (n * k,) like the values of the codes
    buffer: Any
    products: Any  # (m, batch)
    sums: Any
    sum_log_bandwidth: Any  # (1,)


def code_batch(anchors, rows, codes):
    """Write the codes of these rows."""


def move_anchors(anchors, rows, codes, slopes, responses):
    """Take the anchors' step (eqs. 13 to 16), derived afresh.

    `slopes` is what every row asks of every score, the negative slope of its loss. With r_yj what
    model j says and f_y the score, a row pulls anchor j by ``sum_y slope_y code_j (r_yj - f_y)``:
    the loss falls along ``2 bandwidth pull (x - v_j)``, and along ``pull log code_j`` summed over
    the anchors for the logarithm of the bandwidth.
    """


def average_anchors(anchors, n):
    """Count the anchors n times into the sums."""


@jit
def soften(bandwidth, keys):
    """Rising squared distances, up to a constant, to weights ``exp(-bandwidth distance) / sum``."""
    rate, least = keys.dtype.type(bandwidth), keys[0]
    total = keys.dtype.type(0)
    for e in range(keys.shape[0]):
        keys[e] = math.exp(rate * (least - keys[e]))
        total += keys[e]
    for e in range(keys.shape[0]):
        keys[e] /= total


def multiply_anchors(X, rows, anchors, products):
    """Products of all anchors with the rows, (m, len(rows))."""


@overload(multiply_anchors, jit_options=JIT_OPTIONS)
def _multiply_anchors(X, rows, anchors, products):
    if is_dense(X):

        def one_product(X, rows, anchors, products):
            gather(X, rows, anchors.buffer)
            np.dot(anchors.V, anchors.buffer[: rows.shape[0]].T, products)

        return one_product

    def row_by_row(X, rows, anchors, products):
        by_row = np.empty((rows.shape[0], products.shape[0]), products.dtype)
        score(X, rows, anchors.buffer, anchors.V, 0, products.shape[0], by_row)
        products[:] = by_row.T

    return row_by_row


@overload(code_batch, jit_options=JIT_OPTIONS)
def _code_batch(anchors, rows, codes):
    if isinstance(anchors, types.NoneType):
        return lambda anchors, rows, codes: None

    def soft_assignment(anchors, rows, codes):
        values, columns, starts = codes
        n, m, k = rows.shape[0], anchors.squares.shape[0], starts[1] - starts[0]
        products = anchors.products.reshape(-1)[: m * n].reshape((m, n))
        multiply_anchors(anchors.X, rows, anchors, products)
        room, step = nearest_room(products, k), rows_together(products)
        keys, nearest_columns, _, _ = room
        for first in range(0, n, step):
            last = min(n, first + step)
            nearest(anchors.squares, products, first, last, room)
            for i in range(first, last):
                at = starts[rows[i]]
                for e in range(k):
                    values[at + e] = keys[e, i - first]
                    columns[at + e] = int(nearest_columns[e, i - first])
                soften(anchors.bandwidth[0], values[at : at + k])

    return soft_assignment


@overload(average_anchors, jit_options=JIT_OPTIONS)
def _average_anchors(anchors, n):
    if isinstance(anchors, types.NoneType):
        return lambda anchors, n: None

    def average(anchors, n):
        V, sums = anchors.V, anchors.sums
        for j in range(sums.shape[0]):
            for f in range(sums.shape[1]):
                sums[j, f] += n * V[j, f]
        anchors.sum_log_bandwidth[0] += n * math.log(anchors.bandwidth[0])

    return average


@overload(move_anchors, jit_options=JIT_OPTIONS)
def _move_anchors(anchors, rows, codes, slopes, responses):
    if isinstance(anchors, types.NoneType):
        return lambda anchors, rows, codes, slopes, responses: None

    def move(anchors, rows, codes, slopes, responses):
        values, columns, starts = codes
        s, m = slopes.shape[1], anchors.squares.shape[0]
        pulls = anchors.pulls, columns, starts
        anchors.gradient[:] = 0
        total = np.zeros(m, values.dtype)
        of_bandwidth = 0.0
        for i in range(rows.shape[0]):
            first, stop = starts[rows[i]], starts[rows[i] + 1]
            k = stop - first
            for e in range(first, stop):
                anchors.pulls[e] = 0
            moved = False
            for y in range(s):
                slope = slopes[i, y]
                if slope != 0:
                    moved = True
                    mean = values.dtype.type(0)
                    for e in range(k):
                        mean += values[first + e] * responses[i, y * k + e]
                    for e in range(k):
                        anchors.pulls[first + e] += slope * (responses[i, y * k + e] - mean)
            if moved:
                for e in range(first, stop):
                    anchors.pulls[e] *= values[e]
                    total[columns[e]] += anchors.pulls[e]
                    if values[e] > 0:
                        of_bandwidth += anchors.pulls[e] * math.log(values[e])
                add_code(anchors.X, rows[i], anchors.buffer, i, pulls, 0, 0, anchors.gradient, 1)
        descend(anchors.X, anchors, total)
        if of_bandwidth**2 > 0:
            anchors.history[m] += of_bandwidth**2
            step = anchors.rates[1] * of_bandwidth / math.sqrt(anchors.history[m])
            anchors.bandwidth[0] *= math.exp(step)

    return move


def descend(X, anchors, total):
    """AdaGrad step of every anchor, the gradient being ``2 bandwidth (gradient - total V)``."""


@overload(descend, jit_options=JIT_OPTIONS)
def _descend(X, anchors, total):
    if is_dense(X):

        def by_anchor(X, anchors, total):
            V, G, history = anchors.V, anchors.gradient, anchors.history
            unit = 2 * anchors.bandwidth[0]
            for j in range(V.shape[0]):
                length = 0.0
                for f in range(V.shape[1]):
                    G[j, f] = unit * (G[j, f] - total[j] * V[j, f])
                    length += G[j, f] * G[j, f]
                if length > 0:
                    history[j] += length
                    step = V.dtype.type(anchors.rates[0] / math.sqrt(history[j]))
                    square = V.dtype.type(0)
                    for f in range(V.shape[1]):
                        V[j, f] += step * G[j, f]
                        square += V[j, f] * V[j, f]
                    anchors.squares[j] = square

        return by_anchor

    def by_feature(X, anchors, total):
        V, G, history = anchors.V, anchors.gradient, anchors.history
        unit = 2 * anchors.bandwidth[0]
        lengths = np.zeros(V.shape[1])
        for f in range(V.shape[0]):
            for j in range(V.shape[1]):
                G[f, j] = unit * (G[f, j] - total[j] * V[f, j])
                lengths[j] += G[f, j] * G[f, j]
        steps = np.zeros(V.shape[1], V.dtype)
        for j in range(V.shape[1]):
            if lengths[j] > 0:
                history[j] += lengths[j]
                steps[j] = anchors.rates[0] / math.sqrt(history[j])
        anchors.squares[:] = 0
        for f in range(V.shape[0]):
            for j in range(V.shape[1]):
                V[f, j] += steps[j] * G[f, j]
                anchors.squares[j] += V[f, j] * V[f, j]

    return by_feature
