"""Features in pieces, beside the features:
resolution along single ones where models are few.

Between two knots a model is linear in the feature, so it stays one locally linear model.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.data import Floats, Rows, is_sparse
from loclin.engine.warned import SomeRowsWarning, quiet, warn
from loclin.fitting.columns import has_frozen
from loclin.fitting.features import FeatureMap, standardized
from loclin.fitting.metric import held_out_loss, is_whole, refits, splits, stronger
from loclin.fitting.probability import few_of
from loclin.fitting.recipe import Recipe
from loclin.fitting.rows import at_random, part_of
from loclin.portable.words import Pieces

N_PIECES = 8  # of a feature, where their number is not given (docs/notes/pieces.md)
_KNOT_ROWS = 20_000  # so many rows, at most, tell where knots are
# A piece is at least so many units in the last place of the feature's largest value.
_ULPS = 16
# "auto" tries no more features: pixels and embeddings gain little, and would cost much.
_MOST_FEATURES = 128
# Rows with their pieces take no more memory with "auto": some of each class are learned
# then, and so many at least, unless classes are too many.
_MOST_BYTES, _FEWEST_OF_CLASS = 2**31, 1000


def pieces_of(rows: Rows, n_pieces: int) -> Pieces | None:
    """Return pieces of features that hold as many rows each;
    None where no feature has any.

    A feature of two values has none: it is linear as it is.

    Parameters
    ----------
    rows : Rows
        Dense.
    n_pieces : int
        Of a feature, at most.
    """
    n, sample = len(rows.y), np.arange(len(rows.y))
    if n > _KNOT_ROWS:
        # Rows may be periodic, so that a random sample tells more than every k-th.
        sample = np.random.default_rng(0).permutation(n)[:_KNOT_ROWS]
    X, weights = rows.X[sample], rows.weights[sample].astype(np.float64)
    knots = [_knots(X[:, f], weights, n_pieces) for f in range(X.shape[1])]
    counts = [len(of_one) - 1 if len(of_one) > 2 else 0 for of_one in knots]
    if not any(counts):
        return None
    several = [of_one for of_one in knots if len(of_one) > 2]
    return Pieces(
        np.repeat(np.arange(X.shape[1]), counts),
        np.concatenate([of_one[:-1] for of_one in several]),
        np.concatenate([of_one[1:] for of_one in several]),
    )


def _knots(x: Floats, weights: NDArray[np.float64], n_pieces: int) -> Floats:
    """Return quantiles of a feature, and an end on each side;
    none of a feature of two values.

    They lie half-way between values that occur: on which side of a knot a row is, hangs
    on no rounding.
    """
    values, places = np.unique(x, return_inverse=True)
    numbers = np.finfo(x.dtype)
    least = max(_ULPS * numbers.eps * np.abs(values[[0, -1]]).max(), _ULPS * numbers.tiny)
    if len(values) < 3 or values[-1] / 2 - values[0] / 2 < least:  # rounding is no piece
        return values[:0]
    between = values[:-1] / 2 + values[1:] / 2  # no sum overflows
    shares = np.cumsum(np.bincount(places.ravel(), weights))
    below, n_pieces = shares[:-1] / shares[-1], min(n_pieces, len(values))
    wanted = np.arange(1, n_pieces) / n_pieces
    after = np.clip(np.searchsorted(below, wanted), 1, len(below) - 1)
    nearer = wanted - below[after - 1] <= below[after] - wanted + 1e-9
    ends = values[[0, -1]] - (between[[0, -1]] - values[[0, -1]])
    knots = np.unique(np.concatenate([ends, between[after - nearer]]))
    return knots[np.append(True, knots[1:] / 2 - knots[:-1] / 2 >= least / 2)]


def names_of(pieces: Pieces | None, names: Sequence[str]) -> list[str]:
    """Return names of pieces: that of the feature, and where it rises from 0 to 1."""
    if pieces is None:
        return []
    parts = zip(pieces.feature, pieces.low, pieces.high, strict=True)
    return [f"({names[f]} from {low:.4g} to {high:.4g})" for f, low, high in parts]


def pieces_of_stream(recipe: Recipe, rows: Rows) -> Pieces | None:
    """Return the pieces of a stream, by its first rows; "auto" has none."""
    n_pieces = recipe.pieces
    if n_pieces is None or isinstance(n_pieces, str) or not _can_have(recipe, rows):
        return None
    if len(rows.y) <= n_pieces:
        raise ValueError(
            f"The first call of partial_fit has {len(rows.y)} rows, which tell no {n_pieces} "
            "pieces of a feature. Give more rows at first, or set pieces=None."
        )
    return pieces_of(rows, int(n_pieces))


def _can_have(recipe: Recipe, rows: Rows) -> bool:
    """Tell whether rows can have pieces:
    neither sparse ones, nor those that a coding knows.
    """
    if is_sparse(rows.X) or recipe.pieces is None:
        return False
    if recipe.pieces == "auto":
        # The time grows with the cube of the columns.
        wide = rows.X.shape[1] > _MOST_FEATURES or is_whole(recipe.metric)
        if wide or not recipe.standardize:
            return False
    knows = has_frozen(recipe.coding_given)
    if knows and recipe.pieces != "auto":
        raise ValueError(
            f"pieces={recipe.pieces!r} needs a coding that is fitted to rows with pieces, not a "
            "frozen one; give the coding unfitted, or set pieces=None."
        )
    return not knows


def chosen_features(recipe: Recipe, rows: Rows) -> FeatureMap:
    """Return the map of a fit with pieces, if it is to have any; else the recipe's.

    Parameters
    ----------
    recipe : Recipe
        Its map is that without pieces.
    rows : Rows
        As they are given.
    """
    plain = recipe.features
    if not _can_have(recipe, rows) or plain.columns is not None:
        return plain
    if not isinstance(recipe.pieces, str):
        candidate = pieces_of(rows, int(recipe.pieces or 0))
        return plain if candidate is None else _with(rows, candidate, plain)
    parts = [] if rows.y.ndim == 2 else list(splits(rows.y, recipe.seed))
    candidate = pieces_of(rows, N_PIECES) if parts else None
    if candidate is None:
        return plain
    some = _that_fit(rows, candidate)
    maps = [plain, _with(some, candidate, plain)]
    losses = [_held_out_loss(replace(recipe, features=one), rows, parts) for one in maps]
    return maps[int(np.argmin(losses))]  # of equals, the first


def rows_to_learn(recipe: Recipe, rows: Rows) -> Rows:
    """Return rows that fit in memory as the recipe's map shows them, all of them mostly."""
    pieces = recipe.features.pieces
    if pieces is None or recipe.pieces != "auto":
        return rows
    some, n = _that_fit(rows, pieces), len(rows.y)
    if len(some.y) < n:
        n_bytes = n * _bytes_of_row(rows, pieces)
        warn(
            f"Pieces of features lower the error, but with them {n} rows would take "
            f"{n_bytes / 2**30:.1f} GiB. The fit learns from {len(some.y)} of them, drawn at "
            f"random. loclin.cluster.fit learns from all, and so does pieces={N_PIECES}, with that "
            "much memory.",
            SomeRowsWarning,
        )
    return some


def _bytes_of_row(rows: Rows, pieces: Pieces) -> int:
    return int(rows.X.itemsize * (rows.X.shape[1] + len(pieces.feature)))


def _that_fit(rows: Rows, pieces: Pieces) -> Rows:
    """Return rows with their pieces in `_MOST_BYTES`: all, or some, drawn at random.

    Of rare classes there are more, which weigh less: a class weighs what all its rows do.
    A fit that goes on after an interrupt draws the same.
    """
    n, most = len(rows.y), _MOST_BYTES // _bytes_of_row(rows, pieces)
    if n <= most:
        return rows
    of_class, y, weights = np.bincount(rows.y), rows.y, rows.weights
    numbers = np.minimum(of_class, min(_FEWEST_OF_CLASS, most // len(of_class)))
    left = of_class - numbers
    numbers += left * (most - numbers.sum()) // left.sum()
    drawn = np.flatnonzero(at_random(y, numbers, np.random.default_rng(0)))
    by_class = np.bincount(y, weights) / np.bincount(y[drawn], weights[drawn])
    weights = (weights * by_class[y]).astype(weights.dtype)
    return part_of(rows._replace(weights=weights), drawn)


def _with(rows: Rows, pieces: Pieces, plain: FeatureMap) -> FeatureMap:
    return FeatureMap(pieces=pieces) if plain.is_raw else standardized(rows, None, pieces)


def _held_out_loss(recipe: Recipe, rows: Rows, folds: list[Any]) -> float:
    """Return the held-out log loss of short fits to rows as the recipe's map shows them."""
    n_classes, seen = len(recipe.classes), recipe.features.of_rows
    parts = [
        (
            seen(part_of(rows, train)),
            seen(part_of(rows, few_of(test, n_classes, len(folds)))),
        )
        for train, test in folds
    ]
    trial = recipe.trial(parts[0][0])
    tried, roots = (
        replace(recipe, **trial.changes | stronger(recipe)),
        [None] * len(parts),
    )
    with quiet(), np.errstate(all="ignore"), suppress(ValueError):  # the fit itself warns
        fitted = refits(tried, parts, roots, trial.n_learning)
        return held_out_loss(tried, fitted, parts, roots)
    return np.inf
