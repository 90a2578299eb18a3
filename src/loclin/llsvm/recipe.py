"""What a fit of LL-SVM needs, and how it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from loclin.codings import SoftAssignmentCoding
from loclin.engine.codes import Intercepts
from loclin.engine.data import Floats, Matrix, Rows
from loclin.engine.dual import DualFit, dual_problems
from loclin.engine.losses import Loss, loss_of, losses_for
from loclin.engine.prediction import in_metric
from loclin.engine.procedure import Procedure
from loclin.engine.rounds import Rounds
from loclin.engine.sgd import SGD, SGDFit, SGDStream, mean_squared_feature_norm
from loclin.fitting.checks import check_flag, check_loss_for, check_number, check_option
from loclin.fitting.encode import (
    Views,
    belongs_to_classes,
    check_classes,
    check_coding,
    fitted_coding,
    seen_by,
)
from loclin.fitting.features import PLAIN
from loclin.fitting.mapped import LinearMap
from loclin.fitting.recipe import DUAL_TRIAL, Before, Recipe, Trial
from loclin.fitting.rows import default_n_anchors
from loclin.fitting.strength import check_strength
from loclin.fitting.wrapped import Constants
from loclin.llsvm.coded import Coded

_CODING_ROWS = 50_000  # of the anchors of short fits


@dataclass(frozen=True, kw_only=True)
class LLSVMRecipe(Recipe):
    """What a fit of LL-SVM needs."""

    coding: Any
    solver: str
    weights: str
    bias: str
    multi_class: str
    penalize_intercept: bool

    multiplies_features = True
    coding_name = "coding"
    can_do_with_columns = True

    def check(self) -> None:
        """Raise where a parameter is not valid."""
        if self.coding is not None:
            check_coding("coding", self.coding)
        check_option("solver", self.solver, {"dual_cd", "sgd"})
        check_option("weights", self.weights, {"linear", "constant"})
        check_option("bias", self.bias, {"local", "global", "both"})
        if self.solver == "sgd" or not isinstance(self.loss, Loss):
            check_loss_for("descent", self.loss)
        check_option("multi_class", self.multi_class, {"ovr", "crammer_singer"})
        check_strength("alpha", self.alpha)
        check_number("eta0", self.eta0, low=0, open_low=True)
        check_flag("penalize_intercept", self.penalize_intercept)
        if self.solver == "dual_cd":
            self._check_dual()

    def _check_dual(self) -> None:
        competing = self.multi_class == "crammer_singer"
        procedure = "competing dual" if competing else "dual"
        losses = losses_for(procedure)
        if procedure not in loss_of(self.loss).serves:
            raise ValueError(
                f"loss={self.loss!r} with multi_class={self.multi_class!r} needs solver='sgd'; "
                f"solver='dual_cd' takes one of {sorted(losses)}."
            )
        if not self.penalize_intercept:
            raise ValueError(
                "penalize_intercept=False needs solver='sgd'; solver='dual_cd' takes True."
            )
        if competing and belongs_to_classes(self.coding):
            raise ValueError(
                "multi_class='crammer_singer' with a coding for each class needs solver='sgd'; "
                "solver='dual_cd' takes a coding that the classes share, or multi_class='ovr'."
            )

    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """
        if self.solver == "sgd":
            return None
        return (
            f"partial_fit needs solver='sgd'; solver={self.solver!r} must see all rows."
        )

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return short fits over the anchors of all rows, or of enough:
        they know no labels.
        """
        trial = DUAL_TRIAL if self.solver == "dual_cd" else Trial({}, longer=2)
        if self.coding is not None:
            return trial._replace(in_metric=not isinstance(self.coding, FrozenEstimator))
        metric, n_samples = LinearMap(root=self.root), len(rows.y)
        if learned is not None:
            coding = learned.coding
        else:
            coding = self._default_coding(rows).set_params(random_state=self.seed)
            coding.fit(metric.of_matrix(rows.X[:: -(-n_samples // _CODING_ROWS)]))
        if self.metric is None:
            return trial._replace(changes={"coding": FrozenEstimator(coding)})
        anchors = metric.back(coding.anchors_, -1)
        known = clone(coding).set_params(anchors=anchors)
        return trial._replace(changes={"coding": known, "features": PLAIN})

    def start(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> Procedure:
        """Begin the descent, or dual coordinate descent, or go on from the fit before."""
        dual = self.solver == "dual_cd"
        rounds = Rounds(rows, None, rng) if dual else self.rounds(rows, rng)
        some = rounds.some()
        coding = (
            self._fitted_coding(some, rng) if before is None else before.learned.coding
        )
        views = self._views(coding)
        seen = views(some.X)
        norm2 = mean_squared_feature_norm(*seen, self._intercepts.local)
        alpha = self.strength(norm2, len(rows.y))
        if dual:
            X, codes = seen
            fit: Procedure = self._start_dual(
                rows._replace(X=X), codes, alpha, rng, coding, before
            )
        else:
            solver = self._descent(*seen, alpha, len(rows.y), coding, before)
            solver.count_steps(norm2 + self._intercepts.extra, self.eta0)
            if before is not None:
                rounds.passed = getattr(before.learned, "t", 0)
            fit = SGDFit(solver, rounds, views, rng, seen)
        return self._coded(fit, coding, rows.X.shape[1])

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> Any:
        """Begin the descent on a stream, whose first rows tell the coding."""
        coding = (
            self._fitted_coding(rows, rng) if before is None else before.learned.coding
        )
        views = self._views(coding)
        solver = self._descent(*views(rows.X[:1]), 1.0, len(rows.y), coding, before)
        stream = SGDStream(solver, rng, views)
        if before is not None:
            stream.follow(before.learned.alpha, getattr(before.learned, "t", 0))
        return self._coded(stream, coding, rows.X.shape[1])

    def _coded(self, inner: Any, coding: Any, n_features: int) -> Coded:
        return Coded(
            inner if self.weights == "linear" else Constants(inner, n_features), coding
        )

    def _start_dual(
        self, rows: Rows, codes: Matrix, alpha: float, rng: np.random.Generator, coding: Any,
        before: Before | None,
    ) -> DualFit:  # fmt: skip
        problems = dual_problems(
            rows, codes, alpha, loss_of(self.loss), self._n_scorers_of(coding),
            competing=self._competes, intercepts=self._intercepts,
            starts=None if before is None else before.kept,
        )  # fmt: skip
        return DualFit(
            problems, self.tol, rng, self.n_jobs, keep_dual=bool(self.warm_start)
        )

    def _descent(
        self, X: Matrix, codes: Matrix, alpha: float, n_samples: int, coding: Any,
        before: Before | None,
    ) -> SGD:  # fmt: skip
        """Return the solver at its start, or where the fit before ended."""
        settings = self.settings(
            alpha, n_samples, self._intercepts, competing=self._competes,
            penalize_intercept=bool(self.penalize_intercept),
        )  # fmt: skip
        n_scorers = self._n_scorers_of(coding)
        solver = SGD(X, n_scorers, codes.shape[-1], settings)
        if before is not None:
            solver.set_models(*self._models_of(before, n_scorers))
        return solver

    def _models_of(self, before: Before, n_scorers: int) -> tuple[Floats, ...]:
        """Models of the fit before, as the solvers take them."""
        coef, intercept = before.learned.local_coef, before.learned.local_intercept
        if len(coef) != n_scorers:
            raise ValueError(
                f"multi_class={self.multi_class!r} differs from that of the fit that is to go on. "
                "Leave it as it was, or start afresh with warm_start=False."
            )
        extra = before.learned.intercept * self._intercepts.extra
        if self.weights == "linear":
            return coef, intercept * self._intercepts.local, extra
        return intercept[:, :, None], np.zeros_like(intercept), extra

    def _fitted_coding(self, rows: Rows, rng: np.random.Generator) -> Any:
        coding = self._default_coding(rows) if self.coding is None else self.coding
        X = LinearMap(1 / self.multiplier).of_matrix(rows.X)
        coding = seen_by(
            coding, lambda V: in_metric(self.features.of_points(V), self.root)
        )
        fitted = fitted_coding(coding, X, self.classes[rows.y], rng)
        check_classes(fitted, self.classes)
        return fitted

    def _default_coding(self, rows: Rows) -> SoftAssignmentCoding:
        """Soft assignment with the paper's 100 anchors and 8 neighbours, or fewer."""
        n_anchors = default_n_anchors(len(rows.y), len(self.classes) * rows.X.shape[1])
        return SoftAssignmentCoding(n_anchors, n_neighbors=min(8, n_anchors))

    def _views(self, coding: Any) -> Views:
        return Views(coding, self.weights == "linear", self.multiplier)

    @property
    def _intercepts(self) -> Intercepts:
        local = self.bias != "global" and self.weights == "linear"
        return Intercepts(local=local, extra=self.bias != "local")

    @property
    def _competes(self) -> bool:
        return self.multi_class == "crammer_singer"

    def _n_scorers_of(self, coding: Any) -> int:
        of_each = self._competes or belongs_to_classes(coding)
        return len(self.classes) if of_each else self.n_scorers
