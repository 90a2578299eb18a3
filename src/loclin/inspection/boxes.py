"""The boxes in which trees say one thing, and the shortest ways into them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loclin.portable import Description, Leaves, Term

Floats = NDArray[np.float64]
_NUMBERS = 2**23  # sides of all boxes that are looked at: of the first trees


def boxes_of(description: Description | None) -> tuple[Floats, Floats]:
    """Return the boxes of all leaves, in features as the classifier is given them.

    Parameters
    ----------
    description : Description or None

    Returns
    -------
    low, high : ndarray of shape (n_leaves, n_features)
        A row is inside where it is above `low` and not above `high`.

    Examples
    --------
    >>> import numpy as np
    >>> from loclin.portable import Description, Leaves, Term
    >>> tree = Leaves(np.array([0]), np.array([1]), np.array([0.5]), np.array([[-1, -2]]))
    >>> stump = Term(tree, None, np.array([[-1.0, 1.0]]), np.zeros(1))
    >>> low, high = boxes_of(Description((stump,), np.array([0, 1]), n_features=2))
    >>> low.tolist(), high.tolist()
    ([[-inf, -inf], [-inf, 0.5]], [[inf, 0.5], [inf, inf]])
    """
    if description is None:
        return np.empty((0, 0)), np.empty((0, 0))
    lows, highs = (
        [np.empty((0, description.n_features))],
        [np.empty((0, description.n_features))],
    )
    for term in description.terms:
        if isinstance(term.coder, Leaves) and term.root is None:
            low, high = _of_term(term, description.n_features)
            lows.append(low)
            highs.append(high)
    return np.concatenate(lows), np.concatenate(highs)


def _of_term(term: Term, n_features: int) -> tuple[Floats, Floats]:
    trees = term.coder
    assert isinstance(trees, Leaves)
    feature = np.asarray(trees.feature)
    at = np.asarray(trees.threshold, np.float64)
    at = at if term.scale is None else at * term.scale[feature]
    at = at if term.centre is None else at + term.centre[feature]
    feature = feature if term.columns is None else np.asarray(term.columns)[feature]
    n_nodes = min(len(feature), _NUMBERS // n_features)
    low = np.full((n_nodes, n_features), -np.inf)
    high = np.full((n_nodes, n_features), np.inf)
    lows, highs = [], []
    for node in range(n_nodes):  # parents come before their children
        for side, child in enumerate(trees.children[node].tolist()):
            child_low, child_high = low[node].copy(), high[node].copy()
            if side:
                child_low[feature[node]] = max(child_low[feature[node]], at[node])
            else:
                child_high[feature[node]] = min(child_high[feature[node]], at[node])
            if child < 0:
                lows.append(child_low)
                highs.append(child_high)
            elif child < n_nodes:
                low[child], high[child] = child_low, child_high
    shape = -1, n_features
    return np.reshape(lows, shape), np.reshape(highs, shape)
