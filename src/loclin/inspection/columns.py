"""From the columns that a person knows to the features that a classifier sees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from loclin.tables import TableEncoder
from loclin.tables.cells import frame_of

# They change each column by itself, so that a feature stays one column's.
_SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
_MEAN = "the mean training row"
_MIXED = "(mean)"  # what a category or a text is in a mean of rows


class Reference(NamedTuple):
    """What rows are compared with.

    Parameters
    ----------
    name : str
        In words, such as "the mean training row".
    values : list
        One for each column.
    features : ndarray of shape (n_features,)
        The same as the classifier sees it.
    """

    name: str
    values: list[Any]
    features: NDArray[np.float64]


class PlainColumns:
    """Columns of numbers, each of which is a feature, scaled or not.

    Parameters
    ----------
    scalers : sequence of transformers
        Each changes every column by itself.
    classifier : object
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_columns)
        Rows that are explained.
    """

    def __init__(self, scalers: Sequence[Any], classifier: Any, X: Any) -> None:
        self._scalers = scalers
        self._fitted = getattr([*scalers, classifier][0], "feature_names_in_", None)
        if np.ndim(X) != 2:
            raise ValueError("X must have rows and columns: pass X[:1], not X[0].")
        known = getattr(X, "columns", self._fitted)
        names = [f"x{k}" for k in range(np.shape(X)[1])] if known is None else known
        self.names = [str(name) for name in names]

    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of rows as they are."""
        return _dense(X)

    def features(self, X: Any) -> Any:
        """Return rows as the classifier sees them."""
        return _scaled(self._scalers, X)

    def reference(self, given: Any) -> Reference:
        """Return what rows are compared with; None for the training mean."""
        rows = self._training_mean() if given is None else self._rows(given)
        if rows.shape[1] != len(self.names):
            raise ValueError(
                f"reference has {rows.shape[1]} columns, but the rows have {len(self.names)}."
            )
        if not (len(rows) and np.isfinite(rows).all()):
            raise ValueError(
                "reference has no rows, or values that are no finite numbers."
            )
        features = _dense(_scaled(self._scalers, rows)).astype(np.float64).mean(axis=0)
        name = _MEAN if given is None else _name_of(len(rows))
        return Reference(name, list(rows.mean(axis=0)), features)

    def by_column(self, added: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what columns add, from what features add."""
        return added

    def kind(self, k: int) -> str:
        """Return what a column is: here always "number"."""
        return "number"

    def own(self, k: int) -> list[int]:
        """Return the features of a column."""
        return [k]

    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values in some columns."""
        rows = np.array(_dense(X), np.float64)
        for k, values in changes.items():
            rows[:, k] = values
        return _dense(_scaled(self._scalers, rows))

    def _training_mean(self) -> NDArray[np.float64]:
        for k, scaler in enumerate(self._scalers):
            mean = getattr(scaler, "mean_", None)
            if mean is not None:
                row = np.asarray(mean, np.float64)[None]
                for before in reversed(self._scalers[:k]):
                    row = before.inverse_transform(row)
                return np.asarray(row)
        raise ValueError(
            "This model has not kept the mean of its training rows. Pass reference=: a row, or "
            "rows whose mean is taken, such as the training rows."
        )

    def _rows(self, given: Any) -> NDArray[np.float64]:
        """Return a reference as rows, columns in the order of the model's."""
        given = _framed_series(given)
        if hasattr(given, "columns") and self._fitted is not None:
            missing = [name for name in self._fitted if name not in given.columns]
            if missing:
                raise ValueError(
                    f"reference has no column {', '.join(map(repr, missing))}."
                )
            given = given[list(self._fitted)]
        return np.atleast_2d(_dense(given).astype(np.float64))


class TableColumns:
    """Columns of a table, each of which may be several features.

    Parameters
    ----------
    encoder : TableEncoder
    scalers : sequence of transformers
        Between the encoder and the classifier.
    """

    def __init__(self, encoder: TableEncoder, scalers: Sequence[Any]) -> None:
        self._encoder, self._scalers = encoder, scalers
        self.names = list(dict.fromkeys(encoder.origins_))

    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of rows as they are."""
        values: NDArray[Any] = frame_of(X)[self.names].to_numpy(dtype=object)
        return values

    def features(self, X: Any) -> Any:
        """Return rows as the classifier sees them."""
        return _scaled(self._scalers, self._encoder.transform(X))

    def reference(self, given: Any) -> Reference:
        """Return what rows are compared with; None for the training mean."""
        if given is None:
            mean, name = self._encoder.means_, _MEAN
            values = self._mean_values(mean)
        else:
            frame = frame_of(_framed_series(given))
            if not len(frame):
                raise ValueError("reference has no rows.")
            mean = _dense(self._encoder.transform(frame)).mean(axis=0)
            name = _name_of(len(frame))
            one = len(frame) == 1
            values = list(self.values(frame)[0]) if one else self._mean_values(mean)
        features = _dense(_scaled(self._scalers, mean[None]))[0]
        return Reference(name, values, features)

    def by_column(self, added: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what columns add, from what features add."""
        origins = self._encoder.origins_
        starts = [k for k in range(len(origins)) if not k or origins[k] != origins[k - 1]]
        return np.add.reduceat(added, starts, axis=-1)

    def kind(self, k: int) -> str:
        """Return what a column is: one of the kinds of a `TableEncoder`."""
        return str(self._encoder.kinds_[self.names[k]])

    def own(self, k: int) -> list[int]:
        """Return the features of a column; of a number, the first is its value."""
        return [
            f for f, name in enumerate(self._encoder.origins_) if name == self.names[k]
        ]

    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values in some columns."""
        values = {self.names[k]: of_column for k, of_column in changes.items()}
        return _dense(self.features(frame_of(X).assign(**values)))

    def _mean_values(self, mean: NDArray[np.float64]) -> list[Any]:
        """Return the values of a mean row, where a mean has any."""
        features = list(self._encoder.get_feature_names_out())
        values: list[Any] = []
        for name in self.names:
            kind = self._encoder.kinds_[name]
            if kind in ("category", "text"):
                values.append(_MIXED)
                continue
            value = float(mean[features.index(name)])
            if kind == "flag":
                values.append(f"{100 * value:.0f} % true")
            elif kind == "date":
                values.append(str(np.datetime64(math.floor(value), "D")))
            else:
                values.append(value)
        return values


def columns_of(model: Any, X: Any) -> tuple[PlainColumns | TableColumns, Any]:
    """Return the columns that a model's features come from, and its classifier.

    Raises
    ------
    TypeError
        If the model has other steps, or no local models.
    """
    steps = [model]
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
    *before, classifier = steps
    encoder = before.pop(0) if before and isinstance(before[0], TableEncoder) else None
    strange = [type(step).__name__ for step in before if not isinstance(step, _SCALERS)]
    if strange:
        raise TypeError(
            f"The step {strange[0]} cannot be explained in the columns in front of it. Steps may "
            f"be a TableEncoder and {', '.join(kind.__name__ for kind in _SCALERS)}; or transform "
            "the rows first, and pass the classifier alone."
        )
    if not hasattr(classifier, "local_model"):
        raise TypeError(
            f"{type(classifier).__name__} has no method local_model: pass a classifier that has, "
            "or a pipeline that ends in one; of a search, its best_estimator_."
        )
    check_is_fitted(classifier)
    if encoder is not None:
        return TableColumns(encoder, before), classifier
    return PlainColumns(before, classifier, X), classifier


def _scaled(scalers: Sequence[Any], rows: Any) -> Any:
    for scaler in scalers:
        names = getattr(scaler, "feature_names_in_", None)
        if names is not None and not hasattr(rows, "columns"):
            rows = frame_of(rows).set_axis(list(names), axis=1)
        rows = scaler.transform(rows)
    return rows


def _dense(X: Any) -> NDArray[Any]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def _framed_series(given: Any) -> Any:
    """Return a row that is a pandas Series as a table of one row."""
    is_row = hasattr(given, "to_frame") and hasattr(given, "index")
    return given.to_frame().T if is_row and np.ndim(given) == 1 else given


def _name_of(n_rows: int) -> str:
    return "the row given" if n_rows == 1 else f"the mean of {n_rows:,} rows given"
