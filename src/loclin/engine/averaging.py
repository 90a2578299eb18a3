"""Weights of a stochastic procedure, and the mean of its iterates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.iterates import Progress, Weights
from loclin.engine.procedure import LocalModels, Part
from loclin.engine.rows import as_models, weights_for
from loclin.engine.shapes import Size, Within


@dataclass(frozen=True, kw_only=True)
class DescentModels(LocalModels):
    """Local models after t rows."""

    t: int


def check_n_models(n_models: int, coef: Floats) -> None:
    """Raise ValueError unless there are so many models in the fit that is to go on."""
    if coef.shape[1] != n_models:
        raise ValueError(
            f"n_models={n_models} differs from the {coef.shape[1]} of the fit that is to go on. "
            "Leave it as it was, or start afresh with warm_start=False."
        )


class AveragedWeights(ABC):
    """Models, their intercepts and those of the scorers;
    the sums that average the iterates.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
        Only its kind, width and dtype are used.
    n_scorers, n_models : int
    settings : NamedTuple
        What the procedure's passes need to know, `alpha` and `penalize_intercept` among
        it.
    """

    n_scorers: Annotated[int, Size("s")]
    n_models: Annotated[int, Size("m")]
    settings: Any
    is_sparse: Annotated[bool, Size("sparse", own=True)]
    weights: Weights
    t: float  # step counter
    sums: Annotated[Weights, Within(empty="1")]
    averaged: tuple[float, float]  # sum of the scales, number of iterates

    def __init__(self, X: Matrix, n_scorers: int, n_models: int, settings: Any) -> None:
        self.n_scorers = n_scorers
        self.n_models = n_models
        self.settings = settings
        self.is_sparse = is_sparse(X)
        self.weights = Weights(
            weights_for(X, n_scorers * n_models),
            np.zeros(n_scorers * n_models, X.dtype),
            np.zeros(n_scorers, X.dtype),
        )
        self.t = 0.0
        self.sums = self._no_sums()
        self.averaged = 0.0, 0.0

    @abstractmethod
    def current(self) -> tuple[Floats, ...]:
        """Mean of the iterates since averaging began, or the last one where it has not."""

    @abstractmethod
    def parts(self, iterate: tuple[Floats, ...] | None = None) -> list[Part]:
        """Return what it learns, beside what `current` gave of it, and what it adds up.

        Parameters
        ----------
        iterate : tuple of ndarray or None
            In the order of `current`.
        """

    def weight_parts(self, iterate: tuple[Floats, ...] | None) -> list[Part]:
        """Return the weights among the parts."""
        weights = self.weights
        means: Any = (None,) * 3 if iterate is None else iterate[:3]
        as_fields = as_models(weights.W, self.is_sparse, self.n_models)
        mean = (
            None
            if iterate is None
            else as_models(means[0], self.is_sparse, self.n_models)
        )
        return [
            Part("coef", as_fields, mean, power=1),
            Part("intercept", weights.b, means[1], of="coef"),
            Part("extra", weights.g, means[2]),
        ]

    @abstractmethod
    def fitted(self, t: int, *iterate: Floats) -> DescentModels:
        """Return what `current` gave, after t rows, as a fitted model."""

    @abstractmethod
    def forget_average(self) -> None:
        """Begin averaging anew."""

    @property
    @abstractmethod
    def products(self) -> float:
        """Multiply-adds of the largest product of a batch."""

    def set_alpha(self, alpha: float) -> None:
        """Set the L2 strength, and begin averaging anew."""
        self.settings = self.settings._replace(alpha=alpha)
        self.forget_average()

    def set_models(
        self, coef: Floats, intercept: Floats, extra: Floats | float = 0.0
    ) -> Self:
        """Start from given models: (s, m, d), (s, m) and (s,)."""
        check_n_models(self.n_models, coef)
        as_models(self.weights.W, self.is_sparse, self.n_models)[:] = coef
        self.weights.b[:] = intercept.ravel()
        self.weights.g[:] = extra
        return self

    def change_layout(self) -> None:
        """Turn the weights from the layout of dense rows to that of sparse rows, or back."""
        self.weights = self.weights._replace(W=np.ascontiguousarray(self.weights.W.T))
        self.is_sparse = not self.is_sparse
        self.forget_average()

    def begin_pass(self, average: bool) -> tuple[Weights, Progress]:
        """Return the sums and the progress that a pass takes;
        sums are empty without average.
        """
        if not average:
            return self._no_sums(), Progress(self.t, 1.0, 0.0, 0.0)
        if not len(self.sums.b):
            self.sums = Weights(*map(np.zeros_like, self.weights))
        return self.sums, Progress(self.t, 1.0, *self.averaged)

    def end_pass(self, progress: Progress, average: bool) -> None:
        """Note how far a pass has come."""
        self.t = progress.t
        if average:
            self.averaged = progress.c, progress.n_averaged

    def forget_weights(self) -> None:
        """Begin averaging the weights anew."""
        self.sums, self.averaged = self._no_sums(), (0.0, 0.0)

    def _no_sums(self) -> Weights:
        return Weights(*(part[:0] for part in self.weights))

    def mean_weights(self) -> tuple[Floats, Floats, Floats]:
        """Mean of the weights since averaging began, or the last ones; fresh arrays."""
        c, steps = self.averaged
        if not steps:
            last = self.weights
            return last.W.copy(), last.b.copy(), last.g.copy()
        dtype = self.weights.b.dtype.type
        mean_W = self.weights.W * dtype(c)
        mean_W -= self.sums.W
        mean_W /= dtype(steps)
        return mean_W, self.sums.b / dtype(steps), self.sums.g / dtype(steps)

    def models(self, t: int, W: Floats, b: Floats, g: Floats) -> DescentModels:
        """Weights in the layout of W as a fitted model."""
        return DescentModels(
            local_coef=as_models(W, self.is_sparse, self.n_models),
            local_intercept=b.reshape(-1, self.n_models),
            intercept=g,
            alpha=self.settings.alpha,
            t=t,
        )

    def penalty(self) -> float:
        """``alpha/2 ||W||^2``, with the intercepts if they are penalised."""
        parts = self.weights if self.settings.penalize_intercept else self.weights[:1]
        return (
            0.5 * self.settings.alpha * sum(float(np.vdot(part, part)) for part in parts)
        )
