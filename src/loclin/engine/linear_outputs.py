"""Linear outputs of the rows that a coder learns: gates, features.

The compiled coder has them in a field ``outputs``, by which its steps and its average are
known: it supplies `write_codes`, as every coder, and `pull_outputs`. All rows have as
many entries of a code.

Output j of a row is ``u_j . x + c_j``. Its steps are AdaGrad's,
``rate / sqrt(sum of its squared gradients)``, one number each; its L2 penalty counts in
the gradient.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from loclin.engine.coders import Coder, average_coder, code_places, move_coder
from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.jit import OPTIONS, inner
from loclin.engine.procedure import Part
from loclin.engine.rows import add_outer, compiled_form, gather, is_dense, score
from loclin.engine.shapes import Shape


class MovingOutputs(NamedTuple):
    """The k outputs as a pass takes them."""

    X: Any  # compiled form of the rows (n, d)
    U: NDArray  # shape: (k, d)
    c: NDArray  # shape: (k,), what U has for a feature that is always 1
    history: NDArray  # shape: (k,), squared gradients
    rate: float
    decay: float  # L2 strength
    first: int  # those before it rest
    gradient: NDArray  # shape: (k, d), all 0 between batches
    of_constants: NDArray  # shape: (k,), the same of c
    answers: NDArray  # shape: (batch, k)
    buffer: NDArray  # shape: (batch, d) for dense rows
    sum_U: NDArray  # shape of U, or empty where nothing is averaged
    sum_c: NDArray  # shape of c, or empty


def as_weights(X, U):
    """View an array (k, d) in the layout of weights for such rows."""


@overload(as_weights, jit_options=OPTIONS)
def _as_weights(X, U):
    return (lambda X, U: U) if is_dense(X) else (lambda X, U: U.T)


@inner
def answer(outputs, rows):
    """Write the outputs of these rows."""
    X = outputs.X
    c = outputs.c
    answers = outputs.answers
    gather(X, rows, outputs.buffer)
    score(X, rows, outputs.buffer, as_weights(X, outputs.U), 0, c.shape[0], answers)
    for i in range(rows.shape[0]):
        for j in range(c.shape[0]):
            answers[i, j] += c[j]


@inner
def pull(outputs, row, i, pulls):
    """Count what a row, gathered as the i-th, asks of each output into the gradient."""
    X, one = outputs.X, outputs.c.dtype.type(1)
    add_outer(X, row, outputs.buffer, i, pulls, 0, as_weights(X, outputs.gradient), one)
    for j in range(pulls.shape[0]):
        outputs.of_constants[j] += pulls[j]


@inner
def add_products(row, factor, other, products):
    """Add ``factor * other`` to a row, each product rounded first.

    As ``row += factor * other`` it takes the compiler seconds.
    """
    for f in range(row.shape[0]):
        products[f] = factor * other[f]
    for f in range(row.shape[0]):
        row[f] += products[f]


@inner
def descend(outputs, n):
    """Take the step of the outputs, after n rows; forget the gradient."""
    U = outputs.U
    c = outputs.c
    gradient = outputs.gradient
    of_constants = outputs.of_constants
    decay = U.dtype.type(n * outputs.decay)
    products = np.empty(U.shape[1], U.dtype)
    for j in range(outputs.first, c.shape[0]):
        of_constants[j] -= decay * c[j]
        add_products(gradient[j], -decay, U[j], products)
        square = np.dot(gradient[j], gradient[j]) + of_constants[j] ** 2
        outputs.history[j] += square
        if square > 0:
            step = U.dtype.type(outputs.rate / math.sqrt(outputs.history[j]))
            add_products(U[j], step, gradient[j], products)
            c[j] += step * of_constants[j]
        gradient[j], of_constants[j] = 0, 0


@inner
def count(outputs, n):
    """Count the outputs as they stand n times into their sums, if there are any."""
    U = outputs.U
    products = np.empty(U.shape[1], U.dtype)
    for j in range(outputs.sum_c.shape[0]):
        add_products(outputs.sum_U[j], U.dtype.type(n), U[j], products)
        outputs.sum_c[j] += n * outputs.c[j]


def pull_outputs(coder, i, values, columns, of_entries, pulls):
    """Write the slope of ``sum_e of_entries_e values_e``, a row's code, by the outputs.

    Parameters
    ----------
    coder : NamedTuple
    i : int
        The row's place in the batch.
    values, columns : ndarray of shape (k,)
        Entries of its code.
    of_entries : ndarray of shape (k,)
    pulls : ndarray of shape (n_outputs,)
        Zeros.
    """


def has_outputs(coder: types.Type) -> bool:
    """Tell from a compiled type whether the coder has linear outputs."""
    return "outputs" in getattr(coder, "fields", ())


@overload(move_coder, jit_options=OPTIONS)
def _move_outputs(coder, rows, slopes, responses):
    if not has_outputs(coder):
        return None

    def move(coder, rows, slopes, responses):
        outputs, (values, columns, starts) = coder.outputs, coder.codes
        k, places = starts[1] - starts[0], code_places(coder.codes, rows)
        of_entries, pulls = (
            np.empty(k, values.dtype),
            np.empty(outputs.c.shape[0], values.dtype),
        )
        gather(outputs.X, rows, outputs.buffer)
        for i in range(rows.shape[0]):
            first, last = starts[places[i]], starts[places[i] + 1]
            of_entries[:] = 0
            for y in range(slopes.shape[1]):
                if slopes[i, y] != 0:
                    for e in range(k):
                        of_entries[e] += slopes[i, y] * responses[i, y * k + e]
            if of_entries.any():
                pulls[:] = 0
                pull_outputs(
                    coder, i, values[first:last], columns[first:last], of_entries, pulls
                )
                pull(outputs, rows[i], i, pulls)
        descend(outputs, rows.shape[0])

    return move


@overload(average_coder, jit_options=OPTIONS)
def _average_outputs(coder, n):
    return (lambda coder, n: count(coder.outputs, n)) if has_outputs(coder) else None


class LearnedOutputs(Coder):
    """A coder whose codes follow from linear outputs.

    Parameters
    ----------
    U, c : ndarray of shape (k, d) and (k,)
        Where the outputs start; changed in place.
    rate : float
        First step of an output.
    penalty : float, default=0.0
        L2 strength of the outputs, over that of the models.
    """

    scores_all_models = False
    U: Annotated[Floats, Shape("o d", looped=True)]
    c: Annotated[Floats, Shape("o", looped=True)]
    history: Annotated[Floats, Shape("o", np.float64, looped=True)]
    sum_U: Annotated[Floats, Shape("o d", looped=True, empty=True)]
    sum_c: Annotated[Floats, Shape("o", looped=True, empty=True)]
    rate: float
    penalty: float
    decay: float  # L2 strength
    n_first: float | int  # from so many rows on, it falls as 1 / n
    n_seen: int

    def __init__(self, U: Floats, c: Floats, rate: float, penalty: float = 0.0) -> None:
        self.U = U
        self.c = c
        self.rate = rate
        self.penalty = penalty
        self.history = np.zeros(len(c))
        self.decay = 0.0
        self.n_first, self.n_seen = math.inf, 0
        self.forget_average()

    @abstractmethod
    def codes(self, Z: Matrix) -> Matrix:
        """Codes of rows."""

    def learned(self) -> list[Part]:
        """Return the outputs, and the sums of their squared gradients."""
        return [
            Part("outputs", self.U, power=1),
            Part("constants", self.c, of="outputs"),
            Part("history", self.history, adds_up=True),
        ]

    def outputs(
        self, Z: Matrix, batch_size: int, average: bool, first: int = 0
    ) -> MovingOutputs:
        """Return the outputs as a pass over these rows takes them;
        those before `first` rest.
        """
        (n, d), dtype = Z.shape, self.U.dtype
        self.n_seen += n
        if average and not len(self.sum_c):
            self.sum_U, self.sum_c = np.zeros_like(self.U), np.zeros_like(self.c)
        return MovingOutputs(
            X=compiled_form(Z),
            U=self.U,
            c=self.c,
            history=self.history,
            rate=self.rate,
            decay=self.decay * min(1.0, self.n_first / self.n_seen),
            first=first,
            gradient=np.zeros_like(self.U),
            of_constants=np.zeros_like(self.c),
            answers=np.empty((batch_size, len(self.c)), dtype),
            buffer=np.empty((0 if is_sparse(Z) else batch_size, d), dtype),
            sum_U=self.sum_U if average else self.U[:0],
            sum_c=self.sum_c if average else self.c[:0],
        )

    def end_pass(self, compiled: Any, *, average: bool) -> None:
        """Leave the outputs: the pass has moved them."""

    def forget_average(self) -> None:
        """Begin averaging anew."""
        self.sum_U, self.sum_c = self.U[:0], self.c[:0]

    def current(self, n_averaged: float) -> tuple[Floats, ...]:
        """Mean of the outputs since averaging began, or the last ones."""
        if not n_averaged:
            return self.U.copy(), self.c.copy()
        dtype = self.U.dtype.type
        return self.sum_U / dtype(n_averaged), self.sum_c / dtype(n_averaged)
