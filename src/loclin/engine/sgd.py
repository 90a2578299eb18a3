"""Stochastic gradient descent for locally linear SVMs,
whoever writes the codes (PEG-LLSVM).

Minimises, over the models ``W`` (s, m, d), ``b`` (s, m) and global intercepts ``g`` (s,),

    alpha/2 (||W||^2 + ||b||^2 + ||g||^2) + 1/(sum w) sum_i w_i loss_i,
    f_y(x) = sum_j code_yj(x) (w_yj . x + b_yj) + g_y,

one against the rest (loss_i sums the losses of all scorers, each with a problem of its
own) or with competing classes (Crammer and Singer). Codes are given, or written by a
coder that learns too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from loclin.engine.averaging import AveragedWeights, DescentModels
from loclin.engine.coders import Coder, Given
from loclin.engine.codes import squared_norms
from loclin.engine.data import Floats, Labels, Matrix, Rows
from loclin.engine.iterates import Progress
from loclin.engine.jit import kept_for
from loclin.engine.losses import known_loss
from loclin.engine.procedure import Descent, Part
from loclin.engine.rounds import Rounds
from loclin.engine.rows import compiled_form
from loclin.engine.schedule import stable_eta0, step_offset
from loclin.engine.sgd_pass import PassSettings, sgd_pass
from loclin.engine.streams import Stream

# Rows that are coded at once, where all need not be.
_BLOCK_ROWS = 10_000
# Rows that each counts as at most, as far as the coder's steps go: with 50, the pace of
# 10^7 rows, anchors come to rest too early.
_MOST_PACE = 5.0
_MOST_AT_REST = 100  # the coder rests for no more passes


class SGD(AveragedWeights):
    """The state of the descent.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
        Rows as the models see them; only kind, width and dtype are used.
    n_scorers, n_models : int
    settings : PassSettings
    coder : Coder, default=None
        What writes the codes; None where they are given.
    """

    settings: PassSettings
    coder: Coder
    n_at_rest: int

    def __init__(
        self, X: Matrix, n_scorers: int, n_models: int, settings: PassSettings,
        coder: Coder | None = None,
    ) -> None:  # fmt: skip
        self.coder = Given() if coder is None else coder
        self.n_at_rest = self.coder.n_at_rest
        super().__init__(X, n_scorers, n_models, settings)

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        n_classes = sizes.get("c", self.n_scorers)
        if self.settings.competing and self.n_scorers != n_classes:
            return f"n_scorers is {self.n_scorers}, but {n_classes} classes compete"
        if not 0 <= self.n_at_rest <= _MOST_AT_REST:
            return f"n_at_rest is {self.n_at_rest}, but should be at most {_MOST_AT_REST}"
        return None

    @property
    def products(self) -> float:
        """Multiply-adds of the largest product of a batch."""
        size = self.weights.W.size
        size = size if self.coder.scores_all_models else size // self.n_scorers
        return float(self.settings.batch_size * size)

    def mean_squared_norm(self, X: Matrix, Z: Matrix) -> float:
        """Mean squared norm of the implicit features,
        Z being the rows as the coder sees them.
        """
        local = self.settings.intercepts.local
        n = X.shape[0]
        mean = 0.0
        for block in gen_batches(n, _BLOCK_ROWS):
            codes = self.coder.codes(Z[block])
            share = (block.stop - block.start) / n
            mean += share * mean_squared_feature_norm(X[block], codes, local)
        return mean

    def count_steps(self, mean_squared_norm: float, eta0: float) -> None:
        """Count steps as taken, so that the first is eta0 over
        the mean squared norm, or less.
        """
        eta0 = stable_eta0(eta0, known_loss(self.settings.loss), self.settings.batch_size)
        self.t = step_offset(self.settings.alpha, mean_squared_norm, eta0)

    def iterate(
        self, X: Matrix, Z: Matrix, y: Labels, row_weights: Floats,
        rng: np.random.Generator, *, average: bool = False,
    ) -> float:  # fmt: skip
        """One pass over the rows, after those with the coder at rest.
        Return the objective.

        It is the running estimate gathered during the pass, with the penalty at its end.
        """
        self.rest(X, Z, y, row_weights, rng)
        return self._pass(X, Z, y, row_weights, rng, moves=True, average=average)

    def rest(
        self,
        X: Matrix,
        Z: Matrix,
        y: Labels,
        row_weights: Floats,
        rng: np.random.Generator,
    ) -> None:
        """Take the passes that come first, with the coder at rest."""
        for _ in range(self.n_at_rest):
            self._pass(X, Z, y, row_weights, rng, moves=False, average=False)
        self.n_at_rest = 0

    def _pass(
        self, X: Matrix, Z: Matrix, y: Labels, row_weights: Floats,
        rng: np.random.Generator, *, moves: bool, average: bool,
    ) -> float:  # fmt: skip
        settings = self.settings
        if isinstance(self.coder, Given):
            check_width(Z, self.n_scorers, self.n_models)
        coder = self.coder.begin_pass(
            Z, settings.batch_size, moves=moves, average=average
        )
        sums, begun = self.begin_pass(average)
        order = rng.permutation(np.arange(len(y), dtype=np.int32))
        run = kept_for(sgd_pass, coder, settings.loss)
        ended, total_loss = run(
            compiled_form(X),
            coder,
            y,
            row_weights,
            order,
            self.weights,
            sums,
            begun,
            settings,
        )
        self.end_pass(Progress(*ended), average)
        self.coder.end_pass(coder, average=average)
        return total_loss / float(row_weights.sum()) + self.penalty()

    def current(self) -> tuple[Floats, ...]:
        """Mean of the iterates since averaging began, or the last one:
        W, b, g, the coder's.
        """
        return *self.mean_weights(), *self.coder.current(self.averaged[1])

    def parts(self, iterate: tuple[Floats, ...] | None = None) -> list[Part]:
        """Return what it learns, and what its coder does,
        beside what `current` gave of it.
        """
        learned = [part for part in self.coder.learned() if not part.adds_up]
        sums = [part for part in self.coder.learned() if part.adds_up]
        means = [None] * len(learned) if iterate is None else iterate[3:]
        of_coder = [
            part._replace(mean=mean) for part, mean in zip(learned, means, strict=True)
        ]
        return [*self.weight_parts(iterate), *of_coder, *sums]

    def fitted(self, t: int, *iterate: Floats) -> DescentModels:
        """Return what `current` gave as a fitted model."""
        return self.coder.fitted(self.models(t, *iterate[:3]), *iterate[3:])

    def forget_average(self) -> None:
        """Begin averaging anew."""
        self.forget_weights()
        self.coder.forget_average()


class SGDFit(Descent):
    """The descent over rows held in memory.

    Parameters
    ----------
    solver : SGD
        Its step counter is that of the start.
    rounds : Rounds
    views : callable
        ``views(X)`` returns rows as the models see them, and as the coder does.
    rng : Generator
    seen : tuple, default=None
        What ``views`` says of all rows, if that is known.
    rested : int, default=0
        Rows passed with the coder at rest, by the fit that goes on: they count as steps.
    """

    gap = None  # the procedure knows none

    def __init__(
        self, solver: SGD, rounds: Rounds, views: Callable[[Any], tuple[Any, Any]],
        rng: np.random.Generator, seen: tuple[Any, Any] | None = None, rested: int = 0,
    ) -> None:  # fmt: skip
        self.solver = solver
        self.rested = rested
        self.rounds = rounds
        self.views = views
        self.rng = rng
        self.seen = seen if rounds.n_rows is None else None
        self.t_start = solver.t
        solver.t += rested + rounds.passed * rounds.pace
        solver.coder.pace = min(max(1.0, rounds.coder_pace), _MOST_PACE)

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a batch."""
        return self.solver.products

    def iterate(self, *, average: bool) -> float:
        """Pass once over the rows of a round."""
        if self.rounds.n_rows is not None and self.solver.n_at_rest:
            drawn = self.rounds.some()  # a block is too small
            self.solver.rest(*self.views(drawn.X), drawn.y, drawn.weights, self.rng)
        total, n = 0.0, 0
        for part in self._parts():
            n_rows = len(part[2])
            total += n_rows * self.solver.iterate(*part, self.rng, average=average)
            n += n_rows
        return self.rounds.averaged(total / n)

    def weaken(self, ratio: float) -> bool:
        """Go on with so much of the L2 strength: the first step would be what it was."""
        self.solver.set_alpha(ratio * self.solver.settings.alpha)
        self.t_start /= ratio
        done = self.rested + self.rounds.passed * self.rounds.pace
        self.solver.t = self.t_start + done
        return True

    def _parts(self) -> Iterator[tuple[Any, Any, Labels, Floats]]:
        """Yield the rows of the next round as the solver takes them, at their steps."""
        solver = self.solver
        rounds = self.rounds
        passed = rounds.passed
        for part in rounds.next():
            if rounds.n_rows is not None:
                solver.t = self.t_start + passed * rounds.pace
            passed = rounds.passed
            yield *(self.seen or self.views(part.X)), part.y, part.weights

    def result(self, *, final: bool = False) -> DescentModels:
        """Return the model as it stands."""
        return self.solver.fitted(self.rounds.passed, *self.solver.current())


class SGDStream(Stream):
    """The descent on rows that come once.

    Parameters
    ----------
    solver : SGD
    rng : Generator
    views : callable
        ``views(X)`` returns rows as the models see them, and as the coder does. It must
        not change, as copies of the stream share it.
    """

    solver: SGD
    views: Callable[[Any], tuple[Any, Any]]

    def __init__(
        self,
        solver: SGD,
        rng: np.random.Generator,
        views: Callable[[Any], tuple[Any, Any]],
    ) -> None:
        super().__init__(solver, rng)
        self.views = views

    def learn(self, rows: Rows, alpha: float | None, batch_size: int) -> float:
        """Learn from the rows; return the objective over them."""
        solver = self.solver
        n = len(rows.y)
        total = 0.0
        solver.settings = solver.settings._replace(batch_size=batch_size)
        for block in gen_batches(n, _BLOCK_ROWS):
            X, Z = self.views(rows.X[block])
            norm2 = solver.mean_squared_norm(X, Z)
            constant = float(solver.settings.intercepts.extra)
            self.enter(X, norm2, alpha, constant)
            labels, weights = rows.y[block], rows.weights[block]
            total += len(labels) * solver.iterate(
                X, Z, labels, weights, self.rng, average=True
            )
            self.fold(len(labels))
        return total / n


def check_width(codes: Matrix, n_scorers: int, n_models: int) -> None:
    """Raise ValueError where codes are not those of the models:
    loops would read beside them.
    """
    if codes.shape[1:] not in ((n_models,), (n_scorers, n_models)):
        raise ValueError(
            f"The coding gives codes of shape {codes.shape}, but there are {n_models} models of "
            f"{n_scorers} scorers. Fit the model again."
        )


def mean_squared_feature_norm(X: Matrix, codes: Matrix, local: bool) -> float:
    """Mean squared norm of the implicit features ``code (x)
    [x; local]``; 1 if all are zero.
    """
    n_scorers = codes.shape[1] if codes.ndim == 3 else 1
    norms = np.empty((n_scorers, X.shape[0]))
    for y in range(n_scorers):
        squared_norms(
            compiled_form(X), compiled_form(codes), y, float(local), 0.0, norms[y]
        )
    return float(norms.mean()) or 1.0
