"""Kills, stops and starves the workers of a Dask cluster in the middle of rounds of a fit.

``python -m tests.robustness.cluster [--only SOME OF THE FAULTS]``

Two workers, each a process of its own, make the rows themselves. For each fault, a fit prints:

- the rounds that were finished, and how the fit ended: an error, or a model and its test error;
- rows that were left out, and blocks that were made again;
- seconds of the slowest round, beside those of a usual one;
- what was said, each warning once.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

import loclin.dask
import loclin.io
from benchmarks.many_rows import sines
from loclin import ML3Classifier

N_BLOCKS, SIZE, ROUNDS = 6, 60_000, 12
HURT = 3, 5, 7  # a fault is in the middle of the rounds after these
MODEL = ML3Classifier(metric=None, random_state=0)
TEST = sines(20_000, 99)
Fault = Callable[["Run"], None]


def made(number: int, log: Path, deadly: bool) -> Any:
    """Return the rows of a block, and note where they were made; a deadly one is made once."""
    with (log / f"{number}").open("a") as file:
        file.write("x")
        file.flush()
    if deadly and number == 0 and (log / "0").stat().st_size > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    (log / f"{number}-maker").write_text(str(os.getpid()))
    return sines(SIZE, number)


def limit_files(size: int) -> None:
    """Let this process write no file that is larger: its disk is full."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit))


class Run:
    """A fit, and what is done to it.

    Parameters
    ----------
    client : Client
    folder : Path
    fault : callable
        Called with this in the middle of some rounds.
    """

    deadly = False

    def __init__(self, client: Client, folder: Path, fault: Fault) -> None:
        self.scheduler = client.run_on_scheduler(os.getpid)
        self.client, self.folder, self.fault = client, folder, fault
        self.ends: list[float] = []
        self.timers: list[threading.Timer] = []
        self.pids: list[int] = []
        self.n_at_work = 0

    def after_round(self, model: Any) -> None:
        """Note the time, and hurt the next round if it is its turn."""
        self.ends.append(time.perf_counter())
        if model.n_iter_ in HURT:
            self.pids = list(self.client.run(os.getpid).values())
            self.timers.append(threading.Timer(self.usual / 2, self.hurt))
            self.timers[-1].start()

    def hurt(self) -> None:
        """Do it, and note whether workers were at work."""
        tasks = self.client.processing().values()
        self.n_at_work += all(any("loclin-learn-" in key for key in keys) for keys in tasks)
        self.fault(self)

    @property
    def usual(self) -> float:
        """Seconds of a usual round."""
        return float(np.median(np.diff(self.ends))) if len(self.ends) > 1 else 0.0

    def fit(self) -> Any:
        """Return the model."""
        make = dask.delayed(made, nout=2, pure=False)
        blocks = [make(k, self.folder, self.deadly) for k in range(N_BLOCKS)]
        X, y = ([block[k] for block in blocks] for k in range(2))
        return loclin.dask.fit(
            MODEL, X, y, client=self.client, rounds=ROUNDS, passes=10,
            on_round=self.after_round,
        )  # fmt: skip

    @property
    def n_made_again(self) -> int:
        """Blocks."""
        sizes = [(self.folder / f"{k}").stat().st_size for k in range(N_BLOCKS)]
        return sum(sizes) - N_BLOCKS


# Faults.


def nothing(run: Run) -> None:
    """Do nothing."""


def kill_one(run: Run) -> None:
    """Kill a worker; its nanny starts another."""
    os.kill(run.pids[0], signal.SIGKILL)


def kill_all(run: Run) -> None:
    """Kill all workers; their nannies start others."""
    for pid in run.pids:
        os.kill(pid, signal.SIGKILL)


def kill_maker(run: Run) -> None:
    """Kill the worker that has made the first block."""
    os.kill(int((run.folder / "0-maker").read_text()), signal.SIGKILL)


def kill_scheduler(run: Run) -> None:
    """Kill it; the client cannot reach it any more."""
    os.kill(run.scheduler, signal.SIGKILL)


def stop(run: Run) -> None:
    """Let a worker hang."""
    os.kill(run.pids[0], signal.SIGSTOP)


def stop_for_a_while(run: Run) -> None:
    """Let a worker do nothing for three seconds."""
    stop(run)
    time.sleep(3)
    os.kill(run.pids[0], signal.SIGCONT)


def once(fault: Fault) -> Fault:
    """Return a fault that comes once only."""
    return lambda run: fault(run) if len(run.ends) == HURT[0] else None


def occupy(run: Run) -> None:
    """Give one worker a task of others, which sleeps for three seconds."""
    worker = sorted(run.client.nthreads())[0]
    run.client.submit(time.sleep, 3, workers=[worker], pure=False, priority=10).result()


class Saving(Run):
    """One whose disk is full from some round on."""

    def after_round(self, model: Any) -> None:
        """Save the model."""
        super().after_round(model)
        limit_files(1000 if model.n_iter_ > HURT[0] else -1)
        try:
            loclin.io.save(model, self.folder / "round.loclin")
        finally:
            limit_files(-1)


class Deadly(Run):
    """One with a block that kills the worker that makes it again."""

    deadly = True


# Clusters.


@contextmanager
def with_nannies(**settings: Any) -> Iterator[Client]:
    """Yield two workers that are started anew when they die.

    Dask looks once whether they were, 15 seconds after a death, and gives them up if not. It must
    not look while they are dead for the next time.
    """
    given = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    given["silence_logs"] = logging.ERROR
    settings["distributed.deploy.lost-worker-timeout"] = "60 s"
    with dask.config.set(settings), LocalCluster(**given) as cluster, Client(cluster) as client:
        yield client


@contextmanager
def without_nannies() -> Iterator[Client]:
    """Yield two workers that are gone when they die, and a scheduler in its own process."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "scheduler.json"

        def start(*words: str) -> None:
            words = "-m", "dask", *words, "--scheduler-file", str(file), "--no-dashboard"
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = stack.enter_context(subprocess.Popen([sys.executable, *words], **quiet))
            stack.callback(process.kill)

        start("scheduler", "--port", "0")
        for _ in range(2):
            start("worker", "--no-nanny", "--nthreads", "1", "--local-directory", folder)
        while not file.exists():
            time.sleep(0.1)
        client = stack.enter_context(Client(scheduler_file=str(file)))
        client.wait_for_workers(2, timeout=60)
        yield client


@contextmanager
def with_full_disks() -> Iterator[Client]:
    """Yield two workers that are to spill nearly all, but cannot."""
    memory = {"distributed.worker.memory.target": 1e-6, "distributed.worker.memory.spill": False}
    with with_nannies(**memory) as client:
        client.run(limit_files, 1000)
        yield client


TTL = {"distributed.scheduler.worker-ttl": "5 s"}
FAULTS: dict[str, tuple[Callable[[], Any], type[Run], Fault]] = {
    "nothing": (with_nannies, Run, nothing),
    "kill one, three times": (with_nannies, Run, kill_one),
    "kill all, three times": (with_nannies, Run, kill_all),
    "kill one for good": (without_nannies, Run, once(kill_one)),
    "kill all for good": (without_nannies, Run, once(kill_all)),
    "kill the scheduler": (without_nannies, Run, once(kill_scheduler)),
    "a block that kills": (with_nannies, Deadly, once(kill_maker)),
    "stop one for 3 s, three times": (with_nannies, Run, stop_for_a_while),
    "stop one for ever": (lambda: with_nannies(**TTL), Run, once(stop)),
    "a task that sleeps, three times": (with_nannies, Run, occupy),
    "workers' disks are full": (with_full_disks, Run, once(kill_one)),
    "on_round saves, disk is full": (with_nannies, Saving, nothing),
}


def report(name: str, of_cluster: Callable[[], Any], kind: type[Run], fault: Fault) -> None:
    """Run a fit with one fault, and print what became of it."""
    with ExitStack() as stack:
        said = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        run = kind(stack.enter_context(of_cluster()), folder, fault)
        start = time.perf_counter()
        try:
            model = run.fit()
            ending = f"error {100 - 100 * model.score(*TEST):.2f} %"
        except Exception as error:
            ending = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
        for timer in run.timers:
            timer.join()
        slowest = max(np.diff(run.ends), default=0.0)
        again = run.n_made_again
        kept = folder / "round.loclin"
        if kept.exists():
            ending += f" [the file has round {loclin.io.load(kept).n_iter_}]"
    told = dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in said)
    print(
        f"{name}: {len(run.ends)} rounds of {ROUNDS} in {seconds:.0f} s",
        f"a round {run.usual:.1f} s, the slowest {slowest:.1f} s",
        f"{again} blocks of {N_BLOCKS} made again, {run.n_at_work} faults while all learned",
        ending, *told, sep="\n    ", flush=True,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Print what becomes of fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    for name in parser.parse_args(arguments).only:
        report(name, *FAULTS[name])


if __name__ == "__main__":
    main()
