"""Runs entries in processes of one thread each, and shows how far they are."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from threadpoolctl import threadpool_limits

from reproduction.entry import Entry
from reproduction.quick import QUICK
from reproduction.store import Cache, plain


class Outcome(NamedTuple):
    """What became of an entry: seconds of the clock and the processor, results computed, error."""

    entry: Entry
    seconds: float
    processor: float
    computed: int
    error: str


@contextmanager
def undisturbed() -> Iterator[None]:
    """One thread, and no warnings of passes used up or of sizes cut to the data."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def work(entry: Entry, results: Path) -> Outcome:
    """Compute an entry, or take what is stored of it, and store its result."""
    wall, processor, error = time.perf_counter(), time.process_time(), ""
    with undisturbed():
        cache = Cache(results / entry.paper)
        try:
            result = plain(entry.run(cache))
            if cache.stored.get(entry.key, {}).get("result") != result:
                cache.put(entry.key, {}, result)
        except Exception:  # the others go on; the run ends with an error
            error = traceback.format_exc()
    seconds = time.perf_counter() - wall, time.process_time() - processor
    return Outcome(entry, *seconds, cache.computed, error)


def outcomes(entries: list[Entry], results: Path, jobs: int) -> Iterator[Outcome]:
    """Run stage by stage, short entries first."""
    for stage in sorted({entry.stage for entry in entries}):
        these = sorted((e for e in entries if e.stage == stage), key=lambda e: e.minutes)
        pool = Parallel(jobs, return_as="generator_unordered", batch_size=1)
        yield from pool(delayed(work)(entry, results) for entry in these)


class Clock:
    """Tells the time left from what entries are expected to take: if quick, all the same."""

    def __init__(self, entries: Iterable[Entry], jobs: int) -> None:
        self.jobs = jobs
        self.left = sum(map(self.minutes, entries))
        self.expected, self.taken = 0.0, 0.0

    def minutes(self, entry: Entry) -> float:
        """Return what an entry is expected to take."""
        return 0.05 if QUICK else entry.minutes

    def done(self, outcome: Outcome) -> str:
        """Note an entry that is done, and say what is left."""
        self.left -= self.minutes(outcome.entry)
        if outcome.computed:
            self.expected += self.minutes(outcome.entry)
            self.taken += outcome.seconds
        speed = self.taken / self.expected if self.expected else 60.0
        seconds = round(self.left * speed / self.jobs)
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"


def run(entries: list[Entry], results: Path, jobs: int) -> list[Outcome]:
    """Run the entries with a bar on a terminal, a line for each elsewhere."""
    clock, done, console = Clock(entries, jobs), [], Console(highlight=False)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("reproduce", total=len(entries))
        for outcome in outcomes(entries, results, jobs):
            done.append(outcome)
            entry, left = outcome.entry, clock.done(outcome)
            new = f"{outcome.processor:.1f} s" if outcome.computed else "stored already"
            line = f"{entry.paper} | {entry.key}: {new}"
            if outcome.error:
                line += f", failed\n{outcome.error}"
            counted = "" if console.is_terminal else f"[{len(done)}/{len(entries)}, {left}] "
            progress.console.print(counted + line, markup=False, soft_wrap=True)
            progress.update(bar, advance=1, description=left)
    return done


def seconds_in_words(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def closing(done: list[Outcome], seconds: float, jobs: int) -> str:
    """Sum a run up."""
    processor, failed = sum(o.processor for o in done), sum(bool(o.error) for o in done)
    computed = sum(outcome.computed for outcome in done)
    return (
        f"{len(done)} entries, {computed} results computed, {failed} failed; "
        f"{seconds_in_words(seconds)} on {jobs} processes, "
        f"{seconds_in_words(processor)} of processor time"
    )
