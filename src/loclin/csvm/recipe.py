"""What a fit of CSVM needs, and how it begins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from loclin.anchors import clipped, distinct_centres
from loclin.csvm.pulled import LongVectors, Pulled
from loclin.engine.codes import Intercepts
from loclin.engine.data import Floats, Matrix, Rows
from loclin.engine.dual import DualFit, dual_problems
from loclin.engine.losses import loss_of
from loclin.engine.sgd import SGD, SGDStream, mean_squared_feature_norm
from loclin.fitting.checks import check_loss_for, check_number, check_option
from loclin.fitting.features import PLAIN
from loclin.fitting.recipe import DUAL_TRIAL, Before, Recipe, Trial
from loclin.fitting.strength import check_strength

_MOST_CLUSTERS, _CLUSTER_ROWS = (
    64,
    30,
)  # at most so many clusters, of so many rows on average
# One for each model, penalised like the weight of a feature that is always 1.
_INTERCEPTS = Intercepts(local=True, extra=False)


@dataclass(frozen=True, kw_only=True)
class CSVMRecipe(Recipe):
    """What a fit of CSVM needs."""

    n_clusters: int | None
    global_penalty: float
    centers: str | ArrayLike
    multi_class: str

    multiplies_features = True
    can_do_with_columns = True
    coding_name = "centers"

    def check(self) -> None:
        """Raise where a parameter is not valid."""
        if self.n_clusters is not None:
            check_number("n_clusters", self.n_clusters, Integral, low=1, open_high=True,
                         hint="or None")  # fmt: skip
        check_number("global_penalty", self.global_penalty, low=1e-12, high=1e12)
        if isinstance(self.centers, str):
            check_option("centers", self.centers, {"kmeans"})
        check_loss_for("dual", self.loss)
        check_option("multi_class", self.multi_class, {"ovr", "crammer_singer"})
        if self.competes and "competing dual" not in loss_of(self.loss).serves:
            raise ValueError(
                f"loss={self.loss!r} needs multi_class='ovr'; multi_class='crammer_singer' takes "
                "loss='hinge'."
            )
        check_strength("alpha", self.alpha)

    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """
        return None

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return short fits over the clusters of all rows: they know no labels."""
        if not isinstance(self.centers, str):
            return DUAL_TRIAL
        if learned is not None:
            centers = learned.cluster_centers
        else:
            centers = self._find_centers(rows.X, np.random.default_rng(self.seed))
        return DUAL_TRIAL._replace(changes={"centers": centers, "features": PLAIN})

    def start(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> Pulled:
        """Begin dual coordinate descent, or go on from the dual variables before."""
        views = self._long_vectors(rows, rng, before)
        X, codes = views(rows.X)
        norm2 = mean_squared_feature_norm(X, codes, _INTERCEPTS.local)
        problems = dual_problems(
            rows, codes, self.strength(norm2, len(rows.y)), loss_of(self.loss),
            self.n_competitors, competing=self.competes, intercepts=_INTERCEPTS,
            starts=None if before is None else before.kept,
        )  # fmt: skip
        fit = DualFit(
            problems, self.tol, rng, self.n_jobs, keep_dual=bool(self.warm_start)
        )
        return Pulled(fit, views)

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> Pulled:
        """Begin stochastic descent on the same problem."""
        views = self._long_vectors(rows, rng, before)
        settings = self.settings(1.0, len(rows.y), _INTERCEPTS, competing=self.competes)
        solver = SGD(rows.X, self.n_competitors, 1 + len(views.centers), settings)
        stream = SGDStream(solver, rng, views)
        if before is not None:
            solver.set_models(*views.long_models(before.learned))
            stream.follow(before.learned.alpha, getattr(before.learned, "t", 0))
        return Pulled(stream, views)

    @property
    def competes(self) -> bool:
        """Tell whether classes compete."""
        return self.multi_class == "crammer_singer"

    @property
    def n_competitors(self) -> int:
        """Scorers: one for each class where classes compete, else as `n_scorers`."""
        return len(self.classes) if self.competes else self.n_scorers

    def _long_vectors(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> LongVectors:
        """Find the clusters, or keep those of the fit that goes on."""
        if before is not None:
            centers = before.learned.cluster_centers
        else:
            centers = self._find_centers(rows.X, rng)
        return LongVectors(centers, 1.0 / math.sqrt(self.global_penalty))

    def _find_centers(self, X: Matrix, rng: np.random.Generator) -> Floats:
        """Centres of the clusters of the rows; given ones are multiplied as the rows are."""
        if not isinstance(self.centers, str):
            centers = check_array(
                self.centers, dtype=X.dtype, input_name="centers", copy=True
            )
            n_features = X.shape[1] - self.features.n_pieces
            if centers.shape[1] != n_features:
                raise ValueError(
                    f"centers has shape {centers.shape}; X has {n_features} features, so centers "
                    f"must have the shape (n_clusters, {n_features})."
                )
            seen = self.features.of_matrix(centers)
            return np.asarray(seen * X.dtype.type(self.multiplier))
        n_clusters = self.n_clusters or min(
            _MOST_CLUSTERS, max(1, X.shape[0] // _CLUSTER_ROWS)
        )
        seed = int(rng.integers(2**31 - 1))
        centers = distinct_centres(X, min(int(n_clusters), X.shape[0]), seed)
        if self.n_clusters is not None:
            found = len(centers)
            clipped(
                "n_clusters", n_clusters, found, f"X has only {found} distinct clusters"
            )
        return centers
