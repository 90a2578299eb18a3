"""What a fit of LDKL needs, and how it begins."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from loclin.engine.codes import Intercepts
from loclin.engine.data import Matrix, Rows, mean_squared_norm
from loclin.engine.sgd import SGDFit, SGDStream
from loclin.fitting.checks import check_loss_for, check_number
from loclin.fitting.descent import learning_fit, learning_stream
from loclin.fitting.recipe import Before, Recipe, Trial
from loclin.fitting.strength import check_strength
from loclin.ldkl.tree import LearnedTree, starting_tree

_STREAM_PASS = 1000  # rows of a stream that count as a pass while its tree hardens
_LEAF_ROWS, _LEAST_DEPTH, _MOST_DEPTH = 100, 3, 5  # of depth="auto"
_INTERCEPTS = Intercepts(local=True, extra=False)


@dataclass(frozen=True, kw_only=True)
class LDKLRecipe(Recipe):
    """What a fit of LDKL needs."""

    depth: int | str
    annealing: float
    tree_lr: float
    tree_penalty: float

    multiplies_features = True
    follows_moments = True
    can_do_with_columns = True

    def check(self) -> None:
        """Raise where a parameter is not valid."""
        if self.depth != "auto":
            check_number("depth", self.depth, Integral, low=0, high=12, hint='or "auto"')
        check_number("annealing", self.annealing, low=0, open_low=True, open_high=True)
        check_number("tree_lr", self.tree_lr, low=0, open_high=True)
        check_number("tree_penalty", self.tree_penalty, low=0, open_high=True)
        check_loss_for("descent", self.loss)
        check_strength("alpha", self.alpha)
        check_number("eta0", self.eta0, low=0, open_low=True)

    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """
        return None

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return short fits of trees as deep as that of all rows."""
        # a tree overfits only once it is learned; its penalty is that of the start
        depth = self._depth(len(rows.y))
        return Trial({"depth": depth}, n_iterations=15, goes_on=False, n_calibrating=15)

    def start(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> SGDFit:
        """Begin the descent, or go on from the fit before."""
        n = len(rows.y)
        some = self.rounds(rows, rng).some()
        tree = self._tree(some.X, n, rng, before)
        tree.n_soft = min(n, self.round_rows or n) * min(
            self.annealing, self.max_iter / 2
        )
        return learning_fit(self, tree, some, rows, rng, _INTERCEPTS, before)

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> SGDStream:
        """Begin the descent on a stream."""
        tree = self._tree(rows.X, len(rows.y), rng, before)
        tree.n_soft = _STREAM_PASS * self.annealing
        return learning_stream(self, tree, rows, rng, _INTERCEPTS, before)

    def _depth(self, n_samples: int) -> int:
        if isinstance(self.depth, str):
            return min(
                max(_LEAST_DEPTH, (n_samples // _LEAF_ROWS).bit_length() - 1), _MOST_DEPTH
            )
        return int(self.depth)

    def _tree(
        self, X: Matrix, n_samples: int, rng: np.random.Generator, before: Before | None
    ) -> LearnedTree:
        """Return the tree at its start, or where the fit before ended."""
        rate = float(self.tree_lr / np.sqrt(1 + mean_squared_norm(X)))
        if before is None:
            start = starting_tree(X, self._depth(n_samples), rng)
            return LearnedTree(*start, rate, self.tree_penalty)
        learned = before.learned
        start = learned.tree_coef.copy(), learned.tree_intercept.copy()
        tree = LearnedTree(*start, rate, self.tree_penalty)
        tree.hardness = learned.hardness
        return tree
