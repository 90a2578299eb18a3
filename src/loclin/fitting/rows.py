"""Training rows as the solvers take them, and what else their passes need to know."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from loclin.engine.data import Floats, Labels, Matrix, Rows
from loclin.fitting.checks import check_weights
from loclin.fitting.targets import class_weights, find_classes, that_occur

# Rows scored by one product where the user leaves the choice to us.
LARGEST_BATCH = 64
# Anchors where the user leaves the choice to us: the number of the paper of SAPL. Their
# models take no more than 2^27 numbers, unless eight anchors do.
USUAL_ANCHORS, _FEWEST_ANCHORS, _MOST_NUMBERS = 100, 8, 2**27


def auto_batch_size(n_samples: int) -> int:
    """Return the default batch size: 64, but at least a hundred batches a pass.

    The rows of a batch do not see each other's updates. With fewer batches a pass, the
    first steps (those of a hundredth of the rows together) throw the models about: Banana
    with 320 rows goes from 11 % error to 14 %.
    """
    return min(LARGEST_BATCH, max(1, n_samples // 100))


def default_n_anchors(n_samples: int, n_numbers: int, usual: int = USUAL_ANCHORS) -> int:
    """Return the default number of anchors:
    fewer than usual of few rows, and of wide models.

    Parameters
    ----------
    n_samples : int
    n_numbers : int
        Of the models of an anchor: classes times features.
    usual : int
    """
    by_memory = max(_FEWEST_ANCHORS, _MOST_NUMBERS // max(1, n_numbers))
    return max(1, min(usual, n_samples // 10, by_memory))


def weigh(X: Matrix, labels: Labels, by_class: Floats | None, sample_weight: Any, *,
          unit: bool = True) -> Rows:  # fmt: skip
    """Weigh the rows, to mean 1 if `unit`, and leave out those of weight zero.

    Only the ratios of weights count, so every factor is divided by a power of two near
    its largest: no product and no sum overflows or vanishes, and nothing is rounded. With
    `unit`, a weight below the square of the rounding error of the largest is zero: such a
    row changes no sum. The weights of a stream are left as they are: `RunningMean`
    divides them.

    Raises
    ------
    ValueError
        If no row is left.
    """
    weights: Floats = check_weights(sample_weight, len(labels), some=unit)
    labels = labels.astype(np.int32, copy=False)
    if unit:
        weights = near_one(weights)
    if by_class is not None:
        weights = weights * near_one(by_class)[labels]
    if unit:
        weights = without_tiny(weights, X)
    rows = of_positive_weight(X, labels, weights)
    if not unit:
        return rows
    if not len(rows.y):
        raise ValueError(
            "Every row has weight zero: sample_weight is zero wherever class_weight is not. Give "
            "at least one row of a class that counts a positive weight."
        )
    return rows._replace(weights=of_mean_1(rows.weights).astype(X.dtype, copy=False))


def of_positive_weight(X: Matrix, labels: Labels, weights: Floats) -> Rows:
    """Return the rows, or those whose weight is not zero, and their places."""
    kept = np.flatnonzero(weights > 0)
    if len(kept) == len(labels):
        return Rows(X, labels, weights)
    return Rows(X[kept], labels[kept], weights[kept], kept)


def weighed(X: Matrix, y: Any, class_weight: Any, sample_weight: Any) -> tuple[Any, Rows]:
    """Return the classes of a fit, and its rows: those that weigh something.

    A fit with weights of zero is that of the rows left: a class that has none is no class
    of it.

    Raises
    ------
    ValueError
        If the labels or the weights are not valid, or leave fewer than two classes.
    """
    classes, labels = find_classes(y)
    weights = without_tiny(near_one(check_weights(sample_weight, len(labels))), X)
    counted = labels if weights.all() else labels[weights > 0]
    by_class = class_weights(class_weight, classes, counted, labels.ndim == 2)
    rows = weigh(X, labels, by_class, sample_weight)
    classes, labels = that_occur(classes, rows.y)
    return classes, rows._replace(y=labels)


def without_tiny(weights: Floats, X: Matrix) -> Floats:
    """Return zero for weights below the square of the rounding error of the largest."""
    least = weights.max(initial=0.0) * float(np.finfo(X.dtype).eps) ** 2
    return np.where(weights < least, 0.0, weights)


def near_one(weights: Floats) -> Floats:
    """Divide weights by a power of two, so that the largest is near 1."""
    return np.ldexp(weights, -math.frexp(float(weights.max(initial=0.0)))[1])


def of_mean_1(weights: Floats) -> Floats:
    """Divide positive weights by their mean."""
    weights = near_one(weights)
    return weights / weights.mean()


def part_of(rows: Rows, part: NDArray[Any]) -> Rows:
    """Return some of the rows, with weights of mean 1."""
    return Rows(
        rows.X[part], rows.y[part], of_mean_1(rows.weights[part]), rows.places(part)
    )


def at_random(
    labels: Labels, numbers: NDArray[np.integer], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Tell which rows are drawn, so many of each class, or all."""
    order = rng.permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels, minlength=len(numbers))
    ranks = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    drawn = np.zeros(len(labels), np.bool_)
    drawn[by_class] = ranks < np.repeat(numbers, counts)
    return drawn


class RunningMean(NamedTuple):
    """Mean weight of the rows of a stream so far."""

    n: int = 0
    mean: float = 0.0

    def after(self, weights: Floats) -> RunningMean:
        """Return the mean with some more weights, positive ones;
        neither sum can overflow.
        """
        n, largest = self.n + len(weights), float(weights.max())
        of_these = largest * float((weights / largest).mean())
        return RunningMean(n, self.mean + (of_these - self.mean) * (len(weights) / n))

    def of_mean_1(self, rows: Rows) -> Rows:
        """Return the rows with weights in units of this mean,
        without those that are nothing.
        """
        weights = rows.weights / max(self.mean, float(np.nextafter(0, 1)))
        kept = weights > float(np.finfo(rows.X.dtype).eps) ** 2
        if not kept.all():
            places = rows.places(np.flatnonzero(kept))
            rows, weights = (
                Rows(rows.X[kept], rows.y[kept], weights, places),
                weights[kept],
            )
        return rows._replace(weights=weights.astype(rows.X.dtype))


def can_hold_out(rows: Rows, fraction: float) -> bool:
    """Tell whether there are enough rows to hold some out of each class."""
    counts, part = np.bincount(rows.y), fraction * len(rows.y)
    return bool(
        counts[counts > 0].min() >= 2 and min(part, len(rows.y) - part) > len(counts)
    )


def hold_out(rows: Rows, fraction: float, seed: int,
             needed_by: str = "early_stopping=True") -> tuple[Rows, Rows]:  # fmt: skip
    """Split the rows into those to learn from and those to watch;
    stratified by one label a row.

    The weights of either have mean 1.

    Raises
    ------
    ValueError
        If there are too few rows.
    """
    try:
        parts = train_test_split(
            np.arange(len(rows.y)), test_size=fraction, random_state=seed,
            stratify=rows.y if rows.y.ndim == 1 else None,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(
            f"{needed_by} cannot hold out validation_fraction={fraction} of {len(rows.y)} rows: "
            f"{error} Give more rows or do without."
        ) from error
    train, watched = (part_of(rows, part) for part in parts)
    return train, watched
