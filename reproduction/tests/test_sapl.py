"""The SAPL tables run on tiny problems, and go on from their JSON file."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import hinge_loss

from benchmarks import choices, sapl_figures, sapl_tables
from benchmarks.reproduce import shapes


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Blobs in place of every set, nine anchors, few settings and passes."""
    X, y = make_blobs(120, 4, centers=6, cluster_std=2.0, random_state=0)
    y %= 3
    data = SimpleNamespace(X_train=X[:80], y_train=y[:80], X_test=X[80:], y_test=y[80:])
    for module in (choices, sapl_tables):
        monkeypatch.setattr(module, "load", lambda name: data)
        monkeypatch.setattr(module, "FOLDS", 2)
        monkeypatch.setattr(module, "COARSE", (-2, 0))
        monkeypatch.setattr(module, "LIMITS", (-3, 1))
    for module in (sapl_tables, sapl_figures):
        monkeypatch.setattr(module, "PREPARE", {"standardise": choices.PREPARE["standardise"]})
    small = dict.fromkeys(sapl_tables.SETS, 9) | {"sine": 4}
    monkeypatch.setattr(sapl_tables, "N_ANCHORS", small)
    monkeypatch.setattr(sapl_tables, "N_NEIGHBORS", 4)
    monkeypatch.setattr(sapl_tables, "PASSES", dict.fromkeys((*sapl_tables.SETS, "sine"), 4))
    for row in sapl_tables.ROWS.values():
        fixed = tuple(knob._replace(low=1, high=1) for knob in row.knobs)
        monkeypatch.setitem(row.__dict__, "knobs", fixed)


@pytest.fixture
def run(tmp_path, capsys):
    file = tmp_path / "sapl.json"

    def table(what, *arguments):
        sapl_tables.main([what, *arguments, "--jobs=1", "--seeds=2", "--json", str(file)])
        return capsys.readouterr().out

    table.file = file
    return table


def test_table_2(run):
    out = run("table2", "usps", "banana")
    assert " nan" not in out
    for name in sapl_tables.ROWS:
        fits = 1 if name in ("Linear SVM", "Kernel SVM") else 2
        for of_set, n in (("usps", fits), ("banana", 2)):
            line = next(row for row in out.splitlines() if row.startswith(f"  {of_set}, {name}: "))
            assert f"({n} fits; " in line
    stored = json.loads(run.file.read_text())
    assert sum(key.endswith("choice") for key in stored) == 3 * len(sapl_tables.ROWS)
    found = [run[0] for key, v in stored.items() if key.endswith("test") for run in v["result"]]
    assert min(found) > 40
    assert run("table2", "usps", "banana") == out
    assert json.loads(run.file.read_text()) == stored


@pytest.mark.parametrize(
    ("found", "kind"),
    [([94.6, 94.4], "at or above"), ([94.0, 94.8], "below, within one standard error of the seeds"),
     ([94.41, 94.42], "below, within one standard error of the test split"), ([90, 91], "below (")],
)  # fmt: skip
def test_verdicts(found, kind):
    line = sapl_tables.line_of("usps", "LLC-SAPL", np.array([[a, 1.0] for a in found]), 2007)
    assert kind in line


def test_table_3(run):
    out = run("table3", "usps")
    assert "x its bare products" in out
    assert "support vectors" in out


def test_figures(monkeypatch):
    for constant, value in {"M": (2, 5), "EPOCHS": 3, "SEEDS": 2}.items():
        monkeypatch.setattr(sapl_figures, constant, value)
    monkeypatch.setattr(shapes, "GRID", 9)
    cache = choices.Cache(None)
    first = sapl_figures.figure_1(cache)
    llsvm, sapl, kernel = first["panels"]
    assert len(sapl["errors"]) == 2
    assert len(llsvm["marked"]) == len(sapl["marked"]) == 4
    assert kernel["title"].endswith("vectors")
    assert [len(line) for line in sapl["cells"]] == [9] * 9
    second = sapl_figures.figure_2("usps", cache)
    assert [len(curve) for curve in second["curves"].values()] == [2, 2]
    third = sapl_figures.figure_3("usps", cache)
    objective = third["curves"]["LLC-SAPL_lcc, objective (100: at first)"]
    assert objective[0] == 100
    assert len(objective) == 3
    before = dict(cache.stored)
    assert [sapl_figures.figure_1(cache), sapl_figures.figure_2("usps", cache),
            sapl_figures.figure_3("usps", cache)] == [first, second, third]  # fmt: skip
    assert cache.stored == before


def test_the_objective_is_that_of_the_model(run):
    problem = sapl_tables.problem_of("usps")
    choice = {"prepare": "standardise", "k": -2, "knobs": {"bandwidth": 1.0, "anchor_lr": 1.0}}
    row = sapl_tables.ROWS["LLC-SAPL"]
    objective, test = np.transpose(sapl_figures.epochs(row, problem, choice, 3))
    A, B = sapl_tables.prepared(problem, choice)
    system = sapl_tables.System(row, "usps", A, problem.y, choice["knobs"], 0)
    model = system.learner(0.1, max_iter=3, tol=0.0, average=1).fit(A, problem.y)
    scores = model.decision_function(A)
    loss = sum(hinge_loss(problem.y == c, scores[:, c]) for c in range(3))
    penalty = model.alpha_ / 2 * np.linalg.norm(model.local_coef_) ** 2
    assert objective[-1] == pytest.approx(penalty + loss)
    assert test[-1] == pytest.approx(100 * model.score(B, problem.y_test))
