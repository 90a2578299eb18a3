"""Members whose models may be averaged instead of their scores."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

from loclin.engine.data import Floats
from loclin.ensemble.members import is_forest
from loclin.forest.trees import joined

_MODELS = "local_coef", "local_intercept", "intercept"


def merged(members: list[Any]) -> list[Any]:
    """Return one classifier whose scores are the mean of the members', if they share their codes.

    Scores are linear in the models. The codes are shared where all members have the same coding,
    which was frozen then. Forests are one forest of all their trees. Other members are returned as
    they are. What else the one tells
    of its fit, as `alpha_` and `objective_`, is that of the first.

    Parameters
    ----------
    members : list of classifiers
        Fitted, of one kind.
    """
    first = members[0]
    if all(is_forest(one) and _sees_rows_as_given(one) for one in members):
        return [_one_forest(members)]
    coding = getattr(first, "coding_", None)
    if coding is None or any(one.coding_ is not coding for one in members):
        return members
    one = copy(first)
    one._kept = None
    parts = {
        name: _mean([getattr(member._learned, name) for member in members]) for name in _MODELS
    }
    one._learned = replace(first._learned, **parts)
    return [one]


def _sees_rows_as_given(member: Any) -> bool:
    return member._features.is_raw and member._features.columns is None


def _one_forest(members: list[Any]) -> Any:
    """Return a forest of all trees of forests that are as large."""
    one, found = copy(members[0]), [member._learned for member in members]
    one._learned = joined(found)
    return one


def _mean(parts: list[Floats]) -> Floats:
    """Return the mean, with the parts' layout: of sparse rows models lie feature by feature."""
    first = parts[0]
    if not any(first.strides):  # models that are constants have one zero for all weights
        return first
    return sum(parts[1:], first) / first.dtype.type(len(parts))
