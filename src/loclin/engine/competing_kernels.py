"""Compiled loops of dual coordinate descent for competing classes (Crammer and Singer).

With kernel K of the features ``code (x) [x; 1]``, shared by the classes, the dual is

    min  1/2 sum_ik K_ik a_i . a_k + sum_i sum_{y != y_i} a_iy
    subject to  sum_y a_iy = 0,  a_iy <= 0 for y != y_i,  a_iy_i <= C_i

and W_y = sum_i a_iy code_i (x) x. A row's problem has a closed form (Keerthi et al., A
sequential dual method for large scale multi-class linear SVMs, 2008).
"""

from __future__ import annotations

import math

import numpy as np

from loclin.engine.codes import code_gram, code_scores, product_room
from loclin.engine.dual_kernels import (
    SWEEPS,
    add_rows,
    to_the_front,
    workspace,
    write_steps,
)
from loclin.engine.jit import inner, jit
from loclin.engine.rows import gather


@inner
def solve_row(curve, slopes, label, bound, ordered, new):
    """Minimise ``curve/2 ||a||^2 + slopes . a`` over the row's constraints, into `new`.

    Parameters
    ----------
    curve : float
    slopes : ndarray of shape (s,)
    label : int
        The row's class, y_i.
    bound : float
        C_i.
    ordered, new : ndarray of shape (s,)
        Overwritten; `ordered` is room.
    """
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


@inner
def _lead(scores, label):
    """How far the true class's score is above the best other."""
    best = -math.inf
    for y in range(scores.shape[0]):
        if y != label and scores[y] > best:
            best = scores[y]
    return scores[label] - best


@jit
def competing_pass(problem, state, active, limit):
    """Visit the active rows once;
    drop those with dual variables of zero that lead by far.

    Parameters
    ----------
    problem : Problem
        Its loss is the hinge.
    state : State
        Changed in place.
    active : ndarray of shape (n_active,)
        Rows, in the order of the visits; those that stay active are moved to the front.
    limit : float
        Largest violation of optimality in the pass before; infinite where none is
        dropped.

    Returns
    -------
    kept : int
        How many rows stay active.
    worst : float
        Largest violation of this pass.
    """
    X, codes, labels, bounds, squares, _, block, intercepts = problem
    a = state.dual
    weights = state.weights
    b = weights.b
    one = b.dtype.type(1)
    local, extra = b.dtype.type(intercepts.local), b.dtype.type(intercepts.extra)
    buffer, some_codes, responses, scores, kernel, steps, before, settled = workspace(
        X, weights, block
    )
    room = product_room(X, codes, block, some_codes.shape[1])
    s = a.shape[1]
    slopes = np.empty(s)
    ordered = np.empty(s)
    new = np.empty(s)
    kept = 0
    worst = 0.0
    for first in range(0, active.shape[0], block):
        rows = active[first : min(first + block, active.shape[0])]
        n = rows.shape[0]
        gather(X, rows, buffer)
        code_scores(X, rows, buffer, codes, weights.W, one, b, responses, scores)
        if n > 1:
            code_gram(X, rows, buffer, codes, local, extra, some_codes, kernel)
        moved = False
        for sweep in range(SWEEPS if n > 1 else 1):
            for i in range(n):
                row = rows[i]
                label, curve = labels[row], squares[row]
                if sweep == 0:
                    settled[i] = False
                    for y in range(s):
                        before[i, y] = a[row, y]
                        scores[i, y] += extra * weights.g[y]
                        state.scores[row, y] = scores[i, y]
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
                    step = b.dtype.type(new[y] - a[row, y])
                    if step != 0:
                        a[row, y] = new[y]
                        moved = True
                        if sweep == 0 and a[row, label] > 0.0:
                            worst = max(worst, abs(float(step)) * curve)
                        if n > 1:
                            for k in range(n):
                                scores[k, y] += step * kernel[i, k]
        if moved:
            write_steps(a, rows, before, steps)
            add_rows(X, rows, buffer, codes, steps, weights, intercepts, room)
        kept = to_the_front(active, first, n, settled, kept)
    return kept, worst


@jit
def competing_losses_and_gap(labels, bounds, a, scores):
    """Sum of weighted losses, and of what each row adds to the duality gap.

    Parameters
    ----------
    labels, bounds : ndarray of shape (n,)
        See `Problem`.
    a, scores : ndarray of shape (n, s)
        See `State`.
    """
    total, gap = 0.0, 0.0
    for i in range(a.shape[0]):
        value = bounds[i] * max(0.0, 1.0 - _lead(scores[i], labels[i]))
        total += value
        gap += value
        for y in range(a.shape[1]):
            gap += a[i, y] * (scores[i, y] + (y != labels[i]))
    return total, gap
