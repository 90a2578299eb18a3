"""ML3: multiclass latent locally linear support vector machine (Fornoni, Caputo, Orabona 2013)."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans

from loclin import _scores
from loclin._base import LocallyLinearClassifier, Rows
from loclin._checks import check_flag, check_number, check_option
from loclin.losses import LOSSES
from loclin.projections import dual_exponent
from loclin.solvers.cccp import CCCP, CCCPSettings, random_codes
from loclin.solvers.rows_fast import as_models


class ML3Classifier(LocallyLinearClassifier):
    """TODO"""

    def __init__(
        self,
        n_models: int = 16,
        *,
        p: float = 1.5,
        alpha: float | str = "auto",
        loss: str = "hinge",
        max_iter: int = 60,
        batch_size: int = 64,
        init: str = "random",
        average: int = 5,
        s0: float = 1.0,
        penalize_intercept: bool = True,
        tol: float = 1e-4,
        n_iter_no_change: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_models = n_models
        self.p = p
        self.alpha = alpha
        self.loss = loss
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.init = init
        self.average = average
        self.s0 = s0
        self.penalize_intercept = penalize_intercept
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_number("n_models", self.n_models, Integral, low=1)
        check_number("p", self.p, low=1, hint="1 lets one model act, inf all positive ones")
        if self.alpha != "auto":
            check_number("alpha", self.alpha, low=0, open_low=True, open_high=True,
                         hint='or "auto"')  # fmt: skip
        check_option("loss", self.loss, LOSSES)
        check_option("init", self.init, {"random", "kmeans"})
        check_number("s0", self.s0, low=0, open_low=True, open_high=True)
        check_flag("penalize_intercept", self.penalize_intercept)

    def _settings(self, alpha: float) -> CCCPSettings:
        return CCCPSettings(
            alpha=alpha, n_models=int(self.n_models), p=float(self.p), loss=LOSSES[self.loss],
            s0=float(self.s0), batch_size=int(self.batch_size),
            penalize_intercept=bool(self.penalize_intercept),
        )  # fmt: skip

    def _begin_fit(self, rows: Rows, rng: np.random.Generator) -> _Fit:
        n = len(rows.y)
        if self.alpha == "auto":
            self.alpha_ = auto_alpha(mean_squared_norm(rows.X), n)
        else:
            self.alpha_ = float(self.alpha)
        solver = CCCP(rows.X, len(self.classes_), self._settings(self.alpha_))
        fit = _Fit(solver, rows, rng)
        if self.warm_start and hasattr(self, "local_coef_"):
            solver.set_weights(self.local_coef_, self.local_intercept_)
            fit.n_passes = self.t_ // n
        else:
            fit.start(self.init)
        return fit

    def _continue_stream(self, rows: Rows, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def _class_scores(self, X: Any) -> NDArray[Any]:
        return _scores.pooled_scores(
            X, self.local_coef_, self.local_intercept_, dual_exponent(self.p)
        )

    def _codes(self, X: Any) -> NDArray[Any]:
        return _scores.pooling_codes(
            X, self.local_coef_, self.local_intercept_, dual_exponent(self.p)
        )


class _Fit:
    """ML3's iterations over rows held in memory."""

    def __init__(self, solver: CCCP, rows: Rows, rng: np.random.Generator) -> None:
        self.solver, self.rows, self.rng = solver, rows, rng
        self.n_passes = 0
        self.codes: NDArray[Any] | None = None
        self.mean: tuple[NDArray[Any], NDArray[Any]] | None = None

    def start(self, init: str) -> None:
        X, y, weights = self.rows
        s = self.solver.settings
        if init == "kmeans":
            self.codes = kmeans_codes(X, s.n_models, self.rng)
        else:
            self.codes = random_codes(self.rng, len(y), s.n_models, s.p, X.dtype)
        self.solver.start(X, y, weights, self.codes, self.rng)
        self.n_passes = 1

    def iterate(self, *, average: bool) -> float:
        X, y, weights = self.rows
        if self.codes is None:
            self.codes = np.empty((len(y), self.solver.settings.n_models), X.dtype)
        self.solver.t = self.solver.settings.s0 * self.n_passes * len(y)
        self.n_passes += 1
        return self.solver.iterate(X, y, weights, self.codes, self.rng, average=average)

    def attributes(self) -> dict[str, Any]:
        W, b = self.solver.current()
        m = self.solver.settings.n_models
        return {
            "local_coef_": as_models(W, self.solver.is_sparse, m),
            "local_intercept_": b.reshape(-1, m),
            "intercept_": np.zeros(self.solver.n_classes, b.dtype),
            "t_": self.n_passes * len(self.rows.y),
        }

    def accuracy(self, rows: Rows) -> float:
        found = self.attributes()
        scores = _scores.pooled_scores(
            rows.X, found["local_coef_"], found["local_intercept_"],
            dual_exponent(self.solver.settings.p),
        )  # fmt: skip
        return float(np.average(scores.argmax(axis=1) == rows.y, weights=rows.weights))


def mean_squared_norm(X: Any) -> float:
    """Mean squared Euclidean norm of the rows."""
    values = X.data if sparse.issparse(X) else X
    return float(np.einsum("...i,...i->...", values, values).sum(dtype=np.float64) / X.shape[0])


def auto_alpha(mean_squared_norm: float, n_samples: float) -> float:
    """The default L2 strength."""
    return (0.3 + 0.02 * mean_squared_norm) / n_samples


def kmeans_codes(X: Any, n_models: int, rng: np.random.Generator) -> NDArray[Any]:
    """One-hot codes by the clusters of k-means (at most one cluster a row)."""
    n = X.shape[0]
    kind = KMeans if n <= 10_000 else MiniBatchKMeans
    means = kind(n_clusters=min(n_models, n), n_init=1, random_state=int(rng.integers(2**31 - 1)))
    codes = np.zeros((n, n_models), X.dtype)
    codes[np.arange(n), means.fit_predict(X)] = 1
    return codes
