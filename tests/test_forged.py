"""The script of forged files runs, and finds at fault what is."""

import os
import signal
import subprocess
import sys
import time

import pytest

import loclin.io
from tests.robustness import forged

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads memory in /proc")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork of what has threads
def test_some_cases():
    kinds = ["soft", "llc", "planes", "svmknn"]
    for number in range(40):
        done, told = forged.run_case(0, number, kinds, ["dense float64"])
        assert not told.startswith("FAILED"), f"{number}: {done}: {told}"


@pytest.mark.slow
@pytest.mark.long  # `tests.robustness.forged`
def test_some_cases_whose_loops_look_at_bounds():
    words = ["-m", "tests.robustness.forged", "--cases", "60", "--forms", "dense float64"]
    words += ["--kinds", "ml3", "sapl", "l3m online", "pipeline", "lcc"]
    found = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert found.stdout.endswith("60 cases, 0 failed\n")


def crash(path):
    os.kill(os.getpid(), signal.SIGKILL)


def take_memory(path):
    raise ValueError(bytearray(2 * forged.BYTES)[-1:])


def take_time(path):
    end = time.process_time() + 1.5 * forged.SECONDS
    while time.process_time() < end:
        pass


def raise_another_error(path):
    raise KeyError(path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("load", "told"),
    [
        (crash, "FAILED crashed with -9"),
        (take_memory, "FAILED load took 200 MB"),
        (take_time, "FAILED load took 1.5 s"),
        (raise_another_error, "FAILED load raised KeyError"),
    ],
)
def test_what_is_at_fault(load, told, monkeypatch):
    _, *rest = forged.prepared("soft", "unfitted", "dense", "float64", 2)
    monkeypatch.setattr(loclin.io, "load", load)
    assert forged.in_child("a file", *rest).startswith(told)
