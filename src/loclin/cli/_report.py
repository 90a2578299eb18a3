"""What a comparison came to: the choice in words, the footnotes, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import binomtest

import loclin
from loclin.cli._compare import Result, Skipped
from loclin.cli._data import Data
from loclin.cli._errors import plural
from loclin.cli._measure import REPEATS
from loclin.cli._settings import Settings
from loclin.cli._text import micros, percent
from loclin.cli._tune import STILL

__all__ = [
    "Report",
    "as_dict",
    "csv_text",
    "footnotes",
    "how_measured",
    "json_text",
    "legend",
    "versions",
]

CHANCE = 0.1  # a difference with a p-value above this may be chance
FASTER = 2.0  # a less accurate model must be so many times faster to be worth a word
FRONT_MEANS = (
    "on the front: no other row is at least as accurate and as fast, and better in one"
)


@dataclass(frozen=True)
class Report:
    """A finished or interrupted comparison; ``rows`` come from
    `loclin.cli._compare.ranked`.
    """

    data: Data
    settings: Settings
    rows: Sequence[Result]
    skipped: Sequence[Skipped]
    command: str
    seconds: float
    interrupted: bool = False

    @property
    def verdict(self) -> str:
        """Say in a sentence or two which model to take."""
        return _verdict(self.rows)

    @property
    def late(self) -> list[Skipped]:
        """Return the systems that timed out."""
        return [item for item in self.skipped if item.timed_out]


def versions() -> dict[str, str]:
    """Return the versions that the figures depend on."""
    names = ("numpy", "scipy", "scikit-learn", "numba")
    return {
        "loclin": loclin.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


def how_measured(report: Report) -> list[str]:
    """Say in sentences what was done and what each figure is."""
    data, settings = report.data, report.settings
    front = [row for row in report.rows if not row.baseline]
    timed = sorted({row.predict_rows for row in front}) or [0]
    calls = f"{timed[0]:,}" if len(timed) == 1 else f"{timed[0]:,} to {timed[-1]:,}"
    return [
        f"Each model was tuned on the training split alone, by {settings.folds}-fold stratified "
        f"cross-validation: the defaults (but C = 0.01 for LinearSVC; 300 components and "
        f"C = 10 for Nystroem), then up to {settings.candidates - 1} random candidates in a fixed "
        f"order, until {settings.budget:g} s were spent or {STILL} in a row had not moved the "
        "interval of the best. Candidates that fell hopelessly behind were dropped early.",
        f"The best candidate was fitted on the training split ({len(data.y_train):,} rows, but see "
        f"the notes) and tested on {len(data.y_test):,} rows ({data.split}).",
        "Features are standardised in the pipeline (sparse ones divided by their largest absolute "
        "value), except for trees. Times and sizes are of the whole pipeline.",
        f"Threads for each fit and prediction: {settings.threads or 'all'} (--threads). Models "
        f"tuned at once: {settings.jobs} (--jobs).",
        *(
            [
                f"A model that took more than {settings.time_limit:g} s in all was ended "
                "(--time-limit)."
            ]
            if settings.time_limit
            else []
        ),
        "Error: share of test rows predicted wrong, with Wilson's 95 % interval.",
        "Log loss: mean of -log P(label) over the test rows, - for models without probabilities.",
        f"{times_mean(report).capitalize()}.",
        f"Time a row: median of {REPEATS} or more calls on {calls} rows at once, after a call "
        "to warm up.",
        "Size: length of the fitted pipeline's pickle.",
        f"Front: {FRONT_MEANS.removeprefix('on the front: ')}. The majority class is a floor and "
        "is never marked.",
    ]


def times_mean(report: Report) -> str:
    """Return what the columns of times are:
    one thread is timed beside others, more alone.
    """
    one = report.settings.threads == 1
    seconds = (
        "processor seconds"
        if one
        else "seconds by the clock, while all other models waited"
    )
    return f"times: {seconds}; fit s: one fit with the parameters found, without tuning"


def legend(report: Report) -> list[str]:
    """Return what the table's mark and column do not say for themselves."""
    front = [f"* {FRONT_MEANS}"] if any(row.front for row in report.rows) else []
    return [*front, times_mean(report)] if report.rows else []


def footnotes(report: Report) -> tuple[list[str], list[str]]:
    """Return the numbered footnotes, and each row's mark: ``*`` for the front, numbers."""
    notes: list[str] = []
    marks = []
    for row in report.rows:
        numbers = []
        for note in row.notes:
            if note not in notes:
                notes.append(note)
            numbers.append(str(notes.index(note) + 1))
        marks.append(("*" if row.front else "") + ",".join(numbers))
    return [f"{number} {note}" for number, note in enumerate(notes, 1)], marks


def as_dict(report: Report) -> dict[str, object]:
    """Return all of a report as plain values for JSON."""
    data = report.data
    X = data.X_train
    return {
        "versions": versions(),
        "machine": {"cpus": os.cpu_count(), "architecture": platform.machine()},
        "command": report.command,
        "seed": report.settings.seed,
        "budget_seconds": report.settings.budget,
        "folds": report.settings.folds,
        "candidates": report.settings.candidates,
        "jobs": report.settings.jobs,
        "threads": report.settings.threads,
        "time_limit_seconds": report.settings.time_limit,
        "seconds": round(report.seconds, 3),
        "interrupted": report.interrupted,
        "data": {
            "name": data.name,
            "description": data.description,
            "split": data.split,
            "n_train": len(data.y_train),
            "n_test": len(data.y_test),
            "n_features": int(X.shape[1]),
            "dtype": str(X.dtype),
            "sparse": issparse(X),
            "classes": list(data.classes),
            "train_counts": np.bincount(
                data.y_train, minlength=len(data.classes)
            ).tolist(),
            "notes": list(data.notes),
        },
        "results": [_row_dict(row, len(data.y_train)) for row in report.rows],
        "skipped": [vars(item) for item in report.skipped],
        "verdict": report.verdict,
        "how_measured": how_measured(report),
    }


def json_text(report: Report) -> str:
    """Return all of a report as JSON."""
    return (
        json.dumps(as_dict(report), indent=2, ensure_ascii=False, default=_plain) + "\n"
    )


def csv_text(report: Report) -> str:
    """Return the table as CSV; parameters as JSON in one cell,
    notes joined by semicolons.
    """
    rows = [_row_dict(row, len(report.data.y_train)) for row in report.rows]
    names = list(rows[0]) if rows else ["model"]
    file = io.StringIO()
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    for row in rows:
        row["parameters"] = json.dumps(row["parameters"], default=_plain)
        row["notes"] = "; ".join(row["notes"])
        writer.writerow(row)
    return file.getvalue()


def _row_dict(row: Result, n_train: int) -> dict[str, Any]:
    """Return one row as plain values."""
    return {
        "model": row.model,
        "error": row.error,
        "error_low": row.low,
        "error_high": row.high,
        "log_loss": row.log_loss,
        "n_wrong": int(row.wrong.sum()),
        "n_test": len(row.wrong),
        "cv_error": row.tuned.error,
        "cv_folds": row.tuned.folds,
        "candidates_tried": row.tuned.tried,
        "tuning_seconds": round(row.tuned.seconds, 3),
        "tuning_rows": row.tuned.rows,
        "fit_seconds": row.fit_seconds,
        "fit_rows": row.fit_rows,
        "n_train": n_train,
        "predict_microseconds_per_row": 1e6 * row.predict_seconds,
        "predict_rows_per_call": row.predict_rows,
        "size_bytes": row.size_bytes,
        "front": row.front,
        "parameters": dict(row.parameters),
        "notes": list(row.notes),
    }


def _plain(value: object) -> object:
    """Turn NumPy's scalars into Python's for JSON."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _verdict(rows: Sequence[Result]) -> str:
    """Recommend a model.

    Start from the best on the test rows and go down the front to faster ones, for as long
    as the best does not clearly err less and each step at least halves the time.
    """
    models = [row for row in rows if not row.baseline]
    floor = next((row for row in rows if row.baseline), None)
    if not models:
        return "No model was compared; choose some with --models."
    best = models[0]
    if floor is not None and _chance(floor, best) > CHANCE:
        return (
            f"No model clearly beats the majority class ({_at(floor)}): these features say "
            "little about the target, or there are too few test rows."
        )
    take, faster = best, None
    for row in models:
        if row.front and row.predict_seconds <= take.predict_seconds / FASTER:
            if _chance(row, best) <= CHANCE:
                faster = row
                break
            take = row
    words = [f"Take {take.model}: {_at(take)}."]
    if take is not best:
        words.append(
            f"{best.model} has {_at(best)}; on {plural(len(best.wrong), 'test row')} the "
            f"difference may be chance (p = {_chance(take, best):.2g})."
        )
    if faster is not None:
        words.append(f"If it must be faster, {faster.model}: {_at(faster)}.")
    elif (
        take is best
        and [row for row in models if row.front] == [best]
        and len(models) > 1
    ):
        words.append("No other model is as accurate or as fast.")
    return " ".join(words)


def _at(row: Result) -> str:
    """Return a row's error and cost in words."""
    return f"{percent(row.error, len(row.wrong))} % error at {micros(row.predict_seconds)} us a row"


def _chance(row: Result, best: Result) -> float:
    """Return McNemar's exact p-value that two models err equally often on the same rows."""
    only_row = int((row.wrong & ~best.wrong).sum())
    only_best = int((best.wrong & ~row.wrong).sum())
    if only_row + only_best == 0:
        return 1.0
    return float(binomtest(only_row, only_row + only_best).pvalue)
