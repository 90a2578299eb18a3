"""Compiled objectives of L3M: the surrogate of Equation 8, smoothed;
the risk of a soft partition.

Scores of a row are (r s + r): region by region those of its s scorers, then the r
partition scores.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

from loclin.engine.jit import OPTIONS, inner, jit
from loclin.engine.losses import LOGISTIC, is_hinge, known_loss, loss_slope, loss_value
from loclin.engine.targets import sign_of

_LOGISTIC = LOGISTIC.compiled  # as a constant, so that no row asks which of the two it is


def check_partition_loss(loss):
    """Raise where the loss does not serve partitions, so that no row needs to ask."""
    if "partition" not in known_loss(loss).serves:
        raise ValueError("the loss is neither hinge nor logistic")


def smooth_value(loss, z):
    """Value of a loss that is not the hinge."""
    return loss_value(loss, z)


def smooth_slope(loss, z):
    """Slope of a loss that is not the hinge."""
    return loss_slope(loss, z)


@overload(check_partition_loss, jit_options=OPTIONS)
def _check_partition_loss(loss):
    if not isinstance(loss, types.Integer):
        return lambda loss: None

    def check(loss):
        if not is_hinge(loss) and loss != _LOGISTIC:
            raise ValueError("the loss is neither hinge nor logistic")

    return check


@overload(smooth_value, jit_options=OPTIONS)
def _smooth_value(loss, z):
    if isinstance(loss, types.Integer):
        return lambda loss, z: loss_value(_LOGISTIC, z)
    return lambda loss, z: loss_value(loss, z)


@overload(smooth_slope, jit_options=OPTIONS)
def _smooth_slope(loss, z):
    if isinstance(loss, types.Integer):
        return lambda loss, z: loss_slope(_LOGISTIC, z)
    return lambda loss, z: loss_slope(loss, z)


@jit
def surrogate_rows(Z, y, weights, r, s, mu, loss, A, constants):
    """Sum of ``weights_i max_k [hinge_i(f_k) + phi(G, k, x_i) - 1]``, smoothed.

    These are Equations 4, 7 and 8. Every maximum is that of finitely many pieces, convex
    in one score each, and is replaced by ``mu log sum exp(. / mu)``. Where a piece has
    weight p, slope q' and value q at the score z, it supports the surrogate from below by
    ``p (q' z + (q - q' z))``.

    Parameters
    ----------
    Z : ndarray of shape (n, r s + r)
        Scores.
    y : ndarray of shape (n,)
        Labels 0 .. c - 1.
    weights : ndarray of shape (n,)
    r, s : int
        Regions and scorers.
    mu : float
        Above 0.
    loss : int or NamedTuple
        One that serves partitions.
    A : ndarray of shape (n, r s + r)
        Overwritten by the gradient: the sum of p q' of each score.
    constants : ndarray of shape (n, r s + r) or (0, 0)
        Overwritten by the sum of p (q - q' z) of each score.

    Returns
    -------
    total : float
    """
    check_partition_loss(loss)
    gates, keeps = r * s, constants.shape[0] > 0
    u, v = np.empty(r), np.empty(r)
    joint = np.empty((1, r))
    by_gates, flat = np.empty((r, r)), np.empty((1, 2 * r))
    total = 0.0
    for i in range(Z.shape[0]):
        if keeps:
            constants[i] = 0
        for j in range(r):
            A[i, gates + j] = 0
        for k in range(r):
            u[k] = _exponents_of_scorers(Z, i, k * s, s, y[i], mu, loss, A)
            v[k] = _exponents_of_gates(Z, i, gates, k, mu, loss, by_gates)
            flat[0, k], flat[0, r + k] = -u[k] / mu, -v[k] / mu
            exponentials(by_gates, k)
        exponentials(A, i)
        exponentials(flat, 0)
        for k in range(r):
            u[k] += mu * math.log(_normalize(A, i, k * s, s, flat[0, k], loss))
            v[k] += mu * math.log(_normalize(by_gates, k, 0, r, flat[0, r + k], loss))
            joint[0, k] = (u[k] + v[k]) / mu
        top = _subtract_max(joint, 0, 0, r)
        exponentials(joint, 0)
        mass = _sum(joint, 0, 0, r)
        total += weights[i] * (mu * (top + math.log(mass)) - 1.0)
        for j in range(r):
            A[i, gates + j] = 0
        for k in range(r):
            part = weights[i] * joint[0, k] / mass
            _weigh_scorers(Z, i, k * s, s, y[i], loss, part, A, constants)
            if part > 0:
                _weigh_gates(Z, i, gates, k, loss, part, by_gates, A, constants)
        if keeps:
            constants[i, gates] -= weights[i]
    return total


@inner
def _piece(loss, z):
    """Value of a piece at z: the hinge without its flat part,
    or the whole of another loss.
    """
    return 1.0 - z if is_hinge(loss) else smooth_value(loss, z)


@inner
def _piece_slope(loss, z):
    """Slope of a piece at z."""
    return -1.0 if is_hinge(loss) else smooth_slope(loss, z)


@inner
def _exponents_of_scorers(Z, i, first, s, label, mu, loss, A):
    """Write the pieces of a region's loss, less the largest, over mu; return the largest.

    The hinge has a flat piece of value 0 besides.

    Parameters
    ----------
    Z, A : ndarray of shape (n, r s + r)
        Scores; of row i in A, the columns of the region are overwritten.
    i : int
        Row.
    first, s : int
        First column of the region, and how many it has.
    label : int
        Of the row.
    mu : float
    loss : int

    Returns
    -------
    top : float
    """
    top = 0.0 if is_hinge(loss) else -math.inf
    for c in range(np.uint64(first), np.uint64(first + s)):
        A[i, c] = _piece(loss, -Z[i, c])
    right = first + (label if s > 1 else 0)
    if s > 1 or label == 1:
        A[i, right] = _piece(loss, Z[i, right])
    for c in range(np.uint64(first), np.uint64(first + s)):
        top = max(top, A[i, c])
    by_mu = 1 / mu
    for c in range(np.uint64(first), np.uint64(first + s)):
        A[i, c] = (A[i, c] - top) * by_mu
    return top


@inner
def _exponents_of_gates(Z, i, gates, k, mu, loss, by_gates):
    """Do the same for the bound of "row i is in region k" (Equation 7).

    Parameters
    ----------
    Z : ndarray of shape (n, r s + r)
    i : int
    gates : int
        First column of the partition scores.
    k : int
    mu : float
    loss : int
    by_gates : ndarray of shape (r, r)
        Row k is overwritten.

    Returns
    -------
    top : float
    """
    r = by_gates.shape[0]
    top = 0.0 if is_hinge(loss) else -math.inf
    for j in range(r):
        by_gates[k, j] = _piece(loss, -Z[i, gates + j] if j == k else Z[i, gates + j])
        top = max(top, by_gates[k, j])
    by_mu = 1 / mu
    for j in range(r):
        by_gates[k, j] = (by_gates[k, j] - top) * by_mu
    return top


@inner
def _normalize(values, i, first, size, flat, loss):
    """Divide exponentials of row i by their sum;
    return it. `flat` is that of the flat piece.

    It is at least 1, that of the largest; rounding must not lose it.
    """
    mass = max(1.0, _sum(values, i, first, size) + (flat if is_hinge(loss) else 0.0))
    by_mass = 1 / mass
    for c in range(np.uint64(first), np.uint64(first + size)):
        values[i, c] *= by_mass
    return mass


@inner
def _weigh_scorers(Z, i, first, s, label, loss, part, A, constants):
    """Turn the weights of a region's pieces into slopes.

    Parameters
    ----------
    Z : ndarray of shape (n, r s + r)
    i, first, s, label
        See `_exponents_of_scorers`.
    loss : int
    part : float
        Weight of the region in the row's maximum, times that of the row.
    A : ndarray of shape (n, r s + r)
        Weights of the pieces, overwritten by the slopes.
    constants : ndarray of shape (n, r s + r) or (0, 0)
        Overwritten by the constants, see `surrogate_rows`.
    """
    if part == 0:
        for c in range(np.uint64(first), np.uint64(first + s)):
            A[i, c] = 0
        return
    for c in range(s):
        at = first + c
        sign = sign_of(label, c, s)
        slope, p = _piece_slope(loss, sign * Z[i, at]), part * A[i, at]
        A[i, at] = p * slope * sign
        if constants.shape[0]:
            z = sign * Z[i, at]
            constants[i, at] = p * (_piece(loss, z) - slope * z)


@inner
def _weigh_gates(Z, i, gates, k, loss, part, by_gates, A, constants):
    """Add the slopes of the bound of "row i is in region k".

    Parameters
    ----------
    Z : ndarray of shape (n, r s + r)
    i, gates, k
        See `_exponents_of_gates`.
    loss : int
    part : float
        See `_weigh_scorers`.
    by_gates : ndarray of shape (r, r)
        Row k has the weights of the pieces.
    A : ndarray of shape (n, r s + r)
        The slopes are added to it.
    constants : ndarray of shape (n, r s + r) or (0, 0)
        The constants are added to it.
    """
    for j in range(by_gates.shape[0]):
        sign = -1.0 if j == k else 1.0
        z = sign * Z[i, gates + j]
        slope, p = _piece_slope(loss, z), part * by_gates[k, j]
        A[i, gates + j] += p * slope * sign
        if constants.shape[0]:
            constants[i, gates + j] += p * (_piece(loss, z) - slope * z)


@jit
def soft_rows(Z, y, weights, r, s, sharpness, trust, shift, width, A):
    """Sum of risks in a soft partition:
    ``-weights_i / trust log sum_k p_k exp(-trust loss_k)``.

    The row is in region k with probability p_k, the softmax of sharpness times the
    partition scores. With trust 1 this is the likelihood of a mixture of experts, which
    are soon told apart; near 0 it is the mean loss over the regions. With a sharp
    partition both are the loss in the row's region. The loss is

        width log sum_y exp((shift [y != y_i] + f_y - f_{y_i}) / width)

    Parameters
    ----------
    Z, y, weights, r, s
        See `surrogate_rows`; for s = 1 the score of the other class is 0.
    sharpness, shift : float
        At least 0.
    trust, width : float
        Above 0.
    A : ndarray of shape (n, r s + r)
        Overwritten by the gradient.

    Returns
    -------
    total : float
    """
    dtype, gates = Z.dtype.type, r * s
    sharpness, trust = dtype(sharpness), dtype(trust)
    shift, width = dtype(shift), dtype(width)
    losses, log_p = np.empty(r, Z.dtype), np.empty(r, Z.dtype)
    h = np.empty((1, r), Z.dtype)
    total = 0.0
    for i in range(Z.shape[0]):
        weight = dtype(weights[i])
        for k in range(r):
            losses[k] = _exponents_of_softmax(Z, i, k * s, s, y[i], shift, width, A)
            A[i, gates + k] = sharpness * Z[i, gates + k]
        _subtract_max(A, i, gates, r)
        for k in range(r):
            log_p[k] = A[i, gates + k]
        exponentials(A, i)
        mass_p = _sum(A, i, gates, r)
        for k in range(r):
            losses[k] += _softmax_slopes(Z, i, k * s, s, y[i], shift, width, A)
            h[0, k] = log_p[k] - trust * losses[k]
        top = _subtract_max(h, 0, 0, r)
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
    """Overwrite row i, numbers up to 0, by exponentials;
    by 0 below -30. The error is below 1e-12.

    By the series of exp(x / 16) and four squarings: unlike the library's function this
    vectorises.
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


@inner
def _subtract_max(values, i, first, size):
    """Subtract the largest of `size` numbers of row i from them; return it."""
    begin, end = np.uint64(first), np.uint64(first + size)
    top = values[i, begin]
    for c in range(begin, end):
        top = max(top, values[i, c])
    for c in range(begin, end):
        values[i, c] -= top
    return top


@inner
def _sum(values, i, first, size):
    """Sum of `size` numbers of row i."""
    total = values.dtype.type(0)
    for c in range(np.uint64(first), np.uint64(first + size)):
        total += values[i, c]
    return total


@inner
def _exponents_of_softmax(Z, i, first, s, label, shift, width, A):
    """Write the exponents of a region's loss less the largest;
    return `width` times the largest.

    Parameters
    ----------
    Z, A : ndarray of shape (n, r s + r)
        Scores; of row i in A, the columns of the region are overwritten.
    i, first, s, label
        See `_exponents_of_scorers`.
    shift, width : float
        See `soft_rows`.

    Returns
    -------
    part : float
        Of the loss; `_softmax_slopes` returns the rest.
    """
    zero, one = Z.dtype.type(0), Z.dtype.type(1)
    if s == 1:
        short = (shift - _signed(Z[i, first], label)) / width
        A[i, first] = -abs(short)
        return width * max(short, zero)
    right, by_width = Z[i, first + label] - shift, one / width
    for c in range(np.uint64(first), np.uint64(first + s)):
        A[i, c] = (Z[i, c] - right) * by_width
    A[i, first + label] = zero
    return width * _subtract_max(A, i, first, s)


@inner
def _softmax_slopes(Z, i, first, s, label, shift, width, A):
    """Turn the exponentials into the slopes of the loss; return the rest of the loss.

    Parameters
    ----------
    Z : ndarray of shape (n, r s + r)
    i, first, s, label, shift, width
        See `_exponents_of_softmax`.
    A : ndarray of shape (n, r s + r)
        Exponentials, overwritten by the slopes.

    Returns
    -------
    rest : float
    """
    one = Z.dtype.type(1)
    if s == 1:
        e = A[i, first]
        share = (e if _signed(Z[i, first], label) > shift else one) / (one + e)
        A[i, first] = -_signed(share, label)
        return width * math.log1p(e)
    mass = _sum(A, i, first, s)
    by_mass = one / mass
    for c in range(np.uint64(first), np.uint64(first + s)):
        A[i, c] *= by_mass
    A[i, first + label] -= one
    return width * math.log(mass)


@inner
def _signed(value, label):
    """Value with the sign that is right for one of two classes."""
    return value if label == 1 else -value
