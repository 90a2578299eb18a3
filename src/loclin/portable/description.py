"""A fitted classifier as data: its terms, and what becomes of their scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from loclin.portable.checks import check_whole, labels_of
from loclin.portable.gradients import gradients
from loclin.portable.reader import local_models, of_both_classes, scores_of
from loclin.portable.words import Array, Term, check_names, from_data, to_data

FORMAT = 1
_TEXTS = "classes", "feature_names"  # in which "inf" is text
_BLOCK_ROWS = 256  # rows that are scored at once


@dataclass(frozen=True, eq=False)
class Description:
    """What a fitted classifier computes, without the classifier:
    arrays, numbers and words.

    Each term says its scores. With one scorer the decision is that of the second class;
    with two scorers of two classes it is the second minus the first. The decisions of
    all terms, times their factors, are added up. Probabilities are the softmax of
    decisions over the temperature (of one label of several: the logistic function), of
    which a share, `smoothing`, is spread evenly. `docs/format.md` has it all for a
    reader in another language.

    Parameters
    ----------
    terms : tuple of Term
    classes : ndarray of shape (c,)
        The labels.
    n_features : int
    multilabel : bool
        Whether a row may have several labels.
    temperature : float, ndarray of shape (c,) or None
        One for each label where a row may have several; None where there are no
        probabilities.
    smoothing : float
    feature_names : tuple of str or None

    Raises
    ------
    ValueError
        If parts do not fit together.
    """

    terms: tuple[Term, ...]
    classes: Array
    n_features: int
    multilabel: bool = False
    temperature: Any = None
    smoothing: float = 0.0
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_whole(self)

    def decision_function(self, X: ArrayLike) -> Array:
        """Scores of the rows: (n,) for two classes
        (positive for the second), else (n, c).

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        scores : ndarray of shape (n,) or (n, c), float64
        """
        blocks = [self._decisions(rows) for rows in self._blocks(X)]
        return np.concatenate(blocks) if blocks else self._decisions(self._rows(X))

    def predict(self, X: ArrayLike) -> Array:
        """Labels of the rows, (n,); where a row may have several, an indicator (n, c)."""
        decisions = self.decision_function(X)
        if self.multilabel:
            return (decisions > 0).astype(np.intp)
        found = (
            (decisions > 0).astype(int)
            if decisions.ndim == 1
            else decisions.argmax(axis=1)
        )
        return self.classes[found]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, (n, c).

        Raises
        ------
        ValueError
            If the classifier had none.
        """
        if self.temperature is None:
            raise ValueError(
                "The classifier was fitted with calibrate=False: no probabilities."
            )
        scores = self.decision_function(X) / self.temperature
        if self.multilabel:
            sharp = 0.5 * (1 + np.tanh(scores / 2))
            return sharp * (1 - self.smoothing) + self.smoothing / 2
        scores = np.stack([0 * scores, scores], axis=1) if scores.ndim == 1 else scores
        sharp = np.exp(scores - scores.max(axis=1, keepdims=True))
        sharp /= sharp.sum(axis=1, keepdims=True)
        return sharp * (1 - self.smoothing) + self.smoothing / len(self.classes)

    def local_model(self, X: ArrayLike, *, by_class: bool = False) -> tuple[Array, Array]:
        """Return the linear model that acts at each row,
        of the features as they are given.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        by_class : bool, default=False
            Whether two classes have a model each: half of the decision for the second,
            the opposite for the first.

        Returns
        -------
        coef : ndarray of shape (n, n_features) or (n, c, n_features)
        intercept : ndarray of shape (n,) or (n, c)
        """
        rows = self._rows(X)
        parts = [(term.factor, local_models(term, rows)) for term in self.terms]
        coef, intercept = (
            np.sum(
                [factor * self._by_class(models[k]) for factor, models in parts], axis=0
            )
            for k in (0, 1)
        )
        return self._per_class(coef, by_class), self._per_class(intercept, by_class)

    def local_gradient(self, X: ArrayLike, *, by_class: bool = False) -> Array:
        """Return the derivative of `decision_function` by the features as they are given.

        At a border it is the derivative of the region in which the row is predicted, at a
        knot of pieces that on the side of larger values.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        by_class : bool, default=False
            As in `local_model`.

        Returns
        -------
        slopes : ndarray of shape (n, n_features) or (n, c, n_features)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from loclin import SAPLClassifier
        >>> from loclin.portable import describe
        >>> X, y = load_iris(return_X_y=True)
        >>> model = make_pipeline(StandardScaler(), SAPLClassifier(8, random_state=0))
        >>> describe(model.fit(X, y)).local_gradient(X).shape
        (150, 3, 4)
        """
        slopes = gradients(self.terms, self._rows(X), self._by_class)
        return self._per_class(slopes, by_class)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON takes; `from_dict` gives the description back.

        Raises
        ------
        ValueError
            If labels are neither numbers, booleans nor strings.
        """
        parts = {one.name: to_data(getattr(self, one.name)) for one in fields(self)}
        parts["classes"] = self.classes.tolist()
        labels_of(parts["classes"])
        return {"format": FORMAT} | parts

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the description that `to_dict` gave this of.

        Raises
        ------
        ValueError
            If it is of another format, or something is missing.
        """
        if not isinstance(data, dict):
            raise ValueError(f"A description is a dictionary, not {type(data).__name__}.")
        if data.get("format") != FORMAT:
            raise ValueError(f"format={data.get('format')!r} is not known; {FORMAT} is.")
        given = {name: part for name, part in data.items() if name != "format"}
        check_names(given, [one.name for one in fields(cls)], "the description")
        try:
            parts = {
                name: from_data(part, name)
                for name, part in given.items()
                if name not in _TEXTS
            }
            names = given["feature_names"]
            names = tuple(names) if isinstance(names, list) else names
            return cls(**parts, classes=labels_of(given["classes"]), feature_names=names)
        except RecursionError:
            raise ValueError("The description is nested too deeply.") from None

    # How it is done.

    def _rows(self, X: ArrayLike) -> Array:
        names = getattr(X, "columns", None)
        if names is not None and self.feature_names not in (None, tuple(map(str, names))):
            raise ValueError(
                f"X has the columns {list(names)}; give {list(self.feature_names)}."
            )
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(
                f"X has shape {rows.shape}; give rows of {self.n_features} features each."
            )
        if not np.isfinite(rows).all():
            raise ValueError("X has NaN or infinity.")
        return rows

    def _blocks(self, X: ArrayLike) -> Iterator[Array]:
        rows = self._rows(X)
        for first in range(0, len(rows), _BLOCK_ROWS):
            yield rows[first : first + _BLOCK_ROWS]

    def _decisions(self, rows: Array) -> Array:
        parts = (
            term.factor * self._by_class(scores_of(term, rows)) for term in self.terms
        )
        return np.asarray(sum(parts))

    def _per_class(self, decisions: Array, by_class: bool) -> Array:
        one_for_two = len(self.classes) == 2 and not self.multilabel
        return of_both_classes(decisions) if by_class and one_for_two else decisions

    def _by_class(self, by_scorer: Array) -> Array:
        """Return decisions of what scorers say, on axis 1."""
        if self.multilabel or len(self.classes) > 2:
            return by_scorer
        return (
            by_scorer[:, 0]
            if by_scorer.shape[1] == 1
            else by_scorer[:, 1] - by_scorer[:, 0]
        )
