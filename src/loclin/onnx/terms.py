"""Scores and local models of a term as nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.onnx.coders import codes_by, place_of
from loclin.onnx.graph import Graph
from loclin.onnx.pooling import pooled, pooling_codes
from loclin.onnx.rows import Rows, without_pieces
from loclin.onnx.trees import leaf_scores
from loclin.portable.words import CodesByScorer, ConstantCode, Leaves, Pooling, Term

Array = NDArray[Any]


@dataclass(frozen=True)
class WrittenTerm:
    """A term, its rows in a graph, and its models as those of these rows.

    Parameters
    ----------
    term : Term
    given : str
        The columns of the rows as they are given.
    rows : Rows
        With pieces, centred but not scaled, of d columns.
    coef : ndarray of shape (s, m, d)
        Of these rows, in float64: divided by the scale. The centre is no part of the
        constants: digits would be lost.
    intercept : ndarray of shape (s, m)
    bias : ndarray of shape (s,)
    """

    term: Term
    given: str
    rows: Rows
    coef: Array
    intercept: Array
    bias: Array

    @classmethod
    def of(cls, term: Term, graph: Graph, rows: str, n_features: int) -> WrittenTerm:
        """Write what becomes of rows of so many features before the models see them."""
        width, given = n_features, rows
        if term.columns is not None:
            width, given = len(term.columns), graph.columns(rows, term.columns)
        seen = Rows.of(term, graph, given, width)
        scale = np.ones(()) if term.scale is None else np.asarray(term.scale, float)
        models = np.zeros(()) if term.coef is None else np.asarray(term.coef, float)
        intercept, bias = np.asarray(term.intercept, float), np.asarray(term.bias, float)
        coef = np.broadcast_to(models / scale, (*intercept.shape, len(seen.left)))
        return cls(term, given, seen, coef, intercept, bias)

    @property
    def seen(self) -> Rows:
        """The rows as the coder sees them."""
        root, scale = self.term.root, self.term.scale
        root = None if root is None else np.asarray(root, float)
        if scale is not None:
            scale = np.asarray(scale, float)
            root = 1 / scale if root is None else (root.T / scale).T
        return replace(self.rows, root=root)

    def scores(self) -> str:
        """Return the scores of the scorers, (n, s)."""
        graph, coder = self.rows.graph, self.term.coder
        is_constant = self.term.coef is None
        if isinstance(coder, ConstantCode):
            codes = np.asarray(coder.codes, float)
            coef = np.einsum("sm,smd->sd", codes, self.coef)
            constants = (codes * self.intercept).sum(axis=1) + self.bias
            return self.rows.linear(coef, constants)
        if isinstance(coder, Leaves) and is_constant:
            rows = self.seen.themselves()
            return leaf_scores(coder, graph, rows, self.intercept, self.bias)
        if is_constant and not isinstance(coder, Pooling | CodesByScorer):
            return graph.linear(codes_by(coder, self.seen), self.intercept, self.bias)
        found = self._scores_without_bias()
        return graph("Add", found, self.bias) if self.bias.any() else found

    def local_models(self, n_features: int) -> str:
        """Return the linear models of rows as given, with their constants behind,
        (n, s, n_features + 1).
        """
        graph, term, d = self.rows.graph, self.term, self.coef.shape[2]
        if term.coef is None:
            constants = graph("Unsqueeze", self.scores(), [2])
            return graph("Pad", constants, [0, 0, n_features, 0, 0, 0])
        of_models = self.intercept
        if term.centre is not None:
            of_models = of_models - self.coef @ np.asarray(term.centre, float)
        models = np.concatenate([self.coef, of_models[:, :, None]], axis=2)
        found = self._combined(models)
        if self.bias.any():
            found = graph("Add", found, self.bias[:, None] * (np.arange(d + 1) == d))
        if term.pieces is not None:
            d -= len(term.pieces.feature)
            found = without_pieces(graph, found, self.given, term.pieces, d)
        if term.columns is not None:
            places = np.full(n_features + 1, d + 1)  # of a column of zeros behind
            places[term.columns], places[-1] = np.arange(d), d
            found = graph("Pad", found, [0, 0, 0, 0, 0, 1])
            found = graph("Gather", found, places, axis=2)
        return found

    # How it is done.

    def _scores_without_bias(self) -> str:
        graph, coder = self.rows.graph, self.term.coder
        s, m, d = self.coef.shape
        if isinstance(coder, Pooling):
            responses = self.rows.linear(self._flat(), self.intercept.ravel())
            return pooled(graph, responses, coder.q, (s, m))
        place = place_of(coder, self.seen)
        if place is not None:
            by_model = self.coef.transpose(1, 0, 2).reshape(m * s, d)
            responses = self.rows.linear(by_model, self.intercept.T.ravel())
            each = graph("Reshape", responses, [-1, m, s])
            return graph("GatherND", each, place[0], batch_dims=1)
        codes = codes_by(coder, self.seen)
        if not isinstance(coder, CodesByScorer):
            codes = graph("Unsqueeze", codes, [1])
        products = graph("Mul", codes, self._responses())
        return graph("ReduceSum", products, [2], keepdims=0)

    def _flat(self) -> Array:
        """Return all models, scorer by scorer, (s m, d)."""
        s, m, d = self.coef.shape
        return self.coef.reshape(s * m, d)

    def _responses(self) -> str:
        """Return what the models say, (n, s, m)."""
        responses = self.rows.linear(self._flat(), self.intercept.ravel())
        return self.rows.graph("Reshape", responses, [-1, *self.intercept.shape])

    def _combined(self, models: Array) -> str:
        """Return the sums of models (s, m, k) by the codes, (n, s, k)."""
        graph, coder = self.rows.graph, self.term.coder
        s, m, k = models.shape
        if isinstance(coder, ConstantCode):
            constant = np.einsum("sm,smk->sk", np.asarray(coder.codes, float), models)
            n_rows = graph("Shape", self.given, start=0, end=1)
            return graph("Expand", constant, graph("Concat", n_rows, [1, 1], axis=0))
        if isinstance(coder, Pooling):
            codes = pooling_codes(graph, self._responses(), coder.q, m)
        else:
            codes = codes_by(coder, self.seen)
        if isinstance(coder, Pooling | CodesByScorer):
            return graph("Einsum", codes, models, equation="nsm,smk->nsk")
        shared = models.transpose(1, 0, 2).reshape(m, s * k)
        return graph("Reshape", graph("MatMul", codes, shared), [-1, s, k])
