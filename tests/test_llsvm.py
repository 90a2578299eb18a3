"""LL-SVM against scikit-learn's linear SVM on explicit features, and SGD against plain Python."""

import os
import pickle
import threading
from copy import deepcopy
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

import loclin
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding, TangentCoding
from loclin.datasets import load, make_xor
from loclin.engine.codes import Intercepts
from loclin.engine.dual import BinaryDual, DualFit, dual_of
from loclin.engine.dual_kernels import conjugate_at
from loclin.engine.losses import LOSSES, loss_value, losses_for
from loclin.engine.rows import as_models
from loclin.engine.sgd import SGD, mean_squared_feature_norm
from loclin.engine.sgd_pass import PassSettings

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows", "no_metric")

# By the rule alone: what alpha="auto" does beside it is tested in test_strength.py.
LLSVMClassifier = partial(loclin.LLSVMClassifier, alpha="scale")

ALPHA = 0.01
KINDS = [np.asarray, sparse.csr_matrix]
SOFT = SoftAssignmentCoding(8, 3, random_state=0)  # few codes a row: CSR
OCC, C_OCC = OrthogonalCoding(5), OrthogonalCoding(5, per_class=True)
VALUES = {
    "hinge": lambda z: np.maximum(0, 1 - z),
    "squared_hinge": lambda z: np.maximum(0, 1 - z) ** 2,
    "logistic": lambda z: np.logaddexp(0, -z),
}
SLOPES = {
    "hinge": lambda z: -1.0 * (z < 1),
    "squared_hinge": lambda z: -2 * np.maximum(0, 1 - z),
    "logistic": lambda z: -1 / (1 + np.exp(z)),
}


def dual(coding=None, **changed):
    values = {"alpha": ALPHA, "solver": "dual_cd", "tol": 1e-5, "max_iter": 20_000, "metric": None}
    return LLSVMClassifier(coding, **(values | {"random_state": 0} | changed), standardize=False)


all_digits = cache(load_digits)


def some_digits(n_classes, n=120):
    X, y = all_digits().data, all_digits().target
    few = np.flatnonzero(y < n_classes)[:n]
    return X[few, ::3] / 16, y[few]


@pytest.fixture(scope="module")
def digits():
    return all_digits().data / 16, all_digits().target


# The same problem in the open: features that stand side by side, one vector of weights.


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def codes_of(model, X, k):
    coding = model.coding_
    if getattr(coding, "per_class", False):
        return coding.transform_by_class(X)[:, k]
    return dense(coding.transform(X))


def explicit_features(model, X, k):
    codes, X = codes_of(model, X, k), dense(X)
    if model.weights == "constant":
        return codes
    if model.bias != "global":
        X = np.hstack([X, np.ones((len(X), 1))])
    return np.einsum("nm,nd->nmd", codes, X).reshape(len(X), -1)


def explicit_weights(model, k):
    if model.weights == "constant":
        return model.local_intercept_[k]
    parts = [model.local_coef_[k]]
    if model.bias != "global":
        parts.append(model.local_intercept_[k][:, None])
    return np.hstack(parts).ravel()


def explicit_scores(model, X):
    scorers = range(len(model.local_coef_))
    parts = [explicit_features(model, X, k) @ explicit_weights(model, k) for k in scorers]
    return np.stack(parts, axis=1) + model.intercept_


def objective_of(w, g, F, targets, loss, alpha, sample_weight):
    losses = VALUES[loss](targets * (F @ w + g))
    return alpha / 2 * (w @ w + g**2) + np.average(losses, weights=sample_weight)


def objectives(model, X, y, sample_weight=None):
    """Objective of each scorer: that of the model, and that of LinearSVC's solution."""
    found = []
    total = len(y) if sample_weight is None else np.sum(sample_weight)
    positives = model.classes_[1:] if len(model.local_coef_) == 1 else model.classes_
    for k, positive in enumerate(positives):
        F, targets = explicit_features(model, X, k), np.where(y == positive, 1, -1)
        linear = LinearSVC(
            C=1 / (total * model.alpha_), loss=model.loss, dual=True, tol=1e-7, random_state=0,
            fit_intercept=model.bias != "local", intercept_scaling=1, max_iter=10**6,
        ).fit(F, targets, sample_weight)  # fmt: skip
        problem = F, targets, model.loss, model.alpha_, sample_weight
        found.append(
            (
                objective_of(explicit_weights(model, k), model.intercept_[k], *problem),
                objective_of(linear.coef_[0], np.sum(linear.intercept_), *problem),
            )
        )
    return np.transpose(found)


def assert_solved(model, X, y, sample_weight=None, rel=1e-4):
    ours, linear = objectives(model, X, y, sample_weight)
    np.testing.assert_allclose(ours, linear, rtol=rel)
    assert model.objective_[-1] == pytest.approx(ours.sum(), rel=1e-9)
    assert (model.dual_gap_ >= -1e-12).all()
    assert (model.dual_gap_ <= model.tol * ours).all()
    assert (ours - model.dual_gap_ <= linear * (1 + 1e-9)).all()


# Dual coordinate descent against LinearSVC.


@pytest.mark.parametrize(("kind", "weighted"), [(np.asarray, False), (sparse.csr_matrix, True)])
@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(
    ("weights", "bias"),
    [(weights, bias) for weights in ("linear", "constant") for bias in ("local", "global")]
    + [("linear", "both")],
)
@pytest.mark.parametrize("coding", [SOFT, OCC], ids=["soft", "occ"])
def test_dual_cd_is_linear_svc(coding, bias, weights, loss, n_classes, weighted, kind):
    X, y = some_digits(n_classes)
    sample_weight = np.random.default_rng(1).integers(0, 4, len(y)) * 0.7 if weighted else None
    model = dual(coding, bias=bias, weights=weights, loss=loss).fit(kind(X), y, sample_weight)
    scorers = 1 if n_classes == 2 else n_classes
    assert len(model.local_coef_) == len(model.dual_gap_) == scorers
    assert_solved(model, X, y, sample_weight)
    if bias == "local":
        assert not model.intercept_.any()
    elif weights == "linear":
        assert model.local_intercept_.any() == (bias == "both")
    if weights == "constant":
        assert model.local_coef_.shape[2] == X.shape[1]
        assert not model.local_coef_.any()


@pytest.mark.parametrize(("kind", "n_classes"), [(np.asarray, 2), (sparse.csr_matrix, 3)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("weights", ["linear", "constant"])
@pytest.mark.parametrize("bias", ["local", "global"])
def test_each_scorer_of_c_occ_is_linear_svc_on_its_features(bias, weights, loss, n_classes, kind):
    X, y = some_digits(n_classes)
    model = dual(C_OCC, bias=bias, weights=weights, loss=loss).fit(kind(X), y)
    assert len(model.local_coef_) == n_classes
    assert_solved(model, X, y)


@pytest.mark.parametrize("tol", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("coding", [SOFT, OCC], ids=["soft", "occ"])
def test_the_gap_bounds_the_suboptimality(coding, loss, tol):
    X, y = some_digits(5)
    model = dual(coding, loss=loss, tol=tol, alpha=1e-3).fit(X, y)
    ours, best = objectives(model, X, y)
    assert (ours - best <= model.dual_gap_ * (1 + 1e-9)).all()
    assert (model.dual_gap_ <= tol * ours).all()
    assert (ours >= best * (1 - 1e-6)).all()
    assert (ours - best).max() > 1e-3 * tol * ours.max()  # there was something to bound


def test_a_fit_that_is_cut_short_says_so_and_knows_its_gap():
    X, y = some_digits(3)
    with pytest.warns(UserWarning, match="duality gap is .* after max_iter=2 iterations") as caught:
        model = dual(OCC, alpha=1e-5, max_iter=2).fit(X, y)
    assert len(caught) == 1
    ours, best = objectives(model, X, y)
    assert (ours - best <= model.dual_gap_).all()
    assert (model.dual_gap_ > model.tol * ours).any()


@pytest.mark.data
@pytest.mark.parametrize("coding", [SOFT, OCC, C_OCC], ids=["soft", "occ", "c-occ"])
@pytest.mark.parametrize("name", ["usps", "letter"])
def test_dual_cd_is_linear_svc_on_real_data(name, coding):
    data = load(name, data_home=os.environ["LOCLIN_DATA"])
    X, y = data.X_train.astype(float), data.y_train
    kept = np.flatnonzero(np.isin(y, np.unique(y)[:3]))[:200]
    X = StandardScaler().fit_transform(X[kept]) / np.sqrt(X.shape[1])
    for loss in ("hinge", "squared_hinge"):
        model = dual(coding, loss=loss).fit(X, y[kept])
        assert_solved(model, X, y[kept])


def region_of(X):
    """One-hot code of the quadrant of the first two features."""
    return np.eye(4)[2 * (X[:, 0] > 0) + (X[:, 1] > 0)]


def sparse_region_of(X):
    return sparse.csr_matrix(region_of(X))


@pytest.mark.parametrize("write", [region_of, sparse_region_of])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_regions_are_linear_svms_of_their_own(loss, write):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=200) > 0).astype(int)
    model = dual(FunctionTransformer(write), loss=loss, tol=1e-7, alpha=0.01).fit(X, y)
    X_1 = np.hstack([X, np.ones((200, 1))])
    for j, inside in enumerate(region_of(X).T > 0):
        linear = LinearSVC(C=1 / (200 * 0.01), loss=loss, dual=True, tol=1e-9, max_iter=10**6,
                           fit_intercept=False, random_state=0)  # fmt: skip
        linear.fit(X_1[inside], y[inside])
        ours = np.append(model.local_coef_[0, j], model.local_intercept_[0, j])
        np.testing.assert_allclose(ours, linear.coef_[0], atol=2e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", ["local", "global"])
@pytest.mark.parametrize("how", ["one anchor", "passthrough"])
def test_trivial_codes_are_a_plain_linear_svm(how, bias, loss):
    X, y = some_digits(3)
    one_anchor = how == "one anchor"
    coding = SoftAssignmentCoding(1, 1) if one_anchor else FunctionTransformer()
    weights = "linear" if one_anchor else "constant"
    model = dual(coding, weights=weights, bias=bias, loss=loss, tol=1e-7).fit(X, y)
    # A local intercept of the only model is the intercept of the score.
    linear = LinearSVC(C=1 / (len(y) * ALPHA), loss=loss, dual=True, tol=1e-9, max_iter=10**6,
                       fit_intercept=one_anchor or bias == "global", random_state=0)  # fmt: skip
    linear.fit(X, y)
    close = {"atol": 2e-3}
    coef = model.local_coef_[:, 0] if one_anchor else model.local_intercept_
    intercept = model.intercept_ + (model.local_intercept_[:, 0] if one_anchor else 0)
    np.testing.assert_allclose(coef, linear.coef_, **close)
    np.testing.assert_allclose(intercept, linear.intercept_ + np.zeros(3), **close)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(X), **close)


# The equation: what a fitted model says.


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("weights", "bias"),
    [
        ("linear", "local"),
        ("linear", "both"),
        ("constant", "global"),
        pytest.param("linear", "global", marks=pytest.mark.slow),
        pytest.param("constant", "local", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("coding", [SOFT, OCC, C_OCC], ids=["soft", "occ", "c-occ"])
@pytest.mark.parametrize(
    ("solver", "fit_kind"), [("sgd", np.asarray), ("dual_cd", sparse.csr_matrix)]
)
def test_scores_codes_and_local_models(solver, coding, bias, weights, n_classes, fit_kind):
    X, y = some_digits(n_classes)
    model = LLSVMClassifier(coding, solver=solver, bias=bias, weights=weights, max_iter=500,
                            metric=None, tol=0.1, n_iter_no_change=2, random_state=0,
                            standardize=False)  # fmt: skip
    new = some_digits(n_classes, 300)[0][150:]
    model.fit(fit_kind(X), y)
    scores, one_each = explicit_scores(model, new), coding is C_OCC
    n, d, s, m = *new.shape, len(model.local_coef_), 8 if coding is SOFT else 5
    assert s == (1 if n_classes == 2 and not one_each else n_classes)
    assert (model.local_coef_.shape, model.local_intercept_.shape) == ((s, m, d), (s, m))
    decision = scores[:, 0] if s == 1 else scores[:, 1] - scores[:, 0] if s == 2 else scores
    close = {"rtol": 1e-9, "atol": 1e-9}
    winners = (decision > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    for kind in KINDS:
        np.testing.assert_allclose(model.decision_function(kind(new)), decision, **close)
        np.testing.assert_array_equal(model.predict(kind(new)), model.classes_[winners])
        coef, intercept = model.local_model(kind(new))
        assert coef.shape == ((n, d) if n_classes == 2 else (n, n_classes, d))
        np.testing.assert_allclose(
            np.einsum("n...d,nd->n...", coef, new) + intercept, decision, **close
        )
        codes = model.local_weights(kind(new))
        if one_each:
            assert codes.shape == (n, s, m)
            expected = np.stack([codes_of(model, new, k) for k in range(s)], axis=1)
            np.testing.assert_allclose(codes, expected, **close)
        else:
            assert isinstance(codes, sparse.csr_matrix)
            np.testing.assert_allclose(codes.toarray(), codes_of(model, new, 0), **close)


@pytest.mark.parametrize(
    ("solver", "coding", "kind"),
    [
        ("sgd", SOFT, np.asarray),
        ("sgd", SOFT, sparse.csr_matrix),
        ("sgd", C_OCC, np.asarray),
        ("dual_cd", SOFT, np.asarray),
        ("dual_cd", OCC, np.asarray),
    ],
    ids=["sgd-soft", "sgd-soft-sparse", "sgd-c-occ", "dual-soft", "dual-occ"],
)
@pytest.mark.slow  # compiled for alone
def test_float32_stays_float32(coding, solver, kind):
    """On a few layouts, as each is compiled anew; `test_golden` has the scores on all."""
    X, y = some_digits(3)
    single, double = (
        LLSVMClassifier(coding, solver=solver, max_iter=900, random_state=0, standardize=False).fit(
            kind(Z), y
        )
        for Z in (X.astype(np.float32), X)
    )
    for values in (single.local_coef_, single.local_intercept_, single.intercept_,
                   single.decision_function(kind(X)), single.local_weights(kind(X))):  # fmt: skip
        assert values.dtype == np.float32
    assert double.local_coef_.dtype == np.float64
    assert single.objective_[-1] == pytest.approx(double.objective_[-1], rel=0.01)


@pytest.mark.slow  # compiled for alone
@pytest.mark.parametrize(
    ("solver", "coding"), [("sgd", SOFT), ("dual_cd", SOFT), ("dual_cd", OCC), ("sgd", C_OCC)]
)
def test_a_frozen_coding_of_another_dtype(coding, solver):
    X, y = some_digits(3)
    frozen = FrozenEstimator(clone(coding).fit(X, y))
    model = LLSVMClassifier(
        frozen,
        solver=solver,
        alpha="scale",
        max_iter=99,
        tol=0.01,
        random_state=0,
        standardize=False,
    )
    single = clone(model).fit(X.astype(np.float32), y)
    assert single.decision_function(X).dtype == np.float32
    assert single.local_weights(X).dtype == np.float32
    np.testing.assert_allclose(
        single.decision_function(X), model.fit(X, y).decision_function(X), atol=1e-3
    )


def test_alpha_scale_follows_its_rule():
    X, y = some_digits(3)
    for coding, bias in ((SOFT, "local"), (OCC, "global"), (C_OCC, "local")):
        model = dual(coding, bias=bias, alpha="scale", tol=1e-3).fit(X, y)
        of_scorers = [codes_of(model, X, k) for k in range(3)]
        one = (X**2).sum(axis=1) + 1 if bias == "local" else (X**2).sum(axis=1)
        norms = [(codes**2).sum(axis=1) * one for codes in of_scorers]
        assert model.alpha_ == pytest.approx(0.05 * np.mean(norms) / len(y))


# Stochastic gradient descent against Algorithm 1 in plain Python.

N, D, S, M = 30, 4, 3, 4
CODES = {
    "shared": lambda codes: codes[:, 0].copy(),
    "by class": lambda codes: codes.transpose(1, 0, 2).copy().transpose(1, 0, 2),  # as OCC's
    "csr": lambda codes: sparse.csr_matrix(codes[:, 0]),
}


class PlainSGD:
    """Row by row; the rows of a batch are scored before the first of them acts."""

    def __init__(self, loss, settings, s, t):
        self.loss, self.settings, self.t = loss, settings, t
        self.W, self.b, self.g = np.zeros((s, M, D)), np.zeros((s, M)), np.zeros(s)
        self.iterates = []

    def slopes(self, scores, label):
        """Loss of a row, and its derivative with respect to each score."""
        if not self.settings.competing:
            signs = np.where(np.arange(len(scores)) == (label if len(scores) > 1 else 1), 1, -1)
            if len(scores) == 1:
                signs = np.array([1 if label == 1 else -1])
            margins = signs * scores
            return VALUES[self.loss](margins).sum(), signs * SLOPES[self.loss](margins)
        others = np.where(np.arange(len(scores)) == label, -np.inf, scores)
        rival, margin = others.argmax(), scores[label] - others.max()
        slopes = np.zeros(len(scores))
        slopes[label], slopes[rival] = SLOPES[self.loss](margin), -SLOPES[self.loss](margin)
        return VALUES[self.loss](margin), slopes

    def run(self, X, codes, y, weights, order):
        settings, total, s = self.settings, 0.0, len(self.g)
        for first in range(0, len(order), settings.batch_size):
            W, b, g = self.W.copy(), self.b.copy(), self.g.copy()
            for i in order[first : first + settings.batch_size]:
                scores = np.array([codes[i, k] @ (W[k] @ X[i] + b[k]) + g[k] for k in range(s)])
                loss, slopes = self.slopes(scores, y[i])
                total += weights[i] * loss
                self.t += 1
                step, shrink = weights[i] / (settings.alpha * self.t), 1 - 1 / self.t
                self.W *= shrink
                if settings.penalize_intercept:
                    self.b *= shrink
                    self.g *= shrink
                for k in range(s):
                    self.W[k] -= step * slopes[k] * np.outer(codes[i, k], X[i])
                    self.b[k] -= step * slopes[k] * codes[i, k] * settings.intercepts.local
                    self.g[k] -= step * slopes[k] * settings.intercepts.extra
            size = len(order[first : first + settings.batch_size])
            self.iterates += [(self.W.copy(), self.b.copy(), self.g.copy())] * size
        square = np.sum(self.W**2)
        if settings.penalize_intercept:
            square += np.sum(self.b**2) + np.sum(self.g**2)
        return total / weights.sum() + settings.alpha / 2 * square


def run_both(form, kind, loss="hinge", s=S, t=5.0, n_passes=2, average_from=99, **changed):
    settings = {
        "alpha": 0.3,
        "batch_size": 1,
        "competing": False,
        "intercepts": Intercepts(local=True, extra=False),
        "penalize_intercept": True,
    }
    settings = PassSettings(loss=LOSSES[loss].compiled, **(settings | changed))
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(N, D)), rng.normal(size=(N, s, M))
    codes *= rng.random(codes.shape) < 0.6
    y, weights = rng.integers(max(s, 2), size=N).astype(np.int32), rng.uniform(0.5, 2, N)
    shown = codes if form == "by class" else np.repeat(codes[:, :1], s, axis=1)
    solver, plain = SGD(kind(X), s, M, settings), PlainSGD(loss, settings, s, t)
    solver.t = t
    ours, orders = np.random.default_rng(7), np.random.default_rng(7)
    for i in range(n_passes):
        if i == average_from:
            plain.iterates = []
        got = solver.iterate(
            kind(X), CODES[form](codes), y, weights, ours, average=i >= average_from
        )
        order = orders.permutation(np.arange(N, dtype=np.int32))
        expected = plain.run(X, shown, y, weights, order)
        assert got == pytest.approx(expected, rel=1e-9)
    assert solver.t == pytest.approx(plain.t)
    return solver, plain


def assert_same(solver, models, expected):
    W, b, g = models
    close = {"rtol": 1e-8, "atol": 1e-10}
    np.testing.assert_allclose(as_models(W, solver.is_sparse, M), expected[0], **close)
    np.testing.assert_allclose(b.reshape(-1, M), expected[1], **close)
    np.testing.assert_allclose(g, expected[2], **close)


@pytest.fixture(params=CODES)
def form(request):
    return request.param


@pytest.fixture(params=KINDS, ids=["dense", "sparse"])
def kind(request):
    return request.param


@pytest.mark.parametrize("penalize_intercept", [True, False])
@pytest.mark.parametrize("bias", ["local", "extra", "none"])
@pytest.mark.parametrize("loss", VALUES)
@pytest.mark.parametrize("competing", [False, True])
def test_sgd_is_the_plain_algorithm(form, kind, competing, loss, bias, penalize_intercept):
    solver, plain = run_both(
        form,
        kind,
        loss,
        competing=competing,
        intercepts=Intercepts(local=bias == "local", extra=bias == "extra"),
        penalize_intercept=penalize_intercept,
    )
    assert_same(solver, solver.weights, (plain.W, plain.b, plain.g))


@pytest.mark.parametrize(
    "changed",
    [
        {"batch_size": 7},
        {"batch_size": 7, "competing": True, "t": 0.1},
        {"s": 2, "competing": True},
        {"t": 0.0},
        {"t": 1e-3, "n_passes": 4},  # the scale falls so far that it is multiplied out
    ],
    ids=str,
)
def test_batches_two_scores_and_first_steps(form, kind, changed):
    solver, plain = run_both(form, kind, **changed)
    assert_same(solver, solver.weights, (plain.W, plain.b, plain.g))


@pytest.mark.parametrize(
    "changed",
    [{}, {"batch_size": 7}, {"t": 1e-3}, {"t": 0.0}, {"intercepts": Intercepts(True, True)}],
    ids=str,
)
@pytest.mark.parametrize("average_from", [0, 2])
def test_average_is_the_mean_of_the_iterates(form, kind, average_from, changed):
    solver, plain = run_both(form, kind, n_passes=4, average_from=average_from, **changed)
    means = [np.mean(parts, axis=0) for parts in zip(*plain.iterates, strict=True)]
    assert_same(solver, solver.current(), means)
    assert_same(solver, solver.weights, (plain.W, plain.b, plain.g))


@pytest.mark.parametrize("shared", ["shared", "csr"])  # codes by class come with a score each
def test_a_binary_problem(shared, kind):
    solver, plain = run_both(shared, kind, s=1)
    assert_same(solver, solver.weights, (plain.W, plain.b, plain.g))


def test_mean_squared_norm(form, kind):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(N, D)), rng.normal(size=(N, S, M))
    shown = codes if form == "by class" else codes[:, :1]
    with_one = np.hstack([X, np.ones((N, 1))])
    expected = (np.einsum("nsm,nd->nsmd", shown, with_one) ** 2).sum(axis=(2, 3)).mean()
    got = mean_squared_feature_norm(kind(X), CODES[form](codes), True)
    assert got == pytest.approx(expected)


# Stochastic and dual solutions are those of one problem.


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", ["local", "global", "both"])
@pytest.mark.parametrize(
    "coding",
    [SOFT, pytest.param(OCC, marks=pytest.mark.slow), C_OCC],
    ids=["soft", "occ", "c-occ"],
)
def test_sgd_reaches_the_optimum(coding, bias, loss):
    X, y = some_digits(3)
    eta0 = 10.0 if loss == "hinge" else 0.1  # the squared hinge has curvature
    model = LLSVMClassifier(
        coding, alpha=ALPHA, bias=bias, loss=loss, max_iter=600, tol=0, eta0=eta0, average=300,
        metric=None, n_iter_no_change=600, random_state=0,
    standardize=False).fit(X, y)  # fmt: skip
    ours, best = objectives(model, X, y)
    assert ours.sum() == pytest.approx(best.sum(), rel=0.01)
    gradual = dual(coding, bias=bias, loss=loss).fit(X, y)
    assert gradual.objective_[-1] == pytest.approx(ours.sum(), rel=0.01)


@pytest.mark.parametrize("batch_size", ["auto", 1])
@pytest.mark.parametrize("loss", VALUES)
def test_sgd_with_default_steps_learns_every_loss(digits, loss, batch_size):
    X, y = digits
    model = LLSVMClassifier(
        OCC, loss=loss, batch_size=batch_size, max_iter=20, random_state=0, standardize=False
    )
    model.fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.9
    assert model.objective_[-1] < 1


# Near its optimum, which is compared, liblinear may go on by roundings.
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize(
    ("solver", "coding", "kind", "weighted"),
    [
        pytest.param(
            solver, coding, kind, kind is sparse.csr_matrix,
            # compiled anew, of loaders that `test_dual_cd_is_linear_svc` meets
            marks=[pytest.mark.slow] if (solver, coding) == ("dual_cd", OCC) else [],
        )
        for solver in ("sgd", "dual_cd") for coding in (SOFT, OCC) for kind in KINDS
    ],
)  # fmt: skip
@pytest.mark.parametrize("n_classes", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("weights", ["linear", "constant"])
def test_competing_classes_are_linear_svc_s(solver, coding, weights, n_classes, weighted, kind):
    X, y = some_digits(n_classes)
    sample_weight = np.random.default_rng(1).integers(0, 4, len(y)) * 0.7 if weighted else None
    total = len(y) if sample_weight is None else sample_weight.sum()
    model = dual(coding, multi_class="crammer_singer", solver=solver, weights=weights)
    if solver == "sgd":
        model.set_params(max_iter=600, tol=0, n_iter_no_change=600, average=300)
    model.fit(kind(X), y, sample_weight)
    assert len(model.local_coef_) == n_classes
    F, labels = explicit_features(model, X, 0), np.eye(n_classes)[y]

    def objective(W):
        scores = F @ W.T
        leads = (scores * labels).sum(axis=1) - (scores - 1e9 * labels).max(axis=1)
        losses = np.average(np.maximum(0, 1 - leads), weights=sample_weight)
        return ALPHA / 2 * np.sum(W**2) + losses

    options = {"tol": 1e-6, "max_iter": 10**6, "fit_intercept": False, "random_state": 0}
    if n_classes == 2:  # LinearSVC takes two classes as one problem, of the weights w_1 - w_0
        linear = LinearSVC(C=2 / (total * ALPHA), loss="hinge", **options)
        best = np.vstack([-1, 1]) / 2 * linear.fit(F, y, sample_weight).coef_
    else:
        linear = LinearSVC(C=1 / (total * ALPHA), multi_class="crammer_singer", **options)
        best = linear.fit(F, y, sample_weight).coef_
    ours = objective(np.stack([explicit_weights(model, k) for k in range(n_classes)]))
    assert ours == pytest.approx(objective(best), rel=0.01 if solver == "sgd" else 1e-4)
    if solver == "dual_cd":
        assert model.objective_[-1] == pytest.approx(ours, rel=1e-9)
        assert 0 <= model.dual_gap_.sum() <= model.tol * ours
        assert ours - model.dual_gap_.sum() <= objective(best)


# Going on, and what must not matter.


@pytest.mark.parametrize("ends", [(1e-4, 1e-2), (1e-2, 1e-4)])
def test_dual_warm_start_saves_passes_along_a_path_of_alphas(ends):
    X, y = some_digits(10, 200)
    warm, n_warm, n_cold = dual(SOFT, warm_start=True, tol=1e-3), 0, 0
    for alpha in np.geomspace(*ends, 7):
        warm.set_params(alpha=alpha).fit(X, y)
        cold = dual(SOFT, alpha=alpha, tol=1e-3).fit(X, y)
        assert warm.objective_[-1] == pytest.approx(cold.objective_[-1], rel=1e-3)
        n_warm, n_cold = n_warm + warm.n_iter_, n_cold + cold.n_iter_
    assert n_warm < n_cold


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("coding", [SOFT, C_OCC], ids=["soft", "c-occ"])
def test_dual_warm_start_at_the_same_alpha_is_done_at_once(coding, loss):
    X, y = some_digits(3)
    model = dual(coding, loss=loss, warm_start=True, tol=1e-4).fit(X, y)
    passes, objective, fitted = model.n_iter_, model.objective_[-1], model.coding_
    model.fit(X, y)
    assert model.n_iter_ <= max(2, passes / 4)
    assert model.objective_[-1] == pytest.approx(objective, rel=2e-4)
    assert model.coding_ is fitted


def test_dual_warm_start_on_other_rows_starts_afresh():
    X, y = some_digits(3)
    model = dual(OCC, warm_start=True).fit(X, y).fit(X[:100], y[:100])
    assert_solved(model, X[:100], y[:100])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["linear", "constant"])
def test_sgd_warm_start_goes_on(weights, kind):
    X, y = some_digits(5, 300)
    model = LLSVMClassifier(SOFT, weights=weights, max_iter=5, average=0, warm_start=True,
                            alpha=1e-4, random_state=0,
                            standardize=False).fit(kind(X), y)  # fmt: skip
    first, fitted = model.objective_, model.coding_
    assert model.t_ == 5 * 300
    model.fit(kind(X), y)
    assert model.coding_ is fitted
    assert model.objective_[0] < first[1]
    assert model.objective_[-1] < first[-1]
    assert model.t_ == 10 * 300
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(kind(X), y % 3)


@pytest.mark.parametrize("coding", [SOFT, OCC, C_OCC], ids=["soft", "occ", "c-occ"])
def test_threads_and_seeds(coding):
    X, y = some_digits(4)
    one, two, again = (dual(coding, n_jobs=n, tol=0.1).fit(X, y) for n in (1, 2, 2))
    for model in (two, again):
        np.testing.assert_array_equal(model.local_coef_, one.local_coef_)
        assert model.objective_ == one.objective_
    a, b = (
        LLSVMClassifier(coding, max_iter=5, random_state=3, standardize=False).fit(X, y)
        for _ in range(2)
    )
    other = LLSVMClassifier(coding, max_iter=5, random_state=4, standardize=False).fit(X, y)
    np.testing.assert_array_equal(a.local_coef_, b.local_coef_)
    assert not np.array_equal(a.local_coef_, other.local_coef_)


def test_no_thread_outlives_a_fit():
    X, y = some_digits(4)
    before = threading.enumerate()
    dual(OCC, n_jobs=2, tol=0.1).fit(X, y)
    assert threading.enumerate() == before


@pytest.mark.parametrize("name", LOSSES)
def test_the_dual_is_a_quadratic_problem_or_refused(name):
    loss = LOSSES[name]
    if name not in losses_for("dual"):
        with pytest.raises(ValueError, match="has no dual problem"):
            dual_of(loss)
        return
    dual = dual_of(loss)
    z = np.linspace(-40, 40, 160_001)
    values = np.array([loss_value(loss.compiled, one) for one in z])
    for a in np.linspace(0, min(dual.upper, 9.0), 7):
        assert conjugate_at(dual, a) == pytest.approx((-a * z - values).max(), abs=1e-6)
    assert conjugate_at(dual, -0.1) == np.inf
    assert conjugate_at(dual, 1.01 * dual.upper) == np.inf or dual.upper == np.inf


@pytest.mark.parametrize("keep_dual", [False, True])
def test_a_result_stays_as_it_is(keep_dual):
    X, y = some_digits(2)
    codes, target = OrthogonalCoding(3).fit_transform(X).toarray(), np.where(y == 1, 1, -1)
    has = {"local": True, "extra": True}
    problem = BinaryDual(X, codes, target, np.ones(len(y)), 1e-4, LOSSES["hinge"], **has)
    fit = DualFit([problem], 1e-6, np.random.default_rng(0), keep_dual=keep_dual)
    assert fit.kept is None
    fit.iterate(average=False)
    early = fit.result(final=True)
    before, kept = deepcopy(early), deepcopy(fit.kept)
    old = fit.kept
    for _ in range(5):
        fit.iterate(average=False)
    for name, value in vars(early).items():
        np.testing.assert_array_equal(value, vars(before)[name])
    assert (old is None) == (not keep_dual)
    if keep_dual:
        np.testing.assert_array_equal(old[0], kept[0])
        assert (old[0] >= 0).all()
        assert (old[0] <= 1).all()
    assert fit.result().dual_gap < early.dual_gap


def test_an_open_coding_gets_a_seed_and_is_cloned():
    X, y = some_digits(3)
    coding = SoftAssignmentCoding(8, 3)
    a, b, c = (dual(coding, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a.coding_.anchors_, b.coding_.anchors_)
    assert not np.array_equal(a.coding_.anchors_, c.coding_.anchors_)
    assert not hasattr(coding, "anchors_")
    assert coding.random_state is None


@pytest.mark.parametrize("solver", ["sgd", "dual_cd"])
def test_class_weights_are_sample_weights(solver):
    X, y = some_digits(3)
    ratios, sample_weight = {0: 1.0, 1: 4.0, 2: 0.5}, np.random.default_rng(0).uniform(1, 2, len(y))
    # Frozen, so that the coding cannot see the weights.
    coding = FrozenEstimator(clone(OCC).fit(X))
    model = LLSVMClassifier(
        coding, solver=solver, max_iter=50, tol=1e-2, random_state=0, standardize=False
    )
    by_class = clone(model).set_params(class_weight=ratios).fit(X, y, sample_weight)
    by_row = clone(model).fit(X, y, sample_weight * np.vectorize(ratios.get)(y))
    np.testing.assert_allclose(by_class.local_coef_, by_row.local_coef_, rtol=1e-9, atol=1e-12)
    assert not np.allclose(by_row.local_coef_, clone(model).fit(X, y).local_coef_)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("coding", [SOFT, OCC, C_OCC], ids=["soft", "occ", "c-occ"])
def test_integer_weights_are_repeated_rows(coding, loss):
    X, y = some_digits(3)
    repeats = np.random.default_rng(0).integers(0, 4, len(y))
    model = dual(FrozenEstimator(clone(coding).fit(X, y)), loss=loss)
    weighted = clone(model).fit(X, y, sample_weight=repeats)
    repeated = clone(model).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    assert weighted.objective_[-1] == pytest.approx(repeated.objective_[-1], rel=1e-4)
    assert_solved(weighted, X, y, repeats)


# Streams.


def stream(model, X, y, chunk, classes, n_passes=1):
    for _ in range(n_passes):
        for first in range(0, len(y), chunk):
            model.partial_fit(X[first : first + chunk], y[first : first + chunk], classes=classes)
    return model


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("weights", ["linear", "constant"])
def test_a_stream_learns_xor_as_fit_does(weights, multi_class):
    X, y = make_xor(3000, std=0.3, random_state=0)
    X_test, y_test = make_xor(2000, std=0.3, random_state=1)
    coding = SoftAssignmentCoding(10, 3, random_state=0)
    model = LLSVMClassifier(
        coding, weights=weights, multi_class=multi_class, random_state=0, standardize=False
    )
    fitted = clone(model).fit(X, y).score(X_test, y_test)
    model = stream(model, X, y, 200, [0, 1], n_passes=2)
    assert fitted > 0.98
    assert model.score(X_test, y_test) > fitted - 0.01
    assert model.t_ == 6000
    assert (model.n_iter_, len(model.objective_)) == (1, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("coding", [SOFT, OCC], ids=["soft", "occ"])
def test_a_class_that_comes_late(digits, coding, kind):
    X, y = digits
    X, y = X[y < 4], y[y < 4]
    order = np.argsort(y == 3, kind="stable")
    model = LLSVMClassifier(coding, random_state=0, standardize=False)
    model.partial_fit(kind(X[order][:100]), y[order][:100], classes=range(4))
    assert model.local_coef_.shape[0] == 4
    assert 3 not in y[order][:100]
    stream(model, kind(X), y, 100, None, n_passes=3)
    assert model.score(X, y) > 0.97


def test_a_seed_reaches_the_coding_within_a_coding(digits):
    X, y = digits[0][:200], digits[1][:200]
    coding = TangentCoding(SoftAssignmentCoding(5, 3, anchors="random"), 2)
    first, second, other = (
        LLSVMClassifier(coding, max_iter=2, random_state=seed, standardize=False).fit(X, y)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.local_coef_, second.local_coef_)
    assert not np.array_equal(first.coding_.anchors_, other.coding_.anchors_)
    assert coding.coding.random_state is None


def test_codes_of_a_class_need_its_rows_in_the_first_chunk(digits):
    X, y = digits
    model = LLSVMClassifier(OrthogonalCoding(per_class=True), random_state=0, standardize=False)
    for _ in range(2):  # a refused chunk leaves a fresh start
        with pytest.raises(ValueError, match="Every class needs some rows"):
            model.partial_fit(X[:9], y[:9], classes=range(10))
    model.partial_fit(X[:300], y[:300], classes=range(10))
    stream(model, X[300:1500], y[300:1500], 100, None, n_passes=3)
    assert model.score(X[300:1500], y[300:1500]) > 0.95


def test_dual_cd_has_no_partial_fit():
    model = LLSVMClassifier(solver="dual_cd", standardize=False)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit([[0.0]], [0], classes=[0, 1])
    told = f"{caught.value} {caught.value.__cause__}"
    assert "partial_fit" in told
    assert "solver='sgd'" in told
    assert hasattr(model.set_params(solver="sgd"), "partial_fit")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["linear", "constant"])
@pytest.mark.parametrize("coding", [SOFT, OCC, C_OCC], ids=["soft", "occ", "c-occ"])
def test_a_stream_goes_on_after_fit(digits, coding, weights, kind):
    X, y = digits
    X, y = kind(X[y < 5]), y[y < 5]
    model = LLSVMClassifier(coding, weights=weights, max_iter=30, random_state=0, standardize=False)
    model.fit(X[:500], y[:500])
    before, alpha, t, fitted = model.score(X[700:], y[700:]), model.alpha_, model.t_, model.coding_
    stream(model, X[500:700], y[500:700], 50, None)
    assert model.coding_ is fitted
    assert model.alpha_ == alpha
    assert model.t_ == t + 200
    assert model.score(X[700:], y[700:]) > before - 0.02


def test_a_stream_goes_on_from_a_dual_fit(digits):
    X, y = digits
    model = dual(SOFT, tol=1e-3).fit(X[:1000], y[:1000])
    before = model.score(X[1400:], y[1400:])
    stream(model.set_params(solver="sgd"), X[1000:1400], y[1000:1400], 100, None)
    assert model.score(X[1400:], y[1400:]) > before - 0.05  # steps begin anew


def test_the_memory_of_a_stream_does_not_grow(digits):
    X, y = digits
    model, sizes = LLSVMClassifier(SOFT, random_state=0, standardize=False), []
    for _ in range(5):
        stream(model, X, y, 300, np.unique(y))
        sizes.append(len(pickle.dumps(model)))
    assert max(sizes[1:]) - min(sizes[1:]) < 200
    X_test = X[:20]
    again = pickle.loads(pickle.dumps(model))
    for each in (model, again):
        stream(each, X[:200], y[:200], 100, None)
    np.testing.assert_array_equal(again.decision_function(X_test), model.decision_function(X_test))


@pytest.mark.parametrize("coding", [SOFT, OCC, C_OCC], ids=["soft", "occ", "c-occ"])
@pytest.mark.parametrize("weights", ["linear", "constant"])
def test_a_stream_may_change_between_dense_and_sparse(digits, coding, weights):
    X, y = digits
    frozen = FrozenEstimator(clone(coding).fit(X, y))
    model = LLSVMClassifier(frozen, weights=weights, random_state=0, standardize=False)
    plain, mixed = stream(clone(model), X[:800], y[:800], 100, range(10)), clone(model)
    for i, first in enumerate(range(0, 800, 100)):
        kind = sparse.csr_matrix if i in (0, 2, 3, 6) else np.asarray
        mixed.partial_fit(kind(X[first : first + 100]), y[first : first + 100], range(10))
    np.testing.assert_allclose(
        mixed.decision_function(X), plain.decision_function(X), rtol=1e-6, atol=1e-8
    )


# Stopping.


@pytest.mark.parametrize("solver", ["sgd", "dual_cd"])
def test_early_stopping(digits, solver):
    X, y = digits
    model = LLSVMClassifier(SOFT, solver=solver, early_stopping=True, tol=1e-5, max_iter=500,
                            average=3, random_state=0,
                            standardize=False).fit(X[:900], y[:900])  # fmt: skip
    assert len(model.validation_scores_) == len(model.objective_) == model.n_iter_ < 500
    assert max(model.validation_scores_) > 0.9
    assert model.score(X[900:], y[900:]) > 0.88


def test_dual_objective_falls_to_its_exact_value():
    X, y = some_digits(3)
    model = dual(OCC, alpha=1e-4).fit(X, y)
    assert model.n_iter_ == len(model.objective_) > 3
    assert model.objective_[-1] < model.objective_[0]
    assert all(later < 1.5 * before for before, later in pairwise(model.objective_))
