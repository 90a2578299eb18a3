"""Checks of US-SVM's parameters that need the data."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array


def dictionary_to_use(given: Any, X: Any) -> NDArray[np.floating] | None:
    """Return the dictionary given by an array or a fitted model,
    in a copy, atom by atom in memory.

    None where none is given.

    Raises
    ------
    ValueError
        If the model is not fitted, or the dictionary not one for the features of X.
    """
    given = getattr(given, "dictionary_", given)
    if given is None:
        return None
    if hasattr(given, "fit"):
        raise ValueError(
            f"dictionary={given!r} is not fitted. Fit it; where scikit-learn's clone unfits "
            "it, wrap it in sklearn.frozen.FrozenEstimator, or give the array dictionary_."
        )
    D = check_array(given, dtype=X.dtype, input_name="dictionary")
    if D.shape[0] != X.shape[1]:
        raise ValueError(
            f"dictionary has shape {D.shape}; X has {X.shape[1]} features. Give one row for "
            "each feature, and the atoms as columns."
        )
    return np.array(D, order="F")


def precomputed_features(
    P: Any, dictionary: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Return features that are given as the products of rows and atoms.

    Raises
    ------
    ValueError
        If they are not one for each atom.
    """
    features: NDArray[np.floating] = check_array(
        P, dtype=dictionary.dtype, input_name="P"
    )
    n_atoms = dictionary.shape[1]
    if features.shape[1] != n_atoms:
        raise ValueError(
            f"The precomputed features have {features.shape[1]} columns, but there are "
            f"{n_atoms} atoms. Give what transform(X) returns."
        )
    return features


def check_n_nonzero(n_nonzero: int | None, n_atoms: int) -> None:
    """Raise ValueError where codes are to have more nonzeros than there are atoms."""
    if n_nonzero is not None and n_nonzero > n_atoms:
        raise ValueError(
            f"n_nonzero={n_nonzero} is more than the {n_atoms} atoms there are. Lower it, or raise "
            "n_atoms."
        )


def check_new_label(label: Any, classes: NDArray[Any]) -> None:
    """Raise where a label cannot stand beside those of the classes.

    Raises
    ------
    TypeError
        If the classes are strings and the label is none, or they are numbers and it is
        none.
    ValueError
        If it is one of the classes, or missing, or not finite.
    """
    known = classes.tolist()
    strings = isinstance(known[0], str)
    same_kind = isinstance(label, str if strings else Real | np.bool_)
    if label is not None and not same_kind:
        what = "a string" if strings else "a number"
        raise TypeError(
            f"label={label!r} is not valid; give {what}, as the classes: {classes}."
        )
    if label is None or label in known or not (strings or abs(label) < np.inf):
        raise ValueError(
            f"label={label!r} is not valid; use a new one. Known: {classes}."
        )
