"""Fewer local models: what they compute, and what they cost."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import loclin
import loclin.io
from loclin.inspection import merge_models, merging
from loclin.portable import describe
from tests.test_flip import made

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize
X, Y = load_iris(return_X_y=True)
CELLS, CANCER = load_breast_cancer(return_X_y=True)
NAMES = [
    "ML3Classifier", "L3MClassifier", "LLSVMClassifier", "SAPLClassifier", "CSVMClassifier",
    "LDKLClassifier", "LMKLClassifier",
]  # fmt: skip


def same_models(classifier, groups, pools):
    """Hold models of a group to be one; the other places of pooled ones say nothing."""
    for k, of_scorer in enumerate(groups):
        assert sorted(place for group in of_scorer for place in group) == list(
            range(classifier.local_coef_.shape[1])
        )
        for first, *others in of_scorer:
            for place in others:
                one = np.zeros_like if pools else np.asarray
                expected = one(classifier.local_coef_[k, first])
                np.testing.assert_array_equal(classifier.local_coef_[k, place], expected)


@each("name", NAMES)
@each("n_classes", [2, 3])
def test_models_are_fewer_and_errors_as_allowed(name, n_classes):
    rows, labels = (CELLS[:200], CANCER[:200]) if n_classes == 2 else (X, Y)
    model = make_pipeline(StandardScaler(), made(name)).fit(rows, labels)
    before = model.decision_function(rows)
    for most in (0.0, 0.05):
        merged = merge_models(model, rows, labels, max_increase=most)
        errors = [np.mean(one.predict(rows) != labels) for one in (model, merged.model)]
        assert (merged.error_before, merged.error_after) == pytest.approx(errors)
        assert merged.error_after <= merged.error_before + most
        n_before = model[-1].local_coef_.shape[0] * model[-1].local_coef_.shape[1]
        assert len(merged.groups) <= merged.n_models < n_before
        same_models(merged.model[-1], merged.groups, name == "ML3Classifier")
        z = model[:-1].transform(rows)
        coef, intercept = merged.model[-1].local_model(z)
        scores = np.einsum("n...d,nd->n...", coef, z) + intercept
        np.testing.assert_allclose(scores, merged.model[-1].decision_function(z), atol=1e-9)
    np.testing.assert_array_equal(model.decision_function(rows), before)


@each("name", ["ML3Classifier", "SAPLClassifier"])
def test_what_the_search_scores_is_what_the_merged_model_says(name, monkeypatch):
    written, kept = merging._with, []

    def noting(model, classifier, scorers, q):
        kept.append([merging._score(one, q) for one in scorers])
        return written(model, classifier, scorers, q)

    monkeypatch.setattr(merging, "_with", noting)
    model = made(name, pieces=3, metric="diagonal").fit(X, Y)
    merged = merge_models(model, X, Y, max_increase=0.1).model
    found = np.stack(kept[-1], axis=1) + model.intercept_
    np.testing.assert_allclose(found, merged.decision_function(X), atol=1e-9)


def test_a_mix_of_two_models_changes_the_score_least():
    rng = np.random.default_rng(0)
    codes, responses = rng.uniform(0, 1, (30, 3)), rng.normal(size=(30, 3))
    one = merging._Scorer([[0], [1], [2]], rng.normal(size=(3, 5)), responses, codes)
    (mix,) = merging._mixes(one, 0, 2, None)
    before = (codes * responses).sum(axis=1)

    def change(share):
        score = merging._merged_score(one, 0, 2, np.array([share, 1 - share]), None)
        return np.square(score - before).sum()

    assert mix.sum() == pytest.approx(1)
    assert change(mix[0]) == pytest.approx(min(map(change, np.linspace(-1, 2, 3001))), rel=1e-5)
    assert merging._merged(one, 0, 2, mix).groups == [[1], [0, 2]]


def test_a_merged_model_is_described_and_saved(tmp_path):
    model = made("ML3Classifier").fit(X, Y)
    merged = merge_models(model, X, Y).model
    described = describe(merged)
    np.testing.assert_allclose(described.decision_function(X), merged.decision_function(X))
    loclin.io.save(merged, tmp_path / "merged.loclin")
    again = loclin.io.load(tmp_path / "merged.loclin")
    np.testing.assert_array_equal(again.decision_function(X), merged.decision_function(X))


@each("kind", ["USSVMClassifier", "ForestClassifier", "SVMKNNClassifier", "LocallyLinearEnsemble"])
def test_models_that_have_none_to_merge_are_refused(kind):
    model = made(kind).fit(X, Y)
    with pytest.raises(TypeError, match=f"{kind} has no linear models of regions"):
        merge_models(model, X, Y)


def test_a_wrong_increase_is_refused():
    model = made("ML3Classifier").fit(X, Y)
    with pytest.raises(ValueError, match="max_increase=-0"):
        merge_models(model, X, Y, max_increase=-0.1)
