"""From fitted models to scores, decisions, labels and explanations, for every classifier."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from loclin.engine.data import Floats, Matrix
from loclin.engine.prediction import codes_of, scores_of
from loclin.engine.scores import combine_models, difference, winners
from loclin.engine.shapes import Shape, Size
from loclin.fitting.atomic import snapshot
from loclin.fitting.checks import check_flag, read_reference, read_rows
from loclin.fitting.features import PLAIN, FeatureMap
from loclin.fitting.probability import Probabilities
from loclin.portable.checks import check_smoothing, check_temperature
from loclin.portable.gradients import gradients
from loclin.portable.reader import of_both_classes
from loclin.portable.words import Term

_BLOCK_NUMBERS = 2**18  # rows with their pieces are scored so many numbers at a time


class Scored(Probabilities, ClassifierMixin):
    """A classifier by scores, of dense or sparse rows; `_scores_of` supplies them."""

    classes_: Annotated[NDArray[Any], Shape("c", None)]
    n_features_in_: Annotated[int, Size("f")]
    feature_names_in_: Annotated[NDArray[Any], Shape("f", None)]
    _takes_indicator = False  # may y be an indicator matrix, several labels a row?
    _multilabel: bool = False  # has a row several labels?
    # The map from the rows to those of d features that the model sees.
    _features: FeatureMap = PLAIN

    def _sizes(self) -> dict[str, int]:
        """Return what p stands for: features as the models of a stream see them."""
        n_features: Any = vars(self).get("n_features_in_")
        known = isinstance(n_features, int) and isinstance(self._features, FeatureMap)
        return {"p": int(n_features) + self._features.n_pieces} if known else {}

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        f, n_pieces = sizes.get("f", 0), self._features.n_pieces
        seen = sizes.get("d", f + n_pieces) - n_pieces
        if hasattr(self, "classes_"):
            check_temperature(
                getattr(self, "temperature_", None), sizes["c"], self._multilabel
            )
            check_smoothing(getattr(self, "smoothing_", 0.0))
        if self._features.columns is not None or seen == f:
            return None
        return f"n_features_in_ is {f}, but the model is of {seen} features"

    @abstractmethod
    def _scores_of(self, X: Any, *, ranks: bool = False) -> NDArray[Any]:
        """Score of every scorer (n, s), of rows as they are given;
        `ranks`: their order will do.
        """

    @snapshot
    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Scores of the rows: (n,) for two classes (positive for the second),
        else (n, n_classes).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._decisions(self._scores_of(X))

    @snapshot
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class labels of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        chosen = winners(self._checked(self._scores_of(X, ranks=True)), self._multilabel)
        return chosen if self._multilabel else self.classes_[chosen]

    def _decisions(self, by_scorer: NDArray[Any]) -> NDArray[Any]:
        """Scorers to decisions, on axis 1: several labels have one scorer each."""
        self._checked(by_scorer)
        return (
            by_scorer if self._multilabel else difference(by_scorer, len(self.classes_))
        )

    def _per_class(self, decisions: NDArray[Any], by_class: bool) -> NDArray[Any]:
        """Return what decisions say, of two classes as of several if `by_class`."""
        one_for_two = len(self.classes_) == 2 and not self._multilabel
        return of_both_classes(decisions) if by_class and one_for_two else decisions

    def _checked(self, by_scorer: NDArray[Any]) -> NDArray[Any]:
        """Return what scorers say, if they are those of the classes."""
        s, c = by_scorer.shape[1], len(self.classes_)
        if s not in (c, 1) or (s == 1 and c != 2):
            raise ValueError(
                f"There are {s} scorers, but {c} classes. Fit the model again."
            )
        return by_scorer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self._takes_indicator
        return tags


class InWords(Scored):
    """A classifier whose scores have words, which tell their derivatives."""

    @abstractmethod
    def _terms(self) -> tuple[Term, ...]:
        """Say what the classifier computes of rows as they are given."""

    @abstractmethod
    def _read_new(self, X: Any, finite: bool = True) -> Any:
        """Return checked rows, as they are given."""

    @snapshot
    def local_gradient(self, X: ArrayLike, *, by_class: bool = False) -> Floats:
        """Return what a small change of each feature does to the scores of each row.

        This is the exact derivative of `decision_function` by the features; the weights
        of the local models change with the row. At a border between regions it is the
        derivative in the region in which the row is predicted. At a knot of a feature
        in pieces it is that on the side of larger values. Where the weights of the
        local models are constant inside a region, it equals the coefficients of
        `local_model`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A few rows: the result has n_samples * n_classes * n_features numbers.
        by_class : bool, default=False
            Whether two classes have a derivative each, as several have: half of the
            decision's for the second, the opposite for the first.

        Returns
        -------
        slopes : ndarray of shape (n_samples, n_features) or \
                (n_samples, n_classes, n_features)

        Raises
        ------
        ValueError
            If the codes have no derivative in closed form, as those of
            `LocalCoordinateCoding` and of transformers from elsewhere.

        Examples
        --------
        >>> from loclin import SAPLClassifier
        >>> from loclin.datasets import make_sine
        >>> X, y = make_sine(500, random_state=0)
        >>> model = SAPLClassifier(10, random_state=0).fit(X, y)
        >>> change = 1e-6 * model.local_gradient(X[:1])[0, 0]
        >>> moved = model.decision_function(X[:1] + [[1e-6, 0.0]])
        >>> bool(abs(moved - model.decision_function(X[:1]) - change)[0] < 1e-9)
        True
        """
        check_flag("by_class", by_class)
        rows = self._read_new(X)
        slopes = gradients(self._terms(), rows, self._decisions)
        return self._per_class(slopes.astype(rows.dtype, copy=False), by_class)


class ByLocalModels(InWords):
    """A classifier whose scores are combinations of local models."""

    local_coef_: NDArray[Any]
    local_intercept_: NDArray[Any]
    intercept_: NDArray[Any]
    _learned: Any
    _root: Annotated[Floats | None, Shape("d | d d")] = None  # of the metric
    _scores_tell_finite = False  # has every row with NaN or infinity such a score?

    @snapshot
    def local_weights(self, X: ArrayLike) -> Any:
        """Return the weights of the local models at each row, also called its code.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        codes : csr_matrix of shape (n_samples, n_models) or \
                ndarray of shape (n_samples, n_scorers, n_models)
            CSR where the classes share the codes, dense where each has its own.
        """
        return self._codes(self._validate_new(X))

    @snapshot
    def local_model(
        self, X: ArrayLike, *, by_class: bool = False
    ) -> tuple[Floats, Floats]:
        """Return the linear model that acts at each row:
        the exact explanation of its score.

        ``decision_function(X)`` equals ``einsum("nd,nd->n", coef, X) + intercept`` for
        two classes and ``einsum("ncd,nd->nc", coef, X) + intercept`` otherwise, to
        rounding. What a change of a feature does is another question: `local_gradient`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A few rows: the result has n_samples * n_classes * n_features numbers.
        by_class : bool, default=False
            Whether two classes have a model each, as several have: half of the decision
            for the second, the opposite for the first.

        Returns
        -------
        coef : ndarray of shape (n_samples, n_features) or (n_samples, n_classes, n_features)
        intercept : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_flag("by_class", by_class)
        rows = self._read_new(X)
        coef, intercept = self._features.at_rows(*self._combined(rows), rows)
        return self._per_class(coef, by_class), self._per_class(intercept, by_class)

    @snapshot
    def contributions(
        self, X: ArrayLike, reference: ArrayLike, *, by_class: bool = False
    ) -> tuple[Floats, Floats]:
        """Return what each feature adds to the scores because it differs from a reference.

        The weights of the local models stay those of the row. Then the score is a sum of
        one function of each feature: a straight line, or, with `pieces`, a bent one. So
        ``decision_function(X)`` equals ``base + added.sum(axis=-1)``, to rounding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A few rows: the result has n_samples * n_classes * n_features numbers.
        reference : array-like of shape (n_features,)
            What rows are compared with, such as the mean of the training rows.
        by_class : bool, default=False
            Whether two classes have contributions each, as several have: half of the
            decision's for the second, the opposite for the first.

        Returns
        -------
        added : ndarray of shape (n_samples, n_features) or \
                (n_samples, n_classes, n_features)
        base : ndarray of shape (n_samples,) or (n_samples, n_classes)
            What the row's own local models say of the reference.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from loclin import ML3Classifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = ML3Classifier(pieces=4, random_state=0).fit(X, y)
        >>> added, base = model.contributions(X, X.mean(axis=0))
        >>> bool(abs(base + added.sum(axis=-1) - model.decision_function(X)).max() < 1e-9)
        True
        """
        check_flag("by_class", by_class)
        rows = self._read_new(X)
        at = read_reference(reference, self.n_features_in_)
        added, base = self._features.contributions(*self._combined(rows), rows, at)
        return self._per_class(added, by_class), self._per_class(base, by_class)

    def _combined(self, rows: Matrix) -> tuple[Floats, Floats]:
        """Return the linear model of each row, of features and pieces as they are given."""
        learned = self._learned
        codes = self._codes(self._features.of_matrix(rows))
        coef, intercept = combine_models(
            codes, learned.local_coef, learned.local_intercept
        )
        coef = self._features.back(self._decisions(coef), 1)
        intercept = self._decisions(intercept + learned.intercept)
        return coef, self._features.constants(intercept, coef)

    def _term(self) -> Term:
        """Say what the model computes, of rows as it sees them."""
        term: Term = self._learned.term(self._root)
        return term

    def _terms(self) -> tuple[Term, ...]:
        return (self._features.in_front(self._term()),)

    def _class_scores(self, X: Matrix, *, ranks: bool = False) -> Floats:
        """Scores of the s scorers, (n, s), of rows as the model sees them."""
        return scores_of(self._term(), X, ranks=ranks)

    def _codes(self, X: Matrix) -> Any:
        """Codes behind them: CSR (n, m) where the scorers share them, else (n, s, m)."""
        return codes_of(self._term(), X)

    def _read_new(self, X: Any, finite: bool = True) -> Any:
        check_is_fitted(self, "intercept_")
        dtype = self._learned.local_coef.dtype
        return read_rows(self, X, reset=False, dtype=dtype, ensure_all_finite=finite)

    def _validate_new(self, X: Any, finite: bool = True) -> Any:
        return self._features.of_matrix(self._read_new(X, finite))

    def _scores_of(self, X: Any, *, ranks: bool = False) -> Floats:
        """Score of every scorer, of rows as they are given."""
        if not self._scores_tell_finite:
            return self._scores_of_rows(self._read_new(X), ranks=ranks)
        scores = self._scores_of_rows(self._read_new(X, finite=False), ranks=ranks)
        # The rows may be finite, and only the scores too large.
        if not np.isfinite(scores.sum()):
            self._read_new(X)
        return scores

    def _scores_of_rows(self, rows: Matrix, *, ranks: bool = False) -> Floats:
        """Score of every scorer, of rows that are checked;
        of those with pieces in blocks.
        """
        features = self._features
        blocks = blocks_of(rows, features.n_pieces)
        scores = [
            self._class_scores(features.of_matrix(block), ranks=ranks) for block in blocks
        ]
        return np.concatenate(scores)


def blocks_of(rows: Matrix, n_pieces: int) -> Iterator[Matrix]:
    """Yield rows in blocks that stay small with so many pieces beside the features.

    Without pieces all are one block, and not copied.
    """
    n, d = rows.shape
    step = max(1, _BLOCK_NUMBERS // (d + n_pieces)) if n_pieces else n
    if n <= step:
        yield rows
        return
    for first in range(0, n, step):
        yield rows[first : first + step]
