"""Compiled pass of stochastic gradient descent for locally linear SVMs with given codes."""

from __future__ import annotations

import math

import numpy as np

from loclin.engine.codes import add_batch, code_scores, product_room
from loclin.engine.jit import jit
from loclin.engine.losses import loss_slope, loss_value
from loclin.engine.moving_anchors import average_anchors, code_batch, move_anchors
from loclin.engine.rows import SMALLEST_SCALE, gather, row_buffer


@jit
def _find_slopes(rows, y, weights, scores, loss, competing, slopes):
    """Losses of a batch, and what every row asks of every score; returns (losses, any slope).

    One against the rest, every scorer has a problem of its own (one scorer: label 1 against 0).
    Where the classes compete, the loss is that of the true class's lead over the best other.
    """
    s = scores.shape[1]
    total, moved = 0.0, False
    for i in range(rows.shape[0]):
        label, weight = y[rows[i]], weights[rows[i]]
        if competing:
            rival, best = 0, -math.inf
            for k in range(s):
                slopes[i, k] = 0
                if k != label and scores[i, k] > best:
                    rival, best = k, scores[i, k]
            margin = scores[i, label] - best
            total += weight * loss_value(loss, margin)
            slope = weight * loss_slope(loss, margin)
            slopes[i, label], slopes[i, rival] = -slope, slope
            moved |= slope != 0
        else:
            for k in range(s):
                sign = 1.0 if label == (k if s > 1 else 1) else -1.0
                margin = sign * scores[i, k]
                total += weight * loss_value(loss, margin)
                slope = weight * loss_slope(loss, margin)
                slopes[i, k] = -sign * slope
                moved |= slope != 0
    return total, moved


@jit
def row_losses(scores, y, loss, out):
    """Losses of the rows, one class against the rest, summed over the scorers."""
    s = scores.shape[1]
    for i in range(scores.shape[0]):
        out[i] = 0
        for k in range(s):
            sign = 1.0 if y[i] == (k if s > 1 else 1) else -1.0
            out[i] += loss_value(loss, sign * scores[i, k])


@jit
def sgd_pass(X, codes, anchors, y, weights, order, W, b, g, sums, averaged, t, alpha, loss,
             competing, batch, local, extra, penalize_intercept):  # fmt: skip
    """One pass over the rows in `order`, in place: steps 1 / (alpha t), shrinkage (1 - 1 / t).

    The rows of a batch are scored together, before any of them updates the weights; their steps
    telescope to the last one's, 1 / (alpha t_end), and the old weights shrink by t_start / t_end.
    With batch = 1 this is Algorithm 1 of LL-SVM. `local` and `extra` tell which intercepts there
    are: one for each model, one for each scorer.

    The weights are scale * W. Averaging keeps ``sums = sum of c * update`` where c sums the scales
    before the update; then the sum of all iterates is c * W - sums.

    Returns (t, averaged, sum of weighted losses); `averaged` is (c, number of steps).
    """
    sum_W, sum_b, sum_g = sums
    averaging = sum_b.shape[0] > 0
    c, n_averaged = averaged
    s, dtype = g.shape[0], b.dtype.type
    buffer = row_buffer(X, batch, W.shape[1])
    room = product_room(X, codes, batch, b.shape[0] // s)
    responses = np.empty((batch, b.shape[0]), b.dtype)
    scores, slopes = np.empty((batch, s), b.dtype), np.empty((batch, s), b.dtype)
    scale, total_loss = 1.0, 0.0
    for first in range(0, order.shape[0], batch):
        rows = order[first : min(first + batch, order.shape[0])]
        n = rows.shape[0]
        gather(X, rows, buffer)
        code_batch(anchors, rows, codes)
        code_scores(X, rows, buffer, codes, W, dtype(scale), b, responses, scores)
        if extra:
            for i in range(n):
                for k in range(s):
                    scores[i, k] += g[k]
        losses, moved = _find_slopes(rows, y, weights, scores, loss, competing, slopes)
        total_loss += losses

        shrink = t / (t + n)
        t += n
        if shrink > 0.0:
            scale *= shrink
        else:
            W[:] = 0
        if penalize_intercept:
            b *= dtype(shrink)
            g *= dtype(shrink)
        if moved:
            move_anchors(anchors, rows, codes, slopes, responses)
            slopes *= dtype(1.0 / (alpha * t))
            add_batch(X, rows, buffer, codes, slopes, W, b, g, dtype(1.0 / scale), sum_W, dtype(c),
                      local, room)  # fmt: skip
        if not extra:
            g[:] = 0
        if scale < SMALLEST_SCALE:
            W *= dtype(scale)
            c /= scale
            scale = 1.0
        if averaging:
            c += scale * n
            n_averaged += n
            for j in range(b.shape[0]):
                sum_b[j] += dtype(n) * b[j]
            for k in range(s):
                sum_g[k] += dtype(n) * g[k]
            average_anchors(anchors, n)
    W *= dtype(scale)
    return t, (c / scale, n_averaged), total_loss
