"""L3M's figures run on tiny problems; costs are those of the models."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier

from benchmarks import l3m_figures
from benchmarks.choices import Problem


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Blobs in place of every set, few settings."""
    X, y = make_blobs(120, 4, centers=6, cluster_std=2.0, random_state=0)
    problem = Problem("blobs", X[:90], y[:90] % 3, X[90:], y[90:] % 3, 90)
    monkeypatch.setattr(l3m_figures, "problem_of", lambda name: problem)
    for name, value in {"SEEDS": 2, "REGIONS": (2, 3), "STUMPS": (1, 3), "NUS": (0.1, 0.9),
                        "FACTORS": (-4,), "RUNS": 1}.items():  # fmt: skip
        monkeypatch.setattr(l3m_figures, name, value)
    for solver, tried in l3m_figures.TRIED.items():
        last = tried[-1] | ({"n_restarts": 2} if solver == "convex" else {})
        monkeypatch.setitem(l3m_figures.TRIED, solver, [last])


def test_pictures(capsys, tmp_path):
    command = ["figure3", "line", "--json", str(tmp_path / "f.json")]
    l3m_figures.main(command)
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines()] == ["convex", "online", "refined"]
    assert "perfect on 2 of 2" in out.splitlines()[-1]


def test_costs(capsys):
    l3m_figures.main(["figure6", "vowel"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["L3M,", "AdaBoost,", "nu-SVM"]
    assert "20: " in lines[0]
    assert "24: " in lines[0]  # 4 features times 3 regions and 3 classes
    assert lines[1].split("stumps")[1].split()[0] == "3:"  # one stump a class
    points = [part for part in lines[2].split() if part.endswith(":")]
    assert len(points) == 1  # 0.9 is infeasible


def test_stumps_cost_one_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    points = l3m_figures.by_stumps(X, (X[:, 0] > 0).astype(int), X, (X[:, 0] > 0).astype(int))
    assert points[0][0] == 1
    truth = DecisionTreeClassifier(max_depth=1).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0)
    assert points[0][1] == pytest.approx(100 * (1 - truth))
