"""What the limits of each classifier depend on: n rows, d features, c classes, m local models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import loclin
from loclin.codings import OrthogonalCoding


class Shape(NamedTuple):
    """Size of a training set."""

    n_rows: int
    n_features: int
    n_classes: int


class Model(NamedTuple):
    """A row of the table."""

    build: Callable[[int, dict[str, Any]], Any]  # the estimator, from m and what all share
    columns: Callable[[int, int], int]  # score columns of a row, from c and m
    memory: Callable[[Any, int, Shape], int]  # numbers that a fit must hold besides the data
    start_epochs: int = 1  # before the first of `max_iter`
    extra: str = ""  # what else multiplies with m columns each iteration; shown, not counted
    in_batches: bool = True  # if not, only `predict` is timed


def _scorers(c: int) -> int:
    return c if c > 2 else 1


def _near(m: int) -> int:
    """Anchors at a row, where they are the nearest."""
    return min(8, m)


def _weights_and_codes(model: Any, m: int, shape: Shape) -> int:
    """Weights, their sums if iterates are averaged, and one code a row."""
    n, d, c = shape
    return (2 if model.average else 1) * c * m * (d + 1) + n * m


def _weights_and_anchors(model: Any, m: int, shape: Shape) -> int:
    """Weights and anchors with their sums, the anchors' gradient, and what codes and pulls take."""
    n, d, c = shape
    copies = 2 if model.average else 1
    return copies * (c + 1) * m * (d + 1) + m * d + 3 * n * model.n_neighbors


def _outputs(model: Any, m: int, shape: Shape) -> int:
    """Weights of classifiers and partition in double precision, with 20 pairs of L-BFGS."""
    return 2 * (2 * 20 + 5) * m * (_scorers(shape.n_classes) + 1) * (shape.n_features + 1)


def _atoms_and_codes(model: Any, m: int, shape: Shape) -> int:
    """Atoms with their sums; codes, which are a difference; the features of problem 3."""
    n, d, c = shape
    return 2 * m * d + 4 * c * m + n * (m + 1)


_PLAIN: dict[str, Any] = {"metric": None, "standardize": False}
MODELS = {
    "ML3Classifier": Model(
        lambda m, given: loclin.ML3Classifier(m, **_PLAIN, **given),
        lambda c, m: c * m,
        _weights_and_codes,
        extra="the frozen codes",  # every row against its own class
    ),
    "LLSVMClassifier": Model(
        lambda m, given: loclin.LLSVMClassifier(
            OrthogonalCoding(m), solver="sgd", **_PLAIN, **given
        ),
        lambda c, m: _scorers(c) * m,
        _weights_and_codes,
        start_epochs=0,
    ),
    "SAPLClassifier": Model(
        lambda m, given: loclin.SAPLClassifier(m, _near(m), **_PLAIN, **given),
        lambda c, m: m + _scorers(c) * _near(m),
        _weights_and_anchors,
        start_epochs=5,
    ),
    "L3MClassifier": Model(
        lambda m, given: loclin.L3MClassifier(m, n_restarts=1, standardize=False, **given),
        lambda c, m: m + _scorers(c),
        _outputs,
        in_batches=False,
    ),
    "USSVMClassifier": Model(
        lambda m, given: loclin.USSVMClassifier(m, **given | {"alpha": 0.0, "beta": "scale"}),
        lambda c, m: m,
        _atoms_and_codes,
        start_epochs=0,
        extra="the steps of the atoms",  # half of the batches move them
    ),
}
