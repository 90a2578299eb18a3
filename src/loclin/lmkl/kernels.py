"""L-MKL's coder, compiled: softmax codes and their slopes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from loclin.engine.coders import code_places, is_kind, write_codes
from loclin.engine.jit import OPTIONS, inner
from loclin.engine.linear_outputs import MovingOutputs, answer, pull_outputs


class MovingGates(NamedTuple):
    """Softmax gates as a pass takes them."""

    codes: Any  # parts of a CSR matrix, all m entries in every row: see `room_for_codes`
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
    if not is_kind(coder, MovingGates):
        return None

    def write(coder, rows):
        values, columns, starts = coder.codes
        answer(coder.outputs, rows)
        places = code_places(coder.codes, rows)
        for i in range(rows.shape[0]):
            first, last = starts[places[i]], starts[places[i] + 1]
            soften(coder.outputs.answers[i], values[first:last])
            for e in range(first, last):
                columns[e] = e - first

    return write


@overload(pull_outputs, jit_options=OPTIONS)
def _pull_gates(coder, i, values, columns, of_entries, pulls):
    if not is_kind(coder, MovingGates):
        return None

    def pull(coder, i, values, columns, of_entries, pulls):
        mean = np.dot(values, of_entries)
        for j in range(pulls.shape[0]):  # as one product it takes the compiler a second
            pulls[j] = values[j] * (of_entries[j] - mean)

    return pull
