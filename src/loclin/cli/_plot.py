"""The picture: a metric on test rows against prediction time, with the front as a line."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loclin.cli._compare import Result
from loclin.cli._errors import InputError, plural, printable
from loclin.cli._report import Report
from loclin.cli._text import NAMES, named_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["picture", "require_matplotlib", "svg"]

OWN, RIVAL, FRONT = "#c2263f", "#3d4f63", "#8d99a6"
INK, FAINT = "#20262d", "#e9ecef"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "svg.fonttype": "path",
    "svg.hashsalt": "loclin",
}
LOG_FROM = 5.0  # highest over lowest figure, from which on the scale is logarithmic


def require_matplotlib() -> None:
    """Raise unless matplotlib is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError('--plot needs matplotlib: pip install "loclin[plot]"') from error


def picture(report: Report, kind: str) -> bytes:
    """Return the drawn report as a file of that kind: png, svg or pdf."""
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        _figure(report).savefig(file, format=kind, dpi=200)
    return file.getvalue()


def svg(report: Report) -> str | None:
    """Return the picture as an SVG element, or None without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return None
    file = io.StringIO()
    with matplotlib.rc_context(STYLE):
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        _figure(report).savefig(file, format="svg", metadata=nothing, transparent=True)
    return re.sub(r"^.*?(?=<svg)", "", file.getvalue(), flags=re.DOTALL)


def _figure(report: Report) -> Figure:
    """Draw models as numbered dots, with their names in a list beside."""
    from matplotlib.figure import Figure

    metric, n_test = report.settings.metric, len(report.data.y_test)
    rows = [
        row for row in report.rows if not row.baseline and row.figures[metric] is not None
    ]
    figure = Figure(figsize=(8, 4.8))
    axes = figure.add_axes((0.085, 0.155, 0.60, 0.67))
    _title(figure, report)
    if not rows:
        axes.set_axis_off()
        return figure
    heights = [_height(row, metric) for row in rows]
    for row, height in zip(rows, heights, strict=True):
        if metric == "error":
            ends = [100 * row.low, 100 * row.high]
            axes.plot([_x(row)] * 2, ends, color=_color(row), alpha=0.25, linewidth=3)
        face = _color(row) if row.front else "white"
        edge: dict[str, Any] = {"markeredgecolor": _color(row), "markeredgewidth": 1.4}
        axes.plot(_x(row), height, "o", markersize=13, markerfacecolor=face, **edge)
    _scales(axes, rows, heights, metric)
    front = sorted((_x(row), _height(row, metric)) for row in rows if row.front)
    costs, best = [cost for cost, _ in front], [height for _, height in front]
    axes.step(costs, best, where="post", color=FRONT, linewidth=1.2, zorder=1)
    for number, (row, height) in enumerate(zip(rows, heights, strict=True), 1):
        ink = "white" if row.front else _color(row)
        form: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "fontsize": 7.5,
            "zorder": 5,
        }
        axes.text(_x(row), height, str(number), color=ink, clip_on=True, **form)
        line = f"{number}  {row.model}"
        where, weight = 0.825 - 0.045 * (number - 1), "bold" if row.front else "normal"
        figure.text(0.71, where, line, color=_color(row), va="top", fontweight=weight)
    floor = next((row for row in report.rows if row.baseline), None)
    words = "filled: on the front (nothing is both better and faster)"
    if floor is not None:
        words += (
            f"; majority class: {named_figure(metric, floor.figures[metric], n_test)}"
        )
    figure.text(0.02, 0.02, words, color=RIVAL, fontsize=8)
    return figure


def _x(row: Result) -> float:
    """Return a row's place on the time axis, in microseconds."""
    return 1e6 * row.predict_seconds


def _height(row: Result, metric: str) -> float:
    return (row.figures[metric] or 0.0) * (100 if metric == "error" else 1)


def _color(row: Result) -> str:
    return OWN if row.own else RIVAL


def _title(figure: Figure, report: Report) -> None:
    data, metric = report.data, report.settings.metric
    name = printable(Path(data.name).name).replace("$", r"\$")  # no mathematics
    name = name if len(name) <= 40 else name[:39] + "…"
    title = f"{name}: {NAMES[metric]} on test rows, and the time of a prediction"
    bars = "; bars are 95 % intervals" if metric == "error" else ""
    size = (
        f"{len(data.y_train):,} training rows, {len(data.y_test):,} test rows, "
        f"{plural(data.X_train.shape[1], 'feature')}, {len(data.classes)} classes{bars}"
    )
    figure.text(0.02, 0.94, title, fontsize=12.5, fontweight="bold", color=INK)
    figure.text(0.02, 0.89, size, color=RIVAL, fontsize=8.5)
    figure.text(0.71, 0.865, "red: loclin, grey: scikit-learn", color=RIVAL, fontsize=8.5)


def _scales(
    axes: Axes, rows: Sequence[Result], heights: Sequence[float], metric: str
) -> None:
    """Set scales, ticks and grid; the axes begin where the data do."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    costs = [_x(row) for row in rows]
    axes.set_xscale("log")
    span = max(max(costs) / min(costs), 10.0)
    axes.set_xlim(min(costs) / span**0.08, max(costs) * span**0.08)
    axes.xaxis.set_major_locator(
        LogLocator(subs=(1.0,) if span > 50 else (1.0, 2.0, 5.0))
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _duration(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = min(heights), max(heights)
    if metric == "error":
        low, high = (
            min(100 * row.low for row in rows),
            max(100 * row.high for row in rows),
        )
    if low > 0 and high / low > LOG_FROM:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.15, high * 1.15)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        room = 0.06 * (high - low) or 0.5
        axes.set_ylim(low - room, high + room)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    unit = " in %" if metric == "error" else ""
    axes.set_ylabel(NAMES[metric] + unit, color=INK)
    axes.set_xlabel("time of a prediction, a row", color=INK)
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _duration(micros: float) -> str:
    """Return a time in its unit: ``0.5 µs``, ``2 ms``."""
    for unit, least in (("s", 1e6), ("ms", 1e3)):
        if micros >= least:
            return f"{micros / least:g} {unit}"
    return f"{micros:g} µs"
