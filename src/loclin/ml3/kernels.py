"""Compiled loops of ML3: freezing the codes of the true classes, and one pass of SGD.

Local models are numbered class by class: models k * m .. k * m + m - 1 belong to class k.
"""

from __future__ import annotations

import math

import numpy as np

from loclin.engine.jit import jit
from loclin.engine.losses import loss_slope, loss_value
from loclin.engine.pooling import (
    argmax_code,
    best_class,
    pooled_norm,
    respond,
)
from loclin.engine.rows import (
    SMALLEST_SCALE,
    add_outer,
    gather,
    row_buffer,
    score,
    squared_norm,
)


@jit
def freeze_codes(X, order, class_starts, W, b, q, block, revive, codes):
    """Write the maximising code of every row's true class (equation 11), at the weights given.

    Where no response of the true class is positive, the maximiser is zero and the row can never
    pull its class back. With `revive` such a row is given to the class's strongest model. Any code
    in the ball bounds the class's score from below, so the convex problem still bounds ML3's loss.

    `order` lists the rows class by class, class k from class_starts[k]; one product per block of
    rows of a class, which makes 1/c of the products of a pass.
    """
    m, one = codes.shape[1], codes.dtype.type(1)
    buffer = row_buffer(X, block, W.shape[1])
    responses = np.empty((block, m), codes.dtype)
    powers, ones = np.empty_like(responses), np.ones(m, codes.dtype)
    sums = np.zeros((block, 1), codes.dtype)
    for k in range(class_starts.shape[0] - 1):
        for start in range(class_starts[k], class_starts[k + 1], block):
            rows = order[start : min(start + block, class_starts[k + 1])]
            n = rows.shape[0]
            gather(X, rows, buffer)
            score(X, rows, buffer, W, k * m, m, responses)
            respond(responses, n, one, b[k * m : (k + 1) * m], q, powers, ones, sums)
            for i in range(n):
                norm = pooled_norm(sums[i, 0], responses[i], 0, m, q)
                argmax_code(responses[i], 0, m, q, norm, codes[rows[i]])
                if revive and not norm > 0.0:
                    codes[rows[i], responses[i].argmax()] = 1


@jit
def _dot_code(code, row, first):
    total = code.dtype.type(0)
    for j in range(code.shape[0]):
        total += code[j] * row[first + j]
    return float(total)


@jit
def _rival(row, sums, code, n_classes, q, label, start):
    """Strongest wrong class and its score; in the starting pass every class has the row's code."""
    m = code.shape[0]
    if not start:
        return best_class(row, sums, n_classes, m, q, label)
    best, winner = -math.inf, 0
    for k in range(n_classes):
        if k != label:
            value = _dot_code(code, row, k * m)
            if value > best:
                best, winner = value, k
    return winner, best


@jit
def _find_updates(rows, y, weights, codes, responses, sums, q, loss, start, update):
    """Loss of a batch, and the two rank-one updates of every row that has a slope.

    Entry 2e of `update` is for the true class, 2e + 1 for the rival.
    """
    update_row, update_class, update_code = update
    m = codes.shape[1]
    total, found = 0.0, 0
    for i in range(rows.shape[0]):
        row, label, code = responses[i], y[rows[i]], codes[rows[i]]
        rival, rival_score = _rival(row, sums[i], code, sums.shape[1], q, label, start)
        margin = _dot_code(code, row, label * m) - rival_score
        total += weights[rows[i]] * loss_value(loss, margin)
        slope = code.dtype.type(weights[rows[i]] * loss_slope(loss, margin))
        if slope != 0:
            update_row[found], update_class[found] = i, label
            update_row[found + 1], update_class[found + 1] = i, rival
            if start:
                update_code[found + 1] = code
            else:
                argmax_code(row, rival * m, m, q, rival_score, update_code[found + 1])
            for j in range(m):
                update_code[found, j] = -slope * code[j]
                update_code[found + 1, j] *= slope
            found += 2
    return total, found


@jit
def _apply_updates(X, rows, buffer, update, found, W, scale, b, sum_W, c, step):
    """Add the updates of a batch; return a bound on the norm of what was added."""
    update_row, update_class, update_code = update
    dtype = b.dtype.type
    m, bound = update_code.shape[1], 0.0
    for e in range(found):
        i, offset, code = update_row[e], update_class[e] * m, update_code[e]
        row = rows[i]
        add_outer(X, row, buffer, i, code, offset, W, dtype(step / scale))
        if sum_W.shape[0] > 0:
            add_outer(X, row, buffer, i, code, offset, sum_W, dtype(c * step / scale))
        squared = 0.0
        for j in range(m):
            b[offset + j] += dtype(step) * code[j]
            squared += code[j] * code[j]
        bound += step * math.sqrt(squared * (squared_norm(X, row) + 1.0))
    return bound


@jit
def _norm(W, scale, b, with_intercept):
    total = 0.0
    for i in range(W.shape[0]):
        row_total = W.dtype.type(0)
        for f in range(W.shape[1]):
            row_total += W[i, f] * W[i, f]
        total += row_total
    total *= scale * scale
    if with_intercept:
        for j in range(b.shape[0]):
            total += b[j] * b[j]
    return math.sqrt(total)


@jit
def sgd_pass(X, y, weights, order, codes, W, b, sums, averaged, t, alpha, q, loss, radius, batch,
             start, penalize_intercept):  # fmt: skip
    """One pass of stochastic gradient descent over the rows in `order` (Algorithm 2), in place.

    A batch is scored by one product; then its rows take the steps s = t + 1, t + 2, ... of size
    1 / (alpha s). With shrinkage (1 - 1 / s) those steps telescope: after the batch every row's
    step has become 1 / (alpha s_end), and the old weights have shrunk by s_start / s_end. With
    batch = 1 this is Algorithm 2 to rounding.

    The weights are scale * W. Averaging keeps ``sums = sum of c * update`` where c sums the scales
    before the update; then the sum of all iterates is c * W - sums, at the price of the updates
    only.

    Returns (t, averaged, sum of weighted losses, updates / 2); `averaged` is (c, number of steps).
    """
    sum_W, sum_b = sums
    averaging = sum_W.shape[0] > 0
    c, n_averaged = averaged
    n, m = order.shape[0], codes.shape[1]
    dtype = codes.dtype.type
    buffer = row_buffer(X, batch, W.shape[1])
    responses = np.empty((batch, b.shape[0]), codes.dtype)
    powers, ones = np.empty_like(responses), np.ones(m, codes.dtype)
    class_sums = np.empty((batch, b.shape[0] // m), codes.dtype)
    update = (
        np.empty(2 * batch, np.int64),
        np.empty(2 * batch, np.int64),
        np.empty((2 * batch, m), codes.dtype),
    )
    scale, total_loss, n_updates = 1.0, 0.0, 0
    bound = _norm(W, scale, b, penalize_intercept)
    for first in range(0, n, batch):
        rows = order[first : min(first + batch, n)]
        gather(X, rows, buffer)
        score(X, rows, buffer, W, 0, b.shape[0], responses)
        respond(responses, rows.shape[0], dtype(scale), b, q, powers, ones, class_sums)
        batch_loss, found = _find_updates(
            rows, y, weights, codes, responses, class_sums, q, loss, start, update
        )
        total_loss += batch_loss
        n_updates += found // 2

        shrink = t / (t + rows.shape[0])
        t += rows.shape[0]
        if shrink > 0.0:
            scale *= shrink
        else:
            W[:] = 0
        bound *= shrink
        if penalize_intercept:
            b *= dtype(shrink)
        step = 1.0 / (alpha * t)
        bound += _apply_updates(X, rows, buffer, update, found, W, scale, b, sum_W, c, step)

        # Projection onto the ball that holds the optimum. The true norm is computed only when the
        # triangle inequality cannot exclude that it left the ball.
        if bound > radius:
            bound = _norm(W, scale, b, penalize_intercept)
            if bound > radius:
                scale *= radius / bound
                if penalize_intercept:
                    b *= dtype(radius / bound)
                bound = radius
        if scale < SMALLEST_SCALE:
            W *= dtype(scale)
            c /= scale
            scale = 1.0
        if averaging:
            c += scale * rows.shape[0]
            n_averaged += rows.shape[0]
            for j in range(b.shape[0]):
                sum_b[j] += dtype(rows.shape[0]) * b[j]
    W *= dtype(scale)
    return t, (c / scale, n_averaged), total_loss, n_updates
