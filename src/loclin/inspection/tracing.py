"""Which column each feature comes from, and how it changes with a number in that column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
)

from loclin.portable.describing import SCALERS, scaling_of
from loclin.tables import TableEncoder
from loclin.tables.cells import frame_of, pandas

_BENT = (OrdinalEncoder, PowerTransformer, QuantileTransformer)  # one feature a column


class Trace(NamedTuple):
    """Where features come from.

    Parameters
    ----------
    origins : ndarray of int of shape (n_features,)
        The column of each.
    slopes : ndarray of shape (n_features,)
        What a feature changes with a unit of its column; NaN where that is no constant.
    """

    origins: NDArray[np.intp]
    slopes: NDArray[np.float64]

    @classmethod
    def of_columns(cls, n_columns: int) -> Trace:
        """Return the trace of columns themselves."""
        return cls(np.arange(n_columns), np.ones(n_columns))

    def through(self, step: Any) -> Trace | None:
        """Return the trace of what a fitted step makes of these features.

        None where the step is unknown, or makes a feature of several columns.
        """
        if step == "drop":
            return self.at(slice(0))
        if step == "passthrough":
            return self
        if isinstance(step, Pipeline):
            found: Trace | None = self
            for _, one in step.steps:
                found = None if found is None else found.through(one or "passthrough")
            return found
        if isinstance(step, TableEncoder):
            return self._encoded(step)
        if isinstance(step, ColumnTransformer):
            return self._of_parts(step)
        if isinstance(step, OneHotEncoder):
            counts = [_n_columns(step, k) for k in range(len(step.categories_))]
            return Trace(np.repeat(self.origins, counts), np.full(sum(counts), np.nan))
        if isinstance(step, SelectorMixin):
            return self.at(step.get_support())
        if isinstance(step, SimpleImputer):
            return self._imputed(step)
        if isinstance(step, FunctionTransformer) and step.func is None:
            return self
        of_each = isinstance(step, FunctionTransformer) and isinstance(
            step.func, np.ufunc
        )
        scaling = scaling_of(step)
        if scaling is not None:
            return Trace(self.origins, self.slopes / scaling[1])
        if isinstance(step, _BENT + SCALERS) or of_each:
            return self._bent()
        return self._of_one_column(step)

    def at(self, places: Any) -> Trace:
        """Return the trace of some of the features."""
        return Trace(self.origins[places], self.slopes[places])

    def _bent(self) -> Trace:
        """Return the trace of one feature a column that is not linear in it."""
        return Trace(self.origins, np.full(len(self.origins), np.nan))

    def _encoded(self, encoder: TableEncoder) -> Trace:
        known = [str(name) for name in encoder.feature_names_in_]
        names = encoder.get_feature_names_out()
        slopes = [
            (1.0 if name == column else 0.0)
            if encoder.kinds_[column] == "number"
            else np.nan
            for name, column in zip(names, encoder.origins_, strict=True)
        ]
        places = [known.index(column) for column in encoder.origins_]
        return Trace(self.origins[places], self.slopes[places] * slopes)

    def _of_one_column(self, step: Any) -> Trace | None:
        """Return the trace of what any step makes of a column alone, such as words."""
        if len(np.unique(self.origins)) != 1 or not hasattr(
            step, "get_feature_names_out"
        ):
            return None
        size = len(step.get_feature_names_out())
        return Trace(np.repeat(self.origins[:1], size), np.full(size, np.nan))

    def _imputed(self, step: SimpleImputer) -> Trace | None:
        if not _is_gap(step.missing_values):  # a number that stands for a gap
            return self._bent()
        kept = ~np.array([_is_gap(one) for one in step.statistics_])
        if not (kept.all() or step.keep_empty_features):
            return self.at(kept) if step.indicator_ is None else None
        if step.indicator_ is None:
            return self
        gaps = self.origins[step.indicator_.features_]
        origins = np.concatenate([self.origins, gaps])
        return Trace(origins, np.concatenate([self.slopes, np.zeros(len(gaps))]))

    def _of_parts(self, step: ColumnTransformer) -> Trace | None:
        size = max((part.stop for part in step.output_indices_.values()), default=0)
        origins, slopes = np.zeros(size, np.intp), np.zeros(size)
        names = list(getattr(step, "feature_names_in_", []))
        for name, transformer, columns in step.transformers_:
            where = step.output_indices_[name]
            if where.start == where.stop:
                continue
            found = self.at(_places(columns, names, step.n_features_in_)).through(
                transformer
            )
            if found is None or len(found.origins) != where.stop - where.start:
                return None
            origins[where], slopes[where] = found
        return Trace(origins, slopes)


def transformed(steps: Sequence[Any], rows: Any) -> Any:
    """Return rows behind steps; they get names where a step was fitted to names."""
    for step in steps:
        names: Any = getattr(step, "feature_names_in_", None)
        is_unnamed = names is not None and not hasattr(rows, "columns")
        if is_unnamed and np.shape(rows)[1] == len(names):
            rows = frame_of(rows).set_axis(list(names), axis=1)
        rows = step.transform(rows)
    return rows


def dense(X: Any) -> NDArray[Any]:
    """Return rows as an array."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def _n_columns(encoder: OneHotEncoder, k: int) -> int:
    """Return how many columns of 0 and 1 a category has."""
    count = len(encoder.categories_[k])
    rare = getattr(encoder, "infrequent_categories_", None)
    if rare is not None and rare[k] is not None:
        count += 1 - len(rare[k])
    dropped = encoder.drop_idx_ is not None and encoder.drop_idx_[k] is not None
    return count - dropped


def _is_gap(value: Any) -> bool:
    return bool(pandas().isna(value))


def _places(columns: Any, names: list[Any], n_columns: int) -> NDArray[np.intp]:
    """Return the places of columns that a ColumnTransformer was given."""
    listed = [columns] if isinstance(columns, str | int | np.integer) else columns
    ends = [listed.start, listed.stop] if isinstance(listed, slice) else list(listed)[:1]
    everything = pandas().DataFrame([range(n_columns)], columns=names or range(n_columns))
    by_name = any(isinstance(one, str) for one in ends)
    chosen = everything.loc[:, listed] if by_name else everything.iloc[:, listed]
    return chosen.to_numpy(np.intp).ravel()
