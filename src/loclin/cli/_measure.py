"""Measuring a fitted classifier: errors and their interval, time, size, the Pareto front."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter

import numpy as np
from scipy.stats import binomtest
from sklearn import metrics
from sklearn.base import BaseEstimator

from loclin.cli._part import Matrix

__all__ = [
    "interval",
    "log_loss",
    "pareto_front",
    "pickled_bytes",
    "predict_seconds",
    "stratified_rows",
]

REPEATS = 7
LEAST_SECONDS = 0.3  # quick calls are repeated for so long, to outlast a disturbance
TIMING_SECONDS = 2.0  # about the most that timing predictions of one model may take
LEAST_ROWS = 100  # a timed call predicts at least so many rows, where there are as many


def interval(wrong: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of an error rate.

    Parameters
    ----------
    wrong, total : int
        Errors, and the rows they were counted on.
    """
    bounds = binomtest(wrong, total).proportion_ci(confidence_level=0.95, method="wilson")
    return float(bounds.low), float(bounds.high)


def log_loss(model: BaseEstimator, X: Matrix, y: np.ndarray) -> float | None:
    """Return the mean of -log P(label) over rows whose label training has.

    None for a model without probabilities.

    Parameters
    ----------
    model : classifier
        Fitted.
    X, y : ndarray or csr_array, ndarray
        Rows, and their classes, counted from 0; -1 where training has no such label.
    """
    if not hasattr(model, "predict_proba"):
        return None
    known = y >= 0
    X, y = X[known], y[known]
    labels = np.arange(max(y.max(), model.classes_.max()) + 1)
    probabilities = np.zeros((len(y), len(labels)))
    probabilities[:, model.classes_] = model.predict_proba(X)
    return float(metrics.log_loss(y, probabilities, labels=labels))


def pareto_front(errors: Sequence[float], costs: Sequence[float]) -> list[bool]:
    """Tell for each row whether no other is at least as good in both and better in one."""
    points = list(zip(errors, costs, strict=True))
    return [
        not any(
            other[0] <= point[0] and other[1] <= point[1] and other != point
            for other in points
        )
        for point in points
    ]


def predict_seconds(
    model: BaseEstimator,
    X: Matrix,
    first_seconds: float,
    clock: Callable[[], float] = perf_counter,
) -> tuple[float, int]:
    """Time predictions in one call, warmed up, and return the median seconds per row.

    Parameters
    ----------
    model : estimator
        Fitted, and warmed up by one prediction of ``X``.
    X : ndarray or csr_array
        The rows; fewer of them are timed where all would take too long.
    first_seconds : float
        What that first prediction took.
    clock : callable
        What tells the time.

    Returns
    -------
    (float, int)
        Seconds per row, and the number of rows in a call.
    """
    n_rows = X.shape[0]
    share = TIMING_SECONDS / (REPEATS * max(first_seconds, 1e-9))
    rows = X if share >= 1 else X[: max(min(LEAST_ROWS, n_rows), int(share * n_rows))]
    seconds: list[float] = []
    total = 0.0
    while len(seconds) < REPEATS or total < LEAST_SECONDS:
        start = clock()
        model.predict(rows)
        seconds.append(clock() - start)
        total += seconds[-1]
    return median(seconds) / rows.shape[0], rows.shape[0]


def pickled_bytes(model: BaseEstimator) -> int:
    """Return the length of the pickled model, without holding the pickle in memory."""
    counter = _Counter()
    pickle.Pickler(counter, protocol=5).dump(model)
    return counter.length


class _Counter:
    """A file that only counts what is written to it."""

    def __init__(self) -> None:
        self.length = 0

    def write(self, data: bytes | memoryview) -> int:
        size = memoryview(data).nbytes
        self.length += size
        return size


def stratified_rows(y: np.ndarray, size: int, seed: int, least: int = 2) -> np.ndarray:
    """Return sorted indices of about ``size`` rows, each class with its share of them.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Classes, counted from 0.
    size : int
        How many rows; all where there are no more.
    seed : int
        Seed of the draw.
    least : int
        A class keeps at least so many rows, where it has them.
    """
    if size >= len(y):
        return np.arange(len(y))
    rng = np.random.default_rng(seed)
    chosen = []
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        count = min(len(rows), max(least, round(size * len(rows) / len(y))))
        chosen.append(rng.choice(rows, count, replace=False))
    return np.sort(np.concatenate(chosen))
