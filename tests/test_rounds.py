"""Many rows: an iteration takes a round of them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from loclin import LLSVMClassifier, ML3Classifier, SAPLClassifier
from loclin.codings import SoftAssignmentCoding
from loclin.engine.coders import Given
from loclin.engine.data import Rows
from loclin.engine.rounds import Rounds
from loclin.engine.sgd import SGDFit
from loclin.fitting.ending import Plateau
from loclin.fitting.rows import hold_out, weigh
from loclin.ml3.cccp import CCCP

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows", "no_metric")

freeze = CCCP.freeze
KINDS = {"dense": np.asarray, "sparse": sparse.csr_matrix}


def sines(n, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 4))
    return X, np.where(np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] / 2 > 0, "yes", "no")


MODELS = {
    "ml3": ML3Classifier(8, random_state=0, standardize=False),
    "ml3 kmeans": ML3Classifier(8, init="kmeans", metric=None, random_state=0, standardize=False),
    "ml3 coding": ML3Classifier(
        8, init=SoftAssignmentCoding(8, 3), metric=None, random_state=0, standardize=False
    ),
    "llsvm": LLSVMClassifier(SoftAssignmentCoding(30, 4), random_state=0, standardize=False),
    "llsvm constant": LLSVMClassifier(
        SoftAssignmentCoding(60, 4),
        weights="constant",
        bias="global",
        random_state=0,
        standardize=False,
    ),
    "sapl": SAPLClassifier(12, 4, max_iter=60, random_state=0, standardize=False),
    "sapl own": SAPLClassifier(
        12, 4, share_anchors=False, metric=None, max_iter=60, random_state=0, standardize=False
    ),
}


def rows_of(n):
    return Rows(np.arange(2.0 * n).reshape(n, 2), np.arange(n, dtype=np.int32), np.ones(n))


@pytest.mark.parametrize(("n", "n_rows"), [(10_000, 3000), (9_999, 1), (300, 64), (65, 10)])
def test_passes_take_every_row_once_in_another_order(n, n_rows):
    rounds, seen, orders = Rounds(rows_of(n), n_rows, np.random.default_rng(0)), [], []
    while len(orders) < 3:
        parts = list(rounds.next())
        assert sum(len(part.y) for part in parts) >= n_rows
        seen += [part.y for part in parts]
        for part in parts:
            np.testing.assert_array_equal(part.X[:, 0], 2.0 * part.y)
        found = np.concatenate(seen)
        if len(found) >= n:
            np.testing.assert_array_equal(np.sort(found[:n]), np.arange(n))
            orders.append(found[:n])
            seen = [found[n:]]
    assert n <= 65 or not np.array_equal(orders[0], orders[1])


def test_few_rows_are_left_as_they_are():
    rows, rng = rows_of(100), np.random.default_rng(0)
    rounds = Rounds(rows, None, rng)
    assert [part is rows for part in rounds.next()] == [True]
    assert rounds.some() is rows
    assert rounds.passed == 100
    assert rounds.averaged(3.0) == 3.0
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_some_rows_leave_no_class_out():
    y = np.zeros(5000, np.int32)
    y[4321] = 1
    some = Rounds(rows_of(5000)._replace(y=y), 10, np.random.default_rng(0)).some()
    assert 10 <= len(some.y) <= 12
    assert set(some.y) == {0, 1}


FIRST = [("ml3", "sparse"), ("llsvm", "sparse"), ("sapl", "dense")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[] if (name, kind) in FIRST else [pytest.mark.slow])
        for name in MODELS
        for kind in ("dense", "sparse")
    ],
)
def test_rounds_learn_as_passes_do(name, kind):
    X, y = sines(6000)
    X_test, y_test = sines(2000, seed=1)
    passes, rounds = (
        type(MODELS[name])(
            **MODELS[name].get_params(deep=False) | {"round_rows": size, "alpha": "scale"}
        ).fit(KINDS[kind](X), y)
        for size in (None, 2000)
    )
    assert rounds.score(X_test, y_test) > passes.score(X_test, y_test) - 0.02
    assert rounds.score(X_test, y_test) > 0.9 or "constant" in name or "llsvm" in name
    assert rounds.alpha_ == pytest.approx(passes.alpha_, rel=0.1)
    assert rounds.t_ < 3 * passes.t_
    coef, intercept = rounds.local_model(X_test[:5])
    decision = rounds.decision_function(X_test[:5])
    np.testing.assert_allclose(np.einsum("nd,nd->n", coef, X_test[:5]) + intercept, decision)


def test_a_plateau_is_a_fall_by_tol_and_by_a_share():
    for tol, share, waits in ((0.1, 0.0, 0), (0.3, 0.0, 1), (0.1, 0.2, 0), (0.0, 0.3, 1)):
        plateau = Plateau(tol, 2, share)
        assert not plateau.reached(1.0)
        assert not plateau.reached(0.75)
        assert plateau.waited == waits
        assert plateau.replay([0.75, 0.75]) == 2 - waits


@pytest.mark.parametrize("early", [False, True])
def test_rounds_of_sapl_end_by_a_share_of_the_objective_and_average_more(early):
    model = SAPLClassifier(
        n_anchors=20, tol=0.01, early_stopping=early, random_state=0, standardize=False
    )
    ends = iterations_after(model, Plateau(0.001, 2, 0.025))
    assert ends == {None: 3, 2000: 24}


@pytest.mark.parametrize("early", [False, True])
def test_rounds_of_ml3_end_later(early):
    model = ML3Classifier(8, tol=0.01, early_stopping=early, random_state=0, standardize=False)
    ends = iterations_after(model, Plateau(0.01, 4))
    assert ends == {None: 3, 2000: 3}


def iterations_after(model, of_rounds):
    """Return by rows of a round how many iterations follow its plateau."""
    X, y = sines(6000)
    ends = {}
    for size in (None, 2000):
        model.set_params(round_rows=size, n_iter_no_change=2, average=3, alpha="scale",
                         metric=None, calibrate=False)  # fmt: skip
        watched, plateau = model.fit(X, y).objective_, Plateau(0.01, 2)
        if model.early_stopping:
            watched = [-score for score in model.validation_scores_]
        elif size:
            plateau = of_rounds
        ends[size] = model.n_iter_ - plateau.replay(watched)
    return ends


def test_rounds_of_ml3_freeze_codes_by_batch(monkeypatch):
    frozen = []
    monkeypatch.setattr(CCCP, "freeze", lambda self, X, y: frozen.append(X) or freeze(self, X, y))
    for size, n in ((None, 3), (2000, 0)):
        frozen.clear()
        ML3Classifier(2, round_rows=size, max_iter=3, average=0, tol=0, alpha="scale",
                      metric=None, calibrate=False,
                      standardize=False).fit(*sines(6000))  # fmt: skip
        assert len(frozen) == n


def test_all_iterations_make_a_pass_at_least():
    X, y = sines(9000)
    model = ML3Classifier(
        2, max_iter=2, round_rows=1000, average=0, alpha="scale", random_state=0, standardize=False
    )
    assert 9000 <= model.fit(X, y).t_ <= 3 * (4500 + 2560)  # the starting round is one of three


def test_a_fit_in_rounds_goes_on():
    X, y = sines(6000)
    model = ML3Classifier(
        8, max_iter=20, round_rows=2000, warm_start=True, random_state=0, standardize=False
    )
    before = model.fit(X, y).t_
    objective = model.objective_[-1]
    model.fit(X, y)
    assert model.t_ > before
    assert model.objective_[-1] < objective


def test_sorted_rows_are_shuffled():
    X, y = sines(6000)
    order = np.argsort(y, kind="stable")
    X_test, y_test = sines(2000, seed=1)
    model = ML3Classifier(8, round_rows=2000, random_state=0, standardize=False).fit(
        X[order], y[order]
    )
    assert model.score(X_test, y_test) > 0.93


@pytest.mark.parametrize("size", [0, -1, 2.5, "all"])
def test_bad_round_rows(size):
    for model in MODELS.values():
        with pytest.raises((TypeError, ValueError), match="round_rows"):
            type(model)(round_rows=size).fit(*sines(50))


def test_parts_held_out_and_learned_weigh_1_in_the_mean():
    rng = np.random.default_rng(0)
    weights = np.append(np.full(50, 1e-3), np.ones(50))
    rows = weigh(rng.standard_normal((100, 2)), np.arange(100) % 2, None, weights)
    for part in hold_out(rows, 0.3, 0):
        assert part.weights.mean() == pytest.approx(1)
        ratios = part.weights / rows.weights[part.origin]
        np.testing.assert_allclose(ratios, ratios[0])


@pytest.mark.parametrize(
    ("n_rows", "as_pass", "pace", "of_coder"),
    [
        (None, 4, 1.0, 1.0),
        (100, 2, 0.6, 1.0),
        (100, 4, 0.6, 1.0),
        (50, 2, 1.2, 1.2),
        (50, 4, 1.0, 1.2),
        (40, 4, 1.0, 1.5),
        (12, 4, 2.5, 5.0),
        (1, 2, 60.0, 5.0),
        (100, 1, 0.6, 1.0),
        (50, 1, 2.4, 1.2),
    ],
)
def test_what_a_row_of_rounds_counts_as_and_to_a_coder_as_five_at_most(
    n_rows, as_pass, pace, of_coder
):
    rows, rng = Rows(np.zeros((120, 1)), np.zeros(120, np.int32), np.ones(120)), None
    solver = SimpleNamespace(t=7.0, coder=Given())
    rounds = Rounds(rows, n_rows, rng, passed=10, as_pass=as_pass)
    SGDFit(solver, rounds, None, rng)
    assert solver.t == 7.0 + 10 * pace
    assert solver.coder.pace == of_coder


@pytest.mark.parametrize(("name", "smaller"), [("ml3", 15), ("sapl", 10), ("llsvm", 1)])
def test_in_rounds_steps_begin_at_a_part_of_eta0(name, smaller):
    starts, (X, y) = {}, sines(300)
    rows = weigh(X, np.unique(y, return_inverse=True)[1], None, None)
    for size in (None, 200):
        model = clone(MODELS[name]).set_params(round_rows=size, alpha=1e-3, eta0=10.0)
        model.fit(X, y)
        procedure = model._recipe(0).start(rows, np.random.default_rng(0), None)
        starts[size] = getattr(procedure, "inner", procedure).t_start
    assert starts[200] == pytest.approx(smaller * starts[None], rel=0.2)


@pytest.mark.parametrize(("name", "rounds_as_pass"), [("ml3", 1), ("sapl", 4), ("llsvm", 2)])
def test_steps_fall_as_if_a_few_rounds_were_all_rows(name, rounds_as_pass):
    X, y = sines(600)
    model = clone(MODELS[name]).set_params(round_rows=50, alpha=1e-3, max_iter=20).fit(X, y)
    rows = weigh(X, np.unique(y, return_inverse=True)[1], None, None)
    procedure = model._recipe(0).start(rows, np.random.default_rng(0), None)
    assert getattr(procedure, "inner", procedure).rounds.pace == 600 / (50 * rounds_as_pass)
