"""An ensemble that learns from all parts, one kind of member after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
from sklearn.base import clone

from loclin.cluster.members import Alone, Fitted, fit_alone
from loclin.cluster.parts import Sample
from loclin.cluster.plan import drawing, weights_by_class
from loclin.cluster.rounds import Drawn, in_rounds
from loclin.engine.warned import warn
from loclin.ensemble.kinds import kinds_of, know_units, like_first, unfitted_member
from loclin.ensemble.members import Kinds, is_forest, without_names
from loclin.ensemble.merging import merged
from loclin.fitting.features import FeatureMap, standardized

_DRAWS = 10  # of a part for its forest, in units of the rows that a tree learns from


def by_kinds(
    ensemble: Any, drawn: Drawn, *, rounds: int, passes: int,
    on_round: Callable[[Any], Any] | None,
) -> Any:  # fmt: skip
    """Return an ensemble that has learned from all parts; see `loclin.cluster.fit`.

    As in its own fit, features are standardized for all members, by the sample. First
    there is one member of each kind; those of a kind without a share stay alone.
    """
    given = ensemble.estimators
    standardizes = ensemble.standardize and not know_units(given)
    if standardizes:
        drawn = _seen(drawn, standardized(drawn.start))
    X, _, weights, _ = drawn.start
    n_classes, seed = len(drawn.view.classes), drawn.view.seed
    kinds = kinds_of(given, X, weights, n_classes, ensemble.n_folds, seed)
    growing = _Growing(ensemble, drawn, kinds, standardizes, rounds, passes, on_round)
    for number in range(len(kinds)):
        growing.add(number, 0)
    several = [] if growing.stops else growing.numbers_with_share()
    for fold in range(1, ensemble.n_folds):
        for number in several:
            growing.add(number, fold)
    return growing.whole(growing.members)


@dataclass
class _Growing:
    """An ensemble that gets one member after another.

    Parameters
    ----------
    ensemble : LocallyLinearEnsemble
    drawn : Drawn
    kinds : list of classifiers
    standardizes : bool
        Whether rows are seen through a map of the ensemble.
    rounds, passes, on_round
        As of `loclin.cluster.fit`.
    members : list of list of classifiers
        Of each kind.
    stops : bool
        Whether `on_round` has said so.
    """

    ensemble: Any
    drawn: Drawn
    kinds: list[Any]
    standardizes: bool
    rounds: int
    passes: int
    on_round: Callable[[Any], Any] | None
    members: Kinds = field(init=False)
    stops: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.members = [[] for _ in self.kinds]

    def add(self, number: int, fold: int) -> None:
        """Add a member of a kind, unless all is to stop."""
        if self.stops:
            return
        kind, view = clone(self.kinds[number]), self.drawn.view
        if fold:
            kind.set_params(random_state=None)  # all learn from the same rows
        member = unfitted_member(
            kind, number, fold, view.seed, view.classes,
            as_given=self.standardizes or self.ensemble.estimators is None,
            standardized=self.standardizes,
        )  # fmt: skip
        if fold:
            member = like_first(member, self.members[number][0])
        if self.ensemble.verbose:
            which = f"{type(member).__name__} {number + 1}/{len(self.kinds)}"
            which += f", member {fold + 1}" if fold else ""
            print(f"{type(self.ensemble).__name__}: {which}", flush=True)
        own = _weighed(self.drawn, kind.class_weight)
        if is_forest(member):
            self.members[number] = _grown(member, own, self.ensemble.n_folds)
            return

        def after(fitted: Any) -> bool:
            assert self.on_round is not None
            now = [*self.members]
            now[number] = [*now[number], fitted]
            self.stops = bool(self.on_round(self.whole(now)))
            return self.stops

        fitted = in_rounds(
            member, own, rounds=self.rounds, passes=self.passes,
            on_round=None if self.on_round is None else after,
        )  # fmt: skip
        self.members[number].append(fitted)

    def numbers_with_share(self) -> list[int]:
        """Return the kinds with a share that are no forests: those are whole."""
        present = [number for number, kind in enumerate(self.members) if kind]
        shares = self.whole(self.members).shares_
        return [
            number
            for number, share in zip(present, shares, strict=True)
            if share > 0 and not is_forest(self.members[number][0])
        ]

    def whole(self, members: Kinds) -> Any:
        """Return the ensemble of members, weighed by the rows held out."""
        whole, view = clone(self.ensemble), self.drawn.view
        whole._keep_parameters("a clone", goes_on=False)
        whole.n_features_in_, whole.classes_ = view.reader.n_features_in_, view.classes
        view.name_features(whole)
        whole._features, whole.validation_losses_ = view.features, []
        present = [
            [without_names(one, whole) for one in kind] for kind in members if kind
        ]
        if not present:
            raise ValueError(
                "No part has rows of all classes, which trees need. Make parts alike."
            )
        watched, start = self.drawn.sample.watched, self.drawn.start
        if watched is None:
            whole._weigh(present, start, np.full(len(start.y), -1))
        else:
            whole._weigh(present, watched)
        return whole


def _seen(drawn: Drawn, features: FeatureMap) -> Drawn:
    """Return parts whose rows are seen through a map."""
    sample = Sample(*(rows and features.of_rows(rows) for rows in drawn.sample))
    return replace(drawn, view=replace(drawn.view, features=features), sample=sample)


def _weighed(drawn: Drawn, class_weight: Any) -> Drawn:
    """Return parts whose classes have other weights."""
    view = drawn.view
    by_class = weights_by_class(class_weight, view.classes, drawn.counts)
    changes = (by_class / view.by_class).astype(view.dtype)
    sample = Sample(
        *(
            rows and rows._replace(weights=rows.weights * changes[rows.y])
            for rows in drawn.sample
        )
    )
    return replace(drawn, view=replace(view, by_class=by_class), sample=sample)


def _grown(forest: Any, drawn: Drawn, n_folds: int) -> list[Any]:
    """Return a forest to which each part adds trees: together those of all folds."""
    numbers = np.unique(drawn.counts.part)
    n_trees = ceil(n_folds * forest.n_trees / len(numbers))
    forest = clone(forest).set_params(n_trees=n_trees, standardize=False)
    n_drawn = min(
        _DRAWS * forest.most_rows * len(numbers), int(drawn.counts.n_rows.sum())
    )
    rng = np.random.default_rng(drawn.view.seed)
    of_parts = Alone(drawing(drawn.view, drawn.counts, n_drawn, rng), forest)
    found = drawn.run(fit_alone, Fitted.merge, drawn.parts, of_parts)
    found.warn_of_others(drawn.counts)
    if not found.members:
        warn(
            "No part has rows of all classes, so the ensemble has no trees. Make parts alike."
        )
        return []
    return merged(found.members)
