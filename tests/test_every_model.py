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
    "gate_lr", "weights", "multi_class", "loss", "alpha", "metric", "pieces", "standardize",
    "penalize_intercept", "max_iter", "round_rows", "tol", "n_iter_no_change", "batch_size",
    "average", "eta0", "early_stopping", "validation_fraction", "class_weight", "n_jobs",
    "calibrate", "warm_start", "random_state", "verbose",
]  # fmt: skip
# Where the same name means another thing, so that its description begins otherwise.
OTHERWISE = {
    ("USSVMClassifier", "alpha"): "a part of the penalty that is off by default; beta is the whole",
    ("SVMKNNClassifier", "metric"): "a distance of scikit-learn's that tells neighbours",
    ("SVMKNNClassifier", "tol"): "a violation of optimality conditions, of each small SVM",
    ("CSVMClassifier", "tol"): "a duality gap: no plateau of the objective ends a fit",
    ("KernelLMKLClassifier", "tol"): "no n_iter_no_change, and a tolerance of the SVMs, too",
    ("LocallyLinearEnsemble", "tol"): "a share of the log loss on rows held out",
}
OTHER_TYPES = {
    ("USSVMClassifier", "alpha"): "a number: beta is what is chosen",
    ("SVMKNNClassifier", "alpha"): "the rule alone: no short fits choose it",
    ("KernelLMKLClassifier", "alpha"): "the rule alone: no short fits choose it",
    ("SVMKNNClassifier", "metric"): "another meaning",
}
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


def documented(kind):
    """Names of the parameters, each with its type less the default, and its first sentence."""
    section = inspect.getdoc(kind).partition("Parameters\n----------\n")[2]
    section = section.partition("\n\nAttributes")[0]
    found = re.findall(r"^(\w+) : (.*)((?:\n +.*)*)", section, re.MULTILINE)
    first = {name: " ".join(text.split()).partition(". ")[0].rstrip(".") for name, _, text in found}
    return {name: (values.partition(", default=")[0], first[name]) for name, values, _ in found}


@each("kind", KINDS)
def test_parameters_have_one_order(kind):
    names = list(inspect.signature(kind).parameters)
    shared = [name for name in names if name in SHARED]
    assert shared == sorted(shared, key=SHARED.index)
    assert list(documented(kind)) == names


@each("name", SHARED)
def test_a_shared_parameter_is_described_alike(name):
    by_class = {kind.__name__: documented(kind) for kind in KINDS}
    found = {kind: of_class[name] for kind, of_class in by_class.items() if name in of_class}
    assert len(found) > 1
    for place, exceptions in enumerate([OTHER_TYPES, OTHERWISE]):
        if name == "loss" and not place:
            continue  # each class has a choice of its own
        alike = {said[place] for kind, said in found.items() if (kind, name) not in exceptions}
        assert len(alike) == 1, "\n".join(sorted(alike))
        assert all(alike)
        for kind, said in found.items():
            assert (kind, name) not in exceptions or said[place] not in alike, kind


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


def test_parameters_are_read_wherever_a_subclass_keeps_them():
    X, y = load_iris(return_X_y=True)

    class Shorter(loclin.ML3Classifier):
        max_iter = property(lambda self: 3, lambda self, value: None)
        p = 2.0

        def __init__(self, n_models=2):
            super().__init__(n_models, random_state=0)
            del self.p

    model = Shorter().fit(X, y)
    assert model.n_iter_ == 3
    assert model._learned.p == 2.0

    class Less(loclin.ML3Classifier):
        def __init__(self, n_models=2):
            super().__init__(n_models)
            del self.p

    with pytest.raises(AttributeError, match="Less has no attribute 'p', which its fits need"):
        Less().fit(X, y)
