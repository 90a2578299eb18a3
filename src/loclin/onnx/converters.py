"""Converters for skl2onnx: every classifier and every coding of loclin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper
from skl2onnx import get_model_alias, update_registered_converter
from skl2onnx.common.data_types import (
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from skl2onnx.helpers import add_onnx_graph
from sklearn.base import BaseEstimator, ClassifierMixin

from loclin import codings
from loclin._models import MODELS
from loclin.ensemble import LocallyLinearEnsemble
from loclin.onnx.coders import codes_by
from loclin.onnx.graph import Graph
from loclin.onnx.rows import Rows
from loclin.onnx.writing import label_type, labels_of, shape_of, write
from loclin.portable import CodesByScorer, Description
from loclin.portable.describing import coder_of, described, with_dense_codes
from loclin.portable.words import Transformed

OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [False],
    "output_class_labels": [False, True],
    "raw_scores": [False, True],
}


class Described(ClassifierMixin, BaseEstimator):
    """A description in the place of a classifier, and the outputs that its graph is to have.

    Parameters
    ----------
    description : Description
    outputs : sequence of str
        As of `loclin.onnx.writing.write`.
    dtype : dtype
        What it computes in: columns of whole numbers and texts do not say.
    """

    def __init__(
        self, description: Description, outputs: Sequence[str], dtype: np.dtype
    ) -> None:
        self.description = description
        self.outputs = outputs
        self.dtype = dtype


def register() -> None:
    """Tell skl2onnx how to write all classifiers and codings of loclin."""
    for kind in (*MODELS, LocallyLinearEnsemble):
        alias = f"Loclin{kind.__name__}"
        update_registered_converter(
            kind, alias, _classifier_shapes, _classifier, options=OPTIONS
        )
    for name in codings.__all__:
        kind = getattr(codings, name)
        update_registered_converter(kind, f"Loclin{name}", _coding_shape, _coding)
    update_registered_converter(
        Described, "LoclinDescribed", _classifier_shapes, _classifier, parser=_parser,
        options={"zipmap": None},  # which pipelines of skl2onnx set
    )  # fmt: skip


def said_by(model: Any) -> Description:
    """Return what a classifier computes; codings of others stay transformers.

    Raises
    ------
    ValueError
        If that cannot be a graph.
    """
    try:
        found = described(model, with_dense_codes)
    except ValueError as error:
        raise ValueError(
            f"This cannot be an ONNX graph: {str(error).rstrip('.')}. Serve it from Python, or "
            "fit another model."
        ) from None
    if not found.multilabel:
        labels_of(found.classes)
    return found


def _parser(scope: Any, model: Described, inputs: Any, custom_parsers: Any = None) -> Any:
    operator = scope.declare_local_operator(get_model_alias(Described), model)
    operator.inputs = inputs
    for name in model.outputs:
        operator.outputs.append(scope.declare_local_variable(name, FloatTensorType()))
    return operator.outputs


def numbers_type(dtype: DTypeLike) -> Any:
    """Return what skl2onnx calls numbers of that type."""
    return DoubleTensorType if np.dtype(dtype) == np.float64 else FloatTensorType


def dtype_of(operator: Any) -> Any:
    """Return what an operator of skl2onnx computes in: doubles if one of its inputs has them."""
    if isinstance(operator.raw_operator, Described):
        return operator.raw_operator.dtype
    is_double = any(isinstance(one.type, DoubleTensorType) for one in operator.inputs)
    return np.float64 if is_double else np.float32


def inputs_of(operator: Any) -> list[onnx.ValueInfoProto]:
    """Return the inputs of an operator of skl2onnx as those of a graph of its own."""
    infos = []
    for k, one in enumerate(operator.inputs):
        number, width = one.type.to_onnx_type().tensor_type.elem_type, one.type.shape[1]
        shape = [None, None if width is None else int(width)]  # skl2onnx has int64, too
        infos.append(helper.make_tensor_value_info(f"input_{k}", number, shape))
    return infos


def _wanted(operator: Any) -> tuple[Description, Sequence[str]]:
    """Return what a classifier computes, and the outputs that are wanted."""
    model = operator.raw_operator
    if isinstance(model, Described):
        return model.description, model.outputs
    found = said_by(model)
    raw = operator.scope_inst.get_options(model, {"raw_scores": False})["raw_scores"]
    without = raw or found.temperature is None
    return found, ("label", "raw_scores" if without else "probabilities")


def _classifier_shapes(operator: Any) -> None:
    said, wanted = _wanted(operator)
    numbers = numbers_type(dtype_of(operator))
    is_text = label_type(said) == onnx.TensorProto.STRING
    labels = StringTensorType if is_text else Int64TensorType
    n_rows = operator.inputs[0].get_first_dimension()
    for name, output in zip(wanted, operator.outputs, strict=True):
        kind = labels if name == "label" else numbers
        output.set_type(kind([n_rows, *shape_of(said, name)]))


def _classifier(scope: Any, operator: Any, container: Any) -> None:
    said, wanted = _wanted(operator)
    found = write(said, dtype_of(operator), outputs=wanted, inputs=inputs_of(operator))
    add_onnx_graph(scope, operator, container, found)


def block_shape(dtype: DTypeLike, operator: Any) -> None:
    """Tell skl2onnx that the output of a transformer is one block of numbers."""
    width = len(operator.raw_operator.get_feature_names_out())
    n_rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].set_type(numbers_type(dtype)([n_rows, width]))


def _coding_shape(operator: Any) -> None:
    block_shape(dtype_of(operator), operator)


def _coding(scope: Any, operator: Any, container: Any) -> None:
    graph, inputs = Graph(dtype_of(operator)), inputs_of(operator)
    coding = operator.raw_operator
    coder, d = coder_of(coding), coding.n_features_in_
    if isinstance(coder, Transformed):
        raise ValueError(
            f"{type(coding).__name__} cannot be an ONNX graph: its codes are no formula of the row."
        )
    rows = Rows(graph, ((graph.joined(inputs), d),), np.zeros(d), None, False)
    codes = codes_by(coder, rows)
    if isinstance(
        coder, CodesByScorer
    ):  # codes of fewer planes end in zeros: leave them out
        sizes = coding.n_planes_
        is_plane = np.arange(max(sizes)) < sizes[:, None]
        codes = graph("Reshape", codes, [-1, is_plane.size])
        codes = graph.columns(codes, np.flatnonzero(is_plane))
    finish_converter(scope, operator, container, graph, inputs, [codes])


def finish_converter(
    scope: Any,
    operator: Any,
    container: Any,
    graph: Graph,
    inputs: Sequence[onnx.ValueInfoProto],
    values: Sequence[str],
) -> None:
    """Hand skl2onnx a graph with these values as the outputs of an operator."""
    outputs = []
    for k, (value, known) in enumerate(zip(values, operator.outputs, strict=True)):
        graph.name(value, f"output_{k}")
        number = known.type.to_onnx_type().tensor_type.elem_type
        outputs.append(
            helper.make_tensor_value_info(f"output_{k}", number, known.type.shape)
        )
    add_onnx_graph(scope, operator, container, graph.finish(inputs, outputs))
