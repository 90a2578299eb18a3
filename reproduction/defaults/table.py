"""Every classifier of loclin with its default settings, against tuned and default rivals.

All sets at hand, at most 10,000 training and as many test rows, drawn with each class's share. Sets
without a test split hold a third out; those of fewer than 2,000 rows five times, and the mean
counts. Features are standardised, sparse ones divided by their greatest value, those of boosted
trees and of pytabkit left as they are. Nothing is tuned but "SVC-rbf, tuned": 3-fold cross-
validation on at most 3,000 training rows. It has no probabilities of its own: its log loss and AUC
(one class against the rest, mean of the classes) are those of sigmoids found by five folds.
Prediction time is the least of some calls on 2,000 rows, in processor seconds of one thread; size
is that of the pickled pipeline. LightGBM, CatBoost and EBM come with ``pip install
"./reproduction[rivals]"``; RealMLP, TabM and xRFM with ``"./reproduction[networks]"``, which needs
PyTorch.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import loclin
from reproduction.data import load
from reproduction.entry import Entry
from reproduction.quick import sized
from reproduction.store import Cache

MOST_ROWS, TUNING_ROWS, TIMED_ROWS = 10_000, 3_000, 2_000
SMALL, REPEATS = 2_000, sized(5, quick=1)
TIMED_SECONDS = sized(1.0, quick=0.01)
GRID = sized(  # gamma in units of 1 / (features * variance)
    {"C": [1.0, 10.0, 100.0, 1000.0], "gamma": [0.03, 0.1, 0.3, 1.0, 3.0]},
    quick={"C": [10.0], "gamma": [1.0]},
)
# Minutes of the slowest classifiers.
SETS = {"glass": 0.1, "sonar": 0.1, "heart": 0.1, "liver": 0.1, "ionosphere": 0.1, "vowel": 0.2,
        "segment": 0.1, "wdbc": 0.1, "wbc_original": 0.1, "pima": 0.1, "vehicle": 0.2,
        "german": 0.2, "banana": 0.2, "spambase": 0.3, "ringnorm": 0.3, "satimage": 0.5,
        "optdigits": 0.5, "pendigits": 0.5, "dna": 0.5, "letter": 1.5, "usps": 2, "isolet": 6,
        "ijcnn1": 1, "covtype_16pct": 1.5, "flowers5_inceptionv3": 5, "mnist": 5,
        "newsgroups20": 8}  # fmt: skip
TUNED = "SVC-rbf, tuned"


OWN = ("LocallyLinearEnsemble", "ML3Classifier", "LLSVMClassifier", "SAPLClassifier",
       "L3MClassifier", "USSVMClassifier", "CSVMClassifier", "LDKLClassifier", "LMKLClassifier",
       "SVMKNNClassifier")  # fmt: skip
BOOSTING, EBM = "HistGradientBoosting", "EBM"
TREES = (BOOSTING, "LightGBM", "LightGBM, linear trees", "CatBoost", EBM)
# Of pytabkit: networks and kernel machines, which prepare features themselves.
PYTABKIT = {"RealMLP": "RealMLP_TD_Classifier", "TabM": "TabM_D_Classifier",
            "xRFM": "XRFM_D_Classifier"}  # fmt: skip
EBM_FEATURES = 200  # one fit to USPS, of 256, had not ended after half an hour


def own(name: str, seed: int) -> Any:
    """Return a classifier of loclin; the lazy one draws nothing, and takes no seed."""
    classifier = getattr(loclin, name)()
    parameters = classifier.get_params(deep=False)
    if "random_state" in parameters:
        classifier.set_params(random_state=seed)
    return classifier


def lightgbm(seed: int, **parameters: Any) -> Any:
    """LightGBM on one thread."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1, **parameters)


def catboost(seed: int) -> Any:
    """CatBoost on one thread, without the files that it likes to write."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        random_state=seed, thread_count=1, verbose=False, allow_writing_files=False
    )


def ebm(seed: int) -> Any:
    """Explainable boosting machine on one thread."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=seed, n_jobs=1)


def of_pytabkit(name: str, seed: int) -> Any:
    """Return a classifier of pytabkit on one thread, with the parameters that it ships."""
    import pytabkit

    return getattr(pytabkit, PYTABKIT[name])(device="cpu", random_state=seed, n_threads=1)


# What builds each classifier with a seed.
SYSTEMS: dict[str, Callable[[int], Any]] = {
    **{name: partial(own, name) for name in OWN},
    TUNED: lambda seed: SVC(cache_size=500, random_state=seed),
    "LinearSVC": lambda seed: LinearSVC(random_state=seed),
    "Nystroem(1000) + LinearSVC": lambda seed: make_pipeline(
        Nystroem(n_components=1000, random_state=seed), LinearSVC(random_state=seed)
    ),
    BOOSTING: lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "LightGBM": lightgbm,
    "LightGBM, linear trees": partial(lightgbm, linear_tree=True),
    "CatBoost": catboost,
    EBM: ebm,
    **{name: partial(of_pytabkit, name) for name in PYTABKIT},
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "k-NN": lambda seed: KNeighborsClassifier(),
    "MLP": lambda seed: MLPClassifier(random_state=seed),
}


def pipeline(name: str, X: Any, seed: int) -> Any:
    """Return the unfitted classifier with the preparation that its features need."""
    classifier = SYSTEMS[name](seed)
    if name in (*TREES, *PYTABKIT):
        return classifier
    return make_pipeline(MaxAbsScaler() if sparse.issparse(X) else StandardScaler(), classifier)


def stratified_rows(y: Any, size: int, seed: int, least: int = 2) -> Any:
    """Return sorted indices of about so many rows, each class with its share, or so many at least.

    All rows where there are no more.
    """
    if size >= len(y):
        return np.arange(len(y))
    rng, chosen = np.random.default_rng(seed), []
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        count = min(len(rows), max(least, round(size * len(rows) / len(y))))
        chosen.append(rng.choice(rows, count, replace=False))
    return np.sort(np.concatenate(chosen))


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
    return X[train].astype(float), y[train], X_test[test].astype(float), y_test[test]


def tuned(X: Any, y: Any) -> dict[str, float]:
    """Choose the SVC's parameters."""
    rows = stratified_rows(y, TUNING_ROWS, 0, least=3)
    scaler, svc = pipeline(TUNED, X, 0)
    A = scaler.fit_transform(X[rows])
    unit = 1 / (A.shape[1] * variance(A))
    grid = GRID | {"gamma": [g * unit for g in GRID["gamma"]]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(svc, grid, cv=folds, refit=False).fit(A, y[rows])
    return {k: float(v) for k, v in search.best_params_.items()}


def variance(X: Any) -> float:
    """Variance over all values of dense or sparse rows."""
    return float(X.power(2).mean() - X.mean() ** 2 if sparse.issparse(X) else X.var())


@lru_cache
def compile_loops(name: str, layout: str) -> None:
    """Compile a classifier of loclin, or read what is compiled, so that no fit is timed with it."""
    if name in OWN:
        loclin.warmup(own(name, 0), layouts=(layout,))


def measured(data: str, name: str, repeat: int) -> dict[str, Any]:
    """Error, seconds, size of a classifier on a split."""
    X, y, X_test, y_test = parts_of(data, repeat)
    if name in (BOOSTING, EBM, *PYTABKIT) and sparse.issparse(X):
        return {"left out": "needs dense features"}
    if name == EBM and X.shape[1] > EBM_FEATURES:
        return {"left out": "takes more than half an hour"}
    compile_loops(name, "sparse" if sparse.issparse(X) else "dense")
    model, start = pipeline(name, X, repeat), time.process_time()
    chosen = tuned(X, y) if name == TUNED else {}
    tuning = time.process_time() - start
    if chosen:
        model[-1].set_params(**chosen)
    model.fit(X, y)
    seconds = time.process_time() - start - tuning
    error = 100 * float(np.mean(np.ravel(model.predict(X_test)) != y_test))  # CatBoost's: (n, 1)
    rows, times = X_test[np.arange(TIMED_ROWS) % X_test.shape[0]], []
    while len(times) < 3 or (sum(times) < TIMED_SECONDS and len(times) < 100):
        start = time.process_time()
        model.predict(rows)
        times.append(time.process_time() - start)
    return {"error %": error, "train s": seconds, "tuning s": tuning, "chosen": chosen,
            "us a row": 1e6 * min(times) / rows.shape[0],
            "bytes": len(pickle.dumps(model, protocol=5)),
            **of_probabilities(model, name, X, y, X_test, y_test)}  # fmt: skip


def of_probabilities(
    model: Any, name: str, X: Any, y: Any, X_test: Any, y_test: Any
) -> dict[str, float]:
    """Log loss and AUC; nothing of a classifier without probabilities, but for the tuned SVC."""
    if name == TUNED:
        folds = min(5, int(np.bincount(y).min()))
        if folds < 2:
            return {}
        model = CalibratedClassifierCV(clone(model), cv=folds, ensemble=False).fit(X, y)
    elif not hasattr(model, "predict_proba"):
        return {}
    P = model.predict_proba(X_test)
    areas = [
        roc_auc_score(y_test == k, P[:, k])
        for k in range(P.shape[1])
        if 0 < np.count_nonzero(y_test == k) < len(y_test)
    ]
    loss = log_loss(y_test, P, labels=np.arange(P.shape[1]))
    return {"log loss": float(loss), "AUC": float(np.mean(areas))}


def cell(data: str, name: str, cache: Cache) -> dict[str, Any]:
    """Measure a classifier on every split of a set."""
    whole: Any = load(data)
    small = whole.y_test is None and whole.X_train.shape[0] < SMALL
    settings = {"most": MOST_ROWS, "timed": TIMED_ROWS, "probabilities": True,
                "tuning": [TUNING_ROWS, GRID] if name == TUNED else None}  # fmt: skip
    found = [
        cache(f"{data} | {name} | {repeat}", settings, partial(measured, data, name, repeat))
        for repeat in range(REPEATS if small else 1)
    ]  # fmt: skip
    if "left out" in found[0]:
        return found[0]
    figures = [what for what in found[0] if what not in ("tuning s", "chosen")]
    return {what: [run[what] for run in found] for what in figures}


def entries() -> Iterator[Entry]:
    """Yield the entries."""
    for data, slowest in SETS.items():
        for name in SYSTEMS:
            slow = {
                TUNED: 1.0,
                "MLP": 1.0,
                "LocallyLinearEnsemble": 1.0,
                "CatBoost": 5.0,
                EBM: 30.0,
                **dict.fromkeys(PYTABKIT, 30.0),
            }
            minutes = slowest * slow.get(name, 1 / 3)
            run = partial(cell, data, name)
            yield Entry("defaults", "table", data, name, run, minutes, 0, name in OWN)
