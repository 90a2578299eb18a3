"""What a comparison came to: the choice in words, the footnotes, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import ceil, log10
from typing import Any

import numpy as np
from scipy.sparse import issparse

import loclin
from loclin.cli._compare import Result, Skipped
from loclin.cli._data import Data
from loclin.cli._errors import plural
from loclin.cli._measure import REPEATS, chance, loss
from loclin.cli._settings import Settings
from loclin.cli._text import NAMES, micros, named_figure, size
from loclin.cli._tune import MOST_ROWS

__all__ = ["Report", "csv_text", "footnotes", "json_text", "legend", "methods"]

CHANCE = 0.1  # a difference with a p-value above this may be chance
FASTER = 2.0  # a worse model must be so many times faster to be worth a word
QUICK, SMALL = 1e-6, 16_000  # seconds a row, and bytes
NOTHING = "No model was compared; choose some with --models."
FRONT_MEANS = "on the front: no other row is both better and faster"


@dataclass(frozen=True)
class Report:
    """A finished or interrupted comparison; ``rows`` come from `loclin.cli._compare.ranked`."""

    data: Data
    settings: Settings
    rows: Sequence[Result]
    skipped: Sequence[Skipped]
    command: str
    seconds: float
    interrupted: bool = False
    code: str = ""

    @property
    def late(self) -> list[Skipped]:
        """Return the systems that timed out."""
        return [item for item in self.skipped if item.timed_out]

    @property
    def fair(self) -> list[Result]:
        """Return what may be recommended: those that were tuned, or all if none was."""
        metric = self.settings.metric
        models = [
            row
            for row in self.rows
            if not row.baseline and np.isfinite(loss(metric, row.figures[metric]))
        ]
        return [row for row in models if not row.tuned.needed] or models

    @property
    def taken(self) -> Result | None:
        """Return the model to take: the best, or a faster one that may be as good."""
        fair = self.fair
        if not fair or self._is_hardly_better(fair[0]):
            return None
        take = fair[0]
        for row in fair[1:]:
            if row.predict_seconds <= take.predict_seconds / FASTER:
                if self._chance(row, fair[0]) <= CHANCE:
                    break
                take = row
        return take

    @property
    def verdict(self) -> list[str]:
        """Say in a few sentences which model to take."""
        fair, take = self.fair, self.taken
        if not fair and any(not row.baseline for row in self.rows):
            name = NAMES[self.settings.metric]
            return [
                f"No model has a figure for {name} on these test rows; take another --metric."
            ]
        if not fair:
            return ["No model was compared." if self.interrupted else NOTHING]
        if take is None:
            floor = next(row for row in self.rows if row.baseline)
            return [
                f"No model clearly beats the majority class ({self._at(floor)}): these features "
                "say little about the target, or there are too few test rows.",
                *self._budget(),
            ]
        best = fair[0]
        start = "Of the models that finished, take" if self.interrupted else "Take"
        words = [f"{start} {take.model}: {self._at(take)}."]
        if take is not best:
            words.append(
                f"{best.model} has {self._at(best)}; on {len(self.data.y_test):,} test rows the "
                f"difference may be chance (p = {self._chance(take, best):.2g})."
            )
        return [" ".join(words), *self._others(take), *self._budget()]

    def _others(self, take: Result) -> list[str]:
        """Say what to take under other conditions, where it is something else."""
        conditions: dict[str, Callable[[Result], bool]] = {
            "With probabilities": lambda row: row.said.are_shares,
            "In a microsecond a row": lambda row: row.predict_seconds <= QUICK,
            f"In {size(SMALL)}": lambda row: row.size_bytes <= SMALL,
        }
        lines = []
        for what, holds in conditions.items():
            if holds(take):
                continue
            models = [*self.fair, *(row for row in self.rows if not row.baseline)]
            row = next((row for row in models if holds(row)), None)
            hardly = " (hardly tuned)" if row and row.tuned.needed else ""
            found = f"{row.model}{hardly}, {self._at(row)}" if row else "none"
            lines.append(f"{what}: {found}.")
        return lines

    def _budget(self) -> list[str]:
        """Say what budget is enough, where this one was not."""
        short = [row for row in self.rows if row.tuned.needed]
        if not short:
            return []
        needed = max(row.tuned.needed for row in short)
        unit = 10 ** max(0, int(log10(needed)) - (0 if needed >= 20 else 1))
        enough = max(1, ceil(needed / unit) * unit)
        were = "was" if len(short) == 1 else "were"
        return [
            f"{plural(len(short), 'model')} {were} hardly tuned, as marked, and not recommended "
            f"before others; for a fair comparison give --budget {enough}"
        ]

    def _at(self, row: Result) -> str:
        metric = self.settings.metric
        value = named_figure(metric, row.figures[metric], len(self.data.y_test))
        return f"{value} at {micros(row.predict_seconds)} us a row"

    def _chance(self, one: Result, other: Result) -> float:
        return chance(self.settings.metric, self.data.y_test, one.said, other.said)

    def _is_hardly_better(self, best: Result) -> bool:
        floor = next((row for row in self.rows if row.baseline), None)
        if floor is None:
            return False
        metric = self.settings.metric
        is_worse = loss(metric, best.figures[metric]) >= loss(
            metric, floor.figures[metric]
        )
        return is_worse or self._chance(floor, best) > CHANCE


def versions() -> dict[str, str]:
    """Return the versions that the figures depend on."""
    names = ("numpy", "scipy", "scikit-learn", "numba")
    return {
        "loclin": loclin.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


def methods(report: Report) -> list[str]:
    """Say in sentences what was done and what each figure is."""
    data, settings = report.data, report.settings
    table = (
        "Columns of the table become features inside the folds (loclin.tables.TableEncoder); "
        "times and sizes are without that, which is the same for all."
    )
    limit = f"A model that took more than {settings.time_limit:g} s in all was ended."
    return [
        f"Each model was tuned on the training rows alone, by {settings.folds}-fold stratified "
        f"cross-validation and by {NAMES[settings.metric]} (error where a model has no "
        f"probabilities): first its defaults (but C = 0.01 for LinearSVC; 300 components "
        f"and C = 10 for Nystroem), then up to {settings.candidates - 1} random "
        f"candidates, until {settings.budget:g} s were spent or the best no longer moved.",
        f"The best candidate was fitted on the training rows ({len(data.y_train):,}; of more than "
        f"{MOST_ROWS:,} rows, so many are drawn to tune on) and tested once on "
        f"{len(data.y_test):,} rows ({data.split}).",
        *([table] if data.encoder is not None else []),
        "Features are standardised in the pipeline (sparse ones divided by their largest absolute "
        "value), except for trees.",
        f"Threads for each fit and prediction: {settings.threads or 'all'}. Models tuned at once: "
        f"{settings.jobs}.",
        *([limit] if settings.time_limit else []),
        "Error: share of test rows predicted wrong, with Wilson's 95 % interval. Log loss: mean "
        "of -log P(label). AUC: of more than two classes, the mean of each against the others. "
        "Average precision: of two classes that of the rarer, else the mean.",
        f"{times_mean(settings).capitalize()}. Time a row: median of {REPEATS} or more calls.",
        "Size: length of the fitted pipeline's pickle. The majority class predicts the training "
        "rows' class shares: a floor.",
    ]


def times_mean(settings: Settings) -> str:
    """Return what the columns of times are."""
    unit = "processor seconds" if settings.threads == 1 else "seconds by the clock"
    return f"times: {unit}; fit s: one fit with the parameters found, without tuning"


def legend(report: Report) -> list[str]:
    """Return the lines below the table: marks, numbered notes, models left out."""
    lines = [f"* {FRONT_MEANS}"] if any(row.front for row in report.rows) else []
    lines += [times_mean(report.settings)] if report.rows else []
    lines += footnotes(report)[0]
    lines += [f"{item.model} left out: {item.reason}" for item in report.skipped]
    if report.interrupted:
        lines.append("interrupted: models that had not finished are missing")
    return lines


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
        marks.append(" ".join([*("*" if row.front else ""), ",".join(numbers)]).strip())
    return [f"{number} {note}" for number, note in enumerate(notes, 1)], marks


def json_text(report: Report) -> str:
    """Return all of a report as JSON."""
    data, settings = report.data, report.settings
    counts = np.bincount(data.y_train, minlength=len(data.classes))
    content = {
        "versions": versions(),
        "machine": {"cpus": os.cpu_count(), "architecture": platform.machine()},
        "command": report.command,
        "settings": vars(settings),
        "seconds": round(report.seconds, 3),
        "interrupted": report.interrupted,
        "data": {
            "name": data.name,
            "description": data.description,
            "split": data.split,
            "n_train": len(data.y_train),
            "n_test": len(data.y_test),
            "n_features": int(data.X_train.shape[1]),
            "columns": dict(data.encoder.kinds_) if data.encoder is not None else None,
            "dtype": str(data.X_train.dtype),
            "sparse": issparse(data.X_train),
            "classes": list(data.classes),
            "train_counts": counts.tolist(),
            "notes": list(data.notes),
        },
        "results": [_row_dict(row, report) for row in report.rows],
        "skipped": [vars(item) for item in report.skipped],
        "recommended": report.taken.model if report.taken else None,
        "verdict": report.verdict,
        "code": report.code,
        "methods": methods(report),
    }
    return json.dumps(content, indent=2, ensure_ascii=False, default=_plain)


def csv_text(report: Report) -> str:
    """Return the table as CSV; parameters as JSON in one cell, notes with semicolons."""
    rows = [_row_dict(row, report) for row in report.rows]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]) if rows else ["model"])
    writer.writeheader()
    for row in rows:
        row["parameters"] = json.dumps(row["parameters"], default=_plain)
        row["notes"] = "; ".join(row["notes"])
        writer.writerow(row)
    return file.getvalue()


def _row_dict(row: Result, report: Report) -> dict[str, Any]:
    """Return one row as plain values."""
    y = report.data.y_test
    return {
        "model": row.model,
        "error_low": row.low,
        "error_high": row.high,
        **row.figures,
        "n_wrong": int((row.said.predicted != y).sum()),
        "n_test": len(y),
        "cv_loss": row.tuned.loss,
        "cv_folds": row.tuned.folds,
        "candidates_tried": row.tuned.tried,
        "tuning_seconds": round(row.tuned.seconds, 3),
        "tuning_rows": row.tuned.rows,
        "fit_seconds": row.fit_seconds,
        "n_train": len(report.data.y_train),
        "predict_microseconds_per_row": 1e6 * row.predict_seconds,
        "predict_rows_per_call": row.predict_rows,
        "size_bytes": row.size_bytes,
        "front": row.front,
        "fair": not row.tuned.needed,
        "parameters": dict(row.parameters),
        "notes": list(row.notes),
    }


def _plain(value: object) -> object:
    """Turn NumPy's scalars into Python's for JSON."""
    return value.item() if isinstance(value, np.generic) else str(value)
