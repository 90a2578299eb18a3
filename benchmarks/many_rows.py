"""Seconds, rows passed, error and memory of default fits, as rows grow.

Two classes in 20 features, ``y = [sin(2 x0) x1 + x2 x3 / 2 + 0.3 cos(3 x4) > 0]``, x standard
normal; error on 50,000 new rows. Each fit has a process of its own, one thread; memory is what it
takes above the data. LightGBM is run where it is installed.

``python -m benchmarks.many_rows [--rows 10000 100000 1000000] [--models ML3 SAPL boosting]``
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from loclin import LLSVMClassifier, ML3Classifier, SAPLClassifier


def lightgbm() -> Any:
    """Return LightGBM with its defaults, on one thread."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)


MODELS: dict[str, Callable[[], Any]] = {
    "ML3": lambda: ML3Classifier(random_state=0, standardize=False),
    "LL-SVM": lambda: LLSVMClassifier(random_state=0, standardize=False),
    "SAPL": lambda: SAPLClassifier(random_state=0, standardize=False),
    "ML3, whole passes": lambda: ML3Classifier(round_rows=None, random_state=0, standardize=False),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "LightGBM": lightgbm,
}


def sines(n: int, seed: int) -> tuple[Any, Any]:
    """Draw rows and labels."""
    X = np.random.default_rng(seed).standard_normal((n, 20))
    score = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] * X[:, 3] / 2 + 0.3 * np.cos(3 * X[:, 4])
    return X, (score > 0).astype(np.int32)


def measured(name: str, n: int) -> dict[str, float]:
    """Fit one model, and measure it."""
    with threadpool_limits(1):
        X, y = sines(3000, 2)
        MODELS[name]().fit(X, y).predict(X)  # compile
        X, y = sines(n, 1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        model, start = MODELS[name](), time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
        added = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        X_new, y_new = sines(50_000, 99)
        error = 100 * float(np.mean(model.predict(X_new) != y_new))
    return {
        "seconds": seconds, "passes": getattr(model, "t_", np.nan) / n, "error %": error,
        "memory over data": 1 + 1024 * added / X.nbytes,
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Print a line for each model and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["ML3", "SAPL", "boosting"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measured(options.models[0], int(options.rows[0]))))
        return []
    results = []
    for name in options.models:
        for n in map(int, options.rows):
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.many_rows", "--one"]
            command += ["--models", name, "--rows", str(n)]
            done = subprocess.run(command, capture_output=True, check=True)
            found = json.loads(done.stdout)
            results.append({"model": name, "rows": n} | found)
            told = ", ".join(f"{what} {value:.3g}" for what, value in found.items())
            print(f"{name:18s} {n:9d} rows: {told}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return results


if __name__ == "__main__":
    main()
