"""Forests as the case of constants: against scikit-learn's own, and as a kind of the ensemble."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

import loclin.io
from loclin import ForestClassifier, LocallyLinearEnsemble, ML3Classifier
from loclin.engine.leaves import leaf_codes, leaf_scores
from loclin.ensemble.kinds import kinds_of
from loclin.ensemble.merging import merged
from loclin.forest.trees import leaves_of, shares_of
from loclin.portable import Leaves, Term, describe
from loclin.portable.checks import check_terms

each = pytest.mark.parametrize


def problem(n_classes=3, dtype=np.float64, n=120):
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    return X.astype(dtype), np.array(["a", "b", "c"])[y]


@each("form", [np.asarray, sparse.csr_matrix])
@each("dtype", [np.float64, np.float32])
@each("kind", [ExtraTreesClassifier, RandomForestClassifier])
def test_scores_are_the_shares_of_scikit_learn(kind, dtype, form):
    X, y = problem(dtype=dtype)
    forest = kind(7, random_state=0).fit(X[::2], y[::2])
    rows = X.astype(np.float32)  # which it compares
    trees = forest.estimators_
    leaves, shares = (
        leaves_of(trees, rows[::2].astype(dtype)),
        shares_of(trees, np.arange(3), 3, dtype) / 7,
    )
    found = leaf_scores(leaves, form(rows.astype(dtype)), shares.T)
    np.testing.assert_allclose(found, forest.predict_proba(form(rows)), atol=1e-6)
    codes = leaf_codes(leaves, form(rows.astype(dtype)))
    np.testing.assert_allclose(codes @ shares, found, atol=1e-6)
    assert (codes.getnnz(axis=1) == 7).all()


def test_thresholds_in_single_precision_part_the_same_rows():
    low = np.nextafter(np.float32(4), np.float32(5))
    high = np.nextafter(low, np.float32(5))
    X = np.array([[low], [high], [high], [low]])  # half-way between them rounds to the higher
    forest = RandomForestClassifier(1, bootstrap=False, random_state=0).fit(X, [0, 1, 1, 0])
    leaves = leaves_of(forest.estimators_, X)
    shares = shares_of(forest.estimators_, np.arange(2), 2, np.float32)
    np.testing.assert_array_equal(leaf_scores(leaves, X, shares.T).argmax(axis=1), [0, 1, 1, 0])


@each("n_classes", [2, 3])
def test_local_models_are_constants_that_make_the_scores(n_classes):
    X, y = problem(n_classes)
    model = ForestClassifier(5, random_state=0).fit(X[::2], y[::2])
    scores = model.decision_function(X)
    coef, constant = model.local_model(X)
    assert not coef.any()
    np.testing.assert_allclose(constant, scores, atol=1e-12)
    said = model.local_weights(X) @ model.local_intercept_.T
    np.testing.assert_allclose(np.squeeze(said), scores, atol=1e-12)
    assert model.score(X[1::2], y[1::2]) > 0.7
    assert 0 <= model.objective_[0] < 0.05


def test_pickles_and_files_hold_no_zeros(tmp_path):
    X, y = problem()
    model = ForestClassifier(5, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model)) < 4 * model.local_intercept_.nbytes
    loclin.io.save(model, tmp_path / "forest")
    assert (tmp_path / "forest").stat().st_size < 4 * model.local_intercept_.nbytes
    for copied in (again, loclin.io.load(tmp_path / "forest")):
        np.testing.assert_array_equal(copied.decision_function(X), model.decision_function(X))
        assert copied.local_coef_.shape == model.local_coef_.shape
        assert not any(copied.local_coef_.strides)


def test_features_far_from_zero_keep_their_digits():
    X, y = problem()
    near, far = (ForestClassifier(20, random_state=0).fit(X[::2] + by, y[::2]) for by in (0, 1e9))
    found = far.score(X[1::2] + 1e9, y[1::2])
    assert found == pytest.approx(near.score(X[1::2], y[1::2]), abs=0.05)


@each("far", [1e6, 1e9])
@each("splits", ["random", "best"])
def test_one_value_far_away_blinds_no_tree(splits, far):
    X, y = problem(n=600)
    X[0] = far
    model = ForestClassifier(20, splits=splits, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.85


def test_votes_are_counted_exactly_by_all_readers():
    X, y = problem(2, n=600)
    y = np.where(np.random.default_rng(0).uniform(size=600) < 0.3, "a", y)  # many ties
    model = ForestClassifier(6, random_state=0).fit(X[:300], y[:300])
    scores = model.decision_function(X)
    assert (scores[300:] == 0).any()
    for one in (describe(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(one.decision_function(X), scores)


def test_thresholds_are_between_values_that_occur():
    X = np.random.default_rng(0).integers(0, 9, (300, 4)).astype(np.float32)
    model = ForestClassifier(5, splits="best", random_state=0).fit(X, X[:, 0] > X[:, 1])
    np.testing.assert_array_equal(describe(model).decision_function(X), model.decision_function(X))


def test_what_loops_follow_cannot_be_written():
    X, y = problem()
    model = ForestClassifier(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="read-only"):
        model.leaves_.children[0] = 10**8


def test_features_a_node_looks_at_are_a_number_or_a_part():
    X, y = problem()
    one, part, whole = (ForestClassifier(3, max_features=f, random_state=0).fit(X[::2], y[::2])
                        for f in (1, 1 / 6, 1.0))  # fmt: skip
    np.testing.assert_array_equal(one.decision_function(X), part.decision_function(X))
    assert (one.decision_function(X) != whole.decision_function(X)).any()
    ForestClassifier(3, max_features=100, random_state=0).fit(X, y)


def test_trees_draw_rows_where_there_are_more_than_they_may_see():
    X, y = problem()
    small = ForestClassifier(5, most_rows=20, random_state=0).fit(X, y)
    whole = ForestClassifier(5, random_state=0).fit(X, y)
    assert small.local_intercept_.shape[1] < whole.local_intercept_.shape[1] / 2


def test_a_class_that_a_short_fit_does_not_see_has_no_share():
    forest = ExtraTreesClassifier(3, random_state=0).fit([[0.0], [1.0]], [0, 2])
    shares = shares_of(forest.estimators_, forest.classes_, 3, np.float64)
    assert not shares[:, 1].any()
    assert shares[:, 2].any()


WRONG_PARAMETERS = {
    "n_trees": 0, "splits": "all", "max_features": 0.0, "min_samples_leaf": 0, "most_rows": 0
}  # fmt: skip


@each(("name", "value"), WRONG_PARAMETERS.items())
def test_parameters_that_are_not_valid_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        ForestClassifier(**{name: value}).fit(*problem())


def test_it_learns_from_no_stream():
    with pytest.raises(AttributeError, match="partial_fit"):
        ForestClassifier().partial_fit(*problem(), classes=["a", "b", "c"])


def test_an_ensemble_says_that_forests_learn_from_no_stream():
    with pytest.raises(ValueError, match="trees must see all rows"):
        LocallyLinearEnsemble([ForestClassifier()]).partial_fit(*problem(), classes=["a", "b", "c"])


def test_members_are_one_forest_of_all_their_trees():
    X, y = problem()
    parts = [ForestClassifier(4, standardize=False, random_state=k).fit(X[k::2], y[k::2])
             for k in range(2)]  # fmt: skip
    (one,) = merged(parts)
    mean = (parts[0].decision_function(X) + parts[1].decision_function(X)) / 2
    np.testing.assert_allclose(one.decision_function(X), mean, atol=1e-12)
    check_terms(one._terms(), 6, 3)


def names_of(n, d=4, n_classes=2, form=np.asarray):
    rows = form(np.random.default_rng(0).normal(size=(n, d)))
    return [type(kind).__name__ for kind in kinds_of(None, rows, np.ones(n), n_classes, 5, 0)]


def test_the_fifth_kind_hangs_on_the_rows():
    assert names_of(999)[-1] == "L3MClassifier"
    assert names_of(1000)[-1] == "ForestClassifier"
    assert names_of(999, d=201)[-1] == "LLSVMClassifier"
    assert names_of(1000, n_classes=2000)[-1] == "LLSVMClassifier"  # leaves would say too much
    assert names_of(1000, form=sparse.csr_matrix)[-1] == "LLSVMClassifier"


@each("n_classes", [2, 3])
def test_an_ensemble_with_a_forest_stays_exact_and_goes_on(monkeypatch, n_classes):
    X, y = problem(n_classes)
    monkeypatch.setattr("loclin.ensemble.weighing.select", lambda *_: np.array([0.5, 0.5]))
    kinds = [ML3Classifier(2, max_iter=3, alpha="scale", pieces=None), ForestClassifier(4)]
    model = LocallyLinearEnsemble(kinds, n_folds=2, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    coef, constant = model.local_model(X)
    np.testing.assert_allclose(np.einsum("n...d,nd->n...", coef, X) + constant, scores, atol=1e-9)
    said = np.einsum("cmd,nd->ncm", model.local_coef_, X) + model.local_intercept_
    by_class = (model.local_weights(X) * said).sum(axis=2) + model.intercept_
    by_class = by_class[:, 1] - by_class[:, 0] if n_classes == 2 else by_class
    np.testing.assert_allclose(by_class, scores, atol=1e-9)
    np.testing.assert_allclose(describe(model).decision_function(X), scores, atol=1e-9)
    forest = model.members_[-1]
    model.partial_fit(X, y)
    assert model.members_[-1] is forest


GOOD = Leaves(*map(np.array, ([0], [0, 1], [0.5, 0.2], [[1, -3], [-1, -2]])))
WRONG = [
    ("roots", np.array([1])),  # the first node is nobody's
    ("feature", np.array([0, 2])),
    ("threshold", np.array([0.5, np.nan])),
    ("children", np.array([[0, -3], [-1, -2]])),  # around
    ("children", np.array([[1, -3], [-1, -3]])),  # one leaf twice
    ("children", np.array([[1, -4], [-1, -2]])),  # no leaf
    ("children", np.array([1, -3, -1, -2])),
    ("children", np.array([[1, -3], [-1, -2]]).view(np.uint64)),
]


@each(("part", "value"), WRONG)
def test_trees_that_lead_astray_are_refused(part, value):
    values = np.ones((2, 3))
    check_terms([Term(GOOD, None, values, np.zeros(2))], 2, 2)
    bad = Leaves(**vars(GOOD) | {part: value})
    with pytest.raises(ValueError, match=r"terms\[0\]"):
        check_terms([Term(bad, None, values, np.zeros(2))], 2, 2)
