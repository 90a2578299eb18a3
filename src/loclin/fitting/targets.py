"""What y may be: labels, or an indicator matrix of several labels a row."""

from __future__ import annotations

import math
from collections.abc import Set
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from loclin.engine.data import is_sparse


def labels_or_indicator(y: Any) -> NDArray[Any]:
    """Return y as labels (n,), or as an indicator (n, n_labels) of int8.

    Raises
    ------
    ValueError
        If y is neither.
    """
    if getattr(y, "ndim", 1) == 2 and y.shape[1] > 1:
        if type_of_target(y, input_name="y") == "multilabel-indicator":
            members = y.toarray() if is_sparse(y) else np.asarray(y)
            if np.isin(members, (0, 1)).all():
                return members.astype(np.int8)
        raise ValueError(
            f"y has shape {y.shape}, but is not an indicator matrix of 0 and 1. Give labels of "
            "shape (n_samples,), or one column of 0 and 1 for each label."
        )
    return column_or_1d(y, warn=True)


def check_one_type(labels: NDArray[Any], name: str = "y") -> None:
    """Raise TypeError where labels cannot be sorted:
    numbers beside strings, None beside either.
    """
    if labels.dtype != object:
        return
    kinds = {_kind(type(label)) for label in labels.ravel()}
    if len(kinds) > 1:
        raise TypeError(
            f"{name} mixes labels of the types {' and '.join(sorted(kinds))}. Make them all "
            f"strings or all integers, for example with np.asarray({name}).astype(str)."
        )


def _kind(of_label: type) -> str:
    if issubclass(of_label, int | float | np.number | np.bool_):
        return "numbers"
    return "str" if issubclass(of_label, str) else of_label.__name__


def n_scorers(classes: NDArray[Any]) -> int:
    """Scorers of one class against the rest: one for two classes, that of the second."""
    return 1 if len(classes) == 2 else len(classes)


def find_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the classes, and y in terms of them: 0 .. c - 1, or the indicator as it is.

    Raises
    ------
    ValueError
        If y is not of a classification, or has one class only.
    """
    check_one_type(y)
    check_classification_targets(y)
    if y.ndim == 2:
        return np.arange(y.shape[1]), y
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}); a classifier needs at least two. "
            "Check that y is the target column and that the rows were not filtered by it."
        )
    labels = np.searchsorted(classes, y)  # for less memory than from np.unique
    return classes, labels.astype(np.int32)


def check_same_classes(classes: NDArray[Any], before: NDArray[Any] | None) -> None:
    """Raise ValueError where a fit that goes on from another has other classes than that."""
    if before is not None and not np.array_equal(before, classes):
        raise ValueError(
            f"With warm_start=True, y must have the classes of the earlier fit ({before}), got "
            f"{classes}. Set warm_start=False to start afresh."
        )


def in_classes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return y in terms of known classes.

    Raises
    ------
    ValueError
        If y has other labels, or an indicator has another width.
    """
    check_one_type(y)
    check_classification_targets(y)
    if y.ndim == 2:
        if y.shape[1] != len(classes):
            raise ValueError(
                f"y has {y.shape[1]} columns, but there are {len(classes)} labels: {classes}. "
                "Give one column for each."
            )
        return y
    unseen = np.setdiff1d(y, classes)
    if len(unseen):
        raise ValueError(
            f"y has labels that are not among the classes {classes}: {unseen}. "
            "Name every class in the first call of partial_fit."
        )
    return np.searchsorted(classes, y)


def has_several(y: NDArray[Any], before: bool | None = None) -> bool:
    """Tell whether y has several labels a row.

    Raises
    ------
    ValueError
        If it was otherwise in the rows `before` that a fit or a stream goes on from.
    """
    several = y.ndim == 2
    if before is not None and several != before:
        have, had = ("several labels", "one") if several else ("one label", "several")
        raise ValueError(
            f"y has {have} a row, but the rows before had {had}. Give y in the same form, or start "
            "afresh."
        )
    return several


def share_right(labels: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Share of a row's labels that are right: 0 or 1 where there is one label a row."""
    return (labels == y).reshape(len(y), -1).mean(axis=1)


def that_occur(
    classes: NDArray[Any], y: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the classes of rows that weigh something, and y in terms of them.

    Raises
    ------
    ValueError
        If there is one only.
    """
    if y.ndim == 2:
        return classes, y
    occur = np.bincount(y, minlength=len(classes)) > 0
    if occur.all():
        return classes, y
    if occur.sum() < 2:
        left = (
            f"one class only ({classes[occur].tolist()[0]!r})"
            if occur.any()
            else "no class"
        )
        raise ValueError(
            f"y has {left} among the rows that weigh something; those of "
            f"{classes[~occur].tolist()} have weight zero, by sample_weight or class_weight. A "
            "classifier needs two classes of positive weight."
        )
    return classes[occur], (np.cumsum(occur, dtype=y.dtype) - 1)[y]


def class_weights(
    given: Any, classes: NDArray[Any], y: NDArray[Any], several: bool
) -> NDArray[np.float64] | None:
    """Return the weight of each class, or None;
    y are the labels 0 .. c - 1 that "balanced" counts.

    Raises
    ------
    ValueError
        If a row has several labels, or a weight is negative, not finite, or all are zero.
    """
    if given is None:
        return None
    if several:
        raise ValueError(
            f"class_weight={given!r} is for one label a row, but y has several. Set "
            "class_weight=None, and pass sample_weight to weigh rows."
        )
    if isinstance(given, str) and given == "balanced":
        counts = np.bincount(y, minlength=len(classes))
        shares = np.count_nonzero(counts) * counts
        return np.divide(len(y), shares, where=counts > 0, out=np.zeros(len(classes)))
    if not isinstance(given, dict):
        raise ValueError(
            f"class_weight={given!r} is not valid; use 'balanced', None or a dict from labels to "
            "weights."
        )
    weights = np.zeros(len(classes))
    if all(np.asarray(weight).dtype.kind in "biuf" for weight in given.values()):
        weights = np.asarray(
            compute_class_weight(given, classes=classes, y=classes), np.float64
        )
    if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.any()):
        raise ValueError(
            f"class_weight={given!r} is not valid; weights must be finite and at least 0, and one "
            "of a class that occurs positive."
        )
    return weights


def classes_of_stream(classes: Any, earlier: NDArray[Any] | None) -> NDArray[Any]:
    """Return all classes of a stream:
    those given at the first call, the `earlier` ones later.

    Raises
    ------
    ValueError
        If they are missing at first, fewer than two, or others than before.
    """
    if isinstance(classes, Set):
        classes = list(classes)
    if earlier is not None:
        if classes is not None and not np.array_equal(earlier, np.unique(classes)):
            raise ValueError(
                f"classes={classes!r} differs from the earlier ones, {earlier}. "
                "Leave it out after the first call."
            )
        return earlier
    if classes is None:
        raise ValueError(
            "classes is needed at the first call of partial_fit: all labels that will ever "
            "come, for example classes=np.unique(y_all)."
        )
    given = np.asarray(
        classes, dtype=object if isinstance(classes, list | tuple) else None
    )
    check_one_type(given, "classes")
    labels: NDArray[Any] = np.unique(np.asarray(classes))
    if len(labels) < 2:
        raise ValueError(f"classes={classes!r} has fewer than two different labels.")
    if any(
        isinstance(label, float) and not math.isfinite(label) for label in labels.tolist()
    ):
        raise ValueError(
            f"classes={classes!r} has NaN or infinity, which is no label; leave it out."
        )
    return labels
