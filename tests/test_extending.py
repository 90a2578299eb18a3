"""The examples of docs/extending.md: a coding and a loss (the model is in test_sixth_model)."""

import math
import pickle
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import loclin
from loclin.engine import losses
from loclin.engine.losses import HINGE, LOGISTIC, Loss
from tests.extending.gaussian_coding import GaussianCoding
from tests.extending.modified_huber import MODIFIED_HUBER


@parametrize_with_checks([GaussianCoding(random_state=0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_coding_is_a_transformer(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["sgd", "dual_cd"])
def test_the_coding_serves_a_classifier(solver):
    X, y = load_iris(return_X_y=True)
    model = loclin.LLSVMClassifier(
        GaussianCoding(), solver=solver, alpha="scale", random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.local_weights(X).shape == (150, 20)


class OwnHinge(NamedTuple):
    """The hinge, as a loss of one's own."""

    margin: float = 1.0


class OwnLogistic(NamedTuple):
    """The logistic loss, as a loss of one's own."""


def logistic(compiled, margin):
    z = margin
    return max(0.0, -z) + math.log1p(math.exp(-abs(z)))


def logistic_slope(_, z):
    tail = math.exp(-abs(z))
    return -(tail if z > 0 else 1.0) / (1.0 + tail)


OWN = {
    "hinge": Loss(
        "own_hinge", OwnHinge(), HINGE.serves, dual=HINGE.dual, softmax=HINGE.softmax,
        value=lambda loss, z: max(0.0, loss.margin - z),
        slope=lambda loss, z: -1.0 if z < loss.margin else 0.0,
    ),
    "logistic": Loss(
        "own_logistic", OwnLogistic(), LOGISTIC.serves, softmax=LOGISTIC.softmax,
        value=logistic, slope=logistic_slope,
    ),
}  # fmt: skip
FAST = {"alpha": 1e-3, "calibrate": False, "standardize": False, "pieces": None, "random_state": 0}
SOLVERS = {
    "descent": (loclin.LLSVMClassifier, "hinge", {"metric": None, "max_iter": 5}),
    "dual": (loclin.LLSVMClassifier, "hinge", {"metric": None, "solver": "dual_cd"}),
    "clusters": (loclin.CSVMClassifier, "hinge", {}),
    "anchors": (
        loclin.SAPLClassifier, "hinge", {"n_anchors": "auto", "metric": None, "max_iter": 5},
    ),
    "concave-convex": (loclin.ML3Classifier, "logistic", {"metric": None, "max_iter": 5}),
    "refined": (loclin.L3MClassifier, "hinge", {"n_restarts": 1}),
    "online": (loclin.L3MClassifier, "logistic", {"solver": "online", "max_iter": 5}),
    "convex": (loclin.L3MClassifier, "logistic", {"solver": "convex", "n_restarts": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_loss_of_ones_own_is_learned_as_that_of_the_package(name):
    kind, loss, options = SOLVERS[name]
    X, y = load_iris(return_X_y=True)
    ours, own = (kind(loss=one, **FAST | options).fit(X, y) for one in (loss, OWN[loss]))
    expected = ours.decision_function(X)
    tol = 2e-3 if name == "convex" else 1e-8  # which ends at a gap, where rounding decides
    np.testing.assert_allclose(own.decision_function(X), expected, rtol=tol, atol=tol)
    assert clone(own).loss.name == OWN[loss].name


def test_a_loss_of_ones_own_says_what_it_serves():
    X, y = load_iris(return_X_y=True)
    model = loclin.LLSVMClassifier(GaussianCoding(), loss=MODIFIED_HUBER, **FAST | {"alpha": 0.1})
    assert model.fit(X, y).score(X, y) > 0.9
    assert model.set_params(solver="dual_cd").fit(X, y).score(X, y) > 0.9
    with pytest.raises(ValueError, match="with multi_class='crammer_singer' needs solver='sgd'"):
        model.set_params(multi_class="crammer_singer").fit(X, y)
    with pytest.raises(ValueError, match=r"'own_logistic' cannot be used here.* serves 'dual'"):
        loclin.CSVMClassifier(loss=OWN["logistic"]).fit(X, y)
    bare = replace(OWN["logistic"], softmax=None)
    with pytest.raises(ValueError, match="no softmax"):
        loclin.L3MClassifier(loss=bare, **FAST).fit(X, y)


class Bare(NamedTuple):
    """A class without numbers."""


class Text(NamedTuple):
    """A class that holds no number."""

    text: str = "hinge"


def test_a_loss_that_is_none_is_refused_where_it_is_made():
    functions = {"value": logistic, "slope": logistic_slope}
    serves = frozenset({"descent"})
    for compiled, more, told in [
        (Bare(), {}, "needs a value and a slope"),
        (Bare(), {"value": logistic}, "needs a value and a slope"),
        (7, functions, "an instance of a NamedTuple"),
        (True, functions, "an instance of a NamedTuple"),
        (Bare, functions, "an instance of a NamedTuple"),
        ((1.0, 2.0), functions, "an instance of a NamedTuple"),
        (Text(), functions, "numbers only"),
        (0, functions, "by which compiled loops tell losses apart"),
        (OwnHinge(), functions, "the loss 'own_hinge', by which"),
    ]:
        with pytest.raises(ValueError, match=told):
            Loss("odd", compiled, serves, **more)
    for odd in ("descent", ["descent"], {"descents"}):
        with pytest.raises(ValueError, match="serves="):
            Loss("odd", Bare(), odd, **functions)


def test_a_loss_is_the_same_by_its_name_and_in_another_process():
    X, y = load_iris(return_X_y=True)
    model = loclin.ML3Classifier(2, warm_start=True, max_iter=2, **FAST).fit(X, y)
    model.set_params(loss=HINGE).fit(X, y)
    known = losses._KNOWN.pop(OwnLogistic)
    again = pickle.loads(pickle.dumps(known))
    assert losses.known_loss(OwnLogistic()) is again
    with pytest.raises(ValueError, match="A loss has"):
        again.__setstate__({"compiled": 7})
