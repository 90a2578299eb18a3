"""What arrays a model has: declared where they are held, and checked by what is declared.

A class says of each attribute what it is, as an annotation:

    local_coef: Annotated[Floats, Shape("s m d")]
    n_models: Annotated[int, Size("m")]

A letter stands for one number in a whole model, whoever holds the arrays. What letters do not say,
a method ``_what_is_wrong(sizes)`` tells, if a class has one; those of its bases run too.

Compiled loops trust shapes and dtypes, but files and users may have set the attributes:
`check_described` compares all of them, so that nothing is read or written beside an array.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from scipy.sparse import get_index_dtype
from sklearn.base import BaseEstimator

from loclin.engine.data import check_indices, is_sparse

_CURE = "Load or fit the model again."
_MODEL = "of the model"
_RULE = "_what_is_wrong"  # of a class: it tells what arrays do not
_FLOATS = np.dtype(np.float32), np.dtype(np.float64)


@dataclass(frozen=True)
class Shape:
    """The shape of an array, by a letter or a sum of letters for each axis: ``Shape("s m d")``.

    Parameters
    ----------
    axes : str
        Several shapes are set apart by a bar. An axis may be a number, or computed: ``m+1``.
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
    """A number that a letter stands for; its own, if only what the holder has is meant by it."""

    letter: str
    own: bool = False


class Within:
    """What letters mean inside: ``Within(m="m+1")`` for a model more."""

    def __init__(self, **letters: str) -> None:
        self.letters = letters


class _Scope:
    """What letters stand for, and who said so."""

    def __init__(self, thorough: bool) -> None:
        self.sizes: dict[str, int] = {}
        self.said: dict[str, str] = {}
        self.dtype: tuple[Any, str] | None = None
        self.thorough = thorough
        self.met: set[Any] = set()

    def inside(self, own: Collection[str] = (), **letters: str) -> _Scope:
        """Return a scope that begins as this one, with some letters changed or forgotten."""
        other = _Scope(self.thorough)
        other.sizes = {name: size for name, size in self.sizes.items() if name not in own}
        for name, axis in letters.items():
            size = _size(axis, self.sizes)
            if size is not None:
                other.sizes[name] = size
        other.said, other.dtype, other.met = dict(self.said), self.dtype, self.met
        return other

    def bind(self, letter: str, size: int, who: str) -> bool:
        """Let a letter stand for a number; False where it stands for another."""
        if size < (0 if letter == "sparse" else 1):
            return False
        self.said.setdefault(letter, who)
        return self.sizes.setdefault(letter, size) == size


_Check = Callable[[Any, str, _Scope], None]


def check_described(holder: Any, *, thorough: bool = False) -> None:
    """Raise where what an object holds is not what its class declares, or does not fit together.

    Parameters
    ----------
    holder : object
    thorough : bool, default=False
        Whether numbers are looked at, too: they are finite.

    Raises
    ------
    ValueError
    """
    _check_object(holder, "", _Scope(thorough))


def declared(kind: type) -> dict[str, Any]:
    """Return what a class declares of its attributes, those of fitted models included."""
    hints = _hints(kind)
    for models in getattr(kind, "_fitted_models", ()):
        hints |= {f"{name}_": hint for name, hint in _hints(models).items()}
    if issubclass(kind, BaseEstimator):  # the constructor's checks are stricter
        hints = {name: hint for name, hint in hints.items() if name not in kind._get_param_names()}
    return hints


def _hints(kind: type) -> dict[str, Any]:
    """Return the annotations of a class and its bases, as far as these are of loclin, or follow."""
    if hasattr(kind, "_fields"):
        return get_type_hints(kind, include_extras=True)
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if _is_ours(base):
            with suppress(NameError):  # one's own class may name what type checkers alone import
                hints |= get_annotations(base, eval_str=True)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def _is_ours(kind: type) -> bool:
    return any(base.__module__.startswith("loclin.") for base in kind.__mro__)


@cache
def _plan(kind: type) -> tuple[list[tuple[str, _Check]], frozenset[str], list[Any]]:
    """Return the checks of a class, sizes and arrays first; letters of its own; and its rules."""
    hints = declared(kind)
    names = sorted(hints, key=lambda name: not _is_plain(hints[name]))
    checks = [(name, _check_of(hints[name])) for name in names]
    own = {note.letter for hint in hints.values() for note in _notes(hint, Size) if note.own}
    rules = [vars(base)[_RULE] for base in kind.__mro__ if _RULE in vars(base)]
    return checks, frozenset(own), rules


def _notes(hint: Any, kind: type) -> list[Any]:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return [note for note in notes if isinstance(note, kind)]


def _is_plain(hint: Any) -> bool:
    return bool(_notes(hint, Shape) or _notes(hint, Size) or hint in (bool, int, float, str))


def _check_object(holder: Any, where: str, scope: _Scope) -> None:
    key = id(holder), tuple(scope.sizes.items())
    if key in scope.met:
        return
    scope.met.add(key)
    checks, own, rules = _plan(type(holder))
    if own:
        scope = scope.inside(own)
    fields = getattr(holder, "_fields", None)
    values = vars(holder) if fields is None else dict(zip(fields, holder, strict=True))
    is_estimator = isinstance(holder, BaseEstimator)
    prefix = f"{where}." if where else ""
    for name, check in checks:
        if name in values:
            check(values[name], prefix + name, scope)
        elif not (is_estimator or hasattr(type(holder), name)):
            raise ValueError(f"{prefix}{name} is missing. {_CURE}")
    for rule in rules:
        wrong = rule(holder, scope.sizes)
        if wrong:
            raise ValueError(f"{prefix}{wrong}. {_CURE}")


def _check_inside(value: Any, where: str, scope: _Scope) -> None:
    """Check whatever an attribute holds that is not declared further."""
    kind = type(value)
    if isinstance(value, BaseEstimator):  # a model of its own
        return
    if kind in (list, tuple, dict):
        key = id(value), tuple(scope.sizes.items())
        if key not in scope.met:
            scope.met.add(key)
            for one in value.values() if kind is dict else value:
                _check_inside(one, f"{where}[...]", scope)
    elif _is_ours(kind):
        _check_object(value, where, scope)


@cache
def _check_of(hint: Any) -> _Check:
    """Return what checks a value by its annotation."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _check_of_notes(hint)
    if origin in (Union, types.UnionType):
        return _any_of([_check_of(one) for one in args])
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is tuple and args[-1] is not Ellipsis:
        return _each_of(tuple, [_check_of(one) for one in args])
    if origin in _CONTAINERS:
        return _all_of(origin, [_check_of(one) for one in args if one is not Ellipsis])
    kind = origin or hint
    if not isinstance(kind, type) or kind is object:
        return _check_inside

    def check(value: Any, where: str, scope: _Scope) -> None:
        if not isinstance(value, kind):
            raise _not_a(kind.__name__, value, where)
        _check_inside(value, where, scope)

    return check


def _check_of_notes(hint: Any) -> _Check:
    base = get_args(hint)[0]
    bare = _check_of(base)
    optional = type(None) in get_args(base)
    shapes, sizes, within = (_notes(hint, kind) for kind in (Shape, Size, Within))

    def check(value: Any, where: str, scope: _Scope) -> None:
        if value is None and optional:
            return
        bare(value, where, scope.inside(**within[0].letters) if within else scope)
        for shape in shapes:
            _check_array(value, shape, where, scope)
        for size in sizes:
            if not scope.bind(size.letter, int(value), where):
                told = f"{scope.said[size.letter]} says {scope.sizes[size.letter]}" if (
                    size.letter in scope.sizes) else "it must be at least 1"  # fmt: skip
                raise ValueError(f"{where} is {value}, but {told}. {_CURE}")

    return check


class _WrongKind(ValueError):
    """A value is of another type than declared."""


def _not_a(what: str, value: Any, where: str) -> ValueError:
    return _WrongKind(f"{where} should be {what}, not {type(value).__name__}. {_CURE}")


def _scalar(what: str, kinds: Any, refused: Any = ()) -> _Check:
    def check(value: Any, where: str, scope: _Scope) -> None:
        if not isinstance(value, kinds) or isinstance(value, refused):
            raise _not_a(what, value, where)
        if what == "int" and not -(2**63) <= value < 2**63:
            raise ValueError(f"{where} is no integer of 64 bits. {_CURE}")

    return check


_SCALARS: dict[Any, _Check] = {
    bool: _scalar("bool", bool | np.bool_),
    int: _scalar("int", int | np.integer, bool),
    float: _scalar("float", float),
    str: _scalar("str", str),
    type(None): _scalar("None", type(None)),
    Any: _check_inside,
}
_CONTAINERS = list, tuple, frozenset, dict, Mapping


def _any_of(checks: list[_Check]) -> _Check:
    def check(value: Any, where: str, scope: _Scope) -> None:
        errors = []
        for one in checks:
            tried = scope.inside()
            try:
                one(value, where, tried)
            except ValueError as error:
                errors.append(error)
            else:
                scope.sizes, scope.said, scope.dtype = tried.sizes, tried.said, tried.dtype
                return
        raise min(errors, key=lambda error: isinstance(error, _WrongKind))

    return check


def _each_of(kind: type, checks: list[_Check]) -> _Check:
    def check(value: Any, where: str, scope: _Scope) -> None:
        if type(value) is not kind or len(value) != len(checks):
            raise _not_a(f"a {kind.__name__} of {len(checks)}", value, where)
        for number, (one, part) in enumerate(zip(checks, value, strict=True)):
            one(part, f"{where}[{number}]", scope)

    return check


def _all_of(kind: Any, checks: list[_Check]) -> _Check:
    def check(value: Any, where: str, scope: _Scope) -> None:
        if not isinstance(value, kind):
            raise _not_a(kind.__name__, value, where)
        for number, part in enumerate(value):
            checks[0](part, f"{where}[{number}]", scope)
            if len(checks) > 1:
                checks[1](value[part], f"{where}[{part!r}]", scope)

    return check


def _check_array(value: Any, shape: Shape, where: str, scope: _Scope) -> None:
    is_matrix = is_sparse(value)
    if not (is_matrix or isinstance(value, np.ndarray)):
        raise _not_a("an array", value, where)
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
        once = numbers[tuple(slice(None) if step else slice(1) for step in numbers.strides)]
        if not np.isfinite(once).all():
            raise ValueError(f"{where} has numbers that are not finite. {_CURE}")


def _check_dtype(value: Any, expected: Any, where: str, scope: _Scope) -> None:
    dtype = value.dtype
    if expected is None:
        return
    if expected is np.integer:
        if dtype.kind not in "iu" or not dtype.isnative:
            raise ValueError(f"{where} has the type {dtype}, but should have integers. {_CURE}")
    elif expected is np.floating:
        if dtype not in _FLOATS:
            raise ValueError(f"{where} has the type {dtype}, but should have floats. {_CURE}")
    elif expected is not _MODEL:
        if dtype != expected:
            raise ValueError(
                f"{where} has the type {dtype}, but should have {np.dtype(expected)}. {_CURE}"
            )
    elif scope.dtype is None:
        if dtype not in _FLOATS:
            raise ValueError(
                f"{where} has the type {dtype}, but should have float32 or float64. {_CURE}"
            )
        scope.dtype = dtype, where
    elif dtype != scope.dtype[0]:
        raise ValueError(
            f"{where} has the type {dtype}, but {scope.dtype[1]} has {scope.dtype[0]}. {_CURE}"
        )


@cache
def _axes(text: str) -> list[list[str]]:
    return [one.split() for one in text.split("|")]


@cache
def _compiled(axis: str) -> Any:
    return compile(axis, axis, "eval")


def _size(axis: str, sizes: Mapping[str, int]) -> int | None:
    """Return what an axis should be; None where its letters are not known yet."""
    if axis in sizes:
        return sizes[axis]
    if axis.isidentifier():
        return None
    with suppress(NameError):
        return int(eval(_compiled(axis), {"__builtins__": {}}, dict(sizes)))
    return None


def _check_shape(value: Any, text: str, where: str, scope: _Scope) -> None:
    same = [axes for axes in _axes(text) if len(axes) == value.ndim]
    axes = same[0] if same else []
    fits = bool(same)
    for axis, size in zip(axes, value.shape, strict=bool(same)):
        known = _size(axis, scope.sizes)
        if known is None and axis.isidentifier():
            fits &= scope.bind(axis, size, where)
        else:
            fits &= known in (None, size)
    if not fits:
        raise ValueError(f"{where} has shape {value.shape}{_but(text, axes, where, scope)}. {_CURE}")


def _but(text: str, axes: list[str], where: str, scope: _Scope) -> str:
    """Return what a shape should be, and who says so."""
    if not axes:
        return f", but should be ({' or '.join(', '.join(one) for one in _axes(text))})"
    sizes = [_size(axis, scope.sizes) for axis in axes]
    told = ", ".join(
        axis if size is None else str(size) for axis, size in zip(axes, sizes, strict=True)
    )
    letters = {letter for axis in axes for letter in scope.said if letter in axis}
    who = sorted({scope.said[letter] for letter in letters} - {where})
    by = f", says {' and '.join(who)}" if who else "; no axis may be 0"
    return f", but should be ({', '.join(axes)}) = ({told}){by}"


def _check_csr(value: Any, where: str) -> None:
    if value.format != "csr":
        raise _not_a("a CSR matrix", value, where)
    index = get_index_dtype(maxval=max(value.nnz, value.shape[1]))
    if value.indices.dtype != index or value.indptr.dtype != index:
        raise ValueError(f"{where} has indices of {value.indices.dtype}, not {index}. {_CURE}")
    try:
        check_indices(value, where)
    except ValueError as error:
        raise ValueError(f"{error} {_CURE}") from None


def _check_layout(value: Any, shape: Shape, where: str) -> None:
    repeats = any(not step and n > 1 for step, n in zip(value.strides, value.shape, strict=True))
    if repeats and value.size and not shape.constant:
        raise ValueError(f"{where} is some numbers seen many times. {_CURE}")
    if shape.looped and not value.flags.carray and math.prod(value.shape):
        raise ValueError(f"{where} does not lie row by row in memory. {_CURE}")
