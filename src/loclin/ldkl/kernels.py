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
from numpy.typing import NDArray

from loclin.engine.coders import average_coder, is_coder, move_coder, write_codes
from loclin.engine.jit import OPTIONS, jit
from loclin.engine.rows import add_outer, gather, is_dense, score


class MovingTree(NamedTuple):
    """A tree as a pass takes it.

    Codes have an entry for every node while paths are relaxed, and one for each node of the path
    once they are hard; then the gates rest.
    """

    codes: Any  # parts of a CSR matrix (n, m), as many entries in every row
    X: Any  # compiled form of the rows (n, d)
    U: NDArray  # shape: (m // 2 + m, d)
    c: NDArray  # shape: (m // 2 + m,), what U has for a feature that is always 1
    history: NDArray  # shape: (m // 2 + m,), AdaGrad: squared gradients
    sigma: float
    hardness: float
    rate: float
    decay: float  # L2 strength
    gradient: NDArray  # shape: (m // 2 + m, d), all 0 between batches
    answers: NDArray  # shape: (batch, m // 2 + m), through tanh
    buffer: NDArray  # shape: (batch, d) for dense rows
    sum_U: NDArray  # shape of U, or empty
    sum_c: NDArray  # shape of c, or empty


def as_weights(X, U):
    """View an array (outputs, d) in the layout of weights for such rows."""


@overload(as_weights, jit_options=OPTIONS)
def _as_weights(X, U):
    return (lambda X, U: U) if is_dense(X) else (lambda X, U: U.T)


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


@jit
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
        X, U, c, sigma = coder.X, coder.U, coder.c, coder.sigma
        values, columns, starts = coder.codes
        n_outputs = c.shape[0]
        n_gates = n_outputs // 3
        m = n_outputs - n_gates
        if starts[1] - starts[0] < m:
            walk(X, rows, U[:n_gates], c[:n_gates], U[n_gates:], c[n_gates:], sigma, coder.codes)
            return
        gather(X, rows, coder.buffer)
        score(X, rows, coder.buffer, as_weights(X, U), 0, n_outputs, coder.answers)
        reached = np.empty(m, values.dtype)
        for i in range(rows.shape[0]):
            at, answer = starts[rows[i]], coder.answers[i]
            for j in range(n_outputs):
                slope = coder.hardness if j < n_gates else sigma
                answer[j] = math.tanh(slope * (answer[j] + c[j]))
            reach(answer, reached)
            for k in range(m):
                values[at + k], columns[at + k] = reached[k] * answer[n_gates + k], k

    return write


@jit
def pull_outputs(coder, i, of_nodes, pulls):
    """Write the slope of ``sum_k of_nodes_k code_k`` by the outputs, for gathered row i.

    What a gate has is half of what its first child says of the row, and all below it, less what its
    second child does.
    """
    m, dtype = of_nodes.shape[0], pulls.dtype.type
    n_gates, half = m // 2, dtype(0.5)
    gates, features = coder.answers[i, :n_gates], coder.answers[i, n_gates:]
    reached, below = np.empty(m, pulls.dtype), of_nodes * features
    reach(gates, reached)
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
        X, (values, columns, starts) = coder.X, coder.codes
        n_outputs, k = coder.c.shape[0], starts[1] - starts[0]
        n_gates = n_outputs // 3
        of_entries, pulls = np.empty(k, values.dtype), np.zeros(n_outputs, values.dtype)
        of_constants = np.zeros(n_outputs, values.dtype)
        relaxed = k == n_outputs - n_gates
        gather(X, rows, coder.buffer)
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
            to = as_weights(X, coder.gradient)
            add_outer(X, rows[i], coder.buffer, i, pulls, 0, to, values.dtype.type(1))
            of_constants += pulls
        descend(coder, rows.shape[0], 0 if relaxed else n_gates, of_constants)

    return move


@jit
def descend(tree, n, first, of_constants):
    """AdaGrad step of the outputs from the first on, with one number each, after n rows."""
    U, c, gradient = tree.U, tree.c, tree.gradient
    decay = U.dtype.type(n * tree.decay)
    for j in range(first, c.shape[0]):
        of_constants[j] -= decay * c[j]
        gradient[j] -= decay * U[j]
        square = np.dot(gradient[j], gradient[j]) + of_constants[j] ** 2
        tree.history[j] += square
        if square > 0:
            step = U.dtype.type(tree.rate / math.sqrt(tree.history[j]))
            U[j] += step * gradient[j]
            c[j] += step * of_constants[j]
        gradient[j] = 0


@overload(average_coder, jit_options=OPTIONS)
def _average_tree(coder, n):
    if not is_coder(coder, MovingTree):
        return None

    def average(coder, n):
        for j in range(coder.sum_c.shape[0]):
            coder.sum_U[j] += coder.U.dtype.type(n) * coder.U[j]
            coder.sum_c[j] += n * coder.c[j]

    return average
