"""Compiled rows of L3M: the convex surrogate of eq. 8, smoothed; the risk of a soft partition.

Scores of a row are (r s + r): region by region those of its s scorers, then the r partition scores.
"""

import math

import numpy as np

from loclin._jit import jit
from loclin.losses import Loss, loss_slope, loss_value

_HINGE, _LOGISTIC = int(Loss.HINGE), int(Loss.LOGISTIC)


@jit
def surrogate_rows(Z, y, weights, r, s, mu, loss, A, constants):
    """Sum of ``weights_i max_k [hinge_i(f_k) + phi(G, k, x_i) - 1]`` (eqs. 4, 7 and 8), smoothed.

    Every maximum is that of finitely many pieces, convex in one score each, and is replaced by
    ``mu log sum exp(. / mu)``. Where a piece has weight p, slope q' and value q at the score z, it
    supports the surrogate from below by ``p (q' z + (q - q' z))``.

    Parameters
    ----------
    Z : ndarray of shape (n, r s + r)
        Scores.
    y : ndarray of shape (n,)
        Labels; for s = 1 the positive class is 1.
    weights : ndarray of shape (n,)
    r, s : int
    mu : float
        Above 0.
    loss : int
        Hinge or logistic.
    A : ndarray of shape (n, r s + r)
        Overwritten by the gradient: the sum of p q' of each score.
    constants : ndarray of shape (n, r s + r) or (0, 0)
        Overwritten by the sum of p (q - q' z) of each score.

    Returns
    -------
    total : float
    """
    gates, keeps = r * s, constants.shape[0] > 0
    u, v, gate_weights = [0.0] * r, [0.0] * r, np.empty((r, r))
    total = 0.0
    for i in range(Z.shape[0]):
        A[i] = 0
        if keeps:
            constants[i] = 0
        top = -math.inf
        for k in range(r):
            u[k] = _region_loss(Z, i, y[i], k, s, mu, loss, A[i])
            v[k] = _phi(Z, i, k, r, gates, mu, loss, gate_weights[k])
            top = max(top, u[k] + v[k])
        mass = 0.0
        for k in range(r):
            mass += _exp((u[k] + v[k] - top) / mu)
        total += weights[i] * (top + mu * math.log(mass) - 1.0)
        for k in range(r):
            part = weights[i] * _exp((u[k] + v[k] - top) / mu) / mass
            if part == 0:
                A[i, k * s : (k + 1) * s] = 0
                continue
            for c in range(s):
                sign = _sign(y[i], c, s)
                z = sign * Z[i, k * s + c]
                slope, p = _piece_slope(loss, z), part * A[i, k * s + c]
                A[i, k * s + c] = p * slope * sign
                if keeps:
                    constants[i, k * s + c] = p * (_piece(loss, z) - slope * z)
            for j in range(r):
                sign = -1.0 if j == k else 1.0
                z = sign * Z[i, gates + j]
                slope, p = _piece_slope(loss, z), part * gate_weights[k, j]
                A[i, gates + j] += p * slope * sign
                if keeps:
                    constants[i, gates + j] += p * (_piece(loss, z) - slope * z)
        if keeps:
            constants[i, gates] -= weights[i]
    return total


@jit
def _exp(x):
    """Exponential of a number up to 0; 0 where it would be lost in a sum with 1."""
    return 0.0 if x < -40.0 else math.exp(x)


@jit
def _sign(label, c, s):
    """Return 1 where scorer c should be positive, else -1."""
    return 1.0 if label == (c if s > 1 else 1) else -1.0


@jit
def _piece(loss, z):
    """Value of a piece: the hinge without its flat part, or the logistic loss."""
    return 1.0 - z if loss == _HINGE else loss_value(loss, z)


@jit
def _piece_slope(loss, z):
    return -1.0 if loss == _HINGE else loss_slope(loss, z)


@jit
def _region_loss(Z, i, label, k, s, mu, loss, shares):
    """Smoothed hinge of region k's classifier at row i; the hinge has a flat piece of value 0.

    The weight of score (k, c) in it goes to the same place of `shares`.
    """
    first = k * s
    top = 0.0 if loss == _HINGE else -math.inf
    for c in range(s):
        shares[first + c] = _piece(loss, _sign(label, c, s) * Z[i, first + c])
        top = max(top, shares[first + c])
    return _share(shares[first : first + s], top, mu, loss)


@jit
def _phi(Z, i, k, r, gates, mu, loss, shares):
    """Smoothed bound of "row i is in region k" (eq. 7), and the weights of the pieces in it."""
    top = 0.0 if loss == _HINGE else -math.inf
    for j in range(r):
        shares[j] = _piece(loss, (-1.0 if j == k else 1.0) * Z[i, gates + j])
        top = max(top, shares[j])
    return _share(shares, top, mu, loss)


@jit
def _share(values, top, mu, loss):
    """Smoothed maximum of values, and of 0 for the hinge; their weights in it overwrite them."""
    mass = _exp(-top / mu) if loss == _HINGE else 0.0
    for c in range(len(values)):
        values[c] = _exp((values[c] - top) / mu)
        mass += values[c]
    for c in range(len(values)):
        values[c] /= mass
    return top + mu * math.log(mass)


@jit
def soft_rows(Z, y, weights, r, s, sharpness, trust, shift, width, A):
    """Sum of risks in a soft partition: ``-weights_i / trust log sum_k p_k exp(-trust loss_k)``.

    The row is in region k with probability p_k, the softmax of sharpness times the partition
    scores. With trust 1 this is the likelihood of a mixture of experts, which are soon told apart;
    near 0 it is the mean loss over the regions. With a sharp partition both are the loss in the
    row's region. The loss is

        width log sum_y exp((shift [y != y_i] + f_y - f_{y_i}) / width)

    Regions with p_k below 1e-9 are left out.

    Parameters
    ----------
    Z, y, weights, r, s
        See `surrogate_rows`; for s = 1 the score of the other class is 0.
    sharpness, trust, shift, width : float
    A : ndarray of shape (n, r s + r)
        Overwritten by the gradient.

    Returns
    -------
    total : float
    """
    gates, total = r * s, 0.0
    log_p, log_h = [0.0] * r, [0.0] * r
    for i in range(Z.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 0
        _log_softmax(Z, i, gates, r, sharpness, log_p)
        top = -math.inf
        for k in range(r):
            log_h[k] = -math.inf
            if log_p[k] > -20.0:
                log_h[k] = log_p[k] - trust * _loss_of(Z, i, y[i], k * s, s, shift, width, A)
            top = max(top, log_h[k])
        mass = 0.0
        for k in range(r):
            mass += math.exp(log_h[k] - top)
        log_mass = top + math.log(mass)
        total -= weights[i] * log_mass / trust
        for k in range(r):
            h = math.exp(log_h[k] - log_mass)
            A[i, gates + k] = weights[i] * sharpness * (math.exp(log_p[k]) - h) / trust
            for c in range(s):
                A[i, k * s + c] *= weights[i] * h
    return total


@jit
def _log_softmax(Z, i, first, r, sharpness, out):
    """Logarithm of the softmax of r scores of row i."""
    top = -math.inf
    for k in range(r):
        top = max(top, sharpness * Z[i, first + k])
    mass = 0.0
    for k in range(r):
        mass += math.exp(sharpness * Z[i, first + k] - top)
    for k in range(r):
        out[k] = sharpness * Z[i, first + k] - top - math.log(mass)


@jit
def _loss_of(Z, i, label, first, s, shift, width, A):
    """Loss of the s scores from `first` on; their slopes go to the same places of A."""
    if s == 1:
        sign = _sign(label, 0, 1)
        z = (sign * Z[i, first] - shift) / width
        A[i, first] = sign * loss_slope(_LOGISTIC, z)
        return width * loss_value(_LOGISTIC, z)
    right = Z[i, first + label]
    top = 0.0
    for c in range(s):
        if c != label:
            top = max(top, shift + Z[i, first + c] - right)
    mass = 0.0
    for c in range(s):
        ahead = Z[i, first + c] - right + (0.0 if c == label else shift)
        A[i, first + c] = math.exp((ahead - top) / width)
        mass += A[i, first + c]
    for c in range(s):
        A[i, first + c] /= mass
    A[i, first + label] -= 1
    return top + width * math.log(mass)
