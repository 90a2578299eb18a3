"""Compiled loops of ML3: freezing the codes of the true classes, and one pass of SGD.

Local models are numbered class by class: models k * m .. k * m + m - 1 belong to class k.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.engine.iterates import averaged, multiplied_out, rescaled, shrunk
from loclin.engine.jit import inner, jit
from loclin.engine.losses import check_loss, loss_slope, loss_value
from loclin.engine.pooling import (
    argmax_code,
    best_class,
    pooled_norm,
    respond,
)
from loclin.engine.rows import (
    add_outer,
    gather,
    row_buffer,
    score,
    squared_norm,
)


@inner
def _code_to_freeze(row, total, first, q, revive, code):
    """Write the maximising code of a class whose responses begin
    at `first`; see `freeze_codes`.
    """
    m = code.shape[0]
    norm = pooled_norm(total, row, first, m, q)
    argmax_code(row, first, m, q, norm, code)
    if revive and not norm > 0.0:
        code[row[first : first + m].argmax()] = 1


@jit
def freeze_codes(X, order, class_starts, W, b, q, block, revive, codes):
    """Write the maximising code of every row's true class (equation 11),
    at the weights given.

    Where no response of the true class is positive, the maximiser is zero and the row can
    never pull its class back. With `revive` such a row is given to the class's strongest
    model. Any code in the ball bounds the class's score from below, so the convex problem
    still bounds ML3's loss.

    One product per block of rows of a class, which makes 1/c of the products of a pass.

    Parameters
    ----------
    X : compiled form of {ndarray, csr} of shape (n, d)
    order : ndarray of shape (n,)
        The rows, class by class.
    class_starts : ndarray of shape (c + 1,)
        Where in `order` each class starts, and the last one ends.
    W : ndarray of shape (c m, d), or (d, c m) for a sparse X
    b : ndarray of shape (c m,)
    q : float
    block : int
    revive : bool
    codes : ndarray of shape (n, m)
        Overwritten.
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
                _code_to_freeze(responses[i], sums[i, 0], 0, q, revive, codes[rows[i]])


@inner
def _dot_code(code, row, first):
    total = code.dtype.type(0)
    for j in range(code.shape[0]):
        total += code[j] * row[first + j]
    return float(total)


@inner
def _rival(row, sums, code, n_classes, q, label, start):
    """Strongest wrong class and its score;
    in the starting pass every class has the row's code.
    """
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


class PassSettings(NamedTuple):
    """What a pass needs to know besides the data.

    `start`: the codes given are shared by all classes; `revive` is for codes that are not
    given.
    """

    alpha: float
    q: float
    loss: Any  # int or NamedTuple
    radius: float
    batch_size: int
    start: bool
    penalize_intercept: bool
    revive: bool


class Updates(NamedTuple):
    """Rank-one updates of a batch:
    entry 2e is of a row's true class, 2e + 1 of its rival.
    """

    rows: NDArray  # shape: (2 batch,), places in the batch
    classes: NDArray  # shape: (2 batch,)
    codes: NDArray  # shape: (2 batch, m), times the slope


@inner
def _find_updates(rows, y, row_weights, codes, responses, sums, settings, updates):
    """Loss of a batch, and the two rank-one updates of every row that has a slope.

    Parameters
    ----------
    rows : ndarray of shape (n_batch,)
    y, row_weights : ndarray of shape (n,)
    codes : ndarray of shape (n, m) or (0, m)
    responses : ndarray of shape (>= n_batch, c m)
        ``w . x + b`` of all models.
    sums : ndarray of shape (>= n_batch, c)
        Sums of powers: see `pooling.respond`.
    settings : PassSettings
    updates : Updates
        Overwritten.

    Returns
    -------
    total_loss : float
    n_updates : int
    """
    q, start = settings.q, settings.start
    m, given = codes.shape[1], codes.shape[0] > 0
    total, found = 0.0, 0
    for i in range(rows.shape[0]):
        row, label = responses[i], y[rows[i]]
        code = codes[rows[i]] if given else updates.codes[found]
        if not given:
            _code_to_freeze(row, sums[i, label], label * m, q, settings.revive, code)
        rival, rival_score = _rival(row, sums[i], code, sums.shape[1], q, label, start)
        margin = _dot_code(code, row, label * m) - rival_score
        weight = row_weights[rows[i]]
        total += weight * loss_value(settings.loss, margin)
        slope = code.dtype.type(weight * loss_slope(settings.loss, margin))
        if slope != 0:
            updates.rows[found], updates.classes[found] = i, label
            updates.rows[found + 1], updates.classes[found + 1] = i, rival
            if start:
                for j in range(m):
                    updates.codes[found + 1, j] = code[j]
            else:
                argmax_code(row, rival * m, m, q, rival_score, updates.codes[found + 1])
            for j in range(m):
                updates.codes[found, j] = -slope * code[j]
                updates.codes[found + 1, j] *= slope
            found += 2
    return total, found


@inner
def _apply_updates(X, rows, buffer, updates, n_updates, weights, sums, progress, step):
    """Add the updates of a batch; return a bound on the norm of what was added.

    Parameters
    ----------
    X : compiled form of {ndarray, csr} of shape (n, d)
    rows : ndarray of shape (n_batch,)
    buffer : ndarray of shape (>= n_batch, d)
        The rows, gathered; not used for a sparse X.
    updates : Updates
    n_updates : int
        How many there are.
    weights, sums : Weights
        Moved in place.
    progress : Progress
    step : float
    """
    W, b, _ = weights
    dtype = b.dtype.type
    scale, c = progress.scale, progress.c
    m, bound = updates.codes.shape[1], 0.0
    for e in range(n_updates):
        i, offset, code = updates.rows[e], updates.classes[e] * m, updates.codes[e]
        row = rows[i]
        add_outer(X, row, buffer, i, code, offset, W, dtype(step / scale))
        if sums.W.shape[0] > 0:
            add_outer(X, row, buffer, i, code, offset, sums.W, dtype(c * step / scale))
        squared = 0.0
        for j in range(m):
            b[offset + j] += dtype(step) * code[j]
            squared += code[j] * code[j]
        bound += step * math.sqrt(squared * (squared_norm(X, row) + 1.0))
    return bound


@inner
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
def cccp_pass(X, y, row_weights, order, codes, weights, sums, progress, settings):
    """One pass of stochastic gradient descent over the rows in
    `order` (Algorithm 2), in place.

    A batch is scored by one product; then its rows take the steps s = t + 1, t + 2, ...
    of size 1 / (alpha s); `iterates` has the bookkeeping. With batches of one row this is
    Algorithm 2 to rounding.

    Parameters
    ----------
    X : compiled form of {ndarray, csr} of shape (n, d)
    y, row_weights, order : ndarray of shape (n,)
        Labels 0 .. c - 1, weights, and the order in which the rows come.
    codes : ndarray of shape (n, m) or (0, m)
        Of the true classes; of all classes in the starting pass. Where none are given,
        each batch freezes its own, at the weights that it meets.
    weights, sums : Weights
        Moved; nothing is averaged where the sums are empty. There are no global
        intercepts.
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
    W, b, _ = weights
    q, batch, radius = settings.q, settings.batch_size, settings.radius
    with_intercepts = settings.penalize_intercept
    n, m, dtype = order.shape[0], codes.shape[1], codes.dtype.type
    buffer = row_buffer(X, batch, W.shape[1])
    responses = np.empty((batch, b.shape[0]), codes.dtype)
    powers, ones = np.empty_like(responses), np.ones(m, codes.dtype)
    class_sums = np.zeros((batch, b.shape[0] // m), codes.dtype)
    updates = Updates(
        np.empty(2 * batch, np.int64),
        np.empty(2 * batch, np.int64),
        np.empty((2 * batch, m), codes.dtype),
    )
    total_loss = 0.0
    bound = _norm(W, progress.scale, b, with_intercepts)
    for first in range(0, n, batch):
        rows = order[first : min(first + batch, n)]
        gather(X, rows, buffer)
        score(X, rows, buffer, W, 0, b.shape[0], responses)
        respond(
            responses,
            rows.shape[0],
            dtype(progress.scale),
            b,
            q,
            powers,
            ones,
            class_sums,
        )
        batch_loss, n_updates = _find_updates(
            rows, y, row_weights, codes, responses, class_sums, settings, updates
        )
        total_loss += batch_loss
        before = progress.t
        progress = shrunk(weights, progress, rows.shape[0], with_intercepts)
        bound *= before / progress.t
        step = 1.0 / (settings.alpha * progress.t)
        bound += _apply_updates(
            X, rows, buffer, updates, n_updates, weights, sums, progress, step
        )
        # Projection onto the ball that holds the optimum. The true norm is computed only
        # when the triangle inequality cannot exclude that it left the ball.
        if bound > radius:
            bound = _norm(W, progress.scale, b, with_intercepts)
            if bound > radius:
                progress = rescaled(weights, progress, radius / bound, with_intercepts)
                bound = radius
        progress = averaged(weights, sums, progress, rows.shape[0])
    return multiplied_out(weights, progress), total_loss
