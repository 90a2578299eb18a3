"""`loclin fit`, `predict`, `explain` and `info`: from a table to predictions and back."""

import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import loclin.io
from tests.test_tables import churn

pd = pytest.importorskip("pandas", reason="needs the extra [cli]")
from loclin.cli import _served  # noqa: E402
from loclin.cli._app import app  # noqa: E402

runner = CliRunner()


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
    assert about["rows"] == 400
    assert 0 < about["held out"]["error %"] < 45
    assert about["columns"]["paperless"] == "flag"
    assert "predicts churn: no, yes" in run("info", model).stdout


def test_predictions_are_the_models_whatever_the_parts(churned, tmp_path, monkeypatch):
    path, file, _ = churned
    model, table = loclin.io.load(file), pd.read_csv(path, dtype=str)
    whole = pd.read_csv(io.StringIO(run("predict", file, path).stdout))
    assert whole["predicted churn"].tolist() == model.predict(table).tolist()
    monkeypatch.setattr(_served, "_ROWS_AT_ONCE", 33)
    run("predict", file, path, "--proba", "--out", tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns) == ["predicted churn", "no", "yes"]
    np.testing.assert_allclose(found[["no", "yes"]], model.predict_proba(table), rtol=1e-9)
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
    sign = 1 if told["label"] == "yes" else -1
    added = sum(one["adds"] for one in told["columns"]) + told["score of the mean training row"]
    assert sign * score == pytest.approx(told["score"], abs=1e-9)
    assert added == pytest.approx(told["score"], abs=1e-9)
    words = run("explain", file, path, "--row", 7).stdout
    assert f"predicted: {told['label']}" in words
    assert f"= {table['charge'][7]}" in words


def test_auto_takes_the_best_by_the_metric(tmp_path, monkeypatch):
    monkeypatch.setattr(_served, "CANDIDATES", ("ML3Classifier", "L3MClassifier"))
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=200), "z": rng.normal(size=200)})
    table["y"] = np.where(table["x"] * table["z"] > 0, "same", "other")
    table.to_csv(tmp_path / "xor.tsv", index=False, sep="\t")
    file = tmp_path / "xor.loclin"
    result = run("fit", tmp_path / "xor.tsv", "--target", "y", "--metric", "auc", "--save", file)
    assert result.stdout.count("AUC") == 2
    assert json.loads(run("info", file, "--json").stdout)["held out"]["AUC"] > 0.9


def test_what_is_wrong_is_said_in_one_line(churned, tmp_path):
    path, file, _ = churned
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("a,b\n1,2,3,4\n5,6,7,8\n1,2\n")
    loclin.io.save(loclin.ML3Classifier(), tmp_path / "bare.loclin")
    for arguments, told in [
        (("fit", path, "--target", "churns", "--save", file), "did you mean 'churn'"),
        (("fit", path, "--target", "email", "--save", file), "too few rows of a class"),
        (("fit", path, "--target", "churn", "--model", "ml4", "--save", file), "--model 'ml4'"),
        (("fit", path, "--target", "churn", "--metric", "f1", "--save", file), "--metric 'f1'"),
        (("fit", tmp_path / "no.csv", "--target", "y", "--save", file), "No such file"),
        (("predict", file, other), "has no column"),
        (("predict", tmp_path / "no.loclin", path), "no.loclin"),
        (("predict", tmp_path / "bare.loclin", path), "not written by `loclin fit`"),
        (("explain", file, path, "--row", 400), "rows 0 to 399"),
        (("info", path), "churn.csv"),
    ]:
        result = run(*arguments, status=2)
        assert told in result.stderr
        assert result.stderr.count("\n") == 1
