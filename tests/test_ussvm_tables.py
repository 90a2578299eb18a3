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


def test_the_figure(digits, tmp_path, capsys):
    file = tmp_path / "figure.json"
    words = ["isolet", "--seeds", "1", "--variants", "US-SVM", "--json", str(file)]
    results = ussvm_tables.main(words)
    assert json.loads(file.read_text()) == results
    found = {system: values[0] for system, values in results["isolet"].items()}
    assert len(found) == 7
    assert found["l2-SVM, dense"][0] > 85
    assert found["US-SVM"][4] > 80 > 70 > found["US-SVM"][0]
    for svm in ("l1-SVM", "l2-SVM"):
        assert len(found[f"{svm}, refitted"]) == len(ussvm_tables.NONZEROS)
    assert "isolet: mAP in % with [1, 2, 3, 5, 10] nonzeros" in capsys.readouterr().out


def test_letters_are_kept_apart(digits):
    split = ussvm_tables.Split("letter", 0, 100)
    assert (len(split.new), len(split.y_old)) == (4, 100)
    assert not set(split.y_old) & set(split.new)
    assert set(split.y) == set(split.y_test) == set(split.new)
    assert split.X_old.shape[1] == split.X_test.shape[1] == 300
