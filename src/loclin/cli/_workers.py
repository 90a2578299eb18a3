"""Processes that call a function on one item after another; a slow one is killed."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from threading import Thread
from time import perf_counter
from typing import Any

__all__ = ["outcomes"]

WAIT = 3600.0  # seconds of one wait: more than that may be more than the system takes
Tell = Callable[[Any], None]


@dataclass
class _Worker:
    """A process, the item that it works on, and when that is late."""

    process: Any
    pipe: Connection
    item: Any
    deadline: float = inf

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def outcomes(
    function: Callable[[Any, Tell], Any],
    items: Iterable[Any],
    *,
    count: int,
    seconds: float,
    tell: Tell,
) -> Iterator[tuple[Any, Any]]:
    """Call ``function(item, tell)`` for many items, and yield each with its result.

    In the place of a result stands a TimeoutError where the call took too long, and a
    ChildProcessError where its process died.

    Parameters
    ----------
    function : callable
        Pickled, as its items, what it tells and what it returns.
    items : iterable
    count : int
        The most processes at once.
    seconds : float
        The most that a call may take, the start of its process not counted.
    tell : callable
        Called with what a call tells.
    """
    left = deque(items)
    workers: list[_Worker] = []
    try:
        while left or workers:
            while left and len(workers) < count:
                workers.append(_started(function, left.popleft()))
            late_in = min(worker.deadline for worker in workers) - perf_counter()
            ready = wait(
                [worker.pipe for worker in workers], max(0.0, min(late_in, WAIT))
            )
            for worker in list(workers):
                if worker.pipe in ready:
                    ended, outcome = _hear(worker, seconds, tell)
                elif perf_counter() >= worker.deadline:
                    ended, outcome = True, TimeoutError()
                else:
                    continue
                if not ended:
                    continue
                item, worker.deadline = worker.item, inf
                if left and not isinstance(outcome, OSError):
                    worker.item = left.popleft()
                    worker.pipe.send(None)  # it will say when it takes the item
                else:
                    worker.kill()
                    workers.remove(worker)
                yield item, outcome
    finally:
        for worker in workers:
            worker.kill()


def _started(function: Callable[[Any, Tell], Any], item: Any) -> _Worker:
    context = get_context("spawn")  # a fork of a process with threads may hang
    pipe, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, function), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, pipe, item)


def _hear(worker: _Worker, seconds: float, tell: Tell) -> tuple[bool, Any]:
    """Return whether the call has ended, and with what: its result, or an error."""
    try:
        what, told = worker.pipe.recv()
        if what == "ready":
            worker.pipe.send(worker.item)
            worker.deadline = perf_counter() + seconds
    except (EOFError, ConnectionError):
        return True, ChildProcessError("its process died; was the memory enough?")
    if what == "told":
        start = perf_counter()
        tell(told)
        worker.deadline += perf_counter() - start
    return what == "end", told


def _serve(pipe: Connection, function: Callable[[Any, Tell], Any]) -> None:
    """Call the function on what comes through the pipe, for as long as the parent lives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        while True:
            pipe.send(("ready", None))
            item = pipe.recv()
            result = function(item, lambda message: pipe.send(("told", message)))
            pipe.send(("end", result))
            pipe.recv()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
