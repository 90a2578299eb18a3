"""From scores to decisions, labels and probabilities, for every classifier of the package."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any

from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from loclin.engine.scores import difference, winners
from loclin.engine.shapes import Shape, Size
from loclin.fitting.atomic import snapshot
from loclin.fitting.features import PLAIN, FeatureMap
from loclin.fitting.probability import Probabilities


class Scored(Probabilities, ClassifierMixin):
    """A classifier by scores, of dense or sparse rows; `_scores_of` supplies them."""

    classes_: Annotated[NDArray[Any], Shape("c", None)]
    n_features_in_: Annotated[int, Size("f"), Size("p")]  # p: as a stream's models see them
    feature_names_in_: Annotated[NDArray[Any], Shape("f", None)]
    _features: FeatureMap = PLAIN  # of the rows, to those of d features that the model sees

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        f, seen = sizes.get("f"), sizes.get("d", sizes.get("f"))
        if self._features.columns is not None or seen == f:
            return None
        return f"n_features_in_ is {f}, but the model is of {seen} features"

    @abstractmethod
    def _scores_of(self, X: Any, *, ranks: bool = False) -> NDArray[Any]:
        """Score of every scorer (n, s), of rows as they are given; `ranks`: their order will do."""

    @snapshot
    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Scores of the rows: (n,) for two classes (positive for the second), else (n, n_classes).

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
        found = winners(self._checked(self._scores_of(X, ranks=True)), self._multilabel)
        return found if self._multilabel else self.classes_[found]

    def _decisions(self, by_scorer: NDArray[Any]) -> NDArray[Any]:
        """Scorers to decisions, on axis 1: several labels have one scorer each."""
        self._checked(by_scorer)
        return by_scorer if self._multilabel else difference(by_scorer, len(self.classes_))

    def _checked(self, by_scorer: NDArray[Any]) -> NDArray[Any]:
        """Return what scorers say, if they are those of the classes."""
        s, c = by_scorer.shape[1], len(self.classes_)
        if s not in (c, 1) or (s == 1 and c != 2):
            raise ValueError(f"There are {s} scorers, but {c} classes. Fit the model again.")
        return by_scorer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
