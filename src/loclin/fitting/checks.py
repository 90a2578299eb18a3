"""Checks of parameters and data, with errors that name the cure."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import get_index_dtype
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from loclin.engine.data import Floats, check_indices, is_sparse
from loclin.engine.losses import Loss, losses_for

# One chunk of larger features would flatten what a stream has learned from those before.
_MOST_GROWTH = 1e6
# Parameters that count something: loops hold them in 32 bits. Of larger others products
# overflow.
_LARGEST_INTEGER, _LARGEST_REAL = 2**31 - 1, 1e300
_READ = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
METRICS = ("diagonal", "full", "auto")


def check_number(
    name: str, value: Any, kind: Any = Real, *, low: float = -math.inf, high: float = math.inf,
    open_low: bool = False, open_high: bool = False, hint: str = "",
) -> None:  # fmt: skip
    """Raise TypeError or ValueError unless `value` is a number
    of that kind in the interval.
    """
    noun = "an integer" if kind is Integral else "a number"
    interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    valid = f"{name} must be {noun} in {interval}" + (f"; {hint}" if hint else "")
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise TypeError(f"{name}={value!r} has type {type(value).__name__}; {valid}.")
    # The bounds fit no float32.
    number = value.item() if isinstance(value, np.generic) else value
    above = low < number if open_low else low <= number
    below = number < high if open_high else number <= high
    if not (above and below):  # also for NaN
        raise ValueError(f"{name}={value!r} is not valid; {valid}.")
    most = _LARGEST_INTEGER if kind is Integral else _LARGEST_REAL
    if most < number < math.inf:
        raise ValueError(f"{name}={value!r} is not valid; {name} must be at most {most}.")


def check_option(name: str, value: Any, options: Any, hint: str = "") -> None:
    """Raise ValueError unless `value` is one of the strings in `options`."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(
            f"{name}={value!r} is not valid; use one of {sorted(options)}{hint}."
        )


def read_reference(reference: Any, n_features: int) -> Floats:
    """Return a row that others are compared with, in float64, if it is one."""
    row = np.asarray(reference, np.float64).ravel()
    if row.shape != (n_features,) or not np.isfinite(row).all():
        raise ValueError(
            f"reference must have {n_features} finite numbers, one for each feature; it has "
            f"{row.size}."
        )
    return row


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(
            f"{name}={value!r} has type {type(value).__name__}; use True or False."
        )


def check_n_jobs(n_jobs: Any) -> None:
    """Raise TypeError or ValueError unless `n_jobs` is None or an integer other than 0."""
    if n_jobs is not None:
        check_number("n_jobs", n_jobs, Integral, hint="or None; -1 means all processors")
        if n_jobs == 0:
            raise ValueError("n_jobs=0 is not valid; use None, 1 or more, or -1 for all.")


def _check_given(X: Any) -> None:
    """Raise ValueError where a sparse X has indices outside of it:
    loops would follow them.
    """
    try:
        check_indices(X, "X")
    except ValueError as error:
        raise ValueError(
            f"{error} Build it anew, for example from its rows, columns and values "
            "(scipy.sparse.coo_array)."
        ) from error


def canonical(X: Any) -> Any:
    """Return a sparse matrix with one sorted entry for each nonzero; others as they are.

    Its indices are int32 wherever they fit, so that every loop is compiled once for
    sparse rows.
    """
    if not is_sparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    index = get_index_dtype(maxval=max(X.nnz, X.shape[1]))
    if X.indices.dtype != index or X.indptr.dtype != index:
        parts = X.data, X.indices.astype(index), X.indptr.astype(index)
        X = type(X)(parts, shape=X.shape)
        X.has_canonical_format = True
    return X


def read_rows(model: BaseEstimator, X: Any, **options: Any) -> Any:
    """Return rows as loops take them, checked as `validate_data` does with these options."""
    _check_given(X)
    return canonical(validate_data(model, X, **_READ | options))


def read_labelled_rows(
    model: BaseEstimator, X: Any, y: Any, **options: Any
) -> tuple[Any, NDArray[Any]]:
    """Return rows in the same way, and their labels."""
    _check_given(X)
    X, y = validate_data(model, X, y, **_READ | options)
    return canonical(X), y


def check_feature_scale(X: Any, earlier: float = 0.0) -> float:
    """Return the largest absolute feature, `earlier` for the rows before counted in.

    Raises
    ------
    ValueError
        If features are so large that a margin of 1 drowns in rounding, so small that
        their squares vanish, or out of all proportion to those of the rows before.
    """
    values = X if isinstance(X, np.ndarray) else X.data
    if values.size == 0:
        return earlier
    largest = max(float(values.max()), -float(values.min()))
    limits = np.finfo(values.dtype)
    most, least = (
        1.0 / float(limits.eps),
        math.sqrt(float(limits.tiny)) / float(limits.eps),
    )
    if largest > most or 0.0 < max(largest, earlier) < least:
        size, limit = ("large", f"below {most:.3g}") if largest > most else (
            "small", f"above {least:.3g}")  # fmt: skip
        raise ValueError(
            f"X has values as {size} as {largest:.3g}; in {values.dtype} training needs them "
            f"{limit}. Scale the features first, for example by standardize=True, or with "
            "make_pipeline(StandardScaler(), ...)."
        )
    if earlier and largest > _MOST_GROWTH * earlier:
        raise ValueError(
            f"X has values as large as {largest:.3g}, but the rows before had none above "
            f"{earlier:.3g}. Scale all rows alike, for example with one fitted StandardScaler."
        )
    return max(largest, earlier)


def check_weights(
    sample_weight: Any, n_samples: int, *, some: bool = True
) -> NDArray[np.float64]:
    """Return the sample weights as float64, ones for None.

    Raises
    ------
    ValueError
        If the weights do not fit the rows, are not finite, are negative, or, where `some`
        must be positive, are all zero.
    """
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, Real):
        raise ValueError(
            f"sample_weight={sample_weight!r} is not valid; give one weight for each of the "
            f"{n_samples} rows of X, or None where all count the same."
        )
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; give one weight for each of the "
            f"{n_samples} rows of X."
        )
    if weights.min() < 0:
        row = int(np.argmin(weights))
        raise ValueError(
            f"sample_weight has negative values (row {row}: {weights[row]:g}); weights must "
            "be >= 0. Use 0 to leave a row out."
        )
    if some and not weights.any():
        raise ValueError(
            "sample_weight is zero for every row; at least one must be positive."
        )
    return weights


def check_loss_for(procedure: str, loss: Any, *, hint: str = "") -> None:
    """Raise where a loss is neither one of the names,
    nor one of one's own, that may be taken.
    """
    if isinstance(loss, Loss):
        if procedure not in loss.serves:
            raise ValueError(
                f"loss={loss.name!r} cannot be used here{hint}: this takes a loss that serves "
                f"{procedure!r}, and it serves {sorted(loss.serves)}."
            )
    else:
        check_option("loss", loss, losses_for(procedure), hint=hint)


def check_shared_parameters(recipe: Any) -> None:
    """Raise where a parameter that all classifiers have is not valid."""
    check_number("max_iter", recipe.max_iter, Integral, low=1)
    check_number("tol", recipe.tol, Real, low=0, open_high=True)
    check_number("n_iter_no_change", recipe.n_iter_no_change, Integral, low=1)
    if recipe.round_rows is not None:
        check_number("round_rows", recipe.round_rows, Integral, low=1, hint="or None")
    if recipe.batch_size != "auto":
        check_number("batch_size", recipe.batch_size, Integral, low=1, hint='or "auto"')
    check_number("validation_fraction", recipe.validation_fraction, low=0, high=1,
                 open_low=True, open_high=True)  # fmt: skip
    check_number("average", recipe.average, Integral, low=0,
                 hint="it is the number of last iterations to average, 0 for none")  # fmt: skip
    if not (
        recipe.pieces is None
        or (isinstance(recipe.pieces, str) and recipe.pieces == "auto")
    ):
        check_number("pieces", recipe.pieces, Integral, low=2, open_high=True,
                     hint='or "auto", or None')  # fmt: skip
    if isinstance(recipe.metric, Integral):
        check_number("metric", recipe.metric, Integral, low=1,
                     hint=f"or one of {sorted(METRICS)}, or None")  # fmt: skip
    elif recipe.metric is not None:
        check_option("metric", recipe.metric, METRICS, hint=", a rank or None")
    check_n_jobs(recipe.n_jobs)
    for name in ("calibrate", "early_stopping", "standardize", "warm_start"):
        check_flag(name, getattr(recipe, name))
