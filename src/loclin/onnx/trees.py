"""Trees that ask one feature at a time, as the operator of ONNX for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper

from loclin.onnx.graph import Graph
from loclin.portable.words import Leaves

Array = NDArray[Any]


def leaf_scores(
    coder: Leaves, graph: Graph, rows: str, intercept: Array, bias: Array
) -> str:
    """Return the sums of what each row's leaves say, (n, s).

    Parameters
    ----------
    coder : Leaves
    graph : Graph
    rows : str
        As the trees see them, (n, d).
    intercept : ndarray of shape (s, m)
    bias : ndarray of shape (s,)
    """
    said = graph(
        "Gather", np.asarray(intercept, float).T, _places(coder, graph, rows), axis=0
    )
    found = graph("ReduceSum", said, [1], keepdims=0)
    return graph("Add", found, np.asarray(bias, float)) if np.any(bias) else found


def leaf_codes(coder: Leaves, graph: Graph, rows: str) -> str:
    """Return codes (n, m): 1 for each leaf that the row is in, else 0."""
    places = graph("Unsqueeze", _places(coder, graph, rows), [2])
    here = graph("Equal", places, np.arange(len(coder.feature) + len(coder.roots)))
    return graph("ReduceSum", graph.cast(here), [1], keepdims=0)


def _places(coder: Leaves, graph: Graph, rows: str) -> str:
    """Return the number of each row's leaf in each tree, (n, t).

    Each tree is a target, and says the number. The operator says float32, even of doubles: it
    holds whole numbers below 2^24.
    """
    g, t = len(coder.feature), len(coder.roots)
    trees = np.empty(
        2 * g + t, int
    )  # inner nodes, then leaves, the last first: -1 is at the end
    trees[coder.roots] = np.arange(t)
    for number, both in enumerate(coder.children):  # they come after their parents
        trees[both] = trees[number]
    is_leaf = np.arange(len(trees)) >= g
    order = np.lexsort([is_leaf, trees])  # tree by tree, roots first
    ids = np.empty(len(trees), int)
    ids[order] = np.arange(len(trees)) - np.searchsorted(trees[order], trees[order])
    branches, feature = np.zeros((2, len(trees)), int), np.zeros(len(trees), int)
    branches[:, :g], feature[:g] = ids[coder.children.T], coder.feature
    threshold = np.zeros(len(trees))
    threshold[:g] = coder.threshold
    leaves = np.arange(g + t)
    numbers = {
        "nodes_values": _rounded_down(threshold, graph.dtype)[order],
        "target_weights": leaves.astype(graph.dtype),
    }
    if graph.dtype == np.float64:
        numbers = {
            f"{k}_as_tensor": numpy_helper.from_array(v) for k, v in numbers.items()
        }
    found = graph(
        "TreeEnsembleRegressor", rows, domain="ai.onnx.ml", n_targets=t,
        nodes_treeids=trees[order], nodes_nodeids=ids[order], nodes_featureids=feature[order],
        nodes_modes=np.where(is_leaf, "LEAF", "BRANCH_LEQ")[order].tolist(),
        nodes_truenodeids=branches[0, order], nodes_falsenodeids=branches[1, order],
        target_treeids=trees[-1 - leaves], target_nodeids=ids[-1 - leaves],
        target_ids=trees[-1 - leaves], **numbers,
    )  # fmt: skip
    return graph.cast(found, np.int64)


def _rounded_down(numbers: Array, dtype: np.dtype) -> Array:
    """Return numbers in that type, none of them larger: rows of that type go the same way."""
    below = numbers.astype(dtype)
    return np.where(below > numbers, np.nextafter(below, -np.inf, dtype=dtype), below)
