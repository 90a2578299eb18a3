"""Rows seen through a linear map while a model learns from them:
multiplied, or in a metric.

The intercepts of local models are weights of a feature that is always 1. Beside it
features much smaller count for nothing: their weights would have to be so large that the
penalty forbids them; and beside features that are much larger it is not learned. Where
the strength of the penalty is ours to choose, such features are multiplied. In a metric
M, a model is that of the rows ``M^(1/2) x`` (`fitting.metric`). Either way the model is
folded back: it is one of the rows given.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from loclin.engine.data import Floats, Matrix, Rows, mean_squared_norm
from loclin.engine.prediction import in_metric
from loclin.engine.shapes import Shape

# Rows with a mean squared norm between these are learned from as they are: those of unit
# norm are, and pixels from 0 to 255.
_SMALL, _LARGE = 0.25, 1e12
# The least root of a metric, in units of its largest: it must be invertible in single
# precision.
LEAST = 1e-2


def multiplier_of(X: Matrix, largest: float) -> float:
    """Return the power of two that gives rows a mean squared norm near 1;
    1 where none is needed.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    largest : float
        At least the largest absolute value of the features; 0 where it is not known.
    """
    if largest == 0.0 or _SMALL <= mean_squared_norm(X) <= _LARGE:
        return 1.0
    to_one = 2.0 ** -math.frexp(largest)[1]
    norm2 = mean_squared_norm(X * X.dtype.type(to_one))
    if norm2 == 0.0:  # the rows left are zero
        return 1.0
    return to_one * 2.0 ** round(-0.5 * math.log2(norm2))


def least_of(root: Floats) -> float:
    """Return the root of a diagonal metric where features are of no use."""
    return LEAST * float(root.max())


class LinearMap(NamedTuple):
    """The map of rows ``x' = multiplier root x``,
    and the way back for what is learned from them.

    A field of a fitted model changes by a power of the map, as `FittedModel.units` tells:
    coefficients by 1, points by -1. What belongs to squared distances (2) is of those in
    the metric.

    Parameters
    ----------
    multiplier : float, default=1.0
        A power of two.
    root : ndarray of shape (d,) or (d, d), default=None
        As of `in_metric`.
    """

    multiplier: float = 1.0
    root: Annotated[Floats | None, Shape("d | d d")] = None

    @property
    def is_plain(self) -> bool:
        """Tell whether nothing changes."""
        return self.multiplier == 1.0 and self.root is None

    def of_matrix(self, X: Matrix) -> Any:
        """Return the rows, mapped."""
        X = in_metric(X, self.root)
        return X if self.multiplier == 1.0 else X * X.dtype.type(self.multiplier)

    def of_rows(self, rows: Rows) -> Rows:
        """Return training rows, mapped."""
        return rows._replace(X=self.of_matrix(rows.X))

    def of_field(self, value: Any, power: int) -> Any:
        """Return what a field of that power is of mapped rows, given that of the rows."""
        return self._mixed(value / self.multiplier**power, -power)

    def back(self, value: Any, power: int) -> Any:
        """Return what a field of that power is of the rows, given that of mapped rows."""
        return self._mixed(value * self.multiplier**power, power)

    def _mixed(self, value: Any, power: int) -> Any:
        """Apply a power of the root to the last axis."""
        if self.root is None or abs(power) > 1:
            return value
        if self.root.ndim == 1:
            return value * self.root if power == 1 else value / self.root
        return value @ (self.root if power == 1 else np.linalg.inv(self.root))
