"""Graphs of ONNX, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import compose, helper, numpy_helper

Value = str | float | Sequence[Any] | NDArray[Any]

OPSETS = {"": 18, "ai.onnx.ml": 3}  # the oldest that all nodes are of
IR_VERSION = 9  # the newest that runtimes of two years ago read


class Graph:
    """Nodes and constants that are being written, of one type of numbers.

    A call adds a node, unless there is the same, and returns the name of what it computes.
    Inputs are such names, or values, which become constants: floating numbers those of the
    graph's type, whole numbers int64.

    Parameters
    ----------
    dtype : dtype
        float32 or float64.

    Examples
    --------
    >>> from loclin.onnx.graph import Graph
    >>> graph = Graph("float32")
    >>> graph("Add", "X", [1.0, 2.0])
    'add_1'
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self._nodes: dict[bytes, onnx.NodeProto] = {}
        self._constants: dict[tuple[Any, ...], onnx.TensorProto] = {}

    def in_doubles(self) -> Graph:
        """Return what writes to the same graph, in float64."""
        twin = Graph(np.float64)
        twin._nodes, twin._constants = self._nodes, self._constants
        return twin

    def __call__(
        self, op: str, *inputs: Value, domain: str = "", **attributes: Any
    ) -> str:
        """Add a node of one output."""
        return self._outputs(1, op, inputs, domain=domain, **attributes)[0]

    def lowest(self, rows: str, k: int) -> tuple[str, str]:
        """Return the k lowest numbers of each row, lowest first, and their places.

        Of equal numbers the first comes first.
        """
        numbers, places = self._outputs(
            2, "TopK", (rows, [k]), axis=1, largest=0, sorted=1
        )
        return numbers, places

    def insert(self, model: onnx.ModelProto, inputs: Sequence[str]) -> list[str]:
        """Add a whole model that takes these values; return its outputs."""
        prefix = f"model_{len(self._nodes) + 1}_"
        inner = compose.add_prefix(model, prefix).graph
        for value, one in zip(inputs, inner.input, strict=True):
            self.name(value, one.name)
        for node in inner.node:
            self._nodes[node.output[0].encode()] = node
        for tensor in inner.initializer:
            self._constants[(tensor.name,)] = tensor
        return [one.name for one in inner.output]

    def name(self, value: str, name: str) -> None:
        """Give a value a name of your own."""
        self._nodes[name.encode()] = helper.make_node(
            "Identity", [value], [name], f"name_{name}"
        )

    def cast(self, name: str, dtype: DTypeLike | None = None) -> str:
        """Return a value in another type; the graph's by default."""
        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype or self.dtype))
        return self("Cast", name, to=to)

    def joined(self, inputs: Sequence[onnx.ValueInfoProto]) -> str:
        """Return all columns of some inputs as one block, in the graph's type."""
        number = helper.np_dtype_to_tensor_dtype(self.dtype)
        names = [
            one.name if one.type.tensor_type.elem_type == number else self.cast(one.name)
            for one in inputs
        ]
        return names[0] if len(names) == 1 else self("Concat", *names, axis=1)

    def columns(self, rows: str, places: NDArray[Any]) -> str:
        """Return some columns, (n, p): `Gather` takes whole rows ten times as fast."""
        turned = self("Gather", self("Transpose", rows, perm=[1, 0]), places, axis=0)
        return self("Transpose", turned, perm=[1, 0])

    def linear(self, rows: str, coef: NDArray[Any], added: Value) -> str:
        """Return ``rows coef' + added``, (n, m), for coef of shape (m, d)."""
        constants = [added] if isinstance(added, str) or np.any(added) else []
        return self("Gemm", rows, coef.T, *constants)

    def finish(
        self,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
    ) -> onnx.ModelProto:
        """Return the graph as a model."""
        constants = list(self._constants.values())
        nodes = list(self._nodes.values())
        graph = helper.make_graph(nodes, "loclin", inputs, outputs, constants)
        domains = {"", *(node.domain for node in nodes)}
        imports = [
            helper.make_opsetid(one, OPSETS.get(one, 1)) for one in sorted(domains)
        ]
        return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)

    def _outputs(
        self, n_outputs: int, op: str, inputs: Sequence[Value], **attributes: Any
    ) -> Sequence[str]:
        """Add a node, unless there is the same, and return what its outputs are called."""
        node = helper.make_node(op, list(map(self._name_of, inputs)), [], **attributes)
        key = node.SerializeToString(deterministic=True)
        if key not in self._nodes:
            stem = f"{op.lower()}_{len(self._nodes) + 1}"
            node.name = stem
            node.output.extend(
                stem if n_outputs == 1 else f"{stem}_{k}" for k in range(n_outputs)
            )
            self._nodes[key] = node
        return self._nodes[key].output

    def _name_of(self, value: Value) -> str:
        """Return the name of an input; of a value, that of a constant."""
        if isinstance(value, str):
            return value
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = self._in_type(array)
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif array.dtype.kind == "U":
            array = array.astype(object)
        content = tuple(array) if array.dtype == object else array.tobytes()
        key = array.dtype.str, array.shape, content
        if key not in self._constants:
            array = np.ascontiguousarray(array)
            name = f"constant_{len(self._constants) + 1}"
            self._constants[key] = numpy_helper.from_array(array, name)
        return self._constants[key].name

    def _in_type(self, array: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            found = array.astype(self.dtype)
        if np.isinf(found).any() and np.isfinite(array).all():
            raise ValueError(
                "The model has numbers beyond those of float32: pass dtype=np.float64."
            )
        return found
