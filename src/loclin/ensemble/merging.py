"""Members whose models may be averaged instead of their scores."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

from sklearn.frozen import FrozenEstimator

from loclin.engine.data import Floats
from loclin.ensemble.members import is_forest
from loclin.forest.trees import joined

_MODELS = "local_coef", "local_intercept", "intercept"


def merged(members: list[Any]) -> list[Any]:
    """Return one classifier whose scores are the mean of the members',
    if they share their codes.

    Scores are linear in the models. The codes are shared where all members see rows
    alike, and have one coding, which all or all but the first had frozen. Forests are one
    forest of all their trees. Other members are returned as they are. What else the one
    tells of its fit, as `alpha_` and `objective_`, is that of the first.

    Parameters
    ----------
    members : list of classifiers
        Fitted, of one kind.
    """
    first = members[0]
    if not all(_sees_alike(one, first) for one in members):
        return members
    if all(map(is_forest, members)):
        return [_one_forest(members)]
    coding = _coding_of(first)
    if coding is None or any(_coding_of(one) is not coding for one in members):
        return members
    one = copy(first)
    one._kept = None
    parts = {
        name: _mean([getattr(member._learned, name) for member in members])
        for name in _MODELS
    }
    one._learned = replace(first._learned, **parts)
    return [one]


def _sees_alike(member: Any, first: Any) -> bool:
    """Tell whether two members map their rows alike."""
    maps = member._features, first._features
    return maps[0] is maps[1] or all(one.is_raw and one.columns is None for one in maps)


def _coding_of(member: Any) -> Any:
    """Return the coding of a member, the one inside where it was frozen."""
    coding = getattr(member._learned, "coding", None)
    return coding.estimator if isinstance(coding, FrozenEstimator) else coding


def _one_forest(members: list[Any]) -> Any:
    """Return a forest of all trees of forests that are as large."""
    one, found = copy(members[0]), [member._learned for member in members]
    one._learned = joined(found)
    return one


def _mean(parts: list[Floats]) -> Floats:
    """Return the mean, with the parts' layout:
    of sparse rows models lie feature by feature.
    """
    first = parts[0]
    if not any(first.strides):  # models that are constants have one zero for all weights
        return first
    return sum(parts[1:], first) / first.dtype.type(len(parts))
