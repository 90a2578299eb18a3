"""Figures 1 and 3 to 6 of L3M.

1: decision regions on Banana. 3: which solver separates two pictures. 4, 5: online training on XOR.
6: error against multiplications. Figures 3 and 6 are computed by `costs`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from loclin import L3MClassifier
from loclin.datasets import make_xor
from reproduction.l3m import costs
from reproduction.l3m.as_printed import as_printed, corrected
from reproduction.l3m.tables import ROWS, choice_of, fitted, problem_of, untrained
from reproduction.quick import sized
from reproduction.shapes import grid_of, lines, maps, panel, points
from reproduction.store import Cache

SEEN = sized((50, 100, 200, 500, 1000, 2000, 5000), quick=(50, 100))
SEEDS, STD = sized(10, quick=2), 0.25


def decision_regions(cache: Cache) -> dict[str, Any]:
    """Fit four systems on the 400 rows of Banana's first split, with the choices of Table 2."""
    problem, chosen = problem_of("banana"), {}
    for name in ("L3M, refined", "RBF SVM"):
        chosen[name] = choice_of(ROWS[name], problem, f"{problem.name} | {name}", cache)

    def model(name: str) -> Any:
        if name in chosen:
            return fitted(ROWS[name], problem, chosen[name], 0)[0]
        return untrained(name, 0).fit(problem.X, problem.y)

    def compute() -> dict[str, Any]:
        box, places = grid_of(problem.X)
        classes = np.unique(problem.y)
        names = ("L3M, refined", "AdaBoost, stumps", "tree", "RBF SVM")
        found = {name: np.searchsorted(classes, model(name).predict(places)) for name in names}
        return maps(box, problem.X, problem.y, [panel(*item) for item in found.items()])

    settings = {"chosen": chosen, "shape": problem.X.shape}
    return cache("figure 1 | banana | curves", settings, compute)


def errors_by_rows(cache: Cache) -> dict[str, Any]:
    """Training error on XOR by rows seen: Algorithm 1 as printed, and the library's."""

    def compute() -> dict[str, Any]:
        runs: dict[str, list[list[float]]] = {"Algorithm 1 as printed": [], "L3M, online": []}
        for seed in range(SEEDS):
            X, y = make_xor(max(SEEN), std=STD, random_state=seed)
            signs = np.where(y == y.max(), 1, -1)
            for name, errors in (
                ("Algorithm 1 as printed", as_printed(X, signs, SEEN, seed)),
                ("L3M, online", corrected(X, y, SEEN, seed)),
            ):
                runs[name].append([100 * error for error in errors])
        return runs

    curves = cache("xor | figure 4", {"seen": SEEN, "seeds": SEEDS, "std": STD}, compute)
    return lines(SEEN, curves, "rows seen", "training error, %", log_x=True)


def regions_and_decisions(cache: Cache) -> dict[str, Any]:
    """Regions and decisions that online training finds on XOR."""

    def compute() -> dict[str, Any]:
        X, y = make_xor(400, std=STD, random_state=0)
        box, places = grid_of(X)
        model = L3MClassifier(2, solver="online", random_state=0, standardize=False)
        for seed in range(5):
            model.partial_fit(*make_xor(1000, std=STD, random_state=seed), classes=np.unique(y))
        return maps(box, X, y, [panel("regions", model.regions(places)),
                                panel("decisions", model.predict(places))])  # fmt: skip

    return cache("figure 5 | xor | curves", {"std": STD}, compute)


def two_pictures(name: str, cache: Cache) -> dict[str, Any]:
    """Training errors of each solver's seeds, in order: which get down to zero."""
    found = {
        f"L3M, {solver}": sorted(costs.training_errors(name, solver, cache))
        for solver in costs.TRIED
    }
    places = range(1, costs.SEEDS + 1)
    return lines(places, found, "seed, in order", "training error, %")


def by_cost(name: str, cache: Cache) -> dict[str, Any]:
    """Test error against multiplications per prediction."""
    found = {s: costs.cost_and_error(name, s, cache) for s in costs.SYSTEMS}
    return points(found, "multiplications", "test error, %")


# Figure, set, function of a cache, minutes.
PANELS = [
    ("figure 1", "banana", decision_regions, 1.0),
    ("figure 3", "xor", partial(two_pictures, "xor"), 4.0),
    ("figure 3", "line", partial(two_pictures, "line"), 4.0),
    ("figure 4", "xor", errors_by_rows, 0.5),
    ("figure 5", "xor", regions_and_decisions, 0.1),
    ("figure 6", "segment", partial(by_cost, "segment"), 10.0),
    ("figure 6", "banana", partial(by_cost, "banana"), 5.0),
    ("figure 6", "vowel", partial(by_cost, "vowel"), 20.0),
]
