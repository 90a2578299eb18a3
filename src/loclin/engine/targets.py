"""Which scorer should be positive at which label: the one place of this rule.

With one scorer a class, scorer k is for label k; a single one is for label 1 of two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loclin.engine.data import Labels
from loclin.engine.jit import inner


@inner
def sign_of(label, k, n_scorers):
    """Return 1.0 where scorer k should be positive, else -1.0."""
    return 1.0 if label == (k if n_scorers > 1 else 1) else -1.0


def signs_of(y: Labels, n_scorers: int) -> NDArray[np.int8]:
    """+1 and -1, (n, s), from labels, or from an indicator of several labels a row."""
    if y.ndim == 2:
        members = y > 0
    else:
        members = y[:, None] == (
            np.arange(n_scorers, dtype=y.dtype) if n_scorers > 1 else 1
        )
    return 2 * members.view(np.int8) - np.int8(1)
