"""How much each kind of member counts: forward selection by folds, with replacement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from loclin.engine.data import Floats, Labels
from loclin.fitting.temperature import log_losses, smoothing_of

_STEPS = 20
_MOST_ROWS = 4000
_LEAST_GAIN = 1e-4  # of the log loss, relatively, for a step more


def folds_of(labels: Labels, n_folds: int, seed: int) -> NDArray[np.intp]:
    """Return the fold that leaves each row out; none (-1) the rows of classes with few.

    All members learn from those. Where they are the most, or one class alone is left, no
    row is left out: the others would tell little.
    """
    folds = np.full(len(labels), -1)
    common = np.flatnonzero(np.bincount(labels)[labels] >= n_folds)
    if 2 * len(common) < len(labels) or len(np.unique(labels[common])) < 2:
        return folds
    split = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for fold, (_, out) in enumerate(split.split(common, labels[common])):
        folds[common[out]] = fold
    return folds


def select(
    decisions: Sequence[Floats], y: Labels, weights: Floats
) -> NDArray[np.float64]:
    """Return shares of the kinds, which sum to one,
    of the least held-out log loss (Caruana, 2004).

    Starts with the best kind; each step adds the one that lowers the log loss of the mean
    most, and ends where none does.

    Parameters
    ----------
    decisions : list of ndarray of shape (n,) or (n, c)
        Of each kind, in comparable units, on rows that it was not trained on.
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,)
    """
    some = slice(None, None, -(-len(y) // _MOST_ROWS))
    y, weights = y[some], weights[some]
    parts = [part[some] for part in decisions]
    counts, total, least = (
        np.zeros(len(parts)),
        np.zeros_like(parts[0], np.float64),
        np.inf,
    )
    smoothing = smoothing_of(len(y))
    for step in range(1, _STEPS + 1):
        losses = [
            log_losses((total + part) / step, y, weights, smoothing).sum()
            for part in parts
        ]
        best = int(np.argmin(losses))
        if not losses[best] < least * (1 - _LEAST_GAIN):
            break
        least = losses[best]
        total += parts[best]
        counts[best] += 1
    if not counts.any():  # no kind tells anything
        counts[:] = 1
    return counts / counts.sum()
