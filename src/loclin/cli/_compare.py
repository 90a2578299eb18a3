"""The comparison itself: tune, refit, measure. Nothing here prints."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numba
import numpy as np
from numba.core.event import Event, Listener, install_listener
from scipy.sparse import issparse
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from loclin.cli._data import Data
from loclin.cli._errors import one_line
from loclin.cli._measure import (
    interval,
    log_loss,
    pareto_front,
    pickled_bytes,
    predict_seconds,
    stratified_rows,
)
from loclin.cli._settings import Settings
from loclin.cli._systems import Shape, System
from loclin.cli._tune import Tuned, tune
from loclin.cli._workers import Workers

__all__ = ["COMPILING", "Result", "Skipped", "Step", "compare", "ranked"]

PATIENCE = 15.0  # the last fit may take so many budgets, ...
PATIENCE_STEEP = 4.0  # ... that of a super-linear model so many
COMPILING = "compiling (the result is kept for later runs)"


@dataclass(frozen=True)
class Step:
    """What a system is doing, for the display; it is timed where it asks to be alone."""

    model: str
    doing: str
    tried: int = 0
    error: float | None = None
    alone: bool = False


@dataclass(frozen=True)
class Skipped:
    """A system that gave no result, and why."""

    model: str
    reason: str
    timed_out: bool = False


@dataclass(frozen=True)
class Result:
    """One row of the comparison.

    Attributes
    ----------
    model : str
        The system's name.
    own, baseline : bool
        Is it loclin's; is it the majority class.
    error, low, high : float
        Share of test rows predicted wrong, and its 95 % interval (Wilson).
    log_loss : float or None
        Of the test rows; None for a model without probabilities.
    fit_seconds, fit_rows : float, int
        Time of the last fit, scaling included, and the rows it had.
    predict_seconds, predict_rows : float, int
        Time per row, scaling included, of predicting so many rows in one call.
    size_bytes : int
        Length of the fitted pipeline's pickle.
    parameters : mapping
        What was set in the last fit; empty: the defaults.
    tuned : Tuned
        How they were found.
    wrong : ndarray of shape (n_test,)
        Which test rows were predicted wrong.
    front : bool
        Is no other row at least as accurate and as fast, and better in one.
    notes : tuple of str
        What else to know.
    """

    model: str
    own: bool
    baseline: bool
    error: float
    low: float
    high: float
    fit_seconds: float
    fit_rows: int
    predict_seconds: float
    predict_rows: int
    size_bytes: int
    parameters: Mapping[str, Any]
    tuned: Tuned
    wrong: np.ndarray = field(repr=False)
    log_loss: float | None = None
    front: bool = False
    notes: tuple[str, ...] = ()


def compare(
    data: Data,
    systems: Sequence[System],
    settings: Settings,
    callback: Callable[[Step], None] = lambda step: None,
) -> Iterator[Result | Skipped]:
    """Yield one result after another, each as soon as it is there.

    Several systems are tuned at once where there are several jobs, each in a process.
    Fits and predictions of one thread are timed in seconds of the processor; those of
    several threads by the clock, while all others wait.

    Parameters
    ----------
    data : Data
        Tuned and fitted on the training split, measured on the test split.
    systems : sequence of System
        What to compare.
    settings : Settings
        Budget, folds, seed.
    callback : callable
        Called with every `Step`.
    """
    shape = describe(data)
    run = partial(_outcome, data, shape, settings)
    refused = {system.name: system.refuses(shape) for system in systems}
    yield from (Skipped(name, reason) for name, reason in refused.items() if reason)
    systems = [system for system in systems if not refused[system.name]]
    if settings.jobs == 1 and not settings.time_limit:
        yield from (run(system, callback) for system in systems)
        return
    seconds = settings.time_limit or math.inf
    with Workers(run, settings.jobs, seconds) as workers:
        for system, outcome in workers(systems, callback):
            if isinstance(outcome, TimeoutError):
                reason = f"timed out after {seconds:g} s (--time-limit)"
                yield Skipped(system.name, reason, timed_out=True)
            elif isinstance(outcome, ChildProcessError):
                yield Skipped(system.name, f"failed ({outcome})")
            else:
                yield outcome


def _outcome(
    data: Data,
    shape: Shape,
    settings: Settings,
    system: System,
    callback: Callable[[Step], None],
) -> Result | Skipped:
    """Run one system."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            callback(Step(system.name, "warming up"))
            compiling = install_listener(
                "numba:compile", _Compiling(callback, system.name)
            )
            with _threads(settings.threads), compiling:
                _warm_up(system, data, shape, settings.seed)
            with _threads(settings.threads):  # libraries may have been loaded by now
                return _run(system, data, shape, settings, callback)
    except Exception as error:  # one model's failure must not lose the others' results
        return Skipped(system.name, f"failed ({type(error).__name__}: {one_line(error)})")


def describe(data: Data) -> Shape:
    """Return the shape of the training split, with the variance that scaling leaves it."""
    X = data.X_train
    if not issparse(X):
        constant = np.ptp(X, axis=0) == 0
        return Shape(X.shape[0], X.shape[1], variance=float(1 - constant.mean()))
    scaled = MaxAbsScaler().fit_transform(X)
    mean = scaled.mean()
    variance = float(scaled.power(2).mean() - mean * mean)
    return Shape(X.shape[0], X.shape[1], sparse=True, variance=variance)


def ranked(results: Sequence[Result]) -> list[Result]:
    """Return the results by test error, then prediction time, with the front marked.

    The majority class bounds the front, since nothing slower and no better belongs on it,
    but is not marked: it is a floor, not a choice.
    """
    marks = pareto_front(
        [row.error for row in results], [row.predict_seconds for row in results]
    )
    marked = [
        replace(row, front=mark and not row.baseline)
        for row, mark in zip(results, marks, strict=True)
    ]
    return sorted(marked, key=lambda row: (row.error, row.predict_seconds))


class _Compiling(Listener):
    """Tells once that Numba compiles; what it finds on disk it does not compile."""

    def __init__(self, callback: Callable[[Step], None], model: str) -> None:
        self._waiting = [partial(callback, Step(model, COMPILING))]

    def on_start(self, event: Event) -> None:
        if self._waiting:
            self._waiting.pop()()

    def on_end(self, event: Event) -> None:
        pass


@contextmanager
def _threads(threads: int) -> Iterator[None]:
    """Hold BLAS, OpenMP and Numba to so many threads; 0 leaves them as they are."""
    if threads == 0:
        yield
        return
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        numba.set_num_threads(before)


def _run(
    system: System,
    data: Data,
    shape: Shape,
    settings: Settings,
    callback: Callable[[Step], None],
) -> Result:
    """Tune, refit and measure one system."""
    X, y = data.X_train, data.y_train

    step = partial(Step, system.name)
    tuned = tune(
        system, X, y, shape, settings, lambda *best: callback(step("tuning", *best))
    )
    rows = _fitting_rows(system, tuned, y, settings)
    here = replace(shape, n_rows=len(rows))
    model = system.make(tuned.drawn, here, settings.seed)
    X, y = (X, y) if len(rows) == len(y) else (X[rows], y[rows])
    many_threads = settings.threads != 1
    callback(
        step(f"fitting {len(rows):,} rows", tuned.tried, tuned.error, alone=many_threads)
    )
    clock = perf_counter if many_threads else process_time
    start = clock()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    fit_seconds = clock() - start
    callback(step("timing predictions", tuned.tried, tuned.error, alone=many_threads))
    start = clock()
    wrong = model.predict(data.X_test) != data.y_test
    seconds, timed = predict_seconds(model, data.X_test, clock() - start, clock)
    low, high = interval(int(wrong.sum()), len(wrong))
    return Result(
        system.name,
        system.own,
        system.baseline,
        float(wrong.mean()),
        low,
        high,
        fit_seconds,
        len(rows),
        seconds,
        timed,
        pickled_bytes(model),
        system.resolve(tuned.drawn, here),
        tuned,
        wrong,
        log_loss(model, data.X_test, data.y_test),
        notes=_notes(tuned, len(rows), len(data.y_train), settings, caught),
    )


def _warm_up(system: System, data: Data, shape: Shape, seed: int) -> None:
    """Fit and predict some rows, so that compiling is not taken for fitting.

    Of very few rows, codes and scores are others, and what is compiled for them is of no
    use.
    """
    X, y = data.X_train, data.y_train
    rows = stratified_rows(y, 200, seed, 5)
    try:
        model = system.make(system.start, replace(shape, n_rows=len(rows)), seed)
        model.set_params(**{
            name: 2 for name in model.get_params() if name.endswith(("__max_iter", "__n_folds"))
        })  # fmt: skip
        model.fit(X[rows], y[rows]).predict(X[rows])
    except (ValueError, ArithmeticError, RuntimeError):
        pass  # too few rows for the defaults; tuning will tell if it is anything else


def _fitting_rows(
    system: System, tuned: Tuned, y: np.ndarray, settings: Settings
) -> np.ndarray:
    """Choose the rows of the last fit: all, unless that would take many budgets."""
    patience = PATIENCE if system.growth <= 1 else PATIENCE_STEEP
    allowed = patience * max(settings.budget, 1.0)
    expected = tuned.fit_seconds * (len(y) / tuned.fit_rows) ** system.growth
    if expected <= allowed:
        return np.arange(len(y))
    size = tuned.fit_rows * (allowed / tuned.fit_seconds) ** (1 / system.growth)
    return stratified_rows(y, int(max(size, tuned.rows)), settings.seed)


def _notes(
    tuned: Tuned,
    fit_rows: int,
    n_rows: int,
    settings: Settings,
    caught: Sequence[warnings.WarningMessage],
) -> tuple[str, ...]:
    """Say what a reader of the row should know."""
    notes = []
    if fit_rows < n_rows:
        notes.append(f"fitted on {fit_rows:,} of {n_rows:,} rows")
    if tuned.tried and tuned.rows < n_rows:
        notes.append(f"tuned on {tuned.rows:,} of {n_rows:,} rows")
    if tuned.tried > 1 and tuned.folds < settings.folds:
        notes.append(f"cross-validated on {tuned.folds} of {settings.folds} folds")
    notes += [f"warning in the last fit: {one_line(entry.message)}" for entry in caught]
    return tuple(dict.fromkeys(notes))
