"""What --quick changes: few rows, folds, settings and seeds; every entry is still computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import (
    choices,
    l3m_figures,
    l3m_tables,
    ml3_tables,
    occ_figures,
    occ_tables,
    sapl_figures,
    sapl_tables,
    ussvm_tables,
)
from benchmarks.reproduce import (
    defaults,
    entries,
    figures_l3m,
    figures_ml3,
    figures_ussvm,
    shapes,
)
from loclin.datasets import Dataset, load

ROWS, TEST_ROWS, COLUMNS = 250, 300, 500
PREPARE = {name: choices.PREPARE[name] for name in ("standardise", "unit rows, centre")}
SEARCH = {"FOLDS": 2, "COARSE": (-3,), "LIMITS": (-4, -2), "PREPARE": PREPARE}
PLANES = dict.fromkeys(occ_tables.SETS, (2, 5))
TRIED = {solver: tried[:1] for solver, tried in l3m_figures.TRIED.items()}
TABLES = (ml3_tables, occ_tables, sapl_tables, l3m_tables)
MODULES = (choices, *TABLES, l3m_figures, occ_figures, sapl_figures, ussvm_tables, defaults,
           figures_l3m, figures_ml3, figures_ussvm, shapes, entries)  # fmt: skip
# Constants by module; those of the search are changed wherever a module has them.
CHANGED: dict[Any, dict[str, Any]] = {
    ml3_tables: {"SEEDS": dict.fromkeys(ml3_tables.M, 1)},
    sapl_tables: {"PASSES": dict.fromkeys((*sapl_tables.SETS, "sine"), 5)},
    sapl_figures: {"M": (2, 40), "EPOCHS": 3, "SEEDS": 1},
    occ_tables: {"PLANES": PLANES, "passes_of": lambda n: 5},
    occ_figures: {"PLANES": PLANES},
    l3m_tables: {
        "CONVEX": {},
        "PART": ((3,), 1),
        "BANANA_ROWS": 100,
        "LOOSE": (0.5, 2),
        "TIGHT": (0.5, 2),
    },
    l3m_figures: {
        "SEEDS": 1,
        "RUNS": 1,
        "REGIONS": (2, 3),
        "FACTORS": (-4,),
        "STUMPS": (1, 5),
        "NUS": (0.1,),
        "TRIED": TRIED,
    },
    ussvm_tables: {
        "COSTS": [1e-2],
        "N_ATOMS": [36],
        "FACTORS": [1.0],
        "ALPHAS": [0.0, 1e-2],
        "VARIANTS": {"US-SVM": {}},
        "TABLE_1_ATOMS": [100],
    },
    shapes: {"GRID": 20},
    entries: {"SEEDS": dict.fromkeys(entries.SEEDS, 1), "SPLITS": dict.fromkeys(entries.SPLITS, 1)},
}


def few_rows(name: str, **options: Any) -> Dataset:
    """Load a set and keep few rows of each part, every class among them; few sparse columns."""
    data = load(name, **options)
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


def still(row: Any) -> Any:
    """Return the row with its knobs held, and few epochs."""
    held = tuple(knob._replace(low=knob.start, high=knob.start) for knob in row.knobs)
    few = {"epochs": row.epochs // 10} if hasattr(row, "epochs") else {}
    return replace(row, knobs=held, **few)


@contextmanager
def quick() -> Iterator[None]:
    """Make everything small while the context lasts."""
    with ExitStack() as stack:
        for module in MODULES:
            wanted = SEARCH | {"load": few_rows} | getattr(module, "QUICK", {})
            wanted = {k: v for k, v in wanted.items() if hasattr(module, k)}
            for constant, value in (wanted | CHANGED.get(module, {})).items():
                stack.enter_context(mock.patch.object(module, constant, value))
        for module in TABLES:
            rows = {name: still(row) for name, row in module.ROWS.items()}
            stack.enter_context(mock.patch.dict(module.ROWS, rows))
        yield
