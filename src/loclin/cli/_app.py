"""The commands of ``loclin``."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from loclin import __version__
from loclin.cli import _compare, _display
from loclin.cli._compare import Result, Skipped, ranked
from loclin.cli._data import Data, load_data
from loclin.cli._errors import InputError, plural
from loclin.cli._html import write_html
from loclin.cli._plot import require_matplotlib, write_plot
from loclin.cli._report import Report, write_csv, write_json
from loclin.cli._settings import Settings
from loclin.cli._systems import System, pick, roster

__all__ = ["app"]

BUSY = 0.75  # load a core from which timing is in doubt
IMAGES = (".png", ".svg", ".pdf")

app = typer.Typer(
    help="Locally linear classifiers: kernel-SVM accuracy at linear-SVM cost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"loclin {__version__}")
        raise typer.Exit


@app.callback()
def _loclin(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Locally linear classifiers: kernel-SVM accuracy at linear-SVM cost."""


Source = Annotated[
    str,
    typer.Argument(
        help="A data set's name (digits, letter, usps, ...) or a file: CSV, TSV, npz, svmlight "
        "or Parquet."
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of labels in a table: its name, or its number from 0 where the file has no "
        "names. By default the last one.",
    ),
]
TestFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File of test rows, of any kind.")
]
TestSize = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="Share of rows held out for testing, 0.25 by default."),
]
Models = Annotated[
    str | None,
    typer.Option(metavar="A,B,C", help="Only these models, such as ml3,svc-rbf,linearsvc."),
]
Budget = Annotated[
    float, typer.Option(metavar="SECONDS", help="Tuning time, the same for every model.")
]
Folds = Annotated[int, typer.Option(metavar="N", help="Folds of the cross-validation.")]
Candidates = Annotated[
    int, typer.Option(metavar="N", help="The most candidates to try for a model.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of splits, candidates and models.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Folds to fit at once while tuning.")]
Threads = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Threads for each fit and prediction; 0 for as many as the libraries like.",
    ),
]
Json = Annotated[Path | None, typer.Option(metavar="FILE", help="Write everything as JSON.")]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as CSV.")]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report as one HTML file.")]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw error against time a row: .png, .svg or .pdf."),
]


@app.command()
def compare(
    data: Source = "digits",
    target: Target = None,
    test: TestFile = None,
    test_size: TestSize = None,
    models: Models = None,
    budget: Budget = Settings.budget,
    folds: Folds = Settings.folds,
    candidates: Candidates = Settings.candidates,
    seed: Seed = Settings.seed,
    jobs: Jobs = Settings.jobs,
    threads: Threads = Settings.threads,
    json: Json = None,
    csv: Csv = None,
    html: Html = None,
    plot: Plot = None,
) -> None:
    """Compare loclin's classifiers with scikit-learn's on your data.

    Each model is tuned by cross-validation on the training split for the same time, fitted anew,
    and tested once: error, fit time, prediction time, size.
    """
    chosen = {"target": target, "test": test, "test-size": test_size, "models": models}
    outputs = {"json": json, "csv": csv, "html": html, "plot": plot}
    try:
        settings = Settings(budget, folds, candidates, seed, jobs, threads)
        _check_settings(settings)
        _check_outputs(outputs, [Path(data), *([test] if test else [])])
        systems = pick(models, roster())
        loaded = load_data(data, target=target, test=test, test_size=test_size, seed=seed)
        command = _command(data, {**chosen, **vars(settings)})
        report = _run(loaded, systems, settings, command)
        _write(report, outputs)
    except InputError as error:
        typer.echo(f"loclin: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("loclin: interrupted", err=True)
        raise typer.Exit(130) from None
    if report.interrupted:
        raise typer.Exit(130)


def _run(data: Data, systems: Sequence[System], settings: Settings, command: str) -> Report:
    """Run the comparison before the user's eyes; an interrupt keeps what is finished."""
    outcomes: list[Result | Skipped] = []
    interrupted = False
    screen = _display.display([system.name for system in systems], settings.budget)
    screen.say(_headline(data, settings))
    for note in (*data.notes, *_busy()):
        screen.say(f"note: {note}")
    start = perf_counter()
    try:
        with screen:
            for outcome in _compare.compare(data, systems, settings, screen.step):
                outcomes.append(outcome)
                screen.finish(outcome)
    except KeyboardInterrupt:
        interrupted = True
    report = Report(
        data,
        settings,
        ranked([outcome for outcome in outcomes if isinstance(outcome, Result)]),
        [outcome for outcome in outcomes if isinstance(outcome, Skipped)],
        command,
        perf_counter() - start,
        interrupted,
    )
    screen.table(report)
    return report


def _headline(data: Data, settings: Settings) -> str:
    """Say what is compared on."""
    n_train, n_features = data.X_train.shape
    return (
        f"{data.name}: {n_train:,} training rows, {len(data.y_test):,} test rows "
        f"({data.split}), {plural(n_features, 'feature')}, {len(data.classes)} classes; "
        f"{settings.budget:g} s of tuning a model"
    )


def _busy() -> list[str]:
    """Warn where other programs keep the machine busy, since times will then be off."""
    cpus = os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load < BUSY * cpus:
        return []
    return [
        f"the machine is busy (load {load:.1f} on {plural(cpus, 'core')}): times may be too long"
    ]


def _command(data: str, options: Mapping[str, object]) -> str:
    """Return the command that gives this comparison again."""
    words = ["loclin", "compare", data]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _check_settings(settings: Settings) -> None:
    """Raise where an option is out of range."""
    if not (settings.budget > 0 and math.isfinite(settings.budget)):
        raise InputError(
            f"--budget {settings.budget:g} is not a number of seconds above 0; "
            f"try {Settings.budget:g}"
        )
    for name, least in {"folds": 2, "candidates": 1, "jobs": 1, "threads": 0}.items():
        value = getattr(settings, name)
        if value < least:
            raise InputError(f"--{name} {value} is too small; it must be at least {least}")
    if not 0 <= settings.seed < 2**32:
        raise InputError(
            f"--seed {settings.seed} is out of range; it must be from 0 to {2**32 - 1}"
        )


def _check_outputs(outputs: Mapping[str, Path | None], inputs: Sequence[Path]) -> None:
    """Raise where a result could not be written, before the work starts."""
    wanted = {name: path for name, path in outputs.items() if path is not None}
    for name, path in wanted.items():
        if path.is_dir():
            raise InputError(f"--{name} {path}: is a folder; name a file in it")
        if not path.parent.is_dir():
            raise InputError(f"--{name} {path}: no folder {path.parent}; make it first")
        if any(path.exists() and other.exists() and path.samefile(other) for other in inputs):
            raise InputError(f"--{name} {path}: is the data itself; choose another name")
    plot = wanted.get("plot")
    if plot is None:
        return
    if plot.suffix.lower() not in IMAGES:
        raise InputError(f"--plot {plot}: its name must end in {', '.join(IMAGES)}")
    require_matplotlib()


def _write(report: Report, outputs: Mapping[str, Path | None]) -> None:
    """Write the results that were asked for, and say where they are."""
    writers = {"json": write_json, "csv": write_csv, "html": write_html, "plot": write_plot}
    for name, path in outputs.items():
        if path is None:
            continue
        try:
            writers[name](report, path)
        except OSError as error:
            raise InputError(f"--{name} {path}: cannot be written ({error.strerror})") from error
        typer.echo(f"wrote {path}")
