"""SAPL against finite differences, against Algorithm 1 in plain Python, and by its own equation."""

import pickle
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import loclin
from loclin import LLSVMClassifier
from loclin.codings import SoftAssignmentCoding
from loclin.datasets import make_sine
from loclin.engine.codes import Intercepts
from loclin.engine.losses import LOSSES
from loclin.engine.rows import as_models
from loclin.engine.sgd import SGD
from loclin.engine.sgd_pass import PassSettings
from loclin.portable.describing import coder_of
from loclin.sapl.anchors import LearnedAnchors

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows", "no_metric")

# By the rule alone: what alpha="auto" does beside it is tested in test_strength.py.
SAPLClassifier = partial(loclin.SAPLClassifier, alpha="scale")

DIGITS, IRIS = load_digits(return_X_y=True), load_iris(return_X_y=True)
DIGITS, IRIS = (DIGITS[0] / 16, DIGITS[1]), (StandardScaler().fit_transform(IRIS[0]), IRIS[1])
TRAIN, TEST = [part[:1200] for part in DIGITS], [part[1200:] for part in DIGITS]
KINDS = [np.asarray, sparse.csr_matrix]
LEARNED = ("local_coef_", "local_intercept_", "anchors_")
WEIGHTS, SHARE = ["linear", "constant"], [True, False]
LOSS = {  # value and slope
    "hinge": (lambda z: np.maximum(0, 1 - z), lambda z: -1.0 * (z < 1)),
    "squared_hinge": (lambda z: np.maximum(0, 1 - z) ** 2, lambda z: -2 * np.maximum(0, 1 - z)),
    "logistic": (lambda z: np.logaddexp(0, -z), lambda z: -1 / (1 + np.exp(z))),
}


def each(**values):
    return pytest.mark.parametrize(list(values), list(product(*values.values())))


def quick(**changed):
    values = {"max_iter": 20, "n_iter_no_change": 99, "metric": None, "random_state": 0}
    return SAPLClassifier(
        **({"n_anchors": 6, "n_neighbors": 3} | values | changed), standardize=False
    )


def softmax_codes(X, V, bandwidth, k):
    distances = cdist(X, V, "sqeuclidean")
    farthest = np.sort(distances)[:, [k - 1]]
    weights = np.where(distances <= farthest, np.exp(-bandwidth * distances), 0)
    return weights / weights.sum(axis=1, keepdims=True)


def plain_scores(codes, X, W, b):
    return np.einsum("nm,nsm->ns", codes, np.einsum("smd,nd->nsm", W, X) + b)


def signs_of(y, s):
    return np.where(y[:, None] == (np.arange(s) if s > 1 else 1), 1, -1)


def plain_risk(scores, y, loss, weights=None):
    losses = LOSS[loss][0](signs_of(y, scores.shape[1]) * scores)
    return np.average(losses.sum(axis=1), weights=weights)


def scores_of(model, X):
    """Codes and scores of the scorers, from the fitted attributes alone."""
    W, b = model.local_coef_, model.local_intercept_
    (s, m, d), k = W.shape, min(model.n_neighbors, W.shape[1])
    V, bandwidth = np.broadcast_to(model.anchors_, (s, m, d)), np.broadcast_to(model.bandwidth_, s)
    codes = [softmax_codes(X, V[y], bandwidth[y], k) for y in range(s)]
    scores = [plain_scores(codes[y], X, W[[y]], b[[y]]) for y in range(s)]
    return np.stack(codes, axis=1), np.hstack(scores)


def objective_of(model, X, y):
    """Objective of a fitted model on unweighted rows."""
    weights = model.local_coef_ if model.weights == "linear" else model.local_intercept_
    square = np.sum(weights**2)
    labels = np.searchsorted(model.classes_, y)
    return model.alpha_ / 2 * square + plain_risk(scores_of(model, X)[1], labels, model.loss)


def settings_of(alpha, loss, batch_size, local=True, penalize_intercept=False):
    return PassSettings(alpha, LOSSES[loss].compiled, batch_size, False, Intercepts(local, False),
                        penalize_intercept)  # fmt: skip


def solver_from(X, s, coding, settings, anchor_lr, bandwidth_lr, stretch_lr, n_at_rest):
    rates = anchor_lr, bandwidth_lr, stretch_lr
    anchors = LearnedAnchors(coder_of(coding), X.dtype, *rates, n_at_rest)
    return SGD(X, s, len(anchors.V), settings, anchors)


def spread_kept(stretch, V, centre):
    """Stretches times what keeps the summed squared distance of the anchors to the centre."""
    spread = np.sum((V - centre) ** 2, axis=0)
    return stretch * np.sqrt(spread.sum() / np.sum(stretch**2 * spread))


# Rows and a state at random: W, b, V and the logarithm of the bandwidth; the solver there.
N, D, M, K = 30, 4, 11, 3


class Problem:
    def __init__(self, kind, weights, n_classes, loss, n_start=0, rates=(0.0, 0.0, 0.0),
                 penalized=False, batch=N, scale=0.7):  # fmt: skip
        rng = np.random.default_rng(3)
        self.Z, self.loss, self.linear = rng.normal(size=(N, D)), loss, weights == "linear"
        self.Z[rng.random((N, D)) < 0.2] = 0
        self.X = self.Z if self.linear else np.ones((N, 1))
        self.y, w = rng.integers(n_classes, size=N).astype(np.int32), rng.uniform(0.5, 2, N)
        self.weights, V = w / w.mean(), rng.normal(size=(M, D))
        s = 1 if n_classes == 2 else n_classes
        W = scale * rng.normal(size=(s, M, self.X.shape[1]))
        b = scale * rng.normal(size=(s, M)) * self.linear
        self.start = W, b, V, np.log([0.3])
        self.settings = settings_of(0.3, loss, batch, self.linear, penalized)
        self.seen = kind(self.X) if self.linear else self.X, kind(self.Z), self.y, self.weights
        coding = SoftAssignmentCoding(M, K, 0.3, V).fit(self.Z)
        self.solver = solver_from(self.seen[0], s, coding, self.settings, *rates, n_start)
        self.solver.set_models(W, b).t = 5.0

    def state(self):
        W, b, _, V, bandwidth = self.solver.current()
        return as_models(W, self.solver.is_sparse, M), b.reshape(-1, M), V, np.log(bandwidth)

    def penalty(self, W, b, *_):
        return 0.15 * (np.sum(W**2) + self.settings.penalize_intercept * np.sum(b**2))

    def objective(self, W, b, V, log):
        scores = plain_scores(softmax_codes(self.Z, V, np.exp(log), K), self.X, W, b)
        return self.penalty(W, b) + plain_risk(scores, self.y, self.loss, self.weights)

    def differences(self, part):  # central ones, at the start
        gradient = np.zeros_like(self.start[part])
        for index, step in product(np.ndindex(gradient.shape), (1e-5, -1e-5)):
            state = [one.copy() for one in self.start]
            state[part][index] += step
            gradient[index] += self.objective(*state) / (2 * step)
        return gradient


@each(kind=KINDS, weights=WEIGHTS, n_classes=[2, 3], loss=LOSS, penalized=[False, True])
def test_a_batch_steps_along_the_gradient(kind, weights, n_classes, loss, penalized):
    case = Problem(kind, weights, n_classes, loss, penalized=penalized)
    W, b, V, _ = case.start
    # no row is at a kink of the loss, or where its nearest anchors change
    scores = plain_scores(softmax_codes(case.Z, V, 0.3, K), case.X, W, b)
    assert np.abs(1 - signs_of(case.y, len(W)) * scores).min() > 1e-3
    assert np.diff(np.sort(cdist(case.Z, V, "sqeuclidean"))[:, K - 1 : K + 1]).min() > 1e-3
    # after a history so long that it hides the gradient itself, AdaGrad's step is one
    anchors = case.solver.coder
    anchors.history[:], anchors.rates[:] = 1e16, 1e8
    got, stepped = case.solver.iterate(*case.seen, np.random.default_rng(0)), case.state()
    penalties = case.penalty(*case.start), case.penalty(*stepped)
    assert got - penalties[1] == pytest.approx(case.objective(*case.start) - penalties[0])
    steps = N / (0.3 * (5 + N)), N / (0.3 * (5 + N)) * case.linear, N, N
    for part, step in enumerate(steps):
        gradient = case.differences(part)
        close = {"rtol": 1e-6, "atol": 1e-6 * step * max(np.abs(gradient).max(), 1e-3)}
        np.testing.assert_allclose(case.start[part] - stepped[part], step * gradient, **close)


@each(kind=KINDS, weights=WEIGHTS, n_classes=[2, 3])
def test_a_batch_stretches_all_anchors_along_the_gradient(kind, weights, n_classes):
    case = Problem(kind, weights, n_classes, "logistic", rates=(0.0, 0.0, 0.5))
    W, b, V, log = case.start
    centre, gradient = V.mean(axis=0), np.zeros(D)
    for f, step in product(range(D), (1e-5, -1e-5)):
        stretched = V.copy()
        stretched[:, f] = centre[f] + np.exp(step) * (V[:, f] - centre[f])
        gradient[f] += case.objective(W, b, stretched, log) / (2 * step)
    anchors = case.solver.coder
    anchors.history[:], anchors.stretch_lr = 1e16, 1e8
    case.solver.iterate(*case.seen, np.random.default_rng(0))
    stretched = centre + spread_kept(np.exp(-N * gradient), V, centre) * (V - centre)
    np.testing.assert_allclose(anchors.V, stretched, rtol=1e-6, atol=1e-8)


@each(kind=KINDS)
def test_pulls_that_cancel_may_still_turn_an_anchor(kind):
    # A row and its mirror image, of different classes, pull in the same direction.
    X, V = kind(np.array([[1.0, 0], [-1, 0]])), np.array([[0, 1.0], [0, -1]])
    settings = settings_of(0.1, "hinge", 2)
    solver = solver_from(X, 1, SoftAssignmentCoding(2, 2, 1.0, V).fit(V), settings, 0.5, 0, 0, 0)
    solver.set_models(np.zeros((1, 2, 2)), np.array([[0.5, -0.5]])).t = 10.0
    solver.iterate(X, X, np.array([1, 0], np.int32), np.ones(2), np.random.default_rng(0))
    np.testing.assert_allclose(solver.coder.V, [[0.5, 1], [-0.5, -1]])


class PlainSAPL:
    """Algorithm 1, row by row or batch by batch; derivatives by the chain rule."""

    def __init__(self, case, rates, pace):
        self.case, self.rates, self.pace, self.t, self.iterates = case, rates, pace, 5.0, []
        self.W, self.b, self.V, self.log = (part.copy() for part in case.start)
        self.history = np.zeros(M + 1 + D * bool(rates[2]))

    def gradients(self, i):
        """Loss of a row, and what it adds to the gradients by W, b, V, log bandwidth."""
        case, x, z = self.case, self.case.X[i], self.case.Z[i]
        code = softmax_codes(z[None], self.V, np.exp(self.log), K)[0]
        said, signs = self.W @ x + self.b, signs_of(case.y[[i]], len(self.W))[0]
        margins = signs * (said @ code)
        slopes = case.weights[i] * signs * LOSS[case.loss][1](margins)
        by_exponent = slopes @ said @ (np.diag(code) - np.outer(code, code))
        by_V = 2 * np.exp(self.log) * by_exponent[:, None] * (z - self.V)
        by_log = -np.exp(self.log) * by_exponent @ np.sum((z - self.V) ** 2, axis=1)
        by_b, losses = np.outer(slopes, code), case.weights[i] * LOSS[case.loss][0](margins)
        return losses.sum(), by_b[:, :, None] * x, by_b * case.linear, by_V, by_log

    def run(self, order, at_rest=False):
        batch, total = self.case.settings.batch_size, 0.0
        reach = np.exp(-max(self.log[0], np.log(0.3)) / 2)  # no longer than at the start
        centre = self.V.mean(axis=0)
        for first in range(0, N, batch):
            found = [self.gradients(i) for i in order[first : first + batch]]
            loss, by_W, by_b, by_V, by_log = (sum(parts) for parts in zip(*found, strict=True))
            self.t += len(found)
            total += loss
            self.W = (1 - len(found) / self.t) * self.W - by_W / (0.3 * self.t)
            self.b = self.b - by_b / (0.3 * self.t)
            by_stretch = np.sum(by_V * (self.V - centre), axis=0)[: len(self.history) - M - 1]
            squares = np.hstack([np.sum(by_V**2, axis=1), by_log**2, by_stretch**2])
            if not at_rest:
                squares[: M + 1] *= self.pace
            self.history += squares
            if not at_rest:
                lengths, before = np.sqrt(self.history + 1e-99), self.V
                self.V = self.V - self.rates[0] * reach * by_V / lengths[:M, None]
                self.log = self.log - self.rates[1] * by_log / lengths[M]
                if self.rates[2]:
                    stretch = np.exp(-self.rates[2] * by_stretch / lengths[M + 1 :])
                    stretch = spread_kept(stretch, before, centre)
                    self.V = centre + stretch * (self.V - centre)
            self.iterates += [(self.W, self.b, self.V, self.log)] * len(found)
        return total / N + self.case.penalty(self.W, self.b)


@each(kind=KINDS, weights=WEIGHTS, loss=["hinge", "logistic"], n_classes=[2, 3], batch=[1, 7],
      how=[(2, 0.0, 0.0, 9, 3.0), (0, 0.2, 0.0, 9, 1.0), (1, 0.0, 0.3, 1, 2.0)])  # fmt: skip
def test_algorithm_1(kind, weights, loss, n_classes, batch, how):
    n_start, *rates, average_from, pace = how
    rates = 0.4, *rates
    case = Problem(kind, weights, n_classes, loss, n_start, rates,
                   batch=batch, scale=0.0 if n_start else 0.5)  # fmt: skip
    plain = PlainSAPL(case, rates, pace)
    case.solver.coder.pace = pace
    ours, rng = np.random.default_rng(7), np.random.default_rng(7)
    for i in range(3):
        got = case.solver.iterate(*case.seen, ours, average=i >= average_from)
        for _ in range(n_start if i == 0 else 0):
            plain.history[:] = 0  # of the passes at rest, the last one measures
            plain.run(rng.permutation(np.arange(N, dtype=np.int32)), at_rest=True)
        if i == average_from:
            plain.iterates = []
        expected = plain.run(rng.permutation(np.arange(N, dtype=np.int32)))
        assert got == pytest.approx(expected, rel=1e-8)
    iterates = plain.iterates if average_from < 3 else plain.iterates[-1:]
    for part, values in zip(case.state(), zip(*iterates, strict=True), strict=True):
        np.testing.assert_allclose(part, np.mean(values, axis=0), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(case.solver.coder.history[:M], plain.history[:M], rtol=1e-8)
    np.testing.assert_allclose(case.solver.coder.history[M + 1 :], plain.history[M + 1 :])
    assert case.objective(*case.state()) < case.objective(*case.start)


@each(kind=KINDS, weights=WEIGHTS, share=SHARE, n_classes=[2, 3])
def test_scores_codes_and_local_models(weights, share, n_classes, kind):
    X, y = (part[IRIS[1] < n_classes] for part in IRIS)
    model = quick(weights=weights, share_anchors=share, bandwidth="learned").fit(kind(X), y)
    n, s = len(y), 1 if share and n_classes == 2 else n_classes
    assert model.anchors_.shape == ((6, 4) if share else (s, 6, 4))
    assert np.shape(model.bandwidth_) == (() if share else (s,))
    assert (model.local_coef_.shape, model.local_intercept_.shape) == ((s, 6, 4), (s, 6))
    assert (model.intercept_.tolist(), model.n_anchors_, model.n_iter_) == ([0] * s, 6, 20)
    assert model.local_coef_.any() == (weights == "linear")
    codes, scores = scores_of(model, X)
    decision = scores[:, 0] if s == 1 else scores[:, 1] - scores[:, 0] if s == 2 else scores
    assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    assert_close(model.decision_function(kind(X)), decision)
    winners = (decision > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(kind(X)), winners)
    coef, intercept = model.local_model(kind(X))
    assert coef.shape == ((n, 4) if n_classes == 2 else (n, n_classes, 4))
    assert_close(np.einsum("n...d,nd->n...", coef, X) + intercept, decision)
    found = model.local_weights(kind(X))
    assert_close(np.repeat(found.toarray()[:, None], s, axis=1) if share else found, codes)
    assert ((codes > 0).sum(axis=2) == 3).all()


@each(weights=WEIGHTS, share=SHARE)
def test_sparse_rows(weights, share):
    X, y = IRIS
    model = quick(weights=weights, share_anchors=share, anchors=X[::25], max_iter=6).fit(X, y)
    other = clone(model).fit(sparse.csr_matrix(X), y)
    for name in LEARNED:
        np.testing.assert_allclose(getattr(other, name), getattr(model, name), atol=1e-6)


@pytest.mark.slow  # compiled for alone
@each(weights=WEIGHTS, share=SHARE, kind=[np.asarray, sparse.csr_matrix])
def test_single_precision(weights, share, kind):
    X, y = IRIS
    model = quick(weights=weights, share_anchors=share, anchors=X[::25], max_iter=6).fit(X, y)
    single = clone(model).fit(kind(X.astype(np.float32)), y)
    for name in LEARNED:
        assert (getattr(single, name).dtype, getattr(model, name).dtype) == (np.float32, float)
    assert single.decision_function(X).dtype == single.local_weights(X).dtype == np.float32
    assert objective_of(single, X, y) == pytest.approx(objective_of(model, X, y), rel=0.01)


@each(step=[5.0, 1e5], last=[[3.0, 0, 0], [0.1, -4, 0]])
def test_an_anchor_that_steps_onto_a_row_or_far_away(step, last):
    # The second batch weighs so much that the history before it hardly counts, nor the third batch
    # after it. Of sparse rows, anchors shrink or grow by a factor: almost 0 or 20,000.
    order, found = np.random.default_rng(0).permutation(np.arange(3, dtype=np.int32)), []
    V, X, weights = np.array([[0.0, 4, 0], [0, -4, 0]]), np.empty((3, 3)), np.empty(3)
    X[order], weights[order] = [[3, 0, 0], [3, 0, 0], last], [1e-6, 1e9, 1e9]
    settings = settings_of(0.1, "hinge", 1)
    for rows in (X, sparse.csr_matrix(X)):
        solver = solver_from(
            rows, 1, SoftAssignmentCoding(2, 2, 1.0, V).fit(V), settings, step, 0, 0, 0
        )
        solver.set_models(np.zeros((1, 2, 3)), np.array([[0.1, -0.1]])).t = 1e15
        solver.coder.history[:2] = 1e10
        seen = rows, rows, np.ones(3, np.int32), weights
        objective = solver.iterate(*seen, np.random.default_rng(0), average=True)
        found.append([objective, solver.coder.V, solver.current()[3]])
    stepped = V + np.array([[3.0, -4, 0], [-3, -4, 0]]) * step / 5
    close = {"rtol": 1e-6, "atol": 1e-5}
    if last[0] == 3:  # coded by an anchor alone: no more steps
        np.testing.assert_allclose(found[0][1], stepped, **close)
        np.testing.assert_allclose(found[0][2], (V + 2 * stepped) / 3, **close)
    for of_dense, of_sparse in zip(*found, strict=True):
        np.testing.assert_allclose(of_sparse, of_dense, **close)


@each(seed=[0, 1, 2], average=[0, 3])
def test_of_many_features_a_batch_has_few(seed, average):
    # As text: anchors at rows, at most of which they alone count, so that some have no gradient but
    # rounding errors. Those must not move them; else no two layouts, or machines, agree.
    rng = np.random.default_rng(seed)
    X = sparse.random(300, 400, density=0.02, random_state=seed, format="csr")
    X = sparse.csr_matrix(X.multiply(np.exp(rng.normal(size=(300, 1)))))
    y = np.argmax(X @ rng.normal(size=(400, 3)), axis=1)
    model = quick(n_anchors=30, anchors=X[:30].toarray(), n_neighbors=4, max_iter=6,
                  average=average)  # fmt: skip
    few, every = (clone(model).fit(A, y) for A in (X, X.toarray()))
    for name in LEARNED:
        np.testing.assert_allclose(getattr(few, name), getattr(every, name), atol=1e-9)
    assert np.abs(few.anchors_ - X[:30]).max() > 1


@pytest.mark.slow  # sparse rows in single precision are compiled for this alone
@each(seed=range(6))
def test_an_anchor_on_its_only_row_in_single_precision(seed):
    # Its gradient is nil, of sparse rows too, whose anchors' lengths are differences of large sums.
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(3, 60)).astype(np.float32)
    V[1] = V[0] + rng.normal(size=60, scale=0.5)
    near = V[rng.integers(2, size=80)] + rng.normal(size=(80, 60), scale=0.5).astype(np.float32)
    X, y = np.vstack([near, V[np.full(20, 2)]]), rng.integers(2, size=100)
    model = quick(n_anchors=3, n_neighbors=2, anchors=V, bandwidth=0.01, average=0, max_iter=6)
    dense, few = (clone(model).fit(A, y) for A in (X, sparse.csr_matrix(X)))
    for name in LEARNED:
        np.testing.assert_allclose(getattr(few, name), getattr(dense, name), atol=1e-4)


@each(weights=WEIGHTS)
def test_anchors_at_rest_are_ll_svm(weights):
    X, y = DIGITS[0][:150], DIGITS[1][:150]
    same = {"weights": weights, "penalize_intercept": weights == "constant", "max_iter": 150,
            "n_iter_no_change": 999, "average": 30, "alpha": "scale",
            "metric": None, "random_state": 0}  # fmt: skip
    model = SAPLClassifier(
        12, 4, anchors=X[:12], bandwidth=0.3, anchor_lr=0, **same, standardize=False
    ).fit(X, y)
    np.testing.assert_allclose(model.anchors_, X[:12], rtol=1e-12)
    other = LLSVMClassifier(
        SoftAssignmentCoding(12, 4, 0.3, X[:12]), **same, standardize=False
    ).fit(X, y)
    assert other.alpha_ == pytest.approx(model.alpha_)
    other.anchors_, other.bandwidth_, other.n_neighbors = X[:12], 0.3, 4
    assert objective_of(model, X, y) == pytest.approx(objective_of(other, X, y), rel=0.02)


@each(weights=WEIGHTS, share=SHARE, loss=LOSS)
def test_anchors_and_bandwidth_that_learn_lower_the_objective(weights, share, loss):
    X, y = make_sine(600, random_state=0)
    X -= X.mean(axis=0)
    auto, found = SoftAssignmentCoding(4, 4, anchors=X[:4]).fit(X).bandwidth_, []
    for changed in ({"anchor_lr": 0}, {}, {"bandwidth": "learned"}):
        model = quick(n_anchors=4, n_neighbors=4, weights=weights, share_anchors=share, loss=loss,
                      alpha=1e-3, anchors=X[:4], max_iter=60, **changed).fit(X, y)  # fmt: skip
        kept = np.abs(model.bandwidth_ / auto - 1) < 1e-9
        assert np.all(~kept if "bandwidth" in changed else kept)
        found.append(objective_of(model, X, y))
    assert found[2] < 0.8 * found[1] < 0.8 * 0.85 * found[0]


def test_given_anchors():
    X, y = IRIS[0][::5], IRIS[1][::5]  # fewer than ten for each anchor
    one, other = (quick(n_anchors=n, n_neighbors=8, anchors=X[:12]).fit(X, y) for n in (None, 12))
    np.testing.assert_array_equal(one.local_coef_, other.local_coef_)
    with pytest.raises(ValueError, match=r"anchors has shape \(6, 3\); X has 4 features"):
        quick(anchors=X[:6, :3]).fit(X, y)


def test_given_anchors_with_all_that_a_default_fit_chooses():
    X, y = IRIS
    model = loclin.SAPLClassifier(anchors=X[::10], random_state=0, standardize=False).fit(X, y)
    assert model.n_anchors_ == 15
    assert model.score(X, y) > 0.95


def stream(model, X, y, block, n_passes=1, kinds=(np.asarray,)):
    for _ in range(n_passes):
        for i, rows in enumerate(slice(at, at + block) for at in range(0, len(y), block)):
            model.partial_fit(kinds[i % len(kinds)](X[rows]), y[rows], np.arange(10))
    return model


@pytest.mark.parametrize("share", [True, pytest.param(False, marks=pytest.mark.slow)])
@each(weights=WEIGHTS)
def test_a_stream(weights, share):
    X, y = TRAIN
    model = SAPLClassifier(60 if share else 20, weights=weights, share_anchors=share, anchor_lr=0.5,
                           random_state=0, standardize=False)  # fmt: skip
    with pytest.raises(ValueError, match="classes is needed at the first call"):
        model.partial_fit(*TRAIN)
    mixed, model = stream(clone(model), X, y, 100, 1, KINDS), stream(model, X, y, 100)
    for name in LEARNED:
        np.testing.assert_allclose(getattr(mixed, name), getattr(model, name), atol=1e-6)
    copied = stream(pickle.loads(pickle.dumps(stream(model, X, y, 100, 3))), X, y, 100)
    stream(model, X, y, 100)
    np.testing.assert_array_equal(model.local_coef_, copied.local_coef_)
    assert model.t_ == 6000
    assert model.score(*TEST) > (0.93 if weights == "linear" else 0.9)


@each(share=SHARE)
def test_a_fit_goes_on_as_a_stream(share):
    X, y = TRAIN
    model = quick(n_anchors=20, share_anchors=share, max_iter=10).fit(X[:1000], y[:1000])
    before, alpha, V = model.score(*TEST), model.alpha_, model.anchors_
    stream(model, X[1000:1180], y[1000:1180], 30)
    stream(model, X[1180:], y[1180:], 1)
    assert (model.alpha_, model.t_) == (alpha, 10_200)
    assert (model.anchors_ != V).any()
    assert model.score(*TEST) > before - 0.02


@each(weights=WEIGHTS, share=SHARE)
def test_a_warm_start_goes_on(weights, share):
    X, y = DIGITS[0][:600], DIGITS[1][:600]
    model = quick(weights=weights, share_anchors=share, warm_start=True).fit(X, y)
    first, before = model.objective_, objective_of(model, X, y)
    model.fit(X, y)
    assert model.objective_[0] < 0.8 * first[0]
    assert objective_of(model, X, y) < 1.02 * before
    assert model.t_ == 40 * 600
    V, model = model.anchors_, model.set_params(anchor_lr=0, max_iter=2).fit(X, y)
    np.testing.assert_allclose(model.anchors_, V, rtol=1e-12)


def test_early_stopping():
    model = SAPLClassifier(
        20, early_stopping=True, average=3, random_state=0, standardize=False
    ).fit(*DIGITS)
    assert len(model.validation_scores_) == model.n_iter_ == len(model.objective_) < 100
    assert min(max(model.validation_scores_), model.score(*DIGITS)) > 0.95


@each(share=SHARE)
def test_same_seed_same_bits(share):
    X, y = IRIS
    model = quick(share_anchors=share).fit(X, y)
    again, threads = (clone(model).set_params(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    for other in (again, threads, pickle.loads(pickle.dumps(model))):
        for name in (*LEARNED, "bandwidth_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(model, name))
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    assert (quick(share_anchors=share, random_state=1).fit(X, y).anchors_ != model.anchors_).any()


BAD_VALUES = {
    "n_anchors": ([0, 2.5, True, "many"], r"must be an integer in \[1, inf\)"),
    "n_neighbors": ([0, 2.5, None], r"must be an integer in \[1, inf\)"),
    "bandwidth": ([0, -1, "wide", np.nan, None], r'a number in \(0, inf\); or "auto" or "learned"'),
    "anchors": (["grid", None], r"use one of \['kmeans', 'kmeans_per_class', 'random'\]"),
    "anchor_lr": ([-1, np.nan, np.inf, 1e11, "fast"], r"must be a number in \[0, 1e\+10\]"),
    "weights": (["x", 1], r"use one of \['constant', 'linear'\]"),
    "share_anchors": ([1, None], "use True or False"),
    "loss": (["x", None], r"use one of \['hinge', 'logistic', 'squared_hinge'\]"),
    "alpha": ([0, -1.0, np.nan, "best"], r'a number in \(0, inf\); or "auto"'),
    "n_jobs": ([0, 1.5, "two"], "None"),
}


@each(name=BAD_VALUES)
def test_bad_parameters_are_named(name):
    for value in BAD_VALUES[name][0]:
        with pytest.raises((TypeError, ValueError), match=BAD_VALUES[name][1]) as caught:
            quick(**{name: value}).fit(*IRIS)
        assert f"{name}={value!r}" in str(caught.value)


@each(kind=KINDS, share=SHARE)
def test_more_anchors_than_distinct_rows(kind, share):
    X, y = kind(np.tile([[0.0, 1, 1], [1, 0, 0], [1, 1, 1]], (10, 1))), np.arange(30) % 3
    with pytest.warns(UserWarning, match=r"n_anchors=40 is too large: .*Using n_anchors=3") as seen:
        model = quick(n_anchors=40, n_neighbors=2, share_anchors=share).fit(X, y)
    of_anchors = [one for one in seen if not issubclass(one.category, ConvergenceWarning)]
    assert (len(of_anchors), model.n_anchors_, model.local_coef_.shape) == (1, 3, (3, 3, 3))
    assert model.score(X, y) == 1


CHANGES = {
    "duplicate rows": lambda X: np.repeat(X[::5], 5, axis=0),
    "constant features": lambda X: np.hstack([X, np.ones((150, 2)), np.zeros((150, 1))]),
    "rows of zeros": lambda X: np.where(np.arange(150)[:, None] % 10 == 0, 0.0, X),
}


@each(kind=KINDS, anchors=["kmeans", "kmeans_per_class", "random"], change=CHANGES)
def test_odd_but_valid_data(kind, anchors, change):
    X, y = kind(CHANGES[change](IRIS[0])), IRIS[1]
    model = quick(anchors=anchors, bandwidth="learned").fit(X, y)
    assert np.isfinite(model.anchors_).all() & np.isfinite(model.decision_function(X)).all()
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("rows", [100_000, 100_001])
def test_many_rows_teach_the_bandwidth(rows):
    X, y = make_sine(rows, random_state=0)
    plain = {"n_anchors": 4, "n_neighbors": 2, "alpha": 1e-6, "metric": None, "calibrate": False,
             "round_rows": 5000, "max_iter": 21, "n_iter_no_change": 1, "tol": 1.0,
             "random_state": 0}  # fmt: skip
    learned = SAPLClassifier(bandwidth="learned", **plain, standardize=False).fit(X, y).bandwidth_
    found = SAPLClassifier(**plain, standardize=False).fit(X, y).bandwidth_
    assert (found == learned) == (rows > 100_000)


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr("loclin.sapl.recipe._MANY", 0)


def test_many_rows_draw_anchors_together_along_features_that_tell_nothing(monkeypatch):
    X = np.random.default_rng(0).normal(size=(10_000, 6))
    y, drawn = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 2] > 0, []
    for rows in (len(y), 0):
        monkeypatch.setattr("loclin.sapl.recipe._MANY", rows)
        spread = quick(n_anchors=20, bandwidth="learned").fit(X, y).anchors_.var(axis=0)
        drawn.append(spread[3:].mean() / spread[:3].mean())
    assert drawn[1] < 0.5 * drawn[0]


@each(share=SHARE)
def test_many_rows_dense_or_sparse(share, few_are_many):
    dense, other = (quick(share_anchors=share).fit(kind(IRIS[0]), IRIS[1]) for kind in KINDS)
    for name in (*LEARNED, "history_"):
        ours, theirs = getattr(dense, name), getattr(other, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)
    assert dense.history_.shape[-1] == 6 + 1 + 4


@each(share=SHARE, rows=["many", "few"])
def test_only_a_fit_that_stretched_goes_on_to(share, rows, few_are_many, monkeypatch):
    X, y = IRIS
    if rows == "few":
        monkeypatch.setattr("loclin.sapl.recipe._MANY", len(y))
    model = quick(share_anchors=share, warm_start=True).fit(X, y)
    assert model.history_.shape[-1] == 6 + 1 + (4 if rows == "many" else 0)
    monkeypatch.setattr("loclin.sapl.recipe._MANY", 0)
    before = model.history_
    after = model.fit(X, y).history_
    assert after.shape == before.shape
    assert (after >= before).all()
    model.partial_fit(X, y)  # a stream does not stretch
    assert model.history_.shape[-1] == 6 + 1


def test_no_fit_stretches_many_features(few_are_many):
    X = np.random.default_rng(0).normal(size=(60, 101))
    assert quick().fit(X, X[:, 0] > 0).history_.shape == (6 + 1,)


def test_a_fit_that_goes_on_takes_steps_as_it_did():
    """Passes with the anchors at rest count: steps do not become long again."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 3))
    labels = np.floor(3 * rows[:, 0]).astype(int) % 3
    model = SAPLClassifier(
        5, 3, max_iter=8, tol=0, average=0, metric=None, pieces=None, alpha="scale",
        calibrate=False, warm_start=True, random_state=0,
    )  # fmt: skip
    begun = model.fit(rows, labels).objective_[-1]
    assert model.fit(rows, labels).objective_[0] < 1.1 * begun
