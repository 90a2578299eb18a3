"""The two ways to run ML3's procedure: over rows held in memory, and over a stream."""

from __future__ import annotations

import numpy as np

from loclin.engine.averaging import DescentModels
from loclin.engine.data import Floats, Matrix, Rows, mean_squared_norm
from loclin.engine.procedure import Procedure
from loclin.engine.streams import Stream
from loclin.ml3.cccp import CCCP, random_codes, rows_by_class

# Rows of a stream learned at once: at most so many share one refresh of the codes.
_STREAM_BLOCK = 10_000
# Rows for every class and model that a stream gives random codes at its beginning.
_STREAM_START = 20


class CCCPFit(Procedure):
    """ML3's iterations over rows held in memory.

    Parameters
    ----------
    solver : CCCP
    rows : Rows
    rng : Generator
    t_start, t_pass : float
        Step counter at the start, and what each pass adds to it.
    codes : ndarray of shape (n, m), default=None
        Codes of a starting pass, before the first iteration; overwritten later.
    n_passes : int, default=0
        Passes done before.
    """

    gap = None  # the procedure knows none

    def __init__(self, solver: CCCP, rows: Rows, rng: np.random.Generator, t_start: float,
                 t_pass: float, codes: Floats | None = None,
                 n_passes: int = 0) -> None:  # fmt: skip
        self.solver, self.rows, self.rng = solver, rows, rng
        self.t_start, self.t_pass, self.n_passes = t_start, t_pass, n_passes
        self.by_class = rows_by_class(rows.y, solver.n_scorers)
        self.codes = codes

    def iterate(self, *, average: bool) -> float:
        """Freeze the codes of the true classes, and pass once over the rows."""
        X, y, weights, _ = self.rows
        solver = self.solver
        if self.codes is None:
            self.codes = np.empty((len(y), solver.n_models), X.dtype)
        elif not self.n_passes:
            solver.t = self.t_start
            solver.start(X, y, weights, self.codes, self.rng)
            self.n_passes = 1
        solver.t = self.t_start + self.n_passes * self.t_pass
        self.n_passes += 1
        return solver.iterate(X, y, weights, self.by_class, self.codes, self.rng, average=average)

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a batch."""
        return self.solver.products

    def result(self, *, final: bool = False) -> DescentModels:
        """Return the model as it stands."""
        return self.solver.fitted(self.n_passes * len(self.rows.y), *self.solver.current())


class CCCPStream(Stream):
    """ML3 on rows that come once.

    Rows are learned in blocks (a call's rows, cut at `_STREAM_BLOCK`): a block is one CCCP
    iteration, its codes frozen at the weights it meets. The first rows, before the models mean
    anything, get random codes.
    """

    def learn(self, rows: Rows, alpha: float | None, batch_size: int) -> float:
        """Learn from the rows; return the objective over them."""
        self.solver.settings = self.solver.settings._replace(batch_size=batch_size)
        n, m = len(rows.y), self.solver.n_models
        total, first = 0.0, 0
        while first < n:
            to_start = _STREAM_START * m * self.solver.n_scorers - self.n_seen
            starting = self.followed is None and to_start > 0
            size = min(_STREAM_BLOCK, to_start) if starting else _STREAM_BLOCK
            block = slice(first, min(first + size, n))
            part = Rows(rows.X[block], rows.y[block], rows.weights[block])
            total += len(part.y) * self._learn_block(part, alpha, starting)
            first = block.stop
        return total / n

    def _learn_block(self, rows: Rows, alpha: float | None, starting: bool) -> float:
        X, y, weights, _ = rows
        solver, shape = self.solver, (len(y), self.solver.n_models)
        self.enter(X, mean_squared_norm(X) + 1.0, alpha)
        if starting:
            codes = random_codes(self.rng, *shape, solver.settings.p, X.dtype)
            return solver.start(X, y, weights, codes, self.rng)
        codes = np.empty(shape, X.dtype)
        by_class = rows_by_class(y, solver.n_scorers)
        objective = solver.iterate(X, y, weights, by_class, codes, self.rng, average=True)
        self.fold(len(y))
        return objective


def kmeans_codes(X: Matrix, n_models: int, rng: np.random.Generator) -> Floats:
    """Return one-hot codes by the clusters of k-means (at most one cluster a row)."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    n = X.shape[0]
    kind = KMeans if n <= 10_000 else MiniBatchKMeans
    means = kind(n_clusters=min(n_models, n), n_init=1, random_state=int(rng.integers(2**31 - 1)))
    codes = np.zeros((n, n_models), X.dtype)
    codes[np.arange(n), means.fit_predict(X)] = 1
    return codes
