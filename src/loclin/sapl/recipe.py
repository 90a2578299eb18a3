"""What a fit of LLC-SAPL needs, and how it begins."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from loclin.anchors import check_anchors
from loclin.codings import SoftAssignmentCoding
from loclin.engine.codes import Intercepts
from loclin.engine.data import Floats, Rows
from loclin.engine.sgd import SGD, SGDFit, SGDStream
from loclin.engine.threads import threads_for
from loclin.fitting.checks import check_flag, check_loss_for, check_number, check_option
from loclin.fitting.encode import Views, fitted_coding
from loclin.fitting.features import PLAIN
from loclin.fitting.mapped import LinearMap
from loclin.fitting.recipe import Before, EndOfRounds, Recipe, Trial
from loclin.fitting.rows import USUAL_ANCHORS, default_n_anchors, hold_out
from loclin.fitting.strength import check_strength
from loclin.fitting.wrapped import Constants
from loclin.portable.words import NearestAnchors
from loclin.sapl.anchors import (
    AT_REST,
    AnchoredModels,
    ByScorer,
    LearnedAnchors,
    one_against_rest,
)
from loclin.sapl.growth import enough_anchors

_FIRST = 8  # anchors, where their number is "auto"
_CODING_ROWS = 2500  # of the anchors of short fits
_MOST_ANCHORS = 400  # where it is ours, of very many rows
_MANY = 100_000  # rows, which a bandwidth learned from them does not overfit
_WIDEST = 100  # features that are stretched: more would be by noise
# In rounds, of which there are about 200, the models' steps begin at a part of `eta0`,
# and fall as if so many rounds were all rows.
_FIRST_STEP, _AS_PASS = 0.1, 4


@dataclass(frozen=True, kw_only=True)
class SAPLRecipe(Recipe):
    """What a fit of LLC-SAPL needs."""

    n_anchors: int | str | None
    n_neighbors: int
    bandwidth: float | str
    anchors: Any
    anchor_lr: float
    weights: str
    share_anchors: bool
    penalize_intercept: bool

    multiplies_features = True
    follows_moments = True
    can_do_with_columns = True
    coding_name = "anchors"
    learns_codes = True
    end_of_rounds = EndOfRounds(share=2.5, averaged=8)

    def check(self) -> None:
        """Raise where a parameter is not valid."""
        if self.n_anchors is not None and self.n_anchors != "auto":
            check_number("n_anchors", self.n_anchors, Integral, low=1, open_high=True,
                         hint='or "auto" or None')  # fmt: skip
        if self.n_anchors == "auto" and not isinstance(self.anchors, str):
            raise ValueError(
                "n_anchors='auto' cannot start from given anchors; leave out one."
            )
        check_number("n_neighbors", self.n_neighbors, Integral, low=1, open_high=True)
        if self.bandwidth not in ("auto", "learned"):
            check_number("bandwidth", self.bandwidth, low=0, open_low=True, open_high=True,
                         hint='or "auto" or "learned"')  # fmt: skip
        check_anchors("anchors", self.anchors)
        check_number("anchor_lr", self.anchor_lr, low=0, high=1e10)
        check_option("weights", self.weights, {"linear", "constant"})
        check_loss_for("descent", self.loss)
        check_strength("alpha", self.alpha)
        check_number("eta0", self.eta0, low=0, open_low=True)
        check_flag("share_anchors", self.share_anchors)
        check_flag("penalize_intercept", self.penalize_intercept)

    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """
        if self.n_anchors != "auto":
            return None
        return (
            "partial_fit needs a number of anchors; n_anchors='auto' must see all rows."
        )

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return short fits from the anchors of all rows, or of enough:
        they know no labels.
        """
        changes: dict[str, Any] = {"n_anchors": None} if self.n_anchors == "auto" else {}
        if (
            self.n_anchors is None
            and isinstance(self.anchors, str)
            and self.anchors == "kmeans"
        ):
            metric, rng = LinearMap(root=self.root), np.random.default_rng(self.seed)
            some = slice(None, None, -(-len(rows.y) // _CODING_ROWS))
            few = Rows(rows.X[some], rows.y[some], rows.weights[some])
            coding = self._starting_coding(metric.of_rows(few), rng)
            changes |= {"anchors": metric.back(coding.anchors_, -1), "features": PLAIN}
        return Trial(changes, longer=2)

    def start(self, rows: Rows, rng: np.random.Generator, before: Before | None) -> Any:
        """Begin the descent, of all scorers or of each, or go on from the anchors before."""
        some = self.rounds(rows, rng).some()
        solvers = self._solvers(some, len(rows.y), rng, before, self._rates(rows))
        views, fits = self._views, []
        seen = views(rows.X) if some is rows else None
        goes_on = before is not None and not self.takes_rounds(len(rows.y))
        rested = AT_REST * len(rows.y) if goes_on else 0
        for k, (solver, own) in enumerate(
            zip(solvers, rng.spawn(len(solvers)), strict=True)
        ):
            self._schedule(solver, some, len(rows.y), before)
            target = rows.y if self.share_anchors else one_against_rest(rows.y, k)
            rounds = self.rounds(rows._replace(y=target), own, before, as_pass=_AS_PASS)
            fits.append(SGDFit(solver, rounds, views, own, seen, rested))
        return self._as_one(fits, rows.X.shape[1])

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> Any:
        """Begin the descent on a stream."""
        solvers = self._solvers(rows, len(rows.y), rng, before, self._rates(None))
        streams = [
            SGDStream(solver, own, self._views)
            for solver, own in zip(solvers, rng.spawn(len(solvers)), strict=True)
        ]
        if before is not None:
            for stream in streams:
                stream.follow(before.learned.alpha, before.learned.t)
        return self._as_one(streams, rows.X.shape[1])

    def _as_one(self, parts: list[Any], n_features: int) -> Any:
        whole = parts[0] if self.share_anchors else ByScorer(parts, self.n_jobs)
        return whole if self.weights == "linear" else Constants(whole, n_features)

    def _solvers(
        self, rows: Rows, n_samples: int, rng: np.random.Generator, before: Before | None,
        rates: tuple[float, float],
    ) -> list[SGD]:  # fmt: skip
        """One solver for all scorers, or one for each, at the start or at the fit before."""
        if before is not None:
            return self._solvers_after(before.learned, rows, rates)
        number = None
        if self.n_anchors is None:
            number = max(USUAL_ANCHORS, min(n_samples // 2500, _MOST_ANCHORS))
        elif self.n_anchors == "auto":
            number = self._grow(rows, rng)
        coder = self._starting_coding(rows, rng, number)._coder()
        n_solvers = 1 if self.share_anchors else len(self.classes)
        starts = [
            self._learned_anchors(rows, coder, AT_REST, rates) for _ in range(n_solvers)
        ]
        return [self._solver(rows, anchors) for anchors in starts]

    def _solvers_after(
        self, learned: AnchoredModels, rows: Rows, rates: tuple[float, float]
    ) -> list[SGD]:
        coef, intercept = learned.local_coef, learned.local_intercept
        if self.weights == "constant":
            coef, intercept = intercept[:, :, None], np.zeros_like(intercept)
        histories, solvers = np.atleast_2d(learned.history), []
        for k, coder in enumerate(learned.assignments()):
            own = slice(None) if self.share_anchors else slice(k, k + 1)
            anchors = self._learned_anchors(rows, coder, 0, rates).follow(histories[k])
            solver = self._solver(rows, anchors).set_models(coef[own], intercept[own])
            solvers.append(solver)
        return solvers

    def _rates(self, rows: Rows | None) -> tuple[float, float]:
        """Return the steps of the logarithms of bandwidth and stretches;
        a stream gives no rows.
        """
        many = rows is not None and len(rows.y) > _MANY
        learns = self.bandwidth == "learned" or (self.bandwidth == "auto" and many)
        stretches = many and rows is not None and self.n_features <= _WIDEST
        of_bandwidth = self.anchor_lr / 2 if learns else 0.0
        return of_bandwidth, min(1.0, self.anchor_lr) / 5 if stretches else 0.0

    def _learned_anchors(
        self,
        rows: Rows,
        coder: NearestAnchors,
        n_at_rest: int,
        rates: tuple[float, float],
    ) -> LearnedAnchors:
        """Anchors that start from those of a soft assignment."""
        return LearnedAnchors(coder, rows.X.dtype, self.anchor_lr, *rates, n_at_rest)

    def _solver(
        self, rows: Rows, anchors: LearnedAnchors, *, shared: bool = False
    ) -> SGD:
        """Solver with these anchors: of one scorer, or of all where they share anchors."""
        intercepts = Intercepts(local=self.weights == "linear", extra=False)
        penalizes = bool(self.penalize_intercept)
        settings = self.settings(
            1.0, len(rows.y), intercepts, penalize_intercept=penalizes
        )
        n_scorers = self.n_scorers if shared or self.share_anchors else 1
        X = self._views.of_models(rows.X[:1])
        return SGD(X, n_scorers, len(anchors.V), settings, anchors)

    def _schedule(
        self, solver: SGD, some: Rows, n_samples: int, before: Before | None
    ) -> None:
        """Set alpha, and the step that follows from it, by the norms of some of the rows.

        Codes have changed since a fit that was cut off began, but not its alpha.
        """
        norm2 = solver.mean_squared_norm(*self._views(some.X))
        alpha = self.strength(norm2, n_samples)
        if before is not None and before.n_done and self.share_anchors:
            alpha = before.learned.alpha
        solver.settings = solver.settings._replace(alpha=alpha)
        solver.count_steps(norm2, self.starting_eta0(n_samples, _FIRST_STEP))

    def _starting_coding(
        self, rows: Rows, rng: np.random.Generator, first: int | None = None
    ) -> SoftAssignmentCoding:
        """Return the coding that the descent starts from, with `first` anchors if given."""
        n_anchors, n_neighbors, anchors = self.n_anchors, self.n_neighbors, self.anchors
        if not isinstance(anchors, str):
            if not (self.linear_map.is_plain and self.features.is_raw):
                points = self.features.of_points(np.array(anchors, rows.X.dtype))
                anchors = self.linear_map.of_field(points, -1)
            n_anchors = n_anchors or 1  # not used: given anchors are counted
        elif n_anchors is None or first:
            fewest = len(self.classes) if anchors == "kmeans_per_class" else 1
            n_numbers, usual = len(self.classes) * rows.X.shape[1], first or USUAL_ANCHORS
            n_anchors = max(fewest, default_n_anchors(len(rows.y), n_numbers, usual))
            n_neighbors = min(n_neighbors, n_anchors)
        return fitted_coding(
            self._coding(n_anchors, n_neighbors, anchors), rows.X, rows.y, rng
        )

    def _coding(
        self, n_anchors: Any, n_neighbors: int, anchors: Any
    ) -> SoftAssignmentCoding:
        bandwidth: float | str = "auto"
        if not isinstance(self.bandwidth, str):
            bandwidth = self.bandwidth / self.multiplier**2
        return SoftAssignmentCoding(n_anchors, n_neighbors, bandwidth, anchors)

    def _grow(self, rows: Rows, rng: np.random.Generator) -> int:
        """Find how many anchors there should be; meanwhile all classes share them."""
        seed = int(rng.integers(2**31 - 1))
        learned, watched = hold_out(
            rows, self.validation_fraction, seed, "n_anchors='auto'"
        )

        def make(start: Floats, models: AnchoredModels | None) -> SGD:
            k = min(self.n_neighbors, len(start))
            coder = self._coding(len(start), k, start).fit(learned.X)._coder()
            at_rest = 1 if models else AT_REST
            anchors = self._learned_anchors(learned, coder, at_rest, self._rates(learned))
            solver = self._solver(learned, anchors, shared=True)
            self._schedule(solver, learned, len(learned.y), None)
            if models:
                solver.set_models(models.local_coef, models.local_intercept)
            return solver

        first = self._starting_coding(
            learned, rng, max(_FIRST, self.n_neighbors)
        ).anchors_
        n_most = max(1, len(learned.y) // 10)
        view = self._views.of_models
        products = float(self.rows_of_batch(len(learned.y))) * first.size
        with threads_for(products):
            return enough_anchors(make, first, learned, watched, view, n_most, rng)

    @property
    def _views(self) -> Views:
        return Views(None, self.weights == "linear")
