"""The OCC tables run on a tiny problem, and go on from their JSON file."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from benchmarks import choices, occ_figures, occ_tables


@pytest.fixture
def tiny(monkeypatch):
    """Three blobs in place of USPS, four planes or anchors, one preprocessing."""
    X, y = make_blobs(90, 5, centers=3, cluster_std=3.0, random_state=0)
    data = SimpleNamespace(X_train=X[:60], y_train=y[:60], X_test=X[60:], y_test=y[60:])
    rows = {
        name: replace(row, cells={"usps": (4, 5.0), "mnist": (4, None)}, knobs=row.knobs[:1])
        for name, row in occ_tables.ROWS.items()
    }
    scale = choices.Knob("scale", 1, 10, 1, 1)
    improved = occ_tables.IMPROVED
    rows[improved] = replace(rows[improved], knobs=(choices.Knob("n_tangents", 2, 2, 1, 2), scale))
    monkeypatch.setattr(choices, "load", lambda name: data)
    monkeypatch.setattr(occ_tables, "ROWS", rows)
    monkeypatch.setattr(choices, "FOLDS", 2)
    monkeypatch.setattr(choices, "COARSE", (-2, 0))
    monkeypatch.setattr(choices, "LIMITS", (-3, 1))
    monkeypatch.setattr(occ_tables, "PREPARE", {
        name: occ_tables.PREPARE[name] for name in ("standardise", "unit rows, centre")
    })  # fmt: skip
    monkeypatch.setattr(occ_tables, "passes_of", lambda n: 10)
    return rows


def test_every_row_runs_and_a_stopped_run_goes_on(tiny, tmp_path, monkeypatch, capsys):
    file = tmp_path / "occ.json"
    command = ["table2", "usps", "--jobs=1", "--seeds=2", "--json", str(file), "--rows"]
    occ_tables.main([*command, *tiny])
    first = capsys.readouterr().out
    assert "nan" not in first
    for name in tiny:
        assert f"usps, {name} [4], n=60: " in first
    stored = json.loads(file.read_text())
    errors = [v["result"] for key, v in stored.items() if key.endswith("n=60")]
    assert len(errors) == len(tiny)
    assert all(0 <= run[0] < 66 for runs in errors for run in runs)

    changed = "LL-SVM"
    monkeypatch.setitem(tiny, changed, replace(tiny[changed], cells={"usps": (3, 5.0)}))
    searched = []
    search_for = occ_tables.search_for
    monkeypatch.setattr(
        occ_tables, "search_for",
        lambda name, problem, size, *more: searched.append(size)
        or search_for(name, problem, size, *more),
    )  # fmt: skip
    monkeypatch.setattr(occ_tables, "n_seeds", lambda *args: 2)
    occ_tables.main([*command, *tiny])
    assert searched == [3]
    again = capsys.readouterr().out
    kept = [line for line in first.splitlines() if changed not in line]
    assert kept == [line for line in again.splitlines() if changed not in line]


def test_grids_grow_at_their_edges(tiny, monkeypatch):
    problem = occ_tables.problem_named("usps")
    monkeypatch.setattr(choices, "LIMITS", (-10, 6))
    name = "Linear SVM + LCC (512)"
    search = occ_tables.search_for(name, problem, 4, 1, choices.Notes())

    def evaluate(wanted):
        for case, ks in wanted.items():
            far = abs(np.log10(dict(case[1])["locality"] / 0.9))
            search.errors |= {(case, k): abs(k + 6) + far for k in ks}

    monkeypatch.setattr(search, "evaluate", evaluate)
    choice = occ_tables.chosen_by(search, occ_tables.ROWS[name], None)
    assert choice["k"] == -6
    assert choice["knobs"].keys() == {"locality", "loss"}
    assert choice["knobs"]["locality"] == pytest.approx(0.9)
    assert "factor 0.001 (standardise)" in choice["grown"]
    assert "locality 0.9" in choice["grown"]


@pytest.mark.parametrize(
    ("mean", "std", "kind"), [(4.9, 0, "better"), (5.1, 0.2, "within noise"), (5.3, 0.2, "worse")]
)
def test_verdict(mean, std, kind):
    assert kind in choices.verdict(mean, std, 5.0)


def test_figure(tiny, monkeypatch):
    monkeypatch.setattr(occ_figures, "SYSTEMS", occ_figures.SYSTEMS[:2])
    monkeypatch.setattr(occ_figures, "PLANES", {"usps": (2, 4)})
    cache = choices.Cache(None)
    found = occ_figures.figure_2("usps", cache)
    assert found["x"] == [2, 4]
    assert list(found["curves"]) == occ_figures.SYSTEMS
    assert all(0 <= error < 66 for curve in found["curves"].values() for error in curve)
    before = dict(cache.stored)
    assert occ_figures.figure_2("usps", cache) == found
    assert cache.stored == before
