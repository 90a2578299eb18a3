"""What a learned metric gives: errors without one, with the diagonal, and with the one chosen.

Of each set's training split (official, else all rows) at most 3,000 rows are learned from and 8,000
others looked at, standardised, in single precision: five such parts of small sets, two of others.
Then the geometric mean over the sets of the errors over those without a metric, and the median and
most of the time of a fit over that without. ``--noise 50`` adds so many columns of noise.
``--official`` takes all rows of the official splits (a third of the rows where there is none),
three seeds, the whole matrix too, and the default alpha.

``LOCLIN_DATA=FOLDER python -m benchmarks.metric [letter usps] [--noise 50] [--rows 3000]``
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from benchmarks._timing import pinned_threads
from loclin import LLSVMClassifier, ML3Classifier, SAPLClassifier
from loclin.datasets import load

SETS = [
    "segment", "vowel", "sonar", "glass", "heart", "ionosphere", "wdbc", "vehicle", "german",
    "pima", "dna", "optdigits", "satimage", "spambase", "ringnorm", "pendigits", "ijcnn1",
    "covtype_16pct", "letter", "usps",
]  # fmt: skip
MODELS: dict[str, Any] = {"ML3": ML3Classifier, "SAPL": SAPLClassifier, "LL-SVM": LLSVMClassifier}
METRICS = [None, "diagonal", "auto"]
PIXELS = ["mnist"]  # most of them zero: scaled, not standardised
OFFICIAL = ["letter", "usps", "covtype_16pct", "mnist"]
MOST_HELD_OUT, SMALL = 8000, 1000


def parts(name: str, n_rows: int, n_noise: int) -> list[Any]:
    """Rows and labels to learn from and to look at, for each seed."""
    data: Any = load(name)
    X, y = data.X_train, data.y_train
    X = (X.toarray() if sparse.issparse(X) else np.asarray(X)).astype(np.float32)
    found = []
    for seed in range(5 if len(y) < SMALL else 2):
        rng = np.random.default_rng(100 + seed)
        noise = rng.standard_normal((len(y), n_noise)).astype(np.float32)
        n_train = min(n_rows, 2 * len(y) // 3)
        X_train, X_test, y_train, y_test = train_test_split(
            np.hstack([X, noise]), y, train_size=n_train, stratify=y, random_state=100 + seed,
            test_size=min(MOST_HELD_OUT, len(y) - n_train),
        )  # fmt: skip
        scaler = StandardScaler().fit(X_train)
        found.append((scaler.transform(X_train), y_train, scaler.transform(X_test), y_test))
    return found


def official(name: str) -> list[Any]:
    """Rows and labels of the official split, for each of three seeds."""
    data: Any = load(name)
    X, y = data.X_train, data.y_train
    X = (X.toarray() if sparse.issparse(X) else np.asarray(X)).astype(np.float32)
    if data.X_test is None:
        X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    else:
        X_test, y_test = data.X_test, data.y_test
        X_test = X_test.toarray() if sparse.issparse(X_test) else np.asarray(X_test)
    scaler = (MaxAbsScaler() if name in PIXELS else StandardScaler()).fit(X)
    return [(scaler.transform(X), y, scaler.transform(X_test.astype(X.dtype)), y_test)] * 3


def measured(cls: Any, metric: str | None, problems: list[Any], alpha: str) -> dict[str, float]:
    """Return the mean error in %, and the seconds of a fit."""
    errors, seconds, weighed = [], [], []
    for seed, (X, y, X_test, y_test) in enumerate(problems):
        model = cls(alpha=alpha, metric=metric, random_state=seed)
        start = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - start)
        errors.append(100 * (1 - model.score(X_test, y_test)))
        weighed.append(np.ptp(getattr(model, "feature_weights_", np.ones(1))) > 0)
    return {
        "error": float(np.mean(errors)),
        "seconds": float(np.median(seconds)),
        "weighed": float(np.mean(weighed)),
    }


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure on every set, print and return the numbers."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.metric",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sets", nargs="*", metavar="set")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--noise", type=int, default=0)
    parser.add_argument("--official", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    metrics = [*METRICS, "full"] if args.official else METRICS
    alpha = "auto" if args.official else "scale"
    results: dict[str, Any] = {}
    with pinned_threads(1):
        for name in args.sets or (OFFICIAL if args.official else SETS):
            problems = official(name) if args.official else parts(name, args.rows, args.noise)
            for of_model, cls in MODELS.items():
                cls(alpha="scale", max_iter=1).fit(*problems[0][:2])  # compiles
                for metric in metrics:
                    found = measured(cls, metric, problems, alpha)
                    results.setdefault(of_model, {}).setdefault(str(metric), {})[name] = found
            print(f"{name:14s}", *(
                f"{of_model} " + " ".join(f"{by[str(m)][name]['error']:5.2f}" for m in metrics)
                for of_model, by in results.items()
            ), sep="  ", flush=True)  # fmt: skip
    for of_model, by in results.items():
        for metric in map(str, metrics[1:]):
            now, plain = by[metric], by["None"]
            # half an error in a thousand: no set counts for all
            ratio = [(now[s]["error"] + 0.05) / (plain[s]["error"] + 0.05) for s in plain]
            took = [now[s]["seconds"] / plain[s]["seconds"] for s in plain]
            print(f"{of_model:7s} {metric:9s} errors {np.exp(np.mean(np.log(ratio))):.3f}, "
                  f"time {np.median(took):.2f} (at most {max(took):.2f})")  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return results


if __name__ == "__main__":
    main()
