"""What the user sees while models run, and the table at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Self

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Column, Table
from rich.text import Text

from loclin.cli._compare import COMPILING, Result, Skipped, Step
from loclin.cli._errors import plural, printable
from loclin.cli._report import Report, footnotes, legend
from loclin.cli._terminal import say
from loclin.cli._text import COLUMNS, cells, late_cells, micros, percent, plain_table

__all__ = ["display"]

_WIDE = 95  # columns of a terminal, for a table with room between its own


def display(names: Sequence[str], budget: float) -> _Live | _Plain:
    """Return a live display on a terminal, plain lines anywhere else."""
    if (
        sys.stdout is not None
        and sys.stdout.isatty()
        and os.environ.get("TERM") != "dumb"
    ):
        return _Live(names, budget)
    return _Plain(names)


def _outcome(outcome: Result | Skipped) -> str:
    """Return the line for a model that is done."""
    if isinstance(outcome, Skipped):
        return f"left out: {outcome.reason}"
    tuned = outcome.tuned
    line = (
        f"{percent(outcome.error, len(outcome.wrong))} % error, "
        f"{micros(outcome.predict_seconds)} us a row"
    )
    if not tuned.tried:
        return line
    return f"{line} ({plural(tuned.tried, 'candidate')} in {tuned.seconds:.1f} s)"


def _closing(report: Report) -> list[str]:
    """Return the lines below the table: marks, notes, models left out."""
    notes, _ = footnotes(report)
    lines = legend(report) + notes
    lines += [f"{item.model} left out: {item.reason}" for item in report.skipped]
    if report.interrupted:
        lines.append("interrupted: models that had not finished are missing")
    return lines


class _Plain:
    """Plain lines, one for each model that is done, for pipes and files.

    A context manager around the run, like `_Live`, which has the same methods.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._count = len(names)
        self._width = max(map(len, names), default=0)
        self._done = 0
        self._compiled = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def say(self, text: str) -> None:
        """Print a line."""
        say(text)

    def step(self, step: Step) -> None:
        """Say once that the first run compiles; nothing else on what a model is doing."""
        if step.doing == COMPILING and not self._compiled:
            self._compiled = True
            self.say(COMPILING)

    def finish(self, outcome: Result | Skipped) -> None:
        """Show how a model came out."""
        self._done += 1
        self.say(
            f"[{self._done}/{self._count}] {outcome.model.ljust(self._width)}  {_outcome(outcome)}"
        )

    def table(self, report: Report) -> None:
        """Print the table and the verdict."""
        _, marks = footnotes(report)
        lines = (
            plain_table(report.rows, marks, report.late)
            if report.rows or report.late
            else []
        )
        for line in ["", *lines, "", *_closing(report), "", report.verdict]:
            self.say(line)


class _Live:
    """Rich's live display, replaced by a table at the end."""

    def __init__(self, names: Sequence[str], budget: float) -> None:
        self._console = Console(highlight=False)
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(table_column=Column(min_width=8, max_width=16)),
            TextColumn(
                "{task.fields[doing]}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
            ),
            expand=True,
            console=self._console,
            transient=True,
            refresh_per_second=4,  # seldom, since it runs beside what is being timed
        )
        self._budget = max(budget, 1e-9)
        self._tasks = {
            name: self._progress.add_task(name, start=False, total=1.0, doing="")
            for name in names
        }

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        self._console.print(printable(text), markup=False)

    def step(self, step: Step) -> None:
        task = self._tasks[step.model]
        current = self._progress.tasks[task]
        if current.start_time is None:
            self._progress.start_task(task)
        doing = step.doing
        if step.error is not None:
            doing += f" · {step.tried} tried · best {100 * step.error:.1f} % in CV"
        share = min((self._progress.tasks[task].elapsed or 0.0) / self._budget, 0.95)
        self._progress.update(task, completed=share, doing=doing)

    def finish(self, outcome: Result | Skipped) -> None:
        task = self._tasks[outcome.model]
        if self._progress.tasks[task].start_time is None:
            self._progress.start_task(task)
        self._progress.update(task, completed=1.0, doing=printable(_outcome(outcome)))

    def table(self, report: Report) -> None:
        _, marks = footnotes(report)
        if report.rows or report.late:
            narrow = self._console.width < _WIDE
            table = Table(
                box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0 if narrow else 1)
            )
            table.add_column("")
            for name in COLUMNS:
                table.add_column(
                    name, justify="left" if name == "model" else "right", no_wrap=True
                )
            for row, mark in zip(report.rows, marks, strict=True):
                name, *figures = cells(row)
                style = "bold green" if row.front else "dim" if row.baseline else ""
                own = Text(name, style="bold" if row.own else "")
                table.add_row(mark, own, *figures, style=style)
            for item in report.late:
                table.add_row("", *late_cells(item), style="dim")
            self._console.print(table)
        for line in _closing(report):
            self._console.print(printable(line), style="dim", markup=False)
        self._console.print()
        self._console.print(report.verdict, style="bold", markup=False)
