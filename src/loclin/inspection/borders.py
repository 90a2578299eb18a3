"""Lines where a map changes, finer than its grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_HALVINGS = 9  # of a grid's step: far below what a picture shows

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def borders(
    x: Floats, y: Floats, labels: Indices, label_of: Callable[[Floats], Indices]
) -> Floats:
    """Return the borders between labels as pieces of lines.

    Where two neighbours of the grid differ, halving finds the place between them.

    Parameters
    ----------
    x : ndarray of shape (w,)
    y : ndarray of shape (h,)
    labels : ndarray of shape (h, w)
        Labels at the points of the grid.
    label_of : callable
        From points, (n, 2), to their labels, (n,).

    Returns
    -------
    pieces : ndarray of shape (n, 2, 2)
        Both ends of each piece, each with x and y.

    Examples
    --------
    >>> import numpy as np
    >>> from loclin.inspection.borders import borders
    >>> step = lambda points: (points[:, 0] > 0.3).astype(int)
    >>> borders(np.arange(2.0), np.arange(2.0), np.array([[0, 1], [0, 1]]), step).round(2)
    array([[[0.3, 0. ],
            [0.3, 1. ]]])
    """
    points = np.stack(np.meshgrid(x, y), axis=2)
    across = _crossings(
        points[:, :-1], points[:, 1:], labels[:, :-1], labels[:, 1:], label_of
    )
    up = _crossings(points[:-1], points[1:], labels[:-1], labels[1:], label_of)
    # the four edges of each cell: two, three or four are crossed, or none
    edges = np.stack([across[:-1], across[1:], up[:, :-1], up[:, 1:]], axis=2)
    edges = edges.reshape(-1, 4, 2)
    crossed = ~np.isnan(edges[:, :, 0])
    count = crossed.sum(axis=1)
    ends = np.take_along_axis(
        edges, np.argsort(~crossed, axis=1, kind="stable")[..., None], 1
    )
    several = ends[count > 2]
    if not len(several):
        return ends[count == 2, :2]
    centres = np.broadcast_to(np.nanmean(several, axis=1, keepdims=True), several.shape)
    stars = np.stack([several, centres], axis=2).reshape(-1, 2, 2)
    return np.concatenate([ends[count == 2, :2], stars[~np.isnan(stars[:, 0, 0])]])


def _crossings(
    one: Floats,
    other: Floats,
    of_one: Indices,
    of_other: Indices,
    label_of: Callable[[Floats], Indices],
) -> Floats:
    """Return where the label changes between points; NaN where it does not."""
    found = np.full(one.shape, np.nan)
    differ = of_one != of_other
    low, high, label = one[differ], other[differ], of_one[differ]
    if not len(low):
        return found
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        same = (label_of(middle) == label)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    found[differ] = (low + high) / 2
    return found
