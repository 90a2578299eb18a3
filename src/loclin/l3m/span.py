"""L-BFGS over linear outputs where sparse rows are fewer than the features.

All weights on the way of a descent are those at its start, times a number for each
output, plus combinations of the rows,

    w_p = a_p w0_p + sum_i C_ip (x_i - pivot).

So the descent is in (C, a, b), with n + 2 numbers an output instead of d + 1. Lengths and
products are those of the weights: every vector has with it its image, the products of its
weights with all rows and with w0. They give ``<v, v'> = C . Z' + a . e' + b . b'``, and
the scores along a line without another look at the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from loclin.l3m.outputs import CORRECTIONS, Floats, Kernel, Limits, Outputs, Vector

_ARMIJO, _CURVATURE = 1e-3, 0.9  # Wolfe's conditions: fall of the value, and of the slope
_TRIALS = 20  # of lengths of a step


class Pair(NamedTuple):
    """A step of the descent, the change of the gradient, and 1 over their product."""

    s: Vector
    y: Vector
    rho: float


class Point(NamedTuple):
    """A vector of the descent, and the objective there."""

    x: Vector  # shape: (2, n p + 2 p)
    value: float
    slopes: Floats  # by the scores; shape: (n, p)
    coefficients: Vector  # of the gradient; shape: (n p + 2 p,)


class Span:
    """Vectors of a descent, (2, n p + 2 p): coefficients, and their image.

    Parameters
    ----------
    outputs : Outputs
        Over sparse rows, with one pivot.
    kernel : callable
        See `Outputs.score`.
    penalties : ndarray of shape (p,)
    W : ndarray of shape (p, d)
        Weights at the start.
    """

    def __init__(
        self, outputs: Outputs, kernel: Kernel, penalties: Vector, W: Vector
    ) -> None:
        X, pivot = outputs.X, outputs.pivots[0]
        self.X, self.pivot = X, pivot
        self.kernel, self.dtype = kernel, outputs.dtype
        self.penalties, self.W = penalties, W
        self.shape = (X.shape[0], len(W))
        self.along_pivot = (X @ pivot)[:, None]
        self.at_start = X @ W.T - W @ pivot
        self.square = np.einsum("dp,dp->p", W.T, W.T)

    def split(self, v: Vector) -> tuple[Vector, Vector, Vector]:
        """View coefficients or an image as parts (n, p), (p,) and (p,)."""
        n, p = self.shape
        return v[: n * p].reshape(n, p), v[-2 * p : -p], v[-p:]

    def start(self, b: Vector) -> Vector:
        """Return the vector of the weights at the start."""
        coefficients = np.concatenate([np.zeros(self.shape).ravel(), np.ones(len(b)), b])
        image = np.concatenate([self.at_start.ravel(), self.square, b])
        return np.array([coefficients, image])

    def evaluate(self, x: Vector) -> Point:
        """Return the objective at a vector."""
        C, a, _ = self.split(x[0])
        Z, e, b = self.split(x[1])
        scores = (Z + b).astype(self.dtype)
        A = np.empty_like(scores)
        total = self.kernel(scores, slice(0, len(Z)), A)
        total += 0.5 * float(self.penalties @ (np.einsum("np,np->p", C, Z) + a * e))
        parts = (A + self.penalties * C).ravel(), self.penalties * a, A.sum(axis=0)
        return Point(x, total, A, np.concatenate(parts))

    def gradient(self, point: Point) -> Vector:
        """Return the gradient with its image."""
        Z, e, _ = self.split(point.x[1])
        A, coefficients = point.slopes, point.coefficients
        along, sums = self.along_pivot, A.sum(axis=0, dtype=np.float64)
        Z = self.X @ (self.X.T @ A) - along * sums + self.penalties * Z
        Z -= along.T @ A - float(self.pivot @ self.pivot) * sums
        e = np.einsum("np,np->p", A, self.at_start) + self.penalties * e
        image = np.concatenate([Z.ravel(), e, self.split(coefficients)[2]])
        return np.array([coefficients, image])

    def unknowns(self, x: Vector) -> tuple[Vector, Vector]:
        """Weights (p, d) and b (p,)."""
        C, a, b = self.split(x[0])
        W = a * self.W.T + self.X.T @ C
        W -= self.pivot[:, None] * C.sum(axis=0)
        return W.T, b


def dot(v: Vector, u: Vector) -> float:
    """Product of the weights, and of b, of two vectors."""
    return float(v[0] @ u[1])


def minimise_in_span(
    outputs: Outputs, kernel: Kernel, penalties: Vector, v: Vector, limits: Limits
) -> tuple[Vector, float]:
    """Minimise what `Outputs.penalized` returns, from `v`;
    return where it ends, and the value.

    Here it is the gradient's length that is not above the tolerance.
    """
    W, b = outputs.split(v)
    span = Span(outputs, kernel, penalties, W)
    end = _descend(span, span.start(b), limits)
    return outputs.joined(*span.unknowns(end.x)), end.value


def _descend(span: Span, start: Vector, limits: Limits) -> Point:
    """Return where L-BFGS ends."""
    here = span.evaluate(start)
    gradient, passes = span.gradient(here), 1
    pairs: list[Pair] = []
    while passes < limits.passes and dot(gradient, gradient) > limits.tol**2:
        direction = _direction(gradient, pairs)
        if not pairs:
            direction *= min(1.0, 1.0 / np.sqrt(dot(gradient, gradient)))
        there = _line_search(span.evaluate, here, direction, dot(gradient, direction))
        if there is None:
            break
        before, here = here, there
        old, gradient = gradient, span.gradient(here)
        s, y = here.x - before.x, gradient - old
        curvature = dot(s, y)
        if curvature > np.finfo(float).eps * dot(y, y):
            pairs = [*pairs, Pair(s, y, 1.0 / curvature)][-CORRECTIONS:]
        passes += 1
        largest = max(abs(before.value), abs(here.value), 1.0)
        if before.value - here.value <= limits.least_fall * largest:
            break
    return here


def _direction(gradient: Vector, pairs: list[Pair]) -> Vector:
    """Return the direction of L-BFGS, by its two loops."""
    q, shares = -gradient, []
    for s, y, rho in reversed(pairs):
        shares.append(rho * dot(s, q))
        q -= shares[-1] * y
    if pairs:
        _, y, rho = pairs[-1]
        q /= rho * dot(y, y)
    for s, y, rho in pairs:
        q += (shares.pop() - rho * dot(y, q)) * s
    return q


def _line_search(
    evaluate: Callable[[Vector], Point], here: Point, direction: Vector, slope: float
) -> Point | None:
    """Find a step that meets Wolfe's conditions, by doubling and halving;
    None where none falls.
    """
    best = None
    low, high = 0.0, np.inf
    length = 1.0
    for _ in range(_TRIALS):
        there = evaluate(here.x + length * direction)
        if not there.value <= here.value + _ARMIJO * length * slope:
            high = length
        else:
            best = there
            if float(there.coefficients @ direction[1]) >= _CURVATURE * slope:
                break
            low = length
        length = 2 * low if high == np.inf else (low + high) / 2
    return best
