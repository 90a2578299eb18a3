"""What models hold is declared, and nothing is read or written beside it, whoever has set it."""

import re
import warnings
from typing import Annotated, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

import loclin
import loclin.io
from loclin import codings
from loclin.engine.described import check_described, declared, notes_of
from loclin.engine.shapes import Shape
from loclin.fitting.consistent import check_consistent
from loclin.portable import Pieces
from tests import golden

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

rng = np.random.default_rng(0)
X = rng.standard_normal((90, 4))
y = np.arange(90) % 3
SHORT = {"alpha": 0.01, "max_iter": 3, "random_state": 0, "calibrate": False}


def ml3(**parameters):
    return loclin.ML3Classifier(4, metric=None, **SHORT | parameters)


def l3m(**parameters):
    return loclin.L3MClassifier(3, **SHORT | parameters)


def sapl(**parameters):
    return loclin.SAPLClassifier(6, 3, metric=None, **SHORT | parameters)


def ldkl(**parameters):
    return loclin.LDKLClassifier(2, **SHORT | parameters)


@pytest.fixture
def forged(tmp_path, monkeypatch):
    """Write a model as it is, though `save` would refuse it, and return the path."""

    def write(model):
        with monkeypatch.context() as patch:
            patch.setattr(loclin.io, "check_consistent", lambda model: None)
            loclin.io.save(model, tmp_path / "forged.loclin")
        return tmp_path / "forged.loclin"

    return write


def cut(array, *part):
    return np.ascontiguousarray(array[part])


# Of a fitted model: the attribute, what it is set to, and what the error says.
BROKEN = {
    "models of no region": (
        l3m, "_learned.local_coef",
        lambda a: cut(a, slice(None), slice(0)),
        "but should be (s, m, d)",
    ),
    "more partition functions than models": (
        l3m, "_learned.partition_coef",
        lambda a: np.tile(a, (70_000, 1)),
        "_learned.partition_coef has shape",
    ),
    "fewer intercepts than regions": (
        l3m, "_learned.local_intercept",
        lambda a: cut(a, slice(None), slice(1)),
        "should be (s, m)",
    ),
    "fewer intercepts than models": (
        ml3, "_learned.local_intercept",
        lambda a: cut(a, slice(1), slice(1)),
        "should be (s, m) = (3, 4)",
    ),
    "models of other features": (
        ml3, "_learned.local_coef", lambda a: cut(a, ..., slice(2)),
        "but should be (s, m, d) = (3, 4, 4), says _features.centre and _learned.intercept",
    ),
    "other precision": (
        ml3, "_learned.local_intercept",
        lambda a: a.astype(np.float32),
        "has the type float32, but",
    ),
    "other byte order": (
        ml3, "_learned.local_coef",
        lambda a: a.astype(">f8"),
        "_learned.local_coef has the type >f8",
    ),
    "more models than nodes": (
        ldkl, "_learned.tree_intercept", lambda a: np.tile(a, 1000), "should be (m//2+m)",
    ),
    "fewer anchors than neighbours": (
        sapl, "_learned.n_neighbors", lambda k: 10**6, "n_neighbors is 1000000, but there are 6",
    ),
    "fewer classes than scorers": (
        ml3, "classes_", lambda a: a[:2], "there are models of 3 classes, but 2 classes",
    ),
    "one class": (
        lambda: loclin.SVMKNNClassifier(8),
        "classes_", lambda a: a[:1], "y_ should be places among 1 classes",
    ),
    "classes in another order": (
        ml3, "classes_", lambda a: a[::-1].copy(), "classes_ are not sorted",
    ),
}  # fmt: skip


def set_inside(holder, path, change):
    *inside, last = path.split(".")
    for name in inside:
        holder = getattr(holder, name)
    vars(holder)[last] = change(getattr(holder, last))  # what is learned is frozen


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", BROKEN)
def test_a_file_whose_arrays_do_not_fit_together_is_refused(name, forged):
    make, attribute, change, told = BROKEN[name]
    model = make().fit(X, y)
    set_inside(model, attribute, change)
    with pytest.raises(ValueError, match=re.escape(told)):
        loclin.io.load(forged(model))
    with pytest.raises(ValueError, match=r"Load or fit the model again\."):
        loclin.io.save(model, "nowhere")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(BROKEN.keys() - {"classes in another order"}))
def test_an_attribute_that_was_set_is_not_followed_out_of_bounds(name):
    make, attribute, change, _ = BROKEN[name]
    model = make().fit(X, y)
    set_inside(model, attribute, change)
    if name == "fewer anchors than neighbours":
        model.decision_function(X)  # all of them are neighbours
        return
    with pytest.raises(ValueError, match=r"again|features"):
        model.predict(X)


BROKEN_STREAMS = {
    "neighbours": (
        sapl, "solver.coder.n_neighbors", lambda k: 10**6, "is 1000000, but _learned.n_neighbors",
    ),
    "precision of anchors": (
        sapl, "solver.coder.V", lambda a: a.astype(np.float32), "has the type float32, but",
    ),
    "precision of the bandwidth": (
        sapl, "solver.coder.bandwidth", lambda a: a.astype(np.float32), "should have float64",
    ),
    "weights": (ml3, "solver.weights", lambda w: w._replace(b=w.b[:5].copy()), "(s*m) = (12)"),
    "models": (ml3, "solver.n_models", lambda m: 2**31 - 1, "n_models is 2147483647, but"),
    "settings": (
        ml3, "solver.settings", lambda s: s._replace(n_models=2**31 - 1), "is 2147483647, but",
    ),
    "layout": (ml3, "solver.is_sparse", lambda flag: not flag, "should be (p, s*m) = (4, 12)"),
    "order": (
        ml3, "solver.weights", lambda w: w._replace(W=np.asfortranarray(w.W)), "row by row",
    ),
    "a kind of number": (
        ml3, "solver.settings", lambda s: s._replace(alpha=1), "should be float, not int",
    ),
    "the mean": (sapl, "mean", lambda mean: mean[:2], "mean lacks some"),
    "gates": (ldkl, "solver.coder.c", lambda a: a[:5].copy(), "solver.coder.c has"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_STREAMS)
def test_a_stream_whose_arrays_do_not_fit_together_goes_nowhere(name, forged):
    make, path, change, told = BROKEN_STREAMS[name]
    model = make().partial_fit(X, y, classes=[0, 1, 2])
    set_inside(model._stream, path, change)
    with pytest.raises(ValueError, match=re.escape(told)):
        loclin.io.load(forged(model))
    with pytest.raises(ValueError, match=re.escape(told)):
        model.partial_fit(X, y)


def test_a_stream_does_not_take_memory_for_models_that_a_fit_has_not():
    model = ml3().fit(X, y).set_params(n_models=2**31 - 1)
    with pytest.raises(ValueError, match="n_models=2147483647 differs from the 4"):
        model.partial_fit(X, y)


def test_what_was_learned_cannot_be_set():
    with pytest.raises(AttributeError, match="no setter"):
        ml3().fit(X, y).local_coef_ = X


def test_numbers_that_are_not_finite_are_refused(forged):
    model = ml3().fit(X, y)
    model._learned.local_coef[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match=r"_learned\.local_coef has numbers that are not finite"):
        loclin.io.load(forged(model))


def test_parameters_are_checked_at_load_also_of_unfitted_models(forged):
    for model, told in [
        (ml3(alpha=-1.0), "alpha"),
        (ml3(tol="small"), "tol"),
        (codings.SoftAssignmentCoding(0), "n_anchors"),
        (codings.OrthogonalCoding(norm="l3"), "norm"),
        (codings.TangentCoding(n_tangents=0), "n_tangents"),
        (loclin.KernelLMKLClassifier([]), "kernels"),
        (loclin.LocallyLinearEnsemble([StandardScaler()]), "estimators"),
    ]:
        with pytest.raises(ValueError, match=told):
            loclin.io.load(forged(FrozenEstimator(model)))


def test_a_coding_that_gives_other_columns_than_it_says_is_found_out():
    coding = codings.SoftAssignmentCoding(5, 2).fit(X)
    model = loclin.LLSVMClassifier(coding, metric=None, **SHORT).fit(X, y)
    expected = model.coding_.transform(X)
    model.coding_._n_features_out = 2
    assert (model.coding_.transform(X) != expected).nnz == 0
    vars(model._learned).update(coding=codings.SoftAssignmentCoding(9, 2).fit(X))
    with pytest.raises(ValueError, match=r"Codes of shape \(90, 9\)"):
        model.predict(X)


class FarColumns(BaseEstimator):
    """A coding of one's own, whose sparse codes have a column that is not there."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        codes = sparse.csr_matrix(np.eye(4)[np.arange(len(X)) % 4])
        codes.indices[0] = self.__dict__.get("column", 0)
        return codes


def test_sparse_codes_of_others_are_looked_through():
    model = loclin.LLSVMClassifier(FarColumns(), metric=None, **SHORT).fit(X, y)
    model.coding_.column = 10**9
    with pytest.raises(ValueError, match="no valid sparse matrix"):
        model.predict(X)


class OneMore(NamedTuple):
    """What a new model may hold, of a class that declares it."""

    coef: Annotated[np.ndarray, Shape("m d")]
    intercept: Annotated[np.ndarray, Shape("m")]
    weights: Annotated[np.ndarray | None, Shape("m+1", np.float64)] = None
    label: str = ""


def test_what_a_class_declares_is_all_that_it_takes():
    for dtype in (np.float32, np.float64):
        coef, intercept = np.zeros((3, 2), dtype), np.zeros(3, dtype)
        check_described(OneMore(coef, intercept))
        check_described(OneMore(coef, intercept, np.zeros(4)))
    told = r"intercept has shape \(2,\), but should be \(m\) = \(3\), says coef\. Load"
    with pytest.raises(ValueError, match=told):
        check_described(OneMore(coef, intercept[:2]))
    with pytest.raises(ValueError, match=r"weights .* but should be \(m\+1\) = \(4\)"):
        check_described(OneMore(coef, intercept, np.zeros(3)))
    with pytest.raises(ValueError, match="weights has the type float32, but should have float64"):
        check_described(OneMore(coef, intercept, np.zeros(4, np.float32)))
    with pytest.raises(ValueError, match="coef should be ndarray, not list"):
        check_described(OneMore([1.0], intercept))
    with pytest.raises(ValueError, match="label should be str, not int"):
        check_described(OneMore(coef, intercept, None, 3))
    with pytest.raises(ValueError, match=r"coef has shape \(0, 2\)"):
        check_described(OneMore(coef[:0], intercept[:0]))


# Everything is declared.


def holding(value):
    """Tell whether a value is an array, or a list of some."""
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return any(map(holding, value))
    return isinstance(value, np.ndarray) or sparse.issparse(value)


def mentions_a_shape(hint):
    return bool(notes_of(hint, Shape)) or any(map(mentions_a_shape, getattr(hint, "__args__", ())))


# Lists of arrays, whose shapes a rule compares with other arrays.
BY_RULE = {"mean"}


def undeclared(value, where="model", met=None):
    """Names of what is held somewhere in a model, is an array, and is not declared."""
    met = set() if met is None else met
    if id(value) in met or isinstance(value, type):
        return set()
    met.add(id(value))
    found = set()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        parts = enumerate(value)
    elif hasattr(value, "_fields"):
        parts = zip(value._fields, value, strict=True)
    elif type(value).__module__.startswith("loclin."):
        parts = vars(value).items()
    else:
        return set()
    if isinstance(value, Pieces):  # `portable.checks` looks at them
        return set()
    parts = [*parts]
    if type(value).__module__.startswith("loclin."):
        hints = declared(type(value))
        parameters = value.get_params(deep=False) if isinstance(value, BaseEstimator) else ()
        for name, part in parts:
            known = name in hints and mentions_a_shape(hints[name])
            if holding(part) and not known and name not in {*BY_RULE, *parameters}:
                found.add(f"{where}.{name}")
    for name, part in parts:
        found |= undeclared(part, f"{where}.{name}", met)
    return found


def learned_in_all_ways():
    ways = {(case.model, case.learn) for case in golden.CASES}
    skipped = {"weighed", "watched"}
    return sorted((model, learn) for model, learn in ways if learn not in skipped)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("model", "learn"), learned_in_all_ways())
def test_every_array_of_every_model_is_declared_and_fits(model, learn):
    case = golden.Case(model, learn, "dense", "float64", 3)
    fitted = getattr(golden, learn)(golden.make(model), golden.data_of(case))
    assert not undeclared(fitted)
    check_consistent(fitted)


@pytest.mark.parametrize("number_of_classes", [2, 3])
def test_every_array_of_other_models_is_declared(number_of_classes):
    labels = np.arange(90) % number_of_classes
    models = [
        loclin.KernelLMKLClassifier(max_iter=2, random_state=0),
        loclin.SVMKNNClassifier(5),
        loclin.LocallyLinearEnsemble([ml3(), ml3(p=2.0)], n_folds=2, random_state=0),
        loclin.ML3Classifier(2, metric="diagonal", **SHORT),
        loclin.ML3Classifier(2, metric="full", **SHORT),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in models:
            model.fit(X, labels)
            assert not undeclared(model)
            check_consistent(model)
            if hasattr(model, "partial_fit"):
                model.partial_fit(X, labels).partial_fit(X, labels)
                assert not undeclared(model)
                check_consistent(model)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", codings.__all__)
def test_every_array_of_codings_is_declared(kind):
    coding = getattr(codings, kind)()
    if "n_anchors" in coding.get_params():
        coding.set_params(n_anchors=6)
    if kind == "TangentCoding":
        coding.set_params(coding=codings.LLCCoding(6))
    coding.fit(X)
    assert not undeclared(coding)
    check_consistent(coding)
