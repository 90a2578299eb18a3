"""SAPL with ``n_anchors="auto"`` against the best number of a grid.

On every set SAPL is fitted with each number of the grid, and with "auto", for some seeds, all else
at its defaults. The best number is the one with the least mean test error. "auto" should err at
most 0.3 points more, take at most twice the anchors, and less time than the whole grid.

Official splits; of banana, which has none, a random third is the test. Standardised features
(banana, letter, ijcnn1) or rows of unit norm (usps, mnist), float32; one thread, processor seconds.

``LOCLIN_DATA=FOLDER python -m benchmarks.sapl_growth [letter usps] [--seeds 3] [--rows 4000]``
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import Normalizer, StandardScaler

from benchmarks._timing import pinned_threads
from loclin import SAPLClassifier
from loclin.datasets import load

PREPROCESSING: dict[str, Any] = {
    "banana": StandardScaler,
    "letter": StandardScaler,
    "ijcnn1": StandardScaler,
    "usps": Normalizer,
    "mnist": Normalizer,
}
GRID = [10, 20, 40, 60, 80, 100, 140, 180]
# What "auto" may cost beside the best number: points of error, times the anchors and the time.
MOST = {"error": 0.3, "anchors": 2.0, "time": 1.0}


class Fitted(NamedTuple):
    """Means over the seeds."""

    error: float
    anchors: float
    seconds: float


def _problem(name: str, seed: int, n_rows: int | None) -> tuple[Any, Any, Any, Any]:
    """Rows and labels to learn from and to test on; `seed` matters where there is no split."""
    data: Any = load(name)
    X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
    if X_test is None:
        parts = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
        X, X_test, y, y_test = parts
    if n_rows is not None and n_rows < len(y):
        X, _, y, _ = train_test_split(X, y, train_size=n_rows, stratify=y, random_state=seed)
    prepare = PREPROCESSING[name]().fit(X.astype(np.float32))
    X, X_test = (prepare.transform(part.astype(np.float32)) for part in (X, X_test))
    return X, y, X_test, y_test


def measured(n_anchors: int | str, problems: list[Any]) -> Fitted:
    """Fit on the problem of every seed."""
    runs = []
    for seed, (X, y, X_test, y_test) in enumerate(problems):
        model = SAPLClassifier(n_anchors, metric=None, random_state=seed, standardize=False)
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
        runs.append((100 * (1 - model.score(X_test, y_test)), model.n_anchors_, seconds))
    print(
        f"  {n_anchors:>4}: error {np.mean([run[0] for run in runs]):6.2f} %, "
        f"{np.mean([run[2] for run in runs]):7.2f} s",
        *(f"; seed {seed}: {run[0]:.2f} % with {run[1]}" for seed, run in enumerate(runs)),
        sep="", flush=True,
    )  # fmt: skip
    return Fitted(*np.mean(runs, axis=0).tolist())


def compare(name: str, n_seeds: int, n_rows: int | None) -> dict[str, Any]:
    """Fit the grid and "auto", and judge."""
    problems = [_problem(name, seed, n_rows) for seed in range(n_seeds)]
    print(f"{name}, {len(problems[0][1]):,} rows, {n_seeds} seeds", flush=True)
    grid = {m: measured(m, problems) for m in GRID}
    auto = measured("auto", problems)
    best = min(grid.values(), key=lambda fitted: fitted.error)
    ratios = {
        "error": auto.error - best.error,
        "anchors": auto.anchors / best.anchors,
        "time": auto.seconds / sum(fitted.seconds for fitted in grid.values()),
    }
    reached = all(ratios[what] <= most for what, most in MOST.items())
    print(
        f"{name}: {'reached' if reached else 'NOT reached'}; auto errs {ratios['error']:+.2f} "
        f"points beside the best, m={best.anchors:g}, with {ratios['anchors']:.2f} x its anchors, "
        f"in {ratios['time']:.2f} x the time of the grid",
        flush=True,
    )
    fits = {str(m): fitted._asdict() for m, fitted in [*grid.items(), ("auto", auto)]}
    return {"fits": fits, "ratios": ratios, "reached": reached}


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Compare on every set, print and return the numbers."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sapl_growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sets", nargs="*", metavar="set", help=f"of {', '.join(PREPROCESSING)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="at most so many training rows")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    unknown = set(args.sets) - set(PREPROCESSING)
    if unknown:
        parser.error(f"no such set: {', '.join(sorted(unknown))}")
    with pinned_threads(1):
        X = np.linspace(-1, 1, 200, dtype=np.float32)[:, None]
        SAPLClassifier("auto", max_iter=1, standardize=False).fit(X, X[:, 0] > 0)  # compiles
        results = {
            name: compare(name, args.seeds, args.rows) for name in args.sets or PREPROCESSING
        }
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return results


if __name__ == "__main__":
    main()
