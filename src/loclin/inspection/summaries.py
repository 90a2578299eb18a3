"""What a fitted model is, on one page."""

from __future__ import annotations

import html
import pickle
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from loclin.inspection.moves import described
from loclin.inspection.text import printable, shortened, value_text
from loclin.inspection.tracing import Trace
from loclin.inspection.weights import weights_of
from loclin.portable import (
    CodesByScorer,
    ConstantCode,
    Description,
    Leaves,
    LinearGates,
    NearestAnchors,
    Pooling,
    TangentCodes,
    TreePath,
)
from loclin.portable.describing import steps_of
from loclin.tables.cells import pandas

_MOST_SHOWN = 5  # features, and classes
_LONGEST = 40  # characters of a name
_ROWS = 100
_GATES = {
    "softmax": "softmax of {n} linear gates",
    "one_hot": "regions of {n} linear gates",
    "l1": "{n} linear gates over the sum of their sizes",
    "l2": "{n} linear gates over their length",
}


@dataclass(frozen=True)
class Summary:
    """What a fitted model is: as a text, as HTML in a notebook, and as a dict.

    Parameters
    ----------
    kind : str
        The classifier.
    steps : tuple of str
        What stands in front of it.
    classes : tuple
        The labels.
    n_features : int
        Features that the classifier is given.
    coding : tuple of str
        What says how much each local model counts at a row: of an ensemble, each kind.
    n_models : int or None
        Local models of each class; of trees, leaves. None where there is no description.
    strength : float or None
        The strength of the penalty: `alpha_` or `beta_`.
    weights : dict
        Each column's share of the local models' weights, largest first, in the units that
        the model learned in. Of trees alone it is the share of their questions.
    n_bytes : int or None
        Size of the model as a pickle.
    seconds_a_row : float
        Of a prediction by the classifier, in a batch of a hundred rows.
    """

    kind: str
    steps: tuple[str, ...]
    classes: tuple[Any, ...]
    n_features: int
    coding: tuple[str, ...]
    n_models: int | None
    strength: float | None
    weights: dict[str, float]
    n_bytes: int | None
    seconds_a_row: float

    def to_dict(self) -> dict[str, Any]:
        """Return the same as a dict that JSON takes."""
        found = asdict(self)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
        }

    def __str__(self) -> str:
        """Return a line for each fact."""
        lines = list(self._lines())
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:{width}}  {text}" for name, text in lines)

    def _repr_html_(self) -> str:
        """Return a table for notebooks; all texts are escaped."""
        rows = (
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
            for name, text in self._lines()
        )
        return f"<table>{''.join(rows)}</table>"

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "model", " > ".join([*self.steps, self.kind])
        yield "classes", _listed([value_text(one) for one in self.classes])
        yield "features", f"{self.n_features:,}"
        if self.coding:
            yield "local models count by", "; ".join(self.coding)
        if self.n_models is not None:
            yield "local models of a class", f"{self.n_models:,}"
        if self.strength is not None:
            yield "strength of the penalty", f"{self.strength:.3g}"
        if self.weights:
            shares = [
                f"{_short(name)} {share:.0%}" for name, share in self.weights.items()
            ]
            yield "columns with most weight", _listed(shares)
        if self.n_bytes is not None:
            yield "size", f"{self.n_bytes / 1000:,.1f} kB"
        yield "time", f"{self.seconds_a_row * 1e6:.3g} µs a row"


def summary(model: Any) -> Summary:
    """Say what a fitted model is.

    Parameters
    ----------
    model : classifier or Pipeline
        Fitted: a classifier, alone or at the end of a pipeline.

    Returns
    -------
    found : Summary
        Print it, show it in a notebook, or take its `to_dict`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import L3MClassifier
    >>> from loclin.inspection import summary
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = summary(L3MClassifier(2, alpha=0.1, random_state=0).fit(X, y))
    >>> found.kind, found.n_models, found.coding
    ('L3MClassifier', 2, ('regions of 2 linear gates',))
    >>> sorted(found.weights)[0]
    'petal length (cm)'
    >>> print(str(found).splitlines()[1])
    classes                   0, 1, 2
    """
    check_is_fitted(model)
    *before, classifier = steps_of(model)
    description = described(classifier)
    n_features = int(classifier.n_features_in_)
    terms = () if description is None else description.terms
    strengths = (getattr(classifier, name, None) for name in ("alpha_", "beta_"))
    return Summary(
        kind=type(classifier).__name__,
        steps=tuple(type(one).__name__ for one in before),
        classes=tuple(np.asarray(classifier.classes_).tolist()),
        n_features=n_features,
        coding=tuple(dict.fromkeys(_in_words(term.coder) for term in terms)),
        n_models=sum(term.intercept.shape[-1] for term in terms) or None,
        strength=next((float(one) for one in strengths if one is not None), None),
        weights=_by_column(description, _columns(before, classifier)),
        n_bytes=_size_of(model),
        seconds_a_row=_seconds(classifier, n_features),
    )


def _in_words(coder: Any) -> str:
    """Say in a few words how a coder writes codes."""
    match coder:
        case ConstantCode():
            return "one code for all rows"
        case LinearGates():
            return _GATES[coder.into].format(n=len(coder.coef))
        case NearestAnchors():
            return f"the {coder.n_neighbors} nearest of {len(coder.anchors)} anchors"
        case TreePath():
            return f"the path in a tree of {len(coder.coef) // 3} gates"
        case Leaves():
            return f"leaves of {len(coder.roots)} trees"
        case Pooling():
            return f"pooling of their positive scores, q = {coder.q:.3g}"
        case TangentCodes():
            return f"{_in_words(coder.weights)}, with tangents"
        case CodesByScorer():
            return f"{_in_words(coder.parts[0])}, for each class"
    return type(coder).__name__


def _columns(before: list[Any], classifier: Any) -> list[str]:
    """Return the name of the column behind each feature; of a mixture, that of the feature."""
    first = [*before, classifier][0]
    trace: Any = Trace.of_columns(int(getattr(first, "n_features_in_", 0)))
    for step in before:
        trace = None if trace is None else trace.through(step)
    if trace is None:
        first, trace = classifier, Trace.of_columns(int(classifier.n_features_in_))
    known = getattr(first, "feature_names_in_", None)
    places = trace.origins.tolist()
    return [f"x{k}" if known is None else str(known[k]) for k in places]


def _by_column(description: Description | None, columns: list[str]) -> dict[str, float]:
    """Return the share of the weights that each column has, the largest first."""
    sizes = np.zeros(0) if description is None else weights_of(description)
    shares: dict[str, float] = {}
    for name, share in zip(columns, sizes.tolist(), strict=False):
        shares[name] = shares.get(name, 0.0) + share
    return dict(sorted(shares.items(), key=lambda one: -one[1])) if sizes.any() else {}


def _size_of(model: Any) -> int | None:
    try:
        return len(pickle.dumps(model))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None  # a function of one's own


def _seconds(classifier: Any, n_features: int) -> float:
    """Return the least time that a row takes in a batch."""
    names = getattr(classifier, "feature_names_in_", None)
    rows: Any = np.zeros((_ROWS, n_features))
    if names is not None:
        rows = pandas().DataFrame(rows, columns=names)
    seconds = []
    for _ in range(4):  # the first may have to compile
        start = time.perf_counter()
        classifier.predict(rows)
        seconds.append(time.perf_counter() - start)
    return min(seconds) / _ROWS


def _short(name: str) -> str:
    return shortened(printable(name), _LONGEST)


def _listed(texts: list[str]) -> str:
    shown = ", ".join(_short(text) for text in texts[:_MOST_SHOWN])
    left = len(texts) - _MOST_SHOWN
    return f"{shown} and {left} more" if left > 0 else shown
