"""Compiled pass of L3M's online algorithm."""

import math

import numpy as np

from loclin.engine.jit import jit
from loclin.engine.losses import loss_slope, loss_value
from loclin.engine.rows import (
    SMALLEST_SCALE,
    add_outer,
    gather,
    row_buffer,
    score,
    squared_norm,
)

_MEMORY = 1000.0  # rows, of weight 1, that the running error remembers


@jit
def online_pass(X, y, weights, order, points, F, f, V, v, state, loss, alpha, rate, margin):
    """Pass over the rows once, one at a time (Algorithm 1, its gradient put right).

    A row moves what makes up the surrogate there: of the region k where the sum is largest, the
    scorer with the largest loss, and the partition function behind phi(G, k, .). The step is
    ``rate / sqrt(t)``; classifiers shrink by alpha times it. Then the partition function g_j that
    has moved is projected onto ``g_j >= margin`` at point j.

    Parameters
    ----------
    X, points : compiled forms of {ndarray, csr} of shape (n, d) and (r - 1, d)
    y, weights, order : ndarray of shape (n,)
    F, V : ndarray of shape (r s, d) and (r, d), or transposed for sparse rows
        Classifiers and partition functions; moved.
    f, v : ndarray of shape (r s,) and (r,)
        Their intercepts; moved.
    state : ndarray of shape (3,)
        Row counter t, running error, sum of the weights; moved.
    loss : int
    alpha, rate, margin : float

    Returns
    -------
    total : float
        Sum of the surrogates that the rows met.
    """
    r, n_local, total, scale = v.shape[0], f.shape[0], 0.0, 1.0
    s, dtype = n_local // r, f.dtype.type
    buffer, held = row_buffer(X, 1, F.shape[1]), row_buffer(points, 1, F.shape[1])
    local, gates = np.empty((1, n_local), f.dtype), np.empty((1, r), f.dtype)
    value, one, at = np.empty((1, 1), f.dtype), np.ones(1, f.dtype), np.empty(1, order.dtype)
    for i in order:
        at[0] = i
        gather(X, at, buffer)
        score(X, at, buffer, F, 0, n_local, local)
        score(X, at, buffer, V, 0, r, gates)
        for c in range(n_local):
            local[0, c] = dtype(scale) * local[0, c] + f[c]
        for k in range(r):
            gates[0, k] += v[k]
        state[0] += 1.0
        state[2] += weights[i]
        share = min(1.0, weights[i] / min(state[2], _MEMORY))
        state[1] += share * (_is_wrong(local[0], gates[0], y[i]) - state[1])
        k, c, j, surrogate = _active(local[0], gates[0], y[i], loss)
        total += weights[i] * surrogate
        step = rate / math.sqrt(state[0])
        scale *= max(SMALLEST_SCALE, 1.0 - step * alpha)
        if scale < SMALLEST_SCALE:
            F *= dtype(scale)
            scale = 1.0
        sign = _sign(y[i], c - k * s, s)
        move = -step * weights[i] * sign * loss_slope(loss, sign * local[0, c])
        add_outer(X, i, buffer, 0, one, c, F, dtype(move / scale))
        f[c] += dtype(move)
        sign = -1.0 if j == k else 1.0
        move = -step * weights[i] * sign * loss_slope(loss, sign * gates[0, j])
        add_outer(X, i, buffer, 0, one, j, V, dtype(move))
        v[j] += dtype(move)
        if j < r - 1:
            at[0] = j
            gather(points, at, held)
            score(points, at, held, V, j, 1, value)
            short = margin - value[0, 0] - v[j]
            if short > 0.0:
                short /= squared_norm(points, j) + 1.0
                add_outer(points, j, held, 0, one, j, V, dtype(short))
                v[j] += dtype(short)
    F *= dtype(scale)
    return total


@jit
def _sign(label, c, s):
    """Return 1 where scorer c should be positive, else -1."""
    return 1.0 if label == (c if s > 1 else 1) else -1.0


@jit
def _active(local, gates, label, loss):
    """Region, scorer and partition function that make up the surrogate, and its value (eq. 8)."""
    r = gates.shape[0]
    s = local.shape[0] // r
    region, scorer, gate, largest = 0, 0, 0, -math.inf
    for k in range(r):
        worst, c_worst, phi, j_phi = -math.inf, 0, -math.inf, 0
        for c in range(s):
            value = loss_value(loss, _sign(label, c, s) * local[k * s + c])
            if value > worst:
                worst, c_worst = value, k * s + c
        for j in range(r):
            value = loss_value(loss, -gates[j] if j == k else gates[j])
            if value > phi:
                phi, j_phi = value, j
        if worst + phi > largest:
            region, scorer, gate, largest = k, c_worst, j_phi, worst + phi
    return region, scorer, gate, largest - 1.0


@jit
def _is_wrong(local, gates, label):
    """Return 1 where the model errs, else 0."""
    s = local.shape[0] // gates.shape[0]
    first = s * gates.argmax()
    if s == 1:
        return 1.0 if (local[first] > 0) != (label == 1) else 0.0
    return 1.0 if local[first : first + s].argmax() != label else 0.0
