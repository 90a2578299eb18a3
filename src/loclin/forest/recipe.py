"""What a fit of a forest needs, and how it grows."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from loclin.engine.data import Rows
from loclin.engine.leaves import leaf_scores
from loclin.engine.procedure import Procedure, StreamProcedure
from loclin.engine.scores import winners
from loclin.fitting.checks import check_number, check_option
from loclin.fitting.recipe import Before, Recipe, Trial
from loclin.fitting.targets import share_right
from loclin.forest.trees import ForestModels, Middle, leaves_of, shares_of, zero_models

FORESTS = {"random": ExtraTreesClassifier, "best": RandomForestClassifier}


@dataclass(frozen=True, kw_only=True)
class ForestRecipe(Recipe):
    """What a fit of a forest needs."""

    alpha: float = 1.0
    n_trees: int
    splits: str
    max_features: int | float | str
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    most_rows: int

    def check(self) -> None:
        """Raise where a parameter is not valid."""
        check_number("n_trees", self.n_trees, Integral, low=1, open_high=True)
        check_option("splits", self.splits, FORESTS)
        if isinstance(self.max_features, str):
            check_option(
                "max_features", self.max_features, {"log2", "sqrt"}, ", or a number"
            )
        elif isinstance(self.max_features, Integral):
            check_number("max_features", self.max_features, Integral, low=1,
                         hint='or a part above 0, at most 1.0, or "sqrt" or "log2"')  # fmt: skip
        else:
            check_number("max_features", self.max_features, Real, low=0, high=1, open_low=True,
                         hint='or an integer, or "sqrt" or "log2"')  # fmt: skip
        check_number(
            "min_samples_leaf", self.min_samples_leaf, Integral, low=1, open_high=True
        )
        check_number(
            "min_weight_fraction_leaf", self.min_weight_fraction_leaf, low=0, high=0.5
        )
        check_number("most_rows", self.most_rows, Integral, low=1, open_high=True)

    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """
        return "partial_fit is not for ForestClassifier: trees must see all rows."

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return forests that tell the temperature."""
        return Trial({}, n_iterations=0, n_calibrating=1)

    def start(self, rows: Rows, rng: np.random.Generator, before: Before | None) -> Grown:
        """Grow the trees."""
        draws, most = len(rows.y) > self.most_rows, self.max_features
        if not isinstance(most, str):
            is_part = not isinstance(most, Integral)
            most = float(most) if is_part else min(int(most), rows.X.shape[1])
        forest = FORESTS[self.splits](
            self.n_trees,
            max_features=most,
            min_samples_leaf=self.min_samples_leaf,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            bootstrap=draws or self.splits == "best",
            max_samples=self.most_rows if draws else None,
            n_jobs=self.n_jobs,
            random_state=int(rng.integers(2**31 - 1)),
        )  # fmt: skip
        middle = Middle.of(rows.X)
        forest.fit(middle.of_matrix(rows.X), rows.y, rows.weights)
        return Grown(forest, middle, rows, len(self.classes))

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> StreamProcedure:
        """Raise: trees must see all rows."""
        raise NotImplementedError(
            "A forest learns from no stream: trees must see all rows."
        )


class Grown(Procedure):
    """A forest that is grown already.

    Parameters
    ----------
    forest : ExtraTreesClassifier or RandomForestClassifier
        Fitted to places of the classes, of rows about the middle.
    middle : Middle
    rows : Rows
        That it has learned from.
    n_classes : int
    """

    products = 0.0
    gap = 0.0

    def __init__(self, forest: Any, middle: Middle, rows: Rows, n_classes: int) -> None:
        self.rows, dtype, trees = rows, rows.X.dtype, forest.estimators_
        shares = shares_of(trees, forest.classes_, n_classes, dtype)
        if n_classes == 2:
            shares = shares[:, 1:] - shares[:, :1]
        m, s = shares.shape
        self.model = ForestModels(
            local_coef=zero_models(s, m, rows.X.shape[1], dtype),
            local_intercept=shares.T,  # leaf by leaf in memory
            intercept=np.zeros(s, dtype),
            alpha=1.0,
            leaves=leaves_of(trees, rows.X, middle),
        )

    def iterate(self, *, average: bool) -> float:
        """Return the share of training rows on which the forest errs."""
        X, y, weights, _ = self.rows
        scores = leaf_scores(self.model.leaves, X, self.model.local_intercept)
        return 1.0 - float(
            np.average(share_right(winners(scores, False), y), weights=weights)
        )

    def result(self, *, final: bool = False) -> ForestModels:
        """Return the model."""
        return self.model
