"""Streams that learned different rows, as one."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from loclin.engine.procedure import Part, StreamProcedure

S = TypeVar("S", bound=StreamProcedure)


def merged(streams: Sequence[S], weights: ArrayLike, since: S | None = None) -> S:
    """Return the stream whose parts are the weighted means of those of others.

    Parameters
    ----------
    streams : sequence of StreamProcedure
        Copies of one stream, each of which has learned some rows since. They are not
        changed.
    weights : array-like of shape (n_streams,)
        How much each counts: the rows it has learned, usually. Only ratios matter.
    since : StreamProcedure or None, default=None
        The stream that they are copies of: what it had counted, counts once. None: of no
        rows.

    Returns
    -------
    whole : StreamProcedure
        It goes on with the first one's generator.

    Raises
    ------
    ValueError
        If streams are of different models, or weights are not valid.
    """
    shares = np.asarray(weights, np.float64)
    if shares.shape != (len(streams),) or not (shares >= 0).all() or not shares.sum() > 0:
        raise ValueError(
            f"weights={weights!r} must be {len(streams)} numbers of at least 0."
        )
    shares = shares / shares.sum()
    states = [one.state() for one in streams]
    kinds = {
        tuple((part.name, np.shape(part.value)) for part in state) for state in states
    }
    if len(kinds) != 1 or len({type(one) for one in streams}) != 1:
        raise ValueError("Only streams of one model, which began alike, can be merged.")
    whole = deepcopy(streams[0])
    begun = since.state() if since is not None else [None] * len(states[0])
    for part, before, *parts in zip(whole.state(), begun, *states, strict=True):
        if part.adds_up:
            start: Any = 0 if before is None else before.value
            part.value[...] = start + sum(one.value - start for one in parts)
        else:
            part.value[...] = _mean([one.value for one in parts], shares)
            if part.mean is not None:
                part.mean[...] = _mean([_mean_of(one) for one in parts], shares)
    whole.count_in(streams, since)
    return whole


def _mean(values: Sequence[Any], shares: Any) -> Any:
    return sum(share * value for share, value in zip(shares, values, strict=True))


def _mean_of(part: Part) -> Any:
    """Return the running mean; the last iterate where none has begun."""
    return part.value if part.mean is None else part.mean
