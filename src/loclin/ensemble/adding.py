"""Members of an ensemble, one of each kind at a time, until they predict no better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from loclin.engine.data import Rows
from loclin.fitting.rows import hold_out
from loclin.fitting.temperature import log_losses, smoothing_of, spread


def watched_apart(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Return the rows to learn from, their weights as they are, and the rows to watch."""
    _, watched = hold_out(rows, fraction, seed)
    kept = np.ones(len(rows.y), bool)
    kept[watched.origin] = False
    return Rows(rows.X[kept], rows.y[kept], rows.weights[kept]), watched


def add_members(
    members: list[Any],
    fit_members: Callable[[list[Any]], list[Any]],
    jobs: list[Any],
    watched: Rows | None,
    losses: list[float],
    *,
    tol: float,
    n_iter_no_change: int,
) -> None:
    """Add to one member of each kind the others, or those until their log loss levels off.

    Parameters
    ----------
    members : list of classifiers
        One of each kind; grows in place.
    fit_members : callable
        Returns the members of jobs.
    jobs : list
        What members remain to be fitted, one of each kind after another.
    watched : Rows or None
        Rows held out from all; None adds the members of all jobs.
    losses : list of float
        Gets the log loss on those rows after each member of each kind.
    """
    if watched is None:
        members += fit_members(jobs)
        return
    n_kinds = len(members)
    total = np.zeros(())
    added, smoothing = members, smoothing_of(len(watched.y))
    while True:
        for member in added:
            decisions = member.decision_function(watched.X)
            total = total + decisions / (spread(decisions) or 1.0)
        of_rows = log_losses(total, watched.y, watched.weights, smoothing)
        losses.append(float(of_rows.sum()))
        before = losses[:-n_iter_no_change]
        if not jobs or (before and min(losses) > (1 - tol) * min(before)):
            return
        added = fit_members(jobs[:n_kinds])
        members += added
        jobs = jobs[n_kinds:]
