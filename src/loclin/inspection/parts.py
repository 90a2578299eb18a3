"""The parts that scores are made of, one for each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.inspection.columns import Columns, Reference

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Parts(NamedTuple):
    """Parts of scores: ``added.sum(axis=2) + base == scores``, to rounding.

    Of two classes there is one score, that of the second class against the first.

    Parameters
    ----------
    added : ndarray of shape (n_rows, n_scores, n_columns)
    base : ndarray of shape (n_rows, n_scores)
        What the row's own linear model says of the reference.
    scores : ndarray of shape (n_rows, n_scores)
    """

    added: Floats
    base: Floats
    scores: Floats

    def winners(self) -> tuple[Indices, Indices]:
        """Return the class with the largest score of each row, and the second."""
        if self.scores.shape[1] == 1:
            first = (self.scores[:, 0] > 0).astype(np.intp)
            return first, 1 - first
        order = np.argsort(-self.scores, axis=1, kind="stable")
        return order[:, 0], order[:, 1]

    def between(self, first: Indices, second: Indices) -> Parts:
        """Return the parts of the score of one class against another, a pair for each row.

        They lack the axis of the scores.
        """
        if self.scores.shape[1] == 1:
            sign = np.where(first == 1, 1.0, -1.0)
            return Parts(*((sign * part[:, 0].T).T for part in self))
        rows = np.arange(len(first))
        return Parts(*(part[rows, first] - part[rows, second] for part in self))


def parts_of(columns: Columns, classifier: Any, reference: Reference, X: Any) -> Parts:
    """Return the parts of the scores of rows, in their columns."""
    if getattr(classifier, "_multilabel", False):
        raise ValueError(
            "The model was fitted to several labels a row: no class is decided against another. "
            "Use its local_model."
        )
    features = columns.features(X)
    scores = np.asarray(classifier.decision_function(features), np.float64)
    added, base = classifier.contributions(features, reference.features)
    if added.ndim == 2:
        added, base, scores = added[:, None], base[:, None], scores[:, None]
    return Parts(columns.by_column(added), base, scores)


def pair_of(classes: Sequence[Any], known: NDArray[Any]) -> tuple[int, int]:
    """Return the places of two classes, given by their labels."""
    labels = known.tolist()
    chosen = [one.item() if isinstance(one, np.generic) else one for one in classes]
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(labels):
        raise ValueError(
            f"classes={tuple(chosen)} must be two of the model's classes, for and against: "
            f"{labels}."
        )
    return labels.index(chosen[0]), labels.index(chosen[1])
