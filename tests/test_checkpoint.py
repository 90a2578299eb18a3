"""A fit that is killed goes on from its file."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

import loclin
import loclin.io
from loclin import callbacks
from loclin.callbacks import Checkpoint, CheckpointWarning
from loclin.fitting import rows

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

resource = pytest.importorskip("resource", reason="limits the size of files")
needs_callbacks = pytest.mark.skipif(
    not hasattr(loclin.ML3Classifier, "set_callbacks"), reason="needs scikit-learn 1.9"
)

rng = np.random.default_rng(0)
X = rng.standard_normal((150, 5))
y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] ** 2, [0.3, 1.2])
SHORT = {"alpha": "scale", "max_iter": 12, "average": 2, "tol": 0, "random_state": 0}
FEW = {"alpha": "scale", "max_iter": 12, "tol": 0, "random_state": 0}
# The models that end where they would have without the kill, and those that come near.
SAME = {
    "ml3": loclin.ML3Classifier(3, **SHORT),
    "llsvm": loclin.LLSVMClassifier(**SHORT),
    "l3m": loclin.L3MClassifier(3, alpha="scale", max_iter=8, random_state=0),
    "l3m online": loclin.L3MClassifier(3, solver="online", **FEW),
    "ussvm": loclin.USSVMClassifier(6, beta="scale", max_iter=12, tol=0, random_state=0),
}
NEAR = {
    "dual": loclin.LLSVMClassifier(solver="dual_cd", **FEW | {"tol": 1e-9}),
    "csvm": loclin.CSVMClassifier(6, **FEW | {"tol": 1e-9}),
    "ldkl": loclin.LDKLClassifier(2, **SHORT),
    "lmkl": loclin.LMKLClassifier(3, **SHORT),
    "sapl": loclin.SAPLClassifier(10, 3, **SHORT),
}
CONVERGES = "ignore::sklearn.exceptions.ConvergenceWarning"


class Killed(BaseException):
    """What ends a fit."""


class Kill:
    """Ends a fit after some iterations."""

    def __init__(self, after):
        self.after = after

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        if len(estimator.objective_) == self.after:
            raise Killed


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.loclin"


def cut_off(model, path, after, every):
    model = clone(model).set_callbacks(Checkpoint(path, every), Kill(after))
    with pytest.raises(Killed):
        model.fit(X, y)
    return loclin.io.load(path)


@needs_callbacks
@pytest.mark.filterwarnings(CONVERGES)
@pytest.mark.parametrize("name", [*SAME, *NEAR])
def test_a_fit_goes_on_from_its_checkpoint(name, path):
    model = SAME.get(name) or NEAR[name]
    whole = clone(model).fit(X, y)
    again = cut_off(model, path, after=6, every=4)
    assert again.n_iter_ == 4
    assert again.score(X, y) > 0.3 or name == "ussvm"  # which is linear, and learns nothing here
    assert np.isfinite(again.decision_function(X)).all()
    again.fit(X, y)
    assert again.n_iter_ == len(again.objective_) == whole.n_iter_
    assert again.get_params() == whole.get_params()
    if name in SAME:
        np.testing.assert_allclose(again.objective_, whole.objective_, rtol=1e-7)
        expected = whole.decision_function(X)
        np.testing.assert_allclose(again.decision_function(X), expected, rtol=1e-5, atol=1e-5)
    else:
        assert again.objective_[-1] < 1.5 * whole.objective_[-1]
    assert again.score(X, y) == pytest.approx(whole.score(X, y), abs=0.15)


@needs_callbacks
def test_sapl_keeps_its_alpha(path):
    """Its codes have changed meanwhile, by whose norms a fit sets it where it begins."""
    whole = clone(NEAR["sapl"]).fit(X, y)
    again = cut_off(NEAR["sapl"], path, after=6, every=4).fit(X, y)
    assert again.alpha_ == whole.alpha_


@needs_callbacks
@pytest.mark.parametrize("after", [4, 8, 11])
def test_a_plateau_is_where_it_was(after, path):
    model = clone(SAME["ml3"]).set_params(max_iter=40, n_iter_no_change=3, tol=0.02)
    whole = clone(model).fit(X, y)
    assert 11 < whole.n_iter_ < 40
    assert cut_off(model, path, after, every=1).fit(X, y).n_iter_ == whole.n_iter_


@needs_callbacks
def test_rows_held_out_and_alpha_are_those_of_before(path):
    model = loclin.ML3Classifier(2, max_iter=8, early_stopping=True, random_state=0)
    whole = clone(model).fit(X, y)
    again = cut_off(model, path, after=4, every=2).fit(X, y)
    assert again.alpha_ == whole.alpha_
    assert again.validation_scores_[:4] == whole.validation_scores_[:4]
    assert len(again.validation_scores_) == again.n_iter_


@needs_callbacks
def test_rows_held_out_are_those_of_before_without_a_seed(path, monkeypatch):
    held_out = []

    def remember(*args):
        parts = rows.hold_out(*args)
        held_out.append(parts[1].origin)
        return parts

    monkeypatch.setattr("loclin.fitting.base.hold_out", remember)
    model = loclin.ML3Classifier(2, max_iter=8, early_stopping=True)
    before = cut_off(model, path, after=4, every=2)
    assert before.fit(X, y).n_iter_ == len(before.validation_scores_)
    np.testing.assert_array_equal(*held_out)


@needs_callbacks
def test_small_features_go_on_in_their_units(path):
    model = loclin.ML3Classifier(3, **SHORT)
    small = X * 1e-6
    whole = clone(model).fit(small, y)
    with pytest.raises(Killed):
        clone(model).set_callbacks(Checkpoint(path), Kill(5)).fit(small, y)
    again = loclin.io.load(path).fit(small, y)
    expected = whole.decision_function(small)
    np.testing.assert_allclose(again.decision_function(small), expected, rtol=1e-6, atol=1e-9)


@needs_callbacks
def test_the_file_of_a_fit_that_is_over_has_the_fitted_model(path):
    model = clone(SAME["ml3"]).set_callbacks(Checkpoint(path, every=5)).fit(X, y)
    again = loclin.io.load(path)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.n_iter_ == 12
    assert again.fit(X, y).objective_ == model.objective_  # anew, without warm_start
    assert [*path.parent.iterdir()] == [path]


@needs_callbacks
def test_a_full_disk_does_not_end_the_fit(path):
    model = clone(SAME["ml3"]).set_callbacks(Checkpoint(path, every=5))

    class Full(Kill):
        def on_fit_task_end(self, estimator, context):
            if len(estimator.objective_) == 7:
                resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    model.set_callbacks(Checkpoint(path, every=5), Full(7))
    try:
        with pytest.warns(CheckpointWarning, match=r"could not be written .* The fit goes on"):
            model.fit(X, y)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert model.n_iter_ == 12
    assert loclin.io.load(path).n_iter_ == 5


@needs_callbacks
def test_what_cannot_be_written_is_told_at_the_start(path):
    started = Kill(1)
    model = clone(SAME["ml3"]).set_callbacks(Checkpoint(path.parent / "no" / "folder"), started)
    with pytest.raises(FileNotFoundError):
        model.fit(X, y)
    coded = loclin.LLSVMClassifier(FunctionTransformer(abs)).set_callbacks(
        Checkpoint(path), started
    )
    with pytest.raises(ValueError, match=r"model.coding.func cannot be saved"):
        coded.fit(X, y)
    assert not [*path.parent.iterdir()]


@needs_callbacks
def test_parameters_are_checked(path):
    with pytest.raises(ValueError, match="every=0"):
        Checkpoint(path, every=0)


def test_older_versions_of_scikit_learn_are_told(path, monkeypatch):
    monkeypatch.setattr(callbacks, "CallbackSupportMixin", object)
    with pytest.raises(ImportError, match=r"needs the callbacks of scikit-learn 1\.9: pip"):
        Checkpoint(path)


STREAMS = {
    "ml3": loclin.ML3Classifier(3, random_state=0),
    "llsvm": loclin.LLSVMClassifier(random_state=0),
    "sapl": loclin.SAPLClassifier(10, 3, random_state=0),
    "l3m": loclin.L3MClassifier(3, solver="online", random_state=0),
    "ussvm": loclin.USSVMClassifier(6, beta="scale", random_state=0),
    "csvm": loclin.CSVMClassifier(6, random_state=0),
    "ldkl": loclin.LDKLClassifier(2, random_state=0),
    "lmkl": loclin.LMKLClassifier(3, random_state=0),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_goes_on_after_the_rows_that_its_file_has_seen(name, path):
    whole = clone(STREAMS[name])
    for first in range(0, 150, 30):
        whole.partial_fit(X[first : first + 30], y[first : first + 30], classes=[0, 1, 2])
        if first == 60:
            loclin.io.save(whole, path)
    again = loclin.io.load(path)
    assert again.t_ == 90
    for first in range(again.t_, 150, 30):
        again.partial_fit(X[first : first + 30], y[first : first + 30])
    assert again.t_ == whole.t_ == 150
    np.testing.assert_array_equal(again.decision_function(X), whole.decision_function(X))


CODE = """
import os, signal, sys
import loclin
from loclin.callbacks import Checkpoint
from tests.test_checkpoint import Kill, SAME, X, y

class Now(Kill):
    def on_fit_task_end(self, estimator, context):
        if len(estimator.objective_) == self.after:
            os.kill(os.getpid(), signal.SIGKILL)

SAME["ml3"].set_callbacks(Checkpoint(sys.argv[1], every=3), Now(8)).fit(X, y)
"""


@pytest.mark.slow
@needs_callbacks
def test_a_process_that_is_killed_leaves_its_last_checkpoint(path):
    found = subprocess.run([sys.executable, "-c", CODE, str(path)])
    assert found.returncode == -signal.SIGKILL
    again = loclin.io.load(path)
    assert again.n_iter_ == 6
    whole = clone(SAME["ml3"]).fit(X, y)
    expected = whole.decision_function(X)
    np.testing.assert_allclose(again.fit(X, y).decision_function(X), expected, rtol=1e-9)
