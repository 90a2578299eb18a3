"""Times of US-SVM, on few rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import limits
from benchmarks.limits import ussvm

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows", "rule_alone")


def test_a_new_class(monkeypatch, capsys):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(21), 12)
    X = rng.normal(size=(21, 30))[y] + rng.normal(size=(252, 30))
    monkeypatch.setattr(ussvm, "load", lambda name: SimpleNamespace(X_train=X, y_train=y))
    for name, value in {"N_NEGATIVES": 900, "N_POSITIVES": 100, "N_ATOMS": [40]}.items():
        monkeypatch.setattr(ussvm, name, value)
    found = limits.main(["ussvm", "new-class"])
    assert len(found) == len(ussvm.WAYS) + 2
    assert found["40 atoms, all atoms"]["AP %"] > 70
    assert found["LinearSVC, hinge"]["AP %"] > 70
    assert found["LinearSVC, hinge"]["x LinearSVC, hinge"] == 1
    assert "40 atoms, 5 nonzeros  " in capsys.readouterr().out


@pytest.mark.parametrize("n_classes", [4, 60])
def test_prediction(n_classes, monkeypatch):
    for name, value in {"N_CLASSES": n_classes, "N_ROWS": 130, "WIDTHS": [8]}.items():
        monkeypatch.setattr(ussvm, name, value)
    found = limits.main(["ussvm", "predict"])["8 features, float32"]
    assert found["bytes dense"] == 8 * 4 * n_classes
    assert found["bytes codes"] == (5 * 8 + 4) * n_classes + 4
    assert min(found.values()) > 0
