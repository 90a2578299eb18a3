"""Time limits, whole files, and standard streams that fail."""

import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from loclin.cli import _compare, _comparing, _outputs
from loclin.cli._compare import Result, Skipped, compare
from loclin.cli._data import Data
from loclin.cli._outputs import replace_file
from loclin.cli._settings import Settings
from loclin.cli._systems import System, roster
from loclin.cli._terminal import say
from loclin.cli._workers import outcomes
from tests.test_cli import refused, reported, run

MAJORITY = ["iris", "--models", "majority"]
IN_ONE_PROCESS = ["--jobs", "1", "--time-limit", "0"]
Y = np.arange(40) % 2
DATA = Data("d", "", "", np.eye(40), Y, np.eye(40), Y, ("a", "b"))


# What runs in a worker's process is found there by its name.


def build_idle(seed, **parameters):
    time.sleep(60)


def build_dying(seed, **parameters):
    os.kill(os.getpid(), signal.SIGKILL)


def build_majority(seed, **parameters):
    from sklearn.dummy import DummyClassifier

    return DummyClassifier()


def echo(item, callback):
    callback(os.getpid())
    return item


def work(item, tell):
    """Take a moment, and return when."""
    start = time.perf_counter()
    tell(item)
    time.sleep(0.3)
    return start, time.perf_counter()


# --- time limits --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_model_that_hangs_or_dies_is_left_out_and_others_go_on():
    systems = [
        System("idle", build_idle),
        System("dying", build_dying),
        System("quick", build_majority),
    ]
    steps = []
    start = time.perf_counter()
    idle, dying, quick = compare(DATA, systems, Settings(time_limit=1.5), steps.append)
    assert time.perf_counter() - start < 50, "three processes started"
    assert idle == Skipped("idle", "timed out after 1.5 s (--time-limit)", timed_out=True)
    assert dying == Skipped("dying", "failed (its process died; was the memory enough?)")
    assert isinstance(quick, Result)
    doing = [step.doing for step in steps if step.model == "quick"]
    assert doing == ["warming up", "fitting 40 rows", "timing predictions"], "nothing to tune"


@pytest.mark.slow
def test_a_worker_is_one_process_and_a_screen_that_is_gone_is_not_taken_for_its_death():
    numbers, ended = [], []

    def tell(number):
        if len(numbers) == 2:
            raise BrokenPipeError
        numbers.append(number)

    with pytest.raises(BrokenPipeError):
        ended.extend(outcomes(echo, [1, 2, 3], count=1, seconds=60, tell=tell))
    assert ended == [(1, 1), (2, 2)]
    assert numbers[0] == numbers[1] != os.getpid()


@pytest.mark.slow
def test_several_work_at_once_and_each_item_once():
    told = []
    ended = dict(outcomes(work, range(6), count=3, seconds=60, tell=told.append))
    assert sorted(ended) == sorted(told) == [0, 1, 2, 3, 4, 5]
    starts, ends = zip(*ended.values(), strict=True)
    assert sum(one < other for one in starts for other in ends) > 6 * 6 / 2 + 3, "side by side"


def test_all_systems_reach_a_process():
    names = [system.name for system in pickle.loads(pickle.dumps(roster()))]
    assert names == [system.name for system in roster()]


def test_timed_out_models_are_in_the_tables(monkeypatch, tmp_path):
    def late(data, systems, settings, callback):
        yield Skipped("kNN", "timed out after 3 s (--time-limit)", timed_out=True)

    monkeypatch.setattr(_compare, "compare", late)
    result = run("iris", "--html", tmp_path / "t.html")
    assert result.exit_code == 0
    assert any(line.split()[:3] == ["kNN", "timed", "out"] for line in result.stdout.splitlines())
    (row,) = reported("iris")["skipped"]
    assert row == {
        "model": "kNN", "reason": "timed out after 3 s (--time-limit)", "timed_out": True
    }  # fmt: skip
    assert "<td>timed out</td>" in (tmp_path / "t.html").read_text()


def test_the_default_limit_grows_with_the_budget():
    assert Settings.default_time_limit(0.1) == 300
    assert Settings.default_time_limit(30) == 600
    assert Settings.default_time_limit(1e308) == 1e9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--time-limit", "-1"], "'--time-limit'"),
        (["--time-limit", "1e400"], "'--time-limit'"),
        (["--max-gb", "0"], "'--max-gb'"),
        (["--csv", "x.out", "--html", "./x.out"], "--html x.out: is that of --csv too"),
    ],
)
def test_bad_options(words, message, capsys, monkeypatch):
    assert message in refused(capsys, monkeypatch, "compare", "iris", *words)


# --- files are whole ----------------------------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch):
    """Let every write stop half way."""
    fsync = os.fsync

    def full(number):
        os.ftruncate(number, os.fstat(number).st_size // 2)
        fsync(number)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)


@pytest.mark.parametrize(
    "option",
    ["csv", pytest.param("html", marks=pytest.mark.slow), "plot"],
)
def test_a_full_disk_leaves_the_earlier_file(tmp_path, monkeypatch, option, full_disk):
    if option == "plot":
        pytest.importorskip("matplotlib")
    path = tmp_path / "t.png"
    path.write_text("the earlier one")
    result = run(*MAJORITY, f"--{option}", path)
    assert result.exit_code == 2
    assert result.stderr.endswith(
        f"loclin: --{option} {path}: cannot be written (No space left on device); choose another "
        "place or name\n"
    )
    assert path.read_text() == "the earlier one"
    assert os.listdir(tmp_path) == ["t.png"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of a process")
def test_files_that_may_not_grow_are_left_whole(tmp_path):
    path = tmp_path / "t.html"
    path.write_text("the earlier one")
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
        "from loclin.cli import main\n"
        "main()\n"
    )
    words = ["compare", *MAJORITY, *IN_ONE_PROCESS, "--html", str(path)]
    found = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert found.returncode == 2
    assert "cannot be written (File too large)" in found.stderr
    assert path.read_text() == "the earlier one"


def test_one_file_that_fails_does_not_cost_the_others(tmp_path, monkeypatch):
    whole = _outputs.replace_file

    def failing(path, content):
        if path.suffix == ".html":
            raise OSError(28, "No space left on device")
        whole(path, content)

    monkeypatch.setattr(_outputs, "replace_file", failing)
    result = run(*MAJORITY, "--html", tmp_path / "t.html", "--csv", tmp_path / "t.csv")
    assert result.exit_code == 2
    assert (tmp_path / "t.csv").read_text().startswith("model,")
    assert f"wrote {tmp_path / 't.csv'}" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links")
def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path):
    path, link = tmp_path / "t.txt", tmp_path / "link"
    path.write_text("earlier")
    path.chmod(0o640)
    link.symlink_to(path)
    replace_file(link, b"later")
    assert (link.is_symlink(), path.read_text(), path.stat().st_mode & 0o777) == (
        True, "later", 0o640
    )  # fmt: skip
    replace_file(tmp_path / "new", b"")
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~umask
    replace_file(type(path)(os.devnull), b"gone")
    assert not path.__class__(os.devnull).is_file()


# --- standard streams -----------------------------------------------------------------------------


def loclin(words, **options):
    command = [sys.executable, "-m", "loclin.cli", "compare", *words, *IN_ONE_PROCESS]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, **options)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
@pytest.mark.slow
def test_a_full_standard_output():
    with open("/dev/full", "w") as full:
        found = loclin(MAJORITY, stdout=full)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1] == (
        "loclin: the standard output cannot be written (No space left on device)"
    )


@pytest.mark.slow
def test_a_reader_that_left():
    reading, writing = os.pipe()
    os.close(reading)
    found = loclin(MAJORITY, stdout=writing)
    os.close(writing)
    lines = [line for line in found.stderr.splitlines() if not line.startswith("note: ")]
    assert (found.returncode, lines) == (1, [])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell's redirection")
def test_a_closed_standard_output(tmp_path):
    def close():
        os.close(1)

    found = loclin(MAJORITY, preexec_fn=close)
    assert found.returncode == 2
    assert "the standard output is closed; write a file" in found.stderr
    found = loclin([*MAJORITY, "--csv", str(tmp_path / "t.csv")], preexec_fn=close)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "t.csv").read_text().startswith("model,")


def test_a_screen_that_fails_keeps_what_is_finished(tmp_path, monkeypatch):
    class Failing:
        def step(self, step):
            pass

        def finish(self, outcome, metric):
            raise OSError(28, "No space left on device")

    @contextmanager
    def watching(names):
        yield Failing()

    monkeypatch.setattr(_comparing, "watching", watching)
    result = run("iris", "--models", "majority,knn", "--csv", tmp_path / "t.csv")
    assert result.exit_code == 1
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["model", "Majority"]


@pytest.mark.parametrize("words", [["--foldz", "3"], ["--folds", "three"], ["a", "b"]])
def test_bad_usage_gets_one_line(monkeypatch, capsys, words):
    assert "(loclin compare --help)" in refused(capsys, monkeypatch, "compare", *words)


def test_names_reach_the_screen_written_out(capsys):
    say("note: red\x1b[2J")
    assert capsys.readouterr().out == "note: red\\x1b[2J\n"
