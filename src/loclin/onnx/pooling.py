"""Pooling as nodes: norms of positive responses, and the codes behind them."""

from __future__ import annotations

import numpy as np

from loclin.onnx.graph import Graph

_FEW = 2, 3, 4  # powers by products


def pooled(graph: Graph, responses: str, q: float, sizes: tuple[int, int]) -> str:
    """Return the q-norms of the positive responses of each scorer, (n, s).

    Parameters
    ----------
    graph : Graph
    responses : str
        (n, s m), scorer by scorer.
    q : float
        At least 1; may be infinite.
    sizes : tuple of int
        s and m.
    """
    each = [-1, *sizes]
    if np.isinf(q):
        responses = graph("Reshape", responses, each)
        return graph("Relu", graph("ReduceMax", responses, [2], keepdims=0))
    positive = graph("Relu", responses)
    if q == 1:
        return graph("ReduceSum", graph("Reshape", positive, each), [2], keepdims=0)
    if (
        _whole(q) in _FEW
    ):  # in units of the row's largest: of other scorers nothing is lost
        largest = unit = graph("ReduceMax", positive, [1], keepdims=1)
        parts = graph("Mul", positive, _inverse_of(graph, largest))
        powers = graph("Reshape", _power(graph, parts, q), each)
    else:  # high powers vanish: in units of each scorer's largest
        positive = graph("Reshape", positive, each)
        largest = graph("ReduceMax", positive, [2], keepdims=1)
        unit = graph("Squeeze", largest, [2])
        powers = _power(graph, graph("Mul", positive, _inverse_of(graph, largest)), q)
    sums = graph("ReduceSum", powers, [2], keepdims=0)
    return graph("Mul", _power(graph, sums, 1 / q), unit)


def pooling_codes(graph: Graph, responses: str, q: float, m: int) -> str:
    """Return the codes behind the norms of responses (n, s, m), of the same shape."""
    positive = graph("Relu", responses)
    is_positive = graph.cast(graph("Greater", positive, 0.0))
    if np.isinf(q):
        winner = graph("ArgMax", positive, axis=2, keepdims=1)
        return graph("Mul", is_positive, graph.cast(graph("Equal", winner, np.arange(m))))
    if q == 1:
        return is_positive
    largest = graph("ReduceMax", positive, [2], keepdims=1)
    parts = graph("Mul", positive, _inverse_of(graph, largest))
    sums = graph("ReduceSum", _power(graph, parts, q), [2], keepdims=1)
    norms = graph("Max", _power(graph, sums, 1 / q), 1e-30)  # they are 0, or at least 1
    return _power(graph, graph("Div", parts, norms), q - 1)


def _inverse_of(graph: Graph, largest: str) -> str:
    """Return 1 over positive numbers; of 0, any number."""
    return graph("Reciprocal", graph("Max", largest, float(np.finfo(graph.dtype).tiny)))


def _power(graph: Graph, numbers: str, q: float) -> str:
    """Return powers of numbers from 0 on; general ones by logarithms, which are fast."""
    if _whole(q) == 1:
        return numbers
    if q == 0.5:
        return graph("Sqrt", numbers)
    if _whole(q) in _FEW:
        square = graph("Mul", numbers, numbers)
        if _whole(q) == 2:
            return square
        return graph("Mul", square, numbers if _whole(q) == 3 else square)
    return graph("Exp", graph("Mul", graph("Log", numbers), q))


def _whole(q: float) -> int:
    """Return the whole number that q is but for rounding, else 0."""
    return round(q) if abs(q - round(q)) < 1e-12 * q else 0
