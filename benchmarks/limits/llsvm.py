"""LL-SVM against explicit features, against memory, on sparse rows, and as rows grow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import LinearSVC

from benchmarks.limits.core import Row, in_fresh_process, measured, products_by_numpy
from benchmarks.stream import GaussianClusters
from loclin import LLSVMClassifier, SAPLClassifier
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding
from loclin.datasets import load

USPS_ALPHA = 1e-4
# LinearSVC is run at falling tolerances until its objective is this near ours.
SAME = 1e-3
LEARNED: dict[str, Any] = {"calibrate": False, "random_state": 0, "standardize": False}
PLAIN = LEARNED | {"metric": None}


def usps() -> tuple[Any, Any]:
    """USPS's training split as it comes (features in [-1, 1])."""
    data: Any = load("usps")
    return data.X_train.astype(np.float64), data.y_train


def usps_implicit() -> dict[str, float]:
    """Dual coordinate descent on implicit features."""
    X, y = usps()
    coding = OrthogonalCoding(20)
    model = LLSVMClassifier(coding, solver="dual_cd", alpha=USPS_ALPHA, tol=SAME, **PLAIN)
    model.fit(X[::10], y[::10])  # compiles
    _, found = measured(lambda: model.fit(X, y))
    return found | {"objective": model.objective_[-1]}


def usps_explicit(tol: float) -> dict[str, float]:
    """LinearSVC on the features written out."""
    X, y = usps()
    codes = OrthogonalCoding(20).fit_transform(X).toarray()
    LinearSVC(dual=True).fit(X[::10], y[::10])

    def fit() -> tuple[Any, Any]:
        ones = np.hstack([X, np.ones((len(X), 1))])
        features = (codes[:, :, None] * ones[:, None, :]).reshape(len(X), -1)
        model = LinearSVC(C=1 / (USPS_ALPHA * len(X)), loss="hinge", fit_intercept=False, dual=True,
                          tol=tol, max_iter=5000, random_state=0)  # fmt: skip
        return model.fit(features, y), features

    (model, features), found = measured(fit)
    signs = np.where(y[:, None] == model.classes_, 1, -1)
    losses = np.maximum(0, 1 - signs * model.decision_function(features)).mean(axis=0).sum()
    objective = USPS_ALPHA / 2 * float((model.coef_**2).sum()) + float(losses)
    return found | {"objective": objective}


def dual() -> Iterator[Row]:
    """USPS, 20 planes, ten problems: implicit against explicit features."""
    ours = in_fresh_process(usps_implicit)
    yield "implicit", ours
    for tol in (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4):
        theirs = in_fresh_process(usps_explicit, tol)
        yield f"LinearSVC, tol={tol:g}", theirs
        if theirs["objective"] <= (1 + SAME) * ours["objective"]:
            break
    ratios = {f"x {what}": theirs[what] / ours[what] for what in ("s", "MB")}
    yield "LinearSVC over implicit", ratios


def mnist_implicit(dtype: str) -> dict[str, float]:
    """MNIST, 50 planes, dual coordinate descent."""
    data: Any = load("mnist")
    X, y = (data.X_train / 255.0).astype(dtype), data.y_train
    model = LLSVMClassifier(OrthogonalCoding(50), solver="dual_cd", **PLAIN)
    model.fit(X[::100], y[::100])
    _, found = measured(lambda: model.fit(X, y))
    error = 100 * (1 - model.score((data.X_test / 255.0).astype(dtype), data.y_test))
    return found | {"objective": model.objective_[-1], "largest gap": float(model.dual_gap_.max()),
                    "passes": model.n_iter_, "test error %": error,
                    "data MB": X.nbytes / 1e6}  # fmt: skip


def mnist() -> Iterator[Row]:
    """MNIST in both precisions."""
    for dtype in ("float32", "float64"):
        yield dtype, in_fresh_process(mnist_implicit, dtype)


def epoch(X: Any, y: Any, model: Any) -> float:
    """Processor seconds of an epoch, from two fits of different length."""
    seconds = {}
    for passes in (2, 12):
        model.set_params(max_iter=passes, tol=0.0, average=2, n_iter_no_change=passes)
        start = time.process_time()
        model.fit(X, y)
        seconds[passes] = time.process_time() - start
    return (seconds[12] - seconds[2]) / 10


def ll_svm(coding: Any) -> LLSVMClassifier:
    """LL-SVM on the codes of a fitted coding."""
    return LLSVMClassifier(FrozenEstimator(coding), **LEARNED)


def anchors() -> Iterator[Row]:
    """Median over rounds of SAPL's epoch over LL-SVM's, 8 of 100 anchors, 20,000 rows at most."""
    for name in ("banana", "ijcnn1", "usps", "mnist", "letter"):
        data: Any = load(name)
        X, y = data.X_train.astype(np.float32)[:20_000], data.y_train[:20_000]
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-3)
        coding = SoftAssignmentCoding(100, 8, random_state=0).fit(X)
        start = time.process_time()
        coding.transform(X)
        coded = time.process_time() - start
        models = ll_svm(coding), SAPLClassifier(100, 8, anchors=coding.anchors_, **PLAIN)
        for model in models:
            epoch(X[:500], y[:500], model)
        rounds = [[epoch(X, y, model) for model in models] for _ in range(3)]
        rest, moving = np.median(rounds, axis=0).tolist()
        ratio = float(np.median([b / a for a, b in rounds]))
        yield (
            f"{name}, {len(X):,} rows",
            {"LL-SVM s": rest, "SAPL s": moving, "x": ratio, "coding the rows once s": coded},
        )


def products(X: Any, n_columns: int, batch: int = 64) -> float:
    """Processor seconds of multiplying all rows, in batches, with so many models."""
    W = np.ones((n_columns, X.shape[1]), X.dtype)
    room = np.empty((batch, n_columns), X.dtype)
    start = time.process_time()
    products_by_numpy(X, W, batch, room, 1)
    return time.process_time() - start


def epochs() -> Iterator[Row]:
    """Median over rounds of an epoch's time over that of its products."""
    for name, planes in {"usps": 20, "mnist": 50, "letter": 15}.items():
        data: Any = load(name)
        X = data.X_train.astype(np.float32)
        X, y = X / np.abs(X).max(), data.y_train
        c = len(np.unique(y))
        codings = {  # models used for a row, of how many; anchors
            f"planes ({planes})": (OrthogonalCoding(planes), planes, planes, 0),
            f"planes of each class ({planes})": (OrthogonalCoding(planes, True), planes, planes, 0),
            "8 of 100 anchors": (SoftAssignmentCoding(100, 8, random_state=0), 8, 100, 100),
        }
        for kind, (coding, used, m, n_anchors) in codings.items():
            epoch(X[:500], y[:500], ll_svm(type(coding)(min(used, 8)).fit(X[:500], y[:500])))
            rounds, model = [], ll_svm(coding.fit(X, y))
            for _ in range(3):
                seconds = epoch(X, y, model)
                near = products(X, n_anchors) if n_anchors else 0.0
                # k of m models a row: k/m of the products with all of them
                rounds.append((seconds, products(X, c * m) * (used / m), near))
            taken, scores, near = np.median(rounds, axis=0).tolist()
            ratio = float(np.median([row[0] / row[1] for row in rounds]))
            figures = {"epoch s": taken, "score products s": scores, "x": ratio}
            yield f"{name}, {kind}", figures | ({"distances s": near} if n_anchors else {})


def newsgroups() -> dict[str, float]:
    """Text of 20 newsgroups as tf-idf rows of unit length: LL-SVM with 20 anchors.

    A quarter of the rows, stratified, is the test.
    """
    data: Any = load("newsgroups20")
    counts = sparse.csr_matrix(data.X_train, dtype=np.float64)
    X, X_test, y, y_test = train_test_split(
        counts, data.y_train, test_size=0.25, stratify=data.y_train, random_state=0
    )
    weigh = TfidfTransformer(sublinear_tf=True)
    X, X_test, n = weigh.fit_transform(X), weigh.transform(X_test), X.shape[0]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    linear = GridSearchCV(LinearSVC(), {"C": [0.1, 0.3, 1.0, 3.0, 10.0]}, cv=folds).fit(X, y)
    # Squared hinge, LinearSVC's default. The grid has LinearSVC's models in it: with 20 equal codes
    # of 1/20 (a small bandwidth), alpha * n = 1 / (20 C).
    coding = SoftAssignmentCoding(20, random_state=0)
    model = LLSVMClassifier(coding, solver="dual_cd", loss="squared_hinge", tol=0.01, **PLAIN)
    grid = {
        "alpha": [1.5 / (20 * C * n) for C in (0.3, 1.0, 3.0)],  # a fold has 2/3 of the rows
        "coding__bandwidth": [0.003, 0.03, 0.3],
        "coding__n_neighbors": [8, 20],
        "coding__anchors": ["kmeans", "kmeans_per_class"],
    }
    search = GridSearchCV(model, grid, cv=folds, refit=False).fit(X, y)
    chosen = model.set_params(**search.best_params_)
    chosen.set_params(alpha=chosen.alpha / 1.5, tol=1e-4)  # LinearSVC's own
    _, found = measured(partial(chosen.fit, X, y))
    errors = [
        100 * (1 - chosen.set_params(coding__random_state=seed).fit(X, y).score(X_test, y_test))
        for seed in range(5)
    ]
    return found | {
        "weights MB": 8e-6 * chosen.local_coef_.size,
        "data MB": (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6,
        "dense MB": 8e-6 * X.shape[0] * X.shape[1],
        "alpha*n": chosen.alpha * n,
        "bandwidth": chosen.coding_.bandwidth_,
        "neighbours": chosen.coding_.n_neighbors,
        "anchors per class": float(chosen.coding_.anchors == "kmeans_per_class"),
        "CV error": 100 * (1 - search.best_score_),
        "test error, mean of 5 seeds": float(np.mean(errors)),
        "deviation": float(np.std(errors, ddof=1)),
        "LinearSVC C": linear.best_params_["C"],
        "LinearSVC CV error": 100 * (1 - linear.best_score_),
        "LinearSVC test error": 100 * (1 - linear.score(X_test, y_test)),
    }


def text() -> Iterator[Row]:
    """newsgroups20 in a fresh process."""
    yield "newsgroups20", in_fresh_process(newsgroups)


def scale() -> Iterator[Row]:
    """Slope of log time against log n, 50 features and 10 classes."""
    clusters = GaussianClusters(50, 10)
    sizes = (10_000, 30_000, 100_000, 300_000)
    for solver in ("sgd", "dual_cd"):
        seconds = []
        for n in sizes:
            X, y = clusters.rows(n)
            model = LLSVMClassifier(SoftAssignmentCoding(100), solver=solver, **PLAIN)
            if n == sizes[0]:
                model.fit(X[:1000], y[:1000])
            _, found = measured(partial(model.fit, X, y))
            seconds.append(found["s"])
            yield f"{solver}, {n:,} rows", {"s": found["s"], "passes": model.n_iter_}
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        yield solver, {"slope": float(slope)}


PARTS = {
    "dual": dual, "mnist": mnist, "epochs": epochs, "anchors": anchors, "sparse": text,
    "scale": scale,
}  # fmt: skip
