import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from loclin.anchors import (
    anchor_planes,
    auto_bandwidth,
    kmeans_anchors,
    make_anchors,
    nearest_anchors,
    random_anchors,
)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(60, 5))


@pytest.mark.parametrize("how", ["kmeans", "random"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shape_type_and_seed(X, how, form, dtype):
    X = form(X.astype(dtype))
    anchors = make_anchors(X, 7, how, random_state=3)
    assert anchors.shape == (7, 5)
    assert anchors.dtype == dtype
    np.testing.assert_array_equal(anchors, make_anchors(X, 7, how, random_state=3))


def test_random_anchors_are_distinct_rows(X):
    anchors = random_anchors(np.repeat(X[:9], 20, axis=0), 9, 0)
    np.testing.assert_array_equal(np.unique(anchors, axis=0), np.unique(X[:9], axis=0))


def test_minus_zero_is_zero():
    with pytest.warns(UserWarning, match="X has only 2 distinct rows. Using n_anchors=2"):
        assert sorted(random_anchors([[0.0], [-0.0], [1.0]], 3, 0).ravel()) == [0, 1]


def test_many_rows_take_mini_batches():
    centres = np.array([[0.0, 0], [10, 0], [0, 10]])
    X = np.repeat(centres, 8000, axis=0) + np.random.default_rng(0).normal(size=(24000, 2))
    anchors = kmeans_anchors(X, 3, 0)
    assert cdist(anchors, centres).min(axis=1).max() < 0.3


@pytest.mark.parametrize("how", ["kmeans", "random"])
def test_too_many_anchors_are_clipped_with_one_warning(X, how):
    with pytest.warns(UserWarning, match="Using n_anchors=4") as caught:
        assert len(make_anchors(np.repeat(X[:4], 3, axis=0), 100, how, 0)) == 4
    assert len(caught) == 1


def test_anchors_of_each_class(X):
    y = np.array(["b"] * 50 + ["a"] * 8 + ["c"] * 2)
    anchors = make_anchors(X, 12, "kmeans_per_class", random_state=0, y=y)
    # The two rows of c; of the other ten anchors five are means of rows of a, and five of b.
    np.testing.assert_allclose(np.sort(anchors[10:], axis=0), np.sort(X[58:], axis=0))
    for c, part in (("a", anchors[:5]), ("b", anchors[5:10])):
        rows = X[y == c]
        regions = cdist(rows, part).argmin(axis=1)
        means = [rows[regions == j].mean(axis=0) for j in range(5)]
        np.testing.assert_allclose(part, means)


def test_anchors_of_each_class_need_classes_and_an_anchor_each(X):
    y = np.arange(60) % 3
    with pytest.raises(ValueError, match="'kmeans_per_class' need y"):
        make_anchors(X, 5, "kmeans_per_class")
    with pytest.raises(ValueError, match=r"n_anchors=2 is too small.*there are 3 classes"):
        make_anchors(X, 2, "kmeans_per_class", y=y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make_anchors(X, 5, "kmeans_per_class", y=y[:9])
    with pytest.warns(UserWarning, match="Using n_anchors=3") as caught:
        make_anchors(np.repeat(X[:3], 5, axis=0), 9, "kmeans_per_class", y=np.repeat([0, 1, 2], 5))
    assert len(caught) == 1


def test_given_anchors_are_copied(X):
    anchors = make_anchors(X, 100, X[:3])
    np.testing.assert_array_equal(anchors, X[:3])
    assert not np.shares_memory(anchors, X)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, "kmeans"), ValueError, "n_anchors=0 is not valid"),
        ((2.5, "random"), TypeError, "n_anchors=2.5 has type float"),
        ((3, "grid"), ValueError, r"how='grid' is not valid; use one of \['kmeans', 'kmeans_per"),
        ((3, None), ValueError, "how=None is not valid"),
        ((3, np.ones((2, 4))), ValueError, r"anchors has shape \(2, 4\); X has 5 features"),
    ],
)
def test_bad_arguments(X, arguments, error, message):
    with pytest.raises(error, match=message):
        make_anchors(X, *arguments)


def sorted_truth(X, anchors, k):
    distances = cdist(X, anchors, "sqeuclidean")
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distances, order, axis=1)


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_nearest_anchors_are_the_nearest(X, form, k):
    anchors = np.random.default_rng(1).normal(size=(8, 5))
    indices, distances = nearest_anchors(form(X), anchors, k)
    order, truth = sorted_truth(X, anchors, k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, truth, rtol=1e-10)


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 30), st.integers(1, 9) | st.integers(60, 99), st.integers(1, 4)),
    k=st.integers(1, 9),
)
@settings(max_examples=60)
def test_ties_go_to_the_smaller_index(seed, shape, k):
    rng = np.random.default_rng(seed)
    n, m, d = shape
    X, anchors = rng.integers(-2, 3, (n, d)), rng.integers(-2, 3, (m, d))
    k = min(k, m)
    for got, truth in zip(nearest_anchors(X, anchors, k), sorted_truth(X, anchors, k), strict=True):
        np.testing.assert_array_equal(got, truth)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_blocks(X, dtype):
    anchors = np.random.default_rng(1).normal(size=(300, 5)).astype(dtype)
    X = np.tile(X, (70, 1)).astype(dtype)
    indices, distances = nearest_anchors(X, anchors, 4)
    order, truth = sorted_truth(X, anchors, 4)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, truth, rtol=1e-10 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_on_an_anchor_is_at_distance_zero(X, dtype):
    X = (X + 100).astype(dtype)
    for form in (np.asarray, sparse.csr_matrix):
        indices, distances = nearest_anchors(form(X), X, 2)
        np.testing.assert_array_equal(indices[:, 0], np.arange(len(X)))
        assert (distances[:, 0] == 0).all()
        assert (distances[:, 1] > 0).all()
        assert distances.dtype == dtype


def test_overflow_and_bad_k(X):
    with pytest.raises(ValueError, match="X has rows so long"):
        nearest_anchors(X * 1e200, X[:3], 2)
    with pytest.raises(ValueError, match="X has rows so long"):
        nearest_anchors([[1.2e154]], [[-1e154]], 1)
    with pytest.raises(ValueError, match=r"k=4 is not valid; .* there are 3 anchors"):
        nearest_anchors(X, X[:3], 4)


def test_auto_bandwidth(X):
    anchors = X[:6] + 0.1
    expected = 1 / np.median(sorted_truth(X, anchors, 3)[1][:, -1])
    assert auto_bandwidth(X, anchors, 3) == pytest.approx(expected)
    assert auto_bandwidth(X, X, 1) == 1.0
    assert auto_bandwidth(np.repeat([[1.0], [0.0], [0.0]], 5000, axis=0), [[0.0]], 1) == (
        pytest.approx(3, rel=1e-2)
    )


@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (10, 10)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("rank", [2, 100])
def test_planes_are_the_singular_vectors(shape, form, rank):
    rng = np.random.default_rng(0)
    rank = min(rank, *shape)
    X = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    planes, values = anchor_planes(form(X))
    _, truth_values, truth = np.linalg.svd(X, full_matrices=False)
    assert planes.shape == (rank, shape[1])
    np.testing.assert_allclose(values, truth_values[:rank])
    np.testing.assert_allclose(np.abs(planes @ truth[:rank].T), np.eye(rank), atol=1e-8)
    assert (np.take_along_axis(planes, np.abs(planes).argmax(1)[:, None], 1) > 0).all()


def test_planes_of_a_tall_sparse_matrix_are_folded():
    X = sparse.random(7000, 8, 0.3, "csr", rng=np.random.default_rng(0))
    planes, values = anchor_planes(X, 3)
    truth_planes, truth_values = anchor_planes(X.toarray(), 3)
    np.testing.assert_allclose(planes, truth_planes, atol=1e-10)
    np.testing.assert_allclose(values, truth_values)


def test_planes_of_a_large_sparse_matrix():
    X = sparse.random(3100, 3200, 5e-4, "csr", rng=np.random.default_rng(0))
    X = X + sparse.csr_matrix(([9.0, 8.0, 7.0], ([0, 1, 2], [0, 1, 2])), shape=X.shape)
    planes, values = anchor_planes(X, 2, random_state=0)
    np.testing.assert_allclose((X @ planes.T).T @ (X @ planes.T), np.diag(values**2), atol=1e-8)
    assert values[0] > values[1] > 7.5
    with pytest.raises(ValueError, match="Give a number, for example n_planes=100"):
        anchor_planes(X)
