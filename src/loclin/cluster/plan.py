"""What is to be done with the rows of all parts, once they are counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from loclin.cluster.parts import Counts, Drawing, Kind, View
from loclin.engine.data import Floats
from loclin.fitting.targets import check_one_type, class_weights

_LEAST = 10  # rows of a class in the sample, if there are so many
_HELD_OUT, _MOST_HELD_OUT = 0.05, 5000  # this part of the rows tells the temperature


def planned(estimator: Any, counts: Counts, sample_rows: int) -> Drawing:
    """Return how parts are to see their rows, and what they are to draw.

    Parameters
    ----------
    estimator : classifier
        It reads the rows, and has weights of classes and a seed.
    counts : Counts
    sample_rows : int

    Raises
    ------
    ValueError
        If blocks do not fit together, or have one class only.
    """
    kind = _kind_of(counts.kinds)
    check_one_type(counts.label)
    classes, labels = np.unique(np.array(counts.label.tolist()), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"The parts have rows of {len(classes)} classes that weigh something; a classifier "
            "needs at least two."
        )
    of_class = np.bincount(labels, counts.n_rows)
    held_out = min(_HELD_OUT, _MOST_HELD_OUT / of_class.sum())
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    rng = np.random.default_rng(seed)
    view = View(
        reader=_reader_of(estimator, kind),
        classes=classes,
        by_class=weights_by_class(
            getattr(estimator, "class_weight", None), classes, counts
        ),
        held_out=np.where(of_class * held_out < 1, 0.0, held_out),
        dtype=np.result_type(*counts.dtypes),
        seed=int(rng.integers(2**31)),
    )
    return drawing(view, counts, sample_rows, rng)


def drawing(
    view: View, counts: Counts, n_drawn: int, rng: np.random.Generator
) -> Drawing:
    """Return what parts are to draw: so many rows, with some of each class."""
    n_rows = np.zeros((counts.part.max() + 1, len(view.classes)), int)
    labels = np.searchsorted(view.classes, np.array(counts.label.tolist()))
    np.add.at(n_rows, (counts.part, labels), counts.n_rows)
    share = np.maximum(n_drawn / n_rows.sum(), _LEAST / n_rows.sum(axis=0))
    return Drawing(view, _drawn(n_rows, share, rng))


def as_it_knows(estimator: Any, drawing: Drawing) -> Drawing:
    """Return the same for the features, and the precision, of a fit that goes on."""
    names = getattr(estimator, "feature_names_in_", None)
    reader = _reader_of(estimator, Kind(estimator.n_features_in_, names, False))
    dtype = estimator._learned.local_coef.dtype
    return replace(drawing, view=replace(drawing.view, reader=reader, dtype=dtype))


def weights_by_class(given: Any, classes: NDArray[Any], counts: Counts) -> Floats:
    """Return the weight of each class, so that the mean of all rows' weights is 1.

    Raises
    ------
    ValueError
        If weights are too large to be added, or too small to be divided by.
    """
    labels = np.searchsorted(classes, np.array(counts.label.tolist()))
    of_class: Any = np.bincount(labels, counts.n_rows)
    by_class = _weights_of(given, classes, of_class)
    mean = by_class[labels] @ counts.weight / counts.n_rows.sum()
    if not np.finfo(float).tiny <= mean < np.inf:
        raise ValueError(
            f"The mean of the weights, {mean:g}, is too large or too small. Divide all weights by "
            "the largest."
        )
    return by_class / mean


def _reader_of(estimator: Any, kind: Kind) -> Any:
    """Return a classifier that reads rows of one kind."""
    reader = clone(estimator)
    reader.n_features_in_ = kind.n_features
    if kind.names is not None:
        reader.feature_names_in_ = np.array(kind.names, object)
    return reader


def _kind_of(kinds: dict[Kind, str]) -> Kind:
    """Return what all blocks are."""
    if not kinds:
        raise ValueError("The parts have no rows.")
    (kind, name), *others = kinds.items()
    if others:
        other, other_name = others[0]
        names = "columns", "names of columns", "sparse rows"
        pairs: Any = zip(names, kind, other, strict=True)
        what, a, b = next(pair for pair in pairs if pair[1] != pair[2])
        if what == "names of columns":  # there may be thousands
            none = [None] * kind.n_features
            pairs = zip(a or none, b or none, strict=True)
            a, b = next(pair for pair in pairs if pair[0] != pair[1])
        raise ValueError(
            f"{name} and {other_name} do not fit together, by their {what}: {a!r} and {b!r}. "
            "Give all blocks the same columns, all sparse or all dense."
        )
    return kind


def _weights_of(given: Any, classes: NDArray[Any], of_class: Floats) -> Floats:
    """Return the weight of each class."""
    if isinstance(given, str) and given == "balanced":
        return of_class.sum() / (len(classes) * of_class)
    weights = class_weights(given, classes, np.arange(len(classes)), False)
    if weights is None:
        return np.ones(len(classes))
    if not weights.all():
        raise ValueError(
            f"class_weight={given!r} has weights of 0; leave rows of these classes out instead."
        )
    return weights


def _drawn(n_rows: NDArray[np.integer], share: Any, rng: np.random.Generator) -> Any:
    """Return how many rows of each part and class to draw, for a share of each class.

    Of a class they are the whole number below its share, or that above.
    """
    ends = np.cumsum(n_rows, axis=0) * np.minimum(share, 1.0)
    ends = np.floor(ends + rng.random(n_rows.shape[1]))
    return np.diff(ends, axis=0, prepend=0).astype(int)
