"""The two ways to run ML3's procedure: over rows held in memory, and over a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loclin import _scores
from loclin._rows import Rows
from loclin.projections import dual_exponent
from loclin.solvers.cccp import CCCP, random_codes, rows_by_class
from loclin.solvers.rows_fast import as_models

# Rows of a stream learned at once: at most so many share one refresh of the codes.
_STREAM_BLOCK = 10_000
# Rows for every class and model that a stream gives random codes at its beginning.
_STREAM_START = 20
# First step of a stream: smaller than that of a fit, since with alpha falling as 1/n it stays.
_STREAM_ETA0 = 1.0


class CCCPFit:
    """ML3's iterations over rows held in memory."""

    def __init__(self, solver: CCCP, rows: Rows, rng: np.random.Generator, t_start: float,
                 t_pass: float, n_passes: int = 0) -> None:  # fmt: skip
        self.solver, self.rows, self.rng = solver, rows, rng
        self.t_start, self.t_pass, self.n_passes = t_start, t_pass, n_passes
        self.by_class = rows_by_class(rows.y, solver.n_classes)
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
        return self.solver.iterate(
            X, y, weights, self.by_class, self.codes, self.rng, average=average
        )

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        models = _models(self.solver, *self.solver.current())
        return models | {"t_": self.n_passes * len(self.rows.y)}

    def accuracy(self, rows: Rows) -> float:
        """Weighted accuracy of the model as it stands."""
        found = self.attributes()
        scores = _scores.pooled_scores(
            rows.X, found["local_coef_"], found["local_intercept_"],
            dual_exponent(self.solver.settings.p),
        )  # fmt: skip
        return float(np.average(scores.argmax(axis=1) == rows.y, weights=rows.weights))


class CCCPStream:
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

    def learn(self, rows: Rows, alpha: float | None, batch_size: int) -> tuple[float, float]:
        """Learn from the rows; return alpha and the objective over them."""
        self.solver.settings = replace(self.solver.settings, batch_size=batch_size)
        n, m = len(rows.y), self.solver.settings.n_models
        total, used, first = 0.0, 0.0, 0
        while first < n:
            to_start = _STREAM_START * m * self.solver.n_classes - self.n_seen
            starting = self.followed is None and to_start > 0
            size = min(_STREAM_BLOCK, to_start) if starting else _STREAM_BLOCK
            block = slice(first, min(first + size, n))
            part = Rows(rows.X[block], rows.y[block], rows.weights[block])
            used, objective = self._learn_block(part, alpha, starting)
            total += len(part.y) * objective
            first = block.stop
        return used, total / n

    def _learn_block(self, rows: Rows, alpha: float | None, starting: bool) -> tuple[float, float]:
        X, y, weights = rows
        solver, n, m = self.solver, len(y), self.solver.settings.n_models
        if sparse.issparse(X) != solver.is_sparse:  # the stream has changed its kind
            solver.change_layout()
            if self.mean is not None:
                self.mean = np.ascontiguousarray(self.mean[0].T), self.mean[1]
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
        by_class = rows_by_class(y, solver.n_classes)
        objective = solver.iterate(X, y, weights, by_class, codes, self.rng, average=True)
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
        models = _models(self.solver, *(self.mean or (self.solver.W, self.solver.b)))
        before = int(self.followed[1]) if self.followed else 0
        return models | {"n_iter_": 1, "t_": self.n_seen + before}


def _models(solver: CCCP, W: NDArray[Any], b: NDArray[Any]) -> dict[str, Any]:
    """Weights in the solver's layout as fitted attributes."""
    m = solver.settings.n_models
    return {
        "local_coef_": as_models(W, solver.is_sparse, m),
        "local_intercept_": b.reshape(-1, m),
        "intercept_": np.zeros(solver.n_classes, b.dtype),
    }


def mean_squared_norm(X: Any) -> float:
    """Return the mean squared Euclidean norm of the rows."""
    values = X.data if sparse.issparse(X) else X
    return float(np.einsum("...i,...i->...", values, values).sum(dtype=np.float64) / X.shape[0])


def auto_alpha(mean_squared_norm: float, n_samples: float) -> float:
    """Return the default L2 strength: 0.05 (mean ||x||^2 + 1) / n, the 1 for the intercept.

    The penalty then keeps its weight when features are scaled. The factor is the best one over 24
    data sets, each standardised and with rows of unit norm (docs/design.md has the figures).
    """
    return 0.05 * (mean_squared_norm + 1.0) / n_samples


def step_offset(alpha: float, mean_squared_norm: float, eta0: float) -> float:
    """Return the steps to count as taken, so that the first is eta0 / (mean ||x||^2 + 1)."""
    return (mean_squared_norm + 1.0) / (alpha * eta0)


def kmeans_codes(X: Any, n_models: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return one-hot codes by the clusters of k-means (at most one cluster a row)."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    n = X.shape[0]
    kind = KMeans if n <= 10_000 else MiniBatchKMeans
    means = kind(n_clusters=min(n_models, n), n_init=1, random_state=int(rng.integers(2**31 - 1)))
    codes = np.zeros((n, n_models), X.dtype)
    codes[np.arange(n), means.fit_predict(X)] = 1
    return codes
