"""Test errors on features in other units, over those behind a ``StandardScaler``.

Each dense set of the defaults table, at most ``--rows`` training rows: as it is, standardized
outside, one feature times 1000, all plus 100. The last is 100 times the mean spread of the
features, so that it means as much on every set. An error has half a row added, so that ratios of
few errors mean something. A stream comes in 20 parts.

``LOCLIN_DATA=FOLDER python -m benchmarks.units [SET ...] [--how fit stream] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import loclin
from benchmarks._timing import pinned_threads
from reproduction.defaults.table import SETS, parts_of

SHORT = {"random_state": 0, "calibrate": False}
MODELS: dict[str, Any] = {
    "ML3": loclin.ML3Classifier(**SHORT),
    "LL-SVM": loclin.LLSVMClassifier(**SHORT),
    "SAPL": loclin.SAPLClassifier(**SHORT),
    "L3M": loclin.L3MClassifier(**SHORT),
    "CSVM": loclin.CSVMClassifier(**SHORT),
    "LDKL": loclin.LDKLClassifier(**SHORT),
    "L-MKL": loclin.LMKLClassifier(**SHORT),
    "Ensemble": loclin.LocallyLinearEnsemble(n_folds=2, random_state=0),
}
STREAMS: dict[str, Any] = {
    name: model for name, model in MODELS.items() if name not in ("L3M", "Ensemble")
} | {"L3M": loclin.L3MClassifier(solver="online", **SHORT)}
N_PARTS = 20


def units_of(X: Any, Z: Any) -> dict[str, tuple[Any, Any]]:
    """Return training and test rows in each of the units."""
    scaler = StandardScaler().fit(X)
    times = np.ones(X.shape[1])
    times[int(np.argmax(X.std(axis=0) > 0))] = 1000.0
    far = 100 * X.std(axis=0).mean()
    return {
        "outside": (scaler.transform(X), scaler.transform(Z)),
        "raw": (X, Z),
        "x 1000": (X * times, Z * times),
        "+ 100": (X + far, Z + far),
    }


def fitted(model: Any, X: Any, y: Any, how: str) -> Any:
    """Return a clone of the model that has learned the rows."""
    if how == "fit":
        return clone(model).fit(X, y)
    found, classes = clone(model), np.unique(y)
    for part in np.array_split(np.random.default_rng(0).permutation(len(y)), N_PARTS):
        found.partial_fit(X[part], y[part], classes=classes)
    return found


def errors(data: str, n_rows: int, how: str, dtype: Any) -> dict[str, dict[str, float]]:
    """Return the errors of each model, in each of the units; none of sparse sets."""
    X, y, Z, labels = parts_of(data, 0)
    if sparse.issparse(X):
        return {}
    some = np.random.default_rng(0).permutation(len(y))[:n_rows]
    some = np.union1d(some, np.unique(y, return_index=True)[1])  # a row of each class
    units = units_of(X[some].astype(np.float64), Z.astype(np.float64))
    found: dict[str, dict[str, float]] = {}
    for name, model in (MODELS if how == "fit" else STREAMS).items():
        found[name] = {}
        for unit, (train, test) in units.items():
            one = fitted(model, train.astype(dtype), y[some], how)
            wrong = np.sum(one.predict(test.astype(dtype)) != labels)
            found[name][unit] = float((wrong + 0.5) / len(labels))
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print the ratios of each set, and their geometric means and maxima."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SETS))
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--how", nargs="+", default=["fit", "stream"])
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument("--json", help="file to write the errors to")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    stored: dict[str, Any] = {}
    with pinned_threads(1):
        for how in options.how:
            for dtype in options.dtypes:
                ratios: dict[str, list[list[float]]] = {}
                for data in options.names:
                    found = errors(data, options.rows, how, dtype)
                    stored[f"{how} {dtype} {data}"] = found
                    for name, by_unit in found.items():
                        row = [by_unit[u] / by_unit["outside"] for u in ("raw", "x 1000", "+ 100")]
                        ratios.setdefault(name, []).append(row)
                        told = " ".join(f"{ratio:8.3f}" for ratio in row)
                        print(f"{how:7}{dtype:9}{data:21}{name:9}{told}", flush=True)
                for name, rows in ratios.items():
                    means, most = np.exp(np.log(rows).mean(axis=0)), np.max(rows, axis=0)
                    pairs = zip(means, most, strict=True)
                    told = " ".join(f"{mean:8.3f} (at most {of:.2f})" for mean, of in pairs)
                    print(f"{how:7}{dtype:9}{'all':21}{name:9}{told}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(stored, file, indent=1)


if __name__ == "__main__":
    main()
