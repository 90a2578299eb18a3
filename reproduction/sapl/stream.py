"""The largest run of LLC-SAPL's Table 2, MNIST8M, on data made anew by the published recipe.

One pass of `partial_fit` over 8.1 million rows (`mnist8m`; the paper has the first 8 million), and
the error on MNIST's 10,000 official test rows. LL-SVM and LLC-SAPL have the paper's 100 anchors, 8
of them a row, and ML3 the 90 models a class that its own paper has on MNIST. Preparation, bandwidth
and step of the anchors are those that Table 2 chose for MNIST by cross-validation on 10,000 of its
training rows; the strength follows the rule of streams. Anchors start from the rows of the first
call. The paper standardises every dimension.

Seconds of the generator are apart. The resident memory holds MNIST, the digits' tangents (376 MB)
and a chunk.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from loclin import ML3Classifier
from reproduction.choices import PREPARE
from reproduction.data import Problem
from reproduction.quick import sized
from reproduction.sapl import mnist8m
from reproduction.sapl.tables import ROWS, System, choice_of, problem_of
from reproduction.store import Cache

N_ROWS = sized(mnist8m.N_ROWS, quick=3000)
CHUNK = sized(20_000, quick=500)
TENTHS = 10
SYSTEMS = {"LLSVM": "LLSVM", "LLC-SAPL": "LLC-SAPL", "ML3": "LLC-SAPL"}  # and whose choice
N_MODELS = sized(90, quick=4)  # of ML3


class Timed:
    """An iterator, and the seconds of the clock and the processor that it has taken."""

    def __init__(self, of: Iterator[Any]) -> None:
        self.of, self.seconds = of, np.zeros(2)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        start = now()
        try:
            return next(self.of)
        finally:
            self.seconds += now() - start


def now() -> Any:
    """Seconds of the clock and of the processor."""
    return np.array([time.perf_counter(), time.process_time()])


def resident_mb() -> float:
    """Resident memory in MB: now where the system tells, else the largest so far."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 1e6
    unit = 1e-6 if sys.platform == "darwin" else 1e-3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def model_of(system: str, X: Any, y: Any, choice: dict[str, Any]) -> Any:
    """Return an unfitted model; `X` are the first rows of the stream."""
    if system == "ML3":
        return ML3Classifier(N_MODELS, random_state=0, standardize=False)
    made = System(ROWS[system], "mnist", X, y, choice["knobs"], 0)
    return made.learner(1.0, alpha="auto")


def stream(system: str, problem: Problem, choice: dict[str, Any], n_rows: int, chunk: int,
           n_fields: int = mnist8m.N_FIELDS) -> dict[str, Any]:  # fmt: skip
    """Learn deformations of a problem's digits in one pass; its error, seconds and memory."""
    scaler = PREPARE[choice["prepare"]]().fit(problem.X)
    start = now()
    rows = mnist8m.DeformedDigits(problem.X, problem.y, n_fields=n_fields)
    chunks, classes = Timed(rows.chunks(n_rows, chunk)), np.unique(problem.y)
    chunks.seconds += now() - start
    model: Any = None
    resident: list[float] = []
    seen, learning = 0, np.zeros(2)
    for X, y in chunks:
        X = scaler.transform(X)
        if model is None:
            begin = now()
            model = model_of(system, X, y, choice)
            learning += now() - begin
            clone(model).partial_fit(X[:1000], y[:1000], classes)  # compiles
        begin = now()
        model.partial_fit(X, y, classes)
        learning += now() - begin
        seen += len(y)
        while len(resident) < TENTHS * seen // n_rows:
            resident.append(round(resident_mb(), 1))
    error = 100 * (1 - model.score(scaler.transform(problem.X_test), problem.y_test))
    return {"error %": [error], "rows": seen, "learning s": learning.tolist(),
            "generator s": chunks.seconds.tolist(), "resident MB": resident}  # fmt: skip


def mnist_8m(system: str, cache: Cache) -> dict[str, Any]:
    """Return the result of a system; seconds are those of the clock and of the processor."""
    problem = problem_of("mnist")
    choice = choice_of(SYSTEMS[system], problem, cache)
    settings = {"choice": choice, "rows": N_ROWS, "chunk": CHUNK, "shape": problem.X.shape,
                "fields": [mnist8m.N_FIELDS, mnist8m.FIELD_WIDTH, mnist8m.DISPLACEMENT,
                           mnist8m.TANGENT_WIDTH]}  # fmt: skip
    if system == "ML3":
        settings["models"] = N_MODELS
    compute = partial(stream, system, problem, choice, N_ROWS, CHUNK)
    return cache(f"mnist8m | {system} | stream", settings, compute)
