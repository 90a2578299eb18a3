"""L3M learned row by row: Algorithm 1 with its gradient put right,
for r regions and c classes.

Descends on the program of `convex`, one row at a time, with steps ``rate / sqrt(t)`` and
a projection onto the constraints (Zinkevich, 2003). Several runs, each with constraint
rows of its own, learn from the same rows; the one with the least running error (of its
predictions before it learns a row, over about the last thousand) is the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.data import Floats, Rows, mean_squared_norm
from loclin.engine.jit import kept_for
from loclin.engine.procedure import Part, Procedure, StreamProcedure, summed
from loclin.engine.rows import as_models, compiled_form, weights_for
from loclin.engine.schedule import auto_alpha
from loclin.engine.shapes import Shape, Size
from loclin.engine.threads import side_by_side
from loclin.l3m.models import OnlineModels, RegionalModels
from loclin.l3m.online_kernels import Functions, Program, Progress, online_pass


class Settings(NamedTuple):
    """What the runs have in common."""

    n_regions: Annotated[int, Size("m")]
    n_scorers: Annotated[int, Size("s")]
    margin: float
    loss: Any  # int or NamedTuple


class OnlineRun:
    """One run.

    Parameters
    ----------
    rows : Rows
        First rows.
    settings : Settings
    rng : Generator
    """

    settings: Settings
    rng: np.random.Generator
    points: Annotated[Any, Shape("m-1 d")]
    constrained: Annotated[NDArray[np.intp], Shape("m-1", np.integer)]
    is_sparse: Annotated[bool, Size("sparse", own=True)]
    functions: Functions
    progress: Progress

    def __init__(self, rows: Rows, settings: Settings, rng: np.random.Generator) -> None:
        self.settings, self.rng = settings, rng
        X, r = rows.X, settings.n_regions
        n_local = r * settings.n_scorers
        some = rng.choice(X.shape[0], r - 1, replace=False)
        self.points, self.constrained = X[some], rows.places(some)
        self.is_sparse = bool(sparse.issparse(X))
        self.functions = Functions(
            weights_for(X, n_local),
            np.zeros(n_local, X.dtype),
            weights_for(X, r),
            np.zeros(r, X.dtype),
        )
        self.functions.g[:-1] = settings.margin
        self.progress = Progress()

    def learn(
        self, rows: Rows, order: NDArray[np.int32], alpha: float, rate: float
    ) -> float:
        """Pass over the rows; return the mean surrogate that they met."""
        if sparse.issparse(rows.X) != self.is_sparse:
            self._change_layout()
        program = Program(self.settings.loss, alpha, self.settings.margin, rate)
        progress, total = kept_for(online_pass, program.loss)(
            compiled_form(rows.X),
            rows.y,
            rows.weights,
            order,
            compiled_form(self.points),
            self.functions,
            self.progress,
            program,
        )
        self.progress = Progress(*progress)
        return total / len(rows.y)

    def copy(self) -> Self:
        """Return a run that goes on by itself; only `OnlineFit` draws from the generator."""
        other = copy(self)
        other.functions = Functions(*(part.copy() for part in self.functions))
        return other

    def _change_layout(self) -> None:
        """Go on with rows of the other kind."""
        F, f, G, g = self.functions
        self.functions = Functions(
            np.ascontiguousarray(F.T), f, np.ascontiguousarray(G.T), g
        )
        points = self.points
        self.points = points.toarray() if self.is_sparse else sparse.csr_matrix(points)
        self.is_sparse = not self.is_sparse

    def result(self, alpha: float) -> OnlineModels:
        """Return the model as it stands; nothing is shared."""
        F, f, G, g = self.functions
        r, s = self.settings.n_regions, self.settings.n_scorers
        local, partition = (as_models(part, self.is_sparse, 1)[:, 0] for part in (F, G))
        models = RegionalModels(
            np.array(partition, order="C"),
            g.copy(),
            np.array(local.reshape(r, s, -1).transpose(1, 0, 2), order="C"),
            np.array(f.reshape(r, s).T, order="C"),
        )
        t = int(self.progress.t)
        return OnlineModels.of(models, alpha, constraint_rows=self.constrained, t=t)


class Online:
    """Runs that learn from the same rows, in memory or over a stream.

    Parameters
    ----------
    runs : list of OnlineRun
    n_jobs : int or None
        Runs that learn at once.
    """

    runs: list[OnlineRun]
    n_jobs: int | None

    def __init__(self, runs: list[OnlineRun], n_jobs: int | None) -> None:
        self.runs, self.n_jobs = runs, n_jobs

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        return None if self.runs else "runs are none"

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a row."""
        functions = self.runs[0].functions
        return float(functions.F.size + functions.G.size)

    def learn(self, rows: Rows, alpha: float, rate: float, *, shuffle: bool) -> float:
        """Pass over the rows; return the mean surrogate that the best run met."""
        order = np.arange(len(rows.y), dtype=np.int32)
        orders = [run.rng.permutation(order) if shuffle else order for run in self.runs]
        tasks = [(run, own) for run, own in zip(self.runs, orders, strict=True)]
        met = side_by_side(
            lambda run, own: run.learn(rows, own, alpha, rate), tasks, self.n_jobs
        )
        return float(met[self.runs.index(self.best())])

    def copy(self) -> Self:
        """Return runs that go on by themselves."""
        return type(self)([run.copy() for run in self.runs], self.n_jobs)

    def best(self) -> OnlineRun:
        """Return the run with the least running error."""
        return min(self.runs, key=lambda run: run.progress.error)


class Sums(NamedTuple):
    """Sums over the rows so far."""

    n_rows: int = 0
    squared_norms: float = 0.0  # of the rows and a one


class Kept(NamedTuple):
    """What a fit or a stream goes on from."""

    runs: list[OnlineRun]
    sums: Sums


class OnlineFit(Procedure):
    """The algorithm over rows held in memory, pass by pass.

    Parameters
    ----------
    online : Online
    rows : Rows
    alpha : float
    eta0 : float
        Times the inverse mean squared norm, the first step.
    """

    gap = None  # the procedure knows none

    def __init__(self, online: Online, rows: Rows, alpha: float, eta0: float) -> None:
        self.online, self.rows = online, rows
        for run in online.runs:
            run.rng = deepcopy(run.rng)  # the copies of a run share it
        n, square = len(rows.y), mean_squared_norm(rows.X) + 1.0
        self.alpha, self.rate = alpha, eta0 / square
        self.kept = Kept(online.runs, Sums(n, n * square))

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a row."""
        return self.online.products

    def iterate(self, *, average: bool) -> float:
        """Pass over the rows once, in random order."""
        return self.online.learn(self.rows, self.alpha, self.rate, shuffle=True)

    def result(self, *, final: bool = False) -> OnlineModels:
        """Return the model as it stands."""
        return self.online.best().result(self.alpha)


class OnlineStream(StreamProcedure):
    """The algorithm on rows that come once, in their order.

    Parameters
    ----------
    online : Online
    sums : Sums
        Over the rows before.
    alpha_unit : float
        Unless alpha is given, it is this times that of `auto_alpha`.
    eta0 : float
        See `OnlineFit`.
    """

    online: Online
    alpha_unit: float
    eta0: float
    alpha: float
    sums: Sums

    def __init__(
        self, online: Online, sums: Sums, alpha_unit: float, eta0: float
    ) -> None:
        self.online = online
        self.alpha_unit, self.eta0 = alpha_unit, eta0
        self.alpha = np.nan  # of the rows so far
        self._keep(sums)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy what learning changes."""
        other = copy(self)
        other.online = self.online.copy()
        other._keep(self.sums)
        return other

    def _keep(self, sums: Sums) -> None:
        self.sums, self.n_seen = sums, sums.n_rows
        self.kept = Kept(self.online.runs, sums)

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a row."""
        return self.online.products

    def state(self) -> tuple[Part, ...]:
        """Return the functions of all runs, one after the other."""
        return tuple(
            Part(f"{name} of run {k}", array)
            for k, run in enumerate(self.online.runs)
            for name, array in run.functions._asdict().items()
        )

    def count_in(
        self, others: Sequence[Self], since: Self | None, shares: Floats
    ) -> None:
        """Let the counts be those of the others together; errors are the mean of theirs."""
        super().count_in(others, since, shares)
        begun = Sums() if since is None else since.sums
        of_sums = zip(*(one.sums for one in others), strict=True)
        pairs = zip(of_sums, begun, strict=True)
        self._keep(Sums(*(summed(own, shares, before) for own, before in pairs)))
        for k, run in enumerate(self.online.runs):
            of_run = [one.online.runs[k].progress for one in others]
            start = Progress() if since is None else since.online.runs[k].progress
            weights = [one.weight - start.weight for one in of_run]
            run.progress = Progress(
                t=summed([one.t for one in of_run], shares, start.t),
                error=float(np.average([one.error for one in of_run], weights=weights)),
                weight=summed([one.weight for one in of_run], shares, start.weight),
            )

    def learn(self, rows: Rows, alpha: float | None, batch_size: int) -> float:
        """Learn from some more rows, one by one; return the mean surrogate that they met."""
        n, square = len(rows.y), mean_squared_norm(rows.X) + 1.0
        self._keep(Sums(self.sums.n_rows + n, self.sums.squared_norms + n * square))
        mean = self.sums.squared_norms / self.n_seen
        self.alpha = (
            self.alpha_unit * auto_alpha(mean, self.n_seen) if alpha is None else alpha
        )
        return self.online.learn(rows, self.alpha, self.eta0 / mean, shuffle=False)

    def result(self, *, final: bool = False) -> OnlineModels:
        """Return the model as it stands."""
        return self.online.best().result(self.alpha)
