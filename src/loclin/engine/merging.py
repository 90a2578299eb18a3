"""Streams that learned different rows, as one."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from loclin.engine.procedure import Part, StreamProcedure, summed

S = TypeVar("S", bound=StreamProcedure)


def merged(
    streams: Sequence[S],
    weights: ArrayLike,
    since: S | None = None,
    *,
    adds_up: bool = True,
) -> S:
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
    adds_up : bool, default=True
        Whether counts, and sums over the rows, add up, as of one stream that has learned
        all these rows. False: they are means too, so that steps and averages go on as in
        each of the streams. In rounds over the same rows this is better: steps that fall
        as if all rows had been learned fall too early.

    Returns
    -------
    whole : StreamProcedure
        It goes on with the first one's generator.

    Raises
    ------
    ValueError
        If streams are not alike, or weights are not valid.

    Notes
    -----
    Streams see rows as their classifier's map shows them. Where that follows the rows
    (`standardize`), standardize the rows before they are shared out. L3M's counts of a fit
    before the stream count once for each copy.
    """
    if not streams:
        raise ValueError("There is no stream to merge.")
    shares = np.asarray(weights, np.float64)
    is_valid = shares.shape == (len(streams),) and bool(np.isfinite(shares).all())
    if not (is_valid and (shares >= 0).all() and shares.sum() > 0):
        raise ValueError(
            f"weights={weights!r} must be {len(streams)} numbers of at least 0, not all 0."
        )
    shares = shares / shares.sum()
    others = [*streams] if since is None else [*streams, since]
    if not all(_alike(one, streams[0]) for one in others):
        raise ValueError(
            "Only copies of one stream can be merged, which see features alike: these are of "
            "different models, losses, types or layouts, or their metrics have moved apart."
        )
    states = [one.state() for one in streams]
    whole = deepcopy(streams[0])
    begun = since.state() if since is not None else [None] * len(states[0])
    counted = np.ones(len(streams)) if adds_up else shares
    for part, before, *parts in zip(whole.state(), begun, *states, strict=True):
        if part.adds_up:
            start: Any = 0 if before is None else before.value
            part.value[...] = summed([one.value for one in parts], counted, start)
        else:
            part.value[...] = _mean([one.value for one in parts], shares)
            if part.mean is not None:
                part.mean[...] = _mean([_mean_of(one) for one in parts], shares)
    whole.count_in(streams, since, counted)
    return whole


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two streams are of one model, loss, type, layout and map of the rows."""
    if type(one) is not type(other):
        return False
    if hasattr(one, "inner"):
        maps = [getattr(stream, "linear_map", ()) for stream in (one, other)]
        same = all(np.array_equal(a, b) for a, b in zip(*maps, strict=True))
        return same and _alike(one.inner, other.inner)
    if hasattr(one, "parts"):
        pairs = zip(one.parts, other.parts, strict=False)
        return len(one.parts) == len(other.parts) and all(_alike(a, b) for a, b in pairs)
    return bool(_signature(one) == _signature(other))


def _signature(stream: Any) -> Any:
    """Return what copies of a stream have in common, whatever they have learned."""
    parts = [(part.name, part.value.shape, part.value.dtype) for part in stream.state()]
    solver = getattr(stream, "solver", None)
    return parts, solver and (solver.settings.loss, solver.is_sparse)


def _mean(values: Sequence[Any], shares: Any) -> Any:
    return sum(share * value for share, value in zip(shares, values, strict=True))


def _mean_of(part: Part) -> Any:
    """Return the running mean; the last iterate where none has begun."""
    return part.value if part.mean is None else part.mean
