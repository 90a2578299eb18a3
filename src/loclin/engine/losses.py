"""Convex losses of a margin:
value and slope as compiled scalars, and what each is good for.

A loss is a convex, non-increasing function of the margin ``z``. A sample is well placed
when its margin is at least 1 (hinge, squared hinge) or large (logistic).

==============  ====================  =======================
loss            ``loss_value(z)``     ``loss_slope(z)``
==============  ====================  =======================
hinge           ``max(0, 1 - z)``     ``-1`` if z < 1 else 0
squared hinge   ``max(0, 1 - z)^2``   ``-2 max(0, 1 - z)``
logistic        ``log(1 + exp(-z))``  ``-1 / (1 + exp(z))``
==============  ====================  =======================

Compiled loops take a loss as an integer, so that one compilation serves these three; a
loss of one's own is a NamedTuple, for whose type they are compiled anew (`Loss`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from loclin.engine.jit import OPTIONS, inner


class Dual(NamedTuple):
    """The convex conjugate of a loss:
    ``-a + curvature a^2 / 2`` at slope ``-a``, a in [0, upper].

    Such a loss has a dual problem that coordinate descent solves.
    """

    upper: float
    curvature: float


class Softmax(NamedTuple):
    """The loss ``width log sum_c exp((score_c - score_y + shift [c != y]) / width)``
    of classes.
    """

    shift: float
    width: float


@dataclass(frozen=True, repr=False)
class Loss:
    """A loss, and the procedures that it can serve.

    Parameters
    ----------
    name : str
    compiled : int or NamedTuple
        What compiled loops take. A NamedTuple is of a class of its own, and may hold
        numbers.
    serves : frozenset of str
        "descent", "concave-convex" (ML3), "partition" (L3M), "dual", "competing dual".
    value, slope : callable, default=None
        ``value(compiled, z)`` and its derivative, as Numba compiles them; at a kink, the
        one on the flat side. Of a NamedTuple only.
    dual : Dual, default=None
        What "dual" needs.
    softmax : Softmax, default=None
        What the solver "refined" of L3M needs, whose loss is one of all classes.
    most_step : float, default=inf
        The most that the rows of a batch may step together, at first, over their mean
        squared norm: less where slopes grow with the violation.

    Notes
    -----
    Define it at the top of a module, so that processes which load a model find it.
    """

    name: str
    compiled: Any
    serves: frozenset[str]
    value: Callable[[Any, float], float] | None = None
    slope: Callable[[Any, float], float] | None = None
    dual: Dual | None = None
    softmax: Softmax | None = None
    most_step: float = math.inf

    def __post_init__(self) -> None:
        """Check it, and let compiled loops find it."""
        _check(self)
        key = _key_of(self.compiled)
        known = _KNOWN.get(key)
        if known is not None and (known.value, known.slope) != (self.value, self.slope):
            raise ValueError(
                f"loss {self.name!r} has the class {type(self.compiled).__name__} of the loss "
                f"{known.name!r}, by which compiled loops tell losses apart. Give it a class "
                "of its own."
            )
        _register(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Be the loss of another process, and let compiled loops find it here, too."""
        names = {field.name for field in fields(self)}
        if state.keys() != names:
            raise ValueError(f"A loss has {sorted(names)}, not {sorted(state)}.")
        self.__dict__.update(state)
        _check(self)
        if _key_of(self.compiled) not in _KNOWN:
            _register(self)

    def __repr__(self) -> str:
        """Return its name."""
        return f"Loss({self.name!r})"


def _check(loss: Loss) -> None:
    """Raise where a loss is not one that loops could be compiled for."""
    if not isinstance(loss.serves, frozenset | set) or not loss.serves <= PROCEDURES:
        raise ValueError(
            f"serves={loss.serves!r} is not valid; it is a frozenset of some of "
            f"{sorted(PROCEDURES)}."
        )
    if type(loss.compiled) is int and loss.compiled < _N_OURS:
        return
    parts = getattr(loss.compiled, "_fields", None)
    if not isinstance(loss.compiled, tuple) or parts is None:
        raise ValueError(
            f"compiled={loss.compiled!r} is not valid; it is an instance of a NamedTuple of "
            "the loss's own."
        )
    if not all(isinstance(part, int | float | np.number) for part in loss.compiled):
        raise ValueError(f"compiled={loss.compiled!r} may hold numbers only.")
    if not (callable(loss.value) and callable(loss.slope)):
        raise ValueError(f"loss {loss.name!r} needs a value and a slope, two functions.")


def _register(loss: Loss) -> None:
    key = _key_of(loss.compiled)
    _KNOWN[key] = loss
    if loss.value is not None and loss.slope is not None:
        _INLINED[key] = inner(loss.value), inner(loss.slope)


def _key_of(compiled: Any) -> Any:
    return int(compiled) if isinstance(compiled, int) else type(compiled)


_KNOWN: dict[Any, Loss] = {}
_INLINED: dict[Any, tuple[Any, Any]] = {}  # value and slope, as compiled code calls them
_N_OURS = 3
PROCEDURES = frozenset(
    {"descent", "concave-convex", "dual", "competing dual", "partition"}
)
HINGE = Loss(
    "hinge",
    0,
    frozenset({"descent", "concave-convex", "dual", "competing dual", "partition"}),
    dual=Dual(upper=1.0, curvature=0.0),
    softmax=Softmax(shift=1.0, width=0.1),
)
SQUARED_HINGE = Loss(
    "squared_hinge",
    1,
    frozenset({"descent", "dual"}),
    dual=Dual(upper=math.inf, curvature=0.5),
    most_step=0.5,
)
LOGISTIC = Loss(
    "logistic",
    2,
    frozenset({"descent", "concave-convex", "partition"}),
    softmax=Softmax(shift=0.0, width=1.0),
)
LOSSES = {loss.name: loss for loss in (HINGE, SQUARED_HINGE, LOGISTIC)}

_HINGE = HINGE.compiled
_SQUARED_HINGE = SQUARED_HINGE.compiled
_N_LOSSES = len(LOSSES)


def loss_of(given: str | Loss) -> Loss:
    """Return the loss of that name, or the one that is given itself."""
    return LOSSES[given] if isinstance(given, str) else given


def known_loss(compiled: Any) -> Loss:
    """Return the loss that compiled loops know as this."""
    return _KNOWN[_key_of(compiled)]


def losses_for(procedure: str) -> dict[str, Loss]:
    """Return the losses of this package that a procedure can take, by name.

    Examples
    --------
    >>> sorted(losses_for("dual"))
    ['hinge', 'squared_hinge']
    """
    return {name: loss for name, loss in LOSSES.items() if procedure in loss.serves}


def check_loss(loss: Any) -> None:
    """Raise where compiled loops know no such loss.

    Passes ask once: a loop with a raise in it is not optimised, so the scalars below do
    not.
    """
    if _key_of(loss) not in _KNOWN:
        raise ValueError("unknown loss")


def loss_value(loss: Any, z: float) -> float:
    """Return the loss of the margin `z`."""
    custom = known_loss(loss).value
    return _value(loss, z) if custom is None else custom(loss, z)


def loss_slope(loss: Any, z: float) -> float:
    """Return the derivative of the loss at `z`; at a kink, the one on its flat side."""
    custom = known_loss(loss).slope
    return _slope(loss, z) if custom is None else custom(loss, z)


def is_hinge(loss: Any) -> bool:
    """Tell whether it is the hinge, whose pieces are linear."""
    return isinstance(loss, int) and loss == _HINGE


@inner
def _value(loss, z):
    if loss == _HINGE:
        return max(0.0, 1.0 - z)
    if loss == _SQUARED_HINGE:
        return max(0.0, 1.0 - z) ** 2
    return max(0.0, -z) + math.log1p(math.exp(-abs(z)))


@inner
def _slope(loss, z):
    if loss == _HINGE:
        return -1.0 if z < 1.0 else 0.0
    if loss == _SQUARED_HINGE:
        return -2.0 * max(0.0, 1.0 - z)
    if z > 0:
        tail = math.exp(-z)
        return -tail / (1.0 + tail)
    return -1.0 / (1.0 + math.exp(z))


@overload(check_loss, jit_options=OPTIONS)
def _check_loss(loss):
    if not isinstance(loss, types.Integer):
        return lambda loss: None

    def check(loss):
        if not 0 <= loss < _N_LOSSES:
            raise ValueError("unknown loss")

    return check


@overload(loss_value, jit_options=OPTIONS)
def _loss_value(loss, z):
    if isinstance(loss, types.Integer):
        return lambda loss, z: _value(loss, z)
    own = _INLINED[loss.instance_class][0]
    return lambda loss, z: own(loss, z)


@overload(loss_slope, jit_options=OPTIONS)
def _loss_slope(loss, z):
    if isinstance(loss, types.Integer):
        return lambda loss, z: _slope(loss, z)
    own = _INLINED[loss.instance_class][1]
    return lambda loss, z: own(loss, z)


@overload(is_hinge, jit_options=OPTIONS)
def _is_hinge(loss):
    if isinstance(loss, types.Integer):
        return lambda loss: loss == _HINGE
    return lambda loss: False
