"""Tuning one system by cross-validated random search within a time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import sqrt
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler, StratifiedKFold

from loclin.cli._arrays import Matrix
from loclin.cli._data import Data
from loclin.cli._measure import answers, figure, loss, stratified_rows
from loclin.cli._settings import Settings
from loclin.cli._systems import Shape, System

__all__ = ["Tuned", "tune"]

MOST_ROWS = 20_000  # of more, some are drawn to tune on
WANTED = 5  # candidates that make a search
HOPELESS = 4.0  # standard errors behind the best, at which a candidate is dropped
# The search ends where so many candidates in a row have not brought the best down by this
# share of its standard error. By errors, with the standard error of a count, SVC, kNN and
# LinearSVC ended on digits, cancer and wine where 40 candidates do, but for SVC on cancer
# (1.41 for 1.17 %); 12 cost kNN up to 0.9 points. With that of folds it is not measured.
STILL = 20
MOVED = 0.25


@dataclass(frozen=True)
class Tuned:
    """What tuning found.

    Attributes
    ----------
    drawn : mapping
        The best candidate as drawn; `System.resolve` writes it out. Empty: the defaults.
    loss : float or None
        Its cross-validated figure, as `loclin.cli._measure.loss` has it; None where there was
        nothing to choose.
    folds, rows : int
        Folds that were scored, and rows they were made of.
    tried : int
        Candidates looked at, those dropped early included; none where there was nothing
        to choose.
    needed : float
        Seconds of a budget for a search, where this one's was too short; else 0.
    seconds : float
        What tuning took.
    """

    drawn: Mapping[str, Any]
    loss: float | None = None
    folds: int = 0
    rows: int = 0
    tried: int = 0
    needed: float = 0.0
    seconds: float = 0.0


class _Fold(NamedTuple):
    """Rows to fit to, and rows to measure on."""

    X: Matrix
    y: NDArray[Any]
    X_valid: Matrix
    y_valid: NDArray[Any]


def _spread(losses: Sequence[float]) -> float:
    """Return the standard deviation of a candidate's folds."""
    return float(np.std(losses, ddof=1)) if losses[1:] else 0.0


def tune(
    system: System,
    data: Data,
    shape: Shape,
    settings: Settings,
    tell: Callable[[int, float], None] = lambda tried, best: None,
) -> Tuned:
    """Search the space of ``system`` until the budget is spent.

    The first candidate comes first, then random ones in a fixed seeded order. The first
    is always evaluated, on as many folds as two budgets allow. The search ends early where
    the best one no longer moves.

    Parameters
    ----------
    system : System
        What to tune.
    data : Data
        Of which the training rows are used.
    shape : Shape
        Of the training rows.
    settings : Settings
        Metric, budget, folds, seed.
    tell : callable
        Called as ``tell(tried, best_loss)`` before each fit.

    Raises
    ------
    Exception
        What the first candidate raised, if every candidate failed.
    """
    start, y = perf_counter(), data.y_train
    if not system.space:
        return Tuned(system.start)
    rows = stratified_rows(y, MOST_ROWS, settings.seed, settings.folds)
    splits = _folds(y, rows, settings)
    fold = cache(lambda number: _encoded(data, *splits[number]))
    best: tuple[list[float], Mapping[str, Any]] | None = None
    bests: list[float] = []  # the lowest loss after each candidate
    failures, candidates = [], _candidates(system, settings)

    def score(drawn: Mapping[str, Any], number: int) -> float:
        tell(len(bests), bests[-1] if bests else 1.0)
        return _fit_and_score(system, drawn, fold(number), shape, settings)

    for drawn in candidates:
        end = start + settings.budget * (1 if best else 2)
        if best and (perf_counter() >= end or _still(bests, best[0])):
            break
        try:
            losses = _evaluate(partial(score, drawn), len(splits), end, best and best[0])
        except (ValueError, MemoryError, ArithmeticError, RuntimeError) as error:
            failures.append(error)
            losses = None
        if losses and (best is None or np.mean(losses) < np.mean(best[0])):
            best = losses, drawn
        bests.append(float(np.mean(best[0])) if best else 1.0)
    if best is None:
        raise failures[0]
    losses, drawn = best
    spent = perf_counter() - start
    enough = min(WANTED, len(bests) + sum(1 for _ in candidates))
    is_cut = len(bests) < enough or len(losses) < len(splits)
    needed = 0.0
    if is_cut and not system.own:  # loclin's own find what matters most in every fit
        needed = 2 * spent * enough * len(splits) / (len(bests) * len(losses))
    return Tuned(drawn, bests[-1], len(losses), len(rows), len(bests), needed, spent)


def _folds(
    y: NDArray[Any], rows: NDArray[Any], settings: Settings
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return stratified folds of rows, no more than the smallest class has of them."""
    count = min(settings.folds, int(np.bincount(y[rows]).min()))
    splitter = StratifiedKFold(count, shuffle=True, random_state=settings.seed)
    return [(rows[a], rows[b]) for a, b in splitter.split(rows, y[rows])]


def _encoded(data: Data, train: NDArray[Any], valid: NDArray[Any]) -> _Fold:
    """Return a fold; of a table, encoded by what its training rows tell, nothing more."""
    X, y = data.X_train, data.y_train
    if data.frame is None or data.encoder is None:
        return _Fold(X[train], y[train], X[valid], y[valid])
    encoder = clone(data.encoder)
    X = encoder.fit_transform(data.frame.iloc[train], y[train])
    return _Fold(X, y[train], encoder.transform(data.frame.iloc[valid]), y[valid])


def _fit_and_score(
    system: System,
    drawn: Mapping[str, Any],
    fold: _Fold,
    shape: Shape,
    settings: Settings,
) -> float:
    model = system.make(drawn, replace(shape, n_rows=len(fold.y)), settings.seed)
    shares = settings.metric == "log_loss"
    if not shares:
        model.set_params(**{
            name: False for name in model.get_params() if name.endswith("__calibrate")
        })  # fmt: skip
    model.fit(fold.X, fold.y)
    n_classes = int(fold.y.max() + 1)
    said = answers(model, fold.X_valid, n_classes, shares=shares)
    metric = settings.metric if not shares or said.are_shares else "error"
    return loss(metric, figure(metric, fold.y_valid, said))


def _candidates(system: System, settings: Settings) -> Iterator[Mapping[str, Any]]:
    """Yield the first candidate, then parameters drawn at random."""
    yield system.start
    count = settings.candidates - 1
    if not all(isinstance(values, list) for values in system.space.values()):
        if count > 0:
            yield from ParameterSampler(system.space, count, random_state=settings.seed)
        return
    grid = list(ParameterGrid(system.space)) if system.space else []
    order = np.random.default_rng(settings.seed).permutation(len(grid))
    yield from (grid[place] for place in order[:count])


def _evaluate(
    score: Callable[[int], float], n_folds: int, end: float, best: Sequence[float] | None
) -> list[float] | None:
    """Score a candidate; None if it is hopeless or time ran out.

    Without a best to compare with, running out of time keeps the folds done so far.
    """
    losses: list[float] = []
    for number in range(n_folds):
        losses.append(score(number))
        if best and _hopeless(losses, best):
            return None
        if perf_counter() >= end and len(losses) < n_folds:
            return None if best else losses
    return losses


def _hopeless(losses: Sequence[float], best: Sequence[float]) -> bool:
    """Tell whether a candidate cannot, or will hardly, come out below the best.

    It cannot once its losses add up to all of the best; it hardly will when it is far
    behind on the folds that both have seen.
    """
    n_seen = len(losses)
    if sum(losses) > sum(best):
        return True
    behind = float(np.mean(losses) - np.mean(best[:n_seen]))
    return behind > HOPELESS * max(_spread(best), 1e-9) / sqrt(n_seen)


def _still(bests: Sequence[float], best: Sequence[float]) -> bool:
    """Tell whether the last candidates have hardly moved the best."""
    if len(bests) <= STILL:
        return False
    return bests[-1 - STILL] - bests[-1] <= MOVED * _spread(best) / sqrt(len(best))
