"""Planes through the space of rows: two columns, or two components of a projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from loclin.inspection.columns import Columns, PlainColumns
from loclin.tables.cells import frame_of

Floats = NDArray[np.float64]


class Plane(NamedTuple):
    """A plane, and where rows stand on it.

    Parameters
    ----------
    names : list of two str
        Of the axes.
    points : ndarray of shape (n, 2)
        Of the rows given.
    features : callable
        From points of the plane, (n, 2), to rows as the classifier sees them.
    """

    names: list[str]
    points: Floats
    features: Callable[[Floats], Any]


def plane_of(
    columns: Columns, classifier: Any, X: Any, features: Any, reference: Any
) -> Plane:
    """Return the plane that `features` says, as in `RegionsDisplay.from_estimator`."""
    if hasattr(features, "inverse_transform"):
        return _projected(columns, classifier, X, features)
    pair = [features] if isinstance(features, str) else list(features)
    first, second = pair if len(pair) == 2 else (None, None)
    if len(pair) != 2 or first == second:
        raise ValueError(
            f"features={features!r} must be two columns, or a fitted projection to two components."
        )
    places = [place_of(columns, one) for one in pair]
    for k in places:
        if columns.kind(k) != "number":
            raise ValueError(
                f"Column {columns.names[k]!r} is a {columns.kind(k)}: features must be two "
                "columns of numbers."
            )
    compared = columns.reference(X if reference is None else reference)
    values = columns.values(X)[:, places].astype(np.float64)
    template = _template(columns, X, compared.values)
    own = [f for k in places for f in columns.own(k)]

    def at(points: Floats) -> Any:
        rows = template(len(points))
        moved = columns.changed(rows, dict(zip(places, points.T, strict=True)))
        found = np.tile(compared.features, (len(points), 1))
        found[:, own] = moved[:, own]
        return named(classifier, found)

    return Plane([columns.names[k] for k in places], values, at)


def place_of(columns: Columns, feature: Any) -> int:
    """Return the place of a column that is given by its name, else by its place."""
    if not isinstance(feature, bool) and str(feature) in columns.names:
        return columns.names.index(str(feature))
    is_place = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if is_place and -len(columns.names) <= feature < len(columns.names):
        return int(feature) % len(columns.names)
    raise ValueError(
        f"There is no column {feature!r} among the {len(columns.names)}: give a name, or a place "
        "from 0."
    )


def named(classifier: Any, features: Any) -> Any:
    """Return rows with the names that a classifier was fitted with, if it was."""
    names = getattr(classifier, "feature_names_in_", None)
    if names is None or hasattr(features, "columns"):
        return features
    return frame_of(features).set_axis(list(names), axis=1)


def _template(columns: Columns, X: Any, values: list[Any]) -> Callable[[int], Any]:
    """Return what makes rows that columns can be changed in."""
    if isinstance(columns, PlainColumns):
        row = np.asarray(values, np.float64)
        return lambda n: np.tile(row, (n, 1))
    frame = frame_of(X)
    return lambda n: frame.iloc[np.zeros(n, np.intp)].reset_index(drop=True)


def _projected(columns: Columns, classifier: Any, X: Any, projection: Any) -> Plane:
    if not isinstance(columns, PlainColumns):
        raise ValueError(
            "A table has no projection: features must be two of its columns of numbers."
        )
    check_is_fitted(projection)
    rows = columns.values(X).astype(np.float64)
    points = np.asarray(projection.transform(rows), np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"{type(projection).__name__} projects to {points.shape[-1]} components, not to two."
        )

    def at(points: Floats) -> Any:
        there = np.asarray(projection.inverse_transform(points), np.float64)
        return named(classifier, columns.changed(there, {}))

    return Plane(["component 0", "component 1"], points, at)
