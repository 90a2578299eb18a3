"""US-SVM against finite differences, Algorithm 1 in plain Python, and its own equation."""

import pickle
from copy import copy
from itertools import product
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from loclin import USSVMClassifier
from loclin.engine.data import Rows
from loclin.engine.scores import answer_scores, shared_code_scores
from loclin.ussvm import descent as ussvm
from loclin.ussvm import many_rows as ussvm_rows
from loclin.ussvm.codes import Penalty
from loclin.ussvm.descent import DictionaryDescent
from loclin.ussvm.scaled_atoms import ScaledAtoms

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows", "rule_alone")

DIGITS, IRIS = load_digits(return_X_y=True), load_iris(return_X_y=True)
DIGITS, IRIS = (DIGITS[0] / 16, DIGITS[1]), (StandardScaler().fit_transform(IRIS[0]), IRIS[1])
KINDS = [np.asarray, sparse.csr_matrix]
LEARNED = ("dictionary_", "intercept_")
VARIANTS = [(1.0, False), (1.0, True), (0.4, False), (0.4, True)]


def each(**values):
    return pytest.mark.parametrize(list(values), list(product(*values.values())))


def quick(**changed):
    return USSVMClassifier(**({"n_atoms": 6, "max_iter": 20, "random_state": 0} | changed))


def some_dictionary(d, n_atoms, seed=0):
    D = np.random.default_rng(seed).normal(size=(d, n_atoms))
    return D / np.linalg.norm(D, axis=0)


# Rows, weights and a state at random.
N, D, A = 20, 5, 4


class Problem:
    def __init__(self, alpha, variant, n_classes=3, kind=np.asarray, batch=1, **changed):
        rng = np.random.default_rng(3)
        self.X, self.y = rng.normal(size=(N, D)), rng.integers(n_classes, size=N)
        self.X[rng.random((N, D)) < 0.3] = 0
        w = rng.uniform(0.5, 2, N)
        self.w, self.batch = w / w.mean(), batch
        s = 1 if n_classes == 2 else n_classes
        self.Y = np.where(self.y[:, None] == (np.arange(s) if s > 1 else 1), 1, -1)
        self.rho = np.where(self.Y > 0, changed.get("positive_weight", 1.0), 1.0)
        self.penalty = Penalty(alpha, 0.03, *variant)
        codes = 0.5 * rng.normal(size=(s, A))
        self.start = 0.7 * some_dictionary(D, A), np.abs(codes) if variant[1] else codes
        self.b = rng.normal(size=s)
        settings = {"code_lr": 0.3, "atom_lr": 0.4, "block_iter": 3} | changed
        self.descent = DictionaryDescent(
            np.ascontiguousarray(self.start[0].T),
            self.start[1],
            self.b,
            1.7,
            self.penalty,
            **settings,
        )
        self.rows = Rows(kind(self.X), self.y, self.w)

    def objective(self, D, Z):  # equation 5, summed over the classes
        alpha, beta, r, _ = self.penalty
        hinge = np.maximum(0, 1 - self.Y * (self.X @ D @ Z.T + self.b))
        elastic = beta * (r * np.abs(Z).sum() + (1 - r) * np.sum(Z**2))
        risk = np.average((self.rho * hinge).sum(axis=1), weights=self.w)
        return risk + alpha / 2 * np.sum((D @ Z.T) ** 2) + elastic

    def differences(self, part):  # central ones, at the start
        gradient = np.zeros_like(self.start[part])
        for index, step in product(np.ndindex(gradient.shape), (1e-6, -1e-6)):
            state = [one.copy() for one in self.start]
            state[part][index] += step
            gradient[index] += self.objective(*state) / (2 * step)
        return gradient


@each(alpha=[0.0, 0.2], variant=VARIANTS)
def test_gradients_by_finite_differences(alpha, variant):
    case = Problem(alpha, variant)
    (D0, Z), penalty = case.start, case.penalty
    margins = case.Y * (case.X @ D0 @ Z.T + case.b)
    assert np.abs(1 - margins).min() > 1e-4
    yhat = case.Y * (margins < 1) * case.w[:, None] / N
    by_codes = case.descent.code_gradient(-yhat.T @ case.X @ D0, Z) + penalty.l1 * np.sign(Z)
    np.testing.assert_allclose(by_codes, case.differences(1), rtol=1e-5, atol=1e-7)
    by_atoms = case.descent.atom_gradient((-yhat @ Z).T @ case.X, Z)
    np.testing.assert_allclose(by_atoms.T, case.differences(0), rtol=1e-5, atol=1e-7)
    # Equation 7 as printed has no beta at the elastic net's last term ...
    r = penalty.l1_ratio
    printed = by_codes + (2 * (1 - r) - 2 * penalty.ridge) * Z
    assert np.allclose(printed, case.differences(1), rtol=1e-3) == (r == 1)
    # ... and equation 10 the wrong sign of the alpha term.
    printed = by_atoms.T - 2 * alpha * D0 @ Z.T @ Z
    assert np.allclose(printed, case.differences(0), rtol=1e-3) == (alpha == 0)


class PlainUSSVM:
    """Algorithm 1, batch by batch, with AdaGrad's steps."""

    def __init__(self, case):
        self.case, self.t, (self.D, Z) = case, 0, (part.copy() for part in case.start)
        self.U, self.V, self.b = np.maximum(Z, 0), np.maximum(-Z, 0), case.b.copy()
        self.squares = [np.zeros_like(Z), np.zeros(A), np.zeros_like(self.b)]
        self.after_batches = []

    def run(self, order):
        case, total = self.case, 0.0
        alpha, beta, r, nonnegative = case.penalty
        for first in range(0, N, case.batch):
            some = order[first : first + case.batch]
            X, Y, w, Z = case.X[some], case.Y[some], case.w[some], self.U - self.V
            margins, rho = Y * (X @ self.D @ Z.T + self.b), case.rho[some]
            total += w @ (rho * np.maximum(0, 1 - margins)).sum(axis=1)
            yhat = rho * Y * (margins < 1) * w[:, None] / len(some)
            if self.t // 3 % 2 == 0:
                gradient = -yhat.T @ X @ self.D + alpha * Z @ self.D.T @ self.D
                gradient += 2 * beta * (1 - r) * Z
                self.squares[0] += gradient**2
                self.squares[2] += yhat.sum(axis=0) ** 2
                step = 0.3 / 1.7 / np.sqrt(self.squares[0] + 1e-99)
                self.U = np.maximum(0, self.U - step * (gradient + beta * r))
                if not nonnegative:
                    self.V = np.maximum(0, self.V - step * (beta * r - gradient))
                both = np.minimum(self.U, self.V)
                self.U, self.V = self.U - both, self.V - both
                self.b += 0.3 * yhat.sum(axis=0) / np.sqrt(self.squares[2] + 1e-99)
            else:
                gradient = -X.T @ yhat @ Z + alpha * self.D @ Z.T @ Z
                self.squares[1] += np.sum(gradient**2, axis=0)
                self.D = self.D - 0.4 * gradient / np.sqrt(self.squares[1] + 1e-99)
                self.D /= np.maximum(1, np.linalg.norm(self.D, axis=0))
            self.t += 1
            self.after_batches.append(self.D)
        Z = self.U - self.V
        return total / N + case.objective(self.D, Z) - case_risk(case, self.D, Z)


def case_risk(case, D, Z):
    hinge = np.maximum(0, 1 - case.Y * (case.X @ D @ Z.T + case.b))
    return np.average((case.rho * hinge).sum(axis=1), weights=case.w)


@each(alpha=[0.0, 0.2], variant=VARIANTS, n_classes=[2, 3], kind=KINDS, batch=[1, 3])
def test_algorithm_1(alpha, variant, n_classes, kind, batch, monkeypatch):
    monkeypatch.setattr(
        ussvm, "_FEW_NONZEROS", 99.0 if batch == 1 else 0.0
    )  # steps of the batch's columns
    rho = 1.0 if kind is np.asarray else 3.0
    case = Problem(alpha, variant, n_classes, kind, batch, positive_weight=rho)
    plain, ours, rng = PlainUSSVM(case), np.random.default_rng(7), np.random.default_rng(7)
    for i in range(3):
        plain.after_batches = []
        got = case.descent.iterate(case.rows, batch, ours, average=i == 2)
        expected = plain.run(rng.permutation(N))
        assert got == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(case.descent.codes, plain.U - plain.V, atol=1e-10)
    np.testing.assert_allclose(case.descent.atoms.T, plain.D, atol=1e-10)
    np.testing.assert_allclose(case.descent.intercept, plain.b, atol=1e-10)
    assert not np.any((case.descent.u > 0) & (case.descent.v > 0))
    assert np.linalg.norm(plain.D, axis=0).max() <= 1 + 1e-12
    average = case.descent.mean_atoms.T
    np.testing.assert_allclose(average, np.mean(plain.after_batches, axis=0), atol=1e-10)
    assert not np.allclose(average, plain.D)


def test_long_steps_of_atoms_over_sparse_rows():
    rng, d = np.random.default_rng(5), 30
    atoms = 0.5 * some_dictionary(d, A).T
    ours, total = ScaledAtoms(atoms, average=True), np.zeros_like(atoms)
    scales = []
    for _ in range(60):
        X = sparse.random(2, d, 0.1, format="csr", random_state=rng)
        left = rng.normal(size=(2, A))
        columns, step = ours.gradient(X, left)
        np.testing.assert_array_equal(columns, np.unique(X.indices))
        np.testing.assert_allclose(step, (X.T @ left)[columns], atol=1e-12)
        ours.step(columns, 4 * step)
        ours.end_batch()
        scales.append(ours.scale.min())
        atoms = atoms - 4 * left.T @ X
        atoms /= np.maximum(1, np.linalg.norm(atoms, axis=1))[:, None]
        total += atoms
        np.testing.assert_allclose(ours.precompute(X), X @ atoms.T, atol=1e-10)
    assert (np.diff(scales) > 0).any()  # scales were multiplied out
    for found, expected in zip(ours.finish(), (atoms, total), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_gradients_are_measured_without_a_step():
    case = Problem(0.1, (1.0, False))
    case.descent.measure_gradients(case.rows, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(case.descent.atoms.T, case.start[0])
    np.testing.assert_array_equal(case.descent.codes, case.start[1])
    assert (case.descent.squared_gradients.atoms > 1e-6).all()
    case.descent.iterate(case.rows, 1, np.random.default_rng(0))
    assert (case.start[0] != case.descent.atoms.T).any()


@each(n_atoms=[2, 8], n_classes=[2, 3, "labels"])
def test_scores_codes_and_local_models(n_classes, n_atoms):
    X, y = IRIS
    if n_classes == "labels":
        y = np.column_stack([y > 0, y == 1, X[:, 0] > 0]).astype(int)
    else:
        X, y = (part[y < n_classes] for part in IRIS)
    model = quick(n_atoms=n_atoms, max_iter=8).fit(X, y)
    s = 1 if n_classes == 2 else 3
    assert model.dictionary_.shape == (4, n_atoms)
    assert (model.codes_.shape, model.intercept_.shape) == ((s, n_atoms), (s,))
    assert model.local_coef_.shape == (s, n_atoms, 4)
    assert np.linalg.norm(model.dictionary_, axis=0).max() <= 1 + 1e-12
    maps = model.dictionary_ @ model.codes_.toarray().T
    scores = X @ maps + model.intercept_
    decision = scores[:, 0] if s == 1 else scores
    winners = decision > 0 if n_classes in (2, "labels") else scores.argmax(axis=1)
    for kind in KINDS:
        np.testing.assert_allclose(model.decision_function(kind(X)), decision, atol=1e-12)
        P = model.transform(kind(X))
        np.testing.assert_allclose(P, X @ model.dictionary_, atol=1e-12)
        np.testing.assert_allclose(model.score_precomputed(P), decision, atol=1e-12)
        np.testing.assert_array_equal(model.predict(kind(X)), winners)
        coef, intercept = model.local_model(kind(X))
        assert coef.shape == ((len(X), 4) if s == 1 else (len(X), 3, 4))
        explained = np.einsum("n...d,nd->n...", coef, X) + intercept
        np.testing.assert_allclose(explained, decision, atol=1e-12)
        weights = model.local_weights(kind(X))
        assert weights.shape == (len(X), s, n_atoms)
        np.testing.assert_array_equal(weights[7], model.codes_.toarray())
    assert model.score(X, y) > (0.6 if n_atoms == 2 else 0.7)
    assert model.get_feature_names_out().tolist()[0] == "ussvmclassifier0"


def objective_of(model, X, Y, alpha=0.0):
    Z, D = model.codes_.toarray(), model.dictionary_
    hinge = np.maximum(0, 1 - Y * (X @ D @ Z.T + model.intercept_))
    penalty = alpha / 2 * np.sum((D @ Z.T) ** 2, axis=0) + model.beta_ * np.abs(Z).sum(axis=1)
    return hinge.mean(axis=0) + penalty


@each(alpha=[0.0, 0.01])
def test_codes_are_solved_over_the_dictionary_learned(alpha):
    X, y = DIGITS[0][:900], DIGITS[1][:900]
    model = quick(alpha=alpha, max_iter=10).fit(X, y)
    frozen = USSVMClassifier(dictionary=model, alpha=alpha, beta=model.beta_, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(frozen.dictionary_, model.dictionary_)
    Y = np.where(y[:, None] == np.arange(10), 1, -1)
    ours, best = objective_of(model, X, Y, alpha), objective_of(frozen, X, Y, alpha)
    assert (ours <= (1 + 1e-4) * best).all()
    assert (model.dual_gap_ <= 1e-4 * ours).all()
    assert frozen.objective_[-1] == pytest.approx(best.sum(), rel=1e-5)
    assert frozen.n_iter_ < 60


def test_several_labels_and_two_classes_are_one_class_against_the_rest():
    X, y = DIGITS[0][:500], DIGITS[1][:500]
    shared = USSVMClassifier(dictionary=some_dictionary(64, 12), beta=0.02, tol=1e-7)
    classes = clone(shared).fit(X, y)
    labels = clone(shared).fit(X, y[:, None] == np.arange(10))
    two = clone(shared).fit(X, y == 3)
    np.testing.assert_allclose(classes.codes_.toarray(), labels.codes_.toarray(), atol=1e-12)
    np.testing.assert_allclose(two.codes_.toarray()[0], labels.codes_.toarray()[3], atol=1e-12)
    np.testing.assert_allclose(two.decision_function(X), labels.decision_function(X)[:, 3])
    swapped = clone(shared).fit(X, y != 3)
    np.testing.assert_allclose(swapped.decision_function(X), -two.decision_function(X), atol=1e-3)
    codes, intercept = labels.fit_codes(X, y == 3)
    np.testing.assert_allclose(codes.toarray(), two.codes_.toarray(), atol=1e-12)
    codes, intercept = two.fit_codes(two.transform(X), y, precomputed=True)
    np.testing.assert_allclose(codes.toarray(), classes.codes_.toarray(), atol=1e-12)
    np.testing.assert_allclose(intercept, classes.intercept_, atol=1e-12)


@each(n_nonzero=[1, 3])
def test_pruned_codes(n_nonzero):
    X, y = DIGITS[0][:300], DIGITS[1][:300]
    model = quick(n_atoms=12, n_nonzero=n_nonzero).fit(X, y)
    assert model.codes_.getnnz(axis=1).tolist() == [n_nonzero] * 10
    assert model.score(X, y) > {1: 0.6, 3: 0.85}[n_nonzero]


def test_pruned_codes_over_a_given_dictionary():
    X, y = (part[:400][DIGITS[1][:400] < 3] for part in DIGITS)
    model = USSVMClassifier(dictionary=some_dictionary(64, 12), n_nonzero=2).fit(X, y)
    assert model.codes_.nnz == 6
    codes, intercept = model.fit_codes(X, y)  # the same, from the start
    np.testing.assert_array_equal(codes.toarray(), model.codes_.toarray())
    np.testing.assert_array_equal(intercept, model.intercept_)
    model.set_params(max_iter=2)  # they are solved all the same
    np.testing.assert_array_equal(model.fit(X, y).codes_.toarray(), codes.toarray())


def test_without_a_tolerance_codes_are_as_good_as_rounding_allows():
    shared = USSVMClassifier(dictionary=some_dictionary(4, 5), beta=0.02, tol=0, max_iter=30)
    with pytest.warns(ConvergenceWarning, match="above tol=0"):
        model = shared.fit(*IRIS)
    assert (model.dual_gap_ < 1e-8).all()
    assert model.score(*IRIS) > 0.8


@pytest.mark.slow
def test_fewer_atoms_than_classes_are_shared():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 30))
    basis = np.linalg.qr(rng.normal(size=(30, 3)))[0]
    maps = rng.normal(size=(12, 3))
    Y = (X @ basis @ maps.T > 0).astype(int)
    model = USSVMClassifier(3, random_state=0).fit(X, Y)
    cosines = np.linalg.svd(np.linalg.qr(model.dictionary_)[0].T @ basis)[1]
    assert cosines.min() > 0.98  # the subspace is found
    assert (model.predict(X) == Y).mean() > 0.96
    assert model.atom_usage().min() >= 6


def test_nonnegative_codes_and_the_elastic_net():
    X, y = DIGITS[0][:700], DIGITS[1][:700]
    model = quick(nonnegative=True, n_atoms=12).fit(X, y)
    assert model.codes_.data.min() > 0
    assert model.score(X, y) > 0.85
    l1, elastic = (quick(l1_ratio=r, beta=0.01).fit(X, y) for r in (1.0, 0.0))
    assert elastic.codes_.nnz > l1.codes_.nnz


def test_sparse_rows_and_single_precision():
    X, y = DIGITS[0][:600], DIGITS[1][:600]
    model = quick(max_iter=3).fit(X, y)
    other = clone(model).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(other.dictionary_, model.dictionary_, atol=1e-8)
    for kind in KINDS:
        single = clone(model).fit(kind(X.astype(np.float32)), y)
        for name in (*LEARNED, "codes_"):
            assert (getattr(single, name).dtype, getattr(model, name).dtype) == (np.float32, float)
        assert single.decision_function(X).dtype == single.transform(X).dtype == np.float32
        assert single.score(X, y) == pytest.approx(model.score(X, y), abs=0.05)


def test_weights_and_classes():
    X, y = DIGITS[0][:400], DIGITS[1][:400]
    D = some_dictionary(64, 8)
    shared = USSVMClassifier(dictionary=D, beta=0.01, tol=1e-8)
    times = np.random.default_rng(0).integers(0, 3, 400)
    one = clone(shared).fit(X, y, times)
    other = clone(shared).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(one.codes_.toarray(), other.codes_.toarray(), atol=1e-4)
    balanced = clone(shared).set_params(class_weight={3: 2.0}).fit(X, y)
    other = clone(shared).fit(X, y, np.where(y == 3, 2.0, 1.0))
    np.testing.assert_allclose(balanced.codes_.toarray(), other.codes_.toarray(), atol=1e-10)
    with pytest.raises(ValueError, match="class_weight='balanced' is for one label a row"):
        quick(class_weight="balanced").fit(X, y[:, None] == np.arange(10))


@each(rows=[1, 30])
def test_heavier_positives(rows, monkeypatch):
    monkeypatch.setattr(ussvm_rows, "MANY_ROWS", 400 * rows)
    X, y = DIGITS[0][:400], DIGITS[1][:400]
    shared = USSVMClassifier(dictionary=some_dictionary(64, 8), beta=0.01, tol=1e-8)
    model = clone(shared).set_params(positive_weight=3.0).fit(X, y)
    for k in range(3):  # the same by weights of rows, whose sum is another
        weights = np.where(y == k, 3.0, 1.0)
        other = clone(shared).set_params(beta=0.01 / weights.mean()).fit(X, y == k, weights)
        np.testing.assert_allclose(other.codes_.toarray()[0], model.codes_.toarray()[k], atol=1e-4)
        assert other.objective_[-1] * weights.mean() == pytest.approx(
            clone(model).fit(X, y == k).objective_[-1], rel=1e-6
        )


def test_heavier_positives_where_atoms_are_few():
    X, y = DIGITS
    score, used = np.zeros((2, 2)), np.zeros((2, 2))
    for i, weight in enumerate([1.0, 3.0]):
        for seed in range(2):
            model = quick(n_atoms=4, positive_weight=weight, max_iter=40, random_state=seed)
            model.fit(X[:900], y[:900])
            score[i, seed] = model.score(X[900:], y[900:])
            used[i, seed] = (model.codes_.getnnz(axis=1) > 0).sum()
    assert score[1].mean() > score[0].mean() + 0.03
    assert used[1].mean() > used[0].mean()


@each(labels=[False, True])
def test_one_class_more(labels):
    X, y = DIGITS[0][:900], DIGITS[1][:900]
    old = y < 8
    target = (y[:, None] == np.arange(8)).astype(int)[old] if labels else y[old] * 10
    model = quick(n_atoms=16).fit(X[old], target)
    before, D = model.decision_function(X), model.dictionary_.copy()
    model.add_class(model.transform(X), y == 9, None if labels else 25, precomputed=True)
    np.testing.assert_array_equal(model.dictionary_, D)
    assert model.classes_.tolist() == (
        [*range(9)] if labels else [0, 10, 20, 25, 30, 40, 50, 60, 70]
    )
    at = 8 if labels else 3
    scores = model.decision_function(X)
    np.testing.assert_allclose(np.delete(scores, at, axis=1), before, atol=1e-10)
    assert ((scores[:, at] > 0) == (y == 9)).mean() > 0.95
    for bad in [3] if labels else [None, 30]:
        with pytest.raises(ValueError, match="label="):
            model.add_class(X, y == 8, bad)
    with pytest.raises(ValueError, match="whether it is of the new class"):
        model.add_class(X, y, 99)


STRINGS, NUMBERS = ["a", "b", "c"], [0.0, 1.0, 2.0]
ODD = [np.nan, np.inf, 2j, (), [4, 5], np.array([4]), b"d", {}]


@pytest.mark.parametrize(
    ("classes", "label"),
    [*product([STRINGS], [3, True, *ODD]), *product([NUMBERS, [0, 1, 2]], ["d", *ODD])],
)
def test_a_class_of_another_type(classes, label):
    X, y = IRIS
    model = quick(max_iter=3).fit(X, np.array(classes)[y])
    before = dict(vars(model))
    with pytest.raises((TypeError, ValueError), match=r"^label=.* is not valid; "):
        model.add_class(X, y > 1, label)
    assert vars(model) == before


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        *product([STRINGS], ["a longer one", np.str_("d")]),
        *product([NUMBERS, [0, 1, 2]], [3, 2.5, np.int64(3), np.float32(3)]),
    ],
)
def test_a_class_of_the_same_type(classes, label):
    X, y = IRIS
    model = quick(max_iter=3).fit(X, np.array(classes)[y]).add_class(X, y > 1, label)
    assert model.classes_.tolist() == sorted([*classes, label])


def test_a_third_class_for_two():
    X, y = IRIS
    model = quick().fit(X[:100], y[:100])
    before, label = model.decision_function(X), model.predict(X[:100])
    model.add_class(X, y == 2, 2)
    assert model.codes_.shape == (3, 6)
    np.testing.assert_allclose(model.decision_function(X)[:, :2], np.c_[-before, before])
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores[:100, :2].argmax(axis=1), label)
    assert ((scores[:, 2] > 0) == (y == 2)).mean() > 0.9


@each(kind=KINDS, dtype=[float, np.float32], s=[3, 300])
def test_scores_of_many_classes(kind, dtype, s):
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(150, 20)).astype(dtype), some_dictionary(20, 30).astype(dtype)
    X[rng.random(X.shape) < 0.3] = 0
    codes = sparse.random(s, 30, 0.05, format="csr", random_state=0, dtype=dtype)
    b = rng.normal(size=s).astype(dtype)
    expected = X.astype(float) @ (D.astype(float) @ codes.toarray().T) + b
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"atol": 1e-12}
    scores = shared_code_scores(kind(X), D, codes, b)
    assert scores.dtype == dtype
    np.testing.assert_allclose(scores, expected, **close)
    np.testing.assert_allclose(answer_scores(X @ D, codes, b), expected, **close)
    # Many classes: the atoms are asked first, and no map of every class is made.
    with mock.patch.object(type(codes), "__matmul__", autospec=True) as product:
        product.side_effect = RuntimeError
        with pytest.raises(RuntimeError):
            shared_code_scores(X, D, codes, b)
    assert product.call_args.args[1].shape == ((30, 64) if s == 300 else (30, 20))


def test_nonnegative_codes_stay_so_with_one_class_more():
    X, y = IRIS
    two = quick(nonnegative=True).fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="its opposite is no code for the first"):
        two.add_class(X, y == 2, 2)
    assert two.codes_.shape == (1, 6)
    columns = quick(nonnegative=True).fit(X[:100], y[:100, None] == [0, 1])
    assert columns.add_class(X, y == 2).codes_.min() >= 0
    three = quick(nonnegative=True).fit(X, y)
    assert three.add_class(X, y > 1, 3).codes_.min() >= 0


def test_what_atoms_mean():
    X, y = DIGITS[0][:500], DIGITS[1][:500]
    model = quick(n_atoms=12, n_nonzero=4).fit(X, y)
    codes = model.codes_.toarray()
    atoms, coefficients = model.top_atoms(3, 2)
    np.testing.assert_array_equal(coefficients, codes[3, atoms])
    assert np.abs(coefficients).tolist() == np.sort(np.abs(codes[3]))[::-1][:2].tolist()
    assert len(model.top_atoms(3, 9)[0]) == 4
    rows = model.top_samples(X, 5, 7)
    scores = X @ model.dictionary_[:, 5]
    np.testing.assert_array_equal(scores[rows], np.sort(scores)[::-1][:7])
    np.testing.assert_array_equal(model.atom_usage(), (codes != 0).sum(axis=0))
    two = quick().fit(X, y == 3)
    np.testing.assert_array_equal(two.top_atoms(False)[1], -two.top_atoms(True)[1])
    for call, message in [
        (lambda: model.top_atoms(11), "label=11 is not among"),
        (lambda: model.top_samples(X, 12), "atom=12 must be one of 0 .. 11"),
        (lambda: model.top_atoms(1, 0), "k=0 is not valid"),
        (lambda: model.score_precomputed(X), "have 64 columns, but there are 12 atoms"),
        (lambda: model.fit_codes(X, y[:9]), "inconsistent numbers of samples"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def stream(model, X, y, block, n_passes=1, kinds=(np.asarray,), classes=range(10)):
    for _ in range(n_passes):
        for i, rows in enumerate(slice(at, at + block) for at in range(0, len(y), block)):
            model.partial_fit(kinds[i % len(kinds)](X[rows]), y[rows], list(classes))
    return model


def test_a_stream():
    X, y = DIGITS[0][:900], DIGITS[1][:900]
    model = USSVMClassifier(20, n_nonzero=8, random_state=0)
    mixed, model = stream(clone(model), X, y, 300, 1, KINDS), stream(model, X, y, 300)
    np.testing.assert_allclose(mixed.dictionary_, model.dictionary_, atol=1e-8)
    copied = stream(pickle.loads(pickle.dumps(model)), X, y, 300, 9)
    stream(model, X, y, 300, 9)
    np.testing.assert_array_equal(copied.dictionary_, model.dictionary_)
    assert model.codes_.getnnz(axis=1).max() <= 8
    assert model.score(X, y) > 0.85
    labels = stream(USSVMClassifier(20, random_state=0), X, (y[:, None] == range(10)), 300, 9)
    assert (labels.predict(X) == (y[:, None] == range(10))).mean() > 0.95
    with pytest.raises(ValueError, match="y has 9 columns, but there are 10 labels"):
        labels.partial_fit(X, y[:, None] == np.arange(9))


def test_what_goes_on_keeps_its_penalty():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 5))  # its atoms shrink
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] ** 2, [0.3, 1.2])
    model = quick(beta="scale", max_iter=4, tol=0, warm_start=True)
    with pytest.warns(ConvergenceWarning):
        before = model.fit(X, y).beta_, model.objective_[-1]
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.beta_ == before[0]
    assert model.objective_[0] < 1.5 * before[1]


def test_labels_a_row_stay_one_or_several():
    X, y = IRIS
    members = y[:, None] == np.arange(3)
    for first, then in [(y, members), (members, y)]:
        stream = quick().partial_fit(X, first, classes=[0, 1, 2])
        fitted = quick(warm_start=True).fit(X, first)
        for call in (stream.partial_fit, fitted.fit):
            with pytest.raises(ValueError, match="but the rows before had"):
                call(X, then)
        assert stream.predict(X).shape == fitted.predict(X).shape == first.shape


def test_a_given_dictionary_stays_on_a_stream():
    X, y = DIGITS
    D = some_dictionary(64, 20)
    model = stream(USSVMClassifier(dictionary=D, random_state=0), X, y, 300, 5)
    np.testing.assert_allclose(model.dictionary_, D, rtol=1e-12)
    assert model.score(X, y) > 0.6


def test_a_fit_that_goes_on_leaves_what_it_goes_on_from():
    model = quick(warm_start=True, max_iter=3).fit(*IRIS)
    first, second = (copy(model).fit(*IRIS) for _ in range(2))
    assert (first.dictionary_ != model.dictionary_).any()
    np.testing.assert_array_equal(first.dictionary_, second.dictionary_)


def test_a_result_does_not_change_with_the_descent_that_gave_it():
    X, y = IRIS
    model = quick().partial_fit(X, y, [0, 1, 2])
    before, stream = model.decision_function(X), model._stream
    stream.learn(Rows(X, y.astype(np.int32), np.ones(150)), 0.0, 10)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert (stream.result().dictionary != model.dictionary_).any()


def test_going_on():
    X, y = DIGITS[0][:900], DIGITS[1][:900]
    model = quick(n_atoms=12, warm_start=True, max_iter=30).fit(X, y)
    first, D = model.objective_, model.dictionary_
    model.set_params(max_iter=2).fit(X, y)
    assert model.objective_[0] < 0.5 * first[0]
    assert (model.dictionary_ != D).any()
    with pytest.raises(ValueError, match="n_atoms=9 differs from the 12 of the fit"):
        model.set_params(n_atoms=9).fit(X, y)
    before = model.set_params(n_atoms=12).score(X, y)
    assert stream(model, X, y, 600).score(X, y) > before - 0.1


def test_early_stopping():
    model = quick(early_stopping=True, average=3, max_iter=60, n_iter_no_change=5).fit(*DIGITS)
    assert len(model.validation_scores_) == model.n_iter_ == len(model.objective_) < 60
    labels = DIGITS[1][:, None] == np.arange(10)
    model.fit(DIGITS[0], labels)
    assert 0.8 < max(model.validation_scores_) < 1


def test_same_seed_same_bits():
    model = quick(max_iter=3).fit(*IRIS)
    for other in (clone(model).fit(*IRIS), pickle.loads(pickle.dumps(model))):
        for name in LEARNED:
            np.testing.assert_array_equal(getattr(other, name), getattr(model, name))
        np.testing.assert_array_equal(other.codes_.toarray(), model.codes_.toarray())
    assert (
        clone(model).set_params(random_state=1).fit(*IRIS).dictionary_ != model.dictionary_
    ).any()


BAD_VALUES = {
    "n_atoms": ([0, 2.5, True], r"must be an integer in \[1, inf\)"),
    "alpha": ([-1.0, np.nan, "auto"], r"must be a number in \[0, inf\)"),
    "beta": ([-1.0, np.inf, "best"], r'must be a number in \[0, inf\); or "auto"'),
    "l1_ratio": ([-0.1, 1.1], r"must be a number in \[0, 1\]"),
    "nonnegative": ([1, None], "use True or False"),
    "n_nonzero": ([0, 1.5], r"must be an integer in \[1, inf\)"),
    "code_lr": ([0, np.inf], r"must be a number in \(0, inf\)"),
    "atom_lr": ([0, "x"], r"must be a number in \(0, inf\)"),
    "positive_weight": ([0, -1.0], r"must be a number in \(0, inf\)"),
    "block_iter": ([0, 0.5], r"must be an integer in \[1, inf\)"),
}


@each(name=BAD_VALUES)
def test_bad_parameters_are_named(name):
    for value in BAD_VALUES[name][0]:
        with pytest.raises((TypeError, ValueError), match=BAD_VALUES[name][1]) as caught:
            quick(**{name: value}).fit(*IRIS)
        assert f"{name}={value!r}" in str(caught.value)


@each(
    bad=[
        ({"n_nonzero": 7}, "n_nonzero=7 is more than the 6 atoms"),
        ({"n_nonzero": 4, "dictionary": np.eye(4)[:, :3]}, "n_nonzero=4 is more than the 3 atoms"),
        ({"dictionary": np.eye(3)}, r"dictionary has shape \(3, 3\); X has 4 features"),
        ({"dictionary": USSVMClassifier()}, "is not fitted. Fit it; where"),
        ({"alpha": 0, "beta": 0}, "alpha=0 and beta=0 leave no penalty"),
    ]
)
def test_parameters_that_do_not_fit(bad):
    with pytest.raises(ValueError, match=bad[1]):
        quick(**bad[0]).fit(*IRIS)
    if "dictionary" in bad[0]:
        with pytest.raises(ValueError, match=bad[1]):
            quick(**bad[0]).partial_fit(*IRIS, classes=[0, 1, 2])


@each(
    bad=[
        (np.c_[IRIS[1], IRIS[1]], r"y has shape \(150, 2\), but is not an indicator"),
        (2 * (np.c_[IRIS[1], IRIS[1]] > 0) - 1, "not an indicator matrix of 0 and 1"),
        (np.zeros(150), "y has one class only"),
        (IRIS[0][:, 0], "Unknown label type"),
    ]
)
def test_targets_that_are_neither_labels_nor_indicators(bad):
    with pytest.raises(ValueError, match=bad[1]):
        quick().fit(IRIS[0], bad[0])


def test_a_frozen_model_gives_its_dictionary():
    X, y = IRIS
    model = quick().fit(X, y)
    other = USSVMClassifier(dictionary=FrozenEstimator(model), tol=1e-3)
    found = clone(other).fit(X, y)
    np.testing.assert_array_equal(found.dictionary_, model.dictionary_)
    # A search copies estimators unfitted: a bare one is no dictionary there, a frozen one is.
    search = GridSearchCV(other, {"beta": [0.01, 0.1]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(search.best_estimator_.dictionary_, model.dictionary_)
    with pytest.raises(ValueError, match=r"wrap it in .*FrozenEstimator"):
        clone(other.set_params(dictionary=model)).fit(X, y)


CHANGES = {
    "duplicate rows": (lambda X: np.repeat(X[::5], 5, axis=0), np.asarray),
    "constant features": (lambda X: np.hstack([X, np.ones((150, 2)), 0 * X[:, :1]]), np.asarray),
    "empty columns": (lambda X: np.hstack([X, 0 * X]), sparse.csr_matrix),
    "empty rows": (lambda X: X * (np.arange(150)[:, None] % 10 > 0), sparse.csr_matrix),
}


@each(change=CHANGES, n_atoms=[2, 200])
def test_odd_but_valid_data(change, n_atoms):
    make, kind = CHANGES[change]
    X, y = kind(make(IRIS[0])), IRIS[1]
    model = quick(n_atoms=n_atoms, max_iter=4).fit(X, y)
    assert np.isfinite(model.dictionary_).all() & np.isfinite(model.decision_function(X)).all()
    assert model.score(X, y) > 0.6


@each(kind=KINDS)
def test_labels_that_all_or_no_rows_have(kind):
    X, y = IRIS
    Y = np.c_[y > 0, np.ones(150), np.zeros(150)].astype(int)
    model = quick(max_iter=8).fit(kind(X), sparse.csr_matrix(Y))
    assert model.predict(X)[:, 1:].tolist() == Y[:, 1:].tolist()
    assert (model.predict(X)[:, 0] == Y[:, 0]).mean() > 0.9


def test_the_start_does_not_hang_on_rounding():
    X, y = IRIS
    noise = np.random.default_rng(0).standard_normal(X.shape)
    model, other = (
        quick(n_atoms=None, beta="scale").fit(rows, y) for rows in (X, X * (1 + 1e-15 * noise))
    )
    np.testing.assert_allclose(model.dictionary_, other.dictionary_, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_class_that_comes_later_has_a_gap_and_rows_of_weight_zero_do_not_count(n_classes):
    X, y = IRIS
    rows = np.flatnonzero(y < n_classes)
    model = quick(beta="scale").fit(X[rows], y[rows])
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    P = model.transform(X)
    of_some = model.fit_codes(P[weights > 0], y[weights > 0], precomputed=True)
    of_all = model.fit_codes(P, y, precomputed=True, sample_weight=weights)
    np.testing.assert_allclose(of_all[0].toarray(), of_some[0].toarray(), atol=1e-9)
    model.set_output(transform="pandas").add_class(X, y == 1, 1.5)
    assert len(model.dual_gap_) == len(model.intercept_) == n_classes + 1


def test_atoms_of_many_classes_are_bounded():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 3)
    X = rng.normal(size=(60, 5))[y] + 0.1 * rng.normal(size=(180, 5))
    many = quick(n_atoms=None, beta="scale", max_iter=1, calibrate=False)
    assert many.fit(X, y).dictionary_.shape == (5, 100)
    assert many.fit(X, y % 40).dictionary_.shape == (5, 80)
    wide = np.hstack([X, rng.normal(size=(180, 105))])
    assert many.fit(wide, y).dictionary_.shape == (110, 110)
