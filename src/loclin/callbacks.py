"""Callbacks for long fits."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from copy import copy
from numbers import Integral
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from loclin import io
from loclin.engine.warned import warn
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.callbacks import CallbackSupportMixin
from loclin.fitting.checks import check_number

__all__ = ["Checkpoint", "CheckpointWarning"]


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the fit goes on, and the file is the one before."""


class Checkpoint:
    """Writes the model to a file while it is fitted, so that a killed fit can go on.

    ``loclin.io.load(path).fit(X, y)``, with the same rows, does the iterations that are
    left: `max_iter`, `tol` and `average` count those before, and `objective_` has them
    all. `ML3Classifier`, `LLSVMClassifier` by "sgd" and `L3MClassifier` by "refined"
    and "online" end where they would have without the kill. Only if it came in the last
    `average` iterations, the average is begun anew from the mean so far. The others go
    on from their models, steps and dual variables. `SAPLClassifier` and
    ``solver="dual_cd"`` draw the order of the rows anew, and `USSVMClassifier` begins
    the average of the atoms anew. ``L3MClassifier(solver="convex")`` begins again.
    Callbacks are not in the file: set them again. Once the fit is over, the file holds
    the fitted model.

    In a stream there is nothing to call back: save the model every few calls of
    `partial_fit` with `loclin.io.save`; its `t_` tells how many rows it has seen.

    Parameters
    ----------
    path : str or path-like
        Path of the file, which is replaced as a whole or not at all. A fit needs one of
        its own: not for the estimator of a search, whose fits would all write to it.
    every : int, default=1
        Iterations from one checkpoint to the next: what a kill loses at most.
    trusted : iterable of type, default=()
        Classes of your own in the model; see `loclin.io.save`.

    Raises
    ------
    ImportError
        If scikit-learn is older than 1.9, which has no callbacks.

    See Also
    --------
    loclin.io.load : Load the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> import loclin.io
    >>> from loclin.callbacks import Checkpoint
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.loclin")
    ...     model = loclin.ML3Classifier(2, random_state=0)
    ...     model = model.set_callbacks(Checkpoint(path, every=5)).fit(X, y)
    ...     loclin.io.load(path).n_iter_ == model.n_iter_
    True
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: int = 1,
        *,
        trusted: Iterable[type] = (),
    ) -> None:
        if not hasattr(CallbackSupportMixin, "set_callbacks"):
            raise ImportError(
                "Checkpoint needs the callbacks of scikit-learn 1.9: pip install -U scikit-learn."
            )
        check_number("every", every, Integral, low=1)
        self.path, self.every, self.trusted = Path(path), int(every), tuple(trusted)

    def setup(self, estimator: BaseEstimator, context: Any) -> None:
        """Write and remove a trial file: what cannot be saved fails now, not in an hour."""
        if not isinstance(estimator, LocallyLinearClassifier):
            raise TypeError(
                "Checkpoint keeps the iterations of one classifier, and "
                f"{type(estimator).__name__} has none that it could go on from. Save it with "
                "loclin.io.save once it is fitted."
            )
        trial = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex[:12]}.trial")
        try:
            io.save(estimator, trial, trusted=self.trusted)
        finally:
            trial.unlink(missing_ok=True)

    def on_fit_task_begin(self, estimator: BaseEstimator, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(
        self, estimator: BaseEstimator, context: Any, *, fitted_estimator: BaseEstimator
    ) -> None:
        """Write the model after every `every` iterations, and at the end."""
        finished = context.task_name != "iteration"
        if not finished and len(estimator.objective_) % self.every:
            return
        model = copy(fitted_estimator)
        model._unfinished = None if finished else vars(model).pop("_rng")
        try:
            io.save(model, self.path, trusted=self.trusted)
        except OSError as error:
            warn(
                f"{self.path} could not be written ({error}). The fit goes on; make room, or a "
                "kill loses what was done since the last checkpoint.",
                CheckpointWarning,
            )

    def teardown(self, estimator: BaseEstimator, context: Any) -> None:
        """Do nothing."""
