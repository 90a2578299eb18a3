import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

import loclin
from loclin.datasets import make_xor
from loclin.ml3 import runs as cccp_runs

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

# By the rule alone: what alpha="auto" does beside it is tested in test_strength.py.
ML3Classifier = partial(loclin.ML3Classifier, alpha="scale")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def stream(clf, X, y, chunk, classes, n_passes=1):
    for _ in range(n_passes):
        for first in range(0, len(y), chunk):
            clf.partial_fit(X[first : first + chunk], y[first : first + chunk], classes=classes)
    return clf


@pytest.mark.parametrize("chunk", [*(pytest.param(n, marks=pytest.mark.slow) for n in (1, 7)), 100])
def test_any_chunk_size_learns(chunk):
    n = 800 if chunk == 1 else 4000
    X, y = make_xor(n, std=0.3, random_state=0)
    X_test, y_test = make_xor(4000, std=0.3, random_state=1)
    clf = stream(ML3Classifier(4, random_state=0, standardize=False), X, y, chunk, [0, 1])
    assert clf.score(X_test, y_test) > 0.99
    assert clf.t_ == n


def test_one_call_for_everything_learns_as_well():
    X, y = make_xor(4000, std=0.3, random_state=0)
    X_test, y_test = make_xor(4000, std=0.3, random_state=1)
    clf = ML3Classifier(4, random_state=0, standardize=False).partial_fit(X, y, classes=[0, 1])
    assert clf.score(X_test, y_test) > 0.99


@pytest.mark.parametrize(
    "kind", [np.asarray, pytest.param(sparse.csr_matrix, marks=pytest.mark.slow)]
)
def test_several_passes_come_near_fit(digits, kind):
    X, y = digits
    clf = stream(
        ML3Classifier(random_state=0, standardize=False),
        kind(X)[:1200],
        y[:1200],
        100,
        np.unique(y),
        10,
    )
    fitted = ML3Classifier(random_state=0, standardize=False).fit(X[:1200], y[:1200])
    assert clf.score(X[1200:], y[1200:]) > fitted.score(X[1200:], y[1200:]) - 0.02


def test_large_calls_are_cut_into_blocks(monkeypatch, digits):
    X, y = digits
    monkeypatch.setattr(cccp_runs, "_STREAM_BLOCK", 300)
    clf = ML3Classifier(4, batch_size=8, random_state=0, standardize=False)
    whole = clone(clf).partial_fit(X[:900], y[:900], classes=np.unique(y))
    parts = stream(clone(clf), X[:900], y[:900], 300, np.unique(y))
    np.testing.assert_allclose(whole.local_coef_, parts.local_coef_, rtol=1e-12)


def test_state_does_not_grow_with_the_stream(digits):
    X, y = digits
    clf = ML3Classifier(4, random_state=0, standardize=False)
    sizes = []
    for _ in range(6):
        stream(clf, X, y, 200, np.unique(y))
        sizes.append(len(pickle.dumps(clf)))
    assert max(sizes[1:]) - min(sizes[1:]) < 200


def test_a_pickled_stream_goes_on_as_it_would_have(digits):
    X, y = digits
    a = stream(
        ML3Classifier(4, random_state=0, standardize=False), X[:800], y[:800], 200, np.unique(y)
    )
    b = pickle.loads(pickle.dumps(a))
    for clf in (a, b):
        stream(clf, X[800:], y[800:], 200, None)
    np.testing.assert_array_equal(a.local_coef_, b.local_coef_)


def test_classes_that_come_late(digits):
    X, y = digits
    order = np.argsort(y >= 5, kind="stable")  # classes 0 .. 4 first
    clf = stream(
        ML3Classifier(random_state=0, standardize=False), X[order], y[order], 150, np.unique(y), 3
    )
    assert clf.score(X[order][-300:], y[order][-300:]) > 0.9


def test_after_fit_the_stream_goes_on(digits):
    X, y = digits
    clf = ML3Classifier(8, random_state=0, standardize=False).fit(X[:1000], y[:1000])
    before, alpha, t = clf.score(X[1400:], y[1400:]), clf.alpha_, clf.t_
    stream(clf, X[1000:1400], y[1000:1400], 50, None)
    assert clf.alpha_ == alpha
    assert clf.t_ == t + 400
    assert clf.score(X[1400:], y[1400:]) > before - 0.01
    clf.fit(X, y)  # and a fit starts afresh
    assert clf.t_ == (clf.n_iter_ + 1) * len(y)


def test_weights_on_a_stream(digits):
    X, y = digits
    spoiled = np.where(np.arange(len(y)) % 3 == 0, (y + 1) % 10, y)
    weights = (spoiled == y).astype(float)
    clf, clean = (
        ML3Classifier(4, random_state=0, standardize=False),
        ML3Classifier(4, random_state=0, standardize=False),
    )
    for first in range(0, 1200, 100):
        rows = slice(first, first + 100)
        kept = weights[rows] > 0
        clf.partial_fit(X[rows], spoiled[rows], np.unique(y), sample_weight=weights[rows])
        clean.partial_fit(X[rows][kept], y[rows][kept], np.unique(y))
    np.testing.assert_array_equal(clf.local_coef_, clean.local_coef_)


def test_fixed_alpha_and_class_weight(digits):
    X, y = digits
    clf = ML3Classifier(4, alpha=0.001, class_weight={0: 3.0}, random_state=0, standardize=False)
    stream(clf, X, y, 300, np.unique(y), 2)
    assert clf.alpha_ == 0.001
    assert clf.score(X, y) > 0.9


def test_errors(digits):
    X, y = digits
    with pytest.raises(ValueError, match="classes is needed at the first call"):
        ML3Classifier(standardize=False).partial_fit(X, y)
    with pytest.raises(ValueError, match="fewer than two"):
        ML3Classifier(standardize=False).partial_fit(X, y, classes=[3])
    with pytest.raises(ValueError, match=r"not among the classes .*: \[2 3 4 5 6 7 8 9\]"):
        ML3Classifier(standardize=False).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        ML3Classifier(class_weight="balanced", standardize=False).partial_fit(
            X, y, classes=np.unique(y)
        )
    clf = ML3Classifier(2, random_state=0, standardize=False).partial_fit(
        X, y, classes=np.unique(y)
    )
    with pytest.raises(ValueError, match="differs from the earlier ones"):
        clf.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="X has 63 features"):
        clf.partial_fit(X[:, 1:], y)


def test_a_stream_may_change_between_dense_and_sparse(digits):
    X, y = digits
    plain = stream(
        ML3Classifier(4, random_state=0, standardize=False), X[:1600], y[:1600], 200, np.unique(y)
    )
    mixed = ML3Classifier(4, random_state=0, standardize=False)
    for i, first in enumerate(range(0, 1600, 200)):
        kind = sparse.csr_matrix if i in (2, 3, 6) else np.asarray
        mixed.partial_fit(kind(X[first : first + 200]), y[first : first + 200], np.unique(y))
    np.testing.assert_allclose(mixed.local_coef_, plain.local_coef_, rtol=1e-6, atol=1e-9)


def test_a_refused_first_chunk_leaves_a_fresh_start(digits):
    X, y = digits
    clf = ML3Classifier(2, random_state=0, standardize=False)
    with pytest.raises(ValueError, match="not among the classes"):
        clf.partial_fit(X, y, classes=[0, 1])
    clf.partial_fit(X, y, classes=np.unique(y))
    assert clf.local_coef_.shape[0] == 10


def test_a_refused_chunk_changes_nothing(digits):
    X, y = digits
    clf = stream(
        ML3Classifier(2, random_state=0, standardize=False), X[:600], y[:600], 200, np.unique(y)
    )
    before = clf.local_coef_.copy()
    spoiled = X[600:700].copy()
    spoiled[3, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clf.partial_fit(spoiled, y[600:700])
    np.testing.assert_array_equal(clf.local_coef_, before)
