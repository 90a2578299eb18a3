"""Classifiers that standardize the features by themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from loclin.engine.data import Matrix, Rows
from loclin.fitting.checks import check_feature_scale
from loclin.fitting.columns import (
    Columns,
    has_frozen,
    knows_columns,
    used_columns,
    with_all_columns,
)
from loclin.fitting.features import (
    PLAIN,
    FeatureMap,
    StreamedMoments,
    map_by,
    moments_of,
    standardized,
)
from loclin.fitting.mapped import least_of
from loclin.fitting.pieces import pieces_of_stream


class Standardized:
    """What a classifier sees of its rows: those of a fit tell, and those of a stream so far."""

    standardize: bool = False
    _coding_parameter: str | None = None  # frozen ones, and points, know the rows as given
    # does all that it learns of columns tell so (`with_all_columns`)?
    _can_do_with_columns: bool = False
    _follows_moments = False  # can what is learned on a stream be carried over to another map?
    _features: FeatureMap
    _moments: StreamedMoments | None = None  # of the rows of a stream, where the map may move
    _largest: float = 0.0  # feature that the model has seen
    _learned: Any
    _root: Any

    def _standardized(self, rows: Rows, columns: Columns | None) -> FeatureMap:
        """Return the map by these rows; unscaled where the rows are to be seen as they are."""
        return standardized(rows, columns) if self._standardizes() else FeatureMap(columns=columns)

    def _standardizes(self) -> bool:
        return self.standardize and not has_frozen(self._given_coding())

    def _used_columns(self, rows: Rows) -> Columns | None:
        """Return the columns that a fit is to see; None for all."""
        can = self._can_do_with_columns and knows_columns(self._given_coding())
        return used_columns(rows.X) if can else None

    def _given_coding(self) -> Any:
        return getattr(self, self._coding_parameter) if self._coding_parameter else None

    def _see_all_columns(self, X: Matrix, *, streams: bool) -> None:
        """Let what goes on see all columns, where rows use others, or any may come."""
        columns = self._features.columns
        if columns is None or not (streams or not columns.have_all_of(X)):
            return
        root = self._root
        vars(self).update(vars(with_all_columns(self, columns)))
        if root is not None:
            self._root = columns.to_all(root, fill=least_of(root))
        self._learned = with_all_columns(self._learned, columns)
        self._features = self._features.with_all_columns()

    def _seen(self, rows: Rows, *, goes_on: bool) -> Rows:
        """Return rows as the model sees them, of the type of what goes on; check their scale."""
        if goes_on:
            dtype, (X, _, weights, _) = self._learned.local_coef.dtype, rows
            rows = rows._replace(X=X.astype(dtype, copy=False), weights=weights.astype(dtype))
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large, is said below
            rows = self._features.of_rows(rows)
        self._largest = check_feature_scale(rows.X, self._largest if goes_on else 0.0)
        return rows

    def _begin_moments(self, rows: Rows) -> None:
        """Let the map be that of the first rows of a stream."""
        before = FeatureMap(pieces=pieces_of_stream(self, rows))
        seen = before.of_rows(rows)
        moments = moments_of(seen) if self._standardizes() else None
        found = PLAIN if moments is None else map_by(moments, seen.X)
        self._features = replace(found, pieces=before.pieces)
        self._moments = None
        if self._follows_moments and moments is not None:
            self._moments = StreamedMoments(moments, 2 * moments.n_rows)

    def _follow(self, stream: Any, rows: Rows) -> None:
        """Let the map of a stream follow the moments of its rows, these included."""
        if self._moments is None:
            return
        before = self._features
        self._moments, due = self._moments.after(FeatureMap(pieces=before.pieces).of_rows(rows))
        if due:
            assert before.scale is not None
            found = self._moments.moments.map_for(
                before.scale.dtype, centred=before.centre is not None
            )
            self._features = replace(found, pieces=before.pieces)
            stream.remap(before.change_to(self._features))
            self._learned, self._largest = stream.result(final=True), 0.0
