"""Data sets by name; if quick, few rows of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin import datasets
from loclin.datasets import Dataset
from reproduction.quick import QUICK

ROWS, TEST_ROWS, COLUMNS = 250, 300, 500  # if quick


class Problem(NamedTuple):
    """A set in float32, its values from 0 to 1, and its counted training rows.

    The planes are those of X as it is, not centred: the background of USPS, -1 in the file, is 0.
    """

    name: str
    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    counted: int


def load(name: str) -> Any:
    """Load a set."""
    data = datasets.load(name)
    return few_rows(data) if QUICK else data


def from_0_to_1(*parts: NDArray[Any]) -> list[NDArray[Any]]:
    """Parts of a set in float32, the values of the first being from 0 to 1."""
    low, high = np.float32(parts[0].min()), np.float32(parts[0].max())
    return [(part.astype(np.float32) - low) / (high - low) for part in parts]


def problem_named(name: str, counted: int | None = None) -> Problem:
    """Load a set with an official test split."""
    data = load(name)
    X, X_test = from_0_to_1(data.X_train, data.X_test)
    return Problem(name, X, data.y_train, X_test, data.y_test, min(counted or len(X), len(X)))


def few_rows(data: Dataset) -> Dataset:
    """Keep few rows of each part, every class among them; few sparse columns."""
    X, y = part_of(data.X_train, data.y_train, ROWS)
    if data.y_test is None:
        return common_columns(replace(data, X_train=X, y_train=y))
    X_test, y_test = part_of(data.X_test, data.y_test, TEST_ROWS)
    return replace(data, X_train=X, y_train=y, X_test=X_test, y_test=y_test)


def part_of(X: Any, y: Any, rows: int) -> tuple[Any, Any]:
    """So many rows or a few more, at least 8 of each class, in their order."""
    rng, kept = np.random.default_rng(0), []
    for label in np.unique(y):
        of_class = np.flatnonzero(y == label)
        wanted = max(8, round(rows * len(of_class) / len(y)))
        kept.append(rng.permutation(of_class)[:wanted])
    order = np.sort(np.concatenate(kept))
    return X[order], y[order]


def common_columns(data: Dataset) -> Dataset:
    """Keep the columns of sparse rows that most rows have."""
    X: Any = data.X_train
    if isinstance(X, np.ndarray):
        return data
    return replace(data, X_train=X[:, np.argsort(-X.getnnz(axis=0))[:COLUMNS]])
