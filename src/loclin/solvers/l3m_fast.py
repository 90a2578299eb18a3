"""Compiled rows of L3M: the convex surrogate of eq. 8, smoothed; the risk of a soft partition.

Scores of a row are (r s + r): region by region those of its s scorers, then the r partition scores.
"""

import math

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
    u, v = [0.0] * r, [0.0] * r
    total = 0.0
    for i in range(Z.shape[0]):
        top = -math.inf
        for k in range(r):
            u[k] = _region_loss(Z, i, y[i], k, s, mu, loss)
            v[k] = _phi(Z, i, k, r, gates, mu, loss)
            top = max(top, u[k] + v[k])
        mass = 0.0
        for k in range(r):
            mass += math.exp((u[k] + v[k] - top) / mu)
        total += weights[i] * (top + mu * math.log(mass) - 1.0)
        for j in range(r):
            A[i, gates + j] = 0
            if keeps:
                constants[i, gates + j] = 0
        for k in range(r):
            part = weights[i] * math.exp((u[k] + v[k] - top) / mu) / mass
            for c in range(s):
                sign = _sign(y[i], c, s)
                z = sign * Z[i, k * s + c]
                value, slope = _piece(loss, z), _piece_slope(loss, z)
                p = part * math.exp((value - u[k]) / mu)
                A[i, k * s + c] = p * slope * sign
                if keeps:
                    constants[i, k * s + c] = p * (value - slope * z)
            for j in range(r):
                sign = -1.0 if j == k else 1.0
                z = sign * Z[i, gates + j]
                value, slope = _piece(loss, z), _piece_slope(loss, z)
                p = part * math.exp((value - v[k]) / mu)
                A[i, gates + j] += p * slope * sign
                if keeps:
                    constants[i, gates + j] += p * (value - slope * z)
        if keeps:
            constants[i, gates] -= weights[i]
    return total


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
def _region_loss(Z, i, label, k, s, mu, loss):
    """Smoothed hinge of region k's classifier at row i; the hinge has a flat piece of value 0."""
    top = 0.0 if loss == _HINGE else -math.inf
    for c in range(s):
        top = max(top, _piece(loss, _sign(label, c, s) * Z[i, k * s + c]))
    mass = math.exp(-top / mu) if loss == _HINGE else 0.0
    for c in range(s):
        value = _piece(loss, _sign(label, c, s) * Z[i, k * s + c])
        mass += math.exp((value - top) / mu)
    return top + mu * math.log(mass)


@jit
def _phi(Z, i, k, r, gates, mu, loss):
    """Smoothed bound of "row i is in region k" (eq. 7)."""
    top = 0.0 if loss == _HINGE else -math.inf
    for j in range(r):
        top = max(top, _piece(loss, (-1.0 if j == k else 1.0) * Z[i, gates + j]))
    mass = math.exp(-top / mu) if loss == _HINGE else 0.0
    for j in range(r):
        value = _piece(loss, (-1.0 if j == k else 1.0) * Z[i, gates + j])
        mass += math.exp((value - top) / mu)
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
