"""Convex losses of a margin: value, slope and convex conjugate, compiled scalars.

A loss is a convex, non-increasing function of the margin ``z``. A sample is well placed when its
margin is at least 1 (hinge, squared hinge) or large (logistic).

==============  ====================  =======================  ===============================
loss            ``loss_value(z)``     ``loss_slope(z)``        ``loss_conjugate(-a)``, a >= 0
==============  ====================  =======================  ===============================
hinge           ``max(0, 1 - z)``     ``-1`` if z < 1 else 0   ``-a`` for a <= 1, else inf
squared hinge   ``max(0, 1 - z)^2``   ``-2 max(0, 1 - z)``     ``-a + a^2 / 4``
logistic        ``log(1 + exp(-z))``  ``-1 / (1 + exp(z))``    ``a log a + (1-a) log (1-a)``
==============  ====================  =======================  ===============================
"""

from __future__ import annotations

import math
from enum import IntEnum

from loclin.engine.jit import jit


class Loss(IntEnum):
    """The losses, as the integers that compiled loops take."""

    HINGE = 0
    SQUARED_HINGE = 1
    LOGISTIC = 2


LOSSES = {loss.name.lower(): loss for loss in Loss}

# Which compiled procedures a loss can serve; a new loss names its own here.
_SERVES = {
    Loss.HINGE: {"descent", "concave-convex", "dual", "competing dual", "partition"},
    Loss.SQUARED_HINGE: {"descent", "dual"},
    Loss.LOGISTIC: {"descent", "concave-convex", "partition"},
}

_HINGE, _SQUARED_HINGE = int(Loss.HINGE), int(Loss.SQUARED_HINGE)
_N_LOSSES = len(Loss)


def losses_for(procedure: str) -> dict[str, Loss]:
    """Return the losses that a procedure can take, by name.

    Examples
    --------
    >>> sorted(losses_for("dual"))
    ['hinge', 'squared_hinge']
    """
    return {name: loss for name, loss in LOSSES.items() if procedure in _SERVES[loss]}


@jit
def check_loss(loss):
    """Raise where `loss` is none of those above.

    Passes ask once: a loop with a raise in it is not optimised, so the scalars below do not.
    """
    if not 0 <= loss < _N_LOSSES:
        raise ValueError("unknown loss")


@jit
def loss_value(loss, z):
    """Return the loss of the margin `z`."""
    if loss == _HINGE:
        return max(0.0, 1.0 - z)
    if loss == _SQUARED_HINGE:
        return max(0.0, 1.0 - z) ** 2
    return max(0.0, -z) + math.log1p(math.exp(-abs(z)))


@jit
def loss_slope(loss, z):
    """Return the derivative of the loss at `z`; at a kink, the one on its flat side."""
    if loss == _HINGE:
        return -1.0 if z < 1.0 else 0.0
    if loss == _SQUARED_HINGE:
        return -2.0 * max(0.0, 1.0 - z)
    if z > 0:
        tail = math.exp(-z)
        return -tail / (1.0 + tail)
    return -1.0 / (1.0 + math.exp(z))


@jit
def loss_conjugate(loss, s):
    """Convex conjugate ``sup_z (s z - loss(z))``; infinite outside its domain."""
    a = -s
    if a < 0.0 or (loss != _SQUARED_HINGE and a > 1.0):
        return math.inf
    if loss == _HINGE:
        return -a
    if loss == _SQUARED_HINGE:
        return 0.25 * a * a - a
    entropy = 0.0
    if a > 0.0:
        entropy += a * math.log(a)
    if a < 1.0:
        entropy += (1.0 - a) * math.log1p(-a)
    return entropy
