"""How much the members of an ensemble count, and how sure its scores are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.engine.data import Floats, Labels, Matrix
from loclin.engine.scores import difference
from loclin.ensemble.members import Kinds, factors_of, mean_scores
from loclin.ensemble.selection import select
from loclin.fitting.probability import StreamedTemperature
from loclin.fitting.temperature import rescaled, smoothing_of, spread, temperature_of

_ROWS_REMEMBERED = 20_000  # rows of a stream that the units of scores remember, about
_MOST_SCORED = 500  # rows of a call


class Weighing(NamedTuple):
    """How much each of k kinds of member counts, and how sure their mean score is.

    Parameters
    ----------
    shares : ndarray of shape (k,)
        They sum to one.
    units : ndarray of shape (k,)
        What the kinds' scores are divided by: their spread.
    temperature, smoothing : float
        Of the probabilities.
    """

    shares: NDArray[np.float64]
    units: NDArray[np.float64]
    temperature: float
    smoothing: float


def evenly(n_kinds: int, n_rows: int) -> Weighing:
    """Return what is so before rows have told anything."""
    shares, units = np.full(n_kinds, 1 / n_kinds), np.ones(n_kinds)
    return Weighing(shares, units, 1.0, smoothing_of(n_rows))


def weighing_by(
    kinds: Kinds,
    X: Matrix,
    y: Labels,
    weights: Floats,
    folds: NDArray[np.intp] | None,
    n_classes: int,
) -> Weighing:
    """Return what the rows say of kinds of member: of the rows that a member did not see.

    Parameters
    ----------
    kinds : list of list of classifiers
        Fitted members of each kind; with `folds`, as many of each.
    X : {ndarray, csr} of shape (n, d)
    y, weights : ndarray of shape (n,)
    folds : ndarray of shape (n,) or None
        The member of each kind that has not seen the row; -1 where all have. None: no
        member has seen any.
    n_classes : int
    """
    n_each, some = len(kinds[0]), np.arange(len(y))
    if folds is not None:
        some = np.flatnonzero((folds >= 0) & (folds < n_each))
    known = evenly(len(kinds), len(some) or len(y))
    if not len(some):
        known = known._replace(units=units_by(kinds, X))
        decisions = _decisions(kinds, known, X, n_classes)
        return known._replace(temperature=temperature_of(decisions, y, weights))
    parts = [_held_out(members, X, folds, n_classes)[some] for members in kinds]
    units = np.array([spread(part) or 1.0 for part in parts])
    parts = [part / unit for part, unit in zip(parts, units, strict=True)]
    shares = select(parts, y[some], weights[some])
    known = known._replace(shares=shares, units=units)
    mean = np.asarray(
        sum(share * part for share, part in zip(shares, parts, strict=True))
    )
    of_one = temperature_of(mean, y[some], weights[some])
    few = some[:: -(-len(some) // _ROWS_REMEMBERED)]
    here = spread(_decisions(kinds, known, X[few], n_classes))
    return known._replace(temperature=float(rescaled(of_one, here, spread(mean))))


def units_by(kinds: Kinds, X: Matrix) -> NDArray[np.float64]:
    """Return the spread of the kinds' scores on some of the rows;
    1 of a kind without members.
    """
    few = X[:: -(-X.shape[0] // _MOST_SCORED)]
    return np.array([
        np.mean([spread(member.decision_function(few)) or 1.0 for member in members] or [1.0])
        for members in kinds
    ])  # fmt: skip


def weighing_after(
    known: Weighing, streamed: StreamedTemperature | None, n_seen: int,
    kinds: Kinds, X: Matrix, y: Labels, weights: Floats, n_classes: int,
) -> tuple[Weighing, StreamedTemperature]:  # fmt: skip
    """Return what rows of a stream make of a weighing, before their members learn them.

    Parameters
    ----------
    known : Weighing
    streamed : StreamedTemperature or None
        What the calls before know of the temperature; None after a fit.
    n_seen : int
        Rows of the calls, or of the fit, before.
    kinds, X, y, weights, n_classes
        As for `weighing_by`.
    """
    few = np.arange(len(y))[:: -(-len(y) // _MOST_SCORED)]
    share = min(1.0, len(y) / min(n_seen + len(y), _ROWS_REMEMBERED))
    known = known._replace(
        units=known.units + share * (units_by(kinds, X[few]) - known.units)
    )
    streamed = streamed or StreamedTemperature()
    if not streamed.precision and n_seen:  # a fit came before
        n_rows = max(streamed.n_rows, round(1 / known.smoothing) - 2)
        streamed = StreamedTemperature(-float(np.log(known.temperature)), 10.0, n_rows)
    streamed = streamed.after(
        _decisions(kinds, known, X[few], n_classes), y[few], weights[few]
    )
    temperature, smoothing = streamed.temperature, smoothing_of(streamed.n_rows)
    return known._replace(temperature=temperature, smoothing=smoothing), streamed


def _decisions(kinds: Kinds, known: Weighing, X: Matrix, n_classes: int) -> Floats:
    factors = factors_of(kinds, known.shares, known.units)
    return difference(mean_scores(factors, X, n_classes), n_classes)


def _held_out(
    members: list[Any], X: Matrix, folds: NDArray[np.intp] | None, n_classes: int
) -> Floats:
    """Return the decisions of each row's member; 0 where none has left the row out.

    With `folds` None, those of all members together.
    """
    if folds is None:
        total: Floats = sum(member.decision_function(X) for member in members)
        return total / len(members)
    n = X.shape[0]
    decisions = np.zeros(n if n_classes == 2 else (n, n_classes))
    for fold, member in enumerate(members):
        out = np.flatnonzero(folds == fold)
        if len(out):
            decisions[out] = member.decision_function(X[out])
    return decisions
