"""Rows through trees that ask one feature at a time, and the scores of their leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.jit import inner, jit, read_only
from loclin.portable.words import Leaves

_BLOCK_NUMBERS = 2**18  # numbers of sparse rows that are laid out at once


def leaves_at(coder: Leaves, X: Matrix) -> NDArray[np.int32]:
    """Return the number of each row's leaf in each tree, (n, t)."""
    places = np.empty((X.shape[0], len(coder.roots)), np.int32)
    nodes = coder.roots, coder.feature, coder.children
    given = [read_only(np.ascontiguousarray(part, np.int32)) for part in nodes]
    threshold = read_only(np.ascontiguousarray(coder.threshold, X.dtype))
    step = max(1, _BLOCK_NUMBERS // X.shape[1]) if is_sparse(X) else max(1, X.shape[0])
    for first in range(0, X.shape[0], step):
        block = X[first : first + step]
        block = np.ascontiguousarray(block.toarray() if is_sparse(block) else block)
        _fall(read_only(block), *given, threshold, places[first : first + step])
    return places


def leaf_scores(coder: Leaves, X: Matrix, values: Floats) -> Floats:
    """Return the sum of what each row's leaves say, (n, s).

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
    return scores


def leaf_codes(coder: Leaves, X: Matrix) -> csr_matrix:
    """Return the codes of each row's leaves, (n, m)."""
    places = leaves_at(coder, X)
    n, t = places.shape
    values, starts = np.ones(n * t, X.dtype), np.arange(0, n * t + 1, t)
    m = len(coder.feature) + t  # a leaf more than inner nodes a tree
    return csr_matrix((values, places.ravel(), starts), shape=(n, m))


@inner
def _child(X, i, node, feature, children, threshold):
    """Return where row i goes from an inner node:
    a number that is computed, not a branch.
    """
    return children[node, int(X[i, feature[node]] > threshold[node])]


@jit
def _fall(X, roots, feature, children, threshold, places):
    """Let the rows fall, four at once: while one waits for memory, others move."""
    n = X.shape[0]
    fours = n - n % 4
    for tree in range(roots.shape[0]):  # whose nodes stay near the processor
        for i in range(0, fours, 4):
            a = b = c = e = roots[tree]
            while a >= 0 or b >= 0 or c >= 0 or e >= 0:
                if a >= 0:
                    a = _child(X, i, a, feature, children, threshold)
                if b >= 0:
                    b = _child(X, i + 1, b, feature, children, threshold)
                if c >= 0:
                    c = _child(X, i + 2, c, feature, children, threshold)
                if e >= 0:
                    e = _child(X, i + 3, e, feature, children, threshold)
            places[i, tree], places[i + 1, tree] = -1 - a, -1 - b
            places[i + 2, tree], places[i + 3, tree] = -1 - c, -1 - e
        for i in range(fours, n):
            a = roots[tree]
            while a >= 0:
                a = _child(X, i, a, feature, children, threshold)
            places[i, tree] = -1 - a


@jit
def _add_values(places, by_leaf, scores):
    for i in range(places.shape[0]):
        for tree in range(places.shape[1]):
            leaf = places[i, tree]
            for y in range(scores.shape[1]):
                scores[i, y] += by_leaf[leaf, y]
