"""Training rows as the solvers take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from loclin.engine.data import Floats, Labels, Matrix, Rows
from loclin.fitting.checks import check_weights

# Rows scored by one product where the user leaves the choice to us.
LARGEST_BATCH = 64


def auto_batch_size(n_samples: int) -> int:
    """Return the default batch size: 64, but at least a hundred batches a pass.

    The rows of a batch do not see each other's updates. With fewer batches a pass, the first steps
    (those of a hundredth of the rows together) throw the models about: Banana with 320 rows goes
    from 11 % error to 14 %.
    """
    return min(LARGEST_BATCH, max(1, n_samples // 100))


def weigh(X: Matrix, labels: Labels, class_weights: Floats | None, sample_weight: Any, *,
          unit: bool = True) -> Rows:  # fmt: skip
    """Weigh the rows, to mean 1 if `unit`, and leave out those of weight zero."""
    weights = check_weights(sample_weight, len(labels))
    labels = labels.astype(np.int32)
    if class_weights is not None:
        weights = weights * class_weights[labels]
    kept = weights > 0
    origin = None
    if not kept.all():
        origin = np.flatnonzero(kept)
        X, labels, weights = X[kept], labels[kept], weights[kept]
    if unit:
        weights = weights / weights.mean()
    return Rows(X, labels, weights.astype(X.dtype), origin)


def can_hold_out(rows: Rows, fraction: float) -> bool:
    """Tell whether there are enough rows to hold some out of each class."""
    counts, part = np.bincount(rows.y), fraction * len(rows.y)
    return bool(counts[counts > 0].min() >= 2 and min(part, len(rows.y) - part) > len(counts))


def hold_out(rows: Rows, fraction: float, seed: int,
             needed_by: str = "early_stopping=True") -> tuple[Rows, Rows]:  # fmt: skip
    """Split the rows into those to learn from and those to watch; stratified by one label a row.

    Raises
    ------
    ValueError
        If there are too few rows.
    """
    try:
        parts = train_test_split(
            np.arange(len(rows.y)), test_size=fraction, random_state=seed,
            stratify=rows.y if rows.y.ndim == 1 else None,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(
            f"{needed_by} cannot hold out validation_fraction={fraction} of {len(rows.y)} rows: "
            f"{error} Give more rows or do without."
        ) from error
    train, watched = (
        Rows(rows.X[part], rows.y[part], rows.weights[part], rows.places(part)) for part in parts
    )
    return train, watched
