"""Columns of a table, each of which may be several features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.inspection.columns import (
    MEAN,
    MIXED,
    Columns,
    Reference,
    checked_names,
    framed_series,
)
from loclin.inspection.tracing import Trace, dense, transformed
from loclin.tables import TableEncoder
from loclin.tables.cells import frame_of, pandas


class TableColumns(Columns):
    """Columns of a table, each of which may be several features.

    Parameters
    ----------
    steps : sequence of transformers
        The first is a `TableEncoder`, or makes features of a table's columns otherwise.
    trace : Trace
    classifier : object
    X : {DataFrame, array-like} of shape (n_samples, n_columns)
        Rows that are explained. Columns without features are left out.
    """

    def __init__(
        self, steps: Sequence[Any], trace: Trace, classifier: Any, X: Any
    ) -> None:
        fitted = getattr(steps[0], "feature_names_in_", None)
        self._has_names = fitted is not None
        known = frame_of(X).columns if fitted is None else fitted
        self._known = [str(name) for name in known]
        used, origins = np.unique(trace.origins, return_inverse=True)
        names = [self._known[k] for k in used.tolist()]
        super().__init__(steps, Trace(origins, trace.slopes), names, classifier)
        is_ours = isinstance(steps[0], TableEncoder)
        self._encoder: TableEncoder | None = steps[0] if is_ours else None

    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of rows as they are."""
        values: NDArray[Any] = self._frame(X)[self.names].to_numpy(dtype=object)
        return values

    def numbers(self, k: int, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values of a column of numbers or dates as floats; NaN for gaps."""
        if self._encoder is not None:
            return self._encoder.numbers_of(self.names[k], values)
        found = pandas().to_numeric(pandas().Series(values), errors="coerce")
        return np.asarray(found, np.float64)

    def kind(self, k: int) -> str:
        """Return what a column is: one of the kinds of a `TableEncoder`."""
        if self._encoder is None:
            return "number" if self.is_linear(k) else "category"
        return str(self._encoder.kinds_[self.names[k]])

    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values in some columns."""
        values = {self.names[k]: of_column for k, of_column in changes.items()}
        rows = self._frame(X).assign(**values)
        return dense(self.features(rows if self._has_names else rows.to_numpy()))

    def _frame(self, X: Any) -> Any:
        """Return rows as a table with the columns that the model was fitted on."""
        frame = frame_of(X)
        if not hasattr(X, "columns") and frame.shape[1] == len(self._known):
            frame = frame.set_axis(self._known, axis=1)
        checked_names(frame, self.names)
        return frame

    def _rows(self, given: Any) -> Any:
        frame = self._frame(framed_series(given))
        return frame if self._has_names else frame.to_numpy()

    def _mean_values(self, rows: Any) -> list[Any]:
        values = self.values(rows)
        if len(values) == 1:
            return list(values[0])
        if self._encoder is not None:
            return self._encoded_mean(dense(self._encoder.transform(rows)).mean(axis=0))
        return [
            float(np.nanmean(self.numbers(k, values[:, k])))
            if self.kind(k) == "number"
            else MIXED
            for k in range(len(self.names))
        ]

    def _training_mean(self) -> Reference:
        """Return the mean that the encoder keeps, else that of the classifier."""
        if self._encoder is None:
            name, mean = self._kept_mean()
            return Reference(name, [MIXED] * len(self.names), mean)
        mean = self._encoder.means_
        features = dense(transformed(self._steps[1:], mean[None]))[0]
        return Reference(MEAN, self._encoded_mean(mean), features)

    def _encoded_mean(self, mean: NDArray[np.float64]) -> list[Any]:
        """Return the values of a mean row of the encoder."""
        assert self._encoder is not None
        features = list(self._encoder.get_feature_names_out())
        values: list[Any] = []
        for name in self.names:
            kind = self._encoder.kinds_[name]
            if kind in ("category", "text"):
                values.append(MIXED)
                continue
            value = float(mean[features.index(name)])
            if kind == "flag":
                values.append(f"{100 * value:.0f} % true")
            elif kind == "date":
                values.append(str(np.datetime64(math.floor(value), "D")))
            else:
                values.append(value)
        return values
