"""What limits are measured with: bare products, and seconds and memory of a task."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from benchmarks._timing import interleaved, memory_status, reset_peak_memory
from loclin.engine.jit import jit

Row = tuple[str, dict[str, float]]  # what is measured, and its figures by name


def in_fresh_process(function: Callable[..., Any], *args: Any) -> Any:
    """Run the function in a process of its own."""
    quiet = warnings.simplefilter, ("ignore", ConvergenceWarning)
    with ProcessPoolExecutor(1, get_context("spawn"), *quiet) as fresh:
        return fresh.submit(function, *args).result()


def measured(task: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return the result, and processor seconds and growth of memory (MB) while it ran."""
    reset_peak_memory()
    resident = memory_status("VmRSS")
    start = time.process_time()
    result = task()
    seconds = time.process_time() - start
    return result, {"s": seconds, "MB": (memory_status("VmHWM") - resident) / 1e6}


def products_by_numpy(
    X: NDArray[Any], W: NDArray[Any], batch: int, out: NDArray[Any], epochs: int
) -> None:
    """Multiply every batch of rows with the weights, `epochs` times over."""
    for _ in range(epochs):
        for first in range(0, len(X), batch):
            rows = X[first : first + batch]
            np.matmul(rows, W.T, out=out[: len(rows)])


@jit
def products_compiled(
    X: NDArray[Any], W: NDArray[Any], batch: int, out: NDArray[Any], epochs: int
) -> None:
    """Do the same as `products_by_numpy`."""
    for _ in range(epochs):
        for first in range(0, X.shape[0], batch):
            rows = X[first : first + batch]
            np.dot(rows, W.T, out[: rows.shape[0]])


def bare_products(
    X: NDArray[Any], n_columns: int, batches: Sequence[int]
) -> tuple[Callable[[int], None], str]:
    """Return the products of all rows in the fastest of the ways and batch sizes, and its name.

    The function returned takes the number of epochs.
    """
    W = np.random.default_rng(0).standard_normal((n_columns, X.shape[1])).astype(X.dtype)
    tried: dict[str, Callable[..., None]] = {}
    for batch in batches:
        room = np.empty((min(batch, len(X)), n_columns), X.dtype)
        for name, way in (("NumPy", products_by_numpy), ("compiled", products_compiled)):
            way(X[:1], W, batch, room, 1)
            tried[f"{name}, batches of {batch}"] = partial(way, X, W, batch, room)
    seconds = interleaved({name: partial(task, 1) for name, task in tried.items()}, 3)
    fastest = min(seconds, key=lambda name: seconds[name].min())
    return tried[fastest], fastest
