"""Short fits to a part of the rows, of which the rest tell strength, metric and temperature."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from loclin.engine.data import Floats, Matrix, Rows
from loclin.engine.threads import threads_for


class Trial(NamedTuple):
    """Short fits of a model, by which it finds strength, metric and temperature.

    Those that tell strengths apart cost a fit or so, all of them.

    Parameters
    ----------
    parameters : dict
        Those that differ from the model's.
    n_iterations : int, default=3
        Of each strength; the last is averaged. On 13 sets of training rows, three choose as well
        as all of a fit. With 0 the rule stands.
    goes_on : bool, default=True
        Whether each strength starts where the next stronger ended. From the weakest to the
        strongest instead, the choice is worse than the rule.
    most_draws : int, default=1
        Of the folds.
    n_calibrating : int, default=8
        Iterations of the fits whose held-out scores tell the temperature.
    longer : int, default=1
        Times as many of both, where rows suffice to hold out only once: the more a fit knows its
        rows by heart, the less its scores are worth elsewhere.
    n_learning : int, default=4
        Iterations of the fits whose gradients tell the metric.
    in_metric : bool, default=True
        Whether the codes can be those of rows in a metric.
    """

    parameters: dict[str, Any]
    n_iterations: int = 3
    goes_on: bool = True
    most_draws: int = 1
    n_calibrating: int = 8
    longer: int = 1
    n_learning: int = 4
    in_metric: bool = True


# Passes of dual coordinate descent, begun anew with each strength, prefer strong ones for longer.
DUAL_TRIAL = Trial({}, n_iterations=5, longer=2)


def short_fit(model: Any, rows: Rows, n_iterations: int, seed: int) -> Any:
    """Return a copy of the model, fitted to the rows in so many iterations, two of them averaged.

    Parameters
    ----------
    model : LocallyLinearClassifier
        With the parameters of its trial.
    rows : Rows
    n_iterations : int
    seed : int
    """
    fitted = copy(model)
    procedure = fitted._begin(rows, np.random.default_rng(seed), False)
    with threads_for(procedure.products):
        for done in range(n_iterations):
            procedure.iterate(average=done >= n_iterations - 2)
    fitted._learned = procedure.result(final=True)
    return fitted


def decisions_of(model: Any, X: Matrix) -> Floats:
    """Return what a fitted model says of rows that are checked."""
    return np.asarray(model._decisions(model._class_scores(X)))
