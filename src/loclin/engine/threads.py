"""How many threads matrix products, and k-means, get while a model trains."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from threading import local
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

# Multiply-adds in one batch's product below which a second BLAS thread costs more than it brings.
_WORTH_A_THREAD = 1e7
_ours = local()  # threads that `side_by_side` has started are marked


@cache
def _controller() -> ThreadpoolController:
    """Find the thread pools once; looking for them takes milliseconds."""
    return ThreadpoolController()


def threads_for(products_per_batch: float) -> AbstractContextManager[Any]:
    """Keep small matrix products on one thread; leave large ones as the user set them.

    Threads wait for one another after each product. Where other programs have the cores too, that
    takes tens of times as long as a small product itself.
    """
    if products_per_batch < _WORTH_A_THREAD:
        return _controller().limit(limits=1)
    return nullcontext()


def side_by_side(
    function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> list[Any]:
    """Call the function on the arguments of each task, several at once in threads.

    Those beside one another have one BLAS thread each, and start no others. The limit on BLAS is
    one for the process, as are the filters of warnings, so they are set and restored here, once,
    and not by the threads: the last of them would leave its own behind.
    """
    tasks = list(tasks)
    at_once = 1 if hasattr(_ours, "beside") else min(effective_n_jobs(n_jobs), len(tasks))
    if at_once <= 1:
        return [function(*task) for task in tasks]
    mark = partial(setattr, _ours, "beside", True)
    pool = ThreadPoolExecutor(at_once, initializer=mark)
    with _controller().limit(limits=1), warnings.catch_warnings(), pool:
        return list(pool.map(lambda task: function(*task), tasks))
