"""Tuning one system by cross-validated random search within a time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, cpu_count, delayed
from sklearn.model_selection import ParameterSampler, StratifiedKFold
from threadpoolctl import threadpool_limits

from loclin.cli._measure import stratified_rows
from loclin.cli._part import Matrix
from loclin.cli._settings import Settings
from loclin.cli._systems import Shape, System

__all__ = ["Tuned", "tune"]

PILOT_ROWS = 1000  # data of up to twice as many rows are tuned on all of them, untried
WANTED = 5  # candidates that the budget should at least allow for
HOPELESS = 3.0  # standard errors behind the best, at which a candidate is dropped

Indices = tuple[np.ndarray, np.ndarray]  # of the rows of a fold to fit on, and to test on
In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(frozen=True)
class Tuned:
    """What tuning found.

    Attributes
    ----------
    drawn : mapping
        The best candidate as drawn; `System.resolve` writes it out. Empty: the defaults.
    error : float
        Its cross-validated error.
    folds, rows : int
        Folds that were scored, and rows they were made of.
    tried : int
        Candidates looked at, those dropped early included.
    fit_seconds, fit_rows : float
        Mean time of one of its fits, and the rows of that fit.
    seconds : float
        What tuning took.
    """

    drawn: Mapping[str, Any]
    error: float
    folds: int
    rows: int
    tried: int
    fit_seconds: float
    fit_rows: float
    seconds: float


class _Fold(NamedTuple):
    """One candidate on one fold: errors, rows they were counted on, the fit's time and rows."""

    wrong: int
    rows: int
    fit_seconds: float
    fit_rows: int


def _wrong(score: Sequence[_Fold]) -> int:
    return sum(fold.wrong for fold in score)


def _error(score: Sequence[_Fold]) -> float:
    return _wrong(score) / sum(fold.rows for fold in score)


def tune(
    system: System,
    X: Matrix,
    y: np.ndarray,
    shape: Shape,
    settings: Settings,
    callback: Callable[[int, float], None] = lambda tried, error: None,
) -> Tuned:
    """Search the space of ``system`` until the budget is spent.

    The default parameters come first, then random ones in a fixed seeded order. The first
    candidate is always evaluated, on as many folds as two budgets allow.

    Parameters
    ----------
    system : System
        What to tune.
    X, y : ndarray or csr_array, ndarray
        The training split.
    shape : Shape
        Of the training split.
    settings : Settings
        Budget, folds, seed.
    callback : callable
        Called as ``callback(tried, best_error)`` after each candidate.

    Raises
    ------
    Exception
        What the first candidate raised, if every candidate failed.
    """
    start = perf_counter()
    rows = _tuning_rows(system, X, y, shape, settings, start + settings.budget)
    X, y = (X, y) if len(rows) == len(y) else (X[rows], y[rows])
    folds = _folds(y, settings)
    best: tuple[list[_Fold], Mapping[str, Any]] | None = None
    tried, failures = 0, []
    for drawn in _candidates(system, settings):
        limit = start + settings.budget * (1 if best else 2)
        if best and perf_counter() >= limit:
            break
        try:
            score = _evaluate(system, drawn, X, y, folds, shape, settings, limit, best and best[0])
        except (ValueError, MemoryError, ArithmeticError, RuntimeError) as error:
            failures.append(error)
            score = None
        tried += 1
        if score and (best is None or _error(score) < _error(best[0])):
            best = score, drawn
        callback(tried, _error(best[0]) if best else 1.0)
    if best is None:
        raise failures[0]
    return _summary(*best, len(y), tried, perf_counter() - start)


def _summary(
    score: Sequence[_Fold], drawn: Mapping[str, Any], n_rows: int, tried: int, seconds: float
) -> Tuned:
    """Return what tuning found, from the folds of the best candidate."""
    fit_seconds = float(np.mean([fold.fit_seconds for fold in score]))
    fit_rows = float(np.mean([fold.fit_rows for fold in score]))
    return Tuned(drawn, _error(score), len(score), n_rows, tried, fit_seconds, fit_rows, seconds)


def _candidates(system: System, settings: Settings) -> Iterator[Mapping[str, Any]]:
    """Yield the first candidate, then parameters drawn at random."""
    yield system.start
    lists = [len(values) for values in system.space.values() if isinstance(values, list)]
    count = settings.candidates - 1
    if len(lists) == len(system.space):  # the sampler draws such a grid without replacement
        count = min(count, int(np.prod(lists)) if lists else 0)
    if count > 0:
        yield from ParameterSampler(system.space, count, random_state=settings.seed)


def _folds(y: np.ndarray, settings: Settings) -> list[Indices]:
    """Return stratified folds, as many as the smallest class has rows if that is fewer."""
    count = min(settings.folds, int(np.bincount(y).min()))
    splitter = StratifiedKFold(count, shuffle=True, random_state=settings.seed)
    return list(splitter.split(np.zeros(len(y)), y))


def _evaluate(
    system: System,
    drawn: Mapping[str, Any],
    X: Matrix,
    y: np.ndarray,
    folds: list[Indices],
    shape: Shape,
    settings: Settings,
    limit: float,
    best: Sequence[_Fold] | None,
) -> list[_Fold] | None:
    """Score a candidate; None if it is hopeless or time ran out.

    Without a best to compare with, running out of time keeps the folds done so far.
    """
    score: list[_Fold] = []

    def one(fold: Indices) -> _Fold:
        return _fit_and_count(system, drawn, X, y, fold, shape, settings.seed)

    for first in range(0, len(folds), settings.jobs):
        for result in _map(one, folds[first : first + settings.jobs], settings.threads):
            score.append(result)
            if best and _hopeless(score, best):
                return None
        if perf_counter() >= limit and len(score) < len(folds):
            return None if best else score
    return score


def _map(function: Callable[[In], Out], items: Sequence[In], threads: int) -> list[Out]:
    """Apply ``function`` to the items, in threads that share the cores where there are several."""
    if len(items) == 1:
        return [function(items[0])]
    limit = threads or max(1, cpu_count() // len(items))

    def limited(item: In) -> Out:
        with threadpool_limits(limits=limit):  # OpenMP's limit holds for one thread only,
            return function(item)

    with threadpool_limits(limits=limit):  # BLAS's for all, so that it must be put back once
        return list(
            Parallel(len(items), prefer="threads")(delayed(limited)(item) for item in items)
        )


def _fit_and_count(
    system: System,
    drawn: Mapping[str, Any],
    X: Matrix,
    y: np.ndarray,
    fold: Indices,
    shape: Shape,
    seed: int,
) -> _Fold:
    """Fit on one part of a fold and count the errors on the other."""
    train, valid = fold
    model = system.make(drawn, replace(shape, n_rows=len(train)), seed)
    X_train, y_train = X[train], y[train]
    start = perf_counter()
    model.fit(X_train, y_train)
    seconds = perf_counter() - start
    wrong = int((model.predict(X[valid]) != y[valid]).sum())
    return _Fold(wrong, len(valid), seconds, len(train))


def _hopeless(score: Sequence[_Fold], best: Sequence[_Fold]) -> bool:
    """Tell whether a candidate cannot, or will hardly, come out below the best.

    It cannot once it has made all the errors of the best; it hardly will when, on the folds both
    have seen, it is behind by three standard errors of the difference of two counts.
    """
    wrong, same = _wrong(score), _wrong(best[: len(score)])
    return wrong > _wrong(best) or wrong - same > HOPELESS * sqrt(wrong + same)


def _tuning_rows(
    system: System, X: Matrix, y: np.ndarray, shape: Shape, settings: Settings, limit: float
) -> np.ndarray:
    """Choose the rows to tune on: all, or a stratified part that allows several candidates.

    Fits of growing parts are timed, each three times the last, while the next one still lets
    the budget hold `WANTED` candidates.
    """
    n, size = len(y), min(len(y), max(PILOT_ROWS, 20 * int(y.max() + 1)))
    if n <= 2 * size or not system.space:
        return np.arange(n)
    while True:
        rows = stratified_rows(y, size, settings.seed, settings.folds)
        fold = _folds(y[rows], settings)[0]
        start = perf_counter()
        _fit_and_count(system, system.start, X[rows], y[rows], fold, shape, settings.seed)
        needed = WANTED * settings.folds * (perf_counter() - start)
        left = limit - perf_counter()
        bigger = min(n, 3 * size)
        if needed * (bigger / size) ** system.growth > left:
            break
        if bigger == n:
            return np.arange(n)
        size = bigger
    fitting = size * (max(left, 0.0) / needed) ** (1 / system.growth)
    return stratified_rows(
        y, int(min(max(fitting, PILOT_ROWS), bigger)), settings.seed, settings.folds
    )
