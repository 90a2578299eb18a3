"""What every locally linear classifier shares:
the road from data to a fitted model and back.

`fit` walks validate -> weigh -> choose -> iterate -> attributes, and `partial_fit` the
same for rows that come once. A model supplies its constructor and its recipe, and
overrides nothing that is concrete.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from loclin.engine.data import Rows
from loclin.engine.described import check_described, fitted_names
from loclin.engine.procedure import Procedure
from loclin.engine.threads import threads_for
from loclin.fitting.atomic import atomic
from loclin.fitting.callbacks import CallbackSupportMixin, with_callbacks
from loclin.fitting.checks import check_shared_parameters, read_labelled_rows
from loclin.fitting.ending import Watch, accuracy_of, check_learned, warn_of_end
from loclin.fitting.mapped import LinearMap
from loclin.fitting.metric import StreamedMetric, chosen_metric
from loclin.fitting.pieces import chosen_features, rows_to_learn
from loclin.fitting.recipe import Before, Recipe
from loclin.fitting.rows import RunningMean, hold_out, weigh, weighed
from loclin.fitting.scored import ByLocalModels
from loclin.fitting.standardized import Standardized, map_without_pieces
from loclin.fitting.stored import Stored
from loclin.fitting.strength import chosen_factor
from loclin.fitting.targets import (
    check_same_classes,
    class_weights,
    classes_of_stream,
    has_several,
    in_classes,
    labels_or_indicator,
)
from loclin.fitting.trials import learned_by


def _overflow_is_checked() -> np.errstate:
    """Let numbers overflow without warnings:
    `check_learned` looks at what is learned from them.
    """
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def _can_stream(classifier: LocallyLinearClassifier) -> bool:
    refusal = classifier._given().stream_refusal()
    if refusal is not None:
        raise AttributeError(refusal)
    return True


class LocallyLinearClassifier(
    CallbackSupportMixin, ByLocalModels, Standardized, Stored, ABC
):
    """Abstract locally linear classifier.

    A model supplies its constructor and its recipe. `fit` and
    `partial_fit` are atomic, so nothing that an attribute holds may be changed in place.
    """

    _recipe_type: ClassVar[type[Recipe]]  # what a fit needs
    _multiplier: float = 1.0  # features are multiplied by it while they are learned from
    _factor: float = 1.0  # on the rule for the strength, chosen in the fit
    _streamed_metric: StreamedMetric | None = None
    _mean_weight: RunningMean | None = None  # the mean weight of a stream's rows
    # Choices of another fit, which the next one takes.
    _taken_over: Mapping[str, Any] = MappingProxyType({})

    # What the user calls.

    @atomic
    @with_callbacks
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. float32 stays float32; everything else becomes float64.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class labels: strings, integers or booleans. Where the class says so, also an
            indicator matrix of 0 and 1.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0 and not all 0. Rows of weight 0 count as if
            they were not there; so do classes that have no others.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        ValueError
            If a parameter or the data is not valid, or if training overflowed.
        """
        given = self._checked_parameters()
        continued = bool(given.warm_start or self._unfinished) and self._is_fitted()
        chosen = self.__dict__.pop("_taken_over", self._taken_over)
        old_classes = self.classes_ if continued else None
        if continued:
            check_described(self)
        else:
            self._forget_fit()
        self._keep_parameters("warm_start=False or a clone", goes_on=continued)
        data, target = self._validate_rows(X, y, reset=not continued)
        self._multilabel = has_several(target, self._multilabel if continued else None)
        self.classes_, rows = weighed(data, target, given.class_weight, sample_weight)
        check_same_classes(self.classes_, old_classes)
        del target
        if continued:
            self._see_all_columns(rows.X, streams=False)
        recipe = self._recipe(self._seed(), **chosen)
        if not (continued or chosen):
            recipe = replace(recipe, features=map_without_pieces(recipe, rows))
            recipe = replace(recipe, features=chosen_features(recipe, rows))
        self._features = recipe.features
        rows = self._seen(rows_to_learn(recipe, rows), goes_on=continued)
        recipe = replace(recipe, features=self._features, largest=self._largest)
        if not (continued or chosen):
            recipe = replace(recipe, factor=chosen_factor(recipe, rows))
            recipe = replace(recipe, root=chosen_metric(recipe, rows))
        rng = deepcopy(self._unfinished) or np.random.default_rng(recipe.seed)
        held_out = None
        if recipe.early_stopping:
            if self._unfinished is None or self._split_seed is None:
                self._split_seed = recipe.seed
            rows, held_out = hold_out(rows, recipe.validation_fraction, self._split_seed)
        seen = {
            "X": lambda: data if rows.origin is None else data[rows.origin],
            "y": lambda: rows.y if self._multilabel else self.classes_[rows.y],
            "metadata": {
                "sample_weight": None if sample_weight is None else rows.weights
            },
        }
        recipe = recipe if continued else recipe.measured(rows)
        self._factor, self._multiplier = recipe.factor, recipe.multiplier
        if recipe.metric is not None:
            self._root = recipe.root
        self._stream = self._moments = self._mean_weight = None
        before = self._before() if continued else None
        self._iterate(recipe, rows, held_out, rng, seen, before)
        self._calibrate(recipe, self._learned, rows, held_out)
        return self

    @available_if(_can_stream)
    @atomic
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from some more rows of a stream.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Some rows; any number of them.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All classes that will ever come; needed at the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. Rows of weight 0 are not learned.

        Returns
        -------
        self : object
            The classifier, able to predict once some rows have been learned.

        Raises
        ------
        ValueError
            If `classes` is missing at the first call or changed later, if y has a label
            outside them, or if ``class_weight="balanced"`` (the class counts of a stream
            are not known: pass sample_weight).
        """
        given = self._checked_parameters()
        if given.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs the class counts of all the data, which a stream "
                "does not tell. Pass a dict of weights, or sample_weight."
            )
        first = not self._is_fitted()
        if not first:
            check_described(self)
        streams = self._stream is not None
        self._keep_parameters("fit or a clone", goes_on=not first, streams=streams)
        self.classes_ = classes_of_stream(classes, vars(self).get("classes_"))
        data, target = self._validate_rows(X, y, reset=first)
        labels = in_classes(target, self.classes_)
        self._multilabel = has_several(labels, None if first else self._multilabel)
        by_class = class_weights(
            given.class_weight, self.classes_, labels, self._multilabel
        )
        rows = weigh(data, labels, by_class, sample_weight, unit=False)
        if len(rows.y):
            self._mean_weight = (self._mean_weight or RunningMean()).after(rows.weights)
            rows = self._mean_weight.of_mean_1(rows)
        if len(rows.y):
            self._learn(rows)
        return self

    # How it is done.

    def _seed(self) -> int:
        return int(check_random_state(self._given().random_state).randint(2**31 - 1))

    def _validate_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = read_labelled_rows(
            self, X, y, reset=reset, multi_output=self._takes_indicator
        )
        return X, labels_or_indicator(y) if self._takes_indicator else y

    def _is_fitted(self) -> bool:
        return self._learned is not None

    def _checked_parameters(self) -> Recipe:
        """Return what the parameters say, if they are valid."""
        recipe = self._given()
        recipe.check()
        check_shared_parameters(recipe)
        return recipe

    def _given(self) -> Recipe:
        """Return what the parameters say, whatever they are."""
        return self._recipe_type.of(self._parameters())

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters that the recipe takes, wherever a subclass keeps them."""
        kind = self._recipe_type
        lacks = [name for name in kind.needed() if not hasattr(self, name)]
        if lacks:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {', '.join(map(repr, lacks))}, which "
                "its fits need. Set it in the constructor."
            )
        return {
            name: getattr(self, name) for name in kind.parameters() if hasattr(self, name)
        }

    def _recipe(self, seed: int, **known: Any) -> Recipe:
        """Return what the next fit needs, from the parameters and what was chosen before."""
        of_before = {
            "classes": self.classes_,
            "n_features": self.n_features_in_,
            "multilabel": self._multilabel,
            "features": self._features,
            "largest": self._largest,
            "root": self._root,
            "factor": self._factor,
            "multiplier": self._multiplier,
        }
        return self._recipe_type.of(self._parameters(), seed=seed, **of_before | known)

    def _before(self) -> Before:
        """Return what a fit, or a stream, goes on from."""
        n_done = len(self.objective_) if self._unfinished else 0
        return Before(self._learned, self._kept, n_done)

    def _take_over(self, fitted: LocallyLinearClassifier) -> None:
        """Let the next fit use the map, strength and metric that another has chosen."""
        root = fitted._root
        self._taken_over = {
            "features": fitted._features,
            "factor": fitted._factor,
            "root": root,
        }

    def _forget_fit(self) -> None:
        """Remove what an earlier fit has left;
        attributes of the user, or of a subclass, stay.
        """
        chosen = {"_features", "_root", "_factor", "_multiplier", "_largest"}
        for name in vars(self).keys() & (fitted_names(type(self)) | chosen):
            delattr(self, name)
        self._learned = self._streamed_metric = None

    def _learn(self, rows: Rows) -> None:
        """Learn from rows of a stream, on a copy of what the calls before have left."""
        given, goes_on = rows, self._is_fitted()
        if goes_on and self._stream is None:
            self._see_all_columns(rows.X, streams=True)
        recipe = self._recipe(
            0 if self._stream is not None else self._seed(), streams=True
        )
        if not goes_on:
            self._begin_moments(recipe, rows)
        if self._stream is not None:
            self._stream = deepcopy(self._stream)
            with _overflow_is_checked():
                self._follow(self._stream, given)
        rows = self._seen(given, goes_on=goes_on)
        temperatures = self._calibrated_by(rows)
        if self._stream is None:
            recipe = replace(recipe, features=self._features, largest=self._largest)
            self._begin_stream(recipe, rows)
        elif recipe.learns_codes and self._streamed_metric is not None:
            self._move_metric(recipe.metric, self._streamed_metric, rows)
        stream: Any = self._stream
        alpha = None if isinstance(recipe.alpha, str) else float(recipe.alpha)
        batch_size = recipe.rows_of_batch(stream.n_seen + len(rows.y))
        with threads_for(stream.products), _overflow_is_checked():
            objective = stream.learn(rows, alpha, batch_size)
            self._learned = learned_by(stream)
        self._kept, self._unfinished = stream.kept, None
        self._take_temperatures(temperatures)
        self.n_iter_ = 1
        self.objective_ = [objective]
        check_learned(recipe, self._learned, objective)

    def _begin_stream(self, recipe: Recipe, rows: Rows) -> None:
        """Begin a stream, these being its first rows, or go on from a fit."""
        before = self._before() if self._is_fitted() else None
        with _overflow_is_checked():
            if before is None:
                if recipe.metric not in (None, "auto"):
                    self._streamed_metric = StreamedMetric(2 * len(rows.y))
                    self._root = chosen_metric(recipe, rows)
                    recipe = replace(recipe, root=self._root)
                recipe = recipe.measured(rows)
                self._factor, self._multiplier = recipe.factor, recipe.multiplier
            rng = np.random.default_rng(recipe.seed)
            moves = self._streamed_metric is not None
            self._stream = recipe.begin_stream(rows, rng, before, moves=moves)

    def _move_metric(self, name: Any, metric: StreamedMetric, rows: Rows) -> None:
        """Let a stream go on in the metric of its gradients so far, if that is due."""
        stream: Any = self._stream
        metric = metric.after(self._codes(rows.X), rows.weights)
        if stream.n_seen >= metric.n_next:
            root = metric.root(name, self._learned.local_coef, rows.X)
            if root is not None:
                self._root = root
                stream.move(LinearMap(self._multiplier, root))
            metric = metric._replace(n_next=2 * stream.n_seen)
        self._streamed_metric = metric

    def _iterate(
        self, recipe: Recipe, rows: Rows, held_out: Rows | None, rng: np.random.Generator,
        seen: dict[str, Any], before: Before | None,
    ) -> None:  # fmt: skip
        """Iterate until the fit has come far enough, and publish what it has learned."""
        context = self._init_callback_context(max_subtasks=recipe.max_iter)
        context.call_on_fit_task_begin(estimator=self, **seen)
        with _overflow_is_checked():
            procedure = recipe.begin(rows, rng, before)
        goes_on, has_gap = bool(self._unfinished), procedure.gap is not None
        lists = (self.objective_, self.validation_scores_) if goes_on else ([], [])
        watch = Watch.of(recipe, len(rows.y), *lists, has_gap=has_gap)
        self.objective_, self.validation_scores_ = watch.objectives, watch.accuracies
        while watch.goes_on:
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self, **seen)
            with threads_for(procedure.products), _overflow_is_checked():
                watch.objectives.append(procedure.iterate(average=watch.averages))
            if held_out is not None:
                with _overflow_is_checked():
                    learned = learned_by(procedure, final=False)
                    watch.accuracies.append(accuracy_of(recipe, learned, held_out))
            if recipe.verbose:
                print(f"{type(self).__name__}: {watch.report()}")
            if not np.isfinite(watch.objectives[-1]):
                break
            stop = task.call_on_fit_task_end(
                estimator=self,
                reconstruction_attributes=lambda: self._so_far(procedure, rng),
                **seen,
            )
            watch.end_where_due(recipe, procedure.gap, stop=bool(stop))
        self.n_iter_ = len(watch.objectives)
        with _overflow_is_checked():
            self._learned = learned_by(procedure)
        check_learned(recipe, self._learned, watch.objectives[-1])
        self._kept, self._unfinished = procedure.kept, None
        if not watch.stopping:
            warn_of_end(recipe, procedure.gap)
        context.call_on_fit_task_end(
            estimator=self, reconstruction_attributes=dict, **seen
        )

    def _so_far(self, procedure: Procedure, rng: np.random.Generator) -> dict[str, Any]:
        """Return the attributes if the fit ended here, and what it needs to go on."""
        return vars(self) | {
            "_learned": procedure.result(),
            "_kept": procedure.kept,
            "n_iter_": len(self.objective_),
            "_rng": rng,
        }
