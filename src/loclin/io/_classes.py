"""What a file may name: estimators, and plain holders of data. Nothing else is ever imported."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Where estimators are looked up, by their public name.
PUBLIC = (
    "loclin",
    "loclin.codings",
    "sklearn.cluster",
    "sklearn.compose",
    "sklearn.decomposition",
    "sklearn.feature_extraction",
    "sklearn.feature_extraction.text",
    "sklearn.feature_selection",
    "sklearn.frozen",
    "sklearn.impute",
    "sklearn.kernel_approximation",
    "sklearn.pipeline",
    "sklearn.preprocessing",
    "sklearn.random_projection",
)
# What else models keep, for streams and warm starts: classes of these folders, which hold data.
# None of them has a method that Python calls while it is made or thrown away.
HOLDERS = tuple(
    f"loclin.{folder}."
    for folder in (
        "engine",
        "fitting",
        "ml3",
        "llsvm",
        "sapl",
        "l3m",
        "ussvm",
        "csvm",
        "ldkl",
        "lmkl",
    )
)
_OTHERS = {"sklearn.compose.make_column_selector"}
# Types that parameters hold: of what a transformer gives.
TYPES = {kind.__name__: kind for kind in (bool, int, float, str, object)} | {
    f"numpy.{name}": getattr(np, name)
    for name in ("float32", "float64", "int32", "int64", "uint8", "number", "object_")
}


def name_of(kind: type) -> str:
    """Return the name of a class in files: the public one, where an estimator has one."""
    package = kind.__module__
    while package:
        if package in PUBLIC and getattr(import_module(package), kind.__name__, None) is kind:
            return f"{package}.{kind.__name__}"
        package = package.rpartition(".")[0]
    return f"{kind.__module__}.{kind.__qualname__}"


class Classes:
    """The classes that may be in a file.

    Parameters
    ----------
    trusted : iterable of type
        Those that the caller trusts, besides loclin's own and scikit-learn's transformers.
    """

    def __init__(self, trusted: Iterable[type] = ()) -> None:
        self.found: dict[str, type | None] = {name_of(kind): kind for kind in trusted}

    def find(self, name: Any) -> type | None:
        """Return the class of that name; None where a file may not name it."""
        if not isinstance(name, str):
            return None
        if name not in self.found:
            self.found[name] = _find(name)
        return self.found[name]


def _find(name: str) -> type | None:
    module, _, attribute = name.rpartition(".")
    of_holders = module.startswith(HOLDERS)
    if not (of_holders or module in PUBLIC) or (attribute.startswith("_") and not of_holders):
        return None
    try:
        kind = getattr(import_module(module), attribute, None)
    except ImportError:
        return None
    if not isinstance(kind, type):
        return None
    if of_holders:
        return kind if kind.__module__ == module else None
    is_estimator = issubclass(kind, BaseEstimator) and kind.__module__.startswith(module)
    return kind if is_estimator or name in _OTHERS else None


def is_named_tuple(kind: type) -> bool:
    """Tell whether a class is made by ``typing.NamedTuple``."""
    return kind.__bases__ == (tuple,) and hasattr(kind, "_fields")


def is_enum(kind: type) -> bool:
    """Tell whether a class is an enumeration."""
    return issubclass(kind, enum.Enum)
