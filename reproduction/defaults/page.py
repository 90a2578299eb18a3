"""The section of the page on the table of defaults: errors, ranks, prediction time, size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.defaults.table import OWN, SETS, SYSTEMS, TUNED
from reproduction.drawings import draw_ranks
from reproduction.entry import Entry
from reproduction.judge import MARKS, WAITING, average_ranks, critical_difference
from reproduction.markdown import table

NOTE = """Default settings, no tuning, but for `SVC-rbf, tuned`; protocol in
`reproduction/defaults/table.py`. Ranks are over the sets that every system has a result on.
"Times faster": prediction time of the tuned SVC over the system's, the median over the sets. Size:
bytes of the pickled pipeline, the median.
"""
BigTable = dict[str, dict[str, Any]]


def by_system(entries: list[Entry], results: dict[tuple[str, str], Any]) -> BigTable:
    """Results by system and set, those left out not among them."""
    found: BigTable = {name: {} for name in SYSTEMS}
    for e in (e for e in entries if e.paper == "defaults"):
        result = results.get(("defaults", e.key))
        if result and "left out" not in result:
            found[e.system][e.data] = {what: np.mean(runs) for what, runs in result.items()}
    return found


def summary(found: BigTable) -> tuple[list[list[str]], dict[str, float], int]:
    """Return rows of the summary, best rank first, the ranks, and the number of sets."""
    errors = {name: {d: float(r["error %"]) for d, r in of.items()} for name, of in found.items()}
    ranks, shared = average_ranks(errors)
    rows = []
    for name in sorted(ranks, key=lambda name: ranks[name]):
        of = found[name]
        faster = [found[TUNED][d]["us a row"] / r["us a row"] for d, r in of.items()
                  if d in found[TUNED]]  # fmt: skip
        mean = np.mean([errors[name][data] for data in shared])
        rows.append([f"**{name}**" if name in OWN else name, f"{ranks[name]:.2f}", f"{mean:.2f}",
                     f"{np.median(faster):.3g}",
                     f"{np.median([r['bytes'] for r in of.values()]) / 1e3:,.0f} kB"])  # fmt: skip
    return rows, ranks, len(shared)


def defaults_section(entries: list[Entry], results: dict[tuple[str, str], Any],
                     pictures: Path) -> Iterable[str]:  # fmt: skip
    """Yield the section."""
    found = by_system(entries, results)
    done, of_all = sum(map(len, found.values())), len(SETS) * len(SYSTEMS)
    yield NOTE
    yield f"{done} of {of_all} cells have a result.\n"
    rows, ranks, sets = summary(found)
    if ranks:
        distance = critical_difference(len(ranks), sets)
        yield f"Over {sets} sets; critical difference (Nemenyi, 5 %) {distance:.2f}.\n"
        yield table(["", "average rank", "mean error, %", "times faster", "size"], rows)
        draw_ranks(ranks, distance, pictures / "defaults_ranks.png")
        yield f"![average ranks]({pictures.name}/defaults_ranks.png)\n"
        own, rest = (min(r for n, r in ranks.items() if (n in OWN) == of and n != TUNED)
                     for of in (True, False))  # fmt: skip
        best = min(OWN, key=lambda name: ranks[name])
        yield (f"The best of loclin, {best}, has rank {own:.2f}; the best rival but the tuned SVC "
               f"{rest:.2f}.\n")  # fmt: skip
    cells = [[data, *(shown(found, results, data, name) for name in SYSTEMS)] for data in SETS]
    yield table(["error, %", *SYSTEMS], cells)


def shown(found: BigTable, results: dict[tuple[str, str], Any], data: str, name: str) -> str:
    """Return a cell: the error, or why there is none."""
    if data in found[name]:
        return f"{found[name][data]['error %']:.2f}"
    return "cannot" if ("defaults", f"table | {data} | {name}") in results else MARKS[WAITING]
