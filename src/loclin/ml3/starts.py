"""Codes of ML3's starting round, before the models mean anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.anchors import distinct_centres, nearest_anchors
from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.rounds import Rounds
from loclin.fitting.encode import encode, fitted_coding
from loclin.ml3.cccp import onto_sphere, random_codes


def starting_codes(
    init: Any,
    m: int,
    p: float,
    rounds: Rounds,
    classes: NDArray[Any],
    rng: np.random.Generator,
) -> Callable[[Matrix, np.random.Generator], Floats]:
    """Return what writes the codes of rows in the starting round.

    Parameters
    ----------
    init : "random", "kmeans" or coding
        Its anchors, if it is given some, are those of rows as the model sees them.
    m : int
        Models of a class, and so codes.
    p : float
        Exponent of the ball that codes live in.
    rounds : Rounds
        Of the fit.
    classes : ndarray of shape (c,)
    rng : Generator
    """
    if isinstance(init, str):
        if init == "random":
            return lambda X, rng: random_codes(rng, X.shape[0], m, p, X.dtype)
        X = rounds.some().X
        centres = distinct_centres(X, min(m, X.shape[0]), int(rng.integers(2**31 - 1)))
        return lambda X, rng: cluster_codes(X, centres, m)
    some = rounds.some()
    coding = fitted_coding(init, some.X, classes[some.y], rng)
    n_codes = encode(coding, some.X[:1]).shape[-1]
    if n_codes != m:
        raise ValueError(
            f"init={init!r} gives {n_codes} codes a row, but n_models={m}. Make the two numbers "
            "the same."
        )

    def codes_of(X: Matrix, rng: np.random.Generator) -> Floats:
        codes = encode(coding, X)
        codes = codes.toarray() if is_sparse(codes) else codes
        return onto_sphere(np.maximum(codes, 0), p)

    return codes_of


def cluster_codes(X: Matrix, centres: Floats, n_models: int) -> Floats:
    """Return one-hot codes of rows by the nearest of at most `n_models` centres."""
    codes = np.zeros((X.shape[0], n_models), X.dtype)
    codes[np.arange(len(codes)), nearest_anchors(X, centres, 1)[0][:, 0]] = 1
    return codes
