"""The measures of `benchmarks.explanations`, against plain sums and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import auc
from sklearn.preprocessing import StandardScaler

from benchmarks import explanations
from benchmarks._explainers import (
    BOTH,
    PROBABILITY,
    SCORE,
    Explained,
    by_contributions,
    of_classes,
    question,
)
from loclin import CSVMClassifier, ForestClassifier, LocallyLinearEnsemble, ML3Classifier


def fitted(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 2 - n_classes], y[y > 2 - n_classes]
    X = StandardScaler().fit_transform(X)
    return LogisticRegression().fit(X, y), X


@pytest.mark.parametrize("n_classes", [2, 3])
def test_areas(n_classes):
    model, X = fitted(n_classes)
    rows = X[::30]
    order = np.random.default_rng(0).random(rows.shape).argsort(axis=1)
    deletion, insertion = [], []
    for row, features in zip(rows, order, strict=True):
        won = model.predict_proba([row])[0].argmax()
        deleted, inserted = [row.copy()], [np.zeros(4)]
        for feature in features:
            deleted.append(deleted[-1].copy())
            deleted[-1][feature] = 0
            inserted.append(inserted[-1].copy())
            inserted[-1][feature] = row[feature]
        steps = np.linspace(0, 1, 5)
        deletion.append(auc(steps, model.predict_proba(deleted)[:, won]))
        insertion.append(auc(steps, model.predict_proba(inserted)[:, won]))
    found = explanations.areas(model, rows, order)
    np.testing.assert_allclose(found, [np.mean(deletion), np.mean(insertion)], rtol=1e-12)


@pytest.mark.parametrize("space", BOTH)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_question_is_the_winner_against_the_second(n_classes, space):
    model, X = fitted(n_classes)
    chances = np.sort(model.predict_proba(X), axis=1)
    asked = question(model, X, X, space)
    expected = chances[:, -1]
    if space == SCORE:
        expected = np.log(chances[:, -1] / chances[:, -2])
    np.testing.assert_allclose(asked.values(), expected, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_of_a_linear_model_sum_to_its_margin(n_classes):
    model, X = fitted(n_classes)
    asked = question(model, X, X, SCORE)
    values = X * model.coef_[0]
    if n_classes == 3:
        values = X[:, :, None] * model.coef_.T
    found = of_classes(asked, values, model.intercept_)
    np.testing.assert_allclose(found.added.sum(axis=1) + found.base, asked.values(), rtol=1e-9)


def test_one_probability_of_two_classes_is_told_of_both():
    model, X = fitted(2)
    asked = question(model, X, X, PROBABILITY)
    chances = model.predict_proba(X)[:, 1]
    base = chances.mean()
    values = np.linspace(0.1, 0.4, 4) * (chances - base)[:, None]
    found = of_classes(asked, values, base)
    np.testing.assert_allclose(found.added.sum(axis=1) + found.base, asked.values(), rtol=1e-12)


def test_contributions_of_an_additive_model_are_its_shape_functions():
    _, X = fitted(2)
    y = load_iris().target[50:]
    model = CSVMClassifier(1, pieces=3, random_state=0).fit(X, y)
    asked = question(model, X, X, SCORE)
    found = by_contributions(asked, 0)
    signs, at_mean = asked.weights[:, 1], model.decision_function(0 * X[:1])[0]
    for k in range(4):
        alone = np.zeros_like(X)
        alone[:, k] = X[:, k]
        moved = signs * (model.decision_function(alone) - at_mean)
        np.testing.assert_allclose(found.added[:, k], moved, atol=1e-9)
    np.testing.assert_allclose(found.base, signs * at_mean, atol=1e-9)


def test_contributions_of_an_ensemble_sum_to_the_score():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    kinds = [ML3Classifier(2, pieces=3, max_iter=3), ForestClassifier(3)]
    model = LocallyLinearEnsemble(kinds, n_folds=2, random_state=0).fit(X, y)
    asked = question(model, X, X, SCORE)
    found = by_contributions(asked, 0)
    np.testing.assert_allclose(found.added.sum(axis=1) + found.base, asked.values(), atol=1e-9)


def test_changes_are_shares():
    one = Explained(np.array([[1.0, -3.0], [2.0, 0.0], [6.0, 0.0]]), np.zeros(3))
    other = Explained(np.array([[1.0, -3.0], [2.0, 3.0], [6.0, 0.0]]), np.zeros(3))
    assert explanations.distance(one, one) == 0
    assert explanations.distance(one, other) == pytest.approx(25)
    assert explanations.tops_changed(one, other) == pytest.approx(100 / 3)


def test_means_are_over_sets_and_less_than_random():
    lines = []
    for k, name in enumerate(("a", "b", "c")):
        head = {"set": name, "model": "M", "error": 1.0}
        lines.append(head | {"way": "random order", "deletion": 0.5, "insertion": 0.1 * k})
        figures = dict.fromkeys(explanations.FIGURES, 3 * k**2)
        lines.append(head | {"way": "W", "space": SCORE} | figures)
    (found,) = explanations.means(lines)
    assert found["set"] == "mean of 3"
    assert (found["way"], found["ms"], found["deletion"]) == ("W", 5, 4.5)
    assert found["insertion"] == pytest.approx(4.9)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(explanations, "LIBRARIES", {"no_such_module": "some-package"})
    with pytest.raises(SystemExit, match="pip install some-package"):
        explanations.main(["heart"])
