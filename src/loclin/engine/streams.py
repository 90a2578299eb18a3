"""What every procedure does with rows that come once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from loclin.engine.averaging import AveragedWeights, DescentModels
from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.losses import known_loss
from loclin.engine.procedure import Change, Part, StreamProcedure
from loclin.engine.schedule import auto_alpha, stable_eta0, step_offset

# First step of a stream: smaller than that of a fit, since with alpha falling as 1/n it
# stays.
_STREAM_ETA0 = 1.0


def share_of_last(n: int, n_before: int) -> float:
    """Share of the last n rows in an average of n_before rows that decays with degree 3."""
    return min(1.0, 4.0 * n / (n_before + 4.0 * n))


class Stream(StreamProcedure):
    """A stochastic procedure on rows that come once.

    Unless given, alpha follows the rule of `auto_alpha` for the rows seen so far; then
    steps do not fall. The model is a running average of the iterates that forgets the
    early ones.

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

    counts = ("n_seen", "n_averaged", "squared_norm_sum")

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        expected = [part for part in self.solver.parts() if not part.adds_up]
        if self.mean is None:
            return None
        if len(self.mean) != len(expected):
            return "mean lacks some of what the solver learns"
        for number, (mean, part) in enumerate(zip(self.mean, expected, strict=True)):
            if (mean.size, mean.dtype) != (part.value.size, part.value.dtype):
                shapes = mean.shape, part.value.shape
                return f"mean[{number}] has shape {shapes[0]}, but what it is of has {shapes[1]}"
        return None

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a batch."""
        return self.solver.products

    def follow(self, alpha: float, t: int) -> Self:
        """Go on from a finished fit, whose models the solver has:
        its alpha, its step counter.
        """
        self.followed = alpha, t
        return self

    def state(self) -> tuple[Part, ...]:
        """Return what the solver learns, beside its running mean."""
        return tuple(self.solver.parts(self.mean))

    def remap(self, change: Change) -> None:
        """Go on in other units of the features."""
        parts = self.state()
        constants = {part.of: part for part in parts if part.of is not None}
        for part in parts:
            for place in ("value", "mean"):
                array = getattr(part, place)
                if array is None or part.power == 0:
                    continue
                if change.added is not None and part.name in constants:
                    of_functions = getattr(constants[part.name], place)
                    of_functions += change.added(array).ravel()
                array[...] = change.of_field(array, part.power)

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
        return self.solver.fitted(
            self.n_seen + before, *(self.mean or self.solver.current())
        )
