"""Rounds in which each part learns from the same models, and their means."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loclin.cluster.executors import Executor
from loclin.cluster.parts import Counts, Learned, Round, Sample, View, fitted_to, learn
from loclin.engine.data import Floats, Rows
from loclin.engine.procedure import StreamProcedure
from loclin.engine.warned import quiet, warn
from loclin.fitting.ending import Watch, accuracy_of, check_learned
from loclin.fitting.recipe import Before, EndsWithRows, Recipe
from loclin.fitting.targets import check_same_classes, has_several
from loclin.fitting.trials import learned_by

_START_ITERATIONS = 20  # of the fit to the sample: the rounds go on from there
_OF_TOL = 0.1  # means of parts lower the objective by less in a round, but for longer
# Linear models go on in the direction of the rounds before, which saves a third of the
# rounds. More saves more on few rows; of a million, whose steps hardly fall, it is too much.
_MOMENTUM = 0.5
_HASTENED = {"coef", "intercept", "extra"}


class RowsLeftOutWarning(UserWarning):
    """Some rows were left out: what had them could not be reached."""


@dataclass(frozen=True)
class Drawn:
    """Parts that are counted and have drawn a sample, and what runs a function on them.

    Parameters
    ----------
    run : Executor
    parts : object
        Those that the executor takes.
    counts : Counts
    view : View
    sample : Sample
    """

    run: Executor
    parts: Any
    counts: Counts
    view: View
    sample: Sample

    @property
    def start(self) -> Rows:
        """The rows to begin with; there are some of every class."""
        if self.sample.start is None:
            raise RuntimeError(
                "None of the rows that were counted could be read again. A function must return "
                "the same rows whenever it is called."
            )
        return self.sample.start


def in_rounds(
    estimator: Any, drawn: Drawn, *, rounds: int, passes: int,
    on_round: Callable[[Any], Any] | None,
) -> Any:  # fmt: skip
    """Return a classifier that has learned from all parts; see `loclin.cluster.fit`."""
    course = _Course(estimator, drawn, rounds)
    while course.watch.goes_on:
        next_round = course.next_round(passes)
        course.take(drawn.run(learn, Learned.merge, drawn.parts, next_round))
        stop = on_round(course.model()) if on_round is not None else False
        course.watch.end_where_due(course.recipe, None, stop=bool(stop))
    return course.model(ended=True)


def goes_on(estimator: Any) -> bool:
    """Tell whether a classifier goes on from an earlier fit."""
    return getattr(estimator, "warm_start", False) and estimator._is_fitted()


def _begun(rows: Rows, estimator: Any, view: View) -> Any:
    """Return the classifier fitted to the sample: it has chosen all that is to be chosen."""
    short = {"calibrate": False, "warm_start": False, "verbose": 0}
    short["max_iter"] = min(_START_ITERATIONS, getattr(estimator, "max_iter", 1))
    with quiet():  # it is short on purpose
        model = fitted_to(rows, estimator, view, **short)
    view.name_features(model)
    return model


def _for_all_rows(recipe: Recipe, learned: Any, share: float) -> tuple[Recipe, Any]:
    """Return the recipe and the first models with the strength for all rows.

    The rule for it has seen this share of them.
    """
    name = recipe.strength_name
    if not isinstance(getattr(recipe, name), str):
        return recipe, learned
    strength = {name: getattr(learned, name) * share**recipe.strength_falls}
    return replace(recipe, **strength), replace(learned, **strength)


def _hastened(
    before: StreamProcedure, after: StreamProcedure, velocity: dict[str, Floats]
) -> StreamProcedure:
    """Return the stream after a round, once its linear models have gone on by Nesterov's
    rule.

    Parameters
    ----------
    before, after : StreamProcedure
        The second is changed.
    velocity : dict
        Of each part of the stream. It is changed.
    """
    for number, (old, new) in enumerate(zip(before.state(), after.state(), strict=True)):
        if new.name in _HASTENED:
            name, step = f"{new.name} {number}", new.value - old.value
            velocity[name] = _MOMENTUM * velocity.get(name, 0.0) + step
            new.value[...] += _MOMENTUM * velocity[name]
    return after


class _Course:
    """How far a fit has come.

    Parameters
    ----------
    estimator : LocallyLinearClassifier
    drawn : Drawn
    rounds : int
        Maximum number of rounds.
    """

    def __init__(self, estimator: Any, drawn: Drawn, rounds: int) -> None:
        view, (_, watched), counts = drawn.view, drawn.sample, drawn.counts
        self.view = view
        old = goes_on(estimator)
        self.begun = copy(estimator) if old else _begun(drawn.start, estimator, view)
        if old:
            check_same_classes(view.classes, estimator.classes_)
            has_several(drawn.start.y, estimator._multilabel)
            self.begun._keep_parameters("warm_start=False or a clone", goes_on=True)
        features = self.begun._features
        self.start = features.of_rows(drawn.start)
        self.watched = watched and features.of_rows(watched)
        n_watched = 0 if watched is None else len(watched.y)
        self.n_rows = self.n_reached = int(counts.n_rows.sum()) - n_watched
        self.n_parts = len(np.unique(counts.part))
        recipe = self.begun._recipe(view.seed, streams=True)
        if recipe.early_stopping and watched is None:
            raise ValueError(
                f"The parts hold out no rows for early_stopping=True: {self.n_rows} are too few. "
                "Give more rows, or do without."
            )
        tol = _OF_TOL * recipe.tol
        self.recipe = replace(recipe, max_iter=rounds, average=0, tol=tol)
        share = 1.0 if old else len(drawn.start.y) / self.n_rows
        self.recipe, learned = _for_all_rows(self.recipe, self.begun._learned, share)
        if not old and hasattr(learned, "t"):
            learned = replace(learned, t=0)
        rng, before = np.random.default_rng(view.seed), Before(learned, self.begun._kept)
        self.stream = self.recipe.begin_stream(self.start, rng, before)
        self.velocity: dict[str, Floats] = {}
        self.watch = Watch.of(self.recipe, self.n_rows, [], [], has_gap=False)

    def next_round(self, passes: int) -> Round:
        """Return what parts are to learn from next."""
        recipe = self.recipe
        return Round(
            number=len(self.watch.objectives),
            view=self.view,
            features=self.begun._features,
            stream=self.stream,
            alpha=None if isinstance(recipe.alpha, str) else float(recipe.alpha),
            batch_size=recipe.rows_of_batch(self.n_rows // self.n_parts),
            passes=passes,
            most_rows=recipe.round_rows,
        )

    def take(self, learned: Learned) -> None:
        """Take what the parts have learned in a round."""
        watch, number = self.watch, len(self.watch.objectives) + 1
        if not learned.n_rows:
            raise RuntimeError(
                f"None of {self.n_rows} rows could be reached in round {number}."
            )
        if learned.n_rows < self.n_reached:
            warn(
                f"Round {number} left out {self.n_rows - learned.n_rows} of {self.n_rows} rows: "
                "what had them could not be reached. The fit goes on with the others.",
                RowsLeftOutWarning,
            )
        self.n_reached = learned.n_rows
        self.stream = _hastened(self.stream, learned.stream, self.velocity)
        watch.objectives.append(learned.objective / learned.n_rows)
        model = learned_by(self.stream)
        check_learned(self.recipe, model, watch.objectives[-1])
        if self.recipe.early_stopping and self.watched is not None:
            watch.accuracies.append(accuracy_of(self.recipe, model, self.watched))
        if self.recipe.verbose:
            print(f"{type(self.begun).__name__}: {watch.report('round')}")

    def model(self, *, ended: bool = False) -> Any:
        """Return the classifier as it stands, or in the end."""
        model, watch = copy(self.begun), self.watch
        model._learned, model._kept = learned_by(self.stream), self.stream.kept
        if ended and isinstance(self.recipe, EndsWithRows):
            model._learned = self.recipe.ended(model._learned, self.start)
        model._stream = model._moments = model._mean_weight = model._unfinished = None
        model.objective_ = [*watch.objectives]
        model.validation_scores_ = [*watch.accuracies]
        model.n_iter_ = len(watch.objectives)
        model._calibrate(self.recipe, model._learned, self.start, self.watched)
        return model
