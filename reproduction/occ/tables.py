"""Table 2 of Learning anchor planes for classification (Zhang et al., 2011).

Everything is chosen by 5-fold cross-validation on the training split: preprocessing and strength
(from a coarse grid), then the loss, where the anchors come from, the coding's own knobs one by one,
and a finer strength; a best value at the edge of a grid makes the grid grow. The strength is a
factor in half decades of the mean squared norm of the implicit features, intercepts left out:
alpha = factor * norm^2 / n. Sets of more than 10,000 rows choose on so many (`SUBSET`). The test
split is used by the final fits only, one for each seed.

MNIST: on the first 40,000 training rows, as in the paper.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.svm import LinearSVC
from sklearn.utils.extmath import row_norms

from loclin import LLSVMClassifier
from loclin.codings import (
    InverseDistanceCoding,
    LLCCoding,
    LocalCoordinateCoding,
    OrthogonalCoding,
    TangentCoding,
)
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
from reproduction.data import Problem
from reproduction.quick import sized
from reproduction.store import Cache, Notes

SEEDS = sized(5, quick=1)
COUNTED = {"mnist": 40_000}  # the paper's training rows
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
    """A system: its coding, and for each set the planes or anchors."""

    how: str
    coding: Callable[..., Any] | None
    planes: dict[str, int]
    knobs: tuple[Knob, ...] = ()
    like: str | None = None  # starts from this row's choice, and keeps its preprocessing


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


def planes(mnist: int, usps: int, letter: int) -> dict[str, int]:
    """Planes on each set, in the order of the paper's columns."""
    return {"mnist": mnist, "usps": usps, "letter": letter}


def anchors(n: int) -> dict[str, int]:
    """As many anchors on every set."""
    return planes(n, n, n)


LLC, LCC = "Linear SVM + LLC (512)", "Linear SVM + LCC (512)"
IMPROVED = "Linear SVM + improved LCC (512)"
LLC_KNOBS = (Knob("n_neighbors", 5, 2, 2, 40), Knob("regularization", 1e-4, 100, 1e-8, 1))
LCC_KNOBS = (Knob("locality", 0.1, 3, 0.01, 3),)
TANGENTS = (Knob("n_tangents", 16, 2, 8, 64), Knob("scale", 1.0, 3, 0.01, 100))
# fmt: off
ROWS = {
    "Linear SVM": Row("raw", None, planes(0, 0, 0)),
    "Linear SVM + G-OCC": Row("codes", g_occ, planes(100, 95, 15)),
    "Linear SVM + C-OCC": Row("class codes", c_occ, planes(100, 95, 16)),
    "LIB-LLSVM + G-OCC": Row("lib", g_occ, planes(50, 20, 15)),
    "PEG-LLSVM + G-OCC": Row("peg", g_occ, planes(40, 50, 14)),
    "LIB-LLSVM + C-OCC": Row("lib", c_occ, planes(90, 80, 16)),
    "PEG-LLSVM + C-OCC": Row("peg", c_occ, planes(90, 80, 16)),
    "LL-SVM": Row("llsvm", inverse_distance, anchors(100)),
    LLC: Row("codes", llc, anchors(512), LLC_KNOBS),
    "Linear SVM + LLC (4096)": Row("codes", llc, anchors(4096), like=LLC),
    LCC: Row("codes", lcc, {"mnist": 512}, LCC_KNOBS),
    IMPROVED: Row("codes", tangents, {"mnist": 512}, TANGENTS, LCC),
    "Linear SVM + LCC (4096)": Row("codes", lcc, {"mnist": 4096}, (), LCC),
    "Linear SVM + improved LCC (4096)": Row("codes", tangents, {"mnist": 4096}, (), IMPROVED),
    # Not the paper's: what the bias of each plane, which LIB-LLSVM leaves out, is worth.
    "LIB-LLSVM + G-OCC, local biases": Row("lib local", g_occ, planes(50, 20, 15)),
    "LIB-LLSVM + C-OCC, local biases": Row("lib local", c_occ, planes(90, 80, 16)),
}
# fmt: on
VARIANTS = list(ROWS)[-2:]


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
                               random_state=self.seed, **options, standardize=False)  # fmt: skip


def passes_of(n: int) -> int:
    """Give the passes of PEG-LLSVM: 1e6 rows, as in the paper, but at most 150 passes."""
    return sized(min(150, max(10, round(1e6 / n))), quick=5)


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


def choice_of(name: str, problem: Problem, cache: Cache) -> dict[str, Any]:
    """Choose by cross-validation, or take what is stored."""
    row, size = ROWS[name], ROWS[name].planes[problem.name]
    start = choice_of(row.like, problem, cache) if row.like else None
    settings = settings_of(name, problem, size) | {"start": start}
    key = f"{problem.name} | {name} | choice"

    def choose() -> dict[str, Any]:
        return chosen_by(search_for(row, problem, size, cache.notes(key, settings)), row, start)

    return cache(key, settings, choose)


def search_for(row: Row, problem: Problem, size: int, notes: Notes) -> Search:
    """Search on the rows for cross-validation."""
    counted = problem.counted
    X, y = subset(problem.X[:counted], problem.y[:counted])
    return Search(partial(fold_errors, row, size, passes_of(counted)), X, y, notes)


def chosen_by(search: Search, row: Row, start: dict[str, Any] | None) -> dict[str, Any]:
    """Choose for a row of the table; `start` is the choice of the row that it follows."""
    prepares = list(PREPARE)
    if row.coding in (llc, lcc, tangents) and not start:
        prepares.remove("unit rows, centre")  # their codes do not see where the origin is
    return search.choose(prepares, row.knobs, options_of(row), start)


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


def n_seeds(row: Row) -> int:
    """At most two where only the order of the rows is random."""
    few = row.how in DETERMINISTIC or (row.how, row.coding) == ("codes", g_occ)
    return min(SEEDS, 2) if few else SEEDS


def runs_of(name: str, problem: Problem, cache: Cache) -> list[list[float]]:
    """Error, fit and prediction seconds of every seed, on the counted training rows."""
    row, n = ROWS[name], problem.counted
    size, seeds, choice = row.planes[problem.name], n_seeds(row), choice_of(name, problem, cache)
    settings = settings_of(name, problem, size) | {"choice": choice, "seeds": seeds}
    run = partial(final_fit, row, size, problem, n, choice)
    return cache.each(f"{problem.name} | {name} | n={n}", settings, range(seeds), run)
