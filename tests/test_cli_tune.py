"""Tuning: what is tried, when it ends, which rows it uses; and the last fit's rows."""

from abc import ABC, abstractmethod

import numpy as np
import pytest
from scipy.stats import loguniform

from loclin.cli import _compare, _tune
from loclin.cli._compare import Skipped, compare, describe, ranked
from loclin.cli._data import Data
from loclin.cli._settings import Settings
from loclin.cli._systems import Shape, System, pick, roster
from loclin.cli._tune import Tuned, tune


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
    """Replace fitting: a fit takes ``seconds(n)``, and ``errors(parameters)`` rows are wrong."""
    calls = []

    def fake(system, drawn, X, y, fold, shape, seed):
        train, valid = fold
        clock.now += fake.seconds(len(train), drawn)
        calls.append((dict(drawn), len(train) + len(valid)))
        wrong = fake.errors(drawn)
        return _tune._Fold(wrong, len(valid), fake.seconds(len(train), drawn), len(train))

    fake.seconds = lambda n, drawn: 1e-6
    fake.errors = lambda drawn: 10
    fake.calls = calls
    monkeypatch.setattr(_tune, "_fit_and_count", fake)
    return fake


def search(space, n=200, growth=1.0, **settings):
    system = System("fake", lambda seed: None, space, growth=growth)
    y = np.arange(n) % 2
    X = np.zeros((n, 3))
    return tune(system, X, y, Shape(n, 3), Settings(**{"budget": 1.0, **settings}))


def test_defaults_come_first_then_the_grid_without_repetition(fits):
    found = search({"a": [1, 2, 3], "b": [1, 2]})
    tried = [drawn for drawn, _ in fits.calls[::5]]
    assert tried[0] == {}
    assert sorted((d["a"], d["b"]) for d in tried[1:]) == [
        (a, b) for a in (1, 2, 3) for b in (1, 2)
    ]
    assert found.tried == 7
    assert found.drawn == {}, "a tie stays with the first"


def test_order_of_candidates_is_fixed_by_the_seed(fits):
    def order(seed):
        fits.calls.clear()
        search({"a": loguniform(1, 10)}, candidates=4, seed=seed)
        return [drawn for drawn, _ in fits.calls]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_the_best_is_kept(fits):
    fits.errors = lambda drawn: {None: 8, 1: 9, 2: 3, 3: 4}[drawn.get("a")]
    found = search({"a": [1, 2, 3]})
    assert found.drawn == {"a": 2}
    assert found.error == 15 / 200
    assert (found.folds, found.rows) == (5, 200)


def test_candidates_end_the_search(fits):
    assert search({"a": loguniform(1, 10)}, candidates=6).tried == 6


def test_where_nothing_is_to_choose_at_most_one_fit_of_some_rows_is_timed(fits):
    fits.seconds = lambda n, drawn: n / 1000
    found = search({}, n=2000)
    assert not fits.calls
    assert (found.tried, found.error, found.fit_seconds, found.fit_rows) == (0, None, 0.0, 2000)
    found = search({}, n=50_000)
    assert fits.calls == [({}, 1000)]
    assert (found.tried, found.error, found.fit_seconds, found.fit_rows) == (0, None, 0.8, 800)
    wide = Shape(2000, _tune.FEW_FEATURES + 1)
    system = System("fake", lambda seed: None)
    tune(system, np.zeros((2000, 1)), np.arange(2000) % 2, wide, Settings(budget=1.0))
    assert fits.calls == [({}, 1000)] * 2


def test_hopeless_candidates_are_dropped_early(fits):
    fits.errors = lambda drawn: 30 if drawn else 2
    search({"a": [1]})
    assert [drawn for drawn, _ in fits.calls] == [{}] * 5 + [{"a": 1}]


def test_a_slightly_worse_candidate_sees_all_folds_that_could_matter(fits):
    fits.errors = lambda drawn: 12 if drawn else 10
    search({"a": [1]})
    assert [drawn for drawn, _ in fits.calls] == [{}] * 5 + [{"a": 1}] * 5


def test_budget_ends_the_search_and_drops_the_candidate_it_cuts(fits):
    fits.seconds = lambda n, drawn: 0.11
    fits.errors = lambda drawn: 0 if drawn else 10
    found = search({"a": loguniform(1, 10)})
    assert found.seconds == pytest.approx(1.1)
    assert found.tried == 2
    assert found.drawn != {}, "the second candidate ended just as the budget did"
    fits.seconds = lambda n, drawn: 0.15
    found = search({"a": loguniform(1, 10)})
    assert found.seconds == pytest.approx(7 * 0.15)
    assert found.drawn == {}


def test_first_candidate_is_scored_however_slow(fits):
    fits.seconds = lambda n, drawn: 5.0
    found = search({"a": [1]})
    assert (found.tried, found.folds, found.error) == (1, 1, 0.25)


def test_first_candidate_may_take_two_budgets(fits):
    fits.seconds = lambda n, drawn: 0.35
    found = search({"a": [1]})
    assert (found.tried, found.folds) == (1, 5)


def test_folds_are_as_many_as_the_smallest_class_has_rows(fits):
    system = System("fake", lambda seed: None, {"a": [1]})
    y = np.array([0] * 30 + [1] * 3)
    found = tune(system, np.zeros((33, 1)), y, Shape(33, 1), Settings(budget=1.0))
    assert found.folds == 3


def test_failing_candidates_are_passed_over(fits):
    def errors(drawn):
        if not drawn:
            raise ValueError("not this one")
        return 3

    fits.errors = errors
    assert search({"a": [1]}).drawn == {"a": 1}
    with pytest.raises(ValueError, match="not this one"):
        search({"a": [0]}, candidates=1)


@pytest.mark.parametrize("growth", [1.0, 2.0])
def test_large_data_are_tuned_on_part_of_the_rows(fits, growth):
    fits.seconds = lambda n, drawn: 0.01 * (n / 800) ** growth
    found = search({"a": loguniform(1, 10)}, n=200_000, growth=growth, budget=8.0)
    assert 1000 < found.rows < 200_000
    assert found.tried >= _tune.WANTED
    assert 8.0 <= found.seconds < 9.0
    ideal = 1000 * (8.0 / (5 * _tune.WANTED * 0.01)) ** (1 / growth)
    assert 0.6 * ideal < found.rows <= ideal


def test_large_data_that_are_quick_are_used_whole(fits):
    fits.seconds = lambda n, drawn: 1e-7 * n
    assert search({"a": [1]}, n=200_000).rows == 200_000


def test_slow_models_are_tuned_on_no_fewer_rows_than_a_pilot(fits):
    fits.seconds = lambda n, drawn: 100.0
    found = search({"a": [1]}, n=200_000)
    assert found.rows == _tune.PILOT_ROWS
    assert found.folds == 1


def test_watch_is_told_of_each_candidate(fits):
    fits.errors = lambda drawn: {None: 8, 1: 9, 2: 4}[drawn.get("a")]
    told = []

    def callback(tried, error):
        told.append((tried, error))

    system, settings = System("fake", lambda seed: None, {"a": [1, 2]}), Settings(budget=1.0)
    tune(system, np.zeros((100, 1)), np.arange(100) % 2, Shape(100, 1), settings, callback)
    assert [tried for tried, _ in told] == [0] * 5 + [1] * 5 + [2] * 5, "before each fit"
    assert told[-1] == (2, 0.4)


def test_time_spent_in_the_callback_is_not_counted(fits, clock):
    fits.seconds = lambda n, drawn: 0.09

    def wait(tried, error):
        clock.now += 100.0

    system, settings = System("fake", lambda seed: None, {"a": [1, 2]}), Settings(budget=1.0)
    found = tune(system, np.zeros((100, 1)), np.arange(100) % 2, Shape(100, 1), settings, wait)
    assert found.seconds == pytest.approx(1.08)
    assert found.tried == 3


def test_search_ends_where_the_best_no_longer_moves(fits):
    def errors(drawn):
        fits.tried = getattr(fits, "tried", -1) + (drawn != getattr(fits, "last", None))
        fits.last = drawn
        return 20 - min(fits.tried, 6)  # of 40 a fold: six candidates get better

    fits.errors = errors
    found = search({"a": loguniform(1, 10)}, candidates=60, budget=60.0)
    assert found.tried == 7 + _tune.STILL
    assert found.error == 14 / 40


# --- the last fit ---------------------------------------------------------------------------------


def tuned(fit_seconds, fit_rows, rows):
    return Tuned({}, 0.1, 5, rows, 3, fit_seconds, fit_rows, 8.0)


def test_last_fit_is_bounded():
    y = np.arange(100_000) % 4
    svc = System("svc", lambda seed: None, growth=2.0)
    settings = Settings(budget=8.0)
    assert len(_compare._fitting_rows(svc, tuned(0.02, 4000, 5000), y, settings)) == 100_000
    rows = _compare._fitting_rows(svc, tuned(2.0, 4000, 5000), y, settings)
    assert len(rows) == pytest.approx(16_000, abs=4)  # (16,000 / 4,000)^2 * 2 s is 4 budgets
    assert np.bincount(y[rows]).tolist() == [4000] * 4
    linear = System("linear", lambda seed: None)
    assert len(_compare._fitting_rows(linear, tuned(4.7, 4000, 5000), y, settings)) == 100_000
    rows = _compare._fitting_rows(linear, tuned(9.6, 4000, 5000), y, settings)
    assert len(rows) == pytest.approx(50_000, abs=4)  # 50,000 / 4,000 * 9.6 s is 15 budgets


def test_rows_left_out_are_told():
    notes = _compare._notes(tuned(1.0, 400, 500), 800, 1000, Settings(), [])
    assert notes == ("fitted on 800 of 1,000 rows", "tuned on 500 of 1,000 rows")


# --- systems --------------------------------------------------------------------------------------


def test_regularisation_keeps_its_weight_when_rows_are_more():
    system = System("x", lambda seed: None)
    drawn = {"alpha*n/norm2": 0.5, "gamma*norm2": 2.0, "C": 3.0, "n_components": 400}
    few = system.resolve(drawn, Shape(100, 10, variance=0.7))
    many = system.resolve(drawn, Shape(1000, 10, variance=0.7))
    assert few == {"alpha": 0.04, "gamma": 2 / 7, "C": 3.0, "n_components": 100}
    assert many == {"alpha": 0.004, "gamma": 2 / 7, "C": 3.0, "n_components": 400}


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


def test_no_candidate_cross_validates_alpha_by_itself():
    for system in roster():
        for drawn in (system.start, {"alpha*n/norm2": 0.01}):
            if "alpha*n/norm2" in system.space:
                model = system.make(drawn, Shape(100, 5), 0)[-1]
                assert model.alpha != "auto"


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
    data = Data("d", "", "", X, y, X, y, ("a", "b", "c"))
    shape = describe(data)
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

    assert reason(4000, 50_000) == "needs dense features: 50,000 columns would take 1.6 GB"
    assert reason(40, 50_000) == "needs dense features: 50,000 columns would take it too long"


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
    data = Data("d", "", "", given, np.zeros(50), given, np.zeros(50))
    assert describe(data).variance == pytest.approx(scaled.var())


@pytest.mark.slow
def test_ranked_marks_the_front_but_not_the_majority_class():
    y = np.arange(40) % 2
    X = np.random.default_rng(0).normal(size=(40, 2)) + 4 * y[:, None]
    data = Data("d", "", "", X, y, X, y, ("a", "b"))
    rows = ranked(list(compare(data, pick("majority,knn", roster()), Settings(budget=0.05))))
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
