"""ML3's constrained concave-convex procedure (Algorithms 1 and 2 of the paper).

Minimises, over the local models ``W`` (c, m, d) and ``b`` (c, m),

    alpha/2 ||W||^2 + 1/(sum w) sum_i w_i loss(s(x_i, y_i) - max_{y != y_i} s(x_i, y)),
    s(x, y) = || max(W_y x + b_y, 0) ||_q,

by freezing, at every iteration, the codes of the true classes and taking one pass of SGD over the
convex problem that remains (equation 13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.averaging import AveragedWeights
from loclin.engine.losses import Loss, loss_value
from loclin.engine.rows import compiled_form
from loclin.ml3.kernels import freeze_codes, sgd_pass
from loclin.projections import dual_exponent

# Rows scored together when codes are frozen: large enough for BLAS, small enough for the cache.
_FREEZE_BLOCK = 256


@dataclass
class CCCPSettings:
    """What the iterations need to know besides the data.

    `alpha` is the L2 strength, `p` the exponent of the ball; `revive` gives a row whose true class
    has no positive response to that class's strongest model.
    """

    alpha: float
    n_models: int
    p: float
    loss: Loss
    batch_size: int
    penalize_intercept: bool
    revive: bool

    @property
    def radius(self) -> float:
        """Radius of a ball that holds the optimum: ``alpha/2 ||W||^2 <= loss(0)``."""
        return float(np.sqrt(2.0 * loss_value(int(self.loss), 0.0) / self.alpha))


def random_codes(rng: np.random.Generator, n: int, m: int, p: float, dtype: Any) -> NDArray[Any]:
    """Draw `n` codes on the positive part of the p-norm sphere: uniform entries, normalised."""
    return onto_sphere(rng.random((n, m), dtype=dtype), p)


def onto_sphere(codes: NDArray[Any], p: float) -> NDArray[Any]:
    """Scale codes onto the p-norm sphere, in place; zeros stay."""
    tiny = np.finfo(codes.dtype).tiny
    for block in np.array_split(codes, max(1, len(codes) // _FREEZE_BLOCK)):
        block /= np.maximum(block.max(axis=1, keepdims=True), tiny)  # or high powers are lost
        norms = np.linalg.norm(block, ord=p, axis=1, keepdims=True)
        block /= np.maximum(norms, tiny)
    return codes


def rows_by_class(y: NDArray[Any], n_classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows class by class, and where each class starts (and the last one ends)."""
    order = np.argsort(y, kind="stable").astype(np.int32)
    return order, np.searchsorted(y, np.arange(n_classes + 1), sorter=order)


class CCCP(AveragedWeights):
    """The state of the procedure: weights, step counter, running average.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
        Only its kind, width and dtype are used here.
    n_classes : int
    settings : CCCPSettings
    """

    def __init__(self, X: Any, n_classes: int, settings: CCCPSettings) -> None:
        super().__init__(X, n_classes, settings.n_models, settings)

    def start(self, X: Any, y: NDArray[Any], weights: NDArray[Any], codes: NDArray[Any],
              rng: np.random.Generator) -> float:  # fmt: skip
        """Fit the models to fixed codes, shared by the classes; return the objective."""
        return self._pass(X, y, weights, codes, rng, start=True)

    def iterate(self, X: Any, y: NDArray[Any], weights: NDArray[Any],
                by_class: tuple[NDArray[Any], NDArray[Any]], codes: NDArray[Any],
                rng: np.random.Generator, *, average: bool = False) -> float:  # fmt: skip
        """One CCCP iteration. Return the objective.

        `by_class` is ``rows_by_class(y)``; `codes` (n, m) is room for the frozen codes.

        The objective is the running estimate gathered during the pass, with the penalty at its end.
        """
        freeze_codes(
            compiled_form(X), *by_class, self.W, self.b, dual_exponent(self.settings.p),
            _FREEZE_BLOCK, self.settings.revive, codes,
        )  # fmt: skip
        if average:
            self.begin_average()
        return self._pass(X, y, weights, codes, rng, average=average)

    def _pass(self, X: Any, y: NDArray[Any], weights: NDArray[Any], codes: NDArray[Any],
              rng: np.random.Generator, *, start: bool = False,
              average: bool = False) -> float:  # fmt: skip
        s = self.settings
        order = rng.permutation(np.arange(len(y), dtype=np.int32))
        self.t, averaged, total_loss, self.n_updates = sgd_pass(
            compiled_form(X), y, weights, order, codes, self.W, self.b,
            (self.sums if average else self.no_sums)[:2], self.averaged, self.t, s.alpha,
            dual_exponent(s.p), int(s.loss), s.radius, s.batch_size, start, s.penalize_intercept,
        )  # fmt: skip
        if average:
            self.averaged = averaged
        return total_loss / float(weights.sum()) + self.penalty()
