"""Classifiers in files, and fits that go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from loclin.engine.data import Floats
from loclin.engine.jit import read_only
from loclin.engine.procedure import FittedModel, LocalModels, StreamProcedure
from loclin.fitting.begun import Begun
from loclin.fitting.consistent import missing, wrong_with_classes
from loclin.fitting.features import FeatureMap
from loclin.fitting.mapped import least_of
from loclin.portable.words import Pieces


class Stored(Begun):
    """What a classifier keeps of a fit or a stream, for those that go on.

    In pickles and files, weights of sparse rows stay feature by feature.
    """

    n_iter_: int
    objective_: list[float]
    validation_scores_: list[float]
    # The kinds of fitted model that it may have.
    _fitted_models: ClassVar[tuple[type[FittedModel], ...]] = (LocalModels,)
    _features: FeatureMap
    _root: Any
    _multiplier: float
    _multilabel: bool
    classes_: Any
    n_features_in_: int
    _learned: Any = None  # one of `_fitted_models`, of the rows as the model sees them
    _kept: Any = None  # what a fit that goes on needs besides the attributes
    _stream: StreamProcedure | None = None
    # The state of a fit that a checkpoint has cut off.
    _unfinished: np.random.Generator | None = None
    _split_seed: int | None = None  # the seed that drew its rows held out

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        learned = self._learned
        if learned is None:
            kept = self._stream is not None or self._unfinished is not None
            return "there is a stream, but no model" if kept else None
        if lacks := missing(self, "classes_", "n_features_in_"):
            return lacks
        if type(learned) not in self._fitted_models:
            return (
                f"_learned is a {type(learned).__name__}, which this class does not learn"
            )
        if not 0 < self._multiplier < np.inf:
            return f"_multiplier is {self._multiplier}, but should be positive"
        coef = vars(learned).get("local_coef")
        if (
            coef is not None
            and not all(coef.strides)
            and (any(coef.strides) or coef.flat[0])
        ):
            return "local_coef is some numbers seen many times"
        return wrong_with_classes(self.classes_, sizes, self._multilabel)

    def __init_subclass__(cls) -> None:
        """Let fields of what is learned be read as attributes of the classifier."""
        super().__init_subclass__()
        own_names = {name for models in cls._fitted_models for name in models.names()}
        for name in own_names | {"local_coef", "local_intercept"}:
            if not hasattr(cls, f"{name}_"):
                setattr(cls, f"{name}_", reader_of(name))

    @property
    def metric_(self) -> Floats:
        """What squared distances are measured by, where the metric is whole."""
        root = vars(self).get("_root")
        if root is None or root.ndim == 1:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'metric_'"
            )
        return read_only(root @ root)

    @property
    def feature_weights_(self) -> Floats:
        """What features, or the most of their pieces, count once they are standardized."""
        if "_root" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'feature_weights_'"
            )
        root, features = self._root, self._features
        if root is None:
            return read_only(np.ones(self.n_features_in_))
        weights = np.sqrt(np.diag(root @ root)) if root.ndim == 2 else root
        if features.columns is not None:
            weights = features.columns.to_all(weights, fill=least_of(root))
        weights, of_pieces = np.split(weights, [self.n_features_in_])
        if features.pieces is not None:
            weights = weights.copy()
            np.maximum.at(weights, features.pieces.feature, of_pieces)
        return read_only(weights)

    @property
    def pieces_(self) -> Pieces | None:
        """The pieces that the model sees beside the features as
        they are given; None for none.
        """
        check_is_fitted(self, "intercept_")
        return self._features.pieces

    def _field(self, name: str) -> Any:
        """Return a field of what was learned, of the features as they are given.

        Writing to it would change nothing, so that it cannot be written.
        """
        value = self._of_features(name)
        return read_only(value) if isinstance(value, np.ndarray) else value

    def _of_features(self, name: str) -> Any:
        if not hasattr(self._learned, name):
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute '{name}_'"
            )
        value, power = getattr(self._learned, name), self._learned.units.get(name, 0)
        if power:
            return self._features.back(value, power)
        coef = self._learned.constants.get(name)
        return (
            value if coef is None else self._features.constants(value, self._field(coef))
        )


def reader_of(name: str) -> property:
    """Return the property that reads a field of what was learned."""
    return property(lambda classifier: classifier._field(name))
