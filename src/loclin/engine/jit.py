"""One place for the compiler's settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

# Sums may be reordered (so that they vectorise) and products contracted; NaN and inf keep
# their meaning, because the solvers test for them.
OPTIONS = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}


def jit(function: Callable[..., Any], *, cache: bool = True) -> Any:
    """Compile `function` on its first call, without the GIL, and keep the result on disk.

    Where no cache folder can be written (a read-only installation in a home that cannot be
    written either), the function is compiled anew in every process instead of failing.
    """
    try:
        return njit(cache=cache, error_model="numpy", **OPTIONS)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return njit(error_model="numpy", **OPTIONS)(function)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view of the array that cannot be written.

    The compiler tells writable arrays from others; with one kind of view a loop is compiled once,
    for memory maps and for arrays in memory.
    """
    view = array.view()
    view.flags.writeable = False
    return view
