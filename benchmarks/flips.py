"""How often `flip` changes a prediction, how far, and in what time.

Each real set of scikit-learn, split in half; all classifiers behind a ``StandardScaler``; some
test rows each. One step: the point 2 % beyond the border of the row's own linear model. In two
dimensions (the first two components) the distance is put beside that of a search on a grid.

``python -m benchmarks.flips [SET ...] [--models NAME ...] [--rows N] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import loclin
from benchmarks._timing import pinned_threads
from loclin.inspection import flip

SETS = "iris", "wine", "breast_cancer", "digits", "diabetes"  # the last: above its median
SHORT = {"random_state": 0, "calibrate": False}
MODELS: dict[str, Any] = {
    "ML3": loclin.ML3Classifier(**SHORT),
    "LL-SVM": loclin.LLSVMClassifier(**SHORT),
    "SAPL": loclin.SAPLClassifier(**SHORT),
    "L3M": loclin.L3MClassifier(**SHORT),
    "US-SVM": loclin.USSVMClassifier(**SHORT),
    "CSVM": loclin.CSVMClassifier(**SHORT),
    "LDKL": loclin.LDKLClassifier(**SHORT),
    "L-MKL": loclin.LMKLClassifier(**SHORT),
    "kernel L-MKL": loclin.KernelLMKLClassifier(max_iter=100, random_state=0),
    "SVM-KNN": loclin.SVMKNNClassifier(),
    "forest": loclin.ForestClassifier(random_state=0),
    "ensemble": loclin.LocallyLinearEnsemble(n_folds=2, random_state=0),
}
LIMIT = 12.0  # units that the grid reaches from a row
SPACING = 0.02  # of its circles


def parts_of(name: str, two: bool) -> tuple[Any, Any, Any]:
    """Return training rows, their labels, and test rows."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    y = y > np.median(y) if name == "diabetes" else y
    if two:
        X = PCA(2, random_state=0).fit_transform(StandardScaler().fit_transform(X))
    X, Z, labels, _ = train_test_split(X, y, test_size=0.5, random_state=0)
    return X, labels, Z


def one_step_flips(model: Any, x: Any, label: Any) -> bool:
    """Tell whether a point 2 % beyond the border of the row's linear model is across."""
    classifier, z = model[-1], model[:-1].transform(x[None])
    if not hasattr(classifier, "local_model"):
        return False
    coef, constant = (part[0] for part in classifier.local_model(z, by_class=True))
    scores = coef @ z[0] + constant
    here = list(classifier.classes_).index(label)
    slope = np.delete(coef - coef[here], here, axis=0)
    lacks = np.delete(scores[here] - scores, here)
    squares = (slope**2).sum(axis=1)
    if not squares.any():
        return False
    far = np.where(squares > 0, lacks / np.sqrt(np.where(squares > 0, squares, 1)), np.inf)
    k = int(np.argmin(far))
    return bool(classifier.predict(z + 1.02 * lacks[k] * slope[k] / squares[k])[0] != label)


def by_grid(model: Any, x: Any, label: Any) -> float:
    """Return the distance of the nearest other label on circles around a row of two numbers."""
    unit = model[0].scale_
    angles = np.linspace(0, 2 * np.pi, 180, endpoint=False)
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for first in np.arange(SPACING, LIMIT, 10 * SPACING):
        lengths = first + SPACING * np.arange(10)
        Z = x + lengths[:, None, None] * ways * unit
        other = (model.predict(Z.reshape(-1, 2)) != label).reshape(len(lengths), -1).any(axis=1)
        if other.any():
            return float(lengths[np.argmax(other)])
    return float("nan")


def measured(name: str, model: Any, n_rows: int) -> dict[str, float]:
    """Return the figures of a model on a set."""
    X, y, Z = parts_of(name, two=False)
    fitted = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    Z = Z[:n_rows]
    labels = fitted.predict(Z)
    flip(fitted, Z[0])  # compiles
    seconds, flips = [], []
    for x in Z:
        start = time.perf_counter()
        flips.append(flip(fitted, x))
        seconds.append(time.perf_counter() - start)
    once = [one_step_flips(fitted, x, label) for x, label in zip(Z, labels, strict=True)]
    found = {
        "verified": float(np.mean([one.verified for one in flips])),
        "one step": float(np.mean(once)),
        "distance": float(np.median([one.distance for one in flips])),
        "ms": 1000 * float(np.median(seconds)),
    }
    X, y, Z = parts_of(name, two=True)
    fitted = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    Z = Z[: n_rows // 3]
    ratios = []
    for x, label in zip(Z, fitted.predict(Z), strict=True):
        grid, ours = by_grid(fitted, x, label), flip(fitted, x)
        if np.isfinite(grid) and ours.verified:
            ratios.append(ours.distance / grid)
    if ratios:
        found["beside grid"] = float(np.median(ratios))
        found["9 of 10"] = float(np.quantile(ratios, 0.9))
    return found


def main(arguments: list[str] | None = None) -> dict[str, dict[str, dict[str, float]]]:
    """Print the table, and return it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    results: dict[str, dict[str, dict[str, float]]] = {}
    with pinned_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in options.models:
            results[model] = {}
            for name in options.sets:
                found = measured(name, MODELS[model], options.rows)
                results[model][name] = found
                figures = "  ".join(f"{key} {value:.3g}" for key, value in found.items())
                print(f"{model:12} {name:13} {figures}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    return results


if __name__ == "__main__":
    main()
