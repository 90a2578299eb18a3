"""Tuning one system by cross-validated random search within a time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import ParameterSampler, StratifiedKFold

from loclin.cli._measure import stratified_rows
from loclin.cli._part import Matrix
from loclin.cli._settings import Settings
from loclin.cli._systems import Shape, System

__all__ = ["Tuned", "tune"]

PILOT_ROWS = 1000  # data of up to twice as many rows are tuned on all of them, untried
# of more, a fit to few rows may be long, and one is timed before the last
FEW_FEATURES = 1000
WANTED = 5  # candidates that the budget should at least allow for
HOPELESS = 3.0  # standard errors behind the best, at which a candidate is dropped
# The search ends where so many candidates in a row have not brought the best error down
# by this share of its standard error. On digits, cancer and wine, SVC, kNN and LinearSVC
# end where 40 candidates do, but for SVC on cancer (1.41 for 1.17 %, standard error 0.5);
# 12 cost kNN up to 0.9 points.
STILL = 20
MOVED = 0.25

Indices = tuple[np.ndarray, np.ndarray]  # of the rows of a fold to fit on, and to test on


@dataclass(frozen=True)
class Tuned:
    """What tuning found.

    Attributes
    ----------
    drawn : mapping
        The best candidate as drawn; `System.resolve` writes it out. Empty: the defaults.
    error : float or None
        Its cross-validated error; None where there was nothing to choose.
    folds, rows : int
        Folds that were scored, and rows they were made of.
    tried : int
        Candidates looked at, those dropped early included; none where there was nothing
        to choose.
    fit_seconds, fit_rows : float
        Mean time of one of its fits, and the rows of that fit; no time where it was not
        needed.
    seconds : float
        What tuning took.
    """

    drawn: Mapping[str, Any]
    error: float | None
    folds: int
    rows: int
    tried: int
    fit_seconds: float
    fit_rows: float
    seconds: float


class _Fold(NamedTuple):
    """One candidate on one fold:
    errors, rows they were counted on, the fit's time and rows.
    """

    wrong: int
    rows: int
    fit_seconds: float
    fit_rows: int


def _wrong(score: Sequence[_Fold]) -> int:
    return sum(fold.wrong for fold in score)


def _error(score: Sequence[_Fold]) -> float:
    return _wrong(score) / sum(fold.rows for fold in score)


class _Stopwatch:
    """Seconds since the start, without those in which others were called."""

    def __init__(self) -> None:
        self._start = perf_counter()

    def __call__(self) -> float:
        return perf_counter() - self._start

    def pause(
        self, function: Callable[[int, float], None], tried: int, error: float
    ) -> None:
        start = perf_counter()
        function(tried, error)
        self._start += perf_counter() - start


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
    candidate is always evaluated, on as many folds as two budgets allow. The search ends
    early where the interval of the best one's error no longer moves.

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
        Called as ``callback(tried, best_error)`` after each fit. Its time is not counted.

    Raises
    ------
    Exception
        What the first candidate raised, if every candidate failed.
    """
    if not system.space:
        return _untuned(system, X, y, shape, settings)
    spent = _Stopwatch()
    rows = _tuning_rows(system, X, y, shape, settings, spent)
    X, y = (X, y) if len(rows) == len(y) else (X[rows], y[rows])
    folds = _folds(y, settings)
    best: tuple[list[_Fold], Mapping[str, Any]] | None = None
    bests: list[float] = []  # the best error after each candidate
    failures = []

    def fit(drawn: Mapping[str, Any], fold: Indices) -> _Fold:
        spent.pause(callback, len(bests), bests[-1] if bests else 1.0)
        return _fit_and_count(system, drawn, X, y, fold, shape, settings.seed)

    for drawn in _candidates(system, settings):
        limit = settings.budget * (1 if best else 2)
        if best and (spent() >= limit or _still(bests, len(y))):
            break
        try:
            score = _evaluate(partial(fit, drawn), folds, spent, limit, best and best[0])
        except (ValueError, MemoryError, ArithmeticError, RuntimeError) as error:
            failures.append(error)
            score = None
        if score and (best is None or _error(score) < _error(best[0])):
            best = score, drawn
        bests.append(_error(best[0]) if best else 1.0)
    if best is None:
        raise failures[0]
    return _summary(*best, len(y), len(bests), spent())


def _untuned(
    system: System, X: Matrix, y: np.ndarray, shape: Shape, settings: Settings
) -> Tuned:
    """Return the defaults, where there is nothing to choose;
    of large data, time a fit of some.
    """
    spent, size = _Stopwatch(), _pilot_rows(y)
    if len(y) <= 2 * size and shape.n_features <= FEW_FEATURES:
        return Tuned(system.start, None, 0, 0, 0, 0.0, len(y), 0.0)
    rows = stratified_rows(y, size, settings.seed, settings.folds)
    X, y = X[rows], y[rows]
    timed = _fit_and_count(
        system, system.start, X, y, _folds(y, settings)[0], shape, settings.seed
    )
    return Tuned(
        system.start, None, 0, len(rows), 0, timed.fit_seconds, timed.fit_rows, spent()
    )


def _pilot_rows(y: np.ndarray) -> int:
    """Return the least rows to tune on: enough of each class."""
    return min(len(y), max(PILOT_ROWS, 20 * int(y.max() + 1)))


def _still(bests: Sequence[float], n_rows: int) -> bool:
    """Tell whether the last candidates have not moved the interval of the best error."""
    if len(bests) <= STILL:
        return False
    before, now = bests[-1 - STILL], bests[-1]
    return before - now <= MOVED * sqrt(before * (1 - before) / n_rows)


def _summary(
    score: Sequence[_Fold],
    drawn: Mapping[str, Any],
    n_rows: int,
    tried: int,
    seconds: float,
) -> Tuned:
    """Return what tuning found, from the folds of the best candidate."""
    fit_seconds = float(np.mean([fold.fit_seconds for fold in score]))
    fit_rows = float(np.mean([fold.fit_rows for fold in score]))
    return Tuned(
        drawn, _error(score), len(score), n_rows, tried, fit_seconds, fit_rows, seconds
    )


def _candidates(system: System, settings: Settings) -> Iterator[Mapping[str, Any]]:
    """Yield the first candidate, then parameters drawn at random."""
    yield system.start
    lists = [len(values) for values in system.space.values() if isinstance(values, list)]
    count = settings.candidates - 1
    # the sampler draws such a grid without replacement
    if len(lists) == len(system.space):
        count = min(count, int(np.prod(lists)) if lists else 0)
    if count > 0:
        yield from ParameterSampler(system.space, count, random_state=settings.seed)


def _folds(y: np.ndarray, settings: Settings) -> list[Indices]:
    """Return stratified folds, as many as the smallest class has rows if that is fewer."""
    count = min(settings.folds, int(np.bincount(y).min()))
    splitter = StratifiedKFold(count, shuffle=True, random_state=settings.seed)
    return list(splitter.split(np.zeros(len(y)), y))


def _evaluate(
    fit: Callable[[Indices], _Fold],
    folds: list[Indices],
    spent: _Stopwatch,
    limit: float,
    best: Sequence[_Fold] | None,
) -> list[_Fold] | None:
    """Score a candidate; None if it is hopeless or time ran out.

    Without a best to compare with, running out of time keeps the folds done so far.
    """
    score: list[_Fold] = []
    for fold in folds:
        score.append(fit(fold))
        if best and _hopeless(score, best):
            return None
        if spent() >= limit and len(score) < len(folds):
            return None if best else score
    return score


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
    model.set_params(**{  # errors need no probabilities
        name: False for name in model.get_params() if name.endswith("__calibrate")
    })  # fmt: skip
    X_train, y_train = X[train], y[train]
    start = perf_counter()
    model.fit(X_train, y_train)
    seconds = perf_counter() - start
    wrong = int((model.predict(X[valid]) != y[valid]).sum())
    return _Fold(wrong, len(valid), seconds, len(train))


def _hopeless(score: Sequence[_Fold], best: Sequence[_Fold]) -> bool:
    """Tell whether a candidate cannot, or will hardly, come out below the best.

    It cannot once it has made all the errors of the best; it hardly will when, on the
    folds both have seen, it is behind by three standard errors of the difference of two
    counts.
    """
    wrong, same = _wrong(score), _wrong(best[: len(score)])
    return wrong > _wrong(best) or wrong - same > HOPELESS * sqrt(wrong + same)


def _tuning_rows(
    system: System,
    X: Matrix,
    y: np.ndarray,
    shape: Shape,
    settings: Settings,
    spent: _Stopwatch,
) -> np.ndarray:
    """Choose the rows to tune on:
    all, or a stratified part that allows several candidates.

    Fits of growing parts are timed, each three times the last, while the next one still
    lets the budget hold `WANTED` candidates.
    """
    n, size = len(y), _pilot_rows(y)
    if n <= 2 * size:
        return np.arange(n)
    while True:
        rows = stratified_rows(y, size, settings.seed, settings.folds)
        fold = _folds(y[rows], settings)[0]
        start = perf_counter()
        _fit_and_count(system, system.start, X[rows], y[rows], fold, shape, settings.seed)
        needed = WANTED * settings.folds * (perf_counter() - start)
        left = settings.budget - spent()
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
