"""Reading tables, CSV and Parquet, to features and labels."""

from __future__ import annotations

import csv
import shlex
import warnings
from collections import Counter
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import chain, count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from loclin.cli._errors import InputError, listed, near, plural
from loclin.cli._limits import Limit, opened
from loclin.cli._part import Part

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from pyarrow import DataType

__all__ = ["read_csv", "read_parquet"]

MISSING = ["", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "none"]
# what a column takes while a table is read, even where rows are few (measured)
CSV_COLUMN_BYTES, PARQUET_COLUMN_BYTES = 10_000, 60_000


def read_csv(path: Path, target: str | None, limit: Limit) -> Part:
    """Read a CSV or TSV file, with or without a line of column names."""
    rows = limit.count(path, b"\n")[0] + 1
    cells, separator = _first_row(path)
    if len(cells) < 2:
        raise InputError(
            f"{path}: has one column; it needs features and a target, separated by commas"
        )
    _check_table(path, limit, rows, len(cells), CSV_COLUMN_BYTES)
    header = _is_header(cells)
    names = _unique(cells) if header else [str(column) for column in range(len(cells))]
    if header and target is not None:
        _check_names(path, [target] * cells.count(target))
    label = _find_column(path, names, target)
    form = {
        "sep": separator,
        "names": names,
        "header": 0 if header else None,
        "index_col": False,
        "encoding": "utf-8-sig",
        "keep_default_na": False,
        "skipinitialspace": True,
        "low_memory": False,
    }
    frame = _read_csv(path, na_values=MISSING, **form)
    if frame[label].isna().any():
        # a class may be called "NA" or "None": of a target only an empty cell is missing
        frame[label] = _read_csv(path, na_values=[""], usecols=[label], **form)[label]
    return _from_frame(path, frame, label, target is None, 1 + header, limit)


def _read_csv(path: Path, **options: Any) -> DataFrame:
    """Read with pandas, and raise where rows have more cells than the first line."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(path, **options)
        except pd.errors.ParserWarning as error:
            raise InputError(
                f"{path}: rows have more cells than the first line, {len(options['names']):,}; "
                "name every column (in R: write.csv), and drop trailing separators and lines "
                "above the names"
            ) from error


def read_parquet(path: Path, target: str | None, limit: Limit) -> Part:
    """Read a Parquet file."""
    import pandas as pd

    try:
        from pyarrow import parquet, types
    except ImportError as error:
        raise InputError(
            f'{path}: reading Parquet needs pyarrow: pip install "loclin[parquet]"'
        ) from error
    with parquet.ParquetFile(path) as file:
        meta, schema = file.metadata, file.schema_arrow
    groups = (meta.row_group(number) for number in range(meta.num_row_groups))
    limit.check(path, sum(group.total_byte_size for group in groups), "its columns take")
    _check_table(path, limit, meta.num_rows, len(schema), PARQUET_COLUMN_BYTES)
    _check_names(path, schema.names)
    nested = [field.name for field in schema if types.is_nested(field.type)]
    if nested:
        raise InputError(
            f"{path}: column '{nested[0]}' holds lists or structs; give each value a column, or "
            "drop it"
        )
    # texts stay numbers of a list: written out, they may be any size
    texts = [field.name for field in schema if _is_text(field.type, types)]
    frame = pd.read_parquet(path, engine="pyarrow", read_dictionary=texts)
    frame.columns = [str(name) for name in frame.columns]
    if frame.shape[1] < 2:
        raise InputError(f"{path}: has one column; it needs features and a target")
    label = _find_column(path, list(frame.columns), target)
    return _from_frame(path, frame, label, target is None, 1, limit)


def _is_text(kind: DataType, types: ModuleType) -> bool:
    """Tell whether Arrow's type is of strings or bytes."""
    tests = (
        types.is_string,
        types.is_large_string,
        types.is_binary,
        types.is_large_binary,
    )
    return any(test(kind) for test in tests)


def _check_names(path: Path, names: Sequence[str]) -> None:
    """Raise where a name is there twice."""
    twice = [name for name, number in Counter(names).items() if number > 1]
    if twice:
        raise InputError(
            f"{path}: several columns are called {listed(twice)}; give each a name of its own"
        )


def _check_table(
    path: Path, limit: Limit, rows: int, columns: int, column_bytes: int
) -> None:
    """Raise where a table of this shape is above the limit."""
    limit.check(path, column_bytes * columns, f"{columns:,} columns of a table take")
    limit.check(path, 8 * rows * columns, f"{rows:,} rows of {columns:,} columns take")


def _first_row(path: Path) -> tuple[list[str], str]:
    """Return the cells of the first line that is not blank, and what separates them."""
    tabbed = ".tsv" in [suffix.lower() for suffix in path.suffixes]
    with TextIOWrapper(opened(path), encoding="utf-8-sig", newline="") as lines:
        for line in lines:
            if line.strip():
                separator = "\t" if tabbed else max(",;\t|", key=line.count)
                csv.field_size_limit(max(len(line), csv.field_size_limit()))
                # names in quotes may go on in the next lines
                row = next(csv.reader(chain([line], lines), delimiter=separator))
                return [cell.strip() for cell in row], separator
    raise InputError(f"{path}: the file is empty; save the data again")


def _is_header(cells: Sequence[str]) -> bool:
    """Tell whether a first line holds names: none is a number, or they count from 0 or 1."""
    numbers = [cell for cell in cells if _is_number(cell)]
    counts = [[str(start + index) for index in range(len(numbers))] for start in (0, 1)]
    return not numbers or (len(numbers) > 3 and numbers in counts)


def _is_number(text: str) -> bool:
    """Tell whether a cell reads as a number; an empty or missing one is none."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _unique(names: Sequence[str]) -> list[str]:
    """Give empty names and repeated ones a name of their own."""
    taken = set(names)
    unique: dict[str, None] = {}
    for position, name in enumerate(names):
        name = name or f"unnamed {position}"
        if name in unique:
            others = (f"{name}.{number}" for number in count(1))
            name = next(other for other in others if other not in taken)
        taken.add(name)
        unique[name] = None
    return list(unique)


def _find_column(path: Path, names: Sequence[str], target: str | None) -> str:
    """Return the name of the target column: the last one, unless ``target`` says another."""
    if target is None:
        return names[-1]
    if target in names:
        return target
    numbered = list(names) == [str(column) for column in range(len(names))]
    if (
        numbered
        and target.lstrip("-").isdigit()
        and -len(names) <= int(target) < len(names)
    ):
        return names[int(target)]
    if numbered:
        raise InputError(
            f"{path}: no column '{target}': the file has no line of names, so --target takes "
            f"a number from 0 to {len(names) - 1}"
        )
    raise InputError(f"{path}: no column '{target}'; {near(target, names)}")


def _from_frame(
    path: Path, frame: DataFrame, label: str, guessed: bool, first_row: int, limit: Limit
) -> Part:
    """Split a frame into numeric features and labels.

    Parameters
    ----------
    path : Path
        The file, for messages.
    frame : pandas.DataFrame
        The table.
    label : str
        The target column.
    guessed : bool
        Whether the user left it to us.
    first_row : int
        The number that messages give the first row: 2 below a line of names, else 1.
    limit : Limit
        The most that the labels may take.
    """
    from pandas.api import types

    if frame.shape[0] == 0:
        raise InputError(
            f"{path}: has no rows below the column names; save the data again"
        )
    labels, features = frame[label], frame.drop(columns=label)
    missing = int(labels.isna().sum())
    if missing:
        raise InputError(
            f"{path}: the target '{label}' has {plural(missing, 'missing value')}; drop those rows"
        )
    notes = []
    if _counts_rows(features):
        features = features.iloc[:, 1:]
        notes.append("the first column has no name and counts the rows: left out")
    names = tuple(map(str, features.columns))
    kinds = zip(names, features.dtypes, strict=True)
    bad = [name for name, kind in kinds if not types.is_numeric_dtype(kind)]
    if bad:
        raise InputError(_not_numeric(path, features, bad, guessed, first_row))
    X = features.to_numpy(dtype=np.float64, na_value=np.nan)
    _check_missing(path, X, names)
    y = _labels(path, labels, limit)
    return Part(X, y, names, label, tuple(notes))


def _labels(path: Path, labels: Series, limit: Limit) -> np.ndarray:
    """Return the labels as numbers where they are, else as text."""
    from pandas import CategoricalDtype
    from pandas.api import types

    if types.is_numeric_dtype(labels):  # booleans are
        return np.asarray(labels.to_list())
    listed_once = isinstance(labels.dtype, CategoricalDtype)
    texts = [str(label) for label in (labels.cat.categories if listed_once else labels)]
    longest = max(map(len, texts))
    limit.check(
        path,
        4 * longest * len(labels),
        f"labels of up to {longest:,} characters in '{labels.name}' take",
    )
    return np.asarray(texts)[labels.cat.codes] if listed_once else np.asarray(texts)


def _counts_rows(features: DataFrame) -> bool:
    """Tell whether the first of several columns is an index that pandas wrote."""
    name, rows = features.columns[0], np.arange(len(features))
    nameless = name.startswith("unnamed ") or name == "__index_level_0__"
    return bool(nameless and features.shape[1] > 1 and (features[name] == rows).all())


def _check_missing(path: Path, X: np.ndarray, names: Sequence[str]) -> None:
    """Raise where features have missing values, naming the columns."""
    counts = np.isnan(X).sum(axis=0)
    holes = [names[column] for column in np.flatnonzero(counts).tolist()]
    if holes:
        raise InputError(
            f"{path}: {plural(int(counts.sum()), 'missing value')} in "
            f"{'column' if len(holes) == 1 else 'columns'} {listed(holes)}; "
            "fill them in or drop those rows or columns"
        )


def _not_numeric(
    path: Path, features: DataFrame, bad: Sequence[str], guessed: bool, first_row: int
) -> str:
    """Say which columns are not numeric, with a value as an example."""
    column = features[bad[0]]
    # a part at a time: texts that a file lists once may be any size when they are written
    # out
    parts = (column.iloc[first : first + 1000] for first in range(0, len(column), 1000))
    words = (
        index
        for index, value in enumerate(chain.from_iterable(parts))
        if value == value and not _is_number(str(value))  # a missing value is not itself
    )
    position = next(words, 0)
    others = f" (nor are {listed(bad[1:])})" if len(bad) > 1 else ""
    return (
        f"{path}: column '{bad[0]}' is not numeric{others}: "
        f"'{column.iloc[position]}' in row {position + first_row}; "
        "drop such columns or encode them, for example with pandas.get_dummies"
        + (
            f"; if it holds the labels, give --target {shlex.quote(bad[0])}"
            if guessed
            else ""
        )
    )
