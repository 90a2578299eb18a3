"""What a fitted model computes, in values:
how codes come from a row, and the models they combine.

Every classifier here has scores ``sum_j code_j(x) (w_j . x + b_j) + bias``. A `Term`
holds such a sum, and its coder says how the codes come from the row; a description
(`loclin.portable`) is a list of terms. Arrays are as the model holds them: d features, m
models, s scorers, or one scorer that decides between two classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class ConstantCode:
    """The same codes at every row.

    Parameters
    ----------
    codes : ndarray of shape (s, m)
        In a model that predicts, CSR.
    """

    codes: Any


@dataclass(frozen=True, eq=False)
class LinearGates:
    """Linear functions of the row, and what is made of them.

    Parameters
    ----------
    coef : ndarray of shape (m, d)
    intercept : ndarray of shape (m,)
    into : {"softmax", "one_hot", "l1", "l2"}
        Their softmax; 1 for the largest, the first of several, and 0 for the others; or
        they themselves over the sum of their absolute values, or over the root of their
        sum of squares (0 stays 0).
    """

    coef: Array
    intercept: Array
    into: str


@dataclass(frozen=True, eq=False)
class NearestAnchors:
    """Weights of the nearest anchors, which sum to one; 0 for the others.

    Parameters
    ----------
    anchors : ndarray of shape (m, d)
    n_neighbors : int
        How many count, by Euclidean distance.
    by : {"exp", "inverse", "rebuild"}
        Weights in proportion to ``exp(-parameter * squared distance)``; or to the inverse
        of the distance, where an anchor that the row is on has all; or that rebuild the
        row: with ``C = (V - 1 x')(V - 1 x')'`` of the nearest anchors V, the solution of
        ``(C + parameter * trace(C) I) weights = 1`` (``parameter * I`` where the trace is
        0).
    parameter : float, default=0.0
    between : ndarray of shape (m, m) or None, default=None
        Squared distances among the anchors, where a model keeps them to rebuild rows.
        They follow from the anchors, and are not written.
    """

    anchors: Array
    n_neighbors: int
    by: str
    parameter: float = 0.0
    between: Array | None = field(default=None, metadata={"written": False})


@dataclass(frozen=True, eq=False)
class TreePath:
    """A binary tree: the nodes on the row's path have the tanh
    of a linear function, others 0.

    Outputs ``u = coef x + intercept`` are those of g inner nodes, which tell the way,
    then those of all m = 2 g + 1 nodes, whose tanh are the codes. From the root 0, inner
    node k leads to ``2 k + 1`` where its output is above 0, else to ``2 k + 2``.

    Parameters
    ----------
    coef : ndarray of shape (g + m, d)
    intercept : ndarray of shape (g + m,)
    """

    coef: Array
    intercept: Array


@dataclass(frozen=True, eq=False)
class Leaves:
    """Trees that ask one feature at a time:
    in each of t trees the row's leaf has 1, others 0.

    From inner node k a row goes to ``children[k, 0]`` where
    ``x_feature[k] <= threshold[k]``, else to ``children[k, 1]``. Inner nodes are numbered
    through all trees, from 0; a number below 0 is a leaf: -1 the first of the m leaves,
    -2 the second.

    Parameters
    ----------
    roots : ndarray of int of shape (t,)
        Where each tree begins.
    feature : ndarray of int of shape (g,)
    threshold : ndarray of shape (g,)
    children : ndarray of int of shape (g, 2)
        Leaves, or inner nodes of larger numbers.
    """

    roots: Array
    feature: Array
    threshold: Array
    children: Array

    def __post_init__(self) -> None:
        """Keep loops, which follow these numbers, from others."""
        _hold(self)


@dataclass(frozen=True, eq=False)
class Pooling:
    """Codes of a scorer by the responses of its own models.

    With ``r_j = w_j . x + b_j`` and ``r+ = max(r, 0)``:
    ``code_j = (r+_j / ||r+||_q) ** (q - 1)``, so that the score is ``||r+||_q``; all 0
    where no response is positive. With q = 1 every positive response has 1, with q = inf
    the largest alone, the first of several.

    Parameters
    ----------
    q : float
        At least 1; may be infinite.
    """

    q: float


@dataclass(frozen=True, eq=False)
class TangentCodes:
    """Each anchor's weight, and the row's coordinates along
    its tangents times the weight.

    Anchor by anchor there are 1 + t codes: ``scale * weight``, then
    ``weight * T (x - anchor)``.

    Parameters
    ----------
    weights : Coder
        Of the anchors.
    anchors : ndarray of shape (a, d)
    tangents : ndarray of shape (a, t, d)
    scale : float
    """

    weights: Coder
    anchors: Array
    tangents: Array
    scale: float


@dataclass(frozen=True, eq=False)
class CodesByScorer:
    """A coder for each scorer.

    Parameters
    ----------
    parts : tuple of Coder
        All of m codes, of rows alone.
    """

    parts: tuple[Coder, ...]


@dataclass(frozen=True, eq=False)
class Transformed:
    """Codes that a fitted transformer gives: no word, as nothing tells what it computes.

    Models predict by it; they have no description.

    Parameters
    ----------
    transformer : transformer
    """

    transformer: Any


Coder = (
    ConstantCode
    | LinearGates
    | NearestAnchors
    | TreePath
    | Leaves
    | Pooling
    | TangentCodes
    | CodesByScorer
    | Transformed
)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Features in pieces: p columns beside the features, each of one piece of a feature.

    ``clip((x_feature - low) / (high - low), 0, 1)``: it rises from 0 to 1 from one knot
    to the next, and is linear in x between knots (Gorishniy, Rubachev and Babenko, 2022).

    Parameters
    ----------
    feature : ndarray of int of shape (p,)
        Ascending.
    low, high : ndarray of shape (p,)
        Knots of the feature, low below high.
    """

    feature: Array
    low: Array
    high: Array

    def __post_init__(self) -> None:
        """Keep loops, which follow these numbers, from others."""
        _hold(self)


@dataclass(frozen=True, eq=False)
class Term:
    """Local models, and the coder that says how much each counts at a row.

    Of the row some columns are taken, their pieces are put beside them, and all are
    centred and scaled: ``x = (with_pieces(row[columns]) - centre) / scale``. Its scores
    are ``score_y(x) = sum_j code_yj(root x) (w_yj . x + b_yj) + bias_y``.

    Parameters
    ----------
    coder : Coder
    coef : ndarray of shape (s, m, d) or (1, m, d), or None
        One for all scorers, or None, where they share their models, or models say
        constants.
    intercept : ndarray of shape (s, m)
    bias : ndarray of shape (s,)
    root : ndarray of shape (d,) or (d, d), or None, default=None
        The coder sees rows ``x * root`` or ``x root``: the root of a metric.
    factor : float, default=1.0
        What decisions are multiplied by before they are added to those of other terms.
    centre, scale : ndarray of shape (d,) or None, default=None
        None leaves the rows as they are.
    columns : ndarray of int or None, default=None
        None takes all.
    pieces : Pieces or None, default=None
        Of the columns taken; d counts these and their pieces.
    """

    coder: Coder
    coef: Array | None
    intercept: Array
    bias: Array
    root: Array | None = None
    factor: float = 1.0
    centre: Array | None = None
    scale: Array | None = None
    columns: Array | None = None
    pieces: Pieces | None = None

    def behind(self, centre: Array | None, scale: Array | None) -> Term:
        """Return the term of rows that are centred and scaled first."""
        if self.columns is not None:
            centre, scale = (None if of_all is None else of_all[self.columns]
                             for of_all in (centre, scale))  # fmt: skip
        pieces = self.pieces
        # of the rows as they were; what becomes of their columns stays
        if pieces is not None:
            at, low, high = (
                pieces.feature,
                pieces.low.astype(float),
                pieces.high.astype(float),
            )
            low, high = (
                knots if scale is None else knots * scale[at] for knots in (low, high)
            )
            low, high = (
                knots if centre is None else knots + centre[at] for knots in (low, high)
            )
            pieces = Pieces(at, low, np.maximum(high, np.nextafter(low, np.inf)))
            centre = None if centre is None else np.append(centre, np.zeros(len(at)))
            scale = None if scale is None else np.append(scale, np.ones(len(at)))
        if self.centre is not None:  # (x - centre) / scale, then less this one's
            within = self.centre if scale is None else scale * self.centre
            centre = within if centre is None else centre + within
        if self.scale is not None:
            scale = self.scale if scale is None else scale * self.scale
        return replace(self, centre=centre, scale=scale, pieces=pieces)


WORDS: dict[str, Any] = {
    word.__name__: word
    for word in (ConstantCode, LinearGates, NearestAnchors, TreePath, Leaves, Pooling, TangentCodes,
                 CodesByScorer, Pieces, Term)
}  # fmt: skip


def _hold(word: Any) -> None:
    """Let arrays of a word be views that cannot be written."""
    for name, value in list(vars(word).items()):
        if isinstance(value, np.ndarray):
            view = value.view()
            view.flags.writeable = False
            object.__setattr__(word, name, view)


def to_data(value: Any) -> Any:
    """Return a value, of words, arrays and numbers, as what JSON takes."""
    if type(value) in WORDS.values():
        parts = {name: to_data(getattr(value, name)) for name in written(type(value))}
        return {"word": type(value).__name__} | parts
    if isinstance(value, np.ndarray):
        flat = value.ravel().tolist()
        return {"dtype": value.dtype.name, "shape": list(value.shape), "values": flat}
    if isinstance(value, list | tuple):
        return [to_data(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)  # "inf": JSON has no such number
    return value


def from_data(data: Any, where: str) -> Any:
    """Return the value that `to_data` gave this of.

    Parameters
    ----------
    data : object
        As JSON gives it.
    where : str
        What it is, for errors.

    Raises
    ------
    ValueError
        If it is of no word, or a word lacks something.
    """
    if isinstance(data, list):
        return tuple(
            from_data(part, f"{where}[{place}]") for place, part in enumerate(data)
        )
    if isinstance(data, str) and data in ("inf", "-inf", "nan"):
        return float(data)
    if not isinstance(data, dict):
        return data
    if "word" not in data:
        return _array(data, where)
    word = data["word"]
    if not isinstance(word, str) or word not in WORDS:
        raise ValueError(f"{where}: there is no word {word!r}; there are {sorted(WORDS)}")
    parts = {name: part for name, part in data.items() if name != "word"}
    check_names(parts, written(WORDS[word]), f"{where}, {word}")
    return WORDS[word](
        **{name: from_data(part, f"{where}.{name}") for name, part in parts.items()}
    )


def written(word: type) -> list[str]:
    """Return the names of a word's parts that are written."""
    return [one.name for one in fields(word) if one.metadata.get("written", True)]


def check_names(found: Iterable[str], expected: Iterable[str], where: str) -> None:
    """Raise ValueError where parts have other names than expected."""
    missing, unknown = set(expected) - set(found), set(found) - set(expected)
    if missing:
        raise ValueError(f"{where}: {', '.join(sorted(missing))} is missing")
    if unknown:
        raise ValueError(
            f"{where} has unknown parts: {', '.join(sorted(map(repr, unknown)))}"
        )


def _array(data: dict[str, Any], where: str) -> Array:
    check_names(data, ("dtype", "shape", "values"), where)
    try:
        found = np.array(data["values"], np.dtype(str(data["dtype"])))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{where} is no array: {error}") from None
    shape = data["shape"]
    is_shape = isinstance(shape, list) and all(
        type(size) is int and size >= 0 for size in shape
    )
    if not is_shape or found.ndim != 1 or found.size != prod(shape):
        raise ValueError(f"{where} has {found.size} values, which have no shape {shape}")
    return found.reshape(shape)
