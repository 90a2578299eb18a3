"""Shapes of arrays in letters, as classes declare them, and the check of an array.

A letter stands for one number in a whole model, whoever holds the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import get_index_dtype

from loclin.engine.data import check_indices, is_sparse

CURE = "Load or fit the model again."
_MODEL = "of the model"
_FLOATS = np.dtype(np.float32), np.dtype(np.float64)


@dataclass(frozen=True)
class Shape:
    """The shape of an array, by a letter or a sum of letters
    for each axis: ``Shape("s m d")``.

    Parameters
    ----------
    axes : str
        Several shapes are set apart by a bar. An axis may be a number, or computed:
        ``m+1``.
    dtype : type or None
        The float type of the model, unless another type is given; None for any.
    sparse : str
        The axes where rows are sparse, if these are others.
    finite : bool
        Whether all numbers are.
    looped : bool
        Whether loops change it as it is: in C order and writable.
    empty : bool
        Whether it may be empty instead, where nothing is averaged.
    constant : bool
        Whether it may be one number that is seen many times.
    """

    axes: str
    dtype: Any = _MODEL
    _: KW_ONLY
    sparse: str = ""
    finite: bool = True
    looped: bool = False
    empty: bool = False
    constant: bool = False


@dataclass(frozen=True)
class Size:
    """A number that a letter stands for;
    its own, if only what the holder has is meant by it.
    """

    letter: str
    own: bool = False


class Within:
    """What letters mean inside: ``Within(m="m+1")`` for a model more."""

    def __init__(self, **letters: str) -> None:
        self.letters = letters


class Scope:
    """What letters stand for, and who said so.

    `dtype` is that of the model, and who has it.
    """

    def __init__(self, thorough: bool) -> None:
        self.sizes: dict[str, int] = {}
        self.said: dict[str, str] = {}
        self.dtype: tuple[Any, str] | None = None
        self.thorough = thorough
        self.met: set[Any] = set()

    def inside(self, own: Collection[str] = (), **letters: str) -> Scope:
        """Return a scope that begins as this one, with some letters changed or forgotten."""
        other = Scope(self.thorough)
        other.sizes = {name: size for name, size in self.sizes.items() if name not in own}
        for name, axis in letters.items():
            size = size_of(axis, self.sizes)
            if size is not None:
                other.sizes[name] = size
        other.said = dict(self.said)
        other.dtype = self.dtype
        other.met = self.met
        return other

    def bind(self, letter: str, size: int, who: str) -> bool:
        """Let a letter stand for a number; False where it stands for another."""
        if size < (0 if letter == "sparse" else 1):
            return False
        self.said.setdefault(letter, who)
        return self.sizes.setdefault(letter, size) == size


class WrongKind(ValueError):
    """A value is of another type than declared."""


def wrong_kind(what: str, value: Any, where: str) -> ValueError:
    """Return the error of a value of another type."""
    return WrongKind(f"{where} should be {what}, not {type(value).__name__}. {CURE}")


def check_array(value: Any, shape: Shape, where: str, scope: Scope) -> None:
    """Raise ValueError where an array is not what is declared of it."""
    is_matrix = is_sparse(value)
    if not (is_matrix or isinstance(value, np.ndarray)):
        raise wrong_kind("an array", value, where)
    _check_dtype(value, shape.dtype, where, scope)
    axes = (scope.sizes.get("sparse") and shape.sparse) or shape.axes
    if not (shape.empty or scope.sizes.get("empty")) or 0 not in value.shape:
        _check_shape(value, axes, where, scope)
    if is_matrix:
        _check_csr(value, where)
    else:
        _check_layout(value, shape, where)
    numbers = value.data if is_matrix else value
    if scope.thorough and shape.finite and numbers.dtype.kind == "f":
        once = numbers[
            tuple(slice(None) if step else slice(1) for step in numbers.strides)
        ]
        if not np.isfinite(once).all():
            raise ValueError(f"{where} has numbers that are not finite. {CURE}")


def _check_dtype(value: Any, expected: Any, where: str, scope: Scope) -> None:
    dtype = value.dtype
    if expected is None:
        return
    if expected is np.integer:
        if dtype.kind not in "iu" or not dtype.isnative:
            raise ValueError(
                f"{where} has the type {dtype}, but should have integers. {CURE}"
            )
    elif expected is np.floating:
        if dtype not in _FLOATS:
            raise ValueError(
                f"{where} has the type {dtype}, but should have floats. {CURE}"
            )
    elif expected is not _MODEL:
        if dtype != expected:
            raise ValueError(
                f"{where} has the type {dtype}, but should have {np.dtype(expected)}. {CURE}"
            )
    elif scope.dtype is None:
        if dtype not in _FLOATS:
            raise ValueError(
                f"{where} has the type {dtype}, but should have float32 or float64. {CURE}"
            )
        scope.dtype = dtype, where
    elif dtype != scope.dtype[0]:
        raise ValueError(
            f"{where} has the type {dtype}, but {scope.dtype[1]} has {scope.dtype[0]}. {CURE}"
        )


@cache
def _axes(text: str) -> list[list[str]]:
    return [one.split() for one in text.split("|")]


@cache
def _compiled(axis: str) -> Any:
    return compile(axis, axis, "eval")


def size_of(axis: str, sizes: Mapping[str, int]) -> int | None:
    """Return what an axis should be; None where its letters are not known yet."""
    if axis in sizes:
        return sizes[axis]
    if axis.isidentifier():
        return None
    with suppress(NameError):
        return int(eval(_compiled(axis), {"__builtins__": {}}, dict(sizes)))
    return None


def _check_shape(value: Any, text: str, where: str, scope: Scope) -> None:
    same = [axes for axes in _axes(text) if len(axes) == value.ndim]
    axes = same[0] if same else []
    fits = bool(same)
    for axis, size in zip(axes, value.shape, strict=bool(same)):
        known = size_of(axis, scope.sizes)
        if known is None and axis.isidentifier():
            fits &= scope.bind(axis, size, where)
        else:
            fits &= known in (None, size)
    if not fits:
        raise ValueError(
            f"{where} has shape {value.shape}{_but(text, axes, where, scope)}. {CURE}"
        )


def _but(text: str, axes: list[str], where: str, scope: Scope) -> str:
    """Return what a shape should be, and who says so."""
    if not axes:
        return f", but should be ({' or '.join(', '.join(one) for one in _axes(text))})"
    sizes = [size_of(axis, scope.sizes) for axis in axes]
    told = ", ".join(
        axis if size is None else str(size)
        for axis, size in zip(axes, sizes, strict=True)
    )
    letters = {letter for axis in axes for letter in scope.said if letter in axis}
    who = sorted({scope.said[letter] for letter in letters} - {where})
    by = f", says {' and '.join(who)}" if who else "; no axis may be 0"
    return f", but should be ({', '.join(axes)}) = ({told}){by}"


def _check_csr(value: Any, where: str) -> None:
    if value.format != "csr":
        raise wrong_kind("a CSR matrix", value, where)
    index = get_index_dtype(maxval=max(value.nnz, value.shape[1]))
    if value.indices.dtype != index or value.indptr.dtype != index:
        raise ValueError(
            f"{where} has indices of {value.indices.dtype}, not {index}. {CURE}"
        )
    try:
        check_indices(value, where)
    except ValueError as error:
        raise ValueError(f"{error} {CURE}") from None


def _check_layout(value: Any, shape: Shape, where: str) -> None:
    repeats = any(
        not step and n > 1 for step, n in zip(value.strides, value.shape, strict=True)
    )
    if repeats and value.size and not shape.constant:
        raise ValueError(f"{where} is some numbers seen many times. {CURE}")
    if shape.looped and not value.flags.carray and math.prod(value.shape):
        raise ValueError(f"{where} does not lie row by row in memory. {CURE}")
