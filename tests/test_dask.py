"""Fits and predictions on a Dask cluster: its collections, its faults, what travels."""

import asyncio
import os
import signal
import threading
from contextlib import contextmanager
from functools import partial, reduce

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import loclin
import loclin.cluster

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
dd = pytest.importorskip("dask.dataframe")

import loclin.dask  # noqa: E402
from tests.robustness import cluster as robustness  # noqa: E402
from tests.test_cluster import FAST, LABELS, NEW, X, Y, error  # noqa: E402

SIZE = 500  # rows of a block
DX, DY = da.from_array(X, chunks=(SIZE, 2)), da.from_array(Y, chunks=SIZE)
SHORT = {"rounds": 3, "sample_rows": 600}


@contextmanager
def cluster_of(n_workers, *, processes=False):
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with cluster_of(2) as client:
        yield client


@pytest.fixture
def processes():
    with cluster_of(2, processes=True) as client:
        yield client


def blocks_of(*arrays):
    return [tuple(one[first : first + SIZE] for one in arrays) for first in range(0, len(Y), SIZE)]


def test_a_fit_on_a_cluster_is_one_over_the_same_parts(client, monkeypatch):
    """The parts are of blocks that lie on one worker; nothing else is known of them."""
    kept, grouped = [], loclin.dask._grouped

    def noting(*args):
        parts = grouped(*args)
        holders = client.who_has([block for part in parts for block in part])
        for part in parts:
            assert len({holders[block.key][0] for block in part}) == 1
        kept.extend(client.gather(parts))
        return parts

    monkeypatch.setattr(loclin.dask, "_grouped", noting)
    found = loclin.dask.fit(FAST, DX, DY, client=client, **SHORT)

    def in_blocks(of_part, merge, parts, state):
        return reduce(merge, [of_part(k, part, state) for k, part in enumerate(parts)])

    assert 1 <= len(kept) <= 2
    assert sorted(block.name for part in kept for block in part) == [f"block {k}" for k in range(6)]
    expected = loclin.cluster.fit(FAST, kept, executor=in_blocks, **SHORT)
    np.testing.assert_allclose(found.local_coef_, expected.local_coef_, rtol=1e-6, atol=1e-9)
    assert type(found) is loclin.ML3Classifier


def test_many_values_are_merged_in_groups(client):
    over_parts = loclin.dask._OverParts(client, 10.0)
    found = over_parts(lambda k, part, state: [k * state], lambda a, b: a + b, [[]] * 70, 2)
    assert found == [2 * k for k in range(70)]


def test_arrays_frames_and_lists_of_delayed_blocks(client):
    weights = np.random.default_rng(0).uniform(0.5, 2, len(Y))
    given = {"parts_per_worker": 1, "client": client} | SHORT
    expected = loclin.dask.fit(FAST, DX, DY, da.from_array(weights, chunks=SIZE), **given)
    assert error(expected) < 0.4
    delayed = [
        [dask.delayed(part) for part in one] for one in zip(*blocks_of(X, Y, weights), strict=True)
    ]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y, w=weights, i=range(len(Y)))
    table = dd.from_pandas(frame, chunksize=SIZE, sort=False)
    of_frame = table[list("abcd")], table["y"], table["w"]
    # a frame of unknown lengths, whose first part is empty
    late = table[table["i"] >= SIZE]
    for collections in (delayed, of_frame, (late[list("abcd")], late["y"], late["w"])):
        found = loclin.dask.fit(FAST, *collections, **given)
        assert error_of(found) < 0.4
        assert found.n_features_in_ == 4
    assert found.feature_names_in_.tolist() == list("abcd")


def error_of(model):
    names = getattr(model, "feature_names_in_", None)
    return np.mean(
        model.predict(NEW if names is None else pd.DataFrame(NEW, columns=names)) != LABELS
    )


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's, in writing files
def test_tables_in_many_small_files(client, tmp_path):
    """Dask joins files when it reads one column of them."""
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["x", "y", "z"])[Y])
    for k in range(6):
        table[k * SIZE : (k + 1) * SIZE].to_parquet(tmp_path / f"{k}.parquet")
    files = dd.read_parquet(tmp_path)
    rows, labels = files.drop(columns="kind"), files["kind"]
    found = loclin.dask.fit(FAST, rows, labels, rows["a"] * 0 + 1, **SHORT)
    assert found.feature_names_in_.tolist() == list("abcd")
    predicted = loclin.dask.predict(found, rows)
    assert predicted.compute().eq(labels.compute()).mean() > 0.7
    predicted.to_frame("kind").to_parquet(tmp_path / "predicted")
    again = dd.read_parquet(tmp_path / "predicted")["kind"].compute()
    assert again.tolist() == predicted.compute().tolist()


def test_sparse_blocks_and_labels_of_strings(client):
    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.3, X, 0.0))
    names = np.array(["low", "middle", "high"])[Y]
    blocks = [
        [dask.delayed(one) for one in many] for many in zip(*blocks_of(rows, names), strict=True)
    ]
    found = loclin.dask.fit(FAST, *blocks, client=client, **SHORT)
    assert found.classes_.tolist() == ["high", "low", "middle"]
    assert np.mean(found.predict(rows) != names) < 0.45
    of_array = da.concatenate(
        [da.from_delayed(one, (SIZE, 4), float, meta=np.empty((0, 0))) for one in blocks[0]]
    )
    again = loclin.dask.fit(FAST, of_array, blocks[1], client=client, **SHORT)
    assert np.mean(again.predict(rows) != names) < 0.45


def test_what_is_wrong_is_said(client):
    bad = X.copy()
    bad[SIZE + 3, 1] = np.inf
    with pytest.raises(ValueError, match="In block 1: Input X contains infinity"):
        loclin.dask.fit(FAST, da.from_array(bad, chunks=(SIZE, 4)), DY, client=client)
    with pytest.raises(ValueError, match=r"same blocks, got {'X': 6, 'y': 3}"):
        loclin.dask.fit(FAST, DX, DY.rechunk(1000), client=client)
    uneven = da.from_array(Y, chunks=((400, 600, *[SIZE] * 4),))
    with pytest.raises(ValueError, match=r"In block [01]: .*inconsistent numbers"):
        loclin.dask.fit(FAST, DX, uneven, client=client)
    with pytest.raises(TypeError, match="X is of ndarray; give a dask array"):
        loclin.dask.fit(FAST, X, DY, client=client)
    with pytest.raises(ValueError, match="timeout=0"):
        loclin.dask.fit(FAST, DX, DY, client=client, timeout=0)
    fails = dask.delayed(lambda: 1 / 0)()
    with pytest.raises(ZeroDivisionError):
        loclin.dask.fit(FAST, [fails], [fails], client=client)
    with pytest.raises(ValueError, match="X and y have no blocks"):
        loclin.dask.fit(FAST, [], [], client=client)
    with pytest.raises(TypeError, match=r"X is of Delayed\w*; give a dask array"):
        loclin.dask.fit(FAST, dask.delayed(X), DY, client=client)
    bag = db.from_sequence(Y.tolist(), npartitions=6)
    with pytest.raises(TypeError, match="y is of Bag; give a dask array"):
        loclin.dask.fit(FAST, DX, bag, client=client)
    gone = client.scatter([X, Y])
    client.cancel(gone)
    with pytest.raises(loclin.dask.NoWorkersError, match="futures among the blocks are cancelled"):
        loclin.dask.fit(FAST, gone[:1], gone[1:], client=client)
    with pytest.raises(TypeError, match=r"parts_per_worker=1\.5 has type float"):
        loclin.dask.fit(FAST, DX, DY, client=client, parts_per_worker=1.5)
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client"):
        loclin.dask.fit(FAST, DX, DY, client="tcp://127.0.0.1:8786")


@pytest.mark.parametrize("say", [loclin.dask.predict, loclin.dask.predict_proba])
def test_predictions_of_what_has_no_blocks_are_refused(say):
    model = clone(FAST).fit(X[:200], Y[:200])
    bag = db.from_sequence(X.tolist(), npartitions=2)
    for rows in X, pd.DataFrame(X), sparse.csr_array(X), dask.delayed(X), bag, None:
        with pytest.raises(TypeError, match="give a dask array, a dask data frame or a list"):
            say(model, rows)
    for rows in DX[:, 0], dd.from_pandas(pd.Series(X[:, 0])):
        with pytest.raises(ValueError, match="X has 1 dimensions; give one of two"):
            say(model, rows)
    with pytest.raises(NotFittedError):
        say(FAST, DX)


def test_blocks_may_be_lists():
    model = clone(FAST).fit(X[:200], Y[:200])
    (found,) = dask.compute(*loclin.dask.predict(model, [dask.delayed(X[:9].tolist())]))
    np.testing.assert_array_equal(found, model.predict(X[:9]))


def test_a_coroutine_is_told_to_fit_in_a_thread():
    """A client that waits for itself would wait for ever."""

    async def fits(in_thread):
        async with distributed.Client(
            processes=False, asynchronous=True, dashboard_address=":0"
        ) as client:
            given = partial(loclin.dask.fit, FAST, DX, DY, client=client, rounds=1)
            return await asyncio.to_thread(given) if in_thread else given()

    with pytest.raises(TypeError, match="In a coroutine, fit in a thread"):
        asyncio.run(fits(in_thread=False))
    assert asyncio.run(fits(in_thread=True)).n_iter_ == 1


def test_an_ensemble_learns_kind_by_kind(client):
    model = loclin.LocallyLinearEnsemble(
        [FAST, loclin.ForestClassifier(5)], n_folds=2, random_state=0
    )
    found = loclin.dask.fit(model, DX, DY, client=client, **SHORT)
    assert found.shares_.sum() == pytest.approx(1)
    assert error(found) < 0.3


def test_each_worker_fits_a_member(client):
    found = loclin.dask.fit_members(FAST, DX, DY, client=client)
    assert 1 <= len(found.estimators) <= 2
    assert type(found) is loclin.LocallyLinearEnsemble
    assert error(found) < 0.3


def test_two_fits_at_once_in_one_client(client):
    expected = loclin.dask.fit(FAST, DX, DY, client=client, **SHORT)
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(loclin.dask.fit(FAST, DX, DY, client=client, **SHORT))
        )
        for _ in range(2)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert [error(model) < 0.4 for model in (expected, *found)] == [True] * 3


def test_predictions_stay_where_the_rows_are(client):
    model = loclin.ML3Classifier(4, metric=None, pieces=None, random_state=0).fit(X, Y)
    for function in (loclin.dask.predict, loclin.dask.predict_proba):
        expected = getattr(model, function.__name__)(X)
        lazy = function(model, DX)
        assert (lazy.dtype, lazy.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(lazy.compute(), expected)
        lists = function(model, [dask.delayed(one) for (one,) in blocks_of(X)])
        np.testing.assert_array_equal(np.concatenate(dask.compute(*lists)), expected)
    one = loclin.USSVMClassifier(4, random_state=0)
    search = GridSearchCV(one, {"random_state": [0]}, cv=2)
    for several in (one, search, make_pipeline(StandardScaler(), search)):
        found = clone(several).fit(X, np.column_stack([Y > 0, Y < 2]))
        expected, lazy = found.predict(X), loclin.dask.predict(found, DX)
        assert (lazy.dtype, lazy.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(lazy.compute(), expected)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = clone(model).fit(frame, np.array(["x", "y", "z"], object)[Y])
    table = dd.from_pandas(frame.assign(i=range(len(Y))), chunksize=SIZE)
    table = table[table["i"] >= SIZE][list("abcd")]  # the first part is empty
    labels = loclin.dask.predict(model, table)
    pd.testing.assert_index_equal(labels.compute().index, frame.index[SIZE:])
    assert labels.dtype == labels.compute().dtype
    assert labels.compute().tolist() == model.predict(frame[SIZE:]).tolist()
    told = loclin.dask.predict_proba(model, table)
    assert told.columns.tolist() == ["x", "y", "z"]
    np.testing.assert_allclose(told.compute(), model.predict_proba(frame[SIZE:]))


# Faults.


def test_what_is_lost_is_left_out_and_what_is_wrong_is_raised(client):
    def of_part(number, part, error):
        if error is not None and number == 1:
            raise error
        return [number]

    def found(over_parts, error, n_parts=3):
        return over_parts(of_part, lambda a, b: a + b, [[]] * n_parts, error)

    over_parts = loclin.dask._OverParts(client, 10.0)
    with pytest.raises(OSError, match="disk is full"):  # before all were reached once
        found(over_parts, OSError("disk is full"))
    assert found(over_parts, None) == [0, 1, 2]
    assert found(over_parts, OSError("disk is full")) == [0, 2]
    with pytest.raises(ValueError, match="wrong"):
        found(over_parts, ValueError("wrong"))


def test_without_workers_a_fit_ends_and_the_last_round_is_kept():
    kept = []

    def note(model):
        kept.append(model)
        if model.n_iter_ == 2:
            client.cluster.scale(0)

    given = {"timeout": 0.5, "sample_rows": 600, "on_round": note}
    said = pytest.raises(loclin.dask.NoWorkersError, match=r"no worker for 0\.5 seconds")
    with cluster_of(1) as client, said:
        loclin.dask.fit(FAST, DX, DY, client=client, **given)
    assert error(kept[-1]) < 0.4


@pytest.mark.slow
def test_no_rows_travel(processes):
    """Once rows and labels have met, what workers send one another is models."""

    def sent(model=None):
        of_workers = processes.run(
            lambda dask_worker: [one["keys"] for one in dask_worker.transfer_incoming_log]
        )
        kept.append([str(key) for one in of_workers.values() for keys in one for key in keys])

    kept = []
    loclin.dask.fit(FAST, DX, DY, client=processes, rounds=10, sample_rows=600, on_round=sent)
    keys = set(kept[-1]) - set(kept[0])
    assert keys
    assert [key for key in keys if "loclin-" not in key] == []
    assert not any("Block" in key for key in kept[-1])


@pytest.mark.slow
@pytest.mark.parametrize("n_killed", [1, 2])
def test_rows_of_workers_that_are_killed_are_computed_again(processes, n_killed):
    """Nannies start new ones; nothing is lost, and nothing warns."""
    n_seen = []

    def note(model):
        n_seen.append(model.t_)
        if model.n_iter_ == 2:
            for pid in list(processes.run(os.getpid).values())[:n_killed]:
                os.kill(pid, signal.SIGKILL)

    found = loclin.dask.fit(
        FAST, DX, DY, client=processes, timeout=60, rounds=6, sample_rows=600, on_round=note
    )
    assert found.n_iter_ == 6
    assert error(found) < 0.3
    assert np.ptp(np.diff(n_seen)) <= 1  # each round has all rows


@pytest.mark.slow
@pytest.mark.long  # `tests.robustness.cluster` shows more
def test_a_part_that_kills_its_workers_is_left_out_and_counted(capsys):
    robustness.main(["--only", "a block that kills"])
    told = capsys.readouterr().out
    assert "12 rounds of 12" in told
    assert "RowsLeftOutWarning: Round 4 left out" in told
