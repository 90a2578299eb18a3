"""alpha="auto": the rule, and what cross-validation makes of it where rows are few."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.datasets import make_classification
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import check_random_state

from loclin import (
    L3MClassifier,
    LLSVMClassifier,
    ML3Classifier,
    SAPLClassifier,
    USSVMClassifier,
)
from loclin.codings import SoftAssignmentCoding
from loclin.fitting import base, rows, strength
from loclin.fitting.recipe import Trial
from loclin.l3m import recipe as l3m
from loclin.sapl import recipe as sapl

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

FACTORS = [0.25, 1.0, 4.0, 16.0, 64.0]
ENDLESS = {"metric": None, "tol": 0, "n_iter_no_change": 99, "random_state": 0}
MODELS = [
    ML3Classifier(4, metric=None, max_iter=6, random_state=0, standardize=False),
    LLSVMClassifier(
        SoftAssignmentCoding(8, 4), metric=None, random_state=0, max_iter=5, standardize=False
    ),
    LLSVMClassifier(
        SoftAssignmentCoding(8, 4),
        solver="dual_cd",
        metric=None,
        random_state=0,
        max_iter=5,
        standardize=False,
    ),
    SAPLClassifier(4, 4, metric=None, max_iter=3, random_state=0, standardize=False),
    L3MClassifier(n_regions=2, n_restarts=2, max_iter=2, random_state=0, standardize=False),
    USSVMClassifier(4, max_iter=3, random_state=0),
]
# n_samples, share of the labels drawn at random, rows to hold out in all, draws of the folds then,
# none of rows that suffice to hold one of the folds out
PROBLEMS = {
    "noisy": (120, 0.5, 2000, 3),
    "clean": (120, 0.0, 240, 2),
    "more rows": (240, 0.3, 240, 1),
    "many rows": (280, 0.5, 240, 0),
}


def strength_of(model: Any) -> str:
    return "beta" if isinstance(model, USSVMClassifier) else "alpha"


def problem(n: int, noise: float) -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = make_classification(
        n, 8, n_informative=4, n_redundant=0, class_sep=1.5, flip_y=noise, random_state=3
    )
    return X, np.array(["no", "yes"])[y]


def log_losses_by_hand(scores: Any, y: Any, weights: Any) -> Any:
    """Return the rows' log losses at the best temperature of two classes, by a search of it.

    What is searched has one label of n + 2 that might be any.
    """
    share = weights / weights.sum()
    against = np.where(y, -scores, scores) / np.sqrt(np.mean(scores**2))

    def losses(log_inverse: float) -> Any:
        return share * np.log1p(np.exp(math.exp(log_inverse) * against))

    def smoothed(log_inverse: float) -> float:
        slope = share @ (against / 2) / (len(y) + 2)
        return float(losses(log_inverse).sum() - math.exp(log_inverse) * slope)

    return losses(minimize_scalar(smoothed, bounds=(-6.9, 6.9), method="bounded").x)


def by_hand(model: Any, X: Any, y: Any, weights: Any, draws: int) -> float:
    """Return the factor of least log loss in cross-validation, if it leads by enough."""
    seed = check_random_state(model.random_state).randint(2**31 - 1)
    scores: dict[float, list[Any]] = {factor: [] for factor in FACTORS}
    tested: list[Any] = []
    folds = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed)
    if draws:
        folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=draws, random_state=seed)
    for train, test in folds.split(X, y):
        parameters = model.get_params(deep=False) | {"tol": 0, "n_iter_no_change": 99}
        parameters |= {"n_restarts": 1} if isinstance(model, L3MClassifier) else {"average": 1}
        name = strength_of(model)
        rule = type(model)(**parameters | {name: "scale"})
        rule.fit(X[train], y[train], weights[train])
        tested.extend(test)
        for factor in FACTORS:
            other = type(model)(**parameters | {name: factor * getattr(rule, f"{name}_")})
            other.fit(X[train], y[train], weights[train])
            scores[factor].extend(other.decision_function(X[test]))
    best, most = 1.0, 0.0
    losses: dict[float, dict[int, float]] = {f: dict.fromkeys(range(len(y)), 0.0) for f in FACTORS}
    for factor, found in scores.items():
        of_rows = log_losses_by_hand(np.array(found), y[tested] == "yes", weights[tested])
        for row, loss in zip(tested, of_rows, strict=True):
            losses[factor][row] += loss
    for factor in FACTORS:
        leads = [losses[1.0][row] - losses[factor][row] for row in range(len(y))]
        lead, deviation = sum(leads), sum(one * one for one in leads) ** 0.5
        if lead > max(most, deviation if draws else 2 * deviation):
            best, most = factor, lead
    return best


def each_problem():
    """By default ML3 has all problems but one, which US-SVM has; SAPL has the first."""
    for model in MODELS:
        for name in PROBLEMS:
            if isinstance(model, ML3Classifier | USSVMClassifier):
                spared = isinstance(model, USSVMClassifier) == (name == "many rows")
            else:
                spared = name == "noisy" and isinstance(model, SAPLClassifier)
            marks = [] if spared else [pytest.mark.slow]
            yield pytest.param(model, name, id=f"{name}-{type(model).__name__}", marks=marks)


@pytest.mark.parametrize(("model", "name"), each_problem())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_auto_takes_the_factor_of_least_log_loss(model, name, monkeypatch):
    n, noise, held_out, draws = PROBLEMS[name]
    monkeypatch.setattr(strength, "HELD_OUT", held_out)
    monkeypatch.setattr(strength, "FEW_ROWS", (50, 250))
    short = {"n_restarts": 1} if isinstance(model, L3MClassifier) else {}
    trial = Trial(short, model.max_iter, goes_on=False, most_draws=3)
    monkeypatch.setattr(type(model)._recipe_type, "trial", lambda recipe, rows, learned=None: trial)
    X, y = problem(n, noise)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, n)
    weights /= weights.mean()
    name = strength_of(model)
    rule = type(model)(**model.get_params(deep=False) | {name: "scale"}).fit(X, y, weights)
    auto = type(model)(**model.get_params(deep=False)).fit(X, y, weights)
    factor = getattr(auto, f"{name}_") / getattr(rule, f"{name}_")
    assert factor == pytest.approx(by_hand(model, X, y, weights, draws))
    assert factor > 1 or name != "noisy" or not isinstance(model, ML3Classifier)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        kind(random_state=0, standardize=False)
        for kind in (ML3Classifier, LLSVMClassifier, SAPLClassifier, L3MClassifier)
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_defaults_take_more_where_labels_are_noisy(model):
    for noise, few in ((0.5, True), (0.0, False)):
        X, y = problem(300, noise)
        auto, rule = (
            type(model)(**model.get_params(deep=False) | {"alpha": alpha}).fit(X, y).alpha_
            for alpha in ("auto", "scale")
        )
        assert auto > 3 * rule if few else auto < 20 * rule


def test_many_rows_with_noisy_labels_take_more_and_err_less():
    X, y = problem(7500, 0.5)
    auto, rule = (
        LLSVMClassifier(alpha=alpha, random_state=0, standardize=False).fit(X[:2500], y[:2500])
        for alpha in ("auto", "scale")
    )
    assert auto.alpha_ > 3 * rule.alpha_
    assert 1 - auto.score(X[2500:], y[2500:]) < 0.95 * (1 - rule.score(X[2500:], y[2500:]))


@pytest.mark.parametrize(
    "model",
    [
        ML3Classifier(3, **ENDLESS, standardize=False),
        LLSVMClassifier(**ENDLESS, standardize=False),
        SAPLClassifier(6, 3, **ENDLESS, standardize=False),
        SAPLClassifier(6, 3, share_anchors=False, **ENDLESS, standardize=False),
        SAPLClassifier(6, 3, weights="constant", **ENDLESS, standardize=False),
    ],
    ids=["ml3", "llsvm", "sapl", "sapl own", "sapl constant"],
)
def test_a_weaker_strength_is_that_of_a_fit_that_goes_on(model):
    """A fit that goes on with another alpha takes the same steps."""
    X, y = problem(200, 0.3)
    y = np.where(X[:, 0] > 1, "maybe", y)
    first = type(model)(**model.get_params(deep=False) | {"alpha": 0.4, "max_iter": 3})
    first.set_params(average=0, warm_start=True).fit(X, y)
    labels = np.searchsorted(first.classes_, y).astype(np.int32)
    learned = base.Rows(X, labels, np.ones(200))
    before = first._before()
    begun = first._recipe(0).begin(learned, np.random.default_rng(7), before)
    assert begun.weaken(0.25)
    other = first.set_params(alpha=0.1)
    expected = other._recipe(0).begin(learned, np.random.default_rng(7), before)
    for _ in range(2):
        assert begun.iterate(average=False) == pytest.approx(expected.iterate(average=False))
    ours, theirs = begun.result(), expected.result()
    assert ours.alpha == theirs.alpha == 0.1
    np.testing.assert_allclose(ours.local_intercept, theirs.local_intercept, rtol=1e-8)


def test_factor_of_few_and_of_many_rows(monkeypatch):
    monkeypatch.setattr(strength, "MOST_ROWS", 200)
    model = ML3Classifier(2, max_iter=1, random_state=0, standardize=False)
    X, y = problem(201, 0.5)
    for n in (20, 49, 201):
        model.fit(X[:n], y[:n])
        assert model.alpha_ == pytest.approx(
            ML3Classifier(2, alpha="scale", max_iter=1, standardize=False).fit(X[:n], y[:n]).alpha_
        )


@pytest.mark.filterwarnings("ignore:.*is too large")
def test_folds_too_small_for_the_parameters_leave_the_rule():
    X, y = problem(60, 0.5)
    coding = SoftAssignmentCoding(50, 4, random_state=0)  # a fold has 40 rows
    auto, scale = (
        ML3Classifier(
            50, alpha=alpha, init=coding, max_iter=2, random_state=0, standardize=False
        ).fit(X, y)
        for alpha in ("auto", "scale")
    )
    np.testing.assert_array_equal(auto.local_coef_, scale.local_coef_)


@pytest.mark.parametrize(
    "model",
    [
        SAPLClassifier(n_anchors="auto", max_iter=3, random_state=0, standardize=False),
        L3MClassifier(n_regions="auto", max_iter=3, random_state=0, standardize=False),
        ML3Classifier(2, early_stopping=True, max_iter=3, random_state=0, standardize=False),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_trials_hold_no_more_rows_out(model, monkeypatch):
    held = []
    plain = rows.hold_out
    for module in (base, sapl, l3m):
        monkeypatch.setattr(module, "hold_out", lambda *a: held.append(1) or plain(*a))
    X, y = problem(120, 0.5)
    model.fit(X, y)
    assert len(held) == 1


def test_rare_class_leaves_the_rule():
    X, y = problem(120, 0.5)
    y = np.append(y[:-2], ["rare", "rare"])
    model = ML3Classifier(2, max_iter=5, random_state=0, standardize=False).fit(X, y)
    scale = ML3Classifier(2, max_iter=5, alpha="scale", random_state=0, standardize=False).fit(X, y)
    np.testing.assert_array_equal(model.local_coef_, scale.local_coef_)


def test_number_of_fits_and_how_they_are_silent(capsys):
    """Fits on folds print nothing and tell no callback; the model's own has its own alpha."""
    X, y = problem(120, 0.5)
    model = ML3Classifier(
        2, metric=None, max_iter=5, verbose=1, random_state=0, standardize=False
    ).fit(X, y)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == model.n_iter_
    again = ML3Classifier(
        2, alpha=model.alpha_, metric=None, max_iter=5, random_state=0, standardize=False
    ).fit(X, y)
    np.testing.assert_allclose(again.local_coef_, model.local_coef_, rtol=1e-12)


def test_warm_start_keeps_the_factor():
    X, y = problem(120, 0.5)
    model = ML3Classifier(2, max_iter=5, warm_start=True, random_state=0, standardize=False).fit(
        X, y
    )
    alpha = model.alpha_
    assert model.fit(X, y).alpha_ == alpha


def test_convex_program_is_not_fitted_again_and_again(monkeypatch):
    monkeypatch.setattr(strength, "fold_decisions", None)
    X, y = problem(60, 0.5)
    model = L3MClassifier(
        solver="convex", n_regions=2, n_restarts=1, tol=0.5, random_state=0, standardize=False
    )
    assert model.fit(X, y).alpha_ == pytest.approx(0.4 * 0.05 * np.mean((X**2).sum(1) + 1) / 60)


@pytest.mark.parametrize("alpha", ["rule", 0, -1.0, np.inf, None])
def test_bad_alpha(alpha):
    X, y = problem(60, 0.0)
    for model in MODELS:
        name = strength_of(model)
        if name == "beta" and alpha == 0:
            continue  # as good as any: the penalty on the weights can do alone
        with pytest.raises((TypeError, ValueError), match=rf'{name}.*or "auto" or "scale"'):
            type(model)(**{name: alpha}).fit(X, y)
