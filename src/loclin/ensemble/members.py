"""What an ensemble holds: its members, and how much each kind of them counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from loclin.engine.data import Floats, is_sparse
from loclin.engine.jit import read_only
from loclin.engine.shapes import Shape, Size
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.consistent import missing, wrong_with_classes
from loclin.fitting.features import FeatureMap
from loclin.fitting.probability import StreamedTemperature
from loclin.fitting.scored import blocks_of
from loclin.forest import ForestClassifier
from loclin.portable.words import Term

CAN_BE_MEMBERS = (
    "ML3, LL-SVM, SAPL, L3M, LDKL, L-MKL, C-SVM, US-SVM and forests can be members. Nearest rows, "
    "kernels and other ensembles cannot."
)
Kinds: TypeAlias = list[list[Any]]  # fitted members, kind by kind


class Members:
    """The members of an ensemble of k kinds."""

    members_: list[Any]
    classes_: Annotated[NDArray[Any], Shape("c", None)]
    shares_: Annotated[NDArray[np.float64], Shape("k", np.float64)]
    units_: Annotated[NDArray[np.float64], Shape("k", np.float64)]
    validation_losses_: list[float]
    standardize: bool
    n_features_in_: Annotated[int, Size("f")]
    _features: FeatureMap
    _streamed: StreamedTemperature | None = None
    _n_seen: int = 0
    _n_each: list[int] | None = None  # members of each kind; None: as many of each

    @property
    def local_coef_(self) -> Floats:
        """The members' linear models side by side."""
        d = self.n_features_in_
        found = beside_pieces(self._side_by_side("local_coef_"), d)
        own = self._features.back(found[:, :, :d], 1)
        pieces = found[:, :, d:]
        return read_only(np.concatenate([own, pieces], axis=2) if pieces.size else own)

    @property
    def local_intercept_(self) -> Floats:
        """Their intercepts."""
        intercepts = np.concatenate(self._side_by_side("local_intercept_"), axis=1)
        coef = self.local_coef_[:, :, : self.n_features_in_]
        return read_only(self._features.constants(intercepts, coef))

    @property
    def intercept_(self) -> Floats:
        """Global intercepts."""
        check_is_fitted(self, "members_")
        parts = [factor * self._by_scorer(m.intercept_) for m, factor in self._factors()]
        return read_only(np.sum(parts, axis=0))

    def _factors(self) -> list[tuple[Any, float]]:
        """Return members that count, and what their scores are multiplied by."""
        return factors_of(self._by_kind(), self.shares_, self.units_)

    def _by_kind(self) -> Kinds:
        members, n_kinds = iter(self.members_), len(self.shares_)
        numbers = self._n_each or [len(self.members_) // n_kinds] * n_kinds
        return [list(islice(members, n)) for n in numbers]

    def _by_scorer(self, part: Floats) -> Floats:
        """One scorer for each class:
        where two classes have one, the first class's is zero.
        """
        if len(part) == len(self.classes_):
            return part
        return np.concatenate([np.zeros_like(part), part])

    def _side_by_side(self, name: str) -> list[Floats]:
        check_is_fitted(self, "members_")
        return [
            self._by_scorer(_models_of(member, name)) for member, _ in self._factors()
        ]

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if not hasattr(self, "members_"):
            return None
        held = (
            "shares_",
            "units_",
            "temperature_",
            "smoothing_",
            "classes_",
            "n_features_in_",
        )
        if lacks := missing(self, *held):
            return lacks
        members, n_kinds = self.members_, sizes["k"]
        if not self.shares_.sum() > 0:
            return f"shares_ are {self.shares_}, but should sum to one"
        numbers = self._n_each or [len(members) // n_kinds] * n_kinds
        if (
            len(numbers) != n_kinds
            or sum(numbers) != len(members)
            or any(
                n < (share > 0) for n, share in zip(numbers, self.shares_, strict=True)
            )
        ):
            return (
                f"members_ are {len(members)}, but there should be {numbers} of each kind"
            )
        for one in members:
            if not (isinstance(one, LocallyLinearClassifier) and one._is_fitted()):
                return (
                    f"members_ have a {type(one).__name__} that is no fitted classifier"
                )
            told = one.n_features_in_, len(one.classes_), one.local_coef_.dtype
            if told != (sizes["f"], sizes["c"], members[0].local_coef_.dtype):
                return "members_ are not of the same features, classes and precision"
        return wrong_with_classes(self.classes_, sizes, False)


def is_forest(member: Any) -> bool:
    """Tell whether a member's models are constants of leaves."""
    return isinstance(member, ForestClassifier)


def _models_of(member: Any, name: str) -> Floats:
    """Return models of a member, or their intercepts; of a forest one, a constant of 1."""
    if not is_forest(member):
        return np.asarray(getattr(member, name))
    s, _, d = member.local_coef_.shape
    dtype = member.local_coef_.dtype
    return np.zeros((s, 1, d), dtype) if name == "local_coef_" else np.ones((s, 1), dtype)


def factors_of(
    kinds: Kinds, shares: NDArray[np.float64], units: NDArray[np.float64]
) -> list[tuple[Any, float]]:
    """Return the members of kinds with a share, and what their scores are multiplied by."""
    return [
        (member, float(share / (unit * len(members))))
        for members, share, unit in zip(kinds, shares, units, strict=True)
        if share > 0
        for member in members
    ]


def share_maps(members: Sequence[Any]) -> Sequence[Any]:
    """Return fitted members, of which those whose maps are
    equal have one: it maps rows once.
    """
    found: list[FeatureMap] = []
    for member in members:
        same = [one for one in found if one.equals(member._features)]
        if not same:
            found.append(member._features)
        else:
            member._features = same[0]
    return members


def mean_scores(
    factors: Sequence[tuple[Any, float]], rows: Any, n_classes: int
) -> Floats:
    """Return the sum of the members' scores times their factors, (n, n_scorers).

    The rows are checked; those of a fit have lost their names. Members that share a map
    see them mapped once.
    """
    by_map: dict[int, list[tuple[Any, float]]] = {}
    for member, factor in factors:
        by_map.setdefault(id(member._features), []).append((member, factor))
    blocks = blocks_of(rows, max(member._features.n_pieces for member, _ in factors))
    return np.concatenate(
        [_mean_scores(by_map.values(), one, n_classes) for one in blocks]
    )


def _mean_scores(
    by_map: Iterable[list[tuple[Any, float]]], rows: Any, n_classes: int
) -> Floats:
    scores = np.zeros((rows.shape[0], 1 if n_classes == 2 else n_classes), rows.dtype)
    for factors in by_map:
        seen = factors[0][0]._features.of_matrix(rows)
        for member, factor in factors:
            of_member = member._decisions(member._class_scores(seen))
            scores += rows.dtype.type(factor) * of_member.reshape(scores.shape)
    return scores


def beside_pieces(parts: Sequence[Floats], d: int) -> Floats:
    """Return models of members side by side:
    of d features, then of the pieces of each in turn.

    Parameters
    ----------
    parts : list of ndarray of shape (s, m, d + p)
        Of each member; p may differ.
    d : int
    """
    n_pieces = sum(part.shape[2] - d for part in parts)
    if not n_pieces:
        return np.concatenate(parts, axis=1)
    wide, first = [], d
    for part in parts:
        end = first + part.shape[2] - d
        wide.append(np.zeros((*part.shape[:2], d + n_pieces), part.dtype))
        wide[-1][:, :, :d], wide[-1][:, :, first:end] = part[:, :, :d], part[:, :, d:]
        first = end
    return np.concatenate(wide, axis=1)


def weights_of(factors: Iterable[tuple[Any, float]], rows: Any, n_classes: int) -> Floats:
    """Return the codes of members side by side, times their factors: (n, n_classes, m)."""
    codes = []
    for member, factor in factors:
        if is_forest(member):
            of_member: Any = member._scores_of_rows(rows)[:, :, None]
        else:
            of_member = member.local_weights(rows)
        of_member = of_member.toarray() if is_sparse(of_member) else of_member
        of_member = of_member[:, None, :] if of_member.ndim == 2 else of_member
        n, _, m = of_member.shape
        codes.append(
            np.broadcast_to(rows.dtype.type(factor) * of_member, (n, n_classes, m))
        )
    return np.concatenate(codes, axis=2)


def sums_of(
    factors: Iterable[tuple[Any, float]],
    rows: Any,
    of_member: Callable[[Any], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    """Return the sums of two things that each member says, times their factors."""
    first: Any = 0.0
    second: Any = 0.0
    for member, factor in factors:
        one, other = of_member(member)
        first = first + rows.dtype.type(factor) * one
        second = second + rows.dtype.type(factor) * other
    return np.asarray(first), np.asarray(second)


def terms_of(
    factors: Iterable[tuple[Any, float]], features: FeatureMap
) -> tuple[Term, ...]:
    """Return the terms of all members,
    times their factors, of rows that are mapped first.
    """
    return tuple(
        replace(term, factor=factor * term.factor).behind(features.centre, features.scale)
        for member, factor in factors
        for term in member._terms()
    )


def fitted_alike(members: Any) -> NDArray[Any]:
    """Return the classes of fitted members,
    which have all in common that an ensemble needs.

    Raises
    ------
    ValueError
        If they have not.
    sklearn.exceptions.NotFittedError
        If one is not fitted.
    """
    if not isinstance(members, list | tuple) or not members:
        raise ValueError("members are no list of fitted classifiers of loclin.")
    for one in members:
        if not isinstance(one, LocallyLinearClassifier):
            raise ValueError(
                f"members has a {type(one).__name__}; give a list of fitted classifiers of loclin. "
                f"{CAN_BE_MEMBERS}"
            )
    for one in members:
        check_is_fitted(one, "intercept_")
    first = members[0]
    for one in members[1:]:
        if not np.array_equal(one.classes_, first.classes_):
            raise ValueError(
                f"members have different classes: {first.classes_} and {one.classes_}. Fit all on "
                "rows of the same classes."
            )
        if one.n_features_in_ != first.n_features_in_:
            raise ValueError(
                f"members have {first.n_features_in_} and {one.n_features_in_} features. Fit all "
                "on the same features."
            )
        if one._learned.local_coef.dtype != first._learned.local_coef.dtype:
            raise ValueError(
                "members are of float32 and float64. Fit all on rows of one type."
            )
    if any(one._multilabel for one in members):
        raise ValueError("a member has several labels a row; an ensemble has one.")
    return np.asarray(first.classes_)


def without_names(member: Any, ensemble: Any) -> Any:
    """Return a copy of a member that takes rows as the ensemble has checked them.

    Raises
    ------
    ValueError
        If it knows its features by other names.
    """
    names, own = (getattr(one, "feature_names_in_", None) for one in (ensemble, member))
    if not (names is None or own is None or np.array_equal(names, own)):
        raise ValueError(
            f"members know their features as {own}, but X has {names}. Give them in that order."
        )
    other = copy(member)
    vars(other).pop("feature_names_in_", None)
    return other
