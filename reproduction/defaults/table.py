"""Every classifier of loclin with its default settings, against tuned and default rivals.

All sets at hand, at most 10,000 training and as many test rows, drawn with each class's share. Sets
without a test split hold a third out; those of fewer than 2,000 rows five times, and the mean
counts. Features are prepared as ``loclin compare`` does: standardised, sparse ones divided by their
greatest value, none for trees. Nothing is tuned but "SVC-rbf, tuned": 3-fold cross-validation on at
most 3,000 training rows. Prediction time is the least of some calls on 2,000 rows, in processor
seconds of one thread; size is that of the pickled pipeline.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import loclin
from benchmarks.choices import Cache, quiet
from loclin.cli._measure import pickled_bytes, stratified_rows
from loclin.cli._systems import Shape, System
from loclin.datasets import load

MOST_ROWS, TUNING_ROWS, TIMED_ROWS = 10_000, 3_000, 2_000
SMALL, REPEATS = 2_000, 5
TIMED_SECONDS = 1.0
GRID = {"C": [1.0, 10.0, 100.0, 1000.0], "gamma": [0.03, 0.1, 0.3, 1.0, 3.0]}  # gamma / scale
# Minutes of the slowest classifiers.
SETS = {"glass": 0.1, "sonar": 0.1, "heart": 0.1, "liver": 0.1, "ionosphere": 0.1, "vowel": 0.2,
        "segment": 0.1, "wdbc": 0.1, "wbc_original": 0.1, "pima": 0.1, "vehicle": 0.2,
        "german": 0.2, "banana": 0.2, "spambase": 0.3, "ringnorm": 0.3, "satimage": 0.5,
        "optdigits": 0.5, "pendigits": 0.5, "dna": 0.5, "letter": 1.5, "usps": 2, "isolet": 6,
        "ijcnn1": 1, "covtype_16pct": 1.5, "flowers5_inceptionv3": 5, "mnist": 5,
        "newsgroups20": 8}  # fmt: skip
TUNED = "SVC-rbf, tuned"


def svc(seed: int, **parameters: Any) -> Any:
    return SVC(cache_size=500, random_state=seed, **parameters)


def nystroem(seed: int) -> Any:
    return make_pipeline(Nystroem(n_components=1000, random_state=seed), linear(seed))


def linear(seed: int) -> Any:
    return LinearSVC(random_state=seed)


def boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed)


def forest(seed: int) -> Any:
    return RandomForestClassifier(random_state=seed)


def neighbors(seed: int) -> Any:
    return KNeighborsClassifier()


def mlp(seed: int) -> Any:
    return MLPClassifier(random_state=seed)


def own(name: str) -> Callable[..., Any]:
    """Return what builds a classifier of loclin."""
    return lambda seed: getattr(loclin, name)(random_state=seed)


OWN = ("ML3Classifier", "LLSVMClassifier", "SAPLClassifier", "L3MClassifier", "USSVMClassifier")
SYSTEMS = {name: System(name, own(name), own=True) for name in OWN} | {
    TUNED: System(TUNED, svc),
    "LinearSVC": System("LinearSVC", linear),
    "Nystroem(1000) + LinearSVC": System("Nystroem", nystroem),
    "HistGradientBoosting": System("HistGradientBoosting", boosting, tree=True),
    "random forest": System("random forest", forest),
    "k-NN": System("k-NN", neighbors),
    "MLP": System("MLP", mlp),
}


def parts_of(name: str, repeat: int) -> tuple[Any, Any, Any, Any]:
    """Training and test rows of a split."""
    data: Any = load(name)
    X, y = data.X_train, np.unique(data.y_train, return_inverse=True)[1]
    if data.y_test is None:
        test = stratified_rows(y, round(len(y) / 3), repeat)
        train = np.setdiff1d(np.arange(len(y)), test)
        X_test, y_test = X[test], y[test]
        X, y = X[train], y[train]
    else:
        X_test, y_test = data.X_test, np.searchsorted(np.unique(data.y_train), data.y_test)
    train = np.random.default_rng(repeat).permutation(stratified_rows(y, MOST_ROWS, repeat))
    test = stratified_rows(y_test, MOST_ROWS, repeat)
    return as_floats(X[train]), y[train], as_floats(X_test[test]), y_test[test]


def as_floats(X: Any) -> Any:
    """Return the rows in float64, which all classifiers take."""
    return X.astype(np.float64)


def tuned(X: Any, y: Any) -> dict[str, float]:
    """Choose the SVC's parameters."""
    rows = stratified_rows(y, TUNING_ROWS, 0, least=3)
    scale = make_pipeline(*SYSTEMS[TUNED].make({}, shape_of(X), 0)[:-1]).fit(X[rows])
    A = scale.transform(X[rows])
    unit = 1 / (A.shape[1] * variance(A))
    grid = GRID | {"gamma": [g * unit for g in GRID["gamma"]]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(svc(0), grid, cv=folds, refit=False).fit(A, y[rows])
    return {k: float(v) for k, v in search.best_params_.items()}


def variance(X: Any) -> float:
    """Variance over all values of dense or sparse rows."""
    return float(X.var() if isinstance(X, np.ndarray) else X.power(2).mean() - X.mean() ** 2)


def shape_of(X: Any) -> Shape:
    return Shape(*X.shape, sparse=not isinstance(X, np.ndarray))


def measured(data: str, name: str, repeat: int) -> dict[str, Any]:
    """Error, seconds, size of a classifier on a split."""
    X, y, X_test, y_test = parts_of(data, repeat)
    system, shape = SYSTEMS[name], shape_of(X)
    reason = system.refuses(shape)
    if reason:
        return {"left out": reason}
    start = time.process_time()
    chosen = tuned(X, y) if name == TUNED else {}
    tuning = time.process_time() - start
    model = system.make({}, shape, repeat)
    if chosen:
        model[-1].set_params(**chosen)
    model.fit(X, y)
    seconds = time.process_time() - start - tuning
    error = 100 * float(np.mean(model.predict(X_test) != y_test))
    rows, times = X_test[np.arange(TIMED_ROWS) % X_test.shape[0]], []
    while len(times) < 3 or (sum(times) < TIMED_SECONDS and len(times) < 100):
        start = time.process_time()
        model.predict(rows)
        times.append(time.process_time() - start)
    return {"error %": error, "train s": seconds, "tuning s": tuning, "chosen": chosen,
            "us a row": 1e6 * min(times) / rows.shape[0],
            "bytes": pickled_bytes(model)}  # fmt: skip


def cell(data: str, name: str, cache: Cache) -> dict[str, Any]:
    """Measure a classifier on every split of a set."""
    whole: Any = load(data)
    small = whole.y_test is None and whole.X_train.shape[0] < SMALL
    settings = {"most": MOST_ROWS, "timed": TIMED_ROWS,
                "tuning": [TUNING_ROWS, GRID] if name == TUNED else None}  # fmt: skip
    found = [
        cache(f"{data} | {name} | {repeat}", settings,
              lambda repeat=repeat: quiet(measured)(data, name, repeat))
        for repeat in range(REPEATS if small else 1)
    ]  # fmt: skip
    if "left out" in found[0]:
        return found[0]
    return {what: [run[what] for run in found] for what in ("error %", "train s", "us a row",
                                                            "bytes")}  # fmt: skip


ENTRIES = [
    (data, name, partial(cell, data, name), minutes if name in (TUNED, "MLP") else minutes / 3, 0,
     system.own)
    for data, minutes in SETS.items() for name, system in SYSTEMS.items()
]  # fmt: skip
QUICK = {"REPEATS": 1, "TIMED_SECONDS": 0.01, "GRID": {"C": [10.0], "gamma": [1.0]}}
