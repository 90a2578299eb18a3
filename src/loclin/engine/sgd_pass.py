"""Compiled pass of stochastic gradient descent, whoever writes the codes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from loclin.engine.coders import average_coder, code_places, move_coder, write_codes
from loclin.engine.codes import Intercepts, add_batch, code_scores, product_room
from loclin.engine.iterates import averaged, multiplied_out, shrunk
from loclin.engine.jit import inner, jit
from loclin.engine.losses import check_loss, loss_slope, loss_value
from loclin.engine.rows import gather, row_buffer
from loclin.engine.targets import sign_of


class PassSettings(NamedTuple):
    """What a pass needs to know besides the data.

    `competing`: Crammer and Singer's loss instead of one against the rest.
    """

    alpha: float
    loss: Any  # int or NamedTuple
    batch_size: int
    competing: bool
    intercepts: Intercepts
    penalize_intercept: bool = True


@inner
def _find_slopes(rows, y, row_weights, scores, loss, competing, slopes):
    """Losses of a batch, and what every row asks of every score;
    returns (losses, any slope).

    One against the rest, every scorer has a problem of its own. Where the classes
    compete, the loss is that of the true class's lead over the best other.
    """
    s = scores.shape[1]
    total, moved = 0.0, False
    for i in range(rows.shape[0]):
        label, weight = y[rows[i]], row_weights[rows[i]]
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
                sign = sign_of(label, k, s)
                margin = sign * scores[i, k]
                total += weight * loss_value(loss, margin)
                slope = weight * loss_slope(loss, margin)
                slopes[i, k] = -sign * slope
                moved |= slope != 0
    return total, moved


@jit
def row_losses(scores, y, loss, out):
    """Losses of the rows, one class against the rest, summed over the scorers."""
    check_loss(loss)
    s = scores.shape[1]
    for i in range(scores.shape[0]):
        out[i] = 0
        for k in range(s):
            out[i] += loss_value(loss, sign_of(y[i], k, s) * scores[i, k])


@jit
def sgd_pass(X, coder, y, row_weights, order, weights, sums, progress, settings):
    """One pass over the rows in `order`, in place:
    steps 1 / (alpha t), shrinkage (1 - 1 / t).

    The rows of a batch are scored together, before any of them updates the weights;
    `iterates` has the bookkeeping. With batches of one row this is Algorithm 1 of LL-SVM.

    Parameters
    ----------
    X : compiled form of {ndarray, csr} of shape (n, d)
    coder : NamedTuple
        See `coders`.
    y, row_weights, order : ndarray of shape (n,)
        Labels 0 .. c - 1, weights, and the order in which the rows come.
    weights, sums : Weights
        Moved; nothing is averaged where the sums are empty.
    progress : Progress
        With a scale of 1.
    settings : PassSettings

    Returns
    -------
    progress : tuple of float
        The fields of `Progress`.
    total_loss : float
        Sum of the weighted losses, as the rows met them.
    """
    check_loss(settings.loss)
    W = weights.W
    b = weights.b
    g = weights.g
    codes = coder.codes
    dtype = b.dtype.type
    batch = settings.batch_size
    s = g.shape[0]
    buffer = row_buffer(X, batch, W.shape[1])
    room = product_room(X, codes, batch, b.shape[0] // s)
    responses = np.empty((batch, b.shape[0]), b.dtype)
    scores, slopes = np.empty((batch, s), b.dtype), np.empty((batch, s), b.dtype)
    total_loss = 0.0
    for first in range(0, order.shape[0], batch):
        rows = order[first : min(first + batch, order.shape[0])]
        n = rows.shape[0]
        gather(X, rows, buffer)
        write_codes(coder, rows)
        # The places serve for the rows too: dense ones are read from the buffer.
        places = code_places(codes, rows)
        scale = dtype(progress.scale)
        code_scores(X, places, buffer, codes, W, scale, b, responses, scores)
        if settings.intercepts.extra:
            for i in range(n):
                for k in range(s):
                    scores[i, k] += g[k]
        losses, moved = _find_slopes(
            rows, y, row_weights, scores, settings.loss, settings.competing, slopes
        )
        total_loss += losses
        progress = shrunk(weights, progress, n, settings.penalize_intercept)
        if moved:
            move_coder(coder, rows, slopes, responses)
            slopes *= dtype(1.0 / (settings.alpha * progress.t))
            add_batch(X, places, buffer, codes, slopes, weights, sums, progress,
                      settings.intercepts, room)  # fmt: skip
        progress = averaged(weights, sums, progress, n)
        average_coder(coder, n)
    return multiplied_out(weights, progress), total_loss
