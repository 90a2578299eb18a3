"""What a fit of L3M needs, and how it begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.anchors import clipped
from loclin.engine.data import Matrix, Rows, mean_squared_norm
from loclin.engine.losses import loss_of
from loclin.engine.procedure import Procedure
from loclin.engine.threads import threads_for
from loclin.fitting.checks import check_loss_for, check_number, check_option
from loclin.fitting.recipe import Before, Recipe, Trial
from loclin.fitting.rows import can_hold_out, hold_out
from loclin.fitting.strength import check_strength
from loclin.l3m.convex import ConvexFit, Problem
from loclin.l3m.online import Online, OnlineFit, OnlineRun, OnlineStream, Settings, Sums
from loclin.l3m.outputs import Vector, block_products, occurring_columns
from loclin.l3m.refined import (
    PASSES,
    SCHEDULE,
    Annealing,
    RefinedFit,
    best_number,
    draw_partition,
)

_REGIONS = 6  # the paper's number
RESTARTS = {"convex": 30, "refined": 3, "online": 5}
_AUTO = (2, 4, 8, 16, 32)  # regions that n_regions="auto" tries


@dataclass(frozen=True, kw_only=True)
class L3MRecipe(Recipe):
    """What a fit of L3M needs.

    Parameters
    ----------
    passes : int
        Of a round of the refined solver.
    """

    n_regions: int | str | None
    solver: str
    margin: float
    n_restarts: int | None
    batch_size: int | str = 1
    passes: int = PASSES

    multiplies_features = True
    alpha_unit = 0.4  # by cross-validation (docs/notes/l3m.md)

    def check(self) -> None:
        """Raise where a parameter is not valid."""
        if self.n_regions is not None and self.n_regions != "auto":
            hint = 'or "auto" or None'
            check_number(
                "n_regions", self.n_regions, Integral, low=2, open_high=True, hint=hint
            )
        check_option("solver", self.solver, RESTARTS)
        check_loss_for("partition", self.loss)
        check_strength("alpha", self.alpha)
        hint = "without a margin the optimum is one classifier"
        check_number(
            "margin", self.margin, low=0, open_low=True, open_high=True, hint=hint
        )
        if self.n_restarts is not None:
            hint = "or None"
            check_number(
                "n_restarts", self.n_restarts, Integral, low=1, open_high=True, hint=hint
            )
        check_number("eta0", self.eta0, low=0, open_low=True, open_high=True)

    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """
        if self.solver != "online":
            return "partial_fit needs solver='online'; the others must see all rows."
        if self.n_regions == "auto":
            return "partial_fit needs a number of regions; 'auto' must see all rows."
        return None

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return short fits, each with a partition of its own."""
        if self.solver == "convex":
            return Trial({"n_restarts": 1}, n_iterations=0, n_calibrating=1)
        given = {} if self.n_regions != "auto" else {"n_regions": None}
        # each strength anneals a partition of its own: that of another is no good
        short = {"n_restarts": 1, "passes": 12}
        return Trial(
            short | given, n_iterations=4, goes_on=False, n_calibrating=len(SCHEDULE) + 1
        )

    def start(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> Procedure:
        """Begin the solver asked for, or go on from the fit before."""
        alpha = self.strength(mean_squared_norm(rows.X) + 1.0, len(rows.y))
        if self.solver == "convex":
            return self._start_convex(rows, rng, alpha)
        if before is not None and self.solver == "online" and before.kept is None:
            raise ValueError(
                "solver='online' goes on from a model of its own only; this one is of another "
                "solver. Set warm_start=False to start afresh."
            )
        start = self._start_refined if self.solver == "refined" else self._start_online
        return start(rows, rng, alpha, before)

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> OnlineStream:
        """Begin the online solver on a stream."""
        if before is None:
            n, n_regions = (
                len(rows.y),
                _REGIONS if self.n_regions is None else int(self.n_regions),
            )
            if n < n_regions:
                raise ValueError(
                    f"The first call of partial_fit has {n} rows, fewer than n_regions="
                    f"{n_regions}: the constraints need as many. Give more rows at first."
                )
            runs, sums = self._runs(rows, rng, n_regions), Sums()
        elif before.kept is None:
            raise ValueError(
                "partial_fit goes on from a model of solver='online' only; this one is of another "
                "solver. Fit anew, or use a clone."
            )
        else:
            runs, sums = [run.copy() for run in before.kept.runs], before.kept.sums
        return OnlineStream(
            Online(runs, self.n_jobs), sums, self.factor * self.alpha_unit, self.eta0
        )

    @property
    def can_do_with_columns(self) -> bool:  # type: ignore[override]
        """Tell whether a fit may see the columns used alone: online runs keep all."""
        return self.solver != "online"

    @property
    def _n_restarts(self) -> int:
        return RESTARTS[self.solver] if self.n_restarts is None else int(self.n_restarts)

    def _start_convex(
        self, rows: Rows, rng: np.random.Generator, alpha: float
    ) -> ConvexFit:
        n_regions = self._n_regions(rows, rng, alpha)
        margin, loss = float(self.margin), loss_of(self.loss)
        problem = Problem(rows, n_regions, self.n_scorers, alpha, margin, loss)
        return ConvexFit(problem, self._n_restarts, rng, self.n_jobs, self.tol)

    def _start_refined(
        self, rows: Rows, rng: np.random.Generator, alpha: float, before: Before | None
    ) -> RefinedFit:
        if before is not None:  # the models may have columns that do not occur here
            annealing = self._annealing(alpha, None)(rows, before.learned.n_regions)
            v = annealing.outputs.of_models(before.learned.regional)
            return RefinedFit(annealing, v, n_rounds=before.n_done or len(SCHEDULE))
        partition = self._best_partition(rows, rng, alpha)
        annealing = self._annealing(alpha, occurring_columns(rows.X))(
            rows, len(partition)
        )
        return RefinedFit(annealing, annealing.start(partition), n_passes=self.passes)

    def _start_online(
        self, rows: Rows, rng: np.random.Generator, alpha: float, before: Before | None
    ) -> OnlineFit:
        if before is not None:
            runs = [run.copy() for run in before.kept.runs]
        else:
            runs = self._runs(rows, rng, self._n_regions(rows, rng, alpha))
        return OnlineFit(Online(runs, self.n_jobs), rows, alpha, self.eta0)

    def _n_regions(self, rows: Rows, rng: np.random.Generator, alpha: float) -> int:
        """Return the number of regions asked for, or the best for the refined model."""
        if self.n_regions == "auto":
            return len(self._best_partition(rows, rng, alpha))
        return self._given(len(rows.y))

    def _given(self, n_samples: int) -> int:
        """Return the number of regions asked for, or the default."""
        if self.n_regions is None:
            return min(_REGIONS, max(2, n_samples // 10))
        return clipped(
            "n_regions", int(self.n_regions), n_samples, f"X has {n_samples} rows"
        )

    def _annealing(
        self, alpha: float, columns: NDArray[np.intp] | None
    ) -> partial[Annealing]:
        """Return what makes the descent over some of the rows, for a number of regions."""
        loss = loss_of(self.loss)
        return partial(
            Annealing, n_scorers=self.n_scorers, alpha=alpha, loss=loss, columns=columns
        )

    def _best_partition(
        self, rows: Rows, rng: np.random.Generator, alpha: float
    ) -> Vector:
        """Return the partition to start from:
        the least held-out risk of the refined model.
        """
        n, auto = len(rows.y), self.n_regions == "auto"
        numbers = [r for r in _AUTO if r <= max(2, n // 10)] if auto else [self._given(n)]
        with threads_for(block_products(rows.X, _REGIONS * (self.n_scorers + 1))):
            draws = self._draw_partitions(rows.X, rng, numbers)
            can_choose = can_hold_out(rows, self.validation_fraction)
            if not auto and (self._n_restarts == 1 or not can_choose):
                return next(draws)[0]
            seed = int(rng.integers(2**31 - 1))
            parts = hold_out(rows, self.validation_fraction, seed, "n_regions='auto'")
            make = self._annealing(alpha, occurring_columns(rows.X))
            return best_number(make, *parts, draws, self.n_jobs)

    def _draw_partitions(
        self, X: Matrix, rng: np.random.Generator, numbers: list[int]
    ) -> Iterator[list[Vector]]:
        """Yield partitions to start from, for each number of regions."""
        for r in numbers:
            yield [draw_partition(X, r, own) for own in rng.spawn(self._n_restarts)]

    def _runs(
        self, rows: Rows, rng: np.random.Generator, n_regions: int
    ) -> list[OnlineRun]:
        settings = Settings(
            n_regions, self.n_scorers, float(self.margin), loss_of(self.loss).compiled
        )
        return [OnlineRun(rows, settings, own) for own in rng.spawn(self._n_restarts)]
