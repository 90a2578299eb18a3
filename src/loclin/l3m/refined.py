"""The risk of a hard linear partition, by annealing a soft one (L3M's refined model).

A row is in region k with probability p_k, the softmax of ``sharpness * g_k(x)``. With rising
sharpness and falling trust minimises

    1/(sum w) sum_i -w_i / trust log sum_k p_k(x_i) exp(-trust loss_i(f_k))
        + alpha/2 (sum_k ||f_k||^2 + 10 sum_k ||g_k||^2)

over classifiers f and partition g together. Then the partition is hard, region = argmax_k g_k(x),
and the same with p_k = 0 or 1 is minimised over the classifiers alone: the model's own risk.
Intercepts are free. loss_i is the logistic loss of the softmax (of one score, for two classes), or
Crammer and Singer's hinge, smoothed over a width of 0.1.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from loclin.anchors import kmeans_anchors
from loclin.engine.data import Rows
from loclin.engine.losses import Loss
from loclin.l3m.kernels import soft_rows
from loclin.l3m.outputs import Outputs

# Sharpness and trust of the rounds; then the partition is hard.
SCHEDULE = ((1.0, 1.0), (2.0, 1.0), (4.0, 1.0), (8.0, 0.5), (16.0, 0.2), (32.0, 0.05))
_HARD = (1e12, 1.0)
_PASSES = 30  # of a round
_TRIAL_PASSES, _TRIAL_ROWS = 15, 2000  # of a round, when starts are compared
_GAIN = 0.02  # held-out risk must fall by this part of it to pay for more regions ...
_SMALL = 0.1  # ... or of this, where it is smaller
_TOL = 1e-6  # of the gradient
_LEAST_FALL = 1e-5  # of the objective in a pass
_PARTITION = 10.0  # weight of the partition's penalty
_SMOOTH = {Loss.LOGISTIC: (0.0, 1.0), Loss.HINGE: (1.0, 0.1)}  # shift and width


class Annealing:
    """The descent over given rows.

    Parameters
    ----------
    rows : Rows
    n_regions, n_scorers : int
    alpha : float
    loss : Loss
        Hinge or logistic.
    columns : ndarray of int or None
        Features that count; None stands for all.
    """

    def __init__(self, rows: Rows, n_regions: int, n_scorers: int, alpha: float, loss: Loss,
                 columns: NDArray[np.intp] | None = None) -> None:  # fmt: skip
        self.rows, self.alpha, self.smooth = rows, alpha, _SMOOTH[loss]
        self.weights = rows.weights / rows.weights.sum(dtype=np.float64)
        mean = np.asarray(self.weights @ rows.X, np.float64).reshape(1, -1)
        self.outputs = Outputs(rows.X, n_regions, n_scorers, mean, columns=columns)

    def descend(self, v: NDArray[Any], stage: tuple[float, float], n_passes: int = _PASSES, *,
                partition: bool = True) -> tuple[NDArray[Any], float]:  # fmt: skip
        """Return where the descent from `v` leads, and the objective there."""
        outputs = self.outputs
        r, s = outputs.n_regions, outputs.n_scorers
        penalties = np.full(outputs.n_outputs, self.alpha)
        penalties[r * s :] = _PARTITION * self.alpha * partition

        def kernel(Z: NDArray[Any], rows: slice, A: NDArray[Any]) -> float:
            y, weights = self.rows.y[rows], self.weights[rows]
            total = soft_rows(Z, y, weights, r, s, *stage, *self.smooth, A)
            if not partition:
                A[:, r * s :] = 0
            return total

        return outputs.minimise(v, kernel, penalties, n_passes, _TOL, least_fall=_LEAST_FALL)

    def refit(self, v: NDArray[Any], n_passes: int = _PASSES) -> tuple[NDArray[Any], float]:
        """Descend with the partition hard and at rest."""
        return self.descend(v, _HARD, n_passes, partition=False)

    def start(self, partition: NDArray[Any]) -> NDArray[Any]:
        """Return the unknowns with this partition (r, d + 1) and classifiers of 0."""
        r, s = self.outputs.n_regions, self.outputs.n_scorers
        nothing = np.zeros((s, r, partition.shape[1] - 1)), np.zeros((s, r))
        return self.outputs.of_models(partition[:, :-1], partition[:, -1], *nothing)

    def risk(self, v: NDArray[Any], rows: Rows) -> float:
        """Mean loss of the hard model over other rows."""
        r, s = self.outputs.n_regions, self.outputs.n_scorers
        total, _ = self.outputs.over(rows.X).score(
            v,
            lambda Z, some, A: soft_rows(
                Z, rows.y[some], rows.weights[some], r, s, *_HARD, *self.smooth, A
            ),
        )
        return total / float(rows.weights.sum())


class RefinedFit:
    """The annealing over rows held in memory: a round is an iteration.

    Parameters
    ----------
    annealing : Annealing
    v : ndarray
        Where it starts.
    hard : bool, default=False
        Whether the partition is hard from the beginning.
    """

    gap: float | None = None  # the procedure knows none

    def __init__(self, annealing: Annealing, v: NDArray[Any], *, hard: bool = False) -> None:
        self.annealing, self.v = annealing, v
        self.n_rounds = len(SCHEDULE) if hard else 0

    def iterate(self, *, average: bool) -> float:
        """Descend with the sharpness of the next round. Return the objective."""
        if self.n_rounds < len(SCHEDULE):
            self.v, objective = self.annealing.descend(self.v, SCHEDULE[self.n_rounds])
        else:
            self.v, objective = self.annealing.refit(self.v)
        self.n_rounds += 1
        return objective

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        return self.annealing.outputs.attributes(self.v)


def partition_at(points: NDArray[Any], X: Any) -> NDArray[np.float64]:
    """Return the partition (r, d + 1) of the nearest point, its scores of deviation 1 on X."""
    points = np.asarray(points, np.float64)
    center = points.mean(axis=0)
    coef, intercept = 2.0 * (points - center), -np.einsum("kf,kf->k", points, points)
    intercept -= intercept.mean()
    scores = np.asarray(X @ coef.T) + intercept
    return np.column_stack([coef, intercept]) / (scores.std() or 1.0)


def draw_partition(X: Any, n_regions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a partition to start from: of the centres of k-means over some rows."""
    some = X[rng.permutation(X.shape[0])[:_TRIAL_ROWS]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fewer distinct rows than regions
        points = kmeans_anchors(some, n_regions, int(rng.integers(2**31 - 1)))
    return partition_at(points[np.arange(n_regions) % len(points)], some)


def best_start(make: Any, rows: Rows, watched: Rows, starts: list[NDArray[Any]],
               n_jobs: int | None) -> tuple[NDArray[Any], float]:  # fmt: skip
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

    def risk(partition: NDArray[Any]) -> float:
        annealing = make(few, len(partition))
        v = annealing.start(partition)
        for stage in SCHEDULE:
            v, _ = annealing.descend(v, stage, _TRIAL_PASSES)
        v, _ = annealing.refit(v)
        return annealing.risk(v, watched)

    risks = Parallel(n_jobs, prefer="threads")(delayed(risk)(partition) for partition in starts)
    best = int(np.argmin(risks))
    return starts[best], float(risks[best])


def best_number(
    make: Any, rows: Rows, watched: Rows, draws: Iterable[tuple[int, list[NDArray[Any]]]],
    n_jobs: int | None,
) -> tuple[int, NDArray[Any]]:  # fmt: skip
    """Return the number of regions with the least held-out risk, and its best start.

    Parameters
    ----------
    make, rows, watched, n_jobs
        See `best_start`.
    draws : iterable of (int, list of ndarray)
        Numbers, rising, and starts with them; no more are tried after one without enough gain.
    """
    least, best = np.inf, (0, np.empty(0))
    for number, starts in draws:
        start, risk = best_start(make, rows, watched, starts, n_jobs)
        if not risk < least - _GAIN * max(risk, _SMALL):
            break
        least, best = risk, (number, start)
    return best
