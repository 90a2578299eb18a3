"""Linear steps that make features of several columns, seen as a part of the classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils.metaestimators import available_if

from loclin.inspection.tracing import dense, transformed
from loclin.portable.describing import scaling_of

MIXERS = (PCA, IncrementalPCA, TruncatedSVD, FastICA, GaussianRandomProjection,
          SparseRandomProjection)  # fmt: skip
_LEAST = 1e-7  # spread of a component beside the largest, that is not rounding


def is_linear(step: Any) -> bool:
    """Tell whether a fitted step is linear, whatever its features are made of."""
    return isinstance(step, MIXERS) or scaling_of(step) is not None


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

    def contributions(
        self, X: Any, reference: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return what features add, as the first step takes them, and the base.

        What a feature behind the steps adds is shared out to those in front as if it were in
        proportion to its change.
        """
        behind, at = self._through(X), self._through(reference[None])
        added, base = self._classifier.contributions(behind, np.ravel(dense(at)))
        away = np.broadcast_to(_away(behind, at, added), added.shape)
        slopes = np.divide(added, away, out=np.zeros(added.shape), where=away != 0)
        slopes = self._back(slopes)
        return slopes * _away(X, reference[None], slopes), base

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
            scaling = scaling_of(step)
            if scaling is not None:
                slopes = slopes / scaling[1]
                continue
            matrix = step.components_
            if getattr(step, "whiten", False) and isinstance(step, PCA | IncrementalPCA):
                matrix = matrix / _spreads(step)[:, None]
            by_row = slopes.reshape(-1, slopes.shape[-1])
            slopes = (by_row @ matrix).reshape(*slopes.shape[:-1], -1)
        return slopes


def _spreads(step: Any) -> NDArray[Any]:
    """Return what components are divided by, if they vary at all."""
    spreads: NDArray[Any] = np.sqrt(step.explained_variance_)
    if (spreads <= _LEAST * spreads.max()).any():
        raise ValueError(
            f"{type(step).__name__}(whiten=True) divides components by almost 0, as some features "
            "follow from others. Take fewer components, or leave such features out."
        )
    return spreads


def _away(X: Any, reference: Any, like: NDArray[Any]) -> NDArray[Any]:
    """Return how far rows are from a reference, with axes like those of contributions."""
    away = dense(X).astype(np.float64) - dense(reference).astype(np.float64)
    return np.expand_dims(away, tuple(range(1, like.ndim - 1)))


def _products(coef: NDArray[Any], X: Any) -> NDArray[Any]:
    """Return each row's models times the row."""
    return np.einsum("n...d,nd->n...", coef, dense(X).astype(np.float64))
