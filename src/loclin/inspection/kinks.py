"""Places along a column where a score may bend or jump."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.portable import Leaves, Term, describe

_HALVINGS = 42  # of a grid's step: to rounding
_MOST = 200  # places that are looked for by halving

Floats = NDArray[np.float64]


def known_kinks(classifier: Any, feature: int) -> Floats:
    """Return what a classifier's description tells: knots of pieces, thresholds of trees.

    Parameters
    ----------
    classifier : object
    feature : int
        Of those that the classifier sees.

    Returns
    -------
    places : ndarray of shape (n,)
        Empty where there is no description.
    """
    try:
        terms = describe(classifier).terms
    except ValueError:  # codes of a transformer, training rows, or projections
        return np.empty(0)
    return kinks_of(terms, feature)


def kinks_of(terms: Sequence[Term], feature: int) -> Floats:
    """Return where what terms compute bends or jumps by one feature alone."""
    found = [_of_term(term, feature) for term in terms]
    return np.unique(np.concatenate(found)) if found else np.empty(0)


def _of_term(term: Term, feature: int) -> Floats:
    at: Any = np.array([feature])
    if term.columns is not None:
        at = np.flatnonzero(np.asarray(term.columns) == feature)
        if not len(at):
            return np.empty(0)
    found = []
    if term.pieces is not None:
        own = term.pieces.feature == at[0]
        found += [term.pieces.low[own], term.pieces.high[own]]
    if isinstance(term.coder, Leaves):
        places = np.asarray(term.coder.threshold[term.coder.feature == at[0]], float)
        places = places if term.scale is None else places * term.scale[at[0]]
        found.append(places if term.centre is None else places + term.centre[at[0]])
    return np.concatenate([np.empty(0), *found]).astype(np.float64)


def found_kinks(
    values: Floats,
    scores: Floats,
    patterns: NDArray[Any],
    patterns_at: Callable[[NDArray[np.intp], Floats], NDArray[Any]],
) -> Floats:
    """Return the places where other local models begin to count.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Ascending.
    scores : ndarray of shape (n_rows, n_values)
        Where there are too many places, those are taken where these change most.
    patterns : ndarray of shape (n_rows, n_values)
        What is different where other models count.
    patterns_at : callable
        From rows, (n,), and a value for each, (n,), to patterns, (n,).

    Returns
    -------
    places : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> values, edge = np.linspace(0, 1, 5), lambda rows, places: places > 0.3
    >>> scores = edge(None, values)[None] * 1.0
    >>> found_kinks(values, scores, scores, edge).round(9).tolist()
    [0.3]
    """
    rows, steps = np.nonzero(patterns[:, 1:] != patterns[:, :-1])
    change = np.diff(scores, axis=1)
    beside = np.pad(change, ((0, 0), (1, 1)), mode="edge")
    bend = abs(change - (beside[:, :-2] + beside[:, 2:]) / 2)[rows, steps]
    taken = np.argsort(-bend, kind="stable")[:_MOST]
    rows, steps = rows[taken], steps[taken]
    low, high, before = values[steps], values[steps + 1], patterns[rows, steps]
    if not len(rows):
        return np.empty(0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        same = patterns_at(rows, middle) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.unique((low + high) / 2)


def patterns_of(classifier: Any, features: Any) -> NDArray[Any]:
    """Return for each row a number that tells which local models count there, (n,)."""
    if not hasattr(classifier, "local_weights"):
        return np.zeros(len(features), np.int64)
    weights = classifier.local_weights(features)
    counts = weights.toarray() if hasattr(weights, "toarray") else np.asarray(weights)
    counts = counts.reshape(len(counts), -1) != 0
    rng = np.random.default_rng(0)  # sums of random numbers tell sets apart
    return counts @ rng.integers(0, 2**50, counts.shape[1])
