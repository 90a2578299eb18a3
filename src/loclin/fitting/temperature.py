"""The temperature of lowest log loss.

The loss is that of the probabilities that are given: a share of them is spread over all
classes, so that a few rows far from all others, whose scores may be of any size, do not
decide.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from loclin.engine.data import Floats, Labels
from loclin.fitting.rows import near_one

# Logarithms of inverse temperatures, in steps of about 1. A few rows far from all others
# raise the spread, so the highest is far above it.
_GRID = np.linspace(math.log(1e-3), math.log(1e6), 22).tolist()
COLDEST = 1e-300  # the lowest temperature; its inverse is the highest


class LogLoss(NamedTuple):
    """Log loss of scores as a function of the inverse temperature.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        Less the true class's, so that the true class has zeros.
    others : ndarray of shape (n,)
        Their mean over the classes: what a label that might be any would have.
    weights : ndarray of shape (n,)
    """

    scores: Floats
    others: Floats
    weights: Floats

    @classmethod
    def of(cls, decisions: Floats, y: Labels, weights: Floats) -> LogLoss:
        """Return that of decisions, (n,) or (n, c), for labels 0 .. c - 1."""
        by_class = decisions.astype(np.float64)
        if by_class.ndim == 1:
            by_class = np.stack([np.zeros_like(by_class), by_class], axis=1)
        leads = by_class - by_class[np.arange(len(y)), y][:, None]
        weights = near_one(weights)
        return cls(leads, leads.mean(axis=1), weights / weights.sum())

    def slope(self, inverse: float) -> float:
        """Return the derivative; one label of n + 2 might be any, so that it has a zero."""
        expected = np.einsum(
            "nc,nc->n", softmax(inverse * self.scores, axis=1), self.scores
        )
        return float(
            self.weights @ expected - self.weights @ self.others / (len(expected) + 2)
        )

    def by_row(self, inverse: float, smoothing: float = 0.0) -> Floats:
        """Return the rows' shares of the log loss."""
        return self.weights * self._smoothed(self._sharp(inverse), smoothing)

    def best(self, smoothing: float) -> float:
        """Return the logarithm of the inverse temperature of least loss.

        With smoothing the loss may have several minima: where a few rows far from all
        others decide, it is flat. So a grid is tried first. Without, there is one.
        """

        def loss(log_inverse: float) -> float:
            losses = self._smoothed(self._damped(math.exp(log_inverse)), smoothing)
            return float(self.weights @ losses)

        near = _GRID[0], _GRID[-1]
        if smoothing:
            least = int(np.argmin([loss(log_inverse) for log_inverse in _GRID]))
            near = _GRID[max(least - 1, 0)], _GRID[min(least + 1, len(_GRID) - 1)]
        found = minimize_scalar(
            loss, bounds=near, method="bounded", options={"xatol": 1e-3}
        )
        return float(found.x)

    def by_trust(self, inverse: float, smoothing: float) -> LogLoss:
        """Return the loss with rows weighed by how much they speak of the scores.

        A label is one of the softmax, or of any class: smoothing tells how often. This is
        the E step of that mixture.
        """
        right = (1 - smoothing) * np.exp(-self._damped(inverse))
        trust = right / (right + smoothing / self.scores.shape[1])
        return self._replace(weights=self.weights * trust)

    def _damped(self, inverse: float) -> Floats:
        """Return the rows' losses, whose derivative is that of `slope`."""
        any_label = inverse * self.others / (len(self.others) + 2)
        return self._sharp(inverse) - any_label

    def _sharp(self, inverse: float) -> Floats:
        """Return the rows' losses without smoothing; scipy's logsumexp takes longer."""
        top = self.scores.max(axis=1)
        odds = np.exp(inverse * (self.scores - top[:, None]))
        return inverse * top + np.log(odds.sum(axis=1))

    def _smoothed(self, losses: Floats, smoothing: float) -> Floats:
        if not smoothing:
            return losses
        uniform = smoothing / self.scores.shape[1]
        return -np.log((1 - smoothing) * np.exp(-losses) + uniform)

    def curvature(self, inverse: float) -> float:
        """Return the second derivative: the mean variance of the scores."""
        p = softmax(inverse * self.scores, axis=1)
        mean = np.einsum("nc,nc->n", p, self.scores)
        square = np.einsum("nc,nc->n", p, self.scores**2)
        return float(self.weights @ (square - mean**2))


def spread(decisions: Floats) -> float:
    """Mean size of the rows' decisions, about their mean over the classes.

    Not the root of the mean square: a held-out row far from all others has scores of any
    size.
    """
    of_rows = decisions.astype(np.float64)
    power = math.frexp(float(np.abs(of_rows).max(initial=0.0)))[1]  # squares may overflow
    of_rows = np.ldexp(of_rows, -power)
    mean = np.mean(np.abs(of_rows) if of_rows.ndim == 1 else np.std(of_rows, axis=1))
    return float(np.ldexp(mean, power))


def rescaled(temperature: Any, here: float, there: float) -> Any:
    """Return the temperature of scores of this spread, given that of others and theirs."""
    new_temperature = temperature * (here / (there or 1.0) or 1.0)
    return np.clip(new_temperature, COLDEST, 1 / COLDEST)


def temperature_of(
    decisions: Floats, y: Labels, weights: Floats, smoothing: float | None = None
) -> float:
    """Return the temperature of least log loss;
    between a millionth and 1000 of the scores' spread.

    The loss is that of probabilities with this smoothing; None: with that of so many
    rows. So a few rows far from all others, whose scores may be of any size, do not make
    the rest less certain.
    """
    smoothing = smoothing_of(len(y)) if smoothing is None else smoothing
    unit = spread(decisions)
    if not 0 < unit < math.inf:
        return 1.0
    log_inverse = LogLoss.of(decisions / unit, y, weights).best(smoothing)
    return float(rescaled(math.exp(-log_inverse), unit, 1.0))


def log_losses(
    decisions: Floats, y: Labels, weights: Floats, smoothing: float = 0.0
) -> Floats:
    """Return the rows' shares of the log loss at the temperature
    that is best for all of them.

    Infinite where decisions overflow. With smoothing, it is the loss of the probabilities
    that are given: a row far from all others cannot outweigh the rest.
    """
    if not np.isfinite(decisions).all():
        return np.full(len(y), math.inf)
    loss = LogLoss.of(decisions, y, weights)
    temperature = temperature_of(decisions, y, weights, smoothing)
    return loss.by_row(1.0 / temperature, smoothing)


def smoothing_of(n_rows: float) -> float:
    """Return the share of probability that is spread over all classes: Laplace's rule."""
    return 1.0 / (n_rows + 2.0)
