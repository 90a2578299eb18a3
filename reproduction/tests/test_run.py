"""A killed run goes on, nothing is done twice, words choose; two sizes of everything."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import loclin
from reproduction import __main__, choices, command, data, judge, quick, runner, shapes
from reproduction.command import all_entries
from reproduction.entry import Entry
from reproduction.ml3 import tables as ml3
from reproduction.store import Cache

ROOT = Path(__file__).parents[2]
TOY = """
import sys, time
from pathlib import Path
from reproduction import runner
from reproduction.entry import Entry

def part(results, name):
    with (results / "log").open("a") as log:
        log.write(f"{name}\\n")
    time.sleep(0.1)
    return 1.0

def entries(results):
    def of(n):
        names = [f"{n}.{k}" for k in range(3)]
        return lambda cache: {"error %": [
            cache(f"set | {name}", {"a": 1}, lambda: part(results, name)) for name in names
        ]}
    return [Entry("toy", "table 1", "set", str(n), of(n), n) for n in range(4)]

if __name__ == "__main__":
    runner.run(entries(Path(sys.argv[1])), Path(sys.argv[1]), 1)
"""


def test_a_killed_run_goes_on_and_does_nothing_twice(tmp_path):
    log = tmp_path / "log"
    start = [sys.executable, "-c", TOY, str(tmp_path)]
    first = subprocess.Popen(start, cwd=ROOT, stdout=subprocess.DEVNULL)
    while not log.exists() or len(log.read_text().splitlines()) < 6:
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    begun = log.read_text().splitlines()
    assert 6 <= len(begun) < 12
    kept = Cache(tmp_path / "toy").stored
    assert len(kept) >= 6

    toy = {"__name__": "toy"}
    exec(TOY, toy)
    for _ in range(2):
        done = runner.run(toy["entries"](tmp_path), tmp_path, 1)
        assert len(done) == 4
        assert not any(outcome.error for outcome in done)
    assert not any(outcome.computed for outcome in done)
    computed = log.read_text().splitlines()
    assert set(computed) == {f"{n}.{k}" for n in range(4) for k in range(3)}
    again = [name for name in computed[len(begun) :] if name in begun]
    assert again in ([], begun[-1:])  # only the one that was killed in its midst
    assert len(computed) == 12 + len(again)
    assert kept.items() <= Cache(tmp_path / "toy").stored.items()


def chosen(folder, setting, stop_after=99):
    """Choose by cross-validation, killed where it asks for one fold more; the folds it computed."""
    y = np.arange(20) % 2
    asked = []

    def fold_errors(X, y, fold, case, ks):
        if len(asked) == stop_after:
            raise KeyboardInterrupt
        asked.append((case, ks, int(fold[1][0])))
        return [10 + abs(k) + len(case[0]) / 10 + fold[1][0] / 100 for k in ks]

    cache, key, settings = Cache(folder), "set | name | choice", {"a": setting}

    def choose():
        notes = cache.notes(key, settings)
        return choices.Search(fold_errors, y[:, None], y, notes).choose(["raw", "no"], (), {})

    try:
        return cache(key, settings, choose), asked
    except KeyboardInterrupt:
        return None, asked


@pytest.fixture
def five_folds(monkeypatch):
    for name, value in {"FOLDS": 5, "COARSE": (-4, -2, 0), "LIMITS": (-10, 6)}.items():
        monkeypatch.setattr(choices, name, value)


def test_a_killed_choice_goes_on_with_the_next_fold(tmp_path, five_folds):
    whole, all_asked = chosen(tmp_path / "whole", 1)
    folder = tmp_path / "killed"
    stopped = [chosen(folder, 1, n) for n in (7, 5)]
    assert [(found, len(asked)) for found, asked in stopped] == [(None, 7), (None, 5)]
    (file,) = (folder / ".unfinished").glob("*")
    file.write_text(file.read_text()[:-9])  # the kill came while the twelfth fold was written
    found, asked = chosen(folder, 1)
    assert found == whole
    assert [*stopped[0][1], *stopped[1][1][:4], *asked] == all_asked
    assert not file.exists()
    assert chosen(folder, 1) == (whole, [])

    chosen(folder, 2, 3)
    assert chosen(folder, 3) == (whole, all_asked)  # what its notes depend on has changed


def test_killed_fits_go_on_with_the_next_seed(tmp_path):
    fitted: list[int] = []

    def errors(stop_at, setting=1):
        def fit(seed):
            if seed == stop_at:
                raise KeyboardInterrupt
            fitted.append(seed)
            return seed / 10, setting

        cache, settings = Cache(tmp_path), {"a": setting}
        try:
            return cache.each("set | name | test", settings, range(5), fit)
        except KeyboardInterrupt:
            return None

    whole = [[seed / 10, 1] for seed in range(5)]
    assert [errors(2), errors(4), errors(None), errors(0)] == [None, None, whole, whole]
    assert fitted == [0, 1, 2, 3, 4]
    assert not list((tmp_path / ".unfinished").glob("*"))

    assert [errors(3, 2), errors(None, 3)] == [None, [[seed / 10, 3] for seed in range(5)]]
    assert fitted[5:] == [0, 1, 2, 0, 1, 2, 3, 4]  # what the notes depend on had changed


def test_seconds_of_a_choice_are_those_of_all_its_runs(tmp_path, five_folds):
    chosen(tmp_path, 1, 7)
    (file,) = (tmp_path / ".unfinished").glob("*")
    first, *lines = file.read_text().splitlines()
    lines = [json.dumps([*json.loads(line)[:2], [100.0, 200.0]]) for line in lines]
    file.write_text("\n".join([first, *lines, ""]))
    chosen(tmp_path, 1)
    seconds = Cache(tmp_path).stored["set | name | choice"]["seconds"]
    assert 700 < seconds[0] < 710
    assert 1400 < seconds[1] < 1410


def test_a_changed_setting_reruns_only_itself(tmp_path):
    done: list[str] = []

    def ask(key, setting):
        return Cache(tmp_path)(key, {"rows": setting}, lambda: done.append(key) or setting)

    assert [ask("a", 1), ask("b/c | d", 1), ask("a", 2), ask("b/c | d", 1), ask("a", 2)] == [
        1, 1, 2, 1, 2
    ]  # fmt: skip
    assert done == ["a", "b/c | d", "a"]
    entry = json.loads((tmp_path / "a.json").read_text())["a"]
    assert entry["made with"]["threads"] == 1
    assert {"python", "loclin", "numpy", "scikit-learn"} <= entry["made with"].keys()
    assert len(entry["seconds"]) == 2


def fail(cache):
    raise RuntimeError("no luck")


def test_an_entry_that_fails_does_not_stop_the_others(tmp_path, capsys):
    runs = {"a": fail, "b": lambda cache: {"error %": [1.0]}}
    toys = [Entry("toy", "table 1", "set", name, run, 1) for name, run in runs.items()]
    done = runner.run(toys, tmp_path, 1)
    assert ["no luck" in outcome.error for outcome in done] == [True, False]
    out = capsys.readouterr().out
    assert "set | a: " in out
    assert "[2/2, 0:00:00 left]" in out
    assert "2 entries, 0 results computed, 1 failed" in runner.closing(done, 1.0, 1)
    assert list(judge.stored_results(tmp_path, toys)) == [("toy", "table 1 | set | b")]


def test_words_choose_entries(capsys):
    every = all_entries()
    chosen = command.chosen(["ml3 table 2 heart", "sapl figure 1"], every)
    assert {e.paper for e in chosen} == {"ml3", "sapl"}
    assert len(chosen) == 8
    assert [e.system for e in command.chosen(["l3m table 2 dna L3M"], every)] == ["L3M"]
    assert command.chosen([], every) == every
    with pytest.raises(SystemExit, match="no entry begins with 'svm'"):
        command.chosen(["svm"], every)
    assert __main__.main(["--list", "ussvm"]) == 0
    assert "ussvm figure 2 usps curves: 0.5 min" in capsys.readouterr().out


def test_the_papers_size_unless_quick():
    """Settings by which stored results are found must stay."""
    code = (
        "from reproduction import choices, command, shapes\n"
        "from reproduction.ml3 import tables\n"
        "print(choices.FOLDS, len(choices.PREPARE), tables.ROWS['ML3'].epochs, shapes.GRID,"
        " command.RESULTS.name, command.PAGE.parent.name)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "REPRODUCTION_QUICK"}
    command_line = [sys.executable, "-c", code]
    found = subprocess.check_output(command_line, cwd=ROOT, env=environment, text=True)
    assert found.split() == ["5", "5", "30", "120", "results", "docs"]
    assert quick.QUICK
    assert (choices.FOLDS, len(choices.PREPARE)) == (2, 2)
    assert (ml3.ROWS["ML3"].epochs, shapes.GRID) == (3, 20)
    assert command.RESULTS.name == command.PAGE.parent.name == "quick"


def test_few_rows_have_every_class():
    X, y = np.arange(5000.0).reshape(-1, 1), np.r_[np.zeros(4980), np.ones(15), np.full(5, 2)]
    X_few, y_few = data.part_of(X, y, 250)
    np.testing.assert_array_equal(np.unique(y_few, return_counts=True)[1], [249, 8, 5])
    np.testing.assert_array_equal(y[X_few.ravel().astype(int)], y_few)


def public(module, name=""):
    """Tell whether a module of loclin, and a name in it, are promised to users."""
    parts = module.split(".")
    if parts == ["loclin"]:
        return not name or name in loclin.__all__ or name in ("codings", "datasets")
    return parts[1:] in (["codings"], ["datasets"]) and not name.startswith("_")


def test_only_public_names_of_loclin_are_imported():
    for path in (ROOT / "reproduction").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imported = []
            if isinstance(node, ast.Import):
                imported = [(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imported = [(node.module, alias.name) for alias in node.names]
            for module, name in imported:
                package = module.split(".")[0]
                assert package != "benchmarks"
                assert package != "loclin" or public(module, name), f"{path}: {module} {name}"
