"""Measuring: the front, intervals, timing, size, stratified rows."""

import pickle
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier

from loclin.cli._measure import (
    interval,
    log_loss,
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


def test_log_loss_is_that_of_known_labels():
    X, y = np.zeros((4, 1)), np.array([0, 1, 1, 1])
    model = DummyClassifier(strategy="prior").fit(X, y)
    expected = -np.log([0.25, 0.75]).mean()
    assert log_loss(model, X, np.array([0, 1, -1, -1])) == pytest.approx(expected)
