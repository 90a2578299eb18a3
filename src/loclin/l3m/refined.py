"""The risk of a hard linear partition, by annealing a soft one (L3M's refined model).

A row is in region k with probability p_k, the softmax of ``sharpness * g_k(x)``. With
rising sharpness and falling trust minimises

    1/(sum w) sum_i -w_i / trust log sum_k p_k(x_i) exp(-trust loss_i(f_k))
        + alpha/2 (sum_k ||f_k||^2 + 10 sum_k ||g_k||^2)

over classifiers f and partition g together. Then the partition is hard, region = argmax_k
g_k(x), and the same with p_k = 0 or 1 is minimised over the classifiers alone: the
model's own risk. Intercepts are free. loss_i is the logistic loss of the softmax (of one
score, for two classes), or Crammer and Singer's hinge, smoothed over a width of 0.1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.anchors import kmeans_anchors
from loclin.engine.data import Matrix, Rows
from loclin.engine.losses import Loss
from loclin.engine.procedure import Procedure
from loclin.engine.threads import side_by_side
from loclin.l3m.kernels import soft_rows
from loclin.l3m.models import PartitionedModels, RegionalModels
from loclin.l3m.outputs import Floats, Limits, Outputs, Vector, block_products, minimise
from loclin.l3m.span import minimise_in_span


class Stage(NamedTuple):
    """How hard the partition is in a round, see `soft_rows`."""

    sharpness: float
    trust: float


# The rounds; then the partition is hard.
SCHEDULE = (
    Stage(1.0, 1.0),
    Stage(2.0, 1.0),
    Stage(4.0, 1.0),
    Stage(8.0, 0.5),
    Stage(16.0, 0.2),
    Stage(32.0, 0.05),
)
_HARD = Stage(1e12, 1.0)
PASSES = 30  # of a round
_TRIAL_PASSES, _TRIAL_ROWS = 15, 2000  # of a round, when starts are compared
_GAIN = 0.02  # held-out risk must fall by this part of it to pay for more regions ...
_SMALL = 0.1  # ... or of this, where it is smaller
_TOL = 1e-6  # of the gradient
_LEAST_FALL = 1e-5  # of the objective in a pass
_PARTITION = 10.0  # weight of the partition's penalty


class Annealing:
    """The descent over given rows.

    Parameters
    ----------
    rows : Rows
    n_regions, n_scorers : int
    alpha : float
    loss : Loss
        With a `softmax`.
    columns : ndarray of int or None
        Features that count; None stands for all.
    """

    def __init__(
        self,
        rows: Rows,
        n_regions: int,
        n_scorers: int,
        alpha: float,
        loss: Loss,
        columns: NDArray[np.intp] | None = None,
    ) -> None:
        self.rows = rows
        if loss.softmax is None:
            raise ValueError(
                f"loss={loss.name!r} has no softmax, which solver='refined' needs."
            )
        self.alpha, self.loss = alpha, loss.softmax
        self.weights = rows.weights / rows.weights.sum(dtype=np.float64)
        mean = np.asarray(self.weights @ rows.X, np.float64).reshape(1, -1)
        self.outputs = Outputs(rows.X, n_regions, n_scorers, mean, columns=columns)

    def descend(
        self, v: Vector, stage: Stage, n_passes: int = PASSES, *, partition: bool = True
    ) -> tuple[Vector, float]:
        """Return where the descent from `v` leads, and the objective there.

        Without `partition`, it stays as it is.
        """
        outputs = self.outputs
        r, s = outputs.n_regions, outputs.n_scorers
        penalties = np.full(outputs.n_outputs, self.alpha)
        penalties[r * s :] = _PARTITION * self.alpha * partition

        def kernel(Z: Floats, rows: slice, A: Floats) -> float:
            y, weights = self.rows.y[rows], self.weights[rows]
            total = soft_rows(Z, y, weights, r, s, *stage, *self.loss, A)
            if not partition:
                A[:, r * s :] = 0
            return total

        limits = Limits(n_passes, _TOL, _LEAST_FALL)
        if outputs.has_few_rows:
            return minimise_in_span(outputs, kernel, penalties, v, limits)
        return minimise(outputs.penalized(kernel, penalties), v, limits)

    def refit(self, v: Vector, n_passes: int = PASSES) -> tuple[Vector, float]:
        """Descend with the partition hard and at rest."""
        return self.descend(v, _HARD, n_passes, partition=False)

    def start(self, partition: Vector) -> Vector:
        """Return the unknowns with this partition (r, d + 1) and classifiers of 0."""
        r, s = self.outputs.n_regions, self.outputs.n_scorers
        coef = np.zeros((s, r, partition.shape[1] - 1))
        models = RegionalModels(
            partition[:, :-1], partition[:, -1], coef, np.zeros((s, r))
        )
        return self.outputs.of_models(models)

    def risk(self, v: Vector, rows: Rows) -> float:
        """Mean loss of the hard model over other rows."""
        r, s = self.outputs.n_regions, self.outputs.n_scorers

        def kernel(Z: Floats, some: slice, A: Floats) -> float:
            y, weights = rows.y[some], rows.weights[some]
            return soft_rows(Z, y, weights, r, s, *_HARD, *self.loss, A)

        total, _ = self.outputs.over(rows.X).score(v, kernel)
        return total / float(rows.weights.sum())


Make = Callable[[Rows, int], Annealing]


class RefinedFit(Procedure):
    """The annealing over rows held in memory: a round is an iteration.

    Parameters
    ----------
    annealing : Annealing
    v : ndarray
        Where it starts.
    n_rounds : int, default=0
        Rounds done before; after those of the schedule the partition is hard.
    n_passes : int, default=30
        Of a round, at most.
    """

    gap = None  # the procedure knows none

    def __init__(
        self,
        annealing: Annealing,
        v: Vector,
        *,
        n_rounds: int = 0,
        n_passes: int = PASSES,
    ) -> None:
        self.annealing, self.v, self.n_rounds = annealing, v, n_rounds
        self.n_passes = n_passes

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a block of rows."""
        return block_products(self.annealing.rows.X, self.annealing.outputs.n_outputs)

    def iterate(self, *, average: bool) -> float:
        """Descend with the sharpness of the next round. Return the objective."""
        if self.n_rounds < len(SCHEDULE):
            stage = SCHEDULE[self.n_rounds]
            self.v, objective = self.annealing.descend(self.v, stage, self.n_passes)
        else:
            self.v, objective = self.annealing.refit(self.v, self.n_passes)
        self.n_rounds += 1
        return objective

    def result(self, *, final: bool = False) -> PartitionedModels:
        """Return the model as it stands."""
        models = self.annealing.outputs.models(self.v)
        return PartitionedModels.of(models, self.annealing.alpha)


def partition_at(points: Floats, X: Matrix) -> Vector:
    """Return the partition (r, d + 1) of the nearest point,
    its scores of deviation 1 on X.
    """
    points = np.asarray(points, np.float64)
    coef = 2.0 * (points - points.mean(axis=0))
    intercept = -np.einsum("kf,kf->k", points, points)
    intercept -= intercept.mean()
    scores = np.asarray(X @ coef.T) + intercept
    return np.column_stack([coef, intercept]) / (scores.std() or 1.0)


def draw_partition(X: Matrix, n_regions: int, rng: np.random.Generator) -> Vector:
    """Return a partition to start from: of the centres of k-means over some rows."""
    some = X[rng.permutation(X.shape[0])[:_TRIAL_ROWS]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fewer distinct rows than regions
        points = kmeans_anchors(some, n_regions, int(rng.integers(2**31 - 1)))
    return partition_at(points[np.arange(n_regions) % len(points)], some)


def best_start(
    make: Make, rows: Rows, watched: Rows, starts: list[Vector], n_jobs: int | None
) -> tuple[Vector, float]:
    """Return the start after which held-out risk is least, and this risk.

    Parameters
    ----------
    make : callable
        ``make(rows, n_regions)``: an `Annealing`.
    rows, watched : Rows
        To learn from, shuffled (the first 2,000 are used), and to watch.
    starts : list of ndarray of shape (r, d + 1)
        Partitions.
    n_jobs : int or None
    """
    some = slice(_TRIAL_ROWS)
    few = Rows(rows.X[some], rows.y[some], rows.weights[some])

    def risk(partition: Vector) -> float:
        annealing = make(few, len(partition))
        v = annealing.start(partition)
        for stage in SCHEDULE:
            v, _ = annealing.descend(v, stage, _TRIAL_PASSES)
        v, _ = annealing.refit(v)
        return annealing.risk(v, watched)

    risks = side_by_side(risk, [(partition,) for partition in starts], n_jobs)
    best = int(np.argmin(risks))
    return starts[best], float(risks[best])


def best_number(
    make: Make,
    rows: Rows,
    watched: Rows,
    draws: Iterable[list[Vector]],
    n_jobs: int | None,
) -> Vector:
    """Return the partition to start from,
    with the number of regions of the least held-out risk.

    Parameters
    ----------
    make, rows, watched, n_jobs
        See `best_start`.
    draws : iterable of list of ndarray
        Starts, with ever more regions; no more are tried after a number without enough
        gain.
    """
    least, best = np.inf, np.empty(0)
    for starts in draws:
        start, risk = best_start(make, rows, watched, starts, n_jobs)
        if not risk < least - _GAIN * max(risk, _SMALL):
            break
        least, best = risk, start
    return best
