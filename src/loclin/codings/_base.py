"""What all codings share: validation and the tags of a scikit-learn transformer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from loclin.engine.data import Floats, Matrix
from loclin.engine.shapes import Shape, Size
from loclin.fitting.checks import check_feature_scale, read_labelled_rows, read_rows


class Coding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """What turns rows into codes."""

    n_features_in_: Annotated[int, Size("d")]
    feature_names_in_: Annotated[NDArray, Shape("d", None)]
    _n_features_out: int
    # Does nothing change where all anchors are as much further away by features they have
    # not?
    _can_do_with_columns = False

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise where a parameter is not valid, as far as no others share it."""

    @abstractmethod
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn what the codes need."""

    @abstractmethod
    def transform(self, X: ArrayLike) -> csr_matrix:
        """Code the rows."""

    def _training_rows(self, X: ArrayLike) -> Matrix:
        rows = read_rows(self, X)
        check_feature_scale(rows)
        return rows

    def _training_rows_and_labels(
        self, X: ArrayLike, y: ArrayLike | None
    ) -> tuple[Matrix, NDArray]:
        rows, labels = read_labelled_rows(self, X, y)
        check_feature_scale(rows)
        return rows, labels

    def _new_rows(self, X: ArrayLike, dtype: np.dtype) -> Matrix:
        return read_rows(self, X, dtype=dtype, reset=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class AnchorCoding(Coding):
    """A coding that gives every anchor a weight."""

    anchors_: Annotated[Floats, Shape("a d")]
