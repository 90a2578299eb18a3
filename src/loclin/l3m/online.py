"""L3M learned row by row: Algorithm 1 with its gradient put right, for r regions and c classes.

Descends on the convex program of `l3m_convex`, one row at a time, with steps ``rate / sqrt(t)`` and
a projection onto the constraints (Zinkevich, 2003). Several runs, each with constraint rows of
its own, learn from the same rows; the one with the least running error (of its
predictions before it learns a row, over about the last thousand) is the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.data import Rows
from loclin.engine.losses import Loss
from loclin.engine.rows import as_models, compiled_form, weights_for
from loclin.l3m.online_kernels import online_pass


class OnlineRun:
    """One run.

    Parameters
    ----------
    rows : Rows
        First rows.
    n_regions, n_scorers : int
    margin : float
    loss : Loss
    rng : Generator
    """

    def __init__(self, rows: Rows, n_regions: int, n_scorers: int, margin: float, loss: Loss,
                 rng: np.random.Generator) -> None:  # fmt: skip
        self.n_regions, self.margin, self.loss, self.rng = n_regions, margin, loss, rng
        X = rows.X
        some = rng.choice(X.shape[0], n_regions - 1, replace=False)
        self.points, self.constrained = X[some], rows.places(some)
        self.is_sparse = sparse.issparse(X)
        self.F, self.V = weights_for(X, n_regions * n_scorers), weights_for(X, n_regions)
        self.f, self.v = (np.zeros(k, X.dtype) for k in (n_regions * n_scorers, n_regions))
        self.v[:-1] = margin
        self.state = np.array([0.0, 1.0, 0.0])

    def learn(self, rows: Rows, order: NDArray[Any], alpha: float, rate: float) -> float:
        """Pass over the rows; return the mean surrogate that they met."""
        X, y, weights, _ = rows
        if sparse.issparse(X) != self.is_sparse:  # the stream has changed its kind
            self.F, self.V = (np.ascontiguousarray(part.T) for part in (self.F, self.V))
            self.points = (
                sparse.csr_matrix(self.points) if sparse.issparse(X) else self.points.toarray()
            )
            self.is_sparse = not self.is_sparse
        total = online_pass(
            compiled_form(X), y, weights, order, compiled_form(self.points), self.F, self.f,
            self.V, self.v, self.state, int(self.loss), alpha, rate, self.margin,
        )  # fmt: skip
        return total / len(y)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        r = self.n_regions
        local = as_models(self.F, self.is_sparse, 1)[:, 0]
        s, d = len(local) // r, local.shape[1]
        return {
            "local_coef_": np.ascontiguousarray(local.reshape(r, s, d).transpose(1, 0, 2)),
            "local_intercept_": np.ascontiguousarray(self.f.reshape(r, s).T),
            "intercept_": np.zeros(s, self.f.dtype),
            "partition_coef_": as_models(self.V, self.is_sparse, 1)[:, 0].copy(),
            "partition_intercept_": self.v.copy(),
            "constraint_rows_": self.constrained,
            "t_": int(self.state[0]),
        }


class Online:
    """Runs that learn from the same rows, in memory or over a stream.

    Parameters
    ----------
    runs : list of OnlineRun
    n_jobs : int or None
        Runs that learn at once.
    """

    gap: float | None = None  # the procedure knows none

    def __init__(self, runs: list[OnlineRun], n_jobs: int | None) -> None:
        self.runs, self.n_jobs = runs, n_jobs

    def learn(self, rows: Rows, alpha: float, rate: float, *, shuffle: bool) -> float:
        """Pass over the rows; return the mean surrogate that the best run met."""
        order = np.arange(len(rows.y), dtype=np.int32)
        orders = [run.rng.permutation(order) if shuffle else order for run in self.runs]
        met = Parallel(self.n_jobs, prefer="threads")(
            delayed(run.learn)(rows, own, alpha, rate)
            for run, own in zip(self.runs, orders, strict=True)
        )
        return float(met[self.runs.index(self.best())])

    def best(self) -> OnlineRun:
        """Return the run with the least running error."""
        return min(self.runs, key=lambda run: run.state[1])

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        return self.best().attributes()


class OnlineFit:
    """The algorithm over rows held in memory, pass by pass."""

    gap: float | None = None

    def __init__(self, online: Online, rows: Rows, alpha: float, rate: float) -> None:
        self.online, self.rows, self.alpha, self.rate = online, rows, alpha, rate

    def iterate(self, *, average: bool) -> float:
        """Pass over the rows once, in random order."""
        return self.online.learn(self.rows, self.alpha, self.rate, shuffle=True)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        return self.online.attributes()
