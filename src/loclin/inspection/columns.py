"""The columns that a person knows, and the features that a classifier sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import check_array

from loclin.inspection.tracing import Trace, dense, transformed
from loclin.portable import describe
from loclin.portable.describing import scaling_of

MEAN = "the mean training row"
MIXED = "(mean)"  # what a category or a text is in a mean of rows


class Reference(NamedTuple):
    """What rows are compared with.

    Parameters
    ----------
    name : str
        In words, such as "the mean training row".
    values : list
        One for each column.
    features : ndarray of shape (n_features,)
        The same as the classifier sees it.
    """

    name: str
    values: list[Any]
    features: NDArray[np.float64]


class Columns(ABC):
    """Columns, the steps that make features of them, and which are whose.

    Parameters
    ----------
    steps : sequence of transformers
        Each makes features of one column at a time.
    trace : Trace
        From the columns to what comes out of the last step.
    names : list of str
    classifier : object
        Behind the steps. It may keep the mean training row.

    Attributes
    ----------
    names : list of str
    trace : Trace
    """

    _of_texts = False

    def __init__(
        self, steps: Sequence[Any], trace: Trace, names: list[str], classifier: Any
    ) -> None:
        self._steps, self.trace, self.names = steps, trace, names
        self._classifier = classifier

    @abstractmethod
    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of rows as they are."""

    @abstractmethod
    def numbers(self, k: int, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values of a column of numbers or dates as floats; NaN for gaps."""

    @abstractmethod
    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values in some columns."""

    @abstractmethod
    def kind(self, k: int) -> str:
        """Return what a column is: "number", or another kind of a `TableEncoder`."""

    @abstractmethod
    def _rows(self, given: Any) -> Any:
        """Return a reference as rows, as the first step takes them."""

    @abstractmethod
    def _mean_values(self, rows: Any) -> list[Any]:
        """Return the values of the mean of some rows, as far as a mean has any."""

    @abstractmethod
    def _training_mean(self) -> Reference:
        """Return the mean training row, as far as it was kept."""

    def reference(self, given: Any) -> Reference:
        """Return what rows are compared with; None for the training mean.

        Raises
        ------
        ValueError
            If it is no row, has a gap that stays, or was not kept.
        """
        if given is None:
            return self._training_mean()
        if isinstance(given, Mapping) or (np.isscalar(given) and not self._of_texts):
            raise ValueError(
                f"reference={given!r} must be a row, or rows, as X has them."
            )
        rows = self._rows(given)
        if not len(rows):
            raise ValueError("reference has no rows.")
        features = dense(self.features(rows)).astype(np.float64).mean(axis=0)
        if not np.isfinite(features).all():
            raise ValueError("reference has values that are no finite numbers.")
        n_rows = len(rows)
        name = "the row given" if n_rows == 1 else f"the mean of {n_rows:,} rows given"
        return Reference(name, self._mean_values(rows), features)

    def features(self, X: Any) -> Any:
        """Return rows as the classifier sees them."""
        return transformed(self._steps, X)

    def by_column(self, added: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what columns add, from what features add."""
        origins, n_columns = self.trace.origins, len(self.names)
        if np.array_equal(origins, np.arange(n_columns)):
            return added
        at = np.arange(len(origins)), origins
        groups = csr_array((np.ones(len(origins)), at), shape=(len(origins), n_columns))
        found = np.asarray(added.reshape(-1, len(origins)) @ groups)
        return found.reshape(*added.shape[:-1], n_columns)

    def is_linear(self, k: int) -> bool:
        """Tell whether all features of a column change in proportion to it."""
        return bool(np.isfinite(self.trace.slopes[self.own(k)]).all())

    def own(self, k: int) -> list[int]:
        """Return the features of a column; of a number, the first is its value."""
        found: list[int] = np.flatnonzero(self.trace.origins == k).tolist()
        return found

    def _kept_mean(self) -> tuple[str, NDArray[np.float64]]:
        """Return the training mean that the classifier standardizes by, and its name.

        Sparse rows are not centred: they are compared with a row of zeros.
        """
        try:
            terms = [
                one for one in describe(self._classifier).terms if one.coef is not None
            ]
        except ValueError:  # no words, or projections in front
            terms = []
        if not terms or any(one.scale is None for one in terms):
            raise ValueError(NO_MEAN)
        means = np.zeros((len(terms), len(self.trace.origins)))
        for mean, term in zip(means, terms, strict=True):
            if term.centre is None:
                return "a row of zeros", np.zeros(len(mean))
            columns = np.arange(len(mean)) if term.columns is None else term.columns
            mean[columns] = term.centre[: len(columns)]
        return MEAN, means.mean(axis=0)


class PlainColumns(Columns):
    """Columns of numbers, each of which is a feature, scaled or not.

    Parameters
    ----------
    steps : sequence of transformers
        Each makes features of one column at a time.
    trace : Trace
    classifier : object
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_columns)
        Rows that are explained.
    """

    def __init__(
        self, steps: Sequence[Any], trace: Trace, classifier: Any, X: Any
    ) -> None:
        self._fitted = getattr([*steps, classifier][0], "feature_names_in_", None)
        known = getattr(X, "columns", None) if self._fitted is None else self._fitted
        names = [f"x{k}" for k in range(np.shape(X)[1])] if known is None else known
        super().__init__(steps, trace, [str(name) for name in names], classifier)

    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of rows as they are, columns in the order of the model's."""
        if hasattr(X, "columns") and self._fitted is not None:
            X = X[checked_names(X, self._fitted)]
        found = dense(X)
        if found.dtype == object:  # of a table with gaps of its own kind
            found = check_array(
                X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0
            )
        return found

    def numbers(self, k: int, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values as floats."""
        return np.asarray(values, np.float64)

    def kind(self, k: int) -> str:
        """Return what a column is: here always "number"."""
        return "number"

    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values in some columns."""
        rows = np.array(self.values(X), np.float64)
        for k, values in changes.items():
            rows[:, k] = values
        return dense(transformed(self._steps, rows))

    def _rows(self, given: Any) -> NDArray[np.float64]:
        rows = np.atleast_2d(self.values(framed_series(given)).astype(np.float64))
        if rows.shape[1] != len(self.names):
            raise ValueError(
                f"reference has {rows.shape[1]} columns, but the rows have {len(self.names)}."
            )
        return rows

    def _mean_values(self, rows: Any) -> list[Any]:
        return list(rows.mean(axis=0))

    def _training_mean(self) -> Reference:
        """Return the mean that a scaler keeps, else that of the classifier."""
        for k, step in enumerate(self._steps):
            mean = getattr(step, "mean_", None)
            before = [
                one for one in self._steps[:k] if not isinstance(one, SimpleImputer)
            ]
            if mean is not None and all(scaling_of(one) is not None for one in before):
                row = np.asarray(mean, np.float64)[None]
                for scaler in reversed(before):
                    row = scaler.inverse_transform(row)
                if row.shape[1] == len(self.names):
                    features = dense(transformed(self._steps, row))[0]
                    return Reference(MEAN, list(row[0]), features.astype(np.float64))
        name, mean = self._kept_mean()
        values = [MIXED] * len(self.names) if self._steps else list(mean)
        return Reference(name, values, mean)


class WordColumns(Columns):
    """Texts, whose words are the columns.

    Parameters
    ----------
    vectorizer : transformer
        From texts to a number for each word.
    steps : sequence of transformers
        Between it and the classifier. Each makes features of one word at a time.
    trace : Trace
        From the words to the features.
    classifier : object
    """

    _of_texts = True

    def __init__(
        self,
        vectorizer: CountVectorizer,
        steps: Sequence[Any],
        trace: Trace,
        classifier: Any,
    ) -> None:
        words = [str(name) for name in vectorizer.get_feature_names_out()]
        super().__init__([vectorizer, *steps], trace, words, classifier)

    def values(self, X: Any) -> NDArray[Any]:
        """Return what the vectorizer makes of texts."""
        return dense(self._steps[0].transform(X))

    def numbers(self, k: int, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values as floats."""
        return np.asarray(values, np.float64)

    def kind(self, k: int) -> str:
        """Return what a column is: here always "number"."""
        return "number"

    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values of some words."""
        rows = self.values(X).astype(np.float64)
        for k, values in changes.items():
            rows[:, k] = values
        return dense(transformed(self._steps[1:], rows))

    def _rows(self, given: Any) -> Any:
        return [given] if isinstance(given, str) else texts_of(given, "reference")

    def _mean_values(self, rows: Any) -> list[Any]:
        return list(self.values(rows).mean(axis=0))

    def _training_mean(self) -> Reference:
        """Return a text without words: most texts lack most words."""
        nothing = np.zeros((1, len(self.names)))
        features = dense(transformed(self._steps[1:], nothing))[0].astype(np.float64)
        return Reference("a text without words", list(nothing[0]), features)


NO_MEAN = (
    "This model has not kept the mean of its training rows. Pass reference=: a row, or rows whose "
    "mean is taken, such as the training rows."
)


def texts_of(X: Any, what: str = "X") -> Any:
    """Return texts, if they are a list or a column of such."""
    if np.ndim(X) != 1:
        raise ValueError(
            f"{what} must be a list of texts, or a column of a table: pass the column."
        )
    return X


def checked_names(frame: Any, names: Any) -> list[Any]:
    """Return names of columns, if a table has them all."""
    missing = [repr(str(name)) for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"The table has no column {', '.join(missing)}, which the model was fitted on."
        )
    return list(names)


def framed_series(given: Any) -> Any:
    """Return a row that is a pandas Series as a table of one row."""
    is_row = hasattr(given, "to_frame") and hasattr(given, "index")
    return given.to_frame().T if is_row and np.ndim(given) == 1 else given
