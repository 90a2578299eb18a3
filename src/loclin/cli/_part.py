"""Rows and labels as a data file holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

__all__ = ["Matrix", "Part"]

Matrix: TypeAlias = np.ndarray | csr_array


@dataclass(frozen=True)
class Part:
    """Rows of one file: features, labels as they stand there, and the features' names."""

    X: Matrix
    y: np.ndarray
    columns: tuple[str, ...] | None = None
    label: str | None = None  # the name of the target column
    notes: tuple[str, ...] = ()
