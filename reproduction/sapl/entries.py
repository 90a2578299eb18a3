"""LLC-SAPL: its tables 2 and 3, and figures 1 to 3; MNIST8M made anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from reproduction.entry import Entry, by_column
from reproduction.sapl import figures, stream, tables
from reproduction.store import Cache

MINUTES = {"banana": 3, "ijcnn1": 2, "usps": 5, "mnist": 12, "letter": 5}
NAMES = {"LLC-SAPL_lcc": "LLC-SAPLlcc"}


def cell(data: str, row: str, cache: Cache) -> dict[str, Any]:
    """Errors and times of a system on a set."""
    timed = ("test s",) if row in tables.RIVALS else ()
    found = by_column(tables.runs_of(row, data, cache), "error %", "train s", *timed)
    return found | {"error %": [100 - accuracy for accuracy in found["error %"]]}


def times(data: str, cache: Cache) -> dict[str, Any]:
    """Time predictions."""
    found = tables.table_3(data, cache)
    return {"test s": [found["ours"]], "rival's test s": [found["kernel"]],
            "bare products s": [found["bare"]], "rows": [found["n_test"]]}  # fmt: skip


def entries() -> Iterator[Entry]:
    """Yield the entries."""
    for name, row in tables.ROWS.items():
        for data, minutes in MINUTES.items():
            if row.how in ("linear", "lcc"):
                minutes /= 3
            yield Entry("sapl", "table 2", data, NAMES.get(name, name), partial(cell, data, name),
                        minutes, 0, "sapl" in row.how)  # fmt: skip
    for data in MINUTES:
        yield Entry("sapl", "table 3", data, "LLC-SAPL", partial(times, data), 2, 3, True)
    for name in stream.SYSTEMS:
        run = partial(stream.mnist_8m, name)
        yield Entry("sapl", "like table 2", "mnist8m", name, run, 6, 1, name == "LLC-SAPL")
    yield Entry("sapl", "figure 1", "sine", "curves", figures.figure_1, 10, 0)
    for data, minutes in MINUTES.items():
        run = partial(figures.figure_2, data)
        yield Entry("sapl", "figure 2", data, "curves", run, minutes / 4, 3)
    for data in ("ijcnn1", "usps"):
        yield Entry("sapl", "figure 3", data, "curves", partial(figures.figure_3, data), 6, 3)
