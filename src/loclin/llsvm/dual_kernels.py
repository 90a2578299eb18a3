"""Compiled loops of dual coordinate descent for one binary problem on implicit features.

With kernel K of the features ``code (x) [x; 1]``, bounds C and targets y = +-1, the dual is

    min over 0 <= a <= C     1/2 sum_ik a_i a_k y_i y_k K_ik - sum_i a_i            (hinge)
    min over 0 <= a          the same + sum_i a_i^2 / (4 C_i)                       (squared hinge)

and W = sum_i a_i y_i code_i (x) x is kept beside a.
"""

from __future__ import annotations

import math

import numpy as np

from loclin.engine.codes import add_batch, code_gram, code_scores, product_room
from loclin.engine.jit import jit
from loclin.engine.losses import Loss, loss_conjugate, loss_value
from loclin.engine.rows import gather, row_buffer

_HINGE = int(Loss.HINGE)
# Sweeps over a block of rows whose kernel is at hand.
SWEEPS = 3


@jit
def _projected(slope, a, bound):
    """Slope of the dual that the bounds leave."""
    if a <= 0.0:
        return min(slope, 0.0)
    return max(slope, 0.0) if a >= bound else slope


@jit
def dual_pass(X, codes, target, bounds, loss, active, a, all_scores, W, b, g, squares, limits,
              block, local, extra):  # fmt: skip
    """Visit the active rows in the order given; drop those that seem settled at a bound.

    Blocks of rows are scored together, and their kernel tells how each step changes the others, so
    that a visit is exact coordinate descent; where a kernel block would cost more than it saves
    (few models a row, sparse rows), blocks are single rows.

    `limits` are the largest and smallest projected slopes of the pass before; `all_scores` (n, 1)
    gets the scores met. Returns how many rows stay active (moved to the front of `active`), and the
    limits of this pass.
    """
    high, low = -math.inf, math.inf
    one = b.dtype.type(1)
    buffer = row_buffer(X, block, W.shape[1])
    responses = np.empty((block, b.shape[0]), b.dtype)
    scores = np.empty((block, 1), b.dtype)
    steps = np.empty((block, 1), b.dtype)
    gram, some_codes = np.empty((block, block), b.dtype), np.empty((block, b.shape[0]), b.dtype)
    room = product_room(X, codes, block, b.shape[0])
    before = np.empty(block)
    settled = np.empty(block, np.bool_)
    no_sums = np.empty((0, 0), b.dtype)
    kept = 0
    for first in range(0, active.shape[0], block):
        rows = active[first : min(first + block, active.shape[0])]
        n = rows.shape[0]
        gather(X, rows, buffer)
        code_scores(X, rows, buffer, codes, W, one, b, responses, scores)
        if n > 1:
            code_gram(X, rows, buffer, codes, local, extra, some_codes, gram)
        moved = False
        for sweep in range(SWEEPS if n > 1 else 1):
            for i in range(n):
                row = rows[i]
                if sweep == 0:
                    before[i], settled[i] = a[row], False
                    scores[i, 0] += extra * g[0]
                    all_scores[row, 0] = scores[i, 0]
                elif settled[i]:
                    continue
                bound = bounds[row] if loss == _HINGE else math.inf
                curve = 0.0 if loss == _HINGE else 0.5 / bounds[row]
                slope = target[row] * scores[i, 0] - 1.0 + curve * a[row]
                if sweep == 0:
                    if (a[row] <= 0.0 and slope > limits[0]) or (
                        a[row] >= bound and slope < limits[1]
                    ):
                        settled[i] = True
                        continue
                    projected = _projected(slope, a[row], bound)
                    high, low = max(high, projected), min(low, projected)
                new = min(max(a[row] - slope / (squares[row] + curve), 0.0), bound)
                change = b.dtype.type((new - a[row]) * target[row])
                if change != 0:
                    a[row] = new
                    moved = True
                    if n > 1:
                        for k in range(n):
                            scores[k, 0] += change * gram[i, k]
        if moved:
            for i in range(n):
                steps[i, 0] = (a[rows[i]] - before[i]) * target[rows[i]]
            add_batch(X, rows, buffer, codes, steps, W, b, g, one, no_sums, one, local, room)
        for i in range(n):  # those that stay to the front; the others take their places
            if not settled[i]:
                active[first + i], active[kept] = active[kept], active[first + i]
                kept += 1
    return kept, high, low


@jit
def set_weights(X, codes, slopes, W, b, g, block, local):
    """Write the weights that the dual variables mean, free of the rounding of all the steps.

    ``slopes`` (n, s) are the dual variables with the signs of the targets.
    """
    W[:] = 0
    b[:] = 0
    g[:] = 0
    one, s = b.dtype.type(1), slopes.shape[1]
    buffer = row_buffer(X, block, W.shape[1])
    room = product_room(X, codes, block, b.shape[0] // s)
    some, no_sums = np.empty((block, s), b.dtype), np.empty((0, 0), b.dtype)
    order = np.arange(slopes.shape[0])
    found = 0
    for row in range(slopes.shape[0]):
        if slopes[row].any():
            order[found] = row
            found += 1
    for first in range(0, found, block):
        rows = order[first : min(first + block, found)]
        gather(X, rows, buffer)
        for i in range(rows.shape[0]):
            for y in range(s):
                some[i, y] = slopes[rows[i], y]
        add_batch(X, rows, buffer, codes, some, W, b, g, one, no_sums, one, local, room)


@jit
def set_scores(X, codes, W, b, g, block, extra, all_scores):
    """Write the scores of all rows, (n, s)."""
    one, s = b.dtype.type(1), all_scores.shape[1]
    buffer = row_buffer(X, block, W.shape[1])
    responses = np.empty((block, b.shape[0]), b.dtype)
    scores = np.empty((block, s), b.dtype)
    order = np.arange(all_scores.shape[0])
    for first in range(0, order.shape[0], block):
        rows = order[first : min(first + block, order.shape[0])]
        gather(X, rows, buffer)
        code_scores(X, rows, buffer, codes, W, one, b, responses, scores)
        for i in range(rows.shape[0]):
            for y in range(s):
                all_scores[rows[i], y] = scores[i, y] + extra * g[y]


@jit
def losses_and_gap(loss, all_scores, target, a, bounds):
    """Sum of weighted losses, and of what each row adds to the duality gap (Fenchel-Young)."""
    total, gap = 0.0, 0.0
    for i in range(a.shape[0]):
        margin = target[i] * all_scores[i, 0]
        value = bounds[i] * loss_value(loss, margin)
        total += value
        gap += value + bounds[i] * loss_conjugate(loss, -a[i] / bounds[i]) + a[i] * margin
    return total, gap
