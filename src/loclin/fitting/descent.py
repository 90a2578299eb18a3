"""The descent of classifiers whose coder is learned with the local models."""

from __future__ import annotations

import numpy as np

from loclin.engine.codes import Intercepts
from loclin.engine.data import Rows
from loclin.engine.linear_outputs import LearnedOutputs
from loclin.engine.sgd import SGD, SGDFit, SGDStream, mean_squared_feature_norm
from loclin.fitting.encode import Views
from loclin.fitting.recipe import Before, Recipe

_VIEWS = Views(coding=None, linear=True)


def learning_fit(
    recipe: Recipe, coder: LearnedOutputs, sample: Rows, rows: Rows, rng: np.random.Generator,
    intercepts: Intercepts, before: Before | None,
) -> SGDFit:  # fmt: skip
    """Return the descent over the rows, some of which tell its strength and steps."""
    solver = _descent(recipe, coder, sample, len(rows.y), intercepts, before)
    return SGDFit(solver, recipe.rounds(rows, rng, before), _VIEWS, rng)


def learning_stream(
    recipe: Recipe, coder: LearnedOutputs, rows: Rows, rng: np.random.Generator,
    intercepts: Intercepts, before: Before | None,
) -> SGDStream:  # fmt: skip
    """Return the descent on a stream of which these rows are the first."""
    solver = _descent(recipe, coder, rows, len(rows.y), intercepts, before)
    stream = SGDStream(solver, rng, _VIEWS)
    if before is not None:
        return stream.follow(before.learned.alpha, getattr(before.learned, "t", 0))
    if isinstance(recipe.alpha, str):
        coder.n_first = len(rows.y)  # the penalty falls as alpha does
    return stream


def _descent(
    recipe: Recipe, coder: LearnedOutputs, sample: Rows, n_samples: int, intercepts: Intercepts,
    before: Before | None,
) -> SGD:  # fmt: skip
    """Return the solver at its start, or where the fit before ended."""
    codes = coder.codes(sample.X)
    norm2 = mean_squared_feature_norm(sample.X, codes, intercepts.local)
    alpha = recipe.strength(norm2, n_samples)
    coder.decay = coder.penalty * alpha
    settings = recipe.settings(alpha, n_samples, intercepts)
    solver = SGD(sample.X, recipe.n_scorers, codes.shape[1], settings, coder)
    solver.count_steps(norm2, recipe.eta0)
    if before is not None:
        learned = before.learned
        solver.set_models(learned.local_coef, learned.local_intercept, learned.intercept)
        coder.history[:] = getattr(learned, "history", 0.0)
    return solver
