"""What the papers' systems, costs and splits are."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import hinge_loss
from sklearn.tree import DecisionTreeClassifier

from loclin.datasets import make_xor
from reproduction import choices
from reproduction.data import Problem
from reproduction.l3m import as_printed, costs
from reproduction.l3m.tables import MixtureDiscriminant
from reproduction.ml3 import tables as ml3
from reproduction.occ import diagnose
from reproduction.occ import tables as occ
from reproduction.sapl import figures as sapl_figures
from reproduction.sapl import tables as sapl
from reproduction.ussvm.data import Split


@pytest.fixture
def blobs():
    X, y = make_blobs(120, 4, centers=6, cluster_std=2.0, random_state=0)
    y %= 3
    return Problem("blobs", X[:80], y[:80], X[80:], y[80:], 80)


def test_covertype_is_class_1_against_the_rest(digits):
    problem = ml3.problem_of("covtype1")
    assert set(problem.y) == {0, 1}
    assert len(problem.X_test) == round(len(problem.X) / 9)
    assert problem.X.min() == 0


def test_grids_grow_at_their_edges(blobs, monkeypatch):
    monkeypatch.setattr(choices, "LIMITS", (-10, 6))
    monkeypatch.setattr(choices, "sized", lambda full, quick: full)
    row = occ.ROWS[occ.LCC]
    search = occ.search_for(row, blobs, 4, None)

    def evaluate(wanted):
        for case, ks in wanted.items():
            far = abs(np.log10(dict(case[1])["locality"] / 0.9))
            search.errors |= {(case, k): abs(k + 6) + far for k in ks}

    monkeypatch.setattr(search, "evaluate", evaluate)
    choice = occ.chosen_by(search, row, None)
    assert choice["k"] == -6
    assert choice["knobs"].keys() == {"locality", "loss"}
    assert choice["knobs"]["locality"] == pytest.approx(0.9)
    assert "factor 0.00032 (standardise)" in choice["grown"]
    assert "locality 0.9" in choice["grown"]


def test_occ_is_diagnosed(digits, tmp_path, capsys):
    words = ["usps", "--rows", "PEG-LLSVM + G-OCC", "--results", str(tmp_path)]
    diagnose.main(words)
    out = capsys.readouterr().out
    assert "usps, PEG-LLSVM + G-OCC, seed 0: " in out
    assert "28 settings" in out  # two preparations, two more numbers of planes, seven strengths
    diagnose.main(words)
    assert capsys.readouterr().out == out


def test_sapl_s_objective_is_that_of_the_model(blobs):
    choice = {"prepare": "standardise", "k": -2, "knobs": {"bandwidth": 1.0, "anchor_lr": 1.0}}
    row = sapl.ROWS["LLC-SAPL"]
    objective, test = np.transpose(sapl_figures.epochs(row, blobs, choice, 3))
    A, B = sapl.prepared(blobs, choice)
    system = sapl.System(row, "blobs", A, blobs.y, choice["knobs"], 0)
    model = system.learner(0.1, max_iter=3, tol=0.0, average=1).fit(A, blobs.y)
    scores = model.decision_function(A)
    loss = sum(hinge_loss(blobs.y == c, scores[:, c]) for c in range(3))
    penalty = model.alpha_ / 2 * np.linalg.norm(model.local_coef_) ** 2
    assert objective[-1] == pytest.approx(penalty + loss)
    assert test[-1] == pytest.approx(100 * model.score(B, blobs.y_test))


def test_mixture_discriminant_analysis_finds_clusters():
    X, y = make_blobs(600, 2, centers=4, cluster_std=0.5, random_state=3)
    model = MixtureDiscriminant(2, random_state=0).fit(X, y % 2)
    assert np.mean(model.predict(X) == y % 2) > 0.99


def test_multiplications_are_those_of_the_models(blobs, monkeypatch):
    monkeypatch.setattr(costs, "NUS", (0.1, 0.9))
    rows = blobs.X, blobs.y, blobs.X_test, blobs.y_test
    assert [cost for cost, _ in costs.by_regions(*rows)] == [4 * (2 + 3), 4 * (3 + 3)]
    assert costs.by_stumps(*rows)[0][0] == 3  # one stump a class
    assert len(costs.by_nu(*rows)) == 1  # 0.9 is infeasible


def test_stumps_cost_one_each():
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    cost, error = costs.by_stumps(X, y, X, y)[0]
    assert cost == 1
    assert error == pytest.approx(
        100 * (1 - DecisionTreeClassifier(max_depth=1).fit(X, y).score(X, y))
    )


def test_the_library_s_online_algorithm_learns():
    X, y = make_xor(1000, std=0.25, random_state=0)
    signs = np.where(y == y.max(), 1, -1)
    assert len(as_printed.as_printed(X, signs, (500, 1000), 0)) == 2
    assert as_printed.corrected(X, y, (500, 1000), 0)[-1] < 0.15


def test_classes_are_kept_apart(digits):
    split = Split("letter", 0, 20, 2)
    assert (len(split.new), len(split.y_old)) == (3, 20)
    assert not set(split.y_old) & set(split.new)
    assert set(split.y) == set(split.y_test) == set(split.new)
    assert split.X_old.shape[1] == split.X_test.shape[1] == 90  # as many as rows, at most 300
