"""Draws the stored results of figures, one picture a figure, a panel a set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

COOL = {"cmap": "coolwarm"}
FLAT = ("--", "-.", ":")  # of systems that have one value for all x
ACROSS = 3  # panels beside each other
FEW = 8  # curves that a legend inside the axes has room for, and ticks


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw the results of a figure, by set."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib.figure import Figure

    by_shape = {
        "lines": draw_lines,
        "points": draw_points,
        "maps": draw_maps,
        "images": draw_images,
    }
    columns = max(len(found.get("panels", [0])) for found in results.values())
    maps = [found for found in results.values() if found["shape"] == "maps"]
    n = len(results)
    across, down = (columns, n) if maps else (min(n, ACROSS), -(-n // ACROSS))
    height = 4.8 if any(len(found.get("curves", [])) > FEW for found in results.values()) else 3.4
    figure = Figure(figsize=(4.2 * across, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for place, (name, found) in enumerate(results.items()):
        some = axes[place] if maps else axes.flat[place : place + 1]
        by_shape[found["shape"]](some, name, found)
    for axis in () if maps else axes.flat[n:]:
        axis.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def draw_lines(axes: Any, name: str, found: dict[str, Any]) -> None:
    """Draw curves, with a band of one deviation where there are several runs."""
    from cycler import cycler
    from matplotlib import colormaps

    (axis,) = axes
    axis.set_prop_cycle(cycler(linestyle=["-", "--"]) * cycler(color=colormaps["tab10"].colors))
    flat = 0
    for label, curve in found["curves"].items():
        runs = np.atleast_2d(np.asarray(curve, dtype=float))
        mean, std = runs.mean(axis=0), runs.std(axis=0)
        if len(mean) < len(found["x"]):
            axis.axhline(mean[0], color="grey", linestyle=FLAT[flat % 3], label=label)
            flat += 1
            continue
        (line,) = axis.plot(found["x"], mean, marker="o", markersize=3, label=label)
        if len(runs) > 1:
            axis.fill_between(
                found["x"], mean - std, mean + std, alpha=0.15, color=line.get_color()
            )
    if found["log x"]:
        axis.set_xscale("log")
    if len(found["x"]) <= FEW:
        axis.set_xticks(found["x"], [f"{x:g}" for x in found["x"]], fontsize=8)
        axis.set_xticks([], minor=True)
    axis.set(title=name, xlabel=found["x name"], ylabel=found["y name"])
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2}
    axis.legend(fontsize=7, **(below if len(found["curves"]) > FEW else {}))


def draw_points(axes: Any, name: str, found: dict[str, Any]) -> None:
    """Draw curves that have an x of their own."""
    from matplotlib.ticker import LogLocator, NullFormatter

    (axis,) = axes
    for label, curve in found["curves"].items():
        axis.semilogx(*np.transpose(curve), marker="o", markersize=3, label=label)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set(title=name, xlabel=found["x name"], ylabel=found["y name"])
    axis.legend(fontsize=7)


def draw_maps(axes: Any, name: str, found: dict[str, Any]) -> None:
    """Draw each panel's regions with the points over them."""
    (x0, y0), (x1, y1) = found["box"]
    x, y = np.transpose(found["points"])
    for axis in axes[len(found["panels"]) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes, found["panels"], strict=False):
        cells = np.array([[ord(c) - 97 for c in row] for row in panel["cells"]])
        colours = panel.get("colours")
        painted = {"c": np.array(colours) / 255} if colours else {"c": found["labels"]} | COOL
        palette = "coolwarm" if cells.max() < 2 else "tab10"
        extent = (x0, x1, y0, y1)
        axis.imshow(cells, palette, origin="lower", extent=extent, aspect="auto", alpha=0.35)
        axis.scatter(x, y, s=4, **painted)
        if panel.get("marked"):
            marked = np.transpose(panel["marked"])
            axis.scatter(*marked, s=14, facecolors="none", edgecolors="green")
        axis.set(title=f"{name}: {panel['title']}", xlim=(x0, x1), ylim=(y0, y1))


def draw_images(axes: Any, name: str, found: dict[str, Any]) -> None:
    """Draw rows of images as one picture."""
    (axis,) = axes
    side = found["side"]
    rows = [
        np.hstack([np.frombuffer(bytes.fromhex(i), np.uint8).reshape(side, side)
                   for i in row["images"]])
        for row in found["rows"]
    ]  # fmt: skip
    axis.imshow(np.vstack(rows), cmap="gray_r")
    titles = [row["title"] for row in found["rows"]]
    axis.set_yticks([side * (k + 0.5) for k in range(len(titles))], titles)
    axis.set_xticks([])
    axis.set_title(name)


def draw_ranks(ranks: dict[str, float], distance: float, path: Path) -> None:
    """Draw average ranks on a line, the best first; bars join what the critical distance joins."""
    from matplotlib.figure import Figure

    names = sorted(ranks, key=lambda name: ranks[name])
    values = np.array([ranks[name] for name in names])
    figure = Figure(figsize=(8, 0.28 * len(names) + 1.2), layout="constrained")
    axis = figure.subplots()
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        axis.plot([value, value], [-place, 1], color="lightgrey", zorder=0)
        axis.text(value + 0.1, -place, f"{name} ({value:.2f})", va="center", fontsize=8)
    axis.scatter(values, -np.arange(len(names)), s=14)
    reach = 0
    for first, value in enumerate(values):
        last = int(np.flatnonzero(values <= value + distance)[-1])
        if last > max(reach, first):
            axis.plot([value, values[last]], [-first - 0.4] * 2, color="black", linewidth=2)
            reach = last
    axis.plot([values[0], values[0] + distance], [1.4, 1.4], color="black")
    axis.text(values[0], 1.6, f"critical difference {distance:.2f}", fontsize=8)
    axis.set(yticks=[], xlabel="average rank (1 is best)", xlim=(0.8, len(names) + 2))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
