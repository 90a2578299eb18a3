"""What becomes of a column: its features, and what new rows need of the training rows.

Each has `features`, which returns those of a column of new rows, and the names of the features.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import TargetEncoder

from loclin.tables.cells import Cells, pandas
from loclin.tables.dates import PARTS
from loclin.tables.kinds import MISSING, OTHER, unread_words, values_of

_LONG = 60.0  # days, from which on months tell something
_MOST_WORDS = 5000
_FOLDS = 5

UNREAD = "values are no {}, or infinite, and count as missing"
NEW_GAPS = "gaps get the median; the training rows had none"
NEW_VALUES = "values are new and count as rare"

Block = NDArray[np.float64]
Found = Counter[tuple[str, str]]  # rows, by column and what was found there


class Numeric(NamedTuple):
    """A column of numbers, flags or dates.

    Parameters
    ----------
    name, kind, style : str
        `style` says how numbers or dates are written.
    fill : float
        What gaps get.
    had_gaps : bool
        Whether a column of 0 and 1 says where there was none.
    parts : tuple of str
        Of dates, those that are features: "month", "weekday", "hour".
    words : tuple of str
        Texts among the training rows that count as missing.
    """

    name: str
    kind: str
    style: str
    fill: float
    had_gaps: bool
    parts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Return the names of the features."""
        parts = [f"{self.name} {part}" for part in self.parts]
        return [self.name, *parts, *([f"{self.name} {MISSING}"] if self.had_gaps else [])]

    def features(self, cells: Cells, found: Found) -> Block:
        """Return the features of rows; count values of another kind, and gaps that are new."""
        values, n_unread = values_of(self.kind, cells, self.style, self.words)
        found[self.name, UNREAD.format(self.kind)] += n_unread
        if not self.had_gaps:
            found[self.name, NEW_GAPS] += int(np.isnan(values).sum()) - n_unread
        return self.filled(values)

    def filled(self, values: Block) -> Block:
        """Return values without gaps, parts of dates, and where the gaps were."""
        gaps = np.isnan(values)
        filled = np.where(gaps, self.fill, values)
        columns = [filled, *(PARTS[part](filled) for part in self.parts)]
        if self.had_gaps:
            columns.append(gaps.astype(np.float64))
        return np.stack(columns, axis=1)


class Category(NamedTuple):
    """A column of categories.

    Parameters
    ----------
    name : str
    values : ndarray of str
        The different values, in order; a gap is one, too.
    places : ndarray of int
        The column of 0 and 1 of each value, and at the end that of values that are new: -1 for
        none.
    shown : tuple of str
        What the columns of 0 and 1 are called.
    means : ndarray of shape (n_values + 1, n_means)
        Mean targets of the values, and at the end of values that are new.
    """

    name: str
    values: NDArray[Any]
    places: NDArray[np.intp]
    shown: tuple[str, ...]
    means: Block

    def names(self) -> list[str]:
        """Return the names of the features."""
        means = [f"{self.name}, mean target {k}" for k in range(self.means.shape[1])]
        return [*(f"{self.name} = {value}" for value in self.shown), *means]

    def features(self, cells: Cells, found: Found) -> Block:
        """Return the features of rows; count values that are new."""
        codes = self.codes(cells)
        found[self.name, NEW_VALUES] += int((codes < 0).sum())
        return self.block(codes, self.means[codes])

    def codes(self, cells: Cells) -> NDArray[np.intp]:
        """Return the place of each row's value among the values; -1 where it is new."""
        texts, places = cells.distinct
        known = pandas().Index(self.values, dtype=object)
        return np.asarray(known.get_indexer([*texts, MISSING])[places])

    def block(self, codes: NDArray[np.intp], means: Block) -> Block:
        """Return 0 and 1 for each value that has a column, and the means beside them."""
        n = len(self.shown)
        block = np.zeros((len(codes), n + means.shape[1]))
        places = self.places[codes]
        rows = np.flatnonzero(places >= 0)
        block[rows, places[rows]] = 1.0
        block[:, n:] = means
        return block


class Text(NamedTuple):
    """A column of texts.

    Parameters
    ----------
    name : str
    words : TfidfVectorizer
    components : TruncatedSVD or None
        None where words are so few that each is a feature.
    """

    name: str
    words: Any
    components: Any

    def names(self) -> list[str]:
        """Return the names of the features."""
        if self.components is None:
            return [f"{self.name}, word {k}" for k in range(len(self.words.vocabulary_))]
        n_components = self.components.components_.shape[0]
        return [f"{self.name}, component {k}" for k in range(n_components)]

    def features(self, cells: Cells, found: Found) -> Block:
        """Return the features of rows; a text that is new is nothing of note."""
        texts, places = cells.distinct
        weights = self.words.transform([*texts, ""])
        found = (
            weights.toarray()
            if self.components is None
            else self.components.transform(weights)
        )
        return np.asarray(found, np.float64)[places]


def fit_numeric(
    name: str, kind: str, style: str, cells: Cells
) -> tuple[Numeric, Block] | None:
    """Return what is known of a column of numbers, flags or dates; None where it has none."""
    values, n_unread = values_of(kind, cells, style)
    gaps = np.isnan(values)
    known = values[~gaps]
    if not len(known):
        return None
    parts: tuple[str, ...] = ()
    if kind == "date":
        if known.max() - known.min() > _LONG:
            parts = (*parts, "month")
        parts = (*parts, "weekday")
        if (known % 1).any():
            parts = (*parts, "hour")
    words = unread_words(kind, cells, style) if n_unread and cells.form == "texts" else ()
    fill = float(np.median(known))
    fitted = Numeric(name, kind, style, fill, bool(gaps.any()), parts, words)
    return fitted, fitted.filled(values)


def fit_category(
    name: str, cells: Cells, y: Any, max_categories: int, min_frequency: int, seed: Any
) -> tuple[Category, Block]:
    """Return what is known of a column of categories, and the features of its rows."""
    texts, places = cells.distinct
    has_gaps = bool((places < 0).any()) and MISSING not in texts
    values = np.array([*texts, *([MISSING] if has_gaps else [])], object)
    order = np.argsort(values)
    values, rank = values[order], np.argsort(order)
    codes = (
        rank[places] if has_gaps else np.append(rank, _place_of(values, MISSING))[places]
    )
    counts = np.bincount(codes, minlength=len(values))
    own = counts >= min_frequency
    if own.sum() + (not own.all()) > max_categories:
        commonest = np.argsort(-counts, kind="stable")[: max_categories - 1]
        own &= np.isin(np.arange(len(values)), commonest)
    n_own = int(own.sum())
    rare = n_own if n_own < len(values) else -1
    columns = np.append(np.where(own, np.cumsum(own) - 1, rare), rare)
    shown = (*values[own], *([OTHER] if rare >= 0 else []))
    n_folds = 0
    if len(values) > max_categories and y is not None:
        n_folds = min(_FOLDS, int(np.unique(y, return_counts=True)[1].min()))
    means, of_rows = np.empty((len(values) + 1, 0)), np.empty((len(codes), 0))
    if n_folds > 1:
        y = np.asarray(y)
        means = _means_of(codes, y, len(values))
        of_rows = np.empty((len(codes), means.shape[1]))
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        for train, test in folds.split(codes, y):
            of_rows[test] = _means_of(codes[train], y[train], len(values))[codes[test]]
    fitted = Category(name, values, columns, shown, means)
    return fitted, fitted.block(codes, of_rows)


def _place_of(values: NDArray[Any], value: str) -> int:
    found = np.flatnonzero(values == value)
    return int(found[0]) if len(found) else -1


def _means_of(codes: NDArray[np.intp], y: NDArray[Any], n_values: int) -> Block:
    """Return the mean targets of values, and at the end of one that is not among the rows."""
    encoder = TargetEncoder().fit(codes[:, None], y)
    return np.asarray(encoder.transform(np.arange(n_values + 1)[:, None]))


def fit_text(
    name: str, cells: Cells, n_components: int, seed: Any
) -> tuple[Text, Block] | None:
    """Return what is known of a column of texts; None where no word occurs twice."""
    texts, places = cells.distinct
    rows = np.append(texts, "")[places]
    words = TfidfVectorizer(
        sublinear_tf=True, min_df=2 if len(rows) > 1 else 1, max_features=_MOST_WORDS
    )
    try:
        weights = words.fit_transform(rows)
    except ValueError:
        return None
    n_components = min(n_components, *(size - 1 for size in weights.shape))
    if n_components < 1:
        return Text(name, words, None), np.asarray(weights.toarray(), np.float64)
    svd = TruncatedSVD(n_components, random_state=seed)
    block = np.asarray(svd.fit_transform(weights), np.float64)
    return Text(name, words, svd), block
