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


# Rows of a stream learned at once: at most so many share one refresh of the codes.
_STREAM_BLOCK = 10_000
# Rows for every class and model that a stream gives random codes at its beginning.
_STREAM_START = 20
# First step of a stream: smaller than that of a fit, since with alpha falling as 1/n it stays.
_STREAM_ETA0 = 1.0


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
        eta0: float = 10.0,
        s0: float = 1.0,
        revive: bool = True,
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
        self.eta0 = eta0
        self.s0 = s0
        self.revive = revive
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
        check_option("loss", self.loss, {"hinge", "logistic"})
        check_option("init", self.init, {"random", "kmeans"})
        check_number("eta0", self.eta0, low=0, open_low=True, hint="inf is the paper's")
        check_number("s0", self.s0, low=0, open_low=True, open_high=True)
        check_flag("revive", self.revive)
        check_flag("penalize_intercept", self.penalize_intercept)

    def _settings(self, alpha: float) -> CCCPSettings:
        return CCCPSettings(
            alpha=alpha, n_models=int(self.n_models), p=float(self.p), loss=LOSSES[self.loss],
            batch_size=int(self.batch_size),
            penalize_intercept=bool(self.penalize_intercept), revive=bool(self.revive),
        )  # fmt: skip

    def _begin_fit(self, rows: Rows, rng: np.random.Generator) -> _Fit:
        n, norm2 = len(rows.y), mean_squared_norm(rows.X)
        self.alpha_ = auto_alpha(norm2, n) if self.alpha == "auto" else float(self.alpha)
        solver = CCCP(rows.X, len(self.classes_), self._settings(self.alpha_))
        schedule = step_offset(self.alpha_, norm2, self.eta0), self.s0 * n
        if self.warm_start and hasattr(self, "local_coef_"):
            solver.set_weights(self.local_coef_, self.local_intercept_)
            return _Fit(solver, rows, rng, *schedule, n_passes=self.t_ // n)
        fit = _Fit(solver, rows, rng, *schedule)
        fit.start(self.init)
        return fit

    def _continue_stream(self, rows: Rows, rng: np.random.Generator) -> None:
        if self._stream is None:
            solver = CCCP(rows.X, len(self.classes_), self._settings(1.0))
            self._stream = _Stream(solver, rng)
            if hasattr(self, "local_coef_"):
                self._stream.follow(self.local_coef_, self.local_intercept_, self.alpha_, self.t_)
        alpha = None if self.alpha == "auto" else float(self.alpha)
        self.alpha_, objective = self._stream.learn(rows, alpha)
        self.objective_ = [objective]
        for name, value in self._stream.attributes().items():
            setattr(self, name, value)

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

    def __init__(self, solver: CCCP, rows: Rows, rng: np.random.Generator, t_start: float,
                 t_pass: float, n_passes: int = 0) -> None:  # fmt: skip
        self.solver, self.rows, self.rng = solver, rows, rng
        self.t_start, self.t_pass, self.n_passes = t_start, t_pass, n_passes
        self.codes: NDArray[Any] | None = None

    def start(self, init: str) -> None:
        """Fit the models to starting codes, in one pass."""
        X, y, weights = self.rows
        s = self.solver.settings
        if init == "kmeans":
            self.codes = kmeans_codes(X, s.n_models, self.rng)
        else:
            self.codes = random_codes(self.rng, len(y), s.n_models, s.p, X.dtype)
        self.solver.t = self.t_start
        self.solver.start(X, y, weights, self.codes, self.rng)
        self.n_passes = 1

    def iterate(self, *, average: bool) -> float:
        """Freeze the codes of the true classes, and pass once over the rows."""
        X, y, weights = self.rows
        if self.codes is None:
            self.codes = np.empty((len(y), self.solver.settings.n_models), X.dtype)
        self.solver.t = self.t_start + self.n_passes * self.t_pass
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


class _Stream:
    """ML3 on rows that come once.

    Rows are learned in blocks (a call's rows, cut at `_STREAM_BLOCK`): a block is one CCCP
    iteration, its codes frozen at the weights it meets. The first rows, before the models mean
    anything, get random codes. Unless given, alpha follows the rule of `auto_alpha` for the rows
    seen so far. The model is a running average of the iterates that forgets the early ones.
    """

    def __init__(self, solver: CCCP, rng: np.random.Generator) -> None:
        self.solver, self.rng = solver, rng
        self.n_seen = 0
        self.weight_sum = 0.0
        self.squared_norm_sum = 0.0
        self.n_averaged = 0
        self.mean: tuple[NDArray[Any], NDArray[Any]] | None = None
        self.followed: tuple[float, float] | None = None

    def follow(self, coef: NDArray[Any], intercept: NDArray[Any], alpha: float, t: float) -> None:
        """Go on from a finished fit: its weights, its alpha, its step counter."""
        self.solver.set_weights(coef, intercept)
        self.followed = (alpha, float(t))

    def learn(self, rows: Rows, alpha: float | None) -> tuple[float, float]:
        """Learn from the rows; return alpha and the objective over them."""
        n = len(rows.y)
        total = 0.0
        n_blocks = -(-n // _STREAM_BLOCK)
        for part in np.array_split(np.arange(n), n_blocks):
            block = slice(part[0], part[-1] + 1)
            used, objective = self._learn_block(
                Rows(rows.X[block], rows.y[block], rows.weights[block]), alpha
            )
            total += len(part) * objective
        return used, total / n

    def _learn_block(self, rows: Rows, alpha: float | None) -> tuple[float, float]:
        X, y, weights = rows
        solver, n = self.solver, len(y)
        m = solver.settings.n_models
        starting = self.followed is None and self.n_seen < _STREAM_START * m * solver.n_classes
        self.n_seen += n
        self.weight_sum += float(weights.sum(dtype=np.float64))
        self.squared_norm_sum += n * mean_squared_norm(X)
        mean_norm2 = self.squared_norm_sum / self.n_seen
        if self.followed is not None:
            alpha, passed = self.followed
        else:
            alpha, passed = alpha or auto_alpha(mean_norm2, self.n_seen), 0.0
        solver.t = passed + self.n_seen - n + step_offset(alpha, mean_norm2, _STREAM_ETA0)
        solver.settings = replace(solver.settings, alpha=alpha)
        weights = weights * X.dtype.type(self.n_seen / self.weight_sum)
        if starting:
            codes = random_codes(self.rng, n, m, solver.settings.p, X.dtype)
            return alpha, solver.start(X, y, weights, codes, self.rng)
        codes = np.empty((n, m), X.dtype)
        solver.forget_average()
        objective = solver.iterate(X, y, weights, codes, self.rng, average=True)
        self._fold(solver.current(), n)
        return alpha, objective

    def _fold(self, block_mean: tuple[NDArray[Any], NDArray[Any]], n: int) -> None:
        """Fold a block's mean iterate into the running average (polynomial decay, degree 3)."""
        if self.mean is None:
            self.mean = block_mean
        else:
            share = min(1.0, 4.0 * n / (self.n_averaged + 4.0 * n))
            for mean, new in zip(self.mean, block_mean, strict=True):
                mean += mean.dtype.type(share) * (new - mean)
        self.n_averaged += n

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        W, b = self.mean if self.mean is not None else (self.solver.W, self.solver.b)
        m = self.solver.settings.n_models
        return {
            "local_coef_": as_models(W, self.solver.is_sparse, m),
            "local_intercept_": b.reshape(-1, m),
            "intercept_": np.zeros(self.solver.n_classes, b.dtype),
            "n_iter_": 1,
            "t_": self.n_seen + (int(self.followed[1]) if self.followed else 0),
        }


def mean_squared_norm(X: Any) -> float:
    """Mean squared Euclidean norm of the rows."""
    values = X.data if sparse.issparse(X) else X
    return float(np.einsum("...i,...i->...", values, values).sum(dtype=np.float64) / X.shape[0])


def auto_alpha(mean_squared_norm: float, n_samples: float) -> float:
    """Return the default L2 strength: 0.05 (mean ||x||^2 + 1) / n, the 1 for the intercept.

    The penalty then keeps its weight when features are scaled. The factor is the best one over 24
    data sets, each standardised and with rows of unit norm (`benchmarks/auto_alpha.py`).
    """
    return 0.05 * (mean_squared_norm + 1.0) / n_samples


def step_offset(alpha: float, mean_squared_norm: float, eta0: float) -> float:
    """Steps to count as already taken, so that the first one is eta0 / (mean ||x||^2 + 1)."""
    return (mean_squared_norm + 1.0) / (alpha * eta0)


def kmeans_codes(X: Any, n_models: int, rng: np.random.Generator) -> NDArray[Any]:
    """One-hot codes by the clusters of k-means (at most one cluster a row)."""
    n = X.shape[0]
    kind = KMeans if n <= 10_000 else MiniBatchKMeans
    means = kind(n_clusters=min(n_models, n), n_init=1, random_state=int(rng.integers(2**31 - 1)))
    codes = np.zeros((n, n_models), X.dtype)
    codes[np.arange(n), means.fit_predict(X)] = 1
    return codes
