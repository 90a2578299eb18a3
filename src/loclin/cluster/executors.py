"""How a function runs on all parts of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any, Protocol

from joblib import Parallel, delayed

from loclin.engine.threads import side_by_side
from loclin.fitting.checks import check_option


class Executor(Protocol):
    """What runs a function on parts of the rows, wherever they are."""

    def __call__(
        self,
        of_part: Callable[[int, Any, Any], Any],
        merge: Callable[[Any, Any], Any],
        parts: Any,
        state: Any,
    ) -> Any:
        """Return the values of all parts as one.

        Parameters
        ----------
        of_part : callable
            ``of_part(number, blocks, state)`` returns the value of one part: its number,
            the same in each call, and the blocks of its rows.
        merge : callable
            ``merge(one, other)`` returns two values as one. Values may be merged in any
            order that is the same in each call.
        parts : object
            Those that `fit` was given.
        state : object
            What of_part takes besides. It has the model as it stands.
        """


def _in_threads(
    n_jobs: int | None, of_part: Any, merge: Any, parts: Any, state: Any
) -> Any:
    tasks = [(number, [part], state) for number, part in _numbered(parts)]
    return reduce(merge, side_by_side(of_part, tasks, n_jobs))


def _in_processes(
    processes: Parallel, of_part: Any, merge: Any, parts: Any, state: Any
) -> Any:
    tasks = (delayed(of_part)(number, [part], state) for number, part in _numbered(parts))
    return reduce(merge, processes(tasks))


def _numbered(parts: Any) -> Iterator[tuple[int, Any]]:
    """Return parts and their numbers; they are run through once in each round."""
    if not isinstance(parts, Sequence) or not parts:
        raise TypeError(
            "parts must be a list, and not empty. Give tuples (X, y) in it, or functions."
        )
    return enumerate(parts)


@contextmanager
def executor_of(given: str | Executor, n_jobs: int | None) -> Iterator[Executor]:
    """Yield the executor that a user has named, or given.

    joblib writes large arrays to memory maps, once as long as the processes live.
    """
    if callable(given):
        yield given
        return
    check_option("executor", given, {"threads", "processes"}, hint=" or a function")
    if given == "threads":
        yield partial(_in_threads, n_jobs)
        return
    with Parallel(n_jobs=n_jobs) as processes:
        yield partial(_in_processes, processes)
