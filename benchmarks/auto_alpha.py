"""How ``alpha="auto"`` was found: the best fixed rule over 24 data sets.

Of each set's training split (official, else all rows; at most 5,000 are used) a fifth is held out,
three times, standardised or with centred rows of unit norm. ML3 is fitted over a grid of
``alpha * n``; a rule ``alpha * n = constant + slope * mean ||x||^2`` is judged by its regret: how
far its error (interpolated over log alpha) is above the best one of the grid, relative to it.

``LOCLIN_DATA=FOLDER python -m benchmarks.auto_alpha [--jobs 2]``
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from loclin import ML3Classifier
from loclin.datasets import load
from reproduction.choices import PREPROCESSING

NAMES = [
    "letter", "usps", "pendigits", "optdigits", "satimage", "vowel", "segment", "dna", "banana",
    "ringnorm", "german", "heart", "ionosphere", "liver", "pima", "sonar", "spambase", "wdbc",
    "vehicle", "glass", "ijcnn1", "covtype_16pct", "isolet", "mnist",
]  # fmt: skip
ALPHA_N = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])
CONSTANTS = [0.01, 0.03, 0.05, 0.1, 0.3, 1.0]
SLOPES = [0.0, 0.01, 0.02, 0.03, 0.05, 0.08]


def errors(name: str, prepare: str, split: int) -> tuple[float, list[float]]:
    """Mean squared norm of the rows, and the error at every alpha of the grid."""
    data = load(name)
    X, y = data.X_train, data.y_train
    X = (X.toarray() if sparse.issparse(X) else X).astype(np.float32)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=split)
    X, y, X_test, y_test = X[:5000], y[:5000], X_test[:5000], y_test[:5000]
    scaler = PREPROCESSING[prepare]().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    seeds = range(3) if len(X) < 600 else range(1)
    with threadpool_limits(limits=1):
        found = [
            np.mean([
                1 - ML3Classifier(alpha=a / len(X), metric=None, random_state=s, standardize=False)
                .fit(X, y).score(X_test, y_test)
                for s in seeds
            ])
            for a in ALPHA_N
        ]  # fmt: skip
    return float(np.mean(np.sum(X.astype(float) ** 2, axis=1))), (100 * np.array(found)).tolist()


def regrets(results: list[tuple[float, Any]], constant: float, slope: float) -> list[float]:
    """Relative excess error of a rule on every problem."""
    excess = []
    for norm2, error in results:
        got = np.interp(np.log(constant + slope * norm2), np.log(ALPHA_N), error)
        excess.append((got - min(error)) / max(min(error), 1.0))
    return excess


def main(arguments: list[str] | None = None) -> None:
    """Print the errors over the grid, and the best rules."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    problems = list(product(options.names, ["standardise", "centre, unit rows"]))
    found = Parallel(options.jobs)(
        delayed(errors)(*problem, split) for problem in problems for split in range(3)
    )
    results = []
    print("alpha * n:", *ALPHA_N)
    for problem, runs in zip(
        problems, np.array_split(np.arange(len(found)), len(problems)), strict=True
    ):
        norm2 = float(np.mean([found[i][0] for i in runs]))
        error = np.mean([found[i][1] for i in runs], axis=0)
        results.append((norm2, error))
        print(f"{problem[0]:14s} {problem[1]:18s} {norm2:8.2f} ", *(f"{e:6.2f}" for e in error))
    rules = sorted(
        (float(np.mean(excess)), float(np.median(excess)), constant, slope)
        for constant, slope in product(CONSTANTS, SLOPES)
        for excess in [regrets(results, constant, slope)]
    )
    for mean, median, constant, slope in rules[:8]:
        print(f"regret {mean:.3f} (median {median:.3f}): alpha * n = {constant} + {slope} ||x||^2")


if __name__ == "__main__":
    main()
