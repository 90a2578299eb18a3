"""The kinds of classifier that an ensemble has members of."""

from __future__ import annotations

from typing import Any

from loclin.codings import OrthogonalCoding
from loclin.fitting.base import LocallyLinearClassifier
from loclin.llsvm import LLSVMClassifier
from loclin.ml3 import ML3Classifier
from loclin.sapl import SAPLClassifier

_MOST_FEATURES = 2000  # of the kind with planes, whose codes are dense


def check_kinds(estimators: Any) -> None:
    """Raise where `estimators` is neither None nor a list of classifiers of this package."""
    if estimators is None:
        return
    kinds = list(estimators)
    if not kinds or not all(isinstance(kind, LocallyLinearClassifier) for kind in kinds):
        raise ValueError(
            f"estimators={estimators!r} is not valid; give a list of unfitted classifiers of "
            "loclin, such as [ML3Classifier(), SAPLClassifier()]."
        )


def kinds_of(estimators: Any, n_features: int, *, weighed: bool) -> list[Any]:
    """Return the kinds that are given, or those that suit so many features.

    Planes help on some sets and are poor alone on others, so that they are for shares that are
    chosen (`weighed`), not for kinds that all count the same.
    """
    if estimators is not None:
        return list(estimators)
    kinds: list[Any] = [ML3Classifier(), SAPLClassifier()]
    if weighed and n_features <= _MOST_FEATURES:
        kinds.append(LLSVMClassifier(OrthogonalCoding("auto"), bias="both"))
    return kinds
