"""``python -m reproduction [PAPER|TABLE ...] [--quick] [--jobs N]``.

Computes what is not stored yet of the five papers' tables and figures and of the table of defaults,
and writes ``docs/reproduction.md`` from what is stored. A word chooses entries by the beginning of
"paper table set system": ``occ``, ``"ml3 table 2"``, ``defaults``. A stopped run goes on where it
stopped; a setting that has changed runs again, nothing else.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m reproduction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("words", nargs="*", metavar="PAPER|TABLE", help="entries to run; all if none")
    made.add_argument("--quick", action="store_true", help="tiny settings, results of their own")
    made.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    made.add_argument("--results", type=Path, help="folder of results")
    made.add_argument("--page", action="store_true", help="write the page only")
    made.add_argument("--list", action="store_true", help="show the entries and their minutes")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for."""
    options = parser().parse_args(arguments)
    if options.quick:
        os.environ["REPRODUCTION_QUICK"] = "1"
    from reproduction.command import run  # which settles the size

    return run(options)


if __name__ == "__main__":
    sys.exit(main())
