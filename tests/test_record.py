"""Records of decisions: their parts sum up, and their bytes are the same in another process."""

import hashlib
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import loclin
import loclin.io
from loclin.inspection import record
from loclin.inspection.records import hash_of
from loclin.portable import describe

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize
FAST = {"alpha": 0.1, "metric": None, "pieces": None, "max_iter": 5, "random_state": 0}
X, Y = load_iris(return_X_y=True)
MODELS = {
    "described": lambda: make_pipeline(StandardScaler(), loclin.ML3Classifier(2, **FAST)),
    "other scaler": lambda: make_pipeline(MinMaxScaler(), loclin.SAPLClassifier(8, **FAST)),
    "alone": lambda: loclin.L3MClassifier(2, alpha=0.1, calibrate=False, random_state=0),
    "rows": lambda: loclin.SVMKNNClassifier(20),
    "ensemble": lambda: loclin.LocallyLinearEnsemble(
        [loclin.ML3Classifier(2, **FAST)], n_folds=2, random_state=0
    ),
}
CODE = """
import json, pickle, sys
import loclin.io
from loclin.inspection import record

with open(sys.argv[2], "rb") as file:
    rows, reference = pickle.load(file)
model = loclin.io.load(sys.argv[1])
for row in rows:
    print(json.dumps(record(model, row, reference=reference), allow_nan=False))
"""


@each("name", MODELS)
@each("two", [True, False], ids=["two classes", "three classes"])
def test_parts_and_the_rest_are_the_score(name, two):
    y = Y == 1 if two else Y
    model = MODELS[name]().fit(X, y)
    for row in X[::37]:
        kept = record(model, row, reference=X, n_reasons=1)
        reasons = kept["reasons"]["for"] + kept["reasons"]["against"]
        assert len(reasons) <= 2
        parts = [kept["base"], kept["other_columns"], *(one["contribution"] for one in reasons)]
        assert sum(parts) + kept["residual"] == pytest.approx(kept["score"], abs=1e-12)
        assert abs(kept["residual"]) < 1e-9
        assert kept["label"] == model.predict(row[None])[0] != kept["against"]
        assert kept["inputs"] == {f"x{k}": value for k, value in enumerate(row)}
        decision = model.decision_function(row[None])[0]
        if two:
            assert kept["scores"] == {"True": decision}
            assert kept["score"] == abs(decision)
        else:
            assert list(kept["scores"].values()) == decision.tolist()
            best, second = np.sort(decision)[:-3:-1]
            assert kept["score"] == best - second
        if name == "alone":
            assert kept["probabilities"] is None
        else:
            shares = model.predict_proba(row[None])[0].tolist()
            assert list(kept["probabilities"].values()) == shares
        for side, sign in (("for", 1), ("against", -1)):
            assert all(sign * one["contribution"] > 0 for one in kept["reasons"][side])


def test_reasons_are_the_largest_contributions():
    model = loclin.ML3Classifier(2, **FAST).fit(X, Y)
    reference = X.mean(axis=0)
    for row in X[::37]:
        kept = record(model, row, reference=reference)
        coef = model.local_model(row[None])[0][0]
        added = (coef[kept["label"]] - coef[kept["against"]]) * (row - reference)
        for side, sign in (("for", 1), ("against", -1)):
            found = {one["column"]: one["contribution"] for one in kept["reasons"][side]}
            expected = {f"x{k}": one for k, one in enumerate(added) if sign * one > 0}
            assert found == pytest.approx(expected)
            assert list(found) == sorted(found, key=lambda one: -abs(found[one]))
        assert kept["other_columns"] == 0
        named = [one["contribution"] for side in kept["reasons"].values() for one in side]
        assert kept["residual"] == kept["score"] - math.fsum([kept["base"], *named])
    assert kept["reference"]["name"] == "the row given"
    assert list(kept["reference"]["values"].values()) == pytest.approx(reference.tolist())


def in_another_process(model, rows, reference, folder):
    import pickle

    loclin.io.save(model, folder / "model.loclin")
    (folder / "rows.pickle").write_bytes(pickle.dumps((rows, reference)))
    paths = [str(folder / name) for name in ("model.loclin", "rows.pickle")]
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE, *paths],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


@each("name", ["described", "other scaler", "rows"])
def test_bytes_are_the_same_again_and_in_another_process(name, tmp_path):
    model = MODELS[name]().fit(X, Y)
    rows = list(X[::50])
    lines = [json.dumps(record(model, row, reference=X), allow_nan=False) for row in rows]
    assert lines == [json.dumps(record(model, row, reference=X)) for row in rows]
    assert "".join(f"{line}\n" for line in lines) == in_another_process(model, rows, X, tmp_path)


def test_a_table_is_recorded_in_its_columns(tmp_path):
    pytest.importorskip("pandas", reason="needs the extra [tables]")
    from loclin.tables import TableEncoder
    from tests.test_tables import KINDS, churn

    frame, y = churn(200)
    frame.loc[4, "signup"] = None
    model = make_pipeline(TableEncoder(kinds=KINDS), loclin.ML3Classifier(2, **FAST))
    model.fit(frame, y)
    rows = [frame[k : k + 1] for k in range(5)]
    kept = [record(model, row) for row in rows]
    texts = [json.dumps(one, allow_nan=False) for one in kept]
    assert set(kept[0]["inputs"]) == set(model[0].origins_)
    assert kept[4]["inputs"]["signup"] is None  # a gap
    assert kept[0]["inputs"]["signup"] == str(frame["signup"][0])
    assert kept[0]["inputs"]["paperless"] in (True, False)
    assert kept[0]["reference"]["name"] == "the mean training row"
    assert "".join(f"{one}\n" for one in texts) == in_another_process(model, rows, None, tmp_path)
    assert record(model, frame.iloc[1]) == kept[1]


def test_the_hash_is_of_what_the_model_computes():
    model = MODELS["described"]().fit(X, Y)
    first = hash_of(model)
    text = json.dumps(describe(model).to_dict(), sort_keys=True)
    assert first == hashlib.sha256(text.encode()).hexdigest()
    model.predict(X)
    assert hash_of(model) == first
    assert hash_of(MODELS["described"]().fit(X, Y)) == first
    assert hash_of(MODELS["described"]().fit(X[:-1], Y[:-1])) != first
    neighbours = MODELS["rows"]().fit(X, Y)
    same, other = (MODELS["rows"]().fit(X * factor, Y) for factor in (1, 2))
    assert hash_of(neighbours) == hash_of(same) != hash_of(other)
    neighbours.predict(X)
    assert hash_of(neighbours) == hash_of(same)


def test_what_cannot_be_recorded_is_refused():
    model = loclin.ML3Classifier(2, **FAST).fit(X, Y)
    with pytest.raises(ValueError, match="row has 2 rows; give one"):
        record(model, X[:2], reference=X)
    with pytest.raises(ValueError, match="n_reasons=0"):
        record(model, X[0], reference=X, n_reasons=0)
    squares = make_pipeline(PolynomialFeatures(), loclin.ML3Classifier(2, **FAST)).fit(X, Y)
    with pytest.raises(TypeError, match="PolynomialFeatures"):
        record(squares, X[0])
    several = loclin.USSVMClassifier(random_state=0).fit(X, np.eye(3, dtype=int)[Y])
    with pytest.raises(ValueError, match="several labels a row"):
        record(several, X[0], reference=X)
