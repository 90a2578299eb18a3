"""Log losses of other parameters of `TableEncoder`, less those of its defaults.

One parameter at a time, of ML3 and of boosted trees, by 3-fold cross-validation, twice. A number
below 0 is better than the default; beside it is the error of the mean of the folds' differences.

``python -m benchmarks.table_defaults [NAME ...]``
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from benchmarks._timing import pinned_threads
from benchmarks.tables import FAST, MODELS, read, write
from loclin.tables import TableEncoder

CATEGORIES = "sensors", "prices", "shops", "fraud", "many_rows"
VARIED: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "max_categories": ((10, 20, 50, 100), CATEGORIES),
    "min_frequency": ((1, 2, 10, 20), CATEGORIES),
    "n_components": ((5, 10, 50, 100), ("reviews",)),
}
NAMES = [*CATEGORIES, "reviews"]
MOST_ROWS = 10_000


def losses(table: Any, y: Any, model: str, **parameters: int) -> Any:
    """Log losses of the folds."""
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    pipeline = make_pipeline(TableEncoder(**parameters), *MODELS[model]())
    return -cross_val_score(pipeline, table, y, cv=folds, scoring="neg_log_loss")


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each table, model and parameter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with pinned_threads(1), tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            rows = MOST_ROWS if name == "many_rows" else None
            table, y = read(write(name, folder, rows))
            for model in FAST:
                usual = losses(table, y, model)
                print(f"{name}, {model}: {usual.mean():.3f}", flush=True)
                for parameter, (values, names) in VARIED.items():
                    if name not in names:
                        continue
                    shown = []
                    for value in values:
                        gained = losses(table, y, model, **{parameter: value}) - usual
                        spread = gained.std(ddof=1) / np.sqrt(len(gained))
                        shown.append(f"{value}: {gained.mean():+.3f} ({spread:.3f})")
                    print(f"  {parameter:15}", "  ".join(shown), flush=True)


if __name__ == "__main__":
    main()
