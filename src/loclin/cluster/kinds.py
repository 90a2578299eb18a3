"""An ensemble that learns from all parts, one kind of member after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from sklearn.base import clone

from loclin.cluster.members import Alone, Fitted, fit_alone
from loclin.cluster.parts import Sample
from loclin.cluster.plan import drawing, weights_by_class
from loclin.cluster.rounds import Drawn, in_rounds
from loclin.engine.warned import warn
from loclin.ensemble.kinds import kinds_of, know_units, unfitted_member
from loclin.ensemble.members import Kinds, is_forest, without_names
from loclin.ensemble.merging import merged
from loclin.fitting.features import FeatureMap, standardized

_DRAWS = 10  # of a part for its forest, in units of the rows that a tree learns from


def by_kinds(
    ensemble: Any, drawn: Drawn, *, rounds: int, passes: int,
    on_round: Callable[[Any], Any] | None,
) -> Any:  # fmt: skip
    """Return an ensemble that has learned from all parts; see `loclin.cluster.fit`.

    As in its own fit, features are standardized for all members, by the sample.
    """
    given = ensemble.estimators
    standardizes = ensemble.standardize and not know_units(given)
    if standardizes:
        drawn = _seen(drawn, standardized(drawn.start))
    view, start, n_classes = drawn.view, drawn.start, len(drawn.view.classes)
    kinds = kinds_of(
        given, start.X, start.weights, n_classes, ensemble.n_folds, view.seed
    )
    by_kind: Kinds = []
    stops = False

    def after(member: Any) -> bool:
        nonlocal stops
        assert on_round is not None
        stops = bool(on_round(_whole(ensemble, drawn, [*by_kind, [member]])))
        return stops

    for number, kind in enumerate(kinds):
        member = unfitted_member(
            kind, number, 0, view.seed, view.classes,
            as_given=standardizes or given is None, standardized=standardizes,
        )  # fmt: skip
        if ensemble.verbose:
            which = f"{type(member).__name__} {number + 1}/{len(kinds)}"
            print(f"{type(ensemble).__name__}: {which}")
        own = _weighed(drawn, kind.class_weight)
        if is_forest(member):
            by_kind.append(_grown(member, own, ensemble.n_folds))
        else:
            said = after if on_round is not None else None
            fitted = in_rounds(member, own, rounds=rounds, passes=passes, on_round=said)
            by_kind.append([fitted])
        if stops:
            break
    return _whole(ensemble, drawn, by_kind)


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


def _whole(ensemble: Any, drawn: Drawn, by_kind: Kinds) -> Any:
    """Return the ensemble of members, weighed by the rows held out."""
    whole, view, watched = clone(ensemble), drawn.view, drawn.sample.watched
    whole._keep_parameters("a clone", goes_on=False)
    whole.n_features_in_, whole.classes_ = view.reader.n_features_in_, view.classes
    if hasattr(view.reader, "feature_names_in_"):
        whole.feature_names_in_ = view.reader.feature_names_in_
    whole._features, whole.validation_losses_ = view.features, []
    rows, unseen = (drawn.start, -1) if watched is None else (watched, 0)
    members = [[without_names(one, whole) for one in kind] for kind in by_kind if kind]
    if not members:
        raise ValueError(
            "No part has rows of all classes, which trees need. Make parts alike."
        )
    whole._weigh(members, rows, np.full(len(rows.y), unseen))
    return whole
