"""The fit: rounds in which each part learns from the same models, and their means."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from loclin.cluster.executors import Executor, executor_of
from loclin.cluster.parts import (
    Counts,
    Learned,
    Round,
    Sample,
    View,
    count,
    draw,
    fitted_to,
    learn,
)
from loclin.cluster.plan import planned
from loclin.engine.data import Floats, Rows
from loclin.engine.procedure import StreamProcedure
from loclin.engine.warned import quiet, warn
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.checks import check_n_jobs, check_number
from loclin.fitting.ending import Watch, accuracy_of, check_learned
from loclin.fitting.recipe import Before, Recipe
from loclin.fitting.targets import check_same_classes
from loclin.fitting.trials import learned_by

_START_ITERATIONS = 20  # of the fit to the sample: the rounds go on from there
_OF_TOL = 0.1  # means of parts lower the objective by less in a round, but for longer
# Linear models go on in the direction of the rounds before, which saves a third of the
# rounds. More saves more on few rows; of a million, whose steps hardly fall, it is too much.
_MOMENTUM = 0.5
_HASTENED = {"coef", "intercept", "extra"}


class RowsLeftOutWarning(UserWarning):
    """Some rows were left out: what had them could not be reached."""


def fit(
    estimator: Any, parts: Any, *, executor: str | Executor = "threads",
    n_jobs: int | None = -1, rounds: int = 60, passes: int = 2, sample_rows: int = 20_000,
    on_round: Callable[[Any], Any] | None = None,
) -> Any:  # fmt: skip
    """Fit a classifier to rows that lie in parts; take this to use all cores, or a cluster.

    The result is the plain classifier. In each round every part goes on from the same
    models, over its own rows, and the means of what they have learned begin the next
    round. So rows stay where they are, and only models travel.

    Parameters
    ----------
    estimator : classifier
        ML3, SAPL, LL-SVM (by "sgd"), C-SVM, L-MKL (by "sgd"), LDKL, L3M (by "online") or
        US-SVM, with all its parameters. It is not changed. With ``warm_start=True``, one
        that is fitted goes on.
    parts : list
        Of each part a tuple ``(X, y)`` or ``(X, y, sample_weight)``, or a function
        without arguments that returns one, such as one that reads a file. Parts should
        be alike: sort no rows by label. An executor of your own may take something else.
    executor : {"threads", "processes"} or Executor, default="threads"
        Where parts are learned. Threads share the memory. Processes cost more to begin
        with, and suit parts that are functions.
    n_jobs : int or None, default=-1
        Threads, or processes; -1 takes as many as there are processors.
    rounds : int, default=60
        Maximum number of rounds. The fit ends earlier where the objective levels off, by
        a tenth of the estimator's `tol` and by `n_iter_no_change`; with
        `early_stopping`, where the accuracy on rows held out does.
    passes : int, default=2
        Passes over a part in a round. A pass takes at most `round_rows` rows, if the
        estimator has that parameter. More passes need fewer rounds, but more time for
        each.
    sample_rows : int, default=20_000
        Rows that are fetched from the parts to begin with. A fit to them chooses the
        map of the features, the strength, pieces and the metric, the numbers that are
        left to the estimator, and the first models. Every class has some.
    on_round : callable, default=None
        Called after each round with a fitted classifier, to save or to measure it. The
        fit ends if it returns True.

    Returns
    -------
    model : classifier
        A fitted one. `objective_` has a number for each round, and `t_` the rows that
        one part has passed over. Five rows in a hundred, at most 5,000, are held out, and
        tell the temperature.

    Raises
    ------
    TypeError
        If the classifier cannot be fitted in parts.
    ValueError
        If a parameter or a block of rows is not valid; the message names the block.

    Notes
    -----
    Where codes do not change (LL-SVM, and C-SVM with its clusters of the sample), the
    problem is convex, and the rounds lead to the models of one machine. Others find
    models that are as good, but others.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import loclin.cluster
    >>> from loclin import ML3Classifier
    >>> X, y = load_digits(return_X_y=True)
    >>> parts = [(X[k:1300:4], y[k:1300:4]) for k in range(4)]
    >>> model = loclin.cluster.fit(ML3Classifier(random_state=0), parts, rounds=10)
    >>> bool(model.score(X[1300:], y[1300:]) > 0.93)
    True
    """
    _check(estimator, n_jobs, rounds, passes, sample_rows)
    with executor_of(executor, n_jobs) as run:
        counts = run(count, Counts.merge, parts, clone(estimator))
        view, drawing = planned(estimator, counts, sample_rows)
        sample = run(draw, Sample.merge, parts, drawing)
        course = _Course(estimator, view, sample, counts, rounds)
        while course.watch.goes_on:
            course.take(run(learn, Learned.merge, parts, course.next_round(passes)))
            stop = on_round(course.model()) if on_round is not None else False
            course.watch.end_where_due(course.recipe, None, stop=bool(stop))
    return course.model()


def _check(
    estimator: Any, n_jobs: int | None, rounds: int, passes: int, sample_rows: int
) -> None:
    if not isinstance(estimator, LocallyLinearClassifier):
        raise TypeError(
            f"{type(estimator).__name__} cannot be fitted in parts. ML3, SAPL, LL-SVM, C-SVM, "
            "L-MKL, LDKL, L3M and US-SVM can."
        )
    refusal = estimator._checked_parameters().stream_refusal()
    if refusal is not None:
        raise TypeError(f"Parts are learned as streams are, and {refusal}")
    check_n_jobs(n_jobs)
    for name, value in (
        ("rounds", rounds),
        ("passes", passes),
        ("sample_rows", sample_rows),
    ):
        check_number(name, value, Integral, low=1)


def _begun(rows: Rows, estimator: Any, view: View) -> Any:
    """Return the classifier fitted to the sample: it has chosen all that is to be chosen."""
    short = {"calibrate": False, "warm_start": False, "verbose": 0}
    short["max_iter"] = min(_START_ITERATIONS, getattr(estimator, "max_iter", 1))
    with quiet():  # it is short on purpose
        model = fitted_to(rows, estimator, view, **short)
    if hasattr(view.reader, "feature_names_in_"):
        model.feature_names_in_ = view.reader.feature_names_in_
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
    view : View
    sample : Sample
    counts : Counts
    rounds : int
        Maximum number of rounds.
    """

    def __init__(
        self, estimator: Any, view: View, sample: Sample, counts: Counts, rounds: int
    ) -> None:
        assert sample.start is not None
        self.view = view
        goes_on = estimator.warm_start and estimator._is_fitted()
        if goes_on:
            check_same_classes(view.classes, estimator.classes_)
        self.begun = estimator if goes_on else _begun(sample.start, estimator, view)
        self.start, self.watched = (
            rows and self.begun._features.of_rows(rows) for rows in sample
        )
        n_watched = 0 if sample.watched is None else len(sample.watched.y)
        self.n_rows = self.n_reached = int(counts.n_rows.sum()) - n_watched
        self.n_parts = len(np.unique(counts.part))
        recipe = self.begun._recipe(view.seed, streams=True)
        tol = _OF_TOL * recipe.tol
        self.recipe = replace(recipe, max_iter=rounds, average=0, tol=tol)
        share = 1.0 if goes_on else len(sample.start.y) / self.n_rows
        self.recipe, learned = _for_all_rows(self.recipe, self.begun._learned, share)
        if not goes_on and hasattr(learned, "t"):
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
            print(f"{type(self.begun).__name__}: {watch.report()}")

    def model(self) -> Any:
        """Return the classifier as it stands."""
        model, watch = copy(self.begun), self.watch
        model._learned, model._kept = learned_by(self.stream), self.stream.kept
        model._stream = model._unfinished = None
        model.objective_ = [*watch.objectives]
        model.validation_scores_ = [*watch.accuracies]
        model.n_iter_ = len(watch.objectives)
        model._calibrate(self.recipe, model._learned, self.start, self.watched)
        return model
