"""LDKL's coder, compiled: the paths of rows through the tree,
their codes, and the slopes of these.

Nodes are numbered level by level: the children of node k are 2 k + 1, where its gate is
positive, and 2 k + 2. The first outputs of a tree are the gates of its inner nodes, the
others the features of all m nodes, so that a third of them, rounded down, are gates.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from loclin.engine.coders import code_places, is_kind, write_codes
from loclin.engine.jit import OPTIONS, inner, jit
from loclin.engine.linear_outputs import MovingOutputs, answer, pull_outputs
from loclin.engine.rows import is_dense


class MovingTree(NamedTuple):
    """A tree as a pass takes it.

    Codes have an entry for every node while paths are relaxed, and one for each node of
    the path once they are hard; then the gates rest.
    """

    # parts of a CSR matrix, as many entries in every row: see `room_for_codes`
    codes: Any
    outputs: MovingOutputs  # m // 2 + m of them; those of a batch through tanh
    hardness: float


def output(X, row, U, c, j):
    """Return output j of a row."""


@overload(output, jit_options=OPTIONS)
def _output(X, row, U, c, j):
    if is_dense(X):

        def dense(X, row, U, c, j):
            total = X.dtype.type(0)
            for f in range(X.shape[1]):
                total += X[row, f] * U[j, f]
            return total + c[j]

        return dense

    def csr(X, row, U, c, j):
        data, indices, indptr = X
        total = data.dtype.type(0)
        for entry in range(indptr[row], indptr[row + 1]):
            total += data[entry] * U[j, indices[entry]]
        return total + c[j]

    return csr


@jit
def walk(X, rows, U, c, codes, places):
    """Write the codes of rows: of the nodes on their paths, root first.

    Parameters
    ----------
    X : compiled form of {ndarray, csr} of shape (n, d)
    rows : ndarray of int
    U, c : ndarray of shape (m // 2 + m, d) and (m // 2 + m,)
    codes : parts of a CSR matrix, depth + 1 entries a row
    places : ndarray of int
        Of the codes of these rows there.
    """
    values, columns, starts = codes
    n_gates = c.shape[0] // 3
    for i in range(rows.shape[0]):
        row, node = rows[i], 0
        for e in range(starts[places[i]], starts[places[i] + 1]):
            values[e], columns[e] = math.tanh(output(X, row, U, c, n_gates + node)), node
            if node < n_gates:
                node = 2 * node + (1 if output(X, row, U, c, node) > 0 else 2)


@inner
def reach(gates, reached):
    """Write how much of a row reaches each node:
    ``(1 +- gate) / 2`` of what reaches its parent.
    """
    half = gates.dtype.type(0.5)
    reached[0] = 1
    for k in range(reached.shape[0] // 2):
        reached[2 * k + 1] = reached[k] * half * (1 + gates[k])
        reached[2 * k + 2] = reached[k] * half * (1 - gates[k])


@overload(write_codes, jit_options=OPTIONS)
def _write_tree_codes(coder, rows):
    if not is_kind(coder, MovingTree):
        return None

    def write(coder, rows):
        outputs, (values, columns, starts) = coder.outputs, coder.codes
        n_outputs = outputs.c.shape[0]
        n_gates = n_outputs // 3
        m, places = n_outputs - n_gates, code_places(coder.codes, rows)
        if starts[1] - starts[0] < m:
            walk(outputs.X, rows, outputs.U, outputs.c, coder.codes, places)
            return
        answer(outputs, rows)
        reached = np.empty(m, values.dtype)
        for i in range(rows.shape[0]):
            at, answers = starts[places[i]], outputs.answers[i]
            for j in range(n_outputs):
                answers[j] = math.tanh(
                    (coder.hardness if j < n_gates else 1.0) * answers[j]
                )
            reach(answers, reached)
            for k in range(m):
                values[at + k], columns[at + k] = reached[k] * answers[n_gates + k], k

    return write


@overload(pull_outputs, jit_options=OPTIONS)
def _pull_tree(coder, i, values, columns, of_nodes, pulls):
    """Give a gate half of what its first child says of the row,
    less what its second child does.
    """
    if not is_kind(coder, MovingTree):
        return None

    def pull(coder, i, values, columns, of_nodes, pulls):
        n_gates, half = pulls.shape[0] // 3, pulls.dtype.type(0.5)
        k, m = values.shape[0], pulls.shape[0] - n_gates
        if k < m:  # of a path
            for e in range(k):
                pulls[n_gates + columns[e]] = of_nodes[e] * (1 - values[e] * values[e])
            return
        answers = coder.outputs.answers[i]
        gates, features = answers[:n_gates], answers[n_gates:]
        reached, said = np.empty(m, pulls.dtype), np.empty(m, pulls.dtype)
        reach(gates, reached)
        for node in range(m - 1, -1, -1):
            feature = features[node]
            pulls[n_gates + node] = (
                of_nodes[node] * reached[node] * (1 - feature * feature)
            )
            said[node] = of_nodes[node] * feature  # by the node and all below it
            if node < n_gates:
                first, second, gate = said[2 * node + 1], said[2 * node + 2], gates[node]
                slope = pulls.dtype.type(coder.hardness) * (1 - gate * gate)
                pulls[node] = half * (first - second) * reached[node] * slope
                said[node] += half * ((1 + gate) * first + (1 - gate) * second)

    return pull
