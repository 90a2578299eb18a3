"""What is reproduced: an entry for each system on each set of each table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reproduction.store import Cache

# A table's figures once more, with what the paper chose by test error chosen so: held against the
# paper in columns of their own.
BY_TEST_ERROR = ", chosen by test error, as the paper"


@dataclass(frozen=True)
class Entry:
    """A system on a set of a table, or a panel of a figure.

    Attributes
    ----------
    paper, table, data, system : str
        As in ``published.csv``.
    run : callable
        ``run(cache)`` returns the result: lists of runs by name, such as ``{"error %": [...]}``. It
        asks the cache for every choice and every fit, and so does nothing twice.
    minutes : float
        What it takes on one thread, roughly: it orders the run and tells the time left.
    stage : int
        Entries of a stage use results of the stages before.
    own : bool
        The system is the paper's own.
    """

    paper: str
    table: str
    data: str
    system: str
    run: Callable[[Cache], dict[str, Any]]
    minutes: float
    stage: int = 0
    own: bool = False

    @property
    def in_paper(self) -> str:
        """The paper's table."""
        return self.table.removesuffix(BY_TEST_ERROR)

    @property
    def key(self) -> str:
        """Name of the entry, and of its result."""
        return f"{self.table} | {self.data} | {self.system}"


def by_column(runs: list[list[float]], *names: str) -> dict[str, Any]:
    """Turn runs into columns."""
    columns = zip(*(run[: len(names)] for run in runs), strict=True)
    return dict(zip(names, map(list, columns), strict=True))
