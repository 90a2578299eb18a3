"""How far a running fit has come,
when it has come far enough, and what is said of its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from loclin.engine.data import Rows, is_sparse
from loclin.engine.prediction import scores_of
from loclin.engine.procedure import Predictor
from loclin.engine.scores import winners
from loclin.engine.warned import warn
from loclin.fitting.recipe import Recipe
from loclin.fitting.targets import share_right

_MAY_BE_INFINITE = {"dual_gap", "p"}  # all else that is learned is finite


@dataclass
class Plateau:
    """A value that is to fall, by `tol` and by a share,
    and the iterations since it last did.
    """

    tol: float
    patience: int
    share: float = 0.0
    best: float = np.inf
    waited: int = 0

    def reached(self, value: float) -> bool:
        """Tell whether the value has not fallen so far for
        `patience` iterations in a row.
        """
        fell = value < min(self.best - self.tol, self.best * (1 - self.share))
        self.waited = 0 if fell else self.waited + 1
        self.best = min(self.best, value)
        return self.waited >= self.patience

    def replay(self, values: Sequence[float]) -> int:
        """Take the values of a fit that goes on;
        return how many it took to the plateau, or 0.
        """
        return next((n for n, value in enumerate(values, 1) if self.reached(value)), 0)


def plateau_of(recipe: Recipe, n_samples: int) -> tuple[Plateau, int]:
    """Return the plateau that ends a fit to so many rows,
    and the iterations averaged after it.
    """
    plateau, average = Plateau(recipe.tol, recipe.n_iter_no_change), recipe.average
    if not recipe.takes_rounds(n_samples):
        return plateau, average
    patience, share, averaged = recipe.end_of_rounds
    if not recipe.early_stopping:
        plateau = replace(plateau, patience=patience * plateau.patience)
        if share:
            plateau = replace(plateau, tol=plateau.tol / 10, share=share * plateau.tol)
    return plateau, averaged * average


@dataclass
class Watch:
    """What watches a fit: objectives and held-out accuracies,
    and the last iteration by them.

    A fit ends by its duality gap where it knows one; else at a plateau, after which some
    more iterations are averaged; and at the most iterations in any case.

    Parameters
    ----------
    plateau : Plateau
    average : int
        Iterations averaged at the end.
    last : int
        The last iteration, as far as is known.
    stopping : bool
        Whether the end was reached, not the most iterations alone.
    objectives, accuracies : list of float
        One for each iteration; accuracies only where rows are held out.
    """

    plateau: Plateau
    average: int
    last: int
    stopping: bool
    objectives: list[float]
    accuracies: list[float]

    @classmethod
    def of(
        cls, recipe: Recipe, n_samples: int, objectives: Sequence[float],
        accuracies: Sequence[float], *, has_gap: bool,
    ) -> Self:  # fmt: skip
        """Return what watches a fit from its start, or from where it was cut off."""
        plateau, average = plateau_of(recipe, n_samples)
        reached = plateau.replay([-accuracy for accuracy in accuracies] or objectives)
        last, stopping = recipe.max_iter, bool(reached) and not has_gap
        if stopping:
            last = min(last, reached + average)
        last = max(len(objectives) + 1, last)
        return cls(plateau, average, last, stopping, [*objectives], [*accuracies])

    @property
    def goes_on(self) -> bool:
        """Tell whether another iteration is to come."""
        return len(self.objectives) < self.last

    @property
    def averages(self) -> bool:
        """Tell whether the next iteration is one of those that are averaged."""
        return len(self.objectives) >= self.last - self.average

    def report(self, called: str = "iteration") -> str:
        """Return what the last iteration says."""
        told = f"{called} {len(self.objectives)}/{self.last}, objective {self.objectives[-1]:.6g}"
        if self.accuracies:
            told += f", validation accuracy {self.accuracies[-1]:.4f}"
        return told

    def end_where_due(self, recipe: Recipe, gap: float | None, *, stop: bool) -> None:
        """Let the fit end where it has come far enough, or where a callback says so."""
        watched = -self.accuracies[-1] if self.accuracies else self.objectives[-1]
        n = len(self.objectives)
        if gap is None:
            if not self.stopping and (stop or self.plateau.reached(watched)):
                self.stopping, self.last = True, min(recipe.max_iter, n + self.average)
        elif (
            stop
            or gap <= recipe.tol
            or (self.accuracies and self.plateau.reached(watched))
        ):
            self.stopping, self.last = True, n


def accuracy_of(recipe: Recipe, learned: Predictor, rows: Rows) -> float:
    """Weighted accuracy on rows held out."""
    scores = scores_of(learned.term(recipe.root), rows.X)
    right = share_right(winners(scores, recipe.multilabel), rows.y)
    return float(np.average(right, weights=rows.weights))


def warn_of_end(recipe: Recipe, gap: float | None) -> None:
    """Warn that all iterations were done before the duality gap,
    or a plateau, was reached.
    """
    end, tol, is_raw = (
        f"max_iter={recipe.max_iter} iterations",
        recipe.tol,
        recipe.features.is_raw,
    )
    if gap is None:
        watched = "held-out accuracy" if recipe.early_stopping else "objective"
        told = (
            f"The {watched} had not levelled off (tol={tol:g}) when {end} were done. "
            "Raise max_iter or tol."
        )
    elif gap > tol:
        told = (
            f"The duality gap is {gap:.2g} of the objective after {end}, above tol={tol:g}. "
            f"{'Scale the features, raise' if is_raw else 'Raise'} alpha, max_iter or tol."
        )
    else:
        return
    warn(told, ConvergenceWarning)


def check_learned(recipe: Recipe, learned: Predictor, objective: float) -> None:
    """Raise where something that was learned is not finite."""
    values = [
        value for name, value in vars(learned).items() if name not in _MAY_BE_INFINITE
    ]
    arrays = [value.data if is_sparse(value) else value for value in [*values, objective]]
    numbers = [np.asarray(one) for one in arrays if isinstance(one, float | np.ndarray)]
    if not all(np.isfinite(one).all() for one in numbers if one.dtype.kind == "f"):
        given = {name: getattr(recipe, name) for name in sorted(recipe.parameters())}
        floats = [
            (name, value) for name, value in given.items() if isinstance(value, float)
        ]
        odd = [f"{k}={v:g}" for k, v in floats if 1e30 < v < np.inf or 0 < v < 1e-30]
        cure = f"take {' and '.join(odd)} nearer to 1." if odd else "raise alpha."
        if recipe.features.is_raw:
            cure = f"scale the features first, for example by standardize=True, or {cure}"
        raise ValueError(
            f"Training overflowed: some weights are no longer finite; {cure}"
        )
