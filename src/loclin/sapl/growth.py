"""How many anchors: grow them where the loss is, until held-out risk stops falling."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from loclin.engine.data import Floats, Matrix, Rows
from loclin.engine.jit import kept_for
from loclin.engine.neighbors import soft_assignment
from loclin.engine.prediction import codes_by
from loclin.engine.scores import coded_scores
from loclin.engine.sgd import SGD
from loclin.engine.sgd_pass import row_losses
from loclin.sapl.anchors import AnchoredModels

_PASSES = 10  # over the rows, with each number of anchors; the last two are averaged
_GROWTH = 2  # anchors of a stage over those of the one before
_GAIN = 0.08  # of held-out risk, a stage: less is noise, and the error hardly follows it
_PATIENCE = 2  # stages without such a gain
# an anchor with less than this part of an equal share of the codes is dropped
_UNUSED = 0.01


def enough_anchors(
    make: Callable[[Floats, AnchoredModels | None], SGD], first: Floats, rows: Rows,
    watched: Rows, view: Callable[[Any], Any], n_most: int, rng: np.random.Generator,
) -> int:  # fmt: skip
    """Return the number of anchors beyond which held-out risk hardly falls.

    Parameters
    ----------
    make : callable
        ``make(anchors, models or None)``: a solver that starts there.
    first : ndarray of shape (m, d)
        The first, few anchors.
    rows, watched : Rows
        To learn from and to watch.
    view : callable
        Rows as the models see them.
    n_most : int
        No more anchors than these.
    rng : Generator

    Returns
    -------
    n_anchors : int
    """
    anchors, waited = first, 0
    models: Any = None
    least, enough = np.inf, len(first)
    X = view(rows.X)
    while True:
        solver = make(anchors, models)
        for turn in range(_PASSES):
            late = turn >= _PASSES - 2
            solver.iterate(X, rows.X, rows.y, rows.weights, rng, average=late)
        models = solver.fitted(0, *solver.current())
        losses, _ = losses_and_codes(solver, models, watched, view)
        risk = float(np.average(losses, weights=watched.weights))
        asked = least * (1 - _GAIN) ** (waited + 1)  # of all stages since the least risk
        waited = 0 if risk < asked else waited + 1
        if not waited:
            least, enough = risk, len(anchors)
        if waited == _PATIENCE or len(anchors) >= n_most:
            return enough
        models = split(solver, models, rows, view, n_most, rng)
        anchors = models.anchors


def losses_and_codes(
    solver: SGD, models: AnchoredModels, rows: Rows, view: Callable[[Any], Any]
) -> tuple[Floats, Any]:
    """Losses of the rows, summed over the scorers, and their codes."""
    coder: Any = solver.coder
    bandwidth = float(models.bandwidth)
    codes = codes_by(
        soft_assignment(models.anchors, coder.n_neighbors, bandwidth), rows.X
    )
    scores = coded_scores(view(rows.X), codes, models.local_coef, models.local_intercept)
    out = np.empty(len(rows.y))
    kept_for(row_losses, solver.settings.loss)(
        np.ascontiguousarray(scores), rows.y, solver.settings.loss, out
    )
    return out, codes


def split(
    solver: SGD, models: AnchoredModels, rows: Rows, view: Callable[[Any], Any], n_most: int,
    rng: np.random.Generator,
) -> AnchoredModels:  # fmt: skip
    """Halve the anchors whose regions carry most loss, and drop those that code nothing.

    The halves of an anchor are the two means of its rows, which count by their losses,
    and say what it said.
    """
    anchors = models.anchors
    losses, codes = losses_and_codes(solver, models, rows, view)
    usual = np.average(losses, weights=rows.weights) or 1.0
    share = np.asarray(codes.sum(axis=0)).ravel() * len(anchors) / len(rows.y)
    kept = np.flatnonzero(share > _UNUSED)
    carried = np.asarray(codes.T @ (rows.weights * losses)).ravel()[kept]
    wanted = min(int(np.ceil(_GROWTH * len(anchors))), n_most) - len(kept)
    order = np.argsort(-carried, kind="stable")
    halved = kept[order[: min(wanted, len(kept))]]
    taken = np.concatenate([kept, halved])
    at = anchors[taken]
    owner = np.asarray(codes.argmax(axis=1)).ravel()
    for half, j in zip(range(len(kept), len(taken)), halved, strict=True):
        own = np.flatnonzero(owner == j)
        if len(own) > 1:
            counts = rows.weights[own] * (1 + losses[own] / usual)
            at[[np.flatnonzero(kept == j)[0], half]] = two_means(rows.X[own], counts, rng)
    return replace(
        models, anchors=at, local_coef=models.local_coef[:, taken],
        local_intercept=models.local_intercept[:, taken],
    )  # fmt: skip


def two_means(X: Matrix, weights: Floats, rng: np.random.Generator) -> Floats:
    """Centres of two halves of the rows; one twice where the rows are one point."""
    from sklearn.cluster import KMeans

    pair = KMeans(2, n_init=1, random_state=int(rng.integers(2**31 - 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of rows that are one point
        return np.asarray(pair.fit(X, sample_weight=weights).cluster_centers_)
