"""Codings that skl2onnx writes, as parts of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator

from loclin.onnx.graph import OPSETS, Graph


def codes_of_others(transformer: Any, graph: Graph, rows: str, d: int) -> str:
    """Return the codes of rows (n, d) that a fitted transformer gives, (n, m).

    Raises
    ------
    ValueError
        If skl2onnx has no converter for it, or it has codes for each class.
    """
    numbers = DoubleTensorType if graph.dtype == np.float64 else FloatTensorType
    name = type(transformer).__name__
    if getattr(transformer, "per_class", False):
        raise ValueError(f"{name} cannot be an ONNX graph: it has codes for each class.")
    try:
        found = convert_sklearn(
            transformer, name, [("rows", numbers([None, d]))], target_opset=OPSETS[""]
        )
    except (MissingConverter, MissingShapeCalculator):
        raise ValueError(
            f"{name} cannot be an ONNX graph yet: register a converter for it, by "
            "skl2onnx.update_registered_converter."
        ) from None
    return graph.insert(found, [rows])[0]
