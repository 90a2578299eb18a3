"""Algorithm 1 of the L3M paper as it is printed, and as the library has it, on a stream of rows.

As printed, the gradient of alpha has the wrong sign, no constraint is kept, and beta_1 acts where
alpha . x >= 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin import L3MClassifier


def as_printed(X: NDArray[Any], signs: NDArray[Any], seen: Sequence[int], seed: int) -> list[float]:
    """Training errors of Algorithm 1 as printed, after so many rows; signs are the labels."""
    X = np.column_stack([X, np.ones(len(X))])
    alpha, *betas = np.random.default_rng(seed).normal(size=(3, X.shape[1]))
    errors = []
    for t in range(1, max(seen) + 1):
        x, sign = X[t - 1], signs[t - 1]
        gate = alpha @ x
        margins = [sign * (beta @ x) for beta in betas]
        sums = [np.logaddexp(0, s * gate) + np.logaddexp(0, -margins[k])
                for k, s in enumerate((1, -1))]  # fmt: skip
        k = 0 if sums[0] > sums[1] else 1
        slope = -x / (1 + np.exp(-gate)) if k == 0 else x / (1 + np.exp(gate))
        betas[k] = betas[k] + sign * x / (1 + np.exp(margins[k])) / np.sqrt(t)
        alpha = alpha - slope / np.sqrt(t)
        if t in seen:
            scores = np.where(X @ alpha >= 0, X @ betas[0], X @ betas[1])
            errors.append(float(np.mean((scores > 0) != (signs > 0))))
    return errors


def corrected(X: NDArray[Any], y: NDArray[Any], seen: Sequence[int], seed: int) -> list[float]:
    """Training errors of the library's online solver."""
    model, errors = L3MClassifier(2, solver="online", random_state=seed, standardize=False), []
    for start, end in zip((0, *seen), seen, strict=False):
        model.partial_fit(X[start:end], y[start:end], classes=np.unique(y))
        errors.append(1.0 - float(model.score(X, y)))
    return errors
