"""Hashed words, many classes and rows of an encoder, beside linear models of scikit-learn.

Each fit is the default one, in a process of its own, after a small fit that has compiled
everything: processor seconds, the peak that NumPy held in a second fit, the size of the pickle, and
the error on new rows. Linear models of the same rows come first: of seconds, the ratio to the
fastest of them is shown.

``python -m benchmarks.wide [KIND ...] [--models ML3 ...] [--limit-gb 8] [--max-iter N]``

With ``--max-iter``, models make so many passes at most: where memory is what counts.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import time
import tracemalloc
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

import loclin
from benchmarks._timing import pinned_threads

LINEAR = {
    "SGDClassifier": SGDClassifier(random_state=0),
    "LinearSVC": LinearSVC(random_state=0),
    "LogisticRegression": LogisticRegression(max_iter=1000),
}
LOCAL = {
    "ML3": loclin.ML3Classifier(random_state=0),
    "LL-SVM": loclin.LLSVMClassifier(random_state=0),
    "SAPL": loclin.SAPLClassifier(random_state=0),
    "CSVM": loclin.CSVMClassifier(random_state=0),
    "L3M": loclin.L3MClassifier(random_state=0),
    "LDKL": loclin.LDKLClassifier(random_state=0),
    "L-MKL": loclin.LMKLClassifier(random_state=0),
    "US-SVM": loclin.USSVMClassifier(random_state=0),
    "SVM-KNN": loclin.SVMKNNClassifier(),
}


class Found(NamedTuple):
    """What one fit took, and gave."""

    seconds: float
    peak_mb: float
    pickle_mb: float
    error: float


def words(n_bits: int, n_rows: int = 800) -> tuple[Any, Any]:
    """Documents of 20 words each, hashed to so many columns; half of them are to learn from."""
    rng, names = np.random.default_rng(0), [f"w{i}" for i in range(3000)]
    y = rng.integers(0, 4, n_rows)
    texts = [" ".join(rng.choice(names[c * 500 : c * 500 + 1000], 20)) for c in y]
    return HashingVectorizer(n_features=2**n_bits).transform(texts), y


def clusters(n_classes: int, n_each: int, n_features: int, spread: float) -> tuple[Any, Any]:
    """Return rows about the means of their classes; half of them are to learn from."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(n_classes), 2 * n_each))
    y = y[np.argsort(np.argsort(y, kind="stable") % (2 * n_each) >= n_each, kind="stable")]
    X = rng.normal(size=(n_classes, n_features))[y]
    return X + spread * rng.normal(size=X.shape), y


KINDS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "2^16 columns": (words, (16,)),
    "2^20 columns": (words, (20,)),
    "1,200 classes": (clusters, (1200, 4, 20, 0.1)),
    "20,000 classes": (clusters, (20_000, 4, 20, 0.1)),
    "10 classes, 512 features": (clusters, (10, 200, 512, 5.0)),
    "100 classes, 1,024 features": (clusters, (100, 40, 1024, 5.0)),
    "1,000 classes, 2,048 features": (clusters, (1000, 10, 2048, 5.0)),
}


def measured(kind: str, name: str, limit_gb: float, max_iter: int | None) -> Found:
    """Fit one model to rows of one kind, twice."""
    make, sizes = KINDS[kind]
    X, y = make(*sizes)
    half, model = len(y) // 2, (LINEAR | LOCAL)[name]
    if max_iter is not None and "max_iter" in model.get_params():
        model = clone(model).set_params(max_iter=max_iter)
    few = slice(0, 60) if make is words else np.flatnonzero(y[:half] < 3)
    limit = int(limit_gb * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with pinned_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).fit(X[few], y[few])
        start = time.process_time()
        fitted = clone(model).fit(X[:half], y[:half])
        seconds = time.process_time() - start
        error = 1 - fitted.score(X[half:][:2000], y[half:][:2000])
        tracemalloc.start()
        again = clone(model).fit(X[:half], y[:half])
        peak = tracemalloc.get_traced_memory()[1]
    return Found(seconds, peak / 2**20, len(pickle.dumps(again)) / 2**20, float(error))


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each kind and model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--models", nargs="+", default=list(LINEAR | LOCAL))
    parser.add_argument("--limit-gb", type=float, default=8.0)
    parser.add_argument("--max-iter", type=int, default=None)
    options = parser.parse_args(arguments)
    for kind in options.kinds:
        fastest = np.inf
        for name in options.models:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                try:
                    given = kind, name, options.limit_gb, options.max_iter
                    found = pool.submit(measured, *given).result()
                except (MemoryError, ValueError, BrokenProcessPool) as error:
                    told = f"{type(error).__name__}: {str(error)[:90]}"
                else:
                    if name in LINEAR:
                        fastest = min(fastest, found.seconds)
                    ratio = "" if name in LINEAR else f"({found.seconds / fastest:.1f} x)"
                    told = (
                        f"{found.seconds:9.2f} s {ratio:10} peak {found.peak_mb:8.1f} MB, "
                        f"pickle {found.pickle_mb:8.2f} MB, error {100 * found.error:6.2f} %"
                    )
            print(f"{kind:31}{name:20}{told}", flush=True)


if __name__ == "__main__":
    main()
