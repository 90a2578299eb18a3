"""What a fit of ML3 needs, and how it begins."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from loclin.engine.averaging import check_n_models
from loclin.engine.data import Rows, mean_squared_norm
from loclin.engine.losses import loss_of
from loclin.engine.schedule import step_offset
from loclin.fitting.checks import check_flag, check_loss_for, check_number
from loclin.fitting.encode import check_coding, seen_by
from loclin.fitting.recipe import Before, EndOfRounds, Recipe, Trial
from loclin.fitting.strength import check_strength
from loclin.ml3.cccp import CCCP, CCCPSettings
from loclin.ml3.runs import CCCPFit, CCCPStream
from loclin.ml3.starts import starting_codes

# In rounds steps begin at a part of `eta0`, and fall as if one round were all rows: where
# they are long, or stay so, many a fit to the rows of `benchmarks.many_rows` levels off
# early, with twice the errors.
_FIRST_STEP, _AS_PASS = 1 / 15, 1
_MODELS, _ROWS_OF_A_MODEL = 16, 2  # of a class, and of each of them at least


@dataclass(frozen=True, kw_only=True)
class ML3Recipe(Recipe):
    """What a fit of ML3 needs."""

    n_models: int | None
    p: float
    init: Any
    s0: float
    revive: bool
    penalize_intercept: bool

    multiplies_features = True
    follows_moments = True
    coding_name = "init"
    can_do_with_columns = True
    learns_codes = True
    end_of_rounds = EndOfRounds(patience=2)

    def check(self) -> None:
        """Raise where a parameter is not valid."""
        if self.n_models is not None:
            check_number("n_models", self.n_models, Integral, low=1, hint="or None")
        check_number(
            "p", self.p, low=1, hint="1 lets one model act, inf all positive ones"
        )
        check_strength("alpha", self.alpha)
        check_loss_for("concave-convex", self.loss)
        check_coding("init", self.init, {"random", "kmeans"})
        check_number("eta0", self.eta0, low=0, open_low=True, hint="inf is the paper's")
        check_number("s0", self.s0, low=0, open_low=True, open_high=True)
        check_flag("revive", self.revive)
        check_flag("penalize_intercept", self.penalize_intercept)

    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """
        return None

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return short fits of as many models as all rows get."""
        return Trial({"n_models": self._count_of(rows)}, most_draws=2)

    def start(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> CCCPFit:
        """Begin the concave-convex procedure, or go on from the models before."""
        n, norm2 = len(rows.y), mean_squared_norm(rows.X) + 1.0
        alpha = self.strength(norm2, n)
        m = self._count_of(rows) if before is None else self._count_so_far(before)
        solver = CCCP(rows.X, len(self.classes), self._settings(alpha, m, n))
        rounds = self.rounds(rows, rng, before, as_pass=_AS_PASS)
        schedule = (
            step_offset(alpha, norm2, self.starting_eta0(n, _FIRST_STEP)),
            float(self.s0),
        )
        if before is not None:
            solver.set_models(before.learned.local_coef, before.learned.local_intercept)
            return CCCPFit(solver, rounds, rng, *schedule)
        init = self.init
        if not isinstance(init, str):
            init = seen_by(init, self.features.of_points)
        start = starting_codes(init, m, float(self.p), rounds, self.classes, rng)
        return CCCPFit(solver, rounds, rng, *schedule, start=start)

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> CCCPStream:
        """Begin the procedure on a stream."""
        m = (
            int(self.n_models or _MODELS)
            if before is None
            else self._count_so_far(before)
        )
        solver = CCCP(rows.X, len(self.classes), self._settings(1.0, m, len(rows.y)))
        stream = CCCPStream(solver, rng)
        if before is not None:
            solver.set_models(before.learned.local_coef, before.learned.local_intercept)
            stream.follow(before.learned.alpha, before.learned.t)
        return stream

    def _count_of(self, rows: Rows) -> int:
        """Return the number of models of each class in a fit to these rows."""
        if self.n_models is not None:
            return int(self.n_models)
        if self.streams:
            return _MODELS
        return max(1, min(_MODELS, len(rows.y) // (_ROWS_OF_A_MODEL * len(self.classes))))

    def _count_so_far(self, before: Before) -> int:
        """Return the number of models of each class in the fit that is to go on."""
        coef = before.learned.local_coef
        if self.n_models is not None:
            check_n_models(self.n_models, coef)  # before memory is taken
        return int(coef.shape[1])

    def _settings(self, alpha: float, n_models: int, n_samples: int) -> CCCPSettings:
        return CCCPSettings(
            alpha=alpha,
            n_models=n_models,
            p=float(self.p),
            loss=loss_of(self.loss).compiled,
            batch_size=self.rows_of_batch(n_samples),
            penalize_intercept=bool(self.penalize_intercept),
            revive=bool(self.revive),
        )
