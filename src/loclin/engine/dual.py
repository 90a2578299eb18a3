"""Dual coordinate descent for locally linear SVMs (LIB-LLSVM).

Minimises, for each score, over the models ``W`` (m, d), ``b`` (m,) and a global intercept
``g``,

    alpha/2 (||W||^2 + ||b||^2 + g^2) + 1/(sum w) sum_i w_i loss(y_i f(x_i)),
    f(x) = sum_j code_j(x) (w_j . x + b_j) + g,

a linear SVM on the features ``code (x) [x; 1]``, which are never formed (Hsieh et al., A
dual coordinate descent method for large-scale linear SVM, 2008, on the kernel of equation
10 of the OCC paper), or Crammer and Singer's problem of all scores. Stops at a duality
gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from loclin.engine.codes import Intercepts, squared_norms
from loclin.engine.competing_kernels import competing_losses_and_gap, competing_pass
from loclin.engine.data import Floats, Labels, Matrix, Rows, is_sparse
from loclin.engine.dual_kernels import (
    Problem,
    State,
    dual_pass,
    losses_and_gap,
    set_scores,
    set_weights,
)
from loclin.engine.iterates import Weights
from loclin.engine.jit import kept_for
from loclin.engine.losses import HINGE, Dual, Loss
from loclin.engine.procedure import LocalModels, Procedure
from loclin.engine.rows import as_models, compiled_form, weights_for
from loclin.engine.shapes import Shape
from loclin.engine.targets import signs_of
from loclin.engine.threads import side_by_side

# Rows that share a block of the kernel, where all models are scored by one product.
_BLOCK_ROWS = 32
# Rows scored at once where nothing moves.
_CHECKED = 64


def dual_of(loss: Loss) -> Dual:
    """Return the conjugate of a loss that serves dual problems."""
    if loss.dual is None:
        raise ValueError(
            f"loss={loss.name!r} has no dual problem that coordinate descent solves."
        )
    return loss.dual


def _block_size(X: Matrix, codes: Matrix) -> int:
    """Return a block where its kernel costs no more than the scores of its rows, else 1."""
    if is_sparse(X):
        return 1
    width, m = X.shape[1], codes.shape[1]
    used = codes.nnz / codes.shape[0] if is_sparse(codes) else m
    return _BLOCK_ROWS if m + width <= 2 * used * width else 1


class DualProblem(ABC):
    """The state of one problem: dual variables, weights, active rows.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    codes : {ndarray, csr} of shape (n, m)
    labels : ndarray of shape (n,)
        Classes of the scores, 0 .. s - 1; of a single score, 1 and 0.
    dual : ndarray of shape (n, s)
        Dual variables to start from, in units of their bounds ``w_i / (alpha sum w)``.
    weights : ndarray of shape (n,)
        Positive.
    alpha : float
    loss : Loss
    local, extra : bool
        Are there local intercepts; is there a global one. Both are penalised.
    """

    def __init__(
        self,
        X: Matrix,
        codes: Matrix,
        labels: Labels,
        dual: Floats,
        weights: Floats,
        alpha: float,
        *,
        loss: Loss,
        local: bool,
        extra: bool,
    ) -> None:
        n, m = codes.shape
        s = dual.shape[1]
        self.is_sparse = is_sparse(X)
        self.n_models = m
        self.alpha, self.loss = alpha, loss
        self.problem = Problem(
            X=compiled_form(X),
            codes=compiled_form(codes),
            y=labels.astype(np.int32),
            bounds=weights.astype(np.float64) / (alpha * weights.sum(dtype=np.float64)),
            squares=np.empty(n),
            dual=dual_of(loss),
            block=_block_size(X, codes),
            intercepts=Intercepts(local, extra),
        )
        self.state = State(
            dual=dual * self.problem.bounds[:, None],
            scores=np.zeros((n, s)),
            weights=Weights(
                weights_for(X, s * m), np.zeros(s * m, X.dtype), np.zeros(s, X.dtype)
            ),
        )
        self._set_squares()
        if dual.any():
            self.set_weights()
        self._active = np.arange(n)
        self._n_active = n
        self.gap = np.inf

    @property
    @abstractmethod
    def relative_dual(self) -> NDArray[np.float64]:
        """Dual variables in units of their bounds, to start from at another alpha."""

    @abstractmethod
    def _visit(self, active: NDArray[np.intp], limited: bool) -> int:
        """Visit these rows once; return how many stay active, at the front.

        `limited` allows to drop rows.
        """

    @abstractmethod
    def _losses_and_gap(self) -> tuple[float, float]:
        """Return sums over the rows, at the scores last met."""

    def iterate(self, rng: np.random.Generator, tol: float) -> float:
        """Visit the active rows once;
        return the objective, exact once `gap` is below tol of it.

        Until then it is the running estimate, from the scores met.
        """
        whole = self._n_active == len(self._active)
        active = self._active[: self._n_active]
        rng.shuffle(active)
        self._n_active = self._visit(active, self.gap == np.inf or not whole)
        self.gap = np.inf
        objective, gap = self._objective_and_gap()
        if gap <= tol * objective or not self._n_active:
            objective = self.check()
            if self.gap > tol * objective:
                self._n_active = len(self._active)
        return objective

    def check(self) -> float:
        """Return the exact objective, with weights free of rounding; set the exact `gap`."""
        self.set_weights()
        set_scores(self.problem, self.state, _CHECKED)
        objective, self.gap = self._objective_and_gap()
        return objective

    def set_weights(self) -> None:
        """Let the weights be what the dual variables mean."""
        set_weights(self.problem, self.state, _CHECKED)

    def _set_squares(self) -> None:
        problem = self.problem
        local, extra = np.array(problem.intercepts, self.state.weights.b.dtype)
        squared_norms(problem.X, problem.codes, 0, local, extra, problem.squares)
        np.maximum(problem.squares, np.finfo(np.float64).tiny, out=problem.squares)

    def _objective_and_gap(self) -> tuple[float, float]:
        norm = sum(float(np.vdot(part, part)) for part in self.state.weights)
        losses, gap = self._losses_and_gap()
        return self.alpha * (0.5 * norm + losses), self.alpha * gap


class BinaryDual(DualProblem):
    """One score against zero.

    Parameters
    ----------
    target : ndarray of shape (n,)
        +1 and -1.
    start : ndarray of shape (n,) or None
        Magnitudes of the dual variables in units of their bounds.
    X, codes, weights, alpha, loss, local, extra
        As for `DualProblem`.
    """

    def __init__(
        self,
        X: Matrix,
        codes: Matrix,
        target: NDArray,
        weights: Floats,
        alpha: float,
        loss: Loss,
        *,
        local: bool,
        extra: bool,
        start: NDArray[np.float64] | None = None,
    ) -> None:
        dual = np.zeros(len(target)) if start is None else start * target
        super().__init__(
            X,
            codes,
            (target > 0).astype(np.int32),
            dual[:, None],
            weights,
            alpha,
            loss=loss,
            local=local,
            extra=extra,
        )
        self._limits = np.inf, -np.inf

    @property
    def relative_dual(self) -> NDArray[np.float64]:
        """Magnitudes of the dual variables, (n,), in units of their bounds."""
        return np.abs(self.state.dual[:, 0]) / self.problem.bounds

    def _visit(self, active: NDArray[np.intp], limited: bool) -> int:
        limits = self._limits if limited else (np.inf, -np.inf)
        kept, high, low = dual_pass(self.problem, self.state, active, *limits)
        self._limits = high if high > 0 else np.inf, low if low < 0 else -np.inf
        return kept

    def _losses_and_gap(self) -> tuple[float, float]:
        problem = self.problem
        loss = self.loss.compiled
        run = kept_for(losses_and_gap, loss)
        dual = self.state.dual.ravel()
        scores = self.state.scores.ravel()
        return run(problem.y, problem.bounds, loss, problem.dual, dual, scores)


class CompetingDual(DualProblem):
    """Classes that compete, hinge loss.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        0 .. s - 1.
    start : ndarray of shape (n, s) or None
        Dual variables in units of their bounds.
    X, codes, weights, alpha, local, extra
        As for `DualProblem`.
    """

    def __init__(
        self,
        X: Matrix,
        codes: Matrix,
        labels: Labels,
        n_classes: int,
        weights: Floats,
        alpha: float,
        *,
        local: bool,
        extra: bool,
        start: NDArray[np.float64] | None = None,
    ) -> None:
        dual = np.zeros((len(labels), n_classes)) if start is None else start
        super().__init__(
            X, codes, labels, dual, weights, alpha, loss=HINGE, local=local, extra=extra
        )
        self._limit = np.inf

    @property
    def relative_dual(self) -> NDArray[np.float64]:
        """Dual variables, (n, s), in units of their bounds."""
        return self.state.dual / self.problem.bounds[:, None]

    def _visit(self, active: NDArray[np.intp], limited: bool) -> int:
        limit = self._limit if limited else np.inf
        kept, worst = competing_pass(self.problem, self.state, active, limit)
        self._limit = worst if worst > 0 else np.inf
        return kept

    def _losses_and_gap(self) -> tuple[float, float]:
        problem, state = self.problem, self.state
        return competing_losses_and_gap(
            problem.y, problem.bounds, state.dual, state.scores
        )


def dual_problems(
    rows: Rows, codes: Matrix, alpha: float, loss: Loss, n_scorers: int, *,
    competing: bool, intercepts: Intercepts, starts: Sequence[NDArray[np.float64]] | None = None,
) -> list[DualProblem]:  # fmt: skip
    """Return the problem of each scorer, or the one of all where classes compete.

    Parameters
    ----------
    rows : Rows
        As the models see them.
    codes : {ndarray, csr} of shape (n, m) or ndarray of shape (n, s, m)
    alpha : float
    loss : Loss
    n_scorers : int
    competing : bool
    intercepts : Intercepts
    starts : sequence of ndarray or None
        Dual variables to start from; those of other rows, or of another kind of problem,
        are not.
    """
    X = rows.X
    y = rows.y
    weights = rows.weights
    has = intercepts._asdict()
    n_problems, shape = (1, (len(y), n_scorers)) if competing else (n_scorers, (len(y),))
    fits = (
        starts is not None and [start.shape for start in starts] == [shape] * n_problems
    )
    begun = starts if starts and fits else [None] * n_problems
    if competing:
        return [
            CompetingDual(X, codes, y, n_scorers, weights, alpha, start=begun[0], **has)
        ]
    signs = signs_of(y, n_scorers).astype(np.float64)
    return [
        BinaryDual(X, codes if codes.ndim == 2 else codes[:, k], signs[:, k], weights, alpha, loss,
                   start=begun[k], **has)
        for k in range(n_scorers)
    ]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DualModels(LocalModels):
    """Local models, and how far each problem is from its solution."""

    # The gap of each problem, in units of its objective.
    dual_gap: Annotated[NDArray[np.float64], Shape("q", np.float64, finite=False)]


class DualFit(Procedure):
    """Problems of all scorers side by side,
    each iteration one pass of every unfinished one.

    Parameters
    ----------
    problems : list of DualProblem
    tol : float
        Duality gap to reach, as a part of the objective.
    rng : Generator
    n_jobs : int or None
        Threads over the problems; the result does not depend on it.
    keep_dual : bool
        Keep the dual variables of every problem for the next fit.
    """

    def __init__(
        self,
        problems: Sequence[DualProblem],
        tol: float,
        rng: np.random.Generator,
        n_jobs: int | None = None,
        *,
        keep_dual: bool = False,
    ) -> None:
        self.problems = problems
        self.tol = tol
        self.keep_dual = keep_dual
        seeds = rng.integers(2**63, size=len(problems))
        self.generators = [np.random.default_rng(seed) for seed in seeds]
        self.objectives = np.zeros(len(problems))
        self.n_jobs = n_jobs

    @property
    def products(self) -> float:
        """Small: the threads of a product are left as they are."""
        return 0.0

    @property
    def gap(self) -> float:
        """The largest duality gap as a part of its objective;
        infinite while one is not known.
        """
        gaps = np.array([problem.gap for problem in self.problems])
        return float(np.max(gaps / np.maximum(self.objectives, np.finfo(float).tiny)))

    def iterate(self, *, average: bool) -> float:
        """Pass once over the active rows of every unsolved problem;
        sum of the objectives.
        """
        unsolved = [
            k
            for k, problem in enumerate(self.problems)
            if not problem.gap <= self.tol * self.objectives[k]
        ]
        tasks = [(k,) for k in unsolved]
        self.objectives[unsolved] = side_by_side(self._pass, tasks, self.n_jobs)
        return float(self.objectives.sum())

    def result(self, *, final: bool = False) -> DualModels:
        """Return the models as they stand, with exact gaps."""
        for k, problem in enumerate(self.problems):
            if problem.gap == np.inf:
                self.objectives[k] = problem.check()
        keep = self.keep_dual or not final  # a checkpoint of a running fit needs them too
        self.kept = [problem.relative_dual for problem in self.problems] if keep else None
        first = self.problems[0]
        W, b, g = zip(*(problem.state.weights for problem in self.problems), strict=True)
        return DualModels(
            local_coef=as_models(
                np.concatenate(W, axis=1 if first.is_sparse else 0),
                first.is_sparse,
                first.n_models,
            ),
            local_intercept=np.concatenate(b).reshape(-1, first.n_models),
            intercept=np.concatenate(g),
            alpha=first.alpha,
            dual_gap=np.array([problem.gap for problem in self.problems]),
        )

    def _pass(self, k: int) -> float:
        return self.problems[k].iterate(self.generators[k], self.tol)
