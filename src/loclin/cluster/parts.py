"""What a part does with its rows: it counts them, draws some, learns from them.

Each of the three takes the number of the part, its blocks and a state, and returns a
value. The values of all parts are merged, two by two.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from loclin.engine.data import Floats, Rows, is_sparse, stacked
from loclin.engine.merging import merged
from loclin.engine.procedure import StreamProcedure
from loclin.engine.threads import threads_for
from loclin.fitting.checks import check_weights, read_labelled_rows
from loclin.fitting.features import PLAIN, FeatureMap
from loclin.fitting.rows import at_random, of_positive_weight
from loclin.fitting.targets import in_classes

_CHUNK = 10_000  # rows that are mapped, and learned, at once


class Block(NamedTuple):
    """Some rows of a part, as they are given.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n, n_features)
    y : array-like of shape (n,)
    weights : array-like of shape (n,) or None
    name : str or None
        What messages call it; None: by the number of its part.
    """

    X: Any
    y: Any
    weights: Any = None
    name: str | None = None


class Kind(NamedTuple):
    """What the blocks of a fit have in common."""

    n_features: int
    names: tuple[str, ...] | None
    is_sparse: bool


def read(
    reader: Any, number: int, blocks: Any, *, reset: bool
) -> Iterator[tuple[int, str, Rows]]:
    """Yield the place of each block that has rows, its name and the rows; labels as they
    are given.

    Parameters
    ----------
    reader : LocallyLinearClassifier
        Checks them, as `fit` does.
    number : int
        Of the part.
    blocks : iterable of tuple or callable
        As `Block`, or functions that return one.
    reset : bool
        Whether a block tells the reader what it has. Otherwise it is checked against
        what the reader knows, and known to be finite.

    Raises
    ------
    ValueError
        If a block is not valid. The message names it.
    """
    for place, given in enumerate(blocks):
        X, y, weights, name = _block_of(given() if callable(given) else given, number)
        try:
            if np.shape(X)[:1] == (0,) == np.shape(y)[:1]:
                continue
            with config_context(assume_finite=not reset):
                X, y = read_labelled_rows(reader, X, y, reset=reset)
            y = column_or_1d(y)
            if reset:
                check_classification_targets(y)
            weights = check_weights(weights, len(y), some=False)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"In {name}: {error}") from error
        yield place, name, of_positive_weight(X, y, weights)


def _block_of(given: Any, number: int) -> tuple[Any, Any, Any, str]:
    if not (isinstance(given, tuple | list) and 2 <= len(given) <= len(Block._fields)):
        raise TypeError(
            f"Part {number} is of {type(given).__name__}; make it a tuple (X, y) or (X, y, "
            "sample_weight), or a function that returns one, and give a list of them."
        )
    X, y, weights, name = Block(*given)
    return X, y, weights, name or f"part {number}"


class Counts(NamedTuple):
    """What is there, before anything is learned.

    Parameters
    ----------
    kinds : dict of Kind
        A block of each kind that there is.
    dtypes : set
        Of the features.
    part, label, n_rows, weight : ndarray of shape (n_entries,)
        Rows of a label in a part, and the sum of their weights.
    """

    kinds: dict[Kind, str]
    dtypes: set[Any]
    part: NDArray[np.integer]
    label: NDArray[Any]
    n_rows: NDArray[np.integer]
    weight: Floats

    def merge(self, other: Counts) -> Counts:
        """Return the counts of both."""
        arrays = zip(self[2:], other[2:], strict=True)
        return Counts(
            self.kinds | other.kinds | self.kinds,
            self.dtypes | other.dtypes,
            *map(np.concatenate, arrays),
        )


def count(number: int, blocks: Any, estimator: Any) -> Counts:
    """Return what a part has; `estimator` reads its rows."""
    kinds: dict[Kind, str] = {}
    dtypes, found, weights = set(), [], []
    reader = clone(estimator)
    for _, name, (X, y, row_weights, _) in read(reader, number, blocks, reset=True):
        names = getattr(reader, "feature_names_in_", None)
        kind = Kind(X.shape[1], None if names is None else tuple(names), is_sparse(X))
        kinds.setdefault(kind, name)
        dtypes.add(X.dtype)
        labels, places = np.unique(y, return_inverse=True)
        found += [
            (label, n) for label, n in zip(labels, np.bincount(places), strict=True)
        ]
        weights.append(np.bincount(places, row_weights))
    labels, numbers = np.empty(len(found), object), np.array([n for _, n in found], int)
    labels[:] = [label for label, _ in found]
    return Counts(
        kinds, dtypes, np.full(len(found), number), labels, numbers,
        np.concatenate([np.empty(0), *weights]),
    )  # fmt: skip


@dataclass(frozen=True)
class View:
    """How all parts see their rows.

    Parameters
    ----------
    reader : LocallyLinearClassifier
        It knows the names and the number of the features.
    classes : ndarray of shape (c,)
    by_class : ndarray of shape (c,)
        What weights are multiplied by, so that their mean over all rows is 1.
    held_out : ndarray of shape (c,)
        Share of the rows of a class that are held out: 0, or the same for all others.
    dtype : dtype
        Of the features.
    seed : int
        Of all that is drawn.
    features : FeatureMap, default=PLAIN
        Of an ensemble, for all its members.
    """

    reader: Any
    classes: NDArray[Any]
    by_class: Floats
    held_out: Floats
    dtype: Any
    seed: int
    features: FeatureMap = PLAIN

    def split(
        self, number: int, blocks: Any
    ) -> Iterator[tuple[Rows, NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows of each block as they are given, and the places of those that are
        learned and of those held out: the same in each call, also where a block is lost.

        Only the labels of rows that may be held out are looked at: this is done in every
        round, for all rows.
        """
        for place, _, rows in read(self.reader, number, blocks, reset=False):
            rng = np.random.default_rng([self.seed, number, place])
            drawn = rng.random(len(rows.y))
            watched = drawn < self.held_out.max()
            places = np.flatnonzero(watched)
            labels = in_classes(rows.y[places], self.classes)
            watched[places] = drawn[places] < self.held_out[labels]
            yield rows, np.flatnonzero(~watched), np.flatnonzero(watched)

    def name_features(self, model: Any) -> None:
        """Let a classifier know the features by their names, if they have some."""
        if hasattr(self.reader, "feature_names_in_"):
            model.feature_names_in_ = self.reader.feature_names_in_

    def some(self, rows: Rows, places: NDArray[np.intp]) -> Rows:
        """Return some rows of a block: labels 0 .. c - 1, weighed."""
        labels = in_classes(rows.y[places], self.classes).astype(np.int32)
        weights = rows.weights[places] * self.by_class[labels]
        X = rows.X[places].astype(self.dtype, copy=False)
        X = self.features.of_matrix(X)
        return Rows(X, labels, weights.astype(self.dtype))


class Sample(NamedTuple):
    """Rows of the parts: to begin with, and held out."""

    start: Rows | None = None
    watched: Rows | None = None

    def merge(self, other: Sample) -> Sample:
        """Return the rows of both."""
        return Sample(*map(joined, zip(self, other, strict=True)))


def joined(parts: Any) -> Rows | None:
    """Return rows one below the other; None where there are none."""
    found = [one for one in parts if one is not None and len(one.y)]
    if not found:
        return None
    X: Any = [one.X for one in found]
    X = stacked(X) if is_sparse(X[0]) else np.concatenate(X)
    return Rows(X, *(np.concatenate([one[k] for one in found]) for k in (1, 2)))


@dataclass(frozen=True)
class Drawing:
    """What parts are to draw.

    Parameters
    ----------
    view : View
    n_start : ndarray of shape (n_parts, c)
        Rows of each class to begin with, if there are so many that are not held out.
    """

    view: View
    n_start: NDArray[np.integer]


def draw(number: int, blocks: Any, state: Drawing) -> Sample:
    """Return the rows that a part adds to the sample."""
    view, rng = state.view, np.random.default_rng([state.view.seed, number])
    split = [one for one in view.split(number, blocks) if len(one[0].y)]
    if not split:
        return Sample()
    labels = [in_classes(rows.y[learned], view.classes) for rows, learned, _ in split]
    starts = at_random(np.concatenate(labels), state.n_start[number], rng)
    ends = np.cumsum([len(one) for one in labels])
    samples = [
        Sample(view.some(rows, learned[chosen]), view.some(rows, watched))
        for (rows, learned, watched), chosen in zip(
            split, np.split(starts, ends[:-1]), strict=True
        )
    ]
    return reduce(Sample.merge, samples)


def fitted_to(rows: Rows, estimator: Any, view: View, **changes: Any) -> Any:
    """Return a classifier fitted to rows of a view, some parameters being others meanwhile.

    The rows' weights have those of their classes.

    Raises
    ------
    ValueError
        If the rows of a class are missing, or weigh nothing beside the others.
    """
    model = clone(estimator)
    model._taken_over = estimator._taken_over  # of the first of its kind
    if hasattr(model, "set_callbacks"):
        model.set_callbacks()  # a clone has them, too, but this is not the fit they watch
    given = model.get_params(deep=False)
    changes["class_weight"] = None
    model.set_params(**{name: changes[name] for name in changes.keys() & given.keys()})
    model.fit(rows.X, view.classes[rows.y], rows.weights)
    lacking = np.setdiff1d(view.classes, model.classes_)
    if len(lacking):
        raise ValueError(
            f"Rows of {lacking.tolist()} weigh nothing beside the others, or are lost. Raise their "
            "weights, or leave these classes out."
        )
    return model.set_params(**given)


@dataclass(frozen=True)
class Round:
    """What parts learn from in a round.

    Parameters
    ----------
    number : int
    view : View
    features : FeatureMap
    stream : StreamProcedure
        From which all go on.
    alpha : float or None
        For the stream.
    batch_size : int
    passes : int
        Over the rows of a part.
    most_rows : int or None
        Of a pass; a larger part draws so many anew. None: all.
    """

    number: int
    view: View
    features: FeatureMap
    stream: StreamProcedure
    alpha: float | None
    batch_size: int
    passes: int
    most_rows: int | None


class Learned(NamedTuple):
    """What parts have learned.

    Parameters
    ----------
    stream : StreamProcedure
    n_rows : int
        Of the parts.
    objective : float
        Its sum over these rows.
    """

    stream: StreamProcedure
    n_rows: int
    objective: float

    def merge(self, other: Learned) -> Learned:
        """Return what both have learned, by their rows."""
        n_rows = self.n_rows, other.n_rows
        if not all(n_rows):
            return self if self.n_rows else other
        stream = merged([self.stream, other.stream], n_rows, adds_up=False)
        return Learned(stream, sum(n_rows), self.objective + other.objective)


def learn(number: int, blocks: Any, state: Round) -> Learned:
    """Return what a part learns in a round, from where the round before has left all."""
    view, rng = state.view, np.random.default_rng([state.view.seed, number, state.number])
    of_blocks = view.split(number, blocks)
    split = [(rows, places) for rows, places, _ in of_blocks if len(places)]
    n_rows = sum(len(places) for _, places in split)
    if not n_rows:
        return Learned(state.stream, 0, 0.0)
    stream = deepcopy(state.stream)
    share = min(1.0, (state.most_rows or n_rows) / n_rows)
    passes = (rng.permutation(len(split)) for _ in range(state.passes))
    total, passed = 0.0, 0
    with threads_for(0.0), np.errstate(all="ignore"):
        for k in chain.from_iterable(passes):
            rows, places = split[k]
            n_drawn = ceil(share * len(places))
            places = places[rng.choice(len(places), n_drawn, replace=False)]
            for chunk in gen_batches(n_drawn, _CHUNK):
                seen = state.features.of_rows(view.some(rows, places[chunk]))
                objective = stream.learn(seen, state.alpha, state.batch_size)
                total, passed = total + len(seen.y) * objective, passed + len(seen.y)
    return Learned(stream, n_rows, n_rows * total / passed)
