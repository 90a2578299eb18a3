"""From a description to a graph of ONNX: labels, probabilities, scores, local models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import helper

from loclin.onnx.graph import Graph
from loclin.onnx.terms import WrittenTerm
from loclin.portable import Description

Array = NDArray[Any]


def write(
    description: Description,
    dtype: DTypeLike,
    *,
    outputs: Sequence[str],
    inputs: Sequence[onnx.ValueInfoProto] = (),
) -> onnx.ModelProto:
    """Write what a description computes as a graph of ONNX.

    Parameters
    ----------
    description : Description
    dtype : dtype
        float32 or float64: what it computes in.
    outputs : sequence of str
        Of "label", "probabilities", "scores", "raw_scores", "coefficients", "intercepts".
    inputs : sequence of ValueInfoProto, default=()
        Columns, or blocks of them, that make the rows, in order; by default one, X.

    Returns
    -------
    model : ModelProto
    """
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    if not inputs:
        shape = [None, description.n_features]
        inputs = [helper.make_tensor_value_info("X", number, shape)]
    writer = _Writer(description, Graph(dtype), inputs)
    infos = []
    for name in outputs:
        writer.graph.name(getattr(writer, name)(), name)
        kind = label_type(description) if name == "label" else number
        shape = [None, *shape_of(description, name)]
        infos.append(helper.make_tensor_value_info(name, kind, shape))
    return writer.graph.finish(inputs, infos)


class _Writer:
    """A graph with the decisions of a description, and what becomes of them.

    Parameters
    ----------
    description : Description
    graph : Graph
    inputs : sequence of ValueInfoProto
    """

    def __init__(
        self,
        description: Description,
        graph: Graph,
        inputs: Sequence[onnx.ValueInfoProto],
    ) -> None:
        self.said, self.graph = description, graph
        rows, d = graph.joined(inputs), description.n_features
        self.terms = [WrittenTerm.of(term, graph, rows, d) for term in description.terms]
        self.decisions = self._sum([term.scores() for term in self.terms])

    def scores(self) -> str:
        """Return what `decision_function` does."""
        return self._one(self.decisions)

    def raw_scores(self) -> str:
        """Return scores of all classes: of two they are opposites."""
        if self._is_binary:
            return self.graph("Mul", self.decisions, [[-1.0, 1.0]])
        return self.decisions

    def label(self) -> str:
        """Return labels; of several a row, 0 or 1 for each."""
        graph, said = self.graph, self.said
        if not (said.multilabel or self._is_binary):
            largest = graph("ArgMax", self.decisions, axis=1, keepdims=0)
            return label_at(graph, largest, said.classes)
        above = graph.cast(graph("Greater", self.scores(), 0.0), np.int64)
        return above if said.multilabel else label_at(graph, above, said.classes)

    def probabilities(self) -> str:
        """Return probabilities of all classes."""
        graph, share = self.graph, self.said.smoothing
        inverse = 1 / np.asarray(self.said.temperature, float)
        if self._is_binary or self.said.multilabel:
            signs = np.array([[-1.0, 1.0]]) if self._is_binary else 1.0
            sharp = graph("Sigmoid", graph("Mul", self.decisions, inverse * signs))
        else:
            most = float(np.finfo(graph.dtype).max) / 4
            sharp = graph("Clip", graph("Mul", self.decisions, inverse), -most, most)
            sharp = graph("Softmax", sharp, axis=1)
        if not share:
            return sharp
        n_outcomes = 2 if self.said.multilabel else len(self.said.classes)
        return graph("Add", graph("Mul", sharp, 1.0 - share), share / n_outcomes)

    def coefficients(self) -> str:
        """Return the slopes of the local models."""
        return self._local(0, self.said.n_features)

    def intercepts(self) -> str:
        """Return the constants of the local models."""
        d = self.said.n_features
        return self.graph("Squeeze", self._local(d, d + 1), [-1])

    # How it is done.

    @property
    def _is_binary(self) -> bool:
        return len(self.said.classes) == 2 and not self.said.multilabel

    def _sum(self, by_scorer: Sequence[str]) -> str:
        """Return the decisions, (n, c) or (n, 1), or what else scorers say on axis 1."""
        graph, total = self.graph, ""
        for term, said in zip(self.said.terms, by_scorer, strict=True):
            if self._is_binary and len(term.intercept) == 2:
                first, second = (graph("Slice", said, [k], [k + 1], [1]) for k in (0, 1))
                said = graph("Sub", second, first)
            said = said if term.factor == 1 else graph("Mul", said, float(term.factor))
            total = graph("Add", total, said) if total else said
        return total

    def _local(self, first: int, last: int) -> str:
        """Return some columns of the local models, (n, c, ...), or (n, ...) of two classes."""
        models = [term.local_models(self.said.n_features) for term in self.terms]
        return self._one(self.graph("Slice", self._sum(models), [first], [last], [2]))

    def _one(self, decisions: str) -> str:
        return self.graph("Squeeze", decisions, [1]) if self._is_binary else decisions


def label_at(graph: Graph, places: str, classes: Array) -> str:
    """Return the labels at these places among the classes."""
    labels = labels_of(classes)
    if labels.dtype == np.int64 and (labels == np.arange(len(labels))).all():
        return places
    return graph("Gather", labels, places, axis=0)


def shape_of(said: Description, output: str) -> list[int]:
    """Return the shape of an output behind the rows."""
    n_classes, d = len(said.classes), said.n_features
    by_class = [n_classes] if said.multilabel or n_classes > 2 else []
    return {
        "label": [n_classes] if said.multilabel else [],
        "probabilities": [n_classes],
        "raw_scores": [n_classes],
        "scores": by_class,
        "coefficients": [*by_class, d],
        "intercepts": by_class,
    }[output]


def label_type(said: Description) -> int:
    """Return the type of labels: that of int64, or of strings."""
    is_text = not said.multilabel and said.classes.dtype.kind in "UO"
    return onnx.TensorProto.STRING if is_text else onnx.TensorProto.INT64


def labels_of(classes: Array) -> Array:
    """Return labels as a graph gives them: int64, or strings.

    Raises
    ------
    ValueError
        If they are numbers with decimals, or of different types.
    """
    if classes.dtype.kind == "O" and all(isinstance(one, str) for one in classes):
        return classes
    if classes.dtype.kind == "U":
        return classes.astype(object)
    if classes.dtype.kind in "biuf" and (classes == classes.astype(np.int64)).all():
        return classes.astype(np.int64)
    raise ValueError(
        f"Labels of a graph are strings, or whole numbers of int64, not {classes.dtype} such as "
        f"{classes[-1:].tolist()[0]!r}: fit with such labels."
    )
