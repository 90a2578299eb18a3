"""A loss of one's own: Huber's, squared between margins of -1 and 1, linear below."""

from typing import NamedTuple

from loclin.engine.losses import Dual, Loss, Softmax


class ModifiedHuber(NamedTuple):
    """What compiled loops know the loss by; it could hold numbers."""


def value(loss, z):
    """Return the loss of the margin z."""
    return -4.0 * z if z < -1.0 else max(0.0, 1.0 - z) ** 2


def slope(loss, z):
    """Return its derivative."""
    return -4.0 if z < -1.0 else -2.0 * max(0.0, 1.0 - z)


MODIFIED_HUBER = Loss(
    "modified_huber",
    ModifiedHuber(),
    frozenset({"descent", "concave-convex", "dual", "partition"}),
    value=value,
    slope=slope,
    dual=Dual(upper=4.0, curvature=0.5),  # its conjugate at slope -a is a^2 / 4 - a, a <= 4
    softmax=Softmax(shift=1.0, width=0.5),  # L3M's default solver takes one like it, of all classes
    most_step=0.5,
)
