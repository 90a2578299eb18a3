"""The examples of docs/extending.md: a coding and a loss (the model is in test_sixth_model)."""

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import loclin
from tests.extending.gaussian_coding import GaussianCoding
from tests.extending.modified_huber import (
    modified_huber_conjugate,
    modified_huber_slope,
    modified_huber_value,
)

EXAMPLES = Path(__file__).parent / "extending"


@parametrize_with_checks([GaussianCoding(random_state=0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_coding_is_a_transformer(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["sgd", "dual_cd"])
def test_the_coding_serves_a_classifier(solver):
    X, y = load_iris(return_X_y=True)
    model = loclin.LLSVMClassifier(
        GaussianCoding(), solver=solver, alpha="scale", random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.local_weights(X).shape == (150, 20)


margins = st.floats(-10, 10)


@given(z=margins)
def test_the_loss_has_its_slope_and_its_conjugate(z):
    step = 1e-6
    rise = modified_huber_value(z + step) - modified_huber_value(z - step)
    s = modified_huber_slope(z)
    assert s == pytest.approx(rise / (2 * step), abs=1e-4)
    value = modified_huber_value(z)
    assert value + modified_huber_conjugate(s) == pytest.approx(s * z, abs=1e-9)
    assert math.isinf(modified_huber_conjugate(-4.5))


def with_the_loss(source):
    """`engine/losses.py` with the edits that docs/extending.md lists."""
    example = (EXAMPLES / "modified_huber.py").read_text()
    functions = example[example.index("@jit") :]
    edits = {
        "    LOGISTIC = 2\n": "    LOGISTIC = 2\n    MODIFIED_HUBER = 3\n",
        "_SERVES = {\n": '_SERVES = {\n    Loss.MODIFIED_HUBER: {"descent", "concave-convex"},\n',
        "@jit\ndef loss_value": f"{functions}\n\n@jit\ndef loss_value",
    }
    for kind, argument in (("value", "z"), ("slope", "z"), ("conjugate", "s")):
        head = f"def loss_{kind}(loss, {argument}):\n"
        begin = source.index(head)
        at = (
            source.index("    if ", begin)
            if kind != "conjugate"
            else source.index("    a = ", begin)
        )
        old = source[begin:at]
        call = f"        return modified_huber_{kind}({argument})\n"
        edits[old] = f"{old}    if loss == 3:\n{call}"
    for old, new in edits.items():
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


@pytest.mark.slow
@pytest.mark.long
def test_the_loss_trains_once_it_is_in_the_table(tmp_path):
    package = tmp_path / "loclin"
    shutil.copytree(Path(loclin.__file__).parent, package, ignore=shutil.ignore_patterns("__py*"))
    losses = package / "engine" / "losses.py"
    losses.write_text(with_the_loss(losses.read_text()))
    code = (
        "from sklearn.datasets import load_iris\n"
        "from loclin import LLSVMClassifier\n"
        "from tests.extending.gaussian_coding import GaussianCoding\n"
        "X, y = load_iris(return_X_y=True)\n"
        "options = dict(loss='modified_huber', alpha='scale', calibrate=False, random_state=0)\n"
        "assert LLSVMClassifier(GaussianCoding(), **options).fit(X, y).score(X, y) > 0.95\n"
        "try: LLSVMClassifier(solver='dual_cd', **options).fit(X, y)\n"
        "except ValueError as error: assert 'modified_huber' in str(error)\n"
        "else: raise AssertionError('it does not serve the dual')\n"
    )
    folders = os.pathsep.join([str(tmp_path), str(EXAMPLES.parents[1])])
    environment = os.environ | {"PYTHONPATH": folders, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["NUMBA_OPT"] = "0"  # compiled in half the time
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
