"""Figures 1 to 3 of LLC-SAPL: boundaries on two sine signals, accuracy by anchors, by epochs.

With the choices of Table 2, and one seed where nothing else is said. Figure 1 has four anchors and
chooses on the training signals. Run by ``python -m benchmarks.reproduce "sapl figure"``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.choices import PREPARE, Cache, Problem, quiet
from benchmarks.sapl_tables import (
    ROWS,
    SEEDLESS,
    Row,
    System,
    accuracy,
    choice_of,
    prepared,
    problem_of,
    settings_of,
)

M = (2, 5, 10, 20, 40, 60, 80, 100, 140, 180)
EPOCHS = 20
SEEDS = 10  # of Figure 1
GRID = 120  # points a side of Figure 1
ON_SINE, BY_ANCHORS = ("LLSVM", "LLC-SAPL", "Kernel SVM"), ("LLSVM", "LLC-SAPL")
BY_EPOCHS = ("LLC-SAPL", "LLC-SAPL_lcc")


def boundary(row: Row, problem: Problem, choice: Any, box: Any) -> dict[str, Any]:
    """Errors of the seeds; of seed 0 the signs over a grid and the anchors or support vectors."""
    seeds = range(1 if row.how in SEEDLESS else SEEDS)
    errors = [100 - accuracy(row, problem, choice, seed)[0] for seed in seeds]
    A, _ = prepared(problem, choice)
    system = System(row, "sine", A, problem.y, choice["knobs"], 0)
    model = system.learner(10 ** (choice["k"] / 2)).fit(A, problem.y)
    scaler = PREPARE[choice["prepare"]]().fit(problem.X)
    if row.how == "kernel":
        marked = problem.X[model.support_]
    else:
        marked = model.anchors_ if row.how == "sapl" else system.coding.anchors_
        if hasattr(scaler, "inverse_transform"):
            marked = scaler.inverse_transform(marked)
    axes = (np.linspace(low, high, GRID) for low, high in np.transpose(box))
    points = np.column_stack([part.ravel() for part in np.meshgrid(*axes)])
    found = model.predict(scaler.transform(points)).reshape(GRID, GRID)
    signs = ["".join("+-"[int(label)] for label in line) for line in found]
    return {"error %": errors, "marked": np.round(marked, 3).tolist(), "signs": signs}


def figure_1(cache: Cache) -> dict[str, Any]:
    """Three systems on the sine signals."""
    problem = problem_of("sine")
    box = [np.round(problem.X.min(axis=0) - 0.2, 2).tolist(),
           np.round(problem.X.max(axis=0) + 0.2, 2).tolist()]  # fmt: skip
    found = {}
    for name in ON_SINE:
        choice = choice_of(name, problem, cache, 1)
        found[name] = cache(
            f"sine | {name} | figure 1",
            settings_of(name, problem) | {"choice": choice, "seeds": SEEDS, "grid": GRID},
            lambda name=name, choice=choice: quiet(boundary)(ROWS[name], problem, choice, box),
        )  # fmt: skip
    points = [[*map(float, np.round(x, 2)), int(y)]
              for x, y in zip(problem.X[::2], problem.y[::2], strict=True)]  # fmt: skip
    return {"box": box, "points": points, "systems": found}


def figure_2(name: str, cache: Cache) -> dict[str, Any]:
    """Test accuracy by anchors, k clipped to m."""
    problem, curves = problem_of(name), {}
    for system in BY_ANCHORS:
        choice = choice_of(system, problem, cache, 1)
        curves[system] = cache(
            f"{problem.name} | {system} | figure 2",
            settings_of(system, problem) | {"choice": choice, "m": M},
            lambda system=system, choice=choice: [
                quiet(accuracy)(ROWS[system], problem, choice, 0, m)[0] for m in M
            ],
        )  # fmt: skip
    return {"anchors": M, "curves": curves}


def epochs(row: Row, problem: Problem, choice: Any, n: int) -> list[list[float]]:
    """Objective over the training rows and test accuracy, pass by pass after the start's five.

    Each pass is averaged, as the last ones of a fit are.
    """
    A, B = prepared(problem, choice)
    system = System(row, problem.name, A, problem.y, choice["knobs"], 0)
    found = []
    for n_passes in range(1, n + 1):  # the passes before are the same bits each time
        model = system.learner(10 ** (choice["k"] / 2), max_iter=n_passes, tol=0.0, average=1)
        model.fit(A, problem.y)
        signs = np.where(problem.y[:, None] == model.classes_, 1, -1)
        scores = model.decision_function(A)
        margins = signs[:, 1] * scores if scores.ndim == 1 else signs * scores
        losses = np.maximum(0, 1 - margins).reshape(len(A), -1).sum(axis=1)
        weights = model.local_intercept_ if row.how == "sapl lcc" else model.local_coef_
        penalty = model.alpha_ / 2 * float(np.sum(np.square(weights, dtype=float)))
        found.append([penalty + float(losses.mean()), 100 * model.score(B, problem.y_test)])
    return found


def figure_3(name: str, cache: Cache) -> dict[str, Any]:
    """Objective and accuracy by epoch, of LLC-SAPL with linear and constant models."""
    problem, curves = problem_of(name), {}
    for system in BY_EPOCHS:
        choice = choice_of(system, problem, cache, 1)
        curves[system] = cache(
            f"{problem.name} | {system} | figure 3",
            settings_of(system, problem) | {"choice": choice, "epochs": EPOCHS},
            lambda system=system, choice=choice: quiet(epochs)(
                ROWS[system], problem, choice, EPOCHS
            ),
        )  # fmt: skip
    return {"curves": curves}
