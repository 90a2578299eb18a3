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
    dtype, gates = Z.dtype.type, r * s
    sharpness, trust, shift, width = dtype(sharpness), dtype(trust), dtype(shift), dtype(width)
    losses, log_p = np.empty(r, Z.dtype), np.empty(r, Z.dtype)
    h = np.empty((1, r), Z.dtype)
    total = 0.0
    for i in range(Z.shape[0]):
        weight = dtype(weights[i])
        for k in range(r):
            losses[k] = _ahead(Z, i, k * s, s, y[i], shift, width, A)
            A[i, gates + k] = sharpness * Z[i, gates + k]
        _from_the_top(A, i, gates, r)
        for k in range(r):
            log_p[k] = A[i, gates + k]
        exponentials(A, i)
        mass_p = _sum(A, i, gates, r)
        for k in range(r):
            losses[k] += _slopes(Z, i, k * s, s, y[i], shift, width, A)
            h[0, k] = log_p[k] - trust * losses[k]
        top = _from_the_top(h, 0, 0, r)
        exponentials(h, 0)
        mass_h = _sum(h, 0, 0, r)
        total -= weight * (top + math.log(mass_h / mass_p)) / trust
        for k in range(r):
            share = weight * h[0, k] / mass_h
            p = weight * A[i, gates + k] / mass_p
            A[i, gates + k] = sharpness * (p - share) / trust
            for c in range(np.uint64(k * s), np.uint64(k * s + s)):
                A[i, c] *= share
    return total


@jit
def exponentials(values, i):
    """Overwrite row i, numbers up to 0, by exponentials; by 0 below -30. The error is below 1e-12.

    By the series of exp(x / 16) and four squarings: unlike the library's function this vectorises.
    """
    dtype = values.dtype.type
    one, least = dtype(1), dtype(-30)
    for c in range(values.shape[1]):
        x = max(values[i, c], least) * dtype(1 / 16)
        e = one + x * dtype(1 / 10)
        e = one + x * dtype(1 / 9) * e
        e = one + x * dtype(1 / 8) * e
        e = one + x * dtype(1 / 7) * e
        e = one + x * dtype(1 / 6) * e
        e = one + x * dtype(1 / 5) * e
        e = one + x * dtype(1 / 4) * e
        e = one + x * dtype(1 / 3) * e
        e = one + x * dtype(1 / 2) * e
        e = one + x * e
        e *= e
        e *= e
        e *= e
        e *= e
        values[i, c] = e if values[i, c] > least else dtype(0)


@jit
def _from_the_top(values, i, first, size):
    """Subtract the largest of some numbers of row i; return it."""
    begin, end = np.uint64(first), np.uint64(first + size)
    top = values[i, begin]
    for c in range(begin, end):
        top = max(top, values[i, c])
    for c in range(begin, end):
        values[i, c] -= top
    return top


@jit
def _sum(values, i, first, size):
    total = values.dtype.type(0)
    for c in range(np.uint64(first), np.uint64(first + size)):
        total += values[i, c]
    return total


@jit
def _ahead(Z, i, first, s, label, shift, width, A):
    """Write the exponents of a region's loss less the largest; return what that is of the loss."""
    zero, one = Z.dtype.type(0), Z.dtype.type(1)
    if s == 1:
        short = (shift - _side(Z[i, first], label)) / width
        A[i, first] = -abs(short)
        return width * max(short, zero)
    right, by_width = Z[i, first + label] - shift, one / width
    for c in range(np.uint64(first), np.uint64(first + s)):
        A[i, c] = (Z[i, c] - right) * by_width
    A[i, first + label] = zero
    return width * _from_the_top(A, i, first, s)


@jit
def _slopes(Z, i, first, s, label, shift, width, A):
    """Turn the exponentials into the slopes of the loss; return the rest of the loss."""
    one = Z.dtype.type(1)
    if s == 1:
        e = A[i, first]
        share = (e if _side(Z[i, first], label) > shift else one) / (one + e)
        A[i, first] = -_side(share, label)
        return width * math.log1p(e)
    mass = _sum(A, i, first, s)
    by_mass = one / mass
    for c in range(np.uint64(first), np.uint64(first + s)):
        A[i, c] *= by_mass
    A[i, first + label] -= one
    return width * math.log(mass)


@jit
def _side(score, label):
    """Score of the right one of two classes."""
    return score if label == 1 else -score
