"""Forge files of models at random, load them, and hold what happens against what is promised.

``python -m tests.robustness.forged --cases 5000 --seed 0 --jobs 2`` (``--only 17`` runs one case)

Each case draws a model (every class, fitted, mid-stream, checkpointed or unfitted; codings and
pipelines; either precision, dense and sparse rows), and changes one or two places in its file: an
array's shape, type, order or numbers, a number or a string of the tree, a class, an attribute, the
length of a list. A child process loads the file; if it loads, it is asked for all that a model can
do, and goes on learning. Either the file is refused, by ValueError or TypeError, or the model
predicts or refuses to. Failures are a crash, an index out of bounds (loops are compiled so that
they look: NUMBA_BOUNDSCHECK, with a cache of their own), another error at load, more than a second
of the processor or 100 MB for one call, apart from compiling.

Models go on with the parameters that they had: how long a fit takes, a user may say.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

if "numba" not in sys.modules:  # before the compiler reads it
    os.environ.setdefault("NUMBA_BOUNDSCHECK", "1")
    if os.environ["NUMBA_BOUNDSCHECK"] == "1":
        own = Path(tempfile.gettempdir()) / f"loclin-boundscheck-{os.getuid()}"
        os.environ["NUMBA_CACHE_DIR"] = str(own)

import numpy as np
from joblib import Parallel, delayed
from numba.core import event
from numpy.lib import format as npy
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

import loclin
import loclin.io
from benchmarks._timing import memory_status, reset_peak_memory
from loclin import codings
from loclin.callbacks import Checkpoint

SECONDS, BYTES = 1.0, 100 * 2**20  # of a call
_ROOM = 2**30  # bytes that a child may take
_PATIENCE = 90  # seconds of waiting for a child
_N, _D = 60, 4
_SHORT = {"max_iter": 3, "random_state": 0}
_PLAIN = {"metric": None}
_OPTIONAL = {"alpha": 0.01, "calibrate": False}


def _soft() -> Any:
    return codings.SoftAssignmentCoding(6, 3)


def _classifiers() -> dict[str, Callable[[], Any]]:
    few, plain = _SHORT | _OPTIONAL, _SHORT | _OPTIONAL | _PLAIN
    planes = codings.OrthogonalCoding(2, per_class=True)
    return {
        "ml3": lambda: loclin.ML3Classifier(3, **plain),
        "ml3 diagonal": lambda: loclin.ML3Classifier(2, **few, metric="diagonal"),
        "llsvm": lambda: loclin.LLSVMClassifier(_soft(), **plain),
        "llsvm by class": lambda: loclin.LLSVMClassifier(planes, bias="both", **plain),
        "llsvm constant": lambda: loclin.LLSVMClassifier(_soft(), weights="constant", **plain),
        "llsvm dual": lambda: loclin.LLSVMClassifier(_soft(), solver="dual_cd", **plain),
        "llsvm competing": lambda: loclin.LLSVMClassifier(
            _soft(), multi_class="crammer_singer", **plain
        ),
        "sapl": lambda: loclin.SAPLClassifier(6, 3, **plain),
        "sapl own": lambda: loclin.SAPLClassifier(5, 2, share_anchors=False, **plain),
        "sapl constant": lambda: loclin.SAPLClassifier(6, 3, weights="constant", **plain),
        "l3m": lambda: loclin.L3MClassifier(3, **few),
        "l3m online": lambda: loclin.L3MClassifier(3, solver="online", n_restarts=2, **few),
        "ussvm": lambda: loclin.USSVMClassifier(5, beta=0.01, calibrate=False, **_SHORT),
        "csvm": lambda: loclin.CSVMClassifier(3, **few),
        "ldkl": lambda: loclin.LDKLClassifier(2, **few),
        "lmkl": lambda: loclin.LMKLClassifier(3, **few),
        "lmkl alternating": lambda: loclin.LMKLClassifier(3, solver="alternating", **few),
        "kernels": lambda: loclin.KernelLMKLClassifier(["linear", "rbf"], **_SHORT),
        "svmknn": lambda: loclin.SVMKNNClassifier(8),
        "ensemble": lambda: loclin.LocallyLinearEnsemble(
            [loclin.ML3Classifier(2, **plain), loclin.LLSVMClassifier(_soft(), **plain)],
            n_folds=2,
            random_state=0,
        ),
        "pipeline": lambda: make_pipeline(MaxAbsScaler(), loclin.ML3Classifier(3, **plain)),
    }


def _codings() -> dict[str, Callable[[], Any]]:
    return {
        "soft": _soft,
        "inverse": lambda: codings.InverseDistanceCoding(6, 3),
        "llc": lambda: codings.LLCCoding(6, 3),
        "lcc": lambda: codings.LocalCoordinateCoding(6, max_iter=2),
        "tangents": lambda: codings.TangentCoding(_soft(), 2),
        "planes": lambda: codings.OrthogonalCoding(2),
        "coding pipeline": lambda: make_pipeline(MaxAbsScaler(), codings.LLCCoding(6, 3)),
    }


KINDS = [*_classifiers(), *_codings()]
WAYS = ["fit", "fit", "stream", "stream", "then_stream", "checkpoint", "unfitted"]


# Models, as the files have them.


def rows_of(layout: str, dtype: str, n_classes: int) -> tuple[Any, Any]:
    """Return rows and labels."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((_N, _D)).astype(dtype)
    X[rng.random(X.shape) < 0.3] = 0
    y = np.arange(_N) % n_classes
    X[:, 0] += y
    return sparse.csr_matrix(X) if layout == "sparse" else X, y


def learn(kind: str, way: str, X: Any, y: Any) -> Any:
    """Return a model of that kind that has learned in that way, or as far as it can."""
    model = (_classifiers() | _codings())[kind]()
    if way == "unfitted":
        return model
    if way == "stream" and hasattr(model, "partial_fit"):
        for some in (slice(0, 40), slice(40, _N)):
            model.partial_fit(X[some], y[some], classes=np.unique(y))
        return model
    if way == "checkpoint" and hasattr(model, "warm_start") and hasattr(model, "set_callbacks"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoint"
            model.set_callbacks(Checkpoint(path, every=1)).fit(X, y)
            return loclin.io.load(path)
    model.fit(X, y)
    if way == "then_stream" and hasattr(model, "partial_fit"):
        model.partial_fit(X, y)
    return model


def read(content: bytes) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the tree of a file, and its arrays."""
    with ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        arrays = {name: npy.read_array(io.BytesIO(archive.read(name))) for name in names}
        return json.loads(archive.read("loclin.json")), arrays


def write(path: Path, tree: Any, arrays: dict[str, np.ndarray]) -> None:
    """Write them into a file again."""
    with ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(name, "w") as file:
                npy.write_array(file, array, allow_pickle=False)
        archive.writestr("loclin.json", json.dumps(tree))


# What is forged.

_NUMBERS = (0, 1, -1, 2, 3, 5, 0.5, -1.5, 10**6, 2**31 - 1, 2**63, 10**400, 1e308, float("nan"),
            float("inf"), True, None, "x", [], {"tuple": []})  # fmt: skip
_VALUES = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, -1.0, 2**31 - 1, -(2**31))
_TYPES = ("f4", "f8", "f2", "i4", "i8", "u1", "?", "c16", "S3", "U3", ">f8", ">i4")


def _draw(rng: np.random.Generator, options: Any) -> Any:
    return options[rng.integers(len(options))]


def nodes(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the places of a tree, and what is there."""
    yield path, tree
    if isinstance(tree, dict | list):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from nodes(part, (*path, key))


def put(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    """Write a value into a place of a tree."""
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


def forge_shape(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Return the array in another shape."""
    kind, axis = rng.integers(9), int(rng.integers(max(1, array.ndim)))
    if not array.ndim or kind == 0:
        return array[None]
    if kind == 1:
        return array.T
    if kind == 2:
        return np.asfortranarray(array)
    if kind == 3:
        return array.ravel()
    if kind == 4:
        return np.repeat(array, int(_draw(rng, (2, 3, 50))), axis)
    if kind == 5:
        return array.take([], axis)
    if kind == 6:
        return array.sum(axis) if array.dtype.kind in "fi" else array.take(0, axis)
    n = array.shape[axis]
    return array.take(range(min(n, int(_draw(rng, (1, max(1, n - 1)))))), axis)


def forge_values(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Return the array with another number at a place, or everywhere, or of another type."""
    if rng.random() < 0.4 or array.dtype.kind not in "fiu" or not array.size:
        try:
            with np.errstate(all="ignore"):
                return array.astype(_draw(rng, _TYPES))
        except (TypeError, ValueError):
            return array[:0]
    changed, value = array.copy(), _draw(rng, _VALUES)
    if array.dtype.kind != "f":
        value = int(_draw(rng, (-1, 0, 1, 7, 2**31 - 1, -(2**31))))
    where = slice(None) if rng.random() < 0.2 else int(rng.integers(array.size))
    with np.errstate(all="ignore"):
        changed.reshape(-1)[where] = np.array(value).astype(array.dtype)
    return changed


def forge_array(rng: np.random.Generator, tree: Any, arrays: dict[str, np.ndarray]) -> str:
    """Change one array, or let two change places."""
    if not arrays:
        return forge_number(rng, tree, arrays)
    name, way = _draw(rng, sorted(arrays)), rng.integers(6)
    if way == 0:
        other = _draw(rng, sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
        return f"{name} and {other} change places"
    before = arrays[name]
    forge = forge_shape if way < 4 else forge_values
    arrays[name] = forge(rng, before)
    told = [(one.shape, one.dtype.str) for one in (before, arrays[name])]
    return f"{name} {forge.__name__} {told[0]} -> {told[1]}"


def forge_number(rng: np.random.Generator, tree: Any, arrays: dict[str, np.ndarray]) -> str:
    """Change a number, a flag or a string of the tree."""
    leaves = [(path, value) for path, value in nodes(tree) if not isinstance(value, dict | list)]
    found = [(path, value) for path, value in leaves if path[-1] != "array"]
    path, before = _draw(rng, found)
    strings = [value for _, value in found if isinstance(value, str)]
    value = _draw(rng, strings) if isinstance(before, str) and rng.random() < 0.6 else _draw(
        rng, _NUMBERS)  # fmt: skip
    put(tree, path, value)
    return f"{path} {before!r} -> {value!r}"[:300]


def forge_class(rng: np.random.Generator, tree: Any, arrays: dict[str, np.ndarray]) -> str:
    """Name another class."""
    named = [path for path, _ in nodes(tree) if path and path[-1] in ("object", "class", "enum")]
    if not named:
        return forge_number(rng, tree, arrays)
    path, name = _draw(rng, named), _draw(rng, allowed_classes())
    put(tree, path, name)
    return f"{path} -> {name}"


def forge_list(rng: np.random.Generator, tree: Any, arrays: dict[str, np.ndarray]) -> str:
    """Drop a part of a list, double it or put another node in its place."""
    found = [path for path, value in nodes(tree) if path and isinstance(value, list) and value]
    if not found:
        return forge_number(rng, tree, arrays)
    path = _draw(rng, found)
    before = tree
    for key in path:
        before = before[key]
    at, way = int(rng.integers(len(before))), rng.integers(4)
    if way == 0:
        del before[at]
    elif way == 1:
        before.insert(at, copy.deepcopy(before[at]))
    elif way == 2:
        before.clear()
    else:
        before[at] = copy.deepcopy(_draw(rng, [value for _, value in nodes(tree)]))
    return f"{path}[{at}] {('dropped', 'doubled', 'cleared', 'replaced')[way]}"


FORGERIES = [forge_array] * 5 + [forge_number] * 3 + [forge_class, forge_list]


@cache
def allowed_classes() -> list[str]:
    """Return names of classes that a file may have: loclin's and some of scikit-learn's."""
    found = {f"loclin.{name}" for name in loclin.__all__ if isinstance(getattr(loclin, name), type)}
    found |= {f"loclin.codings.{name}" for name in codings.__all__}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("loclin.") and name.count(".") == 2:
            found |= {f"{name}.{value.__qualname__}" for value in vars(module).values()
                      if isinstance(value, type) and value.__module__ == name}  # fmt: skip
    return sorted(found | {"sklearn.preprocessing.StandardScaler", "sklearn.pipeline.Pipeline"})


# What is asked of a model that has loaded.


def calls_of(model: Any, original: Any, X: Any, y: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the calls, by name; those that learn come last."""
    for name in ("predict", "decision_function", "predict_proba", "local_weights", "local_model",
                 "transform", "regions", "neighbors", "atom_usage"):  # fmt: skip
        try:
            method = getattr(model, name, None)
        except Exception:  # of a property: it is for the calls to tell
            method = None
        if callable(method):
            yield name, (lambda method=method, name=name: method(*[X] * (name != "atom_usage")))
    if type(model) is not type(original):
        return
    parameters = original.get_params(deep=False)
    given = {name: value for name, value in parameters.items() if name != "steps"}
    yield "set_params", lambda: model.set_params(**given)
    if hasattr(original, "partial_fit"):
        yield "partial_fit", lambda: model.partial_fit(X, y)
        yield "partial_fit again", lambda: model.partial_fit(X, y)
        yield "predict again", lambda: model.predict(X)
    if "warm_start" in given:
        yield "goes on", lambda: model.set_params(warm_start=True).fit(X, y)
    if hasattr(model, "predict"):
        yield "predict at last", lambda: model.predict(X)


class Failed(Exception):
    """A promise that was not kept."""


class Watch(event.Listener):
    """Measures a call: its processor time without that of compiling, and its memory."""

    def __init__(self) -> None:
        self.compiling, self.depth, self.begun = 0.0, 0, 0.0

    def on_start(self, event: Any) -> None:
        """Begin to count a compilation; those inside it are a part of it."""
        self.begun = self.begun if self.depth else time.process_time()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Count it."""
        self.depth -= 1
        self.compiling += 0.0 if self.depth else time.process_time() - self.begun

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:
        """Make the call; raise `Failed` where it took too much."""
        reset_peak_memory()
        self.compiling, before = 0.0, memory_status("VmRSS")
        start = time.process_time()
        try:
            return call()
        finally:
            seconds = time.process_time() - start - self.compiling
            more = memory_status("VmHWM") - before
            if seconds > SECONDS:
                raise Failed(f"{name} took {seconds:.1f} s")
            if more > BYTES and not self.compiling:
                raise Failed(f"{name} took {more / 2**20:.0f} MB")


def attempt(path: Path, original: Any, X: Any, y: Any) -> str:
    """Load a file and ask the model everything; return what came of it, or raise `Failed`."""
    watch = Watch()
    with warnings.catch_warnings(), event.install_listener("numba:compile", watch):
        warnings.simplefilter("ignore")
        try:
            model = watch("load", lambda: loclin.io.load(path))
        except (ValueError, TypeError) as error:
            return f"refused at load: {type(error).__name__}"
        except Failed:
            raise
        except BaseException as error:
            raise Failed(f"load raised {type(error).__name__}: {error}") from error
        told = []
        for name, call in calls_of(model, original, X, y):
            try:
                watch(name, call)
            except (ValueError, TypeError):
                told.append(f"{name} refused")
            except (IndexError, MemoryError, SystemError, RecursionError) as error:
                raise Failed(f"{name} raised {type(error).__name__}: {error}") from error
            except Failed:
                raise
            except Exception as error:
                told.append(f"{name} raised {type(error).__name__}")
    return "; ".join(sorted({*told})) or "predicts"


def in_child(path: Path, *args: Any) -> str:
    """Attempt in a child process, which may crash."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run() -> None:
        room = int(memory_status("VmSize")) + _ROOM
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            there.send(attempt(path, *args))
        except Failed as error:
            there.send(f"FAILED {error}\n{traceback.format_exc()}")

    child = context.Process(target=run)
    child.start()
    there.close()
    told = "FAILED no answer in time"
    if here.poll(_PATIENCE):
        try:
            told = here.recv()
        except EOFError:
            child.join()
            told = f"FAILED crashed with {child.exitcode}"
    child.kill()
    child.join()
    return told


@cache
def prepared(kind: str, way: str, layout: str, dtype: str, c: int) -> tuple[bytes, Any, Any, Any]:
    """Return a model's file, the model, and rows; what it needs is compiled then."""
    X, y = rows_of(layout, dtype, c)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        model, path = learn(kind, way, X, y), Path(folder) / "model"
        loclin.io.save(model, path)
        again = loclin.io.load(path)
        for _, call in calls_of(again, model, X, y):
            with contextlib.suppress(ValueError, AttributeError):
                call()
        return path.read_bytes(), model, X, y


def run_case(seed: int, number: int, kinds: list[str], forms: list[str]) -> tuple[str, str]:
    """Forge a file; return what was done and what came of it."""
    rng = np.random.default_rng([seed, number])
    kind, way, form = _draw(rng, kinds), _draw(rng, WAYS), _draw(rng, forms)
    layout, dtype = form.split()
    if kind in ("kernels", "ensemble") and way == "then_stream":
        way = "fit"
    with threadpool_limits(1):
        content, model, X, y = prepared(kind, way, layout, dtype, int(_draw(rng, (2, 3))))
        tree, arrays = read(content)
        done = [_draw(rng, FORGERIES)(rng, tree, arrays) for _ in range(int(rng.integers(1, 3)))]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "forged"
            write(path, tree, arrays)
            told = in_child(path, model, X, y)
    return f"{kind}, {way}, {form}: {' and '.join(done)}", told


FORMS = ["dense float64", "dense float64", "dense float32", "sparse float64", "sparse float32"]


def main(argv: list[str] | None = None) -> int:
    """Run the cases; return 1 where one has failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--forms", nargs="*", default=FORMS)
    options = parser.parse_args(argv)
    numbers = range(options.cases) if options.only is None else [options.only]
    results = Parallel(options.jobs, return_as="generator")(
        delayed(run_case)(options.seed, number, options.kinds, options.forms) for number in numbers
    )
    counts: Counter[str] = Counter()
    failed = 0
    for number, (done, told) in zip(numbers, results, strict=True):
        if told.startswith("FAILED"):
            failed += 1
            print(f"case {number}: {done}\n  {told}", flush=True)
        elif options.only is not None:
            print(f"case {number}: {done}\n  {told}")
        counts["failed" if told.startswith("FAILED") else told] += 1
    for told, count in counts.most_common():
        print(f"{count:6d}  {told}")
    print(f"{len(numbers)} cases, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    from tests.robustness import forged  # workers find what has a module

    sys.exit(forged.main())
