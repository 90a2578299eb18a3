"""Kills fits and streams of every model (-9) at random moments, and goes on from their files.

``python -m tests.robustness.killed [n_kills]`` prints, for each: how much work a kill lost at most
and on average, how many resumed models score bit for bit what the uninterrupted one does, and the
test errors of both. Children are forked, so that they find everything compiled. The moments are
drawn from the seconds of a child that is not killed; where one has ended before its moment, another
moment is drawn, until so many kills are made.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import loclin
import loclin.io
from loclin.callbacks import Checkpoint

EVERY = 2  # iterations of a fit
ROWS, CALLS = 25, 4  # of a call of partial_fit; from one file to the next
SHORT = {"alpha": "scale", "random_state": 0, "tol": 0}
FITS = {
    "ML3": loclin.ML3Classifier(max_iter=30, **SHORT, standardize=False),
    "LL-SVM, sgd": loclin.LLSVMClassifier(max_iter=30, **SHORT, standardize=False),
    "LL-SVM, dual_cd": loclin.LLSVMClassifier(
        solver="dual_cd", max_iter=30, **SHORT, standardize=False
    ),
    "SAPL": loclin.SAPLClassifier(max_iter=30, **SHORT, standardize=False),
    "L3M, refined": loclin.L3MClassifier(**SHORT, standardize=False),
    "L3M, online": loclin.L3MClassifier(solver="online", max_iter=30, **SHORT, standardize=False),
    "US-SVM": loclin.USSVMClassifier(max_iter=30, random_state=0, tol=0),
}
STREAMS = ["ML3", "LL-SVM, sgd", "SAPL", "L3M, online", "US-SVM"]


class Count:
    """Tells another process how many iterations are done."""

    def __init__(self, done: Any) -> None:
        self.done = done

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Count the iteration."""
        self.done.value = len(estimator.objective_)


def fit(model: Any, X: Any, y: Any, path: Path, done: Any) -> Any:
    return model.set_callbacks(Count(done), Checkpoint(path, every=EVERY)).fit(X, y)


def stream(model: Any, X: Any, y: Any, path: Path, done: Any) -> Any:
    """Go on where the model is: its `t_` tells."""
    for first in range(int(getattr(model, "t_", 0)), len(y), ROWS):
        some = slice(first, first + ROWS)
        model.partial_fit(X[some], y[some], classes=np.unique(y))
        done.value = int(model.t_)
        if done.value % (ROWS * CALLS) == 0:
            loclin.io.save(model, path)
    return model


def done_in(path: Path, way: Callable[..., Any]) -> int:
    """Return the iterations, or the rows, that a file has."""
    if not path.exists():
        return 0
    model = loclin.io.load(path)
    return int(model.n_iter_ if way is fit else model.t_)


def kill_at(seconds: float | None, way: Callable[..., Any], *args: Any) -> bool:
    """Run in a child and kill it after so many seconds, if any; tell whether it was running."""
    child = multiprocessing.get_context("fork").Process(target=way, args=args)
    child.start()
    child.join(seconds)
    running = child.is_alive()
    child.kill()
    child.join()
    return running


def report(name: str, way: Callable[..., Any], n_kills: int, data: Any, folder: Path) -> None:
    """Print a row of the table."""
    X, X_test, y, y_test = data
    done = multiprocessing.Value("l", 0)
    fit(clone(FITS[name]), X, y, folder / "warm", done)  # compiles
    whole = way(clone(FITS[name]), X, y, folder / "whole", done)
    start = time.perf_counter()
    kill_at(None, way, clone(FITS[name]), X, y, folder / "child", done)
    seconds = time.perf_counter() - start
    expected, lost, errors, same = whole.decision_function(X_test), [], [], 0
    rng, drawn = np.random.default_rng(0), 0
    while len(lost) < n_kills:
        path = folder / f"{drawn}"
        drawn += 1
        done.value = 0
        if not kill_at(rng.uniform(0, seconds), way, clone(FITS[name]), X, y, path, done):
            continue
        lost.append(done.value - done_in(path, way))
        model = loclin.io.load(path) if path.exists() else clone(FITS[name])
        model = way(model, X, y, path, done)
        same += int(np.array_equal(model.decision_function(X_test), expected))
        errors.append(100 - 100 * model.score(X_test, y_test))
    unit, total = ("iterations", whole.n_iter_) if way is fit else ("rows", len(y))
    left = len([*folder.glob(".*.tmp")])
    print(
        f"{name + ', ' + way.__name__:24s} {seconds:5.1f} s {len(lost):3d} kills of {drawn:2d}   "
        f"lost {np.mean(lost):5.1f}, at most {max(lost):3d} of {total} {unit:10s}   "
        f"error {100 - 100 * whole.score(X_test, y_test):5.2f} %, resumed {np.mean(errors):5.2f} "
        f"({min(errors):.2f} to {max(errors):.2f})   {same:2d} the same   {left} files left over",
        flush=True,
    )


def main(n_kills: int = 20) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    data = train_test_split(X, y, random_state=0)
    several = np.random.default_rng(1).permutation(np.repeat(np.arange(len(data[2])), 5))
    of_stream = data[0][several], data[1], data[2][several], data[3]
    print(f"a file every {EVERY} iterations of a fit, every {ROWS * CALLS} rows of a stream")
    with threadpool_limits(1):
        for way, names, rows in ((fit, FITS, data), (stream, STREAMS, of_stream)):
            for name in names:
                with tempfile.TemporaryDirectory() as folder:
                    report(name, way, n_kills, rows, Path(folder))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(*map(int, sys.argv[1:]))
