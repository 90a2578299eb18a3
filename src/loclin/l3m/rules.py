"""Regions and their classifiers in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def linear_words(coef: NDArray[Any], intercept: float, names: Sequence[str], n_top: int) -> str:
    """Return a linear function with its largest coefficients only: ``+1.2 x3 -0.9 x0 ... +0.1``."""
    top = np.argsort(-np.abs(coef), kind="stable")[:n_top]
    terms = [f"{coef[f]:+.3g} {names[f]}" for f in top if coef[f] != 0]
    rest = ["..."] if np.count_nonzero(coef) > len(terms) else []
    return " ".join([*terms, *rest, f"{intercept:+.3g}"])


def region_rules(
    partition: NDArray[Any], thresholds: NDArray[Any], coef: NDArray[Any],
    intercept: NDArray[Any], classes: NDArray[Any], names: Sequence[str], n_top: int,
    regions: NDArray[np.intp] | None,
) -> list[str]:  # fmt: skip
    """Describe each region.

    Parameters
    ----------
    partition, thresholds : ndarray of shape (r, d) and (r,)
    coef, intercept : ndarray of shape (s, r, d) and (s, r)
    classes : ndarray of shape (c,)
    names : sequence of d str
    n_top : int
        Features named of each linear function.
    regions : ndarray of shape (n,) or None
        Regions of some rows, to be counted.

    Returns
    -------
    rules : list of r str
        What all partition functions have in common is left out.
    """
    partition, thresholds = partition - partition.mean(axis=0), thresholds - thresholds.mean()
    scored = classes if len(coef) > 1 else classes[1:]
    rules = []
    for k in range(len(partition)):
        lines = [f"region {k}"]
        if regions is not None:
            lines[0] += f": {np.mean(regions == k) if len(regions) else 0.0:.1%} of the rows"
        where = linear_words(partition[k], float(thresholds[k]), names, n_top)
        lines.append(f"  where this is largest of the regions: {where}")
        for label, of_class, constant in zip(scored, coef[:, k], intercept[:, k], strict=True):
            lines.append(f"  class {label}: {linear_words(of_class, constant, names, n_top)}")
        rules.append("\n".join(lines))
    return rules
