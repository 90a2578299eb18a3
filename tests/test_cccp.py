"""The compiled solver against Algorithms 1 and 2 of the paper, written out in plain Python."""

import numpy as np
import pytest
from scipy import sparse

from loclin.engine.losses import LOSSES, loss_slope, loss_value
from loclin.engine.rows import as_models
from loclin.ml3.cccp import CCCP, CCCPSettings, random_codes, rows_by_class
from loclin.projections import argmax_lp_ball, dual_exponent

N, D, C, M = 40, 3, 3, 4


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, D)), rng.integers(C, size=N).astype(np.int32)
    weights = rng.uniform(0.5, 2.0, size=N)
    return X, y, weights / weights.mean()


def settings(**changed):
    values = {"alpha": 0.05, "n_models": M, "p": 1.5, "loss": LOSSES["hinge"].compiled,
              "batch_size": 1, "penalize_intercept": True, "revive": False}  # fmt: skip
    return CCCPSettings(**(values | changed))


def norm(scores, p):
    return np.linalg.norm(np.maximum(scores, 0), ord=dual_exponent(p))


class PlainML3:
    """Algorithm 2, sample by sample; the batch form takes its scores at the batch's start."""

    def __init__(self, s):
        self.s, self.W, self.b, self.t = s, np.zeros((C, M, D)), np.zeros((C, M)), 0.0
        self.history = []

    def freeze(self, X, y):
        codes = np.zeros((len(y), M))
        for i in range(len(y)):
            responses = self.W[y[i]] @ X[i] + self.b[y[i]]
            codes[i] = argmax_lp_ball(responses, self.s.p)
            if self.s.revive and not codes[i].any():
                codes[i, responses.argmax()] = 1
        return codes

    def epoch(self, X, y, weights, order, codes, start):
        s, total, by_batch = self.s, 0.0, codes is None
        for first in range(0, N, s.batch_size):
            W, b = self.W.copy(), self.b.copy()
            if by_batch:
                codes = self.freeze(X, y)
            for i in order[first : first + s.batch_size]:
                responses = W @ X[i] + b
                scores = np.array([codes[i] @ r if start else norm(r, s.p) for r in responses])
                scores[y[i]] = -np.inf
                rival = int(scores.argmax())
                margin = codes[i] @ responses[y[i]] - scores[rival]
                total += weights[i] * loss_value(s.loss, margin)
                slope = weights[i] * loss_slope(s.loss, margin)
                rival_code = codes[i] if start else argmax_lp_ball(responses[rival], s.p)
                self.t += 1
                shrink, eta = 1 - 1 / self.t, 1 / (s.alpha * self.t)
                self.W *= shrink
                if s.penalize_intercept:
                    self.b *= shrink
                for label, code in ((y[i], -slope * codes[i]), (rival, slope * rival_code)):
                    self.W[label] += eta * np.outer(code, X[i])
                    self.b[label] += eta * code
                if s.batch_size == 1:
                    self.project()
                    self.history.append((self.W.copy(), self.b.copy()))
            self.project()
        return total / weights.sum()

    def project(self):
        s = self.s
        square = np.sum(self.W**2) + (np.sum(self.b**2) if s.penalize_intercept else 0)
        factor = min(1.0, s.radius / np.sqrt(square)) if square else 1.0
        self.W *= factor
        if s.penalize_intercept:
            self.b *= factor


class FixedOrders:
    """Stands in for the generator, so that both sides see the rows in the same order."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def permutation(self, n):
        self.order = self.rng.permutation(n)
        return self.order


def run_both(data, s, kind=np.asarray, n_iterations=3, average_last=False, s0=1.0, by_batch=False):
    X, y, weights = data
    codes = random_codes(np.random.default_rng(1), N, M, s.p, np.float64)
    solver, plain, rng = CCCP(kind(X), C, s), PlainML3(s), FixedOrders(2)
    pairs = [(solver.start(kind(X), y, weights, codes, rng),
              plain.epoch(X, y, weights, rng.order, codes, start=True))]  # fmt: skip
    for iteration in range(1, n_iterations + 1):
        frozen = plain.freeze(X, y)
        solver.t = plain.t = s0 * iteration * N
        plain.history = []
        average = average_last and iteration == n_iterations
        np.testing.assert_allclose(solver.freeze(kind(X), y), frozen, atol=1e-9)
        objective = solver.iterate(kind(X), y, weights, rng, average=average, by_batch=by_batch)
        codes = None if by_batch else frozen
        expected = plain.epoch(X, y, weights, rng.order, codes, start=False)
        pairs.append((objective - solver.penalty(), expected))
    return solver, plain, pairs


def assert_same(solver, plain):
    W = as_models(solver.weights.W, solver.is_sparse, M)
    np.testing.assert_allclose(W, plain.W, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(solver.weights.b.reshape(C, M), plain.b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("p", [1.0, 1.15, 1.5, 2.0, 3.0, np.inf])
def test_batch_of_one_is_algorithm_2(data, p, kind):
    solver, plain, pairs = run_both(data, settings(p=p), kind)
    assert_same(solver, plain)
    got, expected = np.transpose(pairs[1:])
    np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    "changed",
    [
        {"batch_size": 7},
        {"batch_size": 7, "alpha": 1e-3},
        {"alpha": 1e-3},
        {"penalize_intercept": False},
        {"revive": True},
        {"loss": LOSSES["squared_hinge"].compiled, "alpha": 0.5},
        {"loss": LOSSES["logistic"].compiled},
    ],
    ids=str,
)
def test_every_setting_is_the_plain_algorithm(data, changed, kind):
    solver, plain, _ = run_both(data, settings(**changed), kind)
    assert_same(solver, plain)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("p", [1.0, 1.15, 1.5, np.inf])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_each_batch_freezes_its_own_codes(data, batch_size, p, kind):
    changed = settings(batch_size=batch_size, p=p, revive=batch_size > 1)
    solver, plain, pairs = run_both(data, changed, kind, by_batch=True)
    assert_same(solver, plain)
    got, expected = np.transpose(pairs[1:])
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_the_paper_s_schedule(data):
    solver, plain, _ = run_both(data, settings(), s0=2.0)
    assert_same(solver, plain)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_average_is_the_mean_of_the_last_iterates(data, kind):
    solver, plain, _ = run_both(data, settings(alpha=1e-3), kind, average_last=True)
    mean_W, mean_b, _ = solver.current()
    expected_W = np.mean([W for W, _ in plain.history], axis=0)
    expected_b = np.mean([b for _, b in plain.history], axis=0)
    np.testing.assert_allclose(as_models(mean_W, solver.is_sparse, M), expected_W, rtol=1e-8)
    np.testing.assert_allclose(mean_b.reshape(C, M), expected_b, rtol=1e-8)


def test_projection_is_at_work_in_these_runs(data):
    # Otherwise the runs with alpha = 1e-3 would prove nothing about it.
    class Unprojected(PlainML3):
        def project(self):
            pass

    X, y, weights = data
    s = settings(alpha=1e-3)
    codes = random_codes(np.random.default_rng(1), N, M, s.p, np.float64)
    runs = PlainML3(s), Unprojected(s)
    for plain in runs:
        plain.epoch(X, y, weights, FixedOrders(2).permutation(N), codes, start=True)
    assert np.linalg.norm(runs[0].W) <= s.radius
    assert np.abs(runs[0].W - runs[1].W).max() > 0.1


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
def test_score_gradient_is_code_times_row(p):
    """Danskin: the gradient of s(x, y) with respect to W_y is beta* x'."""
    rng = np.random.default_rng(3)
    W, x = rng.normal(size=(M, D)), rng.normal(size=D)
    gradient = np.outer(argmax_lp_ball(W @ x, p), x)
    h = 1e-6
    for j in range(M):
        for f in range(D):
            step = np.zeros_like(W)
            step[j, f] = h
            numeric = (norm((W + step) @ x, p) - norm((W - step) @ x, p)) / (2 * h)
            assert gradient[j, f] == pytest.approx(numeric, abs=1e-6)


def test_random_codes_are_on_the_sphere():
    for p in (1.0, 1.5, 1e3, 1e5, np.inf):
        codes = random_codes(np.random.default_rng(0), 5000, 3, p, np.float32)
        assert codes.dtype == np.float32
        assert (codes >= 0).all()
        np.testing.assert_allclose(np.linalg.norm(codes, ord=p, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 255, 256, 300])
def test_rows_by_class(n_classes):
    y = np.random.default_rng(0).integers(n_classes, size=1000).astype(np.int32)
    y[:2] = 0, n_classes - 1
    order, starts = rows_by_class(y, n_classes)
    for k in range(n_classes):
        np.testing.assert_array_equal(order[starts[k] : starts[k + 1]], np.flatnonzero(y == k))
