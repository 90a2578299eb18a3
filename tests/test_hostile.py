"""The script of hostile cases runs, and finds the command line at fault where it is."""

import json
import subprocess
import sys

import pytest

from tests.robustness.hostile.case import Case
from tests.robustness.hostile.runner import _judge, cases

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


@pytest.mark.slow
def test_some_cases(tmp_path):
    file = tmp_path / "t.json"
    words = ["-m", "tests.robustness.hostile", "--only", "npz csr", "--cases", "3"]
    words += ["--json", str(file)]
    found = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    assert "cases 3, traceback 0, signal 0, over time 0, over memory 0" in found.stdout
    outcomes = json.loads(file.read_text())["outcomes"]
    assert [(one["status"], one["err_lines"], one["faults"]) for one in outcomes] == 3 * [
        (2, 1, [])
    ]


def test_every_case_has_a_name_of_its_own():
    names = [case.name for case in cases()]
    assert len(names) == len(set(names)) >= 250


@pytest.mark.parametrize(
    ("status", "told", "seconds", "kilobytes", "late", "faults"),
    [
        (2, "loclin: no\n", 1, 10**5, False, ()),
        (1, "Traceback ...\nValueError\n", 1, 10**5, False, ("traceback", "status", "lines")),
        (-11, "", 1, 10**5, False, ("signal",)),
        (-9, "", 1, 10**5, True, ("over time",)),
        (2, "loclin: no\n", 31, 2 * 10**6, False, ("over time", "over memory")),
        (2, "", 1, 10**5, False, ("lines",)),
    ],
)
def test_what_is_at_fault(status, told, seconds, kilobytes, late, faults):
    kilobytes = kilobytes * 1000 if sys.platform == "darwin" else kilobytes
    case = Case("c", lambda folder: [])
    assert _judge(case, status, "", told, seconds, kilobytes, late).faults == faults
