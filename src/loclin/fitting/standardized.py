"""What a classifier sees of its rows:
the rows of a fit tell, and those of a stream so far.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from loclin.engine.data import Matrix, Rows
from loclin.fitting.checks import check_feature_scale
from loclin.fitting.columns import (
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
from loclin.fitting.recipe import Recipe


def map_without_pieces(recipe: Recipe, rows: Rows) -> FeatureMap:
    """Return the map by these rows; unscaled where the rows are to be seen as they are."""
    can = recipe.can_do_with_columns and knows_columns(recipe.coding_given)
    columns = used_columns(rows.X) if can else None
    return (
        standardized(rows, columns)
        if standardizes(recipe)
        else FeatureMap(columns=columns)
    )


def standardizes(recipe: Recipe) -> bool:
    """Tell whether rows are standardized:
    not where a coding knows them as they are given.
    """
    return recipe.standardize and not has_frozen(recipe.coding_given)


class Standardized:
    """The map of a classifier's features, which moves with a stream."""

    _features: FeatureMap
    # The moments of the rows of a stream, where the map may move.
    _moments: StreamedMoments | None = None
    _largest: float = 0.0  # feature that the model has seen
    _learned: Any
    _root: Any

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
        """Return rows as the model sees them,
        of the type of what goes on; check their scale.
        """
        if goes_on:
            dtype, (X, _, weights, _) = self._learned.local_coef.dtype, rows
            rows = rows._replace(
                X=X.astype(dtype, copy=False), weights=weights.astype(dtype)
            )
        # What is too large is said below.
        with np.errstate(over="ignore", invalid="ignore"):
            rows = self._features.of_rows(rows)
        self._largest = check_feature_scale(rows.X, self._largest if goes_on else 0.0)
        return rows

    def _begin_moments(self, recipe: Recipe, rows: Rows) -> None:
        """Let the map be that of the first rows of a stream."""
        before = FeatureMap(pieces=pieces_of_stream(recipe, rows))
        seen = before.of_rows(rows)
        moments = moments_of(seen) if standardizes(recipe) else None
        new_map = PLAIN if moments is None else map_by(moments, seen.X)
        self._features = replace(new_map, pieces=before.pieces)
        self._moments = None
        if recipe.follows_moments and moments is not None:
            self._moments = StreamedMoments(moments, 2 * moments.n_rows)

    def _follow(self, stream: Any, rows: Rows) -> None:
        """Let the map of a stream follow the moments of its rows, these included."""
        if self._moments is None:
            return
        before = self._features
        self._moments, due = self._moments.after(
            FeatureMap(pieces=before.pieces).of_rows(rows)
        )
        if due:
            assert before.scale is not None
            new_map = self._moments.moments.map_for(
                before.scale.dtype, centred=before.centre is not None
            )
            self._features = replace(new_map, pieces=before.pieces)
            stream.remap(before.change_to(self._features))
            self._learned, self._largest = stream.result(final=True), 0.0
