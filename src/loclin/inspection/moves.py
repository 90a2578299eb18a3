"""What may move in a row of numbers, and what a model says of the row that has moved."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from loclin.inspection.boxes import boxes_of
from loclin.portable import Description, describe
from loclin.portable.describing import SCALERS, scaling_of, steps_of
from loclin.tables import TableEncoder
from loclin.tables.cells import pandas

Floats = NDArray[np.float64]
_MOST_BOXES = 200  # of trees that are looked at: the nearest, and as many of the others
_BEYOND = 1e-6  # units that a value is moved past a border of a box
_DIFFERENCE = 1e-4  # units of a difference, where a model tells no slopes


class Steps:
    """The steps of a model, and how features change with the columns in front of them.

    Parameters
    ----------
    model : classifier or Pipeline

    Raises
    ------
    TypeError
        If steps in front are not linear in each column.
    """

    def __init__(self, model: Any) -> None:
        *before, self.classifier = steps_of(model)
        in_front = bool(before) and isinstance(before[0], TableEncoder)
        self.encoder: Any = before.pop(0) if in_front else None
        self.scalers = before
        strange = [type(one).__name__ for one in before if scaling_of(one) is None]
        if strange or not hasattr(self.classifier, "decision_function"):
            raise TypeError(
                f"{strange[0] if strange else type(self.classifier).__name__} cannot be a step. "
                "Give a classifier of loclin, alone or behind a TableEncoder and "
                f"{', '.join(kind.__name__ for kind in SCALERS)}."
            )
        if getattr(self.classifier, "_multilabel", False):
            raise ValueError(
                "The model was fitted to several labels a row: none is decided."
            )

    def slopes(self) -> Any:
        """Return the factor from each column to the classifier's feature."""
        return _slopes(self.scalers)

    def units(self, description: Description | None) -> Any:
        """Return the training spread of each column in front of the scalers, or 1."""
        for k, scaler in enumerate(self.scalers):
            if isinstance(scaler, StandardScaler) and scaler.scale_ is not None:
                return scaler.scale_ / np.abs(_slopes(self.scalers[:k]))
        term = None if description is None else description.terms[0]
        if term is None or term.scale is None:
            return 1.0
        n_pieces = 0 if term.pieces is None else len(term.pieces.feature)
        units = np.ones(description.n_features)  # type: ignore[union-attr]
        columns = slice(None) if term.columns is None else term.columns
        units[columns] = term.scale[: len(term.scale) - n_pieces]
        return units / np.abs(self.slopes())

    def features(self, rows: Any) -> Any:
        """Return rows as the classifier sees them."""
        rows = rows if self.encoder is None else self.encoder.transform(rows)
        for scaler in self.scalers:
            rows = scaler.transform(rows)
        return rows


def described(classifier: Any) -> Description | None:
    """Return the description of a classifier, if it has one."""
    try:
        return describe(classifier)
    except ValueError:
        return None


class Moves(ABC):
    """The numbers that a row is made of, which of them may move, and where to.

    A number stands for a value of a column, or for the place of one among `options`.

    Parameters
    ----------
    model : classifier or Pipeline
    steps : Steps
    names : list of str
        Of the columns that could move.
    start : ndarray of shape (n_names,)
    feature_of : list of int
        The classifier's feature that each number is; of choices, any.

    Attributes
    ----------
    units : ndarray of shape (n_names,)
        What counts as a change of one.
    low, high : ndarray of shape (n_names,)
    may_move, is_choice : ndarray of bool of shape (n_names,)
    boxes : tuple of ndarray of shape (n_boxes, n_names)
        Lower and upper ends of the boxes in which trees say one thing.
    """

    def __init__(
        self,
        model: Any,
        steps: Steps,
        names: list[str],
        start: Floats,
        feature_of: list[int],
    ) -> None:
        self.model, self.steps, self.names, self.start = model, steps, names, start
        self.feature_of = feature_of
        self.classes = np.asarray(steps.classifier.classes_)
        self.description = described(steps.classifier)
        self.low, self.high = np.full((2, len(names)), [[-np.inf], [np.inf]])
        self.units = np.ones(len(names))
        self.may_move = np.ones(len(names), bool)
        self.is_choice = np.zeros(len(names), bool)
        self.boxes = np.empty((0, len(names))), np.empty((0, len(names)))

    @abstractmethod
    def rows(self, Z: Floats) -> Any:
        """Return what the model takes, of the numbers of some rows."""

    @abstractmethod
    def finished(self, z: Floats) -> Any:
        """Return a row like the one given."""

    @abstractmethod
    def for_model(self, row: Any) -> Any:
        """Return a finished row as the model takes it."""

    @abstractmethod
    def value(self, name: int, z: Floats) -> Any:
        """Return the value of a column."""

    @abstractmethod
    def n_options(self, name: int) -> int:
        """Return how many values a choice has."""

    @abstractmethod
    def written(self, Z: Floats) -> Floats:
        """Return the numbers of rows as they can be written."""

    @abstractmethod
    def limits_of(self, name: int, limits: Any) -> tuple[float | None, float | None]:
        """Return limits as numbers."""

    @cached_property
    def kinds(self) -> list[str]:
        """What can tell slopes: the derivative first."""
        own = [
            kind
            for kind in ("local_gradient", "local_model")
            if hasattr(self.steps.classifier, kind) and not self._refuses(kind)
        ]
        return own or ["difference"]

    def _refuses(self, kind: str) -> bool:
        """Tell whether there is no derivative in closed form."""
        try:
            self.slopes(self.start, kind)
        except ValueError:
            return True
        return False

    def label(self, z: Floats) -> Any:
        """Return what the model predicts for the row as it would be returned."""
        return self.model.predict(self.for_model(self.finished(z)))[0]

    def scores(self, Z: Floats) -> Floats:
        """Return the scores of the classes, (n, n_classes)."""
        decisions = np.asarray(self.model.decision_function(self.rows(Z)), np.float64)
        if decisions.ndim == 1:
            return np.stack([-decisions / 2, decisions / 2], axis=1)
        return decisions

    def slopes(self, z: Floats, kind: str) -> Floats:
        """Return what scores change with each unit, (n_classes, n_names)."""
        if kind == "difference":
            slopes = self._differences(z)
        else:
            features = self.steps.features(self.rows(z[None]))
            found = getattr(self.steps.classifier, kind)(features, by_class=True)
            found = found[0] if kind == "local_model" else found
            slopes = np.asarray(found[0], np.float64) * self.steps.slopes()
            slopes = slopes[:, self.feature_of] * self.units
        return np.where(self.may_move & ~self.is_choice, slopes, 0.0)

    def distance(self, Z: Floats) -> Any:
        """Return how far numbers are from the start, in units; a choice counts as one."""
        away = (Z - self.start) / self.units
        away = np.where(self.is_choice, (away != 0) / self.units, away)
        return np.sqrt((away**2).sum(axis=-1))

    def set_units(self, given: Any, own: Any) -> None:
        """Let changes be counted in these units, one for each name, or by name."""
        self.units = np.array(np.broadcast_to(own, len(self.names)), np.float64)
        if isinstance(given, Mapping):
            for name, unit in given.items():
                self.units[self.place(name, "scale")] = unit
        elif given is not None:
            self.units = np.array(np.broadcast_to(given, len(self.names)), np.float64)
        if not (np.isfinite(self.units) & (self.units > 0)).all():
            raise ValueError("scale must have positive numbers.")

    def restrict(self, features: Collection[Any] | None, bounds: Any) -> None:
        """Let these features move, within bounds, and no others."""
        if features is not None:
            places = [self.place(name, "features") for name in features]
            self.may_move &= np.isin(np.arange(len(self.names)), places)
        for name, limits in (bounds or {}).items():
            self._bound(self.place(name, "bounds"), limits)
        at = np.asarray(self.steps.features(self.rows(self.start[None])), np.float64)[0]
        self._set_boxes(at)

    def _bound(self, place: int, limits: Any) -> None:
        low, high = self.limits_of(place, limits)
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
        if not self.may_move[place]:
            return
        if not low <= self.start[place] <= high:
            raise ValueError(
                f"bounds of {self.names[place]!r} are {low:g} and {high:g}, but the row has "
                f"{self.start[place]:g}."
            )
        self.low[place], self.high[place] = low, high

    def place(self, name: Any, parameter: str) -> int:
        """Return the place of a name, or of a number that counts columns from 0."""
        if str(name) in self.names:
            return self.names.index(str(name))
        is_place = isinstance(name, int | np.integer) and self.steps.encoder is None
        if is_place and 0 <= name < len(self.names):
            return int(name)
        raise ValueError(f"{parameter} has {name!r}, which is no column that can move.")

    def jumps_from(self, z: Floats, choices: bool) -> Floats:
        """Return places that are one jump away: in a box of trees, or of another choice."""
        others = [
            np.where(np.arange(len(z)) == k, value, z)
            for k in np.flatnonzero(self.may_move & self.is_choice & choices)
            for value in range(self.n_options(int(k)))
            if value != z[k]
        ]
        return np.concatenate([np.reshape(others, (-1, len(z))), self._into_boxes(z)])

    def snapped(self, Z: Floats) -> Floats:
        """Return the numbers of rows as they can be written, within the bounds."""
        Z = np.clip(self.written(Z), self.low, self.high)
        return np.where(self.may_move, Z, self.start)

    def _into_boxes(self, z: Floats) -> Floats:
        """Return places in boxes of trees: the nearest, and some of all others."""
        low, high = self.boxes
        places = np.clip(z, low + _BEYOND * self.units, high - _BEYOND * self.units)
        places = np.where(self.may_move & ~self.is_choice, places, z)
        places = places[((places >= self.low) & (places <= self.high)).all(axis=1)]
        away = (((places - z) / self.units) ** 2).sum(axis=1)
        order = np.argsort(away, kind="stable")
        order = order[away[order] > 0]
        others = order[_MOST_BOXES:]
        return places[[*order[:_MOST_BOXES], *others[:: len(others) // _MOST_BOXES + 1]]]

    def _set_boxes(self, at: Floats) -> None:
        """Note the boxes of trees in these numbers; `at` is the row as trees see it."""
        features = self.feature_of
        slopes = np.broadcast_to(self.steps.slopes(), len(at))
        low, high = boxes_of(self.description)
        if len(low):
            ends = [
                self.start + (end - at)[:, features] / slopes[features]
                for end in (low, high)
            ]
            self.boxes = np.minimum(*ends), np.maximum(*ends)

    def _differences(self, z: Floats) -> Floats:
        steps = _DIFFERENCE * np.diag(self.units)
        scores = self.scores(np.concatenate([z + steps, z - steps]))
        up, down = np.split(scores, 2)
        return ((up - down) / (2 * _DIFFERENCE)).T


class PlainMoves(Moves):
    """Moves of a row of numbers.

    Parameters
    ----------
    model : classifier or Pipeline
    steps : Steps
    x : {array-like, Series, DataFrame}
        One row.
    scale : array-like, mapping or None
    """

    def __init__(self, model: Any, steps: Steps, x: Any, scale: Any) -> None:
        known = getattr([*steps.scalers, steps.classifier][0], "feature_names_in_", None)
        x = x.to_pandas() if hasattr(x, "to_pandas") else x
        self._given = x
        values = x.toarray() if hasattr(x, "toarray") else np.asarray(x)
        n_features = int(model.n_features_in_)
        if values.size != n_features or values.ndim not in (1, 2):
            raise ValueError(f"x has shape {values.shape}; give one row of {n_features}.")
        is_float = values.dtype.kind == "f"
        self._dtype = values.dtype if is_float else np.dtype(np.float64)
        start = values.ravel().astype(np.float64)
        if not np.isfinite(start).all():
            raise ValueError("x has NaN or infinity.")
        self._fitted = known
        names = getattr(x, "columns", known)
        shown = [f"x{k}" for k in range(n_features)] if names is None else names
        named = [str(name) for name in shown]
        super().__init__(model, steps, named, start, list(range(n_features)))
        self.set_units(scale, steps.units(self.description))

    def rows(self, Z: Floats) -> Any:
        """Return what the model takes, of the numbers of some rows."""
        return self._named(Z.astype(self._dtype))

    def finished(self, z: Floats) -> Any:
        """Return a row like the one given."""
        moved = np.flatnonzero(z != self.start)
        if hasattr(self._given, "columns"):
            row = self._given.copy()
            for k in moved:
                row[row.columns[k]] = [self._dtype.type(z[k])]
            return row
        values = z.astype(self._dtype)
        if hasattr(self._given, "to_frame"):
            given = self._given
            return type(given)(values, index=given.index, name=given.name)
        return values.reshape(np.shape(self._given))

    def written(self, Z: Floats) -> Floats:
        """Return the numbers of rows as they can be written."""
        return Z.astype(self._dtype).astype(np.float64)

    def limits_of(self, name: int, limits: Any) -> tuple[float | None, float | None]:
        """Return limits as numbers."""
        low, high = limits
        return low, high

    def n_options(self, name: int) -> int:
        """Return how many values a choice has: there are no choices."""
        return 1

    def value(self, name: int, z: Floats) -> Any:
        """Return the value of a column."""
        return self._dtype.type(z[name]).item()

    def for_model(self, row: Any) -> Any:
        """Return a finished row as the model takes it."""
        if hasattr(row, "columns"):
            return row
        return self._named(np.reshape(row, (1, -1)))

    def _named(self, rows: NDArray[Any]) -> Any:
        """Return rows with names, if the model was fitted to names."""
        if self._fitted is None:
            return rows
        return pandas().DataFrame(rows, columns=self._fitted)


def _slopes(scalers: Any) -> Any:
    """Return the factor from each column to its feature behind scalers."""
    return math.prod((1.0 / scaling_of(one)[1] for one in scalers), start=1.0)  # type: ignore[index]
