"""Measuring: the front, intervals, timing, size, stratified rows."""

import pickle
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from loclin.cli._measure import (
    Answers,
    answers,
    chance,
    figure,
    interval,
    loss,
    pareto_front,
    pickled_bytes,
    predict_seconds,
    stratified_rows,
)

few_values = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0])


@given(st.lists(st.tuples(few_values, few_values), max_size=12))
def test_front_is_what_nothing_dominates(points):
    errors, costs = [point[0] for point in points], [point[1] for point in points]
    expected = []
    for i in range(len(points)):
        dominated = False
        for j in range(len(points)):
            no_worse = errors[j] <= errors[i] and costs[j] <= costs[i]
            better = errors[j] < errors[i] or costs[j] < costs[i]
            dominated = dominated or (no_worse and better)
        expected.append(not dominated)
    assert pareto_front(errors, costs) == expected


def test_front_keeps_ties():
    assert pareto_front([0.1, 0.1, 0.2, 0.1], [1.0, 1.0, 0.5, 2.0]) == [True, True, True, False]


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_interval_is_wilsons(counts):
    wrong, n = counts
    z = 1.959963984540054
    share = wrong / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert interval(wrong, n) == pytest.approx((middle - half, middle + half), abs=1e-9)


def test_size_is_the_length_of_the_pickle():
    X = np.random.default_rng(0).normal(size=(3000, 40))
    model = KNeighborsClassifier().fit(X, np.arange(3000) % 2)
    assert pickled_bytes(model) == len(pickle.dumps(model, protocol=5))


@pytest.mark.parametrize(("first", "rows"), [(0.001, 5000), (2.0, 714), (1000.0, 100)])
def test_slow_models_are_timed_on_fewer_rows(monkeypatch, first, rows):
    monkeypatch.setattr("loclin.cli._measure.LEAST_SECONDS", 0)
    X = np.zeros((5000, 1))
    model = DummyClassifier().fit(X, np.arange(5000) % 2)
    seconds, timed = predict_seconds(model, X, first)
    assert timed == rows
    assert 0 < seconds < 1e-3


def test_time_is_the_median_per_row():
    ticks = iter([0, 5, 10, 11, 20, 22, 30, 33, 40, 44, 50, 50.5, 60, 69])
    X = np.zeros((10, 1))
    model = DummyClassifier().fit(X, np.arange(10) % 2)
    assert predict_seconds(model, X, 1e-6, lambda: next(ticks)) == (0.3, 10)


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=6),
    st.integers(1, 200),
    st.integers(0, 3),
    st.integers(1, 8),
)
def test_stratified_rows_keep_shares(counts, size, seed, least):
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    rows = stratified_rows(y, size, seed, least)
    assert np.array_equal(rows, stratified_rows(y, size, seed, least))
    assert len(np.unique(rows)) == len(rows)
    if size >= len(y):
        assert len(rows) == len(y)
        return
    kept = np.bincount(y[rows], minlength=len(counts))
    for have, all_of_them in zip(kept, counts, strict=True):
        share = size * all_of_them / len(y)
        assert have >= min(least, all_of_them)
        assert have <= all_of_them
        assert abs(have - share) <= max(least, 0.5 + 1e-9)


# --- figures --------------------------------------------------------------------------------------


def said(scores, are_shares=True):
    scores = np.asarray(scores, float)
    return Answers(scores.argmax(axis=1), scores, are_shares)


def test_log_loss_is_that_of_known_labels():
    X, y = np.zeros((4, 1)), np.array([0, 1, 1, 1])
    model = DummyClassifier(strategy="prior").fit(X, y)
    expected = -np.log([0.25, 0.75]).mean()
    found = answers(model, X, 2)
    known = np.array([0, 1, -1, -1])
    assert figure("log_loss", known, found) == pytest.approx(expected)
    assert figure("error", known, found) == 0.75, "labels that training lacks are errors"
    assert figure("log_loss", known, Answers(found.predicted, found.scores, False)) is None


def test_scores_rank_rows_where_there_are_no_probabilities():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    model = LinearSVC().fit(X, np.array([0, 0, 1, 1]))
    found = answers(model, X, 2)
    assert not found.are_shares
    assert figure("auc", np.array([0, 0, 1, 1]), found) == 1.0
    assert figure("auc", np.array([1, 1, 0, 0]), found) == 0.0


def test_figures_of_classes_that_training_lacks_are_of_no_share():
    X, y = np.zeros((4, 1)), np.array([0, 0, 2, 2])
    found = answers(DummyClassifier(strategy="prior").fit(X, y), X, 3)
    assert found.scores[:, 1].tolist() == [0, 0, 0, 0]


def slow_auc(y, scores):
    """Return the share of pairs of a row of a class and one of others in the right order."""
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[y] for b in scores[~y]]
    return np.mean(pairs)


@given(st.integers(2, 4), st.integers(0, 50))
def test_auc_is_the_share_of_pairs_in_order(n_classes, seed):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=12)]
    scores = rng.integers(4, size=(len(y), n_classes)) / 4.0
    if n_classes == 2:
        scores[:, 0] = 1 - scores[:, 1]
    expected = np.mean([slow_auc(y == k, scores[:, k]) for k in range(n_classes)])
    assert figure("auc", y, said(scores)) == pytest.approx(expected)


def test_average_precision_is_of_the_rarer_class():
    y = np.array([0, 0, 0, 0, 1, 1])
    scores = np.array([0.1, 0.2, 0.9, 0.3, 0.8, 0.95])
    # ranked by the score of class 1: rows 5, 2, 4, ...: precision 1 and 2/3 at its two rows
    found = figure("average_precision", y, said(np.stack([1 - scores, scores], axis=1)))
    assert found == pytest.approx((1 + 2 / 3) / 2)


def test_balanced_accuracy_is_the_mean_over_classes():
    y = np.array([0, 0, 0, 0, 1])
    assert figure("balanced_accuracy", y, said(np.tile([0.9, 0.1], (5, 1)))) == 0.5


def test_a_loss_is_lower_where_the_figure_is_better():
    assert loss("auc", 0.9) < loss("auc", 0.8)
    assert loss("error", 0.1) < loss("error", 0.2)
    assert loss("log_loss", None) == np.inf


@pytest.mark.parametrize("metric", ["error", "log_loss", "auc", "balanced_accuracy"])
def test_chance_tells_models_apart(metric):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    right = np.clip(np.where(y == 1, 0.8, 0.2) + rng.normal(scale=0.15, size=400), 0.01, 0.99)
    good = said(np.stack([1 - right, right], axis=1))
    guess = rng.uniform(0.05, 0.95, size=400)
    bad = said(np.stack([1 - guess, guess], axis=1))
    assert chance(metric, y, bad, good) < 0.02
    assert chance(metric, y, good, good) == 1.0
    other = rng.uniform(0.05, 0.95, size=400)
    alike = said(np.stack([1 - other, other], axis=1))
    assert chance(metric, y, bad, alike) > 0.1
