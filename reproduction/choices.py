"""Choices by cross-validation on the training split: grids that grow, results that are kept.

The strength of a penalty is a factor, in half decades, of the mean squared norm of the implicit
features, intercepts left out: alpha = 10^(k/2) * norm^2 / n. A best value at the edge of a grid
makes the grid grow.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from threadpoolctl import threadpool_limits

from loclin.datasets import load

PREPROCESSING: dict[str, Any] = {
    "standardise": StandardScaler,
    "centre, unit rows": lambda: make_pipeline(StandardScaler(with_std=False), Normalizer()),
    "unit rows, centre": lambda: make_pipeline(Normalizer(), StandardScaler(with_std=False)),
}

PREPARE = {"raw": FunctionTransformer, "unit rows": Normalizer, **PREPROCESSING}
COARSE = (-4, -2, 0)  # half decades: factors 0.01, 0.1, 1
LIMITS = -10, 6
FOLDS = 5
SUBSET = 10_000  # training rows that choose, at most
Case = tuple[str, tuple[tuple[str, Any], ...]]  # preprocessing, knobs


class Knob(NamedTuple):
    """A parameter of a system, searched in steps of `ratio` from `start`."""

    name: str
    start: float
    ratio: float
    low: float
    high: float


class Problem(NamedTuple):
    """A set in float32, its values from 0 to 1, and its counted training rows.

    The planes are those of X as it is, not centred: the background of USPS, -1 in the file, is 0.
    """

    name: str
    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    counted: int


def from_0_to_1(*parts: NDArray[Any]) -> list[NDArray[Any]]:
    """Parts of a set in float32, the values of the first being from 0 to 1."""
    low, high = np.float32(parts[0].min()), np.float32(parts[0].max())
    return [(part.astype(np.float32) - low) / (high - low) for part in parts]


def problem_named(name: str, counted: int | None = None) -> Problem:
    """Load a set with an official test split."""
    data = load(name)
    X, X_test = from_0_to_1(data.X_train, data.X_test)
    return Problem(name, X, data.y_train, X_test, data.y_test, min(counted or len(X), len(X)))


class Notes:
    """What the tasks of an unfinished result have given, so that a killed run goes on from there.

    A file of lines: first what the results depend on (where that has changed, all begins anew),
    then task, result and seconds of the processor and the clock. Without a path they are kept in
    memory. `before` are the seconds of all that the file had.
    """

    def __init__(self, path: Path | None = None, about: Any = None) -> None:
        self.path, self.found, self.before = path, {}, [0.0, 0.0]
        if path is None:
            return
        first = json.dumps(about)
        lines = path.read_text().split("\n")[:-1] if path.exists() else []  # a kill may cut a line
        lines = lines if lines[:1] == [first] else [first]
        for task, result, seconds in map(json.loads, lines[1:]):
            self.found[task] = result
            self.before = [a + b for a, b in zip(self.before, seconds, strict=True)]
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_suffix(".tmp")
        whole.write_text("\n".join([*lines, ""]))
        whole.replace(path)

    def results(self, tasks: list[Any], compute: Callable[[list[Any]], Iterable[Any]]) -> list[Any]:
        """Results of the tasks; `compute` gives those that are not noted yet, in their order."""
        start = time.process_time(), time.perf_counter()
        waiting = [task for task in tasks if json.dumps(task) not in self.found]
        for task, result in zip(waiting, compute(waiting), strict=True):
            end = time.process_time(), time.perf_counter()
            line = json.dumps(task), result, [b - a for a, b in zip(start, end, strict=True)]
            self.found[line[0]], start = result, end
            if self.path:
                with self.path.open("a") as file:
                    file.write(json.dumps(line) + "\n")
        return [self.found[json.dumps(task)] for task in tasks]


class Cache:
    """Results by key, kept in a JSON file; used again where their settings are the same."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.stored = json.loads(path.read_text()) if path and path.exists() else {}

    def __call__(self, key: str, settings: dict[str, Any], compute: Callable[[], Any]) -> Any:
        """Return the stored result, or compute and store it."""
        settings = json.loads(json.dumps(settings))
        found = self.stored.get(key)
        if found and found["settings"] == settings:
            return found["result"]
        result = json.loads(json.dumps(compute()))
        self.stored[key] = {"settings": settings, "result": result}
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = self.path.with_suffix(".tmp")
            unfinished.write_text(json.dumps(self.stored, indent=1))
            unfinished.replace(self.path)
        return result

    def notes(self, key: str, settings: dict[str, Any]) -> Notes:
        """Return where the result of this key notes what it has found; here in memory."""
        return Notes()


def one_thread(function: Any) -> Any:
    """Run the function with every thread pool pinned to one thread."""

    def pinned(*args: Any, **kwargs: Any) -> Any:
        with threadpool_limits(limits=1):
            return function(*args, **kwargs)

    return pinned


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """One thread; no warnings of passes used up and of sizes cut to the data."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", ".*is too large")
            return function(*args, **kwargs)

    return one_thread(run)


def each_seed(cache: Cache, key: str, settings: dict[str, Any], run: Callable[[int], Any],
              seeds: Iterable[int], jobs: int) -> list[Any]:  # fmt: skip
    """Run for each seed, or take what is stored; a killed run goes on with the next seed."""

    def compute() -> list[Any]:
        return cache.notes(key, settings).results(
            list(seeds),
            lambda waiting: Parallel(jobs, return_as="generator")(
                delayed(quiet(run))(seed) for seed in waiting
            ),
        )

    return cache(key, settings, compute)


def subset(
    X: NDArray[Any], y: NDArray[Any], rows: int = SUBSET
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw so many rows, stratified, always the same."""
    if rows < len(X):
        X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=0)
    return X, y


class Search:
    """Cross-validated errors of a system, grid by grid.

    Parameters
    ----------
    fold_errors : callable
        ``fold_errors(X, y, fold, case, ks)``: the errors of one fold at each strength.
    X, y : ndarray
    jobs : int
    notes : Notes
        Where the errors of a fold are kept as they come.
    """

    def __init__(
        self, fold_errors: Callable[..., list[float]], X: Any, y: Any, jobs: int, notes: Notes
    ) -> None:
        self.fold_errors, self.X, self.y, self.jobs, self.notes = fold_errors, X, y, jobs, notes
        self.folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
        self.errors: dict[tuple[Case, int], float] = {}
        self.grown: list[str] = []

    def evaluate(self, wanted: dict[Case, tuple[int, ...]]) -> None:
        """Fill in the errors wanted; a task is a case on a fold, with all its strengths."""
        new = {c: [k for k in ks if (c, k) not in self.errors] for c, ks in wanted.items()}
        new = {case: ks for case, ks in new.items() if ks}
        found = self.notes.results(
            [(case, ks, i) for case, ks in new.items() for i in range(FOLDS)],
            lambda tasks: Parallel(self.jobs, return_as="generator")(
                delayed(quiet(self.fold_errors))(self.X, self.y, self.folds[i], case, ks)
                for case, ks, i in tasks
            ),
        )
        for i, (case, ks) in enumerate(new.items()):
            means = np.mean(found[i * FOLDS : (i + 1) * FOLDS], axis=0)
            self.errors |= {(case, k): float(e) for k, e in zip(ks, means, strict=True)}

    def best(self, cases: Any) -> tuple[Case, int]:
        """Return the least error's key; of equal ones the strongest penalty."""
        tried = [key for key in self.errors if key[0] in cases]
        return min(tried, key=lambda key: (self.errors[key], -key[1]))

    def strengths(self, cases: list[Case], ks: tuple[int, ...], step: int) -> tuple[Case, int]:
        """Try the strengths on every case, and more where the best is at an edge."""
        wanted = dict.fromkeys(cases, ks)
        while wanted:
            self.evaluate(wanted)
            wanted = {}
            for case in cases:
                tried = [k for c, k in self.errors if c == case]
                k = self.best([case])[1]
                more = k - step if k == min(tried) else k + step if k == max(tried) else k
                if more != k and LIMITS[0] <= more <= LIMITS[1]:
                    wanted[case] = (more,)
                    self.grown.append(f"factor {10 ** (more / 2):.2g} ({case[0]})")
        return self.best(cases)

    def knob(self, knob: Knob, case: Case, k: int) -> tuple[Case, int]:
        """Try the knob's value a ratio up and down, and further while that is better."""
        at = dict(case[1])[knob.name]
        values = {at / knob.ratio, at, at * knob.ratio}
        while True:
            kind = round if isinstance(knob.start, int) else float
            values = {kind(min(max(v, knob.low), knob.high)) for v in values}
            cases = [
                (case[0], tuple((dict(case[1]) | {knob.name: v}).items())) for v in sorted(values)
            ]
            self.evaluate(dict.fromkeys(cases, (k - 1, k, k + 1)))
            best, best_k = self.best(cases)
            value = dict(best[1])[knob.name]
            edges = {min(values): value / knob.ratio, max(values): value * knob.ratio}
            if value not in edges or value in (knob.low, knob.high):
                return best, best_k
            values.add(edges[value])
            self.grown.append(f"{knob.name} {edges[value]:.2g}")

    def choose(
        self, prepares: list[str], knobs: tuple[Knob, ...], options: dict[str, tuple[str, str]],
        start: dict[str, Any] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Preprocessing with coarse strengths, options, knobs, fine strengths.

        `start` is the choice of another system: its preprocessing, options and knobs are kept.
        """
        own = {knob.name: knob.start for knob in knobs}
        chosen = {name: values[0] for name, values in options.items()}
        at = tuple((chosen | (start["knobs"] if start else {}) | own).items())
        prepares = [start["prepare"]] if start else prepares
        case, k = self.strengths([(p, at) for p in prepares], COARSE, 2)
        for name, (_, other) in options.items() if not start else ():
            changed = case[0], tuple((dict(case[1]) | {name: other}).items())
            case, k = self.strengths([case, changed], (k - 2, k, k + 2), 2)
        for knob in knobs:
            case, k = self.knob(knob, case, k)
        case, k = self.strengths([case], (k - 1, k, k + 1), 1)
        return {"prepare": case[0], "knobs": dict(case[1]), "k": k,
                "cv_error": self.errors[case, k], "cv_rows": len(self.X),
                "cases": len(self.errors), "grown": self.grown}  # fmt: skip


def verdict(mean: float, std: float, paper: float | None) -> str:
    """Better: at most the paper's; within noise: above it by at most 1 std over the seeds."""
    if paper is None:
        return "not in the paper"
    kind = "better" if mean <= paper else "within noise" if mean - paper <= std else "worse"
    return f"paper {paper:.2f}: {kind} ({mean - paper:+.2f})"


def shown_choice(choice: dict[str, Any]) -> str:
    """Describe what cross-validation chose."""
    knobs = "".join(
        f", {key}={value if isinstance(value, str) else format(value, '.3g')}"
        for key, value in choice["knobs"].items()
    )
    grown = f"; grids grew by {', '.join(choice['grown'])}" if choice["grown"] else ""
    return (
        f"CV ({choice['cv_rows']:,} rows, {choice['cases']} settings): {choice['prepare']}, alpha "
        f"= {10 ** (choice['k'] / 2):.3g} norm^2/n{knobs}, {choice['cv_error']:.2f} %{grown}"
    )
