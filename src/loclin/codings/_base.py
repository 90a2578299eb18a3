"""What all codings share: validation and the tags of a scikit-learn transformer."""

from __future__ import annotations

from abc import ABC
from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from loclin.fitting.checks import canonical


class Coding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Abstract coding."""

    def _validate(self, X: Any, *, dtype: Any, **options: Any) -> Any:
        found = validate_data(self, X, accept_sparse="csr", dtype=dtype, order="C", **options)
        return (canonical(found[0]), found[1]) if isinstance(found, tuple) else canonical(found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class AnchorCoding(Coding):
    """Abstract coding with one weight an anchor."""

    anchors_: NDArray[Any]  # (n_anchors, n_features)
