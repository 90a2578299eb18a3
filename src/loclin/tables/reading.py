"""Reading tables from files as they are: every cell of a text file is a text."""

from __future__ import annotations

import csv
import gzip
import io
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import numpy as np

from loclin.tables.cells import pandas
from loclin.tables.files import (
    UnreadableFile,
    check_size,
    explained,
    suffix_of,
    text_size,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pandas import DataFrame

PARQUET = (".parquet", ".pq")
# Of several that make all rows equally wide, the one with most cells; of these the first: a
# comma may be a decimal's.
DELIMITERS = "\t;|,"
LONGEST_ROW = 2_000_000  # characters, DuckDB's own limit
PROBED = 20_000  # rows that must be equally wide to begin with; of wide tables fewer
CELLS_AT_ONCE, BYTES_AT_ONCE = 2**20, 2**27
LOOKED_AT = 100  # rows, to tell how long the next ones are
VECTOR = 2048  # rows, DuckDB's unit
CELL_BYTES = 60  # of a short text in a DataFrame
TEXT_COPIES = 4  # of a text, while it becomes a DataFrame's
COLUMN_BYTES = 70_000  # of a column while a table is read, however few its rows


def read(path: str | Path, *, header: bool = True, max_bytes: float = 1e9) -> DataFrame:
    r"""Read a table, for `TableEncoder` to tell what its columns are.

    Parameters
    ----------
    path : str or Path
        CSV or TSV (also gzipped), Parquet, or ``"-"`` for CSV from standard input. What
        separates the cells of a text file is the character that makes all rows equally wide:
        tab, semicolon, bar or comma.
    header : bool, default=True
        Whether the first line of a text file holds the names of the columns. Else they are
        numbers from 0.
    max_bytes : float, default=1e9
        Maximum number of bytes that the file, unpacked, or its cells may take.

    Returns
    -------
    frame : DataFrame
        Cells of a text file are texts: what a cell means must not depend on the others. Only an
        empty cell is missing. `frame.attrs["doubts"]` says where the first line may not be what
        it was taken for.

    Raises
    ------
    UnreadableFile
        If the file is no such table, or is larger; the text says what to change.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from loclin.tables import read
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "plans.csv"
    ...     _ = file.write_text("plan;price\ngold;0,5\nbasic;0,25\n")
    ...     frame = read(file)
    >>> frame.to_dict("records")
    [{'plan': 'gold', 'price': '0,5'}, {'plan': 'basic', 'price': '0,25'}]
    """
    name, parts, n_cells = str(path), [], 0
    for part in read_parts(path, header=header, max_bytes=max_bytes, whole=True):
        n_cells += part.size
        check_size(name, CELL_BYTES * n_cells, max_bytes, "its cells take more than")
        parts.append(part)
    frame: DataFrame = pandas().concat(parts, ignore_index=True)
    if not len(frame):
        raise UnreadableFile(
            f"{name}: has no rows below the column names; save the data again"
        )
    if suffix_of(Path(path)) not in PARQUET:
        frame.attrs["doubts"] = _doubts(frame, header)
    return frame


def read_parts(
    path: str | Path,
    *,
    header: bool = True,
    max_bytes: float = 1e9,
    whole: bool = False,
) -> Iterator[DataFrame]:
    """Yield a table part by part, as `read` returns it; one without rows if it has none.

    Parameters
    ----------
    path, header
        As for `read`.
    max_bytes : float, default=1e9
        Maximum number of bytes that a part may take.
    whole : bool, default=False
        Whether that holds for all parts together.
    """
    if str(path) == "-":
        if sys.stdin is None:
            raise UnreadableFile("the standard input is closed; name a file")
        with NamedTemporaryFile(suffix=".csv") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.flush()
            yield from read_parts(
                copy.name, header=header, max_bytes=max_bytes, whole=whole
            )
        return
    name, file = str(path), Path(path)
    pandas()
    with explained(name):
        if suffix_of(file) in PARQUET:
            yield from _parquet_parts(name, max_bytes, whole)
            return
        if whole:
            check_size(name, text_size(file, max_bytes), max_bytes, "its text takes")
        yield from _csv_parts(name, header, max_bytes)


def _csv_parts(path: str, header: bool, limit: float) -> Iterator[DataFrame]:
    with _database() as database:
        delimiter, names = _dialect(database, Path(path), limit)
        rows = _csv_rows(database, path, delimiter, len(names))
        columns = _unique(names) if header else list(map(str, range(len(names))))
        skipped, n_vectors = int(header), 1
        while len(part := rows.fetch_df_chunk(n_vectors)):
            part.columns = columns
            n_vectors = _n_vectors(part)
            yield part.iloc[skipped:].reset_index(drop=True)
            skipped = 0


def _dialect(
    database: DuckDBPyConnection, path: Path, limit: float
) -> tuple[str, list[str]]:
    """Return the delimiter that makes all rows equally wide, and the first row's cells."""
    from duckdb import Error as DuckDBError

    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        start = file.read(LONGEST_ROW)
    csv.field_size_limit(max(LONGEST_ROW, csv.field_size_limit()))
    even: list[tuple[str, list[str]]] = []
    uneven: list[tuple[int, Exception]] = []
    for delimiter in "\t" if suffix_of(path) in (".tsv", ".tab") else DELIMITERS:
        reader = csv.reader(io.StringIO(start), delimiter=delimiter)
        cells = [cell.strip() for cell in next((row for row in reader if row), [])]
        if len(cells) < 2:
            continue
        what = f"{len(cells):,} columns of a table take"
        check_size(str(path), COLUMN_BYTES * len(cells), limit, what)
        try:
            n_probed = min(PROBED, max(100, CELLS_AT_ONCE // len(cells)))
            _csv_rows(database, str(path), delimiter, len(cells), n_probed).fetchall()
        except DuckDBError as error:
            uneven.append((len(cells), error))
        else:
            even.append((delimiter, cells))
    if even:
        return max(even, key=lambda one: len(one[1]))  # the first of those
    if uneven:
        raise max(uneven, key=lambda one: one[0])[1]
    first = next(csv.reader(io.StringIO(start)), [""])
    return ",", [first[0].strip() if first else ""]


def _csv_rows(
    database: DuckDBPyConnection,
    path: str,
    delimiter: str,
    n_columns: int,
    n_rows: int = 0,
) -> DuckDBPyConnection:
    columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(n_columns))
    return database.execute(
        "SELECT * FROM read_csv(?, delim=?, header=false, auto_detect=false, skip=0, "
        f"columns={{{columns}}}, hive_partitioning=false, quote='\"', escape='\"', comment='', "
        "nullstr='')" + (f" LIMIT {n_rows}" if n_rows else ""),
        [_literal(path), delimiter],
    )


def _parquet_parts(path: str, limit: float, whole: bool) -> Iterator[DataFrame]:
    with _database() as database:
        schema = database.execute(
            "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning=false)",
            [_literal(path)],
        ).fetchall()
        kinds = {name: kind for name, kind, *_ in schema}
        nested = [
            name
            for name, kind in kinds.items()
            if "[" in kind or kind.startswith(("STRUCT", "MAP", "UNION"))
        ]
        if nested:
            raise UnreadableFile(
                f"{path}: {', '.join(map(repr, nested))}: lists or structs; give each value a "
                "column, or drop it"
            )
        check_size(path, COLUMN_BYTES * len(kinds), limit, f"{len(kinds):,} columns take")
        longest = _check_texts(database, path, kinds, limit, whole)
        plain = ", ".join(_plain(name, kind) for name, kind in kinds.items())
        rows = database.execute(
            f"SELECT {plain} FROM read_parquet(?, hive_partitioning=false)",
            [_literal(path)],
        )
        while True:
            part = rows.fetch_df_chunk(_n_vectors_of(len(kinds), longest))
            yield part
            if not len(part):
                return


def _check_texts(
    database: DuckDBPyConnection,
    path: str,
    kinds: Mapping[str, str],
    limit: float,
    whole: bool,
) -> float:
    """Return the longest texts of a row, in bytes.

    Raise where texts, which a file may list once, are too large when written out.
    """
    lengths = [
        f"strlen({_quoted(name)}::VARCHAR)"
        for name, kind in kinds.items()
        if kind in ("VARCHAR", "BLOB")
    ]
    if not lengths:
        return 0.0
    all_of_row = " + ".join(f"coalesce({length}, 0)" for length in lengths)
    total, longest = database.execute(
        f"SELECT coalesce(sum(n), 0), coalesce(max(n), 0) "
        f"FROM (SELECT {all_of_row} AS n FROM read_parquet(?))",
        [_literal(path)],
    ).fetchall()[0]
    size = TEXT_COPIES * (total if whole else min(total, longest * VECTOR))
    check_size(path, float(size), limit, "its texts take up to")
    return float(longest)


def _plain(name: str, kind: str) -> str:
    """Return SQL for a column as numbers, dates, flags or texts."""
    column = _quoted(name)
    if kind.startswith(("DECIMAL", "HUGEINT", "UHUGEINT")):
        return f"{column}::DOUBLE AS {column}"
    if kind == "BLOB":
        return f"coalesce(try(decode({column})), {column}::VARCHAR) AS {column}"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"{column}::TIMESTAMP AS {column}"
    numeric = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE")
    if kind.removeprefix("U") in numeric or kind in ("BOOLEAN", "VARCHAR", "DATE"):
        return column
    return column if kind.startswith("TIMESTAMP") else f"{column}::VARCHAR AS {column}"


def _literal(path: str) -> str:
    """Return the pattern that matches this path alone."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _database() -> DuckDBPyConnection:
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(
            'reading tables needs duckdb: pip install "loclin[tables]"'
        ) from error
    return duckdb.connect(
        config={
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )


def _n_vectors(part: DataFrame) -> int:
    """Return how many of DuckDB's units to read next, by the first rows of the last part."""
    some = part.iloc[:LOOKED_AT]
    texts = sum(int(some[name].str.len().sum()) for name in some.columns)
    return _n_vectors_of(part.shape[1], texts / max(len(some), 1))


def _n_vectors_of(n_columns: int, row_bytes: float) -> int:
    by_cells = CELLS_AT_ONCE // (VECTOR * n_columns)
    return max(1, min(by_cells, int(BYTES_AT_ONCE / (VECTOR * max(row_bytes, 1.0)))))


def _unique(names: list[str]) -> list[str]:
    """Name columns without a name as pandas does, and repeated ones apart."""
    given, unique = set(names), dict[str, None]()
    numbers: Counter[str] = Counter()
    for position, name in enumerate(names):
        own = name = name or f"Unnamed: {position}"
        while own in unique or (own != name and own in given):
            numbers[name] += 1
            own = f"{name}.{numbers[name]}"
        unique[own] = None
    return list(unique)


def _doubts(frame: DataFrame, header: bool) -> list[str]:
    """Say where the first line may not be what it was taken for."""
    names = list(frame.columns)
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    if header:
        counts = [str(number) for number in range(len(names))]
        if all(map(_is_number, names)) and names != counts:
            return [
                f"the first line ({shown}) is read as column names; if it is a row, give "
                "--no-header"
            ]
        return []
    first, rest = frame.iloc[0], frame.iloc[1:]
    others = rest.head(1000)
    only_there = [
        name
        for name in names
        if isinstance(first[name], str)
        and not _is_number(first[name])
        and others[name].dropna().map(_is_number).all()
    ]
    if only_there and len(rest):
        return [
            f"the first line has words over numbers ({first[only_there[0]]!r}); if it holds "
            "column names, leave out --no-header"
        ]
    return []


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
