"""Tables 2 and 3 of LLC-SAPL (Mao et al., 2015): 100 anchors, 8 of them a row.

Everything is chosen by 5-fold cross-validation on the training split: preprocessing and strength,
the width of the code or the kernel, the step of the anchors, and a finer strength (`choices`). Sets
of more than 10,000 rows choose on so many. The test split is used by the final fits only, one for
each seed. Banana has no test split: each seed draws its own, a third of the rows, and chooses anew
on the rest.

LCC+SVM is a linear SVM on the localised soft assignment that the other systems use, which is what
the model becomes with fixed anchors and W = 0; the bandwidth is a factor of "auto" of the coding.

SVM-KNN, CSVM and LDKL are loclin's, with its tolerances; they choose neighbours, clusters or depth
in place of a width, SVM-KNN one strength for all neighbourhoods. They take LLSVM's preprocessing,
and choose on at most 5,000 rows (MNIST: 2,500).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.extmath import row_norms

from loclin import (
    CSVMClassifier,
    LDKLClassifier,
    LLSVMClassifier,
    SAPLClassifier,
    SVMKNNClassifier,
)
from loclin.codings import SoftAssignmentCoding
from loclin.datasets import make_sine
from reproduction.choices import (
    COARSE,
    FOLDS,
    LIMITS,
    PREPARE,
    SUBSET,
    Case,
    Knob,
    Search,
    subset,
)
from reproduction.data import Problem, load, problem_named
from reproduction.quick import sized
from reproduction.store import Cache

N_ANCHORS, N_NEIGHBORS = {"sine": 4}, 8  # else 100 anchors
SEEDS = sized(10, quick=1)
MNIST_SEEDS = sized(3, quick=1)
PASSES = sized(200, quick=5)  # at most: they end when the objective stays
MNIST_PASSES = sized(40, quick=5)
BANDWIDTH = Knob("bandwidth", 1.0, 2, 1 / 64, 64)
STEP = Knob("anchor_lr", 1.0, 2, 1 / 4, 4)
GAMMA = Knob("gamma", 1.0, 2, 1 / 64, 64)


@dataclass(frozen=True)
class Row:
    """A system, and what is searched besides the strength."""

    how: str
    knobs: tuple[Knob, ...] = ()


ROWS = {
    "Linear SVM": Row("linear"),
    "Kernel SVM": Row("kernel", (GAMMA,)),
    "LLSVM": Row("llsvm", (BANDWIDTH,)),
    "LLC-SAPL": Row("sapl", (BANDWIDTH, STEP)),
    "LCC+SVM": Row("lcc", (BANDWIDTH,)),
    "LLC-SAPL_lcc": Row("sapl lcc", (BANDWIDTH, STEP)),
    "SVM-KNN": Row("svm-knn", (Knob("n_neighbors", 40, 2, 5, 640),)),
    "CSVM": Row(
        "csvm", (Knob("n_clusters", 32, 2, 2, 256), Knob("global_penalty", 0.5, 4, 1e-3, 100))
    ),
    "LDKL": Row("ldkl", (Knob("depth", 4, 1.3, 2, 8),)),
}
SEEDLESS = ("linear", "kernel", "svm-knn")
RIVALS = ("SVM-KNN", "CSVM", "LDKL")
RIVAL_SUBSET, MNIST_SUBSET = 5_000, 2_500  # rows that they choose on


def cv_rows_of(name: str, problem: str) -> int:
    """Give the most rows that a system chooses on."""
    if name not in RIVALS:
        return SUBSET
    return MNIST_SUBSET if problem == "mnist" else RIVAL_SUBSET


def passes_of(problem: str) -> int:
    """Give the most passes of a fit."""
    return MNIST_PASSES if problem == "mnist" else PASSES


class System:
    """A row's model on prepared training rows, with everything chosen but the strength."""

    def __init__(self, row: Row, problem: str, X: Any, y: Any, knobs: Any, seed: int,
                 n_anchors: int | None = None) -> None:  # fmt: skip
        n_anchors = n_anchors or N_ANCHORS.get(problem, 100)
        self.how, self.seed, self.n, self.knobs = row.how, seed, len(y), dict(knobs)
        self.passes = passes_of(problem)
        some = X[:: max(1, len(X) // 5000)]
        squares = row_norms(some, squared=True)
        if self.how == "kernel":
            self.unit, self.gamma = 1.0, self.knobs["gamma"] / (X.shape[1] * X.var())
        elif self.how in ("linear", "svm-knn"):
            self.unit = float(squares.mean())
        elif self.how == "csvm":  # a row, and the row over the root of the penalty
            self.unit = float(squares.mean() * (1 + 1 / self.knobs["global_penalty"]))
        elif self.how == "ldkl":  # the nodes on a path
            self.unit = float(squares.mean() * (1 + self.knobs["depth"]))
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
        if self.how == "svm-knn":
            n_neighbors = self.knobs["n_neighbors"]
            alpha = factor * self.unit / n_neighbors
            return SVMKNNClassifier(n_neighbors, alpha=alpha, standardize=False)
        if self.how in ("csvm", "ldkl"):
            kind = CSVMClassifier if self.how == "csvm" else LDKLClassifier
            return kind(**self.knobs, alpha=alpha, max_iter=self.passes, calibrate=False,
                        random_state=seed)  # fmt: skip
        common = {"alpha": alpha, "random_state": seed, "tol": 1e-4, "max_iter": self.passes}
        if self.how == "llsvm":
            return LLSVMClassifier(
                FrozenEstimator(self.coding), **common | changed, standardize=False
            )
        weights = "constant" if self.how == "sapl lcc" else "linear"
        start, k = self.coding.anchors_, self.coding.n_neighbors
        return SAPLClassifier(
            len(start), k, anchors=start, weights=weights, bandwidth=self.coding.bandwidth_,
            anchor_lr=self.knobs["anchor_lr"], metric=None, **common | changed,
        standardize=False)  # fmt: skip

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
        "limits": LIMITS, "folds": FOLDS, "cv_rows": cv_rows_of(name, base),
        "passes": passes_of(base), "anchors": [N_ANCHORS.get(base, 100), N_NEIGHBORS],
        "shape": problem.X.shape,
    }  # fmt: skip


def choice_of(name: str, problem: Problem, cache: Cache) -> dict[str, Any]:
    """Choose by cross-validation, or take what is stored."""
    row, settings, start = ROWS[name], settings_of(name, problem), None
    key = f"{problem.name} | {name} | choice"
    if name in RIVALS:
        start = {"prepare": choice_of("LLSVM", problem, cache)["prepare"], "knobs": {}}
        settings |= {"start": start}

    def choose() -> dict[str, Any]:
        X, y = subset(problem.X, problem.y, cv_rows_of(name, problem.name))
        search = Search(partial(fold_errors, row, problem.name), X, y, cache.notes(key, settings))
        options = {"loss": ("squared_hinge", "hinge")} if row.how == "linear" else {}
        return search.choose(list(PREPARE), row.knobs, options, start)

    return cache(key, settings, choose)


def prepared(problem: Problem, choice: dict[str, Any]) -> tuple[Any, Any]:
    """Training and test rows as the choice wants them."""
    scaler = PREPARE[choice["prepare"]]().fit(problem.X)
    return scaler.transform(problem.X), scaler.transform(problem.X_test)


def accuracy(row: Row, problem: Problem, choice: Any, seed: int,
             n_anchors: int | None = None) -> list[float]:  # fmt: skip
    """Test accuracy in percent, and processor seconds of the fit and of the prediction."""
    A, B = prepared(problem, choice)
    start = time.process_time()
    system = System(row, problem.name, A, problem.y, choice["knobs"], seed, n_anchors)
    model = system.learner(10 ** (choice["k"] / 2)).fit(system.seen(A), problem.y)
    fitted = time.process_time()
    found = model.predict(system.seen(B))
    seconds = fitted - start, time.process_time() - fitted
    return [100 * float(np.mean(found == problem.y_test)), *seconds]


def runs_of(name: str, data: str, cache: Cache) -> list[list[float]]:
    """Accuracy and seconds (of a rival's prediction too) of every run of a system on a set."""
    row, found = ROWS[name], []
    seeds = MNIST_SEEDS if data == "mnist" else SEEDS
    for split in range(seeds if data == "banana" else 1):
        problem = problem_of(data, split)
        choice = choice_of(name, problem, cache)
        runs = 1 if data == "banana" or row.how in SEEDLESS else seeds
        settings = settings_of(name, problem) | {"choice": choice, "runs": runs}
        key, run = f"{problem.name} | {name} | test", partial(accuracy, row, problem, choice)
        found += cache.each(key, settings, range(split, split + runs), run)
    return found


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


def predictions(problem: Problem, choices: dict[str, Any]) -> dict[str, Any]:
    """Prediction seconds of the chosen SVC and LLC-SAPL, seed 0, one thread."""
    models, rows = {}, {}
    for system, choice in choices.items():
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


def table_3(data: str, cache: Cache) -> dict[str, Any]:
    """Prediction times with the choices of table 2."""
    problem = problem_of(data)
    chosen = {s: choice_of(s, problem, cache) for s in ("Kernel SVM", "LLC-SAPL")}
    settings = settings_of("LLC-SAPL", problem) | {"choices": chosen}
    return cache(f"{data} | table 3", settings, partial(predictions, problem, chosen))
