import numpy as np
import pytest
from scipy import sparse

from loclin.engine import scores as _scores
from loclin.engine.scores import (
    coded_scores,
    combine_models,
    pooled_scores,
    pooling_codes,
    regional_scores,
    regions_of,
)
from loclin.projections import argmax_lp_ball, dual_exponent

EXPONENTS = [1.0, 1.05, 1.2, 4 / 3, 1.5, 2.0, 7.0, np.inf]


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 5)), rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 4))


def brute_force(X, coef, intercept, p):
    """Every row, every scorer, with NumPy's norms."""
    q = np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)
    responses = np.einsum("smd,nd->nsm", coef, X) + intercept
    return np.linalg.norm(np.maximum(responses, 0), ord=q, axis=2)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_pooled_scores(problem, p, kind):
    X, coef, intercept = problem
    pooled = pooled_scores(kind(X), coef, intercept, dual_exponent(p))
    np.testing.assert_allclose(pooled, brute_force(X, coef, intercept, p), rtol=1e-10)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-18, 1e-12, 1.0, 1e12, 1e18])
def test_pooling_keeps_its_digits_at_any_scale(problem, p, dtype, scale):
    X, coef, intercept = problem
    expected = brute_force(X, coef, intercept, p)
    pooled = pooled_scores(
        (X * scale).astype(dtype), coef.astype(dtype), (intercept * scale).astype(dtype),
        dual_exponent(p),
    )  # fmt: skip
    assert pooled.dtype == dtype
    tolerance = 1e-9 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(pooled / scale, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-18, 1e-9, 1.0, 1e9, 1e18])
def test_powers_have_the_order_of_the_norms(problem, p, dtype, scale):
    """Also of rows of very different lengths, whose sums of powers partly under- or overflow."""
    X, coef, intercept = problem
    lengths = np.logspace(-9, 9, len(X))[:, None]
    at = ((X * lengths * scale).astype(dtype), coef.astype(dtype), 0 * intercept.astype(dtype))
    norms = pooled_scores(*at, dual_exponent(p))
    order = pooled_scores(*at, dual_exponent(p), rooted=False)
    rows = np.arange(len(X))
    winners = norms[rows, order.argmax(axis=1)]
    np.testing.assert_allclose(winners, norms.max(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(norms.max(axis=1) > 0, order.max(axis=1) > 0)


def test_blocks_do_not_show(problem, monkeypatch):
    X, coef, intercept = problem
    whole = pooled_scores(X, coef, intercept, 3.0)
    monkeypatch.setattr(_scores, "_BLOCK_BYTES", 1)  # blocks of 16 rows, the last one shorter
    np.testing.assert_allclose(pooled_scores(X, coef, intercept, 3.0), whole, rtol=1e-12)


@pytest.mark.parametrize("p", EXPONENTS)
def test_codes_times_responses_are_the_scores(problem, p):
    X, coef, intercept = problem
    codes = pooling_codes(X, coef, intercept, dual_exponent(p))
    responses = np.einsum("smd,nd->nsm", coef, X) + intercept
    np.testing.assert_allclose(codes, argmax_lp_ball(responses, p), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(
        np.sum(codes * responses, axis=2), brute_force(X, coef, intercept, p), rtol=1e-9
    )


def test_combine_models(problem):
    X, coef, intercept = problem
    codes = pooling_codes(X, coef, intercept, 3.0)
    local_coef, local_intercept = combine_models(codes, coef, intercept)
    assert local_coef.shape == (300, 3, 5)
    np.testing.assert_allclose(
        np.einsum("nsd,nd->ns", local_coef, X) + local_intercept,
        brute_force(X, coef, intercept, 1.5),
        rtol=1e-9,
    )


@pytest.mark.parametrize("s", [1, 2, 5])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
def test_few_models_a_row(s, form, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    X, coef = (rng.normal(size=size).astype(dtype) for size in ((41, 7), (s, 6, 7)))
    intercept = rng.normal(size=(s, 6)).astype(dtype)
    codes = rng.normal(size=(41, 6)).astype(dtype) * (rng.random((41, 6)) < 0.4)
    codes[3], codes[:, 2] = 0, 0  # a row without models, a model without rows
    truth = np.einsum("nm,nsm->ns", codes, np.einsum("nd,smd->nsm", X, coef) + intercept)
    by_feature = np.moveaxis(np.moveaxis(coef, 2, 0).copy(), 0, 2)  # as sparse rows leave it
    for cached, rows, of_rows in ((2**17, 256, coef), (0, 256, coef), (0, 8, by_feature)):
        monkeypatch.setattr(_scores, "_CACHED_BYTES", cached)
        monkeypatch.setattr(_scores, "_CODED_ROWS", rows)
        found = coded_scores(form(X), sparse.csr_matrix(codes), of_rows, intercept)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, truth, rtol=1e-4 if dtype == np.float32 else 1e-10,
                                   atol=1e-5 if dtype == np.float32 else 1e-12)  # fmt: skip


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_regions_are_those_that_score(form):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(3000, 40)).astype(np.float32), rng.normal(size=40)
    # three partition functions that only rounding tells apart
    partition = (w + 1e-8 * rng.normal(size=(3, 40))).astype(np.float32)
    zeros, number = np.zeros(3, np.float32), np.arange(3, dtype=np.float32)
    nothing = np.zeros((1, 3, 40), np.float32)
    found = regional_scores(form(X), partition, zeros, nothing, number[None])
    regions = regions_of(form(X), partition, zeros)
    np.testing.assert_array_equal(found[:, 0], regions)
    assert len(set(regions.tolist())) == 3


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("r", [2, 3, 6])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_regions_by_hand(n, r, form):
    rng = np.random.default_rng(n + r)
    for _ in range(50):
        X, partition, thresholds = (rng.normal(size=size) for size in ((n, 3), (r, 3), r))
        truth = np.argmax(X @ partition.T + 3 * thresholds, axis=1)
        np.testing.assert_array_equal(regions_of(form(X), partition, 3 * thresholds), truth)


def test_no_rows(problem):
    _, coef, intercept = problem
    assert pooled_scores(np.empty((0, 5)), coef, intercept, 3.0).shape == (0, 3)
