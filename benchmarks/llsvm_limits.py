"""LL-SVM against explicit features, against memory, on sparse rows, and as rows grow.

``LOCLIN_DATA=FOLDER python -m benchmarks.llsvm_limits dual`` (also ``mnist``, ``epochs``,
``anchors``, ``sparse``, ``scale``)

- dual: USPS with 20 anchor planes; dual coordinate descent on implicit features against
  scikit-learn's LinearSVC on the same features written out, at the same objective.
- mnist: memory and time of MNIST with 50 planes.
- epochs: an epoch of SGD against its bare products, for codes by planes and by anchors.
- anchors: an epoch of SAPL, whose anchors learn, against one of LL-SVM, whose codes are given.
- sparse: newsgroups20 with 20 anchors, never made dense, beside LinearSVC.
- scale: seconds of fit as rows grow from 10,000 to 300,000.

Everything on one thread, in processor seconds; memory is the growth of a fresh process's peak.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import LinearSVC

from benchmarks._timing import memory_status, pinned_threads, reset_peak_memory
from benchmarks.stream import GaussianClusters
from loclin import LLSVMClassifier, SAPLClassifier
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding
from loclin.datasets import load

USPS_ALPHA = 1e-4
# LinearSVC is run at falling tolerances until its objective is this near ours.
SAME = 1e-3


def in_fresh_process(function: Callable[..., Any], *args: Any) -> Any:
    """Run the function in a process of its own."""
    with pinned_threads(1), ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        return fresh.submit(function, *args).result()


def measured(task: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result, processor seconds, and the growth of memory (MB) while it ran."""
    reset_peak_memory()
    resident = memory_status("VmRSS")
    start = time.process_time()
    result = task()
    return result, time.process_time() - start, (memory_status("VmHWM") - resident) / 1e6


def usps() -> tuple[Any, Any]:
    """USPS's training split as it comes (features in [-1, 1])."""
    data: Any = load("usps")
    return data.X_train.astype(np.float64), data.y_train


def usps_implicit() -> dict[str, float]:
    """Dual coordinate descent on implicit features."""
    X, y = usps()
    model = LLSVMClassifier(
        OrthogonalCoding(20),
        solver="dual_cd",
        alpha=USPS_ALPHA,
        tol=SAME,
        metric=None,
        calibrate=False,
        random_state=0,
        standardize=False,
    )
    model.fit(X[::10], y[::10])  # compiles
    _, seconds, memory = measured(lambda: model.fit(X, y))
    return {"seconds": seconds, "MB": memory, "objective": model.objective_[-1]}


def usps_explicit(tol: float) -> dict[str, float]:
    """LinearSVC on the features written out."""
    X, y = usps()
    codes = OrthogonalCoding(20).fit_transform(X).toarray()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of the small fit that warms up
    LinearSVC(dual=True).fit(X[::10], y[::10])

    def fit() -> tuple[Any, Any]:
        ones = np.hstack([X, np.ones((len(X), 1))])
        features = (codes[:, :, None] * ones[:, None, :]).reshape(len(X), -1)
        model = LinearSVC(C=1 / (USPS_ALPHA * len(X)), loss="hinge", fit_intercept=False, dual=True,
                          tol=tol, max_iter=5000, random_state=0)  # fmt: skip
        return model.fit(features, y), features

    (model, features), seconds, memory = measured(fit)
    signs = np.where(y[:, None] == model.classes_, 1, -1)
    losses = np.maximum(0, 1 - signs * model.decision_function(features)).mean(axis=0).sum()
    objective = USPS_ALPHA / 2 * float((model.coef_**2).sum()) + float(losses)
    return {"seconds": seconds, "MB": memory, "objective": objective}


def dual() -> dict[str, Any]:
    """USPS, 20 planes, ten problems: implicit against explicit features."""
    ours = in_fresh_process(usps_implicit)
    print("implicit", _shown(ours), flush=True)
    for tol in (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4):
        theirs = in_fresh_process(usps_explicit, tol)
        print(f"LinearSVC, tol={tol:g}", _shown(theirs), flush=True)
        if theirs["objective"] <= (1 + SAME) * ours["objective"]:
            break
    print(
        f"LinearSVC takes {theirs['seconds'] / ours['seconds']:.1f} x the time and "
        f"{theirs['MB'] / ours['MB']:.1f} x the memory above the data"
    )
    return {"implicit": ours, "explicit": theirs}


def mnist_implicit(dtype: str) -> dict[str, float]:
    """MNIST, 50 planes, dual coordinate descent."""
    data: Any = load("mnist")
    X, y = (data.X_train / 255.0).astype(dtype), data.y_train
    model = LLSVMClassifier(OrthogonalCoding(50), solver="dual_cd", metric=None,
                           calibrate=False, random_state=0, standardize=False)  # fmt: skip
    model.fit(X[::100], y[::100])
    _, seconds, memory = measured(lambda: model.fit(X, y))
    error = 100 * (1 - model.score((data.X_test / 255.0).astype(dtype), data.y_test))
    return {"seconds": seconds, "MB": memory, "objective": model.objective_[-1],
            "largest gap": float(model.dual_gap_.max()), "passes": model.n_iter_,
            "test error": error, "data MB": X.nbytes / 1e6}  # fmt: skip


def mnist() -> dict[str, Any]:
    """MNIST in both precisions."""
    results = {}
    for dtype in ("float32", "float64"):
        results[dtype] = in_fresh_process(mnist_implicit, dtype)
        print(dtype, _shown(results[dtype]), flush=True)
    return results


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
    return LLSVMClassifier(
        FrozenEstimator(coding), calibrate=False, random_state=0, standardize=False
    )


def anchors() -> dict[str, Any]:
    """Median over rounds of SAPL's epoch over LL-SVM's, 8 of 100 anchors, 20,000 rows at most."""
    results: dict[str, Any] = {}
    for name in ("banana", "ijcnn1", "usps", "mnist", "letter"):
        data: Any = load(name)
        X, y = data.X_train.astype(np.float32)[:20_000], data.y_train[:20_000]
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-3)
        coding = SoftAssignmentCoding(100, 8, random_state=0).fit(X)
        start = time.process_time()
        coding.transform(X)
        coded = time.process_time() - start
        models = (
            ll_svm(coding),
            SAPLClassifier(
                100,
                8,
                anchors=coding.anchors_,
                metric=None,
                calibrate=False,
                random_state=0,
                standardize=False,
            ),
        )
        for model in models:
            epoch(X[:500], y[:500], model)
        rounds = [[epoch(X, y, model) for model in models] for _ in range(3)]
        rest, moving = np.median(rounds, axis=0)
        ratio = float(np.median([b / a for a, b in rounds]))
        results[name] = [rest, moving, coded, ratio]
        print(
            f"{name}, {len(X):,} rows: LL-SVM {rest:.4f} s, SAPL {moving:.4f} s, {ratio:.2f} x; "
            f"coding the rows once {coded:.4f} s",
            flush=True,
        )
    return results


def products(X: Any, n_columns: int, batch: int = 64) -> float:
    """Processor seconds of multiplying all rows, in batches, with so many models."""
    W = np.ones((n_columns, X.shape[1]), X.dtype)
    room = np.empty((batch, n_columns), X.dtype)
    start = time.process_time()
    for first in range(0, len(X), batch):
        rows = X[first : first + batch]
        np.matmul(rows, W.T, out=room[: len(rows)])
    return time.process_time() - start


def epochs() -> dict[str, Any]:
    """Median over rounds of an epoch's time over that of its products."""
    results: dict[str, Any] = {}
    sizes = {"usps": 20, "mnist": 50, "letter": 15}
    for name, planes in sizes.items():
        data: Any = load(name)
        X = data.X_train.astype(np.float32)
        X, y = X / np.abs(X).max(), data.y_train
        c = len(np.unique(y))
        codings = {
            f"planes ({planes})": (OrthogonalCoding(planes), planes, 0),
            f"planes of each class ({planes})": (OrthogonalCoding(planes, True), planes, 0),
            "8 of 100 anchors": (SoftAssignmentCoding(100, 8, random_state=0), 8, 100),
        }
        for kind, (coding, used, anchors) in codings.items():
            epoch(X[:500], y[:500], ll_svm(type(coding)(min(used, 8)).fit(X[:500], y[:500])))
            rounds, model = [], ll_svm(coding.fit(X, y))
            for _ in range(3):
                seconds = epoch(X, y, model)
                near = products(X, anchors) if anchors else 0.0
                # k of m models a row: k/m of the products with all of them
                scores = products(X, c * (anchors or used)) * (used / (anchors or used))
                rounds.append((seconds, scores, near))
            best = np.median(rounds, axis=0)
            ratios = [row[0] / row[1] for row in rounds]
            results[f"{name}, {kind}"] = [*best.tolist(), float(np.median(ratios))]
            print(
                f"{name}, {kind}: epoch {best[0]:.4f} s, score products {best[1]:.4f} s, "
                f"{np.median(ratios):.2f} x" + (f"; distances {best[2]:.4f} s" if anchors else ""),
                flush=True,
            )
    return results


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
    model = LLSVMClassifier(SoftAssignmentCoding(20, random_state=0), solver="dual_cd",
                            loss="squared_hinge", tol=0.01, metric=None, calibrate=False,
                            random_state=0, standardize=False)  # fmt: skip
    grid = {
        "alpha": [1.5 / (20 * C * n) for C in (0.3, 1.0, 3.0)],  # a fold has 2/3 of the rows
        "coding__bandwidth": [0.003, 0.03, 0.3],
        "coding__n_neighbors": [8, 20],
        "coding__anchors": ["kmeans", "kmeans_per_class"],
    }
    search = GridSearchCV(model, grid, cv=folds, refit=False).fit(X, y)
    chosen = model.set_params(**search.best_params_)
    chosen.set_params(alpha=chosen.alpha / 1.5, tol=1e-4)  # LinearSVC's own
    _, seconds, memory = measured(partial(chosen.fit, X, y))
    errors = [
        100 * (1 - chosen.set_params(coding__random_state=seed).fit(X, y).score(X_test, y_test))
        for seed in range(5)
    ]
    return {
        "seconds": seconds,
        "MB": memory,
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


def text() -> dict[str, Any]:
    """newsgroups20 in a fresh process."""
    found = in_fresh_process(newsgroups)
    print(_shown(found))
    return found


def scale() -> dict[str, Any]:
    """Slope of log time against log n, 50 features and 10 classes."""
    results: dict[str, Any] = {}
    clusters = GaussianClusters(50, 10)
    sizes = (10_000, 30_000, 100_000, 300_000)
    for solver in ("sgd", "dual_cd"):
        seconds = []
        for n in sizes:
            X, y = clusters.rows(n)
            model = LLSVMClassifier(
                SoftAssignmentCoding(100),
                solver=solver,
                metric=None,
                calibrate=False,
                random_state=0,
                standardize=False,
            )
            if n == sizes[0]:
                model.fit(X[:1000], y[:1000])
            _, taken, _ = measured(partial(model.fit, X, y))
            seconds.append(taken)
            print(f"{solver}, {n:,} rows: {taken:.2f} s, {model.n_iter_} passes", flush=True)
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        print(f"{solver}: slope {slope:.2f}", flush=True)
        results[solver] = {"seconds": seconds, "slope": slope}
    return results


def _shown(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.5g}" for name, value in found.items())


TASKS = {
    "dual": dual, "mnist": mnist, "epochs": epochs, "anchors": anchors, "sparse": text,
    "scale": scale,
}  # fmt: skip


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Run a benchmark, print it and return its numbers."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.llsvm_limits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)  # passes are counted
    with pinned_threads(1):
        results = TASKS[args.task]()
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return results


if __name__ == "__main__":
    main()
