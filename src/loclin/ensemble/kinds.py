"""The kinds of classifier that an ensemble has members of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from loclin.codings import OrthogonalCoding
from loclin.engine.data import Floats, Labels, Matrix, is_sparse
from loclin.ensemble.members import CAN_BE_MEMBERS, is_forest
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.columns import has_frozen
from loclin.fitting.rows import default_n_anchors, near_one, without_tiny
from loclin.fitting.targets import class_weights
from loclin.forest import ForestClassifier
from loclin.l3m import L3MClassifier
from loclin.llsvm import LLSVMClassifier
from loclin.ml3 import ML3Classifier
from loclin.sapl import SAPLClassifier

_MOST_FEATURES = 2000  # of the kinds with planes, whose codes are dense, and of forests
# fewer: a nearly linear kind, no forest, and each member chooses for itself
FEW_ROWS = 1000
_MOST_NEARLY_LINEAR = 200  # features
_TREES = 40  # of a member
_MOST_NUMBERS = 2**27  # that the leaves of all trees say, at most
# Models of SAPL have so many numbers, or so many for each number of the rows; else they
# fit long.
_MOST_OF_ANCHORS, _MOST_A_VALUE = 2**24, 500


def check_kinds(estimators: Any) -> None:
    """Raise where `estimators` is neither None nor a list of classifiers of this package."""
    if estimators is None:
        return
    kinds = list(estimators) if isinstance(estimators, Iterable) else []
    if not kinds or not all(isinstance(kind, LocallyLinearClassifier) for kind in kinds):
        raise ValueError(
            f"estimators={estimators!r} is not valid; give a list of unfitted classifiers of "
            f"loclin, such as [ML3Classifier(), SAPLClassifier()]. {CAN_BE_MEMBERS}"
        )


def check_streams(members: list[Any]) -> None:
    """Raise where a member cannot learn from a stream."""
    for member in members:
        recipe = member._checked_parameters()
        if (refusal := recipe.stream_refusal()) is not None:
            raise ValueError(
                f"estimators: {type(member).__name__} learns from no stream: {refusal}"
            )


def check_some_learn(members: list[Any]) -> None:
    """Raise where a stream would go on with members that stay as they are."""
    if all(map(is_forest, members)):
        raise ValueError(
            "The ensemble has forests alone, which learn from no stream. Fit it again on all rows."
        )


def know_units(estimators: Any) -> bool:
    """Tell whether a kind is given points, or a frozen coding:
    they know rows as they are given.
    """
    for kind in estimators or ():
        given = kind.get_params()
        points = [
            v for k, v in given.items() if k.split("__")[-1] in ("anchors", "centers")
        ]
        frozen = [name for name in ("coding", "init") if has_frozen(given.get(name))]
        if frozen or not all(isinstance(value, str) for value in points):
            return True
    return False


def counted(
    estimators: list[Any] | None, classes: NDArray[Any], labels: Labels, weights: Floats,
    X: Matrix | None = None,
) -> NDArray[np.bool_]:  # fmt: skip
    """Tell of each class whether rows of it have weight; all estimators must agree.

    Parameters
    ----------
    estimators : list of classifiers or None
    classes : ndarray of shape (n_classes,)
    labels : ndarray of shape (n,)
        As 0 .. c - 1.
    weights : ndarray of shape (n,)
        Their sample weights; the estimators may weigh classes.
    X : {ndarray, csr} or None, default=None
        Rows of a fit, in which a weight far below the largest is nothing; None on a
        stream.

    Raises
    ------
    ValueError
        If they do not agree.
    """
    found = []
    for kind in estimators or [None]:
        given = None if kind is None else kind.class_weight
        by_class = class_weights(given, classes, labels, False)
        of_rows = weights if by_class is None else weights * near_one(by_class)[labels]
        of_rows = of_rows if X is None else without_tiny(of_rows, X)
        found.append(np.bincount(labels[of_rows > 0], minlength=len(classes)) > 0)
    if any((one != found[0]).any() for one in found):
        raise ValueError(
            "estimators leave out different classes by class_weight. Give all of them the same."
        )
    return found[0]


def kinds_of(
    estimators: Any,
    rows: Matrix,
    weights: Floats | None,
    n_classes: int,
    n_folds: int,
    seed: int,
) -> list[Any]:
    """Return the kinds that are given, or those that suit the rows.

    Planes, forests and nearly linear models help on some sets and are poor alone on
    others, so that they are for shares that are chosen, not for kinds that all count the
    same. Planes know no labels: those of all rows serve all members, which can then be
    merged. The others' are each member's own, as they may be planes of features in
    pieces.

    Parameters
    ----------
    estimators : list of classifiers or None
    rows : {ndarray, csr} of shape (n, d)
    weights : ndarray of shape (n,) or None
        Of the rows; None where all kinds count the same.
    n_classes, n_folds, seed : int
    """
    if estimators is not None:
        return list(estimators)
    kinds: list[Any] = [ML3Classifier()]
    if _suits_anchors(rows, n_classes):
        kinds.append(SAPLClassifier())
    if weights is not None and rows.shape[1] <= _MOST_FEATURES:
        seen: Any = rows if (weights > 0).all() else rows[weights > 0]
        unit_length = OrthogonalCoding("auto", random_state=seed, whiten=False, norm="l2")
        codings = FrozenEstimator(unit_length.fit(seen)), OrthogonalCoding("auto")
        kinds += [LLSVMClassifier(coding, bias="both", metric=None) for coding in codings]
        n, d = seen.shape
        of_leaves = min(n, ForestClassifier().most_rows) * n_classes * n_folds * _TREES
        if n < FEW_ROWS and d <= _MOST_NEARLY_LINEAR:
            kinds.append(L3MClassifier(solver="online"))
        elif n >= FEW_ROWS and not is_sparse(rows) and of_leaves <= _MOST_NUMBERS:
            kinds.append(ForestClassifier(_TREES))
    return kinds


def _suits_anchors(rows: Matrix, n_classes: int) -> bool:
    """Tell whether the models of SAPL are not by far larger than the rows are."""
    n, d = rows.shape
    n_values = n * d
    if is_sparse(rows):
        n_values, d = rows.nnz, len(np.unique(rows.indices))
    n_numbers = n_classes * default_n_anchors(n, n_classes * d) * d
    return n_numbers <= max(_MOST_OF_ANCHORS, _MOST_A_VALUE * n_values)


def unfitted_member(
    kind: Any,
    number: int,
    fold: int,
    seed: int,
    classes: NDArray[Any],
    *,
    as_given: bool = False,
    standardized: bool = False,
) -> Any:
    """Return an unfitted member, with a seed of its own where its kind has none.

    Of classes that have no weight, whose rows are left out before, it knows nothing. With
    `as_given` it takes the rows as they are; where these are standardized, one that is to
    see pieces of them standardizes these, too.
    """
    member, known = clone(kind), classes.tolist()
    as_given = as_given and not (
        standardized and getattr(member, "pieces", None) is not None
    )
    if as_given and "standardize" in member.get_params(deep=False):
        member.set_params(standardize=False)
    if isinstance(member.class_weight, dict):
        given = member.class_weight.items()
        member.set_params(class_weight={label: w for label, w in given if label in known})
    if member.random_state is None:
        own = np.random.default_rng([seed, number, fold])
        member.set_params(random_state=int(own.integers(2**31 - 1)))
    return member.set_params(calibrate=False)


def like_first(member: Any, first: Any) -> Any:
    """Return an unfitted member with the choices of the first of its kind.

    It also gets the planes of the first, if they know no labels: then all members of the
    kind can be merged. Where the first has seen some columns only, the member chooses for
    itself.
    """
    if first._features.columns is not None:
        return member
    member._take_over(first)
    coding = getattr(first._learned, "coding", None)
    if isinstance(coding, OrthogonalCoding) and not coding.per_class:
        member.set_params(coding=FrozenEstimator(coding))
    return member


def clone_with_state(member: Any) -> Any:
    """Return a copy that learns on its own: `partial_fit` replaces what attributes hold."""
    other = clone(member)
    vars(other).update(vars(member))
    return other
