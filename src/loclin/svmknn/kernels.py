"""The compiled SVM of a few rows with labels y = +-1, and with a free intercept.

Its dual, in variables a_i that have the signs of the labels, is

    min  1/2 sum_ij a_i a_j x_i . x_j - sum_i y_i a_i    with sum_i a_i = 0

and a_i between 0 and y_i U_i. Its score is ``sum_i a_i x_i . x + b``. As the sum of the
a_i is zero, rows may be taken from any origin.
"""

from __future__ import annotations

import math

import numpy as np

from loclin.engine.jit import inner, jit

# Pairs that are moved at most: some hundreds are enough, but where alpha or the tolerance
# is small.
MOST_STEPS = 100_000


@inner
def worst_pair(K, limits, dual, slopes):
    """Return the pair whose move gains most,
    and what the slopes allow the intercept to be.

    The first, which rises, is the worst violator; the second, which falls, follows from
    it (Fan et al., Working set selection using second order information, 2005). -1 where
    there is none. The conditions are violated by as much as the least intercept allowed
    exceeds the largest.
    """
    least, largest, first, second, most = -math.inf, math.inf, -1, -1, 0.0
    for i in range(dual.shape[0]):
        if dual[i] < max(0.0, limits[i]) and -slopes[i] > least:
            least, first = -slopes[i], i
    for j in range(dual.shape[0]):
        if dual[j] > min(0.0, limits[j]):
            largest = min(largest, -slopes[j])
            lead = least + slopes[j]
            if lead > 0:
                gain = lead * lead / curve_of(K, first, j)
                if gain > most:
                    most, second = gain, j
    return first, second, least, largest


@inner
def curve_of(K, i, j):
    """Squared distance of two rows, positive."""
    return max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12 * (K[i, i] + K[j, j]) + 1e-300)


@inner
def moved(dual, step, limit):
    """Return a dual variable after a step,
    at its limit where only rounding keeps it from there.
    """
    new = dual + step
    return limit if abs(limit - new) <= 1e-12 * max(abs(limit), abs(dual)) else new


@jit
def solve_sets(K, limits, tol, duals, intercepts):
    """Solve the SVMs of some sets of rows, where these are of both labels.

    Returns the greatest violation of the optimality conditions that is left.

    Parameters
    ----------
    K : ndarray of shape (n_sets, k, k)
    limits, duals : ndarray of shape (n_sets, s, k)
    tol : float
    intercepts : ndarray of shape (n_sets, s)
        Overwritten where an SVM is solved.
    """
    worst = 0.0
    for g in range(K.shape[0]):
        for y in range(limits.shape[1]):
            if limits[g, y].min() < 0 < limits[g, y].max():
                intercepts[g, y], left = solve_svm(K[g], limits[g, y], tol, duals[g, y])
                worst = max(worst, left)
    return worst


@jit
def solve_svm(K, limits, tol, dual):
    """Solve the SVM of a few rows by moving pairs of dual variables.

    Returns its intercept, which is the mean of what the rows on the margin say, or
    without any the middle of what all allow; and the violation of the optimality
    conditions that is left.

    Parameters
    ----------
    K : ndarray of shape (k, k)
        Products of the rows.
    limits : ndarray of shape (k,)
        The y_i U_i, not zero, some of either sign.
    tol : float
        Greatest violation of the optimality conditions, in units of the margin.
    dual : ndarray of shape (k,)
        Overwritten by the a_i.
    """
    dual[:] = 0.0
    slopes = -np.sign(limits)
    least, largest = math.inf, -math.inf
    for _ in range(MOST_STEPS):
        i, j, least, largest = worst_pair(K, limits, dual, slopes)
        if j < 0 or least - largest <= tol:
            break
        highest, lowest = max(0.0, limits[i]), min(0.0, limits[j])
        step = (slopes[j] - slopes[i]) / curve_of(K, i, j)
        step = min(step, highest - dual[i], dual[j] - lowest)
        dual[i], dual[j] = moved(dual[i], step, highest), moved(dual[j], -step, lowest)
        for t in range(dual.shape[0]):
            slopes[t] += step * (K[i, t] - K[j, t])
    total, n_free = 0.0, 0
    for i in range(dual.shape[0]):
        if 0 < abs(dual[i]) < abs(limits[i]):
            total -= slopes[i]
            n_free += 1
    return total / n_free if n_free else 0.5 * (least + largest), least - largest
