"""What every procedure does with rows that come once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.schedule import auto_alpha, stable_eta0, step_offset

# First step of a stream: smaller than that of a fit, since with alpha falling as 1/n it stays.
_STREAM_ETA0 = 1.0


class Stream:
    """A stochastic procedure on rows that come once.

    Unless given, alpha follows the rule of `auto_alpha` for the rows seen so far; then steps do not
    fall. The model is a running average of the iterates that forgets the early ones.

    Parameters
    ----------
    solver : AveragedWeights
        With `settings` (among them alpha and batch_size) and a step counter `t`.
    rng : Generator
    """

    def __init__(self, solver: Any, rng: np.random.Generator) -> None:
        self.solver, self.rng = solver, rng
        self.n_seen = 0
        self.weight_sum = 0.0
        self.squared_norm_sum = 0.0
        self.n_averaged = 0
        self.mean: tuple[NDArray[Any], ...] | None = None
        self.followed: tuple[float, float] | None = None

    def follow(self, alpha: float, t: float) -> Self:
        """Go on from a finished fit, whose models the solver has: its alpha, its step counter."""
        self.followed = (alpha, float(t))
        return self

    def enter(self, X: Any, weights: NDArray[Any], mean_squared_norm: float, alpha: float | None,
              constant: float = 0.0) -> tuple[float, NDArray[Any]]:  # fmt: skip
        """Count rows in, and set the solver's alpha and step.

        `constant` is a part of the squared norms that the rule for alpha leaves out. Returns alpha,
        and the weights in units of the mean weight so far.
        """
        solver, n = self.solver, X.shape[0]
        if sparse.issparse(X) != solver.is_sparse:  # the stream has changed its kind
            solver.change_layout()
            if self.mean is not None:
                self.mean = np.ascontiguousarray(self.mean[0].T), *self.mean[1:]
        self.n_seen += n
        self.weight_sum += float(weights.sum(dtype=np.float64))
        self.squared_norm_sum += n * mean_squared_norm
        mean = self.squared_norm_sum / self.n_seen
        if self.followed is not None:
            alpha, passed = self.followed
        else:
            alpha, passed = alpha or auto_alpha(mean, self.n_seen), 0.0
        settings = replace(solver.settings, alpha=alpha)
        eta0 = stable_eta0(_STREAM_ETA0, settings.loss, settings.batch_size)
        solver.t = passed + self.n_seen - n + step_offset(alpha, mean + constant, eta0)
        solver.settings = settings
        return alpha, weights * X.dtype.type(self.n_seen / self.weight_sum)

    def fold(self, n: int) -> None:
        """Fold the mean iterate of the last n rows into the running average.

        The average decays polynomially, with degree 3.
        """
        block_mean = self.solver.current()
        if self.mean is None:
            self.mean = block_mean
        else:
            share = min(1.0, 4.0 * n / (self.n_averaged + 4.0 * n))
            for mean, new in zip(self.mean, block_mean, strict=True):
                mean += mean.dtype.type(share) * (new - mean)
        self.n_averaged += n

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        solver = self.solver
        models = solver.models(*(self.mean or solver.current()))
        before = int(self.followed[1]) if self.followed else 0
        return models | {"n_iter_": 1, "t_": self.n_seen + before}
