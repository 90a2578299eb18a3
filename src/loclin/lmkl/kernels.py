"""L-MKL's coder, compiled: softmax codes and the steps of the gates."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from loclin.engine.coders import is_coder, move_coder, write_codes
from loclin.engine.jit import OPTIONS, inner
from loclin.engine.linear_outputs import MovingOutputs, answer, descend, pull


class MovingGates(NamedTuple):
    """Softmax gates as a pass takes them."""

    codes: Any  # parts of a CSR matrix (n, m), all m entries in every row
    outputs: MovingOutputs  # m of them


@inner
def soften(answers, codes):
    """Write ``exp(answers) / sum``."""
    most, total = answers.max(), codes.dtype.type(0)
    for j in range(answers.shape[0]):
        codes[j] = math.exp(answers[j] - most)
        total += codes[j]
    for j in range(answers.shape[0]):
        codes[j] /= total


@overload(write_codes, jit_options=OPTIONS)
def _write_gates(coder, rows):
    if not is_coder(coder, MovingGates):
        return None

    def write(coder, rows):
        values, columns, starts = coder.codes
        answer(coder.outputs, rows)
        for i in range(rows.shape[0]):
            first, last = starts[rows[i]], starts[rows[i] + 1]
            soften(coder.outputs.answers[i], values[first:last])
            for e in range(first, last):
                columns[e] = e - first

    return write


@overload(move_coder, jit_options=OPTIONS)
def _move_gates(coder, rows, slopes, responses):
    """Take the gates' step: the score of y rises by ``code_j (r_yj - score_y)`` with gate j."""
    if not is_coder(coder, MovingGates):
        return None

    def move(coder, rows, slopes, responses):
        values, _, starts = coder.codes
        m, dtype = coder.outputs.c.shape[0], values.dtype
        pulls = np.empty(m, dtype)
        for i in range(rows.shape[0]):
            code = values[starts[rows[i]] : starts[rows[i] + 1]]
            pulls[:] = 0
            for y in range(slopes.shape[1]):
                if slopes[i, y] != 0:
                    mean = dtype.type(0)
                    for j in range(m):
                        mean += code[j] * responses[i, y * m + j]
                    for j in range(m):
                        pulls[j] += slopes[i, y] * (responses[i, y * m + j] - mean)
            if pulls.any():
                for j in range(m):  # as one product it takes the compiler a second
                    pulls[j] *= code[j]
                pull(coder.outputs, rows[i], i, pulls)
        descend(coder.outputs, rows.shape[0], 0)

    return move
