"""The command from outside: options, output, exit status, result files."""

import csv
import inspect
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import loclin
import loclin.io
from loclin.cli import _compare, _display, main
from loclin.cli._app import app

MODELS = {"Majority", "LinearSVC", "L3MClassifier"}
FAST = ["--models", "majority,linearsvc,l3m", "--budget", "0.1", "--candidates", "3"]


@pytest.fixture(autouse=True, scope="module")
def _predictions_are_timed_shortly():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("loclin.cli._measure.LEAST_SECONDS", 0)
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Three blobs of 30 rows with awkward class names, as CSV."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    X = np.array([[0, 0], [3, 0], [0, 3]])[y] + rng.normal(size=(90, 2))
    frame = pd.DataFrame(X, columns=["width", "<b>height</b>"])
    frame["kind"] = np.array(["red & blue", "<script>", "NA"])[y]
    path = tmp_path_factory.mktemp("data") / "blobs.csv"
    frame.to_csv(path, index=False)
    return path


def runner():
    """Return a runner that keeps stderr apart, as older ones do only when told to."""
    old = "mix_stderr" in inspect.signature(CliRunner).parameters
    return CliRunner(mix_stderr=False) if old else CliRunner()


def run(*words):
    return runner().invoke(app, ["compare", "--time-limit", "0", "--jobs", "1", *map(str, words)])


def refused(capsys, monkeypatch, *words):
    """Run the command as a shell does, on what it refuses, and return its one line."""
    monkeypatch.setattr(sys, "argv", ["loclin", *map(str, words)])
    with pytest.raises(SystemExit, match="2"):
        main()
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert told.err.startswith("loclin: ")
    return told.err


@pytest.fixture(scope="module")
def finished(table, tmp_path_factory):
    """One comparison with all that it can write: what it printed, and the folder of its files."""
    folder = tmp_path_factory.mktemp("a<i>b&c")
    source = folder / "a<i>b&c.csv"
    source.write_bytes(table.read_bytes())
    files = [("--csv", "csv"), ("--html", "html"), ("--plot", "png"), ("--save", "loclin")]
    words = [word for name, suffix in files for word in (name, folder / f"out.{suffix}")]
    result = run(source, *FAST, "--seed", 3, "--folds", 4, *words)
    assert result.exit_code == 0, result.output
    return result, folder


def reported(*words, status=0):
    """Run a comparison that prints JSON, and return that."""
    result = run(*words, "--json")
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"loclin {loclin.__version__}\n")


def test_help_lists_the_options():
    result = CliRunner().invoke(app, ["compare", "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    tuning = ["models", "budget", "folds", "candidates", "seed", "jobs", "threads"]
    outputs = ["json", "csv", "html", "plot", "save"]
    for option in ["target", "no-header", "test", "test-size", "metric", *tuning, *outputs]:
        assert f"--{option} " in result.stdout


def test_table_is_sorted_and_marked(finished):
    lines = finished[0].stdout.splitlines()
    start = next(number for number, line in enumerate(lines) if "95 % range" in line)
    rows = [re.split(r"  +", line.lstrip("*0123456789, ")) for line in lines[start + 1 : start + 4]]
    assert {row[0] for row in rows} == MODELS
    errors = [float(row[1]) for row in rows]
    assert errors == sorted(errors)
    assert rows[-1][0] == "Majority"
    marked = [line.split()[1] for line in lines[start + 1 : start + 4] if line.startswith("*")]
    assert marked
    assert "Majority" not in marked
    assert len({len(line) for line in lines[start : start + 4]}) == 1, "figures stand to the right"
    assert any(line.startswith("Take ") for line in lines)


def test_only_what_is_written_is_said_on_standard_error(finished):
    lines = finished[0].stderr.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith("note: ")] == [
        "wrote",
        "wrote",
        "wrote",
        "saved",
    ]


def test_the_code_builds_the_model_that_is_recommended(finished):
    printed, folder = finished[0].stdout, finished[1]
    code = printed[printed.index("In Python:") + len("In Python:") :]
    names = {}
    exec(compile(code, "code", "exec"), names)  # it is what a user runs
    frame = pd.read_csv(folder / "a<i>b&c.csv", keep_default_na=False)
    assert names["model"].score(frame.drop(columns="kind"), frame["kind"]) > 0.7
    taken = re.search(r"Take (\w+):", printed)[1]
    assert taken in type(names["model"][-1]).__name__ + "Classifier"


def test_the_best_of_loclins_models_is_saved(finished):
    file = finished[1] / "out.loclin"
    about = json.loads(runner().invoke(app, ["info", str(file), "--json"]).stdout)
    assert about["model"] == "L3MClassifier"
    assert about["classes"] == ["<script>", "NA", "red & blue"]
    assert (about["rows"], about["measured_rows"], about["target"]) == (90, 23, "kind")
    assert loclin.io.load(file).predict(pd.DataFrame({"width": ["0"], "<b>height</b>": ["0"]}))


@pytest.mark.slow
def test_output_in_a_pipe_is_plain(table):
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "loclin.cli",
            "compare",
            str(table),
            *["--models", "majority"],
            *["--jobs", "1", "--time-limit", "0"],
        ],
        capture_output=True,
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"},
        timeout=60,
        check=True,
    )
    notes = [line for line in result.stderr.splitlines() if not line.startswith(b"note: ")]
    assert notes == []
    text = result.stdout.decode("ascii")
    assert not re.search(r"[^\n -~]", text), "no control characters"
    assert "Majority" in text


@pytest.mark.parametrize(("terminal", "live"), [("xterm", True), ("dumb", False)])
def test_only_a_terminal_gets_the_live_display(monkeypatch, capsys, terminal, live):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", terminal)
    with _display.watching(["kNN"]) as watch:
        watch.step(_compare.Step("kNN", "warming up"))
        watch.finish(_compare.Skipped("kNN", "no neighbours"), "error")
    told = capsys.readouterr()
    assert told.out == ""
    assert ("left out: no neighbours" in told.err) is live


@pytest.fixture(scope="module")
def report(table):
    """The same comparison, as JSON."""
    return reported(table, *FAST, "--seed", 3, "--folds", 4)


def test_json_has_everything(report):
    assert report["versions"]["scikit-learn"] == version("scikit-learn")
    assert report["versions"]["loclin"] == loclin.__version__
    settings = report["settings"]
    assert (settings["seed"], settings["budget"], settings["folds"]) == (3, 0.1, 4)
    assert report["data"]["classes"] == ["<script>", "NA", "red & blue"], "labels are kept"
    assert (report["data"]["n_train"], report["data"]["n_test"]) == (67, 23)
    assert report["data"]["columns"] == {"width": "number", "<b>height</b>": "number"}
    assert sum(report["data"]["train_counts"]) == 67
    assert report["recommended"] in report["verdict"][0]
    rows = {row["model"]: row for row in report["results"]}
    assert set(rows) == MODELS
    for row in rows.values():
        assert row["error"] == row["n_wrong"] / 23
        assert row["error_low"] <= row["error"] <= row["error_high"]
        assert 0 <= row["balanced_accuracy"] <= 1
        assert row["fit_seconds"] > 0
        assert row["predict_microseconds_per_row"] > 0
        assert row["size_bytes"] > 100
    assert rows["LinearSVC"]["log_loss"] is None
    assert rows["LinearSVC"]["auc"] > 0.9, "its scores rank rows"
    shares = np.array(report["data"]["train_counts"]) / 67
    assert -np.log(shares.max()) <= rows["Majority"]["log_loss"] <= -np.log(shares.min())
    assert rows["Majority"]["auc"] == 0.5
    assert rows["Majority"]["parameters"] == {}
    assert "--seed 3" in report["command"]
    assert "--folds 4" in report["command"]


def test_csv_has_the_table(finished, report):
    with (finished[1] / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(report["results"][0])
    assert {row["model"] for row in rows} == MODELS
    errors = [float(row["error"]) for row in rows]
    assert errors == sorted(errors)
    assert all(isinstance(json.loads(row["parameters"]), dict) for row in rows)


@pytest.mark.parametrize(
    "model",
    [
        "linearsvc",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("knn", "nystroem+linearsvc", "svc-rbf")
        ),
    ],
)
def test_seed_fixes_what_is_chosen(table, model):
    def chosen(seed):
        words = ["--budget", 60, "--candidates", 3, "--folds", 3, "--seed", seed]
        (row,) = reported(table, "--models", model, *words)["results"]
        return [row[key] for key in ("parameters", "cv_loss", "n_wrong", "candidates_tried")]

    first = chosen(1)
    assert first == chosen(1)
    assert first[-1] == 3
    assert first[:2] != chosen(2)[:2]


@pytest.mark.slow
def test_jobs_change_nothing(table):
    def chosen(*words):
        models = ["--models", "knn,linearsvc,majority"]
        rows = reported(table, *models, "--budget", 60, "--candidates", 5, *words)["results"]
        keys = ("model", "parameters", "cv_loss", "n_wrong", "log_loss")
        return sorted(([row[key] for key in keys] for row in rows), key=str)

    assert chosen() == chosen("--jobs", 2)


@pytest.mark.slow
def test_own_classifiers_run(table):
    own = [system.name for system in _own()]
    report = reported(table, "--models", ",".join(own), "--candidates", 1, "--folds", 2)
    assert report["skipped"] == []
    assert {row["model"] for row in report["results"]} == set(own)
    assert all(row["error"] < 0.4 for row in report["results"]), "majority would be 0.67"


def _own():
    from loclin.cli._systems import roster

    return [system for system in roster() if system.own]


def test_interrupt_prints_what_is_finished(table, monkeypatch):
    whole = _compare._run

    def interrupted(system, *rest):
        if system.name == "LinearSVC":
            raise KeyboardInterrupt
        return whole(system, *rest)

    monkeypatch.setattr(_compare, "_run", interrupted)
    result = run(table, *FAST)
    assert result.exit_code == 130
    assert "interrupted: models that had not finished are missing" in result.stdout
    report = reported(table, *FAST, status=130)
    assert report["interrupted"] is True
    assert {row["model"] for row in report["results"]} == {"Majority", "L3MClassifier"}


def test_columns_that_are_nearly_empty_say_nothing_in_some_folds(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "y": np.where(np.arange(60) % 2, "p", "q")})
    frame["rare"] = [1.5, 2.5, *[None] * 58]
    frame["a"] += np.arange(60) % 2
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "y", "--models", "linearsvc,knn", "--budget", 5, "--candidates", 2]
    for seed in range(4):
        assert reported(tmp_path / "t.csv", *words, "--seed", seed)["skipped"] == []


def test_a_metric_that_the_test_rows_do_not_have_is_told(table, tmp_path):
    one = tmp_path / "one.csv"
    rows = table.read_text().splitlines()
    one.write_text("\n".join(row for row in rows if "script" not in row and "NA" not in row))
    words = [table, "--test", one, "--models", "linearsvc", "--budget", 0.1, "--metric", "auc"]
    assert "No model has a figure for AUC on these test rows" in run(*words).stdout


def test_the_code_leaves_out_rows_without_a_label(tmp_path):
    rows = [f"{i},{'  ' if i % 9 == 0 else 'xy'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *rows]) + "\n")
    words = ["--models", "linearsvc", "--budget", 0.1]
    code = reported(tmp_path / "t.csv", *words)["code"]
    names = {}
    exec(compile(code, "code", "exec"), names)
    assert names["model"].classes_.tolist() == ["x", "y"]


def test_an_interrupt_saves_no_model(table, tmp_path, monkeypatch):
    whole = _compare._run

    def interrupted(system, *rest):
        if system.name == "LinearSVC":
            raise KeyboardInterrupt
        return whole(system, *rest)

    monkeypatch.setattr(_compare, "_run", interrupted)
    file = tmp_path / "m.loclin"
    file.write_text("the earlier one")
    result = run(table, *FAST, "--save", file)
    assert result.exit_code == 130
    assert "Of the models that finished, take" in result.stdout
    assert "nothing is saved" in result.stderr
    assert file.read_text() == "the earlier one"


def test_a_model_that_fails_is_left_out(table, monkeypatch):
    whole = _compare._run

    def failing(system, *rest):
        if system.name == "L3MClassifier":
            raise ValueError("no\nregions")
        return whole(system, *rest)

    monkeypatch.setattr(_compare, "_run", failing)
    result = run(table, *FAST)
    assert result.exit_code == 0
    assert "L3MClassifier left out: failed (ValueError: no regions)" in result.stdout
    assert "LinearSVC" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "0"], "'--budget'"),
        (["--budget", "inf"], "'--budget'"),
        (["--folds", "1"], "'--folds'"),
        (["--candidates", "0"], "'--candidates'"),
        (["--jobs", "-1"], "'--jobs'"),
        (["--metric", "acc"], "--metric 'acc' is unknown; did you mean 'auc'?"),
        (["--threads", "-1"], "'--threads'"),
        (["--seed", "-1"], "'--seed'"),
        (["--models", "svc"], "no model 'svc'; the models are Majority, "),
        (["--models", " , "], "--models names none; the models are Majority, "),
        (["--test-size", "1.5"], "--test-size 1.5 is not between 0 and 1; try 0.25"),
        (["--test-size", "0.001"], "cannot be split with --test-size 0.001"),
        (["--test", "t.csv", "--test-size", "0.5"], "--test and --test-size exclude each other"),
        (["--html", "no/such/folder.html"], "no folder no/such; make it first"),
        (["--csv", "."], "--csv .: is a folder; name a file in it"),
        (["--plot", "out.gif"], "--plot out.gif: its name must end in .png, .svg, .pdf"),
    ],
)
def test_bad_options(table, words, message, capsys, monkeypatch):
    assert message in refused(capsys, monkeypatch, "compare", table, *words)


def test_output_must_not_replace_the_data(table):
    before = table.read_bytes()
    result = run(table, *FAST, "--csv", table)
    assert result.exit_code == 2
    assert "is the data itself" in result.stderr
    assert table.read_bytes() == before


def test_plot_without_matplotlib_says_what_to_install(table, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(table, *FAST, "--plot", tmp_path / "out.png")
    assert result.exit_code == 2
    assert result.stderr == 'loclin: --plot needs matplotlib: pip install "loclin[plot]"\n'


def test_html_without_matplotlib_leaves_the_plot_out(table, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "out.html"
    assert run(table, "--models", "majority", "--html", path).exit_code == 0
    page = path.read_text(encoding="utf-8")
    assert "<svg" not in page
    assert "matplotlib is not installed" in page


def test_html_is_one_file_with_text_escaped(finished):
    page = (finished[1] / "out.html").read_text(encoding="utf-8")
    assert "a&lt;i&gt;b&amp;c.csv" in page
    assert "<i>" not in page
    assert page.count("<svg") == 1
    assert not re.search(r"<(link|script|img)\b|url\(http|src=", page), "nothing from outside"
    for words in ("LinearSVC", "95 % interval", "Wilson", "--seed 3", loclin.__version__):
        assert words in page


def test_plot_is_written_by_suffix(table, finished, tmp_path):
    result, folder = finished
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")
    assert f"wrote {folder / 'out.png'}" in result.stderr
    path = tmp_path / "out.svg"
    run(table, *FAST, "--plot", path)
    assert path.read_bytes().startswith(b"<?xml")
