"""Who writes the codes of a descent:
given ones, or a part of the model that is learned with it.

A pass of `sgd_pass` takes a *coder*, a NamedTuple with a field ``codes`` in a form that
`codes` reads, and calls three functions on it. The compiler picks them by the coder's
type, so that a model registers its own with ``numba.extending.overload`` in its own
folder, and the pass knows no model. `Coder` is the other half: it makes that NamedTuple
for each pass, and knows what was learned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import DTypeLike, NDArray

from loclin.engine.averaging import DescentModels
from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.jit import OPTIONS
from loclin.engine.procedure import Part
from loclin.engine.rows import compiled_form


class GivenCodes(NamedTuple):
    """Codes that stay as they are."""

    # ndarray of shape (n, m) or (n, s, m), or the parts of a CSR matrix (n, m)
    codes: Any


class BatchCodes(NamedTuple):
    """Parts of a CSR matrix for the rows of one batch,
    in their order: those of a dense X.
    """

    values: NDArray
    columns: NDArray
    starts: NDArray


def room_for_codes(Z: Matrix, batch_size: int, k: int, dtype: DTypeLike) -> Any:
    """Return room for codes of k entries a row:
    of a batch, or of all rows where they are sparse.

    Loops find a dense row in the batch, but a sparse one, and so its code, by its place
    in X.
    """
    parts = empty_codes(Z.shape[0] if is_sparse(Z) else batch_size, k, dtype)
    return parts if is_sparse(Z) else BatchCodes(*parts)


def empty_codes(n: int, k: int, dtype: DTypeLike) -> tuple[Any, ...]:
    """Room for the parts of a CSR matrix with k entries in each of n rows."""
    return np.empty(n * k, dtype), np.empty(n * k, np.int32), np.arange(0, n * k + 1, k)


def code_places(codes, rows):
    """Places of a batch's codes: its rows, or 0, 1, ..
    where there is room for a batch only.
    """


@overload(code_places, jit_options=OPTIONS)
def _code_places(codes, rows):
    if is_kind(codes, BatchCodes):
        return lambda codes, rows: np.arange(rows.shape[0])
    return lambda codes, rows: rows


def write_codes(coder, rows):
    """Write the codes of these rows, before they are scored."""


def move_coder(coder, rows, slopes, responses):
    """Take the coder's step for a batch, before the weights move.

    Parameters
    ----------
    coder : NamedTuple
    rows : ndarray of shape (n_batch,)
        Rows of the batch.
    slopes : ndarray of shape (>= n_batch, s)
        What every row asks of every score: the negative slope of its loss.
    responses : ndarray of shape (>= n_batch, s m)
        What the local models say: see `codes.code_scores`.
    """


def average_coder(coder, n):
    """Count the coder as it stands n times into its average."""


def is_kind(compiled: types.Type, kind: type) -> bool:
    """Tell from a compiled type whether it is that NamedTuple."""
    named = isinstance(compiled, types.NamedTuple | types.NamedUniTuple)
    return named and compiled.instance_class is kind


@overload(write_codes, jit_options=OPTIONS)
def _write_given(coder, rows):
    if is_kind(coder, GivenCodes):
        return lambda coder, rows: None
    return None


@overload(move_coder, jit_options=OPTIONS)
def _move_given(coder, rows, slopes, responses):
    if is_kind(coder, GivenCodes):
        return lambda coder, rows, slopes, responses: None
    return None


@overload(average_coder, jit_options=OPTIONS)
def _average_given(coder, n):
    if is_kind(coder, GivenCodes):
        return lambda coder, n: None
    return None


class Coder(ABC):
    """What writes the codes between the passes.

    Its rows `Z` are what it codes: for given codes, these codes themselves.
    """

    n_at_rest: int = 0
    """Passes over the rows before the first one that moves it."""

    pace: float = 1.0
    """Rows that each row counts as, as far as falling steps go."""

    scores_all_models: ClassVar[bool] = True
    """Whether all models of all scorers may be scored by one product."""

    @abstractmethod
    def codes(self, Z: Matrix) -> Matrix:
        """Codes of rows: ndarray (n, m) or (n, s, m), or CSR (n, m)."""

    @abstractmethod
    def learned(self) -> list[Part]:
        """Return what it learns, in the order of `current`,
        and then what it adds up over rows.
        """

    @abstractmethod
    def begin_pass(
        self, Z: Matrix, batch_size: int, *, moves: bool, average: bool
    ) -> Any:
        """Return the NamedTuple that a pass over the rows takes."""

    @abstractmethod
    def end_pass(self, compiled: Any, *, average: bool) -> None:
        """Take back what a pass has changed."""

    @abstractmethod
    def forget_average(self) -> None:
        """Begin averaging anew."""

    @abstractmethod
    def current(self, n_averaged: float) -> tuple[Floats, ...]:
        """Mean of the iterates since averaging began, or the last one where it has not."""

    @abstractmethod
    def fitted(self, models: DescentModels, *iterate: Floats) -> DescentModels:
        """Add to fitted models what `current` gave, and what a later fit needs."""


class Given(Coder):
    """Codes that are given with the rows."""

    def codes(self, Z: Matrix) -> Matrix:
        """Codes of rows."""
        return Z

    def learned(self) -> list[Part]:
        """Nothing is learned."""
        return []

    def begin_pass(
        self, Z: Matrix, batch_size: int, *, moves: bool, average: bool
    ) -> GivenCodes:
        """Return the codes as a pass takes them."""
        return GivenCodes(compiled_form(Z))

    def end_pass(self, compiled: Any, *, average: bool) -> None:
        """Nothing has changed."""

    def forget_average(self) -> None:
        """Nothing is averaged."""

    def current(self, n_averaged: float) -> tuple[Floats, ...]:
        """Nothing is learned."""
        return ()

    def fitted(self, models: DescentModels, *iterate: Floats) -> DescentModels:
        """Nothing is to be added."""
        return models
