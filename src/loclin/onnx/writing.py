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
    return _Writer(description, dtype).model(outputs, inputs)


class _Writer:
    """A graph, and what its decisions become.

    Parameters
    ----------
    description : Description
    dtype : dtype
    """

    def __init__(self, description: Description, dtype: DTypeLike) -> None:
        self.said = description
        self.graph = Graph(dtype)

    def model(
        self, outputs: Sequence[str], inputs: Sequence[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        graph, said = self.graph, self.said
        number = helper.np_dtype_to_tensor_dtype(graph.dtype)
        if not inputs:
            shape = [None, said.n_features]
            inputs = [helper.make_tensor_value_info("X", number, shape)]
        rows = graph.joined(inputs)
        self.terms = [
            WrittenTerm.of(term, graph, rows, said.n_features) for term in said.terms
        ]
        self.decisions = self._sum([term.scores() for term in self.terms])
        infos = []
        for name in outputs:
            graph.name(getattr(self, f"_{name}")(), name)
            kind = label_type(said) if name == "label" else number
            shape = [None, *shape_of(said, name)]
            infos.append(helper.make_tensor_value_info(name, kind, shape))
        return graph.finish(inputs, infos)

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

    # What may be asked for.

    def _scores(self) -> str:
        """Return what `decision_function` does."""
        return self._one(self.decisions)

    def _raw_scores(self) -> str:
        """Return scores of all classes: of two they are opposites."""
        if self._is_binary:
            return self.graph("Mul", self.decisions, [[-1.0, 1.0]])
        return self.decisions

    def _label(self) -> str:
        graph, said = self.graph, self.said
        if not (said.multilabel or self._is_binary):
            return label_at(
                graph, graph("ArgMax", self.decisions, axis=1, keepdims=0), said.classes
            )
        above = graph.cast(graph("Greater", self._scores(), 0.0), np.int64)
        return above if said.multilabel else label_at(graph, above, said.classes)

    def _probabilities(self) -> str:
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

    def _coefficients(self) -> str:
        return self._local(0, self.said.n_features)

    def _intercepts(self) -> str:
        d = self.said.n_features
        return self.graph("Squeeze", self._local(d, d + 1), [-1])

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
        f"Labels of a graph are whole numbers or strings, not {classes[0]!r}: fit with such "
        "labels."
    )
