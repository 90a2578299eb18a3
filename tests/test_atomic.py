"""Whatever fails or interrupts a fit, the estimator is what it was before the call."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from loclin import (
    CSVMClassifier,
    L3MClassifier,
    LDKLClassifier,
    LLSVMClassifier,
    LMKLClassifier,
    ML3Classifier,
    SAPLClassifier,
    USSVMClassifier,
)
from loclin.engine.procedure import StreamProcedure
from loclin.fitting.callbacks import CallbackSupportMixin

FEW = {"alpha": "scale", "random_state": 0}
PLAIN = FEW | {"metric": None}
MODELS = {
    "ML3": ML3Classifier(2, max_iter=3, **PLAIN),
    "LL-SVM": LLSVMClassifier(max_iter=3, **PLAIN),
    "LL-SVM, dual": LLSVMClassifier(solver="dual_cd", **PLAIN),
    "SAPL": SAPLClassifier(4, 2, max_iter=3, **FEW),
    "L3M, refined": L3MClassifier(2, max_iter=3, n_restarts=1, **FEW),
    "L3M, online": L3MClassifier(2, solver="online", max_iter=3, n_restarts=2, **FEW),
    "CSVM": CSVMClassifier(4, **FEW),
    "LDKL": LDKLClassifier(2, max_iter=3, **FEW),
    "L-MKL": LMKLClassifier(3, max_iter=3, **FEW),
    "US-SVM": USSVMClassifier(4, beta="scale", max_iter=3, random_state=0),
}
STREAMING = [name for name in MODELS if name not in ("LL-SVM, dual", "L3M, refined")]
FORMS = {"dense": np.asarray, "sparse": sparse.csr_matrix}
N = 60


def rows(form, n_features=4):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, n_features))
    return FORMS[form](X), (X[:, 0] * X[:, 1] > 0).astype(int)


class Interrupt(BaseException):
    """As KeyboardInterrupt, which pytest would take for its own."""


class Breaking:
    """A procedure that breaks in its second iteration, or gives a model that is not finite."""

    __class__ = StreamProcedure  # as far as `isinstance` can tell

    def __init__(self, inner, error):
        self.inner, self.error, self.n_calls = inner, error, 0

    def __getattr__(self, name):
        if name.startswith("__"):  # copies ask before there is an inner one
            raise AttributeError(name)
        return getattr(self.inner, name)

    def iterate(self, *, average):
        objective = self.inner.iterate(average=average)
        self.n_calls += 1
        if self.error is None:
            return np.inf
        if self.n_calls == 2:
            raise self.error
        return objective

    def learn(self, *arguments):
        self.inner.learn(*arguments)
        if self.error is None:
            return np.inf
        raise self.error


class Callback:
    """A callback that raises at one of its hooks."""

    def __init__(self, hook):
        self.hook = hook

    def _raise_at(self, hook):
        if hook == self.hook:
            raise OSError(hook)

    def setup(self, estimator, context):
        self._raise_at("setup")

    def on_fit_task_begin(self, estimator, context):
        self._raise_at("begin")

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self._raise_at("end")

    def teardown(self, estimator, context):
        self._raise_at("teardown")


def broken(start, error):
    return lambda *arguments, **options: Breaking(start(*arguments, **options), error)


def breaks(error):
    """Let procedures break, and train."""

    def fail(model, X, y, monkeypatch):
        recipe = type(model)._recipe_type
        for name in ("start", "start_stream"):
            monkeypatch.setattr(recipe, name, broken(getattr(recipe, name), error))
        return model.fit(X, y)

    return fail


def calls_back(hook):
    def fail(model, X, y, monkeypatch):
        return model.set_callbacks(Callback(hook)).fit(X, y)

    return fail


def sets(**parameters):
    return lambda model, X, y, monkeypatch: model.set_params(**parameters).fit(X, y)


def raw(model):
    """Return the parameter that leaves features as they are, if the model has it."""
    return {"standardize": False} if "standardize" in model.get_params() else {}


def weighs(weights):
    return lambda model, X, y, monkeypatch: model.fit(X, y, weights)


def with_nan(X):
    X = X.copy()
    (X.data if sparse.issparse(X) else X[0])[0] = np.nan
    return X


def goes_on(other_X=None, other_y=None):
    """Go on from the model with other rows or labels."""

    def fail(model, X, y, monkeypatch):
        X = X if other_X is None else other_X(X)
        return model.set_params(warm_start=True).fit(X, y if other_y is None else other_y(y))

    return fail


ONE_BAD = np.r_[-1.0, np.ones(N - 1)]
# name: (what fails, the error)
FAILURES = {
    "a parameter": (sets(max_iter=0), ValueError),
    "a parameter's type": (sets(tol="small"), TypeError),
    "NaN in X": (lambda model, X, y, _: model.fit(with_nan(X), y), ValueError),
    "large features": (
        lambda model, X, y, _: model.set_params(**raw(model)).fit(X * 1e30, y),
        ValueError,
    ),
    "lengths": (lambda model, X, y, _: model.fit(X, y[:-1]), ValueError),
    "one class": (lambda model, X, y, _: model.fit(X, np.ones(N)), ValueError),
    "no classes": (lambda model, X, y, _: model.fit(X, y + 0.5), ValueError),
    "a negative weight": (weighs(ONE_BAD), ValueError),
    "weights of zero": (weighs(np.zeros(N)), ValueError),
    "too few weights": (weighs(np.ones(3)), ValueError),
    "class weights": (sets(class_weight={"no such class": 2.0}), ValueError),
    "rows for early stopping": (
        sets(early_stopping=True, validation_fraction=1e-9),
        ValueError,
    ),
    "overflow": (breaks(None), ValueError),
    "an error in an iteration": (breaks(MemoryError("full")), MemoryError),
    "an interrupt": (breaks(Interrupt()), Interrupt),
    "a callback's setup": (calls_back("setup"), OSError),
    "a callback's begin": (calls_back("begin"), OSError),
    "a callback's end": (calls_back("end"), OSError),
    "a callback's teardown": (calls_back("teardown"), OSError),
}
OF_FITTED = {
    "other classes": (goes_on(other_y=lambda y: y + 1), ValueError),
    "other features": (goes_on(other_X=lambda X: X[:, :3]), ValueError),
}
OF_STREAMS = {
    "NaN": (lambda model, X, y, _: model.partial_fit(with_nan(X), y), ValueError),
    "an unknown class": (lambda model, X, y, _: model.partial_fit(X, y + 1), ValueError),
    "other features": (lambda model, X, y, _: model.partial_fit(X[:, :3], y), ValueError),
    "other classes": (lambda model, X, y, _: model.partial_fit(X, y, [0, 1, 2]), ValueError),
    "balanced": (
        lambda model, X, y, _: model.set_params(class_weight="balanced").partial_fit(X, y),
        ValueError,
    ),
}


def state_of(model):
    """What an estimator is, without what a test has set before the call."""
    return {name: value for name, value in vars(model).items() if name != "_skl_callbacks"}


def check_failure(model, failure, form, monkeypatch):
    """A failed call leaves every attribute what it was: the same object, the same content."""
    fail, error = failure
    X, y = rows(form)
    if fail in CALLBACKS and not hasattr(CallbackSupportMixin, "set_callbacks"):
        pytest.skip("needs scikit-learn 1.9")
    given, before, content = model.get_params(), state_of(model), deepcopy(state_of(model))
    fitted = hasattr(model, "classes_")
    said = model.decision_function(X) if fitted else None
    with monkeypatch.context() as patch, pytest.raises(error):
        fail(model, X, y, patch)
    model.set_params(**given)
    after = state_of(model)
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in after if name not in given)
    for name, value in content.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(after[name], value)
    if fitted:
        np.testing.assert_array_equal(model.decision_function(X), said)


CALLBACKS = {fail for name, (fail, _) in FAILURES.items() if "callback" in name}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", MODELS)
def test_a_failed_fit_leaves_an_unfitted_estimator_unfitted(name, failure, form, monkeypatch):
    check_failure(clone(MODELS[name]), FAILURES[failure], form, monkeypatch)


@pytest.fixture(scope="module")
def fitted():
    """A model fitted once, by name and form; tests take copies."""
    return cache(lambda name, form: clone(MODELS[name]).fit(*rows(form)))


@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=[] if form == "dense" else [pytest.mark.slow]) for form in FORMS],
)
@pytest.mark.parametrize("failure", FAILURES | OF_FITTED)
@pytest.mark.parametrize("name", MODELS)
def test_a_failed_fit_leaves_a_fitted_model_as_it_was(name, failure, form, fitted, monkeypatch):
    model = deepcopy(fitted(name, form))
    check_failure(model, (FAILURES | OF_FITTED)[failure], form, monkeypatch)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_goes_on_and_fails_leaves_what_it_went_on_from(name, form, fitted, monkeypatch):
    model = deepcopy(fitted(name, form)).set_params(warm_start=True)
    X, y = rows(form)
    model.fit(X, y)  # keeps what the next fit needs
    twin = deepcopy(model)
    check_failure(model, (breaks(Interrupt()), Interrupt), form, monkeypatch)
    np.testing.assert_array_equal(
        model.fit(X, y).decision_function(X), twin.fit(X, y).decision_function(X)
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("failure", OF_STREAMS)
@pytest.mark.parametrize("name", STREAMING)
def test_a_failed_call_leaves_a_stream_as_it_was(name, failure, form, monkeypatch):
    X, y = rows(form)
    model = clone(MODELS[name]).partial_fit(X[:40], y[:40], classes=[0, 1])
    check_failure(model, OF_STREAMS[failure], form, monkeypatch)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("error", [None, MemoryError(), Interrupt()], ids=repr)
@pytest.mark.parametrize("name", STREAMING)
def test_an_interrupted_stream_goes_on_as_if_nothing_had_been(name, error, form, monkeypatch):
    X, y = rows(form)
    model = clone(MODELS[name]).partial_fit(X[:40], y[:40], classes=[0, 1])
    twin = deepcopy(model)
    said = model.decision_function(X)
    model._stream = Breaking(model._stream, error)
    before = dict(vars(model))
    with pytest.raises(ValueError if error is None else type(error)):
        model.partial_fit(X[40:], y[40:])
    assert vars(model) == before
    model._stream = model._stream.inner
    np.testing.assert_array_equal(model.decision_function(X), said)
    for _ in range(2):
        model.partial_fit(X[40:], y[40:])
        twin.partial_fit(X[40:], y[40:])
    np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))


@pytest.mark.parametrize("warm_start", [False, True])
def test_attributes_of_another_solver_s_fit_go_with_it(warm_start):
    model = clone(MODELS["L3M, online"]).set_params(warm_start=warm_start).fit(*rows("dense"))
    assert model.t_
    model.set_params(solver="convex", tol=0.5).fit(*rows("dense"))
    assert model.dual_gap_ <= 0.5
    assert not hasattr(model, "t_")
    model.set_params(solver="refined").fit(*rows("dense"))
    assert not hasattr(model, "dual_gap_")
    assert not hasattr(model, "constraint_rows_")


class Scaled(ML3Classifier):
    """A subclass as users write them: with a fitted attribute of its own."""

    def __init__(self, n_models=2):
        super().__init__(n_models, max_iter=2, **PLAIN)

    def fit(self, X, y, sample_weight=None):
        self.scale_ = np.abs(X).max()
        return super().fit(X / self.scale_, y, sample_weight)

    def predict(self, X):
        return super().predict(X / self.scale_)


def test_a_fit_keeps_the_attributes_that_are_not_its_own():
    X, y = rows("dense")
    model = Scaled()
    model.note_ = "of the user"
    for _ in range(2):
        assert len(model.fit(X, y).predict(X)) == N
    assert model.note_ == "of the user"


def test_a_fit_forgets_what_a_fit_of_another_kind_has_left():
    X, y = rows("dense")
    model = LLSVMClassifier(solver="dual_cd", **PLAIN).fit(X, y)
    assert hasattr(model, "dual_gap_")
    model.set_params(solver="sgd", max_iter=3).fit(X, y)
    assert not hasattr(model, "dual_gap_")
