"""The program of random calls runs, and sees what is broken."""

import numpy as np
import pytest

from loclin import ML3Classifier
from tests.robustness import fuzz

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_fuzz(capsys):
    assert fuzz.main(["--cases", "5", "--seed", "2"]) == 0, capsys.readouterr().out
    assert "5 cases" in capsys.readouterr().out


def test_fuzz_sees_what_is_broken(monkeypatch):
    def wrong(self, X):
        return self.classes_[np.zeros(X.shape[0], int)]

    monkeypatch.setattr(ML3Classifier, "predict", wrong)
    failures = (fuzz.run_case(0, number)[2] for number in range(130, 330))  # one in nine draws ML3
    assert any("arg max" in (failure or "") for failure in failures)
