"""Figures 1 to 3 of LLC-SAPL: boundaries on two sine signals, accuracy by anchors, by epochs.

With the choices of Table 2, and one seed where nothing else is said. Figure 1 has four anchors and
chooses on the training signals.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from reproduction.choices import PREPARE
from reproduction.data import Problem
from reproduction.quick import sized
from reproduction.sapl.tables import (
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
from reproduction.shapes import grid_of, lines, maps, panel
from reproduction.store import Cache

M = sized((2, 5, 10, 20, 40, 60, 80, 100, 140, 180), quick=(2, 40))
EPOCHS = sized(20, quick=3)
SEEDS = sized(10, quick=1)  # of Figure 1
ON_SINE, BY_ANCHORS = ("LLSVM", "LLC-SAPL", "Kernel SVM"), ("LLSVM", "LLC-SAPL")
BY_EPOCHS = ("LLC-SAPL", "LLC-SAPL_lcc")


def on_the_sine(row: Row, problem: Problem, choice: Any, points: Any) -> dict[str, Any]:
    """Errors of the seeds; of seed 0 a map, with the anchors or support vectors."""
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
    what = "vectors" if row.how == "kernel" else "anchors"
    title = f"{np.mean(errors):.2f} % error, {len(marked)} {what}"
    found = model.predict(scaler.transform(points))
    return panel(title, found, marked=np.round(marked, 3).tolist(), errors=errors)


def figure_1(cache: Cache) -> dict[str, Any]:
    """Three systems on the sine signals."""
    problem, panels = problem_of("sine"), []
    box, points = grid_of(problem.X)
    for name in ON_SINE:
        choice = choice_of(name, problem, cache)
        found = cache(
            f"sine | {name} | figure 1",
            settings_of(name, problem) | {"choice": choice, "seeds": SEEDS},
            partial(on_the_sine, ROWS[name], problem, choice, points),
        )  # fmt: skip
        panels.append(found | {"title": f"{name}, {found['title']}"})
    return maps(box, problem.X[::2], problem.y[::2], panels)


def figure_2(name: str, cache: Cache) -> dict[str, Any]:
    """Test accuracy by anchors, k clipped to m."""
    problem, curves = problem_of(name), {}
    for system in BY_ANCHORS:
        choice = choice_of(system, problem, cache)
        curves[system] = cache(
            f"{problem.name} | {system} | figure 2",
            settings_of(system, problem) | {"choice": choice, "m": M},
            lambda system=system, choice=choice: [
                accuracy(ROWS[system], problem, choice, 0, m)[0] for m in M
            ],
        )  # fmt: skip
    return lines(M, curves, "anchors", "test accuracy, %")


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
    """Objective, in % of that after the first epoch, and accuracy by epoch."""
    problem, curves = problem_of(name), {}
    for system in BY_EPOCHS:
        choice = choice_of(system, problem, cache)
        found = cache(
            f"{problem.name} | {system} | figure 3",
            settings_of(system, problem) | {"choice": choice, "epochs": EPOCHS},
            partial(epochs, ROWS[system], problem, choice, EPOCHS),
        )  # fmt: skip
        objective, test = np.transpose(found)
        curves[f"{system}, accuracy"] = test.tolist()
        curves[f"{system}, objective (100: at first)"] = (100 * objective / objective[0]).tolist()
    return lines(range(1, EPOCHS + 1), curves, "epochs", "%")
