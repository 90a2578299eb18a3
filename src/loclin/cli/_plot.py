"""The picture: test error against prediction time, with the front as a step line."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loclin.cli._compare import Result
from loclin.cli._errors import InputError, printable
from loclin.cli._labels import place_labels
from loclin.cli._report import Report
from loclin.cli._text import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["picture", "require_matplotlib", "svg"]

OWN, RIVAL, FRONT = "#c2263f", "#3d4f63", "#8d99a6"
INK, FAINT = "#20262d", "#e9ecef"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "svg.fonttype": "path",
    "svg.hashsalt": "loclin",
}


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
    """Draw the figure."""
    from matplotlib.figure import Figure

    rows = [row for row in report.rows if not row.baseline]
    floor = next((row for row in report.rows if row.baseline), None)
    figure = Figure(figsize=(8, 5))
    axes = figure.add_axes((0.09, 0.125, 0.885, 0.68))
    _titles(figure, report)
    if not rows:
        axes.set_axis_off()
        return figure
    _scales(axes, rows)
    for row in rows:
        _point(axes, row)
    corners = _steps(axes, sorted((row for row in rows if row.front), key=_x))
    bars = [[(_x(row), 100 * row.low), (_x(row), 100 * row.high)] for row in rows]
    if floor is not None:
        _majority(figure, axes, floor)
    _legend(figure, rows)
    names = [(row.model, OWN if row.own else INK, row.own) for row in rows]
    points = [(_x(row), 100 * row.error) for row in rows]
    place_labels(figure, axes, points, names, [corners, *bars])
    return figure


def _x(row: Result) -> float:
    """Return a row's place on the time axis, in microseconds."""
    return 1e6 * row.predict_seconds


def _titles(figure: Figure, report: Report) -> None:
    """Write title and subtitle."""
    data = report.data
    title = f"{_shortened(data.name)}: test error and the cost of a prediction"
    subtitle = (
        f"{len(data.y_train):,} training rows, {len(data.y_test):,} test rows, "
        f"{data.X_train.shape[1]:,} features, {len(data.classes)} classes; bars are 95 % intervals"
    )
    figure.text(0.02, 0.945, title, fontsize=13, fontweight="bold", color=INK)
    figure.text(0.02, 0.9, subtitle, color=RIVAL)


def _shortened(name: str, most: int = 40) -> str:
    """Return a file's name without its folders, cut to a title's length, mathtext off."""
    name = printable(Path(name).name).replace("$", r"\$")
    return name if len(name) <= most else name[: most - 1] + "…"


def _scales(axes: Axes, rows: Sequence[Result]) -> None:
    """Set scales, limits, ticks and grid."""
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullLocator,
    )

    costs = [_x(row) for row in rows]
    errors = [100 * row.error for row in rows]
    highest = max(100 * row.high for row in rows)
    axes.set_xscale("log")
    span = max(max(costs) / min(costs), 10.0)
    axes.set_xlim(min(costs) / span**0.12, max(costs) * span**0.16)
    axes.xaxis.set_major_locator(
        LogLocator(subs=(1.0,) if span > 50 else (1.0, 2.0, 5.0))
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _duration(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    if min(errors) > 0 and highest / min(errors) > 4:
        axes.set_yscale("log")
        lowest = min(100 * row.low for row in rows)
        axes.set_ylim(lowest / 1.15, min(highest * 1.25, 130))
        ticks = [base * 10.0**power for power in range(-3, 3) for base in (1, 2, 5)]
        axes.yaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylabel("test error, log scale", color=INK)
    else:
        axes.set_ylim(-0.04 * highest if min(errors) == 0 else 0, highest * 1.1)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.set_ylabel("test error", color=INK)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    axes.set_xlabel("time to predict a row (log scale)", color=INK)
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=RIVAL)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FRONT)


def _duration(value: float) -> str:
    """Write microseconds in the unit that suits them."""
    if value < 0.999:
        return f"{1e3 * value:g} ns"
    return (
        f"{value:g} µs"
        if value < 999
        else f"{value / 1e3:g} ms"
        if value < 1e6
        else f"{value / 1e6:g} s"
    )


def _point(axes: Axes, row: Result) -> None:
    """Draw one row: a bar for the interval, a dot that is filled on the front."""
    color = OWN if row.own else RIVAL
    x, y = _x(row), 100 * row.error
    axes.plot(
        [x, x], [100 * row.low, 100 * row.high], color=color, alpha=0.28, linewidth=3
    )
    axes.plot(
        x,
        y,
        "o",
        markersize=9 if row.own else 7.5,
        markeredgewidth=1.6,
        markeredgecolor=color,
        markerfacecolor=color if row.front else "white",
        zorder=4,
    )


def _steps(axes: Axes, front: Sequence[Result]) -> list[tuple[float, float]]:
    """Draw the front as a step line and return its corners."""
    if not front:
        return []
    top, right = axes.get_ylim()[1], axes.get_xlim()[1]
    corners = [(_x(front[0]), top)]
    for row in front:
        corners += [(_x(row), corners[-1][1]), (_x(row), 100 * row.error)]
    corners.append((right, corners[-1][1]))
    axes.plot(*zip(*corners, strict=True), color=FRONT, linewidth=1.3, zorder=2)
    return corners


def _majority(figure: Figure, axes: Axes, floor: Result) -> None:
    """Draw the majority class's error as a line,
    or name it below where it is off the scale.
    """
    error = 100 * floor.error
    words = f"majority class: {percent(floor.error, len(floor.wrong))} %"
    if error < axes.get_ylim()[1]:
        axes.axhline(error, color=FRONT, linewidth=1.2, linestyle=(0, (1, 2.5)))
        axes.annotate(
            words,
            (axes.get_xlim()[1], error),
            (0, 3),
            textcoords="offset points",
            ha="right",
            color=RIVAL,
            fontsize=8.5,
        )
    else:
        figure.text(
            0.975, 0.025, f"off the scale: {words}", ha="right", color=RIVAL, fontsize=8.5
        )


def _legend(figure: Figure, rows: Sequence[Result]) -> None:
    """Explain colours and fill above the axes."""
    from matplotlib.lines import Line2D

    def dot(color: str, filled: bool, label: str) -> Line2D:
        return Line2D(
            [],
            [],
            marker="o",
            linestyle="",
            color=color,
            markerfacecolor=color if filled else "white",
            markeredgewidth=1.6,
            markersize=7,
            label=label,
        )

    handles = [dot(OWN, True, "loclin")] if any(row.own for row in rows) else []
    handles += [
        dot(RIVAL, True, "scikit-learn"),
        Line2D(
            [], [], color=FRONT, label="front: nothing is both faster and more accurate"
        ),
        dot(RIVAL, False, "behind the front"),
    ]
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.007, 0.818),
        ncols=len(handles),
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        handletextpad=0.4,
        columnspacing=1.6,
    )
