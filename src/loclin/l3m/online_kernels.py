"""Compiled pass of L3M's online algorithm."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.engine.jit import inner, jit
from loclin.engine.losses import HINGE, is_hinge, loss_slope, loss_value
from loclin.engine.rows import (
    SMALLEST_SCALE,
    add_outer,
    gather,
    row_buffer,
    score,
    squared_norm,
)
from loclin.engine.shapes import Shape
from loclin.engine.targets import sign_of
from loclin.l3m.kernels import check_partition_loss, smooth_slope, smooth_value

_ROWS_REMEMBERED = 1000.0  # rows, of weight 1, that the running error remembers

_HINGE = HINGE.compiled


class Functions(NamedTuple):
    """Linear functions of a run:
    local classifiers, region by region, and partition functions.

    Weights are transposed for sparse rows.
    """

    # of the classifiers of m regions, and their intercepts
    F: Annotated[NDArray[np.floating], Shape("m*s d", sparse="d m*s", looped=True)]
    f: Annotated[NDArray[np.floating], Shape("m*s", looped=True)]
    # of the partition, and its intercepts
    G: Annotated[NDArray[np.floating], Shape("m d", sparse="d m", looped=True)]
    g: Annotated[NDArray[np.floating], Shape("m", looped=True)]


class Progress(NamedTuple):
    """How far a run is."""

    t: float = 0.0  # rows passed over
    error: float = 1.0  # running error of the predictions before a row is learned
    weight: float = 0.0  # of the rows passed over


class Program(NamedTuple):
    """The problem that a pass descends on, and its step."""

    loss: Any  # int or NamedTuple
    alpha: float
    margin: float
    rate: float  # row t has step rate / sqrt(t)


@jit
def online_pass(X, y, weights, order, points, functions, progress, program):
    """Pass over the rows once, one at a time (Algorithm 1, its gradient put right).

    A row moves what makes up the surrogate there: of the region k where the sum is
    largest, the scorer with the largest loss, and the partition function behind phi(G, k,
    .). The step is ``rate / sqrt(t)``; classifiers shrink by alpha times it. Then the
    partition function g_j that has moved is projected onto ``g_j >= margin`` at point j.

    Parameters
    ----------
    X, points : compiled forms of {ndarray, csr} of shape (n, d) and (r - 1, d)
    y, weights, order : ndarray of shape (n,)
    functions : Functions
        Moved.
    progress : Progress
    program : Program

    Returns
    -------
    progress : tuple of float
        The fields of `Progress`.
    total : float
        Sum of the surrogates that the rows met.
    """
    check_partition_loss(program.loss)
    F, f, G, g = functions
    t, error, weight = progress
    loss, dtype = program.loss, f.dtype.type
    r, n_local = g.shape[0], f.shape[0]
    s = n_local // r
    buffer, held = row_buffer(X, 1, F.shape[1]), row_buffer(points, 1, F.shape[1])
    local, gates = np.empty((1, n_local), f.dtype), np.empty((1, r), f.dtype)
    value, one = np.empty((1, 1), f.dtype), np.ones(1, f.dtype)
    at = np.empty(1, order.dtype)
    total, scale = 0.0, 1.0
    for i in order:
        at[0] = i
        gather(X, at, buffer)
        score(X, at, buffer, F, 0, n_local, local)
        score(X, at, buffer, G, 0, r, gates)
        for c in range(n_local):
            local[0, c] = dtype(scale) * local[0, c] + f[c]
        for k in range(r):
            gates[0, k] += g[k]
        t += 1.0
        weight += weights[i]
        share = min(1.0, weights[i] / min(weight, _ROWS_REMEMBERED))
        error += share * (_is_wrong(local[0], gates[0], y[i]) - error)
        k, c, j, surrogate = _active(local[0], gates[0], y[i], loss)
        total += weights[i] * surrogate
        step = program.rate / math.sqrt(t)
        scale *= max(SMALLEST_SCALE, 1.0 - step * program.alpha)
        if scale < SMALLEST_SCALE:
            F *= dtype(scale)
            scale = 1.0
        sign = sign_of(y[i], c - k * s, s)
        move = -step * weights[i] * sign * _slope(loss, sign * local[0, c])
        add_outer(X, i, buffer, 0, one, c, F, dtype(move / scale))
        f[c] += dtype(move)
        sign = -1.0 if j == k else 1.0
        move = -step * weights[i] * sign * _slope(loss, sign * gates[0, j])
        add_outer(X, i, buffer, 0, one, j, G, dtype(move))
        g[j] += dtype(move)
        if j < r - 1:
            at[0] = j
            gather(points, at, held)
            score(points, at, held, G, j, 1, value)
            short = program.margin - value[0, 0] - g[j]
            if short > 0.0:
                short /= squared_norm(points, j) + 1.0
                add_outer(points, j, held, 0, one, j, G, dtype(short))
                g[j] += dtype(short)
    F *= dtype(scale)
    return (t, error, weight), total


@inner
def _value(loss, z):
    """Loss of the margin z."""
    return loss_value(_HINGE, z) if is_hinge(loss) else smooth_value(loss, z)


@inner
def _slope(loss, z):
    """Its derivative."""
    return loss_slope(_HINGE, z) if is_hinge(loss) else smooth_slope(loss, z)


@inner
def _active(local, gates, label, loss):
    """Find what makes up the surrogate of a row (Equation 8).

    Parameters
    ----------
    local : ndarray of shape (r s,)
        Scores of the classifiers.
    gates : ndarray of shape (r,)
        Scores of the partition functions.
    label : int
    loss : int

    Returns
    -------
    region, scorer, gate : int
        The scorer by its number among all r s.
    surrogate : float
    """
    r = gates.shape[0]
    s = local.shape[0] // r
    region = scorer = gate = 0
    largest = -math.inf
    for k in range(r):
        worst, c_worst = -math.inf, 0
        phi, j_phi = -math.inf, 0
        for c in range(s):
            value = _value(loss, sign_of(label, c, s) * local[k * s + c])
            if value > worst:
                worst, c_worst = value, k * s + c
        for j in range(r):
            value = _value(loss, -gates[j] if j == k else gates[j])
            if value > phi:
                phi, j_phi = value, j
        if worst + phi > largest:
            region, largest = k, worst + phi
            scorer, gate = c_worst, j_phi
    return region, scorer, gate, largest - 1.0


@inner
def _is_wrong(local, gates, label):
    """Return 1 where the model errs, else 0.

    Parameters
    ----------
    local, gates, label
        See `_active`.
    """
    s = local.shape[0] // gates.shape[0]
    first = s * gates.argmax()
    if s == 1:
        return 1.0 if (local[first] > 0) != (label == 1) else 0.0
    return 1.0 if local[first : first + s].argmax() != label else 0.0
