"""Compiled bookkeeping of a descent: steps, shrinkage, the average of the iterates.

Step s has size ``1 / (alpha s)``, and shrinks the weights by ``1 - 1 / s``. With those
the steps of a batch telescope: after it every row's step has become 1 / (alpha s_end),
and the old weights have shrunk by s_start / s_end. So a batch costs one scaling and plain
additions.

The weights are ``scale * W``: shrinking is a product of numbers. Averaging keeps
``sums.W = sum of c * update``, where c sums the scales before the update; then the sum of
all iterates is ``c * W - sums.W``, at the price of the updates only.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from numpy.typing import NDArray

from loclin.engine.jit import inner
from loclin.engine.rows import SMALLEST_SCALE
from loclin.engine.shapes import Shape


class Weights(NamedTuple):
    """Local models, their intercepts and those of the scorers; or sums of these.

    Sums are empty where nothing is averaged.
    """

    # The letter p stands for the features that models see.
    W: Annotated[NDArray, Shape("s*m p", sparse="p s*m", looped=True)]
    b: Annotated[NDArray, Shape("s*m", looped=True)]
    g: Annotated[NDArray, Shape("s", looped=True)]


class Progress(NamedTuple):
    """How far a descent is."""

    t: float  # steps, the ones that count as taken at the start included
    scale: float  # the weights are this times W
    c: float  # sum of the scales since averaging began
    n_averaged: float  # iterates in the average


@inner
def rescaled(weights, progress, factor, with_intercepts):
    """Multiply the weights by a factor, and the intercepts if they are penalised."""
    b = weights.b
    g = weights.g
    scale = progress.scale
    if factor > 0.0:
        scale *= factor
    else:
        weights.W[:] = 0
    if with_intercepts:
        b *= b.dtype.type(factor)
        g *= g.dtype.type(factor)
    return Progress(progress.t, scale, progress.c, progress.n_averaged)


@inner
def shrunk(weights, progress, n, with_intercepts):
    """Count n steps more, and shrink the weights as they do."""
    before, t = progress.t, progress.t + n
    later = Progress(t, progress.scale, progress.c, progress.n_averaged)
    return rescaled(weights, later, before / t, with_intercepts)


@inner
def averaged(weights, sums, progress, n):
    """Multiply a small scale out;
    count the iterate n times into the sums, if there are any.
    """
    W = weights.W
    b = weights.b
    g = weights.g
    scale = progress.scale
    c = progress.c
    n_averaged = progress.n_averaged
    if scale < SMALLEST_SCALE:
        W *= b.dtype.type(scale)
        c /= scale
        scale = 1.0
    if sums.b.shape[0] > 0:
        c += scale * n
        n_averaged += n
        for j in range(b.shape[0]):
            sums.b[j] += b.dtype.type(n) * b[j]
        for k in range(g.shape[0]):
            sums.g[k] += g.dtype.type(n) * g[k]
    return Progress(progress.t, scale, c, n_averaged)


@inner
def multiplied_out(weights, progress):
    """Multiply the scale out, at the end of a pass; return the fields of `Progress`.

    A plain tuple: see `jit` for what compiled code may return to Python.
    """
    W, scale = weights.W, progress.scale
    W *= weights.b.dtype.type(scale)
    return progress.t, 1.0, progress.c / scale, progress.n_averaged
