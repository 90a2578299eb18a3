"""Features in pieces, beside the features: resolution along single ones where models are few.

Between two knots a model is linear in the feature, so it stays one locally linear model.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.data import Floats, Rows, is_sparse
from loclin.engine.warned import quiet
from loclin.fitting.columns import has_frozen
from loclin.fitting.features import FeatureMap, standardized
from loclin.fitting.metric import held_out_loss, is_whole, refits, splits, stronger
from loclin.fitting.probability import few_of
from loclin.fitting.rows import part_of
from loclin.portable.words import Pieces

_PIECES = 8  # of a feature, where their number is not given (docs/notes/pieces.md)
_ROWS = 20_000  # that tell knots
_MOST_FEATURES = 128  # of "auto": pixels and embeddings gain little, and would cost much
_MOST_NUMBERS = 2**26  # of rows with their pieces, at which "auto" looks


def pieces_of(rows: Rows, n_pieces: int) -> Pieces | None:
    """Return pieces of features that hold as many rows each; None where no feature has any.

    A feature of two values has none: it is linear as it is.

    Parameters
    ----------
    rows : Rows
        Dense.
    n_pieces : int
        Of a feature, at most.
    """
    some = slice(None, None, -(-len(rows.y) // _ROWS))
    X, weights = rows.X[some], rows.weights[some].astype(np.float64)
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
    """Return quantiles of a feature, and an end on each side; none of a feature of two values.

    They lie half-way between values that occur: on which side of a knot a row is, hangs on no
    rounding.
    """
    values, places = np.unique(x, return_inverse=True)
    if len(values) < 3:
        return values[:0]
    between = values[:-1] + np.diff(values) / 2
    shares = np.cumsum(np.bincount(places.ravel(), weights))
    below = shares[:-1] / shares[-1]
    wanted = np.arange(1, n_pieces)[:, None] / n_pieces
    inner = between[np.argmin(np.abs(below - wanted), axis=1)]
    ends = 2 * values[[0, -1]] - between[[0, -1]]
    return np.unique(np.concatenate([ends, inner]))


def names_of(pieces: Pieces | None, names: Sequence[str]) -> list[str]:
    """Return names of pieces: that of the feature, and where it rises from 0 to 1."""
    if pieces is None:
        return []
    parts = zip(pieces.feature, pieces.low, pieces.high, strict=True)
    return [f"({names[f]} from {low:.4g} to {high:.4g})" for f, low, high in parts]


def pieces_of_stream(model: Any, rows: Rows) -> Pieces | None:
    """Return the pieces of a stream, by its first rows; "auto" has none."""
    chooses = model.pieces is None or model.pieces == "auto"
    return None if chooses or not _can_have(model, rows) else pieces_of(rows, int(model.pieces))


def _can_have(model: Any, rows: Rows) -> bool:
    """Tell whether rows can have pieces: neither sparse ones, nor those that a coding knows."""
    if is_sparse(rows.X) or model.pieces is None:
        return False
    if model.pieces == "auto":
        wide = rows.X.shape[1] > _MOST_FEATURES or is_whole(model.metric)  # a cube of the columns
        if wide or not model.standardize:
            return False
    knows = has_frozen(model._given_coding())
    if knows and model.pieces != "auto":
        raise ValueError(
            f"pieces={model.pieces!r} needs a coding that is fitted to rows with pieces, not a "
            "frozen one; give the coding unfitted, or set pieces=None."
        )
    return not knows


def chosen_features(model: Any, rows: Rows, plain: FeatureMap) -> FeatureMap:
    """Return the map of a fit with pieces, if it is to have any; else the one without.

    Parameters
    ----------
    model : LocallyLinearClassifier
    rows : Rows
        As they are given.
    plain : FeatureMap
    """
    if not _can_have(model, rows) or plain.columns is not None:
        return plain
    chooses = model.pieces == "auto"
    found = pieces_of(rows, _PIECES if chooses else int(model.pieces))
    if found is None:
        return plain
    with_pieces = standardized(rows, None, found)
    if plain.is_raw:
        with_pieces = FeatureMap(pieces=found)
    return _best(model, rows, [plain, with_pieces]) if chooses else with_pieces


def _best(model: Any, rows: Rows, maps: list[FeatureMap]) -> FeatureMap:
    """Return the map with the lowest held-out log loss of short fits; of equals, the first."""
    width = rows.X.shape[1] + len(maps[-1].pieces.feature)  # type: ignore[union-attr]
    found = [] if rows.y.ndim == 2 else list(splits(rows.y, model._seed()))
    if not found or len(rows.y) * width > _MOST_NUMBERS:
        return maps[0]
    n_classes, losses = len(model.classes_), []
    for one in maps:
        parts = [
            (one.of_rows(part_of(rows, train)),
             one.of_rows(part_of(rows, few_of(test, n_classes, len(found)))))
            for train, test in found
        ]  # fmt: skip
        tried = copy(model)
        tried._features, tried._factor = one, 1.0  # that of an earlier fit tells nothing
        trial = tried._trial(parts[0][0])
        vars(tried).update(trial.parameters | stronger(tried))
        losses.append(np.inf)
        with quiet(), np.errstate(all="ignore"), suppress(ValueError):  # the fit itself warns
            fitted = refits(tried, parts, [None] * len(parts), trial, model._seed())
            losses[-1] = held_out_loss(fitted, parts)
    return maps[int(np.argmin(losses))]
