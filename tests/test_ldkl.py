"""LDKL against finite differences of its relaxed risk, and against its passes in plain Python."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.preprocessing import StandardScaler

import loclin
import loclin.io
from loclin.datasets import make_sine, make_xor
from loclin.engine.codes import Intercepts
from loclin.engine.losses import LOSSES
from loclin.engine.rows import as_models
from loclin.engine.sgd import SGD
from loclin.engine.sgd_pass import PassSettings
from loclin.ldkl.recipe import LDKLRecipe
from loclin.ldkl.tree import HARDEST, LearnedTree, starting_tree

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

# By the rule alone: what alpha="auto" does beside it is tested in test_strength.py.
LDKLClassifier = partial(loclin.LDKLClassifier, alpha="scale", random_state=0)

IRIS = load_iris(return_X_y=True)
IRIS = StandardScaler().fit_transform(IRIS[0]), IRIS[1]
KINDS = [np.asarray, sparse.csr_matrix]
LEARNED = "local_coef_", "local_intercept_", "tree_coef_", "tree_intercept_"
LOSS = {  # value and slope
    "hinge": (lambda z: np.maximum(0, 1 - z), lambda z: -1.0 * (z < 1)),
    "squared_hinge": (lambda z: np.maximum(0, 1 - z) ** 2, lambda z: -2 * np.maximum(0, 1 - z)),
    "logistic": (lambda z: np.logaddexp(0, -z), lambda z: -1 / (1 + np.exp(z))),
}
ALPHA, DECAY = 0.3, 0.05


def each(**values):
    return pytest.mark.parametrize(list(values), list(product(*values.values())))


def plain_codes(x, U, c, hardness=math.inf):
    """Codes of a row, node by node from the root: ``reach tanh(feature)``."""
    m = (2 * len(c) + 1) // 3
    answers = U @ x + c
    gates, features = answers[: m // 2], np.tanh(answers[m // 2 :])
    reach = np.ones(m)
    for k in range(1, m):
        gate = gates[(k - 1) // 2]
        side = (1.0 if gate > 0 else -1.0) if hardness == math.inf else np.tanh(hardness * gate)
        reach[k] = reach[(k - 1) // 2] * (1 + side * (1 if k % 2 else -1)) / 2
    return reach * features


def signs_of(y, s):
    return np.where(y[:, None] == (np.arange(s) if s > 1 else 1), 1, -1)


N, D, DEPTH, SOFT = 24, 4, 2, 1.7
M, G = 2 ** (DEPTH + 1) - 1, 2**DEPTH - 1


class Problem:
    """Rows and a state at random: W, b, U, c; the solver there."""

    def __init__(self, kind, n_classes, loss, hardness=SOFT, rate=0.0, batch=N):
        rng = np.random.default_rng(3)
        self.X, self.loss, self.hardness = rng.normal(size=(N, D)), loss, hardness
        self.X[rng.random((N, D)) < 0.2] = 0
        self.y, w = rng.integers(n_classes, size=N).astype(np.int32), rng.uniform(0.5, 2, N)
        self.weights, s = w / w.mean(), 1 if n_classes == 2 else n_classes
        W, b = 0.7 * rng.normal(size=(s, M, D)), 0.7 * rng.normal(size=(s, M))
        self.start = W, b, rng.normal(size=(G + M, D)), rng.normal(size=G + M)
        settings = PassSettings(ALPHA, LOSSES[loss].compiled, batch, False, Intercepts(True, False))
        rows = kind(self.X)
        self.seen = rows, rows, self.y, self.weights
        tree = LearnedTree(self.start[2].copy(), self.start[3].copy(), rate)
        tree.hardness, tree.decay = min(hardness, HARDEST), DECAY
        self.solver = SGD(rows, s, M, settings, tree).set_models(W, b)
        self.solver.t = 5.0

    def state(self):
        W, b, _, U, c = self.solver.current()
        return as_models(W, self.solver.is_sparse, M), b.reshape(-1, M), U, c

    def risk(self, W, b, U, c):
        """Mean loss, and the penalty of the tree."""
        codes = np.array([plain_codes(x, U, c, self.hardness) for x in self.X])
        scores = np.einsum("nm,nsm->ns", codes, np.einsum("smd,nd->nsm", W, self.X) + b)
        losses = LOSS[self.loss][0](signs_of(self.y, len(W)) * scores).sum(axis=1)
        return np.average(losses, weights=self.weights), DECAY / 2 * (np.sum(U**2) + np.sum(c**2))

    def penalty(self, W, b, *_):
        return ALPHA / 2 * (np.sum(W**2) + np.sum(b**2))

    def objective(self, *state):
        return sum(self.risk(*state)) + self.penalty(*state)

    def differences(self, part):
        gradient = np.zeros_like(self.start[part])
        for index, step in product(np.ndindex(gradient.shape), (1e-5, -1e-5)):
            state = [one.copy() for one in self.start]
            state[part][index] += step
            gradient[index] += self.objective(*state) / (2 * step)
        return gradient


@each(kind=KINDS, n_classes=[2, 3], loss=LOSS)
def test_a_batch_steps_along_the_gradient(kind, n_classes, loss):
    case = Problem(kind, n_classes, loss, rate=1e8)
    # after a history so long that it hides the gradient itself, AdaGrad's step is one
    case.solver.coder.history[:] = 1e16
    got, stepped = case.solver.iterate(*case.seen, np.random.default_rng(0)), case.state()
    assert got - case.penalty(*stepped) == pytest.approx(case.risk(*case.start)[0])
    for part, step in enumerate([N / (ALPHA * (5 + N))] * 2 + [N] * 2):
        gradient = case.differences(part)
        close = {"rtol": 1e-6, "atol": 1e-6 * step * np.abs(gradient).max()}
        np.testing.assert_allclose(case.start[part] - stepped[part], step * gradient, **close)


class PlainLDKL:
    """The passes, row by row or batch by batch; derivatives of the codes by differences."""

    def __init__(self, case, rate):
        self.case, self.rate, self.t, self.iterates = case, rate, 5.0, []
        self.W, self.b, self.U, self.c = (part.copy() for part in case.start)
        self.history = np.zeros(G + M)

    def by_outputs(self, x, pulls):
        """Slopes of ``pulls . codes`` by the outputs, at their constants."""
        step, slopes = 1e-6, np.zeros(G + M)
        for j, sign in product(range(G + M), (1, -1)):
            if j < G and self.case.hardness == math.inf:
                continue
            c = self.c.copy()
            c[j] += sign * step
            slopes[j] += sign * pulls @ plain_codes(x, self.U, c, self.case.hardness) / (2 * step)
        return slopes

    def run(self, order):
        case, total, batch = self.case, 0.0, self.case.solver.settings.batch_size
        first_output = G if case.hardness == math.inf else 0
        for first in range(0, N, batch):
            rows = order[first : first + batch]
            by_W, by_b = np.zeros_like(self.W), np.zeros_like(self.b)
            by_U, by_c, moved = np.zeros_like(self.U), np.zeros_like(self.c), False
            for i in rows:
                x = case.X[i]
                code, said = plain_codes(x, self.U, self.c, case.hardness), self.W @ x + self.b
                signs = signs_of(case.y[[i]], len(self.W))[0]
                margins = signs * (said @ code)
                total += case.weights[i] * LOSS[case.loss][0](margins).sum()
                slopes = case.weights[i] * signs * LOSS[case.loss][1](margins)
                moved |= slopes.any()
                by_b += np.outer(slopes, code)
                by_W += np.outer(slopes, code)[:, :, None] * x
                by_output = self.by_outputs(x, slopes @ said)
                by_c += by_output
                by_U += by_output[:, None] * x
            self.t += len(rows)
            shrink, step = 1 - len(rows) / self.t, 1 / (ALPHA * self.t)
            if moved:
                by_U += len(rows) * DECAY * self.U
                by_c += len(rows) * DECAY * self.c
                for j in range(first_output, G + M):
                    self.history[j] += by_U[j] @ by_U[j] + by_c[j] ** 2
                    self.U[j] -= self.rate * by_U[j] / np.sqrt(self.history[j])
                    self.c[j] -= self.rate * by_c[j] / np.sqrt(self.history[j])
            self.W, self.b = shrink * self.W - step * by_W, shrink * self.b - step * by_b
            state = self.W, self.b, self.U.copy(), self.c.copy()
            self.iterates += [state] * len(rows)
        return total / N + case.penalty(self.W, self.b)


@each(kind=KINDS, loss=["hinge", "logistic"], n_classes=[2, 3], batch=[1, 7],
      hardness=[SOFT, math.inf])  # fmt: skip
def test_passes_in_plain_python(kind, loss, n_classes, batch, hardness):
    case = Problem(kind, n_classes, loss, hardness, 0.2, batch)
    plain = PlainLDKL(case, 0.2)
    ours, rng = np.random.default_rng(7), np.random.default_rng(7)
    for i in range(2):
        got = case.solver.iterate(*case.seen, ours, average=i == 1)
        if i == 1:
            plain.iterates = []
        expected = plain.run(rng.permutation(np.arange(N, dtype=np.int32)))
        assert got == pytest.approx(expected, rel=1e-6)
    for part, values in zip(case.state(), zip(*plain.iterates, strict=True), strict=True):
        np.testing.assert_allclose(part, np.mean(values, axis=0), rtol=1e-6, atol=1e-6)


@each(kind=KINDS, n_classes=[2, 3], depth=[0, 1, 3])
def test_scores_codes_and_local_models(kind, n_classes, depth):
    X, y = (part[IRIS[1] < n_classes] for part in IRIS)
    model = LDKLClassifier(depth, max_iter=8, standardize=False).fit(kind(X), y)
    s, m = 1 if n_classes == 2 else n_classes, 2 ** (depth + 1) - 1
    assert model.local_coef_.shape == (s, m, 4)
    assert model.tree_coef_.shape == (m // 2 + m, 4)
    assert (model.depth_, model.n_iter_, model.hardness_) == (depth, 8, HARDEST)
    codes = np.array([plain_codes(x, model.tree_coef_, model.tree_intercept_) for x in X])
    found = model.local_weights(kind(X))
    assert (found.getnnz(axis=1) == depth + 1).all()
    assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    assert_close(found.toarray(), codes)
    said = np.einsum("smd,nd->nsm", model.local_coef_, X) + model.local_intercept_
    scores = np.einsum("nm,nsm->ns", codes, said)
    decision = scores[:, 0] if s == 1 else scores
    assert_close(model.decision_function(kind(X)), decision)
    winners = (decision > 0).astype(int) if s == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(kind(X)), winners)
    coef, intercept = model.local_model(kind(X))
    assert_close(np.einsum("n...d,nd->n...", coef, X) + intercept, decision)


@each(kind=KINDS)
def test_it_learns_what_one_linear_model_cannot(kind):
    X, y = make_xor(600, random_state=0)
    model = LDKLClassifier(2, standardize=False).fit(kind(X), y)
    still = clone(model).set_params(tree_lr=0.0).fit(kind(X), y)
    assert model.score(kind(X), y) > 0.97
    assert model.objective_[-1] < still.objective_[-1]
    X, y = make_sine(2000, random_state=0)
    test = make_sine(2000, random_state=1)
    assert LDKLClassifier(standardize=False).fit(kind(X), y).score(kind(test[0]), test[1]) > 0.97


def test_many_classes_share_the_tree():
    X, y = load_digits(return_X_y=True)
    models = [
        LDKLClassifier(4, random_state=seed, standardize=False).fit(X[:1200] / 16, y[:1200])
        for seed in range(3)
    ]
    scores = [model.score(X[1200:] / 16, y[1200:]) for model in models]
    assert np.mean(scores) > 0.91  # of eight seeds 0.918 to 0.951, 0.933 in the mean
    model = models[0]
    assert model.local_weights(X[:5]).shape == (5, 31)


def test_dense_and_sparse_rows_give_the_same_model():
    models = [
        LDKLClassifier(2, max_iter=8, standardize=False).fit(kind(IRIS[0]), IRIS[1])
        for kind in KINDS
    ]
    for name in LEARNED:
        np.testing.assert_allclose(*(getattr(model, name) for model in models), atol=1e-7)


@pytest.mark.slow
def test_single_precision():
    model = LDKLClassifier(2, max_iter=8, standardize=False).fit(*IRIS)
    single = clone(model).fit(IRIS[0].astype(np.float32), IRIS[1])
    assert {getattr(single, name).dtype for name in LEARNED} == {np.dtype(np.float32)}
    assert single.decision_function(IRIS[0]).dtype == single.local_weights(IRIS[0]).dtype
    assert single.objective_[-1] == pytest.approx(model.objective_[-1], rel=0.05)


def test_the_tree_starts_balanced():
    X = np.random.default_rng(0).normal(5.0, [1e-3, 1.0, 1e3], (400, 3))
    for kind in KINDS:
        U, c = starting_tree(kind(X), 3, np.random.default_rng(0))
        gates = X @ U.T + c > 0
        node = np.zeros(400, int)
        for _ in range(3):
            node = 2 * node + np.where(gates[np.arange(400), node], 1, 2)
        np.testing.assert_array_equal(np.bincount(node)[7:], 50)
        np.testing.assert_allclose((X @ U[7] + c[7]).std(), 1)
    U, c = starting_tree(np.ones((4, 2)), 2, np.random.default_rng(0))
    assert U.all(), "equal rows have no differences, and zeros learn nothing"
    assert not c.any()


def test_the_depth_follows_the_rows():
    depths = [
        LDKLRecipe.of(LDKLClassifier().get_params())._depth(n) for n in (5, 1599, 1600, 3200, 10**6)
    ]
    assert depths == [3, 3, 4, 5, 5]
    assert LDKLClassifier(max_iter=1, standardize=False).fit(*IRIS).depth_ == 3


@pytest.mark.parametrize(("annealing", "max_iter", "passes"), [(3.0, 12, 3), (99.0, 12, 6)])
def test_paths_are_hard_after_some_passes(annealing, max_iter, passes):
    X, y = make_sine(300, random_state=0)
    hardness = []

    class WatchedRecipe(LDKLRecipe):
        def start(self, rows, rng, before):
            fit = super().start(rows, rng, before)
            fit.solver.coder.end_pass = lambda compiled, *, average: hardness.append(
                fit.solver.coder.hardness
            )
            return fit

    class Watched(loclin.LDKLClassifier):
        _recipe_type = WatchedRecipe

    known = {
        "max_iter": max_iter,
        "pieces": None,
        "tol": 0.0,
        "n_iter_no_change": 99,
        "alpha": "scale",
        "calibrate": False,
    }
    model = Watched(2, annealing=annealing, random_state=0, **known)
    model.fit(X, y)
    expected = HARDEST ** np.minimum(1, np.arange(1, 13) / passes)
    np.testing.assert_allclose(hardness, expected)


def test_a_stream_goes_on_from_a_fit():
    X, y = make_sine(1000, random_state=0)
    X = StandardScaler().fit_transform(X)
    model = LDKLClassifier(3, annealing=5.0, standardize=False)
    for _ in range(10):
        for rows in np.array_split(np.arange(1000), 5):
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert model.score(X, y) > 0.95
    assert model.hardness_ == HARDEST
    fitted = LDKLClassifier(3, standardize=False).fit(X, y)
    gates, t = fitted.tree_coef_[:7], fitted.t_
    fitted.partial_fit(X[:50], y[:50])
    assert fitted.t_ == t + 50
    np.testing.assert_allclose(fitted.tree_coef_[:7], gates)  # they rest
    fitted.set_params(warm_start=True, depth=2)
    with pytest.raises(ValueError, match=r"depth=2 differs from the 3"):
        fitted.fit(X, y)
    fitted.set_params(depth=3, tree_lr=1.0, max_iter=3).fit(X, y)  # steps may change
    assert fitted.depth_ == 3


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("depth", 13, ValueError), ("depth", -1, ValueError), ("depth", 2.0, TypeError),
     ("depth", "deep", TypeError), ("annealing", 0, ValueError),
     ("tree_lr", -1.0, ValueError), ("tree_penalty", np.inf, ValueError),
     ("loss", "square", ValueError), ("eta0", 0, ValueError), ("alpha", 0, ValueError)],
)  # fmt: skip
def test_bad_parameters(name, value, error):
    with pytest.raises(error, match=name):
        LDKLClassifier(standardize=False).set_params(**{name: value}).fit(*IRIS)


def test_files_keep_what_a_stream_needs(tmp_path):
    X, y = IRIS
    model = LDKLClassifier(2, standardize=False).partial_fit(X[::2], y[::2], classes=[0, 1, 2])
    loclin.io.save(model, tmp_path / "model.loclin")
    again = loclin.io.load(tmp_path / "model.loclin")
    for one in (model, again):
        one.partial_fit(X[1::2], y[1::2])
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
