"""Classifiers with parameters, and rows with labels and weights, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import loclin
from loclin.codings import (
    InverseDistanceCoding,
    LLCCoding,
    LocalCoordinateCoding,
    OrthogonalCoding,
    SoftAssignmentCoding,
    TangentCoding,
)

_CLASS_WEIGHTS = (None, None, None, {0: 2.0}, "balanced", {0: 1e308, 1: 1e308}, {0: 1e-300})

METRICS = [None, None, "diagonal", "auto", "full"]


def options(rng: np.random.Generator, **given: Any) -> dict[str, Any]:
    """Draw one of the values of each parameter."""
    return {name: values[rng.integers(len(values))] for name, values in given.items()}


def _coding(rng: np.random.Generator) -> Any:
    k = int(rng.integers(1, 4))
    drawn = [
        SoftAssignmentCoding(k + 1, k),
        InverseDistanceCoding(k + 1, k),
        LLCCoding(k + 1, k),
        LocalCoordinateCoding(k + 1, max_iter=2),
        OrthogonalCoding(k),
        OrthogonalCoding("auto", whiten=False, norm="l2"),
        OrthogonalCoding(k, per_class=True),
        TangentCoding(SoftAssignmentCoding(k + 1, k), n_tangents=2),
    ]
    return drawn[rng.integers(len(drawn))]


def _ml3(rng: np.random.Generator, far_apart: bool) -> Any:
    own = options(
        rng, n_models=[1, 2, 5], p=[1.0, 1.5, 2.0, 4.0], init=["random", "kmeans"],
        loss=["hinge", "squared_hinge", "logistic"], revive=[True, False],
        penalize_intercept=[True, False], metric=METRICS,
    )  # fmt: skip
    return loclin.ML3Classifier(**own)


def _llsvm(rng: np.random.Generator, far_apart: bool) -> Any:
    own = options(
        rng, loss=["hinge", "squared_hinge"], bias=["local", "global", "both"],
        solver=["sgd", "sgd", "dual_cd"], multi_class=["ovr", "ovr", "crammer_singer"],
        metric=METRICS,
    )  # fmt: skip
    if not far_apart:
        own |= options(rng, weights=["linear", "constant"])
    coding = {} if rng.random() < 0.3 else {"coding": _coding(rng)}
    return loclin.LLSVMClassifier(**coding, **own)


def _sapl(rng: np.random.Generator, far_apart: bool) -> Any:
    own = options(
        rng, n_anchors=[None, 3, 9], n_neighbors=[1, 3], share_anchors=[True, False],
        loss=["hinge", "squared_hinge", "logistic"], penalize_intercept=[True, False],
        metric=METRICS,
    )  # fmt: skip
    if not far_apart:
        own |= options(rng, weights=["linear", "constant"], bandwidth=["auto", 1e-300, 1.0, 1e300])
    return loclin.SAPLClassifier(**own)


def _l3m(rng: np.random.Generator, far_apart: bool) -> Any:
    own = options(
        rng, n_regions=[None, 2, 4], n_restarts=[1, 2], loss=["hinge", "logistic"],
        solver=["refined", "refined", "refined", "online", "online", "online", "convex"],
    )  # fmt: skip
    return loclin.L3MClassifier(**own)


def _ussvm(rng: np.random.Generator, far_apart: bool) -> Any:
    if far_apart:
        return loclin.USSVMClassifier()
    own = options(
        rng, n_atoms=[None, 2, 6], alpha=[0.0, 1e-6, 1.0, 1e6], beta=["auto", "scale", 0.0, 1.0],
        l1_ratio=[1.0, 0.5, 0.0], nonnegative=[False, True], n_nonzero=[None, 2],
        positive_weight=[1.0, 1e3],
    )  # fmt: skip
    return loclin.USSVMClassifier(**own)


def _csvm(rng: np.random.Generator, far_apart: bool) -> Any:
    own = options(
        rng, n_clusters=[None, 2, 4], global_penalty=[0.1, 1.0, 10.0],
        loss=["hinge", "squared_hinge"], multi_class=["ovr", "ovr", "crammer_singer"],
    )  # fmt: skip
    return loclin.CSVMClassifier(**own)


def _ldkl(rng: np.random.Generator, far_apart: bool) -> Any:
    own = options(
        rng, depth=["auto", 0, 1, 3], loss=["hinge", "squared_hinge", "logistic"],
        annealing=[0.5, 10.0], tree_penalty=[1.0, 0.0],
    )  # fmt: skip
    if not far_apart:
        own |= options(rng, tree_lr=[3.0, 0.0, 100.0])
    return loclin.LDKLClassifier(**own)


def _svmknn(rng: np.random.Generator, far_apart: bool) -> Any:
    own = options(rng, n_neighbors=[None, 1, 5, 20], metric=["euclidean", "euclidean", "cityblock"])
    return loclin.SVMKNNClassifier(**own)


def _lmkl(rng: np.random.Generator, far_apart: bool) -> Any:
    own = options(
        rng, n_models=[1, 3, 9], bias=["local", "global"], loss=["hinge", "squared_hinge"],
        solver=["sgd", "sgd", "alternating"],
    )  # fmt: skip
    if not far_apart:
        own |= options(rng, gate_lr=[1.0, 0.0, 100.0])
    return loclin.LMKLClassifier(**own)


def _kernel_lmkl(rng: np.random.Generator, far_apart: bool) -> Any:
    if far_apart:  # other kernels do not take features of any scale
        return loclin.KernelLMKLClassifier(["linear", "linear"])
    own = options(
        rng, kernels=[["linear", "poly"], ["rbf"], ["linear", "rbf", "linear"]],
        gate_lr=[1.0, 0.0, 100.0],
    )  # fmt: skip
    return loclin.KernelLMKLClassifier(**own)


def _ensemble(rng: np.random.Generator, far_apart: bool) -> Any:
    kinds = [_ml3, _llsvm, _sapl, _csvm]
    members = [kinds[rng.integers(4)](rng, far_apart) for _ in range(rng.integers(1, 3))]
    weights = None if far_apart else _CLASS_WEIGHTS[rng.integers(len(_CLASS_WEIGHTS))]
    for member in members:
        member.set_params(alpha="scale", max_iter=40 if far_apart else 2, class_weight=weights)
    return loclin.LocallyLinearEnsemble(members, n_folds=int(rng.integers(2, 4)))


_KINDS = (
    _ml3, _llsvm, _sapl, _l3m, _ussvm, _csvm, _ldkl, _svmknn, _lmkl, _kernel_lmkl, _ensemble,
)  # fmt: skip

# What a stream keeps of each model; other values are those of another draw.
SHAPES = {
    loclin.ML3Classifier: {
        "n_models", "p", "init", "loss", "revive", "penalize_intercept", "metric",
    },
    loclin.LLSVMClassifier: {"loss", "bias", "multi_class", "metric", "weights", "coding"},
    loclin.SAPLClassifier: {
        "n_anchors", "n_neighbors", "share_anchors", "loss", "penalize_intercept", "metric",
        "weights", "bandwidth",
    },
    loclin.L3MClassifier: {"n_regions", "n_restarts", "loss"},
    loclin.USSVMClassifier: {"n_atoms", "beta", "l1_ratio", "nonnegative", "n_nonzero"},
    loclin.CSVMClassifier: {"n_clusters", "global_penalty", "loss", "multi_class"},
    loclin.LDKLClassifier: {"depth", "loss", "annealing", "tree_penalty", "tree_lr"},
    loclin.LMKLClassifier: {"n_models", "bias", "loss", "gate_lr"},
    loclin.LocallyLinearEnsemble: {"n_folds"},
}  # fmt: skip


def draw_shape(rng: np.random.Generator, model: Any) -> dict[str, Any]:
    """Draw another value of a parameter that shapes the model; none where the draw is the same."""
    for kind in _KINDS:
        other = kind(rng, False)
        if type(other) is type(model):
            now, then = model.get_params(deep=False), other.get_params(deep=False)
            names = sorted(n for n in SHAPES[type(model)] if repr(now[n]) != repr(then[n]))
            chosen = names[rng.integers(len(names))] if names else None
            return {chosen: then[chosen]} if chosen else {}
    raise AssertionError(model)


def draw_model(rng: np.random.Generator, far_apart: bool) -> Any:
    """Draw a classifier; for classes far apart, one whose strengths and steps are the rule's."""
    model = _KINDS[rng.integers(len(_KINDS))](rng, far_apart)
    shared = options(
        rng, max_iter=[1, 2, 4], average=[0, 2], warm_start=[False, True],
        standardize=[True, True, False], pieces=[None, "auto", 2, 5],
    )  # fmt: skip
    shared |= {"alpha": "scale", "random_state": int(rng.integers(1000))}
    if far_apart:
        shared["max_iter"] = 40
    else:
        shared |= options(
            rng, alpha=["scale"] * 6 + ["auto", 1e-300, 1e-6, 1.0, 1e10],
            batch_size=["auto", "auto", 1, 7, 10**9], early_stopping=[False] * 5 + [True],
            class_weight=_CLASS_WEIGHTS,
        )  # fmt: skip
    if isinstance(model, loclin.USSVMClassifier):
        del shared["alpha"]
    if getattr(model, "solver", None) in ("convex", "alternating"):
        # each iteration solves a problem to its end
        shared |= {"max_iter": 3 if far_apart else 1, "calibrate": False}
    known = model.get_params()
    return model.set_params(**{name: value for name, value in shared.items() if name in known})


def draw_rows(rng: np.random.Generator, far_apart: bool) -> tuple[Any, Any, Any]:
    """Draw rows, labels and weights."""
    n, d = int(rng.integers(12, 60)), int(rng.integers(1, 7))
    n_classes = int(rng.integers(2, 5))
    if far_apart:
        n, d = 60, n_classes + 1
    labels = np.arange(n) % n_classes
    X = rng.normal(size=(n, d))
    if far_apart:
        X[np.arange(n), labels] += 12.0
    else:
        X[:, 0] += labels
    X = _odd(rng, X) if not far_apart else X
    with np.errstate(over="ignore"):  # infinity is among what is drawn
        X = X * 10.0 ** (rng.integers(-12, 9) if rng.random() < 0.7 else rng.integers(-320, 20))
        X = X.astype(options(rng, dtype=[np.float64, np.float64, np.float32])["dtype"])
    names = [np.arange(4), np.array(["b", "a", "dd", "c"]), np.array([-1, 7, 3, 10**12])]
    names += [np.array([False, True])] if n_classes == 2 else []
    y = names[rng.integers(len(names))][labels]
    X = _in_layout(rng, X) if far_apart or rng.random() < 0.95 else _wide(rng, X)
    return X, y, _draw_weights(rng, labels, far_apart)


def _wide(rng: np.random.Generator, X: Any) -> Any:
    """Put the columns among many that are never used."""
    wide = sparse.lil_matrix((len(X), 5000), dtype=X.dtype)
    wide[:, np.sort(rng.choice(5000, X.shape[1], replace=False))] = X
    return wide.tocsr()


def _odd(rng: np.random.Generator, X: Any) -> Any:
    """Let some rows be zero, constant, repeated, of mixed scales, or wild."""
    kind = rng.integers(8)
    if kind == 0:
        X[:, -1] = 1.0
    elif kind == 1:
        X[: len(X) // 2] = X[0]
    elif kind == 2:
        X[rng.random(X.shape) < 0.7] = 0.0
    elif kind == 3:
        X *= 10.0 ** rng.uniform(-8, 8, X.shape[1])
    elif kind == 4:
        X[0, 0] = [np.nan, np.inf, 1e300, -1e18][rng.integers(4)]
    elif kind == 5:
        X[:] = 0.0
    return X


def _in_layout(rng: np.random.Generator, X: Any) -> Any:
    form = rng.integers(7)
    if form == 0:
        return np.asfortranarray(X)
    if form == 1:
        return sparse.csr_matrix(X)
    if form == 2:
        return sparse.csc_array(X)
    if form == 3:
        rows = sparse.csr_array(X)
        rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        return rows
    if form == 4:
        return np.repeat(X, 2, axis=1)[:, ::2]
    if form == 5:
        return pd.DataFrame(X, columns=[f"feature {f}" for f in range(X.shape[1])])
    return X


def _draw_weights(rng: np.random.Generator, labels: Any, far_apart: bool) -> Any:
    n, scale, kind = len(labels), 10.0 ** rng.integers(-320, 309), rng.integers(8)
    if kind == 0:
        return rng.uniform(0.5, 1.0, n) * scale
    if far_apart or kind > 5:
        return None
    if kind == 1:
        return 10.0 ** rng.uniform(-300, 300, n)
    if kind == 2:
        return (rng.random(n) < 0.7).astype(float)
    if kind == 3:
        return np.where(rng.random(n) < 0.05, [-1.0, np.nan, np.inf][rng.integers(3)], 1.0)
    one = labels == rng.integers(labels.max() + 1)
    return (~one if kind == 4 else one) * rng.uniform(0.5, 1.0, n)  # but one class, or one alone


def class_weights_of_zero(rng: np.random.Generator, model: Any, y: Any) -> Any:
    """Give one class the weight zero, or all but one."""
    classes = np.unique(y).tolist()
    some = classes[:1] if rng.random() < 0.7 else classes[1:]
    weights = dict.fromkeys(some, 0.0)
    for one in getattr(model, "estimators", [model]):
        one.set_params(class_weight=weights)
    return model
