"""Parameters that a fit, or a stream, which goes on cannot change."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator

from loclin.engine.losses import Loss

# Parameters that shape no model, whatever the model: how strong, how fast, how long, how
# told.
_FREE = frozenset(
    {
        "alpha", "average", "batch_size", "calibrate", "class_weight", "early_stopping", "eta0",
        "max_iter", "n_iter_no_change", "n_jobs", "random_state", "round_rows", "s0", "solver",
        "tol", "validation_fraction", "verbose", "warm_start",
    }
)  # fmt: skip
# The same, of a coding or of a member.
_FREE_INSIDE = frozenset({"n_jobs", "random_state", "verbose"})


class Begun(BaseEstimator):
    """An estimator that remembers with which parameters its fit, or its stream, began."""

    _begun: Mapping[str, Any] = MappingProxyType(
        {}
    )  # files of earlier versions have none
    # Those that a fit which goes on takes anew, but a stream that runs cannot: steps and
    # penalties.
    _fits_may_change: frozenset[str] = frozenset()

    def _keep_parameters(
        self, cure: str, *, goes_on: bool, streams: bool = False
    ) -> None:
        """Remember the parameters that shape the model,
        or see that they are those of its start.

        Parameters
        ----------
        cure : str
            How to start afresh.
        goes_on : bool
            Whether a fit or a stream goes on; else one begins.
        streams : bool, default=False
            Whether a stream goes on as a stream.

        Raises
        ------
        ValueError
            If one has changed.
        """
        kind: Any = type(self)
        names = _all_names(kind) - _FREE | self._fits_may_change
        stay = names & self._begun.keys() if goes_on else frozenset()
        for name in sorted(stay if streams else stay - self._fits_may_change):
            value, before = getattr(self, name), self._begun[name]
            if not is_same(value, before):
                running = streams or getattr(self, "_stream", None) is not None
                raise ValueError(
                    f"{name}={value!r} differs from the {before!r} of the "
                    f"{'stream' if running else 'fit'} that is to go on. Leave it as it was, or "
                    f"start afresh with {cure}."
                )
        if not streams or stay < names:  # copies, as users change codings in place
            self._begun = {
                name: clone(getattr(self, name), safe=False) for name in sorted(names)
            }


@cache
def _all_names(kind: Any) -> frozenset[str]:
    return frozenset(inspect.signature(kind).parameters)


def is_same(value: Any, before: Any) -> bool:
    """Tell whether two values of a parameter are the same:
    arrays and lists by what they hold.

    Estimators are the same by their class and parameters, fitted ones that are frozen by
    all that they have learned.
    """
    value, before = (
        one.name if isinstance(one, Loss) else one for one in (value, before)
    )
    if value is before:
        return True
    if hasattr(value, "get_params") or hasattr(before, "get_params"):
        return type(value) is type(before) and _all_same(_parts(value), _parts(before))
    if isinstance(value, dict) and isinstance(before, dict):
        return _all_same(value, before)
    if is_dataclass(value) and type(value) is type(before):
        return _all_same(vars(value), vars(before))
    if isinstance(value, list | tuple) and isinstance(before, list | tuple):
        return _all_same(dict(enumerate(value)), dict(enumerate(before)))
    if hasattr(value, "shape") or hasattr(before, "shape"):
        return bool(np.array_equal(_array(value), _array(before)))
    return bool(value == before)


def _all_same(values: Mapping[Any, Any], before: Mapping[Any, Any]) -> bool:
    return values.keys() == before.keys() and all(
        is_same(value, before[name]) for name, value in values.items()
    )


def _parts(estimator: Any) -> dict[str, Any]:
    """Return what makes an estimator what it is."""
    if isinstance(estimator, FrozenEstimator):
        return vars(estimator.estimator)
    given: dict[str, Any] = estimator.get_params(deep=False)
    return {name: value for name, value in given.items() if name not in _FREE_INSIDE}


def _array(value: Any) -> Any:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value)
