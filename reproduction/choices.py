"""Choices by cross-validation on the training split: grids that grow, results that are kept.

The strength of a penalty is a factor, in half decades, of the mean squared norm of the implicit
features, intercepts left out: alpha = 10^(k/2) * norm^2 / n. A best value at the edge of a grid
makes the grid grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from reproduction.quick import sized
from reproduction.store import Notes

PREPROCESSING: dict[str, Any] = {
    "standardise": StandardScaler,
    "centre, unit rows": lambda: make_pipeline(StandardScaler(with_std=False), Normalizer()),
    "unit rows, centre": lambda: make_pipeline(Normalizer(), StandardScaler(with_std=False)),
}
PREPARE = sized(
    {"raw": FunctionTransformer, "unit rows": Normalizer, **PREPROCESSING},
    quick={name: PREPROCESSING[name] for name in ("standardise", "unit rows, centre")},
)
COARSE = sized((-4, -2, 0), quick=(-3,))  # half decades: factors 0.01, 0.1, 1
LIMITS = sized((-10, 6), quick=(-4, -2))
FOLDS = sized(5, quick=2)
SUBSET = 10_000  # training rows that choose, at most
Case = tuple[str, tuple[tuple[str, Any], ...]]  # preprocessing, knobs


class Knob(NamedTuple):
    """A parameter of a system, searched in steps of `ratio` from `start`; if quick, not at all."""

    name: str
    start: float
    ratio: float
    low: float
    high: float


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
    notes : Notes
        Where the errors of a fold are kept as they come.
    """

    def __init__(
        self, fold_errors: Callable[..., list[float]], X: Any, y: Any, notes: Notes
    ) -> None:
        self.fold_errors, self.X, self.y, self.notes = fold_errors, X, y, notes
        self.folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
        self.errors: dict[tuple[Case, int], float] = {}
        self.grown: list[str] = []

    def evaluate(self, wanted: dict[Case, tuple[int, ...]]) -> None:
        """Fill in the errors wanted; a task is a case on a fold, with all its strengths."""
        new = {c: [k for k in ks if (c, k) not in self.errors] for c, ks in wanted.items()}
        new = {case: ks for case, ks in new.items() if ks}
        found = self.notes.results(
            [(case, ks, i) for case, ks in new.items() for i in range(FOLDS)],
            lambda task: self.fold_errors(self.X, self.y, self.folds[task[2]], *task[:2]),
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
        for knob in sized(knobs, quick=()):
            case, k = self.knob(knob, case, k)
        case, k = self.strengths([case], (k - 1, k, k + 1), 1)
        return {"prepare": case[0], "knobs": dict(case[1]), "k": k,
                "cv_error": self.errors[case, k], "cv_rows": len(self.X),
                "cases": len(self.errors), "grown": self.grown}  # fmt: skip
