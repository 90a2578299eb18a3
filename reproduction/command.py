"""Runs the entries that were asked for, and writes the page."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from reproduction import page, runner
from reproduction.defaults import metrics
from reproduction.defaults import table as defaults
from reproduction.ensemble import official as ensemble
from reproduction.entry import Entry
from reproduction.l3m import entries as l3m
from reproduction.ldkl import front as ldkl
from reproduction.ml3 import entries as ml3
from reproduction.occ import entries as occ
from reproduction.quick import sized
from reproduction.sapl import entries as sapl
from reproduction.ussvm import entries as ussvm

HERE = Path(__file__).parent
RESULTS = sized(HERE / "results", quick=HERE / "results" / "quick")
PAGE = sized(HERE.parent / "docs", quick=RESULTS) / "reproduction.md"


def all_entries() -> list[Entry]:
    """Every entry of every paper, LDKL's front, the defaults, the ensemble on official splits."""
    modules = (ml3, occ, sapl, l3m, ussvm, ldkl, defaults, metrics, ensemble)
    return [entry for module in modules for entry in module.entries()]


def chosen(words: Sequence[str], entries: list[Entry]) -> list[Entry]:
    """Entries that a word names: the one whose whole name it is, or all that begin with it."""
    names = {f"{e.paper} {e.table} {e.data} {e.system}": e for e in entries}
    found: set[str] = set()
    for word in words or [""]:
        some = [word] if word in names else [name for name in names if name.startswith(word)]
        if not some:
            raise SystemExit(f"no entry begins with '{word}'; --list shows all")
        found.update(some)
    return [e for name, e in names.items() if name in found]


def run(options: Namespace) -> int:
    """Run what the options say."""
    entries = chosen(options.words, all_entries())
    if options.list:
        for e in entries:
            print(f"{e.paper} {e.table} {e.data} {e.system}: {e.minutes:.3g} min")
        print(f"{len(entries)} entries, {sum(e.minutes for e in entries) / 60:.0f} h of one thread")
        return 0
    results, failed = options.results or RESULTS, False
    if not options.page:
        start = time.perf_counter()
        done = runner.run(entries, results, options.jobs)
        print(runner.closing(done, time.perf_counter() - start, options.jobs))
        failed = any(outcome.error for outcome in done)
    path = PAGE if results == RESULTS else results / "reproduction.md"
    page.write(all_entries(), results, path)
    print(f"wrote {path}")
    return int(failed)
