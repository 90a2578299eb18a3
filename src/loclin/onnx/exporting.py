"""From a fitted model, or a whole pipeline, to an ONNX model."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, DTypeLike
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from loclin.fitting.checks import check_flag, check_number
from loclin.onnx.calibrated import probabilities_of
from loclin.onnx.converters import (
    Described,
    block_shape,
    dtype_of,
    finish_converter,
    inputs_of,
    said_by,
)
from loclin.onnx.graph import IR_VERSION, OPSETS, Graph
from loclin.onnx.rows import less
from loclin.onnx.tables import features_of
from loclin.onnx.writing import label_at
from loclin.portable import Description
from loclin.portable.describing import SCALERS, scaling_of
from loclin.tables import TableEncoder
from loclin.tables.cells import frame_of

Inputs = list[tuple[str, Any]]  # names and types, of skl2onnx


def to_onnx(
    model: Any,
    X: ArrayLike,
    *,
    dtype: DTypeLike | None = None,
    scores: bool = False,
    explain: bool = False,
    opset: int = OPSETS[""],
) -> onnx.ModelProto:
    """Write a fitted classifier, or a pipeline that ends in one, as an ONNX model.

    Parameters
    ----------
    model : classifier or Pipeline
        Fitted. The steps of a pipeline may be all that skl2onnx knows; of a search its best
        estimator is taken.
    X : {array-like, DataFrame} of shape (n_samples, n_features)
        A few rows: they say what inputs the graph has. Of an array it has one, "X"; of a table
        one for each column, (n, 1), by the column's name.
    dtype : {float32, float64} or None, default=None
        Type of the numbers, in the graph and of its inputs. None takes float32 where X has it,
        else float64. In float32 graphs are smaller, and several times as fast; a row may get
        another label only where two scores are equal to rounding. Columns of whole numbers in
        a table stay int64, as they may be categories.
    scores : bool, default=False
        Whether the graph also has an output "scores": those of `decision_function`.
    explain : bool, default=False
        Whether it also has outputs "coefficients" and "intercepts": those of `local_model`, of
        the features that the classifier sees. Scalers right in front of it are part of the
        model: the features are those before them.
    opset : int, default=18
        Version of ONNX's operators, 18 or more. Graphs of 18 run in onnxruntime 1.18 and later.

    Returns
    -------
    graph : onnx.ModelProto
        Its outputs are "label" (int64 or strings; of several labels a row, 0 and 1 for each,
        (n, n_classes)) and "probabilities", (n, n_classes). A model without probabilities has
        "scores" instead.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    ValueError
        If the model keeps training rows or kernels, or a coding whose codes are no formula; if
        labels are neither whole numbers nor strings; if X does not fit the model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from loclin import ML3Classifier
    >>> from loclin.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), ML3Classifier(2, random_state=0)).fit(X, y)
    >>> graph = to_onnx(model, X[:1], dtype="float32")
    >>> [output.name for output in graph.graph.output]
    ['label', 'probabilities']
    """
    check_flag("scores", scores)
    check_flag("explain", explain)
    check_number("opset", opset, Integral, low=OPSETS[""], open_high=True)
    check_is_fitted(_unwrapped(model))
    if hasattr(X, "tocsr"):
        raise ValueError("X is sparse, and graphs take dense rows: pass X[:1].toarray().")
    X = X.to_pandas() if hasattr(X, "to_pandas") else X
    encoder = _steps(_unwrapped(model))[0]
    if isinstance(encoder, TableEncoder):  # takes only the columns that it uses
        X = frame_of(X)[list(dict.fromkeys(encoder.origins_))]
    wanted = ["label", "probabilities", *["scores"] * scores]
    wanted += ["coefficients", "intercepts"] * explain
    return _converted(model, _inputs(X, dtype), wanted, opset)


def _converted(
    model: Any, inputs: Inputs, wanted: list[str], opset: int
) -> onnx.ModelProto:
    """Return a model as a graph with these outputs, where it has them."""
    model = _unwrapped(model)
    last = type(_steps(model)[-1])
    found = convert_sklearn(
        _whole(model, inputs, wanted),
        name="loclin",
        initial_types=inputs,
        target_opset=opset,
        options={last: {"zipmap": False}} if is_classifier(model) else None,
        custom_conversion_functions=_BETTER,
        custom_shape_calculators=_SHAPES,
    )
    for one in found.opset_import:
        if not one.domain:
            one.version = opset
    found.ir_version = min(found.ir_version, IR_VERSION)
    onnx.checker.check_model(found, full_check=True)
    return found


def _inputs(X: Any, dtype: Any) -> Inputs:
    """Return the inputs of a graph for such rows."""
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype is {dtype!r}, but should be float32 or float64.")
    dtype = None if dtype is None else np.dtype(dtype)
    if hasattr(X, "columns"):
        return [
            (str(name), _type_of(X[name].dtype, dtype)([None, 1])) for name in X.columns
        ]
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}: pass a few rows, such as X[:1].")
    numbers = np.dtype(np.float64) if X.dtype.kind in "iub" else X.dtype
    return [("X", _type_of(numbers, dtype)([None, X.shape[1]]))]


def _type_of(found: Any, dtype: Any) -> Any:
    """Return the type of inputs of such values: of numbers with decimals, that dtype."""
    found = getattr(getattr(found, "categories", None), "dtype", found)
    if found.kind == "f":
        is_single = found == np.float32 if dtype is None else dtype == np.float32
        return FloatTensorType if is_single else DoubleTensorType
    if found.kind in "iu":
        return Int64TensorType
    return BooleanTensorType if found.kind == "b" else StringTensorType


def _unwrapped(model: Any) -> Any:
    """Return the model of a search, and one that was frozen."""
    model = getattr(model, "best_estimator_", model)
    return model.estimator if isinstance(model, FrozenEstimator) else model


def _steps(model: Any) -> list[Any]:
    if not isinstance(model, Pipeline):
        return [model]
    return [step for _, step in model.steps if step not in (None, "passthrough")]


def _whole(model: Any, inputs: Inputs, wanted: list[str]) -> Any:
    """Return the model for skl2onnx: what can be described stands as one step, at the end."""
    steps = _steps(model)
    if not hasattr(steps[-1], "_terms"):
        if wanted != ["label", "probabilities"]:
            said_by(steps[-1])  # says what is wrong
        return model
    first = len(steps) - 1
    while first and scaling_of(steps[first - 1]) is not None:
        first -= 1
    found = said_by(_pipeline(steps[first:]))
    if not first:
        _check_inputs(inputs, found)
    if found.temperature is None:
        wanted = ["scores" if name == "probabilities" else name for name in wanted]
    return _pipeline([*steps[:first], Described(found, list(dict.fromkeys(wanted)))])


def _pipeline(steps: list[Any]) -> Any:
    """Return fitted steps as one model."""
    return (
        steps[0]
        if len(steps) == 1
        else Pipeline([(str(k), s) for k, s in enumerate(steps)])
    )


def _check_inputs(inputs: Inputs, said: Description) -> None:
    names, n_features = (
        [name for name, _ in inputs],
        sum(kind.shape[1] for _, kind in inputs),
    )
    if n_features != said.n_features:
        raise ValueError(f"X has {n_features} features, but the model {said.n_features}.")
    if len(names) > 1 and said.feature_names not in (None, tuple(names)):
        raise ValueError(f"X has the columns {names}; give {list(said.feature_names)}.")
    if any(isinstance(kind, StringTensorType) for _, kind in inputs):
        raise ValueError("X has texts, but the model takes numbers.")


def _calibrated(scope: Any, operator: Any, container: Any) -> None:
    """Write a `CalibratedClassifierCV` over a classifier of loclin, or a pipeline."""
    model, graph = operator.raw_operator, Graph(dtype_of(operator))
    infos, n_classes = inputs_of(operator), len(model.classes_)
    inputs = [(i.name, one.type) for i, one in zip(infos, operator.inputs, strict=True)]
    parts = []
    for part in model.calibrated_classifiers_:
        classifier = part.estimator
        found = _converted(classifier, inputs, ["scores"], container.target_opset)
        (scores,) = graph.insert(found, [info.name for info in infos])
        if len(classifier.classes_) == 2:
            scores = graph("Unsqueeze", scores, [1])
        places = np.searchsorted(model.classes_, classifier.classes_)[
            : len(part.calibrators)
        ]
        parts.append(probabilities_of(graph, scores, part, places, n_classes))
    mean = graph("Div", graph("Sum", *parts), float(len(parts)))
    label = label_at(graph, graph("ArgMax", mean, axis=1, keepdims=0), model.classes_)
    finish_converter(scope, operator, container, graph, infos, [label, mean])


def _scaled(scope: Any, operator: Any, container: Any) -> None:
    """Write a scaler: in float32 skl2onnx loses digits where the mean is large."""
    graph, infos = Graph(dtype_of(operator)), inputs_of(operator)
    step = operator.raw_operator
    linear = copy(step)
    linear.clip = False
    scaling = scaling_of(linear)
    assert scaling is not None
    centre, scale = (np.broadcast_to(part, step.n_features_in_) for part in scaling)
    found = graph("Div", less(graph, graph.joined(infos), centre, scale), scale)
    if getattr(step, "clip", False):
        low, high = getattr(step, "feature_range", (-1, 1))
        found = graph("Clip", found, float(low), float(high))
    finish_converter(scope, operator, container, graph, infos, [found])


def _encoded(scope: Any, operator: Any, container: Any) -> None:
    """Write a `TableEncoder`."""
    columns, graph = operator.raw_operator._columns, Graph(dtype_of(operator))
    infos = inputs_of(operator)
    blocks = [
        features_of(columns[one.raw_name], graph, info.name, one.type)
        for info, one in zip(infos, operator.inputs, strict=True)
    ]
    features = graph("Concat", *blocks, axis=1)
    finish_converter(scope, operator, container, graph, infos, [features])


_BETTER = {
    CalibratedClassifierCV: _calibrated,
    TableEncoder: _encoded,
    **dict.fromkeys(SCALERS, _scaled),
}
_SHAPES = dict.fromkeys(_BETTER, block_shape)
_SHAPES[CalibratedClassifierCV] = calculate_linear_classifier_output_shapes
