import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from loclin.projections import argmax_lp_ball, dual_exponent

EXPONENTS = [1.0, 1.01, 1.2, 4 / 3, 1.5, 2.0, 3.0, 10.0, 1000.0, np.inf]
FEW_EXPONENTS = [  # by default; p is a number in one loop
    pytest.param(p, marks=[] if p in (1.0, 4 / 3, 2.0, np.inf) else [pytest.mark.slow])
    for p in EXPONENTS
]
rows = arrays(np.float64, st.integers(1, 8), elements=st.floats(-10, 10))


def dual_norm(scores, p):
    """The truth, with NumPy's norms."""
    q = np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)
    top = max(scores.max(), 1e-300)  # or high powers underflow
    return top * np.linalg.norm(np.maximum(scores / top, 0), ord=q)


@pytest.mark.parametrize("p", FEW_EXPONENTS)
@given(scores=rows)
def test_code_is_feasible_and_attains_the_dual_norm(p, scores):
    code = argmax_lp_ball(scores, p)
    assert (code >= 0).all()
    assert np.linalg.norm(code, ord=p) <= 1 + 1e-9
    assert code @ scores == pytest.approx(dual_norm(scores, p), rel=1e-9, abs=1e-12)
    assert (code[scores <= 0] == 0).all()


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_numeric_maximisation_finds_no_better_code(p, seed):
    scores = np.random.default_rng(seed).normal(size=4)
    best = minimize(
        lambda code: -code @ scores,
        np.full(4, 0.3),
        bounds=[(0, 1)] * 4,
        constraints={"type": "ineq", "fun": lambda code: 1 - np.sum(np.abs(code) ** p)},
        method="SLSQP",
    )
    code = argmax_lp_ball(scores, p)
    assert code @ scores == pytest.approx(-best.fun, rel=1e-5)
    np.testing.assert_allclose(code, best.x, atol=2e-3)


@pytest.mark.parametrize("p", FEW_EXPONENTS)
@given(scores=rows, factor=st.sampled_from([1e-150, 1e-30, 1e-3, 1e3, 1e30, 1e150]))
def test_code_does_not_depend_on_the_scale(p, scores, factor):
    scores = np.where(np.abs(scores) < 1e-6, 0, scores)
    np.testing.assert_allclose(
        argmax_lp_ball(scores * factor, p), argmax_lp_ball(scores, p), atol=1e-7
    )


@pytest.mark.parametrize("p", EXPONENTS)
def test_permuted_models_permute_the_code(p):
    rng = np.random.default_rng(0)
    scores, order = rng.normal(size=(20, 6)), rng.permutation(6)
    np.testing.assert_allclose(
        argmax_lp_ball(scores[:, order], p), argmax_lp_ball(scores, p)[:, order]
    )


def test_both_ends():
    scores = [[3.0, 5.0, 5.0, -1.0], [-1.0, -2.0, 0.0, -3.0]]
    np.testing.assert_array_equal(argmax_lp_ball(scores, 1), [[0, 1, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(argmax_lp_ball(scores, np.inf), [[1, 1, 1, 0], [0, 0, 0, 0]])


def test_dtype_and_shape_are_kept():
    assert argmax_lp_ball(np.ones((2, 3, 4), np.float32), 1.5).dtype == np.float32
    assert argmax_lp_ball(np.ones((2, 3, 4), np.float32), 1.5).shape == (2, 3, 4)
    assert argmax_lp_ball([1, 2], 1.5).dtype == np.float64


@pytest.mark.parametrize("p", [0.5, np.nan, -1])
def test_exponent_below_one_is_refused(p):
    with pytest.raises(ValueError, match=r"p=.* must be in \[1, inf\]"):
        argmax_lp_ball([1.0, 2.0], p)


def test_dual_exponent():
    assert dual_exponent(1.5) == 3.0
    assert dual_exponent(4 / 3) == 4.0
    assert dual_exponent(np.inf) == 1.0
    assert dual_exponent(1) == np.inf
