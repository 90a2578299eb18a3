"""Compiled loops of dual coordinate descent on implicit features.

With kernel K of the features ``code (x) [x; 1]`` and bounds C, dual variables a (n, s)
give the weights ``W_y = sum_i a_iy code_i (x) x``, which are kept beside them. For a
binary problem (s = 1) with targets y = +-1, a_i has the sign of y_i, and the dual is, in
``c_i = y_i a_i``,

    min  1/2 sum_ik K_ik a_i a_k + sum_i (D_i c_i^2 / 2 - c_i)    subject to 0 <= c_i <= U_i

with U = C upper and D = curvature / C (`engine.losses.Dual`): U = C, D = 0 for the hinge
and U infinite, D = 1 / (2 C) for the squared hinge.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.engine.codes import (
    Intercepts,
    add_batch,
    add_code,
    add_code_only,
    code_gram,
    code_scores,
    product_room,
)
from loclin.engine.iterates import Progress, Weights
from loclin.engine.jit import inner, jit
from loclin.engine.losses import Dual, loss_value
from loclin.engine.rows import gather, row_buffer
from loclin.engine.targets import sign_of

# Sweeps over a block of rows whose kernel is at hand.
SWEEPS = 3
# The weights are as they stand, times no scale.
AT_REST = Progress(t=0.0, scale=1.0, c=0.0, n_averaged=0.0)


class Problem(NamedTuple):
    """What the loops read: rows and settings.

    `X` and `codes` are arrays, or the three arrays of a CSR matrix, as `compiled_form`
    gives them.
    """

    X: NDArray | tuple[NDArray, ...]  # shape: (n, d)
    codes: NDArray | tuple[NDArray, ...]  # shape: (n, m)
    # shape: (n,); classes 0 .. s - 1, or 1 and 0 in a binary problem
    y: NDArray[np.int32]
    bounds: NDArray[np.float64]  # shape: (n,); C, positive
    squares: NDArray[np.float64]  # shape: (n,); the diagonal of K, positive
    dual: Dual  # the conjugate of the loss
    block: int  # rows that share a block of K
    intercepts: Intercepts


class State(NamedTuple):
    """What the loops change."""

    dual: NDArray[np.float64]  # shape: (n, s)
    scores: NDArray[np.float64]  # shape: (n, s); as last met
    weights: Weights


class Workspace(NamedTuple):
    """Room for a block of k rows, in the dtype of X; their dual variables are float64."""

    rows: NDArray  # shape: (k, d); empty for sparse rows
    codes: NDArray  # shape: (k, m)
    responses: NDArray  # shape: (k, s m)
    scores: NDArray  # shape: (k, s)
    kernel: NDArray  # shape: (k, k)
    steps: NDArray  # shape: (k, s); what the visit adds to the dual variables
    before: NDArray[np.float64]  # shape: (k, s); dual variables at its start
    settled: NDArray[np.bool_]  # shape: (k,); rows that seem to stay at a bound


@inner
def workspace(X, weights, k):
    """Return room for k rows of `X`."""
    b = weights.b
    s = weights.g.shape[0]
    return Workspace(
        row_buffer(X, k, weights.W.shape[1]),
        np.empty((k, b.shape[0] // s), b.dtype),
        np.empty((k, b.shape[0]), b.dtype),
        np.empty((k, s), b.dtype),
        np.empty((k, k), b.dtype),
        np.empty((k, s), b.dtype),
        np.empty((k, s)),
        np.empty(k, np.bool_),
    )


@inner
def no_sums(b):
    """Return empty sums, as nothing is averaged."""
    nothing = np.empty(0, b.dtype)
    return Weights(nothing.reshape((0, 0)), nothing, nothing)


@inner
def write_steps(dual, rows, before, steps):
    """Write what the visit of a block has added to its rows' dual variables."""
    for i in range(rows.shape[0]):
        for k in range(dual.shape[1]):
            steps[i, k] = dual[rows[i], k] - before[i, k]


@inner
def add_row(X, row, buffer, codes, steps, weights, intercepts):
    """Do what `add_batch` does for a batch of one row, at less cost.

    Parameters
    ----------
    X, codes : compiled form of {ndarray, csr} of shape (n, d) and (n, m)
    row : int
    buffer : ndarray of shape (>= 1, d)
        The row, gathered; not used for a sparse X.
    steps : ndarray of shape (>= 1, s)
    weights : Weights
        Moved in place.
    intercepts : Intercepts
    """
    b = weights.b
    g = weights.g
    m = b.shape[0] // g.shape[0]
    for k in range(g.shape[0]):
        step = steps[0, k]
        if step != 0:
            add_code(X, row, buffer, 0, codes, k, k * m, weights.W, step)
            if intercepts.local:
                add_code_only(codes, row, k, k * m, b, step)
            if intercepts.extra:
                g[k] += step


@inner
def add_rows(X, rows, buffer, codes, steps, weights, intercepts, room):
    """Move the weights by the steps of a block's dual variables.

    Parameters
    ----------
    X, codes : compiled form of {ndarray, csr} of shape (n, d) and (n, m)
    rows : ndarray of shape (k,)
    buffer : ndarray of shape (>= k, d)
        The rows, gathered; not used for a sparse X.
    steps : ndarray of shape (>= k, s)
    weights : Weights
        Moved in place.
    intercepts : Intercepts
    room : tuple
        See `product_room`.
    """
    if rows.shape[0] > 1:
        sums = no_sums(weights.b)
        add_batch(X, rows, buffer, codes, steps, weights, sums, AT_REST, intercepts, room)
    else:
        add_row(X, rows[0], buffer, codes, steps, weights, intercepts)


@inner
def to_the_front(active, first, n, settled, kept):
    """Move the rows of a block of n that stay active behind
    the `kept` first; count them too.

    Parameters
    ----------
    active : ndarray of shape (n_active,)
        Rows; the block begins at `first`.
    settled : ndarray of shape (k,)
        Which rows of the block do not stay.
    """
    for i in range(n):
        if not settled[i]:
            active[first + i], active[kept] = active[kept], active[first + i]
            kept += 1
    return kept


@inner
def _projected(slope, c, upper):
    """Slope of the dual that the bounds leave."""
    if c <= 0.0:
        return min(slope, 0.0)
    return max(slope, 0.0) if c >= upper else slope


@jit
def dual_pass(problem, state, active, high, low):
    """Visit the active rows of a binary problem once;
    drop those that seem settled at a bound.

    Blocks of rows are scored together, and their kernel tells how each step changes the
    others, so that a visit is exact coordinate descent; where a kernel block would cost
    more than it saves (few models a row, sparse rows), blocks are single rows.

    Parameters
    ----------
    problem : Problem
    state : State
        Changed in place.
    active : ndarray of shape (n_active,)
        Rows, in the order of the visits; those that stay active are moved to the front.
    high, low : float
        Largest and smallest projected slopes of the pass before; infinite where none is
        dropped.

    Returns
    -------
    kept : int
        How many rows stay active.
    high, low : float
        Largest and smallest projected slopes of this pass.
    """
    X, codes, y, bounds, squares, conjugate, block, intercepts = problem
    dual = state.dual
    weights = state.weights
    b = weights.b
    buffer, some_codes, responses, scores, kernel, steps, before, settled = workspace(
        X, weights, block
    )
    # The single column is read as a vector, whose entries are known to be neighbours.
    of_rows = scores.reshape(-1)
    room = product_room(X, codes, block, some_codes.shape[1])
    one = b.dtype.type(1)
    local, extra = b.dtype.type(intercepts.local), b.dtype.type(intercepts.extra)
    limit_high, limit_low = high, low
    high, low = -math.inf, math.inf
    kept = 0
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
                if sweep == 0:
                    before[i, 0], settled[i] = dual[row, 0], False
                    of_rows[i] += extra * weights.g[0]
                    state.scores[row, 0] = of_rows[i]
                elif settled[i]:
                    continue
                sign = sign_of(y[row], 0, 1)
                upper = bounds[row] * conjugate.upper
                diagonal = conjugate.curvature / bounds[row]
                c = sign * dual[row, 0]
                slope = sign * of_rows[i] - 1.0 + diagonal * c
                if sweep == 0:
                    if (c <= 0.0 and slope > limit_high) or (
                        c >= upper and slope < limit_low
                    ):
                        settled[i] = True
                        continue
                    projected = _projected(slope, c, upper)
                    high, low = max(high, projected), min(low, projected)
                new = sign * min(max(c - slope / (squares[row] + diagonal), 0.0), upper)
                step = b.dtype.type(new - dual[row, 0])
                if step != 0:
                    dual[row, 0] = new
                    moved = True
                    if n > 1:
                        for k in range(n):
                            of_rows[k] += step * kernel[i, k]
        if moved:
            write_steps(dual, rows, before, steps)
            add_rows(X, rows, buffer, codes, steps, weights, intercepts, room)
        kept = to_the_front(active, first, n, settled, kept)
    return kept, high, low


@jit
def set_weights(problem, state, block):
    """Write the weights that the dual variables mean,
    free of the rounding of all the steps.
    """
    X, codes = problem.X, problem.codes
    dual = state.dual
    weights = state.weights
    weights.W[:] = 0
    weights.b[:] = 0
    weights.g[:] = 0
    room = workspace(X, weights, block)
    buffer, steps = room.rows, room.steps
    products = product_room(X, codes, block, room.codes.shape[1])
    sums = no_sums(weights.b)
    order = np.arange(dual.shape[0])
    n_nonzero = 0
    for row in range(dual.shape[0]):
        if dual[row].any():
            order[n_nonzero] = row
            n_nonzero += 1
    for first in range(0, n_nonzero, block):
        rows = order[first : min(first + block, n_nonzero)]
        gather(X, rows, buffer)
        for i in range(rows.shape[0]):
            for k in range(dual.shape[1]):
                steps[i, k] = dual[rows[i], k]
        add_batch(X, rows, buffer, codes, steps, weights, sums, AT_REST,
                  problem.intercepts, products)  # fmt: skip


@jit
def set_scores(problem, state, block):
    """Write the scores of all rows."""
    X, codes = problem.X, problem.codes
    all_scores = state.scores
    weights = state.weights
    b = weights.b
    g = weights.g
    one, extra = b.dtype.type(1), b.dtype.type(problem.intercepts.extra)
    room = workspace(X, weights, block)
    buffer, scores = room.rows, room.scores
    order = np.arange(all_scores.shape[0])
    for first in range(0, order.shape[0], block):
        rows = order[first : min(first + block, order.shape[0])]
        gather(X, rows, buffer)
        code_scores(X, rows, buffer, codes, weights.W, one, b, room.responses, scores)
        for i in range(rows.shape[0]):
            for k in range(g.shape[0]):
                all_scores[rows[i], k] = scores[i, k] + extra * g[k]


@inner
def conjugate_at(conjugate, a):
    """Convex conjugate of the loss at slope -a; infinite outside its domain."""
    if a < 0.0 or a > conjugate.upper:
        return math.inf
    return 0.5 * conjugate.curvature * a * a - a


@jit
def losses_and_gap(y, bounds, loss, conjugate, dual, scores):
    """Sum of weighted losses, and of what each row adds to
    the duality gap (Fenchel-Young).

    The arrays come one by one: to take a whole `Problem` apart costs a call more than a
    hundred rows do.

    Parameters
    ----------
    y, bounds
        See `Problem`.
    loss : int or NamedTuple
    conjugate : Dual
        Of the loss.
    dual, scores : ndarray of shape (n,)
        The single columns of `State`, as vectors: numba reads them faster.
    """
    total, gap = 0.0, 0.0
    for i in range(dual.shape[0]):
        sign = sign_of(y[i], 0, 1)
        c, margin = sign * dual[i], sign * scores[i]
        value = bounds[i] * loss_value(loss, margin)
        total += value
        gap += value + bounds[i] * conjugate_at(conjugate, c / bounds[i]) + c * margin
    return total, gap
