"""The trees of a forest that scikit-learn has fitted, in the words of `portable.words`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.procedure import LocalModels, Predictor
from loclin.portable.words import Leaves


@dataclass(frozen=True, kw_only=True)
class ForestModels(LocalModels, Predictor):
    """What the leaves say, and the trees that lead to them."""

    leaves: Leaves

    def coder(self, root: Floats | None) -> Leaves:
        """Say which leaves of the trees count."""
        return self.leaves

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles and files,
        without as many zeros as there are weights.
        """
        return dict(vars(self)) | {
            "local_coef": None,
            "n_features": self.local_coef.shape[2],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a pickle or a file.
        Without zeros it is refused, as no forest is so.
        """
        self.__dict__.update(
            {name: state[name] for name in self.names() if name in state}
        )
        values, d = state.get("local_intercept"), state.get("n_features")
        if (
            isinstance(values, np.ndarray)
            and values.ndim == 2
            and type(d) is int
            and 0 < d < 2**31
        ):
            s, m = values.shape
            self.__dict__["local_coef"] = zero_models(s, m, d, values.dtype)


def zero_models(s: int, m: int, d: int, dtype: DTypeLike) -> Floats:
    """Return slopes of m constants of s scorers, (s, m, d), which take no room."""
    return np.broadcast_to(np.zeros((), dtype), (s, m, d))


class Middle(NamedTuple):
    """The middle of each feature, about which trees are grown, and how wide it is.

    scikit-learn grows trees in float32, and takes values that are 1e-7 apart as one. Far
    from zero, or beside one value that is far from all others, the middle of the rows
    would be one value.

    Parameters
    ----------
    centre : ndarray of shape (d,)
        Medians; zeros of sparse rows, which trees see as they are.
    unit : ndarray of shape (d,)
        Powers of two, near the median distances from them.
    """

    centre: Floats
    unit: Floats

    @classmethod
    def of(cls, X: Matrix) -> Middle:
        """Return that of rows."""
        if is_sparse(X):
            return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]))
        centre = np.median(X, axis=0).astype(np.float64)
        away = np.abs(X - centre)
        width = np.median(away, axis=0)
        # most values are the median
        width = np.where(width > 0, width, away.mean(axis=0))
        return cls(centre, np.exp2(np.round(np.log2(np.where(width > 0, width, 1.0)))))

    def of_matrix(self, X: Matrix) -> Matrix:
        """Return rows about the middle."""
        if is_sparse(X):
            return X
        largest = np.finfo(np.float32).max
        return np.clip((X - self.centre) / self.unit, -largest, largest)


def leaves_of(trees: Sequence[Any], X: Matrix, middle: Middle | None = None) -> Leaves:
    """Return the trees' questions; leaves are numbered tree by tree.

    Parameters
    ----------
    trees : list of sklearn.tree.DecisionTreeClassifier
        Fitted.
    X : {ndarray, csr} of shape (n, d)
        Rows that they have learned from. scikit-learn compares float32 features with
        float64 thresholds: in float32 these are rounded down, which changes no answer.
    middle : Middle or None, default=None
        Of the rows, about which the trees were grown; None for those grown from rows as
        they are.
    """
    dtype = X.dtype
    found: list[tuple[NDArray[Any], ...]] = []
    n_inner = n_leaves = 0
    for one in trees:
        tree = one.tree_
        is_inner = tree.children_left >= 0
        number = np.where(is_inner, np.cumsum(is_inner) - 1 + n_inner,
                          -np.cumsum(~is_inner) - n_leaves)  # fmt: skip
        found.append((
            number[:1], tree.feature[is_inner], tree.threshold[is_inner],
            number[np.stack([tree.children_left, tree.children_right], axis=1)[is_inner]],
        ))  # fmt: skip
        n_inner += int(is_inner.sum())
        n_leaves += int((~is_inner).sum())
    roots, feature, threshold, children = map(np.concatenate, zip(*found, strict=True))
    if middle is not None:
        threshold = threshold * middle.unit[feature] + middle.centre[feature]
    if not is_sparse(X):
        threshold = between_values(threshold, feature, X)
    below = threshold.astype(dtype)
    below = np.where(below > threshold, np.nextafter(below, -np.inf, dtype=dtype), below)
    roots, feature, children = (
        part.astype(np.int32) for part in (roots, feature, children)
    )
    return Leaves(roots, feature, below, children)


def between_values(threshold: Floats, feature: NDArray[np.intp], X: Floats) -> Floats:
    """Return thresholds of which none is on a value that occurs:
    sides hang on no rounding.

    scikit-learn looks at the rows of a node alone: half-way between 4 and 6, others may
    have 5. It becomes 5.5, half-way to the next value.
    """
    moved, near = np.array(threshold, np.float64), 16 * np.finfo(X.dtype).eps
    for f in np.unique(feature):
        values, of_f = np.unique(X[:, f]).astype(np.float64), np.flatnonzero(feature == f)
        after = np.searchsorted(values, moved[of_f], side="right")
        inside = (after > 0) & (after < len(values))
        of_f, at = of_f[inside], after[inside]
        away = np.minimum(moved[of_f] - values[at - 1], values[at] - moved[of_f])
        on_value = away <= near * np.abs(moved[of_f])
        moved[of_f[on_value]] = (values[at - 1] / 2 + values[at] / 2)[on_value]
    return moved


def shares_of(
    trees: Sequence[Any], places: NDArray[np.intp], n_classes: int, dtype: DTypeLike
) -> Floats:
    """Return the share of each class among the rows of each leaf, (m, n_classes).

    Parameters
    ----------
    trees : list of sklearn.tree.DecisionTreeClassifier
        Fitted.
    places : ndarray of int
        Of the classes that occur in their rows, among all.
    n_classes : int
    dtype : dtype
    """
    found = []
    for one in trees:
        counts = one.tree_.value[one.tree_.children_left < 0, 0]
        shares = np.zeros((len(counts), n_classes), dtype)
        shares[:, places] = counts / counts.sum(axis=1, keepdims=True)
        found.append(shares)
    return np.concatenate(found)


def joined(forests: Sequence[ForestModels]) -> ForestModels:
    """Return all trees of several forests as one, whose scores are the mean of theirs."""
    parts, n_inner, n_leaves = [], 0, 0
    for one in forests:
        found = one.leaves
        nodes = found.roots, found.children
        roots, children = (np.where(k < 0, k - n_leaves, k + n_inner) for k in nodes)
        parts.append((roots, found.feature, found.threshold, children))
        n_inner += len(found.feature)
        n_leaves += one.local_intercept.shape[1]
    first = forests[0]
    by_leaf = np.concatenate([one.local_intercept.T for one in forests])
    by_leaf /= by_leaf.dtype.type(len(forests))
    s, _, d = first.local_coef.shape
    return replace(
        first,
        local_coef=zero_models(s, n_leaves, d, by_leaf.dtype),
        local_intercept=by_leaf.T,
        leaves=Leaves(*map(np.concatenate, zip(*parts, strict=True))),
    )
