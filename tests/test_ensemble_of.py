"""Ensembles of classifiers that were fitted before."""

import multiprocessing
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import loclin
import loclin.io
from loclin import LocallyLinearEnsemble

FEW = {"alpha": "scale", "metric": None, "random_state": 0, "max_iter": 10}
X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def members_of(rows, labels):
    return [
        loclin.ML3Classifier(2, **FEW).fit(rows, labels),
        loclin.SAPLClassifier(4, 2, **FEW).fit(rows, labels),
        loclin.L3MClassifier(2, alpha="scale", random_state=0).fit(rows, labels),
    ]


def fit_half(rows, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return loclin.ML3Classifier(random_state=0).fit(rows, labels)


@pytest.fixture(scope="module")
def fitted():
    return members_of(X[::2], NAMES[y[::2]])


def test_scores_are_the_members_by_shares_and_units(fitted):
    whole = LocallyLinearEnsemble.of(fitted, X[1::2], NAMES[y[1::2]])
    exact = sum(
        share / unit * one.decision_function(X)
        for one, share, unit in zip(fitted, whole.shares_, whole.units_, strict=True)
    )
    found = whole.decision_function(X)
    np.testing.assert_allclose(found, exact)
    assert whole.shares_.sum() == pytest.approx(1)
    assert whole.score(X, NAMES[y]) > 0.9
    np.testing.assert_allclose(whole.predict_proba(X).sum(axis=1), 1)
    coef, intercept = whole.local_model(X)
    np.testing.assert_allclose(np.einsum("ncd,nd->nc", coef, X) + intercept, found)


def test_members_are_not_changed_and_the_ensemble_goes_on(fitted, tmp_path):
    streaming, before = fitted[:2], fitted[0].decision_function(X)
    whole = LocallyLinearEnsemble.of(streaming, X[1::2], NAMES[y[1::2]])
    loclin.io.save(whole, tmp_path / "e.loclin")
    np.testing.assert_array_equal(
        loclin.io.load(tmp_path / "e.loclin").decision_function(X), whole.decision_function(X)
    )
    whole.partial_fit(X, NAMES[y])
    np.testing.assert_array_equal(fitted[0].decision_function(X), before)
    assert whole.score(X, NAMES[y]) > 0.9
    refit = whole.set_params(n_folds=2).fit(X, NAMES[y])
    kept = [type(one) for one, share in zip(streaming, refit.shares_, strict=True) if share > 0]
    assert [type(one) for one in refit.members_[::2]] == kept


def test_names_of_features():
    frame = pd.DataFrame(X, columns=list("abcd"))
    members = [loclin.ML3Classifier(2, **FEW).fit(frame, y)]
    whole = LocallyLinearEnsemble.of(members, frame, y)
    assert whole.feature_names_in_.tolist() == list("abcd")
    assert members[0].feature_names_in_.tolist() == list("abcd")
    assert whole.score(frame, y) > 0.9
    with pytest.raises(ValueError, match="members know their features as"):
        LocallyLinearEnsemble.of(members, frame[list("dcba")], y)


def test_what_does_not_go_together_is_refused(fitted):
    def refused(members, told, rows=X, error=ValueError):
        with pytest.raises(error, match=told):
            LocallyLinearEnsemble.of(members, rows, NAMES[y])

    one = fitted[0]
    ml3 = loclin.ML3Classifier(2, **FEW)
    refused([], "no list of fitted classifiers")
    refused(one, "no list of fitted classifiers")
    refused(iter([one]), "no list of fitted classifiers")
    refused([one, "ML3"], "members has a str")
    refused([one, loclin.SVMKNNClassifier()], "members has a SVMKNNClassifier.*Nearest rows")
    refused([one, ml3], "not fitted", error=NotFittedError)
    two = loclin.ML3Classifier(2, **FEW).fit(X[:100], NAMES[y[:100]])
    refused([one, two], "members have different classes")
    refused([two], "labels that are not among the classes")
    three = loclin.ML3Classifier(2, **FEW).fit(X[:, :3], NAMES[y])
    refused([one, three], "members have 4 and 3 features")
    refused([one], "X has 3 features", X[:, :3])
    single = loclin.ML3Classifier(2, **FEW).fit(X.astype(np.float32), NAMES[y])
    refused([one, single], "float32 and float64")


def test_two_processes_learn_half_each():
    rows, labels = load_digits(return_X_y=True)
    rest, X_test, of_rest, y_test = train_test_split(
        rows, labels, test_size=0.3, random_state=0, stratify=labels
    )
    learned, X_out, y_learned, y_out = train_test_split(
        rest, of_rest, test_size=0.2, random_state=0, stratify=of_rest
    )
    halves = [(learned[k::2], y_learned[k::2]) for k in range(2)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        members = pool.starmap(fit_half, halves)
    whole = LocallyLinearEnsemble.of(members, X_out, y_out)
    alone = [1 - one.score(X_test, y_test) for one in members]
    assert 1 - whole.score(X_test, y_test) <= min(alone)
    assert log_loss(y_test, whole.predict_proba(X_test)) < 0.15
