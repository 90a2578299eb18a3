"""US-SVM: its figures 1 to 3, and its table 1 on other data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reproduction.entry import Entry
from reproduction.ussvm.atoms import figure_2, figure_3
from reproduction.ussvm.figure_1 import SETS, figure_1
from reproduction.ussvm.tables import table_1

MINUTES = {"transfer": 25, "joint": 15}


def entries() -> Iterator[Entry]:
    """Yield the entries."""
    for what, minutes in MINUTES.items():
        for data in SETS[what]:
            run = partial(figure_1, what, data)
            yield Entry("ussvm", "figure 1", f"{what} of {data}", "curves", run, minutes)
    yield Entry("ussvm", "like table 1", "isolet", "US-SVM", partial(table_1, "isolet"), 10)
    for figure, run in (("figure 2", figure_2), ("figure 3", figure_3)):
        yield Entry("ussvm", figure, "usps", "curves", run, 0.5)
