"""Strength of the penalty where the user leaves it to us and rows are few: by cross-validation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from loclin.engine.data import Floats, Rows
from loclin.engine.scores import block_rows
from loclin.engine.threads import threads_for
from loclin.fitting.checks import check_number

NAMES = ("auto", "scale")
FACTORS = (0.25, 1.0, 4.0, 16.0, 64.0)
FEW_ROWS = 50, 2000  # cross-validated from so many rows to so many
FOLDS = 3
HELD_OUT = 2000  # rows held out in all, in so many draws of the folds as that takes ...
MOST_DRAWS = 3  # ... and no more
SIGMAS = 1.0  # a lead that is no chance
TRIAL = {"class_weight": None, "early_stopping": False, "warm_start": False, "verbose": 0}


def check_alpha(alpha: Any) -> None:
    """Raise where `alpha` is neither a number above 0 nor a name."""
    if not (isinstance(alpha, str) and alpha in NAMES):
        check_number("alpha", alpha, low=0, open_low=True, open_high=True,
                     hint='or "auto" or "scale"')  # fmt: skip


def chosen_factor(model: Any, rows: Rows, trial: dict[str, Any] | None, seed: int) -> float:
    """Return the factor on the rule's strength that errs least in cross-validation.

    Where labels are noisy and rows few, the rule's strength is too weak by more than ten times;
    from a few thousand rows on it is right. Another factor than 1 must win by more than chance:
    its wins less its losses, row by row, exceed `SIGMAS` of their standard deviations.
    """
    if model.alpha != "auto" or trial is None:
        return 1.0
    if not FEW_ROWS[0] <= len(rows.y) <= FEW_ROWS[1] or np.bincount(rows.y).min() < FOLDS:
        return 1.0
    parameters = model.get_params(deep=False) | TRIAL | trial | {"random_state": seed}
    draws = min(MOST_DRAWS, -(-HELD_OUT // len(rows.y)))
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=draws, random_state=seed)
    labels = model.classes_[rows.y]
    wins = np.zeros((len(FACTORS), len(rows.y)))
    n_products = float(block_rows(1, rows.X.dtype.itemsize)) * rows.X.shape[1]  # of a prediction
    with threads_for(n_products), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself gives them
        try:
            for train, test in folds.split(rows.y, rows.y):
                wins[:, test] += fold_wins(type(model), parameters, rows, labels, train, test)
        except ValueError:
            # Two thirds of the rows may be too few for what all allow, or the weakest alpha let
            # training overflow. What is wrong with the parameters, the fit itself will say.
            return 1.0
    gains, spreads = wins.sum(axis=1), np.linalg.norm(wins, axis=1)
    gains[gains <= SIGMAS * spreads] = 0.0
    return FACTORS[gains.argmax()] if gains.any() else 1.0


def fold_wins(
    kind: Any, parameters: dict[str, Any], rows: Rows, labels: Any, train: Any, test: Any
) -> Floats:
    """Return by factor and row held out: its weight if right where factor 1 is wrong, or less."""
    right: dict[float, Any] = {}
    alpha: Any = "scale"
    for factor in sorted(FACTORS, key=lambda factor: factor != 1):  # 1 first, which tells alpha
        model = kind(**parameters | {"alpha": alpha if factor == 1 else factor * alpha})
        model.fit(rows.X[train], labels[train], rows.weights[train])
        alpha = model.alpha_ if factor == 1 else alpha
        right[factor] = rows.weights[test] * (model.predict(rows.X[test]) == labels[test])
    return np.stack([right[factor] - right[1.0] for factor in FACTORS])
