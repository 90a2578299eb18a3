"""MNIST8M made anew: small deformations and translations of MNIST's 60,000 training digits.

The recipe is that of Loosli, Canu and Bottou ("Training invariant support vector machines using
selective sampling", 2007). An image moves along its tangents, its derivatives t_x and t_y, by a
displacement field drawn from a bank of smooth random ones,

    x + f_x t_x + f_y t_y, cut at black and white,

and then by up to a pixel along each axis. As in their file the first rows are the digits as they
are, and row i comes from digit i mod 60,000. The bank and the draws are ours, so rows are of the
same kind as those of the published file, not the same: displacements are noise smoothed by a
Gaussian of 4 pixels (as Simard, Steinkraus and Platt, 2003, have it) with a root mean square of one
pixel along each axis, and tangents are those of the image smoothed by one of 0.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

N_ROWS = 8_100_000
SIDE = 28
N_FIELDS = 1522  # as many as theirs
FIELD_WIDTH, DISPLACEMENT, TANGENT_WIDTH = 4.0, 1.0, 0.7  # pixels
SHIFTS = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
_BLOCK = 256  # rows deformed together: they stay in the processor's cache
_Rows = tuple[NDArray[np.float32], NDArray[Any]]


class DeformedDigits:
    """Digits, then their deformations without end; every row follows from its number and the seed.

    Parameters
    ----------
    X : ndarray of shape (n_digits, 784)
        Images of 28 x 28 pixels, from 0 to 1.
    y : ndarray of shape (n_digits,)
    seed : int, default=0
    n_fields : int, default=1522
        Size of the bank of displacements.
    """

    def __init__(
        self, X: NDArray[Any], y: NDArray[Any], seed: int = 0, n_fields: int = N_FIELDS
    ) -> None:
        self.X, self.y, self.seed = X.astype(np.float32, copy=False), y, seed
        self.fields = smooth_fields(n_fields, seed)
        images = self.X.reshape(-1, SIDE, SIDE)
        self.tangents = [derivative(images, axis).reshape(self.X.shape) for axis in (1, 2)]
        self._round, self._drawn = 0, self._draw(0)

    def chunks(self, n_rows: int = N_ROWS, size: int = 20_000) -> Iterator[_Rows]:
        """Yield the first `n_rows` rows; their values do not depend on the size of a chunk."""
        for first in range(0, n_rows, size):
            yield self.rows(first, min(first + size, n_rows))

    def rows(self, first: int, last: int) -> _Rows:
        """Return the rows from number `first` to before `last`, and their labels."""
        n, found = len(self.X), np.empty((last - first, SIDE * SIDE), np.float32)
        at = first
        while at < last:
            number, start = divmod(at, n)
            stop = min(n, start + _BLOCK, start + last - at)
            out = found[at - first : at - first + stop - start]
            if number == 0:
                out[:] = self.X[start:stop]
            else:
                self._deform(number, slice(start, stop), out)
            at += stop - start
        return found, self.y[np.arange(first, last) % n]

    def _draw(self, number: int) -> NDArray[np.intp]:
        """Draw two fields and a shift for every digit."""
        rng, n = np.random.default_rng([self.seed, 1, number]), len(self.X)
        return np.stack([*rng.integers(len(self.fields), size=(2, n)),
                         rng.integers(len(SHIFTS), size=n)])  # fmt: skip

    def _deform(self, number: int, block: slice, out: NDArray[np.float32]) -> None:
        """Write the deformations of some digits in a round."""
        if number != self._round:
            self._round, self._drawn = number, self._draw(number)
        down, right, shift = self._drawn[:, block]
        moved = self.fields[down]
        moved *= self.tangents[0][block]
        along = self.fields[right]
        along *= self.tangents[1][block]
        moved += along
        moved += self.X[block]
        np.clip(moved, 0, 1, out=moved)
        order = np.argsort(shift, kind="stable")
        images, shifted = moved[order].reshape(-1, SIDE, SIDE), along.reshape(-1, SIDE, SIDE)
        ends = np.cumsum(np.bincount(shift, minlength=len(SHIFTS)))
        for by, start, stop in zip(SHIFTS, [0, *ends[:-1]], ends, strict=True):
            translate(images[start:stop], *by, shifted[start:stop])
        out[order] = along


def smooth_fields(n: int, seed: int) -> NDArray[np.float32]:
    """Return displacements along an axis, in pixels: smoothed noise, (n, 784)."""
    noise = np.random.default_rng([seed, 0]).uniform(-1, 1, (n, SIDE, SIDE)).astype(np.float32)
    smooth = gaussian_filter(noise, FIELD_WIDTH, axes=(1, 2), mode="constant")
    smooth *= DISPLACEMENT / np.sqrt(np.mean(smooth**2))
    return smooth.reshape(n, -1)


def derivative(images: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Return how images change as they move along an axis: minus their derivative, smoothed."""
    order = (1, 0) if axis == 1 else (0, 1)
    found = np.empty_like(images)
    for first in range(0, len(images), 1000):
        some = slice(first, first + 1000)
        gaussian_filter(
            images[some], TANGENT_WIDTH, order, found[some], mode="constant", axes=(1, 2)
        )
    return np.negative(found, out=found)


def translate(images: NDArray[Any], down: int, right: int, out: NDArray[Any]) -> None:
    """Write images moved by up to a pixel along each axis; what comes in is black."""
    source, target = zip(*(_overlap(by) for by in (down, right)), strict=True)
    out[:, *target] = images[:, *source]
    for axis, by in ((1, down), (2, right)):
        if by:
            edge: list[Any] = [slice(None)] * 3
            edge[axis] = 0 if by > 0 else -1
            out[tuple(edge)] = 0


def _overlap(by: int) -> tuple[slice, slice]:
    """Where pixels come from and go to along an axis."""
    return slice(max(0, -by), SIDE - max(0, by)), slice(max(0, by), SIDE - max(0, -by))
