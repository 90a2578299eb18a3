"""How SAPL starts: the number of anchors, where they come from, and what cannot change later."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.preprocessing import StandardScaler

import loclin
from loclin.datasets import make_sine, make_xor

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows", "no_metric")

# By the rule alone: what alpha="auto" does beside it is tested in test_strength.py.
SAPLClassifier = partial(loclin.SAPLClassifier, alpha="scale")

IRIS = StandardScaler().fit_transform(load_iris().data), load_iris().target
ALL_DIGITS = load_digits()
DIGITS = ALL_DIGITS.data / 16, ALL_DIGITS.target


@pytest.mark.parametrize("weights", ["linear", "constant"])
@pytest.mark.parametrize("share_anchors", [True, False])
def test_the_number_of_anchors_is_found(weights, share_anchors):
    X, y = make_sine(800, random_state=0)
    model = SAPLClassifier(
        "auto",
        4,
        weights=weights,
        share_anchors=share_anchors,
        max_iter=30,
        random_state=0,
        standardize=False,
    ).fit(X, y)
    assert 8 <= model.n_anchors_ == model.anchors_.shape[-2] <= 72  # a tenth of the rows learned
    X_test, y_test = make_sine(2000, random_state=1)
    assert model.score(X_test, y_test) > 0.97


def test_more_anchors_where_more_are_needed():
    def found(X, y):
        return SAPLClassifier("auto", 4, random_state=0, standardize=False).fit(X, y).n_anchors_

    few, many = (make_sine(1500, gap=gap, noise=0.1, random_state=0) for gap in (3.0, 0.6))
    assert found(*few) < found(*many)


@pytest.mark.slow
def test_sparse_rows_and_many_classes_grow_too():
    from scipy import sparse

    X, y = DIGITS
    fits = [
        SAPLClassifier("auto", max_iter=20, random_state=1, standardize=False).fit(
            form(X[:1000]), y[:1000]
        )
        for form in (np.asarray, sparse.csr_matrix)
    ]
    assert fits[0].n_anchors_ == fits[1].n_anchors_
    assert min(model.score(X[1000:], y[1000:]) for model in fits) > 0.92


@pytest.mark.slow
def test_classes_may_have_anchors_of_their_own_and_starts_of_their_own():
    X, y = DIGITS
    model = SAPLClassifier("auto", share_anchors=False, anchors="kmeans_per_class", max_iter=20,
                           random_state=0, standardize=False).fit(X[:1000], y[:1000])  # fmt: skip
    assert model.anchors_.shape == (10, model.n_anchors_, 64)
    assert 10 <= model.n_anchors_ <= 100  # an anchor a class at least, where growth starts with 8
    assert model.score(X[1000:], y[1000:]) > 0.92


def test_growth_counts_rows_by_their_weights():
    X, y = make_sine(1600, random_state=0)
    wrong = np.arange(1600) % 2 == 0
    model = SAPLClassifier("auto", 4, random_state=0, standardize=False)
    model.fit(X, np.where(wrong, 1 - y, y), sample_weight=np.where(wrong, 1e-3, 1))
    assert model.score(X, y) > 0.97


def test_rows_that_coincide_split_in_silence():
    X, y = make_sine(600, random_state=0)
    X[:200] = 0  # a point with both labels: most loss
    assert (
        SAPLClassifier("auto", 4, max_iter=5, random_state=0, standardize=False)
        .fit(X, y)
        .n_anchors_
        >= 8
    )


def test_what_auto_cannot_do():
    X, y = make_xor(200, random_state=0)
    assert not hasattr(SAPLClassifier("auto", standardize=False), "partial_fit")
    with pytest.raises(ValueError, match="n_anchors='auto' cannot start from given anchors"):
        SAPLClassifier("auto", anchors=X[:9], standardize=False).fit(X, y)
    with pytest.raises(ValueError, match=r"n_anchors='auto' cannot hold out .* of 4 rows"):
        SAPLClassifier("auto", standardize=False).fit(X[:4], [0, 1, 0, 1])
    with pytest.raises(TypeError, match="n_anchors='many' has type str"):
        SAPLClassifier("many", standardize=False).fit(X, y)


def test_every_class_has_an_anchor_by_default():
    X, y = DIGITS[0][:60], DIGITS[1][:60]  # a tenth of the rows would be six anchors
    model = SAPLClassifier(
        anchors="kmeans_per_class", max_iter=5, random_state=0, standardize=False
    ).fit(X, y)
    assert model.n_anchors_ == 10


@pytest.mark.parametrize(
    "changed",
    [{"n_anchors": 12}, {"n_neighbors": 2}, {"weights": "constant"}, {"share_anchors": False}],
)
def test_a_fit_that_goes_on_keeps_its_form(changed):
    model = SAPLClassifier(
        6, 3, max_iter=5, warm_start=True, random_state=0, standardize=False
    ).fit(*IRIS)
    scores = model.decision_function(IRIS[0])
    model.set_params(**changed)
    with pytest.raises(ValueError, match=f"{next(iter(changed))}=.* differs from .* to go on"):
        model.fit(*IRIS)
    with pytest.raises(ValueError, match="differs from"):
        model.partial_fit(*IRIS)
    if "n_neighbors" in changed:
        np.testing.assert_array_equal(model.decision_function(IRIS[0]), scores)
