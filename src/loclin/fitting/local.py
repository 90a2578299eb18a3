"""From a fitted sum of local models to scores, codes and the linear model that acts at a row."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from loclin.engine.data import Floats, Matrix
from loclin.engine.prediction import codes_of, scores_of
from loclin.engine.scores import combine_models
from loclin.engine.shapes import Shape
from loclin.fitting.atomic import snapshot
from loclin.fitting.checks import read_rows
from loclin.fitting.scored import Scored
from loclin.portable.describing import term_of
from loclin.portable.words import Coder, Term


class ByLocalModels(Scored):
    """A classifier whose scores are combinations of local models; `_coder` supplies the codes."""

    local_coef_: NDArray[Any]
    local_intercept_: NDArray[Any]
    intercept_: NDArray[Any]
    _learned: Any
    _root: Annotated[Floats | None, Shape("d | d d")] = None  # of the metric
    _scores_tell_finite = False  # has every row with NaN or infinity such a score?

    @abstractmethod
    def _coder(self) -> Coder:
        """Say how the fitted model writes codes, in the words of `portable.words`."""

    @snapshot
    def local_weights(self, X: ArrayLike) -> Any:
        """Return the code of each row: how much each local model counts there.

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
    def local_model(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Return the linear model that acts at each row: the exact explanation of its score.

        ``decision_function(X)`` equals ``einsum("nd,nd->n", coef, X) + intercept`` for two classes
        and ``einsum("ncd,nd->nc", coef, X) + intercept`` otherwise, to rounding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A few rows: the result has n_samples * n_classes * n_features numbers.

        Returns
        -------
        coef : ndarray of shape (n_samples, n_features) or (n_samples, n_classes, n_features)
        intercept : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        learned, codes = self._learned, self._codes(self._validate_new(X))
        coef, intercept = combine_models(codes, learned.local_coef, learned.local_intercept)
        coef = self._features.back(self._decisions(coef), 1)
        intercept = self._decisions(intercept + learned.intercept)
        return coef, self._features.constants(intercept, coef)

    def _term(self) -> Term:
        return term_of(self, self._coder())

    def _terms(self) -> tuple[Term, ...]:
        return (self._term(),)

    def _class_scores(self, X: Matrix, *, ranks: bool = False) -> Floats:
        """Scores of the s scorers, (n, s), of rows as the model sees them."""
        return scores_of(self._term(), X, ranks=ranks)

    def _codes(self, X: Matrix) -> Any:
        """Codes behind them: CSR (n, m) where the scorers share them, else (n, s, m)."""
        return codes_of(self._term(), X)

    def _validate_new(self, X: Any, finite: bool = True) -> Any:
        check_is_fitted(self, "intercept_")
        dtype = self._learned.local_coef.dtype
        rows = read_rows(self, X, reset=False, dtype=dtype, ensure_all_finite=finite)
        return self._features.of_matrix(rows)

    def _scores_of(self, X: Any, *, ranks: bool = False) -> Floats:
        """Score of every scorer, of rows that are checked."""
        if not self._scores_tell_finite:
            return self._class_scores(self._validate_new(X), ranks=ranks)
        rows = self._validate_new(X, finite=False)
        scores = self._class_scores(rows, ranks=ranks)
        if not np.isfinite(scores.sum()):  # the rows may be, and only the scores too large
            self._validate_new(X)
        return scores
