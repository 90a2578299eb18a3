"""LDKL's coder, compiled: the paths of rows through the tree, their codes, and the tree's steps.

Nodes are numbered level by level: the children of node k are 2 k + 1, where its gate is positive,
and 2 k + 2. The first outputs of a tree are the gates of its inner nodes, the others the features
of all m nodes, so that a third of them, rounded down, are gates.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from loclin.engine.coders import is_coder, move_coder, write_codes
from loclin.engine.jit import OPTIONS, inner, jit
from loclin.engine.linear_outputs import MovingOutputs, answer, descend, pull
from loclin.engine.rows import gather, is_dense


class MovingTree(NamedTuple):
    """A tree as a pass takes it.

    Codes have an entry for every node while paths are relaxed, and one for each node of the path
    once they are hard; then the gates rest.
    """

    codes: Any  # parts of a CSR matrix (n, m), as many entries in every row
    outputs: MovingOutputs  # m // 2 + m of them; those of a batch through tanh
    sigma: float
    hardness: float


def product(X, row, W, j):
    """Product of a row with row j of W."""


@overload(product, jit_options=OPTIONS)
def _product(X, row, W, j):
    if is_dense(X):

        def dense(X, row, W, j):
            total = X.dtype.type(0)
            for f in range(X.shape[1]):
                total += X[row, f] * W[j, f]
            return total

        return dense

    def csr(X, row, W, j):
        data, indices, indptr = X
        total = data.dtype.type(0)
        for entry in range(indptr[row], indptr[row + 1]):
            total += data[entry] * W[j, indices[entry]]
        return total

    return csr


@jit
def walk(X, rows, gates, thresholds, features, constants, sigma, codes):
    """Write the codes of rows: of the nodes on their paths, root first.

    Parameters
    ----------
    X : compiled form of {ndarray, csr} of shape (n, d)
    rows : ndarray of int
    gates, thresholds : ndarray of shape (m // 2, d) and (m // 2,)
    features, constants : ndarray of shape (m, d) and (m,)
    sigma : float
    codes : parts of a CSR matrix (n, m), depth + 1 entries a row
    """
    values, columns, starts = codes
    for row in rows:
        node = 0
        for e in range(starts[row], starts[row + 1]):
            feature = product(X, row, features, node) + constants[node]
            values[e], columns[e] = math.tanh(sigma * feature), node
            if node < thresholds.shape[0]:
                gate = product(X, row, gates, node) + thresholds[node]
                node = 2 * node + (1 if gate > 0 else 2)


@inner
def reach(gates, reached):
    """Write how much of a row reaches each node: ``(1 +- gate) / 2`` of what reaches its parent."""
    half = gates.dtype.type(0.5)
    reached[0] = 1
    for k in range(reached.shape[0] // 2):
        reached[2 * k + 1] = reached[k] * half * (1 + gates[k])
        reached[2 * k + 2] = reached[k] * half * (1 - gates[k])


@overload(write_codes, jit_options=OPTIONS)
def _write_tree_codes(coder, rows):
    if not is_coder(coder, MovingTree):
        return None

    def write(coder, rows):
        X, U, c, sigma = coder.outputs.X, coder.outputs.U, coder.outputs.c, coder.sigma
        values, columns, starts = coder.codes
        n_gates = c.shape[0] // 3
        m = c.shape[0] - n_gates
        if starts[1] - starts[0] < m:
            walk(X, rows, U[:n_gates], c[:n_gates], U[n_gates:], c[n_gates:], sigma, coder.codes)
            return
        answer(coder.outputs, rows)
        reached = np.empty(m, values.dtype)
        for i in range(rows.shape[0]):
            at, answers = starts[rows[i]], coder.outputs.answers[i]
            for j in range(c.shape[0]):
                answers[j] = math.tanh((coder.hardness if j < n_gates else sigma) * answers[j])
            reach(answers, reached)
            for k in range(m):
                values[at + k], columns[at + k] = reached[k] * answers[n_gates + k], k

    return write


@inner
def pull_outputs(coder, i, of_nodes, pulls):
    """Write the slope of ``sum_k of_nodes_k code_k`` by the outputs, for gathered row i.

    What a gate has is half of what its first child says of the row, and all below it, less what its
    second child does.
    """
    m, dtype = of_nodes.shape[0], pulls.dtype.type
    n_gates, half = m // 2, dtype(0.5)
    answers = coder.outputs.answers[i]
    gates, features = answers[:n_gates], answers[n_gates:]
    reached, below = np.empty(m, pulls.dtype), np.empty(m, pulls.dtype)
    reach(gates, reached)
    for k in range(m):
        below[k] = of_nodes[k] * features[k]
    for k in range(m - 1, -1, -1):
        slope = dtype(coder.sigma) * (1 - features[k] * features[k])
        pulls[n_gates + k] = of_nodes[k] * reached[k] * slope
        if k < n_gates:
            first, second, gate = below[2 * k + 1], below[2 * k + 2], gates[k]
            slope = dtype(coder.hardness) * (1 - gate * gate)
            pulls[k] = half * (first - second) * reached[k] * slope
            below[k] += half * ((1 + gate) * first + (1 - gate) * second)


@overload(move_coder, jit_options=OPTIONS)
def _move_tree(coder, rows, slopes, responses):
    if not is_coder(coder, MovingTree):
        return None

    def move(coder, rows, slopes, responses):
        values, columns, starts = coder.codes
        n_outputs, k = coder.outputs.c.shape[0], starts[1] - starts[0]
        n_gates = n_outputs // 3
        of_entries, pulls = np.empty(k, values.dtype), np.zeros(n_outputs, values.dtype)
        relaxed = k == n_outputs - n_gates
        gather(coder.outputs.X, rows, coder.outputs.buffer)
        for i in range(rows.shape[0]):
            of_entries[:] = 0
            for y in range(slopes.shape[1]):
                for e in range(k):
                    of_entries[e] += slopes[i, y] * responses[i, y * k + e]
            if not of_entries.any():
                continue
            if relaxed:
                pull_outputs(coder, i, of_entries, pulls)
            else:
                pulls[:] = 0
                for e in range(k):
                    code, node = values[starts[rows[i]] + e], columns[starts[rows[i]] + e]
                    slope = values.dtype.type(coder.sigma) * (1 - code * code)
                    pulls[n_gates + node] = of_entries[e] * slope
            pull(coder.outputs, rows[i], i, pulls)
        descend(coder.outputs, rows.shape[0], 0 if relaxed else n_gates)

    return move
