"""What models hold, as their classes declare it: checked before compiled loops trust it.

A class says of each attribute what it is, as an annotation:

    local_coef: Annotated[Floats, Shape("s m d")]
    n_models: Annotated[int, Size("m")]

A letter stands for one number in a whole model (`engine.shapes`). What letters do not
say, a method ``_what_is_wrong(sizes)`` tells, if a class has one; those of its bases run
too. A method ``_sizes`` returns what letters stand for that no attribute says.

Compiled loops trust shapes and dtypes, but files and users may have set the attributes:
`check_described` compares all of them, so that nothing is read or written beside an
array.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator

from loclin.engine.shapes import (
    CURE,
    Scope,
    Shape,
    Size,
    Within,
    WrongKind,
    check_array,
    wrong_kind,
)

_RULE = "_what_is_wrong"  # the method by which a class tells what arrays do not
_SIZES = "_sizes"  # the method that tells what letters stand for beside attributes

_Check = Callable[[Any, str, Scope], None]


def check_described(holder: Any, *, thorough: bool = False) -> None:
    """Raise where what an object holds is not what its class declares,
    or does not fit together.

    Parameters
    ----------
    holder : object
    thorough : bool, default=False
        Whether numbers are looked at, too: they are finite.

    Raises
    ------
    ValueError
    """
    _check_object(holder, "", Scope(thorough))


def declared(kind: Any) -> dict[str, Any]:
    """Return what a class declares of its attributes."""
    hints = _hints(kind)
    # The constructor's checks of parameters are stricter.
    parameters = kind._get_param_names() if issubclass(kind, BaseEstimator) else ()
    return {name: hint for name, hint in hints.items() if name not in parameters}


@cache
def fitted_names(kind: type) -> frozenset[str]:
    """Return the fitted attributes that a class of loclin,
    the class or its base, declares.
    """
    ours = next(base for base in kind.__mro__ if base.__module__.startswith("loclin."))
    return frozenset(
        name for name in declared(ours) if name.endswith("_") and name[0] != "_"
    )


def notes_of(hint: Any, kind: type) -> list[Any]:
    """Return what an annotation says of that kind: a `Shape`, a `Size`, a `Within`."""
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return [note for note in notes if isinstance(note, kind)]


def _hints(kind: type) -> dict[str, Any]:
    """Return the annotations of a class and its bases,
    as far as these are of loclin, or follow.
    """
    if hasattr(kind, "_fields"):
        return get_type_hints(kind, include_extras=True)
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if _is_ours(base):
            # A user's class may name what type checkers alone import.
            with suppress(NameError):
                hints |= get_annotations(base, eval_str=True)
    return {
        name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar
    }


@cache
def _is_ours(kind: Any) -> bool:
    return any(base.__module__.startswith("loclin.") for base in kind.__mro__)


@cache
def _plan(kind: Any) -> tuple[list[tuple[str, _Check]], frozenset[str], list[Any]]:
    """Return the checks of a class, sizes and arrays first;
    letters of its own; and its rules.
    """
    hints = declared(kind)
    names = sorted(hints, key=lambda name: not _is_plain(hints[name]))
    checks = [(name, _check_of(hints[name])) for name in names]
    own_letters = {
        note.letter
        for hint in hints.values()
        for note in notes_of(hint, Size)
        if note.own
    }
    rules = [vars(base)[_RULE] for base in kind.__mro__ if _RULE in vars(base)]
    return checks, frozenset(own_letters), rules


def _is_plain(hint: Any) -> bool:
    return bool(
        notes_of(hint, Shape) or notes_of(hint, Size) or hint in (bool, int, float, str)
    )


def _check_object(holder: Any, where: str, scope: Scope) -> None:
    key = id(holder), tuple(scope.sizes.items())
    if key in scope.met:
        return
    scope.met.add(key)
    kind: Any = type(holder)
    checks, own_letters, rules = _plan(kind)
    if own_letters:
        scope = scope.inside(own_letters)
    fields = getattr(holder, "_fields", None)
    values = vars(holder) if fields is None else dict(zip(fields, holder, strict=True))
    is_estimator = isinstance(holder, BaseEstimator)
    prefix = f"{where}." if where else ""
    for letter, size in getattr(holder, _SIZES, dict)().items():
        scope.bind(letter, size, f"{prefix}{_SIZES}")
    for name, check in checks:
        if name in values:
            check(values[name], prefix + name, scope)
        elif not (is_estimator or hasattr(kind, name)):
            raise ValueError(f"{prefix}{name} is missing. {CURE}")
    for rule in rules:
        wrong = rule(holder, scope.sizes)
        if wrong:
            raise ValueError(f"{prefix}{wrong}. {CURE}")


def _check_inside(value: Any, where: str, scope: Scope) -> None:
    """Check whatever an attribute holds that is not declared further."""
    kind: Any = type(value)
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
        others = [_check_of(one) for one in args if one is not type(None)]
        return _any_of(others, len(others) < len(args))
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is tuple and args[-1] is not Ellipsis:
        return _each_of([_check_of(one) for one in args])
    if origin in _CONTAINERS:
        return _all_of(origin, [_check_of(one) for one in args if one is not Ellipsis])
    kind: Any = origin or hint
    if not isinstance(kind, type) or kind is object:
        return _check_inside

    def check(value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, kind):
            raise wrong_kind(kind.__name__, value, where)
        _check_inside(value, where, scope)

    return check


def _check_of_notes(hint: Any) -> _Check:
    base = get_args(hint)[0]
    bare = _check_of(base)
    optional = type(None) in get_args(base)
    shapes = notes_of(hint, Shape)
    sizes = notes_of(hint, Size)
    within = notes_of(hint, Within)

    def check(value: Any, where: str, scope: Scope) -> None:
        if value is None and optional:
            return
        bare(value, where, scope.inside(**within[0].letters) if within else scope)
        for shape in shapes:
            check_array(value, shape, where, scope)
        for size in sizes:
            if not scope.bind(size.letter, int(value), where):
                said, known = scope.said.get(size.letter), scope.sizes.get(size.letter)
                told = f"{said} says {known}" if known else "it should be at least 1"
                raise ValueError(f"{where} is {value}, but {told}. {CURE}")

    return check


def _scalar(what: str, kinds: Any, refused: Any = ()) -> _Check:
    def check(value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, kinds) or isinstance(value, refused):
            raise wrong_kind(what, value, where)
        if what == "int" and not -(2**63) <= value < 2**63:
            raise ValueError(f"{where} is no integer of 64 bits. {CURE}")

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


def _any_of(checks: list[_Check], optional: bool) -> _Check:
    def check(value: Any, where: str, scope: Scope) -> None:
        if value is None and optional:
            return
        if len(checks) == 1:
            checks[0](value, where, scope)
            return
        errors = []
        for one in checks:
            tried = scope.inside()
            try:
                one(value, where, tried)
            except ValueError as error:
                errors.append(error)
            else:
                scope.sizes = tried.sizes
                scope.said = tried.said
                scope.dtype = tried.dtype
                return
        raise min(errors, key=lambda error: isinstance(error, WrongKind))

    return check


def _each_of(checks: list[_Check]) -> _Check:
    def check(value: Any, where: str, scope: Scope) -> None:
        if type(value) is not tuple or len(value) != len(checks):
            raise wrong_kind(f"a tuple of {len(checks)}", value, where)
        for number, (one, part) in enumerate(zip(checks, value, strict=True)):
            one(part, f"{where}[{number}]", scope)

    return check


def _all_of(kind: Any, checks: list[_Check]) -> _Check:
    def check(value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, kind):
            raise wrong_kind(kind.__name__, value, where)
        for number, part in enumerate(value):
            checks[0](part, f"{where}[{number}]", scope)
            if len(checks) > 1:
                checks[1](value[part], f"{where}[{part!r}]", scope)

    return check
