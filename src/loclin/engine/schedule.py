"""Strength of the penalty, and the steps that follow from it,
where the user leaves them to us.
"""

from __future__ import annotations

import math

from loclin.engine.losses import Loss


def auto_alpha(mean_squared_norm: float, n_samples: float) -> float:
    """Return the default L2 strength:
    0.05 times the mean squared norm of the features, over n.

    The norm includes the constant feature of local intercepts: ``mean ||x||^2 + 1`` for
    ML3. The penalty then keeps its weight when features are scaled. The factor is the
    best one over 24 data sets, each standardised and with rows of unit norm
    (docs/notes/ml3.md has the figures).
    """
    return 0.05 * mean_squared_norm / n_samples


def stable_eta0(eta0: float, loss: Loss, batch_size: int) -> float:
    """Return eta0, or less where slopes grow with the violation.

    A batch takes the steps of all its rows at once: they must not carry a batch of
    similar rows past the margin.
    """
    return min(eta0, loss.most_step / batch_size)


def step_offset(alpha: float, mean_squared_norm: float, eta0: float) -> float:
    """Return the steps to count as taken, so that the first is eta0 / mean squared norm.

    Raises
    ------
    ValueError
        If they are more than a number can hold.
    """
    steps = mean_squared_norm / (alpha * eta0 or math.ulp(0.0))
    if math.isinf(steps):
        raise ValueError(
            f"alpha={alpha:g} with eta0={eta0:g} is too small. Raise one of the two."
        )
    return steps
