"""Compiled: the exact local coordinate code of a row, by an active set of anchors.

With weights c that sum to one the problem of a row x is, up to a constant,

    minimise 1/2 c'Gc - b.c + sum_j penalty_j |c_j|    subject to sum_j c_j = 1

with ``G = V V'``, ``b = V x`` and ``penalty_j = locality ||v_j - x||^2``. On a few
anchors whose weights keep their signs this is least squares, solved by Cholesky. So start
with the nearest anchor, and repeat: walk to the minimiser on the support; a weight that
reaches zero on the way leaves it; at the minimiser, the anchor that breaks the conditions
below most joins. The objective falls, so no support comes back, and the end is the
solution:

    gradient_j + sign(c_j) penalty_j = level on the support, |gradient_j - level| <= penalty_j off
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.engine.jit import inner, jit

# The conditions hold to this part of (1 + locality) (||x||^2 + max_j ||v_j||^2), both
# lengths taken from the mean of the anchors: some thousand roundings.
TOLERANCE = 1e-12
# Smallest square of a pivot, as a part of the diagonal. An anchor in the affine span of
# the support adds no curvature; with this little, the walk goes on until some weight is
# zero.
_FLAT = 1e-13


class Row(NamedTuple):
    """The problem of a row x."""

    products: NDArray[np.float64]  # shape: (m,), b
    penalty: NDArray[np.float64]  # shape: (m,)
    # shape: (2, m), b - penalty and b + penalty, less a constant
    linear: NDArray[np.float64]
    tolerance: float


class Support(NamedTuple):
    """Anchors that count at a row:
    the first entries of the arrays, as many as there are anchors.

    On the support, ``L L' = G + lift``, ``L y = linear(signs)`` and ``L z = 1``. A
    constant added to G changes nothing where weights sum to one; it makes G positive
    definite on anchors that are affinely independent.
    """

    anchors: NDArray[np.intp]  # shape: (m,), in the order in which they joined
    signs: NDArray[np.float64]  # shape: (m,)
    weights: NDArray[np.float64]  # shape: (m,)
    target: NDArray[np.float64]  # shape: (m,), weights to walk to
    factor: NDArray[np.float64]  # shape: (m, m), L
    y: NDArray[np.float64]  # shape: (m,)
    z: NDArray[np.float64]  # shape: (m,)
    inside: NDArray[np.bool_]  # shape: (m,), of all anchors: is it in the support
    gradient: NDArray[np.float64]  # shape: (m,), of all anchors


@inner
def no_support(m):
    """Return an empty support, and room for all of m anchors."""
    return Support(
        np.empty(m, np.intp),
        np.empty(m),
        np.empty(m),
        np.empty(m),
        np.empty((m, m)),
        np.empty(m),
        np.empty(m),
        np.zeros(m, np.bool_),
        np.empty(m),
    )


@inner
def _append(k, support, linear, gram, lift):
    """Write row k of the factor, and of y and z."""
    anchor, row = support.anchors[k], support.factor[k]
    y, z = support.y, support.z
    diagonal = gram[anchor, anchor] + lift
    pivot = diagonal
    y_k = linear[0 if support.signs[k] > 0 else 1, anchor]
    z_k = 1.0
    for i in range(k):
        total, above = gram[anchor, support.anchors[i]] + lift, support.factor[i]
        for j in range(i):
            total -= row[j] * above[j]
        total /= above[i]
        pivot -= total * total
        y_k -= total * y[i]
        z_k -= total * z[i]
        row[i] = total
    row[k] = math.sqrt(max(pivot, _FLAT * diagonal))
    y[k] = y_k / row[k]
    z[k] = z_k / row[k]


@inner
def _minimise(size, factor, y, z, target):
    """Write the weights of sum one that minimise on the support, signs taken as they are."""
    yz, zz = 0.0, 0.0
    for i in range(size):
        yz += y[i] * z[i]
        zz += z[i] * z[i]
    level = (1.0 - yz) / zz
    for i in range(size):
        target[i] = y[i] + level * z[i]
    for i in range(size - 1, -1, -1):
        target[i] /= factor[i, i]
        for j in range(i):
            target[j] -= factor[i, j] * target[i]


@inner
def _walk(size, signs, weights, target):
    """Move to the target, or as far as no weight changes its sign;
    how far, and which stops it.
    """
    length, stop = 1.0, -1
    for i in range(size):
        if target[i] * signs[i] <= 0.0:
            until = weights[i] / (weights[i] - target[i]) if weights[i] != 0.0 else 0.0
            if until <= length:
                length, stop = until, i
    for i in range(size):
        weights[i] += length * (target[i] - weights[i])
    return length, stop


@inner
def _most_violating(size, row, gram, support):
    """Find the anchor off the support that breaks its condition most,
    by how much, and its sign.

    The last number is by how much those on the support break theirs, through rounding.
    """
    anchors, signs = support.anchors, support.signs
    penalty, gradient = row.penalty, support.gradient
    n_anchors = penalty.shape[0]
    for j in range(n_anchors):
        gradient[j] = -row.products[j]
    for i in range(size):
        weight, column = support.weights[i], gram[anchors[i]]
        for j in range(n_anchors):
            gradient[j] += weight * column[j]
    level = gradient[anchors[0]] + signs[0] * penalty[anchors[0]]
    worst, excess = 0, 0.0
    for j in range(n_anchors):
        violation = abs(gradient[j] - level) - penalty[j]
        if violation > excess and not support.inside[j]:
            worst, excess = j, violation
    rounding = 0.0
    for i in range(size):
        off = abs(gradient[anchors[i]] + signs[i] * penalty[anchors[i]] - level)
        rounding = max(rounding, off)
    return worst, excess, -1.0 if gradient[worst] > level else 1.0, rounding


@inner
def _join(size, anchor, sign, weight, support):
    """Let an anchor be the last one of the support."""
    support.anchors[size] = anchor
    support.signs[size] = sign
    support.weights[size] = weight
    support.inside[anchor] = True


@inner
def _leave(stop, size, support, linear, gram, lift):
    """Take out the anchor at `stop`, of `size` ones."""
    support.inside[support.anchors[stop]] = False
    for i in range(stop, size - 1):
        support.anchors[i] = support.anchors[i + 1]
        support.signs[i] = support.signs[i + 1]
        support.weights[i] = support.weights[i + 1]
        _append(i, support, linear, gram, lift)


@inner
def _code_row(row, gram, lift, max_steps, support):
    """Solve for a row, its nearest anchor in the support;
    return its size, and whether solved.

    Weights, signs and anchors are left in the support, with their gradient.
    """
    linear, tolerance = row.linear, row.tolerance
    size, arrived = 1, True
    _append(0, support, linear, gram, lift)
    for _ in range(max_steps):
        if arrived:
            worst, excess, sign, rounding = _most_violating(size, row, gram, support)
            if excess <= tolerance:
                return size, rounding <= tolerance
            # as where a number is NaN: all anchors are in the support
            if size == linear.shape[1]:
                break
            _join(size, worst, sign, 0.0, support)
            _append(size, support, linear, gram, lift)
            size += 1
        _minimise(size, support.factor, support.y, support.z, support.target)
        length, stop = _walk(size, support.signs, support.weights, support.target)
        if stop >= 0:
            _leave(stop, size, support, linear, gram, lift)
            size -= 1
            # what joined would go the wrong way: no step is left
            if arrived and length == 0.0:
                break
        arrived = stop < 0
    _, excess, _, rounding = _most_violating(size, row, gram, support)
    return size, max(excess, rounding) <= tolerance


@jit
def code_rows(products, squares, gram, locality, max_steps, codes, objectives):
    """Write the codes of the rows, which come as products, and objectives;
    return the unsolved.

    Parameters
    ----------
    products : ndarray of shape (n_samples, n_anchors)
        Rows times anchors. All products are of rows and anchors less the mean of the
        anchors: the problem does not know the origin, rounding does.
    squares : ndarray of shape (n_samples,)
        Squared lengths of the rows.
    gram : ndarray of shape (n_anchors, n_anchors)
        Anchors times anchors.
    locality : float
        Above 0.
    max_steps : int
        A row takes at most this many; about as many as it has nonzeros are usual.
    codes : ndarray of shape (n_samples, n_anchors)
        Zeros, to be filled.
    objectives : ndarray of shape (n_samples,)
        Overwritten.

    Returns
    -------
    unsolved : int
        Rows whose codes break the conditions, after `max_steps` or through rounding.
    """
    n_rows, m = products.shape
    lengths = np.diag(gram).copy()
    lift = lengths.mean() if lengths.any() else 1.0
    support = no_support(m)
    anchors, weights = support.anchors, support.weights
    linear = np.empty((2, m))
    unsolved = 0
    for row in range(n_rows):
        b = products[row]
        nearness = lengths - 2.0 * b  # ||v_j - x||^2 - ||x||^2
        nearest = np.argmin(nearness)
        penalty = locality * np.maximum(squares[row] + nearness, 0.0)
        # Less those of the nearest anchor, a constant again: far from all anchors they
        # would drown what tells anchors apart.
        linear[0] = b - b[nearest] - locality * (nearness - nearness[nearest])
        linear[1] = b - b[nearest] + penalty + penalty[nearest]
        tolerance = TOLERANCE * (1.0 + locality) * (squares[row] + lengths.max())
        _join(0, nearest, 1.0, 1.0, support)
        problem = Row(b, penalty, linear, tolerance)
        size, solved = _code_row(problem, gram, lift, max_steps, support)
        unsolved += not solved
        objective = squares[row] / 2
        for i in range(size):
            anchor, weight = anchors[i], weights[i]
            codes[row, anchor] = weight
            support.inside[anchor] = False
            slope = support.gradient[anchor] - b[anchor]
            objective += weight * slope / 2 + abs(weight) * penalty[anchor]
        objectives[row] = objective
    return unsolved
