"""Short fits to a part of the rows,
of which the rest tell strength, metric and temperature.
"""

from __future__ import annotations

import numpy as np

from loclin.engine.data import Floats, Matrix, Rows
from loclin.engine.prediction import scores_of
from loclin.engine.procedure import Learning, Predictor
from loclin.engine.scores import difference
from loclin.engine.threads import threads_for
from loclin.fitting.recipe import Known, Recipe


def short_fit(recipe: Recipe, rows: Rows, n_iterations: int) -> Predictor:
    """Return a fit to the rows in so many iterations, two of them averaged."""
    procedure = recipe.measured(rows).begin(rows, np.random.default_rng(recipe.seed))
    with threads_for(procedure.products):
        for done in range(n_iterations):
            procedure.iterate(average=done >= n_iterations - 2)
    return learned_by(procedure)


def learned_by(procedure: Learning, *, final: bool = True) -> Predictor:
    """Return what a procedure has learned, at its end or so far."""
    learned = procedure.result(final=final)
    assert isinstance(learned, Predictor)
    return learned


def decisions_of(known: Known, learned: Predictor, X: Matrix) -> Floats:
    """Return what a fit says of rows as the model sees them."""
    scores = scores_of(learned.term(known.root), X)
    return scores if known.multilabel else difference(scores, len(known.classes))
