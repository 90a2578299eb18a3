"""Rows as models and coders see them, as nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.onnx.graph import Graph
from loclin.portable.words import Pieces, Term

Array = NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """Rows x of d columns. Most nodes need only linear functions of them.

    Parameters
    ----------
    graph : Graph
    blocks : tuple of (str, int)
        Columns side by side, and how many each block has.
    left : ndarray of shape (d,)
        What is still to be subtracted from them: means of pieces, which lie between 0 and 1. No
        digit is lost where constants of linear functions take it in.
    root : ndarray of shape (d,) or (d, d), or None
        What they are multiplied by.
    is_centred : bool
        Whether the columns lie about zero.
    """

    graph: Graph
    blocks: tuple[tuple[str, int], ...]
    left: Array
    root: Array | None
    is_centred: bool

    @classmethod
    def of(cls, term: Term, graph: Graph, given: str, d: int) -> Rows:
        """Write what becomes of columns (n, d) as they are given, but for the scale."""
        pieces, blocks = term.pieces, [(given, d)]
        n_pieces = 0 if pieces is None else len(pieces.feature)
        left = np.zeros(d + n_pieces)
        if term.centre is not None:
            centre = np.asarray(term.centre, float)
            unit = 1.0 if term.scale is None else np.asarray(term.scale[:d], float)
            blocks = [(less(graph, given, centre[:d], unit), d)]
            left[d:] = centre[d:]
        if pieces is not None:
            blocks.append((_rising(graph, given, pieces), n_pieces))
        return cls(graph, tuple(blocks), left, None, term.centre is not None)

    def linear(self, coef: Array, intercept: Array) -> str:
        """Return ``coef x + intercept``, (n, m), for coef of shape (m, d)."""
        coef, intercept = np.asarray(coef, float), np.asarray(intercept, float)
        if self.root is not None:
            coef = coef * self.root if self.root.ndim == 1 else coef @ self.root.T
        found: Any = np.broadcast_to(intercept - coef @ self.left, len(coef))
        first = 0
        for block, width in self.blocks:
            found = self.graph.linear(block, coef[:, first : first + width], found)
            first += width
        return str(found)

    def themselves(self) -> str:
        """Return x, (n, d)."""
        graph, names = self.graph, [name for name, _ in self.blocks]
        found = names[0] if len(names) == 1 else graph("Concat", *names, axis=1)
        found = graph("Sub", found, self.left) if self.left.any() else found
        if self.root is None:
            return found
        return graph("Mul" if self.root.ndim == 1 else "MatMul", found, self.root)

    def about(self, point: Array) -> tuple[Rows, Array]:
        """Return rows that lie about zero, and where the point is among them.

        A point among centred rows is as near to zero as they are: it stays.
        """
        if self.is_centred:
            return self, point
        moved = self.graph("Sub", self.themselves(), point)
        blocks, zero = ((moved, len(point)),), np.zeros(len(point))
        return Rows(self.graph, blocks, zero, None, True), zero

    def in_doubles(self) -> Rows:
        """Return the same rows in a graph of doubles."""
        graph = self.graph.in_doubles()
        blocks = tuple((graph.cast(name), width) for name, width in self.blocks)
        return replace(self, graph=graph, blocks=blocks)


def less(graph: Graph, rows: str, point: Array, unit: Array | float) -> str:
    """Return rows less a point, as exact as rows allow.

    What the type leaves of the point is subtracted after it, where it counts in these units.
    """
    near = point.astype(graph.dtype).astype(float)
    rows = graph("Sub", rows, near)
    counts = np.abs(point - near) > np.finfo(graph.dtype).epsneg * np.abs(unit)
    return graph("Sub", rows, point - near) if counts.any() else rows


def widths_of(pieces: Pieces, graph: Graph) -> Array:
    """Return how wide pieces are: more than nothing, in the type of the graph."""
    low, high = np.asarray(pieces.low, float), np.asarray(pieces.high, float)
    return np.maximum(high - low, float(np.finfo(graph.dtype).tiny))


def _rising(graph: Graph, given: str, pieces: Pieces) -> str:
    """Return the pieces of features, (n, p)."""
    width = widths_of(pieces, graph)
    at = graph.columns(given, pieces.feature)
    above = less(graph, at, np.asarray(pieces.low, float), width)
    return graph("Clip", graph("Div", above, width), 0.0, 1.0)


def without_pieces(graph: Graph, models: str, given: str, pieces: Pieces, d: int) -> str:
    """Return models of rows with their pieces as those of the rows, by the chain rule.

    Parameters
    ----------
    graph : Graph
    models : str
        (n, s, d + p + 1), with constants behind.
    given : str
        The rows, (n, d).
    pieces : Pieces
    d : int

    Returns
    -------
    models : str
        (n, s, d + 1).
    """
    p, width = len(pieces.feature), widths_of(pieces, graph)
    at = graph.columns(given, pieces.feature)
    reached, is_above = (
        graph("GreaterOrEqual", less(graph, at, np.asarray(knots, float), 0.0), 0.0)
        for knots in (pieces.low, pieces.high)
    )
    rises = graph("And", reached, graph("Not", is_above))
    levels = graph("Where", rises, -pieces.low / width, graph.cast(is_above))
    slopes = graph("Where", rises, 1 / width, 0.0)
    of_pieces = graph("Slice", models, [d], [d + p], [2])
    to_feature, to_constant = np.zeros((2, p, d + 1))
    to_feature[np.arange(p), pieces.feature], to_constant[:, d] = 1.0, 1.0
    found = graph("Gather", models, [*range(d), d + p], axis=2)
    for factors, to in ((slopes, to_feature), (levels, to_constant)):
        part = graph("Mul", of_pieces, graph("Unsqueeze", factors, [1]))
        found = graph("Add", found, graph("MatMul", part, to))
    return found
