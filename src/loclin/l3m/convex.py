"""The convex program of L3M (eqs. 4, 5, 7 and 8), by smoothing, with a bound from below.

Minimises, over local classifiers f and partition functions g of the r regions,

    1/(sum w) sum_i w_i max_k [hinge_i(f_k) + phi(G, k, x_i) - 1] + alpha/2 sum_k ||f_k||^2
    subject to  g_k(x) >= margin  at the row drawn for region k,  k = 1 .. r - 1.

Every maximum is smoothed (`surrogate_rows`), and L-BFGS descends; round by round the smoothing is
less. float32 would drown it, so scores are float64. A constraint is a bound of one unknown, since
the intercept of g_k is its value at that row.

The weights of the pieces of the smoothed maxima support the objective from below, so they are a
point of the dual problem once repaired: see `Run.bound`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.data import Rows
from loclin.engine.losses import Loss
from loclin.engine.scores import local_products, regional_scores, winners
from loclin.l3m.kernels import surrogate_rows
from loclin.l3m.outputs import Outputs, models_of

_FIRST = 0.25  # smoothing of the first round, over the objective at the start
_LESS = 0.5  # smoothing of a round over that of the one before
_LEAST = 1e-7  # the same, at least
_PASSES = 600  # of a round
_FLATTEST = 1e-3  # variance of a direction, over the largest, below which it is not stretched
_WIDEST = 1500  # features, for the bound from below, which needs their second moments


class Problem:
    """What all draws of constraint rows share.

    Parameters
    ----------
    rows : Rows
    n_regions, n_scorers : int
    alpha, margin : float
    loss : Loss
        Hinge or logistic.
    """

    def __init__(self, rows: Rows, n_regions: int, n_scorers: int, alpha: float, margin: float,
                 loss: Loss) -> None:  # fmt: skip
        self.rows, self.X, self.y = rows, rows.X, rows.y
        self.weights = rows.weights / rows.weights.sum(dtype=np.float64)
        self.n_regions, self.n_scorers = n_regions, n_scorers
        self.alpha, self.margin, self.loss = alpha, margin, loss
        self.mean = np.asarray(self.weights @ self.X, np.float64).reshape(1, -1)
        self.inverse_moments, self.bases = None, None
        if self.X.shape[1] <= _WIDEST:
            moments = self._moments()
            self.inverse_moments = np.linalg.pinv(moments, hermitian=True)
            self.bases = _whitening(moments[:-1, :-1] - self.mean.T @ self.mean)

    def _moments(self) -> NDArray[np.float64]:
        """Second moments of the features and a one."""
        weights = self.weights[:, None]
        weighed = self.X.multiply(weights).tocsr() if sparse.issparse(self.X) else self.X * weights
        product = weighed.T @ self.X
        d = self.X.shape[1]
        moments = np.ones((d + 1, d + 1))
        moments[:d, :d] = product.toarray() if sparse.issparse(product) else product
        moments[:d, d] = moments[d, :d] = self.mean
        return moments

    def kernel(self, mu: float, look: Callable[..., None] | None = None) -> Any:
        """Return the smoothed surrogate of some rows; `look` sees its pieces."""
        keeps = look is not None

        def of_rows(Z: NDArray[Any], rows: slice, A: NDArray[Any]) -> float:
            constants = np.empty(A.shape if keeps else (0, 0), A.dtype)
            total = surrogate_rows(
                Z, self.y[rows], self.weights[rows], self.n_regions, self.n_scorers, mu,
                int(self.loss), A, constants,
            )  # fmt: skip
            if look is not None:
                look(rows, A, constants)
            return total

        return of_rows


def _whitening(covariance: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a basis in which features are nearly uncorrelated and of deviation 1; its inverse."""
    values, vectors = np.linalg.eigh(covariance)
    roots = np.sqrt(np.maximum(values, _FLATTEST * max(values.max(), 1e-300)))
    return (vectors / roots) @ vectors.T, (vectors * roots) @ vectors.T


class Run:
    """The program with given constraint rows.

    Parameters
    ----------
    problem : Problem
    constrained : ndarray of shape (m,)
        Rows where g_1 .. g_m are at least `margin`; r - 1 in the paper's program, none in
        proposition 1.1.
    """

    def __init__(self, problem: Problem, constrained: NDArray[np.intp]) -> None:
        self.problem, self.constrained = problem, constrained
        r, s, d = problem.n_regions, problem.n_scorers, problem.X.shape[1]
        pivots = np.repeat(problem.mean, r * s + r, axis=0)
        self.held = slice(r * s, r * s + len(constrained))
        at = problem.X[constrained]
        pivots[self.held] = at.toarray() if sparse.issparse(at) else at
        self.outputs = Outputs(problem.X, r, s, pivots, np.float64)
        p = self.outputs.n_outputs
        self.lower = np.full(p, -np.inf)
        self.lower[self.held] = problem.margin
        self.penalties = np.zeros(p)
        self.penalties[: r * s] = problem.alpha
        self.v = np.zeros(p * (d + 1))
        self.v[-p:][self.held] = problem.margin
        self.objective, self.lowest = self._exactly(), -np.inf
        self.mu = _FIRST * max(self.objective, 1e-3)

    @property
    def gap(self) -> float:
        """How far the objective can be above the optimum, as a part of it."""
        return (self.objective - self.lowest) / max(abs(self.objective), 1e-12)

    def round(self) -> None:
        """Descend; smooth less the next time, unless this round has not come to its end.

        Penalised coordinates are scaled down: the surrogate's curvature is about 1 / (4 mu).
        """
        problem = self.problem
        v, _ = self.outputs.minimise(
            self.v, problem.kernel(self.mu), self.penalties, _PASSES, 1e-6 * self.mu,
            self.lower, problem.bases, 1.0 / np.sqrt(1.0 + 4.0 * self.mu * self.penalties),
        )  # fmt: skip
        before, self.v = self.v, v
        objective = self._exactly()
        if objective <= self.objective:
            self.objective = objective
        else:
            self.v = before
        if problem.inverse_moments is not None:
            self.lowest = max(self.lowest, self.bound(v))
            pieces = problem.n_regions * (problem.n_scorers + 1) * (problem.n_regions + 1)
            if self.objective - self.lowest > 2.0 * self.mu * np.log(pieces):
                return  # not yet there: what the smoothing costs is at most half of this
        self.mu = max(_LESS * self.mu, _LEAST * self.objective)

    def error(self) -> float:
        """Weighted training error of the model."""
        problem, found = self.problem, self.outputs.attributes(self.v)
        scores = regional_scores(problem.X, *models_of(SimpleNamespace(**found)))
        return float(problem.weights @ (winners(scores) != problem.y))

    def _exactly(self) -> float:
        """Objective without smoothing."""
        problem = self.problem
        total, _ = self.outputs.score(self.v, problem.kernel(1e-12 * max(1.0, problem.margin)))
        W = self.outputs.split(self.v)[0][: self.outputs.n_local]
        return total + 0.5 * problem.alpha * float(np.vdot(W, W))

    def bound(self, v: NDArray[Any]) -> float:
        """Lower bound of the objective, from the pieces of the smoothed surrogate at `v`.

        Row by row, the surrogate is at least ``A_i . Z_i + constants_i``. Where the sums over the
        rows of ``A_i x_i`` vanish for all that is not penalised, but for the multipliers of the
        constraints, minimising by hand gives the dual value

            sum of constants + margin (sum of multipliers) - ||sum A_i x_i||^2 / (2 alpha)

        They vanish only nearly. (1) In the classifiers' intercepts: pieces with one sign are made
        lighter. (2) In the partition: what is left over, V, is undone by ``C_i = w_i x_i M^-1 V``
        (M the second moments). As the surrogate is at least ``max_j |g_j(x_i)|``, the program
        allows a share 1 / (1 + reach) of A beside such a C, reach = max_i ||C_i||_1 / w_i.
        """
        problem, n_local = self.problem, self.outputs.n_local
        d, p = problem.X.shape[1], self.outputs.n_outputs
        moved = np.zeros((2, p, d))  # sums of A x, by the sign of A
        sums, constants = np.zeros((2, p)), np.zeros((2, p))

        def look(rows: slice, A: NDArray[Any], by_piece: NDArray[Any]) -> None:
            for sign, part in enumerate((np.maximum(A, 0), np.minimum(A, 0))):
                moved[sign] += part.T @ problem.X[rows]
                sums[sign] += part.sum(axis=0, dtype=np.float64)
                constants[sign] += by_piece.sum(axis=0, where=(A > 0) == (sign == 0))

        self.outputs.score(v, problem.kernel(self.mu, look))
        # (1) the two signs weigh the same
        balanced = np.minimum(sums[0], -sums[1])[:n_local] / np.maximum(
            np.abs(sums[:, :n_local]), 1e-300
        )
        pull = np.einsum("gp,gpd->pd", balanced, moved[:, :n_local])
        value = float((balanced * constants[:, :n_local]).sum() + constants[:, n_local:].sum())
        # (2) what the multipliers do not explain
        over, at = sums.sum(axis=0), self.outputs.pivots[self.held]
        multipliers = np.maximum(over[self.held], 0.0)
        V = np.column_stack([moved.sum(axis=0), over])[n_local:]
        V[: len(at)] -= np.column_stack([multipliers[:, None] * at, multipliers])
        undone = V @ problem.inverse_moments
        reach = 0.0
        for _, Z in local_products(problem.X, undone[None, :, :-1]):
            reach = max(reach, float(np.abs(Z + undone[:, -1]).sum(axis=1).max()))
        share = 1.0 / (1.0 + reach)
        value += problem.margin * float(multipliers.sum())
        return share * value - share**2 * float(np.vdot(pull, pull)) / (2.0 * problem.alpha)


class ConvexFit:
    """The program from several draws of constraint rows, each to its optimum; the best is kept.

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

    def __init__(self, problem: Problem, n_restarts: int, rng: np.random.Generator,
                 n_jobs: int | None, tol: float) -> None:  # fmt: skip
        self.problem, self.n_jobs, self.tol = problem, n_jobs, tol
        n, held = problem.X.shape[0], problem.n_regions - 1
        self.runs = [Run(problem, rng.choice(n, held, replace=False)) for _ in range(n_restarts)]

    @property
    def gap(self) -> float | None:
        """Largest gap of a draw; None where there are too many features to know."""
        if self.problem.inverse_moments is None:
            return None
        return max(run.gap for run in self.runs)

    def iterate(self, *, average: bool) -> float:
        """Descend with less smoothing. Return the objective of the draw that is kept."""
        waiting = [run for run in self.runs if not run.gap <= self.tol]
        Parallel(self.n_jobs, prefer="threads")(delayed(run.round)() for run in waiting)
        return self.best().objective

    def best(self) -> Run:
        """Return the draw with the least training error; of equals, the least objective."""
        return min(self.runs, key=lambda run: (run.error(), run.objective))

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        best = self.best()
        gap = np.nan if self.problem.inverse_moments is None else best.gap
        code = {"constraint_rows_": self.problem.rows.places(best.constrained), "dual_gap_": gap}
        return best.outputs.attributes(best.v) | code
