"""Compiled loops of dual coordinate descent for competing classes (Crammer and Singer).

With kernel K of the features ``code (x) [x; 1]``, shared by the classes, the dual is

    min  1/2 sum_ik K_ik a_i . a_k + sum_i sum_{y != y_i} a_iy
    subject to  sum_y a_iy = 0,  a_iy <= 0 for y != y_i,  a_iy_i <= C_i

and W_y = sum_i a_iy code_i (x) x. A row's problem has a closed form (Keerthi et al., A sequential
dual method for large scale multi-class linear SVMs, 2008).
"""

from __future__ import annotations

import math

import numpy as np

from loclin.engine.codes import add_batch, code_gram, code_scores, product_room
from loclin.engine.jit import jit
from loclin.engine.rows import gather, row_buffer
from loclin.llsvm.dual_kernels import SWEEPS


@jit
def solve_row(curve, slopes, label, bound, ordered, new):
    """Minimise ``curve/2 ||a||^2 + slopes . a`` over the row's constraints, into `new`."""
    s = slopes.shape[0]
    for y in range(s):
        ordered[y] = slopes[y]
    ordered[label] += curve * bound
    ordered.sort()  # rising; the largest decide how many classes share the level
    level, r = ordered[s - 1] - curve * bound, 1
    while r < s and level < r * ordered[s - 1 - r]:
        level += ordered[s - 1 - r]
        r += 1
    level /= r
    for y in range(s):
        new[y] = min(bound if y == label else 0.0, (level - slopes[y]) / curve)


@jit
def _lead(scores, label):
    """How far the true class's score is above the best other."""
    best = -math.inf
    for y in range(scores.shape[0]):
        if y != label and scores[y] > best:
            best = scores[y]
    return scores[label] - best


@jit
def competing_pass(X, codes, labels, bounds, active, a, all_scores, W, b, g, squares, limit, block,
                   local, extra):  # fmt: skip
    """Visit the active rows in the order given; drop idle ones that lead by far.

    `limit` is the largest violation of the pass before. `all_scores` gets the scores met. Returns
    how many rows stay active (moved to the front), and the largest violation of this pass.
    """
    s = a.shape[1]
    one = b.dtype.type(1)
    buffer = row_buffer(X, block, W.shape[1])
    responses = np.empty((block, b.shape[0]), b.dtype)
    scores, steps = np.empty((block, s), b.dtype), np.empty((block, s), b.dtype)
    gram, some_codes = (
        np.empty((block, block), b.dtype),
        np.empty((block, b.shape[0] // s), b.dtype),
    )
    room = product_room(X, codes, block, b.shape[0] // s)
    before, settled = np.empty((block, s)), np.empty(block, np.bool_)
    slopes, ordered, new = np.empty(s), np.empty(s), np.empty(s)
    no_sums = np.empty((0, 0), b.dtype)
    kept, worst = 0, 0.0
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
                row, label, curve = rows[i], labels[rows[i]], squares[rows[i]]
                if sweep == 0:
                    settled[i] = False
                    for y in range(s):
                        before[i, y] = a[row, y]
                        scores[i, y] += extra * g[y]
                        all_scores[row, y] = scores[i, y]
                    violation = 1.0 - _lead(scores[i], label)
                    if a[row, label] <= 0.0:
                        settled[i] = violation < -limit
                        worst = max(worst, violation)
                if settled[i]:
                    continue
                for y in range(s):
                    slopes[y] = scores[i, y] + (y != label) - curve * a[row, y]
                solve_row(curve, slopes, label, bounds[row], ordered, new)
                for y in range(s):
                    change = b.dtype.type(new[y] - a[row, y])
                    if change != 0:
                        a[row, y] = new[y]
                        moved = True
                        if sweep == 0 and a[row, label] > 0.0:
                            worst = max(worst, abs(float(change)) * curve)
                        if n > 1:
                            for k in range(n):
                                scores[k, y] += change * gram[i, k]
        if moved:
            for i in range(n):
                for y in range(s):
                    steps[i, y] = a[rows[i], y] - before[i, y]
            add_batch(X, rows, buffer, codes, steps, W, b, g, one, no_sums, one, local, room)
        for i in range(n):  # those that stay to the front; the others take their places
            if not settled[i]:
                active[first + i], active[kept] = active[kept], active[first + i]
                kept += 1
    return kept, worst


@jit
def competing_losses_and_gap(labels, all_scores, a, bounds):
    """Sum of weighted losses, and of what each row adds to the duality gap."""
    total, gap = 0.0, 0.0
    for i in range(labels.shape[0]):
        value = bounds[i] * max(0.0, 1.0 - _lead(all_scores[i], labels[i]))
        total += value
        gap += value
        for y in range(a.shape[1]):
            gap += a[i, y] * (all_scores[i, y] + (y != labels[i]))
    return total, gap
