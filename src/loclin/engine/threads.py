"""How many threads matrix products, and k-means, get while a model trains."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from threading import Event, Lock, local
from typing import Any
from weakref import WeakSet

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

# Multiply-adds in one batch's product below which a second BLAS thread costs more than it brings.
_WORTH_A_THREAD = 1e7
_ours = local()  # threads that `side_by_side` has started know the event that calls them off


@cache
def _controller() -> ThreadpoolController:
    """Find the thread pools once; looking for them takes milliseconds."""
    return ThreadpoolController()


class _Holder:
    """One who keeps to one thread, and the numbers of threads that were set before."""

    def __init__(self) -> None:
        self.found = [library.num_threads for library in _controller().lib_controllers]


class _Holders:
    """Who keeps to one thread at the moment. The limit on BLAS is one for the process.

    The first notes what the user had set, and the last sets it again. If each set what it had
    found, the last to end would leave the limit of another behind. One that an interrupt keeps
    from leaving is garbage soon, and then no longer among them.
    """

    def __init__(self) -> None:
        self.before: list[int] | None = None
        self.forget()

    def forget(self) -> None:
        """Forget all, and the lock that one may have: they are threads of a process that forked."""
        self.lock, self.all = Lock(), WeakSet[_Holder]()

    def enter(self, holder: _Holder) -> None:
        """Set one thread."""
        with self.lock:
            if not self.all:
                self.before = self.before or holder.found
            self.all.add(holder)
            for library in _controller().lib_controllers:
                library.set_num_threads(1)

    def leave(self, holder: _Holder) -> None:
        """Set what was before: of BLAS once the last one leaves, of OpenMP in each thread."""
        with self.lock:
            self.all.discard(holder)
            numbers = zip(holder.found, self.before or holder.found, strict=True)
            for library, (own, first) in zip(_controller().lib_controllers, numbers, strict=True):
                if library.user_api == "openmp":
                    library.set_num_threads(own)
                elif not self.all:
                    library.set_num_threads(first)
            if not self.all:
                self.before = None


_holders = _Holders()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_holders.forget)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep matrix products, and OpenMP in this thread, on one thread."""
    holder = _Holder()
    try:
        _holders.enter(holder)
        yield
    finally:
        _holders.leave(holder)


@contextmanager
def threads_for(products_per_batch: float) -> Iterator[None]:
    """Keep small matrix products on one thread; leave large ones as the user set them.

    Threads wait for one another after each product. Where other programs have the cores too, that
    takes tens of times as long as a small product itself.

    Raises
    ------
    CancelledError
        In a thread of `side_by_side` that was interrupted: every loop of a fit comes by here.
    """
    called_off: Event | None = getattr(_ours, "called_off", None)
    if called_off is not None and called_off.is_set():
        raise CancelledError
    if products_per_batch < _WORTH_A_THREAD:
        with one_thread():
            yield
    else:
        yield


def side_by_side(
    function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> list[Any]:
    """Call the function on the arguments of each task, several at once in threads.

    Those beside one another have one BLAS thread each, and start no others. The limit on BLAS is
    one for the process, as are the filters of warnings, so they are set and restored here, once,
    and not by the threads: the last of them would leave its own behind. An interrupt, or a task
    that fails, calls the others off.
    """
    tasks = list(tasks)
    at_once = 1 if hasattr(_ours, "called_off") else min(effective_n_jobs(n_jobs), len(tasks))
    if at_once <= 1:
        return [function(*task) for task in tasks]
    called_off = Event()
    mark = partial(setattr, _ours, "called_off", called_off)
    pool = ThreadPoolExecutor(at_once, initializer=mark)
    with one_thread(), warnings.catch_warnings(), pool:
        try:
            return list(pool.map(lambda task: function(*task), tasks))
        except BaseException:
            called_off.set()
            raise
