"""Maximisers over, and projections onto, the sets that codes live in."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loclin.engine.pooling import argmax_code_rows


def dual_exponent(p: float) -> float:
    """Return q with ``1/p + 1/q = 1``: infinite for p = 1, one for p = inf.

    A q within rounding of a whole number is made whole, since small whole powers are
    fast.

    Examples
    --------
    >>> dual_exponent(1.5), dual_exponent(2), dual_exponent(1)
    (3.0, 2.0, inf)
    """
    if p == 1:
        return math.inf
    if math.isinf(p):
        return 1.0
    q = p / (p - 1.0)
    return float(round(q)) if abs(q - round(q)) < 1e-9 * q else q


def argmax_lp_ball(scores: ArrayLike, p: float) -> NDArray[np.floating]:
    """Maximise ``code @ scores`` over ``code >= 0, ||code||_p <= 1``, row by row.

    The closed form of ML3 (equations 14 and 15): ``code_j = (s_j^+ / ||s^+||_q)^(q - 1)``
    with ``q = p / (p - 1)``. For p = 1 the largest positive score gets all the weight
    (the first one on ties); for p = inf every positive score gets 1. A row without a
    positive score gets a zero code.

    Parameters
    ----------
    scores : array-like of shape (..., m)
        Local scores; the last axis is that of the local models.
    p : float in [1, inf]
        Exponent of the norm.

    Returns
    -------
    codes : ndarray of shape (..., m)
        The maximiser, in float32 if `scores` is float32, else in float64. Its product
        with `scores` is the dual norm ``||s^+||_q``.

    Raises
    ------
    ValueError
        If p < 1.

    Examples
    --------
    >>> argmax_lp_ball([[3.0, 4.0, -1.0]], p=2)
    array([[0.6, 0.8, 0. ]])
    >>> argmax_lp_ball([[3.0, 4.0, -1.0]], p=1)
    array([[0., 1., 0.]])
    """
    if not p >= 1:
        raise ValueError(f"p={p!r} must be in [1, inf].")
    scores = np.asarray(scores)
    if scores.dtype != np.float32:
        scores = scores.astype(np.float64, copy=False)
    rows = np.ascontiguousarray(scores).reshape(-1, scores.shape[-1])
    codes = np.empty_like(rows)
    argmax_code_rows(rows, dual_exponent(p), codes)
    return codes.reshape(scores.shape)
