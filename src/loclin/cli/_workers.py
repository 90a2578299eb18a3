"""Processes that call a function on one item after another,
and are killed where one takes long.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from threading import Thread
from time import perf_counter
from typing import Any, Self

__all__ = ["Workers"]

WAIT = 3600.0  # seconds of one wait: more than that may be more than the system takes


@dataclass
class _Call:
    """An item, the process that works on it, and what that waits for."""

    item: Any
    process: Any
    pipe: Connection
    left: float  # seconds that the call may still take ...
    since: float | None = None  # ... from this moment on; None: its clock stands still
    # for its "item", to "go" on, to go on "alone"; "": for nothing, it runs
    waits: str = ""
    alone: bool = False  # it runs alone

    def late(self) -> float:
        """Return the seconds by which its time is over; less than none: those left."""
        return -WAIT if self.since is None else perf_counter() - self.since - self.left

    def stop(self, waits: str) -> None:
        """Stop the clock; the call now waits."""
        if self.since is not None:
            self.left -= perf_counter() - self.since
        self.since, self.waits, self.alone = None, waits, False

    def go_on(self, *, alone: bool) -> None:
        """Let the process go on, with its item if it waits for that."""
        with suppress(ConnectionError):  # it has died, which is noticed where it is heard
            self.pipe.send(self.item if self.waits == "item" else None)
        self.since, self.waits, self.alone = perf_counter(), "", alone

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Workers:
    """Calls ``function(item, callback)`` for many items,
    several at once, each in a process.

    A context manager. What a call tells its callback reaches the caller's, and the call
    goes on when that has returned. A message whose attribute ``alone`` is true asks for a
    quiet machine: the call goes on when all others wait, and they wait until its next
    message or its end. Time spent waiting is not counted.

    Parameters
    ----------
    function : callable
        Pickled, as its items, what it tells the callback and what it returns.
    count : int
        The most processes at once.
    seconds : float
        The most that a call may take, the start of its process not counted.
    """

    def __init__(
        self,
        function: Callable[[Any, Callable[[Any], None]], Any],
        count: int,
        seconds: float,
    ) -> None:
        self._function = function
        self._count = count
        self._seconds = seconds
        self._calls: list[_Call] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for call in self._calls:
            call.kill()
        self._calls.clear()

    def __call__(
        self, items: Iterable[Any], callback: Callable[[Any], None]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each item with what the function returned for it, as soon as it is there.

        In the place of a result stands a TimeoutError where the call took too long, and a
        ChildProcessError where its process died.
        """
        left = deque(items)
        while left and len(self._calls) < self._count:
            self._start(left.popleft())
        while self._calls:
            for call in self._heard():
                ended, outcome = _hear(call, callback)
                if not ended:
                    continue
                item = call.item
                if left and not isinstance(outcome, OSError):
                    call.item, call.left = left.popleft(), self._seconds
                else:
                    call.kill()
                    self._calls.remove(call)
                    if left:
                        self._start(left.popleft())
                yield item, outcome
            self._answer()

    def _start(self, item: Any) -> None:
        context = get_context("spawn")  # a fork of a process with threads may hang
        pipe, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(theirs, self._function), daemon=True
        )
        process.start()
        theirs.close()
        self._calls.append(_Call(item, process, pipe, self._seconds))

    def _heard(self) -> list[_Call]:
        """Wait until a call says something or is late, and return such calls."""
        soonest = min(-call.late() for call in self._calls)
        ready = wait([call.pipe for call in self._calls], max(0.0, min(soonest, WAIT)))
        return [call for call in self._calls if call.pipe in ready or call.late() >= 0]

    def _answer(self) -> None:
        """Let go on what may."""
        if any(call.alone for call in self._calls):
            return
        quiet = next((call for call in self._calls if call.waits == "alone"), None)
        if quiet is None:
            for call in self._calls:
                if call.waits:
                    call.go_on(alone=False)
        elif all(call.waits for call in self._calls):
            quiet.go_on(alone=True)


def _hear(call: _Call, callback: Callable[[Any], None]) -> tuple[bool, Any]:
    """Return whether the call has ended, and with what: its result, or an error."""
    try:
        if not call.pipe.poll():
            return True, TimeoutError()
        waits, told = call.pipe.recv()
    except (EOFError, ConnectionError):
        return True, ChildProcessError("its process died; was the memory enough?")
    call.stop("item" if waits == "end" else waits)
    if waits in ("go", "alone"):
        callback(told)
    return waits == "end", told


def _serve(
    pipe: Connection, function: Callable[[Any, Callable[[Any], None]], Any]
) -> None:
    """Call the function on what comes through the pipe, for as long as the parent lives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    Thread(target=_end_with_parent, daemon=True).start()

    def tell(message: Any) -> None:
        pipe.send(("alone" if getattr(message, "alone", False) else "go", message))
        pipe.recv()

    with suppress(EOFError, ConnectionError):
        pipe.send(("item", None))
        while True:
            pipe.send(("end", function(pipe.recv(), tell)))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
