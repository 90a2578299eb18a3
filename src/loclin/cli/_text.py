"""Numbers and parameters as people read them, the table's cells, and the plain table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from loclin.cli._compare import Result, Skipped

__all__ = [
    "COLUMNS",
    "cells",
    "late_cells",
    "micros",
    "parameters",
    "percent",
    "plain_table",
    "size",
    "times",
]

COLUMNS = ("model", "error %", "95 % range", "log loss", "fit s", "us a row", "size")


def percent(share: float, n_rows: int) -> str:
    """Return a share in percent, with as many decimals as ``n_rows`` can bear."""
    return f"{100 * share:.{2 if n_rows >= 5000 else 1}f}"


def times(seconds: float) -> str:
    """Return seconds, to a thousandth at most."""
    if seconds < 0.001:
        return "<0.001"
    digits = 3 if seconds < 0.1 else 2 if seconds < 10 else 1 if seconds < 100 else 0
    return f"{seconds:,.{digits}f}"


def micros(seconds: float) -> str:
    """Return seconds as microseconds, two digits or so."""
    value = 1e6 * seconds
    if value < 0.005:
        return "<0.01"
    digits = 2 if value < 0.095 else 1 if value < 9.95 else 0
    return f"{value:,.{digits}f}"


def size(n_bytes: int) -> str:
    """Return a number of bytes in a handy unit."""
    for unit, digits in (("B", 0), ("kB", 0), ("MB", 1)):
        value = n_bytes / {"B": 1, "kB": 1e3, "MB": 1e6}[unit]
        if value < 999.5:
            return f"{value:.{digits if value < 99.5 else 0}f} {unit}"
    return f"{n_bytes / 1e9:.1f} GB"


def parameters(chosen: Mapping[str, object]) -> str:
    """Return parameters as in a call: ``C=3.2, gamma=0.011``."""
    if not chosen:
        return "defaults"
    return ", ".join(f"{name}={_value(value)}" for name, value in sorted(chosen.items()))


def _value(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float | np.floating) else f"{value}"


def cells(row: Result) -> tuple[str, ...]:
    """Return the cells of a row, one for each of `COLUMNS`."""
    n_test = len(row.wrong)
    return (
        row.model,
        percent(row.error, n_test),
        f"{percent(row.low, n_test)} - {percent(row.high, n_test)}",
        "-" if row.log_loss is None else f"{row.log_loss:.3f}",
        times(row.fit_seconds),
        micros(row.predict_seconds),
        size(row.size_bytes),
    )


def late_cells(item: Skipped) -> tuple[str, ...]:
    """Return the cells of a system that timed out."""
    return (item.model, "timed out", *["-"] * (len(COLUMNS) - 2))


def plain_table(
    rows: Sequence[Result], marks: Sequence[str], late: Sequence[Skipped] = ()
) -> list[str]:
    """Return an aligned table as lines: a mark, the name, and figures to the right."""
    table: list[tuple[str, ...]] = [("", *COLUMNS)]
    table += [(mark, *cells(row)) for mark, row in zip(marks, rows, strict=True)]
    table += [("", *late_cells(item)) for item in late]
    widths = [max(len(line[index]) for line in table) for index in range(len(table[0]))]
    lines = []
    for line in table:
        left = [
            cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)
        ]
        right = [
            cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)
        ]
        lines.append(" ".join(left[:1]) + " " + "  ".join(left[1:] + right))
    return [line.rstrip() for line in lines]
