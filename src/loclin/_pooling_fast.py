"""Pooling of local scores over the positive part of the p-norm ball, one class at a time.

For responses ``r`` (the local scores of one class) the largest of ``code . r`` over codes with
``code >= 0`` and ``||code||_p <= 1`` is ``|| max(r, 0) ||_q`` with ``1/p + 1/q = 1``. The functions
take a row of responses, the class's first entry and its number of models, so that no row is
ever cut into little arrays.
"""

from __future__ import annotations

import math

from loclin._jit import jit

# Sums of powers are trusted between these bounds, in float32 as in float64; outside them the
# careful way divides by the largest response first.
_TINY, _HUGE = 1e-30, 1e30


@jit
def _largest(row, first, m):
    top = row[first]
    for j in range(first + 1, first + m):
        top = max(top, row[j])
    return top


@jit
def has_power_sum(q):
    """Whether `power_sum` knows the exponent `q`."""
    return q == 2.0 or q == 3.0 or q == 4.0


@jit
def power_sum(row, first, m, q):
    """Sum of the q-th powers of the positive parts, for q = 2, 3, 4; no power is called."""
    zero = row.dtype.type(0)
    total = zero
    if q == 2.0:
        for j in range(first, first + m):
            r = max(row[j], zero)
            total += r * r
    elif q == 3.0:
        for j in range(first, first + m):
            r = max(row[j], zero)
            total += r * r * r
    else:
        for j in range(first, first + m):
            r = max(row[j], zero)
            total += r * r * r * r
    return total


@jit
def dual_norm(row, first, m, q):
    """``|| max(row[first : first + m], 0) ||_q`` for any q in [1, inf]."""
    if q == 1.0:
        zero = row.dtype.type(0)
        total = zero
        for j in range(first, first + m):
            total += max(row[j], zero)
        return float(total)
    if has_power_sum(q):
        total = power_sum(row, first, m, q)
        if _TINY < total < _HUGE:
            return math.sqrt(total) if q == 2.0 else float(total) ** (1.0 / q)
    top = float(_largest(row, first, m))
    if not top > 0.0 or math.isinf(q) or math.isinf(top):
        return top if not top <= 0.0 else 0.0
    careful = 0.0
    for j in range(first, first + m):
        if row[j] > 0:
            careful += (row[j] / top) ** q
    return top * careful ** (1.0 / q)


@jit
def best_class(row, n_classes, m, q, without):
    """Class with the largest dual norm, and that norm, leaving out the class `without`.

    Ties go to the lower class. Powers are compared before any root is taken.
    """
    best, winner = -1.0, 0
    if has_power_sum(q):
        for k in range(n_classes):
            if k != without:
                value = float(power_sum(row, k * m, m, q))
                if value > best:
                    best, winner = value, k
        if _TINY < best < _HUGE:
            return winner, math.sqrt(best) if q == 2.0 else best ** (1.0 / q)
        best = -1.0
    for k in range(n_classes):
        if k != without:
            value = dual_norm(row, k * m, m, q)
            if value > best:
                best, winner = value, k
    return winner, best


@jit
def argmax_code(row, first, m, q, norm, code):
    """Write into `code` the maximiser over the ball, given ``norm = dual_norm(row, ...)``.

    Equations 14 and 15 of the ML3 paper: ``code_j = (max(r_j, 0) / norm)^(q - 1)``; one-hot on the
    largest response for p = 1; all positive responses count 1 for p = inf; zero if none is positive.
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
def pool_rows(responses, m, q, pooled):
    """Dual norm of every class of every row: (n, s * m) responses to (n, s) scores."""
    for i in range(responses.shape[0]):
        row = responses[i]
        for k in range(pooled.shape[1]):
            pooled[i, k] = dual_norm(row, k * m, m, q)
