"""Rows with the pieces of their features beside these, centred and scaled, in one pass."""

from __future__ import annotations

import numpy as np

from loclin.engine.data import Floats
from loclin.engine.jit import jit, read_only
from loclin.portable.words import Pieces


def with_pieces(
    X: Floats, pieces: Pieces, centre: Floats | None = None, scale: Floats | None = None
) -> Floats:
    """Return ``(rows with pieces - centre) / scale``, as `portable.reader` says it.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    pieces : Pieces
        Of p columns, of the type of X.
    centre, scale : ndarray of shape (d + p,) or None, default=None
        None stands for zeros, or ones.
    """
    n, d = X.shape
    width = d + len(pieces.feature)
    seen = np.empty((n, width), X.dtype)
    centre = np.zeros(width, X.dtype) if centre is None else centre
    scale = np.ones(width, X.dtype) if scale is None else scale
    given = (
        X,
        pieces.feature.astype(np.intp, copy=False),
        pieces.low,
        pieces.high,
        centre,
        scale,
    )
    _write(*(read_only(np.ascontiguousarray(part)) for part in given), seen)
    return seen


@jit
def _write(X, feature, low, high, centre, scale, seen):
    d = X.shape[1]
    for i in range(X.shape[0]):
        for f in range(d):
            seen[i, f] = (X[i, f] - centre[f]) / scale[f]
        for p in range(feature.shape[0]):
            x = min(max(X[i, feature[p]], low[p]), high[p])  # nothing overflows
            rising = (x - low[p]) / (high[p] - low[p])
            seen[i, d + p] = (rising - centre[d + p]) / scale[d + p]
