"""`TableEncoder` as nodes: columns of numbers, flags and categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from skl2onnx.common.data_types import (
    BooleanTensorType,
    Int64TensorType,
    StringTensorType,
)

from loclin.onnx.graph import Graph
from loclin.tables.features import Category, Numeric
from loclin.tables.kinds import MISSING


def features_of(column: Any, graph: Graph, name: str, kind: Any) -> str:
    """Return the features of a column, (n, k).

    Parameters
    ----------
    column : Numeric, Category or Text
        What a `TableEncoder` knows of it.
    graph : Graph
    name : str
        Of the input, (n, 1).
    kind : object
        Its type, of skl2onnx.

    Raises
    ------
    ValueError
        If the column is of dates or texts, or of numbers that are written as texts.
    """
    is_text = isinstance(kind, StringTensorType)
    if isinstance(column, Category):
        if is_text or isinstance(kind, Int64TensorType):
            return _category(column, graph, name, is_text)
        raise ValueError(
            f"The column {column.name!r} has categories: give them as texts, or as whole numbers."
        )
    wants_flags = isinstance(column, Numeric) and column.kind == "flag"
    if not isinstance(column, Numeric) or column.kind == "date":
        what = "dates" if isinstance(column, Numeric) else "texts"
        raise ValueError(
            f"The column {column.name!r} has {what}, which no graph reads: encode the table in "
            "Python, and write the last step alone."
        )
    if is_text or wants_flags != isinstance(kind, BooleanTensorType):
        what = "true or false" if wants_flags else "numbers"
        raise ValueError(
            f"The column {column.name!r} is {what} in other words: convert it before you fit."
        )
    return _number(column, graph, graph.cast(name))


def _number(column: Numeric, graph: Graph, values: str) -> str:
    """Return numbers, gaps filled; and a column that says where there were some."""
    gaps = graph("Or", graph("IsNaN", values), graph("IsInf", values))
    filled = graph("Where", gaps, column.fill, values)
    return (
        graph("Concat", filled, graph.cast(gaps), axis=1) if column.had_gaps else filled
    )


def _category(column: Category, graph: Graph, name: str, is_text: bool) -> str:
    """Return what is known of each value, and in the last row of a table of values that are new.

    A text without letters is a gap.
    """
    values = [str(value) for value in column.values]
    keys: list[Any] = [*values, ""] if is_text else _whole(column.name, values)
    places = {value: place for place, value in enumerate(values)}
    code = graph(
        "LabelEncoder", name, domain="ai.onnx.ml",
        values_int64s=[places.get(str(key) or MISSING, len(values)) for key in keys],
        default_int64=len(values),
        **({"keys_strings": keys} if is_text else {"keys_int64s": list(map(int, keys))}),
    )  # fmt: skip
    codes = np.append(np.arange(len(values)), -1)
    table: NDArray[Any] = column.block(codes, column.means[codes])
    return graph("Gather", table, graph("Squeeze", code, [1]), axis=0)


def _whole(name: str, values: list[str]) -> list[str]:
    """Return the categories that an int64 may be."""
    whole = [value for value in values if value.removeprefix("-").isdecimal()]
    for value in whole:
        if str(int(value)) != value:
            raise ValueError(
                f"The column {name!r} has the category {value!r}, which no whole number is "
                "written as: give the column as texts."
            )
    return [value for value in whole if -(2**63) <= int(value) < 2**63]
