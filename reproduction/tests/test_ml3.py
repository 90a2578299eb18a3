"""The ML3 tables run on tiny problems, and go on from their JSON file."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from sklearn.datasets import make_blobs

from benchmarks import choices, ml3_tables


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Blobs in place of every set, three models, few settings and epochs."""
    X, y = make_blobs(150, 4, centers=6, cluster_std=2.0, random_state=0)
    y %= 3

    def load(name):
        if name in ("letter", "usps", "mnist"):
            return SimpleNamespace(X_train=X[:90], y_train=y[:90], X_test=X[90:], y_test=y[90:])
        return SimpleNamespace(X_train=X, y_train=y, X_test=None, y_test=None)

    for module in (choices, ml3_tables):
        monkeypatch.setattr(module, "load", load)
        monkeypatch.setattr(module, "FOLDS", 2)
        monkeypatch.setattr(module, "COARSE", (-4, -2))
        monkeypatch.setattr(module, "LIMITS", (-5, -1))
    monkeypatch.setattr(ml3_tables, "PREPARE", {"standardise": choices.PREPARE["standardise"]})
    monkeypatch.setattr(ml3_tables, "M", dict.fromkeys((*ml3_tables.TABLE_1, "heart"), 3))
    for name, row in ml3_tables.ROWS.items():
        fixed = tuple(knob._replace(low=1, high=1) for knob in row.knobs)
        changed = replace(row, knobs=fixed, epochs=row.epochs // 10)
        monkeypatch.setitem(ml3_tables.ROWS, name, changed)


def test_every_row_runs_and_a_stopped_run_goes_on(tmp_path, capsys):
    file = tmp_path / "ml3.json"
    command = ["usps", "heart", "--jobs=1", "--seeds=2", "--splits=3", "--json", str(file)]
    ml3_tables.main(command)
    out = capsys.readouterr().out
    assert " nan" not in out
    for name, row in ml3_tables.ROWS.items():
        fits = 2 if row.how in ml3_tables.RANDOM else 1
        assert any(
            line.startswith(f"  usps, {name}: ") and f"({fits} fits)" in line
            for line in out.splitlines()
        )
        assert row.table_2 == (f"  heart, {name}: " in out)
    stored = json.loads(file.read_text())
    errors = [run[0] for key, v in stored.items() if key.endswith("test") for run in v["result"]]
    assert max(errors) < 60
    ml3_tables.main(command)
    assert capsys.readouterr().out == out
    assert json.loads(file.read_text()) == stored


def test_covertype_is_class_1_against_the_rest():
    problem = ml3_tables.problem_of("covtype1")
    assert set(problem.y) == {0, 1}
    assert len(problem.X_test) == 15
    assert problem.X.min() == 0


def test_more_epochs_take_the_choice_of_the_paper_s(tmp_path):
    cache = choices.Cache(tmp_path / "ml3.json")
    found = [ml3_tables.runs_of(name, "letter", 1, 1, cache) for name in ("ML3", "ML3, 60 epochs")]
    assert {key for key in cache.stored if key.endswith("choice")} == {"letter | ML3 | choice"}
    assert found[0] != found[1]
