"""The descent of classifiers whose coder is learned with the local models."""

from __future__ import annotations

from typing import Any

import numpy as np

from loclin.engine.codes import Intercepts
from loclin.engine.data import Rows
from loclin.engine.linear_outputs import LearnedOutputs
from loclin.engine.sgd import SGD, SGDFit, SGDStream, mean_squared_feature_norm
from loclin.fitting.encode import Views
from loclin.fitting.rows import rounds_of, settings_of
from loclin.fitting.targets import n_scorers

_VIEWS = Views(coding=None, linear=True)


def learning_fit(
    classifier: Any, coder: LearnedOutputs, some: Rows, rows: Rows, rng: np.random.Generator,
    intercepts: Intercepts, continued: bool,
) -> SGDFit:  # fmt: skip
    """Return the descent over the rows, some of which tell its strength and steps."""
    solver = _descent(classifier, coder, some, len(rows.y), intercepts, continued)
    return SGDFit(solver, rounds_of(classifier, rows, rng, continued=continued), _VIEWS, rng)


def learning_stream(
    classifier: Any, coder: LearnedOutputs, rows: Rows, rng: np.random.Generator,
    intercepts: Intercepts,
) -> SGDStream:  # fmt: skip
    """Return the descent on a stream of which these rows are the first."""
    continued = classifier._is_fitted()
    solver = _descent(classifier, coder, rows, len(rows.y), intercepts, continued)
    stream = SGDStream(solver, rng, _VIEWS)
    if continued:
        return stream.follow(classifier._learned.alpha, getattr(classifier._learned, "t", 0))
    if isinstance(classifier.alpha, str):
        coder.n_first = len(rows.y)  # the penalty falls as alpha does
    return stream


def _descent(
    classifier: Any, coder: LearnedOutputs, some: Rows, n_samples: int, intercepts: Intercepts,
    continued: bool,
) -> SGD:  # fmt: skip
    """Return the solver at its start, or where the fit before ended."""
    codes = coder.codes(some.X)
    norm2 = mean_squared_feature_norm(some.X, codes, intercepts.local)
    alpha = classifier._strength(norm2, n_samples)
    coder.decay = coder.penalty * alpha
    settings = settings_of(classifier, alpha, n_samples, intercepts)
    solver = SGD(some.X, n_scorers(classifier.classes_), codes.shape[1], settings, coder)
    solver.count_steps(norm2, classifier.eta0)
    if continued:
        solver.set_models(
            classifier._learned.local_coef,
            classifier._learned.local_intercept,
            classifier._learned.intercept,
        )
        coder.history[:] = getattr(classifier._learned, "history", 0.0)
    return solver
