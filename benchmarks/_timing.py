"""Shared by the benchmarks: pinned threads, interleaved timing, resident memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@contextmanager
def pinned_threads(n_threads: int) -> Iterator[None]:
    """Give every thread pool `n_threads` threads, here and in the processes started from here."""
    import numba
    import scipy.linalg.cython_blas  # noqa: F401  (pools can be pinned only once they are loaded)
    import sklearn  # noqa: F401

    environment, compiled_threads = dict(os.environ), numba.get_num_threads()
    os.environ.update(dict.fromkeys(_POOLS, str(n_threads)))
    numba.set_num_threads(min(n_threads, numba.config.NUMBA_NUM_THREADS))
    try:
        with threadpool_limits(n_threads):
            yield
    finally:
        numba.set_num_threads(compiled_threads)
        os.environ.clear()
        os.environ.update(environment)


def interleaved(
    tasks: dict[str, Callable[[], Any]], repeats: int
) -> dict[str, NDArray[np.float64]]:
    """Processor seconds of every task in each of `repeats` rounds; a round runs every task once.

    Processor time leaves out other programs' turns.
    """
    seconds = {name: np.empty(repeats) for name in tasks}
    for i in range(repeats):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            seconds[name][i] = time.process_time() - start
    return seconds


def memory_status(field: str) -> float:
    """Bytes of a memory field of this process, such as VmRSS or VmHWM; NaN outside Linux."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def reset_peak_memory() -> None:
    """Let VmHWM start again from VmRSS, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return
