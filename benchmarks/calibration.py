"""What ``predict_proba`` is worth, and what it costs, beside five folds of scikit-learn's.

Of each set's training split (at most 3,000 rows) 30 % are held out. Each model is fitted to the
rest without probabilities, with its own, and as ``CalibratedClassifierCV(cv=5)`` with a temperature
and with sigmoids. Log loss and expected calibration error (of the label predicted, ten bins of as
many rows each) are of the rows held out; seconds are those of the processor, one thread.

``LOCLIN_DATA=FOLDER python -m benchmarks.calibration [SET ...] [--stream]``
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._timing import pinned_threads
from benchmarks.many_rows import sines
from loclin import L3MClassifier, LLSVMClassifier, ML3Classifier, SAPLClassifier, USSVMClassifier
from loclin.datasets import load

NAMES = [
    "glass", "sonar", "heart", "liver", "ionosphere", "vowel", "segment", "wdbc", "wbc_original",
    "pima", "vehicle", "german", "banana", "spambase", "ringnorm", "satimage", "optdigits",
    "pendigits", "dna", "letter", "usps", "ijcnn1", "covtype_16pct",
]  # fmt: skip
MODELS: dict[str, Any] = {
    "ML3": ML3Classifier(alpha="scale", random_state=0, standardize=False),
    "LL-SVM": LLSVMClassifier(alpha="scale", random_state=0, standardize=False),
    "SAPL": SAPLClassifier(alpha="scale", random_state=0, standardize=False),
    "L3M": L3MClassifier(alpha="scale", random_state=0, standardize=False),
    "US-SVM": USSVMClassifier(random_state=0),
}
WAYS = ("own", "temperature", "sigmoid")


def calibration_error(P: NDArray[Any], y: NDArray[Any]) -> float:
    """Mean gap between the probability of the label predicted and how often it is right."""
    order = np.argsort(P.max(axis=1), kind="stable")
    right = P.argmax(axis=1) == y
    bins = np.array_split(order, 10)
    gaps = [abs(P.max(axis=1)[rows].mean() - right[rows].mean()) * len(rows) for rows in bins]
    return float(np.sum(gaps) / len(y))


def parts_of(name: str) -> tuple[Any, Any, Any, Any]:
    """Rows to train on and rows held out, standardised."""
    data = load(name)
    X, labels = data.X_train, np.unique(data.y_train, return_inverse=True)[1]
    X = (X.toarray() if sparse.issparse(X) else X).astype(float)
    if len(labels) > 3000:
        X, _, labels, _ = train_test_split(X, labels, train_size=3000, stratify=labels,
                                           random_state=0)  # fmt: skip
    X, X_out, y, y_out = train_test_split(X, labels, test_size=0.3, stratify=labels, random_state=0)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_out), y_out


def measured(name: str, model: Any) -> dict[str, Any]:
    """Log loss, calibration error and seconds of each way on a set."""
    X, y, X_out, y_out = parts_of(name)
    plain = clone(model).set_params(calibrate=False)
    folds = max(2, min(5, int(np.bincount(y).min())))
    made = {"none": plain, "own": clone(model)}
    made |= {way: CalibratedClassifierCV(plain, method=way, cv=folds) for way in WAYS[1:]}
    found: dict[str, Any] = {}
    for way, one in made.items():
        start = time.process_time()
        one.fit(X, y)
        seconds = time.process_time() - start
        found[way] = {"s": seconds}
        if way != "none":
            P = one.predict_proba(X_out)
            loss = log_loss(y_out, P, labels=np.arange(P.shape[1]))
            found[way] |= {"loss": loss, "gap": calibration_error(P, y_out)}
    return found


def stream() -> None:
    """Print the log loss of each call's rows before they are learned, along 10^6 rows."""
    X, y = sines(1_000_000, 1)
    for name, model in {k: MODELS[k] for k in ("ML3", "LL-SVM", "SAPL")}.items():
        one, losses = clone(model), []
        for rows in np.array_split(np.arange(len(y)), 1000):
            if rows[0]:
                losses.append(log_loss(y[rows], one.predict_proba(X[rows]), labels=[0, 1]))
            one.partial_fit(X[rows], y[rows], classes=[0, 1])
        tenths = [float(np.mean(part)) for part in np.array_split(losses, 10)]
        print(name.ljust(8), "log loss, tenth by tenth:", *(f"{loss:.3f}" for loss in tenths))


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each set and model, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--stream", action="store_true", help="a stream of 10^6 rows instead")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with pinned_threads(1):
        if options.stream:
            stream()
            return
        print("log loss | calibration error | fit over that without probabilities:", *WAYS)
        rows: dict[str, list[Any]] = {name: [] for name in MODELS}
        for data in options.names:
            for name, model in MODELS.items():
                found = measured(data, model)
                line = [[found[way]["loss"] for way in WAYS], [found[way]["gap"] for way in WAYS],
                        [found[way]["s"] / found["none"]["s"] for way in WAYS]]  # fmt: skip
                rows[name].append(line)
                print(data.ljust(14), name.ljust(7), *(_row(part) for part in line), flush=True)
        for name, lines in rows.items():
            medians = np.median(np.array(lines), axis=0)
            print("median".ljust(14), name.ljust(7), *(_row(part) for part in medians))
            ratios = np.array(lines)[:, 0]
            better = np.median(ratios[:, :1] / ratios, axis=0)
            print(" " * 22, "own log loss over each way's, median:", _row(better))


def _row(figures: Any) -> str:
    return "  ".join(f"{figure:6.3f}" for figure in figures) + "  |"


if __name__ == "__main__":
    main()
