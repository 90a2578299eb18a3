"""The steps of a model one by one, and wrappers in which classifiers cannot be written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import TunedThresholdClassifierCV
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
    return _holds(step, _BY_COLUMN)


def check_wrappers(model: Any, around: Sequence[tuple[Any, Any]] = ()) -> None:
    """Check that wrappers of scikit-learn say in a graph what they say in Python.

    Parameters
    ----------
    model : object
        A classifier of loclin, or what holds some.
    around : sequence of (wrapper, part), default=()
        The wrappers around it, and their parts that hold it, outermost first.

    Raises
    ------
    ValueError
        If one would say something else, or if skl2onnx does not give it what it needs.
    """
    if isinstance(model, ColumnTransformer) and _holds(model, TableEncoder):
        raise ValueError(
            "A TableEncoder inside a ColumnTransformer cannot be an ONNX graph: make it the "
            "first step of the pipeline; it takes all kinds of columns."
        )
    if hasattr(model, "_terms"):
        _check_around(model, around)
        return
    for step in steps_of(model):
        if step is not model:
            check_wrappers(step, around)
    for part in _parts(model):
        check_wrappers(part, [*around, (model, part)])


def _holds(step: Any, kinds: Any) -> bool:
    return any(isinstance(one, kinds) for one in (step, *step.get_params().values()))


def _parts(wrapper: Any) -> Iterator[Any]:
    """Yield the fitted models that a wrapper asks."""
    of_folds = [one.estimator for one in getattr(wrapper, "calibrated_classifiers_", ())]
    # beside estimators_, estimator_ is what they were copied from
    alone = [getattr(wrapper, "estimator_", None)]
    final = getattr(wrapper, "final_estimator_", None)
    for part in (*of_folds, *getattr(wrapper, "estimators_", alone), final):
        if isinstance(part, BaseEstimator):
            yield part


def _check_around(model: Any, around: Sequence[tuple[Any, Any]]) -> None:
    """Raise ValueError where a wrapper asks a classifier for more than a graph gives it."""
    name = type(model).__name__
    for wrapper, part in around:
        outer = type(wrapper).__name__
        if _compares(wrapper) and hasattr(part, "decision_function"):
            raise ValueError(
                f"{outer} over {name} cannot be an ONNX graph: it compares scores, and the graph "
                f"probabilities. Fit {name} itself: it takes several classes."
            )
        if getattr(wrapper, "stack_method", "") in ("decision_function", "predict"):
            raise ValueError(
                f"{outer} over {name} can be an ONNX graph only with "
                'stack_method="predict_proba".'
            )
        if isinstance(wrapper, TunedThresholdClassifierCV):
            raise ValueError(
                f"{outer} cannot be an ONNX graph: skl2onnx leaves out its threshold. Write its "
                "estimator_, and compare probabilities with best_threshold_ yourself."
            )
    asks_scores = not around or isinstance(around[-1][0], CalibratedClassifierCV)
    if not asks_scores and getattr(model, "temperature_", None) is None:
        raise ValueError(
            f"{type(around[-1][0]).__name__} over {name} can be an ONNX graph only with "
            f"probabilities: fit {name} with calibrate=True."
        )


def _compares(wrapper: Any) -> bool:
    """Tell whether the label is that of the classifier with the largest score."""
    if not isinstance(wrapper, OneVsRestClassifier | OneVsOneClassifier):
        return False
    return len(wrapper.estimators_) > 1 and not getattr(wrapper, "multilabel_", False)
