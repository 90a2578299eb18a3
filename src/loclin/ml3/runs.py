"""The two ways to run ML3's procedure: over rows held in memory, and over a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from loclin.engine.averaging import DescentModels
from loclin.engine.data import Floats, Matrix, Rows, mean_squared_norm
from loclin.engine.procedure import Descent
from loclin.engine.rounds import Rounds
from loclin.engine.streams import Stream
from loclin.ml3.cccp import CCCP, random_codes

# Rows of a stream learned at once: at most so many share one step of the average.
_STREAM_BLOCK = 10_000
# Rows for every class and model that a stream gives random codes at its beginning.
_STREAM_START = 20


class CCCPFit(Descent):
    """ML3's iterations over rows held in memory.

    Parameters
    ----------
    solver : CCCP
    rounds : Rounds
    rng : Generator
    t_start, s0 : float
        Step counter at the start, and what each row adds to it.
    start : callable, default=None
        ``start(X, rng)`` returns codes of rows for a starting round, before the first
        iteration.
    """

    gap = None  # the procedure knows none

    def __init__(
        self, solver: CCCP, rounds: Rounds, rng: np.random.Generator, t_start: float, s0: float,
        start: Callable[[Matrix, np.random.Generator], Floats] | None = None,
    ) -> None:  # fmt: skip
        self.solver, self.rounds, self.rng = solver, rounds, rng
        self.t_start, self.s0, self.start = t_start, s0, start

    def iterate(self, *, average: bool) -> float:
        """Pass once over all rows, their codes frozen; over those of a round, by batch."""
        if self.start is not None:
            for part in self._parts():
                self.solver.start(*part[:3], self.start(part.X, self.rng), self.rng)
            self.start = None
        total, n, by_batch = 0.0, 0, self.rounds.n_rows is not None
        for part in self._parts():
            objective = self.solver.iterate(
                *part[:3], self.rng, average=average, by_batch=by_batch
            )
            total += len(part.y) * objective
            n += len(part.y)
        return self.rounds.averaged(total / n)

    def weaken(self, ratio: float) -> bool:
        """Go on with so much of the L2 strength: the first step would be what it was."""
        self.solver.set_alpha(ratio * self.solver.settings.alpha)
        self.t_start /= ratio
        return True

    def _parts(self) -> Iterator[Rows]:
        """Yield the rows of the next round, at the steps that they are to take."""
        passed = self.rounds.passed
        for part in self.rounds.next():
            self.solver.t = self.t_start + passed * self.rounds.pace * self.s0
            passed = self.rounds.passed
            yield part

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a batch."""
        return self.solver.products

    def result(self, *, final: bool = False) -> DescentModels:
        """Return the model as it stands."""
        return self.solver.fitted(self.rounds.passed, *self.solver.current())


class CCCPStream(Stream):
    """ML3 on rows that come once.

    Rows are learned in blocks (a call's rows, cut at `_STREAM_BLOCK`); each batch freezes
    its own codes. The first rows, before the models mean anything, get random codes.
    """

    solver: CCCP

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
        objective = solver.iterate(X, y, weights, self.rng, average=True, by_batch=True)
        self.fold(len(y))
        return objective
