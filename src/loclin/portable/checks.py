"""Whether the words of a model fit together,
so that a reader never reads beside an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

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
    Transformed,
    TreePath,
)

_INTO = "softmax", "one_hot", "l1", "l2"
_BY = "exp", "inverse", "rebuild"


def check_whole(description: Any) -> None:
    """Raise where the parts of a description are not what `loclin.portable` says of them.

    Raises
    ------
    ValueError
    """
    classes, n_features = description.classes, description.n_features
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError(
            f"classes should be an array of two labels at least, not {classes!r}"
        )
    if len(set(classes.tolist())) < len(classes):
        raise ValueError(f"classes should be distinct, not {classes}")
    if type(n_features) is not int or n_features < 1:
        raise ValueError(
            f"n_features is {n_features!r}, but should be a positive integer"
        )
    if type(description.multilabel) is not bool:
        raise ValueError(
            f"multilabel is {description.multilabel!r}, but should be a boolean"
        )
    check_terms(description.terms, n_features, len(classes), description.multilabel)
    check_temperature(description.temperature, len(classes), description.multilabel)
    check_smoothing(description.smoothing)
    names = description.feature_names
    if names is None:
        return
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names should be a list of texts, not {names!r}")
    if len(names) != n_features:
        raise ValueError(
            f"feature_names are {len(names)} names, but there are {n_features} features"
        )


def check_temperature(temperature: Any, n_classes: int, multilabel: bool = False) -> None:
    """Raise ValueError where this is no temperature; None is none, and allowed."""
    if temperature is None:
        return
    found = np.asarray(temperature)
    fits = (
        found.shape in ((), (n_classes,) if multilabel else ())
        and found.dtype.kind in "fiu"
    )
    with np.errstate(all="ignore"):
        if (
            not fits
            or not ((found > 0) & np.isfinite(1.0 / found) & np.isfinite(found)).all()
        ):
            raise ValueError(f"temperature is {temperature!r}, but should be positive")


def check_smoothing(smoothing: Any) -> None:
    """Raise ValueError where this is no share of probability."""
    _check_number("smoothing", smoothing)
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing is {smoothing}, but should be between 0 and 1")


def labels_of(classes: Any) -> Array:
    """Return labels of JSON as an array.

    Raises
    ------
    ValueError
        If they are not all numbers, all booleans or all strings.
    """
    kinds = {bool if type(one) is bool else Real if isinstance(one, int | float) else type(one)
             for one in classes} if isinstance(classes, list) else set()  # fmt: skip
    if len(kinds) != 1 or not kinds <= {bool, Real, str}:
        raise ValueError(
            f"classes should be numbers, booleans or strings, not {classes!r:.200}"
        )
    return np.asarray(classes)


def check_terms(
    terms: Sequence[Term], n_features: int, n_classes: int, multilabel: bool = False
) -> None:
    """Raise where the terms of a model are not what `loclin.portable` says of them.

    Parameters
    ----------
    terms : sequence of Term
    n_features, n_classes : int
        Of the whole model.
    multilabel : bool, default=False
        Whether a row may have several labels.

    Raises
    ------
    ValueError
    """
    if not (isinstance(terms, tuple | list) and terms):
        raise ValueError("terms should be a list of one Term at least")
    for number, term in enumerate(terms):
        try:
            if not isinstance(term, Term):
                raise ValueError(f"it is no Term, but {type(term).__name__}")
            s, m = _sizes(term)
            if s != n_classes and (multilabel or (s, n_classes) != (1, 2)):
                raise ValueError(f"it has {s} scorers, but there are {n_classes} classes")
            _check_term(term, s, m, n_features)
        except ValueError as error:
            raise ValueError(f"terms[{number}]: {error}") from None


def _sizes(term: Term) -> tuple[int, int]:
    """Return the numbers of scorers and of models."""
    intercept = term.intercept
    if not isinstance(intercept, np.ndarray) or intercept.ndim != 2 or not intercept.size:
        raise ValueError(
            f"intercept should be an array of shape (scorers, models), not {np.shape(intercept)}"
        )
    return len(intercept), intercept.shape[1]


def _check_term(term: Term, s: int, m: int, n_features: int) -> None:
    d = n_features
    if term.columns is not None:
        d = np.size(term.columns)
        _check_array("columns", term.columns, (d,), kinds="iu")
        if d and not 0 <= term.columns.min() <= term.columns.max() < n_features:
            raise ValueError(f"columns should be places among {n_features} features")
    if term.pieces is not None:
        check_pieces(term.pieces, d)
        d += len(term.pieces.feature)
    if term.coef is not None:
        _check_array("coef", term.coef, (s, m, d), (1, m, d))
    _check_array("intercept", term.intercept, (s, m))
    _check_array("bias", term.bias, (s,))
    _check_number("factor", term.factor)
    if term.root is not None:
        _check_array("root", term.root, (d,), (d, d))
    for name in ("centre", "scale"):
        if getattr(term, name) is not None:
            _check_array(name, getattr(term, name), (d,))
    if term.scale is not None and not term.scale.all():
        raise ValueError("scale should have no 0")
    match term.coder:
        case ConstantCode(codes):
            _check_array("codes", codes, (s, m))
        case Pooling(q):
            if q != np.inf:
                _check_number("q", q)
            if not q >= 1:
                raise ValueError(f"q is {q!r}, but should be at least 1")
        case CodesByScorer(parts):
            if not isinstance(parts, tuple) or len(parts) != s:
                raise ValueError(
                    f"parts should be a list of coders, one for each of {s} scorers"
                )
            for part in parts:
                _check_coder(part, m, d)
        case coder:
            _check_coder(coder, m, d)


def check_pieces(pieces: Pieces, d: int) -> None:
    """Raise where these are no pieces of d features.

    Raises
    ------
    ValueError
    """
    feature, p = pieces.feature, np.size(pieces.feature)
    _check_array("feature of the pieces", feature, (p,), kinds="iu")
    for name in ("low", "high"):
        _check_array(f"{name} of the pieces", getattr(pieces, name), (p,))
    if p and (feature[0] < 0 or feature[-1] >= d or (feature[1:] < feature[:-1]).any()):
        raise ValueError(f"pieces should be of some of {d} features, in order")
    if not (pieces.low < pieces.high).all():
        raise ValueError("low of the pieces should be below high")


def _check_coder(coder: Coder, m: int, d: int) -> None:
    """Raise where a coder does not write m codes of rows of d features."""
    match coder:
        case LinearGates():
            _check_array("coef of the gates", coder.coef, (m, d))
            _check_array("intercept of the gates", coder.intercept, (m,))
            _check_option("into", coder.into, _INTO)
        case NearestAnchors():
            _check_nearest(coder, m, d)
        case TreePath():
            inner, depth = m // 2, (m + 1).bit_length() - 1
            if m + 1 != 2**depth:
                raise ValueError(f"no full tree has {m} nodes")
            _check_array("coef of the tree", coder.coef, (inner + m, d))
            _check_array("intercept of the tree", coder.intercept, (inner + m,))
        case Leaves():
            _check_leaves(coder, m, d)
        case TangentCodes():
            a, t, _ = (
                np.shape(coder.tangents) if np.ndim(coder.tangents) == 3 else (0, 0, 0)
            )
            _check_array("anchors", coder.anchors, (a, d))
            _check_array("tangents", coder.tangents, (a, t, d))
            _check_number("scale of the codes", coder.scale)
            if a * (1 + t) != m:
                raise ValueError(f"{a} anchors with {t} tangents each give no {m} codes")
            if not isinstance(coder.weights, NearestAnchors | Transformed):
                raise ValueError("weights of tangents should be NearestAnchors")
            _check_coder(coder.weights, a, d)
        case Transformed(transformer):  # nothing tells what it computes
            if not hasattr(transformer, "transform"):
                raise ValueError(f"{transformer!r} does not transform rows")
        case _:
            raise ValueError(f"coder: {type(coder).__name__} does not code rows alone")


def _check_leaves(coder: Leaves, m: int, d: int) -> None:
    g, t = np.size(coder.feature), np.size(coder.roots)
    _check_array("roots of the trees", coder.roots, (t,), kinds="i")
    _check_array("feature of the trees", coder.feature, (g,), kinds="i")
    _check_array("threshold of the trees", coder.threshold, (g,))
    if not t or g + t != m:
        raise ValueError(f"{t} trees with {g} inner nodes give no {m} leaves")
    if g and not 0 <= coder.feature.min() <= coder.feature.max() < d:
        raise ValueError(f"feature of the trees should be places among {d} features")
    children = coder.children
    _check_array("children of the trees", children, (g, 2), kinds="i")
    nodes = np.concatenate([coder.roots, children.ravel()]).astype(np.int64)
    if (np.sort(nodes) != np.arange(-m, g)).any():
        raise ValueError(
            "roots and children should name each inner node and each leaf once"
        )
    if ((children >= 0) & (children <= np.arange(g)[:, None])).any():
        raise ValueError("children of a node should be leaves, or inner nodes after it")


def _check_nearest(coder: NearestAnchors, m: int, d: int) -> None:
    _check_array("anchors", coder.anchors, (m, d))
    if coder.between is not None:
        _check_array("between", coder.between, (m, m))
    k = coder.n_neighbors
    if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= m:
        raise ValueError(f"n_neighbors is {k!r}, but should be 1 to {m}")
    _check_option("by", coder.by, _BY)
    _check_number("parameter", coder.parameter)
    if coder.parameter < 0:
        raise ValueError(f"parameter is {coder.parameter}, but should be at least 0")


def _check_array(
    name: str, value: Any, *shapes: tuple[int, ...], kinds: str = "f"
) -> None:
    """Raise where a value is no array of one of the shapes,
    or has numbers that are not finite.

    Rows of codes may be CSR.
    """
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or dtype.kind not in kinds:
        told = type(value).__name__ if dtype is None else f"an array of {dtype}"
        raise ValueError(f"{name} should be an array of numbers, not {told}")
    if shape not in shapes:
        expected = " or ".join(map(str, dict.fromkeys(shapes)))
        raise ValueError(f"{name} has shape {shape}, but should be {expected}")
    if not np.isfinite(value.data if hasattr(value, "nnz") else value).all():
        raise ValueError(f"{name} has numbers that are not finite")


def _check_number(name: str, value: Any) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        finite = is_number and np.isfinite(float(value))
    except OverflowError:  # an integer without end
        finite = False
    if not finite:
        raise ValueError(f"{name} is {value!r:.100}, but should be a finite number")


def _check_option(name: str, value: Any, options: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} is {value!r}, but should be one of {options}")
