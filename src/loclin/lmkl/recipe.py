"""What a fit of L-MKL needs, and how it begins."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from loclin.anchors import auto_bandwidth, distinct_centres
from loclin.engine.codes import Intercepts
from loclin.engine.data import Floats, Rows, mean_squared_norm
from loclin.engine.dual import DualFit, dual_problems
from loclin.engine.losses import loss_of
from loclin.engine.procedure import Procedure
from loclin.engine.sgd import SGDStream, mean_squared_feature_norm
from loclin.fitting.checks import check_loss_for, check_number, check_option
from loclin.fitting.descent import learning_fit, learning_stream
from loclin.fitting.recipe import Before, Recipe, Trial
from loclin.fitting.strength import check_strength
from loclin.lmkl.gates import Alternation, LearnedGates, solved

_MODELS = 20  # by default, of enough rows


@dataclass(frozen=True, kw_only=True)
class LMKLRecipe(Recipe):
    """What a fit of L-MKL needs."""

    n_models: int | None
    solver: str
    bias: str
    gate_lr: float

    multiplies_features = True
    follows_moments = True
    can_do_with_columns = True

    def check(self) -> None:
        """Raise where a parameter is not valid."""
        if self.n_models is not None:
            check_number(
                "n_models", self.n_models, Integral, low=1, open_high=True, hint="or None"
            )
        check_option("solver", self.solver, {"sgd", "alternating"})
        check_option("bias", self.bias, {"local", "global"})
        check_number("gate_lr", self.gate_lr, low=0, open_high=True)
        procedure = "descent" if self.solver == "sgd" else "dual"
        check_loss_for(procedure, self.loss, hint=f" with solver={self.solver!r}")
        check_strength("alpha", self.alpha)
        check_number("eta0", self.eta0, low=0, open_low=True)

    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """
        if self.solver == "sgd":
            return None
        return "partial_fit needs solver='sgd'; solver='alternating' must see all rows."

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return short fits of the same kind."""
        return Trial({})

    def start(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> Procedure:
        """Begin the descent, or the alternation of dual problems and steps of the gates."""
        some = self.rounds(rows, rng).some()
        gates = self._gates(some, rng, before)
        if self.solver == "sgd":
            return learning_fit(self, gates, some, rows, rng, self._intercepts, before)
        norm2 = mean_squared_feature_norm(
            some.X, gates.codes(some.X), self._intercepts.local
        )
        alpha = self.strength(norm2, len(rows.y))

        def solve(codes: Floats, duals: Any) -> DualFit:
            problems = dual_problems(
                rows, codes, alpha, loss_of(self.loss), self.n_scorers, competing=False,
                intercepts=self._intercepts, starts=duals,
            )  # fmt: skip
            return solved(DualFit(problems, self.tol, rng))

        return Alternation(rows, gates.U, gates.c, solve, gates.rate)

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> SGDStream:
        """Begin the descent on a stream."""
        gates = self._gates(rows, rng, before)
        return learning_stream(self, gates, rows, rng, self._intercepts, before)

    def _gates(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> LearnedGates:
        """Return the gates of the fit before,
        or those of soft assignment to centres of k-means.
        """
        X, rate = rows.X, float(self.gate_lr / np.sqrt(1 + mean_squared_norm(rows.X)))
        if before is not None:
            learned = before.learned
            return LearnedGates(
                learned.gate_coef.copy(), learned.gate_intercept.copy(), rate
            )
        m = self.n_models or max(1, min(_MODELS, len(rows.y) // 10))
        centres = distinct_centres(X, min(m, len(rows.y)), int(rng.integers(2**31 - 1)))
        centres = centres[np.arange(m) % len(centres)]  # as many, of few distinct rows
        bandwidth = X.dtype.type(auto_bandwidth(X, centres, 1))
        constants = -bandwidth * np.einsum("jf,jf->j", centres, centres)
        return LearnedGates(2 * bandwidth * centres, constants, rate)

    @property
    def _intercepts(self) -> Intercepts:
        return Intercepts(local=self.bias == "local", extra=self.bias == "global")
