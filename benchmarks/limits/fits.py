"""Fit and predict of any model against their bare score products, and the memory of the fit.

No mini-batch method can train faster than it computes the scores of its batches. So the limit is
those products alone, one for every epoch, by NumPy or by a compiled loop, whichever is faster.
Memory is measured in a fresh process, after a small fit has compiled everything.
"""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import Normalizer, StandardScaler

from benchmarks._timing import interleaved
from benchmarks.limits.core import Row, bare_products, in_fresh_process, measured
from benchmarks.limits.models import MODELS, Model, Shape
from benchmarks.stream import GaussianClusters
from loclin import datasets

ITERATIONS, REPEATS, BATCH = 30, 3, 64
PREPROCESSORS: dict[str, tuple[Any, ...]] = {
    "standard": (StandardScaler(),),
    "norm-center": (Normalizer(), StandardScaler(with_std=False)),
}
_SMALL_FIT = 200  # rows of the fit that compiles


class Problem(NamedTuple):
    """Rows to train on and rows to predict."""

    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]

    @property
    def shape(self) -> Shape:
        """Size of the training set."""
        return Shape(*self.X.shape, len(np.unique(self.y)))


def load_problem(name: str | None, shape: Shape, dtype: str, preprocess: str) -> Problem:
    """Load a data set, or draw Gaussian clusters of that shape, and preprocess.

    A set without an official split gives up a fifth of its rows for the test.
    """
    if name is None:
        clusters = GaussianClusters(shape.n_features, shape.n_classes)
        X, y = clusters.rows(shape.n_rows)
        X_test, y_test = clusters.rows(max(1, shape.n_rows // 5), seed=2)
    else:
        data: Any = datasets.load(name)
        if sparse.issparse(data.X_train):
            raise SystemExit(f"{name} is sparse; the limits are those of dense products.")
        X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
        if X_test is None:
            X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    X, X_test = X.astype(dtype), X_test.astype(dtype)
    for step in PREPROCESSORS[preprocess]:
        X = step.fit_transform(X)
        X_test = step.transform(X_test)
    return Problem(np.ascontiguousarray(X), y, np.ascontiguousarray(X_test), y_test)


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield what was measured of the model and the problem that the command line asks for."""
    problem = load_problem(args.data, args.shape, args.dtype, args.preprocess)
    kind, m = MODELS[args.model], args.n_models
    # A fit that stops early would be compared with too many products.
    given = {"max_iter": ITERATIONS, "n_iter_no_change": ITERATIONS, "tol": 0.0, "alpha": "auto",
             "calibrate": False, "random_state": 0}  # fmt: skip
    model = kind.build(m, given | ({"batch_size": BATCH} if kind.in_batches else {}))
    n_columns = kind.columns(problem.shape.n_classes, m)
    sizes = {"local models": m, "score columns": n_columns}
    of = f"{args.model} on {args.data or 'synthetic'}, {args.dtype}"
    yield of, problem.shape._asdict() | sizes
    if kind.in_batches:
        yield from fit_rows(model, kind, m, problem)
    else:
        model.fit(problem.X, problem.y)
    yield from predict_rows(model, n_columns, problem)
    yield from memory_rows(model, kind.memory(model, m, problem.shape), problem)


def gather_rows(X: NDArray[Any], epochs: int) -> None:
    """Copy the rows, in random order, batch by batch into a buffer."""
    buffer = np.empty((BATCH, X.shape[1]), X.dtype)
    order = np.random.default_rng(0).permutation(len(X))
    for _ in range(epochs):
        for first in range(0, len(X), BATCH):
            rows = order[first : first + BATCH]
            np.take(X, rows, axis=0, out=buffer[: len(rows)], mode="clip")


def fit_rows(model: Any, kind: Model, n_models: int, problem: Problem) -> Iterator[Row]:
    """Seconds of fit, of its late iterations and of their bare products."""
    X, y = problem.X, problem.y
    epochs, warm = ITERATIONS + kind.start_epochs, ITERATIONS // 2
    n_columns = kind.columns(problem.shape.n_classes, n_models)
    bare, way = bare_products(X, n_columns, [BATCH])
    short = clone(model).set_params(max_iter=warm)
    model.fit(*_small(X, y))
    tasks: dict[str, Callable[[], Any]] = {
        "products": partial(bare, epochs),
        "fit": partial(model.fit, X, y),
        "gather": partial(gather_rows, X, epochs),
        "short fit": partial(short.fit, X, y),
    }
    if kind.extra:
        tasks["extra"] = partial(bare_products(X, n_models, [256])[0], ITERATIONS)
    seconds = interleaved(tasks, REPEATS)
    if model.n_iter_ != ITERATIONS:
        raise RuntimeError(f"fit stopped after {model.n_iter_} of {ITERATIONS} iterations.")
    products, late = seconds["products"], seconds["fit"] - seconds["short fit"]
    late_products = products * (ITERATIONS - warm) / epochs
    gflop = 2e-9 * X.size * n_columns * epochs
    limit = _seconds(products)
    yield (
        f"score products of {epochs} epochs, the limit ({way})",
        limit | {"GFLOP/s": gflop / limit["cpu s"]},
    )
    yield f"fit, {ITERATIONS} iterations", _seconds(seconds["fit"], products)
    yield f"score products of iterations {warm + 1} to {ITERATIONS}", _seconds(late_products)
    yield "fit, these iterations alone", _seconds(late, late_products)
    yield "not in the limit: copying the rows in random order", _seconds(seconds["gather"])
    if kind.extra:
        yield f"not in the limit: products of {kind.extra}", _seconds(seconds["extra"])


def predict_rows(model: Any, n_columns: int, problem: Problem) -> Iterator[Row]:
    """Seconds of predict, and of its bare products in blocks that stay in the cache."""
    X = problem.X_test
    bare, way = bare_products(X, n_columns, [64, 256, 1024, 2000, 5000])
    tasks = {"products": partial(bare, 1), "predict": partial(model.predict, X)}
    seconds = interleaved(tasks, 5 * REPEATS)
    error = 100.0 * float(np.mean(model.predict(X) != problem.y_test))
    yield f"score products, the limit ({way})", _seconds(seconds["products"])
    taken = _seconds(seconds["predict"], seconds["products"])
    yield f"predict {len(X):,} rows", taken | {"test error %": error}


def memory_rows(model: Any, expected: int, problem: Problem) -> Iterator[Row]:
    """Memory that a fit takes, against the numbers that it must have."""
    # Enough iterations to see averaging begin; L3M has none.
    enough = min(ITERATIONS, getattr(model, "average", ITERATIONS) + 1)
    model = clone(model).set_params(max_iter=enough)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", problem.X)
        np.save(Path(folder) / "y.npy", problem.y)
        traced, growth = in_fresh_process(memory_of_fit, model, Path(folder))
    megabytes = expected * problem.X.itemsize / 1e6
    yield "memory of fit must have: weights, sums, codes", {"MB": megabytes}
    yield "peak of NumPy's allocations", {"MB": traced, "x": traced / megabytes}
    yield "growth of resident memory", {"MB": growth, "x": growth / megabytes}
    yield "the data, not counted", {"MB": problem.X.nbytes / 1e6}


def memory_of_fit(model: Any, folder: Path) -> tuple[float, float]:
    """Megabytes that a fit takes: peak of NumPy's allocations, and growth of resident memory.

    To be called in a fresh process. The folder holds X.npy and y.npy.
    """
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    clone(model).fit(*_small(X, y))
    _, found = measured(lambda: clone(model).fit(X, y))
    tracemalloc.start()
    clone(model).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6, found["MB"]


def _small(X: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    step = len(X) // _SMALL_FIT + 1
    return np.ascontiguousarray(X[::step]), y[::step]


def _seconds(taken: NDArray[Any], limit: NDArray[Any] | None = None) -> dict[str, float]:
    """Median over the rounds, and that of the ratios."""
    found = {"cpu s": float(np.median(taken))}
    return found if limit is None else found | {"x": float(np.median(taken / limit))}
