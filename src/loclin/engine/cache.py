"""What the compiler keeps on disk, by way of Numba's own cache;
and the thread it works in.

Numba has no public way to set a cache of one's own: its locators choose a folder, but
what fails while files there are read or written goes through to the caller, in the middle
of a fit. Nor has it one to let Ctrl-C through. So this module alone stands on names of
Numba that are not public. Where a Numba lacks one of them, it cannot be imported, and
`jit` goes without.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import sha256
from importlib import metadata
from threading import current_thread, main_thread
from typing import Any

from numba import config, njit
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.serialize import dumps

from loclin.engine.threads import wait_for
from loclin.engine.warned import warn_of_cache

_NullCache: Any = type(njit(lambda: None)._cache)  # what a function has that is not kept


@lru_cache
def _version() -> str:
    try:
        return metadata.version("loclin")
    except metadata.PackageNotFoundError:  # run from its sources
        return ""


class _HomeLocator(UserWideCacheLocator):
    """The folder in the user's home;
    where no home is known, not one named ~ wherever we are.
    """

    def ensure_cache_path(self) -> None:
        if not os.path.isabs(self.get_cache_path()):
            raise OSError("no home folder is known")
        super().ensure_cache_path()


class _CheckedForm(CompileResultCacheImpl):
    """A compiled function on disk, with its name, what it was made from, and a checksum.

    Numba looks at the source file of the function alone, and a write that is cut off
    between its two files leaves a new index with the machine code of old sources.
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
            compiled = super().load_overload(sig, target_context)
            if compiled is None or compiled.signature.args == tuple(sig):
                return compiled
            return None
        except Exception as error:  # a damaged pickle raises what it likes
            warn_of_cache(
                f"A compiled function in {self.cache_path} cannot be read "
                f"({type(error).__name__}: {error}) and is compiled anew. If this comes back, "
                "remove the folder, or let NUMBA_CACHE_DIR name another one."
            )
            return None

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


class _NoCache(_NullCache):
    """Stands in where there is no folder for a cache."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def save_overload(self, sig: Any, cres: Any) -> None:
        named = config.CACHE_DIR or "NUMBA_CACHE_DIR (not set)"
        package_cache = os.path.join(os.path.dirname(__file__), "__pycache__")
        _warn_of_no_cache(
            f"{named}, in {package_cache} or in the user's home", self.error
        )


def _warn_of_no_cache(folder: str, error: Exception) -> None:
    warn_of_cache(
        f"Compiled functions cannot be kept in {folder} ({type(error).__name__}: {error}), so "
        "that every process compiles them anew, for seconds. Make room there, or let "
        "NUMBA_CACHE_DIR name a folder that can be written."
    )


def keep(compiled: Any, function: Callable[..., Any]) -> None:
    """Let Numba keep what it compiles of the function, as `njit(cache=True)` does."""
    try:
        compiled._cache = _Cache(function)
    except Exception as error:
        compiled._cache = _NoCache(error)


def compile_beside(compiled: Any) -> None:
    """Let the main thread wait while another compiles,
    so that it hears an interrupt at once.

    Python handles signals in the main thread, wherever it is. Inside the compiler, what a
    handler raises is lost in callbacks from C ("Exception ignored in ..."): Ctrl-C would
    do nothing. After an interrupt the other thread goes on, and a later call finds what
    it has compiled.
    """
    compile_for = compiled._compile_for_args

    def beside(*arguments: Any, **options: Any) -> Any:
        if current_thread() is not main_thread():
            return compile_for(*arguments, **options)
        return wait_for(partial(compile_for, *arguments, **options), "loclin compiles")

    compiled._compile_for_args = beside
