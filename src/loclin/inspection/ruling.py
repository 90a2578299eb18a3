"""Which local model rules at a row: the one that counts most."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.inspection.text import printable

_ROWS = 2048  # that are asked at once

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Rulers:
    """The local models of a classifier, numbered.

    Classes may share their models or have models of their own. These are numbered class by
    class.

    Parameters
    ----------
    classifier : object
        Fitted, with `local_weights`.
    """

    def __init__(self, classifier: Any) -> None:
        if not hasattr(classifier, "local_weights"):
            raise TypeError(f"{type(classifier).__name__} has no method local_weights.")
        self._classifier = classifier
        self._labels = [str(one) for one in np.asarray(classifier.classes_).tolist()]
        self._n_each = 0  # models of a class, where each has its own

    def of(self, features: Any, winners: Indices) -> Indices:
        """Return the number of the model that rules at each row.

        It is the model of the largest weight, whatever its sign; of the models of the class that
        is decided for, where classes have their own. Of equals it is the first.

        Parameters
        ----------
        features : array-like of shape (n, d)
            Rows as the classifier sees them.
        winners : ndarray of shape (n,)
            Classes that are decided for.

        Returns
        -------
        numbers : ndarray of shape (n,)
            -1 where no model counts.
        """
        found = [
            self._of_few(part(features, first), winners[first : first + _ROWS])
            for first in range(0, len(winners), _ROWS)
        ]
        return np.concatenate(found) if found else np.empty(0, np.intp)

    def name(self, number: int) -> str:
        """Return the name of a model.

        It is that of the class too, where classes have models of their own.
        """
        if number < 0:
            return "no model"
        if not self._n_each:
            return f"model {number}"
        label, model = divmod(number, self._n_each)
        return f"class {printable(self._labels[label])}, model {model}"

    def names(self, numbers: Any) -> dict[int, str]:
        """Return the names of all models among these numbers."""
        return {k: self.name(k) for k in np.unique(np.asarray(numbers)).tolist()}

    def _of_few(self, features: Any, winners: Indices) -> Indices:
        weights = self._classifier.local_weights(features)
        if hasattr(weights, "tocsr"):
            sizes = abs(weights.tocsr())
            largest = np.asarray(sizes.argmax(axis=1)).ravel()
            return np.where(sizes.max(axis=1).toarray().ravel() > 0, largest, -1)
        first: Any = 0
        if weights.ndim == 3:
            own = weights.shape[1] > 1
            self._n_each = weights.shape[2] if own else 0
            scorers = winners if own else np.zeros_like(winners)
            weights = weights[np.arange(len(winners)), scorers]
            first = scorers * self._n_each
        sizes = np.abs(weights)
        return np.where(sizes.max(axis=1) > 0, first + sizes.argmax(axis=1), -1)


def part(rows: Any, first: int, n_rows: int = _ROWS) -> Any:
    """Return some of the rows."""
    return (rows.iloc if hasattr(rows, "iloc") else rows)[first : first + n_rows]


def decisions_of(classifier: Any, features: Any) -> Floats:
    """Return scores of all classes, (n, c); of two, half the score and its opposite."""
    if getattr(classifier, "_multilabel", False):
        raise ValueError(
            "The model was fitted to several labels a row: no class is decided against another."
        )
    scores = np.asarray(classifier.decision_function(features), np.float64)
    return np.stack([-scores / 2, scores / 2], axis=1) if scores.ndim == 1 else scores
