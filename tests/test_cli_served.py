"""`loclin fit`, `predict`, `explain` and `info`: from a table to predictions and back."""

import io
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import loclin.io
from tests.test_cli_data import runner as new_runner
from tests.test_tables import churn

pd = pytest.importorskip("pandas", reason="needs the extra [cli]")
from loclin.cli import _fit  # noqa: E402
from loclin.cli._app import app  # noqa: E402
from loclin.tables import reading  # noqa: E402

runner = new_runner()


def run(*arguments, status=0, text=None):
    result = runner.invoke(app, [str(one) for one in arguments], input=text)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture(scope="module")
def churned(tmp_path_factory):
    """Return a table with labels, and the file of a model that was fitted to it."""
    folder = tmp_path_factory.mktemp("churn")
    table, y = churn()
    path, model = folder / "churn.csv", folder / "churn.loclin"
    table.assign(churn=y).to_csv(path, index=False)
    result = run("fit", path, "--target", "churn", "--model", "ml3", "--save", model)
    return path, model, result


def test_a_fit_says_how_good_it_is_and_what_it_left_out(churned):
    _, model, result = churned
    assert "ML3Classifier" in result.stdout
    assert "error" in result.stdout
    assert "saved ML3Classifier" in result.stdout
    assert "'email' is left out" in result.stderr
    about = json.loads(run("info", model, "--json").stdout)
    assert about["classes"] == ["no", "yes"]
    assert (about["rows"], about["measured_rows"]) == (400, 400)
    assert 0 < about["figures"]["error"] < 0.45
    assert about["columns"]["paperless"] == "flag"
    assert "predicts churn: no, yes" in run("info", model).stdout


def test_predictions_are_the_models_whatever_the_parts(churned, tmp_path, monkeypatch):
    path, file, _ = churned
    model, table = loclin.io.load(file), pd.read_csv(path, dtype=str)
    whole = pd.read_csv(io.StringIO(run("predict", file, path).stdout))
    assert whole["predicted churn"].tolist() == model.predict(table).tolist()
    monkeypatch.setattr(reading, "CELLS_AT_ONCE", 1)
    monkeypatch.setattr(reading, "VECTOR", 1)
    run("predict", file, path, "--proba", "--out", tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns) == ["predicted churn", "no", "yes"]
    np.testing.assert_allclose(found[["no", "yes"]], model.predict_proba(table), rtol=1e-5)
    piped = run("predict", file, "-", text=path.read_text())
    assert pd.read_csv(io.StringIO(piped.stdout)).equals(whole)
    table.to_parquet(tmp_path / "churn.parquet")
    assert run("predict", file, tmp_path / "churn.parquet").stdout == piped.stdout


def test_a_rows_columns_add_up_to_its_score(churned):
    path, file, _ = churned
    told = json.loads(run("explain", file, path, "--row", 7, "--json").stdout)
    table = pd.read_csv(path, dtype=str)
    model = loclin.io.load(file)
    score = model.decision_function(table.iloc[[7]])[0]
    sign = 1 if told["predicted"] == "yes" else -1
    added = sum(one["adds"] for one in told["columns"]) + told["score at the reference"]
    assert sign * score == pytest.approx(told["score"], abs=1e-9)
    assert added == pytest.approx(told["score"], abs=1e-9)
    words = run("explain", file, path, "--row", 7).stdout
    share = model.predict_proba(table.iloc[[7]]).max()
    assert told["probability"] == pytest.approx(share)
    start = f"{told['predicted']} rather than {told['against']}, probability {share:.3f};"
    assert words.startswith(start)
    numbers = [float(line.split()[0]) for line in words.splitlines()[1:]]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.01)
    assert "charge = missing" in words


def test_auto_takes_the_best_by_the_metric(tmp_path, monkeypatch):
    monkeypatch.setattr(_fit, "CANDIDATES", "ML3Classifier,L3MClassifier")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=200), "z": rng.normal(size=200)})
    table["y"] = np.where(table["x"] * table["z"] > 0, "same", "other")
    table.to_csv(tmp_path / "xor.tsv", index=False, sep="\t")
    file = tmp_path / "xor.loclin"
    result = run("fit", tmp_path / "xor.tsv", "--target", "y", "--metric", "auc", "--save", file)
    assert result.stdout.count("AUC") == 2
    assert json.loads(run("info", file, "--json").stdout)["figures"]["auc"] > 0.9


def test_what_is_wrong_is_said_in_one_line(churned, tmp_path):
    path, file, _ = churned
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("a,b\n1,2,3,4\n5,6,7,8\n1,2\n")
    loclin.io.save(loclin.ML3Classifier(), tmp_path / "bare.loclin")
    np.savez(tmp_path / "rows.npz", X=np.eye(3))
    for arguments, told in [
        (("fit", path, "--target", "churns", "--save", file), "did you mean 'churn'"),
        (("fit", path, "--target", "email", "--save", file), "looks like a regression target"),
        (("fit", path, "--target", "churn", "--model", "ml4", "--save", file), "no model 'ml4'"),
        (("fit", path, "--target", "churn", "--metric", "f1", "--save", file), "--metric 'f1'"),
        (("fit", tmp_path / "no.csv", "--target", "y", "--save", file), "no such file"),
        (("predict", file, other), "has no column"),
        (("predict", tmp_path / "no.loclin", path), "no.loclin"),
        (("predict", tmp_path / "bare.loclin", path), "not written by `loclin fit`"),
        (("explain", file, path, "--row", 400), "rows 0 to 399"),
        (("explain", file, path, "--row", -1), "row -1 is not there"),
        (("predict", file, path, "--out", path), "is the data itself"),
        (("predict", file, tmp_path / "rows.npz"), "was fitted to a table"),
        (("info", path), "churn.csv"),
    ]:
        result = run(*arguments, status=2)
        assert told in result.stderr
        assert result.stderr.count("\n") == 1


def test_arrays_are_fitted_and_predicted(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), np.array(["a", "b", "c"])[np.arange(90) % 3]
    X[:, 0] += np.arange(90) % 3 * 3
    np.savez(tmp_path / "train.npz", X=X, y=y)
    np.savez(tmp_path / "rows.npz", X=X)
    file = tmp_path / "m.loclin"
    run("fit", tmp_path / "train.npz", "--model", "l3m", "--save", file)
    found = pd.read_csv(io.StringIO(run("predict", file, tmp_path / "rows.npz", "--proba").stdout))
    model = loclin.io.load(file)
    assert found["predicted label"].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(found[["a", "b", "c"]], model.predict_proba(X), rtol=1e-5)
    lines = run("predict", file, tmp_path / "rows.npz", "--json").stdout.splitlines()
    assert json.loads(lines[2]) == {"predicted label": found["predicted label"][2]}
    assert "3 features" in run("info", file).stdout
    told = json.loads(run("explain", file, tmp_path / "rows.npz", "--row", 4, "--json").stdout)
    assert [one["column"] for one in told["columns"]] == ["x0", "x1", "x2"]


def test_an_explanation_is_drawn_and_written(churned, tmp_path):
    pytest.importorskip("matplotlib")
    path, file, _ = churned
    png, page = tmp_path / "why.png", tmp_path / "why.html"
    result = run("explain", file, path, "--row", 3, "--reference", 5, "--png", png, "--html", page)
    assert png.read_bytes().startswith(b"\x89PNG")
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "Row 3 of churn.csv" in text
    assert "Row <bdi>3</bdi>: predicted" in text
    assert "row's model at" in result.stdout
    told = json.loads(run("explain", file, path, "--row", 5, "--reference", 5, "--json").stdout)
    assert all(abs(one["adds"]) < 1e-12 for one in told["columns"]), "beside itself, nothing"


def test_what_is_written_is_whole_or_not_there(churned, tmp_path):
    path, file, _ = churned
    out = tmp_path / "out.csv"
    out.write_text("earlier")
    broken = tmp_path / "broken.csv"
    lines = path.read_text().splitlines()
    broken.write_text("\n".join([*lines * 60, "one,cell,too,few"]))
    result = run("predict", file, broken, "--out", out, status=2)
    assert "cells, the first line" in result.stderr
    assert out.read_text() == "earlier"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["broken.csv", "out.csv"]


def test_rows_unlike_the_training_rows_are_told(churned, tmp_path):
    path, file, _ = churned
    table = pd.read_csv(path, dtype=str).drop(columns="churn").assign(more="1")
    table.loc[:2, "contract"] = "ten years"
    table.loc[:1, "charge"] = "free"
    table.loc[4, "visits"] = None
    table.to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", file, tmp_path / "new.csv", "--keep", "more, charge")
    assert result.stdout.startswith("more,charge,predicted churn\n1,free,")
    assert (
        "has no column 'none'"
        in run("predict", file, tmp_path / "new.csv", "--keep", "none", status=2).stderr
    )
    assert result.stdout.count("\n") == 401
    assert result.stderr.splitlines() == [
        "note: column 'contract': 3 values are new and count as rare",
        "note: column 'charge': 2 values are no number, or infinite, and count as missing",
        "note: column 'visits': 1 gaps get the median; the training rows had none",
    ]


def test_a_model_of_one_column_predicts_from_it(tmp_path):
    path, file = tmp_path / "t.csv", tmp_path / "m.loclin"
    path.write_text("a,y\n" + "".join(f"{i},{'yn'[i > 20]}\n" for i in range(40)))
    run("fit", path, "--model", "l3m", "--save", file)
    (tmp_path / "new.csv").write_text("a\n1\n39\n")
    assert run("predict", file, tmp_path / "new.csv").stdout.split() == ["predicted", "y", "y", "n"]


def test_a_model_is_saved_in_a_file_and_nowhere_else(churned, tmp_path):
    path, _, _ = churned
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "-", os.devnull):
        result = run("fit", path, "--model", "l3m", "--save", place, status=2)
        assert "is no file" in result.stderr
    assert not (tmp_path / "pipe").is_file()


def test_what_a_file_says_of_its_model_is_checked(churned, tmp_path):
    _, file, _ = churned
    model = loclin.io.load(file)
    model.about_ = {**model.about_, "figures": {"zzz": 1.0}}
    loclin.io.save(model, tmp_path / "forged.loclin")
    assert "was not written by" in run("info", tmp_path / "forged.loclin", status=2).stderr


def test_sparse_rows_of_a_dense_model_become_dense(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    np.savez(tmp_path / "t.npz", X=X, y=y)
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"), zero_based=False)
    file = tmp_path / "m.loclin"
    run("fit", tmp_path / "t.npz", "--model", "l3m", "--save", file)
    dense = run("predict", file, tmp_path / "t.npz").stdout
    assert run("predict", file, tmp_path / "t.svm").stdout == dense


@pytest.mark.slow
def test_a_process_that_is_ended_leaves_no_files(churned, tmp_path):
    path, file, _ = churned
    big = tmp_path / "big.csv"
    lines = path.read_text().splitlines()
    big.write_text("\n".join([lines[0], *lines[1:] * 500]) + "\n")
    command = [sys.executable, "-m", "loclin.cli", "predict", str(file), "-"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with big.open() as rows:
        process = subprocess.Popen(
            [*command, "--out", str(tmp_path / "out.csv")], stdin=rows, env=environment
        )
        until = time.time() + 60
        while len(list(tmp_path.iterdir())) < 3 and time.time() < until:
            time.sleep(0.05)
        process.terminate()
        assert process.wait(30) == 143
    assert [one.name for one in tmp_path.iterdir()] == ["big.csv"]


def test_warnings_are_notes(churned, tmp_path):
    path, file, _ = churned
    table = pd.read_csv(path, dtype=str)
    table.loc[:3, "visits"] = "1e400"
    table.to_csv(tmp_path / "t.csv", index=False)
    result = run("explain", file, tmp_path / "t.csv", "--row", 1)
    assert result.stderr.startswith("note: column 'visits': 1 of 1 values are no number")
    assert result.stderr.count("\n") == 1
