"""Hold a classifier against the limits: its bare score products, and the memory it must have.

``python -m benchmarks.limits --data mnist --n-models 90 --preprocess norm-center --dtype float32``
``python -m benchmarks.limits --shape 20000,50,10``

No mini-batch method can train faster than it computes the scores of its batches, so the limit is
those products alone, one for every epoch, by NumPy or by a compiled loop, whichever is faster. All
thread pools have the same number of threads, and all that is compared is measured in turns. Memory
is measured in a fresh process, after a small fit has compiled everything.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import Normalizer, StandardScaler

import loclin
from benchmarks._timing import (
    clock_for,
    interleaved,
    memory_status,
    pinned_threads,
    reset_peak_memory,
)
from benchmarks.stream import GaussianClusters
from loclin import datasets
from loclin.codings import OrthogonalCoding
from loclin.engine.jit import jit

_NEIGHBORS = 8  # anchors at a row, where they are the nearest


class Shape(NamedTuple):
    """Size of a training set."""

    n_rows: int
    n_features: int
    n_classes: int


@dataclass(frozen=True)
class Model:
    """What the limits of a classifier depend on.

    Parameters
    ----------
    build : callable
        Returns the estimator, from the number of its local models and parameters that all share.
    columns : callable
        Score columns of a row, from the number of classes and of local models.
    memory : callable
        Numbers that a fit must hold besides the data, from the estimator, the number of local
        models and a `Shape`.
    start_epochs : int, default=1
        Epochs before the first of `max_iter`.
    extra_columns : callable or None, default=None
        Score columns of a row, each iteration, that are shown but not counted into the limit.
    in_batches : bool, default=True
        Does it train in passes over batches; if not, only `predict` is timed.
    """

    build: Callable[..., Any]
    columns: Callable[[int, int], int]
    memory: Callable[[Any, int, Shape], int]
    start_epochs: int = 1
    extra_columns: Callable[[int, int], int] | None = None
    in_batches: bool = True


def _weights_and_codes(model: Any, n_models: int, shape: Shape) -> int:
    """Weights, their sums if iterates are averaged, and one code a row."""
    n, d, c = shape
    copies = 2 if model.average else 1
    return copies * c * n_models * (d + 1) + n * n_models


def _weights_and_anchors(model: Any, n_models: int, shape: Shape) -> int:
    """Weights and anchors with their sums, the anchors' gradient, and what codes and pulls take."""
    n, d, c = shape
    copies = 2 if model.average else 1
    return copies * (c + 1) * n_models * (d + 1) + n_models * d + 3 * n * model.n_neighbors


def _plain(n_models: int, **parameters: Any) -> Any:
    """ML3 without a metric."""
    return loclin.ML3Classifier(n_models, metric=None, **parameters, standardize=False)


def _with_anchors(n_models: int, **parameters: Any) -> Any:
    """SAPL with 8 anchors at a row."""
    n_neighbors = min(_NEIGHBORS, n_models)
    return loclin.SAPLClassifier(
        n_models, n_neighbors, metric=None, **parameters, standardize=False
    )


def _outputs(model: Any, n_models: int, shape: Shape) -> int:
    """Weights of classifiers and partition in double precision, with 20 pairs of L-BFGS."""
    _, d, c = shape
    return 2 * (2 * 20 + 5) * n_models * ((c if c > 2 else 1) + 1) * (d + 1)


def _with_regions(n_models: int, *, batch_size: int = 1, **parameters: Any) -> Any:
    """L3M's refined model; it has no batches."""
    return loclin.L3MClassifier(n_models, n_restarts=1, **parameters, standardize=False)


def _atoms_and_codes(model: Any, n_models: int, shape: Shape) -> int:
    """Atoms with their sums; codes, which are a difference; the features of problem 3."""
    n, d, c = shape
    return 2 * n_models * d + 4 * c * n_models + n * (n_models + 1)


def _with_atoms(n_models: int, alpha: float | str, **parameters: Any) -> Any:
    """US-SVM; its default for alpha is 0."""
    parameters |= {"alpha": 0.0 if alpha == "auto" else alpha, "beta": "scale"}
    return loclin.USSVMClassifier(n_models, **parameters)


def _with_planes(n_models: int, **parameters: Any) -> Any:
    """LL-SVM over anchor planes, by stochastic gradient descent."""
    coding = OrthogonalCoding(n_models)
    return loclin.LLSVMClassifier(
        coding, solver="sgd", metric=None, **parameters, standardize=False
    )


MODELS = {
    "ML3Classifier": Model(
        build=_plain,
        columns=lambda c, m: c * m,
        memory=_weights_and_codes,
        extra_columns=lambda c, m: m,  # the frozen codes: every row against its own class
    ),
    "LLSVMClassifier": Model(
        build=_with_planes,
        columns=lambda c, m: (c if c > 2 else 1) * m,
        memory=_weights_and_codes,
        start_epochs=0,
    ),
    "SAPLClassifier": Model(
        build=_with_anchors,
        columns=lambda c, m: m + (c if c > 2 else 1) * min(_NEIGHBORS, m),
        memory=_weights_and_anchors,
        start_epochs=5,
    ),
    "L3MClassifier": Model(
        build=_with_regions,
        columns=lambda c, m: m + (c if c > 2 else 1),
        memory=_outputs,
        in_batches=False,
    ),
    # Half of the batches also move the atoms, by a product of the same size.
    "USSVMClassifier": Model(
        build=_with_atoms,
        columns=lambda c, m: m,
        memory=_atoms_and_codes,
        start_epochs=0,
        extra_columns=lambda c, m: m,
    ),
}

PREPROCESSORS: dict[str, tuple[Any, ...]] = {
    "standard": (StandardScaler(),),
    "center-norm": (StandardScaler(with_std=False), Normalizer()),
    "norm-center": (Normalizer(), StandardScaler(with_std=False)),
    "none": (),
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
        n_rows, n_features = self.X.shape
        return Shape(n_rows, n_features, len(np.unique(self.y)))


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
    X: NDArray[Any], n_columns: int, batches: Sequence[int], clock: Callable[[], float]
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
    seconds = interleaved({name: partial(task, 1) for name, task in tried.items()}, 3, clock)
    fastest = min(seconds, key=lambda name: seconds[name].min())
    return tried[fastest], fastest


def gather_rows(X: NDArray[Any], batch: int, epochs: int) -> None:
    """Copy the rows, in random order, batch by batch into a buffer."""
    buffer = np.empty((batch, X.shape[1]), X.dtype)
    order = np.random.default_rng(0).permutation(len(X))
    for _ in range(epochs):
        for first in range(0, len(X), batch):
            rows = order[first : first + batch]
            np.take(X, rows, axis=0, out=buffer[: len(rows)], mode="clip")


def time_fit(
    model: Any, kind: Model, n_models: int, problem: Problem, warm_iterations: int, repeats: int,
    clock: Callable[[], float],
) -> dict[str, Any]:  # fmt: skip
    """Seconds of fit, of its late iterations and of their bare products."""
    X, y = problem.X, problem.y
    c, m, batch = problem.shape.n_classes, n_models, model.batch_size
    iterations = model.max_iter
    epochs = iterations + kind.start_epochs
    bare, way = bare_products(X, kind.columns(c, m), [batch], clock)
    short = clone(model).set_params(max_iter=warm_iterations)
    model.fit(X[:: len(X) // _SMALL_FIT + 1], y[:: len(X) // _SMALL_FIT + 1])
    tasks: dict[str, Callable[[], Any]] = {
        "products": partial(bare, epochs),
        "fit": partial(model.fit, X, y),
        "gather": partial(gather_rows, X, batch, epochs),
        "short fit": partial(short.fit, X, y),
    }
    if kind.extra_columns:
        extra, _ = bare_products(X, kind.extra_columns(c, m), [256], clock)
        tasks["extra products"] = partial(extra, iterations)
    seconds = interleaved(tasks, repeats, clock)
    if model.n_iter_ != iterations:
        raise RuntimeError(f"fit stopped after {model.n_iter_} of {iterations} iterations.")
    late = seconds["fit"] - seconds["short fit"]
    late_products = seconds["products"] * (iterations - warm_iterations) / epochs
    return {
        "way": way,
        "epochs": epochs,
        "warm_iterations": warm_iterations,
        **{f"{name.replace(' ', '_')}_s": float(np.median(t)) for name, t in seconds.items()},
        "late_s": float(np.median(late)),
        "late_products_s": float(np.median(late_products)),
        "ratio": float(np.median(seconds["fit"] / seconds["products"])),
        "late_ratio": float(np.median(late / late_products)),
    }


def time_predict(
    model: Any, kind: Model, n_models: int, problem: Problem, repeats: int,
    clock: Callable[[], float],
) -> dict[str, Any]:  # fmt: skip
    """Seconds of predict, and of its bare products in blocks that stay in the cache."""
    X = problem.X_test
    columns = kind.columns(problem.shape.n_classes, n_models)
    bare, way = bare_products(X, columns, [64, 256, 1024, 2000, 5000], clock)
    tasks: dict[str, Callable[[], Any]] = {
        "products": partial(bare, 1),
        "predict": partial(model.predict, X),
    }
    seconds = interleaved(tasks, 5 * repeats, clock)
    return {
        "way": way,
        "rows": len(X),
        **{f"{name}_s": float(np.median(t)) for name, t in seconds.items()},
        "ratio": float(np.median(seconds["predict"] / seconds["products"])),
        "error": 100.0 * float(np.mean(model.predict(X) != problem.y_test)),
    }


def memory_of_fit(model: Any, folder: Path) -> dict[str, float]:
    """Bytes that a fit takes: growth of resident memory, and peak of NumPy's allocations.

    To be called in a fresh process. The folder holds X.npy and y.npy.
    """
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    step = len(X) // _SMALL_FIT + 1
    clone(model).fit(np.ascontiguousarray(X[::step]), y[::step])
    reset_peak_memory()
    resident = memory_status("VmRSS")
    clone(model).fit(X, y)
    growth = memory_status("VmHWM") - resident
    tracemalloc.start()
    clone(model).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"resident_growth": growth, "traced_peak": float(peak)}


def measure_memory(model: Any, kind: Model, n_models: int, problem: Problem) -> dict[str, float]:
    """Bytes of `memory_of_fit` against the bytes that the fit must have."""
    expected = kind.memory(model, n_models, problem.shape) * problem.X.itemsize
    # Enough iterations to see averaging begin.
    model = clone(model).set_params(max_iter=min(model.max_iter, model.average + 1))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", problem.X)
        np.save(Path(folder) / "y.npy", problem.y)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            found = fresh.submit(memory_of_fit, model, Path(folder)).result()
    return {
        "data": float(problem.X.nbytes),
        "expected": float(expected),
        **found,
        "traced_ratio": found["traced_peak"] / expected,
        "resident_ratio": found["resident_growth"] / expected,
    }


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Run the benchmark, print it and return its numbers."""
    args = _parser().parse_args(argv)
    problem = load_problem(args.data, args.shape, args.dtype, args.preprocess)
    kind = MODELS[args.model]
    # A fit that stops early would be compared with too many products.
    model = kind.build(
        args.n_models, max_iter=args.max_iter, batch_size=args.batch_size,
        alpha=args.alpha, tol=0.0, n_iter_no_change=args.max_iter, calibrate=False, random_state=0,
    )  # fmt: skip
    warm = args.max_iter // 2 if args.warm_iterations is None else args.warm_iterations
    if not 0 < warm < args.max_iter:
        raise SystemExit(f"--warm-iterations {warm} must be between 0 and --max-iter, exclusive.")
    clock = clock_for(args.threads)
    results: dict[str, Any] = {
        "data": args.data or "synthetic", "model": args.model, "n_models": args.n_models,
        **problem.shape._asdict(), "columns": kind.columns(problem.shape.n_classes, args.n_models),
        "dtype": args.dtype, "preprocess": args.preprocess, "alpha": args.alpha,
        "max_iter": args.max_iter, "batch_size": args.batch_size, "threads": args.threads,
        "repeats": args.repeats,
    }  # fmt: skip
    print(
        "{model} on {data}: {n_rows:,} x {n_features:,} {dtype}, {n_classes} classes, "
        "{n_models} local models,\n{columns} score columns, batches of {batch_size}, "
        "threads: {threads}, repeats: {repeats}".format(**results)
    )
    with pinned_threads(args.threads):
        if kind.in_batches:
            results["fit"] = time_fit(
                model, kind, args.n_models, problem, warm, args.repeats, clock
            )
            _print_fit(results)
        else:
            model.fit(problem.X, problem.y)
        results["predict"] = time_predict(model, kind, args.n_models, problem, args.repeats, clock)
        _print_predict(results)
        if not args.skip_memory:
            results["memory"] = measure_memory(model, kind, args.n_models, problem)
            _print_memory(results["memory"])
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return results


def _print_line(name: str, value: float, ratio: float | None = None) -> None:
    print(f"{name:46}{value:10.3f}" + ("" if ratio is None else f"{ratio:10.2f} x"), flush=True)


def _print_head(name: str, unit: str) -> None:
    print(f"\n{name:46}{unit:>10}")


def _unit(results: dict[str, Any]) -> str:
    return "cpu s" if results["threads"] == 1 else "s"


def _print_fit(results: dict[str, Any]) -> None:
    fit, last, warm = results["fit"], results["max_iter"], results["fit"]["warm_iterations"]
    gflop = 2e-9 * results["n_rows"] * results["n_features"] * results["columns"] * fit["epochs"]
    _print_head("train", _unit(results))
    _print_line(f"score products of {fit['epochs']} epochs, the limit", fit["products_s"])
    _print_line(f"fit, {last} iterations", fit["fit_s"], fit["ratio"])
    _print_line(f"score products of iterations {warm + 1} to {last}", fit["late_products_s"])
    _print_line("fit, these iterations alone", fit["late_s"], fit["late_ratio"])
    print("not in the limit:")
    _print_line("  copying the rows in random order", fit["gather_s"])
    if "extra_products_s" in fit:
        _print_line("  products of the frozen codes", fit["extra_products_s"])
    print(f"limit: {fit['way']}, {gflop / fit['products_s']:.0f} GFLOP/s")


def _print_predict(results: dict[str, Any]) -> None:
    predict = results["predict"]
    _print_head(f"predict {predict['rows']:,} rows", _unit(results))
    _print_line("score products, the limit", predict["products_s"])
    _print_line("predict", predict["predict_s"], predict["ratio"])
    print(f"limit: {predict['way']}; test error {predict['error']:.2f} %")


def _print_memory(memory: dict[str, float]) -> None:
    _print_head("memory of fit, without the data", "MB")
    _print_line("what it must have: weights, sums, codes", memory["expected"] / 1e6)
    _print_line("peak of NumPy's allocations", memory["traced_peak"] / 1e6, memory["traced_ratio"])
    _print_line(
        "growth of resident memory", memory["resident_growth"] / 1e6, memory["resident_ratio"]
    )
    print(f"data: {memory['data'] / 1e6:.1f} MB")


def _shape(text: str) -> Shape:
    return Shape(*map(int, text.split(",")))


def _alpha(text: str) -> float | str:
    return text if text == "auto" else float(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.limits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    problem = parser.add_mutually_exclusive_group()
    problem.add_argument("--data", metavar="NAME", help="one of loclin.datasets.names()")
    problem.add_argument("--shape", type=_shape, default="20000,50,10", metavar="N,D,C",
                         help="rows, features and classes of a synthetic problem")  # fmt: skip
    add("--model", choices=MODELS, default="ML3Classifier")
    add("--n-models", type=int, default=16, help="local models")
    add("--max-iter", type=int, default=30)
    add("--batch-size", type=int, default=64)
    add("--dtype", choices=["float32", "float64"], default="float64")
    add("--preprocess", choices=PREPROCESSORS, default="standard")
    add("--alpha", type=_alpha, default="auto", metavar="A")
    add("--threads", type=int, default=1)
    add("--repeats", type=int, default=3)
    add("--warm-iterations", type=int, metavar="W",
        help="the late iterations begin after these; by default half of --max-iter")  # fmt: skip
    add("--skip-memory", action="store_true", help="do not measure memory")
    add("--json", type=Path, metavar="FILE", help="write the numbers to this file")
    return parser


if __name__ == "__main__":
    main()
