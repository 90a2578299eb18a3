import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
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
    _lcc,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))
ANCHORS = RNG.normal(size=(9, 4))
FORMS = [np.asarray, sparse.csr_matrix, sparse.csr_array]


def lcc(anchors=ANCHORS, locality=0.1, **settings):
    return LocalCoordinateCoding(anchors=anchors, locality=locality, **({"max_iter": 0} | settings))


def objective(code, x, anchors, locality):
    far = ((anchors - x) ** 2).sum(axis=1)
    return ((x - code @ anchors) ** 2).sum() / 2 + locality * np.abs(code) @ far


def generic_solution(x, anchors, locality):
    """Code of a row by a solver for any problem, the signs split: code = plus - minus."""
    m = len(anchors)
    far = ((anchors - x) ** 2).sum(axis=1)
    signs = np.repeat([1.0, -1.0], m)

    def value(parts):
        code = parts[:m] - parts[m:]
        gap = code @ anchors - x
        slope = signs * np.tile(anchors @ gap, 2) + locality * np.tile(far, 2)
        return gap @ gap / 2 + locality * parts @ np.tile(far, 2), slope

    whole = {"type": "eq", "fun": lambda parts: signs @ parts - 1, "jac": lambda parts: signs}
    start = np.repeat([1.0 / m, 0.0], m)
    found = minimize(value, start, jac=True, method="SLSQP", bounds=[(0, None)] * (2 * m),
                     constraints=whole, options={"ftol": 1e-15, "maxiter": 2000})  # fmt: skip
    code = found.x[:m] - found.x[m:]
    return code / code.sum()


def violation(code, x, anchors, locality):
    """How far the code is from the optimality conditions, as a part of their scale."""
    x, anchors = x - anchors.mean(axis=0), anchors - anchors.mean(axis=0)
    gradient = anchors @ (code @ anchors - x)
    penalty = locality * ((anchors - x) ** 2).sum(axis=1)
    levels = (gradient + np.sign(code) * penalty)[code != 0]
    beyond = np.abs(gradient - levels.mean()) - penalty
    scale = (1 + locality) * (x @ x + (anchors**2).sum(axis=1).max()) + 1e-300
    return max(np.ptp(levels), beyond[code == 0].max(initial=0)) / scale


@pytest.mark.parametrize(("m", "d"), [(2, 5), (4, 4), (8, 3), (9, 1)])
@pytest.mark.parametrize("locality", [1e-3, 0.1, 10.0])
def test_codes_are_those_of_a_generic_solver(m, d, locality):
    rng = np.random.default_rng(m)
    rows, anchors = rng.normal(size=(6, d)), rng.normal(size=(m, d))
    codes = lcc(anchors, locality).fit_transform(rows).toarray()
    for code, x in zip(codes, rows, strict=True):
        truth = generic_solution(x, anchors, locality)
        best, reached = (objective(c, x, anchors, locality) for c in (code, truth))
        assert best <= reached * (1 + 1e-12)
        np.testing.assert_allclose(code, truth, atol=2e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("locality", [1e-3, 0.1])
def test_codes_of_many_anchors_are_optimal(form, locality):
    rng = np.random.default_rng(1)
    rows, anchors = rng.normal(size=(40, 20)) + 5, rng.normal(size=(200, 20)) + 5
    codes = lcc(anchors, locality).fit_transform(form(rows))
    assert isinstance(codes, sparse.csr_matrix)
    assert codes.has_canonical_format
    assert codes.nnz <= 21 * len(rows)  # affinely independent supports
    assert (codes.data < 0).any()
    for code, x in zip(codes.toarray(), rows, strict=True):
        assert violation(code, x, anchors, locality) < 2e-12


@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 12),
    d=st.integers(1, 6),
    locality=st.sampled_from([1e-6, 1e-3, 0.1, 0.5, 100.0]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    on_a_grid=st.booleans(),
)
@settings(max_examples=100)
def test_codes_are_optimal_and_sum_to_one(seed, m, d, locality, scale, on_a_grid):
    rng = np.random.default_rng(seed)
    rows, anchors = rng.normal(size=(5, d)), rng.normal(size=(m, d))
    if on_a_grid:  # equal and collinear anchors, rows on anchors, rows of zeros
        rows, anchors = rows.round(), anchors.round()
    codes = lcc(scale * anchors, locality).fit_transform(scale * rows).toarray()
    np.testing.assert_allclose(codes.sum(axis=1), 1, atol=1e-9)
    for code, x in zip(codes, rows, strict=True):
        assert violation(code, scale * x, scale * anchors, locality) < 2e-12


@pytest.mark.parametrize("form", FORMS)
def test_float32_is_kept(form):
    coding = lcc(ANCHORS).fit(form(X.astype(np.float32)))
    codes = coding.transform(form(X.astype(np.float32)))
    assert codes.dtype == coding.anchors_.dtype == np.float32
    np.testing.assert_allclose(codes.toarray(), lcc().fit_transform(X).toarray(), atol=1e-5)


def test_permuted_anchors_permute_columns():
    order = np.random.default_rng(1).permutation(len(ANCHORS))
    codes = lcc().fit_transform(X).toarray()
    np.testing.assert_allclose(
        lcc(ANCHORS[order]).fit_transform(X).toarray(), codes[:, order], atol=1e-10
    )


def test_codes_do_not_know_the_origin():
    codes = lcc().fit_transform(X).toarray()
    far = lcc(ANCHORS + 1e6).fit_transform(X + 1e6).toarray()
    np.testing.assert_allclose(far, codes, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("locality", [1e-3, 0.1])
def test_row_on_an_anchor_has_it_alone(form, locality):
    codes = lcc(locality=locality).fit_transform(form(ANCHORS))
    np.testing.assert_array_equal(codes.toarray(), np.eye(len(ANCHORS)))


def test_degenerate_anchors():
    rows = [[0.0, 0.0], [1.0, 2.0], [3.0, -1.0]]
    assert lcc([[5.0, 5.0]]).fit_transform(rows).toarray().tolist() == [[1.0]] * 3
    equal = lcc([[1.0, 0.0]] * 3).fit_transform(rows).toarray()
    np.testing.assert_allclose(equal.sum(axis=1), 1)
    at_origin = lcc([[0.0, 0.0]] * 2).fit_transform(np.zeros((2, 2)))
    np.testing.assert_allclose(at_origin.sum(axis=1), 1)


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e100])
def test_far_rows_have_codes(distance):
    codes = lcc().fit(X).transform(distance * X[:5])
    assert np.isfinite(codes.data).all()
    np.testing.assert_allclose(codes.sum(axis=1), 1)


@pytest.mark.parametrize("anchors", [ANCHORS, [[1e200] * 4, [0.0] * 4]])
def test_rows_and_anchors_too_long_are_refused(anchors):
    with pytest.raises(ValueError, match="has rows so long that their squared norms overflow"):
        lcc(anchors).fit(X).transform(1e200 * X)


@pytest.mark.filterwarnings("ignore:.*not exact:sklearn.exceptions.ConvergenceWarning")
def test_anchors_of_many_scales_have_codes():
    rng = np.random.default_rng(0)
    for _ in range(10):
        anchors = rng.normal(size=(100, 60)) * 10 ** rng.uniform(-3, 3, size=(100, 1))
        codes = lcc(anchors, 1e-6).fit_transform(rng.normal(size=(5, 60)))
        np.testing.assert_allclose(codes.sum(axis=1), 1, atol=1e-6)
        assert np.diff(codes.indptr).max() <= 61


def test_rows_that_are_not_solved_are_counted(monkeypatch):
    truth = lcc(max_iter=0).fit(X).objective_[0]
    real = _lcc.code_rows
    monkeypatch.setattr(_lcc, "code_rows", lambda *parts: real(*parts[:4], 2, *parts[5:]))
    with pytest.warns(ConvergenceWarning, match=r"\d+ of 50 rows have codes that are not exact"):
        coding = lcc(max_iter=0).fit(X)
    assert truth < coding.objective_[0] < np.inf
    with pytest.warns(ConvergenceWarning, match="not exact"):
        np.testing.assert_allclose(coding.transform(X).sum(axis=1), 1)


# Learning


def whole_objective(codes, rows, anchors, locality, shrinkage):
    each = [objective(code, x, anchors, locality) for code, x in zip(codes, rows, strict=True)]
    return np.mean(each) + shrinkage * (anchors**2).sum()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shrinkage", [0, 0.05])
def test_the_objective_is_the_mean_and_falls(form, shrinkage):
    coding = lcc("kmeans", n_anchors=6, shrinkage=shrinkage, max_iter=8, tol=0, random_state=0)
    codes = coding.fit_transform(form(X)).toarray()
    assert coding.n_iter_ == 8
    assert len(coding.objective_) == 9
    assert (np.diff(coding.objective_) < 0).all()
    truth = whole_objective(codes, X, coding.anchors_, 0.1, shrinkage)
    assert coding.objective_[-1] == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("shrinkage", [0, 0.05])
def test_anchors_are_the_best_for_their_codes(shrinkage):
    codes = lcc(shrinkage=shrinkage).fit_transform(X).toarray()
    anchors = lcc(shrinkage=shrinkage, max_iter=1).fit(X).anchors_
    best = whole_objective(codes, X, anchors, 0.1, shrinkage)
    assert best < whole_objective(codes, X, ANCHORS, 0.1, shrinkage)
    for step in 1e-4 * np.random.default_rng(3).normal(size=(20, *anchors.shape)):
        above = [whole_objective(codes, X, anchors + s, 0.1, shrinkage) for s in (step, -step)]
        assert min(above) > best
        assert above[0] - best == pytest.approx(above[1] - best, rel=1e-4)  # no slope


def test_learning_stops_at_the_tolerance():
    coding = lcc("kmeans", n_anchors=6, max_iter=1000, tol=1e-2, random_state=0).fit(X)
    falls = -np.diff(coding.objective_) / coding.objective_[:-1]
    assert coding.n_iter_ == len(falls) < 1000
    assert falls[-1] <= 1e-2
    assert (falls[:-1] > 1e-2).all()


def test_given_anchors_without_alternations_are_kept():
    coding = lcc(max_iter=0).fit(X)
    np.testing.assert_array_equal(coding.anchors_, ANCHORS)
    assert coding.n_iter_ == 0
    assert len(coding.objective_) == 1


def test_anchors_that_no_row_uses_stay():
    far = np.vstack([ANCHORS, [[1e3] * 4]])
    coding = lcc(far, shrinkage=0.1, max_iter=3, tol=0).fit(X)
    np.testing.assert_array_equal(coding.anchors_[-1], far[-1])
    assert (coding.anchors_[:-1] != ANCHORS).all()


def test_learning_on_some_of_the_rows():
    settings = {"max_iter": 2, "random_state": 0}
    some = lcc(max_samples=20, **settings).fit(X)
    rows = np.sort(np.random.RandomState(0).choice(50, 20, replace=False))
    np.testing.assert_array_equal(some.anchors_, lcc(**settings).fit(X[rows]).anchors_)
    whole = lcc(max_samples=None, **settings).fit(X)
    np.testing.assert_array_equal(whole.anchors_, lcc(max_samples=50, **settings).fit(X).anchors_)


# Tangents

T = 2
WEIGHTS = [
    lcc(),
    LLCCoding(anchors=ANCHORS, n_neighbors=3),
    InverseDistanceCoding(anchors=ANCHORS, n_neighbors=3),
    SoftAssignmentCoding(anchors=ANCHORS, n_neighbors=3),
]


def tangent_truth(weights, anchors, rows, train, scale):
    blocks = []
    owners = ((train[:, None] - anchors) ** 2).sum(axis=2).argmin(axis=1)
    for j, v in enumerate(anchors):
        near = train[owners == j]
        if len(near) < 2 * T:
            near = train[np.argsort(((train - v) ** 2).sum(axis=1))[: 2 * T]]
        U = np.linalg.svd(near - v, full_matrices=False)[2][:T]
        U *= np.sign(np.take_along_axis(U, np.abs(U).argmax(axis=1)[:, None], axis=1))
        blocks.append(
            weights[:, [j]] * np.hstack([np.full((len(rows), 1), scale), (rows - v) @ U.T])
        )
    return np.hstack(blocks)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda coding: type(coding).__name__)
def test_tangent_codes_are_the_dense_truth(form, weights):
    rows = RNG.normal(size=(30, 4))
    coding = TangentCoding(weights, T, scale=3.0).fit(form(X))
    codes = coding.transform(form(rows))
    assert isinstance(codes, sparse.csr_matrix)
    assert codes.has_canonical_format
    assert coding.tangents_.shape == (9, T, 4)
    assert not hasattr(weights, "anchors_")
    dense = coding.coding_.transform(rows).toarray()
    truth = tangent_truth(dense, ANCHORS, rows, X, 3.0)
    np.testing.assert_allclose(codes.toarray(), truth, atol=1e-9)


def test_all_tangents_make_every_linear_function():
    """Weights sum to one, so values and slopes at the anchors rebuild the slope everywhere."""
    slope = np.array([1.0, -2.0, 0.5, 3.0])
    coding = TangentCoding(lcc(), n_tangents=4).fit(X)
    coefficients = np.concatenate(
        [np.append(v @ slope, U @ slope) for v, U in zip(ANCHORS, coding.tangents_, strict=True)]
    )
    np.testing.assert_allclose(coding.transform(X) @ coefficients, X @ slope, atol=1e-10)


def test_tangents_that_rows_do_not_span_are_zero():
    rows = np.outer(np.arange(-3.0, 4.0), [3.0, 4.0])
    coding = TangentCoding(lcc([[0.0, 0.0]]), n_tangents=2).fit(rows)
    np.testing.assert_allclose(coding.tangents_, [[[0.6, 0.8], [0, 0]]], atol=1e-12)
    assert coding.transform(rows + 1).shape == (7, 3)
    assert coding.transform(rows + 1).nnz == 14


def test_many_rows_near_an_anchor_are_thinned():
    rows = RNG.normal(size=(3000, 2)) * [1.0, 0.1]
    coding = TangentCoding(lcc([[0.0, 0.0]]), n_tangents=1).fit(rows)
    np.testing.assert_allclose(coding.tangents_[0, 0], [1, 0], atol=0.02)


def test_tangent_codes_keep_float32():
    coding = TangentCoding(lcc(), T).fit(X.astype(np.float32))
    codes = coding.transform(X.astype(np.float32))
    assert codes.dtype == coding.tangents_.dtype == np.float32
    truth = TangentCoding(lcc(), T).fit_transform(X)
    np.testing.assert_allclose(codes.toarray(), truth.toarray(), atol=1e-4)


def test_too_many_tangents_are_clipped_with_one_warning():
    with pytest.warns(UserWarning, match="X has 4 features. Using n_tangents=4") as caught:
        coding = TangentCoding(lcc(), n_tangents=9).fit(X)
    assert len(caught) == 1
    assert coding.transform(X).shape == (50, 9 * 5)


@pytest.mark.parametrize("coding", [lcc(max_iter=2), TangentCoding(lcc(), T)], ids=str)
def test_sparse_rows_are_never_made_dense_whole(coding, monkeypatch):
    rows = sparse.csr_matrix(X)
    real = sparse.csr_matrix.toarray

    def watched(matrix, *args, **options):
        assert matrix.shape[0] < len(X)
        return real(matrix, *args, **options)

    monkeypatch.setattr(sparse.csr_matrix, "toarray", watched)
    assert coding.fit_transform(rows).shape[0] == len(X)


# Both


@pytest.mark.parametrize(
    ("coding", "error", "message"),
    [
        (LocalCoordinateCoding(n_anchors=0), ValueError, "n_anchors=0 is not valid"),
        (LocalCoordinateCoding(locality=0), ValueError, "locality=0 is not valid.*not unique"),
        (LocalCoordinateCoding(shrinkage=-1), ValueError, "shrinkage=-1 is not valid"),
        (LocalCoordinateCoding(max_iter=1.5), TypeError, "max_iter=1.5 has type float"),
        (LocalCoordinateCoding(tol=-1), ValueError, "tol=-1 is not valid"),
        (LocalCoordinateCoding(max_samples=0), ValueError, "max_samples=0 is not.*or None"),
        (LocalCoordinateCoding(anchors="grid"), ValueError, "anchors='grid' is not valid; use"),
        (LocalCoordinateCoding(anchors=[[1.0]]), ValueError, r"anchors has shape \(1, 1\)"),
        (TangentCoding(OrthogonalCoding()), TypeError, "has type OrthogonalCoding; use a coding"),
        (TangentCoding("kmeans"), TypeError, "coding='kmeans' has type str"),
        (TangentCoding(n_tangents=0), ValueError, "n_tangents=0 is not valid"),
        (TangentCoding(scale=0), ValueError, "scale=0 is not valid"),
    ],
)
def test_bad_parameters(coding, error, message):
    with pytest.raises(error, match=message):
        coding.fit(X)


CODINGS = [
    LocalCoordinateCoding(3, random_state=0),
    TangentCoding(LocalCoordinateCoding(3, random_state=0), n_tangents=1),
    TangentCoding(LLCCoding(3, 2, random_state=0), n_tangents=1),
]


@pytest.mark.parametrize("coding", CODINGS, ids=str)
def test_in_a_pipeline_with_names(coding):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), coding, LinearSVC(random_state=0)).fit(X, y)
    assert model.score(X, y) > 0.8
    names = model[1].get_feature_names_out()
    assert len(names) == model[:-1].transform(X).shape[1]
    assert names[0] == f"{type(coding).__name__.lower()}0"


@pytest.mark.filterwarnings("ignore:n_anchors=512 is too large:UserWarning")
def test_the_default_is_local_coordinates():
    codes = TangentCoding(n_tangents=1).fit_transform(X)
    assert codes.shape == (50, 100)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:n_(anchors|neighbors)=. is too large:UserWarning")
@parametrize_with_checks(CODINGS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_number_that_is_none_does_not_lead_the_loop_out_of_its_room(monkeypatch):
    coding = lcc().fit(X)
    coding.locality = np.nan  # after the fit has checked it
    monkeypatch.setattr(_lcc, "code_rows", _lcc.code_rows.py_func)  # which looks at bounds
    with np.errstate(all="ignore"), pytest.warns(ConvergenceWarning, match="are not exact"):
        coding.transform(X[:3])
