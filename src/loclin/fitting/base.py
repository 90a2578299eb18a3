"""What every locally linear classifier shares: the road from data to a fitted model and back.

`fit` walks validate -> weigh -> start -> iterate -> attributes, and `partial_fit` the same for rows
that come once. A model supplies what `LocallyLinearClassifier` lists as abstract, and overrides
nothing that is concrete.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from loclin.engine.data import Rows
from loclin.engine.described import check_described, fitted_names
from loclin.engine.procedure import Procedure, StreamProcedure
from loclin.engine.schedule import auto_alpha
from loclin.engine.threads import threads_for
from loclin.fitting.atomic import atomic
from loclin.fitting.callbacks import CallbackSupportMixin, with_callbacks
from loclin.fitting.checks import read_labelled_rows
from loclin.fitting.iterations import EndOfRounds, accuracy_with, check_learned, warn_of_end
from loclin.fitting.mapped import LinearMap, Mapped, multiplier_for
from loclin.fitting.metric import StreamedMetric, chosen_metric, move_metric
from loclin.fitting.pieces import chosen_features
from loclin.fitting.rows import RunningMean, auto_batch_size, hold_out, weigh, weighed
from loclin.fitting.scored import ByLocalModels
from loclin.fitting.standardized import Standardized
from loclin.fitting.stored import Stored, go_on, so_far
from loclin.fitting.strength import chosen_factor
from loclin.fitting.targets import (
    check_same_classes,
    class_weights,
    classes_of_stream,
    has_several,
    in_classes,
    labels_or_indicator,
)
from loclin.fitting.trials import Trial


def _overflow_is_checked() -> np.errstate:
    """Let numbers overflow without warnings: `check_learned` looks at what is learned from them."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def _can_stream(classifier: LocallyLinearClassifier) -> bool:
    refusal = classifier._stream_refusal()
    if refusal is not None:
        raise AttributeError(refusal)
    return True


class LocallyLinearClassifier(CallbackSupportMixin, ByLocalModels, Standardized, Stored, ABC):
    """Abstract locally linear classifier.

    A model supplies the checks of its parameters, where its procedures start, and its coder. `fit`
    and `partial_fit` are atomic, so nothing that an attribute holds may be changed in place.
    """

    round_rows: int | None = None  # rows of an iteration where there are more; None: all
    _end_of_rounds: EndOfRounds = EndOfRounds()
    pieces: str | int | None = None  # of features, beside them
    metric: str | int | None = None  # that anchors and the penalty measure by
    n_jobs: int | None = None  # short fits at once
    _multiplies_features = False  # are there intercepts whose constant feature needs others near 1?
    _alpha_unit = 1.0  # strength of the rule for alpha, in that of most
    _multiplier: float = 1.0  # of the features while they are learned from
    _learns_codes = False  # along with the models? else the coding stays as it was fitted
    _streamed_metric: StreamedMetric | None = None
    _mean_weight: RunningMean = RunningMean()  # of the rows of a stream
    _strength_name = "alpha"  # the parameter that "auto" leaves to held-out rows
    _factor: float = 1.0  # on the rule for it, chosen in the fit
    _taken_over: Mapping[str, Any] = MappingProxyType({})  # choices of another fit, for the next

    # What a model supplies.

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise where a parameter of the model is not valid."""

    @abstractmethod
    def _stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from a stream; None where they do."""

    @abstractmethod
    def _trial(self, rows: Rows) -> Trial:
        """Return the short fits that choose the strength on few rows, and the temperature."""

    @abstractmethod
    def _start(self, rows: Rows, rng: np.random.Generator, *, continued: bool) -> Procedure:
        """Begin a fit, or go on from the fitted attributes and `_kept` if it is continued."""

    @abstractmethod
    def _start_stream(self, rows: Rows, rng: np.random.Generator) -> StreamProcedure:
        """Begin a stream, these being its first rows; go on from a fit before, if there is one."""

    # What the user calls.

    @atomic
    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. float32 stays float32; everything else becomes float64.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class labels: strings, integers or booleans. Where the class says so, also an indicator
            matrix of 0 and 1.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0 and not all 0. Rows of weight 0 count as if they were
            not there; so do classes that have no others.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        ValueError
            If a parameter or the data is not valid, or if training overflowed.
        """
        self._check_parameters()
        self._check_shared_parameters()
        continued = bool(self.warm_start or self._unfinished) and self._is_fitted()
        chosen = self.__dict__.pop("_taken_over", self._taken_over)
        old_classes = self.classes_ if continued else None
        if continued:
            check_described(self)
        else:
            self._forget_fit()
        self._keep_parameters("warm_start=False or a clone", goes_on=continued)
        data, target = self._validate_rows(X, y, reset=not continued)
        self._multilabel = has_several(target, self._multilabel if continued else None)
        self.classes_, rows = weighed(data, target, self.class_weight, sample_weight)
        check_same_classes(self.classes_, old_classes)
        if continued:
            self._see_all_columns(rows.X, streams=False)
        elif chosen:
            self.__dict__.update(chosen)
        else:
            plain = self._standardized(rows, self._used_columns(rows))
            self._features = chosen_features(self, rows, plain)
        rows = self._seen(rows, goes_on=continued)
        self._stream, self._moments, self._mean_weight = None, None, RunningMean()
        rng = deepcopy(self._unfinished) or self._generator()
        del target
        if not (continued or chosen):
            self._factor = chosen_factor(self, rows, self._seed())
            self.__dict__.update(chosen_metric(self, rows))
        held_out = None
        if self.early_stopping:
            if self._unfinished is None or self._split_seed is None:
                self._split_seed = self._seed()
            rows, held_out = hold_out(rows, self.validation_fraction, self._split_seed)
        seen = {
            "X": lambda: data if rows.origin is None else data[rows.origin],
            "y": lambda: rows.y if self._multilabel else self.classes_[rows.y],
            "metadata": {"sample_weight": None if sample_weight is None else rows.weights},
        }
        self._iterate(rows, held_out, rng, seen, continued)
        self._calibrate(rows, held_out, self._seed())
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
            If `classes` is missing at the first call or changed later, if y has a label outside
            them, or if ``class_weight="balanced"`` (the class counts of a stream are not known:
            pass sample_weight).
        """
        self._check_parameters()
        self._check_shared_parameters()
        if self.class_weight == "balanced":
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
        by_class = class_weights(self.class_weight, self.classes_, labels, self._multilabel)
        rows = weigh(data, labels, by_class, sample_weight, unit=False)
        if len(rows.y):
            self._mean_weight = self._mean_weight.after(rows.weights)
            rows = self._mean_weight.of_mean_1(rows)
        if len(rows.y):
            self._learn(rows)
        return self

    # How it is done.

    @property
    def _most_iterations(self) -> Any:
        """Return `max_iter`; a model that is made at once has none."""
        return getattr(self, "max_iter", 1)

    @property
    def _patience(self) -> Any:
        """Return `n_iter_no_change`, in the same way."""
        return getattr(self, "n_iter_no_change", 1)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self._seed())

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _validate_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = read_labelled_rows(self, X, y, reset=reset, multi_output=self._takes_indicator)
        return X, labels_or_indicator(y) if self._takes_indicator else y

    def _strength(self, norm2: float, n_samples: float) -> float:
        """Return the L2 strength: the one given, or the rule's times the factor chosen."""
        if isinstance(self.alpha, str):
            return self._factor * self._alpha_unit * auto_alpha(norm2, n_samples)
        return float(self.alpha)

    def _batch_size(self, n_samples: int) -> int:
        if self.batch_size == "auto":
            return auto_batch_size(n_samples)
        return min(int(self.batch_size), n_samples)

    def _is_fitted(self) -> bool:
        return self._learned is not None

    def _take_over(self, fitted: LocallyLinearClassifier) -> None:
        """Let the next fit use the map, strength and metric that another has chosen."""
        of_fitted = vars(fitted)
        names = of_fitted.keys() & {"_features", "_factor", "_root"}
        self._taken_over = {name: of_fitted[name] for name in names}

    def _forget_fit(self) -> None:
        """Remove the attributes of an earlier fit; those of the user, or of a subclass, stay."""
        for name in vars(self).keys() & fitted_names(type(self)):
            delattr(self, name)
        if "_root" in vars(self):
            del self._root
        self._learned = self._streamed_metric = None

    def _begin(self, rows: Rows, rng: np.random.Generator, continued: bool) -> Procedure:
        """Begin a fit, or go on, over rows that may be mapped."""
        if not continued:
            self._multiplier = multiplier_for(self, rows)
        if self._map.is_plain:
            return self._start(rows, rng, continued=continued)
        return Mapped(self._start(self._mapped(rows), rng, continued=continued), self._map)

    def _begin_stream(self, rows: Rows) -> StreamProcedure:
        """Begin a stream, or go on from a fit, in the same way."""
        if not self._is_fitted():
            if self.metric not in (None, "auto"):
                self._streamed_metric = StreamedMetric(2 * len(rows.y))
                self.__dict__.update(chosen_metric(self, rows))
            self._multiplier = multiplier_for(self, rows)
        if self._map.is_plain and self._streamed_metric is None:
            return self._start_stream(rows, self._generator())
        return Mapped(self._start_stream(self._mapped(rows), self._generator()), self._map)

    @property
    def _map(self) -> LinearMap:
        """The map of the rows that are learned from."""
        return LinearMap(self._multiplier, self._root)

    def _mapped(self, rows: Rows) -> Rows:
        """Return rows mapped, for which attributes of a fit before are changed.

        The model that is learned replaces them.
        """
        if self._is_fitted():
            changed = {
                name: self._map.of_field(getattr(self._learned, name), power)
                for name, power in self._learned.units.items()
            }
            self._learned = replace(self._learned, **changed)
        return self._map.of_rows(rows)

    def _learn(self, rows: Rows) -> None:
        """Learn from rows of a stream, on a copy of what the calls before have left."""
        given, goes_on = rows, self._is_fitted()
        if not goes_on:
            self._begin_moments(rows)
        elif self._stream is None:
            self._see_all_columns(rows.X, streams=True)
        if self._stream is not None:
            self._stream = deepcopy(self._stream)
            with _overflow_is_checked():
                self._follow(self._stream, given)
        rows = self._seen(given, goes_on=goes_on)
        before = self._calibrated_by(rows)
        if self._stream is None:
            with _overflow_is_checked():
                self._stream = self._begin_stream(rows)
        elif self._learns_codes:
            move_metric(self, rows)
        stream = self._stream
        alpha = None if isinstance(self.alpha, str) else float(self.alpha)
        with threads_for(stream.products), _overflow_is_checked():
            objective = stream.learn(rows, alpha, self._batch_size(stream.n_seen + len(rows.y)))
            self._learned = stream.result(final=True)
        self._kept, self._unfinished = stream.kept, None
        self._take_temperatures(before)
        self.n_iter_ = 1
        self.objective_ = [objective]
        check_learned(self)

    def _iterate(
        self, rows: Rows, held_out: Rows | None, rng: np.random.Generator, seen: dict[str, Any],
        continued: bool,
    ) -> None:  # fmt: skip
        """Iterate until max_iter, or until a plateau and then `average` iterations more."""
        context = self._init_callback_context(max_subtasks=self._most_iterations)
        context.call_on_fit_task_begin(estimator=self, **seen)
        with _overflow_is_checked():
            procedure = self._begin(rows, rng, continued)
        plateau, average, last, stopping = go_on(self, procedure, len(rows.y))
        while len(self.objective_) < last:
            done = len(self.objective_)
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self, **seen)
            with threads_for(procedure.products), _overflow_is_checked():
                objective = procedure.iterate(average=done >= last - average)
            self.objective_.append(objective)
            watched, report = objective, f"objective {objective:.6g}"
            if held_out is not None:
                with _overflow_is_checked():
                    accuracy = accuracy_with(self, procedure.result(), held_out)
                self.validation_scores_.append(accuracy)
                watched, report = -accuracy, f"{report}, validation accuracy {accuracy:.4f}"
            if self.verbose:
                print(f"{type(self).__name__}: iteration {done + 1}/{last}, {report}")
            if not np.isfinite(objective):
                break
            stop = task.call_on_fit_task_end(
                estimator=self,
                reconstruction_attributes=lambda: so_far(self, procedure, rng),
                **seen,
            )
            if procedure.gap is None:
                if not stopping and (stop or plateau.reached(watched)):
                    stopping, last = True, min(self._most_iterations, done + 1 + average)
            elif stop or procedure.gap <= self.tol or (held_out and plateau.reached(watched)):
                stopping = True
                break
        self.n_iter_ = len(self.objective_)
        with _overflow_is_checked():
            self._learned = procedure.result(final=True)
        check_learned(self)
        self._kept, self._unfinished = procedure.kept, None
        if not stopping:
            warn_of_end(self, procedure.gap)
        context.call_on_fit_task_end(estimator=self, reconstruction_attributes=dict, **seen)
