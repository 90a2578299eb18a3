"""Figures 1 to 3 of ML3: codes as colours, p by number of models, errors by epoch, by models.

With the choices of Table 1; their strength is in units of the squared norm, and so fits any number
of models. Figure 3 is on other features than the paper's, which are not at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from loclin import ML3Classifier
from loclin.datasets import make_xor
from reproduction.ml3.tables import ROWS, choice_of, final, problem_of, settings_of
from reproduction.quick import sized
from reproduction.shapes import grid_of, lines, maps, panel
from reproduction.store import Cache

SEQUENCE = (1, 2, 5, 10)
P = sized((1.0, 1.25, 1.5, 2.0, 4.0, 10.0), quick=(1.0, 1.5))
MODELS = sized((5, 10, 20, 50, 100), quick=(2, 5))
EPOCHS = sized((1, 2, 3, 5, 8, 12, 20, 30), quick=(1, 2))
MANY = sized(100, quick=5)
BY_MODELS = sized((1, 2, 5, 10, 20), quick=(1, 3))
SPLITS = sized(3, quick=1)
LOCAL = ("ML3", "LLSVM", "G-OCC", "C-OCC")
FLOWERS = "flowers5_inceptionv3"


def coloured(model: Any, X: Any, y: Any, points: Any, title: str) -> dict[str, Any]:
    """Return a map of the decision; rows are coloured by the code of their class, three models."""
    codes = model.local_weights(X)[np.arange(len(y)), np.searchsorted(model.classes_, y), :3]
    colours = np.zeros((len(y), 3))
    colours[:, : codes.shape[1]] = np.clip(codes, 0, 1)
    rgb = np.round(255 * colours).astype(int).tolist()
    return panel(title, np.searchsorted(model.classes_, model.predict(points)), colours=rgb)


def training_sequence(cache: Cache) -> dict[str, Any]:
    """Two models a class and p = 1 on XOR, after some epochs."""
    X, y = make_xor(400, std=0.4, random_state=0)
    box, points = grid_of(X)

    def compute() -> dict[str, Any]:
        fits = (
            (
                k,
                ML3Classifier(
                    2,
                    p=1,
                    metric=None,
                    max_iter=k,
                    average=1,
                    tol=0,
                    random_state=0,
                    standardize=False,
                ),
            )
            for k in SEQUENCE
        )
        panels = [coloured(m.fit(X, y), X, y, points, f"after {k} epochs") for k, m in fits]
        return maps(box, X, y, panels)

    return cache("figure 1 | xor | curves", {"epochs": SEQUENCE, "std": 0.4}, compute)


def by_exponent(cache: Cache) -> dict[str, Any]:
    """Five models a class and p = 1, 2, 1000 on Banana."""
    problem = problem_of("banana")
    X, y = StandardScaler().fit_transform(problem.X.astype(float)), problem.y
    box, points = grid_of(X)

    def compute() -> dict[str, Any]:
        fits = (
            (
                p,
                ML3Classifier(
                    5, p=p, metric=None, max_iter=60, tol=1e-4, random_state=0, standardize=False
                ).fit(X, y),
            )
            for p in (1, 2, 1000)
        )
        return maps(box, X, y, [coloured(m, X, y, points, f"p = {p}") for p, m in fits])

    return cache("figure 1 | banana | curves", {"shape": problem.X.shape}, compute)


def exponents_and_models(cache: Cache) -> dict[str, Any]:
    """Test error on USPS by p, for some numbers of models."""
    problem, row = problem_of("usps"), ROWS["ML3"]
    choice, curves = choice_of("ML3", problem, cache), {}
    for m in MODELS:
        settings = settings_of(row, m, problem, []) | {"choice": choice, "p": P}
        curves[f"m = {m}"] = cache(
            f"usps | m={m} | figure 2", settings,
            lambda m=m: [final(row, m, problem, choice, 0, p=p)[0] for p in P],
        )  # fmt: skip
    return lines(P, curves, "p", "test error, %", log_x=True)


def by_epochs(name: str, cache: Cache) -> dict[str, Any]:
    """Test error by epochs with 100 models, or as many as the planes there are."""
    problem, curves = problem_of(name), {}
    for system in LOCAL:
        row, choice = ROWS[system], choice_of(system, problem, cache)
        settings = settings_of(row, MANY, problem, []) | {"choice": choice, "passes": EPOCHS}
        curves[system] = cache(
            f"{name} | {system} | figure 2", settings,
            lambda row=row, choice=choice: [
                final(row, MANY, problem, choice, 0, max_iter=k)[0] for k in EPOCHS
            ],
        )  # fmt: skip
    return lines(EPOCHS, curves, "epochs", "test error, %")


def by_models(cache: Cache) -> dict[str, Any]:
    """Test error by models on flowers, whose features were learned by a network."""
    curves: dict[str, list[list[float]]] = {}
    for system in ("ML3", "G-OCC", "C-OCC", "MC-Liblinear (Crammer-Singer)", "Gaussian-Libsvm"):
        row, runs = ROWS[system], []
        for split in range(SPLITS):
            problem = problem_of(FLOWERS, split)
            choice = choice_of(system, problem, cache)
            ms = BY_MODELS if system in LOCAL else (1,)
            settings = settings_of(row, 0, problem, []) | {"choice": choice, "models": ms}
            runs.append(cache(
                f"{problem.name} | {system} | figure 3", settings,
                lambda row=row, problem=problem, choice=choice, ms=ms: [
                    final(row, m, problem, choice, 0)[0] for m in ms
                ],
            ))  # fmt: skip
        curves[system] = runs
    return lines(BY_MODELS, curves, "models", "test error, %", log_x=True)


def panels() -> Iterator[tuple[str, str, Any, float]]:
    """Figure, set, function of a cache, minutes."""
    yield "figure 1", "xor", training_sequence, 0.2
    yield "figure 1", "banana", by_exponent, 0.2
    yield "figure 2", "usps, p and m", exponents_and_models, 1
    for name, minutes in {"usps": 1, "letter": 2, "mnist": 25, "covtype1": 15}.items():
        yield "figure 2", name, partial(by_epochs, name), minutes
    yield "figure 3", FLOWERS, by_models, 20


PANELS = list(panels())
