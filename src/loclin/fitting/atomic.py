"""Methods that change an estimator wholly or not at all, and methods that see it whole.

An estimator's attributes change in one step: `atomic` lets a method work on a twin, whose
attributes take the place of the estimator's when it is done. So an interrupt at any
moment finds the estimator as it was, or as it is to be. `snapshot` lets a method read the
attributes of one moment, whatever another thread fits meanwhile. Of two fits at once, the
last to end stands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from loclin.engine.threads import handling_restored, limits_restored

T = TypeVar("T", bound=Callable[..., Any])
E = TypeVar("E")


def _with_attributes(estimator: E, attributes: dict[str, Any]) -> E:
    """Return another estimator of the class, which has these attributes."""
    other = object.__new__(type(estimator))
    other.__dict__ = attributes
    return other


def atomic(method: T) -> T:
    """Let the method change all that it changes at once, when it returns.

    Whatever fails or interrupts it, the estimator is what it was before the call, and so
    are the limits on threads, and what becomes of warnings and overflows. What attributes
    hold is not copied: the method must replace it, not change it in place.
    """

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        twin = _with_attributes(self, dict(vars(self)))
        with limits_restored(), handling_restored():
            result = method(twin, *args, **kwargs)
        answer = self if result is twin else result
        # Python serves signals where it calls, loops or enters a function: not from here
        # on.
        self.__dict__ = twin.__dict__
        return answer

    return guarded  # type: ignore[return-value]


def snapshot(method: T) -> T:
    """Let the method see the estimator as it is at the call,
    while another thread may fit it.

    Scores of rows far away from all others may overflow: NumPy does not warn of it. An
    interrupt leaves warnings and overflows to be handled as before.
    """

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with handling_restored(), np.errstate(over="ignore", invalid="ignore"):
            return method(_with_attributes(self, vars(self)), *args, **kwargs)

    return guarded  # type: ignore[return-value]
