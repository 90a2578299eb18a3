import importlib
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

import loclin.fitting.callbacks
from loclin import LocallyLinearEnsemble, ML3Classifier, SAPLClassifier
from loclin.callbacks import Checkpoint

try:
    import sklearn.callback as skcallback
except ImportError:
    skcallback = None

needs_callbacks = pytest.mark.skipif(skcallback is None, reason="needs scikit-learn 1.9")


class Recorder:
    """Writes down what it is told; asks to stop after some iterations."""

    def __init__(self, stop_after=None):
        self.events, self.scores, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.events.append(f"end {context.task_name}")
        self.scores.append(fitted_estimator.score(X, y))
        return self.stop_after is not None and len(self.scores) >= self.stop_after

    def teardown(self, estimator, context):
        self.events.append("teardown")


@needs_callbacks
def test_callbacks_see_every_iteration():
    recorder = Recorder()
    X, y = load_iris(return_X_y=True)
    clf = ML3Classifier(2, max_iter=3, random_state=0).set_callbacks(recorder).fit(X, y)
    iteration = ["begin iteration", "end iteration"]
    assert recorder.events == ["setup", "begin fit", *iteration * 3, "end fit", "teardown"]
    assert recorder.scores[-1] == clf.score(X, y)


@needs_callbacks
def test_a_callback_can_stop_the_fit():
    X, y = load_iris(return_X_y=True)
    clf = ML3Classifier(2, average=2, random_state=0).set_callbacks(Recorder(stop_after=3))
    assert clf.fit(X, y).n_iter_ == 5  # three, and two to average


@needs_callbacks
def test_progress_bar(capfd):
    X, y = load_iris(return_X_y=True)
    clf = ML3Classifier(2, max_iter=5, random_state=0).set_callbacks(skcallback.ProgressBar())
    clf.fit(X, y)
    assert "ML3Classifier" in capfd.readouterr().out


def small_ensemble():
    kinds = [ML3Classifier(2, max_iter=3), SAPLClassifier(5, 3, max_iter=3)]
    return LocallyLinearEnsemble(kinds, n_folds=2, random_state=0)


class Names:
    """Writes down the names of the tasks that end."""

    def __init__(self):
        self.ended = []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)

    def teardown(self, estimator, context):
        pass


@needs_callbacks
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_ensemble_tells_of_its_members(n_jobs, capfd):
    X, y = load_iris(return_X_y=True)
    names = Names()
    watched = small_ensemble().set_params(n_jobs=n_jobs)
    watched.set_callbacks(names, skcallback.ProgressBar()).fit(X, y)
    assert names.ended == ["member"] * 4 + ["fit"]
    told = capfd.readouterr().out
    assert "LocallyLinearEnsemble" in told
    assert "ML3Classifier" in told, "members tell of their iterations"
    plain = small_ensemble().fit(X, y)
    np.testing.assert_array_equal(watched.decision_function(X), plain.decision_function(X))
    assert not any(hasattr(member, "_skl_callbacks") for member in watched.members_)


@needs_callbacks
def test_an_ensemble_has_no_checkpoint(tmp_path):
    model = small_ensemble().set_callbacks(Checkpoint(tmp_path / "a.loclin"))
    with pytest.raises(TypeError, match="LocallyLinearEnsemble has none that it could go on from"):
        model.fit(*load_iris(return_X_y=True))
    assert not list(tmp_path.iterdir())


@needs_callbacks
def test_callbacks_leave_the_model_as_it_is():
    X, y = load_iris(return_X_y=True)
    plain = ML3Classifier(2, max_iter=5, random_state=0).fit(X, y)
    watched = ML3Classifier(2, max_iter=5, random_state=0).set_callbacks(Recorder()).fit(X, y)
    np.testing.assert_array_equal(plain.local_coef_, watched.local_coef_)


def test_without_the_callback_api_nothing_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    try:
        twin = importlib.reload(loclin.fitting.callbacks)

        class Estimator(twin.CallbackSupportMixin):
            @twin.with_callbacks
            def fit(self):
                context = self._init_callback_context(max_subtasks=2)
                context.call_on_fit_task_begin(estimator=self, X=None)
                task = context.subcontext(task_name="iteration")
                assert task.call_on_fit_task_end(estimator=self) is False
                return self

        assert Estimator().fit() is not None
        assert not hasattr(Estimator, "set_callbacks")
    finally:
        monkeypatch.undo()
        importlib.reload(loclin.fitting.callbacks)
