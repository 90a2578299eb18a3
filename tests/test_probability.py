"""Probabilities: the softmax of the scores over a temperature of rows that were not trained on."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.semi_supervised import SelfTrainingClassifier

from loclin import (
    CSVMClassifier,
    L3MClassifier,
    LDKLClassifier,
    LLSVMClassifier,
    LMKLClassifier,
    ML3Classifier,
    SAPLClassifier,
    SVMKNNClassifier,
    USSVMClassifier,
)
from loclin.codings import SoftAssignmentCoding
from loclin.fitting import probability
from loclin.fitting.probability import StreamedTemperature
from loclin.fitting.temperature import spread, temperature_of
from loclin.ml3.recipe import ML3Recipe

KINDS = {"dense": np.asarray, "sparse": sparse.csr_matrix}
SHORT = {"alpha": "scale", "max_iter": 20, "random_state": 0}
MODELS = {
    "ml3": ML3Classifier(4, metric=None, **SHORT),
    "llsvm": LLSVMClassifier(SoftAssignmentCoding(20, 4), **SHORT),
    "dual": LLSVMClassifier(SoftAssignmentCoding(20, 4), solver="dual_cd", tol=0.1, **SHORT),
    "sapl": SAPLClassifier(10, 4, **SHORT),
    "l3m": L3MClassifier(3, n_restarts=1, **SHORT),
    "online": L3MClassifier(3, solver="online", **SHORT),
    "csvm": CSVMClassifier(6, **SHORT),
    "ldkl": LDKLClassifier(3, **SHORT),
    "svmknn": SVMKNNClassifier(),
    "lmkl": LMKLClassifier(6, **SHORT),
    "ussvm": USSVMClassifier(6, beta="scale", max_iter=5, random_state=0),
}
STREAMED = ["ml3", "llsvm", "sapl", "online", "ussvm", "csvm", "ldkl", "lmkl"]
each = pytest.mark.parametrize


def problem(n_classes, n=600, dtype=float):
    X, y = make_classification(
        n, 6, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=0.1, class_sep=1.5,
        random_state=1,
    )  # fmt: skip
    return X.astype(dtype), np.array(["b", "c", "a", "d"])[y]


def plain_loss(decisions, y, weights, temperature):
    """Log loss, row by row."""
    total = 0.0
    for scores, label, weight in zip(decisions, y, weights, strict=True):
        shifted = [float(s - max(scores)) / temperature for s in scores]
        total -= weight * (shifted[label] - np.log(sum(np.exp(s) for s in shifted)))
    return total / sum(weights)


@each("kind", ["dense", pytest.param("sparse", marks=pytest.mark.slow)])
@each("n_classes", [pytest.param(2, marks=pytest.mark.slow), 4])
@each("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_probabilities_are_the_smoothed_softmax_of_scores(name, n_classes, kind):
    X, y = problem(n_classes)
    model = MODELS[name].fit(KINDS[kind](X), y)
    P, scores = model.predict_proba(X), model.decision_function(X) / model.temperature_
    if n_classes == 2:
        scores = np.stack([np.zeros(len(scores)), scores], axis=1)
    expected = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    assert model.smoothing_ == 1 / 602, "all 600 rows were held out once"
    expected = expected * 601 / 602 + 1 / 602 / n_classes
    np.testing.assert_allclose(P, expected, atol=1e-12)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P, atol=1e-12)
    prior = np.bincount(np.searchsorted(model.classes_, y)) / len(y)
    assert log_loss(y, P) < -np.sum(prior * np.log(prior))


@pytest.mark.parametrize("shape", [(500,), (500, 3)])
def test_a_row_far_from_all_others_does_not_rule_the_spread(shape):
    decisions = np.random.default_rng(0).standard_normal(shape)
    usual = spread(decisions)
    assert spread(-7 * decisions) == pytest.approx(7 * usual)
    decisions[0] = 300 * np.arange(1, 1 + decisions[0].size).reshape(decisions[0].shape)
    assert spread(decisions) < 2 * usual


@each("n_classes", [2, 5])
def test_the_temperature_minimises_the_log_loss(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 3000)
    decisions = rng.standard_normal((3000, n_classes)) + 2.0 * np.eye(n_classes)[y]
    weights = rng.uniform(0.5, 2.0, 3000)
    best = minimize_scalar(
        lambda log: plain_loss(decisions, y, weights, np.exp(log)), bounds=(-3, 3), method="bounded"
    )  # fmt: skip
    seen = decisions[:, 1] - decisions[:, 0] if n_classes == 2 else decisions
    found = temperature_of(seen, y, weights)
    assert found == pytest.approx(np.exp(best.x), rel=0.01)
    for unit in (1e-100, 1e100):
        assert temperature_of(unit * seen, y, weights) == pytest.approx(unit * found, rel=0.01)


@each("n_classes", [2, 4])
def test_rows_far_from_all_others_leave_the_temperature_alone(n_classes):
    """The best temperature of the probabilities that are given, by a search."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 1500)
    decisions = 2 * np.eye(n_classes)[y] + rng.standard_normal((1500, n_classes))
    without = temperature_of(decisions, y, np.ones(1500))
    decisions[:2] = 500 * np.eye(n_classes)[(y[:2] + 1) % n_classes]  # wrong, and sure of it

    def loss(log_temperature):
        scores = decisions / np.exp(log_temperature)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = odds[np.arange(1500), y] / odds.sum(axis=1)
        return -np.log((1 - 1 / 1502) * right + 1 / 1502 / n_classes).mean()

    best = np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)
    found = temperature_of(decisions, y, np.ones(1500))
    assert found == pytest.approx(best, rel=0.02) == pytest.approx(without, rel=0.02)
    state = StreamedTemperature()
    for rows in np.array_split(np.roll(np.arange(1500), -2), 10):  # they come last
        state = state.after(decisions[rows], y[rows], np.ones(len(rows)))
    assert state.temperature == pytest.approx(without, rel=0.05)


@each("kind", ["wrong", "right", "any"])
@each("size", [1e3, 1e6])
@each("n_classes", [2, 4, 100])
def test_rows_far_away_of_any_size_leave_the_temperature_alone(n_classes, size, kind):
    rng = np.random.default_rng(0)
    y, weights = rng.integers(0, n_classes, 400), np.ones(400)
    decisions = 2 * np.eye(n_classes)[y] + rng.standard_normal((400, n_classes)) / 2
    without = temperature_of(decisions[20:], y[20:], weights[20:])
    far = {"wrong": y + 1, "right": y, "any": rng.integers(0, n_classes, 400)}[kind][:20]
    decisions[:20] = size * np.eye(n_classes)[far % n_classes]
    found = temperature_of(decisions, y, weights)

    def loss(temperature):  # of the other rows
        scores = decisions[20:] / temperature
        return (logsumexp(scores, axis=1) - scores[np.arange(380), y[20:]]).mean()

    assert loss(found) < loss(without) + 0.1


@each("kind", ["wrong", "any"])
@each("size", [1e3, 1e6])
@each("n_classes", [2, 4])
def test_rows_far_away_in_each_call_leave_the_temperature_of_a_stream_alone(n_classes, size, kind):
    rng = np.random.default_rng(0)
    y, labels = rng.integers(0, n_classes, 2000), np.eye(n_classes)
    decisions = 2 * labels[y] + rng.standard_normal((2000, n_classes))
    without = temperature_of(decisions, y, np.ones(2000))
    any_scores = rng.standard_normal((100, n_classes))
    wrong = labels[(y[::20] + 1) % n_classes]
    decisions[::20] = size * (any_scores if kind == "any" else wrong)
    state = StreamedTemperature()
    for rows in np.array_split(np.arange(2000), 20):
        state = state.after(decisions[rows], y[rows], np.ones(len(rows)))
    assert state.temperature == pytest.approx(without, rel=0.4)


def test_scores_that_tell_all_or_nothing_leave_probabilities_finite():
    y = np.tile([0, 1], 50)
    for decisions in (10.0 * y - 5, -10.0 * y + 5, np.zeros(100), np.full(100, 3.0)):
        temperature = temperature_of(decisions, y, np.ones(100))
        assert 0 < temperature < np.inf
        loss = plain_loss(np.stack([0 * y, decisions], axis=1), y, np.ones(100), temperature)
        assert loss < 0.75


def test_the_temperature_is_that_of_new_rows():
    # A model that has learned its rows by heart is sure of them, and must not be of others.
    X, y = problem(2, 900)
    y = np.where(np.random.default_rng(0).random(900) < 0.25, "b", y)
    X, X_new, y, y_new = train_test_split(X, y, test_size=300, random_state=0)
    model = ML3Classifier(30, alpha=1e-5, random_state=0).fit(X, y)
    assert model.score(X, y) > model.score(X_new, y_new) + 0.05
    of_learned = temperature_of(model.decision_function(X), (y == "c").astype(int), np.ones(len(y)))
    assert model.temperature_ > 1.3 * of_learned
    assert log_loss(y_new, model.predict_proba(X_new)) < 0.69


@pytest.mark.slow
@each("name", ["ml3", "sapl", "llsvm"])
def test_log_loss_is_near_the_best_of_any_temperature(name):
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X / 16.0, y, random_state=0)
    model = type(MODELS[name])(alpha="scale", random_state=0).fit(X, y)
    decisions = model.decision_function(X_new)
    best = temperature_of(decisions, y_new, np.ones(len(y_new)))
    least = plain_loss(decisions, y_new, np.ones(len(y_new)), best)
    assert log_loss(y_new, model.predict_proba(X_new)) < least + 0.03


@each("name", ["ml3", "sapl", "llsvm"])
def test_a_row_far_away_is_not_predicted_with_certainty(name):
    X, y = problem(4)
    model = MODELS[name].fit(X, y)
    far = 1e6 * X[:20]
    assert np.abs(model.decision_function(far)).max() > 1e4 * model.temperature_
    assert model.predict_proba(far).min() == pytest.approx(1 / 602 / 4)
    assert model.predict_log_proba(far).min() > -8


def test_many_rows_hold_out_a_part_once(monkeypatch):
    X, y = problem(2, 4000)
    fits = []
    plain = ML3Recipe.begin

    def begin(recipe, rows, *arguments):
        fits.append(len(rows.y))
        return plain(recipe, rows, *arguments)

    monkeypatch.setattr(ML3Recipe, "begin", begin)
    model = clone(MODELS["ml3"]).set_params(pieces=None).fit(X, y)
    assert fits == [4000, 3600]
    monkeypatch.setattr(probability, "_MOST_ROWS", 3000)
    model.fit(X, y)
    assert fits[2:] == [4000, 2700]


def test_early_stopping_s_rows_tell_the_temperature():
    X, y = problem(2)
    model = ML3Classifier(4, early_stopping=True, validation_fraction=0.3, **SHORT).fit(X, y)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    _, watched = train_test_split(np.arange(600), test_size=0.3, random_state=seed, stratify=y)
    found = temperature_of(
        model.decision_function(X[watched]), (y[watched] == "c").astype(int), np.ones(len(watched))
    )
    assert model.temperature_ == pytest.approx(found)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_few_rows_of_a_class():
    X, y = problem(2, 40)
    y[:] = "b"
    y[0] = "c"
    assert ML3Classifier(2, random_state=0).fit(X, y).temperature_ > 0
    y[1] = "c"
    assert ML3Classifier(2, random_state=0).fit(X, y).temperature_ > 0


def test_weights_count():
    X, y = problem(2)
    twice = np.repeat(np.arange(600), 1 + (np.arange(600) % 2))
    weights = 1.0 + np.arange(600) % 2
    decisions, labels = X[:, 0], (y == "c").astype(int)
    assert temperature_of(decisions, labels, weights) == pytest.approx(
        temperature_of(decisions[twice], labels[twice], np.ones(len(twice))), rel=1e-2
    )


@each("name", ["ml3", "ussvm"])
def test_without_calibration_there_are_no_probabilities(name):
    X, y = problem(3)
    model = clone(MODELS[name]).set_params(calibrate=False)
    assert not hasattr(model, "predict_proba")
    scores = model.fit(X, y).decision_function(X)
    assert model.temperature_ is None
    model.set_params(calibrate=True)
    with pytest.raises(AttributeError) as raised:
        model.predict_log_proba(X)
    assert "set calibrate=True and fit again" in str(raised.value.__cause__)
    np.testing.assert_array_equal(model.fit(X, y).decision_function(X), scores)
    assert model.predict_proba(X).shape == (600, 3)


@each("name", ["ml3", "ussvm"])
def test_a_stream_may_leave_the_temperature_out(name):
    X, y = problem(3)
    model = clone(MODELS[name]).set_params(calibrate=False)
    for some in np.array_split(np.arange(600), 3):
        model.partial_fit(X[some], y[some], classes=np.unique(y))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError):
        model.set_params(calibrate=True).predict_proba(X)
    model.partial_fit(X, y)
    model.partial_fit(X, y)
    assert model.predict_proba(X).shape == (600, 3)


@each("n_classes", [2, pytest.param(4, marks=pytest.mark.slow)])
@each("name", STREAMED)
def test_a_stream_is_calibrated_by_rows_before_it_learns_them(name, n_classes):
    X, y = problem(n_classes, 4000)
    model = type(MODELS[name])(**MODELS[name].get_params(deep=False))
    losses = []
    for some in np.array_split(np.arange(4000), 20):
        if some[0]:
            labels = list(model.classes_)
            losses.append(log_loss(y[some], model.predict_proba(X[some]), labels=labels))
        model.partial_fit(X[some], y[some], classes=np.unique(y))
    decisions = model.decision_function(X)
    labels = np.searchsorted(model.classes_, y)
    best = temperature_of(decisions, labels, np.ones(4000))
    assert 0.5 < model.temperature_ / best < 2
    assert np.mean(losses[-5:]) < 0.95 * np.log(n_classes)


def test_a_stream_s_temperature_is_that_of_the_last_rows():
    rng = np.random.default_rng(0)
    state = StreamedTemperature()
    for temperature in (3.0, 0.2):
        for _ in range(60):
            decisions = rng.normal(0, 2, 500)
            y = (rng.random(500) < 1 / (1 + np.exp(-decisions / temperature))).astype(int)
            state = state.after(decisions, y, np.ones(500))
        assert state.temperature == pytest.approx(temperature, rel=0.15)


@pytest.mark.filterwarnings("ignore:n_(anchors|clusters|neighbors)")
@each("begin", ["a row", "a class"])
@each("name", [name for name in STREAMED if name != "online"])  # which refuses a row
def test_a_stream_that_begins_with_hardly_anything_is_calibrated_soon(name, begin):
    """Scores of a model that knows one row, or one class, tell nothing of the temperature."""
    X, y = problem(4, 1200)
    first = np.flatnonzero(y == "c")[: 1 if begin == "a row" else 150]
    rest = np.setdiff1d(np.arange(1200), first)
    model = clone(MODELS[name]).partial_fit(X[first], y[first], classes=np.unique(y))
    for some in np.array_split(rest, 2):
        model.partial_fit(X[some], y[some])
    labels = np.searchsorted(model.classes_, y)
    best = temperature_of(model.decision_function(X), labels, np.ones(1200))
    assert 0.2 < model.temperature_ / best < 5
    assert log_loss(y, model.predict_proba(X)) < 0.9 * np.log(4)


@each("size", [1, 2, 7])
def test_tiny_calls_of_a_stream(size):
    X, y = problem(2, 300)
    model = ML3Classifier(2, random_state=0)
    for some in np.array_split(np.arange(300), 300 // size):
        model.partial_fit(X[some], y[some], classes=["b", "c"])
    assert 0.01 < model.temperature_ < 100


def test_a_stream_goes_on_from_a_fit():
    X, y = problem(2)
    model = ML3Classifier(4, **SHORT).fit(X[:500], y[:500])
    before = model.temperature_
    model.partial_fit(X[500:], y[500:])
    assert model.temperature_ != before
    assert 0.5 < model.temperature_ / before < 2


def test_several_labels_have_a_temperature_each():
    X, _ = problem(2, 400)
    Y = np.stack([X[:, 0] > 0, X[:, 1] + np.random.default_rng(0).normal(0, 3, 400) > 0], axis=1)
    model = USSVMClassifier(6, max_iter=5, random_state=0).fit(X, Y.astype(int))
    assert model.temperature_.shape == (2,)
    P = model.predict_proba(X)
    sharp = 1 / (1 + np.exp(-model.decision_function(X) / model.temperature_))
    np.testing.assert_allclose(P, sharp * 401 / 402 + 0.5 / 402)
    np.testing.assert_array_equal(P > 0.5, model.predict(X) == 1)
    model.partial_fit(X, Y.astype(int))
    assert model.temperature_.shape == (2,)
    model.add_class(X, X[:, 2] > 0)
    np.testing.assert_allclose(model.temperature_[2] ** 2, model.temperature_[:2].prod())
    assert model.predict_proba(X).shape == (400, 3)


@pytest.mark.slow
def test_float32_stays_float32():
    X, y = problem(4, dtype=np.float32)
    P = MODELS["ml3"].fit(X, y).predict_proba(X)
    assert P.dtype == np.float32
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-5)


@each("scoring", ["neg_log_loss", "roc_auc_ovr", "neg_brier_score"])
def test_scores_of_probabilities(scoring):
    X, y = problem(4 if "brier" not in scoring else 2)
    if "brier" in scoring:
        y = (y == "c").astype(int)
    assert np.isfinite(cross_val_score(MODELS["ml3"], X, y, scoring=scoring, cv=3)).all()


def test_soft_votes_and_self_training():
    X, y = problem(4)
    vote = VotingClassifier(
        [("ml3", MODELS["ml3"]), ("linear", LogisticRegression())], voting="soft"
    )
    assert vote.fit(X, y).score(X, y) > 0.7
    labels = np.searchsorted(np.unique(y), y)
    labels[200:] = -1
    model = SelfTrainingClassifier(ML3Classifier(4, **SHORT)).fit(X, labels)
    assert model.score(X, np.searchsorted(np.unique(y), y)) > 0.6


def test_few_rows_are_scored_where_classes_are_many(monkeypatch):
    X, y = problem(4)
    model = ML3Classifier(4, metric=None, **SHORT)
    of_all, scored, decisions_of = clone(model).fit(X, y).temperature_, [], probability.decisions_of

    def counted(recipe, learned, rows):
        scored.append(rows.shape[0])
        return decisions_of(recipe, learned, rows)

    monkeypatch.setattr(probability, "MOST_SCORES", 4 * 300)
    monkeypatch.setattr(probability, "decisions_of", counted)
    of_few = clone(model).fit(X, y).temperature_
    assert scored == [60] * 5 + [300]  # held out of each fold, and by the fit itself
    assert 0.7 < of_few / of_all < 1.4
