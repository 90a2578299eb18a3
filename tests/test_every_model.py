"""Every classifier, from fit to file: few and quick, for versions that the suite does not see."""

import inspect
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

import loclin
import loclin.io

each = pytest.mark.parametrize

KINDS = [
    getattr(loclin, name) for name in loclin.__all__ if name.endswith(("Classifier", "Ensemble"))
]
SETTINGS = {
    loclin.LocallyLinearEnsemble: {"estimators": [loclin.ML3Classifier()], "n_folds": 2},
    loclin.KernelLMKLClassifier: {"max_iter": 100},
}
# What classes have in common, in the order of all signatures and docstrings.
SHARED = [
    "loss", "alpha", "metric", "pieces", "standardize", "penalize_intercept", "max_iter",
    "round_rows", "tol", "n_iter_no_change", "batch_size", "average", "eta0", "early_stopping",
    "validation_fraction", "class_weight", "n_jobs", "calibrate", "warm_start", "random_state",
    "verbose",
]  # fmt: skip
LAYOUTS = {"dense": np.asarray, "sparse": sparse.csr_matrix}
DENSE_AND_SPARSE = ["dense", pytest.param("sparse", marks=pytest.mark.slow)]

X, Y = scale(load_iris().data), load_iris().target_names[load_iris().target]


def make(kind, **settings):
    seeded = {"random_state": 0} if "random_state" in kind().get_params() else {}
    return kind(**seeded | SETTINGS.get(kind, {}) | settings)


def comes_back(model, rows, path):
    """Return the model from its file, in which it is the same."""
    loclin.io.save(model, path)
    loaded = loclin.io.load(path)
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
    return loaded


@each("kind", KINDS)
def test_parameters_have_one_order(kind):
    names = list(inspect.signature(kind).parameters)
    shared = [name for name in names if name in SHARED]
    assert shared == sorted(shared, key=SHARED.index)
    section = inspect.getdoc(kind).partition("Parameters\n----------\n")[2]
    documented = re.findall(r"^(\w+) : ", section.partition("\n\nAttributes")[0], re.MULTILINE)
    assert documented == names


@each("layout", DENSE_AND_SPARSE)
@each("kind", KINDS)
def test_it_fits_predicts_and_comes_back(kind, layout, tmp_path):
    rows = LAYOUTS[layout](X)
    model = make(kind).fit(rows[::2], Y[::2])
    assert model.score(rows[1::2], Y[1::2]) > 0.9
    comes_back(model, rows, tmp_path / "model.loclin")
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(rows)
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(rows))


@each("layout", DENSE_AND_SPARSE)
@each("kind", [kind for kind in KINDS if kind is not loclin.KernelLMKLClassifier])
def test_rows_far_away_get_probabilities_without_a_warning(kind, layout):
    rows = LAYOUTS[layout](X)
    model = make(kind).fit(rows, Y)
    with np.errstate(over="warn", invalid="warn", divide="warn"):
        try:
            chances = model.predict_proba(rows * 1e300)
        except ValueError as error:  # distances have squares
            if "so long that their squared norms overflow" not in str(error):
                raise
            return
        assert set(model.predict(rows * 1e300)) <= set(Y)
        model.local_model(rows[:3] * 1e300)
    np.testing.assert_allclose(chances.sum(axis=1), 1)


@each("layout", DENSE_AND_SPARSE)
@each("kind", [kind for kind in KINDS if hasattr(kind(), "partial_fit")])
def test_a_stream_goes_on_from_its_file(kind, layout, tmp_path):
    rows = LAYOUTS[layout](X)
    model = make(kind, **{"solver": "online"} if kind is loclin.L3MClassifier else {})
    for _ in range(10):
        model.partial_fit(rows[::2], Y[::2], classes=np.unique(Y))
    assert model.score(rows[1::2], Y[1::2]) > 0.8
    loaded = comes_back(model, rows, tmp_path / "model.loclin")
    goes_on = [
        one.partial_fit(rows[::3], Y[::3]).decision_function(rows) for one in (model, loaded)
    ]
    np.testing.assert_array_equal(*goes_on)
