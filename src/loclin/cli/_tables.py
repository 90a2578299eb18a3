"""Reading tables, CSV and Parquet, to features and labels."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from loclin.cli._errors import InputError, listed, near, plural
from loclin.cli._part import Part

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["read_csv", "read_parquet"]

OPENERS: dict[str, Callable[..., IO[str]]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
MISSING = ["", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "none"]


def read_csv(path: Path, target: str | None) -> Part:
    """Read a CSV or TSV file, with or without a line of column names."""
    import pandas as pd

    first = _first_line(path)
    tabbed = ".tsv" in [suffix.lower() for suffix in path.suffixes]
    separator = "\t" if tabbed else max(",;\t|", key=first.count)
    cells = [cell.strip() for cell in next(csv.reader([first], delimiter=separator))]
    if len(cells) < 2:
        raise InputError(
            f"{path}: has one column; it needs features and a target, separated by commas"
        )
    header = _is_header(cells)
    names = _unique(cells) if header else [str(column) for column in range(len(cells))]
    label = _find_column(path, names, target)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(
            path,
            sep=separator,
            names=names,
            header=0 if header else None,
            index_col=False,
            encoding="utf-8-sig",
            keep_default_na=False,
            # a class may be called "NA" or "None": of a target only an empty cell is missing
            na_values={name: [""] if name == label else MISSING for name in names},
            skipinitialspace=True,
            low_memory=False,
        )
    return _from_frame(path, frame, label, target is None, 1 + header)


def read_parquet(path: Path, target: str | None) -> Part:
    """Read a Parquet file."""
    import pandas as pd

    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(
            f'{path}: reading Parquet needs pyarrow: pip install "loclin[parquet]"'
        ) from error
    frame = pd.read_parquet(path, engine="pyarrow")
    frame.columns = [str(name) for name in frame.columns]
    if frame.shape[1] < 2:
        raise InputError(f"{path}: has one column; it needs features and a target")
    label = _find_column(path, list(frame.columns), target)
    return _from_frame(path, frame, label, target is None, 1)


def _first_line(path: Path) -> str:
    """Return the first line of the file that is not blank."""
    opener = OPENERS.get(path.suffix.lower(), open)
    with opener(path, "rt", encoding="utf-8-sig", newline=None) as lines:
        for line in lines:
            if line.strip():
                return line.rstrip("\n")
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
    seen: Counter[str] = Counter()
    unique = []
    for position, name in enumerate(names):
        name = name or f"unnamed {position}"
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}.{seen[name] - 1}")
    return unique


def _find_column(path: Path, names: Sequence[str], target: str | None) -> str:
    """Return the name of the target column: the last one, unless ``target`` says another."""
    if target is None:
        return names[-1]
    if target in names:
        return target
    numbered = list(names) == [str(column) for column in range(len(names))]
    if numbered and target.lstrip("-").isdigit() and -len(names) <= int(target) < len(names):
        return names[int(target)]
    if numbered:
        raise InputError(
            f"{path}: no column '{target}': the file has no line of names, so --target takes "
            f"a number from 0 to {len(names) - 1}"
        )
    raise InputError(f"{path}: no column '{target}'; {near(target, names)}")


def _from_frame(path: Path, frame: DataFrame, label: str, guessed: bool, first_row: int) -> Part:
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
    """
    import pandas as pd
    from pandas.api import types

    if frame.shape[0] == 0:
        raise InputError(f"{path}: has no rows below the column names; save the data again")
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
    bad = [name for name in features.columns if not types.is_numeric_dtype(features[name])]
    if bad:
        raise InputError(_not_numeric(path, features, bad, guessed, first_row))
    _check_missing(path, features)
    X = features.to_numpy(dtype=np.float64)
    if isinstance(labels.dtype, pd.CategoricalDtype) or not (
        types.is_numeric_dtype(labels) or types.is_bool_dtype(labels)
    ):
        labels = labels.astype(str)
    return Part(X, np.asarray(labels.to_list()), tuple(features.columns), label, tuple(notes))


def _counts_rows(features: DataFrame) -> bool:
    """Tell whether the first of several columns is an index that pandas wrote."""
    name, rows = features.columns[0], np.arange(len(features))
    nameless = name.startswith("unnamed ") or name == "__index_level_0__"
    return bool(nameless and features.shape[1] > 1 and (features[name] == rows).all())


def _check_missing(path: Path, features: DataFrame) -> None:
    """Raise where features have missing values, naming the columns."""
    counts = features.isna().sum()
    holes = counts[counts > 0]
    if len(holes):
        raise InputError(
            f"{path}: {plural(int(holes.sum()), 'missing value')} in "
            f"{'column' if len(holes) == 1 else 'columns'} {listed(holes.index)}; "
            "fill them in or drop those rows or columns"
        )


def _not_numeric(
    path: Path, features: DataFrame, bad: Sequence[str], guessed: bool, first_row: int
) -> str:
    """Say which columns are not numeric, with a value as an example."""
    column = features[bad[0]]
    words = (
        index
        for index, value in enumerate(column)
        if value == value and not _is_number(str(value))  # a missing value is not itself
    )
    position = next(words, 0)
    others = f" (nor are {listed(bad[1:])})" if len(bad) > 1 else ""
    return (
        f"{path}: column '{bad[0]}' is not numeric{others}: "
        f"'{column.iloc[position]}' in row {position + first_row}; "
        "drop such columns or encode them, for example with pandas.get_dummies"
        + (f"; if it holds the labels, give --target {shlex.quote(bad[0])}" if guessed else "")
    )
