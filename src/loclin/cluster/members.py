"""An ensemble whose members are fitted a part each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from loclin.cluster.executors import Executor, executor_of
from loclin.cluster.parts import Counts, Drawing, View, count, draw, fitted_to, joined
from loclin.cluster.plan import planned
from loclin.cluster.rounds import RowsLeftOutWarning
from loclin.engine.data import Rows
from loclin.engine.warned import warn
from loclin.ensemble import LocallyLinearEnsemble
from loclin.ensemble.members import CAN_BE_MEMBERS
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.checks import check_n_jobs


@dataclass(frozen=True)
class Alone:
    """What parts fit, each for itself, and to which of their rows."""

    drawing: Drawing
    estimator: Any


class Fitted(NamedTuple):
    """Members that parts have fitted, the rows that they held out, and which parts."""

    members: list[Any]
    watched: Rows | None
    parts: list[int]

    def merge(self, other: Fitted) -> Fitted:
        """Return those of both."""
        watched = joined([self.watched, other.watched])
        return Fitted(self.members + other.members, watched, self.parts + other.parts)

    def warn_of_others(self, counts: Counts) -> None:
        """Warn where parts with rows are missing."""
        n_lost = counts.n_rows[~np.isin(counts.part, self.parts)].sum()
        if n_lost:
            warn(
                f"{n_lost} of {counts.n_rows.sum()} rows are left out: what had them could not be "
                "reached. The ensemble is without their members.",
                RowsLeftOutWarning,
            )


def fit_alone(number: int, blocks: Any, state: Alone) -> Fitted:
    """Return the classifier that a part fits to its rows, if they have all classes."""
    view, (start, watched) = state.drawing.view, draw(number, blocks, state.drawing)
    if start is None or len(np.unique(start.y)) < len(view.classes):
        return Fitted([], watched, [number])
    return Fitted([fitted_to(start, state.estimator, view)], watched, [number])


def fit_members(
    estimator: Any, parts: Any, *, executor: str | Executor = "threads",
    n_jobs: int | None = -1,
) -> LocallyLinearEnsemble:  # fmt: skip
    """Fit a classifier to each part alone, and weigh them as an ensemble.

    Take this where parts are large and the way to them is slow: models travel once. The
    rounds of `fit` err less, and return one small model instead of one for each part.

    Parameters
    ----------
    estimator : classifier
        Any of this package that may be a member of an ensemble, with all its parameters:
        those without a stream, too. It is not changed. Callbacks are not called.
    parts, executor, n_jobs
        As of `fit`. Each part that has rows needs some of every class.

    Returns
    -------
    ensemble : LocallyLinearEnsemble
        It has a member for each part that counts. Five rows in a hundred, at most 5,000,
        are held out by the parts; they tell how much each member counts.

    Raises
    ------
    TypeError
        If the classifier cannot be a member.
    ValueError
        If a parameter or a block of rows is not valid, or if a part lacks a class.

    Warns
    -----
    RowsLeftOutWarning
        If an executor has lost parts: the ensemble is without their members.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import loclin.cluster
    >>> from loclin import ML3Classifier
    >>> X, y = load_digits(return_X_y=True)
    >>> parts = [(X[k:1300:2], y[k:1300:2]) for k in range(2)]
    >>> model = loclin.cluster.fit_members(ML3Classifier(random_state=0), parts)
    >>> bool(model.score(X[1300:], y[1300:]) > 0.9)
    True
    """
    if not isinstance(estimator, LocallyLinearClassifier):
        raise TypeError(
            f"{type(estimator).__name__} cannot be a member of an ensemble. {CAN_BE_MEMBERS}"
        )
    estimator._checked_parameters()
    check_n_jobs(n_jobs)
    with executor_of(executor, n_jobs) as run:
        counts = run(count, Counts.merge, parts, clone(estimator))
        n_rows = int(counts.n_rows.sum())
        drawing = planned(estimator, counts, n_rows)
        view = drawing.view
        _check_classes(view, counts)
        found = run(fit_alone, Fitted.merge, parts, Alone(drawing, estimator))
    found.warn_of_others(counts)
    rows = found.watched
    if rows is None:
        raise ValueError(
            f"The parts hold out no rows to weigh members by: {n_rows} are too few."
        )
    ensemble = LocallyLinearEnsemble.of(
        found.members, rows.X, view.classes[rows.y], rows.weights
    )
    view.name_features(ensemble)
    return ensemble


def _check_classes(view: View, counts: Counts) -> None:
    for number in np.unique(counts.part):
        lacking = np.setdiff1d(view.classes, counts.label[counts.part == number].tolist())
        if len(lacking):
            raise ValueError(
                f"Part {number} has no rows of {lacking.tolist()}; each member needs all classes. "
                "Make parts alike, or take loclin.cluster.fit."
            )
