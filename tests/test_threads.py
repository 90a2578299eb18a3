"""Small products run on one thread, whatever the user's limit: threads wait for one another."""

import gc
import time
import warnings
from threading import Event, Thread

import numpy as np
import pytest
import sklearn.cluster
from sklearn.base import clone
from sklearn.datasets import load_iris
from threadpoolctl import threadpool_info, threadpool_limits

import loclin
from loclin.engine import threads
from loclin.engine.threads import side_by_side, threads_for
from loclin.engine.warned import quiet
from loclin.l3m import outputs as l3m_outputs
from loclin.ussvm import solver as _ussvm

# BLAS and OpenMP as loclin's imports load them; a later one, such as Numba's, is not ours to hold.
OURS = {pool["filepath"] for pool in threadpool_info()}


def pools():
    info = threadpool_info()
    return {pool["filepath"]: pool["num_threads"] for pool in info if pool["filepath"] in OURS}


@pytest.fixture
def two_threads():
    with threadpool_limits(2):
        if max(pools().values()) < 2:
            pytest.skip("the thread pools were built for one thread")
        yield pools()


def test_small_products_get_one_thread_large_ones_what_the_user_set(two_threads):
    with threads_for(1e6):
        assert set(pools().values()) == {1}
    with threads_for(1e9):
        assert pools() == two_threads
    assert pools() == two_threads


@pytest.mark.parametrize(
    ("model", "where", "name"),
    [
        (loclin.L3MClassifier(2, alpha="scale", max_iter=2), l3m_outputs, "minimize"),
        (loclin.USSVMClassifier(3, beta="scale", n_nonzero=2, max_iter=2), _ussvm, "solve_problem"),
        (loclin.LLSVMClassifier(max_iter=2, alpha="scale"), sklearn.cluster.KMeans, "fit"),
    ],
    ids=["L-BFGS", "codes", "k-means"],
)
def test_a_fit_to_few_rows_runs_on_one_thread(model, where, name, two_threads, monkeypatch):
    seen, real = [], getattr(where, name)

    def spy(*args, **kwargs):
        seen.append(max(pools().values()))
        return real(*args, **kwargs)

    monkeypatch.setattr(where, name, spy)
    X, y = load_iris(return_X_y=True)
    model.set_params(random_state=0).fit(X - X.mean(axis=0), y)
    assert seen
    assert set(seen) == {1}
    assert pools() == two_threads


@pytest.mark.parametrize(
    "model",
    [
        loclin.ML3Classifier(3, metric="auto", max_iter=3, random_state=0),
        loclin.LLSVMClassifier(solver="dual_cd", tol=0.1, random_state=0),
        loclin.LocallyLinearEnsemble([loclin.ML3Classifier(3, max_iter=3)], random_state=0),
    ],
    ids=["short fits", "classes", "members"],
)
def test_jobs_change_nothing_and_leave_the_limits_as_they_were(model, two_threads):
    X, y = load_iris(return_X_y=True)
    alone = clone(model).fit(X, y).predict_proba(X)
    beside = clone(model).set_params(n_jobs=2).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(alone, beside)
    assert pools() == two_threads


def test_threads_leave_the_filters_of_warnings_as_they_were():
    # the second to enter leaves last, and restores what the first had set
    before, first, second, left = list(warnings.filters), Event(), Event(), Event()

    def overlap(k):
        if k == 0:
            with quiet():
                first.set()
                second.wait(10)
            left.set()
        else:
            first.wait(10)
            with quiet():
                second.set()
                left.wait(10)

    side_by_side(overlap, [(0,), (1,)], 2)
    assert warnings.filters == before


def test_a_task_that_fails_calls_the_others_off():
    begun, passes = Event(), []

    def task(k):
        if k == 0:
            begun.wait(10)
            raise ValueError("the first")
        for _ in range(10_000):
            with threads_for(1.0):
                begun.set()
                passes.append(k)

    with pytest.raises(ValueError, match="the first"):
        side_by_side(task, [(0,), (1,)], 2)
    assert len(passes) < 10_000


def test_an_interrupt_waits_for_a_thread_whose_start_it_cut_short(monkeypatch):
    start, began, ended = Thread.start, [], []

    def cut_short(thread):
        start(thread)
        began.append(thread)
        if len(began) == 2:
            raise KeyboardInterrupt

    def task(_):
        time.sleep(0.1)
        ended.append(None)

    monkeypatch.setattr(Thread, "start", cut_short)
    with pytest.raises(KeyboardInterrupt):
        side_by_side(task, [(0,), (1,)], 2)
    n_ended = len(ended)
    time.sleep(0.3)
    assert len(ended) == n_ended  # nothing went on


def test_limits_are_restored_though_a_second_interrupt_comes(monkeypatch):
    restored = []

    class Controller:
        def info(self):
            return "before"

        def limit(self, limits):
            restored.append(limits)
            if len(restored) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(threads, "_controller", Controller)
    with pytest.raises(ZeroDivisionError), threads.limits_restored():
        _ = 1 / 0
    assert restored == ["before", "before"]


@pytest.mark.parametrize("manager", [threads.handling_restored, quiet])
def test_what_an_interrupt_kept_from_its_block_sets_back_nothing_later(manager):
    """It is entered, the block never begins, and it is collected when the outer ones are left."""
    handling = list(warnings.filters), np.geterr()
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")
        abandoned = manager()
        abandoned.__enter__()
    del abandoned
    gc.collect()
    assert (list(warnings.filters), np.geterr()) == handling
