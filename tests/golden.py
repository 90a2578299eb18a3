"""Scores that must not change by accident: every model, solver, layout, dtype and way to learn.

``python -m tests.golden`` adds to `GOLDEN` the cases that it lacks, and drops what no case gives.
``python -m tests.golden --anew`` writes all with what the package gives now: after a change that is
meant to give other numbers, and only then.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import loclin
from loclin import codings

GOLDEN = Path(__file__).parent / "golden.npz"
LAYOUTS = {"dense": np.ascontiguousarray, "sparse": sparse.csr_matrix}
N_ROWS, N_FEATURES, N_SCORED = 150, 6, 20


class Case(NamedTuple):
    """A way to learn: `learn` is one of the functions below."""

    model: str
    learn: str
    layout: str
    dtype: str
    n_classes: int

    @property
    def name(self) -> str:
        return " | ".join(map(str, self))


def planes(**parameters: Any) -> Any:
    return codings.OrthogonalCoding(3, random_state=0, **parameters)


def soft(n_anchors: int = 12, n_neighbors: int = 3) -> Any:
    return codings.SoftAssignmentCoding(n_anchors, n_neighbors)


def make(model: str) -> Any:
    """Return the model of that name, unfitted."""
    kind, *rest = model.split()
    short = {"max_iter": 4, "average": 2, "random_state": 0, "alpha": "scale"}
    dual = {"solver": "dual_cd", "max_iter": 15, "random_state": 0, "alpha": "scale"}
    few = {"random_state": 0, "alpha": "scale"}
    dictionary = np.linalg.qr(np.cos(np.arange(36.0).reshape(6, 6)))[0][:, :4]
    made = {
        "ml3": {
            "": lambda: loclin.ML3Classifier(3, **short, standardize=False),
            "auto": lambda: loclin.ML3Classifier(3, **short | {"alpha": "auto"}, standardize=False),
            "logistic": lambda: loclin.ML3Classifier(
                3, p=1, loss="logistic", **short, standardize=False
            ),
            "kmeans": lambda: loclin.ML3Classifier(
                3, p=np.inf, init="kmeans", **short, standardize=False
            ),
            "coding": lambda: loclin.ML3Classifier(
                12, p=1.7, init=soft(), eta0=np.inf, **short, standardize=False
            ),
            "free": lambda: loclin.ML3Classifier(
                3,
                p=2,
                penalize_intercept=False,
                revive=False,
                s0=2.0,
                batch_size=16,
                **short,
                standardize=False,
            ),
        },
        "llsvm": {
            "": lambda: loclin.LLSVMClassifier(**short, standardize=False),
            "auto": lambda: loclin.LLSVMClassifier(
                soft(), **short | {"alpha": "auto"}, standardize=False
            ),
            "squared": lambda: loclin.LLSVMClassifier(
                soft(), loss="squared_hinge", **short, standardize=False
            ),
            "planes": lambda: loclin.LLSVMClassifier(
                planes(), bias="global", **short, standardize=False
            ),
            "by-class": lambda: loclin.LLSVMClassifier(
                planes(per_class=True), loss="logistic", batch_size=16, **short, standardize=False
            ),
            "competing": lambda: loclin.LLSVMClassifier(
                soft(),
                multi_class="crammer_singer",
                penalize_intercept=False,
                **short,
                standardize=False,
            ),
            "constant": lambda: loclin.LLSVMClassifier(
                soft(), weights="constant", bias="global", **short, standardize=False
            ),
            "dual": lambda: loclin.LLSVMClassifier(soft(), **dual, standardize=False),
            "dual-planes": lambda: loclin.LLSVMClassifier(
                planes(), bias="global", loss="squared_hinge", **dual, standardize=False
            ),
            "dual-by-class": lambda: loclin.LLSVMClassifier(
                planes(per_class=True), **dual, standardize=False
            ),
            "dual-competing": lambda: loclin.LLSVMClassifier(
                soft(),
                multi_class="crammer_singer",
                **dual | {"max_iter": 3000, "tol": 1e-7},
                standardize=False,
            ),
            "dual-constant": lambda: loclin.LLSVMClassifier(
                soft(), weights="constant", **dual, standardize=False
            ),
        },
        "sapl": {
            "": lambda: loclin.SAPLClassifier(**short, standardize=False),
            "auto": lambda: loclin.SAPLClassifier(
                8, 3, **short | {"alpha": "auto"}, standardize=False
            ),
            "learned": lambda: loclin.SAPLClassifier(
                8, 3, bandwidth="learned", **short, standardize=False
            ),
            "own": lambda: loclin.SAPLClassifier(
                6, 2, share_anchors=False, **short, standardize=False
            ),
            "constant": lambda: loclin.SAPLClassifier(
                8, 3, weights="constant", **short, standardize=False
            ),
            "grown": lambda: loclin.SAPLClassifier(
                "auto", 2, loss="logistic", **short, standardize=False
            ),
        },
        "l3m": {
            "": lambda: loclin.L3MClassifier(max_iter=8, **few, standardize=False),
            "auto": lambda: loclin.L3MClassifier(3, max_iter=7, random_state=0, standardize=False),
            "regions": lambda: loclin.L3MClassifier(
                "auto", loss="hinge", max_iter=7, **few, standardize=False
            ),
            "convex": lambda: loclin.L3MClassifier(
                3, solver="convex", n_restarts=2, max_iter=1, loss="hinge", **few, standardize=False
            ),
            "online": lambda: loclin.L3MClassifier(
                3, solver="online", max_iter=4, **few, standardize=False
            ),
            "online-hinge": lambda: loclin.L3MClassifier(
                3, solver="online", loss="hinge", max_iter=4, n_restarts=2, **few, standardize=False
            ),
        },
        "csvm": {
            "": lambda: loclin.CSVMClassifier(4, **few, standardize=False),
            "auto": lambda: loclin.CSVMClassifier(4, random_state=0, standardize=False),
            "squared": lambda: loclin.CSVMClassifier(
                4, loss="squared_hinge", **few, standardize=False
            ),
            "competing": lambda: loclin.CSVMClassifier(
                4, multi_class="crammer_singer", tol=1e-7, max_iter=500, **few, standardize=False
            ),
        },
        "svmknn": {"": lambda: loclin.SVMKNNClassifier(12, tol=1e-10, standardize=False)},
        "ldkl": {
            "": lambda: loclin.LDKLClassifier(2, annealing=2, **short, standardize=False),
            "auto": lambda: loclin.LDKLClassifier(**short | {"alpha": "auto"}, standardize=False),
            "logistic": lambda: loclin.LDKLClassifier(
                2, loss="logistic", tree_penalty=0, **short, standardize=False
            ),
        },
        "lmkl": {
            "": lambda: loclin.LMKLClassifier(3, **short, standardize=False),
            "auto": lambda: loclin.LMKLClassifier(
                3, **short | {"alpha": "auto"}, standardize=False
            ),
            "global": lambda: loclin.LMKLClassifier(3, bias="global", **short, standardize=False),
            "alternating": lambda: loclin.LMKLClassifier(
                3, solver="alternating", tol=1e-7, max_iter=3, **few, standardize=False
            ),
        },
        "ussvm": {
            "": lambda: loclin.USSVMClassifier(beta="scale", max_iter=4, random_state=0),
            "pruned": lambda: loclin.USSVMClassifier(
                5,
                beta="scale",
                n_nonzero=2,
                alpha=0.01,
                positive_weight=2.0,
                max_iter=4,
                random_state=0,
            ),
            "nonnegative": lambda: loclin.USSVMClassifier(
                5, beta="scale", nonnegative=True, l1_ratio=0.5, max_iter=4, random_state=0
            ),
            "given": lambda: loclin.USSVMClassifier(dictionary=dictionary, max_iter=30),
        },
    }
    one = made[kind][rest[0] if rest else ""]()
    return one.set_params(metric=None) if kind in ("ml3", "llsvm", "sapl") else one


class Data(NamedTuple):
    """Rows, labels, weights."""

    X: Any
    y: Any
    weights: Any


def data_of(case: Case) -> Data:
    """Return rows on curved classes; a third of the entries are zero."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((N_ROWS, N_FEATURES))
    X[rng.random(X.shape) < 0.3] = 0.0
    y = np.floor(case.n_classes * (0.5 + 0.49 * np.sin(2 * X[:, 0] + X[:, 1] ** 2))).astype(int)
    weights = rng.integers(0, 4, N_ROWS).astype(float)
    labels = np.array(["a", "b", "c"])
    return Data(LAYOUTS[case.layout](X.astype(case.dtype)), labels[y], weights)


def fit(model: Any, data: Data) -> Any:
    return model.fit(data.X, data.y)


def stream(model: Any, data: Data) -> Any:
    """Three calls; the classes of all are named at the first."""
    for some in np.array_split(np.arange(N_ROWS), 3):
        model.partial_fit(data.X[some], data.y[some], classes=np.unique(data.y))
    return model


def weighed(model: Any, data: Data) -> Any:
    """Weights of rows, some of them zero, and of classes."""
    model.set_params(class_weight={"a": 1, "b": 2.5, "c": 1})
    return model.fit(data.X, data.y, data.weights)


def watched(model: Any, data: Data) -> Any:
    """Early stopping."""
    return model.set_params(early_stopping=True, validation_fraction=0.3).fit(data.X, data.y)


def continued(model: Any, data: Data) -> Any:
    """A fit that goes on from one before."""
    return model.set_params(warm_start=True).fit(data.X, data.y).fit(data.X, data.y)


def then_stream(model: Any, data: Data) -> Any:
    """A stream that goes on from a fit."""
    return model.fit(data.X, data.y).partial_fit(data.X[:70], data.y[:70])


BASIC = [
    "ml3", "ml3 logistic", "ml3 kmeans", "ml3 free",
    "llsvm", "llsvm squared", "llsvm planes", "llsvm by-class", "llsvm competing", "llsvm constant",
    "llsvm dual", "llsvm dual-planes", "llsvm dual-by-class", "llsvm dual-competing",
    "sapl", "sapl learned", "sapl own",
    "l3m", "l3m convex", "l3m online",
    "ussvm", "ussvm pruned", "ussvm given", "csvm", "svmknn", "ldkl", "lmkl",
]  # fmt: skip
STREAMED = ["ml3", "llsvm", "llsvm planes", "llsvm competing", "llsvm constant", "sapl", "sapl own",
            "l3m online", "ussvm", "csvm", "ldkl", "lmkl"]  # fmt: skip
# In one form only, as they compile nothing of their own.
ONCE = {
    "fit": ["ml3 auto", "ml3 coding", "llsvm auto", "llsvm dual-constant", "sapl auto",
            "sapl constant", "sapl grown", "l3m auto", "l3m regions", "l3m online-hinge",
            "ussvm nonnegative", "csvm auto", "csvm squared", "csvm competing", "ldkl auto",
            "ldkl logistic", "lmkl auto", "lmkl global", "lmkl alternating"],
    "weighed": ["ml3", "llsvm", "llsvm dual", "sapl", "l3m", "l3m convex", "l3m online", "ussvm",
                "csvm", "svmknn", "ldkl", "lmkl"],
    "watched": ["ml3", "llsvm", "llsvm dual", "sapl", "l3m", "l3m convex", "l3m online", "ussvm",
                "csvm", "ldkl", "lmkl"],
    "continued": ["ml3", "llsvm", "llsvm constant", "llsvm dual", "llsvm dual-competing", "sapl",
                  "sapl own", "sapl constant", "l3m", "l3m online", "ussvm", "csvm", "ldkl",
                  "lmkl", "lmkl alternating"],
    "then_stream": ["ml3", "llsvm", "llsvm constant", "sapl", "sapl own", "l3m online", "ussvm",
                    "csvm", "ldkl", "lmkl"],
    "stream": ["ml3 logistic", "llsvm by-class", "sapl constant", "sapl learned", "ussvm pruned"],
}  # fmt: skip
FORMS = list(itertools.product(LAYOUTS, ("float64", "float32"), (2, 3)))
CASES = [Case(model, "fit", *form) for model in BASIC for form in FORMS]
CASES += [Case(model, "stream", *form) for model in STREAMED for form in FORMS]
CASES += [
    Case(model, learn, "dense", "float64", n_classes)
    for learn, models in ONCE.items() for model in models for n_classes in (2, 3)
]  # fmt: skip


def scores_of(case: Case) -> np.ndarray:
    """Learn, and return the scores of some rows."""
    data = data_of(case)
    model = make(case.model)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        learned = globals()[case.learn](model, data)
        return np.asarray(learned.decision_function(data.X[:N_SCORED]))


if __name__ == "__main__":
    kept = {} if "--anew" in sys.argv else dict(np.load(GOLDEN))
    every = {c.name: kept[c.name] if c.name in kept else scores_of(c) for c in CASES}
    np.savez_compressed(GOLDEN, **every)
    print(f"{len(every)} cases, {len(every.keys() - kept.keys())} of them new")
