"""The temperature of lowest log loss.

The loss is that of the probabilities that are given: a share of them is spread over all
classes, so that a few rows far from all others, whose scores may be of any size, do not
decide.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import logsumexp, softmax

from loclin.engine.data import Floats, Labels
from loclin.fitting.rows import near_one

_STEPS, _NEAR = 20, 1e-2  # the mixture takes no more steps; one as short is the last
_STARTS = range(6)
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
        losses = logsumexp(inverse * self.scores, axis=1)
        if smoothing:
            uniform = smoothing / self.scores.shape[1]
            losses = -np.log((1 - smoothing) * np.exp(-losses) + uniform)
        return self.weights * losses

    def best(self) -> float:
        """Return the logarithm of the inverse temperature of least loss."""
        low, high = math.log(1e-3), math.log(1e3)
        if self.slope(math.exp(low)) >= 0:  # scores that tell nothing, or lie
            return low
        if self.slope(math.exp(high)) <= 0:
            return high
        result = root_scalar(
            lambda log: self.slope(math.exp(log)), bracket=(low, high), xtol=1e-3
        )
        return float(result.root)

    def by_trust(self, inverse: float, smoothing: float) -> LogLoss:
        """Return the loss with rows weighed by how much they speak of the scores.

        A label is one of the softmax, or of any class: smoothing tells how often. This is
        the E step of that mixture.
        """
        right = (1 - smoothing) * np.exp(-logsumexp(inverse * self.scores, axis=1))
        trust = right / (right + smoothing / self.scores.shape[1])
        return self._replace(weights=self.weights * trust)

    def best_smoothed(self, log_inverse: float, smoothing: float) -> float:
        """Return the logarithm of the inverse temperature of least loss with smoothing.

        Rows far from all others hide it behind another minimum, so the search begins
        where the loss is lowest, at the one without smoothing or above.
        """
        starts = [log_inverse + step for step in _STARTS]
        losses = [self.by_row(math.exp(log), smoothing).sum() for log in starts]
        log_inverse = starts[int(np.argmin(losses))]
        for _ in range(_STEPS):
            before = log_inverse
            log_inverse = self.by_trust(math.exp(before), smoothing).best()
            if abs(log_inverse - before) < _NEAR:
                break
        return log_inverse

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
    between 1/1000 and 1000 of the scores' spread.

    The loss is that of probabilities with this smoothing; None: with that of so many
    rows. So a few rows far from all others, whose scores may be of any size, do not make
    the rest less certain.
    """
    smoothing = smoothing_of(len(y)) if smoothing is None else smoothing
    unit = spread(decisions)
    if not 0 < unit < math.inf:
        return 1.0
    loss = LogLoss.of(decisions / unit, y, weights)
    log_inverse = loss.best()
    if smoothing:
        log_inverse = loss.best_smoothed(log_inverse, smoothing)
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
