"""Scores and slopes of rows along one column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.inspection.kinks import found_kinks, known_kinks, patterns_of
from loclin.inspection.parts import pair_of
from loclin.inspection.planes import Columns, named
from loclin.inspection.ruling import decisions_of
from loclin.inspection.text import value_text

_MOST_VALUES = 40  # of a category
_NUMBERS = 2**21  # of slopes that are held at once
_SIDES = {"f": 1e-5, "d": 1e-9}  # from a kink to either side, of the range

Floats = NDArray[np.float64]


class Pairs(NamedTuple):
    """Which scores are drawn: of a class against another, or of each class.

    Parameters
    ----------
    first : list of int
        The class of each curve.
    second : list of int or None
        The class against; None for scores of classes alone.
    """

    first: list[int]
    second: list[int] | None

    def between(self, by_class: Floats) -> Floats:
        """Return what curves say, (n, n_curves), from what classes say, (n, c)."""
        found = by_class[:, self.first]
        return found if self.second is None else found - by_class[:, self.second]

    def named(self, labels: NDArray[Any]) -> list[tuple[Any, Any]]:
        """Return the labels of each curve."""
        known = labels.tolist()
        second: Any = [None] * len(self.first) if self.second is None else [
            known[k] for k in self.second
        ]  # fmt: skip
        return list(zip([known[k] for k in self.first], second, strict=True))


def class_pairs(classes: Any, labels: NDArray[Any], scores: Floats) -> Pairs:
    """Return the curves that `classes` says; by default of the two of largest score."""
    if isinstance(classes, str) and classes == "each":
        return Pairs(list(range(len(labels))), None)
    if classes is not None:
        first, second = pair_of(classes, labels)
    else:
        first, second = np.argsort(-scores, kind="stable")[:2].tolist()
    return Pairs([first], [second])


def values_along(
    columns: Columns, place: int, known: NDArray[Any], own: NDArray[Any], n_places: int
) -> tuple[NDArray[Any], str]:
    """Return the values that a column takes, and its kind.

    Numbers and dates are a range, others a list in order.
    """
    kind, name = columns.kind(place), columns.names[place]
    if kind in ("number", "date"):
        numbers = np.concatenate([columns.numbers(place, one) for one in (known, own)])
        numbers = numbers[np.isfinite(numbers)]
        if not len(numbers) or numbers.min() == numbers.max():
            raise ValueError(
                f"Column {name!r} has one value alone. Pass values=: such as the column of the "
                "training rows."
            )
        low, high = numbers.min(), numbers.max()
        if kind == "date":
            days = np.unique(np.linspace(low, high, n_places).round().astype(np.int64))
            return days.astype("datetime64[D]"), kind
        of_rows = columns.numbers(place, own)
        of_rows = of_rows[np.isfinite(of_rows)]
        return np.unique([*np.linspace(low, high, n_places), *of_rows]), kind
    seen = {value_text(one): one for one in [*known.tolist(), *own.tolist()]}
    if len(seen) > _MOST_VALUES:
        raise ValueError(
            f"Column {name!r} has {len(seen)} values; a picture holds {_MOST_VALUES}. Pass "
            "values=."
        )
    values = np.empty(len(seen), dtype=object)
    values[:] = [seen[text] for text in sorted(seen)]
    return values, kind


class Curves:
    """Rows that are moved along a column.

    Parameters
    ----------
    columns : Columns
    classifier : object
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_columns)
    place : int
        Of the column.
    """

    def __init__(self, columns: Columns, classifier: Any, X: Any, place: int) -> None:
        self._columns, self._classifier, self._X = columns, classifier, X
        self._place = place
        self._n_rows = X.shape[0] if hasattr(X, "shape") else len(X)

    def own_scores(self) -> Floats:
        """Return scores of the rows as they are, (n_rows, c)."""
        features = self._columns.features(self._X)
        return decisions_of(self._classifier, named(self._classifier, features))

    def scores(self, values: NDArray[Any], pairs: Pairs) -> Floats:
        """Return the scores at each value, (n_rows, n_curves, n_values)."""
        return self._by_row(
            [
                pairs.between(decisions_of(self._classifier, at))
                for at in self._blocks(values)
            ],
            len(values),
        )

    def slopes(self, values: Floats, pairs: Pairs) -> Floats | None:
        """Return the slopes of the scores, like `scores`; None where there are none."""
        own = self._columns.own(self._place)
        by_value = self._ends(values)[1]
        found = []
        try:
            for at in self._blocks(values):
                slopes = self._classifier.local_gradient(at, by_class=True)
                found.append(pairs.between(np.asarray(slopes)[:, :, own] @ by_value[own]))
        except ValueError:  # codes of a transformer
            return None
        return self._by_row(found, len(values))

    def with_kinks(self, values: Floats, pairs: Pairs) -> Floats:
        """Return values with both sides of each place where a score bends or jumps."""
        low, high = values[0], values[-1]
        at_low, by_value = self._ends(values)
        feature = self._columns.own(self._place)[0]
        places = known_kinks(self._classifier, feature)
        if by_value[feature]:
            places = low + (places - at_low[feature]) / by_value[feature]
        places = places[(places > low) & (places < high)]
        scores = self.scores(values, pairs)
        blocks = [patterns_of(self._classifier, at) for at in self._blocks(values)]
        patterns = np.concatenate(blocks).reshape(self._n_rows, -1)
        found = found_kinks(values, scores[:, 0], patterns, self._patterns_at)
        kinks = np.concatenate([places, found])
        dtype = self._classifier.decision_function(next(self._blocks(values[:1]))).dtype
        side = _SIDES[dtype.char] * (high - low)
        both = np.concatenate([values, kinks - side, kinks + side])
        return np.unique(np.clip(both, low, high))

    def _patterns_at(self, rows: NDArray[np.intp], values: Floats) -> NDArray[Any]:
        return patterns_of(self._classifier, self._moved(rows, values))

    def _moved(self, rows: NDArray[np.intp], values: NDArray[Any]) -> Any:
        """Return some rows with a value each, as the classifier sees them."""
        taken = self._X
        if hasattr(taken, "iloc"):
            taken = taken.iloc[rows].reset_index(drop=True)
        else:
            taken = (taken if hasattr(taken, "shape") else np.asarray(taken))[rows]
        features = self._columns.changed(taken, {self._place: values})
        return named(self._classifier, features)

    def _blocks(self, values: NDArray[Any]) -> Iterator[Any]:
        """Yield all rows at all values, row by row, some at a time."""
        rows = np.repeat(np.arange(self._n_rows), len(values))
        at = np.tile(values, self._n_rows)
        n_each = self._classifier.n_features_in_ * len(self._classifier.classes_)
        step = max(1, _NUMBERS // n_each)
        for first in range(0, len(rows), step):
            yield self._moved(rows[first : first + step], at[first : first + step])

    def _by_row(self, blocks: list[Floats], n_values: int) -> Floats:
        return (
            np.concatenate(blocks).reshape(self._n_rows, n_values, -1).transpose(0, 2, 1)
        )

    def _ends(self, values: Floats) -> tuple[Floats, Floats]:
        """Return features at the first value, and what features change by, per unit."""
        ends = np.asarray(self._moved(np.zeros(2, np.intp), values[[0, -1]]), np.float64)
        return ends[0], (ends[1] - ends[0]) / (values[-1] - values[0])
