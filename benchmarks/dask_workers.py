"""Seconds, bytes and memory of fits on a Dask cluster of one worker, and of two.

The workers make the rows: those of `many_rows` with 50 features. Two parts, one thread a worker, so
that both clusters learn the same. Bytes are all that goes through the loopback interface. An error
is of 50,000 new rows; with ``--alone`` also that of one process, which makes all rows itself.

``python -m benchmarks.dask_workers [--rows 1e7] [--workers 1 2] [--models ML3 SAPL] [--alone]
[--jsonl benchmarks/results/dask_workers.jsonl]``; `benchmarks.cluster_page` shows that file.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
from distributed import Client, LocalCluster

import loclin.dask
from benchmarks._timing import memory_status, pinned_threads
from benchmarks.cluster import MODELS
from benchmarks.cluster_page import add
from benchmarks.many_rows import sines

N_FEATURES, SIZE = 50, 500_000  # of a block


def made(number: int, size: int) -> tuple[Any, Any]:
    """Return the rows of a block and their labels."""
    X, y = sines(size, number)
    rng = np.random.default_rng([1, number])
    others = rng.standard_normal((size, N_FEATURES - X.shape[1]), np.float32)
    return np.hstack([X.astype(np.float32), others]), y


def passed() -> int:
    """Return the bytes that have gone through the loopback interface."""
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_recv)


def fit(client: Client, model: Any, n_rows: int, rounds: int, n_workers: int, after: Any) -> Any:
    """Return a classifier fitted to rows that the workers make."""
    make = dask.delayed(made, nout=2, pure=False)
    n_blocks = max(2, n_rows // SIZE)
    blocks = [make(k, n_rows // n_blocks) for k in range(n_blocks)]
    X, y = ([block[k] for block in blocks] for k in range(2))
    return loclin.dask.fit(
        model, X, y, client=client, rounds=rounds, parts_per_worker=2 // n_workers, on_round=after
    )


def on_cluster(name: str, n_workers: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one fit."""
    model, ends, sent = MODELS[name](random_state=0), [], []

    def after(_: Any) -> None:
        ends.append(time.perf_counter())
        sent.append(passed())

    given = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    given["silence_logs"] = logging.ERROR
    with LocalCluster(**given) as cluster, Client(cluster) as client:
        fit(client, model, 20_000, 2, n_workers, None)  # compile
        start = time.perf_counter()
        fitted = fit(client, model, int(options.rows), options.rounds, n_workers, after)
        seconds = time.perf_counter() - start
        peaks = client.run(memory_status, "VmHWM")
    X, y = made(10**6, 50_000)
    return {
        "model": name, "rows": int(options.rows), "workers": n_workers, "seconds": seconds,
        "until the first round": ends[0] - start, "a round": float(np.median(np.diff(ends))),
        "MB of a round": float(np.median(np.diff(sent))) / 1e6,
        "GB of a worker": [peak / 1e9 for peak in peaks.values()],
        "GB of the client": memory_status("VmHWM") / 1e9,
        "error %": 100 * float(np.mean(fitted.predict(X) != y)),
    }  # fmt: skip


def alone(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure a fit of one process."""
    blocks = [made(k, SIZE) for k in range(max(1, int(options.rows) // SIZE))]
    rows, labels = (np.concatenate([block[k] for block in blocks]) for k in range(2))
    start = time.perf_counter()
    fitted = MODELS[name](random_state=0).fit(rows, labels)
    seconds = time.perf_counter() - start
    X, y = made(10**6, 50_000)
    error = 100 * float(np.mean(fitted.predict(X) != y))
    found = {"model": name, "rows": len(labels), "workers": 0}
    return found | {"seconds": seconds, "error %": error}


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Print a line for each fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--workers", type=int, nargs="+", choices=[1, 2], default=[1, 2])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["ML3", "SAPL"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--alone", action="store_true", help="fit in one process, too")
    parser.add_argument("--jsonl", type=Path, help="to which each result is added")
    options = parser.parse_args(arguments)
    results = []
    with pinned_threads(1):
        for name in options.models:
            found = [on_cluster(name, n, options) for n in options.workers]
            found += [alone(name, options)] if options.alone else []
            for one in found:
                print(json.dumps(one), flush=True)
                add(options.jsonl, one)
            results += found
    return results


if __name__ == "__main__":
    main()
