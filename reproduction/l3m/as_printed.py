"""Figure 4 of the L3M paper: training error on Gaussian XOR against rows seen.

``python -m benchmarks.l3m_online`` compares `L3MClassifier(solver="online")` with Algorithm 1 as it
is printed: the gradient of alpha has the wrong sign there, no constraint is kept, and beta_1 acts
where alpha . x >= 0. Median of the seeds, in %.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin import L3MClassifier
from loclin.datasets import make_xor

_SEEN = (50, 100, 200, 500, 1000, 2000, 5000)


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
    model, errors = L3MClassifier(2, solver="online", random_state=seed), []
    for start, end in zip((0, *seen), seen, strict=False):
        model.partial_fit(X[start:end], y[start:end], classes=np.unique(y))
        errors.append(1.0 - float(model.score(X, y)))
    return errors


def main(argv: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Run the benchmark, print it and return the medians."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.l3m_online",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--std", type=float, default=0.25, help="deviation of the Gaussians")
    args = parser.parse_args(argv)
    seen = [t for t in _SEEN if t <= args.rows]
    errors: dict[str, list[list[float]]] = {"as printed": [], "corrected": []}
    for seed in range(args.seeds):
        X, y = make_xor(args.rows, std=args.std, random_state=seed)
        errors["as printed"].append(as_printed(X, np.where(y == y.max(), 1, -1), seen, seed))
        errors["corrected"].append(corrected(X, y, seen, seed))
    medians = {name: (100 * np.median(found, axis=0)).tolist() for name, found in errors.items()}
    print("rows seen   " + "".join(f"{t:>8}" for t in seen))
    for name, values in medians.items():
        print(f"{name:12}" + "".join(f"{value:8.1f}" for value in values))
    return medians


if __name__ == "__main__":
    main()
