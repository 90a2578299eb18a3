"""Warnings: they point to the caller's line, and trials keep theirs to themselves."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

# Whose lines the caller did not write.
_BETWEEN = {"loclin", "sklearn", "joblib", "numba", "importlib"}


class CompileCacheWarning(UserWarning):
    """Compiled functions are not kept on disk, or were damaged there;
    results are the same.
    """


class SomeRowsWarning(UserWarning):
    """A fit learns from some of its rows, as all would take too much memory."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the library, itself or through a pipeline or a search.

    How many calls are between the two depends on the version of scikit-learn, whose
    callbacks wrap `fit`.
    """
    frame = sys._getframe(1)
    while frame.f_back and _module(frame).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        _module(frame),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _module(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")


_warned = False


def warn_of_cache(message: str) -> None:
    """Warn, but once in a process: what is wrong with one file is wrong with all."""
    global _warned
    if not _warned:
        _warned = True
        warn(message, CompileCacheWarning)


class quiet(warnings.catch_warnings):
    """Let trials warn of nothing, but of the cache: that comes once in a process.

    This is no generator, for the reason that `engine.threads.handling_restored` is none.

    Parameters
    ----------
    *but : type
        Other categories that come through.
    """

    def __init__(self, *but: type[Warning]) -> None:
        super().__init__(record=False)
        self._but: tuple[type[Warning], ...] = CompileCacheWarning, *but

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")
        for category in self._but:
            warnings.simplefilter("default", category)
