"""Features in pieces: knots, one model with exact explanations, streams, files and units."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import loclin
import loclin.io
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding
from loclin.engine.data import Rows
from loclin.fitting.pieces import _that_fit, pieces_of, rows_to_learn
from loclin.portable import Pieces, describe
from loclin.portable.reader import with_pieces, without_pieces

each = pytest.mark.parametrize
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"alpha": "scale", "max_iter": 5, "random_state": 0}
SOFT = SoftAssignmentCoding(6, 3, random_state=0)
MODELS = {
    "ml3": loclin.ML3Classifier(3, pieces=5, **SHORT),
    "ml3, metric": loclin.ML3Classifier(3, pieces=5, metric="full", **SHORT),
    "ml3, as given": loclin.ML3Classifier(3, pieces=5, standardize=False, **SHORT),
    "llsvm": loclin.LLSVMClassifier(SOFT, pieces=5, **SHORT),
    "llsvm, planes": loclin.LLSVMClassifier(OrthogonalCoding(3), pieces=5, **SHORT),
    "sapl": loclin.SAPLClassifier(6, 3, pieces=5, **SHORT),
    "csvm": loclin.CSVMClassifier(3, pieces=5, alpha="scale", random_state=0),
    "l3m": loclin.L3MClassifier(3, pieces=5, **SHORT),
    "ldkl": loclin.LDKLClassifier(2, pieces=5, **SHORT),
    "lmkl": loclin.LMKLClassifier(3, pieces=5, **SHORT),
}  # fmt: skip
STREAMS = [name for name in MODELS if name != "l3m"]

RNG = np.random.default_rng(0)
N, F = 300, 4
X = np.column_stack([RNG.normal(size=(N, 2)), RNG.integers(0, 2, N), RNG.integers(0, 5, N)])
Y = np.array(["a", "b", "c"])[(np.abs(X[:, 0]) > 0.7) + 1 * (X[:, 3] == 2)]


def rows_of(values, weights=None):
    values = np.asarray(values, float).reshape(len(values), -1)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, float)
    return Rows(values, np.zeros(len(values), int), weights)


def ramp(v, low, high):
    return min(max((v - low) / (high - low), 0.0), 1.0)


# --- the pieces ---------------------------------------------------------------------------------


def test_pieces_hold_as_many_rows_each():
    found = pieces_of(rows_of(np.arange(80.0)), 8)
    np.testing.assert_allclose(found.low, np.arange(-0.5, 79, 10))
    np.testing.assert_allclose(found.high, np.arange(9.5, 80, 10))


def test_knots_lie_between_values_and_the_ends_beyond_them():
    found = pieces_of(rows_of([0, 0, 0, 0, 0, 1, 1, 5]), 4)
    np.testing.assert_allclose(found.low, [-0.5, 0.5])
    np.testing.assert_allclose(found.high, [0.5, 7.0])
    found = pieces_of(rows_of([0, 0, 0, 1, 1, 1, 1, 5, 5]), 3)
    np.testing.assert_allclose(found.low, [-0.5, 0.5, 3.0])
    np.testing.assert_allclose(found.high, [0.5, 3.0, 7.0])


def test_features_of_two_values_have_none():
    assert pieces_of(rows_of([0, 1, 1, 0]), 8) is None
    found = pieces_of(rows_of(X), 3)
    assert set(found.feature) == {0, 1, 3}


def test_weights_count_as_rows_do():
    values, weights = RNG.normal(size=50), RNG.integers(1, 5, 50)
    one, many = (
        pieces_of(rows_of(values, weights), 6),
        pieces_of(rows_of(values.repeat(weights)), 6),
    )
    np.testing.assert_allclose(one.low, many.low)
    np.testing.assert_allclose(one.high, many.high)


@each("dtype", [np.float32, np.float64])
def test_columns_rise_from_knot_to_knot(dtype):
    pieces = Pieces(np.array([0, 0, 2]), *np.array([[-1, 0, 10], [0, 2, 1e3]], dtype))
    rows = np.array([[-5, 1, 10], [0, 1, 20], [1, 1, 3e38], [9, 1, -3e38]], dtype)
    seen = with_pieces(rows, pieces)
    assert seen.dtype == dtype
    knots = list(zip(*pieces.__dict__.values(), strict=True))
    expected = [[*row, *(ramp(row[f], low, high) for f, low, high in knots)] for row in rows]
    np.testing.assert_allclose(seen, np.array(expected), rtol=1e-6)


@each("shape", [(5,), (3, 5)])
def test_functions_of_pieces_are_linear_in_a_cell(shape):
    pieces = Pieces(np.array([0, 0, 1]), np.array([-1.0, 0, 3]), np.array([0.0, 2, 4]))
    rows, coef = RNG.normal(1, 2, (40, 2)), RNG.normal(size=(40, *shape))
    folded, added = without_pieces(coef, rows, pieces)

    def value(rows):
        return np.einsum("n...d,nd->n...", coef, with_pieces(rows, pieces))

    np.testing.assert_allclose(np.einsum("n...d,nd->n...", folded, rows) + added, value(rows))
    for f in range(2):
        step = np.zeros(2)
        step[f] = 1e-7
        slopes = (value(rows + step) - value(rows)) / 1e-7
        np.testing.assert_allclose(folded[..., f], slopes, atol=1e-5)


def test_at_a_knot_the_slope_is_that_of_larger_values():
    pieces = Pieces(np.array([0, 0]), np.array([0.0, 1]), np.array([1.0, 3]))
    rows = np.array([[-1.0], [0], [1], [3]])
    folded, added = without_pieces(np.tile([0.0, 1, 4], (4, 1)), rows, pieces)
    np.testing.assert_allclose(folded[:, 0], [0, 1, 2, 0])
    np.testing.assert_allclose(folded[:, 0] * rows[:, 0] + added, [0, 0, 1, 5])


# --- models -------------------------------------------------------------------------------------


@each("dtype", [np.float32, np.float64])
@each("name", MODELS)
def test_explanations_are_exact_at_knots_and_beyond(name, dtype):
    rows = X.astype(dtype)
    model = clone(MODELS[name]).fit(rows, Y)
    pieces = model.pieces_
    assert model.local_coef_.shape[2] == F + len(pieces.feature)
    some = np.repeat(rows[:1], 2 * len(pieces.feature), axis=0)
    some[np.arange(len(some)), np.tile(pieces.feature, 2)] = np.append(pieces.low, pieces.high)
    for tried in (rows, some, 100 * rows):
        coef, intercept = model.local_model(tried)
        assert coef.shape == (len(tried), 3, F)
        scores = np.einsum("ncd,nd->nc", coef, tried) + intercept
        expected = model.decision_function(tried)
        unit = np.abs(coef * tried[:, None]).max() + np.abs(intercept).max()
        tolerance = (1e-5 if dtype == np.float32 else 1e-13) * unit
        np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)


@each("name", MODELS)
def test_scores_are_those_of_rows_with_pieces(name):
    """A model of these rows, made by hand, has the same scores."""
    model = clone(MODELS[name]).fit(X, Y)
    wide = with_pieces(X, model.pieces_)
    apart = clone(model).set_params(pieces=None).fit(wide, Y)
    np.testing.assert_allclose(
        model.decision_function(X), apart.decision_function(wide), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(model.local_coef_, apart.local_coef_, rtol=1e-7, atol=1e-9)


@each("name", MODELS)
def test_files_come_back(name, tmp_path):
    model = clone(MODELS[name]).fit(X, Y)
    loclin.io.save(model, tmp_path / "model.loclin")
    again = loclin.io.load(tmp_path / "model.loclin")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.local_model(X)[0], model.local_model(X)[0])


@each("what, match", [
    (lambda p: Pieces(p.feature[::-1], p.low, p.high), "in order"),
    (lambda p: Pieces(p.feature + 9, p.low, p.high), "of some of 4 features"),
    (lambda p: Pieces(p.feature, p.high, p.low), "below high"),
    (lambda p: Pieces(p.feature[:-1], p.low, p.high), "shape"),
    (lambda p: Pieces(p.feature, p.low * np.nan, p.high), "finite"),
])  # fmt: skip
def test_pieces_that_are_none_are_refused(what, match, tmp_path):
    model = clone(MODELS["ml3"]).fit(X, Y)
    changed = {"pieces": what(model._features.pieces)}
    model._features = type(model._features)(**vars(model._features) | changed)
    with pytest.raises(ValueError, match=match):
        loclin.io.save(model, tmp_path / "model.loclin")


@each("name", MODELS)
def test_units_do_not_matter(name):
    if name == "ml3, as given":
        pytest.skip("units matter there")
    model, other = clone(MODELS[name]).fit(X, Y), clone(MODELS[name])
    moved = X * [1000, 1, 1e-4, 7] + 100
    other.fit(moved, Y)
    assert np.mean(model.predict(X) == other.predict(moved)) > 0.99


@each("name", STREAMS)
def test_streams_take_the_knots_of_their_first_rows(name):
    model = clone(MODELS[name])
    first = X[:60].copy()
    for start in range(0, N, 60):
        model.partial_fit(X[start : start + 60], Y[start : start + 60], np.unique(Y))
    np.testing.assert_array_equal(model.pieces_.low, pieces_of(rows_of(first), 5).low)
    if "given" not in name:
        assert model.score(X, Y) > 0.6
    coef, intercept = model.local_model(X)
    scores = np.einsum("ncd,nd->nc", coef, X) + intercept
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-7, atol=1e-9)


@each("name", MODELS)
def test_a_fit_goes_on_with_the_same_pieces(name):
    model = clone(MODELS[name]).set_params(warm_start=True).fit(X, Y)
    before = model.pieces_
    assert model.fit(X[::-1] * 2, Y[::-1]).pieces_ is before
    with pytest.raises(ValueError, match="pieces"):
        model.set_params(pieces=3).fit(X, Y)


@each("mean, spread", [(1e3, 1.0), (1e6, 5.0), (1e6, 1.0)])
@each("name", ["ml3", "llsvm", "sapl", "l3m"])
def test_single_precision_far_from_zero_is_explained(name, mean, spread):
    rows = (mean + spread * X).astype(np.float32)
    bare = clone(MODELS[name]).set_params(pieces=None).fit(rows, Y)
    for model in (clone(MODELS[name]).fit(rows, Y), bare):
        scores = model.decision_function(rows)
        coef, intercept = model.local_model(rows)
        found = np.einsum("ncd,nd->nc", coef.astype(float), rows.astype(float)) + intercept
        np.testing.assert_allclose(found, scores, rtol=0, atol=2e-5 * np.abs(scores).max())


@each("mean, spread", [(1e3, 1.0), (1e6, 5.0), (1e6, 0.3)])
def test_an_ensemble_of_rows_far_from_zero_is_described(mean, spread):
    rows = (mean + spread * X).astype(np.float32)
    model = loclin.LocallyLinearEnsemble(
        [loclin.ML3Classifier(3, pieces=8)], n_folds=2, random_state=0
    ).fit(rows, Y)
    scores, found = model.decision_function(rows), describe(model).decision_function(rows)
    np.testing.assert_allclose(found, scores, rtol=0, atol=1e-4 * np.abs(scores).max())


def test_rounding_is_no_piece():
    parts = np.random.default_rng(0).dirichlet(np.ones(5), 400)
    total = parts[:, 0] + parts[:, 1] + parts[:, 2] + parts[:, 3] + parts[:, 4]
    assert len(np.unique(total)) > 2
    assert pieces_of(rows_of(total), 8) is None
    assert pieces_of(rows_of(np.arange(9) * 1e-310), 4) is None


@each("dtype, largest", [(np.float64, 1.7e308), (np.float32, 3.3e38)])
def test_features_as_large_as_they_may_be(dtype, largest):
    rows = rows_of(largest * np.linspace(-1, 1, 40))
    found = pieces_of(rows._replace(X=rows.X.astype(dtype)), 8)
    assert np.isfinite(found.low).all()
    assert (found.low < found.high).all()


def test_periodic_rows_have_all_knots():
    found = pieces_of(rows_of(np.arange(480_000) % 24), 24)
    assert len(found.low) == 24


def test_many_pieces_are_those_of_the_values():
    assert len(pieces_of(rows_of(np.arange(50.0)), 2**31 - 1).low) == 50


def test_predictions_of_many_rows_take_blocks(monkeypatch):
    model = clone(MODELS["sapl"]).fit(X, Y)
    scores, labels = model.decision_function(X), model.predict(X)
    monkeypatch.setattr("loclin.fitting.scored._BLOCK_NUMBERS", 100)
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), labels)


def test_a_stream_of_too_few_rows_tells_no_pieces():
    with pytest.raises(ValueError, match="has 1 rows, which tell no 5 pieces"):
        clone(MODELS["ml3"]).partial_fit(X[:1], Y[:1], np.unique(Y))


def test_an_ensemble_leaves_rows_as_they_are_if_asked():
    model = loclin.LocallyLinearEnsemble(standardize=False, n_folds=2, random_state=0).fit(X, Y)
    assert not any(one.standardize for one in model.members_)


@each("kind", [list, np.array, lambda points: np.array(points) > 0])
def test_given_points_may_be_integers(kind):
    points = kind([[0, 1, 0, 1], [1, 0, 1, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])
    coding = SoftAssignmentCoding(anchors=points, n_neighbors=2)
    assert loclin.LLSVMClassifier(coding, pieces=5, **SHORT).fit(X, Y).score(X, Y) > 0.5


@each("wide", [3, 5, 25])
def test_points_of_another_width_are_refused_by_name(wide):
    coding = SoftAssignmentCoding(anchors=np.ones((4, wide)), n_neighbors=2)
    with pytest.raises(ValueError, match="anchors"):
        loclin.LLSVMClassifier(coding, pieces=5, **SHORT).fit(X, Y)


def test_rows_with_more_pieces_than_memory_holds_are_drawn_by_class(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (6000, 2))
    y = np.array(["a", "b", "rare"])[(np.floor(3 * x[:, 0]) % 2).astype(int)]
    y[:40] = "rare"
    model = loclin.ML3Classifier(1, random_state=0, alpha="scale", warm_start=True)
    found = clone(model).fit(x, y)
    bytes_of_row = 8 * (2 + len(found.pieces_.feature))
    monkeypatch.setattr("loclin.fitting.pieces._MOST_BYTES", 1500 * bytes_of_row)
    monkeypatch.setattr("loclin.fitting.pieces._FEWEST_OF_CLASS", 30)
    learned = []

    def noting(recipe, rows):
        learned.append(rows_to_learn(recipe, rows))
        return learned[-1]

    monkeypatch.setattr("loclin.fitting.base.rows_to_learn", noting)
    said = "with them 6000 rows would take .* learns from 1[45].. of them, drawn at random"
    with pytest.warns(loclin.SomeRowsWarning, match=said):
        some = model.fit(x, y)
    with pytest.warns(UserWarning, match=said):
        some.fit(x, y)  # it goes on
    for rows in learned:
        of_class = np.unique(y, return_counts=True)[1]
        numbers = 30 + (of_class - 30) * (1500 - 90) / (6000 - 90)
        np.testing.assert_allclose(np.bincount(rows.y), numbers, atol=1)
        shares = np.bincount(rows.y, rows.weights) / len(rows.y)
        np.testing.assert_allclose(shares, of_class / 6000)
        assert len(set(rows.origin)) == len(rows.y)
        np.testing.assert_array_equal(rows.X, x[rows.origin])
        assert rows.weights.mean() == pytest.approx(1)
    errors = [np.mean(one.predict(x) != y) for one in (found, some)]
    assert errors[1] < errors[0] + 0.02 < 0.1
    assert clone(model).set_params(pieces=8).fit(x, y).pieces_ is not None
    assert len(learned[-1].y) == 6000  # nobody chose for the user


def test_sparse_rows_have_none():
    model = clone(MODELS["ml3"]).fit(sparse.csr_matrix(X), Y)
    assert model.pieces_ is None
    of_dense = clone(MODELS["ml3"]).fit(X, Y)
    np.testing.assert_array_equal(
        of_dense.decision_function(sparse.csr_matrix(X)), of_dense.decision_function(X)
    )
    for part, expected in zip(
        of_dense.local_model(sparse.csr_matrix(X)), of_dense.local_model(X), strict=True
    ):
        np.testing.assert_array_equal(part, expected)


def test_single_features_bend():
    """One linear model of pieces does what eight of the feature cannot."""
    x = np.random.default_rng(0).uniform(-1, 1, (600, 1))
    y = (np.floor(8 * x[:, 0]) % 2).astype(int)
    flat = loclin.ML3Classifier(1, random_state=0, pieces=None).fit(x, y)
    bent = loclin.ML3Classifier(1, random_state=0, pieces=16).fit(x, y)
    assert flat.score(x, y) < 0.7 < 0.9 < bent.score(x, y)


def test_auto_takes_pieces_where_rows_held_out_gain():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 2))
    bends, is_linear = (np.floor(3 * x[:, 0]) % 2).astype(int), (x @ [1, -1] > 0).astype(int)
    for y, expected in [(bends, True), (is_linear, False)]:
        model = loclin.ML3Classifier(1, pieces="auto", random_state=0).fit(x, y)
        assert (model.pieces_ is not None) == expected


def test_auto_makes_none_of_raw_rows_or_in_a_whole_metric():
    bends = (np.floor(3 * X[:, 0]) % 2).astype(int)
    assert loclin.ML3Classifier(1, random_state=0).fit(X, bends).pieces_ is not None
    for options in ({"standardize": False}, {"metric": "full"}, {"metric": 2}):
        assert loclin.ML3Classifier(1, random_state=0, **options).fit(X, bends).pieces_ is None
    many = np.hstack([X, np.random.default_rng(0).normal(size=(N, 125))])
    assert loclin.ML3Classifier(1, random_state=0).fit(many, bends).pieces_ is None
    wide = np.tile(X, (1, 200)) * np.random.default_rng(0).uniform(1, 2, (N, 4 * 200))
    with pytest.raises(ValueError, match="takes at most 2000 features"):
        loclin.ML3Classifier(1, pieces=8, metric="full", random_state=0).fit(wide, bends)


def test_many_classes_take_no_more_memory_either(monkeypatch):
    y = np.arange(6000) % 100
    rows = Rows(np.random.default_rng(0).normal(size=(6000, 2)), y, 1.0 + y)
    pieces = pieces_of(rows, 8)
    bytes_of_row = 8 * (2 + len(pieces.feature))
    monkeypatch.setattr("loclin.fitting.pieces._MOST_BYTES", 1500 * bytes_of_row)
    some = _that_fit(rows, pieces)
    np.testing.assert_array_equal(np.bincount(some.y), 15)


def test_an_ensemble_warns_of_rows_that_its_members_leave_out(monkeypatch):
    x = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    bends = (np.floor(3 * x[:, 0]) % 2).astype(int)
    monkeypatch.setattr("loclin.fitting.pieces._MOST_BYTES", 500 * 8 * 18)
    with pytest.warns(loclin.SomeRowsWarning, match="The fit learns from .* of them"):
        loclin.LocallyLinearEnsemble(n_folds=2, random_state=0).fit(x, bends)


def test_weights_of_features_are_the_most_of_their_pieces():
    model = loclin.ML3Classifier(3, pieces=5, metric="diagonal", **SHORT).fit(X, Y)
    assert model.feature_weights_.shape == (F,)
    of_first = np.append(model._root[0], model._root[F:][model.pieces_.feature == 0])
    assert model.feature_weights_[0] == of_first.max()


def test_too_few_rows_leave_no_choice():
    model = loclin.ML3Classifier(pieces="auto", random_state=0).fit(X[:12], Y[:12] == "a")
    assert model.pieces_ is None
    assert loclin.ML3Classifier(pieces="auto").partial_fit(X, Y, np.unique(Y)).pieces_ is None


def test_a_frozen_coding_knows_rows_without_pieces():
    frozen = FrozenEstimator(clone(SOFT).fit(X))
    with pytest.raises(ValueError, match="pieces=4 needs a coding that is fitted"):
        loclin.LLSVMClassifier(frozen, pieces=4, **SHORT).fit(X, Y)
    with pytest.raises(ValueError, match="pieces=4 needs a coding that is fitted"):
        loclin.LLSVMClassifier(frozen, pieces=4, **SHORT).partial_fit(X, Y, np.unique(Y))
    assert loclin.LLSVMClassifier(frozen, pieces="auto", **SHORT).fit(X, Y).pieces_ is None


@each("wrong", [1, 0, -3, 2.5, "eight", True, np.array([5, 6])])
def test_what_is_no_number_of_pieces_is_refused(wrong):
    with pytest.raises((ValueError, TypeError), match="pieces"):
        loclin.ML3Classifier(pieces=wrong).fit(X, Y)


def test_given_points_are_those_of_the_rows():
    points = X[:6].copy()
    soft = SoftAssignmentCoding(anchors=points, n_neighbors=3)
    for model in (
        loclin.SAPLClassifier(anchors=points, n_neighbors=3, pieces=5, **SHORT),
        loclin.LLSVMClassifier(soft, pieces=5, **SHORT),
        loclin.CSVMClassifier(centers=points, pieces=5, alpha="scale", random_state=0),
    ):
        assert model.fit(X, Y).score(X, Y) > 0.6
    first = loclin.LLSVMClassifier(soft, pieces=5, metric=None, **SHORT).fit(X, Y)
    np.testing.assert_allclose(first.coding_.anchors_, first._features.of_points(points))


@each("classes", [2, 3])
def test_an_ensemble_of_members_with_and_without(classes, tmp_path):
    y = Y if classes == 3 else Y == "a"
    model = loclin.LocallyLinearEnsemble(
        [loclin.ML3Classifier(2, **SHORT), loclin.ML3Classifier(3, pieces=4, **SHORT)],
        n_folds=2, random_state=0,
    ).fit(X, y)  # fmt: skip
    coef, intercept = model.local_model(X)
    scores = np.einsum("n...d,nd->n...", coef, X) + intercept
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-9, atol=1e-9)
    found = describe(model)
    np.testing.assert_allclose(found.decision_function(X), scores, rtol=1e-9, atol=1e-9)
    n_pieces = sum(one._features.n_pieces for one, _ in model._factors())
    assert model.local_coef_.shape[2] == F + n_pieces
    assert model.local_intercept_.shape == model.local_coef_.shape[:2]
    loclin.io.save(model, tmp_path / "model.loclin")
    again = loclin.io.load(tmp_path / "model.loclin")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_rules_of_regions_name_pieces():
    frame = pd.DataFrame(X, columns=["size", "width", "flag", "kind"])
    model = loclin.L3MClassifier(2, pieces=3, **SHORT).fit(frame, np.abs(X[:, 0]) > 0.7)
    rules = "\n".join(model.region_rules(frame, n_top=9))
    assert "(size from " in rules
