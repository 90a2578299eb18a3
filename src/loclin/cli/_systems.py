"""The classifiers that are compared: how each is built, and what is searched for it.

A search space maps parameters to distributions. Some keys are drawn in a form that
carries over from the rows of a cross-validation fold to all rows, and `System.resolve`
writes them out:

- ``gamma*norm2``: RBF width over the inverse of the mean squared norm of scaled rows (1
  is scikit-learn's ``gamma="scale"``);
- ``n_components``, ``n_neighbors``, ``n_models``: no more than there are rows;
  ``n_anchors``, ``n_clusters``: no more than one for four rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import isabstract, isclass, signature
from operator import methodcaller
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import loclin
from loclin.cli._errors import InputError
from loclin.codings import SoftAssignmentCoding

__all__ = ["Shape", "System", "described", "pick", "roster", "unfitted"]

DENSE_BYTES = 2**30  # a tree model gets sparse data made dense up to this size ...
DENSE_COLUMNS = 5000  # ... and so many columns
COUNTS = ("n_components", "n_neighbors", "n_models")
# Compared where they are named, so that a first comparison ends soon.
ON_REQUEST = ("CSVMClassifier", "KernelLMKLClassifier", "LDKLClassifier", "LMKLClassifier",
              "SVMKNNClassifier")  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """What a system must know of the data:
    rows, features, sparsity, variance once scaled.
    """

    n_rows: int
    n_features: int
    sparse: bool = False
    variance: float = 1.0


@dataclass(frozen=True)
class System:
    """One classifier in the comparison.

    Attributes
    ----------
    name : str
        As shown and as chosen with ``--models``.
    build : callable
        ``build(seed, **parameters)`` returns the unfitted classifier; it can be pickled.
    space : mapping
        Parameter to a list of values or a SciPy distribution; empty: no search.
    start : mapping
        The first candidate; empty: the defaults of the classifier.
    own, baseline, tree : bool
        Is it loclin's; is it the majority class; is it free of the features' scale.
    on_request : bool
        Is it compared only where it is named.
    """

    name: str
    build: Callable[..., BaseEstimator]
    space: Mapping[str, Any] = field(default_factory=dict)
    start: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False
    baseline: bool = False
    tree: bool = False
    on_request: bool = False

    def resolve(self, drawn: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
        """Write drawn parameters out as the classifier takes them."""
        parameters = {}
        for key, value in drawn.items():
            if key == "gamma*norm2":
                parameters["gamma"] = value / (shape.n_features * (shape.variance or 1.0))
            elif key in ("n_anchors", "n_clusters"):
                parameters[key] = min(value, max(1, shape.n_rows // 4))
            else:
                parameters[key] = min(value, shape.n_rows) if key in COUNTS else value
        return {  # Python's own numbers, as in code that people write
            key: value.item() if hasattr(value, "item") else value
            for key, value in parameters.items()
        }

    def make(self, drawn: Mapping[str, Any], shape: Shape, seed: int) -> BaseEstimator:
        """Return the unfitted pipeline: scaling, unless it is a tree, and the classifier."""
        classifier = self.build(seed, **self.resolve(drawn, shape))
        if self.baseline or (self.tree and not shape.sparse):
            return classifier
        # the scaler in front does it
        if "standardize" in classifier.get_params(deep=False):
            classifier.set_params(standardize=False)
        if self.tree:
            dense = FunctionTransformer(methodcaller("toarray"), accept_sparse=True)
            return make_pipeline(dense, classifier)
        return make_pipeline(
            MaxAbsScaler() if shape.sparse else StandardScaler(), classifier
        )

    def refuses(self, shape: Shape) -> str | None:
        """Return why the system cannot take such data, or None."""
        size = 8 * shape.n_rows * shape.n_features
        if not (self.tree and shape.sparse) or (
            size <= DENSE_BYTES and shape.n_features <= DENSE_COLUMNS
        ):
            return None
        return f"needs dense features: {shape.n_features:,} columns, {size / 1e9:.1f} GB"


def described(X: Any) -> Shape:
    """Return the shape of features, with the variance that scaling leaves them."""
    if not issparse(X):
        constant = np.ptp(X, axis=0) == 0
        return Shape(X.shape[0], X.shape[1], variance=float(1 - constant.mean()))
    scaled: Any = MaxAbsScaler().fit_transform(X)
    mean = scaled.mean()
    variance = float(scaled.power(2).mean() - mean * mean)
    n_rows, n_features = scaled.shape
    return Shape(n_rows, n_features, sparse=True, variance=variance)


def unfitted(
    system: System, drawn: Mapping[str, Any], shape: Shape, seed: int, *, table: bool
) -> Any:
    """Return the unfitted pipeline for features of a shape, with an encoder for a table."""
    model = system.make(drawn, shape, seed)
    if not table:
        return model
    from loclin.tables import TableEncoder

    steps = model.named_steps.values() if isinstance(model, Pipeline) else [model]
    return make_pipeline(TableEncoder(), *steps)


def roster() -> list[System]:
    """Return every classifier of loclin and the rivals, in the order in which they run."""
    shares = partial(_seeded, DummyClassifier, strategy="prior")  # probabilities, too
    majority = System("Majority", shares, baseline=True)
    return [majority, *_own_systems(), *_rivals()]


def pick(wanted: str | None, systems: Sequence[System]) -> list[System]:
    """Return the systems named in a list such as ``"ml3,svc-rbf"``.

    "all" names all; None those that are not on request.

    Raises
    ------
    InputError
        If a name fits no system; the message lists the valid ones.
    """
    if wanted is None:
        return [system for system in systems if not system.on_request]
    if wanted.strip().lower() == "all":
        return list(systems)
    by_key = {_key(system.name): system for system in systems}
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    unknown = [name for name in names if _key(name) not in by_key]
    if unknown or not names:
        asked = f"no model '{unknown[0]}'" if unknown else "--models names none"
        valid = ", ".join(system.name for system in systems)
        raise InputError(f"{asked}; the models are {valid}")
    chosen = {_key(name) for name in names}
    return [system for key, system in by_key.items() if key in chosen]


def _key(name: str) -> str:
    """Reduce a name to what tells it apart: ``ML3Classifier`` and ``ml3`` are the same."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).removesuffix("classifier")


# --- loclin's own: every public classifier runs; a line here gives it a search -------


def _own_spaces() -> dict[str, dict[str, Any]]:
    """Return what is searched beside the strength, which a fit finds by itself."""
    by_anchors = {"n_anchors": [25, 50, 100, 200], "n_neighbors": [4, 8, 16]}
    return {
        "ML3Classifier": {"n_models": [8, 16, 32, 64]},
        "LLSVMClassifier": by_anchors,
        "SAPLClassifier": by_anchors,
        "L3MClassifier": {"n_regions": [2, 4, 6, 8, 12]},
        "LDKLClassifier": {"depth": [2, 3, 4, 5, 6]},
        "LMKLClassifier": {"n_models": [5, 10, 20, 40]},
        "KernelLMKLClassifier": {
            "kernels": [("linear", "poly"), ("linear", "rbf"), ("poly", "rbf")]
        },
        "CSVMClassifier": {
            "n_clusters": [8, 16, 32, 64, 128],
            "global_penalty": loguniform(0.1, 3),
        },
        "SVMKNNClassifier": {"n_neighbors": [5, 10, 20, 50, 100]},
        "USSVMClassifier": {
            "n_atoms": [None, 5, 10, 20, 50],
            "n_nonzero": [None, 2, 5],
            "code_lr": [3.0, 10.0, 30.0],
        },
    }


def _own_systems() -> list[System]:
    """Return a system for each classifier class that loclin makes public."""
    spaces = _own_spaces()
    systems = []
    for name in loclin.__all__:
        made = getattr(loclin, name, None)
        if isclass(made) and issubclass(made, ClassifierMixin) and not isabstract(made):
            space = spaces.get(name, {})
            build, on_request = partial(_own, made), name in ON_REQUEST
            systems.append(System(name, build, space, own=True, on_request=on_request))
    # The ensemble finds its members' loops compiled; beside them it would compile them
    # once more.
    return sorted(systems, key=lambda system: system.name == "LocallyLinearEnsemble")


def _own(
    classifier: type,
    seed: int,
    *,
    n_anchors: int = 0,
    n_neighbors: int = 0,
    **parameters: Any,
) -> BaseEstimator:
    """Build a classifier of loclin; LL-SVM gets its anchors in a coding."""
    known = signature(classifier).parameters
    if n_anchors:
        counts = {"n_anchors": n_anchors, "n_neighbors": min(n_neighbors or 8, n_anchors)}
        parameters |= (
            {"coding": SoftAssignmentCoding(**counts)} if "coding" in known else counts
        )
    elif n_neighbors:
        parameters["n_neighbors"] = n_neighbors
    if "random_state" in known:
        parameters["random_state"] = seed
    return classifier(**parameters)


# --- the rivals ----------------------------------------------------------------------


def _rivals() -> list[System]:
    widths = loguniform(0.03, 10)
    return [
        System(  # first, as it takes longest
            "HistGradientBoosting",
            partial(_seeded, HistGradientBoostingClassifier),
            {
                "learning_rate": loguniform(0.03, 0.3),
                "max_iter": [50, 100, 200, 400],
                "max_leaf_nodes": [7, 15, 31, 63],
                "min_samples_leaf": [5, 10, 20, 40],
                "l2_regularization": loguniform(1e-3, 10),
            },
            tree=True,
        ),
        System(
            "LogisticRegression",
            partial(_seeded, LogisticRegression, max_iter=1000),
            {"C": loguniform(1e-4, 1e2)},
        ),
        # C = 1, the default, is up to 40 times slower on standardised features and seldom
        # wins
        System(
            "LinearSVC",
            partial(_seeded, LinearSVC),
            {"C": loguniform(1e-4, 1e1)},
            start={"C": 0.01},
        ),
        System(
            "kNN",
            _knn,
            {
                "n_neighbors": [1, 2, 3, 4, 5, 7, 9, 12, 15, 20, 30],
                "weights": ["uniform", "distance"],
                "p": [1, 2],
            },
        ),
        System(
            "Nystroem+LinearSVC",
            _nystroem,  # its defaults, 100 components and C = 1, would be a straw man
            {
                "n_components": [100, 200, 400, 800],
                "gamma*norm2": widths,
                "C": loguniform(1, 100),
            },
            start={"n_components": 300, "gamma*norm2": 1.0, "C": 10.0},
        ),
        System(
            "SVC-rbf",
            partial(_seeded, SVC),
            {"C": loguniform(1e-1, 1e3), "gamma*norm2": widths},
        ),
    ]


def _seeded(classifier: type, seed: int, **parameters: object) -> BaseEstimator:
    return classifier(random_state=seed, **parameters)


def _knn(seed: int, **parameters: Any) -> BaseEstimator:
    return KNeighborsClassifier(**parameters)


def _nystroem(seed: int, C: float = 1.0, **parameters: Any) -> Pipeline:
    # in the dual, which is many times faster on these features than scikit-learn's choice
    classifier = LinearSVC(C=C, dual=True, tol=1e-3, random_state=seed)
    return make_pipeline(Nystroem(random_state=seed, **parameters), classifier)
