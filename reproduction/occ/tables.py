"""Table 2 of Learning anchor planes for classification (Zhang et al., 2011).

Everything is chosen by 5-fold cross-validation on the training split: preprocessing and strength
(from a coarse grid), then the loss, where the anchors come from, the coding's own knobs one by one,
and a finer strength; a best value at the edge of a grid makes the grid grow. The strength is a
factor in half decades of the mean squared norm of the implicit features, intercepts left out:
alpha = factor * norm^2 / n. Sets of more than 10,000 rows choose on so many (`SUBSET`). The test
split is used by the final fits only, one for each seed.

MNIST: the figures that count are on the first 40,000 training rows, as in the paper.

Run ``LOCLIN_DATA=FOLDER python -m benchmarks.occ_tables table2 [mnist usps letter] --json FILE``.
A stopped run goes on from its JSON file (one run a file). Figure 2 is in `occ_figures`.
``... diagnose ... --rows ROW`` prints what tuning on the test split would give, as an explanation.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.svm import LinearSVC
from sklearn.utils.extmath import row_norms

from benchmarks.choices import (
    COARSE,
    FOLDS,
    LIMITS,
    PREPARE,
    SUBSET,
    Cache,
    Case,
    Knob,
    Notes,
    Problem,
    Search,
    each_seed,
    problem_named,
    quiet,
    shown_choice,
    subset,
    verdict,
)
from loclin import LLSVMClassifier
from loclin.codings import (
    InverseDistanceCoding,
    LLCCoding,
    LocalCoordinateCoding,
    OrthogonalCoding,
    TangentCoding,
)

SETS = ("usps", "letter", "mnist")
COLUMNS = ("mnist", "usps", "letter")  # of the paper's tables
COUNTED = {"mnist": 40_000}  # the paper's training rows; all of them are printed beside
# Where the paper leaves the loss open, CV chooses, beginning with LIBLINEAR's squared hinge.
LOSS_CHOSEN = ("raw", "codes", "class codes", "lib", "lib local")
# The paper's anchors are from k-means; CV chooses whether over all rows or over those of a class.
ANCHORS_CHOSEN = ("llc", "inverse_distance")
DETERMINISTIC = ("raw", "class codes", "lib", "lib local")
# What is trained, by Row.how; "raw" and "codes" take LinearSVC, on X and on the codes.
LEARNERS: dict[str, dict[str, Any]] = {
    "class codes": {
        "weights": "constant",
        "bias": "global",
        "solver": "dual_cd",
        "tol": 0.1,
        "max_iter": 200,
    },
    "lib": {"bias": "global", "solver": "dual_cd", "tol": 0.01, "max_iter": 200},
    "lib local": {"bias": "local", "solver": "dual_cd", "tol": 0.01, "max_iter": 200},
    "peg": {"bias": "local"},  # max_iter: 1e6 rows, as the paper's Table 3
    "llsvm": {"bias": "local", "max_iter": 10, "tol": 0.0},
}


@dataclass(frozen=True)
class Row:
    """A system: its coding, and for each set the planes or anchors and the paper's error."""

    how: str
    coding: Callable[..., Any] | None
    cells: dict[str, tuple[int, float | None]]
    knobs: tuple[Knob, ...] = ()
    like: str | None = None  # starts from this row's choice, and keeps its preprocessing
    on_request: bool = False


def g_occ(size: int, seed: int) -> Any:
    return OrthogonalCoding(size)


def c_occ(size: int, seed: int) -> Any:
    return OrthogonalCoding(size, per_class=True)


def llc(size: int, seed: int, **knobs: Any) -> Any:
    return LLCCoding(size, random_state=seed, **knobs)


def lcc(size: int, seed: int, **knobs: Any) -> Any:
    return LocalCoordinateCoding(size, random_state=seed, **knobs)


def tangents(size: int, seed: int, n_tangents: int, scale: float, **knobs: Any) -> Any:
    return TangentCoding(lcc(size, seed, **knobs), n_tangents, scale)


def inverse_distance(size: int, seed: int, **knobs: Any) -> Any:
    return InverseDistanceCoding(size, 8, random_state=seed, **knobs)


def cells(sizes: Any, *errors: float | None) -> dict[str, tuple[int, float | None]]:
    """Planes or anchors and errors on the sets, in the order of the paper's columns."""
    sizes = sizes if isinstance(sizes, tuple) else (sizes,) * 3
    return dict(zip(COLUMNS, zip(sizes, errors, strict=True), strict=True))


LLC, LCC = "Linear SVM + LLC (512)", "Linear SVM + LCC (512)"
IMPROVED = "Linear SVM + improved LCC (512)"
LLC_KNOBS = (Knob("n_neighbors", 5, 2, 2, 40), Knob("regularization", 1e-4, 100, 1e-8, 1))
LCC_KNOBS = (Knob("locality", 0.1, 3, 0.01, 3),)
TANGENTS = (Knob("n_tangents", 16, 2, 8, 64), Knob("scale", 1.0, 3, 0.01, 100))
# fmt: off
ROWS = {
    "Linear SVM": Row("raw", None, cells(0, 12.00, 9.57, 41.77)),
    "Linear SVM + G-OCC": Row("codes", g_occ, cells((100, 95, 15), 9.25, 7.82, 30.52)),
    "Linear SVM + C-OCC": Row("class codes", c_occ, cells((100, 95, 16), 7.42, 5.98, 14.95)),
    "LIB-LLSVM + G-OCC": Row("lib", g_occ, cells((50, 20, 15), 1.72, 4.14, 6.85)),
    "PEG-LLSVM + G-OCC": Row("peg", g_occ, cells((40, 50, 14), 1.81, 4.38, 9.83)),
    "LIB-LLSVM + C-OCC": Row("lib", c_occ, cells((90, 80, 16), 1.61, 3.94, 7.35)),
    "PEG-LLSVM + C-OCC": Row("peg", c_occ, cells((90, 80, 16), 1.74, 4.09, 8.30)),
    "LL-SVM": Row("llsvm", inverse_distance, cells(100, 1.85, 5.78, 5.32)),
    LLC: Row("codes", llc, cells(512, 3.69, 5.78, 9.02), LLC_KNOBS),
    "Linear SVM + LLC (4096)": Row("codes", llc, cells(4096, 2.28, 4.38, 4.12), like=LLC),
    LCC: Row("codes", lcc, cells(512, 2.64, None, None), LCC_KNOBS),
    IMPROVED: Row("codes", tangents, cells(512, 1.95, None, None), TANGENTS, LCC),
    # Not the paper's: what the bias of each plane, which LIB-LLSVM leaves out, is worth.
    "LIB-LLSVM + G-OCC, local biases": Row(
        "lib local", g_occ, cells((50, 20, 15), 1.72, 4.14, 6.85), on_request=True),
    "LIB-LLSVM + C-OCC, local biases": Row(
        "lib local", c_occ, cells((90, 80, 16), 1.61, 3.94, 7.35), on_request=True),
    "Linear SVM + LCC (4096)": Row(
        "codes", lcc, cells(4096, 1.90, None, None), (), LCC, on_request=True),
    "Linear SVM + improved LCC (4096)": Row(
        "codes", tangents, cells(4096, 1.64, None, None), (), IMPROVED, on_request=True),
}
# fmt: on
PLANES = {
    "usps": (5, 10, 20, 40, 60, 80, 95),
    "letter": (2, 4, 6, 8, 10, 12, 14, 16),
    "mnist": (10, 30, 50, 70, 90),
}


class System:
    """A row's coding, fitted to prepared rows, and the learners on it."""

    def __init__(self, row: Row, size: int, knobs: Any, X: Any, y: Any, seed: int) -> None:
        self.how, self.seed, self.n = row.how, seed, len(y)
        of_coding = dict(knobs)
        self.loss = of_coding.pop("loss", "hinge")
        self.coding = row.coding and row.coding(size, seed, **of_coding).fit(X, y)

    def features(self, X: Any) -> Any:
        """Return what the learner sees."""
        return self.coding.transform(X) if self.how == "codes" else X

    def unit(self, X: Any) -> float:
        """Mean squared norm of the implicit features of about 5,000 rows, intercepts left out."""
        X = X[:: max(1, len(X) // 5000)]
        squares = row_norms(X, squared=True) if "codes" not in self.how else 1.0
        if self.coding is None:
            return float(np.mean(squares))
        n_sets = len(getattr(self.coding, "n_planes_", [0]))  # planes of each class
        return float(np.mean(squares * row_norms(self.coding.transform(X), squared=True))) / n_sets

    def learner(self, alpha_n: float, passes: int) -> Any:
        """Return the unfitted learner of strength alpha_n / n."""
        if self.how in ("raw", "codes"):
            return LinearSVC(C=1 / alpha_n, loss=self.loss, dual=True, random_state=self.seed)
        options = ({"max_iter": passes} if self.how == "peg" else {}) | LEARNERS[self.how]
        coding = FrozenEstimator(self.coding)
        return LLSVMClassifier(coding, loss=self.loss, alpha=alpha_n / self.n,
                               random_state=self.seed, **options)  # fmt: skip


def passes_of(n: int) -> int:
    """Give the passes of PEG-LLSVM: 1e6 rows, as in the paper, but at most 150 passes."""
    return min(150, max(10, round(1e6 / n)))


def fold_errors(row: Row, size: int, passes: int, X: Any, y: Any, fold: Any, case: Case,
                ks: Any) -> list[float]:  # fmt: skip
    """Errors of one fold at each strength."""
    train, test = fold
    scaler = PREPARE[case[0]]().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    system = System(row, size, case[1], A, y[train], 0)
    unit, A, B = system.unit(A), system.features(A), system.features(B)
    models = (system.learner(10 ** (k / 2) * unit, passes).fit(A, y[train]) for k in ks)
    return [100 * (1 - model.score(B, y[test])) for model in models]


def search_for(name: str, problem: Problem, size: int, jobs: int, notes: Notes) -> Search:
    """Search on the rows for cross-validation."""
    row, counted = ROWS[name], problem.counted
    X, y = subset(problem.X[:counted], problem.y[:counted])
    return Search(partial(fold_errors, row, size, passes_of(counted)), X, y, jobs, notes)


def chosen_by(search: Search, row: Row, start: dict[str, Any] | None) -> dict[str, Any]:
    """Choose for a row of the table; `start` is the choice of the row that it follows."""
    prepares = list(PREPARE)
    if row.coding in (llc, lcc, tangents) and not start:
        prepares.remove("unit rows, centre")  # their codes do not see where the origin is
    return search.choose(prepares, row.knobs, options_of(row), start)


def options_of(row: Row) -> dict[str, tuple[str, str]]:
    """Collect what is one of two, the one to begin with first."""
    anchors = row.coding is not None and row.coding.__name__ in ANCHORS_CHOSEN
    return ({"loss": ("squared_hinge", "hinge")} if row.how in LOSS_CHOSEN else {}) | (
        {"anchors": ("kmeans", "kmeans_per_class")} if anchors else {}
    )


def settings_of(name: str, problem: Problem, size: int) -> dict[str, Any]:
    """Collect what a stored result must agree in to be used again."""
    row = ROWS[name]
    return {
        "how": row.how, "coding": row.coding and row.coding.__name__, "size": size,
        "knobs": row.knobs, "learner": LEARNERS.get(row.how), "prepare": list(PREPARE),
        "coarse": COARSE, "limits": LIMITS, "folds": FOLDS, "cv_rows": SUBSET,
        "counted": problem.counted, "shape": problem.X.shape, "values": "0 to 1",
        "options": options_of(row),
    }  # fmt: skip


def choice_of(name: str, problem: Problem, cache: Cache, jobs: int) -> dict[str, Any]:
    """Choose by cross-validation, or take what is stored."""
    row, size = ROWS[name], ROWS[name].cells[problem.name][0]
    start = choice_of(row.like, problem, cache, jobs) if row.like else None
    settings = settings_of(name, problem, size) | {"start": start}
    key = f"{problem.name} | {name} | choice"

    def choose() -> dict[str, Any]:
        search = search_for(name, problem, size, jobs, cache.notes(key, settings))
        return chosen_by(search, row, start)

    return cache(key, settings, choose)


def final_fit(row: Row, size: int, problem: Problem, n: int, choice: Any, seed: int) -> Any:
    """Test error, and processor seconds of coding and fit, and of the prediction."""
    y, clock = problem.y[:n], time.process_time
    scaler = PREPARE[choice["prepare"]]().fit(problem.X[:n])
    A, B = scaler.transform(problem.X[:n]), scaler.transform(problem.X_test)
    start = clock()
    system = System(row, size, choice["knobs"], A, y, seed)
    features = system.features(A)
    coded = clock() - start
    model = system.learner(10 ** (choice["k"] / 2) * system.unit(A), passes_of(n))
    few = np.unique(np.r_[np.unique(y, return_index=True)[1], : min(n, 100)])
    model.fit(features[few], y[few]).predict(features[few])  # compiled code is loaded
    start = clock()
    model.fit(features, y)
    fitted = clock()
    found = model.predict(system.features(B))
    seconds = coded + fitted - start, clock() - fitted
    return 100 * float(np.mean(found != problem.y_test)), *seconds


def test_errors(name: str, problem: Problem, size: int, n: int, choice: dict[str, Any], seeds: int,
                cache: Cache, jobs: int) -> NDArray[Any]:  # fmt: skip
    """(seeds, 3): error, fit seconds, predict seconds."""
    settings = settings_of(name, problem, size) | {"choice": choice, "seeds": seeds}
    run = partial(final_fit, ROWS[name], size, problem, n, choice)
    key = f"{problem.name} | {name} | n={n}"
    return np.array(each_seed(cache, key, settings, run, range(seeds), jobs))


def n_seeds(name: str, seeds: int, counted: bool) -> int:
    """At most two where only the order of the rows is random, and for figures beside."""
    row = ROWS[name]
    few = row.how in DETERMINISTIC or (row.how, row.coding) == ("codes", g_occ)
    return min(seeds, (2 if few else seeds) if counted else (1 if row.how == "lib" else 2))


def table_2(problem: Problem, names: list[str], options: Any, cache: Cache) -> None:
    """Choose, fit and print, system by system."""
    seeds, jobs = options.seeds, options.jobs
    sizes = {problem.counted} if options.counted else {problem.counted, len(problem.X)}
    for name in names:
        size, paper = ROWS[name].cells[problem.name]
        choice = choice_of(name, problem, cache, jobs)
        print(f"{problem.name}, {name}: {shown_choice(choice)}", flush=True)
        for n in sorted(sizes):
            counted = n == problem.counted
            runs = n_seeds(name, seeds, counted)
            found = test_errors(name, problem, size, n, choice, runs, cache, jobs)
            mean, std = found[:, 0].mean(), found[:, 0].std(ddof=1) if runs > 1 else 0.0
            seconds = found[:, 1:].mean(axis=0)
            linear = cache.stored.get(f"{problem.name} | Linear SVM | n={n}", {})
            ratio = seconds / np.mean(linear.get("result", np.full((1, 3), np.nan)), axis=0)[1:]
            chance = np.sqrt(mean * (100 - mean) / len(problem.y_test))
            line = (
                f"  {problem.name}, {name} [{size}], n={n:,}{'' if counted else ' (beside)'}: "
                f"{mean:.2f} +- {std:.2f} % ({runs} seeds; test split's s.e. {chance:.2f}), "
                f"{verdict(mean, std, paper)}; fit {seconds[0]:.2f} s ({ratio[0]:.1f} x linear), "
                f"predict {seconds[1]:.3f} s ({ratio[1]:.1f} x)"
            )
            print(line, flush=True)


def diagnose(problem: Problem, names: list[str], options: Any, cache: Cache) -> None:
    """Print what tuning on the test split would give: an explanation, never a result.

    Strengths with every preprocessing (MNIST: with the chosen one) and, for planes, with every
    number of them: the paper prints the number "which returns the best result".
    """
    for name in names:
        size, paper = ROWS[name].cells[problem.name]
        chosen = choice_of(name, problem, cache, options.jobs)
        prepares = [chosen["prepare"]] if problem.name == "mnist" else list(PREPARE)
        planes = PLANES[problem.name] if ROWS[name].coding in (g_occ, c_occ) else ()
        strengths = range(chosen["k"] - 3, chosen["k"] + 4)
        cases = [(size, chosen | {"prepare": p, "k": k}) for p in prepares for k in strengths]
        cases += [(m, chosen | {"k": k}) for m in planes if m != size for k in strengths]
        run, key = delayed(quiet(final_fit)), f"{problem.name} | {name} | diagnosis"
        found = cache(
            key, settings_of(name, problem, size) | {"choice": chosen, "planes": planes},
            lambda run=run, name=name, cases=cases: Parallel(options.jobs)(
                run(ROWS[name], m, problem, problem.counted, case, 0) for m, case in cases
            ),
        )  # fmt: skip
        errors = [row[0] for row in found]
        m, best = cases[int(np.argmin(errors))]
        print(
            f"{problem.name}, {name}, seed 0: {errors[cases.index((size, chosen))]:.2f} % by CV's "
            f"choice [{size}]; tuned on the test split it would be {min(errors):.2f} % ([{m}], "
            f"{best['prepare']}, {10 ** (best['k'] / 2):.3g} norm^2/n; {len(cases)} settings); "
            f"paper {paper:.2f}",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    """Run the table, or explain it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["table2", "diagnose"])
    parser.add_argument("sets", nargs="*", choices=[[], *SETS], default=[])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), metavar="ROW")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--counted", action="store_true", help="leave out the figures beside")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    cache = Cache(options.json)
    for name in options.sets or SETS:
        problem = problem_named(name, COUNTED.get(name))
        told = [n for n in ROWS if ROWS[n].cells[problem.name][1] and not ROWS[n].on_request]
        run = table_2 if options.what == "table2" else diagnose
        run(problem, options.rows or told, options, cache)


if __name__ == "__main__":
    main()
