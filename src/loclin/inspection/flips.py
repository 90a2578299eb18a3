"""The smallest change of a row that changes its prediction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from loclin.fitting.checks import check_number
from loclin.inspection.flipping import Search
from loclin.inspection.moves import Moves, PlainMoves, Steps
from loclin.inspection.table_moves import TableMoves


@dataclass(frozen=True, eq=False)
class Flip:
    """A row that is changed so that its prediction changes.

    Parameters
    ----------
    row : ndarray, Series or DataFrame
        The changed row, like the one given. Of a table it is a DataFrame.
    changed : dict
        For each feature that has changed, its values before and after.
    distance : float
        Length of the change, in units of each feature's spread.
    n_steps : int
        Linear models and jumps that led there.
    label_before, label_after : object
        What the model predicts for the row as it was, and for the changed one.
    verified : bool
        Whether the prediction has changed as required. If not, the row is the nearest
        try.
    """

    row: Any
    changed: dict[str, tuple[Any, Any]]
    distance: float
    n_steps: int
    label_before: Any
    label_after: Any
    verified: bool


def flip(
    model: Any,
    x: Any,
    *,
    features: Collection[Any] | None = None,
    bounds: Mapping[Any, Any] | None = None,
    target: Any = None,
    scale: Any = None,
    max_steps: int = 20,
) -> Flip:
    """Find a small change of one row that changes its prediction.

    The linear model at the row tells where the border is. There the next linear model
    takes over, until `predict` returns another label. Then the path is shortened. The
    change is small, but a smaller one may exist.

    Parameters
    ----------
    model : classifier or Pipeline
        Fitted: a classifier, alone or behind a `TableEncoder` and scalers of scikit-learn.
    x : array-like, sparse matrix, Series or DataFrame
        One row; a sparse one comes back dense. Behind a `TableEncoder`, numbers and dates
        move as numbers, flags and categories to another value. Texts and gaps stay.
    features : collection of str or int, default=None
        Names of the features that may move, or places of those that have none. None is
        for all. The others stay as they are, to the bit.
    bounds : dict, default=None
        Lowest and highest value of features, None for no limit: ``{"age": (18, None)}``.
        Of a category, the values that it may take.
    target : object, default=None
        The label to reach; None for any other.
    scale : array-like or dict, default=None
        What counts as a change of one, for each feature. None takes the training spreads:
        those of a `StandardScaler` in the pipeline, or those that the classifier keeps.
        Where there are none, it is 1. Another flag or category counts as one.
    max_steps : int, default=20
        Maximum number of linear models on a path.

    Returns
    -------
    found : Flip

    Raises
    ------
    TypeError
        If a step in front of the classifier is not linear in each feature.
    ValueError
        If a feature is not known, the row is outside its bounds, or the target is what the
        model predicts already.

    Notes
    -----
    A change is one of the model's inputs. It says nothing about what would happen in the
    world: a feature may only go along with a cause.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import flip
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = ML3Classifier(random_state=0).fit(X, y)
    >>> found = flip(model, X[60:61], features=["petal length (cm)", "petal width (cm)"])
    >>> found.label_before, found.label_after, found.verified
    (1, 2, True)
    >>> sorted(found.changed)
    ['petal length (cm)', 'petal width (cm)']
    """
    check_number("max_steps", max_steps, Integral, low=1)
    check_is_fitted(model)
    steps = Steps(model)
    kind = PlainMoves if steps.encoder is None else TableMoves
    moves: Moves = kind(model, steps, x, scale)
    moves.restrict(features, bounds)
    labels = moves.classes.tolist()
    before = _plain(moves.label(moves.start))
    if target is not None:
        target = _plain(target)
        if target not in labels or target == before:
            raise ValueError(
                f"target={target!r} must be one of {labels}, and not {before!r}, which the "
                "model predicts already."
            )
    place = None if target is None else labels.index(target)
    found = Search(moves, labels.index(before), place, max_steps).found()
    z, after = _settled(moves, found.z, before, target)
    row = moves.finished(z)
    changed = {
        moves.names[k]: (moves.value(int(k), moves.start), moves.value(int(k), z))
        for k in np.flatnonzero(z != moves.start)
    }
    verified = after != before if target is None else after == target
    distance = float(moves.distance(z))
    return Flip(row, changed, distance, found.n_steps, before, after, verified)


def _settled(moves: Moves, z: Any, before: Any, target: Any) -> tuple[Any, Any]:
    """Return the change, a little longer where rounding decides, and what is predicted."""
    for longer in (0.0, 1e-9, 1e-7, 1e-5, 1e-3):
        away = np.where(moves.is_choice, 0.0, longer * (z - moves.start))
        tried = moves.snapped(z + away)
        after = _plain(moves.label(tried))
        if after != before if target is None else after == target:
            return tried, after
    return z, _plain(moves.label(z))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
