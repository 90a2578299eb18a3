"""Codes of rows as nodes: each coder of `loclin.portable` in a few of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.onnx.graph import Graph
from loclin.onnx.rows import Rows
from loclin.onnx.transformed import codes_of_others
from loclin.onnx.trees import leaf_codes
from loclin.portable.words import (
    Coder,
    CodesByScorer,
    Leaves,
    LinearGates,
    NearestAnchors,
    TangentCodes,
    Transformed,
    TreePath,
)

Array = NDArray[Any]


def place_of(coder: Coder, seen: Rows) -> tuple[str, int] | None:
    """Return the place of each row's only code that is not 0, and is 1, (n, 1), and how many
    codes there are; None for other coders.
    """
    graph = seen.graph
    match coder:
        case LinearGates(coef, intercept, "one_hot"):
            outputs = seen.linear(coef, intercept)
            return graph("ArgMax", outputs, axis=1, keepdims=1), len(coef)
        case NearestAnchors(anchors, 1):
            squares = _squares(coder, seen)
            return graph("ArgMin", squares, axis=1, keepdims=1), len(anchors)
    return None


def codes_by(coder: Coder, seen: Rows) -> str:
    """Return the codes of rows, (n, m); of `CodesByScorer` (n, s, m)."""
    graph, found = seen.graph, place_of(coder, seen)
    if found is not None:
        return graph.cast(graph("Equal", found[0], np.arange(found[1])))
    match coder:
        case LinearGates(coef, intercept, into):
            return _gated(graph, seen.linear(coef, intercept), into)
        case NearestAnchors():
            return _nearest(coder, seen)
        case TreePath():
            return _along_paths(coder, seen)
        case Leaves():
            return leaf_codes(coder, graph, seen.themselves())
        case TangentCodes():
            return _tangents(coder, seen)
        case CodesByScorer(parts):
            each = [graph("Unsqueeze", codes_by(part, seen), [1]) for part in parts]
            return graph("Concat", *each, axis=1)
        case Transformed(transformer):
            return codes_of_others(transformer, graph, seen.themselves(), len(seen.left))
    raise TypeError(f"{type(coder).__name__} does not code rows alone")


def _gated(graph: Graph, outputs: str, into: str) -> str:
    if into == "softmax":
        return graph("Softmax", outputs, axis=1)
    # by the largest first: squares may be too large, or vanish
    largest = graph("ReduceMax", graph("Abs", outputs), [1], keepdims=1)
    outputs = _over(graph, outputs, largest)
    if into == "l1":
        return _over(graph, outputs, graph("ReduceL1", outputs, [1], keepdims=1))
    # ReduceL2 of doubles has the digits of float32 before onnxruntime 1.20
    length = graph("Sqrt", graph("ReduceSumSquare", outputs, [1], keepdims=1))
    return _over(graph, outputs, length)


def _over(graph: Graph, codes: str, lengths: str) -> str:
    """Divide codes by their lengths; rows of zeros stay."""
    return graph("Div", codes, graph("Where", graph("Equal", lengths, 0.0), 1.0, lengths))


def _squares(coder: NearestAnchors, seen: Rows) -> str:
    """Return squared distances less the rows' own squares, (n, m)."""
    anchors = np.asarray(coder.anchors, float)
    mean = anchors.mean(axis=0)
    away = anchors - mean
    seen, mean = seen.about(mean)
    return seen.linear(-2 * away, (away**2).sum(axis=1) + 2 * away @ mean)


def _nearest(coder: NearestAnchors, seen: Rows) -> str:
    graph, m, k = seen.graph, len(coder.anchors), coder.n_neighbors
    # a small ridge leaves few digits
    if coder.by == "rebuild" and graph.dtype == np.float32:
        return graph.cast(_nearest(coder, seen.in_doubles()))
    squares = _squares(coder, seen)
    if coder.by == "exp" and k == m:
        return graph("Softmax", graph("Mul", squares, -coder.parameter), axis=1)
    near, places = graph.lowest(squares, k)
    if coder.by == "exp":
        weights = graph("Softmax", graph("Mul", near, -coder.parameter), axis=1)
    else:
        chosen = graph("Gather", np.asarray(coder.anchors, float), places, axis=0)
        sides = graph("Sub", chosen, graph("Unsqueeze", seen.themselves(), [1]))
        if coder.by == "inverse":
            weights = _inverse(graph, graph("ReduceSumSquare", sides, [2], keepdims=0))
        else:
            weights = _rebuilding(graph, sides, k, coder.parameter)
        weights = graph("Div", weights, graph("ReduceSum", weights, [1], keepdims=1))
    return graph("ScatterElements", _like(graph, squares, 0.0), places, weights, axis=1)


def _like(graph: Graph, value: str, number: float) -> str:
    """Return that number in an array of the same shape."""
    return graph("Expand", [number], graph("Shape", value))


def _inverse(graph: Graph, squares: str) -> str:
    """Return inverse distances, in units of the largest; a row on an anchor has that alone."""
    nearest = graph("ReduceMin", squares, [1], keepdims=1)
    on_anchor, here = graph("Equal", nearest, 0.0), graph("Equal", squares, 0.0)
    ratio = graph("Div", nearest, graph("Where", here, 1.0, squares))
    return graph("Where", on_anchor, graph.cast(here), graph("Sqrt", ratio))


def _rebuilding(graph: Graph, sides: str, k: int, parameter: float) -> str:
    """Return weights w that solve ``(C + parameter * trace(C) I) w = 1``, (n, k).

    The matrix has only positive eigenvalues, so Gauss and Jordan need no pivots.
    """
    products = graph("Einsum", sides, sides, equation="nkd,nld->nkl")
    trace = graph("ReduceSumSquare", sides, [1, 2], keepdims=1)
    trace = graph("Where", graph("Equal", trace, 0.0), 1.0, trace)
    left = graph("Add", products, graph("Mul", trace, parameter * np.eye(k)))
    right = _like(graph, graph("Slice", left, [0], [1], [2]), 1.0)
    left = graph("Concat", left, right, axis=2)
    for c in range(k):
        column = graph("Slice", left, [0], [1], [2])
        left = graph("Slice", left, [1], [k + 1], [2])
        pivot = graph("Slice", column, [c], [c + 1], [1])
        row = graph("Div", graph("Slice", left, [c], [c + 1], [1]), pivot)
        others = graph("Sub", column, np.eye(k)[:, [c]])
        left = graph("Sub", left, graph("Mul", others, row))
    return graph("Squeeze", left, [2])


def _along_paths(coder: TreePath, seen: Rows) -> str:
    """Return the tanh of the nodes on each row's path, 0 of others."""
    graph, n_gates = seen.graph, len(coder.coef) // 3
    outputs = seen.linear(coder.coef, coder.intercept)
    if not n_gates:
        return graph("Tanh", outputs)
    path = [_like(graph, graph("Slice", outputs, [0], [1], [1]), 0)]
    while 2 ** len(path) - 1 <= n_gates:  # all leaves are as deep
        said = graph("GatherElements", outputs, path[-1], axis=1)
        side = graph("Add", graph.cast(graph("LessOrEqual", said, 0.0), int), 1)
        path.append(graph("Add", graph("Mul", path[-1], 2), side))
    nodes = graph("Concat", *path, axis=1)
    found = graph("GatherElements", outputs, graph("Add", nodes, n_gates), axis=1)
    of_all = graph("Slice", outputs, [n_gates], [len(coder.coef)], [1])
    zeros = _like(graph, of_all, 0.0)
    return graph("ScatterElements", zeros, nodes, graph("Tanh", found), axis=1)


def _tangents(coder: TangentCodes, seen: Rows) -> str:
    graph, tangents = seen.graph, np.asarray(coder.tangents, float)
    a, t, d = tangents.shape
    constants = -np.einsum("atd,ad->at", tangents, np.asarray(coder.anchors, float))
    along = seen.linear(tangents.reshape(a * t, d), constants.ravel())
    weights = graph("Unsqueeze", codes_by(coder.weights, seen), [2])
    parts = (
        graph("Mul", weights, coder.scale),
        graph("Mul", weights, graph("Reshape", along, [-1, a, t])),
    )
    return graph("Reshape", graph("Concat", *parts, axis=2), [-1, a * (1 + t)])
