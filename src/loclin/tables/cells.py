"""What is in a column: numbers, flags, dates or texts, whatever type holds them."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Of a column of objects, what `infer_dtype` says of those that are numbers, or nothing else.
_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}
_DURATIONS = {"timedelta", "timedelta64"}
_SIMPLE = {"str", "bytes", "int", "float", "bool", "Decimal", "Fraction", "date", "datetime",
           "time", "timedelta", "Timestamp", "Timedelta", "Interval", "Period", "NoneType",
           "NAType", "NaTType"}  # fmt: skip


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
    return X.set_axis([str(name) for name in X.columns], axis=1)


class Cells:
    """The values of a column.

    Parameters
    ----------
    column : Series

    Attributes
    ----------
    form : str
        "numbers", "flags", "dates", "texts", or "others" where values are none of these.
    data : ndarray of shape (n_samples,)
        Numbers and flags: floats, or integers where none is missing. Dates: seconds since 1970,
        as floats. Gaps in them are NaN. Texts: objects, of which some may be no string yet.
    declared : bool
        Whether its type says that it is a category.
    what : str
        Of "others", the type of the values.
    read : dict
        What the different texts were read as: by kind and style.
    """

    def __init__(self, column: Series) -> None:
        pd = pandas()
        types, dtype = pd.api.types, column.dtype
        self.declared, self.what = isinstance(dtype, pd.CategoricalDtype), ""
        self.read: dict[tuple[str, str], NDArray[np.float64]] = {}
        if isinstance(dtype, pd.SparseDtype):
            column = pd.Series(np.asarray(column))
            dtype = column.dtype
        if self.declared or isinstance(dtype, pd.StringDtype):
            self.form, self.data = "texts", column.to_numpy(object)
        elif types.is_bool_dtype(dtype):
            self.form, self.data = "flags", column.to_numpy(np.float64, na_value=np.nan)
        elif types.is_complex_dtype(dtype):
            self.form, self.data, self.what = "others", column.to_numpy(), "complex"
        elif types.is_numeric_dtype(dtype):
            whole = isinstance(dtype, np.dtype) and dtype.kind in "iu"
            self.form = "numbers"
            self.data = (
                column.to_numpy()
                if whole
                else column.to_numpy(np.float64, na_value=np.nan)
            )
        elif types.is_timedelta64_dtype(dtype):
            self.form, self.data = "numbers", _seconds(column)
        elif dtype.kind == "M":
            self.form, self.data = "dates", stamps(column)
        elif isinstance(dtype, pd.PeriodDtype):
            self.form, self.data = "dates", stamps(column.dt.to_timestamp())
        else:
            self._of_objects(column.to_numpy(object))

    def _of_objects(self, values: NDArray[Any]) -> None:
        pd = pandas()
        self.form, self.data = "texts", values
        what = pd.api.types.infer_dtype(values, skipna=True)
        if what in _NUMBERS:
            self.form, self.data = "numbers", parsed(values)
        elif what == "boolean":
            self.form = "flags"
            self.data = pd.array(values, dtype="boolean").to_numpy(
                np.float64, na_value=np.nan
            )
        elif what in _DURATIONS:
            self.form = "numbers"
            self.data = _seconds(pd.Series(pd.to_timedelta(values)))
        elif what not in ("string", "bytes", "empty"):
            known = values[~pd.isna(values)]
            kinds = {kind.__name__: kind for kind in set(map(type, known))}
            odd = sorted(
                name
                for name, kind in kinds.items()
                if name not in _SIMPLE and not issubclass(kind, np.generic)
            )
            if odd or what == "complex":
                self.form, self.what = "others", " and ".join(odd) or "complex"

    @cached_property
    def gaps(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        return np.asarray(pandas().isna(self.data))

    @cached_property
    def parsed(self) -> NDArray[Any]:
        """Texts as numbers, where a computer has written them, and NaN."""
        return parsed(self.data)

    @cached_property
    def distinct(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The different texts, without blanks around, and each row's place in them.

        The place of a row without a value is -1. A text of blanks is no value.
        """
        pd = pandas()
        data = self.data
        if self.form == "dates":
            data = data.astype("datetime64[s]") if len(data) else data
        places, found = pd.factorize(data)
        texts = [_text(value) for value in found]
        if self.form == "flags":
            texts = [str(bool(value)) for value in found]
        if texts == list(found) and "" not in texts:
            return np.asarray(found, object), places
        of_found, left = pd.factorize(np.array(texts, object))
        if "" in left:
            empty = int(np.flatnonzero(left == "")[0])
            of_found = np.where(of_found == empty, -1, of_found - (of_found > empty))
            left = np.delete(left, empty)
        return left, np.append(of_found, -1)[places]


def parsed(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that computers write, NaN of what is none."""
    read = pandas().to_numeric
    try:
        return np.asarray(read(values, errors="coerce"))
    except OverflowError:  # integers that no float holds
        return np.asarray(
            read(np.array(list(map(_text, values)), object), errors="coerce")
        )


def stamps(dates: Series) -> NDArray[np.float64]:
    """Return seconds since 1970, of dates with a time zone in UTC; NaN of gaps."""
    if isinstance(dates.dtype, pandas().ArrowDtype):
        dates = pandas().to_datetime(dates.astype(object), utc=True)
    if dates.dt.tz is not None:
        dates = dates.dt.tz_convert(None)
    seconds = dates.astype("datetime64[s]").astype("int64").to_numpy(np.float64)
    return np.where(dates.isna(), np.nan, seconds)


def _seconds(durations: Series) -> NDArray[np.float64]:
    return np.asarray(durations.dt.total_seconds(), np.float64)


def _text(value: Any) -> str:
    """Return a value as it is written; whole numbers without a point, whatever their type."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    if isinstance(value, timedelta | np.timedelta64):
        value = pandas().Timedelta(value).total_seconds()
    if isinstance(value, int) and 63 < value.bit_length() < 1024:
        value = float(
            value
        )  # as beside other such numbers, where they are an array of floats
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    return str(value).strip()
