"""The benchmark scripts run, and give sane numbers, on tiny settings."""

from __future__ import annotations

import json
import math
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from packaging.version import Version
from sklearn.datasets import load_breast_cancer

from benchmarks import (
    calibration,
    cluster,
    default_fits,
    explanations,
    flips,
    limits,
    losses,
    many_rows,
    metric,
    onnx_speed,
    startup,
    stream,
    wide,
)
from benchmarks.limits import core, fits, llsvm
from benchmarks.limits.models import MODELS, Shape
from loclin import ML3Classifier

pytestmark = [pytest.mark.slow, pytest.mark.long]
TINY = ["--shape", "240,4,3", "--n-models", "2"]


@pytest.fixture
def short_fits(monkeypatch):
    monkeypatch.setattr(fits, "ITERATIONS", 3)
    monkeypatch.setattr(fits, "REPEATS", 1)


@pytest.mark.usefixtures("short_fits")
def test_limits(tmp_path, capsys):
    file = tmp_path / "limits.json"
    results = limits.main([*TINY, "--json", str(file)])
    assert json.loads(file.read_text()) == results
    by_words = {label.partition(" (")[0]: figures for label, figures in results.items()}
    assert by_words["ML3Classifier on synthetic, float64"]["score columns"] == 6
    assert by_words["score products of 4 epochs, the limit"]["GFLOP/s"] > 0
    assert by_words["fit, 3 iterations"]["x"] > 0
    assert by_words["score products of iterations 2 to 3"]["cpu s"] > 0
    assert math.isfinite(by_words["fit, these iterations alone"]["x"])
    assert by_words["predict 48 rows"]["x"] > 0
    assert by_words["peak of NumPy's allocations"]["x"] > 1
    assert not by_words["growth of resident memory"]["MB"] < 0  # NaN outside Linux
    assert "score columns 6" in capsys.readouterr().out


@pytest.mark.usefixtures("short_fits")
def test_limits_of_a_model_without_batches():
    results = limits.main([*TINY, "--model", "L3MClassifier"])
    assert results["predict 48 rows"]["x"] > 0
    assert results["growth of resident memory"]
    assert "fit, 3 iterations" not in results


def test_limits_refuse_a_part_that_is_not_there(capsys):
    with pytest.raises(SystemExit):
        limits.main(["llsvm", "predict"])
    assert "'llsvm predict' is none of: llsvm dual" in capsys.readouterr().err


def test_limits_of_llsvm(monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 60)), np.arange(600) % 3
    monkeypatch.setattr(llsvm, "load", lambda name: SimpleNamespace(X_train=X, y_train=y))
    found = limits.main(["llsvm", "epochs"])
    assert len(found) == 9
    assert found["usps, 8 of 100 anchors"]["distances s"] >= 0
    assert found["letter, planes (15)"]["epoch s"] > 0
    assert "mnist, planes of each class (50)" in capsys.readouterr().out


@pytest.mark.parametrize("preprocess", fits.PREPROCESSORS)
def test_a_set_without_a_split_is_split(preprocess):
    problem = fits.load_problem("wine", Shape(0, 0, 0), "float32", preprocess)
    assert problem.shape == (142, 13, 3)
    assert len(problem.X_test) == len(problem.y_test) == 36
    assert problem.X.dtype == problem.X_test.dtype == np.float32
    np.testing.assert_allclose(problem.X.mean(axis=0), 0, atol=1e-5)


@pytest.mark.parametrize("products", [core.products_by_numpy, core.products_compiled])
def test_products_score_every_batch(products):
    X, W = np.arange(14.0).reshape(7, 2), np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]])
    out = np.empty((4, 3))
    products(X, W, 4, out, 1)
    np.testing.assert_array_equal(out[:3], X[4:] @ W.T)


@pytest.fixture
def rows_on_disk(tmp_path):
    X, y = stream.GaussianClusters(8, 3).rows(1500)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    return tmp_path


def test_memory_of_fit_is_measured(rows_on_disk):
    model = ML3Classifier(4, max_iter=2, average=1, random_state=0)
    traced, growth = fits.memory_of_fit(model, rows_on_disk)
    codes = 1500 * 4 * 8e-6
    assert codes < traced < 100 * codes
    assert not growth < 0  # NaN outside Linux


def test_expected_memory_counts_weights_sums_and_codes():
    kind, shape = MODELS["ML3Classifier"], Shape(100, 5, 3)
    assert kind.memory(ML3Classifier(4, average=0), 4, shape) == 3 * 4 * 6 + 400
    assert kind.memory(ML3Classifier(4, average=2), 4, shape) == 2 * 3 * 4 * 6 + 400


def test_startup(tmp_path, monkeypatch, capsys):
    statements = {"baseline": "import string", "loclin": "import string, fractions"}
    monkeypatch.setattr(startup, "_STATEMENTS", statements)
    monkeypatch.setattr(startup, "_TIMED_FIT", "print(2.0)\nprint(1.0)")
    file = tmp_path / "startup.json"
    results = startup.main(["--repeats", "1", "--json", str(file)])
    assert json.loads(file.read_text()) == results
    assert results["import"]["ratio"] > 0
    assert results["first_fit"] == {"cold_s": 2.0, "warm_s": 2.0, "second_s": 1.0}
    assert "fractions" in results["extra_imports_ms"]
    assert "string" not in results["extra_imports_ms"]
    assert "import string, fractions" in capsys.readouterr().out


def test_startup_gives_the_code_its_environment():
    code = "import os; print(os.environ['NUMBA_CACHE_DIR'])"
    assert startup.seconds_of(code, NUMBA_CACHE_DIR="7") == [7.0]


@pytest.mark.usefixtures("rule_alone")
@pytest.mark.parametrize("model", stream.MODELS)
def test_stream(tmp_path, capsys, model):
    file = tmp_path / "stream.json"
    results = stream.main(
        ["--model", model, "--rows=2000", "--chunk=300", "--features=4", "--classes=3",
         "--fit-rows=500", "--chunk-rows=600", "--chunks", "100", "600", "--json", str(file)]
    )  # fmt: skip
    assert json.loads(file.read_text())["error"] == results["error"]
    assert len(results["resident_bytes"]) == 10
    assert results["rows_per_second"] > 0
    for error in (results["error"], results["fit_error"], results["chunks"][600]["error"]):
        assert results["best_error"] <= error < 66
    assert "stream less fit" in capsys.readouterr().out


def test_a_stream_does_not_depend_on_the_chunk():
    problem = stream.GaussianClusters(3, 2)
    X, y = problem.rows(50)
    parts = list(problem.stream(50, 7))
    np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), X)
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), y)


def test_clusters_are_standardised_by_construction():
    problem = stream.GaussianClusters(6, 3)
    X, _ = problem.rows(20_000)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(X.var(axis=0), 1, atol=0.05)
    np.testing.assert_allclose((problem.centers**2).mean(axis=0) + problem.spread**2, 1, rtol=1e-12)


def test_many_rows(capsys):
    found = many_rows.measured("ML3", 4000)
    assert found["error %"] < 40
    assert 2 < found["passes"] < 200
    assert found["seconds"] > 0
    many_rows.main(["--one", "--models", "LL-SVM", "--rows", "4000"])
    assert json.loads(capsys.readouterr().out)["error %"] < 50


@pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.8"),
    reason="temperatures need scikit-learn 1.8",
)
def test_calibration(monkeypatch, capsys):
    monkeypatch.setattr(calibration, "MODELS", {"ML3": ML3Classifier(2, max_iter=3)})
    calibration.main(["wine"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["wine", "ML3"]
    figures = [float(word) for word in lines[1].split()[2:] if word != "|"]
    assert len(figures) == 9
    assert min(figures) >= 0


def test_the_calibration_error_is_zero_where_probabilities_are_frequencies():
    y = np.array(([0] * 3 + [1] * 7) * 10 + [1] * 100)
    P = np.array([[0.3, 0.7]] * 100 + [[0.0, 1.0]] * 100)
    assert calibration.calibration_error(P, y) == pytest.approx(0.0)
    P[:100] = [0.9, 0.1]
    assert calibration.calibration_error(P, y) == pytest.approx(0.3)


def test_default_fits(monkeypatch, capsys):
    models = {name: ML3Classifier(2, max_iter=3) for name in ("ML3", "SAPL")}
    monkeypatch.setattr(default_fits, "MODELS", models)
    default_fits.main(["wine"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[0] == "wine"
    assert lines[-1].split()[0] == "largest"
    assert float(lines[1].split()[1]) > 0.5


def test_metric(tmp_path, capsys):
    file = tmp_path / "metric.json"
    results = metric.main(["iris", "--rows", "60", "--noise", "3", "--json", str(file)])
    assert json.loads(file.read_text()) == results
    assert set(results) == set(metric.MODELS)
    assert results["ML3"]["None"]["iris"]["weighed"] == 0
    assert results["ML3"]["diagonal"]["iris"]["weighed"] == 1
    assert 0 <= results["SAPL"]["auto"]["iris"]["error"] < 20
    assert "time" in capsys.readouterr().out


def test_wide(capsys):
    wide.main(["2^16 columns", "--models", "SGDClassifier", "ML3"])
    linear, local = capsys.readouterr().out.splitlines()
    assert linear.startswith("2^16 columns")
    assert " x)" not in linear
    assert float(local.split("pickle")[1].split()[0]) < 3, "megabytes, of 2 for SGDClassifier"


def test_flips(tmp_path, monkeypatch, capsys):
    models = {"ML3": ML3Classifier(2, max_iter=3, random_state=0)}
    monkeypatch.setattr(flips, "MODELS", models)
    file = tmp_path / "flips.json"
    results = flips.main(["iris", "--rows", "6", "--json", str(file)])
    assert json.loads(file.read_text()) == results
    found = results["ML3"]["iris"]
    assert found["verified"] == 1
    assert 0 <= found["one step"] <= 1
    assert 0.5 < found["beside grid"] < 1.5
    assert "verified 1" in capsys.readouterr().out


@pytest.mark.skipif(
    not all(map(find_spec, explanations.LIBRARIES)),
    reason="needs " + ", ".join(explanations.LIBRARIES.values()),
)
def test_explanations(tmp_path, monkeypatch, capsys):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X[:, :5] - X[:, :5].mean(axis=0)) / X[:, :5].std(axis=0)
    split = explanations.Split(X[:400], y[:400], X[400:], y[400:])
    monkeypatch.setattr(explanations, "split_of", lambda name, n_train: split)
    quick = explanations.MODELS | {
        "ML3Classifier": lambda seed: ML3Classifier(2, max_iter=3, random_state=seed),
        "EBM": lambda seed: explanations.ebm(seed).set_params(max_rounds=5),
    }
    monkeypatch.setattr(explanations, "MODELS", quick)
    chosen = ["ML3Classifier", explanations.LINEAR, "LightGBM", "EBM"]
    found = explanations.main(
        ["cells", "--models", *chosen, "--rows", "3", "--shapes", "cells", "--out", str(tmp_path)]
    )
    assert json.loads((tmp_path / "explanations.json").read_text()) == found
    assert (tmp_path / "cells.png").stat().st_size > 0
    by_way = {(line["way"], line.get("space")): line for line in found["table"]}
    assert len(by_way) == 12
    exact = "local_model", "contributions", "KernelSHAP", "LinearSHAP", "TreeSHAP", "EBM's terms"
    for way in exact:
        assert by_way[way, "score"]["residual"] < 1e-6, way
    assert by_way["local_gradient", "score"]["base off"] < 1e-9
    assert by_way["LIME", "score"]["residual"] > 1
    for line in found["shapes"]["cells"]["curves"].values():
        assert line["correlation"] > 0.5
    assert "| cells | EBM | score | EBM's terms |" in capsys.readouterr().out


def test_onnx_speed(tmp_path):
    file = tmp_path / "speed.json"
    arguments = ["--rows", "50", "--train", "300", "--repeats", "1", "--models", "L3M"]
    results = onnx_speed.main([*arguments, "--json", str(file)])
    assert json.loads(file.read_text()) == results
    assert list(results) == ["L3M, float32", "L3M, float64"]
    for told in results.values():
        assert told.pop("labels differ") == 0
        assert min(told.values()) > 0


def test_cluster():
    options = ["--sets", "made", "--rows", "4000", "--models", "ML3", "--parts", "2", "--plain"]
    (found,) = cluster.main([*options, "--rounds", "4", "--sample-rows", "1000"])
    assert len(found["errors"]) == 4
    assert found["errors"][-1] < 45
    assert found["kB of a round"] > 4  # the models travel twice to two parts


def test_losses(monkeypatch, capsys):
    monkeypatch.setattr(losses, "MODELS", {"ML3": partial(ML3Classifier, 2, max_iter=3)})
    monkeypatch.setattr(losses, "_MOST_ROWS", 2000)
    losses.main(["iris", "made"])
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()[4:6]]
    assert [row[1].strip() for row in rows] == ["iris", "made"]
    assert rows[0][4].strip() == ""  # no area of three classes
    assert float(rows[1][4]) > 0.6
