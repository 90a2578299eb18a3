"""Stochastic gradient descent for locally linear SVMs with given codes (PEG-LLSVM).

Minimises, over the models ``W`` (s, m, d), ``b`` (s, m) and global intercepts ``g`` (s,),

    alpha/2 (||W||^2 + ||b||^2 + ||g||^2) + 1/(sum w) sum_i w_i loss_i,
    f_y(x) = sum_j code_yj(x) (w_yj . x + b_yj) + g_y,

one against the rest (loss_i sums the losses of all scorers, each with a problem of its own) or with
competing classes (Crammer and Singer).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.averaging import AveragedWeights
from loclin.engine.codes import squared_norms
from loclin.engine.data import Rows
from loclin.engine.losses import Loss
from loclin.engine.rows import compiled_form
from loclin.engine.sgd_pass import sgd_pass
from loclin.engine.streams import Stream

# Rows of a stream that are coded at once.
_STREAM_BLOCK = 10_000


@dataclass
class SGDSettings:
    """What a pass needs to know besides the data.

    `competing`: Crammer and Singer's loss instead of one against the rest. `local`, `extra`: are
    there intercepts of the models, and of the scorers.
    """

    alpha: float
    loss: Loss
    batch_size: int
    competing: bool
    local: bool
    extra: bool
    penalize_intercept: bool


class SGD(AveragedWeights):
    """The state of the descent; its settings are `SGDSettings`."""

    def mean_squared_norm(self, X: Any, codes: Any) -> float:
        """Mean squared norm of the implicit features."""
        return mean_squared_norm(X, codes, self.settings.local)

    def iterate(self, X: Any, codes: Any, y: NDArray[Any], weights: NDArray[Any],
                rng: np.random.Generator, *, average: bool = False) -> float:  # fmt: skip
        """One pass over the rows. Return the objective.

        It is the running estimate gathered during the pass, with the penalty at its end.
        """
        return self._pass(X, compiled_form(codes), None, y, weights, rng, average)

    def _pass(self, X: Any, codes: Any, anchors: Any, y: NDArray[Any], weights: NDArray[Any],
              rng: np.random.Generator, average: bool) -> float:  # fmt: skip
        if average:
            self.begin_average()
        s = self.settings
        order = rng.permutation(np.arange(len(y), dtype=np.int32))
        self.t, averaged, total_loss = sgd_pass(
            compiled_form(X), codes, anchors, y, weights, order, self.W, self.b, self.g,
            self.sums if average else self.no_sums, self.averaged, self.t, s.alpha, int(s.loss),
            s.competing, s.batch_size, s.local, s.extra, s.penalize_intercept,
        )  # fmt: skip
        if average:
            self.averaged = averaged
        return total_loss / float(weights.sum()) + self.penalty()


class SGDFit:
    """The descent over rows held in memory."""

    gap: float | None = None  # the procedure knows none

    def __init__(self, solver: SGD, rows: Rows, codes: Any, rng: np.random.Generator,
                 passed: int = 0) -> None:  # fmt: skip
        self.solver, self.rows, self.codes, self.rng = solver, rows, codes, rng
        self.passed = passed  # rows, by the fits before
        solver.t += passed

    def iterate(self, *, average: bool) -> float:
        """Pass over the rows once."""
        X, y, weights, _ = self.rows
        self.passed += len(y)
        return self.solver.iterate(X, self.codes, y, weights, self.rng, average=average)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        models = self.solver.models(*self.solver.current())
        return models | {"t_": self.passed}


class SGDStream(Stream):
    """The descent on rows that come once."""

    def learn(self, rows: Rows, features: Callable[[Any], tuple[Any, Any]], alpha: float | None,
              batch_size: int) -> tuple[float, float]:  # fmt: skip
        """Learn from the rows, `features(X)` being X as trained on and the codes.

        Returns alpha and the objective over the rows.
        """
        solver, n, total, used = self.solver, len(rows.y), 0.0, 0.0
        solver.settings = replace(solver.settings, batch_size=batch_size)
        for first in range(0, n, _STREAM_BLOCK):
            block = slice(first, first + _STREAM_BLOCK)
            X, codes = features(rows.X[block])
            norm2 = solver.mean_squared_norm(X, codes)
            constant = float(solver.settings.extra)
            used, weights = self.enter(X, rows.weights[block], norm2, alpha, constant)
            solver.forget_average()
            labels = rows.y[block]
            total += len(labels) * solver.iterate(X, codes, labels, weights, self.rng, average=True)
            self.fold(len(labels))
        return used, total / n


def mean_squared_norm(X: Any, codes: Any, local: bool) -> float:
    """Mean squared norm of the implicit features ``code (x) [x; local]``; 1 if all are zero."""
    n_scorers = codes.shape[1] if codes.ndim == 3 else 1
    norms = np.empty((n_scorers, X.shape[0]))
    for y in range(n_scorers):
        squared_norms(compiled_form(X), compiled_form(codes), y, float(local), 0.0, norms[y])
    return float(norms.mean()) or 1.0
