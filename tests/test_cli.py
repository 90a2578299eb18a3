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
from loclin.cli import _compare, _display
from loclin.cli._app import app

MODELS = {"Majority", "LinearSVC", "kNN"}
FAST = ["--models", "majority,linearsvc,knn", "--budget", "0.1", "--candidates", "3"]


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


@pytest.fixture(scope="module")
def finished(table, tmp_path_factory):
    """One comparison with all that it can write: what it printed, and the folder of its files."""
    folder = tmp_path_factory.mktemp("a<i>b&c")
    source = folder / "a<i>b&c.csv"
    source.write_bytes(table.read_bytes())
    files = [("--json", "json"), ("--csv", "csv"), ("--html", "html"), ("--plot", "png")]
    words = [word for name, suffix in files for word in (name, folder / f"out.{suffix}")]
    result = run(source, *FAST, "--seed", 3, "--folds", 4, *words)
    assert result.exit_code == 0, result.output
    return result.stdout, folder


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"loclin {loclin.__version__}\n")


def test_help_lists_the_options():
    result = CliRunner().invoke(app, ["compare", "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    tuning = ["models", "budget", "folds", "candidates", "seed", "jobs", "threads"]
    for option in ["target", "test", "test-size", *tuning, "json", "csv", "html", "plot"]:
        assert f"--{option} " in result.stdout


def test_table_is_sorted_and_marked(finished):
    lines = finished[0].splitlines()
    start = next(number for number, line in enumerate(lines) if "95 % range" in line)
    rows = [re.split(r"  +", line.strip("* ")) for line in lines[start + 1 : start + 4]]
    assert {row[0] for row in rows} == MODELS
    errors = [float(row[1]) for row in rows]
    assert errors == sorted(errors)
    assert rows[-1][0] == "Majority"
    marked = [line.split()[1] for line in lines[start + 1 : start + 4] if line.startswith("*")]
    assert rows[0][0] in marked
    assert "Majority" not in marked
    assert len({len(line) for line in lines[start : start + 4]}) == 1, "figures stand to the right"
    assert any(line.startswith("Take ") for line in lines)


def test_one_line_for_each_model_as_it_finishes(finished):
    progress = [line for line in finished[0].splitlines() if line.startswith("[")]
    assert [line.split()[:2] for line in progress] == [
        ["[1/3]", "Majority"],
        ["[2/3]", "LinearSVC"],
        ["[3/3]", "kNN"],
    ]


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
    assert result.stderr == b""
    text = result.stdout.decode("ascii")
    assert not re.search(r"[^\n -~]", text), "no control characters"
    assert "[1/1] Majority" in text


def test_only_a_terminal_gets_the_live_display(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(_display.display(["kNN"], 1.0), _display._Live)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(_display.display(["kNN"], 1.0), _display._Plain)


def test_live_display_ends_in_the_same_table(table, monkeypatch, tmp_path):
    told = []

    class Live(_display._Live):
        def step(self, step):
            super().step(step)
            told.append(self._progress.tasks[self._tasks[step.model]].fields["doing"])

    monkeypatch.setattr(_display, "display", Live)
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "out.json"
    result = run(table, *FAST, "--json", path)
    assert result.exit_code == 0, result.output
    report = json.loads(path.read_text())
    lines = [line for line in result.stdout.splitlines() if "us a row" not in line]
    for row in report["results"]:
        (line,) = [line for line in lines if f" {row['model']} " in line]
        assert f" {100 * row['error']:.1f} " in line
        assert line.lstrip().startswith("*") is row["front"]
        assert "…" not in line, "all columns fit a small terminal"
    assert report["verdict"] in " ".join(result.stdout.split())
    assert "warming up" in told
    assert any(
        re.fullmatch(r"tuning · [1-9] tried · best \d+\.\d % in CV", words) for words in told
    )


def test_json_has_everything(finished):
    printed, folder = finished
    report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert report["versions"]["scikit-learn"] == version("scikit-learn")
    assert report["versions"]["loclin"] == loclin.__version__
    assert (report["seed"], report["budget_seconds"], report["folds"]) == (3, 0.1, 4)
    assert report["data"]["classes"] == ["<script>", "NA", "red & blue"], "labels are kept"
    assert (report["data"]["n_train"], report["data"]["n_test"]) == (67, 23)
    assert sum(report["data"]["train_counts"]) == 67
    assert report["verdict"] in printed
    rows = {row["model"]: row for row in report["results"]}
    assert set(rows) == MODELS
    for row in rows.values():
        assert row["error"] == row["n_wrong"] / 23
        assert row["error_low"] <= row["error"] <= row["error_high"]
        assert row["fit_seconds"] > 0
        assert row["predict_microseconds_per_row"] > 0
        assert row["size_bytes"] > 100
        assert row["fit_rows"] == 67
    assert rows["LinearSVC"]["log_loss"] is None
    shares = np.array(report["data"]["train_counts"]) / 67
    assert -np.log(shares.max()) <= rows["Majority"]["log_loss"] <= -np.log(shares.min())
    assert rows["kNN"]["log_loss"] > 0  # of one neighbour, where time allows no more, above that
    assert rows["kNN"]["size_bytes"] > 67 * 2 * 8, "kNN holds its training rows"
    assert rows["Majority"]["parameters"] == {}
    assert f"--seed {3}" in report["command"]
    assert "--folds 4" in report["command"]


def test_csv_has_the_table(finished):
    folder = finished[1]
    expected = json.loads((folder / "out.json").read_text(encoding="utf-8"))["results"]
    with (folder / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == [row["model"] for row in expected]
    assert [float(row["error"]) for row in rows] == [row["error"] for row in expected]
    assert [json.loads(row["parameters"]) for row in rows] == [
        row["parameters"] for row in expected
    ]


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
def test_seed_fixes_what_is_chosen(table, tmp_path, model):
    def chosen(seed):
        path = tmp_path / "out.json"
        words = ["--budget", 60, "--candidates", 3, "--folds", 3, "--seed", seed]
        run(table, "--models", model, *words, "--json", path)
        (row,) = json.loads(path.read_text())["results"]
        return [row[key] for key in ("parameters", "cv_error", "n_wrong", "candidates_tried")]

    first = chosen(1)
    assert first == chosen(1)
    assert first[-1] == 3
    assert first[:2] != chosen(2)[:2]


@pytest.mark.slow
def test_jobs_change_nothing(table, tmp_path):
    def chosen(*words):
        path = tmp_path / "out.json"
        models = ["--models", "knn,linearsvc,majority"]
        run(table, *models, "--budget", 60, "--candidates", 5, "--json", path, *words)
        keys = ("model", "parameters", "cv_error", "n_wrong", "log_loss")
        rows = json.loads(path.read_text())["results"]
        return sorted(([row[key] for key in keys] for row in rows), key=str)

    assert chosen() == chosen("--jobs", 2)


@pytest.mark.slow
def test_own_classifiers_run(table, tmp_path):
    own = [system.name for system in _own()]
    path = tmp_path / "out.json"
    words = ["--models", ",".join(own), "--candidates", 1, "--folds", 2]
    result = run(table, *words, "--json", path)
    assert result.exit_code == 0, result.output
    report = json.loads(path.read_text())
    assert report["skipped"] == []
    assert {row["model"] for row in report["results"]} == set(own)
    assert all(row["error"] < 0.4 for row in report["results"]), "majority would be 0.67"


def _own():
    from loclin.cli._systems import roster

    return [system for system in roster() if system.own]


def test_interrupt_prints_what_is_finished(table, tmp_path, monkeypatch):
    whole = _compare._run

    def interrupted(system, *rest):
        if system.name == "kNN":
            raise KeyboardInterrupt
        return whole(system, *rest)

    monkeypatch.setattr(_compare, "_run", interrupted)
    path = tmp_path / "out.json"
    result = run(table, *FAST, "--json", path)
    assert result.exit_code == 130
    assert "interrupted: models that had not finished are missing" in result.stdout
    report = json.loads(path.read_text())
    assert report["interrupted"] is True
    assert {row["model"] for row in report["results"]} == {"Majority", "LinearSVC"}


def test_a_model_that_fails_is_left_out(table, monkeypatch):
    whole = _compare._run

    def failing(system, *rest):
        if system.name == "kNN":
            raise ValueError("no\nneighbours")
        return whole(system, *rest)

    monkeypatch.setattr(_compare, "_run", failing)
    result = run(table, *FAST)
    assert result.exit_code == 0
    assert "kNN left out: failed (ValueError: no neighbours)" in result.stdout
    assert "LinearSVC" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "0"], "--budget 0 is not a number of seconds above 0; try 2"),
        (["--budget", "nan"], "--budget nan is not"),
        (["--folds", "1"], "--folds 1 is too small; it must be at least 2"),
        (["--candidates", "0"], "--candidates 0 is too small; it must be at least 1"),
        (["--jobs", "0"], "--jobs 0 is too small"),
        (["--threads", "-1"], "--threads -1 is too small; it must be at least 0"),
        (["--seed", "-1"], "--seed -1 is out of range"),
        (["--models", "svc"], "no model 'svc'; the models are Majority, "),
        (["--models", " , "], "--models names none; the models are Majority, "),
        (["--test-size", "1.5"], "--test-size 1.5 is not between 0 and 1; try 0.25"),
        (["--test-size", "0.001"], "cannot be split with --test-size 0.001"),
        (["--test", "t.csv", "--test-size", "0.5"], "--test and --test-size exclude each other"),
        (["--json", "no/such/folder.json"], "no folder no/such; make it first"),
        (["--csv", "."], "--csv .: is a folder; name a file in it"),
        (["--plot", "out.gif"], "--plot out.gif: its name must end in .png, .svg, .pdf"),
    ],
)
def test_bad_options(table, words, message):
    result = run(table, *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("loclin: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


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
    printed, folder = finished
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")
    assert f"wrote {folder / 'out.png'}" in printed
    path = tmp_path / "out.svg"
    run(table, *FAST, "--plot", path)
    assert path.read_bytes().startswith(b"<?xml")
