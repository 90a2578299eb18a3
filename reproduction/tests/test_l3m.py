"""The L3M table runs on tiny problems, and goes on from its JSON file."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from benchmarks import choices, l3m_tables


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Blobs in place of every set, two regions, few settings."""
    X, y = make_blobs(150, 4, centers=6, cluster_std=2.0, random_state=0)
    y %= 3

    def load(name):
        if name == "banana":
            return SimpleNamespace(X_train=X, y_train=y, X_test=None, y_test=None)
        return SimpleNamespace(X_train=X[:90], y_train=y[:90], X_test=X[90:], y_test=y[90:])

    monkeypatch.setattr(l3m_tables, "load", load)
    for module in (choices, l3m_tables):
        monkeypatch.setattr(module, "FOLDS", 2)
        monkeypatch.setattr(module, "COARSE", (-4, -2))
        monkeypatch.setattr(module, "LIMITS", (-5, -1))
    monkeypatch.setattr(l3m_tables, "PREPARE", {"standardise": choices.PREPARE["standardise"]})
    monkeypatch.setattr(l3m_tables, "REGIONS", 2)
    monkeypatch.setattr(l3m_tables, "BANANA_ROWS", 60)
    monkeypatch.setattr(l3m_tables, "CONVEX", {"segment": ((1, 2), 1)})
    monkeypatch.setattr(l3m_tables, "PART", ((1,), 2))
    forests = l3m_tables.FORESTS
    monkeypatch.setattr(l3m_tables, "FORESTS", dict.fromkeys(forests, forests["tree"]))
    for row in l3m_tables.ROWS.values():
        fixed = tuple(knob._replace(low=1, high=1, start=1) for knob in row.knobs)
        monkeypatch.setitem(row.__dict__, "knobs", fixed)


def test_every_row_runs_and_a_stopped_run_goes_on(tmp_path, capsys):
    file = tmp_path / "l3m.json"
    command = ["table2", "segment", "banana", "--jobs=1", "--seeds=2", "--splits=2",
               "--json", str(file)]  # fmt: skip
    l3m_tables.main(command)
    out = capsys.readouterr().out
    assert " nan" not in out
    for name, row in l3m_tables.ROWS.items():
        fits = 2 if row.how in l3m_tables.RANDOM else 1
        for of_set, n in (("segment", fits), ("banana", 2)):
            line = next(r for r in out.splitlines() if r.startswith(f"  {of_set}, {name}: "))
            assert f"({n} fits); paper " in line
    assert "alpha = 2 / (lambda n): training error" in out
    assert "4 pairs of 1 draws" in out
    assert "1 pairs of 2 draws" in out
    stored = json.loads(file.read_text())
    errors = [run[0] for key, v in stored.items() if key.endswith("test") for run in v["result"]]
    assert max(errors) < 60
    l3m_tables.main(command)
    assert capsys.readouterr().out == out
    assert json.loads(file.read_text()) == stored


def test_mixture_discriminant_analysis_finds_clusters():
    X, y = make_blobs(600, 2, centers=4, cluster_std=0.5, random_state=3)
    model = l3m_tables.MixtureDiscriminant(2, random_state=0).fit(X, y % 2)
    assert np.mean(model.predict(X) == y % 2) > 0.99
