"""What every locally linear classifier shares: the road from data to a fitted model and back.

A fit walks validate -> iterate -> attributes. A subclass supplies the iterations (`_begin_fit`,
`_continue_stream`), the scores (`_class_scores`) and the codes (`_codes`); it never overrides what
is concrete here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from loclin.engine.data import Rows
from loclin.engine.schedule import auto_alpha
from loclin.engine.scores import combine_models, difference, winners
from loclin.engine.threads import threads_for
from loclin.fitting.callbacks import CallbackSupportMixin, with_callbacks
from loclin.fitting.checks import canonical, check_feature_scale, check_shared_parameters
from loclin.fitting.iterations import Iterations, Plateau, warn_of_gap
from loclin.fitting.rows import LARGEST_BATCH, auto_batch_size, hold_out, weigh
from loclin.fitting.strength import chosen_factor
from loclin.fitting.targets import (
    class_weights,
    classes_of_stream,
    find_classes,
    in_classes,
    labels_or_indicator,
    share_right,
)


def _can_stream(classifier: LocallyLinearClassifier) -> bool:
    classifier._check_stream()
    return True


class LocallyLinearClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator, ABC):
    """Abstract locally linear classifier."""

    classes_: NDArray[Any]
    _takes_indicator = False  # may y be an indicator matrix, several labels a row?
    _multilabel = False  # is it?
    _scores_tell_finite = False  # has every row with NaN or infinity such a score?
    _stream: Any  # what a subclass keeps between the calls of partial_fit
    _rng: np.random.Generator
    _alpha_unit = 1.0  # strength of the rule for alpha, in that of most
    _factor = 1.0  # on the rule, chosen in the fit

    def _check_stream(self) -> None:
        """Raise AttributeError where the parameters leave no way to learn from a stream."""

    def _trial(self) -> dict[str, Any] | None:
        """Return parameters of the fits that choose alpha on few rows; None: no such fits."""
        return {}

    def _finish(self, rows: Rows) -> None:
        """Do what is left once the iterations are over and their attributes are set."""

    # What a subclass supplies.

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise where a parameter of the subclass is not valid."""

    @abstractmethod
    def _begin_fit(self, rows: Rows, rng: np.random.Generator) -> Iterations:
        """Prepare the iterations, the first ones (the start) included."""

    @abstractmethod
    def _continue_stream(self, rows: Rows, rng: np.random.Generator) -> None:
        """Learn from some more rows of a stream, and set the fitted attributes."""

    @abstractmethod
    def _n_local_models(self) -> int:
        """Local models that a row is scored by in training, of all scorers together."""

    @abstractmethod
    def _class_scores(self, X: Any) -> NDArray[Any]:
        """Scores of the s scorers: (n, s)."""

    def _class_ranks(self, X: Any) -> NDArray[Any]:
        """Numbers in the order of each row's scores, if they are found faster: (n, s)."""
        return self._class_scores(X)

    @abstractmethod
    def _codes(self, X: Any) -> Any:
        """Codes behind the scores: CSR (n, m) where the scorers share them, else (n, s, m)."""

    # What the user calls.

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
            Weights of the rows, at least 0 and not all 0.

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
        check_shared_parameters(self)
        continued = bool(self.warm_start) and hasattr(self, "local_coef_")
        old_classes = self.classes_ if continued else None
        data, target = self._validate_rows(X, y, reset=not continued)
        classes, labels = find_classes(target)
        if old_classes is not None and not np.array_equal(old_classes, classes):
            raise ValueError(
                f"With warm_start=True, y must have the classes of the earlier fit "
                f"({old_classes}), got {classes}. Set warm_start=False to start afresh."
            )
        self.classes_, self._multilabel = classes, labels.ndim == 2
        self._stream = None
        rng = self._generator()
        rows = weigh(data, labels, self._class_weights(labels), sample_weight)
        del data, target, labels
        if not continued:
            self._factor = chosen_factor(self, rows, self._trial(), self._seed())
        held_out = None
        if self.early_stopping:
            rows, held_out = hold_out(rows, self.validation_fraction, self._seed())
        self._run(rows, held_out, rng, weighted=sample_weight is not None)
        return self

    @available_if(_can_stream)
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
            Weights of the rows.

        Returns
        -------
        self : object
            The classifier, able to predict.

        Raises
        ------
        ValueError
            If `classes` is missing at the first call or changed later, if y has a label outside
            them, or if ``class_weight="balanced"`` (the class counts of a stream are not known:
            pass sample_weight).
        """
        self._check_parameters()
        check_shared_parameters(self)
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs the class counts of all the data, which a stream "
                "does not tell. Pass a dict of weights, or sample_weight."
            )
        first = not hasattr(self, "local_coef_")
        self.classes_ = classes_of_stream(classes, None if first else self.classes_)
        if first:
            self._stream, self._rng = None, self._generator()
        elif not hasattr(self, "_rng"):
            self._rng = self._generator()
        data, target = self._validate_rows(X, y, reset=first)
        labels = in_classes(target, self.classes_)
        self._multilabel = labels.ndim == 2
        rows = weigh(data, labels, self._class_weights(None), sample_weight, unit=False)
        if len(rows.y):
            self._continue_stream(rows, self._rng)
            self._check_finite()
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Scores of the rows: (n,) for two classes (positive for the second), else (n, n_classes).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._decisions(self._scores_of(X, self._class_scores))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class labels of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        found = winners(self._scores_of(X, self._class_ranks), self._multilabel)
        return found if self._multilabel else self.classes_[found]

    def local_weights(self, X: ArrayLike) -> Any:
        """Return the code of each row: how much each local model counts there.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        codes : csr_matrix of shape (n_samples, n_models) or \
                ndarray of shape (n_samples, n_scorers, n_models)
            CSR where the classes share the codes, dense where each has its own.
        """
        return self._codes(self._validate_new(X))

    def local_model(self, X: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the linear model that acts at each row: the exact explanation of its score.

        ``decision_function(X)`` equals ``einsum("nd,nd->n", coef, X) + intercept`` for two classes
        and ``einsum("ncd,nd->nc", coef, X) + intercept`` otherwise, to rounding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A few rows: the result has n_samples * n_classes * n_features numbers.

        Returns
        -------
        coef : ndarray of shape (n_samples, n_features) or (n_samples, n_classes, n_features)
        intercept : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        codes = self._codes(self._validate_new(X))
        coef, intercept = combine_models(codes, self.local_coef_, self.local_intercept_)
        return self._decisions(coef), self._decisions(intercept + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self._takes_indicator
        return tags

    # How it is done.

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self._seed())

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _validate_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = validate_data(
            self, X, y, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C",
            multi_output=self._takes_indicator,
        )  # fmt: skip
        y = labels_or_indicator(y) if self._takes_indicator else y
        X = canonical(X)
        check_feature_scale(X)
        if not reset:
            X = X.astype(self.local_coef_.dtype, copy=False)
        return X, y

    def _validate_new(self, X: Any, finite: bool = True) -> Any:
        check_is_fitted(self, "local_coef_")
        return canonical(validate_data(self, X, reset=False, accept_sparse="csr", order="C",
                         dtype=self.local_coef_.dtype, ensure_all_finite=finite))  # fmt: skip

    def _scores_of(self, X: Any, score: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
        """Score of every scorer, of rows that are checked."""
        if not self._scores_tell_finite:
            return score(self._validate_new(X))
        rows = self._validate_new(X, finite=False)
        with np.errstate(invalid="ignore", over="ignore"):
            scores = score(rows)
            if not np.isfinite(scores.sum()):  # the rows may be, and only the scores too large
                self._validate_new(X)
        return scores

    def _class_weights(self, labels: NDArray[Any] | None) -> NDArray[Any] | None:
        return class_weights(self.class_weight, self.classes_, labels, self._multilabel)

    def _decisions(self, by_scorer: NDArray[Any]) -> NDArray[Any]:
        """Scorers to decisions, on axis 1: several labels have one scorer each."""
        return by_scorer if self._multilabel else difference(by_scorer, len(self.classes_))

    def _strength(self, norm2: float, n_samples: float) -> float:
        """Return the L2 strength: the one given, or the rule's times the factor chosen."""
        if isinstance(self.alpha, str):
            return self._factor * self._alpha_unit * auto_alpha(norm2, n_samples)
        return float(self.alpha)

    def _batch_size(self, n_samples: int) -> int:
        return auto_batch_size(n_samples) if self.batch_size == "auto" else int(self.batch_size)

    def _threads(self, X: Any) -> AbstractContextManager[Any]:
        """Limit the threads of small products; to be entered around the iterations."""
        batch_size = LARGEST_BATCH if self.batch_size == "auto" else int(self.batch_size)
        return threads_for(float(batch_size) * X.shape[1] * self._n_local_models())

    def _accuracy(self, attributes: dict[str, Any], rows: Rows) -> float:
        """Weighted accuracy of the model with these attributes."""
        model = copy(self)
        for name, value in attributes.items():
            setattr(model, name, value)
        found = winners(model._class_scores(rows.X), self._multilabel)
        return float(np.average(share_right(found, rows.y), weights=rows.weights))

    def _run(self, rows: Rows, held_out: Rows | None, rng: np.random.Generator,
             *, weighted: bool) -> None:  # fmt: skip
        """Iterate until max_iter, or until a plateau and then `average` iterations more."""
        seen = {
            "X": rows.X,
            "y": lambda: rows.y if self._multilabel else self.classes_[rows.y],
            "metadata": {"sample_weight": rows.weights if weighted else None},
        }
        context = self._init_callback_context(max_subtasks=self.max_iter)
        context.call_on_fit_task_begin(estimator=self, **seen)
        iterations = self._begin_fit(rows, rng)
        plateau = Plateau(self.tol, self.n_iter_no_change)
        self.objective_: list[float] = []
        self.validation_scores_: list[float] = []
        last, stopping = self.max_iter, False
        while len(self.objective_) < last:
            done = len(self.objective_)
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self, **seen)
            with self._threads(rows.X):
                objective = iterations.iterate(average=done >= last - self.average)
            self.objective_.append(objective)
            watched, report = objective, f"objective {objective:.6g}"
            if held_out is not None:
                accuracy = self._accuracy(iterations.attributes(), held_out)
                self.validation_scores_.append(accuracy)
                watched, report = -accuracy, f"{report}, validation accuracy {accuracy:.4f}"
            if self.verbose:
                print(f"{type(self).__name__}: iteration {done + 1}/{last}, {report}")
            if not np.isfinite(objective):
                break
            stop = task.call_on_fit_task_end(
                estimator=self, reconstruction_attributes=iterations.attributes, **seen
            )
            if iterations.gap is None:
                if not stopping and (stop or plateau.reached(watched)):
                    stopping, last = True, min(self.max_iter, done + 1 + self.average)
            elif stop or iterations.gap <= self.tol or (held_out and plateau.reached(watched)):
                stopping = True
                break
        self.n_iter_ = len(self.objective_)
        for name, value in iterations.attributes().items():
            setattr(self, name, value)
        self._check_finite()
        self._finish(rows)
        if not stopping:
            warn_of_gap(iterations, self.max_iter, self.tol)
        context.call_on_fit_task_end(estimator=self, reconstruction_attributes=dict, **seen)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles: in them weights of sparse rows stay feature by feature."""
        state: dict[str, Any] = super().__getstate__()
        coef = state.get("local_coef_")
        if coef is not None and not coef.flags.c_contiguous:
            state = state | {"local_coef_": None, "_by_feature": np.moveaxis(coef, 2, 0)}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if (by_feature := state.pop("_by_feature", None)) is not None:
            state["local_coef_"] = np.moveaxis(by_feature, 0, 2)
        super().__setstate__(state)

    def _check_finite(self) -> None:
        learned = (self.local_coef_, self.local_intercept_, self.objective_[-1])
        if all(np.isfinite(values).all() for values in learned):
            return
        for name in ("local_coef_", "local_intercept_", "intercept_"):
            self.__dict__.pop(name, None)
        raise ValueError(
            "Training overflowed: some weights are no longer finite. Scale the features first, for "
            "example with make_pipeline(StandardScaler(), ...), or raise alpha."
        )
