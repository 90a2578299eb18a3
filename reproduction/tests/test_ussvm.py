"""The transfer figure of US-SVM, on digits in the place of letters."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from benchmarks import ussvm_tables


@pytest.fixture
def digits(monkeypatch):
    X, y = load_digits(return_X_y=True)
    X += np.random.default_rng(0).normal(size=X.shape)  # no feature is constant
    data = SimpleNamespace(X_train=X[:1000], y_train=y[:1000], X_test=X[1000:], y_test=y[1000:])
    monkeypatch.setattr(ussvm_tables, "load", lambda name: data)
    monkeypatch.setattr(ussvm_tables, "N_OLD", 6)
    monkeypatch.setattr(ussvm_tables, "N_ATOMS", [30])
    monkeypatch.setattr(ussvm_tables, "FACTORS", [1.0])
    monkeypatch.setattr(ussvm_tables, "COSTS", [0.01])


@pytest.mark.parametrize("what", ["transfer", "joint"])
def test_the_figure(what, digits, tmp_path, capsys):
    file = tmp_path / "figure.json"
    words = [what, "isolet", "--seeds", "1", "--variants", "US-SVM", "--json", str(file)]
    results = ussvm_tables.main(words)
    stored = json.loads(file.read_text())
    assert list(stored) == [
        f"{what} | isolet | {system} | 0" for system in ("US-SVM", "l2-SVM", "l1-SVM")
    ]
    found = {system: values[0] for system, values in results["isolet"].items()}
    assert found["l2-SVM, dense"][0] > 85
    if what == "transfer":
        assert found["US-SVM"][4] > 80 > 70 > found["US-SVM"][0]
    else:
        assert found["US-SVM, c/2"][3] > 80 > found["US-SVM, c/4"][3] > 30
    for svm in ("l1-SVM", "l2-SVM"):
        assert len(found[f"{svm}, refitted"]) == len(found[f"{svm}, pruned"]) > 3
    assert f"{what}, isolet: mAP in % with [1, 2, 3, 5" in capsys.readouterr().out
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:  # a run that goes on computes nothing again
        patch.setattr(ussvm_tables, "LinearSVC", None)
        assert ussvm_tables.main(words) == results


def test_table_1(digits, monkeypatch, capsys):
    monkeypatch.setattr(ussvm_tables, "TABLE_1_ATOMS", [12])
    monkeypatch.setattr(ussvm_tables, "ALPHAS", [0.0, 1e-3, 1e-2])
    found = ussvm_tables.main(["table1"])["isolet"]
    assert list(found) == ["12, alpha=0", "12, alpha by CV"]
    for ap, seconds, products in found.values():
        assert ap > 80
        assert seconds > products > 0
    assert "x bare products" in capsys.readouterr().out


def test_classes_are_kept_apart(digits):
    split = ussvm_tables.Split("letter", 0, 100, 6)
    assert (len(split.new), len(split.y_old)) == (4, 100)
    assert not set(split.y_old) & set(split.new)
    assert set(split.y) == set(split.y_test) == set(split.new)
    assert split.X_old.shape[1] == split.X_test.shape[1] == 300
