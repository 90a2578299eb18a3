"""Figure 1 (right) of US-SVM (Lyu et al., 2015) on letters: a dictionary that serves new classes.

A dictionary is learned on 18 of the 26 letters (isolet; letter, after Nystroem features), codes on
the other 8, with 1, 2, 3, 5 and 10 nonzeros. Mean average precision on the test rows of the 8, mean
and deviation over draws of the letters. Beside it the l1- and the l2-SVM, pruned to as many weights
(each pruned, and then fitted again on the weights kept), and dense.

Training splits only choose: the SVMs' C by 5-fold cross-validation of the accuracy on the 8
letters; the number of atoms and, as a multiple of the rule, the beta of the codes, by 3-fold
cross-validation of the mean average precision with 5 nonzeros. Standardised features, one thread.

``LOCLIN_DATA=FOLDER python -m benchmarks.ussvm_tables [isolet letter] [--seeds 3]``
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks._timing import pinned_threads
from loclin import USSVMClassifier
from loclin.datasets import load

SETS = {"isolet": 0, "letter": 300}  # Nystroem features; 0: the features themselves
NONZEROS = [1, 2, 3, 5, 10]
N_OLD = 18
COSTS = [1e-4, 1e-3, 1e-2]
N_ATOMS = [36, 100]
FACTORS = [0.3, 1.0, 3.0]
VARIANTS: dict[str, dict[str, Any]] = {
    "US-SVM": {},
    "US-SVM-N": {"nonnegative": True},
    "US-SVM-E": {"l1_ratio": 0.5},
    "US-SVM-NE": {"nonnegative": True, "l1_ratio": 0.5},
}


class Split:
    """Rows of the old letters, and of the new ones to learn and to test on."""

    def __init__(self, name: str, seed: int, n_rows: int) -> None:
        data: Any = load(name)
        rng = np.random.default_rng(seed)
        steps: list[Any] = [StandardScaler()]
        if SETS[name]:
            features = Nystroem(gamma=1 / data.X_train.shape[1], n_components=SETS[name],
                                random_state=seed)  # fmt: skip
            steps += [features, StandardScaler()]
        prepare = make_pipeline(*steps).fit(data.X_train.astype(float))
        X, X_test = (prepare.transform(X.astype(float)) for X in (data.X_train, data.X_test))
        letters = rng.permutation(np.unique(data.y_train))
        self.new = np.sort(letters[N_OLD:])
        old = np.flatnonzero(np.isin(data.y_train, letters[:N_OLD]))
        old = rng.permutation(old)[:n_rows]
        self.X_old, self.y_old = X[old], data.y_train[old]
        new, test = np.isin(data.y_train, self.new), np.isin(data.y_test, self.new)
        self.X, self.y = X[new], data.y_train[new]
        self.X_test, self.y_test = X_test[test], data.y_test[test]


def mean_ap(scores: NDArray[Any], y: NDArray[Any], classes: NDArray[Any]) -> float:
    """Mean average precision, in %."""
    each = [average_precision_score(y == label, scores[:, k]) for k, label in enumerate(classes)]
    return 100 * float(np.mean(each))


def fit_svm(split: Split, penalty: str) -> LinearSVC:
    """Linear SVM on the new letters, its C by cross-validation."""
    svm = LinearSVC(penalty=penalty, dual=False, max_iter=3000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GridSearchCV(svm, {"C": COSTS}, cv=5).fit(split.X, split.y).best_estimator_


def pruned_scores(svm: LinearSVC, split: Split, k: int, refit: bool) -> NDArray[Any]:
    """Test scores with the k largest weights of each class, as they are or fitted again."""
    scores = []
    for label, weights in zip(split.new, svm.coef_, strict=True):
        kept = np.argsort(-np.abs(weights))[:k]
        if refit:
            again = LinearSVC(C=svm.C, random_state=0).fit(split.X[:, kept], split.y == label)
            weights, kept_weights = np.zeros_like(weights), again.coef_[0]
        else:
            weights, kept_weights = np.zeros_like(weights), weights[kept]
        weights[kept] = kept_weights
        scores.append(split.X_test @ weights)
    return np.stack(scores, axis=1)


def coded_scores(model: Any, P: Any, y: Any, P_test: Any, k: int | None, factor: float) -> Any:
    """Scores of rows by codes of at most k nonzeros that are learned on others."""
    beta = factor * 0.02 * float(np.sqrt(np.mean(P**2) / len(P)))
    model.set_params(n_nonzero=k, beta=beta)
    codes, intercept = model.fit_codes(P, y, precomputed=True)
    return (codes @ P_test.T).T + intercept


def choose(models: list[Any], split: Split) -> tuple[Any, float]:
    """Choose the dictionary and the multiple of beta by cross-validation."""
    found = []
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(split.X, split.y))
    for model in models:
        P = model.transform(split.X)
        for factor in FACTORS:
            values = [
                mean_ap(coded_scores(model, P[a], split.y[a], P[b], 5, factor), split.y[b],
                        split.new)
                for a, b in folds
            ]  # fmt: skip
            found.append((float(np.mean(values)), model, factor))
    return max(found, key=lambda entry: entry[0])[1:]


def transfer(name: str, seed: int, n_rows: int, variants: list[str]) -> dict[str, Any]:
    """Mean average precision by number of nonzeros, of every system."""
    split = Split(name, seed, n_rows)
    found: dict[str, Any] = {}
    for penalty in ("l2", "l1"):
        svm = fit_svm(split, penalty)
        dense = mean_ap(svm.decision_function(split.X_test), split.y_test, split.new)
        found[f"{penalty}-SVM, dense"] = [dense]
        for way, refit in (("pruned", False), ("refitted", True)):
            found[f"{penalty}-SVM, {way}"] = [
                mean_ap(pruned_scores(svm, split, k, refit), split.y_test, split.new)
                for k in NONZEROS
            ]
    for variant in variants:
        start = time.process_time()
        models = [
            USSVMClassifier(m, tol=1e-3, random_state=seed, **VARIANTS[variant]).fit(
                split.X_old, split.y_old
            )
            for m in N_ATOMS
        ]
        seconds = time.process_time() - start
        model, factor = choose(models, split)
        P, P_test = model.transform(split.X), model.transform(split.X_test)
        found[variant] = [
            mean_ap(coded_scores(model, P, split.y, P_test, k, factor), split.y_test, split.new)
            for k in NONZEROS
        ]
        print(
            f"  {name}, seed {seed}, {variant}: {model.dictionary_.shape[1]} atoms, beta x {factor}"
            f"; dictionaries in {seconds:.1f} s",
            flush=True,
        )
    for system, values in found.items():
        print(f"    {system:18}", *(f"{value:6.1f}" for value in values), flush=True)
    return found


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Run, print and return the numbers."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ussvm_tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sets", nargs="*", metavar="set", help=f"of {', '.join(SETS)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10**9, help="at most so many of old letters")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    unknown = set(args.sets) - set(SETS)
    if unknown:
        parser.error(f"no such set: {', '.join(sorted(unknown))}")
    results: dict[str, Any] = {}
    with pinned_threads(1):
        for name in args.sets or SETS:
            runs = [transfer(name, seed, args.rows, args.variants) for seed in range(args.seeds)]
            results[name] = {
                system: np.array([run[system] for run in runs]).tolist() for system in runs[0]
            }
            print(f"{name}: mAP in % with {NONZEROS} nonzeros a class, {args.seeds} draws")
            for system, values in results[name].items():
                mean, std = np.mean(values, axis=0), np.std(values, axis=0)
                cells = " ".join(f"{m:6.1f} ± {s:4.1f}" for m, s in zip(mean, std, strict=True))
                print(f"  {system:18} {cells}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return results


if __name__ == "__main__":
    main()
