"""L3M: its table 2, and figures 1 and 3 to 6."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from reproduction.entry import Entry, by_column
from reproduction.l3m import figures, tables
from reproduction.store import Cache

MINUTES = {"banana": 1.5, "dna": 2, "satimage": 3, "vowel": 0.7, "optdigits": 3,
           "pendigits": 3, "segment": 0.3}  # fmt: skip
SLOW = {"convex": 30, "online": 3, "linear": 0.3}  # else 1
NAMES = {"Linear SVM": "One vs All Linear SVM", "RBF SVM": "One vs All RBF SVM",
         "AdaBoost, stumps": "One vs All AdaBoost (stumps)", "tree": "GDI tree",
         "L3M, refined": "L3M"}  # fmt: skip


def cell(data: str, row: str, cache: Cache) -> dict[str, Any]:
    """Errors and times of a system on a set."""
    return by_column(tables.runs_of(row, data, cache), "error %", "train s")


def entries() -> Iterator[Entry]:
    """Yield the entries."""
    for name, row in tables.ROWS.items():
        own = row.how in ("refined", "online", "convex")
        for data, minutes in MINUTES.items():
            run, slow = partial(cell, data, name), SLOW.get(row.how, 1)
            yield Entry("l3m", "table 2", data, NAMES.get(name, name), run, slow * minutes, 0, own)
    for figure, data, run, minutes in figures.PANELS:
        yield Entry("l3m", figure, data, "curves", run, minutes, 3)
