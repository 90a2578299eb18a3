"""The commands of ``loclin``."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from joblib import cpu_count

from loclin import __version__
from loclin.cli import _compare, _display
from loclin.cli._compare import Result, Skipped, ranked
from loclin.cli._data import Data, load_data
from loclin.cli._errors import InputError, plural
from loclin.cli._limits import Limit
from loclin.cli._outputs import check_outputs, write_outputs
from loclin.cli._report import Report
from loclin.cli._settings import Settings
from loclin.cli._systems import System, pick, roster
from loclin.cli._terminal import lost_output, say

__all__ = ["app"]

BUSY = 0.75  # load a core from which timing is in doubt
MOST_THREADS = 1024
MOST_JOBS = 4  # by default

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
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
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
    typer.Option(
        metavar="SHARE", help="Share of rows held out for testing, 0.25 by default."
    ),
]
Models = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="Only these models, such as ml3,svc-rbf,linearsvc; all for every model there is.",
    ),
]
Budget = Annotated[
    float, typer.Option(metavar="SECONDS", help="Tuning time, the same for every model.")
]
Folds = Annotated[int, typer.Option(metavar="N", help="Folds of the cross-validation.")]
Candidates = Annotated[
    int, typer.Option(metavar="N", help="The most candidates to try for a model.")
]
Seed = Annotated[
    int, typer.Option(metavar="N", help="Seed of splits, candidates and models.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Models to tune at once, each in a process with its own copy of the data; as many as "
        f"there are cores by default, {MOST_JOBS} at most. What is timed runs alone.",
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Threads for each fit and prediction; 0 for as many as the libraries like.",
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="The most that one model may take in all; it is ended then, and the others go on. By "
        "default 60 budgets, and at least 300; 0 for no limit.",
    ),
]
MaxGb = Annotated[
    float,
    typer.Option(
        metavar="GB",
        help="The most that a data file may take, decompressed and in memory.",
    ),
]
Json = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write everything as JSON.")
]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as CSV.")]
Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a report as one HTML file.")
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Draw error against time a row: .png, .svg or .pdf."
    ),
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
    jobs: Jobs = None,
    threads: Threads = Settings.threads,
    time_limit: TimeLimit = None,
    max_gb: MaxGb = Limit.gigabytes,
    json: Json = None,
    csv: Csv = None,
    html: Html = None,
    plot: Plot = None,
) -> None:
    """Compare loclin's classifiers with scikit-learn's on your data.

    Each model is tuned by cross-validation on the training split for the same time,
    fitted anew, and tested once: error, fit time, prediction time, size.
    """
    chosen = {"target": target, "test": test, "test-size": test_size, "models": models}
    outputs = {"json": json, "csv": csv, "html": html, "plot": plot}
    try:
        if time_limit is None:
            time_limit = Settings.default_time_limit(budget)
        if jobs is None:
            jobs = max(
                1, min(MOST_JOBS, cpu_count(only_physical_cores=True) // max(1, threads))
            )
        settings = Settings(budget, folds, candidates, seed, jobs, threads, time_limit)
        _check_settings(settings)
        if not max_gb > 0:
            raise InputError(
                f"--max-gb {max_gb:g} is not a number above 0; try {Limit.gigabytes:g}"
            )
        if sys.stdout is None and not any(outputs.values()):
            raise InputError(
                "the standard output is closed; write a file, such as --html FILE"
            )
        check_outputs(outputs, [Path(data), *([test] if test else [])])
        systems = pick(models, roster())
        loaded = load_data(
            data,
            target=target,
            test=test,
            test_size=test_size,
            seed=seed,
            limit=Limit(max_gb),
        )
        command = _command(data, {**chosen, **vars(settings), "max_gb": max_gb})
        report, lost = _run(loaded, systems, settings, command)
        write_outputs(report, outputs)
        if lost is not None:
            raise lost
    except InputError as error:
        say(f"loclin: {error}", error=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        say("loclin: interrupted", error=True)
        raise typer.Exit(130) from None
    except OSError as error:
        raise typer.Exit(lost_output(error)) from None
    if report.interrupted:
        raise typer.Exit(130)


def _run(
    data: Data, systems: Sequence[System], settings: Settings, command: str
) -> tuple[Report, OSError | None]:
    """Run the comparison before the user's eyes,
    and return it with what their screen raised.

    An interrupt, or a screen that is gone, keeps what is finished.
    """
    outcomes: list[Result | Skipped] = []
    interrupted, lost = False, None
    screen = _display.display([system.name for system in systems], settings.budget)
    start = perf_counter()
    try:
        screen.say(_headline(data, settings))
        for note in (*data.notes, *_busy()):
            screen.say(f"note: {note}")
        start = perf_counter()
        with screen:
            for outcome in _compare.compare(data, systems, settings, screen.step):
                outcomes.append(outcome)
                screen.finish(outcome)
    except KeyboardInterrupt:
        interrupted = True
    except OSError as error:
        interrupted, lost = len(outcomes) < len(systems), error
    report = Report(
        data,
        settings,
        ranked([outcome for outcome in outcomes if isinstance(outcome, Result)]),
        [outcome for outcome in outcomes if isinstance(outcome, Skipped)],
        command,
        perf_counter() - start,
        interrupted,
    )
    try:
        if lost is None:
            screen.table(report)
    except OSError as error:
        lost = error
    return report, lost


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
            words += [
                f"--{name.replace('_', '-')}",
                f"{value:g}" if isinstance(value, float) else str(value),
            ]
    return shlex.join(words)


def _check_settings(settings: Settings) -> None:
    """Raise where an option is out of range."""
    if not (settings.budget > 0 and math.isfinite(settings.budget)):
        raise InputError(
            f"--budget {settings.budget:g} is not a number of seconds above 0; "
            f"try {Settings.budget:g}"
        )
    most = {"jobs": MOST_THREADS, "threads": MOST_THREADS}
    for name, least in {"folds": 2, "candidates": 1, "jobs": 1, "threads": 0}.items():
        value = getattr(settings, name)
        if value < least:
            raise InputError(
                f"--{name} {value} is too small; it must be at least {least}"
            )
        if value > most.get(name, value):
            raise InputError(
                f"--{name} {value} is too large; it may be {most[name]} at most"
            )
    if not 0 <= settings.time_limit < math.inf:
        raise InputError(
            f"--time-limit {settings.time_limit:g} is not a number of seconds; give 0 for no limit"
        )
    if not 0 <= settings.seed < 2**32:
        raise InputError(
            f"--seed {settings.seed} is out of range; it must be from 0 to {2**32 - 1}"
        )
