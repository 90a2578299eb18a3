"""Tables 2 and 3 of LLC-SAPL (Mao et al., 2015): 100 anchors, 8 of them a row.

Everything is chosen by 5-fold cross-validation on the training split: preprocessing and strength,
the width of the code or the kernel, the step of the anchors, and a finer strength (`choices`). Sets
of more than 10,000 rows choose on so many. The test split is used by the final fits only, one for
each seed. Banana has no test split: each seed draws its own, a third of the rows, and chooses anew
on the rest. The figures are in `sapl_figures`.

LCC+SVM is a linear SVM on the localised soft assignment that the other systems use, which is what
the model becomes with fixed anchors and W = 0; the bandwidth is a factor of "auto" of the coding.

Run ``LOCLIN_DATA=FOLDER python -m benchmarks.sapl_tables table2 [banana usps ...] --json FILE``,
or ``... table3``. A stopped run goes on from its JSON file (one run a file).
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
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC, LinearSVC
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
    Problem,
    Search,
    each_seed,
    problem_named,
    quiet,
    shown_choice,
    subset,
)
from loclin import LLSVMClassifier, SAPLClassifier
from loclin.codings import SoftAssignmentCoding
from loclin.datasets import load, make_sine

SETS = ("banana", "ijcnn1", "usps", "mnist", "letter")
N_ANCHORS, N_NEIGHBORS = {"sine": 4}, 8  # else 100 anchors
SEEDS = {"mnist": 3}  # else 10
PASSES = {"mnist": 40}  # else 200, at most: they end when the objective stays
BANDWIDTH = Knob("bandwidth", 1.0, 2, 1 / 64, 64)
STEP = Knob("anchor_lr", 1.0, 2, 1 / 4, 4)
GAMMA = Knob("gamma", 1.0, 2, 1 / 64, 64)


@dataclass(frozen=True)
class Row:
    """A system, the paper's accuracies on SETS, and what is searched besides the strength."""

    how: str
    paper: tuple[float, ...]
    knobs: tuple[Knob, ...] = ()


ROWS = {
    "Linear SVM": Row("linear", (55.29, 92.25, 91.87, 91.91, 57.52)),
    "Kernel SVM": Row("kernel", (91.05, 98.52, 94.86, 97.84, 97.57), (GAMMA,)),
    "LLSVM": Row("llsvm", (89.71, 96.86, 93.67, 96.50, 95.03), (BANDWIDTH,)),
    "LLC-SAPL": Row("sapl", (90.82, 98.79, 94.46, 97.67, 97.27), (BANDWIDTH, STEP)),
    "LCC+SVM": Row("lcc", (89.47, 91.58, 89.43, 80.35, 77.54), (BANDWIDTH,)),
    "LLC-SAPL_lcc": Row("sapl lcc", (90.15, 95.03, 92.63, 88.27, 86.36), (BANDWIDTH, STEP)),
}
SEEDLESS = ("linear", "kernel")
# Kernel SVM's prediction seconds over those of LLC-SAPL, in the paper's Table 3.
RATIOS = dict(zip(SETS, (21, 420, 90, 135, 115), strict=True))


class System:
    """A row's model on prepared training rows, with everything chosen but the strength."""

    def __init__(self, row: Row, problem: str, X: Any, y: Any, knobs: Any, seed: int,
                 n_anchors: int | None = None) -> None:  # fmt: skip
        n_anchors = n_anchors or N_ANCHORS.get(problem, 100)
        self.how, self.seed, self.n, self.knobs = row.how, seed, len(y), dict(knobs)
        self.passes = PASSES.get(problem, 200)
        some = X[:: max(1, len(X) // 5000)]
        squares = row_norms(some, squared=True)
        if self.how == "kernel":
            self.unit, self.gamma = 1.0, self.knobs["gamma"] / (X.shape[1] * X.var())
        elif self.how == "linear":
            self.unit = float(squares.mean())
        else:
            k = min(N_NEIGHBORS, n_anchors)
            auto = SoftAssignmentCoding(n_anchors, k, random_state=seed).fit(X)
            bandwidth = self.knobs["bandwidth"] * auto.bandwidth_
            self.coding = SoftAssignmentCoding(n_anchors, k, bandwidth, auto.anchors_).fit(X)
            of_codes = row_norms(self.coding.transform(some), squared=True)
            self.unit = float(np.mean(of_codes * (1.0 if "lcc" in self.how else squares)))

    def learner(self, factor: float, **changed: Any) -> Any:
        """Return the unfitted model of this strength."""
        C, alpha, seed = 1 / (factor * self.unit), factor * self.unit / self.n, self.seed
        if self.how == "kernel":
            # hopeless settings, wide kernels with a huge C, would take hours
            return SVC(C=C, gamma=self.gamma, cache_size=1000, max_iter=1_000_000)
        if self.how == "linear":
            return LinearSVC(C=C, loss=self.knobs["loss"], dual=True, random_state=seed)
        if self.how == "lcc":
            return LinearSVC(C=C, dual=True, random_state=seed)
        common = {"alpha": alpha, "random_state": seed, "tol": 1e-4, "max_iter": self.passes}
        if self.how == "llsvm":
            return LLSVMClassifier(FrozenEstimator(self.coding), **common | changed)
        weights = "constant" if self.how == "sapl lcc" else "linear"
        start, k = self.coding.anchors_, self.coding.n_neighbors
        return SAPLClassifier(
            len(start), k, anchors=start, weights=weights, bandwidth=self.coding.bandwidth_,
            anchor_lr=self.knobs["anchor_lr"], **common | changed,
        )  # fmt: skip

    def seen(self, X: Any) -> Any:
        """Return what the learner sees."""
        return self.coding.transform(X) if self.how == "lcc" else X


def fold_errors(row: Row, problem: str, X: Any, y: Any, fold: Any, case: Case,
                ks: Any) -> list[float]:  # fmt: skip
    """Errors of one fold at each strength."""
    train, test = fold
    scaler = PREPARE[case[0]]().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    system = System(row, problem, A, y[train], case[1], 0)
    A, B = system.seen(A), system.seen(B)
    models = (system.learner(10 ** (k / 2)).fit(A, y[train]) for k in ks)
    return [100 * (1 - model.score(B, y[test])) for model in models]


def problem_of(name: str, split: int = 0) -> Problem:
    """Load a set; Banana is split by the seed."""
    if name == "sine":
        X, y = make_sine(2000, random_state=0)
        X_test, y_test = make_sine(20_000, random_state=1)
        return Problem(name, X, y, X_test, y_test, len(X))
    if name != "banana":
        return problem_named(name)
    data = load(name)
    X, X_test, y, y_test = train_test_split(
        data.X_train.astype(np.float32), data.y_train, test_size=1 / 3, stratify=data.y_train,
        random_state=split,
    )  # fmt: skip
    return Problem(f"banana/{split}", X, y, X_test, y_test, len(X))


def settings_of(name: str, problem: Problem) -> dict[str, Any]:
    """Collect what a stored result must agree in to be used again."""
    row, base = ROWS[name], problem.name.split("/")[0]
    return {
        "how": row.how, "knobs": row.knobs, "prepare": list(PREPARE), "coarse": COARSE,
        "limits": LIMITS, "folds": FOLDS, "cv_rows": SUBSET,
        "passes": PASSES.get(base, 200), "anchors": [N_ANCHORS.get(base, 100), N_NEIGHBORS],
        "shape": problem.X.shape,
    }  # fmt: skip


def choice_of(name: str, problem: Problem, cache: Cache, jobs: int) -> dict[str, Any]:
    """Choose by cross-validation, or take what is stored."""
    row, settings = ROWS[name], settings_of(name, problem)
    key = f"{problem.name} | {name} | choice"

    def choose() -> dict[str, Any]:
        X, y = subset(problem.X, problem.y)
        errors, notes = partial(fold_errors, row, problem.name), cache.notes(key, settings)
        search = Search(errors, X, y, jobs, notes)
        options = {"loss": ("squared_hinge", "hinge")} if row.how == "linear" else {}
        return search.choose(list(PREPARE), row.knobs, options)

    return cache(key, settings, choose)


def prepared(problem: Problem, choice: dict[str, Any]) -> tuple[Any, Any]:
    """Training and test rows as the choice wants them."""
    scaler = PREPARE[choice["prepare"]]().fit(problem.X)
    return scaler.transform(problem.X), scaler.transform(problem.X_test)


def accuracy(row: Row, problem: Problem, choice: Any, seed: int,
             n_anchors: int | None = None) -> list[float]:  # fmt: skip
    """Test accuracy in percent, and processor seconds of the fit."""
    A, B = prepared(problem, choice)
    start = time.process_time()
    system = System(row, problem.name, A, problem.y, choice["knobs"], seed, n_anchors)
    model = system.learner(10 ** (choice["k"] / 2)).fit(system.seen(A), problem.y)
    seconds = time.process_time() - start
    return [100 * float(model.score(system.seen(B), problem.y_test)), seconds]


def table_2(name: str, names: list[str], options: Any, cache: Cache) -> None:
    """Choose, fit and print, system by system."""
    seeds = options.seeds or SEEDS.get(name, 10)
    for system in names:
        found: list[list[float]] = []
        for split in range(seeds if name == "banana" else 1):
            problem = problem_of(name, split)
            choice = choice_of(system, problem, cache, options.jobs)
            print(f"{problem.name}, {system}: {shown_choice(choice)}", flush=True)
            runs = 1 if name == "banana" or ROWS[system].how in SEEDLESS else seeds
            settings = settings_of(system, problem) | {"choice": choice, "runs": runs}
            key = f"{problem.name} | {system} | test"
            run = partial(accuracy, ROWS[system], problem, choice)
            found += each_seed(cache, key, settings, run, range(split, split + runs), options.jobs)
        print(line_of(name, system, np.array(found), len(problem.y_test)), flush=True)


def line_of(name: str, system: str, found: NDArray[Any], n_test: int) -> str:
    """Mean, deviation, and where the paper is."""
    of_set = SETS.index(name)
    paper, kernel = (ROWS[row].paper[of_set] for row in (system, "Kernel SVM"))
    mean, runs = found[:, 0].mean(), len(found)
    std = found[:, 0].std(ddof=1) if runs > 1 else 0.0
    gap, error, chance = mean - paper, std / np.sqrt(runs), np.sqrt(mean * (100 - mean) / n_test)
    within = "one standard error of the seeds", "one standard error of the test split"
    kind = "at or above" if gap >= 0 else "below"
    if gap < 0 and -gap <= max(error, chance):
        kind = f"below, within {within[int(-gap > error)]}"
    return (
        f"  {name}, {system}: {mean:.2f} +- {std:.2f} % ({runs} fits; s.e. {error:.2f}, of the "
        f"test split {chance:.2f}); paper {paper:.2f}: {kind} ({gap:+.2f}); its kernel SVM "
        f"{kernel:.2f} ({mean - kernel:+.2f}); fit {found[:, 1].mean():.1f} s"
    )


def seconds_of(call: Callable[[], Any], repeats: int = 5) -> float:
    """Least wall time of some calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def bare_products(model: Any, X: Any) -> None:
    """Multiply what a prediction needs, in blocks: distances, and all local scores once."""
    W = model.local_coef_.reshape(-1, X.shape[1])
    few = len(W) * N_NEIGHBORS // len(model.anchors_)  # as many products as k of the m models make
    for first in range(0, len(X), 512):
        block = X[first : first + 512]
        block @ model.anchors_.T
        block @ W[:few].T


def predictions(name: str, cache: Cache, jobs: int) -> dict[str, Any]:
    """Prediction seconds of the chosen SVC and LLC-SAPL, seed 0, one thread."""
    problem, models, rows = problem_of(name), {}, {}
    for system in ("Kernel SVM", "LLC-SAPL"):
        choice = choice_of(system, problem, cache, jobs)
        A, rows[system] = prepared(problem, choice)
        made = System(ROWS[system], problem.name, A, problem.y, choice["knobs"], 0)
        models[system] = made.learner(10 ** (choice["k"] / 2)).fit(A, problem.y)
    kernel, sapl = models["Kernel SVM"], models["LLC-SAPL"]
    X = np.ascontiguousarray(rows["LLC-SAPL"])
    sapl.predict(X[:100])
    ours = seconds_of(lambda: sapl.predict(X))
    bare = seconds_of(lambda: bare_products(sapl, X))
    few = rows["Kernel SVM"][:2000]  # the kernel's time a row is the same for every row
    theirs = seconds_of(lambda: kernel.predict(few), 2) * len(X) / len(few)
    errors = {s: 100 * (1 - models[s].score(rows[s], problem.y_test)) for s in models}
    return {"errors": errors, "support vectors": len(kernel.support_), "bare": bare, "ours": ours,
            "kernel": theirs, "n_test": len(X)}  # fmt: skip


def table_3(name: str, options: Any, cache: Cache) -> None:
    """Print prediction times."""
    problem = problem_of(name)
    chosen = {s: choice_of(s, problem, cache, options.jobs) for s in ("Kernel SVM", "LLC-SAPL")}
    found = cache(
        f"{name} | table 3", settings_of("LLC-SAPL", problem) | {"choices": chosen},
        lambda: quiet(predictions)(name, cache, options.jobs),
    )  # fmt: skip
    print(
        f"{name}, {found['n_test']:,} rows: LLC-SAPL {found['errors']['LLC-SAPL']:.2f} %, "
        f"{found['ours']:.4f} s, {found['ours'] / found['bare']:.2f} x its bare products; SVC "
        f"{found['errors']['Kernel SVM']:.2f} %, {found['support vectors']:,} support vectors, "
        f"{found['kernel']:.2f} s, {found['kernel'] / found['ours']:.0f} x LLC-SAPL (paper: "
        f"{RATIOS[name]} x)",
        flush=True,
    )


def main(arguments: list[str] | None = None) -> None:
    """Run a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["table2", "table3"])
    parser.add_argument("sets", nargs="*", choices=[[], *SETS], default=[])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), metavar="ROW")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    cache = Cache(options.json)
    for name in options.sets or SETS:
        if options.what == "table2":
            table_2(name, options.rows or list(ROWS), options, cache)
        else:
            table_3(name, options, cache)


if __name__ == "__main__":
    main()
