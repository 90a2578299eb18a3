"""The convex program of L3M (Equations 4, 5, 7 and 8),
by smoothing, with a bound from below.

Minimises, over local classifiers f and partition functions g of the r regions,

    1/(sum w) sum_i w_i max_k [hinge_i(f_k) + phi(G, k, x_i) - 1] + alpha/2 sum_k ||f_k||^2
    subject to  g_k(x) >= margin  at the row drawn for region k,  k = 1 .. r - 1.

Every maximum is smoothed (`surrogate_rows`), and L-BFGS descends; round by round the
smoothing is less. float32 would drown it, so scores are float64. A constraint is a bound
of one unknown, since the intercept of g_k is its value at that row.

The weights of the pieces of the smoothed maxima support the objective from below, so they
are a point of the dual problem once repaired: see `Run.bound`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds

from loclin.engine.data import Rows
from loclin.engine.losses import Loss
from loclin.engine.procedure import Procedure
from loclin.engine.scores import local_products, regional_scores, winners
from loclin.engine.threads import side_by_side
from loclin.l3m.kernels import surrogate_rows
from loclin.l3m.models import ConvexModels
from loclin.l3m.outputs import (
    ChangeOfVariables,
    Floats,
    Kernel,
    Limits,
    Outputs,
    Vector,
    block_products,
    minimise,
)

_FIRST = 0.25  # smoothing of the first round, over the objective at the start
_SMOOTHING_RATIO = 0.5  # smoothing of a round over that of the one before
_LEAST_SMOOTHING = 1e-7  # the same, at least
_PASSES = 600  # of a round
# variance of a direction, over the largest, below which it is not stretched
_FLATTEST = 1e-3
_WIDEST = 1500  # features, for the bound from below, which needs their second moments


# Is shown some rows, the slopes and the constants of `surrogate_rows` there.
Observer = Callable[[slice, Floats, Floats], None]


class Moments(NamedTuple):
    """Of the features, from which they are whitened and the
    objective is bounded from below.
    """

    inverse: Floats  # of the second moments with a one; shape: (d + 1, d + 1)
    # in which features are nearly uncorrelated and of deviation 1; shape: (d, d)
    basis: Floats
    basis_inverse: Floats  # shape: (d, d)


class Problem:
    """What all draws of constraint rows share.

    Parameters
    ----------
    rows : Rows
    n_regions, n_scorers : int
    alpha, margin : float
    loss : Loss
        One that serves partitions.
    """

    def __init__(
        self,
        rows: Rows,
        n_regions: int,
        n_scorers: int,
        alpha: float,
        margin: float,
        loss: Loss,
    ) -> None:
        if "partition" not in loss.serves:
            raise ValueError(f"the surrogate of {loss.name!r} is not known")
        self.rows = rows
        self.X, self.y = rows.X, rows.y
        self.is_sparse: bool = sparse.issparse(rows.X)
        self.weights = rows.weights / rows.weights.sum(dtype=np.float64)
        self.n_regions, self.n_scorers = n_regions, n_scorers
        self.alpha, self.margin = alpha, margin
        self.loss = loss
        self.mean = np.asarray(self.weights @ self.X, np.float64).reshape(1, -1)
        self.moments = self._moments() if self.X.shape[1] <= _WIDEST else None

    def _moments(self) -> Moments:
        weights, d = self.weights[:, None], self.X.shape[1]
        moments = np.ones((d + 1, d + 1))
        if self.is_sparse:
            moments[:d, :d] = (self.X.multiply(weights).tocsr().T @ self.X).toarray()
        else:
            moments[:d, :d] = (self.X * weights).T @ self.X
        moments[:d, d] = moments[d, :d] = self.mean
        inverse = np.linalg.pinv(moments, hermitian=True)
        return Moments(inverse, *_whitening(moments[:d, :d] - self.mean.T @ self.mean))

    def kernel(self, mu: float, observe: Observer | None = None) -> Kernel:
        """Return the smoothed surrogate of some rows; `observe` is shown its pieces."""

        def kernel(Z: Floats, rows: slice, A: Floats) -> float:
            constants = np.empty((0, 0) if observe is None else A.shape, A.dtype)
            total: float = surrogate_rows(
                Z,
                self.y[rows],
                self.weights[rows],
                self.n_regions,
                self.n_scorers,
                mu,
                self.loss.compiled,
                A,
                constants,
            )
            if observe is not None:
                observe(rows, A, constants)
            return total

        return kernel


def _whitening(covariance: Floats) -> tuple[Floats, Floats]:
    """Return a basis in which features are nearly uncorrelated
    and of deviation 1; its inverse.
    """
    values, vectors = np.linalg.eigh(covariance)
    roots = np.sqrt(np.maximum(values, _FLATTEST * max(values.max(), 1e-300)))
    return (vectors / roots) @ vectors.T, (vectors * roots) @ vectors.T


class Support(NamedTuple):
    """Sums over the rows of the affine functions ``A_i .
    Z_i + constants_i``, by the sign of A.

    Row by row, they support the smoothed surrogate from below.
    """

    rows: Vector  # of A x; shape: (2, p, d)
    slopes: Vector  # of A; shape: (2, p)
    constants: Vector  # shape: (2, p)


class Run:
    """The program with given constraint rows.

    Parameters
    ----------
    problem : Problem
    constrained : ndarray of shape (m,)
        Rows where g_1 .. g_m are at least `margin`; r - 1 in the paper's program, none in
        Proposition 1.1.
    """

    def __init__(self, problem: Problem, constrained: NDArray[np.intp]) -> None:
        self.problem, self.constrained = problem, constrained
        r, s = problem.n_regions, problem.n_scorers
        pivots = np.repeat(problem.mean, r * s + r, axis=0)
        self.held = slice(r * s, r * s + len(constrained))
        at = problem.X[constrained]
        pivots[self.held] = at.toarray() if problem.is_sparse else at
        self.outputs = Outputs(problem.X, r, s, pivots, np.float64)
        self.penalties = np.zeros(self.outputs.n_outputs)
        self.penalties[: r * s] = problem.alpha
        n_unknowns = pivots.size + len(pivots)
        lowest, self.v = np.full(n_unknowns, -np.inf), np.zeros(n_unknowns)
        for unknowns in (lowest, self.v):
            _, b = self.outputs.split(unknowns)
            b[self.held] = problem.margin
        self.bounds = Bounds(lowest, np.inf)
        self.objective, self.lowest = self._exactly(), -np.inf
        self.mu = _FIRST * max(self.objective, 1e-3)

    @property
    def gap(self) -> float:
        """How far the objective can be above the optimum, as a part of it."""
        return (self.objective - self.lowest) / max(abs(self.objective), 1e-12)

    def round(self) -> None:
        """Descend; smooth less the next time, unless this round has not come to its end."""
        problem = self.problem
        v = self._descend()
        before, self.v = self.v, v
        objective = self._exactly()
        if objective <= self.objective:
            self.objective = objective
        else:
            self.v = before
        if problem.moments is not None:
            self.lowest = max(self.lowest, self.bound(v, problem.moments.inverse))
            pieces = problem.n_regions * (problem.n_scorers + 1) * (problem.n_regions + 1)
            if self.objective - self.lowest > 2.0 * self.mu * np.log(pieces):
                return  # not yet there: what the smoothing costs is at most half of this
        self.mu = max(_SMOOTHING_RATIO * self.mu, _LEAST_SMOOTHING * self.objective)

    def _descend(self) -> Vector:
        """Minimise the smoothed program;
        features are whitened where their moments are known.

        Penalised coordinates are scaled down: the surrogate's curvature is about 1 / (4
        mu).
        """
        objective = self.outputs.penalized(self.problem.kernel(self.mu), self.penalties)
        limits = Limits(_PASSES, tol=1e-6 * self.mu)
        moments = self.problem.moments
        if moments is None:
            return minimise(objective, self.v, limits, self.bounds)[0]
        scales = 1.0 / np.sqrt(1.0 + 4.0 * self.mu * self.penalties)
        change = ChangeOfVariables(
            self.outputs, moments.basis, moments.basis_inverse, scales
        )
        u, _ = minimise(change.of(objective), change.there(self.v), limits, self.bounds)
        return change.back(u)

    def error(self) -> float:
        """Weighted training error of the model."""
        problem = self.problem
        scores = regional_scores(problem.X, *self.outputs.models(self.v))
        return float(problem.weights @ (winners(scores) != problem.y))

    def _exactly(self) -> float:
        """Objective without smoothing."""
        problem = self.problem
        total, _ = self.outputs.score(
            self.v, problem.kernel(1e-12 * max(1.0, problem.margin))
        )
        W = self.outputs.split(self.v)[0][: self.outputs.n_local]
        return total + 0.5 * problem.alpha * float(np.vdot(W, W))

    def _support(self, v: Vector) -> Support:
        """Return what supports the smoothed surrogate at `v`."""
        X, p = self.problem.X, self.outputs.n_outputs
        support = Support(
            np.zeros((2, p, X.shape[1])), np.zeros((2, p)), np.zeros((2, p))
        )

        def observe(rows: slice, A: Floats, constants: Floats) -> None:
            for sign, part in enumerate((np.maximum(A, 0), np.minimum(A, 0))):
                support.rows[sign] += part.T @ X[rows]
                support.slopes[sign] += part.sum(axis=0, dtype=np.float64)
                support.constants[sign] += constants.sum(
                    axis=0, where=(A > 0) == (sign == 0)
                )

        self.outputs.score(v, self.problem.kernel(self.mu, observe))
        return support

    def bound(self, v: Vector, inverse_moments: Floats) -> float:
        """Lower bound of the objective, from the pieces of the smoothed surrogate at `v`.

        Row by row, the surrogate is at least ``A_i . Z_i + constants_i``. Where the sums
        over the rows of ``A_i x_i`` vanish for all that is not penalised, but for the
        multipliers of the constraints, minimising by hand gives the dual value

            sum of constants + margin (sum of multipliers) - ||sum A_i x_i||^2 / (2 alpha)

        They vanish only nearly. (1) In the classifiers' intercepts: pieces with one sign
        are made lighter. (2) In the partition: what is left over, V, is cancelled by
        ``C_i = w_i x_i M^-1 V`` (M the second moments). As the surrogate is at least
        ``max_j |g_j(x_i)|``, the program allows a share 1 / (1 + reach) of A beside such
        a C, reach = max_i ||C_i||_1 / w_i.
        """
        problem, n_local = self.problem, self.outputs.n_local
        rows, slopes, constants = self._support(v)
        # (1) the two signs weigh the same
        balanced = np.minimum(slopes[0], -slopes[1])[:n_local] / np.maximum(
            np.abs(slopes[:, :n_local]), 1e-300
        )
        of_classifiers = np.einsum("gp,gpd->pd", balanced, rows[:, :n_local])
        value = float(
            (balanced * constants[:, :n_local]).sum() + constants[:, n_local:].sum()
        )
        # (2) what the multipliers do not explain
        both, at = slopes.sum(axis=0), self.outputs.pivots[self.held]
        multipliers = np.maximum(both[self.held], 0.0)
        V = np.column_stack([rows.sum(axis=0), both])[n_local:]
        V[: len(at)] -= np.column_stack([multipliers[:, None] * at, multipliers])
        share = 1.0 / (1.0 + self._reach(V @ inverse_moments))
        value += problem.margin * float(multipliers.sum())
        square = float(np.vdot(of_classifiers, of_classifiers))
        return share * value - share**2 * square / (2.0 * problem.alpha)

    def _reach(self, W: Floats) -> float:
        """Largest ``||W [x_i; 1]||_1`` of a row."""
        reach = 0.0
        for _, Z in local_products(self.problem.X, W[None, :, :-1]):
            reach = max(reach, float(np.abs(Z + W[:, -1]).sum(axis=1).max()))
        return reach


class ConvexFit(Procedure):
    """The program from several draws of constraint rows,
    each to its optimum; the best is kept.

    Parameters
    ----------
    problem : Problem
    n_restarts : int
    rng : Generator
    n_jobs : int or None
        Draws that are solved at once.
    tol : float
        A draw is solved when its gap is at most this.
    """

    def __init__(
        self,
        problem: Problem,
        n_restarts: int,
        rng: np.random.Generator,
        n_jobs: int | None,
        tol: float,
    ) -> None:
        self.problem = problem
        self.n_jobs, self.tol = n_jobs, tol
        n, held = problem.X.shape[0], problem.n_regions - 1
        self.runs = [
            Run(problem, rng.choice(n, held, replace=False)) for _ in range(n_restarts)
        ]

    @property
    def gap(self) -> float | None:
        """Largest gap of a draw; None where there are too many features to know."""
        if self.problem.moments is None:
            return None
        return max(run.gap for run in self.runs)

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a block of rows."""
        return block_products(self.problem.X, self.runs[0].outputs.n_outputs)

    def iterate(self, *, average: bool) -> float:
        """Descend with less smoothing. Return the objective of the draw that is kept."""
        waiting = [run for run in self.runs if not run.gap <= self.tol]
        side_by_side(Run.round, [(run,) for run in waiting], self.n_jobs)
        return self.best().objective

    def best(self) -> Run:
        """Return the draw with the least training error; of equals, the least objective."""
        return min(self.runs, key=lambda run: (run.error(), run.objective))

    def result(self, *, final: bool = False) -> ConvexModels:
        """Return the model as it stands."""
        problem, best = self.problem, self.best()
        return ConvexModels.of(
            best.outputs.models(best.v),
            problem.alpha,
            constraint_rows=problem.rows.places(best.constrained),
            dual_gap=np.nan if problem.moments is None else best.gap,
        )
