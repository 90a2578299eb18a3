"""Features weighed by what the model uses: a metric that is learned from its gradients.

A model is fitted in short, the outer products of its gradients are averaged over the rows
(AGOP, Radhakrishnan et al., 2024), and their square root is the metric M of the next fit,
whose rows are ``M^(1/2) x``: in distances to anchors, and in the penalty, features count
as they were used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from loclin.engine.data import Floats, Labels, Matrix, Rows, is_sparse, mean_squared_norm
from loclin.engine.prediction import codes_of, in_metric
from loclin.engine.procedure import Predictor
from loclin.engine.shapes import Shape
from loclin.engine.streams import share_of_last
from loclin.engine.threads import side_by_side
from loclin.engine.warned import quiet
from loclin.fitting.mapped import LEAST
from loclin.fitting.probability import few_of
from loclin.fitting.recipe import Known, Recipe
from loclin.fitting.rows import part_of
from loclin.fitting.strength import FEW_ROWS, FOLDS
from loclin.fitting.temperature import log_losses
from loclin.fitting.trials import decisions_of, short_fit

ROUNDS = 4
_WHOLE_ROUNDS = 2
# Short fits learn from so many rows; as many tell whether the metric was worth it.
MOST_ROWS = 4000
# Where codes are learned, "auto" takes no metric of more rows, which see what 4,000 do
# not.
MOST_CHOSEN_FOR = 64_000
# A whole metric, and "auto", takes no more features: the time grows with their cube.
MOST_FEATURES = 2000
_GRADIENT_ROWS = 2000  # the metric looks at the gradients of so many rows
# Moments are taken where a row has no more codes; else gradients are formed row by row.
_MOST_CODES = 4000
_STRONGER = 4.0  # short fits multiply the penalty by this
_POWER = 0.25  # the root of the metric is this power of the AGOP
Parts: TypeAlias = list[tuple[Rows, Rows]]  # to learn from, and held out


def code_moments(codes: Any, weights: Floats) -> Floats:
    """Mean over the rows of the outer products of their codes.

    Parameters
    ----------
    codes : csr of shape (n, m) or ndarray of shape (n, s, m)
    weights : ndarray of shape (n,)
        Of the rows.

    Returns
    -------
    moments : ndarray of shape (m, m) or (s m, s m), float64
    """
    total = weights.sum(dtype=np.float64)
    if is_sparse(codes):
        flat = codes.astype(np.float64)
        return (flat.T @ flat.multiply(weights[:, None])).toarray() / total
    flat = codes.reshape(len(codes), -1).astype(float)
    return flat.T @ (flat * weights[:, None]) / total


def gradient_products(moments: Floats, coef: Floats, *, whole: bool) -> Floats:
    """Mean over the rows of the outer products of the scores' gradients (AGOP).

    The gradient of score y at row i is ``g_iy = sum_j code_iyj w_yj``; of several scores,
    that less the mean over the scores counts, as what all have in common tells no class.
    The mean of ``sum_y g_iy g_iy'`` is then ``W' S W`` with second moments S of the
    codes, so that no gradient is formed.

    Parameters
    ----------
    moments : ndarray of shape (m, m) or (s m, s m)
        Of codes that the scorers share, or of those of each.
    coef : ndarray of shape (s, m, d)
    whole : bool
        False for the diagonal alone.

    Returns
    -------
    products : ndarray of shape (d, d) or (d,), float64
    """
    s, m, d = coef.shape
    if len(moments) == m:
        blocks, mean = coef, coef.mean(axis=0) if s > 1 else 0.0
    else:
        moments = moments * np.kron(np.eye(s) - 1 / s, np.ones((m, m)))
        blocks, mean = coef.reshape(1, s * m, d), 0.0
    products = np.zeros((d, d) if whole else d)
    for of_scorer in blocks:
        W = (of_scorer - mean).astype(np.float64)
        products += (
            W.T @ (moments @ W) if whole else np.einsum("md,md->d", W, moments @ W)
        )
    return products


def products_by_row(
    codes: Floats, weights: Floats, coef: Floats, *, whole: bool
) -> Floats:
    """Return what `gradient_products` gives of these codes' moments,
    a row's gradients at a time.

    Moments of all pairs of codes are too many where classes are.

    Parameters
    ----------
    codes : ndarray of shape (n, m) or (n, s, m)
    weights : ndarray of shape (n,)
        Of the rows.
    coef : ndarray of shape (s, m, d)
    whole : bool
    """
    d = coef.shape[-1]
    products = np.zeros((d, d) if whole else d)
    by = "sm,smd->sd" if codes.ndim == 3 else "m,smd->sd"
    for of_row, weight in zip(
        codes, weights / weights.sum(dtype=np.float64), strict=True
    ):
        gradients = np.einsum(by, of_row, coef).astype(np.float64)
        if len(gradients) > 1:
            gradients -= gradients.mean(axis=0)
        products += weight * (
            gradients.T @ gradients if whole else (gradients**2).sum(axis=0)
        )
    return products


def root_of(products: Floats, X: Matrix, rank: int | None = None) -> Floats | None:
    """Return the root of the metric by these products; None where gradients tell none.

    It leaves the rows the mean squared norm that they have, so that steps, the bandwidth
    and the rule for alpha stay what they are.

    Parameters
    ----------
    products : ndarray of shape (d,) or (d, d)
        float64.
    X : {ndarray, csr} of shape (n, d)
    rank : int or None
        Directions of a whole metric that count, the first; the others count least.
    """
    if not np.isfinite(products).all():  # the fit itself will say what overflows
        return None
    values, vectors = (products, None) if products.ndim == 1 else np.linalg.eigh(products)
    largest = float(values.max())
    if largest <= 0:
        return None
    strengths = np.maximum(np.maximum(values / largest, 0.0) ** _POWER, LEAST)
    if rank is not None:
        strengths[: max(0, len(strengths) - rank)] = LEAST
    root = strengths if vectors is None else (vectors * strengths) @ vectors.T
    root = root.astype(X.dtype)
    norm2 = mean_squared_norm(in_metric(X, root))
    return root * math.sqrt(mean_squared_norm(X) / norm2) if norm2 > 0 else None


def products_of(known: Known, learned: Any, rows: Rows, *, whole: bool) -> Floats:
    """Return the products of a fit's gradients at some of the rows, with a trace of 1."""
    sample = slice(None, None, -(-len(rows.y) // _GRADIENT_ROWS))
    codes = codes_of(learned.term(known.root), rows.X[sample])
    weights = rows.weights[sample]
    if not is_sparse(codes) and np.prod(codes.shape[1:]) > _MOST_CODES:
        products = products_by_row(codes, weights, learned.local_coef, whole=whole)
    else:
        moments = code_moments(codes, weights)
        products = gradient_products(moments, learned.local_coef, whole=whole)
    trace = products.trace() if whole else products.sum()
    return products / trace if trace > 0 else products


def refit(
    recipe: Recipe, rows: Rows, root: Floats | None, n_iterations: int
) -> Predictor:
    """Return a short fit in a metric."""
    with np.errstate(all="ignore"):  # a thread of its own has its own
        return short_fit(replace(recipe, root=root), rows, n_iterations)


def refits(
    recipe: Recipe, parts: Parts, roots: Sequence[Floats | None], n_iterations: int
) -> list[Predictor]:
    """Return short fits to the rows of each part that are not held out."""
    pairs = zip(parts, roots, strict=True)
    tasks = [(recipe, learned, root, n_iterations) for (learned, _), root in pairs]
    return side_by_side(refit, tasks, recipe.n_jobs)


def learned_root(recipe: Recipe, rows: Rows, n_iterations: int) -> Floats | None:
    """Return the root of the metric after all rounds, by short fits to some of the rows."""
    metric = recipe.metric
    assert metric is not None
    whole, rank = is_whole(metric), rank_of(metric)
    by_class = np.argsort(rows.y, kind="stable")[:: -(-len(rows.y) // MOST_ROWS)]
    first = np.unique(rows.y, return_index=True)[1]
    sample, root = part_of(rows, np.union1d(by_class, first)), None
    rounds = _WHOLE_ROUNDS if metric == "full" else ROUNDS
    for left in reversed(range(rounds)):
        fitted = refit(recipe, sample, root, n_iterations)
        products = products_of(replace(recipe, root=root), fitted, sample, whole=whole)
        root = root_of(products, sample.X, None if left else rank)
    return root


def splits(y: Labels, seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield rows to learn from and rows held out; none where a class has too few."""
    n = len(y)
    if n < FEW_ROWS[0] or np.bincount(y).min() < FOLDS:
        return
    if n <= FEW_ROWS[1]:
        yield from StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y)
        return
    sizes = {
        "test_size": min(MOST_ROWS, n // FOLDS),
        "train_size": min(MOST_ROWS, n - n // FOLDS),
    }
    yield from StratifiedShuffleSplit(1, random_state=seed, **sizes).split(y, y)


def chosen_root(recipe: Recipe, rows: Rows, n_iterations: int) -> Floats | None:
    """Return the root of the diagonal metric, the mean of all folds;
    None for the plain one.

    Rounds go on while the log loss of the rows held out falls; errors tell less of so few
    rows.
    """
    folds = list(splits(rows.y, recipe.seed))
    if not folds:
        return None
    n_classes = len(recipe.classes)
    parts = [
        (part_of(rows, train), part_of(rows, few_of(test, n_classes, len(folds))))
        for train, test in folds
    ]
    roots: list[Floats | None] = [None] * len(parts)
    fitted = refits(recipe, parts, roots, n_iterations)
    least, chosen = held_out_loss(recipe, fitted, parts, roots), None
    for _ in range(ROUNDS):
        products = [
            products_of(replace(recipe, root=root), one, learned, whole=False)
            for one, root, (learned, _) in zip(fitted, roots, parts, strict=True)
        ]
        roots = [
            root_of(of_fold, learned.X)
            for of_fold, (learned, _) in zip(products, parts, strict=True)
        ]
        fitted = refits(recipe, parts, roots, n_iterations)
        loss = held_out_loss(recipe, fitted, parts, roots)
        if not loss < least:
            break
        least, chosen = loss, root_of(np.mean(products, axis=0), rows.X)
    return chosen


def held_out_loss(
    known: Known, fitted: list[Predictor], parts: Parts, roots: Sequence[Floats | None]
) -> float:
    """Return the log loss of the rows held out,
    at the temperature that suits all parts best.
    """
    tested = [held_out for _, held_out in parts]
    decisions = [
        decisions_of(replace(known, root=root), one, rows.X)
        for one, root, rows in zip(fitted, roots, tested, strict=True)
    ]
    losses = log_losses(
        np.concatenate(decisions),
        np.concatenate([rows.y for rows in tested]),
        np.concatenate([rows.weights for rows in tested]),
    )
    return float(losses.sum())


class StreamedMetric(NamedTuple):
    """The metric of a stream follows its gradients:
    it moves whenever the rows seen have doubled.

    Parameters
    ----------
    n_next : int
        Rows seen, at which it moves next.
    n_averaged : int, default=0
    moments : ndarray, default=None
        Running `code_moments` of so many rows, that forget early ones as the models do.
    """

    n_next: int
    n_averaged: int = 0
    moments: Annotated[Floats | None, Shape("z z", np.float64)] = None  # z = m, or s m

    def after(self, codes: Any, weights: Floats) -> StreamedMetric:
        """Take in the codes of some more rows."""
        n, moments = len(weights), code_moments(codes, weights)
        if self.moments is not None:
            share = share_of_last(n, self.n_averaged)
            moments = self.moments + share * (moments - self.moments)
        return self._replace(n_averaged=self.n_averaged + n, moments=moments)

    def root(self, metric: str | int, coef: Floats, X: Matrix) -> Floats | None:
        """Return the root of the metric by the gradients so far;
        None where they tell none.
        """
        assert self.moments is not None
        products = gradient_products(self.moments, coef, whole=is_whole(metric))
        return root_of(products, X, rank_of(metric))


def is_whole(metric: str | int | None) -> bool:
    """Tell whether the metric is a matrix, not its diagonal alone."""
    return metric not in (None, "diagonal", "auto")


def rank_of(metric: str | int) -> int | None:
    """Return the number of directions that count; None for all."""
    return None if isinstance(metric, str) else int(metric)


def stronger(recipe: Recipe) -> dict[str, Any]:
    """Return the strength of short fits, as fields: what tells nothing shrinks most."""
    if isinstance(recipe.alpha, str):
        return {"factor": _STRONGER * recipe.factor}
    return {"alpha": _STRONGER * float(recipe.alpha)}


def chosen_metric(recipe: Recipe, rows: Rows) -> Floats | None:
    """Return the root of the metric of a fit; None where there should be none.

    Raises
    ------
    ValueError
        If the rows or the codes do not allow the metric that was asked for.
    """
    metric = recipe.metric
    if metric is None:
        return None
    n_features = recipe.n_features  # used or not
    width = max(n_features, rows.X.shape[1])
    if is_whole(metric) and (is_sparse(rows.X) or width > MOST_FEATURES):
        beside = f" and {width - n_features} pieces of them" if width > n_features else ""
        reason = (
            "would make sparse rows dense" if is_sparse(rows.X)
            else f"takes at most {MOST_FEATURES} features, and X has {n_features}{beside}"
        )  # fmt: skip
        raise ValueError(f"metric={metric!r} {reason}; use metric='diagonal' instead.")
    too_many = recipe.learns_codes and len(rows.y) > MOST_CHOSEN_FOR
    if metric == "auto" and (n_features > MOST_FEATURES or too_many):
        return None
    trial = recipe.trial(rows)
    if metric != "auto" and not trial.in_metric:
        raise ValueError(
            f"metric={metric!r} needs a coding that is fitted in the metric, not a frozen one; "
            "give the coding unfitted, or set metric=None."
        )
    tried = replace(recipe, **trial.changes | stronger(recipe))
    with quiet(), np.errstate(all="ignore"):  # the fit itself warns
        if metric != "auto":
            return learned_root(tried, rows, trial.n_learning)
        if trial.in_metric:
            with suppress(ValueError):  # a fold may have too few rows for what all allow
                return chosen_root(tried, rows, trial.n_learning)
    return None
