"""The ensemble: a mean of locally linear classifiers, which is one itself."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_gaussian_quantiles
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

import loclin.io
from loclin import (
    L3MClassifier,
    LLSVMClassifier,
    LocallyLinearEnsemble,
    ML3Classifier,
    SAPLClassifier,
    SVMKNNClassifier,
)
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding
from loclin.ensemble.kinds import kinds_of, like_first
from loclin.ensemble.merging import merged
from loclin.ensemble.selection import folds_of, select
from loclin.fitting.rows import default_n_anchors
from loclin.fitting.temperature import log_losses
from loclin.portable import describe
from tests.checks import mark_slow, of_single_precision

KINDS = {"dense": np.asarray, "sparse": sparse.csr_matrix}
SHORT = {"alpha": "scale", "metric": None, "max_iter": 10}
MEMBERS = [
    ML3Classifier(3, **SHORT, standardize=False),
    SAPLClassifier(6, 3, **SHORT, standardize=False),
    LLSVMClassifier(SoftAssignmentCoding(8, 3), **SHORT, standardize=False),
]
each = pytest.mark.parametrize


def problem(n_classes, n=300, seed=1):
    X, y = make_classification(
        n, 6, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=0.1, class_sep=1.5,
        random_state=seed,
    )  # fmt: skip
    return X, np.array(["b", "c", "a", "d"])[y]


@mark_slow(
    parametrize_with_checks(
        [LocallyLinearEnsemble(MEMBERS[:2], n_folds=2, random_state=0, standardize=False)],
        expected_failed_checks=lambda estimator: {
            "check_sample_weight_equivalence_on_dense_data": "stochastic steps",
            "check_sample_weight_equivalence_on_sparse_data": "stochastic steps",
        },
    ),
    lambda estimator, check: of_single_precision(check),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning", "ignore::UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def all_count(monkeypatch):
    """Let all kinds have the same share, so that the members of all are kept."""
    monkeypatch.setattr(
        "loclin.ensemble.weighing.select",
        lambda parts, y, weights: np.ones(len(parts)) / len(parts),
    )


def test_planes_tell_spheres():
    """One of the default kinds has quadratic scores; it gets a share where it helps."""
    X, y = make_gaussian_quantiles(n_samples=1200, n_features=10, n_classes=2, random_state=0)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
    errors = {}
    for name, kinds in (
        ("default", None),
        ("without planes", [ML3Classifier(standardize=False), SAPLClassifier(standardize=False)]),
    ):
        model = LocallyLinearEnsemble(kinds, n_folds=2, random_state=0, standardize=False).fit(X, y)
        errors[name] = 1 - model.score(X_new, y_new)
    assert errors["default"] < 0.8 * errors["without planes"]


def test_default_kinds_give_no_advice_that_nobody_can_take(monkeypatch):
    def fit(self, X, y, sample_weight=None):
        warnings.warn("Raise max_iter", ConvergenceWarning, stacklevel=1)
        return plain(self, X, y, sample_weight)

    plain = ML3Classifier.fit
    monkeypatch.setattr(ML3Classifier, "fit", fit)
    X, y = problem(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LocallyLinearEnsemble(n_folds=2, random_state=0).fit(X[:60], y[:60])
        with pytest.raises(ConvergenceWarning):
            LocallyLinearEnsemble(MEMBERS[:1], n_folds=2, random_state=0).fit(X[:60], y[:60])


def test_members_of_kinds_without_a_share_are_not_kept(monkeypatch):
    X, y = problem(2)
    monkeypatch.setattr("loclin.ensemble.weighing.select", lambda *_: np.array([1.0, 0.0]))
    kinds = [SAPLClassifier(8, 3, **SHORT), ML3Classifier(1, **SHORT)]
    model = LocallyLinearEnsemble(kinds, n_folds=3, random_state=0).fit(X, y)
    assert [type(one) for one in model.members_] == [SAPLClassifier] * 3
    model.partial_fit(X, y)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(("n_features", "n_kinds"), [(2000, 4), (2001, 2)])
def test_many_features_leave_the_planes_out(n_features, n_kinds):
    X = sparse.random(40, n_features, 0.01, format="csr", random_state=0)
    model = LocallyLinearEnsemble(n_folds=2, random_state=0, standardize=False)
    assert len(model.fit(X, np.arange(40) % 2).shares_) == n_kinds
    streamed = clone(model).partial_fit(X, np.arange(40) % 2, [0, 1])
    rare = clone(model).fit(X, np.arange(40) == 0)  # a class in one fold only
    for one in (streamed, rare):
        assert len(one.shares_) == 2, "all count the same there"


@each("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@each("kind", KINDS)
@each("n_classes", [2, 4])
def test_scores_are_the_mean_of_the_members(all_count, n_classes, kind, dtype):
    X, y = problem(n_classes)
    X = X.astype(dtype)
    model = LocallyLinearEnsemble(MEMBERS, n_folds=3, random_state=0, standardize=False).fit(
        KINDS[kind](X), y
    )
    assert len(model.members_) == 9
    assert model.shares_.sum() == pytest.approx(1)
    new = KINDS[kind](X[:20])
    decision = model.decision_function(new)
    expected = sum(
        model.shares_[k] / model.units_[k]
        * np.mean([one.decision_function(new) for one in model.members_[3 * k : 3 * k + 3]], axis=0)
        for k in range(3)
    )  # fmt: skip
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype is np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(decision, expected, **close)
    coef, intercept = model.local_model(new)
    found = np.einsum("n...d,nd->n...", coef, X[:20]) + intercept
    np.testing.assert_allclose(found, decision, **close)
    codes = model.local_weights(new)
    scores = np.einsum("nsm,smd,nd->ns", codes, model.local_coef_, X[:20])
    scores += np.einsum("nsm,sm->ns", codes, model.local_intercept_) + model.intercept_
    scores = scores[:, 1] - scores[:, 0] if n_classes == 2 else scores
    np.testing.assert_allclose(scores, decision, **close)
    P = model.predict_proba(new)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(new))
    assert decision.dtype == dtype


@each("kind", KINDS)
@each("n_classes", [2, 4])
def test_members_that_share_their_codes_are_merged(
    all_count, monkeypatch, tmp_path, n_classes, kind
):
    X, y = problem(n_classes)
    coding = FrozenEstimator(OrthogonalCoding(3).fit(X))
    kinds = [LLSVMClassifier(coding, bias="both", **SHORT, standardize=False), MEMBERS[2]]
    model = LocallyLinearEnsemble(kinds, n_folds=3, random_state=0, standardize=False)
    one = clone(model).fit(KINDS[kind](X), y)
    assert len(one.members_) == 1 + 3, "anchors of their own: other codes"
    monkeypatch.setattr("loclin.ensemble.classifier.merged", lambda members: members)
    apart = clone(model).fit(KINDS[kind](X), y)
    assert len(apart.members_) == 3 + 3
    np.testing.assert_allclose(one.shares_, apart.shares_)
    one.shares_ = apart.shares_ = np.array([0.7, 0.3])
    new = KINDS[kind](X[:20])
    decision = apart.decision_function(new)
    np.testing.assert_allclose(one.decision_function(new), decision, rtol=1e-9, atol=1e-9)
    coef, intercept = one.local_model(new)
    found = np.einsum("n...d,nd->n...", coef, X[:20]) + intercept
    np.testing.assert_allclose(found, decision, rtol=1e-9, atol=1e-9)
    assert one.local_coef_.shape[1] == 3 + 3 * 8 < apart.local_coef_.shape[1]
    loclin.io.save(one, tmp_path / "ensemble.loclin")
    again = loclin.io.load(tmp_path / "ensemble.loclin")
    np.testing.assert_array_equal(again.decision_function(new), one.decision_function(new))
    before = one.score(X, y)
    assert len(one.partial_fit(KINDS[kind](X), y).members_) == 4
    assert one.score(X, y) > before - 0.05


@each("weights", ["linear", "constant"])
def test_members_are_merged_after_early_stopping(all_count, monkeypatch, weights):
    X, y = problem(2)
    coding = FrozenEstimator(OrthogonalCoding(3).fit(X))
    kinds = [
        LLSVMClassifier(coding, bias="both", weights=weights, **SHORT, standardize=False),
        MEMBERS[0],
    ]
    model = LocallyLinearEnsemble(
        kinds, n_folds=6, early_stopping=True, tol=0.05, random_state=0, standardize=False
    )
    one = clone(model).fit(X, y)
    n_each = len(one.validation_losses_)
    assert len(one.members_) == 1 + n_each
    monkeypatch.setattr("loclin.ensemble.classifier.merged", lambda members: members)
    apart = clone(model).fit(X, y)
    decision = apart.decision_function(X)
    np.testing.assert_allclose(one.decision_function(X), decision, rtol=1e-9, atol=1e-9)
    del apart._n_each  # as in files of before: as many of each
    np.testing.assert_array_equal(apart.decision_function(X), decision)


def test_the_planes_of_rows_of_weight_zero_are_not_learned(all_count):
    X, y = problem(2)
    weights = np.where(np.arange(300) % 3, 1.0, 0.0)
    model = LocallyLinearEnsemble(n_folds=2, random_state=0, standardize=False).fit(X, y, weights)
    seen = OrthogonalCoding("auto").fit(X[weights > 0])
    planes = model._by_kind()[2][0].coding_.planes_
    np.testing.assert_allclose(planes, seen.planes_)


def test_each_member_leaves_a_fold_out(monkeypatch):
    X, y = problem(2)
    seen = []
    plain = ML3Classifier.fit

    def fit(self, X, y, sample_weight=None):
        seen.append({tuple(row) for row in X})
        return plain(self, X, y, sample_weight)

    monkeypatch.setattr(ML3Classifier, "fit", fit)
    LocallyLinearEnsemble(MEMBERS[:1], n_folds=3, random_state=0, standardize=False).fit(X, y)
    left_out = [{tuple(row) for row in X} - rows for rows in seen]
    assert [len(rows) for rows in left_out] == [100, 100, 100]
    assert set.union(*left_out) == {tuple(row) for row in X}


@each(
    ("n_classes", "kind"),
    [
        (2, "dense"),
        *(
            pytest.param(*c, marks=pytest.mark.slow)
            for c in [(2, "sparse"), (4, "dense"), (4, "sparse")]
        ),
    ],
)
def test_members_are_added_while_held_out_log_loss_falls(all_count, monkeypatch, n_classes, kind):
    X, y = problem(n_classes)
    seen = []
    plain = ML3Classifier.fit

    def fit(self, X, y, sample_weight=None):
        rows = X.toarray() if sparse.issparse(X) else X
        seen.append({tuple(row) for row in rows})
        return plain(self, X, y, sample_weight)

    monkeypatch.setattr(ML3Classifier, "fit", fit)
    model = LocallyLinearEnsemble(
        MEMBERS,
        n_folds=12,
        early_stopping=True,
        validation_fraction=0.2,
        tol=0.02,
        n_iter_no_change=2,
        random_state=0,
        standardize=False,
    ).fit(KINDS[kind](X), y)
    losses = model.validation_losses_
    assert 1 < len(losses) < 12
    assert len(model.members_) == 3 * len(losses)
    assert [type(one) for one in model.members_[:: len(losses)]] == [type(one) for one in MEMBERS]
    enough = [min(losses[:k]) > 0.98 * min(losses[: k - 2]) for k in range(3, len(losses) + 1)]
    assert enough == [False] * (len(enough) - 1) + [True]
    watched = np.array([tuple(row) not in set.union(*seen) for row in X])
    assert watched.sum() == 60
    total = 0.0
    for member in model.members_[:: len(losses)]:  # the first of each kind
        scores = member.decision_function(X[watched])
        centre = 0.0 if n_classes == 2 else scores.mean(axis=1, keepdims=True)
        total = total + scores / np.sqrt(np.mean((scores - centre) ** 2))

    def loss_at(log_temperature):
        scores = total / np.exp(log_temperature)
        by_class = np.c_[np.zeros_like(scores), scores] if n_classes == 2 else scores
        given = (1 - 1 / 62) * softmax(by_class, axis=1) + 1 / 62 / n_classes
        return log_loss(y[watched], given)

    best = minimize_scalar(loss_at, bounds=(-4, 4), method="bounded")
    assert best.fun <= losses[0] < 1.01 * best.fun  # ours is of 60 rows and two unknown
    again = LocallyLinearEnsemble(
        MEMBERS,
        n_folds=12,
        early_stopping=True,
        validation_fraction=0.2,
        n_iter_no_change=20,
        random_state=0,
        standardize=False,
    ).fit(KINDS[kind](X), y)
    assert len(again.validation_losses_) == 12
    np.testing.assert_array_equal(again.validation_losses_[: len(losses)], losses)
    model.partial_fit(KINDS[kind](X[:50]), y[:50])
    assert len(model.members_) == 3 * len(losses)


def test_members_have_seeds_of_their_own():
    X, y = problem(2)
    model = LocallyLinearEnsemble(MEMBERS[:1], n_folds=3, random_state=0, standardize=False).fit(
        X, y
    )
    again = LocallyLinearEnsemble(MEMBERS[:1], n_folds=3, random_state=0, standardize=False).fit(
        X, y
    )
    assert len({one.random_state for one in model.members_}) == 3
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    given = [ML3Classifier(3, random_state=5, **SHORT, standardize=False)]
    kept = LocallyLinearEnsemble(given, n_folds=2, random_state=0, standardize=False).fit(X, y)
    assert [one.random_state for one in kept.members_] == [5, 5]
    assert not hasattr(given[0], "classes_")


@pytest.mark.slow
@each("name", ["n_jobs", "serial"])
def test_the_mean_errs_less_than_its_members(name):
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X / 16.0, y, test_size=0.5, random_state=0)
    kinds = [
        ML3Classifier(6, alpha="scale", standardize=False),
        SAPLClassifier(20, 4, alpha="scale", max_iter=20, standardize=False),
    ]
    n_jobs = 2 if name == "n_jobs" else None
    model = LocallyLinearEnsemble(kinds, random_state=0, n_jobs=n_jobs, standardize=False).fit(X, y)
    errors = [1 - one.score(X_new, y_new) for one in model.members_]
    assert 1 - model.score(X_new, y_new) < 0.95 * np.mean(errors)
    alone = (
        ML3Classifier(6, alpha="scale", random_state=0, standardize=False)
        .fit(X, y)
        .predict_proba(X_new)
    )
    assert log_loss(y_new, model.predict_proba(X_new)) < 1.1 * log_loss(y_new, alone)


@each("n_classes", [2, 3])
def test_selection_finds_the_best_shares(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 2000)
    truth = np.eye(n_classes)[y]
    parts = [truth + s * rng.standard_normal(truth.shape) for s in (0.8, 1.2, 50.0)]
    parts = [part[:, 1] - part[:, 0] if n_classes == 2 else part for part in parts]
    weights = np.ones(2000)
    shares = select(parts, y, weights)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] > shares[1] > 0 == shares[2]

    def loss_of(decisions):
        return log_losses(decisions, y, weights).sum()

    loss = loss_of(sum(s * part for s, part in zip(shares, parts, strict=True)))
    grid = [loss_of(a * parts[0] + (1 - a) * parts[1]) for a in np.arange(0, 1, 0.02)]
    assert loss < min(grid) + 1e-3


@each("n_classes", [2, 3])
def test_one_row_far_from_all_others_does_not_choose_the_kinds(n_classes):
    rng = np.random.default_rng(0)
    y = np.append(rng.integers(0, n_classes, 2000), 0)
    truth = np.eye(n_classes)[y]
    good, poor = (truth + s * rng.standard_normal(truth.shape) for s in (0.2, 0.6))
    good[-1] = 1000 * np.eye(n_classes)[1]  # wrong, and sure of it
    parts = [part[:, 1] - part[:, 0] if n_classes == 2 else part for part in (good, poor)]
    shares = select(parts, y, np.ones(len(y)))
    assert shares[0] > 0.7


def test_a_kind_that_tells_nothing_does_not_count_alone():
    y, weights = np.tile([0, 1], 50), np.ones(100)
    np.testing.assert_allclose(select([np.zeros(100), np.zeros(100)], y, weights).sum(), 1)


@each("n_classes", [2, 4])
def test_a_stream(n_classes):
    X, y = problem(n_classes, 3000)
    model = LocallyLinearEnsemble(MEMBERS[:2], n_folds=2, random_state=0, standardize=False)
    for some in np.array_split(np.arange(2500), 10):
        model.partial_fit(X[some], y[some], classes=np.unique(y))
    assert model.score(X[2500:], y[2500:]) > (0.8 if n_classes == 2 else 0.6)
    P = model.predict_proba(X[2500:])
    assert log_loss(y[2500:], P) < 0.8 * np.log(n_classes)
    coef, intercept = model.local_model(X[:5])
    found = np.einsum("n...d,nd->n...", coef, X[:5]) + intercept
    np.testing.assert_allclose(found, model.decision_function(X[:5]), rtol=1e-9)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="z"):
        model.partial_fit(X[:5], ["z"] * 5)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_a_fit_goes_on_as_a_stream():
    X, y = problem(2)
    model = LocallyLinearEnsemble(MEMBERS[:2], n_folds=2, random_state=0, standardize=False).fit(
        X[:250], y[:250]
    )
    before = model.temperature_
    assert 0.3 < model.partial_fit(X[250:], y[250:]).temperature_ / before < 3


def test_rare_classes_are_never_left_out():
    X, y = problem(2)
    y = np.where(np.arange(300) < 2, "rare", y)
    model = LocallyLinearEnsemble(MEMBERS[:1], n_folds=3, random_state=0, standardize=False).fit(
        X, y
    )
    assert all(len(one.classes_) == 3 for one in model.members_)
    assert np.isfinite(model.predict_proba(X)).all()


def test_rows_of_rare_classes_are_in_no_fold_and_others_are():
    labels = np.array([0] * 20 + [1] * 20 + [2] * 2)
    folds = folds_of(labels, 5, 0)
    np.testing.assert_array_equal(folds == -1, labels == 2)
    assert (folds_of(np.repeat(np.arange(10), 2), 5, 0) == -1).all()  # all are rare
    assert (folds_of(np.array([0] * 20 + [1] * 2), 5, 0) == -1).all()  # one class is left


@pytest.mark.parametrize("n", [200, 1200])
def test_of_many_rows_members_take_over_what_the_first_of_their_kind_chose(all_count, n):
    X = np.random.default_rng(0).uniform(size=(n, 2))
    y = np.floor(5 * X[:, 0]).astype(int) % 2  # bends that few models have not
    planes = LLSVMClassifier(OrthogonalCoding(1), max_iter=10)
    kinds = [ML3Classifier(2, max_iter=10), ML3Classifier(2, max_iter=10, pieces=None), planes]
    model = LocallyLinearEnsemble(kinds, n_folds=3, random_state=0).fit(X, y)
    assert [member.pieces_ is None for member in model.members_[:6]] == [False] * 3 + [True] * 3
    maps = {id(member._features) for member in model.members_[:3]}
    assert len(maps) == (1 if n > 1000 else 3)
    roots = {id(member._root) for member in model.members_[:3]}
    assert len(roots) == 1 or n < 1000
    assert len(model.members_) == (7 if n > 1000 else 9)  # planes of one coding are merged
    pickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(pickled.decision_function(X), model.decision_function(X))
    np.testing.assert_allclose(
        describe(model).decision_function(X), model.decision_function(X), atol=1e-12
    )


def test_planes_that_the_first_of_a_kind_has_fitted_are_merged_without_change():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.floor(X[:, 0]).astype(int) % 3
    members = [LLSVMClassifier(OrthogonalCoding(2), pieces=4, max_iter=5, random_state=0).fit(X, y)]
    for fold in range(2):
        other = like_first(clone(members[0]).set_params(random_state=fold + 1), members[0])
        members.append(other.fit(X[fold::2], y[fold::2]))
        assert other._features is members[0]._features
        assert other._factor == members[0]._factor
    (one,) = merged(members)
    mean = np.mean([member.decision_function(X) for member in members], axis=0)
    np.testing.assert_allclose(one.decision_function(X), mean, atol=1e-12)
    assert np.abs(mean - members[0].decision_function(X)).max() > 1e-3
    apart = clone(members[0]).fit(X[::2], y[::2])  # planes of its own, of rows mapped alike
    apart._features = members[0]._features
    assert merged([members[0], apart]) == [members[0], apart]


def test_rows_of_weight_zero_are_not_there():
    X, y = problem(2)
    weights = np.where(np.arange(300) % 3, 1.0, 0.0)
    model = LocallyLinearEnsemble(MEMBERS[:1], n_folds=3, random_state=0, standardize=False).fit(
        X, y, weights
    )
    other = clone(model).fit(X, np.where(weights > 0, y, "b"), weights)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X))


def test_a_class_of_weight_zero_is_no_class():
    X, y = problem(4)
    model = LocallyLinearEnsemble(
        MEMBERS[:1], n_folds=3, early_stopping=True, random_state=0, standardize=False
    )
    model.fit(X, y, np.where(y == "a", 0.0, 1.0))
    assert model.classes_.tolist() == [*"bcd"]
    assert model.predict_proba(X).shape == (300, 3)
    assert not (model.predict(X) == "a").any()


def test_files(tmp_path):
    X, y = problem(4)
    model = LocallyLinearEnsemble(MEMBERS[:2], n_folds=2, random_state=0, standardize=False).fit(
        X, y
    )
    loclin.io.save(model, tmp_path / "ensemble.loclin")
    again = loclin.io.load(tmp_path / "ensemble.loclin")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_it_prints_a_line_for_each_member(capsys):
    LocallyLinearEnsemble(MEMBERS[:1], n_folds=2, random_state=0, verbose=1, standardize=False).fit(
        *problem(2)
    )
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_scorers():
    X, y = problem(4)
    model = LocallyLinearEnsemble(MEMBERS[:1], n_folds=2, random_state=0, standardize=False)
    assert np.isfinite(cross_val_score(model, X, y, scoring="neg_log_loss", cv=2)).all()


@each(
    ("changed", "match"),
    [
        ({"estimators": []}, "estimators="),
        ({"estimators": [ML3Classifier]}, "estimators="),
        ({"estimators": ["ml3"]}, "estimators="),
        ({"estimators": [SVMKNNClassifier()]}, "Nearest rows, kernels and other ensembles cannot"),
        ({"estimators": ML3Classifier(standardize=False)}, "estimators="),
        ({"n_folds": 1}, "n_folds"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"early_stopping": 1}, "early_stopping"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"early_stopping": True, "validation_fraction": 0.999}, "validation_fraction=0.999 of"),
        ({"tol": -1.0}, "tol"),
        ({"n_iter_no_change": 0}, "n_iter_no_change"),
        ({"estimators": [L3MClassifier(n_regions=1, standardize=False)]}, "n_regions"),
    ],
)
def test_bad_parameters_are_named(changed, match):
    with pytest.raises((TypeError, ValueError), match=match):
        LocallyLinearEnsemble(**changed, standardize=False).fit(*problem(2))


def test_weights_of_any_size():
    X, y = make_classification(200, random_state=0)
    weights = np.random.default_rng(0).uniform(0.5, 1.0, len(y))
    small = LocallyLinearEnsemble(
        [ML3Classifier(2, standardize=False)], n_folds=2, random_state=0, standardize=False
    )
    model, other = (clone(small).fit(X, y, w) for w in (weights, weights * 2.0**1022))
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X))
    other.partial_fit(X, y, sample_weight=weights * 2.0**1022)
    assert np.isfinite(other.predict_proba(X)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("learn", ["fit", "fit of few rows", "early stopping", "stream"])
def test_a_data_frame_is_taken_without_a_warning(learn):
    X, y = problem(3, 60)
    frame = pd.DataFrame(X, columns=[*"uvwxyz"])
    model = LocallyLinearEnsemble(
        [LLSVMClassifier(max_iter=20, tol=10.0, alpha="scale", metric=None, standardize=False)],
        n_folds=2, early_stopping=learn == "early stopping", random_state=0, standardize=False,
    )  # fmt: skip
    if learn == "fit of few rows":
        y[:] = "a"
        y[0] = "b"  # no fold can hold it out
    if learn == "stream":
        for rows in np.array_split(np.arange(60), 3):
            model.partial_fit(frame.iloc[rows], y[rows], [*"abc"])
    else:
        model.fit(frame, y)
    assert model.feature_names_in_.tolist() == [*"uvwxyz"]
    for told in (model.predict, model.predict_proba, model.local_weights, model.local_model):
        told(frame)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X)


def test_wide_rows_of_many_classes_have_no_anchors():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(300), 3)
    columns = rng.integers(0, 2**20, (300, 20))[y]
    rows = sparse.csr_matrix(
        (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 20)), (900, 2**20)
    )
    assert [type(kind).__name__ for kind in kinds_of(None, rows, None, 300, 5, 0)] == [
        "ML3Classifier"
    ]
    few = kinds_of(None, rows[y < 30], None, 30, 5, 0)
    assert [type(kind).__name__ for kind in few] == ["ML3Classifier", "SAPLClassifier"]


@pytest.mark.parametrize(
    ("n_samples", "n_numbers", "expected"),
    [(50, 10, 5), (50, 0, 5), (5, 10, 1), (10_000, 20 * 36_568, 100), (10_000, 2**27 // 20, 20),
     (10_000, 2**30, 8), (40, 2**30, 4)],
)  # fmt: skip
def test_default_anchors_are_bounded_by_memory(n_samples, n_numbers, expected):
    assert default_n_anchors(n_samples, n_numbers) == expected


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_rows_without_a_value_are_learned():
    labels = np.arange(60) % 3
    model = LocallyLinearEnsemble([ML3Classifier()], n_folds=2, random_state=0)
    for estimators in (None, [ML3Classifier()]):
        model.set_params(estimators=estimators)
        assert set(model.fit(sparse.csr_matrix((60, 40)), labels).predict(np.zeros((3, 40)))) <= {
            0, 1, 2,
        }  # fmt: skip
