"""Pooling of local scores over the positive part of the p-norm ball, one class at a time.

For responses ``r`` (the local scores of one class) the largest of ``code . r`` over codes
with ``code >= 0`` and ``||code||_p <= 1`` is ``|| max(r, 0) ||_q`` with
``1/p + 1/q = 1``. The functions take a row of responses, the class's first entry and its
number of models, so that no row is ever cut into little arrays.
"""

from __future__ import annotations

import math

import numpy as np

from loclin.engine.jit import inner, jit

# Sums of powers are trusted between these bounds, in float32 as in float64; outside them
# the careful way divides by the largest response first.
_TINY, _HUGE = 1e-30, 1e30


@inner
def sums_powers(q):
    """Whether classes are pooled by plain sums of q-th powers, the fast way."""
    return q <= 8.0


@inner
def respond(responses, n, scale, b, q, powers, ones, sums):
    """Turn products of the first n rows into responses,
    and sum their positive parts by class.

    Powers are taken over whole rows, which vectorises for any number of models, and
    summed by one BLAS call.

    Parameters
    ----------
    responses : ndarray of shape (>= n, c m)
        Overwritten by ``scale * responses + b``.
    n : int
    scale : float
    b : ndarray of shape (c m,)
    q : float
    powers : ndarray of shape (>= n, c m)
        Overwritten.
    ones : ndarray of shape (m,)
        Ones.
    sums : ndarray of shape (>= n, c)
        Overwritten by the sums of ``max(response, 0)^q`` over the models of each class;
        left alone where `sums_powers` says no.
    """
    zero = responses.dtype.type(0)
    width = responses.shape[1]
    for i in range(n):
        row, power = responses[i], powers[i]
        if q == 3.0:
            for j in range(width):
                row[j] = scale * row[j] + b[j]
                r = max(row[j], zero)
                power[j] = r * r * r
        elif q == 2.0:
            for j in range(width):
                row[j] = scale * row[j] + b[j]
                r = max(row[j], zero)
                power[j] = r * r
        elif q == 4.0:
            for j in range(width):
                row[j] = scale * row[j] + b[j]
                r = max(row[j], zero)
                power[j] = (r * r) * (r * r)
        elif q == 1.0:
            for j in range(width):
                row[j] = scale * row[j] + b[j]
                power[j] = max(row[j], zero)
        else:
            for j in range(width):
                row[j] = scale * row[j] + b[j]
            if sums_powers(q):
                for j in range(width):
                    power[j] = max(row[j], zero) ** q
    if sums_powers(q):
        m = ones.shape[0]
        np.dot(
            powers[:n].reshape(n * (width // m), m),
            ones,
            sums[:n].reshape(n * (width // m)),
        )


@inner
def _root(total, q):
    """q-th root."""
    if q == 2.0:
        return math.sqrt(total)
    if q == 3.0:
        return np.cbrt(total)
    if q == 1.0:
        return total
    return total ** (1.0 / q)


@jit
def dual_norm(row, first, m, q):
    """``|| max(row[first : first + m], 0) ||_q`` for any q
    in [1, inf], whatever the scale.
    """
    top = row[first]
    for j in range(first + 1, first + m):
        top = max(top, row[j])
    top = float(top)
    if not top > 0.0:
        return 0.0
    if math.isinf(q) or math.isinf(top):
        return top
    total = 0.0
    for j in range(first, first + m):
        if row[j] > 0:
            r = row[j] / top
            if q == 3.0:
                total += r * r * r
            elif q == 2.0:
                total += r * r
            else:
                total += r**q
    return top * _root(total, q)


@inner
def pooled_norm(total, row, first, m, q):
    """Dual norm from the sum of powers where that can be trusted,
    else from the responses.
    """
    if _TINY < total < _HUGE:
        return _root(float(total), q)
    return dual_norm(row, first, m, q)


@inner
def best_class(row, sums, n_classes, m, q, without):
    """Class with the largest dual norm, and that norm, leaving out the class `without`.

    Ties go to the lower class. Sums of powers are compared before any root is taken.
    """
    best, winner = -1.0, 0
    if sums_powers(q):
        for k in range(n_classes):
            if k != without and sums[k] > best:
                best, winner = float(sums[k]), k
        if _TINY < best < _HUGE:
            return winner, _root(best, q)
        best = -1.0
    for k in range(n_classes):
        if k != without:
            value = dual_norm(row, k * m, m, q)
            if value > best:
                best, winner = value, k
    return winner, best


@inner
def argmax_code(row, first, m, q, norm, code):
    """Write into `code` the maximiser over the ball, given
    ``norm = dual_norm(row, ...)``.

    Equations 14 and 15 of the ML3 paper: ``code_j = (max(r_j, 0) / norm)^(q - 1)``. For p
    = 1 it is one-hot on the largest response, for p = inf all positive responses count 1;
    without a positive response it is zero.
    """
    zero, one = code.dtype.type(0), code.dtype.type(1)
    if not norm > 0.0:
        code[:m] = zero
    elif math.isinf(q):
        code[:m] = zero
        winner = 0
        for j in range(1, m):
            if row[first + j] > row[first + winner]:
                winner = j
        code[winner] = one
    elif q == 1.0:
        for j in range(m):
            code[j] = one if row[first + j] > zero else zero
    else:
        inverse = row.dtype.type(1.0 / norm)
        for j in range(m):
            r = max(row[first + j], zero) * inverse
            if q == 2.0:
                code[j] = r
            elif q == 3.0:
                code[j] = r * r
            elif q == 4.0:
                code[j] = r * r * r
            else:
                code[j] = r ** (q - 1.0)


@jit
def argmax_code_rows(scores, q, codes):
    """`argmax_code` for every row of `scores` (n, m)."""
    m = scores.shape[1]
    for i in range(scores.shape[0]):
        argmax_code(scores[i], 0, m, q, dual_norm(scores[i], 0, m, q), codes[i])


@jit
def pool_rows(responses, b, q, powers, ones, sums, rooted):
    """Dual norm of every class of every row, from products: (n, s * m) to `sums` (n, s).

    `b` is added first, in place; `powers` has room for the responses, `ones` is m ones.
    Unless `rooted`, a row may get the q-th powers of its norms, which have the same
    order.
    """
    n, m = responses.shape[0], ones.shape[0]
    sums[:] = 0
    respond(responses, n, responses.dtype.type(1), b, q, powers, ones, sums)
    for i in range(n):
        if not rooted:
            top = sums[i, 0]
            for k in range(1, sums.shape[1]):
                top = max(top, sums[i, k])
            if _TINY < top < _HUGE:
                continue
        for k in range(sums.shape[1]):
            # `pooled_norm`, but rows are cut out only if needed
            if _TINY < sums[i, k] < _HUGE:
                sums[i, k] = _root(sums[i, k], q)
            else:
                sums[i, k] = dual_norm(responses[i], k * m, m, q)
