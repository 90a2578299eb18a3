"""How many threads matrix products, and k-means, get while a model trains."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from threading import Condition, Event, current_thread, local, main_thread
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

# Multiply-adds in one batch's product below which a second BLAS thread costs more than it
# brings.
_WORTH_A_THREAD = 1e7
_AGAIN = 5  # so many interrupts in a row, at most, are outlasted
_restored: Any = None  # filters of warnings that the last interrupt set back
# Threads that `side_by_side` has started know the event that calls them off.
_ours = local()


@cache
def _controller() -> ThreadpoolController:
    """Find the thread pools once; looking for them takes milliseconds."""
    return ThreadpoolController()


def _surely(done: Callable[[], Any]) -> None:
    """Call what must be done after an interrupt, again where another one cuts it short."""
    for _ in range(_AGAIN):
        try:
            done()
        except KeyboardInterrupt:
            continue
        return


class handling_restored:
    """Set what becomes of warnings and overflows as it was if the block fails.

    An interrupt may come where a ``with`` block is about to set it back. Interrupts come
    in the main thread; other threads leave alone what is shared. This is no generator:
    one that was interrupted before its block began would set back what it found when it
    is collected, later.
    """

    def __enter__(self) -> None:
        self.filters, self.errors = warnings.filters, np.geterr()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and current_thread() is main_thread():
            _surely(lambda: _handle_by(self.filters, self.errors))


def _handle_by(filters: Any, errors: Any) -> None:
    global _restored
    _restored = filters
    _filter_by(filters)
    np.seterr(**errors)


def _filter_by(filters: Any) -> None:
    warnings.filters = filters
    with warnings.catch_warnings():  # so that Python looks at them anew
        pass


def wait_for(work: Callable[[], Any], name: str) -> Any:
    """Let another thread of that name do the work, and wait;
    an interrupt leaves it alone.

    It may be inside ``catch_warnings`` then, and put back the filters that it has found:
    those of a fit that is no longer. So when it ends, they are once more what the
    interrupt made them.
    """
    global _restored
    filters_before, alone = warnings.filters, Event()

    def to_its_end() -> Any:
        try:
            return work()
        finally:
            if (
                alone.is_set()
                and _restored is not None
                and warnings.filters is filters_before
            ):
                _filter_by(_restored)

    pool = ThreadPoolExecutor(1, thread_name_prefix=name)
    try:
        return pool.submit(to_its_end).result()
    except BaseException:
        _restored = None  # what an earlier interrupt set back
        alone.set()
        raise
    finally:
        pool.shutdown(wait=False)


class limits_restored:
    """Set the limits as they were if the block fails:
    an interrupt may come before one is noted.
    """

    def __enter__(self) -> None:
        self.before = _controller().info()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            _surely(lambda: _controller().limit(limits=self.before))


def threads_for(products_per_batch: float) -> AbstractContextManager[Any]:
    """Keep small matrix products on one thread; leave large ones as the user set them.

    Threads wait for one another after each product. Where other programs have the cores
    too, that takes tens of times as long as a small product itself.

    Raises
    ------
    CancelledError
        In a thread of `side_by_side` that was interrupted: every loop of a fit comes by
        here.
    """
    called_off: Event | None = getattr(_ours, "called_off", None)
    if called_off is not None and called_off.is_set():
        raise CancelledError
    if products_per_batch < _WORTH_A_THREAD:
        return _controller().limit(limits=1)
    return nullcontext()


def side_by_side(
    function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> list[Any]:
    """Call the function on the arguments of each task, several at once in threads.

    Those beside one another have one BLAS thread each, and start no others. The limit on
    BLAS is one for the process, as are the filters of warnings, so they are set and
    restored here, once, and not by the threads: the last of them would leave its own
    behind. An interrupt, or a task that fails, calls the others off.
    """
    tasks = list(tasks)
    at_once = (
        1 if hasattr(_ours, "called_off") else min(effective_n_jobs(n_jobs), len(tasks))
    )
    if at_once <= 1:
        return [function(*task) for task in tasks]
    crew = _Crew()
    mark = partial(setattr, _ours, "called_off", crew.called_off)
    pool = ThreadPoolExecutor(at_once, initializer=mark)
    with (
        limits_restored(),
        _controller().limit(limits=1),
        warnings.catch_warnings(),
        pool,
    ):
        try:
            return list(pool.map(lambda task: crew.call(function, task), tasks))
        except BaseException:
            _surely(crew.call_off)  # the others restore limits and filters of their own
            _surely(pool.shutdown)
            raise


class _Crew:
    """Tasks in hand, for which an interrupt has to wait.

    The executor does not know all its threads: an interrupt while one starts lets it go
    on alone.
    """

    def __init__(self) -> None:
        self.called_off = Event()
        self.n_running = 0
        self.change = Condition()

    def call(self, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
        """Call the function, unless all was called off."""
        with self.change:
            if self.called_off.is_set():
                raise CancelledError
            self.n_running += 1
        try:
            return function(*task)
        finally:
            with self.change:
                self.n_running -= 1
                self.change.notify_all()

    def call_off(self) -> None:
        """Let no further task begin, and wait for those that run."""
        with self.change:
            self.called_off.set()
            self.change.wait_for(lambda: not self.n_running)
