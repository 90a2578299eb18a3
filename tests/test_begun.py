"""What shapes a model stays as it was when its stream, or its fit, began."""

import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator

import loclin.io
from loclin import (
    CSVMClassifier,
    L3MClassifier,
    LDKLClassifier,
    LLSVMClassifier,
    LMKLClassifier,
    LocallyLinearEnsemble,
    ML3Classifier,
    SAPLClassifier,
    USSVMClassifier,
)
from loclin.codings import SoftAssignmentCoding
from loclin.fitting.begun import is_same

pytestmark = [
    pytest.mark.usefixtures("told_by_its_own_rows", "no_metric", "rule_alone"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
X, y = load_iris(return_X_y=True)
SHORT = {"max_iter": 2, "random_state": 0}
FIRST, NEXT = np.arange(0, 150, 2), np.arange(1, 150, 2)
MODELS = {
    "ML3": ML3Classifier(2, **SHORT),
    "SAPL": SAPLClassifier(4, 2, **SHORT),
    "LDKL": LDKLClassifier(2, **SHORT),
    "L-MKL": LMKLClassifier(3, **SHORT),
    "LL-SVM": LLSVMClassifier(SoftAssignmentCoding(6, 3), **SHORT),
    "L3M": L3MClassifier(3, solver="online", n_restarts=1, **SHORT),
    "CSVM": CSVMClassifier(3, **SHORT),
    "US-SVM": USSVMClassifier(4, **SHORT),
}
SHAPES = {
    "ML3": {"n_models": 7, "p": 2.0, "loss": "logistic", "metric": "diagonal", "init": "kmeans",
            "penalize_intercept": False, "revive": False},
    "SAPL": {"n_anchors": 9, "n_neighbors": 3, "loss": "logistic", "bandwidth": 2.0,
             "weights": "constant", "share_anchors": False, "metric": None, "anchors": X[:4]},
    "LDKL": {"depth": 3, "loss": "logistic"},
    "L-MKL": {"n_models": 4, "loss": "logistic", "bias": "global"},
    "LL-SVM": {"coding": SoftAssignmentCoding(9, 3), "weights": "constant", "bias": "both",
               "loss": "logistic", "multi_class": "crammer_singer", "penalize_intercept": False},
    "L3M": {"n_regions": 2, "loss": "hinge", "margin": 2.0, "n_restarts": 2},
    "CSVM": {"n_clusters": 4, "loss": "squared_hinge", "multi_class": "crammer_singer",
             "centers": X[:3]},
    "US-SVM": {"n_atoms": 7, "n_nonzero": 2, "nonnegative": True},
}  # fmt: skip
# What a running stream keeps, and a fit that goes on takes anew.
STEPS = {
    "SAPL": {"anchor_lr": 0.5},
    "LDKL": {"annealing": 2.0, "tree_lr": 1.0, "tree_penalty": 0.5},
    "L-MKL": {"gate_lr": 0.5},
    "L3M": {"eta0": 1.0},
    "CSVM": {"global_penalty": 2.0},
    "US-SVM": {"beta": 1e-3, "l1_ratio": 0.5, "positive_weight": 2.0, "code_lr": 0.1,
               "atom_lr": 0.1, "block_iter": 2},
}  # fmt: skip
FREE = {
    "alpha": 1e-3, "batch_size": 5, "max_iter": 3, "round_rows": 10, "tol": 0.1, "average": 1,
    "n_iter_no_change": 2, "eta0": 1.0, "s0": 2.0, "early_stopping": True, "verbose": 0,
    "validation_fraction": 0.2, "class_weight": {0: 2.0}, "n_jobs": 2, "calibrate": False,
    "random_state": 3,
}  # fmt: skip
CHANGED = [(name, changed) for name in SHAPES for changed in SHAPES[name]]


@cache
def pickled(name, learn):
    model = clone(MODELS[name])
    if learn == "stream":
        return pickle.dumps(model.partial_fit(X[FIRST], y[FIRST], classes=[0, 1, 2]))
    return pickle.dumps(model.fit(X[FIRST], y[FIRST]))


def learned(name, learn):
    return pickle.loads(pickle.dumps(pickle.loads(pickled(name, learn))))


def goes_on(model, how):
    if how == "stream":
        return model.partial_fit(X[NEXT], y[NEXT])
    return model.set_params(warm_start=True).fit(X, y)


def check_refused(model, name, how, what):
    model.set_params(warm_start=True)
    before, said = dict(vars(model)), model.decision_function(X)
    with pytest.raises(ValueError, match=rf"(?s)^{name}=.* differs from the .* of the {what} that"):
        goes_on(model, how)
    assert vars(model) == before
    np.testing.assert_array_equal(model.decision_function(X), said)


@pytest.mark.parametrize("how", ["stream", "fit"])
@pytest.mark.parametrize("learn", ["stream", "fit"])
@pytest.mark.parametrize(("name", "changed"), CHANGED)
def test_a_changed_shape_is_refused(name, changed, learn, how):
    model = learned(name, learn).set_params(**{changed: SHAPES[name][changed]})
    check_refused(model, changed, how, learn)


@pytest.mark.parametrize(
    ("name", "changed"), [(name, changed) for name in STEPS for changed in STEPS[name]]
)
def test_steps_and_penalties_may_change_with_a_fit_but_not_on_a_stream(name, changed):
    parameters = {changed: STEPS[name][changed]}
    check_refused(learned(name, "stream").set_params(**parameters), changed, "stream", "stream")
    model = goes_on(learned(name, "fit").set_params(**parameters), "fit")
    assert model.get_params()[changed] == parameters[changed]
    goes_on(learned(name, "fit").set_params(**parameters), "stream")  # which begins with them


@pytest.mark.parametrize("how", ["stream", "fit"])
@pytest.mark.parametrize("name", MODELS)
def test_what_shapes_no_model_may_change(name, how):
    model = learned(name, "stream")
    known = model.get_params().keys() - STEPS.get(name, {}).keys()
    model.set_params(**{changed: FREE[changed] for changed in FREE if changed in known})
    goes_on(model, how)


def test_the_message_says_what_was_and_the_cure():
    model = learned("ML3", "stream").set_params(n_models=7)
    with pytest.raises(ValueError) as raised:
        model.partial_fit(X, y)
    assert str(raised.value) == (
        "n_models=7 differs from the 2 of the stream that is to go on. Leave it as it was, or "
        "start afresh with fit or a clone."
    )
    model = learned("ML3", "fit").set_params(n_models=7, warm_start=True)
    with pytest.raises(ValueError, match=r"of the fit that .* with warm_start=False or a"):
        model.fit(X, y)


def test_a_coding_that_is_changed_in_place_is_noticed():
    model = learned("LL-SVM", "stream").set_params(coding__n_anchors=9)
    check_refused(model, "coding", "stream", "stream")


def test_a_clone_and_a_fit_start_afresh():
    model = learned("ML3", "stream").set_params(n_models=3)
    assert clone(model).partial_fit(X, y, [0, 1, 2]).local_coef_.shape[1] == 3
    assert model.fit(X, y).local_coef_.shape[1] == 3
    assert model.partial_fit(X, y).local_coef_.shape[1] == 3


@pytest.mark.parametrize("learn", ["stream", "fit"])
@pytest.mark.parametrize("name", MODELS)
def test_files_know_what_a_model_began_with(name, learn, tmp_path):
    model = learned(name, learn)
    loclin.io.save(model, tmp_path / "model.loclin")
    changed = next(iter(SHAPES[name]))
    check_refused(
        loclin.io.load(tmp_path / "model.loclin").set_params(**{changed: SHAPES[name][changed]}),
        changed, "stream", learn,
    )  # fmt: skip
    again = goes_on(loclin.io.load(tmp_path / "model.loclin"), "stream")
    expected = goes_on(model, "stream").decision_function(X)
    np.testing.assert_array_equal(again.decision_function(X), expected)


def test_models_of_earlier_versions_go_on_and_are_held_to_their_parameters_from_then_on():
    model = learned("LL-SVM", "stream")
    del model._begun
    goes_on(model, "stream").set_params(bias="global")
    check_refused(model, "bias", "stream", "stream")


def test_a_frozen_coding_is_what_it_has_learned():
    codings = [
        FrozenEstimator(SoftAssignmentCoding(4, 2, random_state=s).fit(X)) for s in (0, 0, 1)
    ]
    model = LLSVMClassifier(codings[0], **SHORT).partial_fit(X, y, [0, 1, 2])
    model.set_params(coding=codings[1]).partial_fit(X, y)
    check_refused(model.set_params(coding=codings[2]), "coding", "stream", "stream")


@pytest.mark.parametrize(
    "changed", [{"n_folds": 3}, {"estimators": [ML3Classifier(3, max_iter=2)]}]
)
def test_an_ensemble_keeps_its_members(changed):
    model = LocallyLinearEnsemble([ML3Classifier(2, max_iter=2)], n_folds=2, random_state=0)
    model.partial_fit(X, y, [0, 1, 2]).partial_fit(X, y)
    before = dict(vars(model.set_params(**changed)))
    with pytest.raises(ValueError, match=r"(?s)differs from the .* of the stream that is to go on"):
        model.partial_fit(X, y)
    assert vars(model) == before
    model.fit(X, y)


@pytest.mark.parametrize(
    ("value", "other", "same"),
    [
        (None, None, True), (None, 3, False), ("auto", 3, False), (1, 1.0, True),
        ("kmeans", X[:3], False), (X[:3], X[:3].tolist(), True), (X[:3], X[:4], False),
        (X[:3], X[1:4], False), ([1, "a"], [1, "a"], True), ([1, "a"], [1, "b"], False),
        (SoftAssignmentCoding(3, random_state=0), SoftAssignmentCoding(3, random_state=1), True),
        (SoftAssignmentCoding(3), SoftAssignmentCoding(4), False),
        (SoftAssignmentCoding(3), "random", False),
        (SoftAssignmentCoding(anchors=X[:3]), SoftAssignmentCoding(anchors=X[:3].copy()), True),
        (SoftAssignmentCoding(anchors=X[:3]), SoftAssignmentCoding(anchors=X[1:4]), False),
    ],
)  # fmt: skip
def test_what_is_the_same(value, other, same):
    assert is_same(value, other) is same
    assert is_same(other, value) is same
