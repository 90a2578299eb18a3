"""Placing labels beside points so that they cover neither each other nor the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Box", "best_places", "place_labels"]

AWAY = (9.0, 16.0, 26.0, 40.0, 58.0, 80.0)  # distances tried, in points
LEADER = 20.0  # from this distance on, a line leads from the label to its point
SIDES = [  # directions tried
    *[(1, 0), (-1, 0), (0, 1), (0, -1)],
    *[(0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7)],
    *[(0.3, 1), (-0.3, 1), (0.3, -1), (-0.3, -1)],
]
ROUNDS = 4
# in turn, while labels still cover each other or leave the frame
STRICT = (1, 10, 100, 1000)


class Box(NamedTuple):
    """A rectangle in points."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """Return the area that two boxes share."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.top, other.top) - max(self.bottom, other.bottom)
        return wide * high if wide > 0 and high > 0 else 0.0

    def outside(self, frame: Box) -> float:
        """Return the area that sticks out of ``frame``."""
        return (self.right - self.left) * (self.top - self.bottom) - self.overlap(frame)


def place_labels(
    figure: Figure,
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[tuple[str, str, bool]],
    lines: Sequence[Sequence[tuple[float, float]]],
) -> None:
    """Write a name beside each point.

    Parameters
    ----------
    figure, axes : matplotlib's, with limits already set
    points : sequence of (x, y) in data coordinates
    names : sequence of (text, colour, bold), one for each point
    lines : sequence of sequences of (x, y)
        Lines along the axes that labels should keep off, by their corners.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patheffects import withStroke

    scale = 72 / figure.dpi
    renderer = FigureCanvasAgg(figure).get_renderer()

    def in_points(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        return [
            (float(x) * scale, float(y) * scale)
            for x, y in map(axes.transData.transform, places)
        ]

    spots = in_points(points)
    sizes = []
    for text, _, bold in names:
        sample = figure.text(0, 0, text, fontweight="bold" if bold else "normal")
        extent = sample.get_window_extent(renderer)
        sizes.append((extent.width * scale, extent.height * scale))
        sample.remove()
    strips = [
        Box(min(x, x2) - 1.5, min(y, y2) - 1.5, max(x, x2) + 1.5, max(y, y2) + 1.5)
        for line in lines
        for (x, y), (x2, y2) in pairwise(in_points(line))
    ]
    frame = axes.get_window_extent(renderer)
    room = Box(*(edge * scale for edge in (frame.x0, frame.y0, frame.x1, frame.y1)))
    for point, spot, box, (text, color, bold) in zip(
        points, spots, best_places(spots, sizes, strips, room), names, strict=True
    ):
        middle = (
            (box.left + box.right) / 2 - spot[0],
            (box.bottom + box.top) / 2 - spot[1],
        )
        leader = {"arrowstyle": "-", "color": color, "linewidth": 0.7, "alpha": 0.6}
        axes.annotate(
            text,
            point,
            middle,
            textcoords="offset points",
            ha="center",
            va="center",
            color=color,
            fontweight="bold" if bold else "normal",
            zorder=5,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            arrowprops=leader | {"shrinkA": 0, "shrinkB": 5}
            if _gap(box, spot) > LEADER
            else None,
        )


def best_places(
    spots: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    strips: Sequence[Box],
    room: Box,
) -> list[Box]:
    """Return a box for each label, chosen in turns so that all together cover little.

    Parameters
    ----------
    spots : sequence of (x, y)
        The points, in points.
    sizes : sequence of (width, height)
        The labels' sizes.
    strips : sequence of Box
        What labels should keep off.
    room : Box
        Where labels should stay.
    """
    dots = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in spots]

    def cost(box: Box, spot: tuple[float, float]) -> float:
        gap = _gap(box, spot)
        return (
            10 * sum(map(box.overlap, dots))
            + 3 * sum(map(box.overlap, strips))
            + 4 * gap
            + 150 * sum(_gap(box, other) <= gap for other in spots if other != spot)
        )

    choices = [
        {box: cost(box, spot) for box in _around(spot, extent)}
        for spot, extent in zip(spots, sizes, strict=True)
    ]
    chosen: dict[int, Box] = {}
    for strict in STRICT:
        for _ in range(ROUNDS):
            for index, costs in enumerate(choices):
                others = [box for other, box in chosen.items() if other != index]
                chosen[index] = min(
                    costs,
                    key=lambda box: (
                        costs[box]
                        + strict
                        * (20 * sum(map(box.overlap, others)) + 50 * box.outside(room))
                    ),
                )
        placed = list(chosen.values())
        if not any(
            _in_the_way(box, placed[:number], room) for number, box in enumerate(placed)
        ):
            break
    return placed


def _in_the_way(box: Box, others: Sequence[Box], room: Box) -> bool:
    """Tell whether a label leaves its room, or covers another."""
    return box.outside(room) > 0 or any(box.overlap(other) > 1e-9 for other in others)


def _around(spot: tuple[float, float], extent: tuple[float, float]) -> list[Box]:
    """Return the boxes that a label could take around its point."""
    width, height = extent
    boxes = []
    for away in AWAY:
        for right, up in SIDES:
            x = spot[0] + right * away + ((right > 0) - (right < 0)) * width / 2
            y = spot[1] + up * away + ((up > 0) - (up < 0)) * height / 2
            boxes.append(
                Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            )
    return boxes


def _gap(box: Box, spot: tuple[float, float]) -> float:
    """Return the distance from a point to a box."""
    x, y = spot
    return hypot(max(box.left - x, 0, x - box.right), max(box.bottom - y, 0, y - box.top))
