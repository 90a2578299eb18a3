"""Times of US-SVM where classes are many or come late."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import average_precision_score
from sklearn.svm import LinearSVC

from benchmarks._timing import interleaved
from benchmarks.limits.core import Row
from loclin import USSVMClassifier
from loclin.datasets import load
from loclin.engine.scores import answer_scores, shared_code_scores

N_NEGATIVES, N_POSITIVES = 100_000, 1000
N_ATOMS = [60, 100]
PLAIN: dict[str, Any] = {"n_nonzero": None, "nonnegative": False, "l1_ratio": 1.0, "alpha": 0.0}
WAYS: dict[str, dict[str, Any]] = {
    "all atoms": {},
    "5 nonzeros": {"n_nonzero": 5},
    "nonnegative": {"nonnegative": True},
    "elastic net": {"l1_ratio": 0.5},
    "alpha > 0": {"alpha": 1e-5},
}
N_CLASSES, N_NONZERO, N_ROWS, REPEATS = 1000, 5, 4000, 7
WIDTHS = [64, 128, 256, 512]


def new_class() -> Iterator[Row]:
    """One new class over a frozen dictionary with 100,000 shared negatives, once D'X is there.

    Beside LinearSVC from scratch on the raw features, in one run. Rows of isolet (617 features,
    standardised) are drawn with replacement, with noise of half a standard deviation. The
    dictionary is learned on 18 letters, which are the negatives; the class has 1,000 rows of
    another letter. Of every way: seconds, average precision on as many rows drawn again, and how
    many times as long both LinearSVCs take.
    """
    data: Any = load("isolet")
    X, y = data.X_train.astype(np.float32), data.y_train
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    letters = np.unique(y)
    old = np.isin(y, letters[:18])
    new = np.flatnonzero(y == letters[20])

    def draw(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        drawn = [rng.choice(new, N_POSITIVES), rng.choice(np.flatnonzero(old), N_NEGATIVES)]
        rows = X[np.concatenate(drawn)]
        rows += np.float32(0.5) * rng.standard_normal(rows.shape, np.float32)
        return rows

    rows, target = draw(0), np.repeat([1, 0], [N_POSITIVES, N_NEGATIVES])
    models = {m: USSVMClassifier(m, random_state=0).fit(X[old], y[old]) for m in N_ATOMS}
    found = {}
    for n_atoms, model in models.items():
        P = model.transform(rows)
        for way, changed in WAYS.items():
            model.set_params(**PLAIN | changed)
            start = time.process_time()
            codes, _ = model.fit_codes(P, target, precomputed=True)
            seconds = time.process_time() - start
            found[f"{n_atoms} atoms, {way}"] = seconds, model.dictionary_ @ codes.toarray()[0]
    svms = {}
    for loss in ("squared_hinge", "hinge"):
        svm = LinearSVC(loss=loss, random_state=0)
        start = time.process_time()
        svm.fit(rows, target)
        svms[f"LinearSVC, {loss}"] = time.process_time() - start, svm.coef_[0]
    rows = draw(1)
    for way, (seconds, w) in (found | svms).items():
        precision = 100 * float(average_precision_score(target, rows @ w))
        ratios = {f"x {name}": theirs / seconds for name, (theirs, _) in svms.items()}
        yield way, {"s": seconds, "AP %": precision} | ratios


def predictions() -> Iterator[Row]:
    """`predict` for some numbers of features and both precisions."""
    for d, dtype in itertools.product(WIDTHS, (np.float64, np.float32)):
        yield f"{d} features, {np.dtype(dtype).name}", predict(d, dtype)


def predict(d: int, dtype: Any) -> dict[str, float]:
    """Median seconds of the ways to score rows, and bytes of the models.

    1,000 classes of 5 nonzeros over twice as many atoms as features (synthetic): scores from the
    sparse codes beside the dense product with the weights ready made.
    """
    rng, m = np.random.default_rng(0), 2 * d
    X, D = (rng.standard_normal(shape).astype(dtype) for shape in ((N_ROWS, d), (d, m)))
    places = [np.sort(rng.choice(m, N_NONZERO, replace=False)) for _ in range(N_CLASSES)]
    values = rng.standard_normal(N_CLASSES * N_NONZERO).astype(dtype)
    ends = N_NONZERO * np.arange(N_CLASSES + 1)
    codes = sparse.csr_matrix((values, np.concatenate(places), ends), shape=(N_CLASSES, m))
    D, b = np.asfortranarray(D), np.zeros(N_CLASSES, dtype)
    W = np.ascontiguousarray((codes @ D.T).T)
    P = X @ D
    tasks = {
        "dense": lambda: X @ W + b,
        "sparse codes": lambda: shared_code_scores(X, D, codes, b),
        "sparse codes, D'X ready": lambda: answer_scores(P, codes, b),
    }
    for task in tasks.values():
        np.testing.assert_allclose(task(), X @ W, rtol=1e-2, atol=1e-2)
    seconds = interleaved(tasks, REPEATS)
    found = {f"{way} s": float(np.median(each)) for way, each in seconds.items()}
    in_codes = codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes
    return found | {"bytes dense": W.nbytes, "bytes codes": in_codes, "bytes atoms": D.nbytes}


PARTS = {"new-class": new_class, "predict": predictions}
