"""One place for the compiler's settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import njit
from numba.extending import register_jitable

from loclin.engine.warned import warn_of_cache

try:
    from loclin.engine.cache import compile_beside, keep
except Exception as error:
    # These names are not public; what they raise elsewhere is unknown.
    warn_of_cache(
        f"Compiled functions cannot be kept with Numba {numba.__version__} "
        f"({type(error).__name__}: {error}), so that every process compiles them anew, for "
        "seconds. Install the newest loclin, or an older Numba."
    )

    def keep(compiled: Any, function: Callable[..., Any]) -> None:
        """Keep nothing."""

    def compile_beside(compiled: Any) -> None:
        """Compile in the thread that calls."""


# Sums may be reordered (so that they vectorise) and products contracted; NaN and inf keep
# their meaning, because the solvers test for them. Wrappers are for calls from C and from
# Python: what only compiled code calls (an overload) has neither, which saves a tenth of
# the compilation.
OPTIONS = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}


def jit(function: Callable[..., Any], *, keeps: bool = True) -> Any:
    """Compile `function` on its first call, without the GIL, and keep the result on disk.

    It returns plain numbers and plain tuples of these, and writes arrays that it is
    given. To make a named tuple or an array Numba runs Python, in which a pending signal
    is handled. If the handler raises, as it does on Ctrl-C, Numba does not look: the
    process dies of the named tuple, and a SystemError takes the place of what was raised
    for the array.

    Where it cannot be kept, or what is kept cannot be read, it is compiled in memory, and
    the first compilation of the process warns of it.
    """
    compiled = njit(**OPTIONS | {"no_cpython_wrapper": False})(function)
    compile_beside(compiled)
    if keeps:
        keep(compiled, function)
    return compiled


@cache
def _in_memory(compiled: Any) -> Any:
    return jit(compiled.py_func, keeps=False)


def kept_for(compiled: Any, *parts: Any) -> Any:
    """Return a compiled loop for these parts:
    in memory where one is of a class from elsewhere.

    A cache on disk would have to find its class again in any later process.
    """
    ours = all(type(one).__module__.startswith(("loclin.", "builtins")) for one in parts)
    return compiled if ours else _in_memory(compiled)


inner = register_jitable(**OPTIONS)
"""Decorator of a function that only compiled code calls: compiled with its caller.

From Python it runs as it is written.
"""


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view of the array that cannot be written.

    The compiler tells writable arrays from others; with one kind of view a loop is
    compiled once, for memory maps and for arrays in memory.
    """
    view = array.view()
    view.flags.writeable = False
    return view
