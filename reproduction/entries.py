"""What is reproduced: an entry for each system on each set of each table.

An entry says which function of the paper's own module computes it. That function gets a cache, asks
it for every choice and every fit, and so does nothing twice. `minutes` is what the entry takes on
one thread, roughly: it orders the run and tells the time left.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import (
    l3m_tables,
    ml3_tables,
    occ_figures,
    occ_tables,
    sapl_figures,
    sapl_tables,
    ussvm_tables,
)
from benchmarks.choices import Cache
from benchmarks.reproduce import figures_l3m, figures_ml3, figures_ussvm
from benchmarks.reproduce.shapes import lines

SEEDS = {"occ": 5, "sapl": None, "l3m": 5, "ussvm": 3}  # None: as the module has them
SPLITS = {"ml3": 10, "l3m": 10}
OLD_LETTERS = 10**9  # rows at most


@dataclass(frozen=True)
class Entry:
    """A system on a set of a table, or a panel of a figure.

    Attributes
    ----------
    paper, table, data, system : str
        As in ``published.csv``.
    run : callable
        ``run(cache)`` returns the result: lists of runs by name, such as ``{"error %": [...]}``.
    minutes : float
        What it takes on one thread.
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
    def key(self) -> str:
        """Name of the entry, and of its result."""
        return f"{self.table} | {self.data} | {self.system}"


def by_column(runs: list[list[float]], *names: str) -> dict[str, Any]:
    """Turn runs into columns."""
    columns = zip(*(run[: len(names)] for run in runs), strict=True)
    return dict(zip(names, map(list, columns), strict=True))


TIMED = ("error %", "train s", "test s")

# --- ml3 -------------------------------------------------------------------------------------

ML3_MINUTES = {"usps": 6, "letter": 3, "mnist": 10, "covtype1": 3}  # else 0.7
ML3_NAMES = {"Gaussian-Libsvm": "Gaussian", "Liblinear (one-vs-all)": "Liblinear",
             "LLSVM": "LL-SVM"}  # of Table 2  # fmt: skip


def ml3_cell(data: str, row: str, cache: Cache) -> dict[str, Any]:
    seeds = ml3_tables.SEEDS.get(data, 5)
    runs = ml3_tables.runs_of(row, data, seeds, SPLITS["ml3"], cache)
    return by_column(runs, *TIMED)


def ml3_entries() -> Iterator[Entry]:
    for name, row in ml3_tables.ROWS.items():
        own, stage = row.how == "ml3", int(row.like is not None)
        for data in ml3_tables.TABLE_1:
            run, minutes = partial(ml3_cell, data, name), ML3_MINUTES[data]
            yield Entry("ml3", "table 1", data, name, run, minutes, stage, own)
        for data in ml3_tables.TABLE_2 if row.table_2 else ():
            shown, run = ML3_NAMES.get(name, name), partial(ml3_cell, data, name)
            yield Entry("ml3", "table 2", data, shown, run, 0.7, stage, own)
    for figure, data, run, minutes in figures_ml3.PANELS:
        yield Entry("ml3", figure, data, "curves", run, minutes, 3)


# --- occ -------------------------------------------------------------------------------------

OCC_MINUTES = {"usps": 3, "letter": 3, "mnist": 25}
OCC_OWN = ("G-OCC", "C-OCC")


def occ_cell(data: str, row: str, cache: Cache) -> dict[str, Any]:
    problem = occ_tables.problem_named(data, occ_tables.COUNTED.get(data))
    options = Namespace(seeds=SEEDS["occ"], jobs=1, counted=True)
    occ_tables.table_2(problem, [row], options, cache)
    return by_column(cache.stored[f"{data} | {row} | n={problem.counted}"]["result"], *TIMED)


def occ_entries() -> Iterator[Entry]:
    stages = {None: 0, occ_tables.LLC: 1, occ_tables.LCC: 1, occ_tables.IMPROVED: 2}
    for name, row in occ_tables.ROWS.items():
        for data, (_, published) in row.cells.items():
            if published and "local biases" not in name:
                slow = 3 if "LCC (" in name else 1
                yield Entry("occ", "table 2", data, name, partial(occ_cell, data, name),
                            slow * OCC_MINUTES[data], stages[row.like],
                            name.endswith(OCC_OWN))  # fmt: skip
    for data, minutes in OCC_MINUTES.items():
        yield Entry(
            "occ", "figure 2", data, "curves", partial(occ_figures.figure_2, data), 2 * minutes, 3
        )


# --- sapl ------------------------------------------------------------------------------------

SAPL_MINUTES = {"banana": 3, "ijcnn1": 2, "usps": 5, "mnist": 12, "letter": 5}
SAPL_NAMES = {"LLC-SAPL_lcc": "LLC-SAPLlcc"}


def sapl_options() -> Namespace:
    return Namespace(seeds=SEEDS["sapl"], jobs=1)


def sapl_cell(data: str, row: str, cache: Cache) -> dict[str, Any]:
    sapl_tables.table_2(data, [row], sapl_options(), cache)
    seeds = SEEDS["sapl"] or sapl_tables.SEEDS.get(data, 10)
    problems = [f"banana/{split}" for split in range(seeds)] if data == "banana" else [data]
    runs = [run for p in problems for run in cache.stored[f"{p} | {row} | test"]["result"]]
    found = by_column(runs, "error %", "train s")
    return found | {"error %": [100 - accuracy for accuracy in found["error %"]]}


def sapl_times(data: str, cache: Cache) -> dict[str, Any]:
    sapl_tables.table_3(data, sapl_options(), cache)
    found = cache.stored[f"{data} | table 3"]["result"]
    return {"test s": [found["ours"]], "rival's test s": [found["kernel"]],
            "bare products s": [found["bare"]], "rows": [found["n_test"]]}  # fmt: skip


def sapl_entries() -> Iterator[Entry]:
    for name, row in sapl_tables.ROWS.items():
        for data, minutes in SAPL_MINUTES.items():
            if row.how in ("linear", "lcc"):
                minutes /= 3
            yield Entry("sapl", "table 2", data, SAPL_NAMES.get(name, name),
                        partial(sapl_cell, data, name), minutes, 0, "sapl" in row.how)  # fmt: skip
    for data in SAPL_MINUTES:
        yield Entry("sapl", "table 3", data, "LLC-SAPL", partial(sapl_times, data), 2, 3, True)
    yield Entry("sapl", "figure 1", "sine", "curves", sapl_figures.figure_1, 10, 0)
    for data, minutes in SAPL_MINUTES.items():
        run = partial(sapl_figures.figure_2, data)
        yield Entry("sapl", "figure 2", data, "curves", run, minutes / 4, 3)
    for data in ("ijcnn1", "usps"):
        yield Entry("sapl", "figure 3", data, "curves", partial(sapl_figures.figure_3, data), 6, 3)


# --- l3m -------------------------------------------------------------------------------------

L3M_MINUTES = {"banana": 1.5, "dna": 2, "satimage": 3, "vowel": 0.7, "optdigits": 3,
               "pendigits": 3, "segment": 0.3}  # fmt: skip
L3M_NAMES = {"Linear SVM": "One vs All Linear SVM", "RBF SVM": "One vs All RBF SVM",
             "AdaBoost, stumps": "One vs All AdaBoost (stumps)", "tree": "GDI tree",
             "L3M, refined": "L3M"}  # fmt: skip


def l3m_cell(data: str, row: str, cache: Cache) -> dict[str, Any]:
    options = Namespace(seeds=SEEDS["l3m"], splits=SPLITS["l3m"], jobs=1)
    l3m_tables.table_2(data, [row], options, cache)
    splits = [f"banana/{split}" for split in range(options.splits)]
    problems = splits if data == "banana" else [data]
    if row == "L3M, convex":  # of the parameters and readings the least training error
        finals = ([entry["result"] for key, entry in cache.stored.items()
                   if key.startswith(f"{p} | {row} | alpha = ")] for p in problems)  # fmt: skip
        best = [min(runs, key=lambda run: run[0]) for runs in finals]
        return {"error %": [run[1] for run in best], "train s": [run[2] for run in best]}
    runs = [run for p in problems for run in cache.stored[f"{p} | {row} | test"]["result"]]
    return by_column(runs, "error %", "train s")


def l3m_entries() -> Iterator[Entry]:
    for name, row in l3m_tables.ROWS.items():
        own = row.how in ("refined", "online", "convex")
        for data, minutes in L3M_MINUTES.items():
            slow = {"convex": 30, "online": 3, "forest": 1, "linear": 0.3}.get(row.how, 1)
            yield Entry("l3m", "table 2", data, L3M_NAMES.get(name, name),
                        partial(l3m_cell, data, name), slow * minutes, 0, own)  # fmt: skip
    for figure, data, run, minutes in figures_l3m.PANELS:
        yield Entry("l3m", figure, data, "curves", run, minutes, 3)


# --- ussvm -----------------------------------------------------------------------------------


def ussvm_figure(what: str, data: str, cache: Cache) -> dict[str, Any]:
    """Mean average precision by nonzeros: `what` is "transfer" or "joint"."""
    variants = list(ussvm_tables.VARIANTS)
    options = Namespace(seeds=SEEDS["ussvm"], rows=OLD_LETTERS, variants=variants)
    curves = ussvm_tables.figure(what, data, options, cache)
    nonzeros = ussvm_tables.NONZEROS if what == "transfer" else ussvm_tables.FEW
    return lines(nonzeros, curves, "nonzeros a class", "mean average precision, %", log_x=True)


def ussvm_table_1(data: str, cache: Cache) -> dict[str, Any]:
    """By atoms and choice of alpha: mean average precision, seconds a pass, of bare products."""
    return ussvm_tables.table_1(data, Namespace(), cache)


def ussvm_entries() -> Iterator[Entry]:
    for what, minutes in {"transfer": 25, "joint": 15}.items():
        for data in ussvm_tables.SETS[what]:
            run = partial(ussvm_figure, what, data)
            yield Entry("ussvm", "figure 1", f"{what} of {data}", "curves", run, minutes)
    for data in ussvm_tables.SETS["table1"]:
        yield Entry("ussvm", "like table 1", data, "US-SVM", partial(ussvm_table_1, data), 10)
    for figure, data, run, minutes in figures_ussvm.PANELS:
        yield Entry("ussvm", figure, data, "curves", run, minutes)


def all_entries() -> list[Entry]:
    """Every entry of every paper, and the table of defaults."""
    from benchmarks.reproduce import defaults

    made = (ml3_entries, occ_entries, sapl_entries, l3m_entries, ussvm_entries)
    entries = [entry for entries in made for entry in entries()]
    return entries + [Entry("defaults", "table", *rest) for rest in defaults.ENTRIES]
