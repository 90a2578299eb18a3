"""Weights of a stochastic procedure, and the mean of its iterates."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.rows import as_models, weights_for


class AveragedWeights:
    """Models, their intercepts and those of the scorers; the sums that average the iterates.

    Compiled passes that average keep ``sums = sum of c * update`` for `W`, c being the sum of the
    scales before the update, and plain sums for the intercepts; so averaging costs as much as the
    updates, not as the weights.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
        Only its kind, width and dtype are used.
    n_scorers, n_models : int
    settings : object
        What the procedure's passes need to know, `alpha` and `penalize_intercept` among it.
    """

    sums: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    averaged: tuple[float, float]  # sum of the scales, number of iterates

    def __init__(self, X: Any, n_scorers: int, n_models: int, settings: Any) -> None:
        self.n_scorers, self.n_models, self.settings = n_scorers, n_models, settings
        self.t = 0.0  # step counter
        self.is_sparse = sparse.issparse(X)
        self.W = weights_for(X, n_scorers * n_models)
        self.b = np.zeros(n_scorers * n_models, X.dtype)
        self.g = np.zeros(n_scorers, X.dtype)
        self.forget_average()

    def set_models(
        self, coef: NDArray[Any], intercept: NDArray[Any], extra: NDArray[Any] | float = 0.0
    ) -> Self:
        """Start from given models: (s, m, d), (s, m) and (s,)."""
        if coef.shape[1] != self.n_models:
            raise ValueError(
                f"n_models={self.n_models} differs from the {coef.shape[1]} of the fit that is to "
                "go on. Leave it as it was, or start afresh with warm_start=False."
            )
        as_models(self.W, self.is_sparse, self.n_models)[:] = coef
        self.b[:] = intercept.ravel()
        self.g[:] = extra
        return self

    def change_layout(self) -> None:
        """Turn the weights from the layout of dense rows to that of sparse rows, or back."""
        self.W = np.ascontiguousarray(self.W.T)
        self.is_sparse = not self.is_sparse
        self.forget_average()

    def begin_average(self) -> None:
        """Make room for the sums, where there is none."""
        if not len(self.sums[1]):
            self.sums = (np.zeros_like(self.W), np.zeros_like(self.b), np.zeros_like(self.g))

    def forget_average(self) -> None:
        """Begin averaging anew."""
        dtype = self.b.dtype
        self.sums = (
            np.zeros((0, 0), dtype),
            np.zeros(0, dtype),
            np.zeros(0, dtype),
        )
        self.averaged = (0.0, 0.0)

    @property
    def no_sums(self) -> tuple[NDArray[Any], ...]:
        """What a pass that does not average takes for the sums."""
        return tuple(part[:0] for part in self.sums)

    def current(self) -> tuple[NDArray[Any], ...]:
        """Mean of the iterates since averaging began, or the last iterate where it has not.

        Fresh arrays in the layout of `W`; the procedure goes on undisturbed.
        """
        c, steps = self.averaged
        if not steps:
            return self.W.copy(), self.b.copy(), self.g.copy()
        sum_W, sum_b, sum_g = self.sums
        dtype = self.b.dtype.type
        mean_W = self.W * dtype(c)
        mean_W -= sum_W
        mean_W /= dtype(steps)
        return mean_W, sum_b / dtype(steps), sum_g / dtype(steps)

    def models(self, W: NDArray[Any], b: NDArray[Any], g: NDArray[Any]) -> dict[str, Any]:
        """Weights in the layout of `W` as fitted attributes."""
        return {
            "local_coef_": as_models(W, self.is_sparse, self.n_models),
            "local_intercept_": b.reshape(-1, self.n_models),
            "intercept_": g,
        }

    def penalty(self) -> float:
        """``alpha/2 ||W||^2``, with the intercepts if they are penalised."""
        parts = (self.W, self.b, self.g) if self.settings.penalize_intercept else (self.W,)
        return 0.5 * self.settings.alpha * sum(float(np.vdot(part, part)) for part in parts)
