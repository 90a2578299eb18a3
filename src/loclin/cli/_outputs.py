"""Writing files: checked before the work starts, and put in place only when whole."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from loclin.cli._errors import InputError, one_line
from loclin.cli._plot import picture, require_matplotlib, svg
from loclin.cli._report import Report, csv_text, footnotes, legend, methods, versions
from loclin.cli._terminal import say
from loclin.cli._text import cells, columns, late_cells, parameters
from loclin.io import replaced

__all__ = ["check_outputs", "replace_file", "write_outputs"]

IMAGES = (".png", ".svg", ".pdf")


def check_outputs(outputs: Mapping[str, Path | None], inputs: Sequence[str]) -> None:
    """Raise where a result could not be written, before the work starts."""
    wanted = {name: path for name, path in outputs.items() if path is not None}
    names = list(wanted)
    for name, path in wanted.items():
        try:
            _check_output(name, path, inputs)
            earlier = names[: names.index(name)]
            twice = [
                other for other in earlier if path.resolve() == wanted[other].resolve()
            ]
        except (OSError, ValueError) as error:
            # a name too long, or with a null character
            raise InputError(_unwritable(name, path, error)) from error
        if twice:
            raise InputError(
                f"--{name} {path}: is that of --{twice[0]} too; choose another name"
            )
    for name in {"plot", "png"} & set(wanted):
        if wanted[name].suffix.lower() not in IMAGES:
            raise InputError(
                f"--{name} {wanted[name]}: its name must end in {', '.join(IMAGES)}"
            )
        require_matplotlib()


def _check_output(name: str, path: Path, inputs: Sequence[str]) -> None:
    if name == "save" and (str(path) == "-" or (path.exists() and not path.is_file())):
        raise InputError(f"--save {path}: is no file; name one")
    if str(path) == "-":
        return
    if path.is_dir():
        raise InputError(f"--{name} {path}: is a folder; name a file in it")
    if not path.parent.is_dir():
        raise InputError(f"--{name} {path}: no folder {path.parent}; make it first")
    there = path.exists()
    # what is written beside has a longer name
    path.with_name(path.name + 20 * "x").exists()
    if any(there and os.path.exists(one) and path.samefile(one) for one in inputs):
        raise InputError(f"--{name} {path}: is the data itself; choose another name")
    if not os.access(
        path if there and not path.is_file() else path.resolve().parent, os.W_OK
    ):
        raise InputError(
            f"--{name} {path}: you may not write in this folder; choose another"
        )


def _unwritable(name: str, path: Path, error: Exception) -> str:
    why = (
        error.strerror
        if isinstance(error, OSError) and error.strerror
        else one_line(error)
    )
    return f"--{name} {path}: cannot be written ({why}); choose another place or name"


def write_outputs(report: Report, outputs: Mapping[str, Path | None]) -> None:
    """Write the results that were asked for, and say where they are.

    Raises
    ------
    InputError
        If some cannot be written; the others are.
    """
    failed = []
    for name, path in outputs.items():
        if path is None:
            continue
        try:
            replace_file(path, _content(name, report, path))
        except OSError as error:
            failed.append(_unwritable(name, path, error))
        else:
            say(f"wrote {path}", error=True)
    if failed:
        raise InputError("; ".join(failed))


def _content(name: str, report: Report, path: Path) -> bytes:
    """Return what the file will hold."""
    if name == "plot":
        return picture(report, path.suffix[1:].lower())
    text = csv_text(report) if name == "csv" else page(report)
    # the bytes of a file's name need not be text
    return text.encode("utf-8", errors="backslashreplace")


def page(report: Report) -> str:
    """Return the report as one HTML page; every text that is not ours is escaped."""
    from jinja2 import Environment, PackageLoader

    data, metric = report.data, report.settings.metric
    environment = Environment(loader=PackageLoader("loclin.cli", "."), autoescape=True)
    environment.filters["micro"] = lambda text: text.replace("us ", "µs ")
    environment.filters["call"] = parameters
    facts = (
        f"{data.description}. {len(data.y_train):,} training rows, {len(data.y_test):,} test rows "
        f"({data.split}), {data.X_train.shape[1]:,} features, {len(data.classes)} classes."
    )
    marked = zip(report.rows, footnotes(report)[1], strict=True)
    return environment.get_template("page.html.jinja").render(
        title=f"{Path(data.name).name}: classifiers compared",
        facts=facts,
        verdict=report.verdict,
        columns=columns(metric),
        rows=[(row, mark, cells(row, metric)) for row, mark in marked],
        late=[late_cells(item, metric) for item in report.late],
        legend=legend(report),
        notes=data.notes,
        picture=svg(report),
        code=report.code,
        methods=methods(report),
        command=report.command,
        versions=", ".join(f"{name} {number}" for name, number in versions().items()),
    )


def replace_file(path: Path, content: bytes) -> None:
    """Write beside the file, then move it into place: what fails leaves the earlier file.

    ``-`` is the standard output.
    """
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    if path.exists() and not path.is_file():  # a pipe or a device has no earlier content
        path.write_bytes(content)
        return
    with replaced(path) as file:
        if path.exists():
            shutil.copymode(path, file.name)
        file.write(content)
