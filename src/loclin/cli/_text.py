"""Numbers and parameters as people read them, and the cells of the table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loclin.cli._compare import Result, Skipped

__all__ = [
    "cells",
    "columns",
    "late_cells",
    "micros",
    "named_figure",
    "parameters",
    "size",
]

NAMES = {
    "error": "error",
    "log_loss": "log loss",
    "auc": "AUC",
    "average_precision": "average precision",
    "balanced_accuracy": "balanced accuracy",
}
ALWAYS = ("error", "log_loss", "auc")


def columns(metric: str) -> tuple[str, ...]:
    """Return the names of the table's columns."""
    more = () if metric in ALWAYS else (NAMES[metric],)
    shown = ("error %", "95 % range", "log loss", "AUC", *more)
    return ("model", *shown, "fit s", "us a row", "size")


def cells(row: Result, metric: str) -> tuple[str, ...]:
    """Return the cells of a row, one for each of `columns`."""
    n_test = len(row.said.predicted)
    more = () if metric in ALWAYS else (metric,)
    return (
        row.model,
        percent(row.figures["error"] or 0.0, n_test),
        f"{percent(row.low, n_test)} - {percent(row.high, n_test)}",
        *(_decimals(row.figures[name]) for name in ("log_loss", "auc", *more)),
        times(row.fit_seconds),
        micros(row.predict_seconds),
        size(row.size_bytes),
    )


def late_cells(item: Skipped, metric: str) -> tuple[str, ...]:
    """Return the cells of a system that timed out."""
    return (item.model, "timed out", *["-"] * (len(columns(metric)) - 2))


def named_figure(metric: str, value: float | None, n_rows: int) -> str:
    """Return a figure with its name: ``1.6 % error``, ``AUC 0.934``."""
    if value is None:
        return f"no {NAMES[metric]}"
    if metric == "error":
        return f"{percent(value, n_rows)} % error"
    return f"{NAMES[metric]} {value:.3f}"


def _decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


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
