"""Tuning: what is tried, when it ends, which rows it uses."""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform

from loclin.cli import _tune
from loclin.cli._compare import Skipped, compare, ranked
from loclin.cli._data import Data
from loclin.cli._settings import Settings
from loclin.cli._systems import Shape, System, described, pick, roster
from loclin.cli._tune import tune
from loclin.tables import TableEncoder


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_tune, "perf_counter", clock)
    return clock


@pytest.fixture
def fits(monkeypatch, clock):
    """Replace fitting: a fit takes ``seconds(drawn)``, and its loss is ``loss(drawn)``.

    Folds differ by a hundredth, the same for all candidates.
    """
    calls = []

    def fake(system, drawn, fold, shape, settings):
        clock.now += fake.seconds(drawn)
        calls.append((dict(drawn), len(fold.y) + len(fold.y_valid)))
        return fake.loss(drawn) + 0.01 * (fold.X_valid.sum() % 3)

    fake.seconds = lambda drawn: 1e-6
    fake.loss = lambda drawn: 0.25
    fake.calls = calls
    monkeypatch.setattr(_tune, "_fit_and_score", fake)
    return fake


def rows_of(y, X=None):
    """Return data whose training rows are these."""
    X = np.arange(float(len(y)))[:, None] if X is None else X
    return Data("d", "", "", X, y, X, y, tuple(map(str, np.unique(y))))


def search(space, n=200, y=None, tell=lambda tried, best: None, **settings):
    y = np.arange(n) % 2 if y is None else y
    system = System("fake", lambda seed: None, space)
    settings = Settings(**{"budget": 1.0, **settings})
    return tune(system, rows_of(y), Shape(len(y), 1), settings, tell)


def test_defaults_come_first_then_the_grid_without_repetition(fits):
    found = search({"a": [1, 2, 3], "b": [1, 2]})
    tried = [drawn for drawn, _ in fits.calls[::5]]
    assert tried[0] == {}
    assert sorted((d["a"], d["b"]) for d in tried[1:]) == [
        (a, b) for a in (1, 2, 3) for b in (1, 2)
    ]
    assert found.tried == 7
    assert found.drawn == {}, "a tie stays with the first"
    assert tried[1:] != sorted(tried[1:], key=lambda d: (d["a"], d["b"])), "shuffled"


def test_order_of_candidates_is_fixed_by_the_seed(fits):
    def order(seed):
        fits.calls.clear()
        search({"a": loguniform(1, 10)}, candidates=4, seed=seed)
        return [drawn for drawn, _ in fits.calls]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_the_best_is_kept(fits):
    fits.loss = lambda drawn: {None: 0.2, 1: 0.22, 2: 0.1, 3: 0.11}[drawn.get("a")]
    found = search({"a": [1, 2, 3]})
    assert found.drawn == {"a": 2}
    assert 0.1 <= found.loss <= 0.12
    assert (found.folds, found.rows, found.needed) == (5, 200, 0.0)


def test_candidates_end_the_search(fits):
    assert search({"a": loguniform(1, 10)}, candidates=6).tried == 6


def test_where_nothing_is_to_choose_nothing_is_fitted(fits):
    found = search({})
    assert not fits.calls
    assert (found.tried, found.loss, found.needed) == (0, None, 0.0)


def test_hopeless_candidates_are_dropped_early(fits):
    fits.loss = lambda drawn: 0.9 if drawn else 0.05
    search({"a": [1]})
    assert [drawn for drawn, _ in fits.calls] == [{}] * 5 + [{"a": 1}]


def test_a_slightly_worse_candidate_sees_all_folds(fits):
    fits.loss = lambda drawn: 0.251 if drawn else 0.25
    search({"a": [1]})
    assert [drawn for drawn, _ in fits.calls] == [{}] * 5 + [{"a": 1}] * 5


def test_budget_ends_the_search_and_drops_the_candidate_it_cuts(fits):
    fits.seconds = lambda drawn: 0.11
    fits.loss = lambda drawn: 0.1 if drawn else 0.25
    found = search({"a": loguniform(1, 10)})
    assert found.seconds == pytest.approx(1.1)
    assert found.tried == 2
    assert found.drawn != {}, "the second candidate ended just as the budget did"
    fits.seconds = lambda drawn: 0.15
    found = search({"a": loguniform(1, 10)})
    assert found.seconds == pytest.approx(7 * 0.15)
    assert found.drawn == {}


def test_a_budget_that_is_too_short_says_what_is_enough(fits):
    fits.seconds = lambda drawn: 0.11
    short = search({"a": loguniform(1, 10)})
    assert short.tried == 2
    assert short.needed > 5 * 5 * 0.11
    assert search({"a": loguniform(1, 10)}, budget=short.needed).needed == 0.0
    assert search({"a": [1]}, budget=1.2).needed == 0.0, "there are no more candidates"
    own = System("own", lambda seed: None, {"a": loguniform(1, 10)}, own=True)
    found = tune(own, rows_of(np.arange(200) % 2), Shape(200, 1), Settings(budget=1.0))
    assert (found.tried, found.needed) == (2, 0.0), "its fits find what matters most"
    fits.seconds = lambda drawn: 5.0
    found = tune(own, rows_of(np.arange(200) % 2), Shape(200, 1), Settings(budget=1.0))
    assert (found.folds, found.needed) == (1, 0.0)


def test_first_candidate_is_scored_however_slow(fits):
    fits.seconds = lambda drawn: 5.0
    found = search({"a": [1]})
    assert (found.tried, found.folds) == (1, 1)
    assert found.needed > 5 * 5.0


def test_first_candidate_may_take_two_budgets(fits):
    fits.seconds = lambda drawn: 0.35
    found = search({"a": [1]})
    assert (found.tried, found.folds) == (1, 5)


def test_folds_are_as_many_as_the_smallest_class_has_rows(fits):
    assert search({"a": [1]}, y=np.array([0] * 30 + [1] * 3)).folds == 3


def test_failing_candidates_are_passed_over(fits):
    def failing(drawn):
        if not drawn:
            raise ValueError("not this one")
        return 0.1

    fits.loss = failing
    assert search({"a": [1]}).drawn == {"a": 1}
    with pytest.raises(ValueError, match="not this one"):
        search({"a": [0]}, candidates=1)


def test_large_data_are_tuned_on_part_of_the_rows(fits):
    y = np.repeat([0, 1], [90_000, 10_000])
    assert search({"a": [1]}, y=y).rows == _tune.MOST_ROWS
    assert {n_rows for _, n_rows in fits.calls} == {_tune.MOST_ROWS}


def test_watch_is_told_before_each_fit(fits):
    fits.loss = lambda drawn: {None: 0.3, 1: 0.31, 2: 0.1}[drawn.get("a")]
    told = []
    search({"a": [1, 2]}, tell=lambda tried, best: told.append((tried, round(best, 1))))
    assert [tried for tried, _ in told] == [0] * 5 + [1] * 5 + [2] * 5
    assert told[-1] == (2, 0.3)


def test_search_ends_where_the_best_no_longer_moves(fits):
    seen = []

    def better_six_times(drawn):
        seen.extend([drawn] if drawn not in seen else [])
        return 0.5 - 0.05 * min(seen.index(drawn), 6)

    fits.loss = better_six_times
    found = search({"a": loguniform(1, 10)}, candidates=60, budget=60.0)
    assert found.tried == 7 + _tune.STILL


def test_folds_of_a_table_are_encoded_by_their_own_rows():
    gap = [str(k) if k % 4 else "" for k in range(40)]  # the median of ten rows is another
    frame = pd.DataFrame({"x": [str(k % 7) for k in range(40)], "gap": gap})
    y = np.arange(40) % 2
    encoder = TableEncoder().fit(frame, y)
    data = replace(rows_of(y, encoder.transform(frame)), frame=frame, encoder=encoder)
    train, valid = np.arange(10), np.arange(10, 40)
    fold = _tune._encoded(data, train, valid)
    expected = TableEncoder().fit(frame.iloc[train], y[train])
    np.testing.assert_array_equal(fold.X_valid, expected.transform(frame.iloc[valid]))


# --- systems --------------------------------------------------------------------------------------


def test_what_is_drawn_is_written_out_for_the_rows_there_are():
    system = System("x", lambda seed: None)
    drawn = {"gamma*norm2": 2.0, "C": 3.0, "n_components": 400}
    few = system.resolve(drawn, Shape(100, 10, variance=0.7))
    many = system.resolve(drawn, Shape(1000, 10, variance=0.7))
    assert few == {"gamma": 2 / 7, "C": 3.0, "n_components": 100}
    assert many == {"gamma": 2 / 7, "C": 3.0, "n_components": 400}


def test_some_systems_run_only_where_they_are_asked_for():
    systems = roster()
    first = pick(None, systems)
    assert 0 < len(first) < len(systems)
    assert pick("all", systems) == systems
    (more,) = pick("csvm", systems)
    assert more not in first


def test_every_public_classifier_of_loclin_is_there(monkeypatch):
    from sklearn.dummy import DummyClassifier

    import loclin

    class LaterClassifier(DummyClassifier):
        pass

    class Unfinished(DummyClassifier, ABC):
        @abstractmethod
        def scores(self):
            pass

    monkeypatch.setattr(loclin, "LaterClassifier", LaterClassifier, raising=False)
    monkeypatch.setattr(loclin, "Unfinished", Unfinished, raising=False)
    later = ["LaterClassifier", "Unfinished", "gone"]
    monkeypatch.setattr(loclin, "__all__", [*loclin.__all__, *later])
    own = [system.name for system in roster() if system.own]
    public = [name for name in loclin.__all__ if name.endswith(("Classifier", "Ensemble"))]
    assert sorted(own) == sorted(public)
    assert own[-2:] == ["LaterClassifier", "LocallyLinearEnsemble"], "after those it is made of"


def test_own_classifiers_start_from_their_defaults_and_find_their_strength():
    for system in roster():
        if system.own:
            assert not system.start
            assert not [key for key in system.space if key.startswith("alpha")]
            own = system.build(0).get_params(deep=False)
            default = type(system.build(0))().get_params(deep=False)
            assert {**own, "random_state": 0} == {**default, "random_state": 0}


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge", "ignore:The duality gap is")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            system.name, marks=[pytest.mark.slow] if system.name == "USSVMClassifier" else []
        )
        for system in roster()
    ],
)
@pytest.mark.parametrize("sparse", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_system_fits_every_parameter_it_may_draw(name, sparse):
    (system,) = pick(name, roster())
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + y[:, None]
    if sparse:
        from scipy.sparse import csr_array

        X = csr_array(X * (rng.random(X.shape) < 0.5))
    shape = described(X)
    assert shape.sparse is sparse
    drawn = list(_tune._candidates(system, Settings(candidates=3)))
    assert len(drawn) == (3 if system.space else 1)
    for parameters in drawn:
        parameters = {k: 5 if k == "max_iter" else v for k, v in parameters.items()}
        model = system.make(parameters, shape, 0)
        if system.own and "max_iter" in model[-1].get_params():
            model[-1].set_params(max_iter=5)
        assert set(model.fit(X, y).predict(X)) <= {0, 1, 2}


def test_wide_sparse_data_are_no_tables_for_trees():
    from scipy.sparse import csr_array

    def reason(n, d):
        X, y = csr_array((n, d), dtype=float), np.arange(n) % 2
        data = Data("d", "", "", X, y, X, y, ("a", "b"))
        (outcome,) = compare(data, pick("histgradientboosting", roster()), Settings())
        assert isinstance(outcome, Skipped)
        return outcome.reason

    assert reason(4000, 50_000) == "needs dense features: 50,000 columns, 1.6 GB"
    assert reason(40, 50_000) == "needs dense features: 50,000 columns, 0.0 GB"


def test_models_are_picked_by_short_names_in_the_roster_order():
    names = [system.name for system in pick("SVC_rbf, linearsvc,majority", roster())]
    assert names == ["Majority", "LinearSVC", "SVC-rbf"]


@pytest.mark.parametrize("sparse", [False, True])
def test_described_variance_is_that_of_scaled_features(sparse):
    from scipy.sparse import csr_array
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    rng = np.random.default_rng(0)
    X = rng.normal(3, 5, size=(50, 6)) * (rng.random((50, 6)) < 0.4)
    X[:, 2] = 0 if sparse else 7
    scaled = (MaxAbsScaler() if sparse else StandardScaler()).fit_transform(X)
    given = csr_array(X) if sparse else X
    assert described(given).variance == pytest.approx(scaled.var())


@pytest.mark.slow
def test_ranked_marks_the_front_but_not_the_majority_class():
    y = np.arange(40) % 2
    X = np.random.default_rng(0).normal(size=(40, 2)) + 4 * y[:, None]
    data = Data("d", "", "", X, y, X, y, ("a", "b"))
    found = list(compare(data, pick("majority,knn", roster()), Settings(budget=0.05)))
    rows = ranked(found, "error")
    assert [(row.model, row.front) for row in rows] == [("kNN", True), ("Majority", False)]


@pytest.mark.parametrize(("threads", "expected"), [(1, 1), (2, 2)])
def test_fits_keep_to_their_threads(threads, expected):
    from sklearn.dummy import DummyClassifier
    from threadpoolctl import threadpool_info, threadpool_limits

    seen = []
    with threadpool_limits(expected):  # a pool built for one thread never has more
        reached = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    assert expected in reached.values()

    class Spy(DummyClassifier):
        def fit(self, X, y):
            pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
            seen.append(all(n == reached.get(path, n) for path, n in pools.items()))
            return super().fit(X, y)

    y = np.arange(40) % 2
    X = np.zeros((40, 1))
    data = Data("d", "", "", X, y, X, y, ("a", "b"))
    system = System("spy", lambda seed: Spy())
    before = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    list(compare(data, [system], Settings(threads=threads)))
    after = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    assert len(seen) == 2, "a warm-up and the last fit, as nothing is to choose"
    assert all(seen)
    assert before.items() <= after.items()
