"""Classifiers in files, and fits that go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np

from loclin.engine.data import Floats
from loclin.engine.procedure import FittedModel, LocalModels, Procedure, StreamProcedure
from loclin.engine.shapes import Shape
from loclin.fitting.begun import Begun
from loclin.fitting.checks import check_shared_parameters
from loclin.fitting.consistent import wrong_with
from loclin.fitting.iterations import Plateau, end_of


class Stored(Begun):
    """What a classifier keeps of a fit or a stream, for those that go on.

    In pickles and files, weights of sparse rows stay feature by feature.
    """

    feature_weights_: Annotated[Floats, Shape("d", np.floating)]
    metric_: Annotated[Floats, Shape("d d", np.floating)]
    n_iter_: int
    objective_: list[float]
    validation_scores_: list[float]
    _fitted_models: ClassVar[tuple[type[FittedModel], ...]] = (LocalModels,)  # that it may have
    _adopted: frozenset[str] = frozenset()  # attributes that the fitted model has set
    _units: Mapping[str, int] = MappingProxyType({})  # of those of them that have one
    _kept: Any = None  # what a fit that goes on needs besides the attributes
    _stream: StreamProcedure | None = None
    _unfinished: np.random.Generator | None = None  # of a fit that a checkpoint has cut off
    _split_seed: int | None = None  # of its rows held out

    def _check_shared_parameters(self) -> None:
        check_shared_parameters(self)

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        return wrong_with(self, sizes)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles."""
        state: dict[str, Any] = super().__getstate__()
        coef = state.get("local_coef_")
        if coef is not None and not coef.flags.c_contiguous:
            state = state | {"local_coef_": None, "_by_feature": np.moveaxis(coef, 2, 0)}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if (by_feature := state.pop("_by_feature", None)) is not None:
            state["local_coef_"] = np.moveaxis(by_feature, 0, 2)
        super().__setstate__(state)


def so_far(classifier: Any, procedure: Procedure, rng: np.random.Generator) -> dict[str, Any]:
    """Return the classifier's attributes if the fit ended here, and what it needs to go on."""
    model = copy(classifier)
    model._adopt(procedure.result())
    model._kept, model.n_iter_ = procedure.kept, len(classifier.objective_)
    return vars(model) | {"_rng": rng}


def go_on(classifier: Any, procedure: Procedure, n_samples: int) -> tuple[Plateau, int, int, bool]:
    """Begin the lists of objectives and scores, or go on with those of a fit that was cut off.

    Returns the plateau to watch, the iterations averaged after it, the last iteration as far as is
    known, and whether the plateau was reached before.
    """
    before, (plateau, average) = bool(classifier._unfinished), end_of(classifier, n_samples)
    objectives = [*classifier.objective_] if before else []
    scores = [*classifier.validation_scores_] if before else []
    classifier.objective_, classifier.validation_scores_ = objectives, scores
    reached = plateau.replay([-score for score in scores] or objectives)
    last, stopping = classifier.max_iter, bool(reached) and procedure.gap is None
    if stopping:
        last = min(last, reached + average)
    return plateau, average, max(len(objectives) + 1, last), stopping
