"""Rows through trees that ask one feature at a time, and the scores of their leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.jit import jit, read_only
from loclin.portable.words import Leaves

_BLOCK = 2**18  # numbers of sparse rows that are laid out at once


def leaves_at(coder: Leaves, X: Matrix) -> NDArray[np.int32]:
    """Return the number of each row's leaf in each tree, (n, t)."""
    places = np.empty((X.shape[0], len(coder.roots)), np.int32)
    nodes = coder.roots, coder.feature, coder.left, coder.right
    given = [read_only(np.ascontiguousarray(part, np.int32)) for part in nodes]
    threshold = read_only(np.ascontiguousarray(coder.threshold, X.dtype))
    step = max(1, _BLOCK // X.shape[1]) if is_sparse(X) else max(1, X.shape[0])
    for first in range(0, X.shape[0], step):
        some = X[first : first + step]
        some = np.ascontiguousarray(some.toarray() if is_sparse(some) else some)
        _fall(read_only(some), *given, threshold, places[first : first + step])
    return places


def leaf_scores(coder: Leaves, X: Matrix, values: Floats) -> Floats:
    """Return the mean value of each row's leaves, (n, s).

    Parameters
    ----------
    coder : Leaves
        Of m leaves.
    X : {ndarray, csr} of shape (n, d)
    values : ndarray of shape (s, m)
        Leaf by leaf in memory; else they are copied.
    """
    scores = np.zeros((X.shape[0], len(values)), X.dtype)
    by_leaf = read_only(np.ascontiguousarray(values.T, X.dtype))
    _add_values(leaves_at(coder, X), by_leaf, scores)
    scores /= len(coder.roots)
    return scores


def leaf_codes(coder: Leaves, X: Matrix) -> csr_matrix:
    """Return the codes of each row's leaves, (n, m)."""
    places = leaves_at(coder, X)
    n, t = places.shape
    values, starts = np.full(n * t, 1 / t, X.dtype), np.arange(0, n * t + 1, t)
    m = len(coder.feature) + t  # a leaf more than inner nodes a tree
    return csr_matrix((values, places.ravel(), starts), shape=(n, m))


@jit
def _fall(X, roots, feature, left, right, threshold, places):
    for tree in range(roots.shape[0]):  # whose nodes stay near the processor
        for i in range(X.shape[0]):
            node = roots[tree]
            while node >= 0:
                below = X[i, feature[node]] <= threshold[node]
                node = left[node] if below else right[node]
            places[i, tree] = -1 - node


@jit
def _add_values(places, by_leaf, scores):
    for i in range(places.shape[0]):
        for tree in range(places.shape[1]):
            leaf = places[i, tree]
            for y in range(scores.shape[1]):
                scores[i, y] += by_leaf[leaf, y]
