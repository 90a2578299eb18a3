"""`CalibratedClassifierCV` as nodes: isotonic curves are interpolated, as scikit-learn does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from loclin.onnx.graph import Graph

Array = NDArray[Any]


def probabilities_of(
    graph: Graph, scores: str, part: Any, places: Array, n_classes: int
) -> str:
    """Return what one of the calibrated classifiers says, (n, n_classes).

    Parameters
    ----------
    graph : Graph
    scores : str
        Of its classifier, (n, n_curves): of two classes one column.
    part : object
        One of `CalibratedClassifierCV.calibrated_classifiers_`.
    places : ndarray of int of shape (n_curves,)
        Of the classes that the curves are for.
    n_classes : int

    Raises
    ------
    ValueError
        If curves are neither isotonic nor sigmoids.
    """
    columns = [
        _curve(graph, graph("Slice", scores, [k], [k + 1], [1]), curve)
        for k, curve in enumerate(part.calibrators)
    ]
    if n_classes == 2:
        return graph("Concat", graph("Sub", 1.0, columns[0]), columns[0], axis=1)
    found = columns[0] if len(columns) == 1 else graph("Concat", *columns, axis=1)
    if len(places) < n_classes:
        found = graph("MatMul", found, np.eye(n_classes)[places])
    total = graph("ReduceSum", found, [1], keepdims=1)
    is_zero = graph("Equal", total, 0.0)
    shares = graph("Div", found, graph("Where", is_zero, 1.0, total))
    return graph("Where", is_zero, 1.0 / n_classes, shares)


def _curve(graph: Graph, scores: str, curve: Any) -> str:
    """Return the probabilities that a curve says of scores (n, 1)."""
    if isinstance(curve, IsotonicRegression):
        x, y = (
            np.asarray(part, float) for part in (curve.X_thresholds_, curve.y_thresholds_)
        )
        if len(x) == 1:
            return graph("Add", graph("Mul", scores, 0.0), y[0])
        width = np.maximum(np.diff(x), float(np.finfo(graph.dtype).tiny))
        rising = graph(
            "Clip", graph("Div", graph("Sub", scores, x[:-1]), width), 0.0, 1.0
        )
        return graph.linear(rising, np.diff(y)[None], y[:1])
    if hasattr(curve, "a_"):  # of Platt's sigmoid
        outputs = graph("Add", graph("Mul", scores, -float(curve.a_)), -float(curve.b_))
        return graph("Sigmoid", outputs)
    raise ValueError(
        f"CalibratedClassifierCV with {type(curve).__name__} cannot be an ONNX graph: use "
        'method="isotonic" or "sigmoid".'
    )
