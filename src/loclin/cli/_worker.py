"""A process that calls a function on one item after another, and is killed where one takes long."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from threading import Thread
from time import perf_counter
from typing import Any, Self

__all__ = ["Worker"]

WAIT = 3600.0  # seconds of one poll: more than that may be more than the system takes


class Worker:
    """Calls ``function(item, callback)`` in a process of its own.

    A context manager. The process starts with the first call, and again after one that was killed.

    Parameters
    ----------
    function : callable
        Pickled, as its items, what it tells the callback and what it returns.
    """

    def __init__(self, function: Callable[[Any, Callable[[Any], None]], Any]) -> None:
        self._function = function
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._kill()

    def __call__(self, item: Any, seconds: float, callback: Callable[[Any], None]) -> Any:
        """Return what the function returns.

        Raises
        ------
        TimeoutError
            If it takes more than so many seconds; the start of the process is not counted.
        ChildProcessError
            If the process dies.
        """
        try:
            if self._process is None:
                self._start()
            self._pipe.send(item)
        except (EOFError, ConnectionError) as error:
            raise self._died() from error
        end = perf_counter() + seconds
        while True:
            last, told = self._receive(end)
            if last:
                return told
            callback(told)

    def _receive(self, end: float) -> tuple[bool, Any]:
        """Return what the process says next: the result, if it is the last, or a message."""
        try:
            while (left := end - perf_counter()) > 0:
                if self._pipe.poll(min(left, WAIT)):
                    told: tuple[bool, Any] = self._pipe.recv()
                    return told
        except (EOFError, ConnectionError) as error:
            raise self._died() from error
        self._kill()
        raise TimeoutError

    def _died(self) -> ChildProcessError:
        self._kill()
        return ChildProcessError("its process died; was the memory enough?")

    def _start(self) -> None:
        context = get_context("spawn")  # a fork of a process with threads may hang
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._function), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()  # it has loaded what it needs

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


def _serve(pipe: Connection, function: Callable[[Any, Callable[[Any], None]], Any]) -> None:
    """Call the function on what comes through the pipe, for as long as the parent lives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        pipe.send("ready")
        while True:
            told = function(pipe.recv(), lambda message: pipe.send((False, message)))
            pipe.send((True, told))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
