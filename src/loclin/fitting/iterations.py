"""A running fit: what it offers, and when it has gone far enough."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning


class Iterations(Protocol):
    """A running fit: each call of `iterate` passes over the data once."""

    @property
    def gap(self) -> float | None:
        """Duality gap over the objective; None where the solver has none."""

    def iterate(self, *, average: bool) -> float:
        """Run one iteration and return the objective; average its iterates if asked."""

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""


@dataclass
class Plateau:
    """A value that is to fall, and the iterations since it last fell by `tol`."""

    tol: float
    patience: int
    best: float = np.inf
    waited: int = 0

    def reached(self, value: float) -> bool:
        """Tell whether the value has not fallen by `tol` for `patience` iterations in a row."""
        self.waited = 0 if value < self.best - self.tol else self.waited + 1
        self.best = min(self.best, value)
        return self.waited >= self.patience


def warn_of_gap(iterations: Iterations, max_iter: int, tol: float) -> None:
    """Warn where a duality gap is above `tol` after all iterations."""
    if iterations.gap is not None and iterations.gap > tol:
        warnings.warn(
            f"The duality gap is {iterations.gap:.2g} of the objective after max_iter={max_iter} "
            f"passes, above tol={tol:g}. Scale the features, raise alpha, max_iter or tol.",
            ConvergenceWarning,
            stacklevel=5,
        )


class WeightsOnCodes:
    """Iterations over a column of ones: their weights are the constants that the models say."""

    def __init__(self, iterations: Any, n_features: int) -> None:
        self.iterations, self.n_features = iterations, n_features

    @property
    def gap(self) -> float | None:
        """Duality gap over the objective; None where the solver has none."""
        return self.iterations.gap

    def iterate(self, *, average: bool) -> float:
        """Run one iteration."""
        return self.iterations.iterate(average=average)

    def learn(self, *arguments: Any) -> Any:
        """Learn from some more rows of a stream."""
        return self.iterations.learn(*arguments)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands, with models that see nothing of X."""
        found = self.iterations.attributes()
        weights = np.ascontiguousarray(found["local_coef_"][:, :, 0])
        nothing = np.broadcast_to(np.zeros((), weights.dtype), (*weights.shape, self.n_features))
        return found | {"local_coef_": nothing, "local_intercept_": weights}
