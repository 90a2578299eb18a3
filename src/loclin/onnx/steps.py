"""The steps of a model one by one, and wrappers in which classifiers cannot be written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from loclin.tables import TableEncoder

_BY_COLUMN = TableEncoder, ColumnTransformer, OneHotEncoder, OrdinalEncoder


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a model, and those of pipelines inside; a search is its best model."""
    if hasattr(model, "best_estimator_"):
        return steps_of(model.best_estimator_)
    if isinstance(model, FrozenEstimator):
        return steps_of(model.estimator)
    if not isinstance(model, Pipeline):
        return [model]
    real = (step for _, step in model.steps if step not in (None, "passthrough"))
    return [one for step in real for one in steps_of(step)]


def in_a_row(steps: list[Any]) -> Any:
    """Return fitted steps as one model."""
    if len(steps) == 1:
        return steps[0]
    return Pipeline([(str(k), step) for k, step in enumerate(steps)])


def takes_columns(step: Any) -> bool:
    """Tell whether a step, or a model inside it, asks a table for single columns."""
    return any(isinstance(one, _BY_COLUMN) for one in _all_inside(step))


def check_wrappers(model: Any) -> None:
    """Raise ValueError where a graph would say something else than a wrapper of scikit-learn."""
    steps = steps_of(model)
    for step in steps:
        if isinstance(step, ColumnTransformer) and any(
            isinstance(one, TableEncoder) for one in _all_inside(step)
        ):
            raise ValueError(
                "A TableEncoder inside a ColumnTransformer cannot be an ONNX graph: make it the "
                "first step of the pipeline; it takes all kinds of columns."
            )
    _check_inside(model, [])


def _all_inside(step: Any) -> list[Any]:
    return [step, *step.get_params().values()]


def _check_inside(model: Any, around: list[tuple[Any, Any]]) -> None:
    """Check the classifiers of loclin in a model.

    Parameters
    ----------
    model : object
    around : list of (wrapper, part)
        The wrappers around it, and their parts that hold it, outermost first.
    """
    if hasattr(model, "_terms"):
        _check_in_wrappers(model, around)
        return
    for step in steps_of(model):
        if step is not model:
            _check_inside(step, around)
    for part in _parts(model):
        _check_inside(part, [*around, (model, part)])


def _parts(wrapper: Any) -> Iterator[Any]:
    """Yield the fitted models that a wrapper asks."""
    of_folds = [one.estimator for one in getattr(wrapper, "calibrated_classifiers_", ())]
    # beside estimators_, estimator_ is what they were copied from
    alone = [getattr(wrapper, "estimator_", None)]
    final = getattr(wrapper, "final_estimator_", None)
    for part in (*of_folds, *getattr(wrapper, "estimators_", alone), final):
        if isinstance(part, BaseEstimator):
            yield part


def _check_in_wrappers(model: Any, around: list[tuple[Any, Any]]) -> None:
    name = type(model).__name__
    for wrapper, part in around:
        outer = type(wrapper).__name__
        if isinstance(wrapper, OneVsRestClassifier | OneVsOneClassifier):
            n_scores = (
                1 if getattr(wrapper, "multilabel_", False) else len(wrapper.estimators_)
            )
            if n_scores > 1 and hasattr(part, "decision_function"):
                raise ValueError(
                    f"{outer} over {name} cannot be an ONNX graph: it compares scores, and the "
                    f"graph probabilities. Fit {name} itself: it takes several classes."
                )
        if isinstance(wrapper, StackingClassifier) and wrapper.stack_method not in (
            "auto",
            "predict_proba",
        ):
            raise ValueError(
                f"StackingClassifier over {name} can be an ONNX graph only with "
                'stack_method="predict_proba".'
            )
    if around and getattr(model, "temperature_", None) is None:
        outer = type(around[-1][0]).__name__
        if outer != CalibratedClassifierCV.__name__:
            raise ValueError(
                f"{outer} over {name} can be an ONNX graph only with probabilities: fit "
                f"{name} with calibrate=True."
            )
