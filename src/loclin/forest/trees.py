"""The trees of a forest that scikit-learn has fitted, in the words of `portable.words`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from loclin.engine.data import Floats
from loclin.portable.words import Leaves


def leaves_of(trees: Sequence[Any], dtype: DTypeLike) -> Leaves:
    """Return the trees' questions; leaves are numbered tree by tree.

    Parameters
    ----------
    trees : list of sklearn.tree.DecisionTreeClassifier
        Fitted.
    dtype : dtype
        Of the rows. scikit-learn compares float32 features with float64 thresholds: in float32
        these are rounded down, which changes no answer.
    """
    found: list[tuple[NDArray[Any], ...]] = []
    n_inner = n_leaves = 0
    for one in trees:
        tree = one.tree_
        is_inner = tree.children_left >= 0
        number = np.where(is_inner, np.cumsum(is_inner) - 1 + n_inner,
                          -np.cumsum(~is_inner) - n_leaves)  # fmt: skip
        found.append((
            number[:1], tree.feature[is_inner], tree.threshold[is_inner],
            number[tree.children_left[is_inner]], number[tree.children_right[is_inner]],
        ))  # fmt: skip
        n_inner += int(is_inner.sum())
        n_leaves += int((~is_inner).sum())
    roots, feature, threshold, left, right = map(np.concatenate, zip(*found, strict=True))
    below = threshold.astype(dtype)
    below = np.where(below > threshold, np.nextafter(below, -np.inf, dtype=dtype), below)
    numbers = (part.astype(np.int32) for part in (roots, feature, left, right))
    roots, feature, left, right = numbers
    return Leaves(roots, feature, below, left, right)


def shares_of(trees: Sequence[Any], n_classes: int, dtype: DTypeLike) -> Floats:
    """Return the share of each class among the rows of each leaf, (m, n_classes).

    Parameters
    ----------
    trees : list of sklearn.tree.DecisionTreeClassifier
        Fitted to labels 0 .. n_classes - 1, of which some may not occur.
    n_classes : int
    dtype : dtype
    """
    found = []
    for one in trees:
        tree = one.tree_
        counts = tree.value[tree.children_left < 0, 0]
        shares = np.zeros((len(counts), n_classes), dtype)
        shares[:, one.classes_.astype(np.intp)] = counts / counts.sum(axis=1, keepdims=True)
        found.append(shares)
    return np.concatenate(found)
