"""Small and large features, multiplied by a power of two while a model learns from them.

The intercepts of local models are weights of a feature that is always 1. Beside it features much
smaller count for nothing: their weights would have to be so large that the penalty forbids them;
and beside features that are much larger it is not learned. Where the strength of the penalty is
ours to choose, the model of such features is that of the same features multiplied, folded back.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from loclin.engine.data import Matrix, Rows, mean_squared_norm
from loclin.engine.procedure import Descent, FittedModel, StreamProcedure

# Rows with a mean squared norm between these are learned from as they are: those of unit norm are,
# and pixels from 0 to 255.
_SMALL, _LARGE = 0.25, 1e12


def multiplier_for(X: Matrix, largest: float) -> float:
    """Return the power of two that gives rows a mean squared norm near 1; 1 where none is needed.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    largest : float
        At least the largest absolute value of X.
    """
    if largest == 0.0 or _SMALL <= mean_squared_norm(X) <= _LARGE:
        return 1.0
    to_one = 2.0 ** -math.frexp(largest)[1]
    norm2 = mean_squared_norm(X * X.dtype.type(to_one))
    if norm2 == 0.0:  # the rows left are zero
        return 1.0
    return to_one * 2.0 ** round(-0.5 * math.log2(norm2))


def multiplied(rows: Rows, multiplier: float) -> Rows:
    """Return the rows with features multiplied."""
    return rows._replace(X=rows.X * rows.X.dtype.type(multiplier))


class Rescaled(Descent, StreamProcedure):
    """A procedure over multiplied rows, whose models are those of the rows themselves.

    Parameters
    ----------
    inner : Procedure or StreamProcedure
    multiplier : float
    """

    def __init__(self, inner: Any, multiplier: float) -> None:
        self.inner, self.multiplier = inner, multiplier

    @property
    def products(self) -> float:
        """Multiply-adds of a typical product."""
        return self.inner.products

    @property
    def gap(self) -> float | None:
        """Duality gap over the objective; None where the procedure knows none."""
        return self.inner.gap

    @property
    def kept(self) -> Any:
        """What a fit that goes on needs."""
        return self.inner.kept

    def iterate(self, *, average: bool) -> float:
        """Run one iteration."""
        return self.inner.iterate(average=average)

    def weaken(self, ratio: float) -> bool:
        """Go on with so much of the L2 strength, if the procedure can."""
        return isinstance(self.inner, Descent) and self.inner.weaken(ratio)

    def learn(self, rows: Rows, alpha: float | None, batch_size: int) -> float:
        """Learn from some more rows of a stream."""
        self.n_seen += len(rows.y)
        return self.inner.learn(multiplied(rows, self.multiplier), alpha, batch_size)

    def result(self, *, final: bool = False) -> FittedModel:
        """Return the model as it stands."""
        model = self.inner.result(final=final)
        units = {
            name: getattr(model, name) * self.multiplier**power
            for name, power in model.units.items()
        }
        return replace(model, **units)
