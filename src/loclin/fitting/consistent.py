"""Whether what an estimator holds fits together: at load and save, and before it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from loclin.engine.described import check_described
from loclin.engine.shapes import CURE
from loclin.portable.checks import check_terms


def check_consistent(model: object) -> None:
    """Raise where an estimator of loclin,
    the model or one inside it, does not fit together.

    Its parameters are valid; its attributes, and what streams and warm starts keep, are
    what the classes declare (`engine.described`); and what it predicts by are words that
    fit together.

    Parameters
    ----------
    model : object
        An estimator, or what holds some.

    Raises
    ------
    ValueError, TypeError
    """
    for estimator in estimators_in(model):
        _check_of(estimator)()
        try:
            check_described(estimator, thorough=True)
            _check_words(estimator)
        except ValueError as error:
            raise ValueError(f"{type(estimator).__name__}: {error}") from None


def _check_words(estimator: Any) -> None:
    """Raise where what a fitted classifier predicts by does
    not fit together, or is not there.
    """
    if not (hasattr(estimator, "_terms") and hasattr(estimator, "intercept_")):
        return
    try:
        terms, classes = estimator._terms(), estimator.classes_
        check_terms(terms, estimator.n_features_in_, len(classes), estimator._multilabel)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"what it predicts by is not there ({error}). {CURE}") from None


def estimators_in(model: object) -> Iterator[Any]:
    """Yield the estimators of loclin in a model, itself included, each once."""
    for value in objects_in(model):
        if isinstance(value, BaseEstimator) and _check_of(value) is not None:
            yield value


def objects_in(model: object) -> Iterator[Any]:
    """Yield what a model holds, however deep, and itself, each once; no plain numbers."""
    waiting: list[Any] = [model]
    met = set()
    while waiting:
        value = waiting.pop()
        if id(value) in met or isinstance(value, str | bytes | int | float | None):
            continue
        met.add(id(value))
        yield value
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif isinstance(value, np.ndarray):
            waiting += value.ravel().tolist() if value.dtype == object else []
        elif hasattr(value, "__dict__") and not isinstance(value, type | ModuleType):
            waiting += vars(value).values()


def _check_of(estimator: Any) -> Any:
    """Return what checks all parameters of an estimator of loclin; None of others."""
    known = getattr(estimator, "_check_parameters", None)
    return getattr(estimator, "_checked_parameters", known)


def missing(holder: Any, *names: str) -> str | None:
    """Tell which of these attributes a fitted estimator lacks; None if it has all."""
    lacks = [name for name in names if name not in vars(holder)]
    return f"{', '.join(lacks)} is missing" if lacks else None


def wrong_with_classes(
    classes: NDArray[Any], sizes: Mapping[str, int], multilabel: bool
) -> str | None:
    """Tell what is wrong with the classes, and with the number s of scorers."""
    c, s = sizes["c"], sizes.get("s", sizes["c"])
    if not all(one < other for one, other in pairwise(classes)):
        return f"classes_ are not sorted: {classes}"
    if c < 2:
        return "classes_ are fewer than two"
    if s != c and (multilabel or (s, c) != (1, 2)):
        return f"there are {s} scorers, but {c} classes"
    return None
