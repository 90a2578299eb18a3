"""From the columns that a person knows to the features that a classifier sees."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from loclin.inspection.mixing import Behind, is_linear
from loclin.inspection.tracing import SCALERS, Trace, transformed
from loclin.tables import TableEncoder
from loclin.tables.cells import frame_of, pandas

_MEAN = "the mean training row"
_MIXED = "(mean)"  # what a category or a text is in a mean of rows


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

    Attributes
    ----------
    names : list of str
    trace : Trace
    """

    def __init__(self, steps: Sequence[Any], trace: Trace, names: list[str]) -> None:
        self._steps, self.trace, self.names = steps, trace, names

    @abstractmethod
    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of rows as they are."""

    @abstractmethod
    def numbers(self, k: int, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values of a column of numbers or dates as floats; NaN for gaps."""

    @abstractmethod
    def reference(self, given: Any) -> Reference:
        """Return what rows are compared with; None for the training mean."""

    @abstractmethod
    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values in some columns."""

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

    @abstractmethod
    def kind(self, k: int) -> str:
        """Return what a column is: "number", or another kind of a `TableEncoder`."""

    def is_linear(self, k: int) -> bool:
        """Tell whether all features of a column change in proportion to it."""
        return bool(np.isfinite(self.trace.slopes[self.own(k)]).all())

    def own(self, k: int) -> list[int]:
        """Return the features of a column; of a number, the first is its value."""
        return np.flatnonzero(self.trace.origins == k).tolist()


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
        if np.ndim(X) != 2:
            raise ValueError("X must have rows and columns: pass X[:1], not X[0].")
        known = getattr(X, "columns", self._fitted)
        names = [f"x{k}" for k in range(np.shape(X)[1])] if known is None else known
        super().__init__(steps, trace, [str(name) for name in names])

    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of rows as they are."""
        return _dense(X)

    def numbers(self, k: int, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values as floats."""
        return np.asarray(values, np.float64)

    def kind(self, k: int) -> str:
        """Return what a column is: here always "number"."""
        return "number"

    def reference(self, given: Any) -> Reference:
        """Return what rows are compared with; None for the training mean."""
        rows = self._training_mean() if given is None else self._rows(given)
        if rows.shape[1] != len(self.names):
            raise ValueError(
                f"reference has {rows.shape[1]} columns, but the rows have {len(self.names)}."
            )
        features: Any = np.empty(0)
        if len(rows) and np.isfinite(rows).all(axis=0).any():
            features = _dense(transformed(self._steps, rows)).astype(np.float64)
        if not (features.size and np.isfinite(features).all()):
            raise ValueError(
                "reference has no rows, or values that are no finite numbers."
            )
        name = _MEAN if given is None else _name_of(len(rows))
        return Reference(name, list(rows.mean(axis=0)), features.mean(axis=0))

    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values in some columns."""
        rows = np.array(_dense(X), np.float64)
        for k, values in changes.items():
            rows[:, k] = values
        return _dense(transformed(self._steps, rows))

    def _training_mean(self) -> NDArray[np.float64]:
        for k, step in enumerate(self._steps):
            mean = getattr(step, "mean_", None)
            before = [
                one for one in self._steps[:k] if not isinstance(one, SimpleImputer)
            ]
            if mean is not None and all(isinstance(one, SCALERS) for one in before):
                row = np.asarray(mean, np.float64)[None]
                for scaler in reversed(before):
                    row = scaler.inverse_transform(row)
                if row.shape[1] == len(self.names):
                    return np.asarray(row)
        raise ValueError(_NO_MEAN)

    def _rows(self, given: Any) -> NDArray[np.float64]:
        """Return a reference as rows, columns in the order of the model's."""
        given = _framed_series(given)
        if hasattr(given, "columns") and self._fitted is not None:
            missing = [name for name in self._fitted if name not in given.columns]
            if missing:
                raise ValueError(
                    f"reference has no column {', '.join(map(repr, missing))}."
                )
            given = given[list(self._fitted)]
        return np.atleast_2d(_dense(given).astype(np.float64))


class TableColumns(Columns):
    """Columns of a table, each of which may be several features.

    Parameters
    ----------
    steps : sequence of transformers
        The first is a `TableEncoder`, or makes features of a table's columns otherwise.
    trace : Trace
    names : list of str
        Of all columns of the table. Those that have no features are left out.
    """

    def __init__(self, steps: Sequence[Any], trace: Trace, names: list[str]) -> None:
        used, origins = np.unique(trace.origins, return_inverse=True)
        super().__init__(
            steps, Trace(origins, trace.slopes), [names[k] for k in used.tolist()]
        )
        is_ours = isinstance(steps[0], TableEncoder)
        self._encoder: TableEncoder | None = steps[0] if is_ours else None

    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of rows as they are."""
        values: NDArray[Any] = frame_of(X)[self.names].to_numpy(dtype=object)
        return values

    def numbers(self, k: int, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values of a column of numbers or dates as floats; NaN for gaps."""
        if self._encoder is not None:
            return self._encoder.numbers_of(self.names[k], values)
        found = pandas().to_numeric(pandas().Series(values), errors="coerce")
        return np.asarray(found, np.float64)

    def reference(self, given: Any) -> Reference:
        """Return what rows are compared with; None for the training mean."""
        if given is None:
            if self._encoder is None:
                raise ValueError(_NO_MEAN)
            mean = self._encoder.means_
            features = _dense(transformed(self._steps[1:], mean[None]))[0]
            return Reference(_MEAN, self._mean_values(mean), features)
        frame = frame_of(_framed_series(given))
        if not len(frame):
            raise ValueError("reference has no rows.")
        features = _dense(self.features(frame)).astype(np.float64).mean(axis=0)
        rows = self.values(frame)
        values = list(rows[0]) if len(rows) == 1 else self._means(frame, rows)
        return Reference(_name_of(len(rows)), values, features)

    def kind(self, k: int) -> str:
        """Return what a column is: one of the kinds of a `TableEncoder`."""
        if self._encoder is None:
            return "number" if self.is_linear(k) else "category"
        return str(self._encoder.kinds_[self.names[k]])

    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values in some columns."""
        values = {self.names[k]: of_column for k, of_column in changes.items()}
        return _dense(self.features(frame_of(X).assign(**values)))

    def _means(self, frame: Any, rows: NDArray[Any]) -> list[Any]:
        """Return the values of the mean of rows, where a mean has any."""
        if self._encoder is not None:
            return self._mean_values(_dense(self._encoder.transform(frame)).mean(axis=0))
        return [
            float(np.nanmean(self.numbers(k, rows[:, k])))
            if self.kind(k) == "number"
            else _MIXED
            for k in range(len(self.names))
        ]

    def _mean_values(self, mean: NDArray[np.float64]) -> list[Any]:
        """Return the values of a mean row of the encoder."""
        assert self._encoder is not None
        features = list(self._encoder.get_feature_names_out())
        values: list[Any] = []
        for name in self.names:
            kind = self._encoder.kinds_[name]
            if kind in ("category", "text"):
                values.append(_MIXED)
                continue
            value = float(mean[features.index(name)])
            if kind == "flag":
                values.append(f"{100 * value:.0f} % true")
            elif kind == "date":
                values.append(str(np.datetime64(math.floor(value), "D")))
            else:
                values.append(value)
        return values


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
    """

    def __init__(self, vectorizer: Any, steps: Sequence[Any], trace: Trace) -> None:
        words = [str(name) for name in vectorizer.get_feature_names_out()]
        super().__init__([vectorizer, *steps], trace, words)

    def values(self, X: Any) -> NDArray[Any]:
        """Return what the vectorizer makes of texts."""
        return _dense(self._steps[0].transform(X))

    def numbers(self, k: int, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values as floats."""
        return np.asarray(values, np.float64)

    def kind(self, k: int) -> str:
        """Return what a column is: here always "number"."""
        return "number"

    def reference(self, given: Any) -> Reference:
        """Return what texts are compared with; None for a text without known words."""
        texts = [given] if isinstance(given, str) else given
        rows = np.zeros((1, len(self.names))) if texts is None else self.values(texts)
        if not len(rows):
            raise ValueError("reference has no rows.")
        name = "a text without words" if texts is None else _name_of(len(rows))
        features = _dense(transformed(self._steps[1:], rows)).astype(np.float64)
        return Reference(name, list(rows.mean(axis=0)), features.mean(axis=0))

    def changed(self, X: Any, changes: Mapping[int, Any]) -> NDArray[np.float64]:
        """Return rows as the classifier sees them, with other values of some words."""
        rows = self.values(X).astype(np.float64)
        for k, values in changes.items():
            rows[:, k] = values
        return _dense(transformed(self._steps[1:], rows))


def columns_of(model: Any, X: Any) -> tuple[Columns, Any]:
    """Return the columns that a model's features come from, and its classifier.

    Linear steps that mix columns, such as a `PCA`, are a part of the classifier that is returned.

    Raises
    ------
    TypeError
        If the model has other steps, or no local models.
    """
    *before, classifier = steps_of(model)
    if not hasattr(classifier, "local_model"):
        raise TypeError(
            f"{type(classifier).__name__} has no method local_model: pass a classifier that has, "
            "or a pipeline that ends in one; of a search, its best_estimator_."
        )
    check_is_fitted(classifier)
    first = [*before, classifier][0]
    if isinstance(first, CountVectorizer):  # and TfidfVectorizer
        own, mixing, trace = _traced(before[1:], len(first.get_feature_names_out()))
        return WordColumns(first, own, trace), _behind(mixing, classifier)
    own, mixing, trace = _traced(before, int(getattr(first, "n_features_in_", 0)))
    behind = _behind(mixing, classifier)
    if (own and not np.isfinite(trace.slopes).all()) or isinstance(first, TableEncoder):
        names = getattr(first, "feature_names_in_", None)
        names = frame_of(X).columns if names is None else names
        return TableColumns(own, trace, [str(name) for name in names]), behind
    return PlainColumns(own, trace, classifier, X), behind


def _traced(steps: list[Any], n_columns: int) -> tuple[list[Any], list[Any], Trace]:
    """Return the steps that make features of one column each, the others, and the trace."""
    trace = Trace.of_columns(n_columns)
    for k, step in enumerate(steps):
        further = trace.through(step)
        if further is None:
            return steps[:k], steps[k:], trace
        trace = further
    return steps, [], trace


def _behind(mixing: list[Any], classifier: Any) -> Any:
    for step in mixing:
        if not is_linear(step):
            raise _strange(step)
    return Behind(mixing, classifier) if mixing else classifier


def _strange(step: Any) -> TypeError:
    return TypeError(
        f"The step {type(step).__name__} cannot be explained in the columns in front of it. Steps "
        "may be encoders and scalers of single columns, a ColumnTransformer of these, and linear "
        "projections such as PCA. Or transform the rows first, and pass the classifier alone."
    )


def steps_of(model: Any) -> list[Any]:
    """Return the fitted steps of a model; a classifier alone is one."""
    if not isinstance(model, Pipeline):
        return [model]
    return [step for _, step in model.steps if step not in (None, "passthrough")]


_NO_MEAN = (
    "This model has not kept the mean of its training rows. Pass reference=: a row, or rows whose "
    "mean is taken, such as the training rows."
)


def _dense(X: Any) -> NDArray[Any]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def _framed_series(given: Any) -> Any:
    """Return a row that is a pandas Series as a table of one row."""
    is_row = hasattr(given, "to_frame") and hasattr(given, "index")
    return given.to_frame().T if is_row and np.ndim(given) == 1 else given


def _name_of(n_rows: int) -> str:
    return "the row given" if n_rows == 1 else f"the mean of {n_rows:,} rows given"
