"""Writes ``docs/reproduction.md`` and its pictures from the stored results alone."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import judge
from reproduction.defaults.page import defaults_section
from reproduction.drawings import draw
from reproduction.ensemble.page import ensemble_section
from reproduction.entry import Entry
from reproduction.judge import BESIDE, MARKS, WAITING, WORSE, Cell
from reproduction.markdown import joined, table
from reproduction.published import MISSING_DATA, MISSING_SYSTEMS, Key, published
from reproduction.store import Cache

TAKEN_OVER = "taken over from"  # a file of results that an older version wrote
REASONS = Path(__file__).with_name("reasons.toml")
PAPERS = {
    "ml3": "ML3 (Fornoni, Caputo and Orabona, 2013)",
    "occ": "LL-SVM with orthogonal coordinate coding (Zhang et al., 2011)",
    "sapl": "LLC-SAPL (Mao et al., 2015)",
    "l3m": "L3M (Wang and Saligrama, 2013)",
    "ussvm": "US-SVM (Lyu et al., 2016)",
}
ABOUT = """# Reproduction of the five papers

`python -m reproduction` writes this page from the results in `reproduction/results`; only the
reasons (`reproduction/reasons.toml`) are typed by hand.

Errors are test errors in %, on the papers' splits. A cell is our mean ± deviation over seeds or
splits, the paper's value in brackets, and a mark:

- {BETTER} reached or better;
- {NOISE} within noise: above it by at most one deviation;
- {WORSE} worse;
- {WAITING} not run yet;
- no mark: not in the paper, or on other data.

Everything is chosen by cross-validation on training rows only. A system without random parts has
one run and no deviation. The papers' own systems are bold. Rows in italics, variants of one of
them, are held against its figure and not counted. SAPL's accuracies are shown as errors. Runs have
one thread; seconds are those of the processor.

A paper may say that it chose a setting by test error (OCC: the number of planes). Then its figures
are compared once more under that rule, in columns of their own, named so. The others see no test
row.
"""
# Title, paper, table of the entries, table of the facts, metric, rival.
TIMINGS = (
    ("Training time over Gaussian-Libsvm's", "ml3", "table 1", "1", "train s", "Gaussian-Libsvm"),
    ("Test time over Gaussian-Libsvm's", "ml3", "table 1", "1", "test s", "Gaussian-Libsvm"),
    ("Table 3: training time over linear SVM's", "occ", "table 2", "3", "train s", "Linear SVM"),
)
Results = dict[tuple[str, str], Any]


def shown(cell: Cell) -> str:
    """Return a cell's text."""
    paper = f" ({cell.fact.value:.2f})" if cell.fact else ""
    if cell.state == WAITING:
        return f"{MARKS[WAITING]}{paper}"
    std = f" ± {cell.std:.2f}" if cell.runs > 1 else ""
    return f"{cell.mean:.2f}{std}{paper} {MARKS[cell.state]}".rstrip()


def column(cell: Cell) -> str:
    """Return the set, and the rule if that is the paper's choice by test error."""
    return cell.entry.data + cell.entry.table.removeprefix(cell.entry.in_paper)


def error_table(of: list[Cell]) -> str:
    """Return a table of systems by sets."""
    sets = list(dict.fromkeys(map(column, of)))
    systems = list(dict.fromkeys(cell.entry.system for cell in of))
    at = {(cell.entry.system, column(cell)): shown(cell) for cell in of}
    own = {cell.entry.system: "**" for cell in of if cell.entry.own} | dict.fromkeys(BESIDE, "*")
    rows = [
        [
            f"{own.get(system, '')}{system}{own.get(system, '')}",
            *(at.get((system, s), "") for s in sets),
        ]
        for system in systems
    ]
    return table(["", *sets], rows)


def count_table(cells: list[Cell], by_test_error: list[Cell]) -> str:
    """Return the counts of each paper, and the share of own figures that are reached."""
    states = [judge.BETTER, judge.NOISE, judge.WORSE, judge.WAITING, judge.OTHER_DATA, judge.OURS]
    rows = []
    for paper in [*PAPERS, None]:
        of = [c for c in cells if paper in (None, c.entry.paper)]
        count, own = judge.counts(of), judge.reached(of)
        again = judge.reached(judge.by_own_protocol(of, by_test_error))
        rows.append([paper or "**all**", str(sum(count.values())), *(str(count[s]) for s in states),
                     f"{own[0]} + {own[1]} of {own[2]} run, {own[3]} in all",
                     f"{again[0]} + {again[1]}"])  # fmt: skip
    head = ["", "entries", *(f"{s} {MARKS[s]}".strip() for s in states), "own systems ✓ + ≈",
            "by the paper's own protocol ✓ + ≈"]  # fmt: skip
    return table(head, rows)


def share_reached(cells: list[Cell], by_test_error: list[Cell]) -> str:
    """Say how much of the papers' own systems' figures is reached; 80 % is the aim."""
    better, noise, run, _ = judge.reached(cells)
    better_so, noise_so, *_ = judge.reached(judge.by_own_protocol(cells, by_test_error))
    share, with_noise, share_so, with_noise_so = (
        f"{100 * n / max(1, run):.0f} %"
        for n in (better, better + noise, better_so, better_so + noise_so)
    )
    behind = [c for c in judge.own_figures(cells) if c.state == WORSE]
    near = sum((judge.gap_in_chance(c) or np.inf) < 1 for c in behind)
    return (
        f"Of the papers' own systems {run} figures have been run. loclin reaches or beats {share}, "
        f"{with_noise} with\nthose within noise. The aim is 80 %. Of the {len(behind)} "
        f"others {near} are above by less than one standard\nerror of the test split. By the "
        f"papers' own protocols, choices by test error where a paper says\nthat it made them, "
        f"the shares are {share_so} and {with_noise_so}.\n"
    )


def timing_section(paper: str, entries: list[Entry], results: Results) -> Iterable[str]:
    """Yield tables of times as ratios to a rival's, ours and the paper's."""
    facts = published()
    for title, of, where, fact_table, metric, rival in TIMINGS:
        if of != paper:
            continue
        theirs = {(k.data, k.system): f.value for k, f in facts.items()
                  if k[:2] == (paper, fact_table) and k.metric == metric}  # fmt: skip
        ours = {(e.data, e.system): float(np.mean(results[paper, e.key][metric])) for e in entries
                if (e.paper, e.table) == (paper, where) and (paper, e.key) in results}  # fmt: skip
        sets = list(dict.fromkeys(data for data, _ in theirs))
        systems = dict.fromkeys(system for _, system in theirs if system != rival)
        rows = [
            [system, *(ratios(ours, theirs, (data, system), (data, rival)) for data in sets)]
            for system in systems
        ]
        yield f"{title}; the paper's ratio in brackets.\n"
        yield table(["", *sets], rows)


def ratios(ours: dict[tuple[str, str], float], theirs: dict[tuple[str, str], float],
           one: tuple[str, str], rival: tuple[str, str]) -> str:  # fmt: skip
    """Our ratio and, where it is known, the paper's in brackets, to three digits."""
    found, paper = (f"{s[one] / s[rival]:.3g}" if {one, rival} <= s.keys() else ""
                    for s in (ours, theirs))  # fmt: skip
    return (found or MARKS[WAITING]) + (f" ({paper})" if paper else "")


def times(ratio: float) -> str:
    """Return a ratio to two digits at least."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def sapl_times(entries: list[Entry], results: Results) -> Iterable[str]:
    """Yield the prediction times of SVC over those of SAPL and of its rivals."""
    facts, rows = published(), []
    systems = ("LLC-SAPL", "SVM-KNN", "CSVM", "LDKL")

    def paper(data: str, system: str) -> float:
        return facts[Key("sapl", "3", data, system, "test s")].value

    for e in (e for e in entries if (e.paper, e.table) == ("sapl", "table 3")):
        kernel, of_sapl = (results.get(("sapl", e.key), {}).get(name)
                           for name in ("rival's test s", "test s"))  # fmt: skip
        row = []
        for system in systems:
            rival = results.get(("sapl", f"table 2 | {e.data} | {system}"), {})
            seconds = of_sapl if system == "LLC-SAPL" else rival.get("test s")
            ours = times(kernel[0] / min(seconds)) if kernel and seconds else MARKS[WAITING]
            row.append(f"{ours} ({times(paper(e.data, 'Kernel SVM') / paper(e.data, system))})")
        rows.append([e.data, *row])
    yield "Table 3: prediction time of the kernel SVM over the system's; the paper's in brackets.\n"
    yield table(["", *systems], rows)


def sapl_stream(entries: list[Entry], results: Results) -> Iterable[str]:
    """Yield errors, seconds and memory of the streams of MNIST8M's kind."""
    facts, rows = published(), []
    for e in (e for e in entries if (e.paper, e.table) == ("sapl", "like table 2")):
        fact = facts.get(Key("sapl", "2", e.data, e.system, "error %"))
        paper = f" ({fact.value:.2f})" if fact else ""
        found = results.get(("sapl", e.key))
        if not found:
            rows.append([e.system, MARKS[WAITING] + paper, *[""] * 7])
            continue
        seconds = [f"{s:.0f}" for s in (*found["learning s"], *found["generator s"])]
        memory = [f"{found['resident MB'][tenth]:.0f}" for tenth in (0, -1)]
        rows.append([e.system, f"{found['error %'][0]:.2f}{paper}", f"{found['rows']:,}",
                     *seconds, *memory])  # fmt: skip
    yield "Table 2, MNIST8M, on data made anew by the published recipe (Loosli, Canu and Bottou,"
    yield "2007; `reproduction/sapl/mnist8m.py`), not counted. It is one run with one pass of"
    yield "`partial_fit`, and errors are those on MNIST's 10,000 official test rows. There are 100"
    yield "anchors, in ML3 90 models a class. Seconds are those of the clock, beside them those of"
    yield "the processor. Resident memory, after the first tenth of the rows and at the end, is"
    yield "that of the process: MNIST, its tangents and a chunk are in it.\n"
    yield table(["", "error, %", "rows", "learning, s", "of the processor", "generator, s",
                 "of the processor", "MB at a tenth", "MB at the end"], rows)  # fmt: skip


def ussvm_times(entries: list[Entry], results: Results) -> Iterable[str]:
    """Yield what alpha > 0 costs US-SVM, on other data than the paper's."""
    facts, rows = published(), []
    for e in (e for e in entries if (e.paper, e.table) == ("ussvm", "like table 1")):
        found = results.get(("ussvm", e.key), {})
        for name, (ap, seconds, bare) in found.items():
            atoms, way = name.lower().split(", ")
            key = Key("ussvm", "1", "voc2007-vlad", f"US-SVM {way}, A={atoms}", "s per epoch")
            base = key._replace(system=f"US-SVM alpha=0, A={atoms}")
            rows.append([f"{e.data}, {name}", f"{ap:.2f}", f"{seconds / bare:.2f}",
                         f"{seconds / found[f'{atoms}, alpha=0'][1]:.2f}",
                         f"{facts[key].value / facts[base].value:.2f}"])  # fmt: skip
    head = ["", "mAP, %", "pass over its products", "pass over alpha=0's", "the paper's"]
    yield "Table 1, on other data: time of a pass.\n"
    yield table(head, rows or [["not run yet", *[MARKS[WAITING]] * 4]])


def ml3_tests(cells: list[Cell]) -> Iterable[str]:
    """Yield ML3's average ranks (its Table 2) and Wilcoxon's tests over both tables."""
    same = {"LL-SVM": "LLSVM", "Gaussian": "Gaussian-Libsvm", "Liblinear": "Liblinear (one-vs-all)"}
    ours: dict[str, dict[str, float]] = {}
    theirs: dict[str, dict[str, float]] = {}
    for cell in (c for c in cells if c.entry.paper == "ml3" and c.fact):
        system = same.get(cell.entry.system, cell.entry.system)
        if system in BESIDE or cell.fact is None:
            continue
        theirs.setdefault(system, {})[cell.entry.data] = cell.fact.value
        if cell.state != WAITING:
            ours.setdefault(system, {})[cell.entry.data] = cell.mean
    rows = []
    for rival in ("LLSVM", "G-OCC", "C-OCC", "Gaussian-Libsvm"):
        found = [judge.wilcoxon_p(by, "ML3", rival) if {"ML3", rival} <= by.keys()
                 else (float("nan"), 0) for by in (ours, theirs)]  # fmt: skip
        words = [f"p = {p:.4f} ({n} sets)" if n > 1 else MARKS[WAITING] for p, n in found]
        rows.append([f"ML3 against {rival}", *words])
    yield "Wilcoxon's signed rank test, two sides, over tables 1 and 2.\n"
    yield table(["", "ours", "the paper's errors"], rows)


def figures(paper: str, entries: list[Entry], results: Results, pictures: Path) -> Iterable[str]:
    """Draw a paper's figures and yield links."""
    of = [e for e in entries if e.paper == paper and e.table.startswith("figure")]
    for name in dict.fromkeys(e.table for e in of):
        these = [e for e in of if e.table == name]
        found = {e.data: results[paper, e.key] for e in these if (paper, e.key) in results}
        waiting = [e.data for e in these if e.data not in found]
        if found:
            path = pictures / f"{paper}_{name.replace(' ', '_')}.png"
            draw(found, path)
            yield f"![{paper}, {name}]({pictures.name}/{path.name})\n"
        late = [f"not run yet: {', '.join(waiting)}"] if waiting else []
        words = "; ".join([", ".join(found), *late] if found else late)
        yield f"{name.capitalize()}: {words}.\n"


def ldkl_section(entries: list[Entry], results: Results, pictures: Path) -> Iterable[str]:
    """Yield LDKL's error by cost beside others', and what is on the front."""
    yield "Test error by depth (2 to 7), beside ML3 with 2 to 50 models a class and LLC-SAPL with"
    yield "10 to 300 anchors. Runs have one seed and one thread. Preprocessing and strength are"
    yield "those of ML3's and SAPL's tables, chosen on training rows. MNIST has 10,000 training"
    yield "rows.\n"
    yield from figures("ldkl", entries, results, pictures)
    yield "On the front (no other is at most as wrong for at most the cost), from the cheapest:\n"
    for e in (e for e in entries if e.paper == "ldkl"):
        found = results.get(("ldkl", e.key))
        yield f"- {e.data}: {', '.join(found['front']) if found else MARKS[WAITING]}"
    yield ""


def reasons_section(cells: list[Cell]) -> Iterable[str]:
    """Yield why each worse entry is worse."""
    reasons, worse = tomllib.loads(REASONS.read_text()), [c for c in cells if c.state == WORSE]
    if not worse:
        yield "Nothing is worse."
        return
    chances = [judge.gap_in_chance(c) for c in worse]
    few = sum(chance is not None and chance < 1 for chance in chances)
    yield "Brackets say how far above the paper's figure an entry is. Where the test split is"
    yield "official, they say so in its standard errors, too:"
    yield f"of {len(worse)} entries {few} are above by less than one.\n"
    for cell, chance in zip(worse, chances, strict=True):
        e, gap = cell.entry, cell.mean - (cell.fact.value if cell.fact else 0)
        words = f"{gap:+.2f}" if chance is None else f"{gap:+.2f}, {chance:.1f} s.e."
        reason = reasons.get(e.paper, {}).get(e.key, "no reason tested yet.")
        yield f"- {e.paper}, {e.table}, {e.data}, {e.system} ({words}): {reason}"


def made_section(results: Path, entries: list[Entry]) -> Iterable[str]:
    """Yield what the results were made with, and the time they took."""
    paths = [results / paper for paper in dict.fromkeys(e.paper for e in entries)]
    stored = [entry for path in paths for entry in Cache(path).stored.values()]
    seconds = [entry["seconds"][0] for entry in stored if entry.get("seconds")]
    yield f"{len(stored)} stored results; {sum(seconds) / 3600:.1f} hours of processor time for the"
    yield f"{len(seconds)} that were not taken over from runs of the papers' own modules.\n"
    versions = [entry["made with"] for entry in stored]
    made = {", ".join(f"{k} {v}" for k, v in of.items() if k != TAKEN_OVER) for of in versions}
    yield from (f"- {words}" for words in sorted(made))


def write(entries: list[Entry], results: Path, path: Path) -> list[Cell]:
    """Write the page and its pictures; return the judged cells."""
    found = judge.stored_results(results, entries)
    cells = judge.cells(entries, found)
    by_test_error = judge.cells(entries, found, by_test_error=True)
    marks = {"BETTER": MARKS[judge.BETTER], "NOISE": MARKS[judge.NOISE],
             "WORSE": MARKS[judge.WORSE], "WAITING": MARKS[judge.WAITING]}  # fmt: skip
    parts = [ABOUT.format(**marks), "## Count\n", count_table(cells, by_test_error),
             share_reached(cells, by_test_error)]  # fmt: skip
    for paper, title in PAPERS.items():
        parts.append(f"## {title}\n")
        of_paper = [c for c in cells + by_test_error if c.entry.paper == paper]
        for name in dict.fromkeys(c.entry.in_paper for c in of_paper):
            parts += [f"### {name.capitalize()}\n",
                      error_table([c for c in of_paper if c.entry.in_paper == name])]  # fmt: skip
        parts += timing_section(paper, entries, found)
        parts += ml3_tests(cells) if paper == "ml3" else ()
        parts += sapl_times(entries, found) if paper == "sapl" else ()
        parts += sapl_stream(entries, found) if paper == "sapl" else ()
        parts += ussvm_times(entries, found) if paper == "ussvm" else ()
        parts += figures(paper, entries, found, path.parent / "figures")
    parts += ["## LDKL by depth\n", *ldkl_section(entries, found, path.parent / "figures")]
    parts += ["## Defaults against tuned and default rivals\n",
              *defaults_section(entries, found, path.parent / "figures")]  # fmt: skip
    parts += ["## The ensemble on official splits\n", *ensemble_section(entries, found),
              *figures("ensemble", entries, found, path.parent / "figures")]  # fmt: skip
    parts += ["## Why worse\n", *reasons_section(cells), ""]
    missing = [f"- {name}: {why}" for name, why in (MISSING_DATA | MISSING_SYSTEMS).items()]
    parts += ["## Not reproduced, not counted\n", *missing, ""]
    parts += ["## Made with\n", *made_section(results, entries)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(joined(parts))
    return cells
