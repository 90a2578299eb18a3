"""From a table to features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from loclin.engine.warned import warn
from loclin.fitting.atomic import atomic
from loclin.fitting.checks import check_number, check_option
from loclin.tables.cells import Cells, frame_of, pandas
from loclin.tables.features import fit_category, fit_numeric, fit_text
from loclin.tables.kinds import KINDS, Decision, Unreadable, kind_of, style_of, values_of

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_SHOWN = 10  # names in a message


class _Learned(NamedTuple):
    """What columns say while they are learned: features, notes with their columns, problems."""

    blocks: list[NDArray[np.float64]]
    notes: dict[str, list[str]]
    problems: list[str]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turns a table of mixed columns into features for any classifier.

    What becomes of a column depends on its kind:

    - A number stays as it is; gaps get the median, and a column that says so. It may be written:
      "1,234.5", "1.234,5", "5%" (0.05), "12 €".
    - A flag (true or false, yes or no) becomes 0 or 1.
    - A category becomes a column of 0 and 1 for each value; rare values share one, and so do
      values that are new. Where values are many, their mean target stands beside them, learned
      by cross-fitting.
    - A date becomes days, and where it tells more, month, weekday and hour.
    - A text becomes the first components of its words (TF-IDF, truncated SVD).
    - Columns that number or name the rows are left out; `notes_` says so.

    Marks of missing values, such as "?" and "N/A", are gaps in numbers, dates and flags. In a
    category they are values. What a column is, and how its numbers and dates are written, is
    learned from all training rows and kept, so that a table means the same in parts.

    Parameters
    ----------
    kinds : dict, default=None
        Kinds of columns that you name yourself: "number", "flag", "category", "date", "text" or
        "leave out", by name.
    max_categories : int, default=30
        Maximum number of columns for a category; beyond it, the rarest values share one.
    min_frequency : int, default=5
        Rows that a value of a category needs for a column of its own.
    n_components : int, default=20
        Maximum number of columns for a text.
    random_state : int, RandomState instance or None, default=0
        Seed of the components and of the cross-fitting.

    Attributes
    ----------
    kinds_ : dict
        Kinds of all columns, by name.
    notes_ : list of str
        What was left out, and why; and how columns were read whose values can be read in several
        ways.
    origins_ : list of str
        The table's column behind each feature.
    means_ : ndarray of shape (n_features,)
        Means of the features over the training rows: the reference of
        `loclin.inspection.contributions`.

    Notes
    -----
    Fit it inside a pipeline, as below: then a cross-validation learns medians, categories and
    words anew in each fold, and nothing leaks.

    Features are in the units of the table. Most classifiers of loclin scale them inside;
    `USSVMClassifier` does not, nor do others' linear models. Put a scaler between, as in
    ``make_pipeline(TableEncoder(), StandardScaler(), USSVMClassifier())``; `contributions` explains
    that, too.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import contributions
    >>> from loclin.tables import TableEncoder
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
        frame = frame_of(X)
        self._check(frame)
        self.n_features_in_ = frame.shape[1]
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.kinds_: dict[str, str] = {}
        self._columns: dict[str, Any] = {}
        learned = _Learned([], {}, [])
        wanted = {str(name): kind for name, kind in (self.kinds or {}).items()}
        for name, column in frame.items():
            self._fit_column(str(name), Cells(column), wanted.get(str(name)), y, learned)
        self.notes_ = [_note(*note) for note in learned.notes.items()]
        if learned.problems:
            raise ValueError(" ".join(learned.problems))
        if not learned.blocks:
            why = f": {_few(self.notes_, '; ')}" if self.notes_ else ""
            raise ValueError(f"No column is left to learn from{why}.")
        of_columns = {name: one.names() for name, one in self._columns.items()}
        self._names = [name for names in of_columns.values() for name in names]
        self.origins_ = [name for name, names in of_columns.items() for _ in names]
        features = np.hstack(learned.blocks)
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
        features, found = self.transform_and_note(X)
        for (name, what), count in found.items():
            if what.startswith("values are no "):
                warn(f"column {name!r}: {count} of {len(features)} {what}.", Unreadable)
        return features

    def transform_and_note(
        self, X: Any
    ) -> tuple[NDArray[np.float64], Counter[tuple[str, str]]]:
        """Return the features of rows, and where they are not like the training rows.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)

        Returns
        -------
        features : ndarray of shape (n_samples, n_features)
        found : Counter
            How many rows, by column and by what was found there: values that are new, gaps
            where the training rows had none, values of another kind.
        """
        check_is_fitted(self)
        frame = frame_of(X)
        columns = dict(frame.items())
        missing = [repr(name) for name in self._columns if name not in columns]
        if missing:
            raise ValueError(
                f"The table has no column {_few(missing)}, which the model was fitted on. "
                f"Its columns are {_few([repr(name) for name in columns])}."
            )
        twice = [name for name in _twice(frame) if name in self._columns]
        if twice:
            raise ValueError(_TWICE.format(_few(list(map(repr, twice)))))
        found: Counter[tuple[str, str]] = Counter()
        if not len(frame):
            return np.empty((0, len(self._names))), found
        blocks = [
            one.features(Cells(columns[name]), found)
            for name, one in self._columns.items()
        ]
        return np.hstack(blocks), +found

    def numbers_of(self, name: str, values: Any) -> NDArray[np.float64]:
        """Return values of a column of numbers, flags or dates, read as it was learned.

        Parameters
        ----------
        name : str
            One that `kinds_` calls "number", "flag" or "date".
        values : array-like of shape (n,)

        Returns
        -------
        numbers : ndarray of shape (n,)
            Dates are days since 1970. NaN where there is a gap, or a value of another kind.
        """
        check_is_fitted(self)
        column = self._columns[name]
        cells = Cells(pandas().Series(values))
        return values_of(column.kind, cells, column.style, column.words)[0]

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

    def _check(self, frame: DataFrame) -> None:
        """Raise ValueError that tells all that is wrong with parameters and names."""
        for parameter, low in (
            ("max_categories", 2),
            ("min_frequency", 1),
            ("n_components", 1),
        ):
            value = getattr(self, parameter)
            check_number(parameter, value, Integral, low=low, open_high=True)
        problems = []
        for name, kind in (self.kinds or {}).items():
            try:
                check_option(f"kinds[{name!r}]", kind, set(KINDS))
            except ValueError as error:
                problems.append(str(error))
        unknown = [
            repr(name) for name in self.kinds or {} if str(name) not in frame.columns
        ]
        if unknown:
            problems.append(
                f"kinds names {_few(unknown)}, which are no columns of the table."
            )
        twice = _twice(frame)
        if twice:
            problems.append(_TWICE.format(_few(list(map(repr, twice)))))
        if not len(frame):
            problems.append("The table has no rows.")
        if problems:
            raise ValueError(" ".join(problems))

    def _fit_column(
        self, name: str, cells: Cells, wanted: str | None, y: Any, learned: _Learned
    ) -> None:
        """Note what a column is, and add the features of its rows, or what is wrong."""
        kind, reason, style = self._decision(name, cells, wanted)
        found: Any = None
        if kind == "category":
            options = self.max_categories, self.min_frequency, self.random_state
            found = fit_category(name, cells, y, *options)
        elif kind == "text":
            found = fit_text(name, cells, self.n_components, self.random_state)
            if found is None:
                kind, reason = "leave out", "no word occurs twice in it"
        elif kind != "leave out":
            found = fit_numeric(name, kind, style, cells)
            if found is None:
                learned.problems.append(
                    f"kinds[{name!r}]={kind!r}, but none of its values is a {kind}."
                )
        self.kinds_[name] = kind
        if reason:
            how = "left out" if kind == "leave out" else f"read as a {kind}"
            learned.notes.setdefault(f"is {how}: {reason}", []).append(repr(name))
        if found is not None:
            self._columns[name], block = found
            learned.blocks.append(block)

    def _decision(self, name: str, cells: Cells, wanted: str | None) -> Decision:
        """Return what a column is: as the user wants, else by its values."""
        found = kind_of(name, cells)
        kind = wanted or found.kind
        if kind == found.kind:
            return found
        if kind == "leave out":
            return Decision(kind, "as you asked")
        if kind not in ("number", "date") or cells.form != "texts":
            return Decision(kind, "", ".")
        style, note = style_of(kind, cells.distinct[0])
        return Decision(kind, note, style or ("." if kind == "number" else "iso"))


_TWICE = "The columns {} are there more than once. Rename them."


def _twice(frame: DataFrame) -> list[str]:
    if frame.columns.is_unique:
        return []
    return sorted(name for name, count in Counter(frame.columns).items() if count > 1)


def _note(what: str, names: list[str]) -> str:
    """Return what is said of a column, and of which others it is true."""
    others = f" (likewise {_few(names[1:])})" if len(names) > 1 else ""
    return f"{names[0]} {what}{others}"


def _few(names: list[str], between: str = ", ") -> str:
    """Return names as one text; of many the first."""
    more = len(names) - _MOST_SHOWN
    shown = between.join(names[:_MOST_SHOWN])
    return f"{shown}{between}and {more} more" if more > 0 else shown
