"""Errors by the number of members, where members are merged or their kind has no share."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from loclin import ForestClassifier, LocallyLinearEnsemble, ML3Classifier
from reproduction.ensemble.official import by_members

SHORT = {"alpha": "scale", "metric": None, "pieces": None, "max_iter": 2}


@pytest.mark.parametrize("shares", [(0.5, 0.5), (1.0, 0.0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_members_err_as_the_ensemble_does(shares, monkeypatch):
    monkeypatch.setattr(
        "loclin.ensemble.weighing.select", lambda *given: np.array(shares), raising=True
    )
    X, y = load_iris(return_X_y=True)
    kinds = [ML3Classifier(2, standardize=False, **SHORT), ForestClassifier(3, standardize=False)]
    model = LocallyLinearEnsemble(kinds, n_folds=3, random_state=0, standardize=False).fit(X, y)
    assert len(model.members_) == (4 if shares[1] else 3)  # forests are merged
    errors = by_members(model, X, y)
    assert len(errors) == 3
    assert errors[-1] == pytest.approx(100 * (1 - model.score(X, y)))
