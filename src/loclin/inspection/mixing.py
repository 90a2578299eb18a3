"""Linear steps that make features of several columns, seen as a part of the classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils.metaestimators import available_if

from loclin.inspection.tracing import SCALERS, slope_of, transformed

MIXERS = (PCA, IncrementalPCA, TruncatedSVD, FastICA, GaussianRandomProjection,
          SparseRandomProjection)  # fmt: skip


def is_linear(step: Any) -> bool:
    """Tell whether a fitted step is linear, whatever its features are made of."""
    return isinstance(step, MIXERS + SCALERS) and not getattr(step, "clip", False)


class Behind:
    """A classifier behind linear steps, as one that takes what these are given.

    Parameters
    ----------
    steps : sequence of transformers
        Of those for which `is_linear` is true.
    classifier : object
    """

    def __init__(self, steps: Sequence[Any], classifier: Any) -> None:
        self._steps, self._classifier = steps, classifier
        self.n_features_in_ = int(steps[0].n_features_in_)

    def __getattr__(self, name: str) -> Any:
        if name in ("classes_", "temperature_", "_multilabel"):
            return getattr(self._classifier, name)
        raise AttributeError(name)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return scores of rows as the first step takes them."""
        scores: NDArray[Any] = self._classifier.decision_function(self._through(X))
        return scores

    def local_model(self, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the linear models of rows, in features as the first step takes them."""
        features = self._through(X)
        coef, constant = self._classifier.local_model(features)
        of_features = _products(coef, features)
        coef = self._back(coef)
        return coef, constant + of_features - _products(coef, X)

    def local_gradient(self, X: Any, *, by_class: bool = False) -> NDArray[Any]:
        """Return slopes by features as the first step takes them."""
        slopes = self._classifier.local_gradient(self._through(X), by_class=by_class)
        return self._back(slopes)

    @available_if(lambda self: hasattr(self._classifier, "local_weights"))
    def local_weights(self, X: Any) -> Any:
        """Return the weights of the local models."""
        return self._classifier.local_weights(self._through(X))

    def _through(self, X: Any) -> Any:
        return transformed(self._steps, X)

    def _back(self, slopes: NDArray[Any]) -> NDArray[Any]:
        """Return slopes by what goes into the steps, of slopes by what comes out."""
        for step in reversed(self._steps):
            if isinstance(step, SCALERS):
                slopes = slopes * slope_of(step)
                continue
            matrix = step.components_
            if getattr(step, "whiten", False) and isinstance(step, PCA | IncrementalPCA):
                matrix = matrix / np.sqrt(step.explained_variance_)[:, None]
            by_row = slopes.reshape(-1, slopes.shape[-1])
            slopes = (by_row @ matrix).reshape(*slopes.shape[:-1], -1)
        return slopes


def _products(coef: NDArray[Any], X: Any) -> NDArray[Any]:
    """Return each row's models times the row."""
    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    return np.einsum("n...d,nd->n...", coef, rows)
