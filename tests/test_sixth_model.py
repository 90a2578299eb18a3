"""A sixth model, with a coder of its own in the compiled pass, needs no change of the package."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from loclin.datasets import make_xor
from loclin.engine.prediction import codes_by
from loclin.engine.sgd_pass import sgd_pass
from tests.extending.two_gates import Gate, TwoGatesClassifier, shares_of

FORMS = [np.asarray, sparse.csr_matrix]
each_form = pytest.mark.parametrize(
    "form", [np.asarray, pytest.param(sparse.csr_matrix, marks=pytest.mark.slow)]
)
EXCUSED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "stochastic steps"
    for kind in ("dense", "sparse")
}


@pytest.mark.slow
@parametrize_with_checks(
    [TwoGatesClassifier(alpha="scale", max_iter=20, random_state=0)],
    expected_failed_checks=lambda estimator: EXCUSED,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def xor():
    return make_xor(600, random_state=0)


@each_form
def test_it_learns_what_one_linear_model_cannot(form, xor):
    X, y = form(xor[0]), xor[1]
    model = TwoGatesClassifier(alpha="scale", gate_lr=1.0, random_state=0).fit(X, y)
    still = clone(model).set_params(gate_lr=0.0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert LinearSVC().fit(X, y).score(X, y) < 0.7
    assert model.objective_[-1] < 0.8 * still.objective_[-1]


@pytest.mark.slow
def test_dense_and_sparse_rows_give_the_same_model(xor):
    models = [
        TwoGatesClassifier(standardize=False, alpha="scale", max_iter=5, random_state=0).fit(
            form(xor[0]), xor[1]
        )
        for form in FORMS
    ]
    np.testing.assert_allclose(models[0].gate_coef_, models[1].gate_coef_, rtol=1e-9)
    np.testing.assert_allclose(models[0].local_coef_, models[1].local_coef_, rtol=1e-7)


@each_form
def test_it_streams_and_goes_on_from_a_fit(form, xor):
    X, y = form(xor[0]), xor[1]
    model = TwoGatesClassifier(alpha="scale", gate_lr=1.0, random_state=0)
    for _ in range(20):
        for rows in np.array_split(np.arange(len(y)), 5):
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert model.score(X, y) > 0.95
    fitted = clone(model).set_params(max_iter=3).fit(X, y)
    before = fitted.t_
    assert fitted.partial_fit(X[:50], y[:50]).t_ == before + 50


def test_it_explains_itself(xor):
    X, y = xor
    model = TwoGatesClassifier(alpha="scale", max_iter=5, random_state=0).fit(X, y)
    coef, intercept = model.local_model(X)
    scores = np.einsum("nd,nd->n", coef, X) + intercept
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-12, atol=1e-12)
    codes = model.local_weights(X).toarray()
    np.testing.assert_allclose(codes.sum(axis=1), 1)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.decision_function(X), scores_of(model, X))


def scores_of(model, X):
    return model.decision_function(X)


def test_the_gate_descends_on_the_loss():
    """One step of one row, against finite differences of the logistic loss by the gate."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), rng.integers(0, 2, 30)
    rate, raw = 1e-6, {"standardize": False}
    model = TwoGatesClassifier(loss="logistic", alpha=0.1, max_iter=1, average=0, **raw)
    model.set_params(batch_size=30, random_state=0, warm_start=True, gate_lr=0.0).fit(X, y)
    v, c = model.gate_coef_.copy(), model.gate_intercept_
    W, b = model.local_coef_[0], model.local_intercept_[0]

    def loss(v, c):
        codes = codes_by(shares_of(v, c), X)
        scores = (codes * (X @ W.T + b)).sum(axis=1)
        return -np.log(expit(np.where(y == 1, scores, -scores))).sum()

    step = 1e-6
    slopes = [(loss(v + step * e, c) - loss(v - step * e, c)) / (2 * step) for e in np.eye(3)]
    model.set_params(gate_lr=rate).fit(X, y)
    moved = model.gate_coef_ - v
    np.testing.assert_allclose(moved / -rate, slopes, rtol=1e-3)


def test_its_compiled_pass_is_not_kept_on_disk(xor):
    """A later process without this file must be able to read what is kept."""
    TwoGatesClassifier(alpha="scale", max_iter=1, random_state=0).fit(*xor)
    kinds = {argument.instance_class for types in sgd_pass.signatures for argument in types[1:2]}
    assert Gate not in kinds
