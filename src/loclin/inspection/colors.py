"""Colours of classes and models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Petroff's ten (arXiv:2107.02270), as in scikit-learn: colour-blind eyes tell them apart.
_TEN = (
    "3f90da", "ffa90e", "bd1f01", "94a4a2", "832db6",
    "a96b59", "e76300", "b9ac70", "717581", "92dadd",
)  # fmt: skip
INK, FAINT = "#333333", "#b5b5b5"  # lines that speak, and lines that stand behind

Floats = NDArray[np.float64]


def colors_of(numbers: Sequence[int] | NDArray[np.intp]) -> Floats:
    """Return the colours of classes or models, by their numbers; after ten they repeat.

    Parameters
    ----------
    numbers : array-like of int, of any shape
        Below 0 there is no colour: white.

    Returns
    -------
    colors : ndarray of shape (..., 3)
        Red, green and blue, from 0 to 1.

    Examples
    --------
    >>> colors_of([0, 10]).round(2).tolist()
    [[0.25, 0.56, 0.85], [0.25, 0.56, 0.85]]
    """
    rgb = np.array([[int(one[k : k + 2], 16) for k in (0, 2, 4)] for one in _TEN]) / 255
    numbers = np.asarray(numbers, np.intp)
    return np.where(numbers[..., None] < 0, 1.0, rgb[numbers % len(rgb)])


def tinted(colors: Floats, share: float | Floats) -> Floats:
    """Return colours mixed with white; `share` of 1 leaves them as they are."""
    return 1 - np.asarray(share)[..., None] * (1 - colors)


def class_legend(ax: Any, **settings: Any) -> None:
    """Name the classes beside the axes; a dollar sign is a dollar sign."""
    beside = {"frameon": False, "fontsize": 9, "loc": "upper left", "borderaxespad": 0,
              "bbox_to_anchor": (1.02, 1)}  # fmt: skip
    for text in ax.legend(**{**beside, **settings}).get_texts():
        text.set_parse_math(False)
