"""From a table to features."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import OneHotEncoder, TargetEncoder
from sklearn.utils.validation import check_is_fitted

from loclin.engine.warned import warn
from loclin.fitting.atomic import atomic
from loclin.fitting.checks import check_number, check_option
from loclin.tables.kinds import (
    KINDS,
    MISSING,
    OTHER,
    PARTS,
    READ,
    Unreadable,
    frame_of,
    kind_of,
    texts_of,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_LONG = 60.0  # days, from which on months tell something
_MOST_WORDS = 5000
_FOLDS = 5


class Numeric(NamedTuple):
    """What fills the gaps of a column of numbers, flags or dates, and what is beside it.

    Parameters
    ----------
    fill : float
    had_gaps : bool
        Whether a column of 0 and 1 says where there was none.
    parts : tuple of str
        Of dates, those that are features: "month", "weekday", "hour".
    """

    fill: float
    had_gaps: bool
    parts: tuple[str, ...] = ()


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turns a table of mixed columns into features for any classifier.

    What becomes of a column depends on its kind:

    - A number stays as it is; gaps get the median, and a column that says so.
    - A flag (true or false) becomes 0 or 1.
    - A category becomes a column of 0 and 1 for each value; rare values share one, and so do
      values that are new. Where values are many, their mean target stands beside them, learned
      by cross-fitting.
    - A date becomes days, and where it tells more, month, weekday and hour.
    - A text becomes the first components of its words (TF-IDF, truncated SVD).
    - What numbers or names the rows is left out; `notes_` says so.

    Parameters
    ----------
    kinds : dict, default=None
        Kinds of columns where you know better: "number", "flag", "category", "date", "text" or
        "leave out", by name.
    max_categories : int, default=30
        Most columns of a category; of more values, the rarest share one.
    min_frequency : int, default=5
        Rows that a value of a category needs for a column of its own.
    n_components : int, default=20
        Most columns of a text.
    random_state : int, RandomState instance or None, default=0
        Seed of the components and of the cross-fitting.

    Attributes
    ----------
    kinds_ : dict
        Kinds of all columns, by name.
    notes_ : list of str
        What was left out, and why.
    origins_ : list of str
        The table's column behind each feature.
    means_ : ndarray of shape (n_features,)
        Means of the features over the training rows: the reference of `contributions`.

    Notes
    -----
    Fit it inside a pipeline, as below: then a cross-validation learns medians, categories and
    words anew in each fold, and nothing leaks.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from loclin import ML3Classifier
    >>> from loclin.tables import TableEncoder, contributions
    >>> table = pd.DataFrame({
    ...     "age": [31, 45, None, 52] * 10,
    ...     "plan": ["basic", "gold", "basic", None] * 10,
    ...     "since": ["2024-01-05", "2023-11-30", "2024-02-11", "2022-07-01"] * 10,
    ... })
    >>> churned = ["no", "yes", "no", "yes"] * 10
    >>> model = make_pipeline(TableEncoder(), ML3Classifier(random_state=0)).fit(table, churned)
    >>> model[0].kinds_
    {'age': 'number', 'plan': 'category', 'since': 'date'}
    >>> str(model.predict(table)[1])
    'yes'
    >>> list(contributions(model, table[:1]).columns)
    ['age', 'plan', 'since', 'reference']
    """

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        max_categories: int = 30,
        min_frequency: int = 5,
        n_components: int = 20,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.kinds = kinds
        self.max_categories = max_categories
        self.min_frequency = min_frequency
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn what the columns are.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            Of pandas, or of another library with a method `to_pandas`.
        y : array-like of shape (n_samples,), default=None
            Labels: needed where categories have many values.

        Returns
        -------
        self : object
        """
        self.fit_transform(X, y)
        return self

    @atomic
    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> NDArray[np.float64]:
        """Learn what the columns are, and return the features of these rows.

        They differ from those of `transform` where the mean target of a category is a feature: a
        row's own target has no part in it.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
        y : array-like of shape (n_samples,), default=None

        Returns
        -------
        features : ndarray of shape (n_samples, n_features)
        """
        self._check_parameters()
        frame = frame_of(X)
        self.n_features_in_ = frame.shape[1]
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self._note_kinds(frame)
        self._numeric: dict[str, Numeric] = {}
        self._fitted: dict[str, list[Any]] = {}
        blocks, self.origins_, self._names = [], [], []
        for name, kind in self.kinds_.items():
            block, names = self._fitted_block(name, kind, frame[name], y)
            blocks.append(block)
            self._names += names
            self.origins_ += [name] * len(names)
        if not self._names:
            raise ValueError(
                f"No column is left to learn from: {'; '.join(self.notes_)}."
            )
        features = np.hstack(blocks)
        self.means_ = features.mean(axis=0)
        return features

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the features of rows.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            With the columns of the table it was fitted on, in any order; others are not used.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features)

        Raises
        ------
        ValueError
            If columns are missing.
        """
        check_is_fitted(self)
        frame = frame_of(X)
        missing = [name for name, kind in self.kinds_.items()
                   if kind != "leave out" and name not in frame.columns]  # fmt: skip
        if missing:
            raise ValueError(
                f"The table has no column {', '.join(map(repr, missing))}, which the model was "
                f"fitted on. Its columns are {[str(name) for name in frame.columns]}."
            )
        if not len(frame):
            return np.empty((0, len(self._names)))
        blocks = [
            self._block(name, kind, frame[name])
            for name, kind in self.kinds_.items()
            if kind != "leave out"
        ]
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return np.array(self._names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "means_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _check_parameters(self) -> None:
        check_number(
            "max_categories", self.max_categories, Integral, low=2, open_high=True
        )
        check_number("min_frequency", self.min_frequency, Integral, low=1, open_high=True)
        check_number("n_components", self.n_components, Integral, low=1, open_high=True)
        for name, kind in (self.kinds or {}).items():
            check_option(f"kinds[{name!r}]", kind, set(KINDS))

    def _note_kinds(self, frame: DataFrame) -> None:
        given = dict(self.kinds or {})
        unknown = sorted(set(given) - set(frame.columns))
        if unknown:
            raise ValueError(f"kinds names {unknown}, which are no columns of the table.")
        self.kinds_, self.notes_ = {}, []
        for name in frame.columns:
            kind, reason = kind_of(name, frame[name])
            kind = given.get(name, kind)
            self.kinds_[str(name)] = kind
            if kind == "leave out":
                self.notes_.append(f"{name!r} is left out: {reason or 'as you asked'}")

    def _fitted_block(
        self, name: str, kind: str, column: Series, y: Any
    ) -> tuple[NDArray[np.float64], list[str]]:
        """Return the features of a training column, and their names; keep what they need."""
        if kind == "leave out":
            return np.empty((len(column), 0)), []
        if kind == "category":
            return self._fitted_category(name, column, y)
        if kind == "text":
            return self._fitted_text(name, column)
        values = READ[kind](column)
        gaps = np.isnan(values)
        if gaps.all():
            raise ValueError(
                f"kinds[{name!r}]={kind!r}, but none of its values is a {kind}."
            )
        parts: tuple[str, ...] = ()
        if kind == "date":
            known = values[~gaps]
            if known.max() - known.min() > _LONG:
                parts = (*parts, "month")
            parts = (*parts, "weekday")
            if (known % 1).any():
                parts = (*parts, "hour")
        self._numeric[name] = Numeric(
            float(np.nanmedian(values)), bool(gaps.any()), parts
        )
        names = [name, *(f"{name} {part}" for part in parts)]
        names += [f"{name} {MISSING}"] if gaps.any() else []
        return self._filled(name, values), names

    def _fitted_category(
        self, name: str, column: Series, y: Any
    ) -> tuple[NDArray[np.float64], list[str]]:
        texts = texts_of(column, MISSING)[:, None]
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=self.min_frequency,
            max_categories=self.max_categories,
            sparse_output=False,
        )
        blocks = [one_hot.fit_transform(texts)]
        shown = [value.removeprefix("x0_") for value in one_hot.get_feature_names_out()]
        names = [
            f"{name} = {OTHER if value == 'infrequent_sklearn' else value}"
            for value in shown
        ]
        encoders: list[Any] = [one_hot]
        many = len(one_hot.categories_[0]) > self.max_categories
        n_folds = (
            0 if y is None else min(_FOLDS, np.unique(y, return_counts=True)[1].min())
        )
        if many and n_folds > 1:
            means = _mean_targets(texts, np.asarray(y), n_folds, self.random_state)
            blocks.append(means)
            names += [f"{name}, mean target {k}" for k in range(means.shape[1])]
            encoders.append(TargetEncoder().fit(texts, y))
        self._fitted[name] = encoders
        return np.hstack(blocks), names

    def _fitted_text(
        self, name: str, column: Series
    ) -> tuple[NDArray[np.float64], list[str]]:
        words = TfidfVectorizer(
            sublinear_tf=True,
            min_df=2 if len(column) > 1 else 1,
            max_features=_MOST_WORDS,
        )
        try:
            weights = words.fit_transform(texts_of(column, ""))
        except ValueError as error:
            raise ValueError(
                f"column {name!r} looks like text, but no word occurs twice in it. Pass "
                f"kinds={{{name!r}: 'leave out'}}."
            ) from error
        n_components = min(self.n_components, *(size - 1 for size in weights.shape))
        if n_components < 1:
            self._fitted[name] = [words]
            names = [f"{name}, word {k}" for k in range(weights.shape[1])]
            return np.asarray(weights.toarray()), names
        svd = TruncatedSVD(n_components, random_state=self.random_state)
        self._fitted[name] = [words, svd]
        block = np.asarray(svd.fit_transform(weights), np.float64)
        return block, [f"{name}, component {k}" for k in range(block.shape[1])]

    def _block(self, name: str, kind: str, column: Series) -> NDArray[np.float64]:
        """Return the features of a column of new rows."""
        if kind == "text":
            words, *rest = self._fitted[name]
            weights = words.transform(texts_of(column, ""))
            found = rest[0].transform(weights) if rest else weights.toarray()
            return np.asarray(found, np.float64)
        if kind == "category":
            texts = texts_of(column, MISSING)[:, None]
            return np.hstack([encoder.transform(texts) for encoder in self._fitted[name]])
        values = READ[kind](column)
        unread = int((np.isnan(values) & column.notna().to_numpy()).sum())
        if unread:
            warn(
                f"column {name!r}: {unread} of {len(values)} values are no {kind}, or infinite, "
                "and count as missing.",
                Unreadable,
            )
        return self._filled(name, values)

    def _filled(self, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values without gaps, parts of dates, and where the gaps were."""
        known = self._numeric[name]
        gaps = np.isnan(values)
        filled = np.where(gaps, known.fill, values)
        columns = [filled, *(PARTS[part](filled) for part in known.parts)]
        if known.had_gaps:
            columns.append(gaps.astype(np.float64))
        return np.stack(columns, axis=1)


def _mean_targets(
    texts: NDArray[Any], y: NDArray[Any], n_folds: int, seed: Any
) -> NDArray[np.float64]:
    """Return the mean targets of values, each row's by the rows of other folds."""
    folds = StratifiedKFold(int(n_folds), shuffle=True, random_state=seed)
    parts = [
        (test, TargetEncoder().fit(texts[train], y[train]).transform(texts[test]))
        for train, test in folds.split(texts, y)
    ]
    means = np.empty((len(y), parts[0][1].shape[1]))
    for test, of_fold in parts:
        means[test] = of_fold
    return means
