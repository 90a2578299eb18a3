"""The command ``loclin fit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from loclin.cli._data import load
from loclin.cli._errors import InputError, listed
from loclin.cli._measure import Answers, figure, loss, stratified_rows
from loclin.cli._outputs import check_outputs
from loclin.cli._saved import About, save_model
from loclin.cli._settings import METRICS, check_metric
from loclin.cli._systems import Shape, described, pick, roster, unfitted
from loclin.cli._terminal import say
from loclin.cli._text import named_figure
from loclin.tables import TableEncoder

__all__ = ["figures_line", "fit_and_save"]

# Of --model auto: the best by rank, the fastest of the best, and the one that says rules.
CANDIDATES = "LocallyLinearEnsemble,ML3Classifier,L3MClassifier"
FOLDS = 3
MOST_COMPARED = 20_000  # rows that models are measured on


def fit_and_save(
    data: str,
    save: Path,
    *,
    target: str | None,
    header: bool,
    model: str,
    metric: str,
    seed: int,
    max_gb: float,
    as_json: bool,
) -> None:
    """Measure the candidates by cross-validation, fit the best to all rows, and save it."""
    check_metric(metric)
    check_outputs({"save": save}, [data])
    own = [system for system in roster() if system.own]
    systems = pick(CANDIDATES if model == "auto" else model, own)
    rows = load(data, target=target, header=header, limit=max_gb * 1e9)
    labels, counts = np.unique(rows.y, return_counts=True)
    if counts.min() < FOLDS:
        rare = listed(labels[counts < FOLDS])
        raise InputError(
            f"{data}: too few rows of {rare}; each class needs {FOLDS} to be measured by "
            "cross-validation: drop those classes or merge them with others"
        )
    y = np.searchsorted(labels, rows.y)
    compared = stratified_rows(y, MOST_COMPARED, seed, FOLDS)
    notes = list(rows.notes)
    if len(compared) < len(y):
        notes.append(f"figures are of {len(compared):,} rows, drawn at random")
    for note in notes:
        say(f"note: {note}", error=True)
    found, is_table = [], hasattr(rows.X, "columns")
    shape = Shape(*rows.X.shape) if is_table else described(rows.X)
    for system in systems:
        pipeline = unfitted(system, {}, shape, seed, table=is_table)
        figures = _measured(pipeline, rows.X, y, compared, seed)
        found.append((loss(metric, figures[metric]), system.name, pipeline, figures))
        if not as_json:
            say(f"{system.name:22} {figures_line(figures, len(compared))}")
    _, name, best, figures = min(found, key=lambda one: one[0])
    best.fit(rows.X, rows.y)
    for note in best[0].notes_ if isinstance(best[0], TableEncoder) else []:
        say(f"note: {note}", error=True)
    about = About.of(rows, name, "cross-validation", figures, len(compared))
    save_model(best, about, save)
    if as_json:
        held_out = {system: figures for _, system, _, figures in found}
        print(
            json.dumps({**best.about_, "compared": held_out, "file": str(save)}, indent=1)
        )
        return
    say(f"saved {name} in {save}")


def _measured(
    model: Any, X: Any, y: NDArray[Any], compared: NDArray[Any], seed: int
) -> dict[str, float | None]:
    """Return all metrics, on rows that folds hold out."""
    X = X.iloc[compared] if hasattr(X, "columns") else X[compared]
    y = y[compared]
    shares = hasattr(model, "predict_proba")
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    method = "predict_proba" if shares else "decision_function"
    found = cross_val_predict(clone(model), X, y, cv=folds, method=method)
    if found.ndim == 1:
        found = np.stack([-found, found], axis=1)
    said = Answers(found.argmax(axis=1), found, shares)
    return {metric: figure(metric, y, said) for metric in METRICS}


def figures_line(figures: dict[str, float | None], n_rows: int) -> str:
    """Return metrics in one line."""
    shown = [named_figure(metric, figures[metric], n_rows) for metric in figures]
    return ", ".join(shown)
