"""Error of LDKL by depth against prediction time and bytes, beside ML3's and LLC-SAPL's by size.

Preprocessing and strength are those that ML3's Table 1 and SAPL's Table 2 chose on training rows,
ML3's of IJCNN1 chosen alike; the strength is in units of the features' norm, and so fits any size.
One seed. MNIST: 10,000 training rows.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from reproduction.choices import PREPARE, SUBSET, subset
from reproduction.data import Problem, problem_named
from reproduction.entry import Entry
from reproduction.ml3 import tables as ml3
from reproduction.quick import sized
from reproduction.sapl import tables as sapl
from reproduction.shapes import points
from reproduction.store import Cache

DEPTHS, ANCHORS, MODELS = sized(
    ((2, 3, 4, 5, 6, 7), (10, 30, 100, 300), (2, 5, 10, 20, 50)), quick=((1, 2), (2, 4), (1, 2))
)
SIZES = {"LDKL": DEPTHS, "LLC-SAPL": ANCHORS, "ML3": MODELS}
MINUTES = {"ijcnn1": 4, "letter": 4, "mnist": 8}
REPEATS = 5
AGAINST = {"microseconds a row": 1, "kB": 2}


def learner(system: str, size: int, problem: Problem, choice: dict[str, Any], A: Any) -> Any:
    """Return the unfitted model of this size."""
    factor = 10 ** (choice["k"] / 2)
    if system == "ML3":
        made: Any = ml3.System(ml3.ROWS[system], size, {}, A, problem.y, 0)
    else:
        knobs = choice["knobs"] | ({"depth": size} if system == "LDKL" else {})
        row = sapl.ROWS[system]
        made = sapl.System(row, problem.name, A, problem.y, knobs, 0, n_anchors=size)
    return made.learner(factor).set_params(calibrate=False)


def measured(system: str, problem: Problem, choice: dict[str, Any], size: int) -> list[float]:
    """Test error in percent, microseconds of the processor a row, kilobytes of the model."""
    scaler = PREPARE[choice["prepare"]]().fit(problem.X)
    A, B = scaler.transform(problem.X), scaler.transform(problem.X_test)
    model = learner(system, size, problem, choice, A).fit(A, problem.y)
    found, seconds = model.predict(B), []
    for _ in range(REPEATS):
        start = time.process_time()
        model.predict(B)
        seconds.append(time.process_time() - start)
    error = 100 * float(np.mean(found != problem.y_test))
    return [error, 1e6 * min(seconds) / len(B), len(pickle.dumps(model)) / 1e3]


def choice_of(system: str, problem: Problem, cache: Cache) -> dict[str, Any]:
    """Return what the tables of ML3 and of SAPL have chosen."""
    tables, paper = (ml3, "ml3") if system == "ML3" else (sapl, "sapl")
    found: dict[str, Any] = tables.choice_of(system, problem, Cache(cache.path.parent / paper))
    return found


def panel(name: str, against: str, cache: Cache) -> dict[str, Any]:
    """Errors by system and size; and which of them no other beats in both."""
    whole, curves = problem_named(name), {}
    X, y = subset(whole.X, whole.y, SUBSET if name == "mnist" else len(whole.X))
    problem = whole._replace(X=X, y=y)
    for system, sizes in SIZES.items():
        choice = choice_of(system, whole, cache)
        settings = {"choice": choice, "sizes": sizes, "shape": problem.X.shape}
        found = cache.each(f"{name} | {system} | by size", settings, sizes,
                           partial(measured, system, problem, choice))  # fmt: skip
        curves[system] = [[one[AGAINST[against]], one[0]] for one in found]
    return points(curves, against, "test error, %") | {"front": front(curves)}


def front(curves: dict[str, list[list[float]]]) -> list[str]:
    """Return the systems and sizes that none is below in both, by cost."""
    every = [(cost, error, f"{system} {size}") for system, curve in curves.items()
             for size, (cost, error) in zip(SIZES[system], curve, strict=True)]  # fmt: skip
    return [name for cost, error, name in sorted(every)
            if not any(c <= cost and e <= error and (c, e) != (cost, error)
                       for c, e, _ in every)]  # fmt: skip


def entries() -> Iterator[Entry]:
    """Yield the entries."""
    for against in AGAINST:
        for name, minutes in MINUTES.items():
            run = partial(panel, name, against)
            yield Entry("ldkl", "figure 1", f"{name}, {against}", "curves", run, minutes, 3)
