"""Tables 1 and 2 of the ML3 paper on the data at hand.

Hyper-parameters are chosen by 5-fold cross-validation on the training split only; the test split is
used once for each seed. Table 1: preprocessing and alpha * n are chosen together, on sets of more
than 10,000 rows with one fixed stratified subset of 10,000 (alpha * n carries over). Table 2: ten
random splits, alpha chosen anew on each; features standardised.

Run ``LOCLIN_DATA=FOLDER python -m benchmarks.ml3_tables table1 [letter usps mnist]`` or
``... table2``.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from loclin import ML3Classifier
from loclin.datasets import load

PREPROCESSING: dict[str, Any] = {
    "standardise": StandardScaler,
    "centre, unit rows": lambda: make_pipeline(StandardScaler(with_std=False), Normalizer()),
    "unit rows, centre": lambda: make_pipeline(Normalizer(), StandardScaler(with_std=False)),
}
ALPHA_N = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
SUBSET = 10_000

# name: (models, seeds, the paper's error, what a tuned kernel SVM gets)
TABLE_1 = {
    "letter": (16, 5, 3.43, 2.5),
    "usps": (80, 5, 5.43, 4.9),
    "mnist": (90, 3, 1.59, 1.4),
}
# name: the paper's errors of these systems
SYSTEMS = ("ML3", "Gaussian", "Linear")
TABLE_2 = {
    "banana": (11.03, 11.06, 45.13),
    "german": (23.65, 23.59, 25.15),
    "heart": (18.00, 16.89, 17.11),
    "ionosphere": (11.88, 10.09, 21.54),
    "liver": (32.17, 33.30, 32.87),
    "pima": (22.50, 23.28, 24.80),
    "ringnorm": (7.59, 1.56, 22.98),
    "sonar": (29.86, 30.57, 33.43),
    "spambase": (11.23, 8.42, 11.57),
    "wdbc": (10.86, 9.87, 14.21),
}


def one_thread(function: Any) -> Any:
    """Run the function with every thread pool pinned to one thread."""

    def pinned(*args: Any, **kwargs: Any) -> Any:
        with threadpool_limits(limits=1):
            return function(*args, **kwargs)

    return pinned


def fold_error(X: Any, y: Any, train: Any, test: Any, prepare: str, alpha_n: float,
               **parameters: Any) -> float:  # fmt: skip
    """Error of one fold."""
    scaler = PREPROCESSING[prepare]().fit(X[train])
    clf = ML3Classifier(alpha=alpha_n / len(train), random_state=0, **parameters)
    clf.fit(scaler.transform(X[train]), y[train])
    return 100 * (1 - clf.score(scaler.transform(X[test]), y[test]))


def seed_error(data: Any, prepare: str, alpha_n: float, seed: int, **parameters: Any) -> float:
    """Error on the test split."""
    X = data.X_train.astype(np.float32)
    scaler = PREPROCESSING[prepare]().fit(X)
    clf = ML3Classifier(alpha=alpha_n / len(X), random_state=seed, **parameters)
    clf.fit(scaler.transform(X), data.y_train)
    return 100 * (1 - clf.score(scaler.transform(data.X_test.astype(np.float32)), data.y_test))


def table_1(name: str, iterations: list[int], jobs: int) -> dict[str, Any]:
    """Choose preprocessing and alpha on the training split; report the test errors."""
    n_models, n_seeds, paper, kernel = TABLE_1[name]
    data = load(name)
    X, y = data.X_train.astype(np.float32), data.y_train
    if len(X) > SUBSET:
        X, _, y, _ = train_test_split(X, y, train_size=SUBSET, stratify=y, random_state=0)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    cases = [(prepare, a) for prepare in PREPROCESSING for a in ALPHA_N]
    run = one_thread(partial(fold_error, n_models=n_models, max_iter=iterations[0]))
    errors = Parallel(jobs)(
        delayed(run)(X, y, train, test, *case) for case in cases for train, test in folds
    )
    cv = dict(zip(cases, np.reshape(errors, (len(cases), -1)).mean(axis=1), strict=True))
    prepare, alpha_n = min(cv, key=cv.__getitem__)
    print(f"{name}: CV chose {prepare}, alpha = {alpha_n}/n ({cv[prepare, alpha_n]:.2f} %)")
    results = {}
    for k in iterations:
        run = one_thread(partial(seed_error, n_models=n_models, max_iter=k))
        test = Parallel(jobs)(delayed(run)(data, prepare, alpha_n, s) for s in range(n_seeds))
        results[k] = (float(np.mean(test)), float(np.std(test, ddof=1)))
        print(
            f"{name} (m={n_models}), {k} iterations: {results[k][0]:.2f} +- {results[k][1]:.2f} %  "
            f"(paper {paper}, stretch {kernel})",
            flush=True,
        )
    return {
        "preprocessing": prepare,
        "alpha*n": alpha_n,
        "cv": {f"{p}, {a}": float(e) for (p, a), e in cv.items()},
        "test": results,
        "paper": paper,
    }


def systems(n_train: int) -> dict[str, tuple[Pipeline, dict[str, list[Any]]]]:
    """Table 2's systems with their grids."""
    c_grid = [float(c) for c in np.logspace(-2, 3, 6)]
    ml3 = make_pipeline(StandardScaler(), ML3Classifier(10, random_state=0))
    alphas = [a / (0.8 * n_train) for a in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)]
    gaussian = make_pipeline(StandardScaler(), SVC())
    linear = make_pipeline(StandardScaler(), LinearSVC(dual="auto", max_iter=20_000))
    return {
        "ML3": (ml3, {"ml3classifier__alpha": alphas}),
        "Gaussian": (
            gaussian,
            {"svc__C": c_grid, "svc__gamma": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]},
        ),
        "Linear": (linear, {"linearsvc__C": [float(c) for c in np.logspace(-4, 1, 6)]}),
    }


def split_errors(name: str, split: int) -> list[float]:
    """Test errors of every system on one random split."""
    data = load(name)
    X, y = data.X_train.astype(np.float64), data.y_train
    size = 400 if name == "banana" else round(2 * len(X) / 3)
    X, X_test, y, y_test = train_test_split(X, y, train_size=size, stratify=y, random_state=split)
    folds = StratifiedKFold(5, shuffle=True, random_state=split)
    errors = []
    for system, (pipeline, grid) in systems(size).items():
        search = GridSearchCV(pipeline, grid, cv=folds, refit=system != "ML3").fit(X, y)
        if system == "ML3":  # alpha * n carries over from the folds to the split
            alpha = search.best_params_["ml3classifier__alpha"] * 0.8
            best = pipeline.set_params(ml3classifier__alpha=alpha).fit(X, y)
        else:
            best = search
        errors.append(100 * (1 - best.score(X_test, y_test)))
    return errors


def table_2(jobs: int) -> dict[str, Any]:
    """Mean error over ten splits, and average ranks."""
    results: dict[str, Any] = {}
    for name, paper in TABLE_2.items():
        run = one_thread(split_errors)
        errors = np.array(Parallel(jobs)(delayed(run)(name, split) for split in range(10)))
        results[name] = {
            "mean": errors.mean(axis=0).tolist(),
            "std": errors.std(axis=0, ddof=1).tolist(),
            "paper": paper,
        }
        shown = "  ".join(
            f"{system} {mean:.2f} +- {std:.2f} ({theirs})"
            for system, mean, std, theirs in zip(
                SYSTEMS,
                errors.mean(axis=0),
                errors.std(axis=0, ddof=1),
                paper,
                strict=True,
            )
        )  # fmt: skip
        print(f"{name:12s} {shown}", flush=True)
    for label, key in (("ours", "mean"), ("paper", "paper")):
        ranks = np.mean([rankdata(row[key]) for row in results.values()], axis=0)
        shown = "  ".join(f"{name} {rank:.2f}" for name, rank in zip(SYSTEMS, ranks, strict=True))
        print(f"average rank, {label}: {shown}")
    return results


def main(arguments: list[str] | None = None) -> None:
    """Run a table and keep its results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["table1", "table2"])
    parser.add_argument("names", nargs="*", choices=[[], *TABLE_1], default=[])
    parser.add_argument("--iterations", type=int, nargs="+", default=[30, 60, 120])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if options.table == "table1":
        names = options.names or list(TABLE_1)
        results = {name: table_1(name, options.iterations, options.jobs) for name in names}
    else:
        results = table_2(options.jobs)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
