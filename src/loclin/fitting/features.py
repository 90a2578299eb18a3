"""Features as a model sees them: centred, and in units of their spread.

Steps, penalties and distances take features to be of one size, about zero. So a fit
centres them and divides them by their standard deviations, as a `StandardScaler` in front
would, and so do predictions. What a user reads of a model is of the features as they were
given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils.extmath import row_norms

from loclin.engine.data import Floats, Matrix, Rows, is_sparse
from loclin.engine.procedure import Change
from loclin.engine.rising import with_pieces
from loclin.engine.shapes import Shape
from loclin.engine.warned import warn
from loclin.fitting.begun import is_same
from loclin.fitting.columns import Columns
from loclin.portable.checks import check_pieces
from loclin.portable.reader import with_pieces as beside_pieces
from loclin.portable.reader import without_pieces
from loclin.portable.words import Pieces, Term

_CHUNK = 2**18  # moments are taken of so many numbers at once
_LOOKED_AT = 1000  # so many rows are looked at for values that are too far away
_LEVELS = 10  # half of the values must have at least so many levels
_LARGEST_WEIGHT = 1e8  # the type must hold such weights of features as they are given
_ROUNDING = 1e-5  # rows of unit length may be off by so much


@dataclass(frozen=True)
class FeatureMap:
    """The map of rows ``x' = (x - centre) / scale``,
    and the way back for what is learned.

    Of d features that the model sees: those of the rows, and their pieces.

    Parameters
    ----------
    centre : ndarray of shape (d,) or None
        None where rows are sparse, and stay so.
    scale : ndarray of shape (d,) or None
        None leaves the rows as they are.
    columns : Columns or None
        Those that are seen at all; None for all.
    pieces : Pieces or None
        Of features as they are given, which the model sees beside them.
    """

    centre: Annotated[Floats | None, Shape("d")] = None
    scale: Annotated[Floats | None, Shape("d")] = None
    columns: Columns | None = None
    pieces: Pieces | None = None

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if self.pieces is not None:
            check_pieces(self.pieces, sizes.get("f", 0))
        if self.scale is None:
            return None if self.centre is None else "there is a centre, but no scale"
        return (
            None if (self.scale > 0).all() else "scale has numbers that are not positive"
        )

    @property
    def is_raw(self) -> bool:
        """Tell whether features are seen as they are, if at all."""
        return self.scale is None

    @property
    def n_pieces(self) -> int:
        """Columns beside the features."""
        return 0 if self.pieces is None else len(self.pieces.feature)

    def equals(self, other: FeatureMap) -> bool:
        """Tell whether another map is of the same numbers."""
        return is_same(vars(self), vars(other))

    def of_matrix(self, X: Matrix) -> Any:
        """Return the rows as the model sees them:
        the mean comes first, where it is large.
        """
        if self.columns is not None:
            X = self.columns.of_matrix(X)
        of_dense = self.centre is not None or self.pieces is not None
        if is_sparse(X) and of_dense:  # the model learned from dense rows
            X = X.toarray()
        if self.pieces is not None:
            return with_pieces(np.asarray(X), self.pieces, self.centre, self.scale)
        if self.scale is None:
            return X
        if not is_sparse(X):
            if self.centre is None:
                return X / self.scale
            seen = X - self.centre
            seen /= self.scale
            return seen
        scaled = X.copy()
        scaled.data /= self.scale[X.indices]
        return scaled

    def of_points(self, points: Any) -> Floats:
        """Return points like rows as the model sees them;
        what takes others says what is wrong.
        """
        points = points.toarray() if is_sparse(points) else np.asarray(points)
        if self.pieces is None:
            fits = self.scale is not None and points.shape[-1:] == self.scale.shape
            return np.asarray(self.of_matrix(points)) if fits else points
        least = int(self.pieces.feature[-1]) + 1
        n_features = None if self.scale is None else len(self.scale) - self.n_pieces
        width = points.shape[1] if points.ndim == 2 else -1
        fits = width == n_features if n_features else width >= least
        return (
            np.asarray(self.of_matrix(points.astype(self.pieces.low.dtype)))
            if fits
            else points
        )

    def of_rows(self, rows: Rows) -> Rows:
        """Return training rows as the model sees them."""
        return rows._replace(X=self.of_matrix(rows.X))

    def back(self, value: Any, power: int) -> Any:
        """Return a field of a fitted model,
        of that power (`FittedModel.units`), of the rows.
        """
        if abs(power) > 1:
            return value
        if self.scale is not None and any(np.asarray(value).strides):
            value = value / self.scale if power == 1 else value * self.scale
            if power == -1 and self.centre is not None:
                value = value + self.centre
        return value if self.columns is None else self.columns.to_all(value)

    def constants(self, constants: Floats, coef: Floats) -> Floats:
        """Return constants of linear functions of the rows,
        in float64, as they take in the means.

        Parameters
        ----------
        constants : ndarray of shape (...)
            Of the rows as the model sees them.
        coef : ndarray of shape (..., d)
            Of the rows.
        """
        if self.centre is None or not any(coef.strides):
            return constants
        return np.asarray(constants - coef @ self.centre.astype(np.float64))

    def at_rows(
        self, coef: Floats, constants: Floats, X: Matrix
    ) -> tuple[Floats, Floats]:
        """Return linear functions of rows and their pieces as
        those of the rows, each at its row.

        Parameters
        ----------
        coef : ndarray of shape (n, ..., d)
        constants : ndarray of shape (n, ...)
        X : {ndarray, csr} of n rows as they are given
        """
        if self.pieces is None:
            return coef, constants
        rows = np.asarray(X.toarray() if is_sparse(X) else X, np.float64)
        folded, added = without_pieces(coef, rows, self.pieces)
        rounded = folded.astype(coef.dtype)
        # What rounding takes from the slopes at a row, its constant has.
        lost = np.einsum("n...d,nd->n...", folded - rounded, rows)
        return rounded, np.asarray(constants + added + lost)

    def contributions(
        self, coef: Floats, constants: Floats, X: Matrix, reference: Floats
    ) -> tuple[Floats, Floats]:
        """Return what features add to linear functions of rows and their pieces, from a
        reference to each row, and what the functions say of the reference.

        Parameters
        ----------
        coef : ndarray of shape (n, ..., d)
        constants : ndarray of shape (n, ...)
        X : {ndarray, csr} of n rows as they are given
        reference : ndarray of shape (f,)
            A row as it is given.

        Returns
        -------
        added : ndarray of shape (n, ..., f)
        base : ndarray of shape (n, ...)
        """
        rows = np.asarray(X.toarray() if is_sparse(X) else X, np.float64)
        at, coef = reference[None].astype(np.float64), coef.astype(np.float64)
        if self.pieces is not None:
            rows, at = (beside_pieces(one, self.pieces) for one in (rows, at))
        away = np.expand_dims(rows - at, tuple(range(1, coef.ndim - 1)))
        added = coef * away
        if self.pieces is not None:
            features, first = np.unique(self.pieces.feature, return_index=True)
            f = len(reference)
            of_pieces = np.add.reduceat(added[..., f:], first, axis=-1)
            added = added[..., :f]
            added[..., features] += of_pieces
        return added, np.asarray(constants + coef @ at[0])

    def in_front(self, term: Term) -> Term:
        """Return what a term of rows as the model sees them
        computes of rows as they are given.
        """
        used = None if self.columns is None else self.columns.used
        return replace(
            term, centre=self.centre, scale=self.scale, columns=used, pieces=self.pieces
        )

    def with_all_columns(self) -> FeatureMap:
        """Return the map of all columns: those not used before keep their unit."""
        if self.columns is None or self.scale is None:
            return PLAIN
        return FeatureMap(scale=self.columns.to_all(self.scale, fill=1.0))

    def change_to(self, other: FeatureMap) -> Change:
        """Return the change from what is learned of rows under
        this map to rows under another.
        """
        assert self.scale is not None
        assert other.scale is not None
        scale, origin = other.scale / self.scale, np.zeros_like(self.scale)
        if self.centre is not None:
            assert other.centre is not None
            origin = (other.centre - self.centre) / self.scale

        def of_field(value: Any, power: int) -> Any:
            if power == 1:
                return value * scale
            return (value - origin) / scale if power == -1 else value

        return Change(of_field, lambda coef: coef @ origin)


PLAIN = FeatureMap()


class Moments(NamedTuple):
    """Means and standard deviations of features, of rows that may come in parts.

    Parameters
    ----------
    n_rows : int
    weight : float
        Of the rows, in all.
    mean, spread : ndarray of shape (d,), float64
    """

    n_rows: int
    weight: float
    mean: Annotated[Floats, Shape("d", np.float64)]
    spread: Annotated[Floats, Shape("d", np.float64)]

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if self.n_rows < 0 or self.weight < 0 or (self.spread < 0).any():
            return "moments are of fewer than no rows"
        return None

    def after(self, rows: Rows) -> Moments:
        """Return the moments with some more rows."""
        moments = self
        step = rows.X.shape[0] if is_sparse(rows.X) else max(1, _CHUNK // rows.X.shape[1])
        for first in range(0, len(rows.y), step):
            part = slice(first, first + step)
            weights = rows.weights[part].astype(np.float64)
            weight = float(weights.sum())
            moments = moments._with(
                *_moments_of(rows.X[part], weights / weight), len(weights), weight
            )
        return moments

    def _with(self, mean: Floats, spread: Floats, n_rows: int, weight: float) -> Moments:
        """Take in the moments of other rows (Chan, Golub and LeVeque, 1979)."""
        share = weight / (self.weight + weight)
        apart = mean - self.mean
        inside = np.hypot(math.sqrt(1 - share) * self.spread, math.sqrt(share) * spread)
        return Moments(
            self.n_rows + n_rows,
            self.weight + weight,
            self.mean + share * apart,
            np.hypot(inside, math.sqrt(share * (1 - share)) * apart),
        )

    def map_for(self, dtype: DTypeLike, *, centred: bool) -> FeatureMap:
        """Return the map by these moments, in that type;
        constant columns keep their unit.
        """
        rounding = (10 + self.n_rows) * np.finfo(np.float64).eps
        scale = np.where(self.spread > rounding * np.abs(self.mean), self.spread, 1.0)
        scale = scale.astype(dtype)
        # The rows are said to be small.
        scale[scale < _LARGEST_WEIGHT / np.finfo(dtype).max] = 1.0
        return FeatureMap(self.mean.astype(dtype) if centred else None, scale)


class StreamedMoments(NamedTuple):
    """The map of a stream's features moves to the moments of
    its rows when these have doubled.

    Parameters
    ----------
    moments : Moments
    n_next : int
        Rows seen, at which it moves next.
    """

    moments: Moments
    n_next: int

    def after(self, rows: Rows) -> tuple[StreamedMoments, bool]:
        """Take in some more rows; tell whether the map is to move.

        It is, too, where a feature that was constant is so no longer.
        """
        moments = self.moments.after(rows)
        varies = (self.moments.spread == 0) & (moments.spread > 0)
        due = moments.n_rows >= self.n_next or bool(varies.any())
        return StreamedMoments(moments, 2 * moments.n_rows if due else self.n_next), due


def no_moments(n_features: int) -> Moments:
    """Return the moments of no rows."""
    return Moments(0, 0.0, np.zeros(n_features), np.zeros(n_features))


def standardized(
    rows: Rows, columns: Columns | None = None, pieces: Pieces | None = None
) -> FeatureMap:
    """Return the map that standardizes these columns and pieces of rows,
    by the rows' weights.
    """
    rows = FeatureMap(columns=columns, pieces=pieces).of_rows(rows)
    moments = moments_of(rows)
    if moments is None:
        return FeatureMap(columns=columns)
    new_map = map_by(moments, rows.X)
    if pieces is None:
        _warn_of_far_values(rows.X, new_map)
    return replace(new_map, columns=columns, pieces=pieces)


def _warn_of_far_values(X: Matrix, seen: FeatureMap) -> None:
    """Warn where values of a feature are so far away that the
    others are all one to rounding.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
        Rows as they are given; up to 1,000 of them are looked at.
    seen : FeatureMap
        Their map.
    """
    if is_sparse(X) or seen.scale is None:
        return
    low, high = np.percentile(X[:: -(-len(X) // _LOOKED_AT)], [25, 75], axis=0)
    with np.errstate(over="ignore"):
        lost = high - low < _LEVELS * np.finfo(X.dtype).eps * seen.scale
    for j in np.flatnonzero(lost & (high > low)):
        extreme = np.abs(X[:, j]).max()
        if extreme < seen.scale[j]:  # numbers so small that they keep their unit
            continue
        warn(
            f"Feature {j}, counted from 0, has a value of {extreme:.2g}, while half of its values "
            f"lie between {low[j]:.3g} and {high[j]:.3g}: beside it these are all one. If it marks "
            "a missing value, put another in its place; else clip it."
        )
        return


def moments_of(rows: Rows) -> Moments | None:
    """Return the moments by which rows are standardized; None where they should not be.

    Sparse rows of unit length stay as they are: so are vectors of texts, whose rare words
    would count too much (docs/notes/units.md).
    """
    if is_sparse(rows.X) and _of_unit_length(rows.X):
        return None
    return no_moments(rows.X.shape[1]).after(rows)


def map_by(moments: Moments, X: Matrix) -> FeatureMap:
    """Return the map of rows like these by moments: sparse ones are not centred."""
    return moments.map_for(X.dtype, centred=not is_sparse(X))


def _of_unit_length(X: Matrix) -> bool:
    """Tell whether all sparse rows that are not zero have the Euclidean length 1."""
    with np.errstate(over="ignore"):
        lengths = row_norms(X.astype(np.float64))
    lengths = lengths[lengths > 0]
    return len(lengths) > 0 and bool((np.abs(lengths - 1) < _ROUNDING).all())


def _moments_of(X: Matrix, shares: Floats) -> tuple[Floats, Floats]:
    """Return means and standard deviations of rows, whose weights sum to one."""
    # What is too large is said of the rows.
    with np.errstate(over="ignore", invalid="ignore"):
        return _of_sparse(X, shares) if is_sparse(X) else _of_dense(X, shares)


def _of_dense(X: Floats, shares: Floats) -> tuple[Floats, Floats]:
    about = X[0].copy()  # the mean may be large beside the spread
    away = (X - about).astype(np.float64)
    unit = _units_of(np.abs(away).max(axis=0))
    away *= unit
    offset = shares @ away
    squares = shares @ np.square(away, out=away) - offset**2
    return about + offset / unit, np.sqrt(np.maximum(squares, 0.0)) / unit


def _of_sparse(X: Any, shares: Floats) -> tuple[Floats, Floats]:
    n_columns, columns, data = X.shape[1], X.indices, X.data.astype(np.float64)
    of_entries = np.repeat(shares, np.diff(X.indptr))
    largest = np.zeros(n_columns)
    np.maximum.at(largest, columns, np.abs(data))
    unit = _units_of(largest)
    data *= unit[columns]
    mean = np.bincount(columns, of_entries * data, n_columns)
    zeros = np.maximum(1 - np.bincount(columns, of_entries, n_columns), 0.0)
    zeros[zeros < 1e-12] = 0.0  # there are none
    squares = np.bincount(columns, of_entries * (data - mean[columns]) ** 2, n_columns)
    return mean / unit, np.sqrt(squares + zeros * mean**2) / unit


def _units_of(largest: Floats) -> Floats:
    """Return powers of two, by which no square overflows or vanishes."""
    return np.ldexp(1.0, -np.maximum(np.frexp(largest)[1], -1000))
