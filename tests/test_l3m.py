"""L3M: the refined and the online model, against plain Python and by their own equations."""

import pickle
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import loclin
from loclin import vc_bound
from loclin.datasets import make_sine, make_xor
from loclin.engine.data import Rows
from loclin.engine.losses import LOGISTIC
from loclin.l3m import outputs as l3m_outputs
from loclin.l3m.kernels import exponentials, soft_rows
from loclin.l3m.models import RegionalModels
from loclin.l3m.online import Online, OnlineRun, Settings
from loclin.l3m.outputs import ChangeOfVariables, Outputs
from loclin.l3m.refined import Annealing, partition_at
from loclin.l3m.rules import region_rules
from loclin.l3m.span import Span, _direction, dot

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

# By the rule alone: how alpha="auto" chooses among factors is tested in test_strength.py.
L3MClassifier = partial(loclin.L3MClassifier, alpha="scale")

IRIS, DIGITS = load_iris(return_X_y=True), load_digits(return_X_y=True)
IRIS, DIGITS = (StandardScaler().fit_transform(IRIS[0]), IRIS[1]), (DIGITS[0] / 16, DIGITS[1])
TRAIN, TEST = [part[:1200] for part in DIGITS], [part[1200:] for part in DIGITS]
KINDS, SOLVERS = [np.asarray, sparse.csr_matrix], ["refined", "convex", "online"]
SINGLE = pytest.param(np.float32, marks=pytest.mark.slow)
LEARNED = ("local_coef_", "local_intercept_", "partition_coef_", "partition_intercept_")
TOL = {"refined": 1e-3, "convex": 0.2, "online": 1e-3}  # enough for what is no optimum's property


def each(**values):
    return pytest.mark.parametrize(list(values), list(product(*values.values())))


def quick(n_regions=3, **changed):
    return L3MClassifier(
        n_regions, **({"n_restarts": 2, "random_state": 0} | changed), standardize=False
    )


def plain_loss(f, y, smooth):
    """Loss of scores (n, s): softmax, or of one score."""
    shift, width = smooth
    f = np.column_stack([np.zeros(len(f)), f[:, 0]]) if f.shape[1] == 1 else f
    ahead = f - f[np.arange(len(y)), y][:, None] + shift * (np.arange(f.shape[1]) != y[:, None])
    if shift and f.shape[1] == 2:  # the plain hinge of a margin, smoothed
        other = ahead[np.arange(len(y)), 1 - y]
        return width * np.logaddexp(0, other / width)
    top = ahead.max(axis=1, keepdims=True)
    return width * np.log(np.exp((ahead - top) / width).sum(axis=1)) + top[:, 0]


@each(s=[1, 3], smooth=[(0.0, 1.0), (1.0, 0.1)], trust=[1.0, 0.2], sharpness=[1.0, 5.0])
def test_the_risk_of_a_soft_partition(s, smooth, trust, sharpness):
    rng, n, r = np.random.default_rng(0), 6, 3
    Z, weights = rng.normal(size=(n, r * s + r)), rng.uniform(0.5, 2, n)
    y = rng.integers(max(s, 2), size=n).astype(np.int32)
    A = np.empty_like(Z)

    def plain(Z):
        f, g = Z[:, : r * s].reshape(n, r, s), sharpness * Z[:, r * s :]
        p = np.exp(g) / np.exp(g).sum(axis=1, keepdims=True)
        losses = np.stack([plain_loss(f[:, k], y, smooth) for k in range(r)], axis=1)
        return -weights @ np.log((p * np.exp(-trust * losses)).sum(axis=1)) / trust

    got = soft_rows(Z, y, weights, r, s, sharpness, trust, *smooth, A)
    assert got == pytest.approx(plain(Z), rel=1e-9)
    numeric = np.zeros_like(Z)
    for index, step in product(np.ndindex(Z.shape), (1e-6, -1e-6)):
        moved = Z.copy()
        moved[index] += step
        numeric[index] += plain(moved) / (2 * step)
    np.testing.assert_allclose(A, numeric, atol=1e-7)


@each(n_classes=[2, 3])
def test_the_refit_is_a_logistic_regression_in_each_region(n_classes):
    X, y = (part[IRIS[1] < n_classes] for part in IRIS)
    y = np.where(np.arange(len(y)) % 5 == 0, (y + 1) % n_classes, y)  # not separable
    alpha, s = 0.1, 1 if n_classes == 2 else 3
    rows = Rows(X, y.astype(np.int32), np.ones(len(y)))
    annealing = Annealing(rows, 2, s, alpha, LOGISTIC)
    v, objective = annealing.refit(annealing.start(partition_at(X[[0, 60]], X)), 500)
    found, expected = annealing.outputs.models(v), 0.0
    regions = (X @ found.partition.T + found.thresholds).argmax(axis=1)
    nearest = ((X[:, None] - X[[0, 60]]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(regions, nearest)
    for k in range(2):
        some, n = regions == k, len(y)
        other = LogisticRegression(C=1 / (alpha * n), tol=1e-8, max_iter=999)
        other.fit(X[some], y[some])
        scores = other.decision_function(X[some]).reshape(some.sum(), -1)
        of_region = np.searchsorted(other.classes_, y[some])
        expected += plain_loss(scores, of_region, (0.0, 1.0)).sum() / n
        expected += alpha / 2 * np.sum(other.coef_**2)
    assert objective == pytest.approx(expected, rel=1e-3)


@each(solver=SOLVERS, kind=KINDS, n_classes=[2, 3])
def test_scores_codes_regions_and_local_models(solver, kind, n_classes):
    X, y = (part[IRIS[1] < n_classes] for part in IRIS)
    model = quick(solver=solver, tol=TOL[solver]).fit(kind(X), y)
    n, s = len(y), 1 if n_classes == 2 else 3
    shapes = (s, 3, 4), (s, 3), (3, 4), (3,)
    assert tuple(getattr(model, name).shape for name in LEARNED) == shapes
    assert (model.intercept_.tolist(), model.n_regions_) == ([0] * s, 3)
    regions = (X @ model.partition_coef_.T + model.partition_intercept_).argmax(axis=1)
    np.testing.assert_array_equal(model.regions(kind(X)), regions)
    codes = model.local_weights(kind(X))
    assert sparse.issparse(codes)
    np.testing.assert_array_equal(codes.toarray(), np.eye(3)[regions])
    scores = np.einsum("snd,nd->ns", model.local_coef_[:, regions], X)
    scores += model.local_intercept_[:, regions].T
    decision = scores[:, 0] if s == 1 else scores
    np.testing.assert_allclose(model.decision_function(kind(X)), decision, atol=1e-9)
    coef, intercept = model.local_model(kind(X))
    assert coef.shape == ((n, 4) if s == 1 else (n, 3, 4))
    np.testing.assert_allclose(np.einsum("n...d,nd->n...", coef, X) + intercept, decision)
    assert model.score(kind(X), y) > 0.8


@pytest.mark.slow
@each(solver=["refined", "online"])
def test_sparse_rows_and_single_precision(solver):
    X, y = IRIS
    model = quick(solver=solver, max_iter=8, n_iter_no_change=99).fit(X, y)
    other = clone(model).fit(sparse.csr_matrix(X), y)
    single = clone(model).fit(X.astype(np.float32), y)
    for found, close in ((other, 1e-3), (single, 0.1)):  # rounding may move a row to another region
        assert found.objective_[0] == pytest.approx(model.objective_[0], rel=1e-3)
        assert found.objective_[-1] == pytest.approx(model.objective_[-1], rel=close)
    assert {getattr(single, name).dtype for name in LEARNED} == {np.dtype(np.float32)}
    assert single.decision_function(X).dtype == single.local_weights(X).dtype == np.float32
    assert single.score(X, y) > (0.95 if solver == "refined" else 0.75)


@each(form=KINDS, n_pivots=[1, 8], rows=[1, 150])
def test_scores_and_gradient_of_outputs(form, n_pivots, rows, monkeypatch):
    monkeypatch.setattr(l3m_outputs, "block_rows", lambda *size: rows)
    rng, (X, y), columns = np.random.default_rng(0), IRIS, np.array([0, 2, 3])
    pivots = rng.normal(size=(n_pivots, 4))
    outputs = Outputs(form(X), 2, 3, pivots, columns=columns)
    W, b, factors = rng.normal(size=(8, 4)), rng.normal(size=8), rng.normal(size=(len(y), 8))
    W[:, 1] = 0

    def kernel(Z, rows, A):
        A[:] = factors[rows]
        return float(np.vdot(Z, A))

    coef, intercept = W[:6].reshape(2, 3, 4).swapaxes(0, 1), b[:6].reshape(2, 3).T
    v = outputs.of_models(RegionalModels(W[6:], b[6:], coef, intercept))
    total, gradient = outputs.score(v, kernel)
    assert total == pytest.approx(np.vdot(X @ W.T + b, factors))
    by_W, by_b = outputs.split(gradient)
    moved = factors.T @ X - factors.sum(axis=0)[:, None] * pivots
    np.testing.assert_allclose(by_W, moved[:, columns], atol=1e-10)
    np.testing.assert_allclose(by_b, factors.sum(axis=0))
    found = outputs.models(v)
    for got, expected in zip(found, (W[6:], b[6:], coef, intercept), strict=True):
        np.testing.assert_allclose(got, expected)
    whole = Outputs(form(X), 2, 3, pivots)
    unknowns = whole.of_models(found)
    assert not any(np.shares_memory(got, unknowns) for got in whole.models(unknowns))


@each(form=KINDS)
def test_a_change_of_variables_has_its_inverse_and_the_chain_rule(form):
    rng = np.random.default_rng(0)
    outputs = Outputs(form(IRIS[0]), 2, 1, np.zeros((1, 4)))
    basis = rng.normal(size=(4, 4))
    change = ChangeOfVariables(outputs, basis, np.linalg.inv(basis), rng.uniform(1, 2, 4))
    v, slopes = rng.normal(size=20), rng.normal(size=20)
    u = change.there(v)
    np.testing.assert_allclose(change.back(u), v)
    np.testing.assert_allclose(u[-4:], v[-4:])
    value, gradient = change.of(lambda v: (float(slopes @ v), slopes))(u)
    assert value == pytest.approx(slopes @ v)
    numeric = [slopes @ (change.back(u + e) - change.back(u - e)) / 2 for e in np.eye(20)]
    np.testing.assert_allclose(gradient, numeric)


def few_rows(n=30, d=80, dtype=np.float64):
    rng = np.random.default_rng(2)
    X = sparse.random(n, d, 0.1, format="csr", random_state=rng, dtype=dtype)
    return X, np.arange(n) % 3, rng


@each(partition=[True, False])
def test_the_span_of_few_rows_has_the_value_and_the_gradient_of_all_weights(partition):
    X, y, rng = few_rows()
    rows = Rows(X, y.astype(np.int32), rng.uniform(0.5, 2, len(y)))
    outputs, weights = Annealing(rows, 2, 3, 0.1, LOGISTIC).outputs, rows.weights
    penalties = rng.uniform(0, 2, 8)

    def kernel(Z, some, A):
        return soft_rows(Z, rows.y[some], weights[some], 2, 3, 4.0, 0.5, 0.0, 1.0, A)

    W = rng.normal(size=(8, X.shape[1]))
    span = Span(outputs, kernel, penalties, W)
    x = span.start(rng.normal(size=8))
    for _ in range(3):
        point = span.evaluate(x)
        value, gradient = point.value, span.gradient(point)
        W, b = span.unknowns(x)
        v = outputs.joined(W, b)
        expected, by_v = outputs.score(v, kernel)
        by_W, by_b = outputs.split(by_v)
        by_W += penalties[:, None] * W
        expected += 0.5 * penalties @ (W**2).sum(axis=1)
        assert value == pytest.approx(expected)
        length = np.vdot(by_W, by_W) + by_b @ by_b
        assert dot(gradient, gradient) == pytest.approx(length)
        assert dot(gradient, x) == pytest.approx(np.vdot(by_W, W) + by_b @ b)
        x = x - (0.3 if partition else 2.0) * gradient


def test_directions_know_the_curvature_of_the_last_step():
    rng = np.random.default_rng(0)
    vectors = [np.array([v, v]) for v in rng.normal(size=(6, 20))]
    pairs = [(s, y, 1 / dot(s, y)) for s, y in zip(vectors[::2], vectors[1::2], strict=True)]
    for known in range(1, 4):
        s, y, _ = pairs[known - 1]
        np.testing.assert_allclose(_direction(y, pairs[:known]), -s, atol=1e-10)
    one, other = vectors[:2]
    there, back = dot(one, _direction(other, pairs)), dot(other, _direction(one, pairs))
    assert there == pytest.approx(back)


@pytest.mark.parametrize("dtype", [np.float64, SINGLE])
def test_few_sparse_rows_come_to_the_optimum_of_dense_rows(dtype, monkeypatch):
    X, y, rng = few_rows(dtype=dtype)
    start = partition_at(rng.normal(size=(2, X.shape[1])), X)
    ends = []
    for form in (X.toarray(), X):
        rows = Rows(form, y.astype(np.int32), np.ones(len(y), dtype))
        if form is X:
            monkeypatch.setattr(l3m_outputs, "minimize", None)
        annealing = Annealing(rows, 2, 3, 0.1, LOGISTIC)
        v = annealing.start(start)
        for _ in range(4):
            v, value = annealing.refit(v, 300)
        ends.append((value, annealing.outputs.models(v)))
    (value, dense), (other, few) = ends
    assert other == pytest.approx(value, rel=1e-4)
    np.testing.assert_allclose(few.coef, dense.coef, atol=0.02)
    np.testing.assert_allclose(few.partition, start[:, :-1], rtol=1e-5)  # at rest
    model = quick(2).fit(X, y)
    assert model.local_coef_.dtype == dtype
    assert model.score(X, y) == 1


def test_columns_that_no_row_has_cost_nothing(monkeypatch):
    (X, y), columns, sizes = IRIS, np.array([3, 100, 2000, 4999]), []
    wide = sparse.csr_matrix((X.ravel(), np.tile(columns, len(y)), np.arange(0, X.size + 1, 4)),
                             (len(y), 5000))  # fmt: skip

    def spy(objective, start, **options):
        sizes.append(len(start))
        return minimize(objective, start, **options)

    monkeypatch.setattr(l3m_outputs, "minimize", spy)
    model = quick().fit(wide, y)
    assert set(sizes) == {(3 * 3 + 3) * (4 + 1)}
    narrow = quick().fit(wide[:, columns], y)
    assert model.objective_[0] == pytest.approx(narrow.objective_[0], rel=1e-3)
    for name in LEARNED[::2]:
        learned = getattr(model, name)
        assert learned.shape[-1] == 5000
        assert np.count_nonzero(learned) == np.count_nonzero(learned[..., columns]) > 0
    assert model.score(wide, y) > 0.95
    again = clone(model).set_params(warm_start=True).fit(wide, y).fit(wide[:, ::-1], y)
    assert again.score(wide[:, ::-1], y) > 0.95  # over columns that the models did not have


@each(solver=SOLVERS, loss=["hinge", "logistic"])
def test_xor_is_learned(solver, loss):
    X, y = make_xor(600, random_state=1)
    model = L3MClassifier(
        2, solver=solver, loss=loss, n_restarts=5, tol=0.01, random_state=0, standardize=False
    )
    assert model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.97


def test_a_curved_boundary_and_many_classes():
    X, y = make_sine(1500, random_state=0)
    X = StandardScaler().fit_transform(X)
    model = L3MClassifier(random_state=0, standardize=False).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.96
    assert model.n_iter_ < 20
    model = quick(None).fit(*TRAIN)
    linear = LogisticRegression(max_iter=500).fit(*TRAIN)
    assert model.score(*TEST) > linear.score(*TEST) - 0.005


class PlainOnline:
    """Algorithm 1 in plain Python, its gradient by numeric differentiation of eq. 8."""

    def __init__(self, r, s, margin, points):
        self.r, self.s, self.margin, self.points, self.t = r, s, margin, points, 0
        self.W = np.zeros((r * s + r, points.shape[1] + 1))
        self.W[r * s : -1, -1] = margin

    def surrogate(self, Z, label):
        f, g = Z[: self.r * self.s].reshape(self.r, self.s), Z[self.r * self.s :]
        signs = np.where(label == (np.arange(self.s) if self.s > 1 else 1), 1, -1)
        L = [np.logaddexp(0, -signs * f[k]).max() for k in range(self.r)]
        phi = [np.logaddexp(0, np.where(np.arange(self.r) == k, 1, -1) * g).max()
               for k in range(self.r)]  # fmt: skip
        return max(a + b for a, b in zip(L, phi, strict=True)) - 1

    def learn(self, x, label, weight, alpha, rate):
        x1, self.t = np.append(x, 1), self.t + 1
        Z = self.W @ x1
        steps = 1e-6 * np.eye(len(Z))
        slopes = [self.surrogate(Z + e, label) - self.surrogate(Z - e, label) for e in steps]
        step = rate / np.sqrt(self.t)
        n_local = self.r * self.s
        self.W[:n_local, :-1] *= 1 - step * alpha
        self.W -= step * weight * np.outer(np.array(slopes) / 2e-6, x1)
        for j, point in enumerate(self.points):
            p1 = np.append(point, 1)
            short = self.margin - self.W[n_local + j] @ p1
            self.W[n_local + j] += max(0, short) / (p1 @ p1) * p1


@each(kind=KINDS, n_classes=[2, 3], r=[2, 3])
def test_online_is_algorithm_1(kind, n_classes, r):
    X, y = (part[IRIS[1] < n_classes] for part in IRIS)
    s, order = 1 if n_classes == 2 else 3, np.random.default_rng(5).permutation(len(y))
    weights = np.random.default_rng(6).uniform(0.5, 1.5, len(y))
    rows = Rows(kind(X), y.astype(np.int32), weights)
    run = OnlineRun(rows, Settings(r, s, 2.0, LOGISTIC.compiled), np.random.default_rng(1))
    plain = PlainOnline(r, s, 2.0, X[run.constrained])
    apart = np.random.default_rng(2).uniform(0, 0.1, r * s + r)  # no ties at the start
    plain.W[:, -1] += apart
    run.functions.f[:] += apart[: r * s]
    run.functions.g[:] += apart[r * s :]
    run.learn(rows, order.astype(np.int32), 0.3, 0.8)
    for i in order:
        plain.learn(X[i], y[i], weights[i], 0.3, 0.8)
    found = run.result(0.3)
    local = plain.W[: r * s].reshape(r, s, 5).transpose(1, 0, 2)
    np.testing.assert_allclose(found.local_coef, local[:, :, :-1], atol=1e-5)
    np.testing.assert_allclose(found.local_intercept, local[:, :, -1], atol=1e-5)
    np.testing.assert_allclose(found.partition_coef, plain.W[r * s :, :-1], atol=1e-5)
    held = X[found.constraint_rows] @ found.partition_coef.T + found.partition_intercept
    assert (np.diag(held) >= 2 - 1e-9).all()
    assert found.t == len(y)
    learned = {name: value for name, value in vars(found).items() if name in LEARNED}
    before = {name: value.copy() for name, value in learned.items()}
    run.learn(rows, order.astype(np.int32), 0.3, 0.8)
    for name, value in learned.items():
        np.testing.assert_array_equal(value, before[name])


def test_a_stream_learns_xor():
    errors = []
    for seed in range(5):
        X, y = make_xor(3000, std=0.4, random_state=seed)
        model = L3MClassifier(2, solver="online", random_state=seed, standardize=False)
        for at in range(0, 3000, 100):
            kind = KINDS[at // 100 % 2]
            model.partial_fit(kind(X[at : at + 100]), y[at : at + 100], classes=np.unique(y))
        errors.append(1 - model.score(X, y))
        assert model.t_ == 3000
    assert np.median(errors) < 0.12


def test_a_stream_in_pieces_is_the_same_stream():
    X, y = make_xor(400, random_state=0)
    model = L3MClassifier(2, solver="online", alpha=0.01, random_state=0, standardize=False)
    with pytest.raises(ValueError, match="classes is needed"):
        model.partial_fit(X, y)
    model.partial_fit(X[:100], y[:100], classes=np.unique(y))
    copied = pickle.loads(pickle.dumps(model))
    for part in (model, copied):
        part.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(model.local_coef_, copied.local_coef_)
    with pytest.raises(
        ValueError, match=r"The first call of partial_fit has 3 rows, fewer than n_r"
    ):
        L3MClassifier(4, solver="online", standardize=False).partial_fit(
            X[:3], y[:3], classes=np.unique(y)
        )
    with pytest.raises(ValueError, match="goes on from a model of solver='online' only"):
        quick(2).fit(X, y).set_params(solver="online").partial_fit(X, y)


def test_the_alpha_of_a_stream_follows_the_rows_so_far():
    X, y = make_xor(300, random_state=0)
    model = quick(2, solver="online", max_iter=2).fit(X[:50], y[:50])
    for begin, end in ((50, 150), (150, 300)):
        model.partial_fit(X[begin:end], y[begin:end])
        rule = 0.4 * 0.05 * np.mean(np.sum(X[:end] ** 2, axis=1) + 1) / end
        assert model.alpha_ == pytest.approx(rule)
        assert model.t_ == 2 * 50 + end - 50


@each(way=["fit", "partial_fit"])
def test_learning_that_is_interrupted_leaves_the_online_model_as_it_was(way, monkeypatch):
    X, y = make_xor(200, random_state=0)
    model = quick(2, solver="online", warm_start=True, max_iter=3).fit(X, y)
    learned = {name: getattr(model, name) for name in LEARNED}
    before = {name: value.copy() for name, value in learned.items()}
    other, real = pickle.loads(pickle.dumps(model)), Online.learn

    def interrupted(self, *args, **kwargs):
        real(self, *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(Online, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(model, way)(X, y)
    monkeypatch.setattr(Online, "learn", real)
    for again in (model, other):
        getattr(again, way)(X, y)
    for name in LEARNED:
        np.testing.assert_array_equal(learned[name], before[name])
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
        assert not np.array_equal(getattr(model, name), before[name])


@each(solver=SOLVERS)
def test_same_seed_same_bits_whatever_n_jobs(solver):
    X, y = IRIS
    model = quick(solver=solver, tol=TOL[solver]).fit(X, y)
    for other in (clone(model).set_params(n_jobs=2).fit(X, y), pickle.loads(pickle.dumps(model))):
        for name in LEARNED:
            np.testing.assert_array_equal(getattr(other, name), getattr(model, name))


@each(solver=SOLVERS)
def test_a_warm_start_goes_on(solver):
    X, y = IRIS
    model = quick(solver=solver, warm_start=True, tol=max(0.02, TOL[solver])).fit(X, y)
    before = model.objective_[-1]
    model.fit(X, y)
    assert model.objective_[-1] < 1.3 * before + 0.05
    if solver != "convex":
        with pytest.raises(ValueError, match="n_regions=4 differs from the 3 of the fit"):
            model.set_params(n_regions=4).fit(X, y)


def test_the_number_of_regions_is_found():
    X, y = make_xor(600, random_state=0)
    model = quick("auto", alpha="scale").fit(X, y)
    assert model.n_regions_ in (2, 4)
    assert model.score(X, y) > 0.97
    assert quick("auto", alpha="scale", solver="online").fit(X, y).n_regions_ == model.n_regions_
    with pytest.raises(ValueError, match="n_regions='auto' cannot hold out"):
        quick("auto").fit(X[:4], [0, 0, 0, 1])


def test_region_rules_say_where_and_what():
    import pandas as pd

    X, y = load_iris(return_X_y=True, as_frame=True)
    model = quick().fit((X - X.mean()) / X.std(), y)
    rules = model.region_rules((X - X.mean()) / X.std(), n_top=2)
    assert len(rules) == 3
    shares = np.bincount(model.regions((X - X.mean()) / X.std()), minlength=3) / 150
    for k, rule in enumerate(rules):
        lines = rule.splitlines()
        assert lines[0] == f"region {k}: {shares[k]:.1%} of the rows"
        if not shares[k]:
            continue
        top = np.abs(model.partition_coef_ - model.partition_coef_.mean(axis=0))[k].argmax()
        assert X.columns[top] in lines[1]
        assert [line.split(":")[0] for line in lines[2:]] == [f"  class {c}" for c in range(3)]
    assert isinstance(X, pd.DataFrame)
    assert model.region_rules()[0].splitlines()[0] == "region 0"


def test_region_rules_name_regions_that_are_dead():
    models = RegionalModels(
        partition=np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]),
        thresholds=np.array([0.0, 0.0, -1.0]),
        coef=np.array([[[1.0, 2.0], [2.0, -1.0], [1e-7, 0.0]]] * 2),
        intercept=np.zeros((2, 3)),
    )
    names, classes = ["a", "b"], np.array(["no", "yes"])
    rules = region_rules(models, classes, names, 2, None)
    assert [len(rule.splitlines()) for rule in rules] == [4, 4, 2]
    assert rules[2] == "region 2\n  hardly learned"
    rules = region_rules(models, classes, names, 2, np.array([0, 0, 0]))
    assert rules[1] == "region 1: 0.0% of the rows\n  no row is here"


def test_vc_bound():
    # the printed claim behind it: that many rows cannot be parted in all 2^m ways
    for r, d in product([2, 3, 6, 16], [1, 2, 30]):
        n_functions, bound = r * (r + 1) // 2, vc_bound(r, d)
        assert bound < n_functions * (d + 1) * 2 * np.log2(np.e * n_functions) + 1e-6
        ways = n_functions * (d + 1) * np.log2(np.e * bound / (d + 1))
        assert bound >= ways
    with pytest.raises(ValueError, match="n_regions=1 is not valid"):
        vc_bound(1, 2)


BAD_VALUES = {
    "n_regions": ([1, 0, 2.5, "many"], r'must be an integer in \[2, inf\); or "auto" or None'),
    "solver": (["x", None], r"use one of \['convex', 'online', 'refined'\]"),
    "loss": (["squared_hinge", None], r"use one of \['hinge', 'logistic'\]"),
    "alpha": ([0, -1.0, np.nan, "best"], r'a number in \(0, inf\); or "auto"'),
    "margin": ([0, -1, np.nan, "wide"], r"must be a number in \(0, inf\)"),
    "n_restarts": ([0, 1.5, "many"], r"an integer in \[1, inf\)"),
    "eta0": ([0, -1, np.inf], r"must be a number in \(0, inf\)"),
    "n_jobs": ([0, 1.5, "two"], "None"),
}


@each(name=BAD_VALUES)
def test_bad_parameters_are_named(name):
    for value in BAD_VALUES[name][0]:
        with pytest.raises((TypeError, ValueError), match=BAD_VALUES[name][1]) as caught:
            quick(**{name: value}).fit(*IRIS)
        assert f"{name}={value!r}" in str(caught.value)


@each(solver=SOLVERS)
def test_more_regions_than_rows(solver):
    X, y = IRIS[0][::30], [0, 0, 1, 1, 2]
    with pytest.warns(UserWarning, match=r"n_regions=9 is too large: .*Using n_regions=5"):
        model = quick(9, solver=solver, tol=0.05, max_iter=20).fit(X, y)
    assert model.n_regions_ == len(model.partition_coef_) == 5


def test_few_distinct_rows_and_empty_regions():
    X, y = np.tile([[0.0, 1], [1, 0], [1, 1]], (10, 1)), np.arange(30) % 3
    model = quick(6).fit(X, y)
    assert model.score(X, y) == 1
    counts = np.bincount(model.regions(X), minlength=6)
    assert (counts == 0).any()
    empty = int(np.flatnonzero(counts == 0)[0])
    assert "0.0% of the rows" in model.region_rules(X)[empty]
    assert all(np.isfinite(getattr(model, name)).all() for name in LEARNED)


@each(solver=["refined", "convex"])
def test_streams_need_the_online_solver(solver):
    assert not hasattr(quick(solver=solver), "partial_fit")
    assert not hasattr(quick("auto", solver="online"), "partial_fit")


@pytest.mark.parametrize("dtype", [np.float64, SINGLE])
@each(form=KINDS)
def test_rows_to_predict_must_be_finite(form, dtype):
    X, y = make_xor(80, random_state=0)
    model = quick(2, n_restarts=1, max_iter=1).fit(X.astype(dtype), y)
    for bad in (np.nan, np.inf, -np.inf):
        rows = X[:9].astype(dtype)
        rows[8, 1] = bad
        for ask in (model.predict, model.decision_function, model.regions, model.local_weights):
            with pytest.raises(ValueError, match="NaN" if np.isnan(bad) else "infinity"):
                ask(form(rows))
    largest = np.full((3, 2), np.finfo(dtype).max)  # finite, though the scores are not
    assert model.predict(form(largest)).shape == (3,)


@each(dtype=[np.float32, np.float64])
def test_fast_exponentials(dtype):
    values = np.concatenate([np.linspace(-35, 0, 3001), [-1e30, -np.inf]]).astype(dtype)[None]
    truth = np.where(values > -30, np.exp(values.astype(float)), 0)
    exponentials(values, 0)
    np.testing.assert_allclose(values, truth, rtol=0, atol=1e-6 if dtype == np.float32 else 1e-12)
    assert values[0, 3000] == 1
