"""Four shapes of a figure's result, each drawn by one function (`drawings`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.quick import sized

GRID = sized(120, quick=20)  # points a side of a map


def lines(x: Any, curves: dict[str, Any], x_name: str, y_name: str, *,
          log_x: bool = False) -> dict[str, Any]:  # fmt: skip
    """Curves over common points; the runs of a curve are its rows, or there is one."""
    return {"shape": "lines", "x": list(x), "curves": curves, "x name": x_name, "y name": y_name,
            "log x": log_x}  # fmt: skip


def points(curves: dict[str, Any], x_name: str, y_name: str) -> dict[str, Any]:
    """Curves of (x, y) pairs each, x on a logarithmic axis."""
    return {"shape": "points", "curves": curves, "x name": x_name, "y name": y_name}


def grid_of(X: NDArray[Any], margin: float = 0.05) -> tuple[list[list[float]], NDArray[Any]]:
    """Return the corners of a box around the points, and a grid of points in it."""
    low, high = X.min(axis=0), X.max(axis=0)
    box = np.round([low - margin * (high - low), high + margin * (high - low)], 3)
    axes = (np.linspace(a, b, GRID) for a, b in zip(*box, strict=True))
    return box.tolist(), np.column_stack([part.ravel() for part in np.meshgrid(*axes)])


def panel(title: str, found: NDArray[Any], **more: Any) -> dict[str, Any]:
    """Return a map: a class or region for each point of the grid, a letter each.

    More can be ``marked``, points to be circled, and ``colours``, RGB from 0 to 255 of the points.
    """
    codes = np.unique(found, return_inverse=True)[1] if found.dtype == bool else found
    rows = np.reshape(codes, (GRID, GRID)).astype(int)
    return {"title": title, "cells": ["".join(chr(97 + c) for c in row) for row in rows]} | more


def maps(
    box: Any, X: NDArray[Any], y: NDArray[Any], panels: list[dict[str, Any]]
) -> dict[str, Any]:
    """Panels side by side with the same points, which are of the classes y."""
    points = np.round(X, 3).tolist()
    return {"shape": "maps", "box": box, "points": points, "labels": list(map(int, y)),
            "panels": panels}  # fmt: skip


def images(rows: list[tuple[str, Any, Any]], side: int) -> dict[str, Any]:
    """Return rows of square images, values from 0 to 1, with their labels."""
    return {"shape": "images", "side": side, "rows": [
        {"title": title, "labels": list(map(int, labels)),
         "images": [np.uint8(np.round(255 * image)).tobytes().hex() for image in pictures]}
        for title, pictures, labels in rows
    ]}  # fmt: skip
