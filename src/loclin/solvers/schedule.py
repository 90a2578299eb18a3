"""Strength of the penalty, and the steps that follow from it, where the user leaves them to us."""

from __future__ import annotations


def auto_alpha(mean_squared_norm: float, n_samples: float) -> float:
    """Return the default L2 strength: 0.05 times the mean squared norm of the features, over n.

    The norm includes the constant feature of the intercepts: ``mean ||x||^2 + 1`` for ML3. The
    penalty then keeps its weight when features are scaled. The factor is the best one over 24 data
    sets, each standardised and with rows of unit norm (docs/design.md has the figures).
    """
    return 0.05 * mean_squared_norm / n_samples


def step_offset(alpha: float, mean_squared_norm: float, eta0: float) -> float:
    """Return the steps to count as taken, so that the first is eta0 / mean squared norm."""
    return mean_squared_norm / (alpha * eta0)
