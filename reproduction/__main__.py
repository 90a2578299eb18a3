"""``python -m benchmarks.reproduce [PAPER|TABLE ...] [--quick] [--jobs N]``.

Computes what is not stored yet of the five papers' tables and figures and of the table of defaults,
and writes ``docs/reproduction.md`` from what is stored. A word chooses entries by the beginning of
"paper table set system": ``occ``, ``"ml3 table 2"``, ``defaults``. A stopped run goes on where it
stopped; a setting that has changed runs again, nothing else.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.reproduce import page, runner
from benchmarks.reproduce.entries import Entry, all_entries
from benchmarks.reproduce.store import Folder

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "reproduction.md"


def chosen(words: Sequence[str], entries: list[Entry]) -> list[Entry]:
    """Entries that a word names: the one whose whole name it is, or all that begin with it."""
    names = {f"{e.paper} {e.table} {e.data} {e.system}": e for e in entries}
    found: dict[str, Entry] = {}
    for word in words or [""]:
        some = [word] if word in names else [name for name in names if name.startswith(word)]
        if not some:
            raise SystemExit(f"no entry begins with '{word}'; --list shows all")
        found |= {name: names[name] for name in some}
    return [e for name, e in names.items() if name in found]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("words", nargs="*", metavar="PAPER|TABLE", help="entries to run; all if none")
    made.add_argument("--quick", action="store_true", help="tiny settings, results of their own")
    made.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    made.add_argument("--results", type=Path, help="folder of results")
    made.add_argument("--page", action="store_true", help="write the page only")
    made.add_argument("--list", action="store_true", help="show the entries and their minutes")
    made.add_argument("--take", nargs=2, metavar=("PAPER", "FILE"), help="take over a JSON file")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for."""
    options = parser().parse_args(arguments)
    results = options.results or (RESULTS / "quick" if options.quick else RESULTS)
    entries = chosen(options.words, all_entries())
    if options.list:
        for e in entries:
            print(f"{e.paper} {e.table} {e.data} {e.system}: {e.minutes:.3g} min")
        print(f"{len(entries)} entries, {sum(e.minutes for e in entries) / 60:.0f} h of one thread")
        return 0
    if options.take:
        paper, file = options.take
        print(f"{Folder(results / paper).take(Path(file))} results taken over")
        return 0
    failed = False
    if not options.page:
        start = time.perf_counter()
        done = runner.run(entries, results, options.jobs, options.quick)
        print(runner.closing(done, time.perf_counter() - start, options.jobs))
        failed = any(outcome.error for outcome in done)
    path = results / "reproduction.md" if results != RESULTS else PAGE
    page.write(all_entries(), results, path)
    print(f"wrote {path}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
