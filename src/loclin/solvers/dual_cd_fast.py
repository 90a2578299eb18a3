"""Compiled loops of dual coordinate descent for one binary problem on implicit features.

With kernel K of the features ``code (x) [x; 1]``, bounds C and targets y = +-1, the dual is

    min over 0 <= a <= C     1/2 sum_ik a_i a_k y_i y_k K_ik - sum_i a_i            (hinge)
    min over 0 <= a          the same + sum_i a_i^2 / (4 C_i)                       (squared hinge)

and W = sum_i a_i y_i code_i (x) x is kept beside a.
"""

from __future__ import annotations

import math

import numpy as np

from loclin._jit import jit
from loclin.losses import loss_conjugate, loss_value
from loclin.solvers.codes_fast import add_batch, code_gram, code_scores, product_room
from loclin.solvers.rows_fast import gather, row_buffer

_HINGE = 0  # of losses.Loss
# Sweeps over a block of rows whose kernel is at hand.
_SWEEPS = 3


@jit
def _projected(slope, a, bound):
    """Slope of the dual that the bounds leave."""
    if a <= 0.0:
        return min(slope, 0.0)
    return max(slope, 0.0) if a >= bound else slope


@jit
def dual_pass(X, codes, target, bounds, loss, active, a, margins, W, b, g, squares, limits, block,
              local, extra):  # fmt: skip
    """Visit the active rows in the order given; drop those that seem settled at a bound.

    Blocks of rows are scored together, and their kernel tells how each step changes the others, so
    that a visit is exact coordinate descent; where a kernel block would cost more than it saves
    (few models a row, sparse rows), blocks are single rows.

    `limits` are the largest and smallest projected slopes of the pass before; `margins` gets the
    margins met. Returns how many rows stay active (moved to the front of `active`), and the
    limits of this pass.
    """
    high, low = -math.inf, math.inf
    one = b.dtype.type(1)
    buffer = row_buffer(X, block, W.shape[1])
    responses = np.empty((block, b.shape[0]), b.dtype)
    scores = np.empty((block, 1), b.dtype)
    steps = np.empty((block, 1), b.dtype)
    gram = np.empty((block, block), b.dtype)
    room = product_room(X, codes, block, b.shape[0])
    before = np.empty(block)
    settled = np.empty(block, np.bool_)
    no_sums = np.empty((0, 0), b.dtype)
    kept = 0
    for first in range(0, active.shape[0], block):
        rows = active[first : min(first + block, active.shape[0])]
        n = rows.shape[0]
        gather(X, rows, buffer)
        code_scores(X, rows, buffer, codes, W, b.dtype.type(1), b, responses, scores)
        if n > 1:
            code_gram(buffer, rows, codes, local, extra, room, gram)
        moved = False
        for sweep in range(_SWEEPS if n > 1 else 1):
            for i in range(n):
                row = rows[i]
                if sweep == 0:
                    before[i], settled[i] = a[row], False
                    margins[row] = target[row] * (scores[i, 0] + extra * g[0])
                elif settled[i]:
                    continue
                bound = bounds[row] if loss == _HINGE else math.inf
                curve = 0.0 if loss == _HINGE else 0.5 / bounds[row]
                slope = target[row] * (scores[i, 0] + extra * g[0]) - 1.0 + curve * a[row]
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
def set_weights(X, codes, target, a, W, b, g, block, local):
    """Write the weights that the dual variables mean, free of the rounding of all the steps."""
    W[:] = 0
    b[:] = 0
    g[:] = 0
    one = b.dtype.type(1)
    buffer = row_buffer(X, block, W.shape[1])
    room = product_room(X, codes, block, b.shape[0])
    slopes, no_sums = np.empty((block, 1), b.dtype), np.empty((0, 0), b.dtype)
    order = np.nonzero(a)[0]
    for first in range(0, order.shape[0], block):
        rows = order[first : min(first + block, order.shape[0])]
        gather(X, rows, buffer)
        for i in range(rows.shape[0]):
            slopes[i, 0] = a[rows[i]] * target[rows[i]]
        add_batch(X, rows, buffer, codes, slopes, W, b, g, one, no_sums, one, local, room)


@jit
def set_margins(X, codes, target, W, b, g, block, extra, margins):
    """Write the margins of all rows."""
    one = b.dtype.type(1)
    buffer = row_buffer(X, block, W.shape[1])
    responses = np.empty((block, b.shape[0]), b.dtype)
    scores = np.empty((block, 1), b.dtype)
    order = np.arange(margins.shape[0])
    for first in range(0, order.shape[0], block):
        rows = order[first : min(first + block, order.shape[0])]
        gather(X, rows, buffer)
        code_scores(X, rows, buffer, codes, W, one, b, responses, scores)
        for i in range(rows.shape[0]):
            margins[rows[i]] = target[rows[i]] * (scores[i, 0] + extra * g[0])


@jit
def losses_and_gap(loss, margins, a, bounds):
    """Sum of weighted losses, and of what each row adds to the duality gap (Fenchel-Young)."""
    total, gap = 0.0, 0.0
    for i in range(margins.shape[0]):
        value = bounds[i] * loss_value(loss, margins[i])
        total += value
        gap += value + bounds[i] * loss_conjugate(loss, -a[i] / bounds[i]) + a[i] * margins[i]
    return total, gap
