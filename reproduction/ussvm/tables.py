"""Figure 1 of US-SVM (Lyu et al., 2015), and its table 1.

transfer (figure 1, right): a dictionary is learned on 18 of the 26 letters (isolet; letter, after
Nystroem features), codes on the other 8, with 1, 2, 3, 5 and 10 nonzeros. Mean average precision on
the test rows of the 8, over draws of the letters.

joint (figure 1, left): dictionary and codes of all classes together (isolet; letter; newsgroups20
after 100 directions of a truncated SVD, 30 % of its rows to test on), with half and a quarter as
many atoms as classes and 1, 2, 3 and 5 nonzeros. US-SVM as it comes (or, if asked, with positives
of five times the weight), at most 5,000 training rows.

Beside both the l1- and the l2-SVM, pruned to as many weights (the largest as they are; or fitted
again), and dense.

table1: seconds of a pass and mean average precision for 100, 200 and 300 atoms, alpha = 0 and alpha
chosen on a third of the rows held out (of 1e-3 .. 1e-1 in units of 1 / mean squared norm); isolet,
3,000 rows, 50 passes.

Training splits only choose. The SVMs' C: 5-fold cross-validation of the accuracy, on at most 2,500
rows. transfer: the number of atoms and, as a multiple of the rule, the beta of the codes, by 2-fold
cross-validation of the mean average precision with 5 nonzeros. Standardised features, one thread.

``LOCLIN_DATA=FOLDER python -m benchmarks.ussvm_tables transfer|joint|table1 [isolet ...] [--seeds
3] --json FILE``. A stopped run goes on from its JSON file.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import LinearSVC

from benchmarks._timing import pinned_threads
from benchmarks.choices import Cache
from benchmarks.ussvm_steps import mean_ap, preparation
from loclin import USSVMClassifier
from loclin.datasets import load
from loclin.engine.data import Rows
from loclin.fitting.rows import auto_batch_size
from loclin.ussvm.codes import Penalty, root_mean_square
from loclin.ussvm.descent import DictionaryDescent, first_atoms

SETS = {
    "transfer": ["isolet", "letter"],
    "joint": ["isolet", "letter", "newsgroups20"],
    "table1": ["isolet"],
}
NONZEROS = [1, 2, 3, 5, 10]
N_OLD = 18
FEW = [1, 2, 3, 5]
TABLE_1_ATOMS = [100, 200, 300]
ALPHAS = [0.0, 1e-3, 1e-2, 1e-1]
MOST_CHOOSING, MOST_JOINT, MOST_TABLE_1 = 2500, 5000, 3000
COSTS = [1e-4, 1e-3, 1e-2]
N_ATOMS = [36, 100, 200]
FACTORS = [1.0, 3.0]
VARIANTS: dict[str, dict[str, Any]] = {
    "US-SVM": {},
    "US-SVM-N": {"nonnegative": True},
    "US-SVM-E": {"l1_ratio": 0.5},
    "US-SVM-NE": {"nonnegative": True, "l1_ratio": 0.5},
    "US-SVM, heavier": {"positive_weight": 5.0},  # the root of 26 - 1; not in the paper
}
PAPERS = list(VARIANTS)[:4]


class Split:
    """Rows to learn a dictionary on, and rows of the classes to code: to learn, and to test on."""

    def __init__(self, name: str, seed: int, n_rows: int, n_old: int | None = None) -> None:
        data: Any = load(name)
        rng = np.random.default_rng(seed)
        X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
        if X_test is None:
            X, X_test, y, y_test = train_test_split(
                X, y, test_size=0.3, stratify=y, random_state=seed
            )
        X, X_test = X.astype(np.float32), X_test.astype(np.float32)
        prepare = preparation(name, X.shape[1], seed).fit(X)
        X, X_test = (prepare.transform(part).astype(np.float32) for part in (X, X_test))
        classes = rng.permutation(np.unique(y))
        first = classes if n_old is None else classes[:n_old]
        self.new = np.sort(classes if n_old is None else classes[n_old:])
        old = rng.permutation(np.flatnonzero(np.isin(y, first)))[:n_rows]
        self.X_old, self.y_old = X[old], y[old]
        new = old if n_old is None else np.isin(y, self.new)
        test = np.isin(y_test, self.new)
        self.X, self.y = X[new], y[new]
        self.X_test, self.y_test = X_test[test], y_test[test]


def fit_svm(split: Split, penalty: str) -> LinearSVC:
    """Linear SVM on the classes to code, its C by cross-validation."""
    svm = LinearSVC(penalty=penalty, dual=False, max_iter=3000, tol=1e-3, random_state=0)
    rows = np.random.default_rng(0).permutation(len(split.y))[:MOST_CHOOSING]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
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
        USSVMClassifier(m, tol=1e-3, random_state=seed, **VARIANTS[variant]).fit(
            split.X_old, split.y_old
        )
        for m in N_ATOMS
    ]
    model, factor = choose(models, split)
    P, P_test = model.transform(split.X), model.transform(split.X_test)
    values = [
        mean_ap(coded_scores(model, P, split.y, P_test, k, factor), split.y_test, split.new)
        for k in NONZEROS
    ]
    print(f"  seed {seed}, {variant}: {P.shape[1]} atoms, beta x {factor}", flush=True)
    return {variant: values}


def joint(variant: str, split: Split, seed: int) -> dict[str, list[float]]:
    """Mean average precision by number of nonzeros, with fewer atoms than classes."""
    found = {}
    for part in (2, 4):
        model = USSVMClassifier(len(split.new) // part, random_state=seed, **VARIANTS[variant])
        model.fit(split.X_old, split.y_old)
        P, P_test = model.transform(split.X), model.transform(split.X_test)
        found[f"{variant}, c/{part}"] = [
            mean_ap(coded_scores(model, P, split.y, P_test, k, 1.0), split.y_test, split.new)
            for k in FEW
        ]
        empty = int(np.sum(model.codes_.getnnz(axis=1) == 0))
        print(f"  seed {seed}, {variant}, c/{part}: {empty} classes without a code", flush=True)
    return found


def figure(what: str, name: str, options: Any, cache: Cache) -> dict[str, Any]:
    """Run and print a side of figure 1 for a set: values by system, seed by seed."""
    n_old, nonzeros = (N_OLD, NONZEROS) if what == "transfer" else (None, FEW)
    n_rows = options.rows if what == "transfer" else min(options.rows, MOST_JOINT)
    one: Any = transfer if what == "transfer" else joint
    settings: dict[str, Any] = {"nonzeros": nonzeros, "rows": n_rows}
    if what == "transfer":
        settings |= {"atoms": N_ATOMS, "factors": FACTORS}
    found: dict[str, list[list[float]]] = {}
    for seed in range(options.seeds):
        split = Split(name, seed, n_rows, n_old)
        tasks = {v: partial(one, v, split, seed) for v in options.variants}
        tasks |= {f"{p}-SVM": partial(svm_values, split, p, nonzeros) for p in ("l2", "l1")}
        for system, task in tasks.items():
            key = f"{what} | {name} | {system} | {seed}"
            for row, values in cache(key, settings, task).items():
                found.setdefault(row, []).append(values)
    print(f"{what}, {name}: mAP in % with {nonzeros} nonzeros a class, {options.seeds} seeds")
    for row, runs in found.items():
        mean, std = np.mean(runs, axis=0), np.std(runs, axis=0)
        cells = " ".join(f"{m:6.1f} ± {s:4.1f}" for m, s in zip(mean, std, strict=True))
        print(f"  {row:18} {cells}", flush=True)
    return found


def table_1_ap(split: Split, n_atoms: int, alpha: float) -> float:
    """Mean average precision on the test rows."""
    model = USSVMClassifier(n_atoms, alpha=alpha, random_state=0, tol=1e-3, max_iter=50)
    model.fit(split.X, split.y)
    return mean_ap(model.decision_function(split.X_test), split.y_test, split.new)


def pass_seconds(split: Split, n_atoms: int, alpha: float) -> list[float]:
    """Seconds of a pass of Algorithm 1, and those of its bare products; the best of ten each."""
    y = np.searchsorted(split.new, split.y).astype(np.int32)
    rows = Rows(split.X, y, np.ones(len(y), np.float32))
    rng, c = np.random.default_rng(0), len(split.new)
    atoms = first_atoms(rows, c, n_atoms, rng)
    unit = root_mean_square(split.X @ atoms.T)
    penalty = Penalty(alpha, 0.02 * unit / len(y) ** 0.5, 1.0, False)
    codes, intercept = np.zeros((c, n_atoms), np.float32), np.zeros(c, np.float32)
    steps = {"code_lr": 30.0, "atom_lr": 1.0, "block_iter": 10}
    descent = DictionaryDescent(atoms, codes, intercept, unit, penalty, **steps)
    size, found = auto_batch_size(len(y)), []
    for _ in range(10):
        start = time.process_time()
        descent.iterate(rows, size, rng)
        middle = time.process_time()
        products(split.X, n_atoms, c, size)
        found.append([middle - start, time.process_time() - middle])
    return np.min(found, axis=0).tolist()


def products(X: NDArray[Any], n_atoms: int, n_classes: int, size: int) -> None:
    """Multiply what Algorithm 1 multiplies in a pass with alpha = 0."""
    rng = np.random.default_rng(0)
    D, Z, S = (
        rng.standard_normal(shape, np.float32)
        for shape in ((n_atoms, X.shape[1]), (n_classes, n_atoms), (size, n_classes))
    )
    for first in range(0, len(X) - size + 1, size):
        rows = X[first : first + size]
        P = rows @ D.T
        P @ Z.T
        _ = S.T @ P if first // size // 10 % 2 == 0 else (S @ Z).T @ rows


def table_1(name: str, options: Any, cache: Cache) -> dict[str, Any]:
    """Run and print the paper's table 1."""
    split, found = Split(name, 0, MOST_TABLE_1), {}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    inner, watched = next(iter(folds.split(split.X, split.y)))
    part = Split(name, 0, MOST_TABLE_1)
    part.X, part.y = split.X[inner], split.y[inner]
    part.X_test, part.y_test = split.X[watched], split.y[watched]
    unit = 1 / float(np.mean(np.sum(split.X**2, axis=1)))
    for n_atoms in TABLE_1_ATOMS:
        key = f"table1 | {name} | {n_atoms}"
        tried = {
            a: cache(f"{key} | held out | {a:g}", {}, partial(table_1_ap, part, n_atoms, a * unit))
            for a in ALPHAS
        }
        chosen = max(ALPHAS[1:], key=lambda a: tried[a])
        for alpha in (0.0, chosen):
            at = split, n_atoms, alpha * unit
            ap = cache(f"{key} | test | {alpha:g}", {}, partial(table_1_ap, *at))
            seconds, bare = cache(f"{key} | pass | {alpha:g}", {}, partial(pass_seconds, *at))
            found[f"{n_atoms}, {'alpha by CV' if alpha else 'alpha=0'}"] = [ap, seconds, bare]
            print(
                f"{name}, {n_atoms} atoms, alpha={alpha:g}: held out {tried[alpha]:.2f} %, test "
                f"{ap:.2f} %, {1000 * seconds:.1f} ms a pass, {seconds / bare:.2f} x bare products",
                flush=True,
            )
    return found


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Run, print and return the numbers."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ussvm_tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=SETS)
    parser.add_argument("sets", nargs="*", metavar="set")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10**9, help="at most so many for a dictionary")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=PAPERS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    unknown = set(options.sets) - set(SETS[options.what])
    if unknown:
        parser.error(f"no such set: {', '.join(sorted(unknown))}")
    cache, results = Cache(options.json), {}
    with pinned_threads(1):
        for name in options.sets or SETS[options.what]:
            results[name] = (
                table_1(name, options, cache)
                if options.what == "table1"
                else figure(options.what, name, options, cache)
            )
    return results


if __name__ == "__main__":
    main()
