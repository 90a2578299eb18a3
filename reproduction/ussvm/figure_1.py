"""Figure 1 of US-SVM (Lyu et al., 2016).

transfer (right): a dictionary is learned on 18 of the 26 letters (isolet; letter, after Nystroem
features), codes on the other 8, with 1, 2, 3, 5 and 10 nonzeros. Mean average precision on the test
rows of the 8, over draws of the letters.

joint (left): dictionary and codes of all classes together (isolet; letter; newsgroups20 after 100
directions of a truncated SVD, 30 % of its rows to test on), with half and a quarter as many atoms
as classes and 1, 2, 3 and 5 nonzeros, at most 5,000 training rows.

US-SVM as it comes, and with positives of five times the weight. Beside both the l1- and the l2-SVM,
pruned to as many weights (the largest as they are; or fitted again), and dense.

Training splits only choose. The SVMs' C: 5-fold cross-validation of the accuracy, on at most 2,500
rows. transfer: the number of atoms and, as a multiple of the rule, the beta of the codes, by 2-fold
cross-validation of the mean average precision with 5 nonzeros. Standardised features, one thread.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from loclin import USSVMClassifier
from reproduction.quick import sized
from reproduction.shapes import lines
from reproduction.store import Cache
from reproduction.ussvm.data import Split, mean_ap

SETS = {"transfer": ["isolet", "letter"], "joint": ["isolet", "letter", "newsgroups20"]}
SEEDS = sized(3, quick=1)
NONZEROS = {"transfer": [1, 2, 3, 5, 10], "joint": [1, 2, 3, 5]}
MOST_ROWS = {"transfer": 10**9, "joint": 5000}  # to learn the dictionary on
MOST_CHOOSING = 2500
N_OLD = 18
COSTS = sized([1e-4, 1e-3, 1e-2], quick=[1e-2])
N_ATOMS = sized([36, 100, 200], quick=[36])
FACTORS = sized([1.0, 3.0], quick=[1.0])
VARIANTS: dict[str, dict[str, Any]] = {"US-SVM": {}} | sized(
    {
        "US-SVM-N": {"nonnegative": True},
        "US-SVM-E": {"l1_ratio": 0.5},
        "US-SVM-NE": {"nonnegative": True, "l1_ratio": 0.5},
        "US-SVM, heavier": {"positive_weight": 5.0},  # the root of 26 - 1; not in the paper
    },
    quick={},
)


def fit_svm(split: Split, penalty: str) -> LinearSVC:
    """Linear SVM on the classes to code, its C by cross-validation."""
    svm = LinearSVC(penalty=penalty, dual=False, max_iter=3000, tol=1e-3, random_state=0)
    rows = np.random.default_rng(0).permutation(len(split.y))[:MOST_CHOOSING]
    search = GridSearchCV(svm, {"C": COSTS}, cv=5).fit(split.X[rows], split.y[rows])
    return svm.set_params(**search.best_params_).fit(split.X, split.y)


def pruned_scores(svm: LinearSVC, split: Split, k: int, refit: bool) -> NDArray[Any]:
    """Test scores with the k largest weights of each class, as they are or fitted again."""
    scores = []
    for label, weights in zip(split.new, svm.coef_, strict=True):
        kept = np.argsort(-np.abs(weights))[:k]
        some = weights[kept]
        if refit:
            again = LinearSVC(C=svm.C, random_state=0)
            some = again.fit(split.X[:, kept], split.y == label).coef_[0]
        scores.append(split.X_test[:, kept] @ some)
    return np.stack(scores, axis=1)


def svm_values(split: Split, penalty: str, nonzeros: list[int]) -> dict[str, list[float]]:
    """Mean average precision of a linear SVM: dense, pruned, pruned and fitted again."""
    svm = fit_svm(split, penalty)
    dense = mean_ap(svm.decision_function(split.X_test), split.y_test, split.new)
    found = {f"{penalty}-SVM, dense": [dense]}
    for way, refit in (("pruned", False), ("refitted", True)):
        found[f"{penalty}-SVM, {way}"] = [
            mean_ap(pruned_scores(svm, split, k, refit), split.y_test, split.new) for k in nonzeros
        ]
    return found


def coded_scores(model: Any, P: Any, y: Any, P_test: Any, k: int | None, factor: float,
                 tol: float = 1e-4) -> Any:  # fmt: skip
    """Scores of rows by codes of at most k nonzeros that are learned on others."""
    beta = factor * 0.02 * float(np.sqrt(np.mean(P**2) / len(P)))
    model.set_params(n_nonzero=k, beta=beta, tol=tol)
    codes, intercept = model.fit_codes(P, y, precomputed=True)
    return (codes @ P_test.T).T + intercept


def choose(models: list[Any], split: Split) -> tuple[Any, float]:
    """Choose the dictionary and the multiple of beta by cross-validation."""
    found = []
    folds = list(StratifiedKFold(2, shuffle=True, random_state=0).split(split.X, split.y))
    for model in models:
        P = model.transform(split.X)
        for factor in FACTORS:
            values = [
                mean_ap(coded_scores(model, P[a], split.y[a], P[b], 5, factor, 1e-2),
                        split.y[b], split.new)
                for a, b in folds
            ]  # fmt: skip
            found.append((float(np.mean(values)), model, factor))
    return max(found, key=lambda entry: entry[0])[1:]


def transfer(variant: str, split: Split, seed: int) -> dict[str, list[float]]:
    """Mean average precision by number of nonzeros, over dictionaries of other classes."""
    models = [
        USSVMClassifier(
            m, beta="scale", max_iter=100, tol=1e-3, random_state=seed, **VARIANTS[variant]
        ).fit(split.X_old, split.y_old)
        for m in N_ATOMS
    ]
    model, factor = choose(models, split)
    P, P_test = model.transform(split.X), model.transform(split.X_test)
    values = [
        mean_ap(coded_scores(model, P, split.y, P_test, k, factor), split.y_test, split.new)
        for k in NONZEROS["transfer"]
    ]
    return {variant: values}


def joint(variant: str, split: Split, seed: int) -> dict[str, list[float]]:
    """Mean average precision by number of nonzeros, with fewer atoms than classes."""
    found = {}
    for part in (2, 4):
        model = USSVMClassifier(
            len(split.new) // part,
            beta="scale",
            max_iter=100,
            random_state=seed,
            **VARIANTS[variant],
        )
        model.fit(split.X_old, split.y_old)
        P, P_test = model.transform(split.X), model.transform(split.X_test)
        found[f"{variant}, c/{part}"] = [
            mean_ap(coded_scores(model, P, split.y, P_test, k, 1.0), split.y_test, split.new)
            for k in NONZEROS["joint"]
        ]
    return found


def figure_1(what: str, name: str, cache: Cache) -> dict[str, Any]:
    """Run a side of the figure for a set: values by system, seed by seed."""
    nonzeros, n_rows = NONZEROS[what], MOST_ROWS[what]
    settings: dict[str, Any] = {"nonzeros": nonzeros, "rows": n_rows}
    if what == "transfer":
        settings |= {"atoms": N_ATOMS, "factors": FACTORS}
    one = transfer if what == "transfer" else joint
    curves: dict[str, list[list[float]]] = {}
    for seed in range(SEEDS):
        split = Split(name, seed, n_rows, N_OLD if what == "transfer" else None)
        tasks = {v: partial(one, v, split, seed) for v in VARIANTS}
        tasks |= {f"{p}-SVM": partial(svm_values, split, p, nonzeros) for p in ("l2", "l1")}
        for system, task in tasks.items():
            key = f"{what} | {name} | {system} | {seed}"
            for row, values in cache(key, settings, task).items():
                curves.setdefault(row, []).append(values)
    return lines(nonzeros, curves, "nonzeros a class", "mean average precision, %", log_x=True)
