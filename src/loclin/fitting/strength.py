"""Strength of the penalty where the user leaves it to us and rows are few: by cross-validation."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold

from loclin.engine.data import Floats, Rows
from loclin.engine.jit import quiet
from loclin.engine.procedure import Descent
from loclin.engine.scores import block_rows, winners
from loclin.engine.threads import side_by_side, threads_for
from loclin.fitting.checks import check_number

NAMES = ("auto", "scale")
FACTORS = (0.25, 1.0, 4.0, 16.0, 64.0)
FEW_ROWS = 50, 2000  # cross-validated from so many rows to so many
FOLDS = 3
HELD_OUT = 2000  # rows held out in all, in so many draws of the folds as that takes
SIGMAS = 1.0  # a lead that is no chance


class Trial(NamedTuple):
    """Short fits of a model on a part of its rows, of which the rest tell strength and temperature.

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
        Times as many, where rows suffice for one such fit: the more a fit knows its rows by heart,
        the less its scores are worth elsewhere.
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
    fitted._adopt(procedure.result(final=True))
    return fitted


def part_of(rows: Rows, some: NDArray[Any]) -> Rows:
    """Return some of the rows, with weights of mean 1."""
    weights = rows.weights[some]
    return Rows(rows.X[some], rows.y[some], weights / weights.mean())


def check_alpha(alpha: Any) -> None:
    """Raise where `alpha` is neither a number above 0 nor a name."""
    if not (isinstance(alpha, str) and alpha in NAMES):
        check_number("alpha", alpha, low=0, open_low=True, open_high=True,
                     hint='or "auto" or "scale"')  # fmt: skip


def chosen_factor(model: Any, rows: Rows, seed: int) -> float:
    """Return the factor on the rule's strength that errs least in cross-validation.

    Where labels are noisy and rows few, the rule's strength is too weak by more than ten times;
    from a few thousand rows on it is right. Another factor than 1 must win by more than chance:
    its wins less its losses, row by row, exceed `SIGMAS` of their standard deviations.
    """
    if model.alpha != "auto":
        return 1.0
    if not FEW_ROWS[0] <= len(rows.y) <= FEW_ROWS[1] or np.bincount(rows.y).min() < FOLDS:
        return 1.0
    trial = model._trial(rows)
    if not trial.n_iterations:
        return 1.0
    draws = min(trial.most_draws, -(-HELD_OUT // len(rows.y)))
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=draws, random_state=seed)
    wins = np.zeros((len(FACTORS), len(rows.y)))
    n_products = float(block_rows(1, rows.X.dtype.itemsize)) * rows.X.shape[1]  # of a prediction
    with threads_for(n_products), quiet():  # the fit itself warns
        try:
            parts = list(folds.split(rows.y, rows.y))
            tasks = [(model, rows, trial, seed, *part) for part in parts]
            for (_, test), found in zip(
                parts, side_by_side(fold_wins, tasks, model.n_jobs), strict=True
            ):
                wins[:, test] += found
        except ValueError:
            # Two thirds of the rows may be too few for what all allow. What is wrong with the
            # parameters, the fit itself will say.
            return 1.0
    gains, spreads = wins.sum(axis=1), np.linalg.norm(wins, axis=1)
    gains[gains <= SIGMAS * spreads] = 0.0
    return FACTORS[gains.argmax()] if gains.any() else 1.0


@np.errstate(all="ignore")
def fold_wins(
    model: Any, rows: Rows, trial: Trial, seed: int, train: NDArray[Any], test: NDArray[Any]
) -> Floats:
    """Return by factor and row held out: its weight if right where factor 1 is wrong, or less."""
    learned = part_of(rows, train)
    X, y, weights = rows.X[test], rows.y[test], rows.weights[test]
    tried = copy(model)
    vars(tried).update(trial.parameters, alpha="scale", max_iter=trial.n_iterations)
    tried._factor = max(FACTORS)
    right: dict[float, Floats] = {}
    procedure: Any = None
    for factor in sorted(FACTORS, reverse=True):
        ratio, tried._factor = factor / tried._factor, factor
        descends = trial.goes_on and isinstance(procedure, Descent)
        if not (descends and procedure.weaken(ratio)):
            procedure = tried._begin(learned, np.random.default_rng(seed), False)
        for done in range(1, trial.n_iterations + 1):
            procedure.iterate(average=done == trial.n_iterations)
        tried._adopt(procedure.result())
        right[factor] = weights * (winners(tried._class_scores(X)) == y)
    return np.stack([right[factor] - right[1.0] for factor in FACTORS])
