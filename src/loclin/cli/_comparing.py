"""The command ``loclin compare``, from its options to what it prints and writes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import typer
from joblib import cpu_count

from loclin.cli import _compare
from loclin.cli._code import python_code
from loclin.cli._compare import Result, Skipped, ranked
from loclin.cli._data import Data, Labelled, load, split
from loclin.cli._display import show, watching
from loclin.cli._errors import InputError, plural
from loclin.cli._outputs import check_outputs, write_outputs
from loclin.cli._report import Report, json_text
from loclin.cli._saved import About, save_model
from loclin.cli._settings import Settings, check_metric
from loclin.cli._systems import System, described, pick, roster, unfitted
from loclin.cli._terminal import INTERRUPTED, lost_output, say

__all__ = ["Files", "run"]

BUSY = 0.75  # load a core from which timing is in doubt
MOST_JOBS = 4  # by default


class Files(NamedTuple):
    """Where the rows are."""

    data: str
    target: str | None
    header: bool
    test: str | None
    test_size: float | None
    max_gb: float

    def read(self, seed: int) -> tuple[Labelled, Data]:
        """Return all rows, and those rows split."""
        how = {"header": self.header, "limit": self.max_gb * 1e9}
        rows = load(self.data, target=self.target, **how)  # type: ignore[arg-type]
        return rows, split(
            rows,
            test=self.test,
            test_size=self.test_size,
            seed=seed,
            **how,  # type: ignore[arg-type]
        )


def run(
    files: Files,
    models: str | None,
    settings: Settings,
    outputs: Mapping[str, Path | None],
    *,
    as_json: bool,
) -> None:
    """Compare before the user's eyes, and write what was asked for.

    An interrupt, or a screen that is gone, keeps what is finished.
    """
    if settings.jobs == 0:
        cores = cpu_count(only_physical_cores=True) // max(1, settings.threads)
        settings = replace(settings, jobs=max(1, min(MOST_JOBS, cores)))
    check_metric(settings.metric)
    if sys.stdout is None and not any(outputs.values()):
        raise InputError(
            "the standard output is closed; write a file, such as --html FILE"
        )
    check_outputs(outputs, [files.data, *([files.test] if files.test else [])])
    systems = {system.name: system for system in pick(models, roster())}
    rows, data = files.read(settings.seed)
    notes = [f"note: {note}" for note in (*data.notes, *_busy())]
    for line in [_headline(data, settings), *notes]:
        say(line, error=as_json)
    found, seconds, interrupted, lost = _found(data, systems, settings)
    ready = [outcome for outcome in found if isinstance(outcome, Result)]
    skipped = [outcome for outcome in found if isinstance(outcome, Skipped)]
    report = Report(
        data,
        settings,
        ranked(ready, settings.metric),
        skipped,
        _command(files, models, settings),
        seconds,
        interrupted,
    )
    if report.taken is not None:
        taken = _unfitted(report, systems, report.taken, rows)
        report = replace(report, code=python_code(rows, taken, header=files.header))
    try:
        if lost is None and sys.stdout is not None:
            print(json_text(report), flush=True) if as_json else show(report)
    except OSError as error:
        lost = error
    write_outputs(report, {name: outputs[name] for name in ("csv", "html", "plot")})
    if outputs["save"] is not None and report.interrupted:
        say(f"note: interrupted, so nothing is saved in {outputs['save']}", error=True)
    elif outputs["save"] is not None:
        _save_best(outputs["save"], report, systems, rows)
    if lost is not None:
        raise typer.Exit(lost_output(lost))
    if report.interrupted:
        raise typer.Exit(INTERRUPTED)


def _found(
    data: Data, systems: Mapping[str, System], settings: Settings
) -> tuple[list[Result | Skipped], float, bool, OSError | None]:
    """Return what came out, the seconds, whether it ended early, and what the screen raised."""
    found: list[Result | Skipped] = []
    start, interrupted, lost = perf_counter(), False, None
    try:
        with watching(list(systems)) as watch:
            for outcome in _compare.compare(
                data, list(systems.values()), settings, watch.step
            ):
                found.append(outcome)
                watch.finish(outcome, settings.metric)
    except KeyboardInterrupt:
        interrupted = True
        say("loclin: interrupted", error=True)
    except OSError as error:
        interrupted, lost = True, error
    return found, perf_counter() - start, interrupted, lost


def _unfitted(
    report: Report, systems: Mapping[str, System], row: Result, rows: Labelled
) -> Any:
    """Return the unfitted pipeline of a row of the table, for all rows of the data."""
    data, seed = report.data, report.settings.seed
    shape = replace(described(data.X_train), n_rows=len(rows.y))
    is_table = data.encoder is not None
    return unfitted(systems[row.model], row.tuned.drawn, shape, seed, table=is_table)


def _save_best(
    path: Path, report: Report, systems: Mapping[str, System], rows: Labelled
) -> None:
    """Fit the best of loclin's models to all rows, and save it."""
    taken, data = report.taken, report.data
    own = [row for row in (*report.fair, *report.rows) if row.own]
    if not own:
        raise InputError(f"--save {path}: no model of loclin was compared")
    row = taken if taken is not None and taken.own else own[0]
    if taken is not None and row is not taken:
        say(
            f"note: {taken.model} is scikit-learn's; the best of loclin's is saved",
            error=True,
        )
    model = _unfitted(report, systems, row, rows)
    about = About.of(rows, row.model, "test rows", row.figures, len(data.y_test))
    save_model(model.fit(rows.X, rows.y), about, path)
    say(f"saved {row.model} in {path}", error=True)


def _headline(data: Data, settings: Settings) -> str:
    """Say what is compared on."""
    n_train, n_features = data.X_train.shape
    kinds = data.encoder.kinds_.values() if data.encoder is not None else ()
    of_columns = (
        f" of {plural(sum(kind != 'leave out' for kind in kinds), 'column')}"
        if kinds
        else ""
    )
    return (
        f"{data.name}: {n_train:,} training rows, {len(data.y_test):,} test rows "
        f"({data.split}), {plural(n_features, 'feature')}{of_columns}, {len(data.classes)} "
        f"classes; up to {settings.budget:g} s of tuning a model"
    )


def _busy() -> list[str]:
    """Warn where other programs keep the machine busy, since times will then be off."""
    cpus = os.cpu_count() or 1
    load_now = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load_now < BUSY * cpus:
        return []
    return [
        f"the machine is busy (load {load_now:.1f} on {plural(cpus, 'core')}): times may be too "
        "long"
    ]


def _command(files: Files, models: str | None, settings: Settings) -> str:
    """Return the command that gives this comparison again."""
    options: dict[str, Any] = {
        "target": files.target,
        "test": files.test,
        "test-size": files.test_size,
        "models": models,
        **{name.replace("_", "-"): value for name, value in vars(settings).items()},
        "max-gb": files.max_gb,
    }
    words = ["loclin", "compare", files.data, *([] if files.header else ["--no-header"])]
    for name, value in options.items():
        if value is not None:
            text = f"{value:g}" if isinstance(value, float) else str(value)
            words += [f"--{name}", text]
    return shlex.join(words)
