"""What every procedure does with rows that come once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from loclin.engine.averaging import AveragedWeights, DescentModels
from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.losses import known_loss
from loclin.engine.procedure import Change, StreamProcedure
from loclin.engine.rows import as_models
from loclin.engine.schedule import auto_alpha, stable_eta0, step_offset

# First step of a stream: smaller than that of a fit, since with alpha falling as 1/n it stays.
_STREAM_ETA0 = 1.0


def share_of_last(n: int, n_before: int) -> float:
    """Share of the last n rows in an average of n_before rows that decays with degree 3."""
    return min(1.0, 4.0 * n / (n_before + 4.0 * n))


class Stream(StreamProcedure):
    """A stochastic procedure on rows that come once.

    Unless given, alpha follows the rule of `auto_alpha` for the rows seen so far; then steps do not
    fall. The model is a running average of the iterates that forgets the early ones.

    Parameters
    ----------
    solver : AveragedWeights
        Its settings have alpha, loss and batch_size.
    rng : Generator
    """

    solver: AveragedWeights
    rng: np.random.Generator
    squared_norm_sum: float
    n_averaged: int
    mean: tuple[Floats, ...] | None
    followed: tuple[float, int] | None

    def __init__(self, solver: Any, rng: np.random.Generator) -> None:
        self.solver, self.rng = solver, rng
        self.squared_norm_sum = 0.0
        self.n_averaged = 0
        self.mean, self.followed = None, None

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        expected = [*self.solver.weights]
        coder = getattr(self.solver, "coder", None)
        expected += [getattr(coder, name) for name in getattr(coder, "learned", ())]
        if self.mean is not None and len(self.mean) < len(expected):
            return "mean lacks some of what the solver learns"
        for number, (part, of_solver) in enumerate(zip(self.mean or (), expected, strict=False)):
            if (part.shape, part.dtype) != (of_solver.shape, of_solver.dtype):
                shapes = part.shape, of_solver.shape
                return f"mean[{number}] has shape {shapes[0]}, but what it is of has {shapes[1]}"
        return None

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a batch."""
        return self.solver.products

    def follow(self, alpha: float, t: int) -> Self:
        """Go on from a finished fit, whose models the solver has: its alpha, its step counter."""
        self.followed = alpha, t
        return self

    def remap(self, change: Change) -> None:
        """Go on in other units of the features."""
        moving = self.solver.moving()
        self._change(moving, change)
        means = zip(self.mean or (), (power for _, power in moving), strict=False)
        self._change(list(means), change)

    def _change(self, moving: list[tuple[Floats, int]], change: Change) -> None:
        """Change arrays in place; those after coefficients are constants of the same functions."""
        of_models = self.solver.is_sparse, self.solver.n_models
        for k, (value, power) in enumerate(moving):
            if power == 0:
                continue
            fields = as_models(value, *of_models) if k == 0 else value
            if power == 1 and change.added is not None:
                moving[k + 1][0][:] += change.added(fields).ravel()
            fields[:] = change.of_field(fields, power)

    def enter(self, X: Matrix, mean_squared_norm: float, alpha: float | None,
              constant: float = 0.0) -> None:  # fmt: skip
        """Count rows in, set the solver's alpha and step, and begin a new average.

        `constant` is a part of the squared norms that the rule for alpha leaves out.
        """
        solver, n = self.solver, X.shape[0]
        if is_sparse(X) != solver.is_sparse:  # the stream has changed its kind
            solver.change_layout()
            if self.mean is not None:
                self.mean = np.ascontiguousarray(self.mean[0].T), *self.mean[1:]
        self.n_seen += n
        self.squared_norm_sum += n * mean_squared_norm
        mean = self.squared_norm_sum / self.n_seen
        if self.followed is not None:
            alpha, passed = self.followed
        else:
            alpha, passed = alpha or auto_alpha(mean, self.n_seen), 0
        settings = solver.settings._replace(alpha=alpha)
        eta0 = stable_eta0(_STREAM_ETA0, known_loss(settings.loss), settings.batch_size)
        solver.t = passed + self.n_seen - n + step_offset(alpha, mean + constant, eta0)
        solver.settings = settings
        solver.forget_average()

    def fold(self, n: int) -> None:
        """Fold the mean iterate of the last n rows into the running average.

        The average is a fresh array: models that were handed out do not change.
        """
        block_mean = self.solver.current()
        if self.mean is None:
            self.mean = block_mean
        else:
            share = share_of_last(n, self.n_averaged)
            self.mean = tuple(
                mean + mean.dtype.type(share) * (new - mean)
                for mean, new in zip(self.mean, block_mean, strict=True)
            )
        self.n_averaged += n
        self.solver.forget_average()

    def result(self, *, final: bool = False) -> DescentModels:
        """Return the model as it stands."""
        before = self.followed[1] if self.followed else 0
        return self.solver.fitted(self.n_seen + before, *(self.mean or self.solver.current()))
