"""Seconds of fits with default settings over those with ``alpha="scale"``.

The training split of each set of the defaults table (at most 10,000 rows), standardised; seconds of
the processor, one thread, the least of three fits in turn (one where a round takes more than ten
seconds). "plain": over those of fits that choose nothing: no alpha, metric or pieces. The last
columns: ML3's and SAPL's default fit over HistGradientBoosting's.

``LOCLIN_DATA=FOLDER python -m benchmarks.default_fits [SET ...]``
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from benchmarks._timing import pinned_threads
from loclin import L3MClassifier, LLSVMClassifier, ML3Classifier, SAPLClassifier
from reproduction.defaults.table import SETS, parts_of

MODELS: dict[str, Any] = {
    "ML3": ML3Classifier(random_state=0),
    "LL-SVM": LLSVMClassifier(random_state=0),
    "SAPL": SAPLClassifier(random_state=0),
    "L3M": L3MClassifier(random_state=0),
}
LONG = 10.0  # seconds of a round, after which there is no other


def seconds(fits: dict[str, tuple[Any, Any]], y: Any) -> dict[str, float]:
    """Least seconds of each fit, in rounds of all."""
    found: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(3):
        for name, (model, X) in fits.items():
            start = time.process_time()
            clone(model).fit(X, y)
            found[name].append(time.process_time() - start)
        if sum(times[-1] for times in found.values()) > LONG:
            break
    return {name: min(times) for name, times in found.items()}


def measured(data: str) -> dict[str, float]:
    """Ratios of a set."""
    X, y, _, _ = parts_of(data, 0)
    scaled = (MaxAbsScaler() if sparse.issparse(X) else StandardScaler()).fit_transform(X)
    fits = {name: (model, scaled) for name, model in MODELS.items()}
    fits |= {f"{n} scale": (clone(m).set_params(alpha="scale"), scaled) for n, m in MODELS.items()}
    with_metric = [name for name, model in MODELS.items() if "metric" in model.get_params()]
    for name in with_metric:
        plain = clone(MODELS[name]).set_params(alpha="scale", metric=None, pieces=None)
        fits[f"{name} plain"] = plain, scaled
    if not sparse.issparse(X):
        fits["boosting"] = HistGradientBoostingClassifier(random_state=0), X
    took = seconds(fits, y)
    ratios = {name: took[name] / took[f"{name} scale"] for name in MODELS}
    ratios |= {f"{name} / plain": took[name] / took[f"{name} plain"] for name in with_metric}
    boosting = took.get("boosting", np.nan)
    return ratios | {f"{name} / boosting": took[name] / boosting for name in ("ML3", "SAPL")}


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each set, then medians and maxima."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SETS))
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    with pinned_threads(1):
        for n_classes in (2, 3):  # compile
            X, y = rng.standard_normal((300, 4)), np.arange(300) % n_classes
            for model in MODELS.values():
                clone(model).set_params(max_iter=2).fit(X, y)
        rows = []
        for data in options.names:
            found = measured(data)
            rows.append(list(found.values()))
            if len(rows) == 1:
                print(" " * 21, *(f"{name:>16}" for name in found))
            print(data.ljust(21), *(f"{ratio:16.2f}" for ratio in rows[-1]), flush=True)
        for name, figures in (("median", np.nanmedian), ("largest", np.nanmax)):
            print(name.ljust(21), *(f"{ratio:16.2f}" for ratio in figures(rows, axis=0)))


if __name__ == "__main__":
    main()
