"""What a file may name. Nothing else is ever imported."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from loclin._names import FOLDERS
from loclin.fitting.consistent import objects_in

Trusted = type | Callable[..., Any] | str
# Where estimators are looked up, by their public name.
PUBLIC = (
    "loclin",
    "loclin.codings",
    "loclin.tables",
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
# What else models keep, for streams and warm starts: classes of these folders, which hold
# data. None of them has a method that Python calls while it is made or thrown away.
_FOLDERS = "engine", "fitting", "portable.words", "tables.features", *FOLDERS
HOLDERS = tuple(f"loclin.{folder}." for folder in _FOLDERS)
_OTHERS = {"sklearn.compose.make_column_selector"}
# Types that parameters hold: of what a transformer gives.
TYPES = {kind.__name__: kind for kind in (bool, int, float, str, object)} | {
    f"numpy.{name}": getattr(np, name)
    for name in ("float32", "float64", "int32", "int64", "uint8", "number", "object_")
}


# Functions that a transformer may hold: they read numbers, and nothing else.
_FUNCTIONS = {
    "numpy": (
        "absolute", "arcsinh", "arctan", "cbrt", "ceil", "cos", "exp", "expm1", "floor", "log",
        "log10", "log1p", "log2", "negative", "reciprocal", "rint", "sign", "sin", "sqrt", "square",
        "tanh",
    ),
    "sklearn.feature_selection": (
        "chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression",
        "r_regression",
    ),
}  # fmt: skip
FUNCTIONS = (FunctionType, np.ufunc, type(np.nan_to_num))


class Refused(ValueError):
    """A file or model holds what needs trust; the message goes on after its name."""


def name_of(kind: Any) -> str:
    """Return the name of a class or function in files:
    the public one, where there is one.
    """
    package, name = kind.__module__, kind.__name__
    while package:
        if package in PUBLIC and getattr(import_module(package), name, None) is kind:
            return f"{package}.{name}"
        package = package.rpartition(".")[0]
    return f"{kind.__module__}.{getattr(kind, '__qualname__', name)}"


def path_of(function: Any) -> str | None:
    """Return the import path of a function; None where it has none."""
    name = function.__name__
    # as of the functions of scipy.special
    if getattr(function, "__module__", None) is None:
        packages = ("numpy", "scipy.special")
        found = [
            one for one in packages if getattr(import_module(one), name, None) is function
        ]
        return f"{found[0]}.{name}" if found else None
    value: Any = sys.modules.get(function.__module__)
    for part in getattr(function, "__qualname__", name).split("."):
        value = getattr(value, part, None)
    return name_of(function) if value is function else None


class Classes:
    """The classes and functions that may be in a file,
    and the texts that rule what these do.

    Parameters
    ----------
    trusted : iterable of type, function or str
        Those that the caller trusts, besides loclin's own and scikit-learn's
        transformers.
    """

    def __init__(self, trusted: Iterable[Trusted] = ()) -> None:
        self.found: dict[str, type | None] = {}
        self.functions: dict[str, Any] = {}
        self.texts: set[str] = set()
        for one in trusted:
            if isinstance(one, type):
                self.found[name_of(one)] = one
            elif isinstance(one, str):
                self.texts.add(one)
            elif isinstance(one, FUNCTIONS) and (path := path_of(one)):
                self.functions[path] = one
            else:
                raise ValueError(
                    f"trusted names {one!r}; it takes classes, functions that can be imported, "
                    "and texts."
                )

    def find(self, name: Any) -> type | None:
        """Return the class of that name; None where a file may not name it."""
        if not isinstance(name, str):
            return None
        if name not in self.found:
            self.found[name] = _find(name)
        return self.found[name]

    def function(self, name: Any) -> Any:
        """Return the function of that name; None where a file may not name it."""
        if not isinstance(name, str):
            return None
        module, _, function = name.rpartition(".")
        if function in _FUNCTIONS.get(module, ()):
            return getattr(import_module(module), function)
        return self.functions.get(name)

    def knows(self, name: str, of_what: str) -> bool:
        """Tell whether a file may have that name; `of_what` it is one, as `Survey` says."""
        if of_what == "type":
            return name in TYPES
        return (
            self.function(name) if of_what == "function" else self.find(name)
        ) is not None


def _find(name: str) -> type | None:
    module, _, attribute = name.rpartition(".")
    of_holders = f"{module}.".startswith(HOLDERS)
    if not (of_holders or module in PUBLIC) or (
        attribute.startswith("_") and not of_holders
    ):
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


def trusted_types(model: object) -> list[str]:
    """Name the classes that skops, and so MLflow, must be told to trust for a model.

    skops trusts no classes but those of NumPy and the estimators of scikit-learn. The names
    are of classes of loclin that a file of `save` may hold, too: they hold arrays and
    parameters, and run nothing when they are made. A sparse matrix adds its class in SciPy,
    and a search or a calibration adds folds, scorers and the like of scikit-learn. Classes
    of your own are not named: add them if you trust them.

    skops trusts names, and does not look at what the objects hold. `load` does, so that a
    damaged or forged file cannot lead compiled loops astray: take it for files of others.

    Parameters
    ----------
    model : estimator
        A classifier or coding, or a pipeline with some; fitted or not.

    Returns
    -------
    names : list of str
        Import paths, sorted. A fit adds names, and a stream more.

    Raises
    ------
    TypeError
        If it is no estimator.

    See Also
    --------
    save : loclin's own files, which need none of it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import loclin.io
    >>> model = loclin.ML3Classifier(2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> for name in loclin.io.trusted_types(model):
    ...     print(name)
    loclin.fitting.features.FeatureMap
    loclin.ml3.cccp.PooledModels
    loclin.ml3.classifier.ML3Classifier

    In a program, hand the list over where the model is written::

        mlflow.sklearn.save_model(
            model, path, skops_trusted_types=loclin.io.trusted_types(model)
        )
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"{type(model).__name__} is no estimator: give a fitted model.")
    classes = Classes()
    kinds = {type(value) for value in objects_in(model)}
    return sorted(
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in kinds
        if issubclass(kind, sparse.spmatrix | sparse.sparray)
        or _is_part_of_sklearn(kind)
        or (kind.__module__.startswith("loclin.") and classes.find(name_of(kind)) is kind)
    )


def _is_part_of_sklearn(kind: type) -> bool:
    """Tell whether a class is scikit-learn's, but no public estimator: folds, scorers."""
    is_public = issubclass(kind, BaseEstimator) and not kind.__name__.startswith("_")
    return kind.__module__.startswith("sklearn.") and not is_public


def is_named_tuple(kind: type) -> bool:
    """Tell whether a class is made by ``typing.NamedTuple``."""
    return kind.__bases__ == (tuple,) and hasattr(kind, "_fields")


def is_enum(kind: type) -> bool:
    """Tell whether a class is an enumeration."""
    return issubclass(kind, enum.Enum)
