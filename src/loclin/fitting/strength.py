"""Strength of the penalty where the user leaves it to us:
by rows that short fits hold out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit

from loclin.engine.data import Floats, Rows
from loclin.engine.procedure import Descent
from loclin.engine.scores import block_rows
from loclin.engine.threads import side_by_side, threads_for
from loclin.engine.warned import quiet
from loclin.fitting.checks import check_number
from loclin.fitting.probability import few_of
from loclin.fitting.recipe import Recipe, Trial
from loclin.fitting.rows import part_of
from loclin.fitting.temperature import log_losses
from loclin.fitting.trials import decisions_of, learned_by

NAMES = ("auto", "scale")
FACTORS = (0.25, 1.0, 4.0, 16.0, 64.0)
# Strengths are cross-validated from so many rows to so many; of more, one fold is held
# out.
FEW_ROWS = 50, 2000
MOST_ROWS = 50_000  # of more the rule stands
FOLDS = 3
HELD_OUT = 2000  # rows held out in all, in so many draws of the folds as that takes
SIGMAS_OF_FOLDS, SIGMAS_OF_ONE = 1.0, 2.0  # a lead that is no chance


def check_strength(name: str, value: Any, *, open_low: bool = True) -> None:
    """Raise where a strength is neither a number above 0
    (or 0, unless `open_low`) nor a name.
    """
    if not (isinstance(value, str) and value in NAMES):
        check_number(name, value, low=0, open_low=open_low, open_high=True,
                     hint='or "auto" or "scale"')  # fmt: skip


def chosen_factor(recipe: Recipe, rows: Rows) -> float:
    """Return the factor on the rule's strength of least log loss on rows held out.

    Where labels are noisy, the rule's strength is too weak by more than ten times; where
    they are not, it is right. The log loss is that at the temperature which suits the
    factor best: errors of few rows are too few to tell strengths apart. Another factor
    than 1 must win by more than chance: its lead, row by row, exceeds one of its standard
    deviations, or two where one fold is held out, whose rows know nothing of the
    deviation of the short fit itself.
    """
    n, seed = len(rows.y), recipe.seed
    if getattr(recipe, recipe.strength_name) != "auto" or recipe.multilabel:
        return 1.0
    if not FEW_ROWS[0] <= n <= MOST_ROWS or np.bincount(rows.y).min() < FOLDS:
        return 1.0
    trial = recipe.trial(rows)
    if not trial.n_iterations:
        return 1.0
    if n <= FEW_ROWS[1]:
        draws, sigmas = min(trial.most_draws, -(-HELD_OUT // n)), SIGMAS_OF_FOLDS
        folds = RepeatedStratifiedKFold(
            n_splits=FOLDS, n_repeats=draws, random_state=seed
        )
    else:
        n_iterations, sigmas = trial.longer * trial.n_iterations, SIGMAS_OF_ONE
        trial = trial._replace(n_iterations=n_iterations)
        folds = StratifiedShuffleSplit(1, test_size=1 / FOLDS, random_state=seed)
    # The products of a prediction decide how many threads are worth their start.
    n_products = float(block_rows(1, rows.X.dtype.itemsize)) * rows.X.shape[1]
    with threads_for(n_products), quiet():  # the fit itself warns
        try:
            parts = list(folds.split(rows.y, rows.y))
            n_held_out = len(parts) * len(FACTORS)
            n_classes = len(recipe.classes)
            parts = [
                (train, few_of(test, n_classes, n_held_out)) for train, test in parts
            ]
            tasks = [(recipe, rows, trial, train, test) for train, test in parts]
            by_fold = side_by_side(fold_decisions, tasks, recipe.n_jobs)
        except ValueError:
            # Two thirds of the rows may be too few for what all allow. What is wrong with
            # the parameters, the fit itself will say.
            return 1.0
    held_out = np.concatenate([test for _, test in parts])
    y, weights = rows.y[held_out], rows.weights[held_out]
    losses = np.stack([
        np.bincount(held_out, log_losses(np.concatenate(of_folds), y, weights), n)
        for of_folds in zip(*by_fold, strict=True)
    ])  # fmt: skip
    with np.errstate(invalid="ignore"):
        leads = losses[FACTORS.index(1.0)] - losses
        gains, spreads = leads.sum(axis=1), np.linalg.norm(leads, axis=1)
    gains[~(gains > sigmas * spreads)] = 0.0
    return FACTORS[gains.argmax()] if gains.any() else 1.0


def fold_decisions(
    recipe: Recipe, rows: Rows, trial: Trial, train: NDArray[Any], test: NDArray[Any]
) -> list[Floats]:
    """Return by factor what a short fit says of the rows held out."""
    learned, X = part_of(rows, train), rows.X[test]
    changes = trial.changes | {
        recipe.strength_name: "scale",
        "max_iter": trial.n_iterations,
    }
    by_factor: dict[float, Floats] = {}
    procedure: Any = None
    tried, before = replace(recipe, **changes).measured(learned), max(FACTORS)
    with np.errstate(all="ignore"):  # a thread has its own
        for factor in sorted(FACTORS, reverse=True):
            tried = replace(tried, factor=factor)
            goes_on = trial.goes_on and isinstance(procedure, Descent)
            if not (goes_on and procedure.weaken(factor / before)):
                procedure = tried.begin(learned, np.random.default_rng(recipe.seed))
            for done in range(1, trial.n_iterations + 1):
                procedure.iterate(average=done == trial.n_iterations)
            by_factor[factor] = decisions_of(tried, learned_by(procedure), X)
            before = factor
    return [by_factor[factor] for factor in FACTORS]
