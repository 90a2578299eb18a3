"""SAPL's coder, compiled: codes written batch by batch, and the anchors' steps.

The codes are the parts of a CSR matrix with k entries a row, written anew whenever the
row comes up.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from loclin.engine.coders import (
    average_coder,
    code_places,
    is_kind,
    move_coder,
    write_codes,
)
from loclin.engine.codes import add_code
from loclin.engine.jit import OPTIONS, inner
from loclin.engine.nearest import nearest, nearest_room, rows_together
from loclin.engine.rows import SMALLEST_SCALE, gather, is_dense, score

# Gradients that sum to so little, squared, of what the others do may be rounding errors.
_NOISE = 1e-8


class MovingAnchors(NamedTuple):
    """Anchors of localised soft assignment, as a pass takes them.

    `V` has the layout of weights, one output an anchor, and `gradient`, all 0 between
    batches, has it too. A batch of sparse rows costs what its nonzeros cost, whatever the
    number of features: the anchors are ``scales * V``, so that they shrink without a pass
    over V, and their sum over the steps is ``counts * V + sums``.
    """

    codes: Any  # parts of a CSR matrix, k entries a row: see `room_for_codes`
    X: Any  # compiled form of the rows (n, d) as the anchors see them
    V: NDArray  # shape: (m, d) for dense rows, (d, m) for sparse rows
    squares: NDArray  # shape: (m,), squared lengths of the anchors
    bandwidth: NDArray  # shape: (1,)
    # shape: (3,), steps of an anchor, a length; of logarithms: bandwidth, stretches
    rates: NDArray
    history: NDArray  # shape: (m + 1 + d,), AdaGrad: squared gradients of the same
    pace: float  # gradients that each counts as there
    gradient: NDArray  # shape of V
    # shape: (d,), about which all anchors together are stretched along a feature
    centre: NDArray
    stretch: NDArray  # shape: (d,), or (0,): no feature is stretched
    pulls: NDArray  # shape of the values of the codes
    buffer: NDArray  # shape: (batch, d) for dense rows
    products: NDArray  # shape: (m, batch)
    averages: bool
    sums: NDArray  # shape of V, or empty
    sum_log_bandwidth: NDArray  # shape: (1,)
    scales: NDArray  # shape: (m,)
    counts: NDArray  # shape: (m,)
    # shape: (m,), squared lengths of V, float64: differences must not be rounding
    lengths: NDArray
    touched: NDArray  # shape: (d,), features of the batch; none between batches


@inner
def soften(bandwidth, keys):
    """Rising squared distances, up to a constant, to weights
    ``exp(-bandwidth distance) / sum``.
    """
    rate, least = keys.dtype.type(bandwidth), keys[0]
    total = keys.dtype.type(0)
    for e in range(keys.shape[0]):
        keys[e] = math.exp(rate * (least - keys[e]))
        total += keys[e]
    for e in range(keys.shape[0]):
        keys[e] /= total


def multiply_anchors(X, rows, anchors, products):
    """Products of all anchors with the rows, (m, len(rows))."""


@overload(multiply_anchors, jit_options=OPTIONS)
def _multiply_anchors(X, rows, anchors, products):
    if is_dense(X):

        def one_product(X, rows, anchors, products):
            gather(X, rows, anchors.buffer)
            np.dot(anchors.V, anchors.buffer[: rows.shape[0]].T, products)

        return one_product

    def row_by_row(X, rows, anchors, products):
        by_row = np.empty((rows.shape[0], products.shape[0]), products.dtype)
        score(X, rows, anchors.buffer, anchors.V, 0, products.shape[0], by_row)
        for j in range(products.shape[0]):
            scale = products.dtype.type(anchors.scales[j])
            for i in range(products.shape[1]):
                products[j, i] = scale * by_row[i, j]

    return row_by_row


@overload(write_codes, jit_options=OPTIONS)
def _write_soft_assignment(coder, rows):
    if not is_kind(coder, MovingAnchors):
        return None

    def soft_assignment(coder, rows):
        anchors = coder
        values, columns, starts = anchors.codes
        n, m, k = rows.shape[0], anchors.squares.shape[0], starts[1] - starts[0]
        products = anchors.products.reshape(-1)[: m * n].reshape((m, n))
        multiply_anchors(anchors.X, rows, anchors, products)
        room, step = nearest_room(products, k), rows_together(products)
        places = code_places(anchors.codes, rows)
        keys, nearest_columns = room[:2]
        for first in range(0, n, step):
            last = min(n, first + step)
            nearest(anchors.squares, products, first, last, room)
            for i in range(first, last):
                at = starts[places[i]]
                for e in range(k):
                    values[at + e] = keys[e, i - first]
                    columns[at + e] = int(nearest_columns[e, i - first])
                soften(anchors.bandwidth[0], values[at : at + k])

    return soft_assignment


@overload(average_coder, jit_options=OPTIONS)
def _average_anchors(coder, n):
    if not is_kind(coder, MovingAnchors):
        return None

    def average(coder, n):
        if coder.averages:
            count(coder.X, coder, n)
            coder.sum_log_bandwidth[0] += n * math.log(coder.bandwidth[0])

    return average


def count(X, anchors, n):
    """Count the anchors n times."""


@overload(count, jit_options=OPTIONS)
def _count(X, anchors, n):
    if is_dense(X):

        def all_values(X, anchors, n):
            V, sums = anchors.V, anchors.sums
            for j in range(sums.shape[0]):
                for f in range(sums.shape[1]):
                    sums[j, f] += n * V[j, f]

        return all_values

    def scales_only(X, anchors, n):
        for j in range(anchors.counts.shape[0]):
            anchors.counts[j] += n * anchors.scales[j]

    return scales_only


@overload(move_coder, jit_options=OPTIONS)
def _move_anchors(coder, rows, slopes, responses):
    """Take the anchors' step (equations 13 to 16), derived afresh.

    With r_yj what model j says and f_y the score, a row pulls anchor j by
    ``sum_y slope_y code_j (r_yj - f_y)``: the loss falls along
    ``2 bandwidth pull (x - v_j)``, and along ``pull log code_j`` summed over the anchors
    for the logarithm of the bandwidth.
    """
    if not is_kind(coder, MovingAnchors):
        return None

    def move(coder, rows, slopes, responses):
        anchors = coder
        values, columns, starts = anchors.codes
        s, m = slopes.shape[1], anchors.squares.shape[0]
        pulls = anchors.pulls, columns, starts
        total = np.zeros(m, values.dtype)
        of_bandwidth, places = 0.0, code_places(anchors.codes, rows)
        for i in range(rows.shape[0]):
            first, stop = starts[places[i]], starts[places[i] + 1]
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
                        anchors.pulls[first + e] += slope * (
                            responses[i, y * k + e] - mean
                        )
            if moved:
                for e in range(first, stop):
                    anchors.pulls[e] *= values[e]
                    total[columns[e]] += anchors.pulls[e]
                    if values[e] > 0:
                        of_bandwidth += anchors.pulls[e] * math.log(values[e])
                add_code(
                    anchors.X,
                    places[i],
                    anchors.buffer,
                    i,
                    pulls,
                    0,
                    0,
                    anchors.gradient,
                    1,
                )
        descend(anchors.X, rows, anchors, total)
        if of_bandwidth**2 > 0:
            anchors.history[m] += anchors.pace * of_bandwidth**2
            step = anchors.rates[1] * of_bandwidth / math.sqrt(anchors.history[m])
            anchors.bandwidth[0] *= math.exp(step)

    return move


@inner
def _least_history(anchors):
    """History below which an anchor rests:
    AdaGrad's first step is long, whatever it follows.
    """
    return _NOISE * anchors.history[: anchors.squares.shape[0]].mean()


@inner
def _find_stretch(anchors, spread):
    """AdaGrad step of every feature's stretch, in place of the gradient by its logarithm.

    `spread` is the squared distance of all anchors to the centre, by feature: its sum is
    kept, as how sharp codes are is for the bandwidth to tell. Else anchors that move
    together along features which tell nothing blur all codes before the bandwidth can
    follow.
    """
    stretch, history = anchors.stretch, anchors.history[anchors.squares.shape[0] + 1 :]
    for f in range(stretch.shape[0]):
        history[f] += np.float64(stretch[f]) ** 2
    least, before, after = _NOISE * history.mean(), 0.0, 0.0
    for f in range(stretch.shape[0]):
        moves = stretch[f] != 0 and history[f] > least
        step = anchors.rates[2] * stretch[f] / math.sqrt(history[f]) if moves else 0.0
        stretch[f] = math.exp(step)
        before += spread[f]
        after += spread[f] * stretch[f] ** 2
    if after > 0:
        stretch *= stretch.dtype.type(math.sqrt(before / after))


@inner
def _fold(anchors, j):
    """Multiply an anchor's scale out, and its count."""
    V, sums, scale = anchors.V, anchors.sums, anchors.scales[j]
    for f in range(V.shape[0]):
        if sums.shape[0] > 0:
            sums[f, j] += V.dtype.type(anchors.counts[j]) * V[f, j]
        V[f, j] *= V.dtype.type(scale)
    anchors.counts[j], anchors.scales[j] = 0, 1
    anchors.lengths[j] *= scale * scale


@inner
def _stretch_by_feature(anchors):
    """Stretch anchors of sparse rows,
    which multiplies their scales out, and their counts.
    """
    V, sums, scales, counts = anchors.V, anchors.sums, anchors.scales, anchors.counts
    anchors.lengths[:] = 0
    for f in range(V.shape[0]):
        centre = anchors.centre[f]
        for j in range(V.shape[1]):
            if sums.shape[0] > 0:
                sums[f, j] += V.dtype.type(counts[j]) * V[f, j]
            v = V.dtype.type(scales[j]) * V[f, j]
            V[f, j] = centre + anchors.stretch[f] * (v - centre)
            anchors.lengths[j] += np.float64(V[f, j]) ** 2
    counts[:], scales[:] = 0, 1


@inner
def _features_of(X, rows, touched):
    """Features of these rows, each once."""
    _, indices, indptr = X
    features, n = np.empty(touched.shape[0], np.int64), 0
    for row in rows:
        for f in indices[indptr[row] : indptr[row + 1]]:
            if not touched[f]:
                touched[f], features[n] = True, f
                n += 1
    return features[:n]


def descend(X, rows, anchors, total):
    """AdaGrad step of every anchor, the gradient being
    ``2 bandwidth (gradient - total V)``.

    Then that of all anchors together along each feature, if they are stretched.
    """


@overload(descend, jit_options=OPTIONS)
def _descend(X, rows, anchors, total):
    return _descend_by_anchor if is_dense(X) else _descend_by_feature


def _descend_by_anchor(X, rows, anchors, total):
    V, G, history = anchors.V, anchors.gradient, anchors.history
    centre, stretch = anchors.centre, anchors.stretch
    unit, least = 2 * anchors.bandwidth[0], _least_history(anchors)
    spread = np.zeros_like(stretch)
    stretch[:] = 0
    for j in range(V.shape[0]):
        length = 0.0
        for f in range(V.shape[1]):
            G[j, f] = unit * (G[j, f] - total[j] * V[j, f])
            length += G[j, f] * G[j, f]
        for f in range(stretch.shape[0]):
            away = V[j, f] - centre[f]
            stretch[f] += G[j, f] * away
            spread[f] += away * away
        history[j] += anchors.pace * length
        if length > 0 and history[j] > least:
            step = V.dtype.type(anchors.rates[0] / math.sqrt(history[j]))
            square = V.dtype.type(0)
            for f in range(V.shape[1]):
                V[j, f] += step * G[j, f]
                square += V[j, f] * V[j, f]
            anchors.squares[j] = square
        G[j] = 0
    _find_stretch(anchors, spread)
    if stretch.shape[0] > 0 and anchors.rates[2] > 0:
        for j in range(V.shape[0]):
            square = V.dtype.type(0)
            for f in range(V.shape[1]):
                V[j, f] = centre[f] + stretch[f] * (V[j, f] - centre[f])
                square += V[j, f] * V[j, f]
            anchors.squares[j] = square


def _descend_by_feature(X, rows, anchors, total):
    V, G, scales, lengths = anchors.V, anchors.gradient, anchors.scales, anchors.lengths
    unit, least, m = 2 * anchors.bandwidth[0], _least_history(anchors), V.shape[1]
    squares, steps = np.zeros(m), np.zeros(m, V.dtype)
    stretch, spread = anchors.stretch, np.zeros_like(anchors.stretch)
    for f in range(stretch.shape[0]):
        stretch[f] = 0
        for j in range(m):
            v = V.dtype.type(scales[j]) * V[f, j]
            away = v - anchors.centre[f]
            stretch[f] += unit * (G[f, j] - total[j] * v) * away
            spread[f] += away * away
    features = _features_of(X, rows, anchors.touched)
    for f in features:
        for j in range(m):
            slope = G[f, j] - total[j] * scales[j] * V[f, j]
            squares[j] += slope * slope
            lengths[j] -= np.float64(V[f, j]) ** 2
    for j in range(m):  # lengths are those of the other features, until the last loop
        lengths[j] = max(0.0, lengths[j])
        squares[j] = unit**2 * (squares[j] + (total[j] * scales[j]) ** 2 * lengths[j])
        anchors.history[j] += anchors.pace * squares[j]
        if squares[j] > 0 and anchors.history[j] > least:
            step = unit * anchors.rates[0] / math.sqrt(anchors.history[j])
            scales[j] *= 1 - step * total[j]
            if not SMALLEST_SCALE < abs(scales[j]) < 1 / SMALLEST_SCALE:
                _fold(anchors, j)
            steps[j] = step / scales[j]
    averaging = anchors.sums.shape[0] > 0
    for f in features:
        anchors.touched[f] = False
        for j in range(m):
            added = steps[j] * G[f, j]
            V[f, j] += added
            lengths[j] += np.float64(V[f, j]) ** 2
            if averaging:
                anchors.sums[f, j] -= anchors.counts[j] * added
            G[f, j] = 0
    _find_stretch(anchors, spread)
    if stretch.shape[0] > 0 and anchors.rates[2] > 0:
        _stretch_by_feature(anchors)
    for j in range(m):
        anchors.squares[j] = scales[j] ** 2 * lengths[j]
