"""Regions and their classifiers in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.l3m.models import RegionalModels

_HARDLY = 1e-3  # of the largest classifier: one of a region where no row was learned


def linear_words(
    coef: NDArray[np.floating],
    intercept: float,
    names: Sequence[str],
    n_top: int,
    spreads: NDArray[np.floating] | float = 1.0,
) -> str:
    """Return a linear function with what counts most only: ``+1.2 x3 -0.9 x0 ... +0.1``.

    That are the largest coefficients times the features' spreads.
    """
    top = np.argsort(-np.abs(coef * spreads), kind="stable")[:n_top]
    terms = [f"{coef[f]:+.3g} {names[f]}" for f in top if coef[f] != 0]
    rest = ["..."] if np.count_nonzero(coef) > len(terms) else []
    return " ".join([*terms, *rest, f"{intercept:+.3g}"])


def region_rules(
    models: RegionalModels,
    classes: NDArray[Any],
    names: Sequence[str],
    n_top: int,
    regions: NDArray[np.intp] | None,
    spreads: NDArray[np.floating] | float = 1.0,
) -> list[str]:
    """Describe each region.

    Parameters
    ----------
    models : RegionalModels
    classes : ndarray of shape (c,)
    names : sequence of d str
    n_top : int
        Features named of each linear function.
    regions : ndarray of shape (n,) or None
        Regions of some rows, to be counted.
    spreads : ndarray of shape (d,) or float, default=1.0
        Of the features.

    Returns
    -------
    rules : list of r str
        What all partition functions have in common is left out. Regions where no row is,
        or hardly any was learned, say so, and nothing else.
    """
    partition = models.partition - models.partition.mean(axis=0)
    thresholds = models.thresholds - models.thresholds.mean()
    scored = classes if len(models.coef) > 1 else classes[1:]
    sizes = np.linalg.norm(models.coef * spreads, axis=(0, 2))
    rules = []
    for k in range(len(partition)):
        title, is_empty = f"region {k}", False
        if regions is not None:
            share = float(np.mean(regions == k)) if len(regions) else 0.0
            title += f": {share:.1%} of the rows"
            is_empty = not share
        if is_empty or sizes[k] < _HARDLY * sizes.max():
            rules.append(
                f"{title}\n  {'no row is here' if is_empty else 'hardly learned'}"
            )
            continue
        where = linear_words(partition[k], float(thresholds[k]), names, n_top, spreads)
        lines = [
            title,
            f"  a row is here if this is larger than in the other regions: {where}",
        ]
        classifiers = zip(scored, models.coef[:, k], models.intercept[:, k], strict=True)
        for label, coef, intercept in classifiers:
            lines.append(
                f"  class {label}: {linear_words(coef, intercept, names, n_top, spreads)}"
            )
        rules.append("\n".join(lines))
    return rules
