"""Time to start: importing loclin, and the first fit, in new processes.

``python -m benchmarks.startup --repeats 5``

The import is held against importing scikit-learn's SVM and Numba, which anyone who uses loclin
imports anyway. The first fit is ML3Classifier's on digits, with an empty compile cache and with a
filled one. All times are processor time, which leaves out other programs' turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

_STATEMENTS = {"baseline": "import sklearn.svm, numba", "loclin": "import loclin"}
_TIMED_IMPORT = """
import time
start = time.process_time()
{statement}
print(time.process_time() - start)
"""
_TIMED_FIT = """
import time
from sklearn.datasets import load_digits
from loclin import ML3Classifier
X, y = load_digits(return_X_y=True)
for _ in range(2):
    start = time.process_time()
    ML3Classifier(random_state=0).fit(X, y)
    print(time.process_time() - start)
"""


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process."""
    return subprocess.run(
        [sys.executable, *arguments], env=os.environ | environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip


def seconds_of(code: str, **environment: str) -> list[float]:
    """Run code that prints seconds in a new process; return them."""
    return [float(line) for line in run_python("-c", code, **environment).stdout.split()]


def time_imports(repeats: int) -> dict[str, float]:
    """Seconds of importing loclin and of importing the baseline, in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in _STATEMENTS}
    for i in range(repeats + 1):
        for name, statement in _STATEMENTS.items():
            found = seconds_of(_TIMED_IMPORT.format(statement=statement))
            if i > 0:  # the first round only fills the system's file cache
                seconds[name] += found
    medians = {f"{name}_s": median(times) for name, times in seconds.items()}
    return medians | {"ratio": medians["loclin_s"] / medians["baseline_s"]}


def import_times(statement: str) -> dict[str, float]:
    """Milliseconds that each module takes by itself when `statement` runs."""
    report = run_python("-X", "importtime", "-c", statement).stderr
    rows = (line.removeprefix("import time:").split("|") for line in report.splitlines())
    return {row[2].strip(): int(row[0]) / 1e3 for row in rows if row[0].strip().isdigit()}


def extra_imports() -> dict[str, float]:
    """Milliseconds of what loclin imports and the baseline does not, by package, longest first."""
    known = import_times(_STATEMENTS["baseline"])
    packages: dict[str, float] = {}
    for name, ms in import_times(_STATEMENTS["loclin"]).items():
        if name not in known:
            package = ".".join(name.split(".")[:2])
            packages[package] = packages.get(package, 0.0) + ms
    return dict(sorted(packages.items(), key=lambda item: -item[1]))


def time_first_fit(repeats: int) -> dict[str, float]:
    """Seconds of the first fit of a process, with a cold and with a warm compile cache.

    The second fit of the same process shows what the first would take if nothing were loaded.
    """
    with tempfile.TemporaryDirectory() as folder:
        cold = seconds_of(_TIMED_FIT, NUMBA_CACHE_DIR=folder)
        warm = [seconds_of(_TIMED_FIT, NUMBA_CACHE_DIR=folder) for _ in range(repeats)]
    return {
        "cold_s": cold[0],
        "warm_s": median(first for first, _ in warm),
        "second_s": median(second for _, second in warm),
    }


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Run the benchmark, print it and return its numbers."""
    args = _parser().parse_args(argv)
    results: dict[str, Any] = {"repeats": args.repeats, "import": time_imports(args.repeats)}
    imports = results["import"]
    print(f"{'processor seconds, each in a new process':40}{'s':>8}")
    print(f"{_STATEMENTS['baseline']:40}{imports['baseline_s']:8.3f}")
    print(f"{_STATEMENTS['loclin']:40}{imports['loclin_s']:8.3f}{imports['ratio']:8.2f} x")

    results["extra_imports_ms"] = extra_imports()
    print(f"\n{'what only loclin imports':40}{'ms':>8}")
    for name, ms in list(results["extra_imports_ms"].items())[: args.packages]:
        print(f"{name:40}{ms:8.1f}")
    print(f"{'in all':40}{sum(results['extra_imports_ms'].values()):8.1f}")

    if not args.skip_fit:
        results["first_fit"] = fits = time_first_fit(args.repeats)
        print(f"\n{'fit of ML3Classifier on digits':40}{'s':>8}")
        print(f"{'first of a process, empty compile cache':40}{fits['cold_s']:8.3f}")
        print(f"{'first of a process, filled cache':40}{fits['warm_s']:8.3f}")
        print(f"{'second of a process':40}{fits['second_s']:8.3f}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return results


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.startup",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--repeats", type=int, default=5)
    add("--packages", type=int, default=12, help="packages to list")
    add("--skip-fit", action="store_true", help="time the imports only")
    add("--json", type=Path, metavar="FILE", help="write the numbers to this file")
    return parser


if __name__ == "__main__":
    main()
