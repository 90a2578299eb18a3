"""Dask: a fit to rows that lie on a cluster, and predictions where the rows are.

`fit` is `loclin.cluster.fit` on a Dask cluster. There are no ports, no sockets and no tasks
that need one worker: Dask moves what is lost to where there is room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce
from numbers import Integral
from time import monotonic
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn.utils.validation import check_is_fitted

from loclin import cluster
from loclin.cluster.parts import Block
from loclin.ensemble import LocallyLinearEnsemble
from loclin.fitting.checks import check_number
from loclin.portable.describing import steps_of

try:
    import dask
    from dask import is_dask_collection
    from dask.delayed import Delayed
    from distributed import Client, Future, default_client, wait
    from distributed.scheduler import KilledWorker
except ImportError as error:
    raise ImportError('loclin.dask needs Dask: pip install "loclin[dask]"') from error

__all__ = ["NoWorkersError", "fit", "fit_members", "predict", "predict_proba"]

_RETRIES = 3  # of a task that fails
_FAN_IN = 8  # values that one task merges
_POLL = 1.0  # seconds from one look at the workers to the next
_LOST = KilledWorker, OSError  # what happens to a part, not what is wrong with its rows
_LOST_BLOCK = Block(np.empty((0, 0)), np.empty(0))


class NoWorkersError(RuntimeError):
    """No worker of the cluster is left."""


def fit(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, client: Client | None = None, *,
    parts_per_worker: int | None = None, timeout: float = 30.0, rounds: int = 60,
    passes: int = 2, sample_rows: int = 20_000, on_round: Callable[[Any], Any] | None = None,
) -> Any:  # fmt: skip
    """Fit a classifier to rows on a Dask cluster; take this for more rows than a machine holds.

    The result is the plain classifier, as of `loclin.cluster.fit`, which has the rest.

    Parameters
    ----------
    estimator : classifier
        As of `loclin.cluster.fit`. It is not changed.
    X : dask array, dask data frame or list of delayed
        Training rows in blocks: arrays, data frames or sparse matrices. They are held in
        the workers' memory while the fit lasts. A list may also have futures; where they
        were scattered, a worker that dies takes them along.
    y, sample_weight : dask array, dask series or list of delayed
        Labels and weights, in the same blocks.
    client : distributed.Client, default=None
        None: the one made last.
    parts_per_worker : int or None, default=None
        Parts that a worker's blocks make. None: one for each of its threads. Fewer parts
        need fewer rounds.
    timeout : float, default=30.0
        Seconds without any worker after which the fit gives up. A worker that dies needs
        up to ten to be there again.
    rounds, passes, sample_rows, on_round
        As of `loclin.cluster.fit`.

    Returns
    -------
    model : classifier
        A fitted one.

    Raises
    ------
    NoWorkersError
        If no worker is left. What `on_round` has saved is the last round's model.
    ValueError
        If a parameter, or a block of rows, is not valid.

    Warns
    -----
    RowsLeftOutWarning
        Where workers that have a part die again and again, a round goes on without it.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> import loclin.dask
    >>> from loclin import ML3Classifier
    >>> X, y = (da.from_array(one, chunks=len(one) // 4) for one in load_digits(return_X_y=True))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = loclin.dask.fit(ML3Classifier(random_state=0), X, y, rounds=20)
    ...     right = (loclin.dask.predict(model, X) == y).mean().compute()
    >>> bool(right > 0.9)
    True
    """
    with _parts_of(X, y, sample_weight, client, parts_per_worker, timeout) as of_cluster:
        return cluster.fit(
            estimator, **of_cluster,
            rounds=rounds, passes=passes, sample_rows=sample_rows, on_round=on_round,
        )  # fmt: skip


def fit_members(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, client: Client | None = None, *,
    parts_per_worker: int | None = 1, timeout: float = 30.0,
) -> LocallyLinearEnsemble:  # fmt: skip
    """Fit a classifier to what each worker has, and weigh them as an ensemble.

    Models travel once. See `loclin.cluster.fit_members`.

    Parameters
    ----------
    estimator : classifier
        As of `loclin.cluster.fit_members`. It is not changed.
    X, y, sample_weight, client, timeout
        As of `fit`.
    parts_per_worker : int or None, default=1
        Members that are fitted on a worker. None: one for each of its threads.

    Returns
    -------
    ensemble : LocallyLinearEnsemble

    Raises
    ------
    NoWorkersError
        If no worker is left.
    ValueError
        If a parameter, or a block of rows, is not valid.

    Warns
    -----
    RowsLeftOutWarning
        Where workers that have a part die again and again, it has no member.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> import loclin.dask
    >>> from loclin import ForestClassifier
    >>> X, y = (da.from_array(one, chunks=len(one) // 4) for one in load_digits(return_X_y=True))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = loclin.dask.fit_members(ForestClassifier(10, random_state=0), X, y)
    >>> model.n_features_in_
    64
    """
    with _parts_of(X, y, sample_weight, client, parts_per_worker, timeout) as of_cluster:
        return cluster.fit_members(estimator, **of_cluster)


def predict(model: Any, X: Any) -> Any:
    """Predict labels where the rows are; nothing is computed yet.

    Parameters
    ----------
    model : classifier
        A fitted one, a pipeline that ends with one, or a search for one.
    X : dask array, dask data frame or list of delayed

    Returns
    -------
    labels : dask array of shape (n_samples,), dask series or list of delayed
        A series has strings as pandas has them. Of models with several labels a row, as of
        `predict_proba`.
    """
    check_is_fitted(model, "classes_")
    last = steps_of(model)[-1]
    last = steps_of(getattr(last, "best_estimator_", last))[-1]  # of a search
    several = getattr(last, "_multilabel", False)
    columns = model.classes_ if several else None
    return _lazily(model, "predict", X, model.classes_.dtype, columns)


def predict_proba(model: Any, X: Any) -> Any:
    """Predict probabilities where the rows are; nothing is computed yet.

    Parameters
    ----------
    model : classifier
        As of `predict`.
    X : dask array, dask data frame or list of delayed

    Returns
    -------
    probabilities : dask array (n_samples, n_classes), dask data frame or list of delayed
        A data frame has the labels as columns.
    """
    check_is_fitted(model, "classes_")
    return _lazily(model, "predict_proba", X, np.dtype(float), model.classes_)


def _said(rows: Any, model: Any, method: str, as_type: Any, columns: Any) -> Any:
    """Return what the model says of a block, as a frame where that is one."""
    shape = (0,) if columns is None else (0, len(columns))
    is_empty = np.shape(rows)[:1] == (0,)
    said = np.empty(shape) if is_empty else getattr(model, method)(rows)
    if not hasattr(rows, "iloc"):
        return said.astype(as_type, copy=False)
    import pandas as pd

    if columns is None:
        return pd.Series(said, index=rows.index, dtype=as_type)
    return pd.DataFrame(said, index=rows.index, columns=columns, dtype=as_type)


def _lazily(model: Any, method: str, X: Any, as_type: Any, columns: Any) -> Any:
    told = {"model": dask.delayed(model), "method": method}
    told |= {"as_type": as_type, "columns": columns}
    _check_blocks("X", X)
    if isinstance(X, list | tuple):
        return [dask.delayed(_said)(block, **told) for block in X]
    if hasattr(X, "map_partitions"):
        import pandas as pd

        if columns is not None:
            meta = dict.fromkeys(columns, as_type)
            return X.map_partitions(_said, **told, meta=meta)
        told["as_type"] = pd.Series(model.classes_).dtype  # files know no objects
        return X.map_partitions(_said, **told, meta=(None, told["as_type"]))
    X = X.rechunk({1: -1})
    if columns is None:
        return X.map_blocks(_said, **told, drop_axis=1, meta=np.empty(0, as_type))
    chunks = X.chunks[0], (len(columns),)
    return X.map_blocks(_said, **told, chunks=chunks, meta=np.empty((0, 0), as_type))


def _blocks_of(*collections: Any) -> list[Any]:
    """Return the blocks of rows, labels and weights together, delayed."""
    names = "X", "y", "sample_weight"
    delayed = {
        name: _delayed(name, one)
        for name, one in zip(names, collections, strict=True)
        if one is not None
    }
    numbers = {name: len(blocks) for name, blocks in delayed.items()}
    if len(set(numbers.values())) > 1:
        raise ValueError(
            f"{', '.join(numbers)} must have the same blocks, got {numbers} of them. Rechunk one "
            "like the other."
        )
    if not all(numbers.values()):
        raise ValueError("X and y have no blocks.")
    return [
        dask.delayed(Block)(
            *(block if len(block) == 3 else (*block, None)), f"block {number}"
        )
        for number, block in enumerate(zip(*delayed.values(), strict=True))
    ]


def _check_blocks(name: str, given: Any) -> None:
    """Raise TypeError unless something has blocks, and ValueError unless rows are a table."""
    if isinstance(given, list | tuple):
        return
    has_blocks = is_dask_collection(given) and not isinstance(given, Delayed)
    if not (has_blocks and hasattr(given, "to_delayed") and hasattr(given, "ndim")):
        raise TypeError(
            f"{name} is of {type(given).__name__}; give a dask array, a dask data frame or a list "
            "of delayed blocks. loclin.cluster.fit, and what it returns, take rows in memory."
        )
    if name == "X" and given.ndim != 2:
        raise ValueError(
            f"X has {given.ndim} dimensions; give one of two: rows, and features of each."
        )


def _delayed(name: str, given: Any) -> Sequence[Any]:
    _check_blocks(name, given)
    if isinstance(given, list | tuple):
        return given
    if hasattr(given, "map_partitions"):
        # Dask joins small files of one column, but not those of the whole table.
        return list(given.to_delayed(optimize_graph=False))
    if given.ndim == 2:
        given = given.rechunk({1: -1})
    return list(np.ravel(given.to_delayed()))


@contextmanager
def _parts_of(
    X: Any, y: Any, sample_weight: Any, client: Client | None,
    parts_per_worker: int | None, timeout: float,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield the parts that lie on the cluster, and the executor over them."""
    check_number("timeout", timeout, low=0, open_low=True)
    if parts_per_worker is not None:
        check_number("parts_per_worker", parts_per_worker, Integral, low=1)
    client = default_client() if client is None else client
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(
            "client must be a distributed.Client for which a fit can wait. In a coroutine, fit in "
            "a thread: await asyncio.to_thread(loclin.dask.fit, ...)."
        )
    over_parts = _OverParts(client, timeout)
    with client.as_current():
        blocks = over_parts.computed(_blocks_of(X, y, sample_weight))
        yield {
            "parts": _grouped(client, blocks, parts_per_worker),
            "executor": over_parts,
        }


def _grouped(
    client: Client, blocks: list[Future], parts_per_worker: int | None
) -> list[list[Future]]:
    """Return parts of blocks that lie on one worker each, so that no rows need to travel."""
    holders, threads = client.who_has(blocks), client.nthreads()
    by_worker: dict[str, list[Future]] = defaultdict(list)
    for block in blocks:
        by_worker[min(holders.get(block.key) or [""])].append(block)
    parts = []
    for worker, own in sorted(by_worker.items()):
        n_parts = min(parts_per_worker or threads.get(worker, 1), len(own))
        parts += [own[k::n_parts] for k in range(n_parts)]
    return parts


def _without_lost_blocks(part: list[Future]) -> list[Any]:
    """Return the blocks of a part, none of which keeps its task from running."""
    return [_LOST_BLOCK if block.status == "error" else block for block in part]


def _finished(futures: list[Future], *, may_lose: bool) -> list[Future]:
    """Return those that are done.

    Raises
    ------
    Exception
        What is wrong with a block. That one is lost counts as that, unless `may_lose` and
        others are left.
    """
    found, lost = [], None
    for future in futures:
        if future.status == "finished":
            found.append(future)
            continue
        error = future.exception() if future.status == "error" else None
        if error is not None and not isinstance(error, _LOST):
            raise error
        lost = error or NoWorkersError(
            "The cluster was closed, or could not be reached any more, or futures among the blocks "
            "are cancelled, or another client's. A model that on_round has saved goes on with "
            "warm_start=True."
        )
    if lost is not None and not (may_lose and found):
        raise lost
    return found


def _merged(merge: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    return reduce(merge, values)


def _itself(state: Any) -> Any:
    return state


@dataclass
class _OverParts:
    """An executor on a cluster.

    Each call is a round with keys of its own, and needs nothing of those before: what a
    worker takes along is computed again elsewhere. No task is bound to a worker: one that
    is waits for ever where that dies.

    Parameters
    ----------
    client : Client
    timeout : float
        Seconds without any worker after which it gives up.
    has_begun : bool
        Whether all parts have been reached once. From then on, those that are lost are
        left out.
    """

    client: Client
    timeout: float
    has_begun: bool = field(default=False, init=False)

    def __call__(self, of_part: Any, merge: Any, parts: Any, state: Any) -> Any:
        """Return the values of all parts as one."""
        name, token = f"loclin-{of_part.__name__}", uuid4().hex
        state = self._submit(f"{name}-state-{token}", _itself, state)
        futures = [
            self._submit(f"{name}-{token}-{number}", of_part, number, part, state)
            for number, part in enumerate(map(_without_lost_blocks, parts))
        ]
        self._wait(futures)
        found = _finished(futures, may_lose=self.has_begun)
        self.has_begun = True
        while len(found) > 1:
            groups = [found[k : k + _FAN_IN] for k in range(0, len(found), _FAN_IN)]
            found = [
                self._submit(f"{name}-merge-{uuid4().hex}", _merged, merge, group)
                for group in groups
            ]
            self._wait(found)
        return found[0].result()

    def computed(self, blocks: list[Any]) -> list[Future]:
        """Return blocks in the memory of the workers."""
        futures: list[Future] = self.client.compute(blocks, retries=_RETRIES)
        self._wait(futures)
        return _finished(futures, may_lose=False)

    def _submit(self, key: str, function: Any, *args: Any) -> Future:
        # The state may be large, and is told once a round.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self.client.submit(
                function, *args, key=key, pure=False, retries=_RETRIES
            )

    def _wait(self, futures: list[Future]) -> None:
        """Wait until all are done or failed, as long as there are workers."""
        alone_since = None
        while not all(future.done() for future in futures):
            alone_since = None if self.client.nthreads() else alone_since or monotonic()
            if alone_since is not None and monotonic() - alone_since > self.timeout:
                raise NoWorkersError(
                    f"The cluster has had no worker for {self.timeout:g} seconds. Start some and "
                    "fit again; a model that on_round has saved goes on with warm_start=True."
                )
            with suppress(CancelledError, TimeoutError):
                wait(futures, timeout=_POLL)
