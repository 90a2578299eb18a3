"""One place for the compiler's settings, and for what it keeps on disk."""

from __future__ import annotations

import gc
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from importlib import metadata
from typing import Any

import numpy as np
from numba import config, njit
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    NullCache,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.event import Event, Listener, register
from numba.core.serialize import dumps
from numba.extending import register_jitable

# Sums may be reordered (so that they vectorise) and products contracted; NaN and inf keep
# their meaning, because the solvers test for them. Wrappers are for calls from C and from Python:
# what only compiled code calls (an overload) has neither, which saves a tenth of the compilation.
OPTIONS = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}


class CompileCacheWarning(UserWarning):
    """Compiled functions are not kept on disk, or were damaged there; results are the same."""


_warned = False


def _warn(message: str) -> None:
    """Warn, but once in a process: what is wrong with one file is wrong with all."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(message, CompileCacheWarning, stacklevel=2)


@contextmanager
def quiet() -> Iterator[None]:
    """Let trials warn of nothing, but of the cache: that comes once in a process."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:  # a trial that fails is no reason to forget it
        for one in caught:
            if issubclass(one.category, CompileCacheWarning):
                warnings.warn_explicit(str(one.message), one.category, one.filename, one.lineno)


class _NoCollection(Listener):
    """Lets the garbage collector rest while a function of ours is compiled.

    The compiler makes objects by the million, few of them in circles: a sixth of its time, for
    about 100 MB more at the peak.
    """

    def __init__(self) -> None:
        self._depth = 0  # a function is compiled while its caller is; the compiler has one lock
        self._enabled = False

    def on_start(self, event: Event) -> None:
        if not _is_ours(event):
            return
        if not self._depth:
            self._enabled = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Event) -> None:
        if not _is_ours(event):
            return
        self._depth -= 1
        if not self._depth and self._enabled:
            gc.enable()


def _is_ours(event: Event) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("loclin.")


register("numba:compile", _NoCollection())


@lru_cache
def _version() -> str:
    try:
        return metadata.version("loclin")
    except metadata.PackageNotFoundError:  # run from its sources
        return ""


class _HomeLocator(UserWideCacheLocator):
    """The folder in the user's home; where no home is known, not one named ~ wherever we are."""

    def ensure_cache_path(self) -> None:
        if not os.path.isabs(self.get_cache_path()):
            raise OSError("no home folder is known")
        super().ensure_cache_path()


class _CheckedForm(CompileResultCacheImpl):
    """A compiled function on disk, with its name, what it was made from, and a checksum.

    Numba looks at the source file of the function alone, and a write that is cut off between its
    two files leaves a new index with the machine code of old sources.
    """

    _locator_classes = (UserProvidedCacheLocator, InTreeCacheLocator, _HomeLocator)

    def _made_from(self) -> tuple[Any, ...]:
        return self.filename_base, self.locator.get_source_stamp(), _version()

    def reduce(self, data: Any) -> tuple[Any, ...]:
        content = dumps(super().reduce(data))
        return self._made_from(), sha256(content).digest(), content

    def rebuild(self, target_context: Any, reduced_data: Any) -> Any:
        """Return the compiled function; None where it was made from something else."""
        made_from, checksum, content = reduced_data
        if made_from != self._made_from():
            return None
        if sha256(content).digest() != checksum:
            raise ValueError("its checksum differs")
        return super().rebuild(target_context, pickle.loads(content))


class _Cache(FunctionCache):
    """Numba's cache, without the right to fail: what it cannot load or save is compiled."""

    _impl_class = _CheckedForm

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle raises what it likes
            _warn(
                f"A compiled function in {self.cache_path} cannot be read "
                f"({type(error).__name__}: {error}) and is compiled anew. If this comes back, "
                "remove the folder, or let NUMBA_CACHE_DIR name another one."
            )
            return None
        return found if found is None or found.signature.args == tuple(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            try:
                super().save_overload(sig, data)
            except (OSError, MemoryError):
                raise
            except Exception:  # the index is damaged: begin a new one
                self.flush()
                super().save_overload(sig, data)
        except Exception as error:
            _warn_of_no_cache(self.cache_path, error)


class _NoCache(NullCache):
    """Stands in where there is no folder for a cache."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def save_overload(self, sig: Any, cres: Any) -> None:
        named = config.CACHE_DIR or "NUMBA_CACHE_DIR (not set)"
        own = os.path.join(os.path.dirname(__file__), "__pycache__")
        _warn_of_no_cache(f"{named}, in {own} or in the user's home", self.error)


def _warn_of_no_cache(folder: str, error: Exception) -> None:
    _warn(
        f"Compiled functions cannot be kept in {folder} ({type(error).__name__}: {error}), so "
        "that every process compiles them anew, for seconds. Make room there, or let "
        "NUMBA_CACHE_DIR name a folder that can be written."
    )


def jit(function: Callable[..., Any], *, cache: bool = True) -> Any:
    """Compile `function` on its first call, without the GIL, and keep the result on disk.

    It returns arrays, plain numbers and plain tuples of these. Of a named tuple Numba would call
    the class: Python code, in which a pending signal is handled. If the handler raises, as it does
    on Ctrl-C, Numba goes on with the NULL that the call has returned, and the process dies.

    Where it cannot be kept, or what is kept cannot be read, it is compiled in memory, and the
    first compilation of the process warns of it.
    """
    compiled = njit(**OPTIONS | {"no_cpython_wrapper": False})(function)
    if cache:
        # Numba has no public way to set a cache of one's own: its locators choose a folder, but
        # what fails while files there are read or written goes through to the caller, in the
        # middle of a fit. `njit(cache=True)` does no more than set this attribute; the methods
        # that `_Cache` overrides are public. Should a later Numba name the attribute otherwise,
        # nothing is kept, and nothing fails.
        try:
            compiled._cache = _Cache(function)
        except Exception as error:
            compiled._cache = _NoCache(error)
    return compiled


inner = register_jitable(**OPTIONS)
"""Decorator of a function that only compiled code calls: compiled with its caller.

From Python it runs as it is written.
"""


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view of the array that cannot be written.

    The compiler tells writable arrays from others; with one kind of view a loop is compiled once,
    for memory maps and for arrays in memory.
    """
    view = array.view()
    view.flags.writeable = False
    return view
