"""Learning anchor planes (OCC): its table 2, of which table 3 has the times, and figure 2."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from reproduction.data import problem_named
from reproduction.entry import BY_TEST_ERROR, Entry, by_column
from reproduction.occ import figures, tables
from reproduction.store import Cache

MINUTES = {"usps": 3, "letter": 3, "mnist": 25}
OWN = ("G-OCC", "C-OCC")
STAGES = {None: 0, tables.LLC: 1, tables.LCC: 1, tables.IMPROVED: 2}


def cell(data: str, row: str, cache: Cache) -> dict[str, Any]:
    """Errors and times of a system on a set."""
    problem = problem_named(data, tables.COUNTED.get(data))
    runs = tables.runs_of(row, problem, cache)
    return by_column(runs, "error %", "train s", "test s")


def by_test_error(data: str, row: str, cache: Cache) -> dict[str, Any]:
    """Errors with the planes of the least test error, and how many they are."""
    planes, runs = figures.by_test_error(row, data, cache)
    return by_column(runs, "error %") | {"planes": [planes]}


def entries() -> Iterator[Entry]:
    """Yield the entries."""
    for name, row in tables.ROWS.items():
        for data in row.planes if name not in tables.VARIANTS else ():
            slow, run = 3 if "LCC (" in name else 1, partial(cell, data, name)
            yield Entry("occ", "table 2", data, name, run, slow * MINUTES[data], STAGES[row.like],
                        name.endswith(OWN))  # fmt: skip
    for name in (name for name in tables.ROWS if name.endswith(OWN)):
        for data, minutes in MINUTES.items():
            # with the planes that are printed, MNIST's are reached, and they take long
            if not (name.startswith("Linear") and data == "mnist"):
                run = partial(by_test_error, data, name)
                yield Entry("occ", f"table 2{BY_TEST_ERROR}", data, name, run, minutes / 3, 4, True)
    for data, minutes in MINUTES.items():
        run = partial(figures.figure_2, data)
        yield Entry("occ", "figure 2", data, "curves", run, 2 * minutes, 3)
