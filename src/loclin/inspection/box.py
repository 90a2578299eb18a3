"""The box around a row in which no column makes a step or a bend of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.inspection.kinks import kinks_of
from loclin.inspection.mixing import Behind
from loclin.inspection.records import as_rows
from loclin.inspection.steps import columns_of
from loclin.inspection.text import printable, value_text
from loclin.portable import describe

Floats = NDArray[np.float64]


class Box(NamedTuple):
    """Values that a row's columns may take; `str` says it in words.

    Parameters
    ----------
    columns : list of str
    values : ndarray of shape (n_columns,)
        Of the row.
    low, high : ndarray of shape (n_columns,)
        A value is in the box if it is above `low` and not above `high`. Infinite where a column
        has no border, or is no number.
    """

    columns: list[str]
    values: NDArray[Any]
    low: Floats
    high: Floats

    def __str__(self) -> str:
        """Return a line for each column with a border."""
        lines = []
        for name, value, low, high in zip(*self, strict=True):
            sides = [f"above {value_text(low)}"] if np.isfinite(low) else []
            sides += [f"at most {value_text(high)}"] if np.isfinite(high) else []
            if sides:
                sides_text = ", ".join(sides)
                lines.append(f"{printable(name)} = {value_text(value)}: {sides_text}")
        return "\n".join(lines) or "no column has a border of its own"


def box(model: Any, row: Any) -> Box:
    """Return how far single columns can move before the score bends or jumps by them alone.

    The borders are the knots of features in pieces and the thresholds of trees. Other borders,
    such as those between regions or neighbours, are no boxes: they are not part of it.

    Parameters
    ----------
    model : classifier or Pipeline
        As in `LocalModelDisplay.from_estimator`, but without projections such as `PCA`.
    row : array-like, Series or DataFrame
        One row.

    Returns
    -------
    found : Box
        Print it to have it in words.

    Raises
    ------
    ValueError
        If there is not one row, or the model has no description in words, or mixes columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import CSVMClassifier
    >>> from loclin.inspection import box
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CSVMClassifier(1, pieces=3, random_state=0).fit(X, y)
    >>> print(str(box(model, X[:1])).splitlines()[0])
    sepal length (cm) = 5.1: above 4.25, at most 5.45
    """
    rows = as_rows(row)
    columns, classifier = columns_of(model, rows)
    if isinstance(classifier, Behind):
        raise ValueError("Steps that mix columns leave no borders of single columns.")
    terms = describe(classifier).terms
    cells, features = columns.values(rows), columns.features(rows)
    if len(cells) != 1:
        raise ValueError(f"row has {len(cells)} rows; give one.")
    at = np.asarray(features.toarray() if hasattr(features, "toarray") else features)[0]
    low, high = np.full((2, len(columns.names)), [[-np.inf], [np.inf]])
    for k in range(len(columns.names)):
        value = columns.numbers(k, cells[:, k])[0] if columns.is_linear(k) else np.nan
        own = [
            f for f in columns.own(k) if columns.trace.slopes[f] and np.isfinite(value)
        ]
        for feature in own:
            away = kinks_of(terms, feature) - at[feature]
            borders = value + away / columns.trace.slopes[feature]
            low[k] = max(low[k], borders[borders < value].max(initial=-np.inf))
            high[k] = min(high[k], borders[borders >= value].min(initial=np.inf))
    return Box(columns.names, cells[0], low, high)
