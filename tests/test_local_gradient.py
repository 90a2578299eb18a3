"""Derivatives of scores by features: central differences, borders, shapes and refusals."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import loclin
from loclin.codings import LocalCoordinateCoding, OrthogonalCoding, TangentCoding
from loclin.portable import (
    CodesByScorer,
    ConstantCode,
    Description,
    Leaves,
    LinearGates,
    NearestAnchors,
    Pieces,
    Pooling,
    TangentCodes,
    Term,
    TreePath,
    describe,
    gradients,
)
from tests.extending.two_gates import TwoGatesClassifier
from tests.test_portable import MODELS, PLAIN, SHORT, SOFT, Halved, over, problem

each, slow = pytest.mark.parametrize, pytest.mark.slow
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
STEP = 1e-5
ALL = MODELS | {
    "svm-knn": loclin.SVMKNNClassifier(20),
    "two gates": TwoGatesClassifier(**SHORT),
    "inverse full": over(MODELS["inverse"].coding, metric="full"),
    "rebuild pieces": over(MODELS["rebuild"].coding, pieces=3, metric="diagonal"),
    "tangents full": over(TangentCoding(SOFT, 2), metric="full"),
    "ldkl pieces": loclin.LDKLClassifier(2, pieces=3, **SHORT),
    "lmkl pieces": loclin.LMKLClassifier(4, pieces=3, **SHORT),
    "ensemble with a forest": loclin.LocallyLinearEnsemble(
        [loclin.LDKLClassifier(2, **SHORT), loclin.ForestClassifier(5)], n_folds=2, random_state=0
    ),
}  # fmt: skip
RESTING = ("ml3", "l3m", "csvm", "ussvm", "forest", "svm-knn")  # codes that do not move


@cache
def fitted(name, n_classes):
    X, y = problem(n_classes)
    return clone(ALL[name]).fit(X, y), X[:30]


def one_sided(decisions, X, step=STEP):
    """Differences towards larger and towards smaller values, each (n, ..., d)."""
    here, steps = decisions(X), step * np.eye(X.shape[1])
    up = [(decisions(X + one) - here) / step for one in steps]
    down = [(here - decisions(X - one)) / step for one in steps]
    return np.stack(up, axis=-1), np.stack(down, axis=-1)


def hold_as_derivative(slopes, decisions, X):
    """Hold slopes against central differences, where no border is near."""
    up, down = one_sided(decisions, X)
    unit = np.abs(up).max() or 1.0
    away = np.abs(up - down) < 1e-2 * unit
    assert away.mean() > 0.95
    np.testing.assert_allclose(slopes[away], (up + down)[away] / 2, rtol=0, atol=1e-6 * unit)


@each("n_classes", [2, 3])
@each("name", ALL)
def test_it_is_the_derivative_of_the_scores(name, n_classes):
    model, X = fitted(name, n_classes)
    slopes, coef = model.local_gradient(X), model.local_model(X)[0]
    assert slopes.shape == coef.shape
    assert slopes.dtype == np.float64
    hold_as_derivative(slopes, model.decision_function, X)


@each("n_classes", [2, 3])
@each("name", ALL)
def test_it_is_the_local_model_where_codes_rest(name, n_classes):
    model, X = fitted(name, n_classes)
    slopes, coef = model.local_gradient(X), model.local_model(X)[0]
    unit, differs = np.abs(coef).max(), np.abs(slopes - coef).max()
    if name.startswith(RESTING) and (name, n_classes) != ("svm-knn", 3):
        assert differs <= 1e-12 * unit
    else:
        assert differs > 0.05 * unit


@each("name", ["soft pieces", "sapl full", "planes by class", "ensemble"])
def test_descriptions_and_blocks_of_rows_say_the_same(name, monkeypatch):
    model, X = fitted(name, 3)
    slopes = model.local_gradient(X)
    np.testing.assert_array_equal(describe(model).local_gradient(X), slopes)
    monkeypatch.setattr(gradients, "_NUMBERS", 1)
    np.testing.assert_allclose(model.local_gradient(X), slopes, rtol=1e-10, atol=1e-12)
    assert describe(model).local_gradient(X[:0]).shape == (0, 3, 6)


def test_scalers_in_front_are_part_of_a_description():
    X, y = problem(2)
    X = 1e2 + X * [1.0, 10.0, 1e-2, 1.0, 2.0, 3.0]
    model = make_pipeline(StandardScaler(), MODELS["soft diagonal"]).fit(X, y)
    slopes = describe(model).local_gradient(X[:20])
    units = X.std(axis=0)
    hold_as_derivative(slopes * units, lambda Z: model.decision_function(100 + Z * units),
                       (X[:20] - 100) / units)  # fmt: skip


@each("name", ["ml3", "sapl", *(pytest.param(name, marks=slow) for name in ("lmkl", "ldkl"))])
def test_sparse_rows(name):
    X, y = problem(3)
    X = np.where(np.abs(X) < 0.5, 0, X)
    model = clone(ALL[name]).fit(sparse.csr_matrix(X), y)
    slopes = model.local_gradient(sparse.csr_array(X[:20]))
    np.testing.assert_array_equal(slopes, model.local_gradient(X[:20]))
    hold_as_derivative(model.local_gradient(X[:20] + 0.1), model.decision_function, X[:20] + 0.1)


def test_columns_that_no_row_uses_change_nothing():
    X, y = problem(3)
    wide = np.zeros((len(X), 3000))
    wide[:, 7:2107:350] = X
    model = clone(MODELS["sapl"]).fit(sparse.csr_matrix(wide), y)
    slopes = model.local_gradient(sparse.csr_matrix(wide[:3]))
    used = np.zeros(3000, bool)
    used[7:2107:350] = True
    assert slopes.shape == (3, 3, 3000)
    assert slopes[:, :, used].all()
    assert not slopes[:, :, ~used].any()


@each("name", ["soft pieces", pytest.param("ensemble", marks=slow)])
def test_single_precision_computes_in_doubles(name):
    X, y = problem(3, np.float32)
    model = clone(ALL[name]).fit(X, y)
    slopes = model.local_gradient(X[:20])
    assert slopes.dtype == np.float32
    expected = describe(model).local_gradient(X[:20]).astype(np.float32)
    np.testing.assert_array_equal(slopes, expected)


def test_a_class_that_no_neighbour_has_follows_the_least_score():
    X, y = np.array([[0.0], [1.0], [2.0], [9.0], [11.0]]), np.array([0, 1, 0, 2, 2])
    model = loclin.SVMKNNClassifier(3).fit(X, y)
    rows = np.array([[0.2], [0.9], [9.5]])
    slopes, scores = model.local_gradient(rows)[:, :, 0], model.decision_function(rows)
    least = scores[:2, :2].argmin(axis=1)
    np.testing.assert_allclose(scores[:2, 2], scores[[0, 1], least] - 1)
    np.testing.assert_array_equal(slopes[:2, 2], slopes[[0, 1], least])
    assert slopes[:2].all()
    assert not model.local_model(rows)[0][:2, 2].any()
    hold_as_derivative(model.local_gradient(rows), model.decision_function, rows)


def test_below_0_such_a_class_stays_where_it_is(monkeypatch):
    model, X = fitted("svm-knn", 3)
    coef, scores = np.ones((1, 3, 6)), np.array([[2.0, 3.0, -1.0]])
    for lowest, expected in [(2.0, 0.0), (-2.0, 1.0)]:
        scores[0, 0] = lowest
        told = coef, scores, np.array([[False, False, True]])
        monkeypatch.setattr(loclin.SVMKNNClassifier, "_models", lambda self, rows, told=told: told)
        slopes = model.local_gradient(X[:1]) * model._features.scale
        np.testing.assert_allclose(slopes[0, :, 0], [1.0, 1.0, expected])


# Two classes and several.


@each("name", ["ml3", "sapl", "svm-knn", "ensemble"])
def test_two_classes_have_the_shape_of_several(name):
    model, X = fitted(name, 2)
    many, _ = fitted(name, 3)
    decisions = model.decision_function(X)
    for of_one in [model] if name == "svm-knn" else [model, describe(model)]:
        coef, intercept = of_one.local_model(X, by_class=True)
        slopes = of_one.local_gradient(X, by_class=True)
        assert coef.shape == slopes.shape == (30, 2, 6)
        scores = np.einsum("ncd,nd->nc", coef, X) + intercept
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], decisions, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
        np.testing.assert_array_equal(slopes[:, 1] - slopes[:, 0], of_one.local_gradient(X))
        np.testing.assert_array_equal(slopes[:, 0], -slopes[:, 1])
    np.testing.assert_array_equal(many.local_gradient(X, by_class=True), many.local_gradient(X))
    with pytest.raises(TypeError, match="by_class=1"):
        model.local_gradient(X, by_class=1)
    with pytest.raises(TypeError, match="by_class=1"):
        model.local_model(X, by_class=1)


def test_two_labels_a_row_have_their_own():
    X, y = problem(3)
    labels = np.stack([y == "a", y == "b"], axis=1).astype(int)
    model = clone(MODELS["ussvm"]).fit(X, labels)
    for of_one in (model, describe(model)):
        slopes = of_one.local_gradient(X[:5], by_class=True)
        np.testing.assert_allclose(slopes, model.local_model(X[:5])[0], rtol=1e-12)
        assert slopes.shape == (5, 2, 6)


# Borders.


def made(coder, coef=None, intercept=None, **parts):
    """A description of two classes and one scorer."""
    m = np.shape(coef if coef is not None else intercept)[0]
    term = Term(coder, None if coef is None else np.array([coef], float),
                np.zeros((1, m)) if intercept is None else np.array([intercept], float),
                np.zeros(1), **parts)  # fmt: skip
    n_features = parts.pop("n_features", 1)
    return Description((term,), np.array(["a", "b"]), n_features)


SMALLEST = NearestAnchors(np.array([[0.0], [2.0]]), 1, "exp", 1.0)
BORDERS = {
    "first of equal gates": made(
        LinearGates(np.array([[1.0], [-1.0]]), np.zeros(2), "one_hot"), [[2.0], [5.0]]
    ),
    "right of the tree": made(
        TreePath(np.array([[1.0], [0.0], [0.0], [0.0]]), np.array([0.0, 0, 1, 1])),
        [[0.0], [2.0], [5.0]],
    ),
    "responses of 0 do not count": made(Pooling(1.0), [[1.0], [2.0]], [0.0, 1.0]),
    "first of equal responses": made(Pooling(np.inf), [[1.0], [-3.0]], [1.0, 1.0]),
}
EXPECTED = [2.0, 5 * np.tanh(1.0), 2.0, 1.0]


@each("name, expected", zip(BORDERS, EXPECTED, strict=True))
def test_at_a_border_it_is_that_of_the_predicted_region(name, expected):
    description = BORDERS[name]
    up, down = (one.item() for one in one_sided(description.decision_function, np.zeros((1, 1))))
    slope = description.local_gradient([[0.0]]).item()
    assert slope == pytest.approx(expected)
    assert slope == pytest.approx(up) or slope == pytest.approx(down)
    assert up != pytest.approx(down)


def test_of_equal_distances_the_first_anchor_counts():
    anchors = NearestAnchors(np.array([[-1.0], [1.0], [3.0]]), 2, "inverse")
    description = made(anchors, intercept=[1.0, 3.0, 100.0])
    assert description.decision_function([[1.0]]) == 3.0
    up, down = (one.item() for one in one_sided(description.decision_function, np.ones((1, 1))))
    assert (up, down) == (pytest.approx(97 / 2, 1e-3), pytest.approx(1.0, 1e-3))  # 3 or -1 is next
    assert description.local_gradient([[1.0]]).item() == 0.0  # on an anchor


def test_on_an_anchor_of_inverse_distances_it_is_the_mean_of_both_sides():
    anchors = NearestAnchors(np.array([[-1.0], [1.0], [9.0]]), 2, "inverse")
    description = made(anchors, [[1.0], [5.0], [0.0]], [1.0, 3.0, 0.0])
    up, down = one_sided(description.decision_function, np.full((1, 1), -1.0))
    assert down.item() - up.item() > 1
    assert description.local_gradient([[-1.0]]).item() == pytest.approx(
        (up + down).item() / 2, 1e-4
    )


def test_at_a_knot_it_is_the_slope_on_the_side_of_larger_values():
    pieces = Pieces(np.array([0, 0]), np.array([0.0, 1.0]), np.array([1.0, 3.0]))
    gates = LinearGates(np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]), np.zeros(2), "softmax")
    description = made(gates, [[1.0, 2.0, 4.0], [0.0, 3.0, 0.0]], pieces=pieces)
    knots = np.array([[0.0], [1.0], [3.0]])
    up, down = one_sided(description.decision_function, knots)
    np.testing.assert_allclose(description.local_gradient(knots), up, rtol=1e-4)
    assert (np.abs(up - down) > 0.1).all()


def test_a_gate_of_0_counts_as_above_it_and_no_gate_as_none():
    gates = LinearGates(np.array([[1.0], [0.0]]), np.array([0.0, 1.0]), "l1")
    description = made(gates, intercept=[1.0, 3.0])
    up, down = (one.item() for one in one_sided(description.decision_function, np.zeros((1, 1))))
    assert description.local_gradient([[0.0]]).item() == pytest.approx(up, 1e-4) != down
    for into in ("l1", "l2"):
        gates = LinearGates(np.array([[1.0], [2.0]]), np.zeros(2), into)
        assert made(gates, intercept=[1.0, 3.0]).local_gradient([[0.0]]).item() == 0.0


def test_a_row_on_its_anchors_is_rebuilt_by_all():
    anchors = NearestAnchors(np.ones((2, 1)), 2, "rebuild", 1e-3)
    assert made(anchors, [[1.0], [5.0]]).local_gradient([[1.0]]).item() == pytest.approx(3.0)


def test_leaves_and_constants_do_not_move():
    leaves = Leaves(np.array([0]), np.array([0]), np.array([0.0]), np.array([[-1, -2]]))
    description = made(leaves, [[1.0], [5.0]])
    np.testing.assert_array_equal(description.local_gradient([[0.0], [1e-9]]), [[1.0], [5.0]])
    both = CodesByScorer((leaves, LinearGates(np.array([[1.0], [0.0]]), np.zeros(2), "softmax")))
    for coder, expected in [(both, 1.0), (CodesByScorer((leaves, leaves)), 0.0),
                            (ConstantCode(np.array([[1.0, 0], [0, 2]])), 0.0)]:  # fmt: skip
        term = Term(coder, None, np.array([[1.0, 2.0], [4.0, 0.0]]), np.zeros(2))
        slopes = Description((term,), np.array(["a", "b"]), 1).local_gradient([[0.0]])
        assert slopes.item() == expected


def test_tangents_of_anchors_that_rest():
    coder = TangentCodes(SMALLEST, np.array([[0.0], [2.0]]), np.array([[[1.0]], [[3.0]]]), 0.5)
    description = made(coder, intercept=[1.0, 2.0, 4.0, 5.0])
    np.testing.assert_allclose(description.local_gradient([[0.3], [1.9]]), [[2.0], [15.0]])


# What cannot be told.


@each("coding", [
    LocalCoordinateCoding(4, max_iter=2), make_pipeline(SOFT), Halved(3, per_class=True),
    TangentCoding(LocalCoordinateCoding(4, max_iter=2), 1),
])  # fmt: skip
def test_codes_without_a_derivative_say_what_to_use_instead(coding):
    X, y = problem(2)
    model = over(coding).fit(X[:80], y[:80])
    with pytest.raises(ValueError, match=r"no derivative in closed form.*compare `decision_func"):
        model.local_gradient(X[:2])


def test_kernels_have_neither():
    assert not hasattr(loclin.KernelLMKLClassifier(), "local_gradient")


@each("name", ["sapl", "svm-knn", "ensemble"])
def test_rows_are_checked(name):
    model, X = fitted(name, 2)
    with pytest.raises(ValueError, match="features"):
        model.local_gradient(X[:, :5])
    with pytest.raises(ValueError, match="NaN"):
        model.local_gradient(np.where(X > 1, np.nan, X))
    with pytest.raises(NotFittedError):
        clone(model).local_gradient(X)


def test_it_reads_no_parameters_and_changes_nothing():
    X, y = problem(3)
    model = loclin.LLSVMClassifier(OrthogonalCoding(3), **PLAIN).fit(X, y)
    slopes, before = model.local_gradient(X[:5]), X.copy()
    for name in model.get_params(deep=False):
        setattr(model, name, object())
    np.testing.assert_array_equal(model.local_gradient(X[:5]), slopes)
    np.testing.assert_array_equal(X, before)


def test_rows_far_away_give_no_warning():
    for name in ("ml3", "soft", "inverse", "planes", "ldkl", "lmkl"):
        model, X = fitted(name, 3)
        with np.errstate(all="warn", under="ignore"):
            model.local_gradient(X * 1e150)
