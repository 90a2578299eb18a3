import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from loclin.codings import (
    InverseDistanceCoding,
    LLCCoding,
    LocalCoordinateCoding,
    OrthogonalCoding,
    SoftAssignmentCoding,
    TangentCoding,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))
ANCHORS = RNG.normal(size=(9, 4))
BY_ANCHORS = [SoftAssignmentCoding, InverseDistanceCoding, LLCCoding]
K = 3


# The dense truth of one row: the weights of its nearest anchors V, row by row.


def soft_truth(x, V):
    weights = np.exp(-0.7 * ((x - V) ** 2).sum(axis=1))
    return weights / weights.sum()


def inverse_truth(x, V):
    weights = 1 / np.linalg.norm(x - V, axis=1)
    return weights / weights.sum()


def llc_truth(x, V):
    C = (V - x) @ (V - x).T
    weights = np.linalg.solve(C + 1e-4 * np.trace(C) * np.eye(len(V)), np.ones(len(V)))
    return weights / weights.sum()


TRUTHS = {
    SoftAssignmentCoding: soft_truth,
    InverseDistanceCoding: inverse_truth,
    LLCCoding: llc_truth,
}


def coding_of(cls, anchors=ANCHORS, k=K):
    settings = {"bandwidth": 0.7} if cls is SoftAssignmentCoding else {}
    return cls(anchors=anchors, n_neighbors=k, **settings)


def dense_truth(cls, X, anchors=ANCHORS, k=K):
    codes = np.zeros((len(X), len(anchors)))
    for row, x in enumerate(X):
        near = np.argsort(cdist([x], anchors)[0], kind="stable")[:k]
        codes[row, near] = TRUTHS[cls](x, anchors[near])
    return codes


@pytest.mark.parametrize("k", [1, 3, 9])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("cls", BY_ANCHORS)
def test_codes_are_the_dense_truth(cls, form, k):
    codes = coding_of(cls, k=k).fit_transform(form(X))
    assert isinstance(codes, sparse.csr_matrix)
    assert codes.has_canonical_format
    assert (np.diff(codes.indptr) == k).all()
    np.testing.assert_allclose(codes.toarray(), dense_truth(cls, X, k=k), atol=1e-9)


@pytest.mark.parametrize("cls", BY_ANCHORS)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-6, 1.0, 1e6]), k=st.integers(1, 7))
@settings(max_examples=25)
def test_rows_sum_to_one_at_every_scale(cls, seed, scale, k):
    rng = np.random.default_rng(seed)
    X, anchors = scale * rng.integers(-2, 3, (20, 3)), scale * rng.integers(-2, 3, (7, 3))
    codes = cls(anchors=anchors, n_neighbors=k).fit_transform(X)
    np.testing.assert_allclose(codes.sum(axis=1), 1, atol=1e-6)
    assert (np.diff(codes.indptr) <= k).all()
    if cls is not LLCCoding:
        assert codes.data.min() > 0


@pytest.mark.parametrize("cls", BY_ANCHORS)
def test_permuted_anchors_permute_columns(cls):
    order = np.random.default_rng(1).permutation(len(ANCHORS))
    codes = coding_of(cls).fit_transform(X).toarray()
    permuted = coding_of(cls, ANCHORS[order]).fit_transform(X).toarray()
    np.testing.assert_allclose(permuted, codes[:, order], atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_row_on_an_anchor(form):
    on_anchors = form(ANCHORS)
    inverse = coding_of(InverseDistanceCoding).fit_transform(on_anchors)
    np.testing.assert_array_equal(inverse.toarray(), np.eye(len(ANCHORS)))
    for cls in (SoftAssignmentCoding, LLCCoding):
        codes = coding_of(cls).fit_transform(on_anchors).toarray()
        np.testing.assert_array_equal(codes.argmax(axis=1), np.arange(len(ANCHORS)))


@pytest.mark.parametrize("cls", BY_ANCHORS)
def test_equal_anchors_share(cls):
    codes = cls(anchors=[[1.0], [1.0], [9.0]], n_neighbors=2).fit_transform([[1.0], [1.0]])
    np.testing.assert_allclose(codes.toarray(), [[0.5, 0.5, 0]] * 2)


@pytest.mark.parametrize("cls", BY_ANCHORS)
@pytest.mark.parametrize("distance", [1e3, 1e6, 1e100])
def test_far_rows_have_codes(cls, distance):
    codes = coding_of(cls).fit(X).transform(distance * X[:5])
    assert np.isfinite(codes.data).all()
    np.testing.assert_allclose(codes.sum(axis=1), 1)


def test_huge_bandwidth_leaves_the_nearest_anchor():
    codes = SoftAssignmentCoding(anchors=ANCHORS, bandwidth=1e300).fit(X).transform(1e3 * X)
    np.testing.assert_array_equal(codes.data, 1)
    assert codes.nnz == len(X)


@pytest.mark.parametrize("cls", BY_ANCHORS)
def test_float32_is_kept(cls):
    codes = coding_of(cls).fit_transform(X.astype(np.float32))
    assert codes.dtype == np.float32
    np.testing.assert_allclose(codes.toarray(), dense_truth(cls, X), atol=1e-3)


def test_bandwidth_from_the_data():
    coding = SoftAssignmentCoding(anchors=ANCHORS, n_neighbors=K).fit(X)
    farthest = np.sort(cdist(X, ANCHORS, "sqeuclidean"), axis=1)[:, K - 1]
    assert coding.bandwidth_ == pytest.approx(1 / np.median(farthest))
    assert SoftAssignmentCoding(bandwidth=2, anchors=ANCHORS).fit(X).bandwidth_ == 2.0


@pytest.mark.parametrize("cls", BY_ANCHORS)
def test_too_large_numbers_are_clipped_with_one_warning(cls):
    with pytest.warns(UserWarning, match="there are 5 anchors. Using n_neighbors=5") as caught:
        coding = cls(anchors=ANCHORS[:5], n_neighbors=8).fit(X)
    assert len(caught) == 1
    assert coding.transform(X).nnz == 5 * len(X)
    with pytest.warns(UserWarning, match="Using n_anchors=50") as caught:
        assert cls(n_anchors=1000, n_neighbors=2, anchors="random").fit(X).anchors_.shape == (50, 4)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("coding", "error", "message"),
    [
        (SoftAssignmentCoding(n_anchors=0), ValueError, "n_anchors=0 is not valid"),
        (LLCCoding(n_neighbors=1.5), TypeError, "n_neighbors=1.5 has type float"),
        (SoftAssignmentCoding(bandwidth=0), ValueError, 'bandwidth=0 is not valid.*or "auto"'),
        (SoftAssignmentCoding(bandwidth="wide"), TypeError, "bandwidth='wide' has type str"),
        (InverseDistanceCoding(anchors="grid"), ValueError, "anchors='grid' is not valid; use"),
        (InverseDistanceCoding(anchors=[[1.0]]), ValueError, r"anchors has shape \(1, 1\)"),
        (LLCCoding(regularization=0), ValueError, "regularization=0 is not valid"),
        (OrthogonalCoding(n_planes=0), ValueError, "n_planes=0 is not valid.*or None"),
        (OrthogonalCoding(per_class="yes"), TypeError, "use True or False"),
        (OrthogonalCoding(whiten=1), TypeError, "use True or False"),
        (OrthogonalCoding(norm="max"), ValueError, r"norm='max' is not valid; use .*'l1', 'l2'"),
    ],
)
def test_bad_parameters(coding, error, message):
    with pytest.raises(error, match=message):
        coding.fit(X)


@pytest.mark.parametrize(
    "coding",
    [
        *(kind(anchors=ANCHORS, n_neighbors=2) for kind in BY_ANCHORS),
        LocalCoordinateCoding(anchors=ANCHORS),
        TangentCoding(SoftAssignmentCoding(anchors=ANCHORS, n_neighbors=2), 1),
        OrthogonalCoding(),
    ],
)
def test_a_fit_that_fails_changes_nothing(coding):
    before = dict(vars(coding.fit(X)))
    with pytest.raises(ValueError, match=r"anchors has shape|zero everywhere"):
        coding.fit(np.zeros((9, 3)))
    assert vars(coding) == before
    assert coding.transform(X).shape[0] == len(X)


def orthogonal_truth(train, X, n_planes=None):
    _, values, planes = np.linalg.svd(train, full_matrices=False)
    n_planes = n_planes or np.linalg.matrix_rank(train)
    codes = X @ planes[:n_planes].T / values[:n_planes]
    return codes / np.abs(codes).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_planes", [None, 2])
@pytest.mark.parametrize("rank", [3, 4])
def test_orthogonal_codes_are_the_dense_truth(form, n_planes, rank):
    train = X[:, :rank] @ np.random.default_rng(2).normal(size=(rank, 4))
    codes = OrthogonalCoding(n_planes).fit_transform(form(train))
    truth = orthogonal_truth(train, train, n_planes)
    assert isinstance(codes, sparse.csr_matrix)
    assert codes.shape == (50, n_planes or rank)
    signs = np.sign((codes.toarray() * truth).sum(axis=0))
    np.testing.assert_allclose(codes.toarray() * signs, truth, atol=1e-10)


@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("whiten", [True, False])
def test_orthogonal_codes_have_unit_length_and_know_no_scale(whiten, norm, size):
    coding = OrthogonalCoding(2, whiten=whiten, norm=norm).fit(X)
    _, values, planes = np.linalg.svd(X, full_matrices=False)
    truth = X @ planes[:2].T / (values[:2] if whiten else 1.0)
    truth /= np.linalg.norm(truth, ord=int(norm[1]), axis=1, keepdims=True)
    codes = coding.transform(size * X).toarray()
    signs = np.sign((codes * truth).sum(axis=0))
    np.testing.assert_allclose(codes * signs, truth, atol=1e-10)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_unit_projections_know_no_rotation(norm):
    """Their products with each other are those of the rows at unit length."""
    codes = OrthogonalCoding(whiten=False, norm=norm).fit_transform(X).toarray()
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    same = np.allclose(codes @ codes.T, units @ units.T)
    assert same == (norm == "l2")


def test_orthogonal_codes_of_classes_stand_side_by_side():
    y = np.repeat(["a", "b"], 25)
    coding = OrthogonalCoding(3, per_class=True).fit(X, y)
    codes = coding.transform(X).toarray()
    parts = [OrthogonalCoding(3).fit(X[y == label]).transform(X).toarray() for label in "ab"]
    np.testing.assert_allclose(codes, np.hstack(parts))
    assert coding.n_planes_.tolist() == [3, 3]
    assert coding.classes_.tolist() == ["a", "b"]
    assert coding.planes_.shape == (6, 4)


def test_a_second_fit_forgets_the_classes():
    coding = OrthogonalCoding(per_class=True).fit(X, np.arange(50) % 2)
    assert not hasattr(coding.set_params(per_class=False).fit(X), "classes_")


@pytest.mark.parametrize(("n_features", "n_planes"), [(4, 4), (60, 40)])
def test_auto_takes_the_rank_but_at_most_forty(n_features, n_planes):
    wide = np.random.default_rng(1).normal(size=(50, n_features))
    coding = OrthogonalCoding("auto").fit(wide)
    assert coding.n_planes_.tolist() == [n_planes]
    np.testing.assert_array_equal(
        coding.transform(wide).toarray(), OrthogonalCoding(n_planes).fit_transform(wide).toarray()
    )


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_orthogonal_codes_of_zero_rows_are_zero(norm):
    coding = OrthogonalCoding(norm=norm).fit(X)
    assert coding.transform(np.zeros((2, 4))).nnz == 0
    assert OrthogonalCoding("auto").fit(np.zeros((3, 4))).transform(X[:2]).shape == (2, 1)
    with pytest.raises(ValueError, match="X is zero everywhere"):
        OrthogonalCoding().fit(np.zeros((3, 4)))


@pytest.mark.parametrize("per_class", [False, True])
def test_too_many_planes_are_clipped_with_one_warning(per_class):
    y = np.arange(50) % 2
    with pytest.warns(UserWarning, match="Using n_planes=4") as caught:
        coding = OrthogonalCoding(9, per_class=per_class).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert coding.n_planes_.tolist() == [4] * (1 + per_class)


def test_orthogonal_codes_keep_float32():
    codes = OrthogonalCoding().fit_transform(X.astype(np.float32))
    assert codes.dtype == np.float32
    np.testing.assert_allclose(
        codes.toarray(), OrthogonalCoding().fit_transform(X).toarray(), atol=1e-4
    )


CODINGS = [
    SoftAssignmentCoding(3, 2, random_state=0),
    InverseDistanceCoding(3, 2, random_state=0),
    LLCCoding(3, 2, random_state=0),
    OrthogonalCoding(),
    OrthogonalCoding(per_class=True),
    OrthogonalCoding(whiten=False, norm="l2"),
]


@pytest.mark.parametrize("coding", CODINGS[:1] + CODINGS[3:], ids=str)
def test_in_a_pipeline_with_names(coding):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), clone(coding), LinearSVC(random_state=0)).fit(X, y)
    assert model.score(X, y) > 0.8
    names = model[1].get_feature_names_out()
    assert len(names) == model[:-1].transform(X).shape[1]
    assert names[0] == f"{type(coding).__name__.lower()}0"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:n_(anchors|neighbors)=. is too large:UserWarning")
@parametrize_with_checks(CODINGS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
