"""Measuring a fitted classifier: figures and their interval, time, size, the front."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn import metrics

from loclin.cli._arrays import Matrix
from loclin.cli._settings import METRICS

__all__ = [
    "Answers",
    "answers",
    "chance",
    "figure",
    "interval",
    "loss",
    "pareto_front",
    "pickled_bytes",
    "predict_seconds",
    "stratified_rows",
]

REPEATS = 7
LEAST_SECONDS = 0.3  # quick calls are repeated for so long, to outlast a disturbance
TIMING_SECONDS = 2.0  # about the most that timing predictions of one model may take
LEAST_ROWS = 100  # a timed call predicts at least so many rows, where there are as many
RESAMPLED = 2_000_000  # values of all resamples together, 50 to 300 of them


@dataclass(frozen=True)
class Answers:
    """What a model says of rows.

    Attributes
    ----------
    predicted : ndarray of shape (n,)
        Classes, counted from 0.
    scores : ndarray of shape (n, n_classes)
        Probabilities or scores, by class.
    are_shares : bool
        Whether the scores are probabilities.
    """

    predicted: NDArray[Any]
    scores: NDArray[Any]
    are_shares: bool

    def of(self, rows: NDArray[Any]) -> Answers:
        """Return the answers for some of the rows."""
        return Answers(self.predicted[rows], self.scores[rows], self.are_shares)


def answers(model: Any, X: Any, n_classes: int, *, shares: bool = True) -> Answers:
    """Return what a fitted model says of rows.

    Parameters
    ----------
    model : classifier
        Of classes counted from 0.
    X : rows
    n_classes : int
        Of all rows; the model may know fewer.
    shares : bool
        Whether probabilities are wanted, where the model has some.
    """
    are_shares = hasattr(model, "predict_proba") and (
        shares or not hasattr(model, "decision_function")
    )
    found = np.asarray(
        model.predict_proba(X) if are_shares else model.decision_function(X)
    )
    found = np.stack([-found, found], axis=1) if found.ndim == 1 else found
    scores = np.full((len(found), n_classes), 0.0 if are_shares else -np.inf)
    scores[:, model.classes_] = found
    return Answers(model.predict(X), scores, are_shares)


def figure(metric: str, y: NDArray[Any], said: Answers) -> float | None:
    """Return a metric's figure; None for the log loss of a model without probabilities.

    Of two classes, the average precision is that of the rarer; of more, it is the mean over
    classes, and so is the AUC, of each against the others.

    Parameters
    ----------
    metric : str
    y : ndarray of shape (n,)
        Classes, counted from 0; -1 where training has no such label, which counts as an
        error and for nothing else.
    said : Answers
    """
    if metric == "error":
        return float(np.mean(said.predicted != y))
    y, said = (y, said) if (y >= 0).all() else (y[y >= 0], said.of(y >= 0))
    if metric == "balanced_accuracy":
        hits = said.predicted == y
        return float(np.mean([hits[y == label].mean() for label in np.unique(y)]))
    n_classes = said.scores.shape[1]
    if metric == "log_loss":
        if not said.are_shares:
            return None
        return float(metrics.log_loss(y, said.scores, labels=np.arange(n_classes)))
    score = {
        "auc": metrics.roc_auc_score,
        "average_precision": metrics.average_precision_score,
    }
    counts = np.bincount(y, minlength=n_classes)
    labels = np.flatnonzero((counts > 0) & (counts < len(y)))
    if n_classes == 2 and len(labels):
        labels = labels[[counts[labels].argmin()]]
    if not len(labels):
        return None
    return float(np.mean([score[metric](y == k, said.scores[:, k]) for k in labels]))


def loss(metric: str, value: float | None) -> float:
    """Return a figure such that lower is better, and infinity where there is none."""
    if value is None:
        return np.inf
    return 1.0 - value if METRICS[metric] else value


def chance(metric: str, y: NDArray[Any], one: Answers, other: Answers) -> float:
    """Return the p-value that two models are equally good, measured on the same rows.

    For the error, McNemar's exact test; else rows are drawn anew, with replacement.
    """
    if metric == "error":
        a, b = one.predicted != y, other.predicted != y
        only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
        return (
            float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
        )
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(int(np.clip(RESAMPLED / one.scores.size, 50, 300))):
        rows = rng.integers(len(y), size=len(y))
        figures = [
            loss(metric, figure(metric, y[rows], m.of(rows))) for m in (one, other)
        ]
        if np.isfinite(figures).all():
            differences.append(figures[0] - figures[1])
    if not differences:
        return 0.0
    above = np.mean(np.array(differences) > 0)
    equal = np.mean(np.array(differences) == 0)
    return float(min(1.0, 2 * min(above, 1 - above - equal) + equal))


def interval(wrong: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of an error rate, from errors and rows."""
    bounds = binomtest(wrong, total).proportion_ci(confidence_level=0.95, method="wilson")
    return float(bounds.low), float(bounds.high)


def pareto_front(losses: Sequence[float], costs: Sequence[float]) -> list[bool]:
    """Tell for each row whether no other is at least as good in both and better in one."""
    points = list(zip(losses, costs, strict=True))
    return [
        np.isfinite(point[0])
        and not any(
            other[0] <= point[0] and other[1] <= point[1] and other != point
            for other in points
        )
        for point in points
    ]


def predict_seconds(
    model: Any,
    X: Matrix,
    first_seconds: float,
    clock: Callable[[], float] = perf_counter,
) -> tuple[float, int]:
    """Time predictions in one call, and return the median seconds per row, and the rows.

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


def pickled_bytes(model: Any) -> int:
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


def stratified_rows(
    y: NDArray[Any], size: int, seed: int, least: int = 2
) -> NDArray[Any]:
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
