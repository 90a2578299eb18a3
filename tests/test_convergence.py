"""Fits that end at max_iter say so; those that end by themselves, streams and trials do not."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from loclin import (
    L3MClassifier,
    LDKLClassifier,
    LLSVMClassifier,
    LMKLClassifier,
    LocallyLinearEnsemble,
    ML3Classifier,
    SAPLClassifier,
    USSVMClassifier,
)

each = pytest.mark.parametrize

MODELS = {
    "ML3": ML3Classifier(4, random_state=0),
    "LL-SVM": LLSVMClassifier(random_state=0),
    "SAPL": SAPLClassifier(10, 3, random_state=0),
    "L3M": L3MClassifier(2, random_state=0),
    "L3M, online": L3MClassifier(2, solver="online", random_state=0),
    "US-SVM": USSVMClassifier(6, beta="scale", random_state=0),
    "LDKL": LDKLClassifier(2, random_state=0),
    "L-MKL": LMKLClassifier(2, solver="sgd", random_state=0),
}
LEVEL = r"had not levelled off \(tol=0.\d+\) when max_iter=\d+ iterations were done. Raise max_iter"


def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)


@each("name", MODELS)
def test_a_fit_that_max_iter_ends_warns(name):
    with pytest.warns(ConvergenceWarning, match=LEVEL) as caught:
        MODELS[name].set_params(max_iter=1).fit(*problem())
    assert len(caught) == 1, "trials, folds and temperatures say nothing"
    assert caught[0].filename == __file__


@each("name", MODELS)
def test_a_default_fit_ends_by_itself(name):
    model = MODELS[name].set_params(max_iter=type(MODELS[name])().max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*problem())
    assert model.n_iter_ < model.max_iter


def test_held_out_accuracy_is_named():
    model = ML3Classifier(4, early_stopping=True, max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="The held-out accuracy had not levelled off"):
        model.fit(*problem())


def test_a_stream_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ML3Classifier(4, random_state=0).partial_fit(*problem(), classes=[0, 1, 2])


def test_members_of_an_ensemble_warn():
    members = [ML3Classifier(4, max_iter=1)]
    with pytest.warns(ConvergenceWarning, match=LEVEL):
        LocallyLinearEnsemble(members, random_state=0).fit(*problem())
