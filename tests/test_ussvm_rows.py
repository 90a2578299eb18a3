"""Problem 3 of US-SVM over many rows: the same optimum as over all of them at once."""

from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.base import clone

from loclin import USSVMClassifier
from loclin.ussvm import codes as ussvm_codes
from loclin.ussvm import many_rows as ussvm_rows
from loclin.ussvm.codes import CodeProblem, Penalty, solve_problem, with_ones
from loclin.ussvm.many_rows import ManyRowsProblem, code_problems
from loclin.ussvm.solver import pruned

N, D, A = 6000, 10, 8
VARIANTS = [(1.0, False), (1.0, True), (0.4, False), (0.4, True)]


def each(**values):
    return pytest.mark.parametrize(list(values), list(product(*values.values())))


def case(threshold, dtype=float, noise=0.5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.where(X[:, 0] + X[:, 1] + noise * rng.normal(size=N) > threshold, 1, -1)
    atoms = rng.normal(size=(D, A))
    atoms /= np.linalg.norm(atoms, axis=0)
    return (X @ atoms).astype(dtype), y, rng.uniform(0.5, 2, N).astype(dtype), atoms


def both(rows, penalty, tol):
    P, y, w, atoms = rows
    Q = penalty.quadratic(atoms)
    whole = CodeProblem(with_ones(P), y, w, penalty, Q)
    solve_problem(whole, tol)
    return whole, ManyRowsProblem(P, y, w, penalty, Q, float(w.sum(dtype=float)))


SETTINGS = list(product(VARIANTS, [0.0, 0.01], [3.2, 0.0], [float]))
SETTINGS += [((1.0, False), 0.0, threshold, np.float32) for threshold in (3.2, 0.0)]


@pytest.mark.parametrize(("variant", "alpha", "threshold", "dtype"), SETTINGS)
def test_the_optimum_of_all_rows(variant, alpha, threshold, dtype):
    rows = case(threshold, dtype)
    penalty = Penalty(alpha, 0.002, *variant)
    whole, many = both(rows, penalty, 1e-8)
    lowest = whole.objective - whole.gap
    while not many.solved(1e-6):
        many.step(1e-6)
        assert many.objective >= lowest * (1 - 1e-6)  # rounding of float32
        assert many.objective - many.gap <= whole.objective * (1 + 1e-6)
    assert many.n_steps < 300
    P, y, w, atoms = rows
    losses = np.maximum(0, 1 - y * (P.astype(float) @ many.code + many.intercept))
    value = penalty.value(atoms, many.code) + np.average(losses, weights=w)
    assert value == pytest.approx(whole.objective, rel=2e-6)
    assert many.objective == pytest.approx(value, rel=1e-6)
    assert (many.code >= 0).all() or not variant[1]


def test_few_rows_of_many_matter():
    rows = case(3.2)
    whole, many = both(rows, Penalty(0.0, 0.001, 1.0, False), 1e-6)
    solve_problem(many, 1e-6)
    assert many.subset.sum() < N / 4
    active = rows[1] * (rows[0] @ whole.code + whole.intercept) < 1 - 1e-3
    assert many.subset[active].all()


def test_rows_that_lose_are_added(monkeypatch):
    for name in ("_FIRST_ROWS", "_SPARE_ROWS"):
        monkeypatch.setattr(ussvm_rows, name, 5)
    monkeypatch.setattr(ussvm_rows, "_SPARE", -0.9)
    whole, many = both(case(1.0), Penalty(0.0, 0.001, 1.0, False), 1e-8)
    sizes = []
    while not many.solved(1e-6) and many.n_steps < 600:
        many.step(1e-6)
        sizes.append(many.subset.sum())
    assert many.objective == pytest.approx(whole.objective, rel=1e-6)
    assert len(sizes) > 3
    assert all(after <= 2 * before + 5 for before, after in pairwise(sizes))


@pytest.mark.parametrize(("alpha", "n_nonzero"), [(0.0, 3), (0.01, 1)])
def test_pruned_codes_are_the_same(alpha, n_nonzero):
    P, y, w, atoms = case(0.2)
    penalty = Penalty(alpha, 0.0005, 1.0, False)
    whole, many = both((P, y, w, atoms), penalty, 1e-7)
    solve_problem(many, 1e-7)
    start = many.subset.copy()
    code, intercept = pruned(whole, atoms, n_nonzero, penalty, 1e-8)
    other, its_intercept = pruned(many, atoms, n_nonzero, penalty, 1e-8)
    np.testing.assert_array_equal(many.subset, start)  # those that follow have their own
    assert np.count_nonzero(code) == n_nonzero
    np.testing.assert_allclose(other, code, atol=1e-3 * np.abs(code).max())
    assert np.abs(code).max() > 0.1
    assert its_intercept == pytest.approx(intercept, abs=1e-3)


@each(sign=[1, -1])
def test_one_side_only_needs_no_code(sign):
    P, y, w, atoms = case(0.0)
    _, many = both((P, np.full_like(y, sign), w, atoms), Penalty(0.0, 0.1, 1.0, False), 1e-4)
    solve_problem(many, 1e-4)
    assert (many.intercept, many.gap, many.objective) == (sign, 0, 0)
    assert not many.code.any()


def test_without_any_penalty_it_ends(monkeypatch):
    monkeypatch.setattr(ussvm_codes, "MOST_STEPS", 100)
    P, y, w, atoms = case(0.0, noise=0.0)
    rows = P[:1000], y[:1000], w[:1000], atoms
    _, many = both(rows, Penalty(0.0, 0.0, 1.0, False), 1e-4)
    solve_problem(many, 1e-4)
    assert not many.solved(0.5)
    assert many.n_steps >= 100


def test_many_rows_are_taken_so_by_the_classifier(monkeypatch):
    P, y, w, atoms = case(1.5)
    X = P @ np.linalg.pinv(atoms)
    model = USSVMClassifier(dictionary=atoms, beta=0.001, tol=1e-6)
    whole = clone(model).fit(X, y)
    monkeypatch.setattr(ussvm_rows, "MANY_ROWS", N)
    kinds = [type(one) for one in code_problems(P, atoms, y[:, None], w, Penalty(0.1, 0, 1, False))]
    assert kinds == [ManyRowsProblem]
    many = clone(model).fit(X, y)
    assert many.n_iter_ < whole.n_iter_ / 3
    np.testing.assert_allclose(many.codes_.toarray(), whole.codes_.toarray(), atol=1e-3)
    codes, _ = whole.fit_codes(X, y)
    np.testing.assert_allclose(codes.toarray(), many.codes_.toarray(), atol=1e-3)
