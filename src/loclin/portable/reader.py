"""The scores of a description, read in plain NumPy:
what all other readers are held against.
"""

from __future__ import annotations

import numpy as np

from loclin.portable.words import (
    Array,
    Coder,
    CodesByScorer,
    ConstantCode,
    Leaves,
    LinearGates,
    NearestAnchors,
    Pieces,
    Pooling,
    TangentCodes,
    Term,
    TreePath,
)


def seen_by(term: Term, rows: Array) -> Array:
    """Return the rows as the term sees them: the mean comes first, where it is large."""
    rows = rows if term.columns is None else rows[:, term.columns]
    rows = rows if term.pieces is None else with_pieces(rows, term.pieces)
    rows = rows if term.centre is None else rows - term.centre
    return rows if term.scale is None else rows / term.scale


def with_pieces(X: Array, pieces: Pieces) -> Array:
    """Return rows (n, d) with the pieces of their features beside these, (n, d + p)."""
    d = X.shape[1]
    seen = np.empty((len(X), d + len(pieces.feature)), X.dtype)
    seen[:, :d], rising = X, seen[:, d:]
    # nothing overflows
    np.clip(X[:, pieces.feature], pieces.low, pieces.high, out=rising)
    rising -= pieces.low
    rising /= pieces.high - pieces.low
    return seen


def without_pieces(coef: Array, X: Array, pieces: Pieces) -> tuple[Array, Array]:
    """Return linear functions of rows with pieces as those
    of the rows, by the chain rule.

    At a knot it is the slope on the side of larger values.

    Parameters
    ----------
    coef : ndarray of shape (n, ..., d + p)
        At each row.
    X : ndarray of shape (n, d)
    pieces : Pieces

    Returns
    -------
    coef : ndarray of shape (n, ..., d)
    added : ndarray of shape (n, ...)
        To constants.
    """
    d, at = X.shape[1], X[:, pieces.feature].astype(np.float64)
    low, high = pieces.low.astype(np.float64), pieces.high.astype(np.float64)
    rises, width = (low <= at) & (at < high), high - low
    slopes = np.where(rises, 1.0 / width, 0.0)
    levels = np.where(rises, -low / width, at >= high)
    of_pieces, folded = coef[..., d:], coef[..., :d].astype(np.float64)
    added = np.einsum("n...p,np->n...", of_pieces, levels)
    features, first = np.unique(pieces.feature, return_index=True)
    by_piece = of_pieces * np.expand_dims(slopes, tuple(range(1, coef.ndim - 1)))
    folded[..., features] += np.add.reduceat(by_piece, first, axis=-1)
    return folded, added


def responses_of(term: Term, X: Array) -> Array:
    """Return ``w_j . x + b_j`` of all models, (n, s, m)."""
    intercept = np.asarray(term.intercept, float)
    if term.coef is None:
        return np.broadcast_to(intercept, (len(X), *intercept.shape))
    return np.einsum("smd,nd->nsm", np.asarray(term.coef, float), X) + intercept


def in_metric(term: Term, X: Array) -> Array:
    """Return the rows as the coder sees them."""
    if term.root is None:
        return X
    root = np.asarray(term.root, float)
    return X * root if root.ndim == 1 else X @ root


def codes_of(term: Term, X: Array) -> Array:
    """Return the codes of the rows: (n, s, m), or (n, 1, m) where the scorers share them."""
    if isinstance(term.coder, Pooling):
        return pooled(term.coder.q, responses_of(term, X))
    seen = in_metric(term, X)
    if isinstance(term.coder, ConstantCode):
        codes = np.asarray(term.coder.codes, float)
        return np.broadcast_to(codes, (len(X), *codes.shape))
    if isinstance(term.coder, CodesByScorer):
        return np.stack([codes_by(part, seen) for part in term.coder.parts], axis=1)
    return codes_by(term.coder, seen)[:, None]


def codes_by(coder: Coder, X: Array) -> Array:
    """Return the codes of rows that a coder of rows alone writes, (n, m)."""
    match coder:
        case LinearGates():
            return gated(
                X @ np.asarray(coder.coef, float).T + coder.intercept, coder.into
            )
        case NearestAnchors():
            return nearest(coder, X)
        case TreePath():
            return along_paths(X @ np.asarray(coder.coef, float).T + coder.intercept)
        case Leaves():
            return in_leaves(coder, X)
        case TangentCodes():
            weights = codes_by(coder.weights, X)
            away = X[:, None] - np.asarray(coder.anchors, float)
            along = np.einsum("nad,atd->nat", away, np.asarray(coder.tangents, float))
            parts = [coder.scale * weights[:, :, None], weights[:, :, None] * along]
            joined = np.concatenate(parts, axis=2)
            return joined.reshape(len(X), joined.shape[1] * joined.shape[2])
    raise TypeError(f"{type(coder).__name__} does not code rows alone")


def pooled(q: float, responses: Array) -> Array:
    """Return codes by the models' own responses, (n, s, m)."""
    positive = np.maximum(responses, 0.0)
    largest = positive.max(axis=2, keepdims=True)
    if np.isinf(q):
        first = np.arange(responses.shape[2]) == positive.argmax(axis=2)[:, :, None]
        return (first & (positive > 0)).astype(float)
    # no power overflows, none vanishes
    parts = positive / np.where(largest > 0, largest, 1.0)
    norms = (parts**q).sum(axis=2, keepdims=True) ** (1 / q)
    return np.where(positive > 0, parts / np.where(norms > 0, norms, 1.0), 0.0) ** (
        q - 1
    ) * (positive > 0)


def gated(outputs: Array, into: str) -> Array:
    """Return what is made of the outputs of gates, (n, m)."""
    if into == "softmax":
        shares = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)
    if into == "one_hot":
        return np.eye(outputs.shape[1])[outputs.argmax(axis=1)]
    largest = np.abs(outputs).max(axis=1, keepdims=True)
    outputs = outputs / np.where(largest > 0, largest, 1.0)
    power = 1 if into == "l1" else 2
    lengths = (np.abs(outputs) ** power).sum(axis=1, keepdims=True) ** (1 / power)
    return outputs / np.where(lengths > 0, lengths, 1.0)


def nearest(coder: NearestAnchors, X: Array) -> Array:
    """Return the weights of the nearest anchors, (n, m)."""
    places, _, weights = near_anchors(coder, X)
    codes = np.zeros((len(X), len(coder.anchors)))
    np.put_along_axis(codes, places, weights, axis=1)
    return codes


def near_anchors(coder: NearestAnchors, X: Array) -> tuple[Array, Array, Array]:
    """Return the places of each row's k nearest anchors, (n, k), how far the row is from
    them in each feature, (n, k, d), and their weights, (n, k).
    """
    away = X[:, None] - np.asarray(coder.anchors, float)
    squares = np.einsum("nmd,nmd->nm", away, away)
    places = np.argsort(squares, axis=1, kind="stable")[:, : coder.n_neighbors]
    near = np.take_along_axis(squares, places, axis=1)
    sides = np.take_along_axis(away, places[:, :, None], axis=1)
    if coder.by == "exp":
        weights = np.exp(-coder.parameter * (near - near[:, :1]))
    elif coder.by == "inverse":
        on_anchor = near[:, :1] == 0
        ratio = np.where(on_anchor, 1.0, near[:, :1]) / np.where(near == 0, 1.0, near)
        weights = np.where(on_anchor, near == 0, np.sqrt(ratio))
    else:
        products = ridged_products(sides, coder.parameter)
        weights = np.linalg.solve(products, np.ones((*places.shape, 1)))[:, :, 0]
    return places, sides, weights / weights.sum(axis=1, keepdims=True)


def ridged_products(sides: Array, parameter: float) -> Array:
    """Return the matrices that weights which rebuild a row solve for, (n, k, k)."""
    products = sides @ sides.transpose(0, 2, 1)
    trace = np.einsum("nkk->n", products)
    ridge = parameter * np.where(trace == 0, 1.0, trace)
    products += ridge[:, None, None] * np.eye(sides.shape[1])
    return products


def along_paths(outputs: Array) -> Array:
    """Return the tanh of the nodes on each row's path, (n, m)."""
    n_gates, nodes = outputs.shape[1] // 3, paths_of(outputs)
    codes = np.zeros((len(outputs), outputs.shape[1] - n_gates))
    on_path = np.tanh(np.take_along_axis(outputs, n_gates + nodes, axis=1))
    np.put_along_axis(codes, nodes, on_path, axis=1)
    return codes


def paths_of(outputs: Array) -> Array:
    """Return the nodes on each row's path, from the root on, (n, depth + 1)."""
    n_gates, rows = outputs.shape[1] // 3, np.arange(len(outputs))
    path = [np.zeros(len(outputs), int)]
    while 2 ** len(path) - 1 <= n_gates:  # all leaves are as deep
        node = path[-1]
        path.append(2 * node + np.where(outputs[rows, node] > 0, 1, 2))
    return np.stack(path, axis=1)


def leaves_at(coder: Leaves, X: Array) -> Array:
    """Return the number of each row's leaf in each tree, (n, t)."""
    nodes = np.broadcast_to(coder.roots, (len(X), len(coder.roots))).copy()
    while (inner := nodes >= 0).any():
        rows, trees = np.nonzero(inner)
        k = nodes[rows, trees]
        above = X[rows, coder.feature[k]] > coder.threshold[k]
        nodes[rows, trees] = coder.children[k, above.astype(int)]
    return -1 - nodes


def in_leaves(coder: Leaves, X: Array) -> Array:
    """Return the codes of each row's leaves, (n, m)."""
    # a leaf more a tree
    codes = np.zeros((len(X), len(coder.feature) + len(coder.roots)))
    np.put_along_axis(codes, leaves_at(coder, X), 1.0, axis=1)
    return codes


def scores_of(term: Term, rows: Array) -> Array:
    """Return the scores of the scorers, (n, s)."""
    X = seen_by(term, rows)
    if isinstance(term.coder, Leaves) and term.coef is None:
        return said_by_leaves(term, term.coder, X)
    scores = (codes_of(term, X) * responses_of(term, X)).sum(axis=2)
    return scores + np.asarray(term.bias, float)


def said_by_leaves(term: Term, coder: Leaves, X: Array) -> Array:
    """Return the sums of what each row's leaves say, (n, s): few of many."""
    said = np.asarray(term.intercept, float)[:, leaves_at(coder, in_metric(term, X))]
    return said.sum(axis=2).T + np.asarray(term.bias, float)


def local_models(term: Term, rows: Array) -> tuple[Array, Array]:
    """Return the linear model of each row and scorer,
    (n, s, d) and (n, s), of the rows given.
    """
    X, (s, m) = seen_by(term, rows), term.intercept.shape
    if isinstance(term.coder, Leaves) and term.coef is None:
        return np.zeros((len(X), s, rows.shape[1])), said_by_leaves(term, term.coder, X)
    codes = np.broadcast_to(codes_of(term, X), (len(X), s, m))
    intercept = (
        np.einsum("nsm,sm->ns", codes, np.asarray(term.intercept, float)) + term.bias
    )
    if term.coef is None:
        return np.zeros((len(X), s, rows.shape[1])), intercept
    coef = np.broadcast_to(np.asarray(term.coef, float), (s, *term.coef.shape[1:]))
    return of_given_rows(term, np.einsum("nsm,smd->nsd", codes, coef), intercept, rows)


def of_given_rows(
    term: Term, coef: Array, intercept: Array, rows: Array
) -> tuple[Array, Array]:
    """Return linear functions of rows as the term sees them
    as those of the rows given, each at its row.

    Parameters
    ----------
    term : Term
    coef : ndarray of shape (n, s, d)
    intercept : ndarray of shape (n, s)
    rows : ndarray of shape (n, n_features)

    Returns
    -------
    coef : ndarray of shape (n, s, n_features)
    intercept : ndarray of shape (n, s)
    """
    found = coef if term.scale is None else coef / term.scale
    intercept = intercept if term.centre is None else intercept - found @ term.centre
    columns = slice(None) if term.columns is None else term.columns
    if term.pieces is not None:
        found, added = without_pieces(found, rows[:, columns], term.pieces)
        intercept = intercept + added
    of_all = np.zeros((*coef.shape[:2], rows.shape[1]))
    of_all[:, :, columns] = found
    return of_all, intercept


def of_both_classes(decisions: Array) -> Array:
    """Return what is said for the second of two classes,
    (n, ...), as said for both, (n, 2, ...).

    Half of it is for the second, and the opposite for the first: the difference stays.
    """
    half = decisions / 2
    return np.stack([-half, half], axis=1)
