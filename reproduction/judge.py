"""Holds stored results against published figures: marks, counts, tests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata, studentized_range, wilcoxon

from reproduction.entry import BY_TEST_ERROR, Entry
from reproduction.published import TEST_ROWS, Fact, Key, published
from reproduction.store import Cache

BETTER, NOISE, WORSE, WAITING = "better", "within noise", "worse", "not run yet"
OTHER_DATA, OURS = "not comparable", "not in the paper"
MARKS = {BETTER: "✓", NOISE: "≈", WORSE: "✗", WAITING: "…", OTHER_DATA: "", OURS: ""}
# Rows that are held against another system's published figure, and not counted.
BESIDE = {"L3M, online": "L3M", "L3M, convex": "L3M",
          "ML3, 60 epochs": "ML3", "ML3, 120 epochs": "ML3"}  # fmt: skip


class Cell(NamedTuple):
    """An entry beside the paper: our mean and deviation in %, and what that is."""

    entry: Entry
    fact: Fact | None
    mean: float
    std: float
    runs: int
    state: str


def stored_results(results: Path, entries: list[Entry]) -> dict[tuple[str, str], Any]:
    """Results by (paper, key) of the entries that have been run."""
    folders = {paper: Cache(results / paper).stored for paper in {e.paper for e in entries}}
    found = {(e.paper, e.key): folders[e.paper].get(e.key) for e in entries}
    return {key: entry["result"] for key, entry in found.items() if entry}


def fact_of(entry: Entry, facts: dict[Key, Fact], metric: str = "error %") -> Fact | None:
    """Return what the paper has for the entry."""
    system = BESIDE.get(entry.system, entry.system)
    place = entry.paper, entry.in_paper.removeprefix("table ")
    return facts.get(Key(*place, entry.data, system, metric))


def judged(entry: Entry, result: dict[str, Any] | None, fact: Fact | None) -> Cell:
    """Hold an entry's errors against the paper's: within noise is above by at most 1 deviation."""
    if result is None:
        return Cell(entry, fact, np.nan, np.nan, 0, WAITING)
    errors = np.array(result["error %"])
    mean, std = errors.mean(), errors.std(ddof=1) if len(errors) > 1 else 0.0
    if fact is None:
        state = OURS
    elif not fact.comparable:
        state = OTHER_DATA
    else:
        over = round(mean, 2) - fact.value  # papers print two digits
        state = BETTER if over <= 0 else NOISE if over <= std else WORSE
    return Cell(entry, fact, float(mean), float(std), len(errors), state)


def cells(entries: list[Entry], results: dict[tuple[str, str], Any], *,
          by_test_error: bool = False) -> list[Cell]:  # fmt: skip
    """Judge the entries of the papers' error tables, or those chosen by test error as the paper."""
    facts = published()
    tables = [e for e in entries if e.paper != "defaults" and e.table.startswith("table")]
    return [
        judged(e, results.get((e.paper, e.key)), fact_of(e, facts))
        for e in tables
        if (e.paper, e.table) != ("sapl", "table 3")
        and e.table.endswith(BY_TEST_ERROR) == by_test_error
    ]


def by_own_protocol(of: list[Cell], by_test_error: list[Cell]) -> list[Cell]:
    """Return the cells, those of the same figure chosen by test error taking their places."""

    def figure(entry: Entry) -> tuple[str, ...]:
        return entry.paper, entry.in_paper, entry.data, entry.system

    again = {figure(c.entry): c for c in by_test_error if c.state != WAITING}
    return [again.get(figure(c.entry), c) for c in of]


def gap_in_chance(cell: Cell) -> float | None:
    """Return how far above the paper's a cell is, in standard errors of the official test split."""
    n = TEST_ROWS.get(cell.entry.data)
    if n is None or cell.fact is None or cell.state == WAITING:
        return None
    return (cell.mean - cell.fact.value) / float(np.sqrt(cell.mean * (100 - cell.mean) / n))


def counts(of: list[Cell]) -> Counter[str]:
    """Count cells by state; those beside the paper's systems are left out."""
    return Counter(cell.state for cell in of if cell.entry.system not in BESIDE)


def own_figures(of: list[Cell]) -> list[Cell]:
    """Cells of the papers' own systems whose published figure is comparable."""
    own = [c for c in of if c.entry.own and c.entry.system not in BESIDE]
    return [c for c in own if c.fact and c.fact.comparable]


def reached(of: list[Cell]) -> tuple[int, int, int, int]:
    """Count the papers' own systems' comparable figures: reached, within noise, run, in all."""
    own = own_figures(of)
    run = [c for c in own if c.state != WAITING]
    better, noise = (sum(c.state == state for c in run) for state in (BETTER, NOISE))
    return better, noise, len(run), len(own)


def wilcoxon_p(ours: dict[str, dict[str, float]], one: str, other: str) -> tuple[float, int]:
    """Signed rank test (two sides) of two systems over the sets that both have; and how many."""
    shared = sorted(ours[one].keys() & ours[other].keys())
    if len(shared) < 2:
        return float("nan"), len(shared)
    gaps = [ours[one][data] - ours[other][data] for data in shared]
    return float(wilcoxon(gaps).pvalue), len(shared)


def average_ranks(errors: dict[str, dict[str, float]]) -> tuple[dict[str, float], list[str]]:
    """Average ranks of systems over the sets that all have; the sets."""
    shared = sorted(set.intersection(*(set(by_set) for by_set in errors.values())))
    table = np.array([[by_set[data] for data in shared] for by_set in errors.values()])
    ranks = rankdata(np.round(table, 6), axis=0).mean(axis=1) if shared else []
    return dict(zip(errors, map(float, ranks), strict=bool(shared))), shared


def critical_difference(systems: int, sets: int, level: float = 0.05) -> float:
    """Nemenyi's: average ranks further apart than this differ (Demsar, 2006)."""
    q = studentized_range.ppf(1 - level, systems, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(systems * (systems + 1) / (6 * sets)))
