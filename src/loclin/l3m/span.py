"""L-BFGS over linear outputs where sparse rows are fewer than the features.

All weights on the way of a descent are those at its start, times a number for each output, plus
combinations of the rows,

    w_p = a_p w0_p + sum_i C_ip (x_i - pivot).

So the descent is in (C, a, b), with n + 2 numbers an output instead of d + 1. Lengths and products
are those of the weights: every vector has with it its image, the products of its weights with all
rows and with w0. They give ``<v, v'> = C . Z' + a . e' + b . b'``, and the scores along a line
without another look at the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FALL, _FLATTEN = 1e-3, 0.9  # of the value and of the slope, in a step (Wolfe)
_TRIALS = 20  # of lengths of a step

Pair = tuple[NDArray[Any], NDArray[Any], float]


class Span:
    """Vectors of a descent, (2, n p + 2 p): coefficients, and their image.

    Parameters
    ----------
    X : csr of shape (n, d)
    pivot : ndarray of shape (d,)
        Of all outputs.
    W : ndarray of shape (p, d)
        Weights at the start.
    penalties : ndarray of shape (p,)
    kernel : callable
        See `Outputs.score`.
    dtype : dtype
        In which to score.
    """

    def __init__(self, X: Any, pivot: NDArray[Any], W: NDArray[Any], penalties: NDArray[Any],
                 kernel: Any, dtype: Any) -> None:  # fmt: skip
        self.X, self.pivot, self.W, self.penalties = X, pivot, W, penalties
        self.kernel, self.dtype, self.shape = kernel, dtype, (X.shape[0], len(W))
        self.along_pivot = (X @ pivot)[:, None]
        self.at_start = X @ W.T - W @ pivot
        self.square = np.einsum("dp,dp->p", W.T, W.T)

    def split(self, v: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """View coefficients or an image as parts (n, p), (p,) and (p,)."""
        n, p = self.shape
        return v[: n * p].reshape(n, p), v[-2 * p : -p], v[-p:]

    def start(self, b: NDArray[Any]) -> NDArray[Any]:
        """Return the vector of the weights at the start."""
        nothing = np.zeros(self.shape)
        return np.array([
            np.concatenate([nothing.ravel(), np.ones(len(b)), b]),
            np.concatenate([self.at_start.ravel(), self.square, b]),
        ])  # fmt: skip

    def value(self, x: NDArray[Any]) -> tuple[float, NDArray[Any], NDArray[Any]]:
        """Value, slopes of the scores (n, p), and coefficients of the gradient."""
        C, a, _ = self.split(x[0])
        Z, e, b = self.split(x[1])
        scores = (Z + b).astype(self.dtype)
        A = np.empty_like(scores)
        total = self.kernel(scores, slice(0, len(Z)), A)
        total += 0.5 * float(self.penalties @ (np.einsum("np,np->p", C, Z) + a * e))
        parts = (A + self.penalties * C).ravel(), self.penalties * a, A.sum(axis=0)
        return total, A, np.concatenate(parts)

    def gradient(self, x: NDArray[Any], A: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
        """Return the gradient with its image; `A` and `found` are of `value`."""
        Z, e, _ = self.split(x[1])
        along, sums = self.along_pivot, A.sum(axis=0, dtype=np.float64)
        Z = self.X @ (self.X.T @ A) - along * sums + self.penalties * Z
        Z -= along.T @ A - float(self.pivot @ self.pivot) * sums
        e = np.einsum("np,np->p", A, self.at_start) + self.penalties * e
        return np.array([found, np.concatenate([Z.ravel(), e, self.split(found)[2]])])

    def unknowns(self, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights (p, d) and b (p,)."""
        C, a, b = self.split(x[0])
        W = a * self.W.T + self.X.T @ C
        W -= self.pivot[:, None] * C.sum(axis=0)
        return W.T, b


def dot(v: NDArray[Any], u: NDArray[Any]) -> float:
    """Product of the weights, and of b, of two vectors."""
    return float(v[0] @ u[1])


def minimise_in_span(
    span: Span, b: NDArray[Any], max_passes: int, tol: float, least_fall: float, corrections: int
) -> tuple[NDArray[Any], float]:
    """Minimise as `Outputs.minimise` does, from b; return the vector, and the value there.

    The descent ends where the gradient is not longer than `tol`.
    """
    x = span.start(b)
    value, A, found = span.value(x)
    gradient, passes = span.gradient(x, A, found), 1
    pairs: list[Pair] = []
    while passes < max_passes and dot(gradient, gradient) > tol**2:
        move = _direction(gradient, pairs)
        if not pairs:
            move *= min(1.0, 1.0 / np.sqrt(dot(gradient, gradient)))

        def at(length: float, x: Any = x, move: Any = move) -> tuple[float, float, Any]:
            there = x + length * move
            result = span.value(there)
            return result[0], float(result[2] @ move[1]), (there, *result)

        step = _line_search(at, value, dot(gradient, move))
        if step is None:
            break
        before, old_value, old = x, value, gradient
        x, value, A, found = step
        gradient = span.gradient(x, A, found)
        s, y = x - before, gradient - old
        curvature = dot(s, y)
        if curvature > np.finfo(float).eps * dot(y, y):
            pairs = [*pairs, (s, y, 1.0 / curvature)][-corrections:]
        passes += 1
        if old_value - value <= least_fall * max(abs(old_value), abs(value), 1.0):
            break
    return x, value


def _direction(gradient: NDArray[Any], pairs: list[Pair]) -> NDArray[Any]:
    """Two loops of L-BFGS."""
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


def _line_search(at: Callable[[float], tuple[float, float, Any]], value: float,
                 slope: float) -> Any:  # fmt: skip
    """Find a step that meets Wolfe's conditions, by doubling and halving; None where none falls."""
    low, high, length, best = 0.0, np.inf, 1.0, None
    for _ in range(_TRIALS):
        there, slope_there, result = at(length)
        if not there <= value + _FALL * length * slope:
            high = length
        else:
            best = result
            if slope_there >= _FLATTEN * slope:
                break
            low = length
        length = 2 * low if high == np.inf else (low + high) / 2
    return best
