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
from loclin.engine.procedure import FittedModel
from loclin.fitting.iterations import Wrapped

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


class Rescaled(Wrapped):
    """A procedure over multiplied rows, whose models are those of the rows themselves.

    Parameters
    ----------
    inner : Procedure or StreamProcedure
    multiplier : float
    """

    def __init__(self, inner: Any, multiplier: float) -> None:
        super().__init__(inner)
        self.multiplier = multiplier

    def seen(self, rows: Rows) -> Rows:
        """Return the rows multiplied."""
        return multiplied(rows, self.multiplier)

    def changed(self, model: FittedModel) -> FittedModel:
        """Return the model of the rows as they were."""
        units = {
            name: getattr(model, name) * self.multiplier**power
            for name, power in model.units.items()
        }
        return replace(model, **units)
