"""Columns of sparse rows that nobody uses: they cost nothing, and change nothing."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator

import loclin
import loclin.io
from loclin.codings import (
    InverseDistanceCoding,
    LLCCoding,
    OrthogonalCoding,
    SoftAssignmentCoding,
    TangentCoding,
)
from loclin.fitting.columns import Columns, used_columns
from loclin.portable import Description, describe

each = pytest.mark.parametrize
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WIDTH, USED, N = 3000, 60, 120
RNG = np.random.default_rng(0)
PLACES = np.sort(RNG.choice(WIDTH, USED, replace=False))
NARROW = RNG.poisson(0.4, (N, USED)) * 1.0
y = np.where(NARROW[:, 0] + NARROW[:, 1] > NARROW[:, 2] + NARROW[:, 3], 1, RNG.integers(0, 3, N))


def wide(rows, places=PLACES, width=WIDTH):
    """Return sparse rows whose columns lie at these places."""
    rows = sparse.csr_matrix(rows)
    parts = rows.data, np.asarray(places, np.int32)[rows.indices], rows.indptr
    return sparse.csr_matrix(parts, shape=(rows.shape[0], width))


X = wide(NARROW)
OTHER = wide(RNG.poisson(0.4, (N, USED)) * 1.0, np.sort(RNG.choice(WIDTH, USED, replace=False)))
SHORT = {"alpha": "scale", "max_iter": 3, "random_state": 0}
SOFT = SoftAssignmentCoding(6, 3, random_state=0)


def over(coding, **options):
    return loclin.LLSVMClassifier(coding, **SHORT | options)


MODELS = {
    "ml3": loclin.ML3Classifier(3, **SHORT),
    "ml3, k-means": loclin.ML3Classifier(3, init="kmeans", **SHORT),
    "ml3, metric": loclin.ML3Classifier(3, metric="diagonal", **SHORT),
    "ml3, as given": loclin.ML3Classifier(3, standardize=False, **SHORT),
    "ml3, auto": loclin.ML3Classifier(random_state=0),
    "llsvm": over(None),
    "llsvm, metric": over(SOFT, metric="diagonal"),
    "llsvm, constant": over(SOFT, weights="constant"),
    "llsvm, dual": over(SOFT, solver="dual_cd"),
    "llsvm, planes": over(OrthogonalCoding(3, random_state=0)),
    "llsvm, planes by class": over(OrthogonalCoding(3, per_class=True, random_state=0)),
    "sapl": loclin.SAPLClassifier(6, 3, **SHORT),
    "sapl, own": loclin.SAPLClassifier(4, 2, share_anchors=False, **SHORT),
    "csvm": loclin.CSVMClassifier(3, alpha="scale", random_state=0),
}
STREAMS = [name for name in MODELS if "dual" not in name]
# what they draw is another for each column
DRAWN = {
    "ldkl": loclin.LDKLClassifier(2, **SHORT),
    "lmkl": loclin.LMKLClassifier(3, **SHORT),
    "l3m": loclin.L3MClassifier(3, **SHORT),
    "l3m, convex": loclin.L3MClassifier(2, solver="convex", n_restarts=1, **SHORT),
}
KINDS = ["ml3", "llsvm", "llsvm, planes by class", "sapl", "csvm", *DRAWN]


class FurtherAway(SoftAssignmentCoding):
    """One's own coding, which may do with distances what it likes."""


@pytest.fixture
def all_seen(monkeypatch):
    """Return what lets a model see all columns, as if it knew nothing of those that are used."""

    def see(model):
        kind = type(model)
        recipe = type("Recipe", (kind._recipe_type,), {"can_do_with_columns": False})
        other = type(kind.__name__, (kind,), {"_recipe_type": recipe})
        return other(**model.get_params(deep=False))

    return see


# --- columns themselves -------------------------------------------------------------------------


@each("rows", [sparse.random(7, 30, 0.3, "csr", random_state=0), sparse.csr_matrix((7, 30))])
@each("used", [[0], [29], [3, 4, 17], range(30)])
@each("dtype", [np.float32, np.float64])
def test_columns_of_rows(rows, used, dtype):
    rows, used = rows.astype(dtype), np.array(used)
    columns = Columns(used, 30)
    for X in (rows, rows.toarray()):
        found = columns.of_matrix(X)
        assert found.dtype == dtype
        dense = found.toarray() if sparse.issparse(found) else found
        np.testing.assert_array_equal(dense, rows.toarray()[:, used])
    columns.of_matrix(rows).check_format()
    assert columns.of_matrix(rows).indices.dtype == rows.indices.dtype


def test_columns_that_are_used():
    X = wide(NARROW)
    np.testing.assert_array_equal(used_columns(X).used, PLACES[NARROW.any(axis=0)])
    many = sparse.vstack([X] * 50).tocsr()
    np.testing.assert_array_equal(used_columns(many).used, used_columns(X).used)
    assert used_columns(NARROW) is None
    assert used_columns(wide(NARROW, range(USED), 2000)) is None, "there are few"
    assert used_columns(sparse.csr_matrix(np.eye(3000)[:, ::2].repeat(2, 1))) is None, "most are"
    assert used_columns(sparse.csr_matrix((3, 9000))) is None, "none is used"


@each("shape", ["2 3", "3 2", "2 3 4", "3"])
def test_arrays_of_all_columns(shape):
    sizes = [int(size) for size in shape.split()]
    value = np.random.default_rng(0).random(sizes)
    columns = Columns(np.array([1, 5, 6]), 9)
    axis = sizes.index(3)
    found = columns.to_all(value, axis, fill=7.0)
    np.testing.assert_array_equal(found.take(columns.used, axis), value)
    others = np.setdiff1d(range(9), columns.used)
    np.testing.assert_array_equal(found.take(others, axis), 7.0)


# --- models -------------------------------------------------------------------------------------


@each("name", MODELS)
def test_scores_are_those_of_a_fit_that_sees_all_columns(name, all_seen):
    few, every = (one.fit(X, y) for one in (clone(MODELS[name]), all_seen(MODELS[name])))
    assert few._features.columns is not None
    assert every._features.columns is None
    assert few._learned.local_coef.shape[2] == len(few._features.columns.used)
    for rows in (X, OTHER, X.toarray()):
        np.testing.assert_allclose(  # sums are taken in another order
            few.decision_function(rows), every.decision_function(rows), rtol=1e-10, atol=1e-10
        )
        np.testing.assert_array_equal(few.predict(rows), every.predict(rows))
    for attribute in ("local_coef_", "local_intercept_", "feature_weights_", "anchors_"):
        if hasattr(every, attribute):
            found, expected = getattr(few, attribute), getattr(every, attribute)
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@each("name", DRAWN)
def test_models_that_draw_for_each_column_learn_of_those_used(name, all_seen):
    few, every = (one.fit(X, y) for one in (clone(DRAWN[name]), all_seen(DRAWN[name])))
    assert few.local_coef_.shape == every.local_coef_.shape
    unused = np.setdiff1d(range(WIDTH), few._features.columns.used)
    assert not few.local_coef_[:, :, unused].any()
    assert few.score(X, y) > every.score(X, y) - 0.1


@each("name", KINDS)
def test_explanations_are_of_all_columns(name):
    model = clone((MODELS | DRAWN)[name]).fit(X, y)
    coef, intercept = model.local_model(OTHER[:5])
    assert coef.shape == (5, 3, WIDTH)
    scores = np.einsum("ncd,nd->nc", coef, OTHER[:5].toarray()) + intercept
    np.testing.assert_allclose(scores, model.decision_function(OTHER[:5]), rtol=1e-8, atol=1e-8)


@each("name", KINDS)
def test_words_say_which_columns(name):
    model = clone((MODELS | DRAWN)[name]).fit(X, y)
    found, rows = Description.from_dict(describe(model).to_dict()), OTHER.toarray()
    np.testing.assert_allclose(
        found.decision_function(rows), model.decision_function(rows), rtol=1e-9, atol=1e-9
    )
    for part, expected in zip(found.local_model(rows), model.local_model(rows), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-9, atol=1e-9)


@each("name", KINDS)
def test_files(name, tmp_path):
    model = clone((MODELS | DRAWN)[name]).fit(X, y)
    loclin.io.save(model, tmp_path / "m.loclin")
    for again in (loclin.io.load(tmp_path / "m.loclin"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(
            again.decision_function(OTHER), model.decision_function(OTHER)
        )


@each("dtype", [np.int32, np.uint32, np.int64, np.uint64])
@each("columns", [[2**31 - 1, 3], [5, 5], [3, 2], [4, WIDTH]])
def test_columns_that_are_none_are_refused(columns, dtype, tmp_path):
    model = clone(MODELS["ml3"]).fit(X, y)
    used = model._features.columns.used.astype(dtype)
    used[-2:] = columns
    model._features = type(model._features)(
        model._features.centre, model._features.scale, Columns(np.array(used), WIDTH)
    )
    with pytest.raises(ValueError, match="columns are not some of 3000, in order"):
        loclin.io.save(model, tmp_path / "m.loclin")


# --- fits and streams that go on ----------------------------------------------------------------


@each("name", STREAMS)
def test_a_stream_goes_on_with_other_columns(name, all_seen):
    found = []
    for model in (clone(MODELS[name]), all_seen(MODELS[name])):
        model.fit(X, y)
        for _ in range(2):
            model.partial_fit(OTHER, y)
        assert model._features.columns is None
        found.append(model.decision_function(OTHER))
    np.testing.assert_allclose(*found, rtol=1e-7, atol=1e-7)


@each("name", MODELS)
@each("rows", [X, OTHER], ids=["same columns", "other columns"])
def test_a_fit_goes_on(name, rows, all_seen):
    found = []
    for model in (clone(MODELS[name]), all_seen(MODELS[name])):
        model.set_params(warm_start=True).fit(X, y)
        found.append(model.fit(rows, y).decision_function(OTHER))
    np.testing.assert_allclose(*found, rtol=1e-7, atol=1e-7)


def test_rules_of_regions_are_of_all_columns():
    model = loclin.L3MClassifier(2, **SHORT).fit(X, y)
    assert model._features.columns is not None
    used = {f"x{place}" for place in PLACES}
    names = {word for rule in model.region_rules(X) for word in rule.split() if word[0] == "x"}
    assert names
    assert {name.strip(",") for name in names} <= used


def test_the_convex_program_of_many_features_has_no_known_gap():
    """The bound from below needs their second moments."""
    model = loclin.L3MClassifier(2, solver="convex", n_restarts=1, **SHORT).fit(X.toarray(), y)
    assert np.isnan(model.dual_gap_)
    assert model.score(X, y) > 0.9


@each("rows", [X, OTHER], ids=["same columns", "other columns"])
def test_regions_go_on_with_other_columns(rows):
    model = loclin.L3MClassifier(3, warm_start=True, **SHORT).fit(X, y).fit(rows, y)
    assert (model._features.columns is None) == (rows is OTHER)
    assert model.partition_coef_.shape == (3, WIDTH)
    assert model.score(rows, y) > 0.8


def test_points_distances_and_strangers_see_all_columns():
    points = X[:6].toarray()
    for model in (
        over(SoftAssignmentCoding(anchors=points, n_neighbors=3)),
        over(TangentCoding(SoftAssignmentCoding(anchors=points, n_neighbors=3), 1)),
        over(FrozenEstimator(clone(SOFT).fit(X))),
        over(InverseDistanceCoding(6, 3, random_state=0)),
        over(LLCCoding(6, 3, random_state=0)),
        over(TangentCoding(SOFT, 1)),
        over(FurtherAway(6, 3, random_state=0)),
        over(KMeans(3, n_init=1, random_state=0)),
        loclin.SAPLClassifier(anchors=points, n_neighbors=3, **SHORT),
        loclin.CSVMClassifier(centers=points, alpha="scale", random_state=0),
        loclin.L3MClassifier(3, solver="online", **SHORT),
    ):
        assert model.fit(X, y)._features.columns is None
        model.partial_fit(OTHER, y)


def test_rows_without_numbers_and_dense_ones_have_no_columns_less():
    empty = sparse.csr_matrix((N, WIDTH))
    for rows in (empty, X.toarray()):
        model = clone(MODELS["ml3"]).fit(rows, y)
        assert model._features.columns is None
        assert model.local_coef_.shape == (3, 3, WIDTH)


@each("kind", [loclin.ML3Classifier, loclin.LLSVMClassifier, loclin.SAPLClassifier,
               loclin.L3MClassifier])  # fmt: skip
def test_memory_and_files_go_by_the_columns_used(kind):
    rows = wide(NARROW, np.sort(RNG.choice(2**20, USED, replace=False)), 2**20)
    kind(alpha="scale", random_state=0).fit(rows, y)  # compiles
    tracemalloc.start()
    try:
        model = kind(alpha="scale", random_state=0).fit(rows, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3e6, "one number for each column, and some"
    assert len(pickle.dumps(model)) < 2e5
