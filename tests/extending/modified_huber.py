"""A loss of one's own: Huber's, squared between margins of -1 and 1, linear below."""

import math

from loclin.engine.jit import jit


@jit
def modified_huber_value(z):
    """Return the loss of the margin z."""
    if z < -1.0:
        return -4.0 * z
    return max(0.0, 1.0 - z) ** 2


@jit
def modified_huber_slope(z):
    """Return its derivative."""
    if z < -1.0:
        return -4.0
    return -2.0 * max(0.0, 1.0 - z)


@jit
def modified_huber_conjugate(s):
    """Return ``sup_z (s z - loss(z))``."""
    a = -s
    if a < 0.0 or a > 4.0:
        return math.inf
    return 0.25 * a * a - a
