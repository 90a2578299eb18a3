"""ML3: its tables 1 and 2, and figures 1 to 3."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from reproduction.entry import Entry, by_column
from reproduction.ml3 import figures, tables
from reproduction.store import Cache

MINUTES = {"usps": 6, "letter": 3, "mnist": 10, "covtype1": 3}  # else 0.7
NAMES = {"Gaussian-Libsvm": "Gaussian", "Liblinear (one-vs-all)": "Liblinear",
         "LLSVM": "LL-SVM"}  # of Table 2  # fmt: skip


def cell(data: str, row: str, cache: Cache) -> dict[str, Any]:
    """Errors and times of a system on a set."""
    return by_column(tables.runs_of(row, data, cache), "error %", "train s", "test s")


def entries() -> Iterator[Entry]:
    """Yield the entries."""
    for name, row in tables.ROWS.items():
        own, stage = row.how == "ml3", int(row.like is not None)
        for data in tables.TABLE_1 if row.table_1 else ():
            run, minutes = partial(cell, data, name), MINUTES[data]
            yield Entry("ml3", "table 1", data, name, run, minutes, stage, own)
        for data in tables.TABLE_2 if row.table_2 else ():
            shown, run = NAMES.get(name, name), partial(cell, data, name)
            yield Entry("ml3", "table 2", data, shown, run, 0.7, stage, own)
    for figure, data, run, minutes in figures.PANELS:
        yield Entry("ml3", figure, data, "curves", run, minutes, 3)
