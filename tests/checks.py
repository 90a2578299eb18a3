"""scikit-learn's checks, without repeating what takes the compiler long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

# A matrix is read as a sparse array is; what equal weights do is excused of every way to learn.
ONCE_A_CLASS = {
    "check_estimator_sparse_matrix",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def without_repetition(checks: Any, spared: Any) -> Any:
    """Leave out the checks `ONCE_A_CLASS`, except of the estimators `spared`, known by `repr`."""
    names, cases = checks.args
    kept = []
    for case in cases:
        estimator, check = getattr(case, "values", case)
        if check.func.__name__ not in ONCE_A_CLASS or repr(estimator) in spared:
            kept.append(case)
    return pytest.mark.parametrize(names, kept, **checks.kwargs)


def of_single_precision(check: Any) -> bool:
    """Tell whether everything is compiled anew for a check."""
    name, options = check.func.__name__, check.keywords
    return name == "check_estimators_dtypes" or options.get("X_dtype") == "float32"


def of_read_only_rows(check: Any) -> bool:
    """Tell whether a check differs from another only by rows that cannot be written to."""
    return bool(check.keywords.get("readonly_memmap"))


def mark_slow(checks: Any, is_slow: Callable[[Any, Any], bool]) -> Any:
    """Mark a parametrization's checks slow where `is_slow` says so of an estimator and a check."""
    names, cases = checks.args
    marked = []
    for case in cases:
        estimator, check = getattr(case, "values", case)
        marks = list(getattr(case, "marks", ()))
        if is_slow(estimator, check):
            marks.append(pytest.mark.slow)
        marked.append(pytest.param(estimator, check, marks=marks))
    return pytest.mark.parametrize(names, marked, **checks.kwargs)
