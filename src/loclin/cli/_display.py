"""What the user sees while models run, and the table at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from loclin.cli._compare import Result, Skipped, Step
from loclin.cli._errors import plural, printable
from loclin.cli._report import Report, footnotes, legend
from loclin.cli._text import cells, columns, late_cells, micros, named_figure

__all__ = ["Watch", "show", "watching"]

HIDDEN = ("95 % range", "fit s", "size", "AUC")  # in turn, on a narrow terminal
PIPE_WIDTH = 1000  # columns, so that no line of a pipe is broken


class Watch:
    """A line for each model at work on standard error, gone at the end."""

    def __init__(self, progress: Progress, names: Sequence[str]) -> None:
        self._progress = progress
        self._tasks = {
            name: progress.add_task(name, start=False, total=1.0, doing="")
            for name in names
        }

    def step(self, step: Step) -> None:
        task = self._tasks[step.model]
        if self._progress.tasks[task].start_time is None:
            self._progress.start_task(task)
        self._progress.update(task, doing=printable(step.doing))

    def finish(self, outcome: Result | Skipped, metric: str) -> None:
        task = self._tasks[outcome.model]
        if isinstance(outcome, Skipped):
            line = f"left out: {outcome.reason}"
        else:
            value = outcome.figures[metric]
            line = named_figure(metric, value, len(outcome.said.predicted))
            line += f", {micros(outcome.predict_seconds)} us a row"
            if outcome.tuned.tried:
                line += f" ({plural(outcome.tuned.tried, 'candidate')})"
        self._progress.update(task, completed=1.0, doing=printable(line))


@contextmanager
def watching(names: Sequence[str]) -> Iterator[Watch]:
    """Show models at work on standard error, where that is a terminal."""
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    console = Console(stderr=True, highlight=False, force_terminal=on_terminal)
    progress = Progress(
        SpinnerColumn(finished_text="[green]✓"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[doing]}", markup=False),
        console=console,
        transient=True,
        refresh_per_second=4,  # seldom, since it runs beside what is being timed
    )
    watch = Watch(progress, names)
    if not on_terminal or console.is_dumb_terminal:
        yield watch  # which tells nobody
        return
    with progress:
        yield watch


def show(report: Report) -> None:
    """Print the table, what is to know of it, the verdict, and the code."""
    on_terminal = sys.stdout.isatty()
    width = None if on_terminal else PIPE_WIDTH
    console = Console(highlight=False, force_terminal=on_terminal, width=width)
    if report.rows or report.late:
        wide = console.options.update(width=PIPE_WIDTH)
        tables = [
            _table(report, HIDDEN[:hidden], on_terminal)
            for hidden in range(len(HIDDEN) + 1)
        ]
        fitting = (
            table
            for table in tables
            if console.measure(table, options=wide).maximum <= console.width
        )
        console.print(next(fitting, tables[-1]))
    for line in legend(report):
        console.print(printable(line), style="dim", markup=False)
    console.print()
    for line in report.verdict:
        console.print(printable(line), style="bold", markup=False)
    if report.code:
        console.print("\nIn Python:\n", style="dim")
        print(report.code, flush=True)
    sys.stdout.flush()


def _table(report: Report, hidden: Sequence[str], on_terminal: bool) -> Table:
    """Return the table without the columns that are hidden."""
    metric = report.settings.metric
    shape = box.SIMPLE_HEAD if on_terminal else None
    table = Table(box=shape, pad_edge=False, padding=(0, 1))
    table.add_column("")
    names = columns(metric)
    for name in names:
        if name not in hidden:
            side = "left" if name == "model" else "right"
            table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]

    def shown(values: Sequence[str]) -> list[str]:
        pairs = zip(names, values, strict=True)
        return [value for name, value in pairs if name not in hidden]

    for row, mark in zip(report.rows, footnotes(report)[1], strict=True):
        name, *figures = shown(cells(row, metric))
        style = "bold green" if row.front else "dim" if row.baseline else ""
        own = Text(name, style="bold" if row.own else "")
        table.add_row(mark, own, *figures, style=style)
    for item in report.late:
        table.add_row("", *shown(late_cells(item, metric)), style="dim")
    return table
