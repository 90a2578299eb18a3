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
from numba.core.event import Event, Listener, install_listener
from threadpoolctl import threadpool_limits

from loclin.cli._data import Data
from loclin.cli._errors import one_line
from loclin.cli._measure import (
    Answers,
    answers,
    figure,
    interval,
    loss,
    pareto_front,
    pickled_bytes,
    predict_seconds,
    stratified_rows,
)
from loclin.cli._settings import METRICS, Settings
from loclin.cli._systems import Shape, System, described
from loclin.cli._tune import Tuned, tune
from loclin.cli._workers import outcomes

__all__ = ["Result", "Skipped", "Step", "compare", "ranked"]

COMPILING = "compiling (the result is kept for later runs)"


@dataclass(frozen=True)
class Step:
    """What a system is doing, for the display."""

    model: str
    doing: str


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
    figures : mapping
        Every metric on the test rows; None where the model lacks what it needs.
    low, high : float
        The 95 % interval of the error (Wilson).
    fit_seconds : float
        Time of the last fit, scaling included.
    predict_seconds, predict_rows : float, int
        Time per row, scaling included, of predicting so many rows in one call.
    size_bytes : int
        Length of the fitted pipeline's pickle, without a table's encoder.
    parameters : mapping
        What was set in the last fit; empty: the defaults.
    tuned : Tuned
        How they were found.
    said : Answers
        For the test rows.
    front : bool
        Is no other row at least as good and as fast, and better in one.
    notes : tuple of str
        What else to know.
    """

    model: str
    own: bool
    baseline: bool
    figures: Mapping[str, float | None]
    low: float
    high: float
    fit_seconds: float
    predict_seconds: float
    predict_rows: int
    size_bytes: int
    parameters: Mapping[str, Any]
    tuned: Tuned
    said: Answers = field(repr=False)
    front: bool = False
    notes: tuple[str, ...] = ()


def compare(
    data: Data,
    systems: Sequence[System],
    settings: Settings,
    tell: Callable[[Step], None] = lambda step: None,
) -> Iterator[Result | Skipped]:
    """Yield one result after another, each as soon as it is there.

    Several systems run at once where there are several jobs, each in a process. Fits and
    predictions of one thread are timed in seconds of the processor, those of several
    threads by the clock.

    Parameters
    ----------
    data : Data
        Tuned and fitted on the training split, measured on the test split.
    systems : sequence of System
        What to compare.
    settings : Settings
        Metric, budget, folds, seed.
    tell : callable
        Called with every `Step`.
    """
    shape = described(data.X_train)
    run = partial(_outcome, data, shape, settings)
    refused = {system.name: system.refuses(shape) for system in systems}
    yield from (Skipped(name, reason) for name, reason in refused.items() if reason)
    systems = [system for system in systems if not refused[system.name]]
    if settings.jobs == 1 and not settings.time_limit:
        yield from (run(system, tell) for system in systems)
        return
    seconds = settings.time_limit or math.inf
    for system, outcome in outcomes(
        run, systems, count=settings.jobs, seconds=seconds, tell=tell
    ):
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
    tell: Callable[[Step], None],
) -> Result | Skipped:
    """Run one system."""
    step = partial(Step, system.name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tell(step("warming up"))
            compiling = install_listener("numba:compile", _Compiling(tell, system.name))
            with _threads(settings.threads), compiling:
                _warm_up(system, data, shape, settings.seed)
            with _threads(settings.threads):  # libraries may have been loaded by now
                return _run(system, data, shape, settings, tell)
    except Exception as error:  # one model's failure must not lose the others' results
        return Skipped(system.name, f"failed ({type(error).__name__}: {one_line(error)})")


def ranked(results: Sequence[Result], metric: str) -> list[Result]:
    """Return the results by a metric, then prediction time, with the front marked.

    The majority class bounds the front, since nothing slower and no better belongs on it,
    but is not marked: it is a floor, not a choice.
    """
    losses = [loss(metric, row.figures[metric]) for row in results]
    marks = pareto_front(losses, [row.predict_seconds for row in results])
    marked = [
        (lost, row.predict_seconds, replace(row, front=mark and not row.baseline))
        for lost, row, mark in zip(losses, results, marks, strict=True)
    ]
    return [row for *_, row in sorted(marked, key=lambda one: one[:2])]


class _Compiling(Listener):
    """Tells once that Numba compiles; what it finds on disk it does not compile."""

    def __init__(self, tell: Callable[[Step], None], model: str) -> None:
        self._waiting = [partial(tell, Step(model, COMPILING))]

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
    tell: Callable[[Step], None],
) -> Result:
    """Tune, refit and measure one system."""
    X, y = data.X_train, data.y_train
    step = partial(Step, system.name)

    def tuning(tried: int, best: float) -> None:
        best_so_far = f", best {best:.4g} in cross-validation" if tried else ""
        tell(step(f"tuning: {tried} tried{best_so_far}"))

    tuned = tune(system, data, shape, settings, tuning)
    model = system.make(tuned.drawn, shape, settings.seed)
    clock = process_time if settings.threads == 1 else perf_counter
    tell(step(f"fitting {len(y):,} rows"))
    start = clock()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    fit_seconds = clock() - start
    tell(step("timing predictions"))
    start = clock()
    model.predict(data.X_test)
    seconds, timed = predict_seconds(model, data.X_test, clock() - start, clock)
    said = answers(model, data.X_test, len(data.classes))
    wrong = int((said.predicted != data.y_test).sum())
    return Result(
        system.name,
        system.own,
        system.baseline,
        {metric: figure(metric, data.y_test, said) for metric in METRICS},
        *interval(wrong, len(data.y_test)),
        fit_seconds,
        seconds,
        timed,
        pickled_bytes(model),
        system.resolve(tuned.drawn, shape),
        tuned,
        said,
        notes=_notes(tuned, settings, caught),
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


def _notes(
    tuned: Tuned, settings: Settings, caught: Sequence[warnings.WarningMessage]
) -> tuple[str, ...]:
    """Say what a reader of the row should know."""
    notes = []
    if tuned.needed:
        notes.append("hardly tuned: the budget allowed few candidates")
    if tuned.tried > 1 and tuned.folds < settings.folds:
        notes.append(f"cross-validated on {tuned.folds} of {settings.folds} folds")
    notes += [f"warning in the last fit: {one_line(entry.message)}" for entry in caught]
    return tuple(dict.fromkeys(notes))
