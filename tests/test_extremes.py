"""Any parameter that passes the checks ends in a model, or in an error that names the cure."""

import numpy as np
import pytest
from sklearn.base import clone

from loclin import (
    CSVMClassifier,
    L3MClassifier,
    LDKLClassifier,
    LLSVMClassifier,
    LMKLClassifier,
    LocallyLinearEnsemble,
    ML3Classifier,
    SAPLClassifier,
    USSVMClassifier,
)
from loclin.engine.schedule import step_offset
from loclin.fitting.checks import check_number
from loclin.fitting.probability import StreamedTemperature
from loclin.fitting.temperature import rescaled, spread, temperature_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = np.random.default_rng(0).integers(-3, 4, (60, 3)).astype(float)
y = np.random.default_rng(1).integers(0, 3, 60)
SHORT = {"max_iter": 2, "random_state": 0}
MODELS = [
    ML3Classifier(2, **SHORT),
    SAPLClassifier(3, 2, **SHORT),
    LLSVMClassifier(**SHORT),
    LDKLClassifier(2, **SHORT),
    LMKLClassifier(2, **SHORT),
    CSVMClassifier(2, **SHORT),
    L3MClassifier(2, solver="online", n_restarts=1, **SHORT),
    USSVMClassifier(3, **SHORT),
]
NAMES = ["alpha", "beta", "eta0", "annealing", "tree_lr", "gate_lr", "anchor_lr", "code_lr"]
LONG = {USSVMClassifier}  # what these do to it, others show
CASES = [
    pytest.param(
        model, name, value, id=f"{type(model).__name__}-{name}-{value}",
        marks=[pytest.mark.slow, pytest.mark.long] if type(model) in LONG else (),
    )
    for model in MODELS for name in NAMES if name in model.get_params()
    for value in (5e-324, 1e-300, 1e155, 1e300, 1.7e308)
]  # fmt: skip


def learns(model, how):
    if how == "fit":
        return model.fit(X, y)
    for rows in np.array_split(np.arange(60), 6):
        model.partial_fit(X[rows], y[rows], [0, 1, 2])
    return model


def refusal(model, how):
    """What a fit or a stream is refused with, or nothing."""
    try:
        learns(model, how)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("how", ["fit", "stream"])
@pytest.mark.parametrize(("model", "name", "value"), CASES)
def test_extreme_parameters(model, name, value, how):
    plain = {"metric": None} if "metric" in model.get_params() else {}
    model = clone(model).set_params(**{name: value}, **plain)
    told = refusal(model, how)
    if told:
        assert f"{name}={value:g}" in told or f"{name}={value!r}" in told
        return
    assert np.isfinite(model.decision_function(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_too_small_steps_are_named():
    with pytest.raises(ValueError, match="alpha=1e-300 with eta0=1e-300 is too small"):
        ML3Classifier(2, alpha=1e-300, eta0=1e-300, **SHORT).fit(X, y)
    assert step_offset(0.5, 3.0, np.inf) == 0
    assert step_offset(0.5, 3.0, 2.0) == 3.0


@pytest.mark.parametrize("largest", [1e-310, 1e-200, 1.0, 1e200, 1e308])
def test_temperatures_of_scores_of_any_size(largest):
    rng = np.random.default_rng(0)
    D, labels, ones = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.ones(60)
    D /= np.abs(D).max()
    D[np.arange(60), labels] += 0.3
    usual, found = temperature_of(D, labels, ones), temperature_of(largest * D, labels, ones)
    assert 1e-300 <= found <= 1e300
    if 1e-250 < largest < 1e250:
        assert found == pytest.approx(largest * usual, rel=2e-3)
        assert spread(largest * D) == pytest.approx(largest * spread(D), rel=1e-12)
        streams = [StreamedTemperature(), StreamedTemperature()]
        for _ in range(5):
            streams = [
                streams[0].after(D, labels, ones),
                streams[1].after(largest * D, labels, ones),
            ]
        assert streams[1].temperature == pytest.approx(largest * streams[0].temperature, rel=1e-2)
    streamed = StreamedTemperature()
    for _ in range(5):
        streamed = streamed.after(largest * D, labels, ones)
    assert 1e-301 < streamed.temperature < 1e301
    assert rescaled(found, 1e300, 1e-300) == pytest.approx(1e300)
    assert rescaled(found, 0.0, 0.0) == found


def test_an_ensemble_of_nothing_tells_nothing():
    model = LocallyLinearEnsemble([LLSVMClassifier(alpha=1e300, metric=None, **SHORT)], n_folds=2)
    P = model.fit(X.astype(np.float32), y).predict_proba(X)
    assert np.isfinite(P).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_numbers_of_numpy_are_taken_without_a_warning(kind):
    check_number("alpha", kind(0.25), low=0, open_low=True)
    with pytest.raises(ValueError, match="is not valid"):
        check_number("alpha", kind(-1.0), low=0)


def test_held_out_rows_may_overflow_while_a_fit_goes_astray(monkeypatch):
    """What was learned is looked at afterwards; on the way there is nothing to warn of."""

    def overflowing(*_):
        return float(np.tanh(np.float64(1e308) * 10))

    monkeypatch.setattr("loclin.fitting.base.accuracy_of", overflowing)
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    model = ML3Classifier(2, early_stopping=True, max_iter=20, random_state=0).fit(X, y)
    assert set(model.validation_scores_) == {1.0}
