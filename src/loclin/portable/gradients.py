"""What a small change of a feature does to scores, the codes moving with the row.

Derivatives are exact, word by word, and in reverse mode, as there are fewer scorers than
features: `moving` returns the codes of rows, and the function that turns derivatives of
scores by codes into derivatives by features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from loclin.portable.reader import (
    codes_by,
    codes_of,
    gated,
    in_metric,
    near_anchors,
    of_given_rows,
    paths_of,
    ridged_products,
    seen_by,
)
from loclin.portable.words import (
    Array,
    Coder,
    CodesByScorer,
    ConstantCode,
    Leaves,
    LinearGates,
    NearestAnchors,
    Pooling,
    TangentCodes,
    Term,
    Transformed,
    TreePath,
)

_NUMBERS = 2**22  # of a block's rows with all models, at once, about

Back = Callable[[Array], Array]  # (n, s, m) to (n, s, d)


def gradients(
    terms: Iterable[Term], X: Any, decisions_of: Callable[[Array], Array]
) -> Array:
    """Return the derivatives of decisions by the features as they are given.

    At a border it is the derivative of the region in which the row is predicted, at a
    knot of pieces that on the side of larger values.

    Parameters
    ----------
    terms : iterable of Term
    X : {ndarray, csr} of shape (n, n_features)
    decisions_of : callable
        From scorers to decisions, on axis 1.

    Returns
    -------
    slopes : ndarray of shape (n, ..., n_features), float64

    Raises
    ------
    ValueError
        If codes come from a transformer, whose derivative is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from loclin.portable.gradients import gradients
    >>> from loclin.portable.words import LinearGates, Term
    >>> gates = LinearGates(np.array([[1.0], [0.0]]), np.zeros(2), "softmax")
    >>> term = Term(gates, np.array([[[2.0], [0.0]]]), np.zeros((1, 2)), np.zeros(1))
    >>> gradients([term], np.zeros((1, 1)), lambda scores: scores[:, 0])  # of 2 x / (1 + e^-x)
    array([[1.]])
    """
    terms = [_in_words(term) for term in terms]
    return np.concatenate(
        [
            np.sum(
                [term.factor * decisions_of(_of_term(term, rows)) for term in terms],
                axis=0,
            )
            for rows in _blocks(terms, X)
        ]
    )


def _in_words(term: Term) -> Term:
    """Return the term with arrays alone, if its codes have a derivative."""
    coder = term.coder
    if isinstance(coder, ConstantCode) and not isinstance(coder.codes, np.ndarray):
        return replace(term, coder=ConstantCode(coder.codes.toarray()))
    inner = coder.weights if isinstance(coder, TangentCodes) else coder
    for part in inner.parts if isinstance(inner, CodesByScorer) else (inner,):
        if isinstance(part, Transformed):
            raise ValueError(
                f"{type(part.transformer).__name__} has no derivative in closed form. "
                "`local_model` tells which linear model acts at a row; to see what a change "
                "does, compare `decision_function` before and after it."
            )
    return term


def _blocks(terms: list[Term], X: Any) -> Iterator[Array]:
    """Yield some rows at a time, dense and in doubles; without rows a block of none."""
    n, d = X.shape
    numbers = [
        term.intercept.shape[-1] for term in terms if not isinstance(term.coder, Leaves)
    ]
    step = max(1, _NUMBERS // (d * max(numbers, default=1)))
    for first in range(0, max(n, 1), step):
        rows = X[first : first + step]
        yield np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, float)


def _of_term(term: Term, rows: Array) -> Array:
    """Return the derivatives of a term's scores by the features, (n, s, n_features)."""
    n, s = len(rows), len(term.intercept)
    if isinstance(term.coder, Leaves) and term.coef is None:
        return np.zeros((n, s, rows.shape[1]))
    X = seen_by(term, rows)
    coef = None if term.coef is None else np.asarray(term.coef, float)
    if isinstance(term.coder, Pooling):  # the derivative of the norm is the code
        codes, back = codes_of(term, X), None
    else:
        codes, back = _moving_by_scorer(term, in_metric(term, X))
    slopes = np.zeros((n, s, X.shape[1]))
    if coef is not None:
        slopes += np.matmul(codes.transpose(1, 0, 2), coef).transpose(1, 0, 2)
    if back is not None:
        slopes += _through_metric(term, back(_responses(coef, term.intercept, X)))
    return of_given_rows(term, slopes, np.zeros((n, s)), rows)[0]


def _responses(coef: Array | None, intercept: Array, X: Array) -> Array:
    """Return ``w_j . x + b_j`` of all models, (n, s, m): derivatives by the codes."""
    intercept = np.asarray(intercept, float)
    if coef is None:
        return np.broadcast_to(intercept, (len(X), *intercept.shape))
    products = np.matmul(X, coef.transpose(0, 2, 1)).transpose(1, 0, 2)
    return np.asarray(products + intercept)


def _through_metric(term: Term, by_seen: Array) -> Array:
    """Return derivatives by the rows from those by the rows in the metric."""
    if term.root is None:
        return by_seen
    root = np.asarray(term.root, float)
    return by_seen * root if root.ndim == 1 else by_seen @ root.T


def _moving_by_scorer(term: Term, X: Array) -> tuple[Array, Back | None]:
    """Return codes, (n, s, m) or (n, 1, m), and their way back; None where they rest."""
    coder = term.coder
    if isinstance(coder, ConstantCode):
        return codes_of(term, X[:1]), None  # the same at all rows
    if not isinstance(coder, CodesByScorer):
        codes, back = moving(coder, X)
        return codes[:, None], back
    parts = [moving(part, X) for part in coder.parts]
    codes = np.stack([codes for codes, _ in parts], axis=1)
    backs = [back for _, back in parts]
    if all(back is None for back in backs):
        return codes, None

    def of_each(by_codes: Array) -> Array:
        slopes = np.zeros((*by_codes.shape[:2], X.shape[1]))
        for y, back in enumerate(backs):
            if back is not None:
                slopes[:, [y]] = back(by_codes[:, [y]])
        return slopes

    return codes, of_each


def moving(coder: Coder, X: Array) -> tuple[Array, Back | None]:
    """Return the codes that a coder of rows alone writes,
    (n, m), and how scores change with them.

    Parameters
    ----------
    coder : Coder
    X : ndarray of shape (n, d)
        Rows as the coder sees them.

    Returns
    -------
    codes : ndarray of shape (n, m)
    back : callable or None
        From derivatives by the codes, (n, s, m), to those by the rows, (n, s, d). None
        where codes rest inside a region.
    """
    match coder:
        case LinearGates():
            return _moving_gates(coder, X)
        case NearestAnchors():
            return _moving_anchors(coder, X)
        case TreePath():
            return _moving_path(coder, X)
        case TangentCodes():
            return _moving_tangents(coder, X)
    return codes_by(coder, X), None


def _moving_gates(coder: LinearGates, X: Array) -> tuple[Array, Back | None]:
    """Where an absolute value has a kink, its gate counts as above 0."""
    coef = np.asarray(coder.coef, float)
    outputs = X @ coef.T + coder.intercept
    codes = gated(outputs, coder.into)
    if coder.into == "one_hot":
        return codes, None
    shares = codes[:, None]
    if coder.into == "softmax":
        return codes, lambda by_codes: (shares * _less_mean(by_codes, shares)) @ coef
    largest = np.abs(outputs).max(axis=1, keepdims=True)
    length = np.where(largest > 0, largest, 1.0)
    power = 1 if coder.into == "l1" else 2
    parts = (np.abs(outputs / length) ** power).sum(axis=1, keepdims=True) ** (1 / power)
    length = np.where(largest > 0, length * parts, np.inf)[:, None]  # zeros stay zeros
    across = np.where(outputs < 0, -1.0, 1.0)[:, None] if power == 1 else shares

    def back(by_codes: Array) -> Array:
        along = (by_codes * shares).sum(axis=2, keepdims=True)
        return ((by_codes - along * across) / length) @ coef

    return codes, back


def _moving_anchors(coder: NearestAnchors, X: Array) -> tuple[Array, Back | None]:
    """Return codes of nearest anchors.

    Weights by inverse distances have a cusp on an anchor: the mean of both sides counts,
    as all weight is on an anchor from which nothing is away.
    """
    places, sides, weights = near_anchors(coder, X)
    codes = np.zeros((len(X), len(coder.anchors)))
    np.put_along_axis(codes, places, weights, axis=1)
    shares = weights[:, None]

    def back(by_codes: Array) -> Array:
        by_near = np.take_along_axis(by_codes, places[:, None], axis=2)
        away = _less_mean(by_near, shares)
        if coder.by == "rebuild":
            solved = np.linalg.solve(
                ridged_products(sides, coder.parameter), away.transpose(0, 2, 1)
            ).transpose(0, 2, 1)
            across = 2 * coder.parameter * (solved * shares).sum(axis=2, keepdims=True)
            whole = solved.sum(axis=2, keepdims=True)
            return -(solved + whole * shares + across) @ sides
        if coder.by == "exp":
            return (-2 * coder.parameter * shares * away) @ sides
        squares = np.einsum("nkd,nkd->nk", sides, sides)[:, None]
        by_square = shares * away / np.where(squares == 0, 1.0, squares)
        return -by_square @ sides

    return codes, back


def _moving_path(coder: TreePath, X: Array) -> tuple[Array, Back]:
    coef = np.asarray(coder.coef, float)
    outputs = X @ coef.T + coder.intercept
    nodes, n_gates = paths_of(outputs), len(coef) // 3
    on_path = np.tanh(np.take_along_axis(outputs, n_gates + nodes, axis=1))
    codes = np.zeros((len(X), len(coef) - n_gates))
    np.put_along_axis(codes, nodes, on_path, axis=1)

    def back(by_codes: Array) -> Array:
        by_node = np.take_along_axis(by_codes, nodes[:, None], axis=2)
        return (by_node * (1 - on_path**2)[:, None]) @ coef[n_gates + nodes]

    return codes, back


def _moving_tangents(coder: TangentCodes, X: Array) -> tuple[Array, Back]:
    weights, back_of_weights = moving(coder.weights, X)
    anchors, tangents = (
        np.asarray(part, float) for part in (coder.anchors, coder.tangents)
    )
    n_anchors, n_each = tangents.shape[0], 1 + tangents.shape[1]
    along = np.einsum("nad,atd->nat", X[:, None] - anchors, tangents)
    each = np.concatenate([np.full((*along.shape[:2], 1), coder.scale), along], axis=2)
    codes = (weights[:, :, None] * each).reshape(len(X), n_anchors * n_each)

    def back(by_codes: Array) -> Array:
        by_part = by_codes.reshape(*by_codes.shape[:2], n_anchors, n_each)
        by_along = by_part[..., 1:] * weights[:, None, :, None]
        slopes = np.tensordot(by_along, tangents, axes=2)
        if back_of_weights is not None:
            by_weights = np.einsum("nsat,nat->nsa", by_part, each)
            slopes += back_of_weights(by_weights)
        return np.asarray(slopes)

    return codes, back


def _less_mean(by_codes: Array, shares: Array) -> Array:
    """Return derivatives by codes that sum to one less their mean by these."""
    return by_codes - (by_codes * shares).sum(axis=2, keepdims=True)
