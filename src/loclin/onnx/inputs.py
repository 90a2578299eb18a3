"""What inputs a graph has, by rows that are shown, and whether they fit the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from skl2onnx.common.data_types import (
    BooleanTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from loclin.onnx.converters import numbers_type
from loclin.onnx.steps import steps_of
from loclin.tables import TableEncoder
from loclin.tables.cells import frame_of

Inputs = list[tuple[str, Any]]  # names and types, of skl2onnx
_EXACT = 2**24  # whole numbers beyond it have no exact float32


def rows_for(model: Any, X: Any) -> Any:
    """Return the rows as an array, or as a table of the columns that the model takes.

    Raises
    ------
    ValueError
        If they are no rows, or other columns than those of the training rows.
    """
    if hasattr(X, "tocsr"):
        raise ValueError("X is sparse, and graphs take dense rows: pass X[:1].toarray().")
    X = X.to_pandas() if hasattr(X, "to_pandas") else X
    if not hasattr(X, "columns"):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X has shape {X.shape}: pass a few rows, such as X[:1].")
    first = steps_of(model)[0]
    if isinstance(first, TableEncoder):
        return _of_encoder(first, X)
    n_features = getattr(first, "n_features_in_", X.shape[1])
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the model {n_features}.")
    names = getattr(first, "feature_names_in_", None)
    if hasattr(X, "columns"):
        if names is not None and list(names) != list(X.columns):
            raise ValueError(f"X has the columns {list(X.columns)}; give {list(names)}.")
        _check_names(X)
    return X


def _of_encoder(encoder: TableEncoder, X: Any) -> Any:
    """Return the columns that the encoder does not leave out."""
    if not hasattr(X, "columns"):
        raise ValueError(
            "X is an array, but the model takes a table: pass some rows of it."
        )
    X, used = frame_of(X), list(dict.fromkeys(encoder.origins_))
    missing = [name for name in used if name not in X.columns]
    if missing:
        raise ValueError(f"X lacks the columns {missing}, which the model was fitted on.")
    _check_names(X[used])
    return X[used]


def _check_names(X: Any) -> None:
    names = [str(name) for name in X.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or "" in names:
        what = f"two columns {twice[0]!r}" if twice else "a column without a name"
        raise ValueError(f"X has {what}: give each input of the graph a name of its own.")


def dtype_for(X: Any, dtype: DTypeLike | None) -> np.dtype:
    """Return the type of numbers: as asked, or float32 where all rows with decimals have it."""
    if dtype is None:
        found = {one for one in _types(X) if one.kind == "f"}
        return np.dtype("float32" if found == {np.dtype("float32")} else "float64")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype is {dtype!r}, but should be float32 or float64.")
    return np.dtype(dtype)


def inputs_for(model: Any, X: Any, dtype: np.dtype) -> Inputs:
    """Return the inputs of a graph: "X" for an array, one for each column of a table.

    Raises
    ------
    ValueError
        If columns have dates, or whole numbers that the type does not hold.
    """
    numbers = numbers_type(dtype)
    if not hasattr(X, "columns"):
        kind = numbers if X.dtype.kind in "iubf" else StringTensorType
        return [("X", kind([None, X.shape[1]]))]
    names = [str(name) for name in X.columns]
    for name, kind in zip(names, _types(X), strict=True):
        if kind.kind in "mM":
            raise ValueError(
                f"The column {name!r} has dates, which no graph reads: encode the table in "
                "Python, and write the last step alone."
            )
    if dtype == np.float32:
        _check_whole_numbers(X, steps_of(model)[0])
    types = {
        "f": numbers,
        "i": Int64TensorType,
        "u": Int64TensorType,
        "b": BooleanTensorType,
    }
    return [
        (name, types.get(kind.kind, StringTensorType)([None, 1]))
        for name, kind in zip(names, _types(X), strict=True)
    ]


def _types(X: Any) -> list[Any]:
    """Return the types of values, of all columns of a table; of categories those of theirs."""
    if not hasattr(X, "columns"):
        return [X.dtype]
    return [getattr(getattr(one, "categories", None), "dtype", one) for one in X.dtypes]


def _check_whole_numbers(X: Any, first: Any) -> None:
    """Raise ValueError where float32 would round whole numbers that are no categories."""
    categories = _categories(first)
    for (name, column), kind in zip(X.items(), _types(X), strict=True):
        if kind.kind not in "iu" or str(name) in categories:
            continue
        if (column.dropna().astype(float).abs() > _EXACT).any():
            raise ValueError(
                f"The column {name!r} has whole numbers beyond 2**24, which float32 rounds: pass "
                "dtype=np.float64."
            )


def _categories(first: Any) -> set[str]:
    """Return the columns that are categories for the first step."""
    if isinstance(first, TableEncoder):
        return {name for name, kind in first.kinds_.items() if kind == "category"}
    if not isinstance(first, ColumnTransformer):
        return set()
    return {
        str(name)
        for _, part, columns in first.transformers_
        if isinstance(steps_of(part)[0], OneHotEncoder | OrdinalEncoder)
        for name in np.atleast_1d(columns)
    }
