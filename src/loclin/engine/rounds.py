"""The rows of an iteration: all of them,
or the next of a shuffled pass where they are many.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loclin.engine.data import Rows

# Rows that lie together in memory stay together when rows are shuffled: fetched one by
# one from many rows, each waits for the memory.
_PAGE = 64
_BLOCK_PAGES = 40  # so many pages of rows are fetched at once
AS_PASS = 2  # rounds, as far as steps go


class Rounds:
    """Rows that a stochastic procedure takes a round at a time.

    A pass takes the pages in an order of its own; the procedure shuffles the rows of a
    block. Steps fall as if a few rounds were all the rows, so a row counts as several.

    Parameters
    ----------
    rows : Rows
    n_rows : int or None
        Rows of a round, or a little more: whole blocks. None: all rows, in one block,
        untouched.
    rng : Generator
        Not used where a round is all rows.
    passed : int, default=0
        Rows passed before.
    as_pass : float, default=2
        So many rounds count as all rows in a fit to more than two rounds; two do in
        others, and for a coder. In such a fit a row counts as one at least: steps that
        hardly fall leave the noise of the rows in.
    """

    def __init__(
        self, rows: Rows, n_rows: int | None, rng: np.random.Generator, passed: int = 0, *,
        as_pass: float = AS_PASS,
    ) -> None:  # fmt: skip
        self.rows = rows
        self.rng = rng
        self.passed = passed
        self.n_rows = n_rows
        self.coder_pace = 1.0 if n_rows is None else len(rows.y) / (AS_PASS * n_rows)
        self.pace = self.coder_pace
        if n_rows is not None and self.coder_pace > 1:
            self.pace = max(1.0, len(rows.y) / (as_pass * n_rows))
        self.objective, self.n_rounds = 0.0, 0
        self.to_come = np.empty(0, np.intp)  # pages of this pass

    def next(self) -> Iterator[Rows]:
        """Yield the rows of the next round, block by block."""
        if self.n_rows is None:
            self.passed += len(self.rows.y)
            yield self.rows
            return
        n = 0
        while n < self.n_rows:
            block = self._next_block()
            n += len(block.y)
            self.passed += len(block.y)
            yield block

    def _next_block(self) -> Rows:
        rows = self.rows
        if not len(self.to_come):
            self.to_come = self.rng.permutation(-(-len(rows.y) // _PAGE))
        pages, self.to_come = np.split(self.to_come, [_BLOCK_PAGES])
        places = (pages[:, None] * _PAGE + np.arange(_PAGE)).ravel()
        places = places[places < len(rows.y)]
        return Rows(rows.X[places], rows.y[places], rows.weights[places])

    def averaged(self, objective: float) -> float:
        """Return the mean objective of the last quarter of the rounds,
        about: one is noisy.
        """
        if self.n_rows is None:
            return objective
        self.n_rounds += 1
        self.objective += min(1.0, 4.0 / (self.n_rounds + 3.0)) * (
            objective - self.objective
        )
        return self.objective

    def some(self) -> Rows:
        """Return rows to measure what steps depend on: a round drawn at random, or all."""
        if self.n_rows is None:
            return self.rows
        rows = self.rows
        n = len(rows.y)
        drawn = self.rng.choice(n, min(self.n_rows, n), replace=False)
        # No class is left out.
        drawn = np.union1d(drawn, np.unique(rows.y, return_index=True)[1])
        return Rows(rows.X[drawn], rows.y[drawn], rows.weights[drawn])
