"""Bars that show what a score is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.inspection.text import (
    decimals_of,
    printable,
    shortened,
    signed,
    value_text,
)

# Petroff's colours, as in scikit-learn: they differ for colour-blind eyes, too.
_FOR, _AGAINST, _BASE = "#3f90da", "#ffa90e", "#94a4a2"
_LINE = 28  # characters beside a bar, from which a label takes two lines
_LONGEST = 28  # characters of a line
_HEAD = 36  # characters of a line above or below the bars
_CLASS = 16  # characters of a class in a title
_PLAIN = {"parse_math": False, "usetex": False}  # a dollar sign is a dollar sign


class Row(NamedTuple):
    """What is known of one row, as plain values.

    Parameters
    ----------
    name, predicted, favoured, against, reference : str
        `predicted` is empty where it is not known.
    columns : list of str
    values : list
        Of the columns, as given.
    contributions : ndarray of shape (n_columns,)
    base, score : float
    """

    name: str
    predicted: str
    favoured: str
    against: str
    reference: str
    columns: list[str]
    values: list[Any]
    contributions: NDArray[np.float64]
    base: float
    score: float

    @property
    def decimals(self) -> int:
        """Decimals that the row's numbers are shown with."""
        return decimals_of([*self.contributions, self.base, self.score])

    def ranked(self, most: int) -> tuple[list[int], list[int]]:
        """Return the places of the largest contributions, and of all others."""
        order = np.argsort(-abs(self.contributions), kind="stable").tolist()
        return order[:most], order[most:]


def class_text(label: str, most: int = _CLASS) -> str:
    """Return the name of a class in quotes."""
    return f'"{shortened(printable(label), most)}"'


def others_text(n_columns: int) -> str:
    """Return the name of the bar of all other columns."""
    return f"{n_columns:,} other column{'s' if n_columns > 1 else ''}"


def bars_of(row: Row, max_columns: int) -> tuple[list[str], list[float]]:
    """Return labels and lengths of a row's bars, from top to bottom."""
    shown, others = row.ranked(max_columns)
    labels = [_label(row.columns[k], row.values[k]) for k in shown]
    lengths = [float(row.contributions[k]) for k in shown]
    if others:
        labels.append(others_text(len(others)))
        lengths.append(float(row.contributions[others].sum()))
    return [*labels, "the row's model\nat the reference"], [*lengths, row.base]


def draw(
    ax: Any, row: Row, max_columns: int, bar_kw: Mapping[str, Any]
) -> tuple[Any, list]:
    """Draw a row's bars, and return them with the numbers beside them."""
    labels, lengths = bars_of(row, max_columns)
    places = np.arange(len(labels), dtype=float)
    places[-1] += 0.35  # the base stands apart
    colors = [_FOR if length >= 0 else _AGAINST for length in lengths[:-1]]
    settings = {"color": [*colors, _BASE], "height": 0.7, **bar_kw}
    bars = ax.barh(places, lengths, **settings)
    texts = ax.bar_label(
        bars, [signed(length, row.decimals) for length in lengths], padding=3, fontsize=9
    )
    ax.set_yticks(places, labels, fontsize=9, **_PLAIN)
    ax.tick_params(axis="y", length=0, pad=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.set_ylim(places[-1] + 0.6, -0.6)
    ax.axvline(0, color="#333333", linewidth=0.8)
    ax.axhline(places[-1] - 0.675, color="#cccccc", linewidth=0.8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title("\n".join(_title(row)), loc="left", fontsize=10, **_PLAIN)
    ax.set_xlabel("\n".join(_directions(row)), fontsize=9, **_PLAIN)
    return bars, list(texts)


def limits_of(rows: list[Row], max_columns: int) -> tuple[float, float]:
    """Return limits that hold the bars of all rows, with room for the numbers."""
    lengths = [length for row in rows for length in bars_of(row, max_columns)[1]]
    low, high = min(0.0, *lengths), max(0.0, *lengths)
    room = 0.33 * (high - low) or 1.0
    return low - room * (low < 0), high + room * (high > 0 or low == 0)


def height_of(row: Row, max_columns: int) -> float:
    """Return inches that a row's bars and words need."""
    labels, _ = bars_of(row, max_columns)
    n_lines = len(_title(row)) + len(_directions(row))
    return (
        0.5
        + 0.16 * n_lines
        + 0.29 * len(labels)
        + 0.1 * sum("\n" in one for one in labels)
    )


def _title(row: Row) -> list[str]:
    """Return the lines above a row's bars."""
    name = f"row {shortened(printable(row.name), _CLASS)}"
    score = signed(row.score, row.decimals)
    favoured, against = class_text(row.favoured), class_text(row.against)
    head = _joined(f"{name}:", f"predicted {class_text(row.predicted)}")
    tail = _joined(f"score of {favoured}", f"against {against}: {score}")
    return [*(head if row.predicted else [name]), *tail]


def _directions(row: Row) -> list[str]:
    """Return the lines below a row's bars."""
    left = f"\N{LEFTWARDS ARROW} for {class_text(row.against)}"
    right = f"for {class_text(row.favoured)} \N{RIGHTWARDS ARROW}"
    lines = _joined(left, f"| {right}")
    reference = shortened(printable(row.reference), 2 * _LONGEST)
    return [*(lines if len(lines) == 1 else [right, left]), f"reference: {reference}"]


def _joined(first: str, second: str) -> list[str]:
    whole = f"{first} {second}"
    return [whole] if len(whole) <= _HEAD else [first, second]


def _label(column: str, value: Any) -> str:
    name, shown = printable(column), value_text(value)
    if len(name) + len(shown) > _LINE:
        return f"{shortened(name, _LONGEST)}\n= {shortened(shown, _LONGEST)}"
    return f"{name} = {shown}"
