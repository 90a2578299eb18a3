"""The section of the page on the table of defaults: errors, ranks, prediction time, size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.defaults.metrics import metric_section
from reproduction.defaults.table import OWN, SETS, SYSTEMS, TUNED
from reproduction.drawings import draw_ranks
from reproduction.entry import Entry
from reproduction.judge import MARKS, WAITING, average_ranks, critical_difference
from reproduction.markdown import table

NOTE = """All systems but `SVC-rbf, tuned` have default settings; the protocol is in
`reproduction/defaults/table.py`. Ranks are over the sets that every ranked system has a result on.
Systems that lack more than a few of the sets are ranked apart, with all others, over those that
they have.

- Log loss of the tuned SVC: of sigmoids found by five folds.
- AUC: one class against the rest, mean of the classes.
- Fit, "times faster" and size are medians over the sets. Fit is in seconds. "Times faster" is the
  prediction time of the tuned SVC over the system's. Size is that of the pickled pipeline.
"""
MISSED = 2  # sets that a ranked system may have no result on
PICTURES = {"error %": "defaults_ranks.png", "log loss": "defaults_log_loss_ranks.png"}

BigTable = dict[str, dict[str, Any]]


def by_system(entries: list[Entry], results: dict[tuple[str, str], Any]) -> BigTable:
    """Results by system and set, those left out not among them."""
    found: BigTable = {name: {} for name in SYSTEMS}
    for e in (e for e in entries if (e.paper, e.table) == ("defaults", "table")):
        result = results.get(("defaults", e.key))
        if result and "left out" not in result:
            found[e.system][e.data] = {what: np.mean(runs) for what, runs in result.items()}
    return found


def ranked(found: BigTable, what: str, missed: int = MISSED) -> tuple[dict[str, float], list[str]]:
    """Return average ranks, by a figure, of systems that miss so many sets at most; their sets."""
    figures = {
        name: {data: float(result[what]) for data, result in of.items() if what in result}
        for name, of in found.items()
    }
    most = max(map(len, figures.values()))
    if most == 0:
        return {}, []
    least = max(1, most - missed)
    return average_ranks({name: of for name, of in figures.items() if len(of) >= least})


def summary(found: BigTable) -> list[list[str]]:
    """Return rows of the summary, the best rank by error first."""
    ranks, shared = ranked(found, "error %")
    loss_ranks, loss_shared = ranked(found, "log loss")
    rows = []
    for name in sorted(filter(found.get, found), key=lambda name: ranks.get(name, np.inf)):
        of = found[name]
        faster = [found[TUNED][d]["us a row"] / r["us a row"] for d, r in of.items()
                  if d in found[TUNED]]  # fmt: skip
        rows.append([
            f"**{name}**" if name in OWN else name,
            f"{ranks[name]:.2f}" if name in ranks else "",
            f"{loss_ranks[name]:.2f}" if name in loss_ranks else "",
            mean_of(of, "error %", shared, ".2f"),
            mean_of(of, "log loss", loss_shared, ".3f"),
            mean_of(of, "AUC", loss_shared, ".4f"),
            f"{np.median([r['train s'] for r in of.values()]):.2g}",
            f"{np.median(faster):.3g}",
            f"{np.median([r['bytes'] for r in of.values()]) / 1e3:,.0f} kB",
        ])  # fmt: skip
    return rows


def mean_of(of: dict[str, Any], what: str, sets: list[str], form: str) -> str:
    """Return the mean of a figure over sets, where all have it."""
    figures = [of[data][what] for data in sets if what in of.get(data, {})]
    return f"{np.mean(figures):{form}}" if figures and len(figures) == len(sets) else ""


def defaults_section(entries: list[Entry], results: dict[tuple[str, str], Any],
                     pictures: Path) -> Iterable[str]:  # fmt: skip
    """Yield the section."""
    found = by_system(entries, results)
    done, of_all = sum(map(len, found.values())), len(SETS) * len(SYSTEMS)
    yield NOTE
    yield f"{done} of {of_all} cells have a result.\n"
    head = ["", "rank, error", "rank, log loss", "error, %", "log loss", "AUC", "fit s",
            "times faster", "size"]  # fmt: skip
    yield table(head, summary(found))
    for what, picture in PICTURES.items():
        ranks, shared = ranked(found, what)
        if len(ranks) < 2:
            continue
        distance = critical_difference(len(ranks), len(shared))
        name = what.removesuffix(" %")
        yield (f"Ranks by {name}: {len(ranks)} systems on {len(shared)} sets; critical difference "
               f"(Nemenyi, 5 %) {distance:.2f}.\n")  # fmt: skip
        draw_ranks(ranks, distance, pictures / picture)
        yield f"![average ranks by {name}]({pictures.name}/{picture})\n"
        everyone, fewer = ranked(found, what, missed=len(SETS))
        if len(everyone) > len(ranks):
            best_first = sorted(everyone.items(), key=lambda item: item[1])
            yield f"All {len(everyone)} systems on the {len(fewer)} sets that they share:\n"
            yield table(
                ["", *(system for system, _ in best_first)],
                [[f"rank, {name}", *(f"{rank:.2f}" for _, rank in best_first)]],
            )
    ranks, _ = ranked(found, "error %")
    own = {name: rank for name, rank in ranks.items() if name in OWN}
    rivals = {name: rank for name, rank in ranks.items() if name not in (*OWN, TUNED)}
    if own and rivals:
        best = min(own, key=lambda name: own[name])
        yield (f"The best of loclin, {best}, has rank {own[best]:.2f}; the best rival but the "
               f"tuned SVC {min(rivals.values()):.2f}.\n")  # fmt: skip
    cells = [[data, *(shown(found, results, data, name) for name in SYSTEMS)] for data in SETS]
    yield table(["error, %", *SYSTEMS], cells)
    yield "### With a learned metric\n"
    yield from metric_section(found, results)


def shown(found: BigTable, results: dict[tuple[str, str], Any], data: str, name: str) -> str:
    """Return a cell: the error, or why there is none."""
    if data in found[name]:
        return f"{found[name][data]['error %']:.2f}"
    return "cannot" if ("defaults", f"table | {data} | {name}") in results else MARKS[WAITING]
