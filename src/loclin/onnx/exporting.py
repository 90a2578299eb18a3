"""From a fitted model, or a whole pipeline, to an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, DTypeLike
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import Int64TensorType, StringTensorType
from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
from sklearn.base import BaseEstimator, TransformerMixin, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils.validation import check_is_fitted

from loclin.fitting.checks import check_flag, check_number
from loclin.onnx.calibrated import probabilities_of
from loclin.onnx.converters import (
    Described,
    block_shape,
    finish_converter,
    inputs_of,
    numbers_type,
    said_by,
)
from loclin.onnx.graph import IR_VERSION, OPSETS, Graph
from loclin.onnx.inputs import Inputs, dtype_for, inputs_for, rows_for
from loclin.onnx.rows import less
from loclin.onnx.steps import check_wrappers, in_a_row, steps_of, takes_columns
from loclin.onnx.tables import features_of
from loclin.onnx.writing import label_at, labels_of
from loclin.portable.describing import SCALERS, scaling_of
from loclin.tables import TableEncoder


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
        one for each column, (n, 1), by the column's name; columns that a `TableEncoder` leaves
        out are no inputs.
    dtype : {float32, float64} or None, default=None
        Type of the numbers, in the graph and of its inputs. None takes float32 where all numbers
        with decimals in X have it, else float64. In float32 graphs are smaller, and several times
        as fast; a row may get another label only where two scores are equal to rounding. Columns
        of whole numbers in a table stay int64, as they may be categories.
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
        labels are neither whole numbers nor strings; if a wrapper of scikit-learn would say
        something else; if X does not fit the model, or has dates or names that no graph reads; if
        float32 would round whole numbers of X.

    Notes
    -----
    A graph does not check its rows. Where `predict` refuses NaN, a graph answers something.

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
    check_is_fitted(model)
    check_wrappers(model)
    X = rows_for(model, X)
    found = dtype_for(X, dtype)
    wanted = ["label", "probabilities", *["scores"] * scores]
    wanted += ["coefficients", "intercepts"] * explain
    return _converted(model, inputs_for(model, X, found), wanted, found, opset)


def _converted(
    model: Any, inputs: Inputs, wanted: list[str], dtype: np.dtype, opset: int
) -> onnx.ModelProto:
    """Return a model as a graph with these outputs, where it has them."""
    last = steps_of(model)[-1]
    try:
        found = convert_sklearn(
            _whole(model, inputs, wanted, dtype),
            name="loclin",
            initial_types=inputs,
            target_opset=opset,
            options={type(last): {"zipmap": False}} if is_classifier(last) else None,
            custom_conversion_functions={
                k: partial(f, dtype) for k, f in _BETTER.items()
            },
            custom_shape_calculators={k: partial(f, dtype) for k, f in _SHAPES.items()},
            naming=_PREFIX,
        )
        _rename(found.graph, [name for name, _ in inputs])
        for one in found.opset_import:
            if not one.domain:
                one.version = opset
        found.ir_version = min(found.ir_version, IR_VERSION)
        onnx.checker.check_model(found, full_check=True)
    except _REFUSALS as error:
        may_be_single = dtype == np.float64 and not isinstance(error, _LACKING)
        how = " (some steps need dtype=np.float32)" if may_be_single else ""
        raise ValueError(f"skl2onnx cannot write this model{how}: {error}") from error
    return found


def _rename(graph: onnx.GraphProto, columns: list[str]) -> None:
    """Give the inputs the names of the columns as they are, which skl2onnx has changed."""
    twice = {one.name for one in graph.output}.intersection(columns)
    if twice:
        raise ValueError(
            f"The column {min(twice)!r} has the name of an output of the graph: rename it before "
            "you fit."
        )
    names = dict(zip((one.name for one in graph.input), columns, strict=True))
    for one in graph.input:
        one.name = names[one.name]
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]


class _Block(TransformerMixin, BaseEstimator):
    """The columns of a table side by side, for steps that take one block of numbers."""


def _whole(model: Any, inputs: Inputs, wanted: list[str], dtype: np.dtype) -> Any:
    """Return the model for skl2onnx: what can be described stands as one step, at the end."""
    steps = steps_of(model)
    texts = any(isinstance(kind, StringTensorType) for _, kind in inputs)
    if hasattr(steps[-1], "_terms"):
        first = len(steps) - 1
        while first and scaling_of(steps[first - 1]) is not None:
            first -= 1
        found = said_by(in_a_row(steps[first:]))
        if texts and not first:
            raise ValueError("X has texts, but the model takes numbers.")
        if found.temperature is None:
            wanted = ["scores" if name == "probabilities" else name for name in wanted]
        steps = [*steps[:first], Described(found, list(dict.fromkeys(wanted)), dtype)]
    elif wanted != ["label", "probabilities"]:
        raise ValueError(
            f"A graph of {type(steps[-1]).__name__} has neither scores nor local models: leave "
            "out scores=True and explain=True."
        )
    is_block = [type(kind) for _, kind in inputs] == [numbers_type(dtype)]
    if not (
        is_block or texts or isinstance(steps[0], Described) or takes_columns(steps[0])
    ):
        steps = [_Block(), *steps]
    return in_a_row(steps)


def _blocked(dtype: np.dtype, scope: Any, operator: Any, container: Any) -> None:
    """Write the columns of a table as one block."""
    graph, infos = Graph(dtype), inputs_of(operator)
    finish_converter(scope, operator, container, graph, infos, [graph.joined(infos)])


def _block_shape(dtype: np.dtype, operator: Any) -> None:
    n_rows = operator.inputs[0].get_first_dimension()
    width = sum(one.type.shape[1] for one in operator.inputs)
    operator.outputs[0].set_type(numbers_type(dtype)([n_rows, width]))


def _calibrated(dtype: np.dtype, scope: Any, operator: Any, container: Any) -> None:
    """Write a `CalibratedClassifierCV` over a classifier of loclin, or a pipeline."""
    model, graph = operator.raw_operator, Graph(dtype)
    infos, n_classes = inputs_of(operator), len(model.classes_)
    inputs = [(one.raw_name, one.type) for one in operator.inputs]
    parts = []
    for part in model.calibrated_classifiers_:
        classifier = part.estimator
        said_by(steps_of(classifier)[-1])  # says what is wrong
        found = _converted(classifier, inputs, ["scores"], dtype, container.target_opset)
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


def _calibrated_shape(dtype: np.dtype, operator: Any) -> None:
    classes, n_rows = (
        operator.raw_operator.classes_,
        operator.inputs[0].get_first_dimension(),
    )
    labels = Int64TensorType if labels_of(classes).dtype == np.int64 else StringTensorType
    operator.outputs[0].set_type(labels([n_rows]))
    operator.outputs[1].set_type(numbers_type(dtype)([n_rows, len(classes)]))


def _scaled(dtype: np.dtype, scope: Any, operator: Any, container: Any) -> None:
    """Write a scaler: in float32 skl2onnx loses digits where the mean is large."""
    graph, infos = Graph(dtype), inputs_of(operator)
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


def _encoded(dtype: np.dtype, scope: Any, operator: Any, container: Any) -> None:
    """Write a `TableEncoder`."""
    graph, infos = Graph(dtype), inputs_of(operator)
    known = {
        one.raw_name: (info.name, one.type)
        for info, one in zip(infos, operator.inputs, strict=True)
    }
    blocks = [
        features_of(column, graph, *known[name])
        for name, column in operator.raw_operator._columns.items()
    ]
    features = graph("Concat", *blocks, axis=1)
    finish_converter(scope, operator, container, graph, infos, [features])


_PREFIX = "loclin_"  # of what is inside, so that no column has such a name
_LACKING = NotImplementedError, MissingConverter, MissingShapeCalculator
_REFUSALS = (
    RuntimeError,
    NameError,  # of options
    onnx.checker.ValidationError,
    onnx.shape_inference.InferenceError,
)
_BETTER: Mapping[type, Any] = {
    CalibratedClassifierCV: _calibrated,
    TableEncoder: _encoded,
    _Block: _blocked,
    **dict.fromkeys(SCALERS, _scaled),
}
_SHAPES: Mapping[type, Any] = {
    **dict.fromkeys(_BETTER, block_shape),
    CalibratedClassifierCV: _calibrated_shape,
    _Block: _block_shape,
}
