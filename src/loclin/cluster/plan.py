"""What is to be done with the rows of all parts, once they are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from loclin.cluster.parts import Counts, Drawing, Kind, View
from loclin.engine.data import Floats
from loclin.fitting.targets import check_one_type, class_weights

_LEAST = 10  # rows of a class in the sample, if there are so many
_HELD_OUT, _MOST_HELD_OUT = 0.05, 5000  # this part of the rows tells the temperature


def planned(estimator: Any, counts: Counts, sample_rows: int) -> tuple[View, Drawing]:
    """Return how parts are to see their rows, and what they are to draw.

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
    n_rows = np.zeros((counts.part.max() + 1, len(classes)), int)
    np.add.at(n_rows, (counts.part, labels), counts.n_rows)
    of_class, n = n_rows.sum(axis=0), n_rows.sum()
    by_class = _weights_of(estimator.class_weight, classes, of_class)
    by_class *= n / (by_class[labels] @ counts.weight)
    held_out = min(_HELD_OUT, _MOST_HELD_OUT / n)
    rng = np.random.default_rng(estimator._seed())
    view = View(
        reader=_reader_of(estimator, kind),
        classes=classes,
        by_class=by_class,
        held_out=np.where(of_class * held_out < 1, 0.0, held_out),
        dtype=np.result_type(*counts.dtypes),
        seed=int(rng.integers(2**31)),
    )
    share = np.maximum(sample_rows / n, _LEAST / of_class)
    return view, Drawing(view, _drawn(n_rows, share, rng))


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
        (other, other_name), names = (
            others[0],
            ("columns", "names of columns", "sparse rows"),
        )
        said = [
            f"{what}: {a!r} and {b!r}"
            for what, a, b in zip(names, kind, other, strict=True)
            if a != b
        ]
        raise ValueError(
            f"{name} and {other_name} do not fit together, by their {said[0]}. Give all "
            "blocks the same columns, all sparse or all dense."
        )
    return kind


def _weights_of(
    given: Any, classes: NDArray[Any], of_class: NDArray[np.integer]
) -> Floats:
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
