"""What the columns of a table are, and their values as arrays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame, Series

KINDS = ("category", "date", "flag", "leave out", "number", "text")
MISSING, OTHER = "(missing)", "(other)"
_IS_ID = re.compile(
    r"(^|[_\s])(id|index|uuid|guid|key)$|^unnamed(: \d+)?$|^$", re.IGNORECASE
)
_WORDS = 4  # of a text on average; names and categories have fewer
_DISTINCT_TEXTS = 0.3  # share of different values from which words make a text
_FEWEST_IDS = 20  # different values that make a column of strings one of names
_LOOKED_AT = 1000  # values, to see whether strings are dates
_DAY = 86_400.0  # seconds


class Unreadable(UserWarning):
    """Some values of a column are not of the kind that its training values were."""


def pandas() -> Any:
    """Return the library, or say what is missing."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            'loclin.tables needs pandas: pip install "loclin[tables]"'
        ) from error
    return pd


def frame_of(X: Any) -> DataFrame:
    """Return a table as a pandas DataFrame whose columns are named by strings."""
    pd = pandas()
    if hasattr(X, "tocsr"):
        raise TypeError(
            "TableEncoder takes tables, not sparse matrices: classifiers take these."
        )
    if not isinstance(X, pd.DataFrame):
        X = X.to_pandas() if hasattr(X, "to_pandas") else pd.DataFrame(X)
    names = [str(name) for name in X.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"columns {twice} are there more than once. Rename them.")
    return X.set_axis(names, axis=1)


def kind_of(name: str, column: Series) -> tuple[str, str]:
    """Return the kind of a column, one of `KINDS`, and why it is left out or empty text."""
    pd = pandas()
    known = column.dropna()
    if not len(known):
        return "leave out", "it has no values"
    try:
        n_distinct = known.nunique()
    except TypeError:
        return "leave out", f"its values are of the type {type(known.iloc[0]).__name__}"
    types = pd.api.types
    if types.is_complex_dtype(column.dtype):
        return "leave out", "its numbers are complex"
    if n_distinct == 1:
        if len(known) == len(column):
            return "leave out", "all its values are one"
        return "category", ""  # a value, or none
    if types.is_bool_dtype(column.dtype) or set(map(type, known.iloc[:_LOOKED_AT])) <= {
        bool
    }:
        return "flag", ""
    if types.is_timedelta64_dtype(column.dtype):
        return "number", ""
    if types.is_datetime64_any_dtype(column.dtype) or isinstance(
        column.dtype, pd.PeriodDtype
    ):
        return "date", ""
    numbers = pd.to_numeric(known, errors="coerce")
    if numbers.notna().all():
        whole = bool((numbers == np.floor(numbers.astype(float))).all())
        if whole and _IS_ID.search(name) and known.is_unique:
            return "leave out", "it numbers the rows"
        return "number", ""
    if _dates(known.iloc[:_LOOKED_AT]).notna().all():
        return "date", ""
    texts = known.astype(str).str.strip()
    if set(texts.str.lower().unique()) <= {"true", "false"}:
        return "flag", ""
    n_words = np.mean([len(text.split()) for text in texts.iloc[:_LOOKED_AT]])
    if n_words >= _WORDS and texts.nunique() > _DISTINCT_TEXTS * len(texts):
        return "text", ""
    if texts.is_unique and len(texts) >= _FEWEST_IDS:
        return "leave out", "each of its values occurs once, so that none can be learned"
    return "category", ""


def _dates(column: Series) -> Series:
    """Return dates; none where a value is no date as ISO 8601 writes it (2024-05-31)."""
    pd = pandas()
    if isinstance(column.dtype, pd.PeriodDtype):
        dates = column.dt.to_timestamp()
    elif pd.api.types.is_datetime64_any_dtype(column.dtype):
        dates = column
    else:
        looks = column.astype(str).str.match(r"\d{4}-\d{2}-\d{2}")
        given = column.where(looks.fillna(False).astype(bool))
        dates = pd.to_datetime(given, errors="coerce", format="ISO8601", utc=True)
    return dates if dates.dt.tz is None else dates.dt.tz_convert(None)


def days_of(column: Series) -> NDArray[np.float64]:
    """Return days since 1970, NaN where there is no date."""
    dates = _dates(column)
    stamps = dates.astype("datetime64[s]").astype("int64").to_numpy(np.float64) / _DAY
    return np.where(dates.isna(), np.nan, stamps)


def numbers_of(column: Series) -> NDArray[np.float64]:
    """Return numbers, NaN where there is none, and of infinities."""
    pd = pandas()
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return np.asarray(column.dt.total_seconds(), np.float64)
    values = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def flags_of(column: Series) -> NDArray[np.float64]:
    """Return 0 and 1, NaN where a value is neither true nor false."""
    texts = column.astype("object").map(lambda value: str(value).strip().lower())
    known = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}
    return np.asarray(texts.map(known), np.float64)


def texts_of(column: Series, missing: str) -> NDArray[Any]:
    """Return texts without blanks around them, and `missing` where there is none."""
    texts = column.astype("object").where(column.notna(), missing)
    return np.array([str(value).strip() for value in texts], dtype=object)


READ = {"number": numbers_of, "flag": flags_of, "date": days_of}
PARTS = {
    "month": lambda days: _stamps(days).astype("datetime64[M]").astype(int) % 12 + 1.0,
    "weekday": lambda days: (
        (np.floor(days) + 3) % 7
    ),  # the first of January 1970: a Thursday
    "hour": lambda days: days % 1 * 24,
}


def _stamps(days: NDArray[np.float64]) -> NDArray[Any]:
    return np.floor(days).astype("int64").astype("datetime64[D]")
