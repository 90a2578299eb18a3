"""scikit-learn's checks, without repeating what takes the compiler long."""

from __future__ import annotations

from typing import Any

import pytest


def _is_of_single_precision(check: Any) -> bool:
    name, options = check.func.__name__, check.keywords
    return name == "check_estimators_dtypes" or options.get("X_dtype") == "float32"


def slow_in_single_precision(checks: Any, spared: Any = ()) -> Any:
    """Mark a parametrization's checks of float32 slow, except of the estimators `spared`.

    Everything is compiled anew for them. By default a class is checked so once; `test_golden` has
    the scores of the other solvers in float32. `spared` are known by their `repr`.
    """
    names, cases = checks.args
    marked = []
    for case in cases:
        estimator, check = getattr(case, "values", case)
        marks = list(getattr(case, "marks", ()))
        if _is_of_single_precision(check) and repr(estimator) not in spared:
            marks.append(pytest.mark.slow)
        marked.append(pytest.param(estimator, check, marks=marks))
    return pytest.mark.parametrize(names, marked, **checks.kwargs)
