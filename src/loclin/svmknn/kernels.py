"""Compiled loops of SVM-KNN: products of few rows, and the SVMs of neighbourhoods.

The SVM of k rows x_i with labels y = +-1 and a free intercept minimises, in the dual variables c,

    1/2 sum_ij c_i c_j y_i y_j x_i . x_j - sum_i c_i    with 0 <= c_i <= U_i, sum_i c_i y_i = 0

and its score is ``sum_i c_i y_i x_i . x + b``. As the sum of the c_i y_i is zero, rows may be taken
from any origin; here it is the first of them, so that products are as small as a neighbourhood is.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import overload

from loclin.engine.jit import OPTIONS, inner, jit
from loclin.engine.rows import is_dense

# Pairs that are moved at most: some hundreds are enough, but where alpha or the tolerance is small.
MOST_STEPS = 100_000
# Least strength, in units of the rows' mean squared deviation over k: dual variables of rows that
# contradict one another grow to its inverse, and their sums lose as many digits.
_WEAKEST = 1e-9


def products_from(X, origin, rows, Z, row, out):
    """Write ``(x_i - o) . (z - o)`` for these rows of X, o being a row of X and z a row of Z."""


@overload(products_from, jit_options=OPTIONS)
def _products_from(X, origin, rows, Z, row, out):
    if is_dense(X):

        def dense(X, origin, rows, Z, row, out):
            for i in range(rows.shape[0]):
                total, at = 0.0, rows[i]
                for f in range(X.shape[1]):
                    centre = X[origin, f]
                    total += (X[at, f] - centre) * (Z[row, f] - centre)
                out[i] = total

        return dense

    def csr(X, origin, rows, Z, row, out):
        shared = sparse_product(X, origin, X, origin) - sparse_product(X, origin, Z, row)
        for i in range(rows.shape[0]):
            own = sparse_product(X, rows[i], Z, row) - sparse_product(X, rows[i], X, origin)
            out[i] = own + shared

    return csr


@inner
def sparse_product(X, i, Z, j):
    """Product of row i of X and row j of Z, CSR parts with sorted columns."""
    data, columns, starts = X
    others, other_columns, other_starts = Z
    e, stop = starts[i], starts[i + 1]
    f, other_stop = other_starts[j], other_starts[j + 1]
    total = 0.0
    while e < stop and f < other_stop:
        left, right = columns[e], other_columns[f]
        if left == right:
            total += float(data[e]) * float(others[f])
        e += left <= right
        f += right <= left
    return total


@inner
def worst_pair(K, signs, bounds, dual, slopes):
    """Return the pair whose move gains most, and by how much they violate the conditions.

    The first is the worst violator; the second follows from it (Fan et al., Working set selection
    using second order information, 2005). -1 where there is none.
    """
    top, low, first, second, most = -math.inf, math.inf, -1, -1, 0.0
    for i in range(signs.shape[0]):
        rises = dual[i] < bounds[i] if signs[i] > 0 else dual[i] > 0
        if rises and -signs[i] * slopes[i] > top:
            top, first = -signs[i] * slopes[i], i
    for j in range(signs.shape[0]):
        if dual[j] > 0 if signs[j] > 0 else dual[j] < bounds[j]:
            lead = top + signs[j] * slopes[j]
            low = min(low, -signs[j] * slopes[j])
            if lead > 0:
                gain = lead * lead / curve_of(K, first, j)
                if gain > most:
                    most, second = gain, j
    return first, second, top - low


@inner
def curve_of(K, i, j):
    """Squared distance of two rows, positive."""
    return max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12 * (K[i, i] + K[j, j]) + 1e-300)


@inner
def moved(dual, step, bound):
    """Return a dual variable after a step, at its bound where only rounding keeps it from there."""
    new = dual + step
    if step < 0:
        return 0.0 if new <= 1e-12 * dual else new
    return bound if bound - new <= 1e-12 * bound else new


@jit
def solve_svm(K, signs, bounds, tol, dual, slopes):
    """Solve the SVM of a few rows by moving pairs of dual variables.

    Returns its intercept, and the violation of the optimality conditions that is left.

    Parameters
    ----------
    K : ndarray of shape (k, k)
        Products of the rows.
    signs, bounds : ndarray of shape (k,)
        +-1, both of them; U, positive.
    tol : float
        Greatest violation of the optimality conditions, in units of the margin.
    dual, slopes : ndarray of shape (k,)
        Overwritten, by c and by the slopes of the problem.
    """
    dual[:] = 0.0
    slopes[:] = -1.0
    violation = math.inf
    for _ in range(MOST_STEPS):
        i, j, violation = worst_pair(K, signs, bounds, dual, slopes)
        if j < 0 or violation <= tol:
            break
        step = (signs[j] * slopes[j] - signs[i] * slopes[i]) / curve_of(K, i, j)
        most_i = bounds[i] - dual[i] if signs[i] > 0 else dual[i]
        most_j = dual[j] if signs[j] > 0 else bounds[j] - dual[j]
        step = min(step, most_i, most_j)
        dual[i] = moved(dual[i], signs[i] * step, bounds[i])
        dual[j] = moved(dual[j], -signs[j] * step, bounds[j])
        for t in range(signs.shape[0]):
            slopes[t] += signs[t] * step * (K[t, i] - K[t, j])
    return intercept_of(signs, bounds, dual, slopes), violation


@inner
def intercept_of(signs, bounds, dual, slopes):
    """Mean of what the rows on the margin say; without any, the middle of what all allow."""
    total, n_free, low, high = 0.0, 0, -math.inf, math.inf
    for i in range(signs.shape[0]):
        at = -signs[i] * slopes[i]
        if 0 < dual[i] < bounds[i]:
            total += at
            n_free += 1
        elif (dual[i] == 0) == (signs[i] > 0):
            low = max(low, at)
        else:
            high = min(high, at)
    return total / n_free if n_free else 0.5 * (low + high)


@jit
def solve_sets(X, labels, weights, sets, alpha, relative, tol, duals, intercepts):
    """Solve the SVMs of some sets of rows, one class against the rest.

    Returns the greatest violation of the optimality conditions that is left.

    Parameters
    ----------
    X : compiled form of {ndarray, csr} of shape (n, d)
    labels : ndarray of shape (n,)
        0 .. c - 1.
    weights : ndarray of shape (n,)
    sets : ndarray of shape (n_sets, k)
        Rows of X.
    alpha : float
        L2 strength, 1e-9 at least of the rows' mean squared deviation over k; if `relative`, in
        units of that.
    relative : bool
    tol : float
        See `solve_svm`.
    duals : ndarray of shape (n_sets, s, k)
        Overwritten by the c_i y_i of each score; one score is that of class 1 of two.
    intercepts : ndarray of shape (n_sets, s)
        Overwritten, for rows taken from the first of the set; NaN where no row is of the class.
    """
    n_sets, s, k = duals.shape
    K, bounds, signs = np.empty((k, k)), np.empty(k), np.empty(k)
    dual, slopes, worst = np.empty(k), np.empty(k), 0.0
    for g in range(n_sets):
        rows, total = sets[g], 0.0
        for i in range(k):
            products_from(X, rows[0], rows, X, rows[i], K[i])
            total += weights[rows[i]]
        deviation = (np.trace(K) - K.sum() / k) / k
        unit = deviation / k if deviation > 0 else 1.0  # any, for neighbours that are one point
        strength = max(alpha * unit if relative else alpha, _WEAKEST * unit)
        for i in range(k):
            bounds[i] = weights[rows[i]] / (strength * total)
        for y in range(s):
            n_positive = 0
            for i in range(k):
                positive = labels[rows[i]] == (y if s > 1 else 1)
                signs[i] = 1.0 if positive else -1.0
                n_positive += positive
            if 0 < n_positive < k:
                intercepts[g, y], left = solve_svm(K, signs, bounds, tol, dual, slopes)
                worst = max(worst, left)
                for i in range(k):
                    duals[g, y, i] = signs[i] * dual[i]
                continue
            duals[g, y] = 0.0
            intercepts[g, y] = 1.0 if n_positive else (-1.0 if s == 1 else math.nan)
    return worst


@jit
def score_rows(X, Z, sets, set_of, duals, intercepts, scores):
    """Write what the SVM of each row's neighbours says of it.

    Parameters
    ----------
    X, Z : compiled form of {ndarray, csr} of shape (n, d) and (n_rows, d)
        Training rows, and those to score.
    sets : ndarray of shape (n_sets, k)
    set_of : ndarray of shape (n_rows,)
    duals, intercepts
        See `solve_sets`.
    scores : ndarray of shape (n_rows, s)
        Overwritten. A class that no neighbour has scores 1 less than 0 and than all others.
    """
    n, s = scores.shape
    products = np.empty(sets.shape[1])
    for row in range(n):
        g = set_of[row]
        rows, least = sets[g], 0.0
        products_from(X, rows[0], rows, Z, row, products)
        for y in range(s):
            total = intercepts[g, y]
            for i in range(products.shape[0]):
                total += duals[g, y, i] * products[i]
            scores[row, y] = total
            if not math.isnan(total):
                least = min(least, total)
        for y in range(s):
            if math.isnan(intercepts[g, y]):
                scores[row, y] = least - 1.0
