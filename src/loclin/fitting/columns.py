"""Columns of sparse rows that no row uses: a model learns, and keeps, nothing of them.

Words that are hashed to 2^20 columns use some thousands of them. A fit sees those alone,
and what a user reads of a model is of all columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from loclin.engine.data import Matrix, is_sparse
from loclin.engine.described import declared, notes_of
from loclin.engine.shapes import Shape, Size

# Where more than this share of the columns is used, all are kept: a copy of the rows
# costs, too.
_LARGEST_SHARE = 0.5
_FEW_COLUMNS = 2000  # columns that cost little, used or not
_PLAIN = type(None), bool, int, float, str  # parameters that hold no points


class Columns(NamedTuple):
    """Some columns, of all that rows have.

    Parameters
    ----------
    used : ndarray of shape (d,)
        Ascending.
    n_features : int
    """

    used: Annotated[NDArray[np.integer], Shape("d", np.integer)]
    n_features: Annotated[int, Size("f")]

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        used = self.used
        if (
            used.min() < 0
            or used.max() >= self.n_features
            or (used[1:] <= used[:-1]).any()
        ):
            return f"columns are not some of {self.n_features}, in order"
        return None

    def of_matrix(self, X: Matrix) -> Any:
        """Return these columns of rows;
        sparse ones share their entries where they have no others.

        SciPy's own selection takes a table of all columns at each call.
        """
        if not is_sparse(X):
            return X[:, self.used]
        places = np.searchsorted(self.used, X.indices)
        known = self.used[np.minimum(places, len(self.used) - 1)] == X.indices
        data, indptr, shape = X.data, X.indptr, (X.shape[0], len(self.used))
        if not known.all():
            before = np.concatenate([[0], np.cumsum(known)])
            data, places, indptr = (
                data[known],
                places[known],
                before[indptr].astype(indptr.dtype),
            )
        indices = places.astype(X.indices.dtype)
        return sparse.csr_matrix((data, indices, indptr), shape=shape)

    def have_all_of(self, X: Matrix) -> bool:
        """Tell whether rows use no others."""
        used = X.indices if is_sparse(X) else np.flatnonzero(X.any(axis=0))
        return bool(np.isin(used, self.used).all())

    def to_all(self, value: Any, axis: int = -1, fill: float = 0.0) -> Any:
        """Return an array that has an axis of these columns with one of all instead."""
        width, axis = self.n_features, axis % value.ndim
        if not any(value.strides):  # one number, seen many times
            shape = (*value.shape[:axis], width, *value.shape[axis + 1 :])
            return np.broadcast_to(value.flat[0], shape)
        by_column = np.moveaxis(value, axis, 0)
        whole = np.full((width, *by_column.shape[1:]), fill, value.dtype)
        whole[self.used] = by_column
        if value.flags.c_contiguous:
            return np.ascontiguousarray(np.moveaxis(whole, 0, axis))
        return np.moveaxis(whole, 0, axis)


def used_columns(X: Matrix) -> Columns | None:
    """Return the columns that sparse rows use;
    None for all: of dense rows, of few, or of most.
    """
    width = X.shape[1]
    if not is_sparse(X) or X.nnz == 0 or width <= _FEW_COLUMNS:
        return None
    if X.nnz < width:
        used = np.unique(X.indices)
    else:
        seen = np.zeros(width, bool)
        seen[X.indices] = True
        used = np.flatnonzero(seen).astype(X.indices.dtype)
    return Columns(used, width) if len(used) <= _LARGEST_SHARE * width else None


def with_all_columns(holder: Any, columns: Columns) -> Any:
    """Return a copy of what a model holds, for rows that use other columns:
    of these it has zeros.

    Parameters
    ----------
    holder : object
        Its class declares arrays with an axis "d", and the number of columns
        (`engine.described`).
    columns : Columns
    """
    changed = {
        name: _of_all(getattr(holder, name), hint, columns)
        for name, hint in declared(type(holder)).items()
        if name in vars(holder)
    }
    if is_dataclass(holder) and not isinstance(holder, type):
        own_fields = {field.name for field in fields(holder)}
        return replace(
            holder, **{name: changed[name] for name in own_fields & changed.keys()}
        )
    other = copy(holder)
    vars(other).update(changed)
    return other


def _of_all(value: Any, hint: Any, columns: Columns) -> Any:
    if type(value).__module__.startswith("loclin.codings"):
        return with_all_columns(value, columns)
    if any(size.letter == "d" for size in notes_of(hint, Size)):
        return columns.n_features
    for shape in notes_of(hint, Shape):
        for axes in (one.split() for one in shape.axes.split("|")):
            if isinstance(value, np.ndarray) and len(axes) == value.ndim:
                for axis in (k for k, letters in enumerate(axes) if letters == "d"):
                    value = columns.to_all(value, axis)
                return value
    return value


def knows_columns(coding: Any) -> bool:
    """Tell whether a coding, of a parameter,
    can do with the columns used, and with all later.

    So can those to which all anchors are as much further away by what a row has in
    others, where they are given no points.
    """
    parts = [coding]
    if isinstance(coding, BaseEstimator):
        parts += coding.get_params().values()
    return all(
        isinstance(one, _PLAIN) or vars(type(one)).get("_can_do_with_columns", False)
        for one in parts  # a subclass may measure distances in its own way
    )


def has_frozen(coding: Any) -> bool:
    """Tell whether a coding, or a step inside it, is frozen:
    it was fitted on rows as given.
    """
    inside = coding.get_params().values() if hasattr(coding, "get_params") else ()
    return any(isinstance(one, FrozenEstimator) for one in (coding, *inside))
