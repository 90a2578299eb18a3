"""How classifiers use codings:
fit one, and write codes in the forms that procedures take.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

from loclin.engine.data import Floats, Labels, Matrix, check_indices, is_sparse
from loclin.engine.prediction import codes_by, in_best_form
from loclin.fitting.checks import canonical
from loclin.portable.describing import coder_of
from loclin.portable.words import Transformed


def check_coding(name: str, coding: Any, options: Any = ()) -> None:
    """Raise where `coding` is neither one of the options nor a transformer."""
    if isinstance(coding, str) and coding in options:
        return
    transforms = hasattr(coding, "fit") and hasattr(coding, "transform")
    if isinstance(coding, str | type) or not transforms:
        named = f"use one of {sorted(options)} or " if options else "give "
        raise ValueError(
            f"{name}={coding!r} is not valid; {named}a transformer such as "
            "loclin.codings.SoftAssignmentCoding()."
        )


def fitted_coding(coding: Any, X: Matrix, y: Labels, rng: np.random.Generator) -> Any:
    """Fit a clone of the coding, which gets a seed where it has none; y are the labels.

    Raises
    ------
    ValueError
        If the coding was frozen on other features or classes.
    """
    given, coding = coding, clone(coding)
    if coding is not given:  # a frozen one is itself
        parameters = sorted(coding.get_params().items())
        unseeded = [
            k for k, v in parameters if v is None and k.split("__")[-1] == "random_state"
        ]
        coding.set_params(**{name: int(rng.integers(2**31 - 1)) for name in unseeded})
    # A data frame cannot hold sparse codes.
    with config_context(transform_output="default"):
        coding.fit(X, y)
    width = getattr(coding, "n_features_in_", X.shape[1])
    if width != X.shape[1]:
        raise ValueError(
            f"coding={coding!r} was fitted on {width} features, but X has {X.shape[1]}. Fit it on "
            "these features, or give it unfitted."
        )
    return coding


def seen_by(coding: Any, seen: Callable[[Floats], Floats]) -> Any:
    """Return the coding with anchors that it,
    or a coding inside it, is given as models see them.

    Parameters
    ----------
    coding : transformer
    seen : callable
        From points as they are given to points as the models see them.
    """
    given = {
        name: seen(np.asarray(value))
        for name, value in coding.get_params().items()
        if name.split("__")[-1] == "anchors" and not isinstance(value, str)
    }
    return clone(coding).set_params(**given) if given else coding


def check_classes(coding: Any, classes: Floats) -> None:
    """Raise where a coding with codes for each class lacks one, or has another."""
    if belongs_to_classes(coding) and not np.array_equal(coding.classes_, classes):
        raise ValueError(
            f"coding={coding!r} learned planes for the classes {coding.classes_}, but the classes "
            f"are {classes}. Every class needs some rows when the coding is fitted."
        )


def belongs_to_classes(coding: Any) -> bool:
    """Tell whether each class has codes of its own."""
    return bool(getattr(coding, "per_class", False))


def encode(coding: Any, X: Matrix) -> Any:
    """Codes of the rows: CSR (n, m),
    or dense (n, m) where few are zero, or (n, s, m) by class.
    """
    return in_best_form(codes_by(coder_of(coding), X), X)


@codes_by.register
def transformed(coder: Transformed, X: Matrix) -> Any:
    """Codes of rows by a transformer of others, or by one that has no words."""
    coding = coder.transformer
    # X was checked before, and data frames cannot hold sparse codes.
    settings = config_context(assume_finite=True, transform_output="default")
    with warnings.catch_warnings(), settings:
        # A coding that was fitted on a data frame gets its rows without the names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if belongs_to_classes(coding):
            return coding.transform_by_class(X).astype(X.dtype, copy=False)
        codes = coding.transform(X)
    if codes.ndim != 2 or codes.shape[0] != X.shape[0]:
        raise ValueError(
            f"coding={coding!r} gives codes of shape {codes.shape} for {X.shape[0]} rows."
        )
    if not type(coding).__module__.startswith("loclin."):  # of others, indices may be any
        check_indices(codes, f"What coding={coding!r} gives")
    if not is_sparse(codes):
        return np.ascontiguousarray(codes, dtype=X.dtype)
    return canonical(sparse.csr_matrix(codes, dtype=X.dtype))


@dataclass(frozen=True)
class Views:
    """Rows as the models see them, and as the coder does.

    Parameters
    ----------
    coding : transformer or None
        Fitted; None where the coder codes the rows itself.
    linear : bool
        Whether the models are linear. Those that say constants see a column of ones.
    multiplier : float, default=1.0
        The rows are those that the coding was fitted on times this power of two.
    """

    coding: Any
    linear: bool
    multiplier: float = 1.0

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if self.multiplier <= 0:
            return f"multiplier is {self.multiplier}, but should be positive"
        sees = sizes.get("d") if self.linear else 1
        return (
            None if sizes.get("p", sees) == sees else "linear is not what the models are"
        )

    def of_models(self, X: Matrix) -> Any:
        """Rows as the models see them."""
        return X if self.linear else np.ones((X.shape[0], 1), X.dtype)

    def __call__(self, X: Matrix) -> tuple[Any, Any]:
        """Rows as the models see them; their codes, or the rows again."""
        if self.coding is None:
            return self.of_models(X), X
        rows = X if self.multiplier == 1.0 else X * X.dtype.type(1 / self.multiplier)
        return self.of_models(X), encode(self.coding, rows)

    def __deepcopy__(self, memo: Any) -> Self:
        """Nothing here changes: copies of a stream share it."""
        return self
