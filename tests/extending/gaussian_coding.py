"""A coding of one's own: any scikit-learn transformer whose columns say how much a model counts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data


class GaussianCoding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Normalised Gaussians around random rows; weights below `least` are left out."""

    def __init__(
        self, n_anchors: int = 20, width: float = 1.0, least: float = 0.01, random_state: Any = None
    ) -> None:
        self.n_anchors = n_anchors
        self.width = width
        self.least = least
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the anchors."""
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        rng = check_random_state(self.random_state)
        some = X[rng.permutation(X.shape[0])[: self.n_anchors]]
        self.anchors_ = some.toarray() if sparse.issparse(some) else some
        return self

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Code the rows: CSR, as a row then meets only the models with a nonzero weight."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        distances = euclidean_distances(X, self.anchors_, squared=True)
        weights = softmax(-distances / (2 * self.width**2), axis=1)
        weights[weights < min(self.least, weights.max())] = 0
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(weights.dtype).tiny)
        return sparse.csr_matrix(weights.astype(X.dtype, copy=False))

    @property
    def _n_features_out(self) -> int:
        return len(self.anchors_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
