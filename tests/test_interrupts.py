"""An interrupt, whenever it comes, ends in KeyboardInterrupt and leaves the estimator as it was."""

import ast
import importlib
import inspect
import pkgutil
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from threading import Barrier, Event, Thread, main_thread
from threading import enumerate as enumerate_threads
from types import SimpleNamespace

import numpy as np
import pytest
from numba import types
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import loclin
from loclin.codings import LocalCoordinateCoding, OrthogonalCoding, SoftAssignmentCoding
from loclin.engine.cache import compile_beside
from loclin.engine.data import distinct_rows
from loclin.engine.threads import handling_restored
from loclin.engine.warned import quiet
from loclin.ml3.recipe import ML3Recipe
from tests.robustness import interrupts

FEW = {"alpha": "scale", "metric": None, "pieces": None, "random_state": 0}


def entries():
    """Compiled functions that Python can call, by name."""
    for info in pkgutil.walk_packages(loclin.__path__, "loclin."):
        if not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                own = getattr(value, "py_func", None)
                if own is not None and inspect.getmodule(own) is module:
                    yield f"{info.name}.{name}", value


def is_plain(kind):
    """Tell whether boxing a value calls no Python code, in which a signal would be handled."""
    if isinstance(kind, types.BaseNamedTuple):
        return False
    if isinstance(kind, types.BaseTuple):
        return all(map(is_plain, kind))
    return isinstance(kind, types.Number | types.Boolean | types.NoneType)


@pytest.fixture(scope="module")
def compiled():
    """Entries, after fits and predictions have compiled each of them at least once."""
    X, y = load_iris(return_X_y=True)
    X, few = X - X.mean(axis=0), {"max_iter": 2, **FEW}
    models = [
        loclin.ML3Classifier(2, p=1.7, **few),
        loclin.LLSVMClassifier(SoftAssignmentCoding(4, 2), **few),
        loclin.LLSVMClassifier(OrthogonalCoding(2), solver="dual_cd", **few),
        loclin.LLSVMClassifier(
            SoftAssignmentCoding(4, 2), solver="dual_cd", multi_class="crammer_singer", **few
        ),
        loclin.LLSVMClassifier(LocalCoordinateCoding(3), **few),
        loclin.SAPLClassifier(4, 2, **few),
        loclin.LDKLClassifier(2, max_iter=2, alpha="scale", random_state=0),
        loclin.LMKLClassifier(2, max_iter=2, alpha="scale", random_state=0),
        loclin.L3MClassifier(2, max_iter=2, n_restarts=1, alpha="scale", random_state=0),
        loclin.L3MClassifier(2, solver="convex", max_iter=2, alpha="scale", random_state=0),
        loclin.L3MClassifier(2, solver="online", max_iter=2, alpha="scale", random_state=0),
        loclin.SVMKNNClassifier(5),
        loclin.ForestClassifier(2, random_state=0),
        loclin.ML3Classifier(2, max_iter=2, alpha="scale", pieces=2, random_state=0),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in models:
            model.fit(X, y)
            model.predict(X)
            model.local_model(X[:3])
    coded = loclin.SAPLClassifier(4, 2, max_iter=2, **FEW).fit(sparse.csr_matrix(X), y)
    coded.predict(sparse.csr_matrix(X))
    wide = np.tile(X, 300)  # models that no cache holds
    loclin.SAPLClassifier(8, 2, max_iter=2, **FEW).fit(wide, y).predict(wide)
    loclin.SAPLClassifier("auto", max_iter=2, **FEW).fit(X, y)
    return dict(entries())


# Where it is called, it is part of what calls it.
INLINED = {
    "dual_norm", "exponentials", "solve_svm",
}  # fmt: skip


def test_compiled_entries_return_plain_numbers(compiled):
    n_seen = 0
    for name, entry in compiled.items():
        for signature in entry.nopython_signatures:
            assert is_plain(signature.return_type), f"{name} returns {signature.return_type}"
            n_seen += 1
    assert n_seen >= 20


def test_every_entry_is_looked_at(compiled):
    unseen = {name for name, entry in compiled.items() if not entry.nopython_signatures}
    by_name = {name.rpartition(".")[2] for name in unseen}
    assert by_name <= INLINED | {"sgd_pass_in_memory"}, unseen


def test_interrupts_of_passes_do_not_kill_the_process():
    code = """
    import signal, warnings, numpy as np
    from loclin import ML3Classifier
    warnings.simplefilter("ignore")
    X, y = np.random.default_rng(0).normal(size=(400, 6)), np.arange(400) % 3
    endless = ML3Classifier(max_iter=10**5, tol=0, n_iter_no_change=10**6, random_state=0,
                            calibrate=False, metric=None, alpha=0.01)
    ML3Classifier(max_iter=2, calibrate=False, metric=None, alpha=0.01).fit(X, y)
    def stop(*_):
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, stop)
    for k in range(60):
        signal.setitimer(signal.ITIMER_REAL, 0.005 + 0.0002 * k)
        try:
            endless.fit(X, y)
        except KeyboardInterrupt:
            assert not hasattr(endless, "classes_")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


TWICE = ["--by", "sigint", "--twice", "--n-jobs", "2"]


@pytest.mark.parametrize(
    "how", [[], pytest.param(TWICE, marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_random_interrupts_leave_the_estimator_as_it_was(how):
    few = ["--times", "6", "--only", "ML3", "--calls", "fit"]
    assert interrupts.main([*few, *how]) == 0


QUICK = ["CSVM"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    # `tests.robustness.interrupts` shows all of them, longer
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.long)
        for name in interrupts.KINDS
    ],
)
def test_random_interrupts_of_every_class(name):
    assert interrupts.main(["--times", "5", "--only", name, "--calls", "fit"]) == 0


@pytest.mark.slow
def test_a_jupyter_kernel_survives_an_interrupted_fit():
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    kernel, client = manager.start_new_kernel(kernel_name="python3")
    try:

        def told_by(message):
            return message["msg_type"], message["parent_header"].get("msg_id")

        def run(code, interrupt=False):
            # an error must not call off the cell after it
            number = client.execute(textwrap.dedent(code), stop_on_error=False)
            if interrupt:
                printing = "stream", number  # what came before the client listened is lost
                while printing != told_by(client.get_iopub_msg(timeout=600)):
                    pass  # of this cell: one that has not begun loses the signal
                kernel.interrupt_kernel()
            while True:
                reply = client.get_shell_msg(timeout=600)
                if told_by(reply)[1] == number:
                    return reply["content"]

        begin = """
        import os, numpy as np, loclin
        X, y = np.random.default_rng(0).normal(size=(400, 6)), np.arange(400) % 3
        few = dict(random_state=0, calibrate=False, metric=None, alpha=0.01)
        model = loclin.ML3Classifier(max_iter=5, **few).fit(X, y)
        before = model.local_coef_
        endless = dict(max_iter=10**6, tol=0, n_iter_no_change=10**6, verbose=1)
        """
        assert run(begin)["status"] == "ok"
        for _ in range(5):
            stopped = run("model.set_params(**endless).fit(X, y)", interrupt=True)
            assert stopped["ename"] == "KeyboardInterrupt"
            assert run("assert np.array_equal(model.local_coef_, before)")["status"] == "ok"
        again = run("model.set_params(max_iter=5, verbose=0).fit(X, y); assert model.n_iter_ == 5")
        assert again["status"] == "ok"
        assert kernel.is_alive()
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


class Beside:
    """A procedure during which something else happens, in its second iteration."""

    def __init__(self, inner, happens):
        self.inner, self.happens, self.n_calls = inner, happens, 0

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def iterate(self, *, average):
        self.n_calls += 1
        if self.n_calls == 2:
            self.happens()
        return self.inner.iterate(average=average)


def raised_in(name, file):
    """Let the next function of that name, in that file, raise before its first line."""

    def raises(frame, event, _):
        if event == "call" and frame.f_code.co_name == name and file in frame.f_code.co_filename:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(raises)


@pytest.mark.parametrize("file", ["warnings.py", "_ufunc_config.py"])
@pytest.mark.parametrize("call", ["fit", "partial_fit", "predict", "coding"])
def test_an_interrupt_leaves_warnings_and_overflows_to_be_handled_as_before(call, file):
    X, y = load_iris(return_X_y=True)
    model = loclin.ML3Classifier(2, max_iter=2, random_state=0).fit(X, y)
    calls = {
        "fit": lambda: model.fit(X, y),
        "partial_fit": lambda: model.partial_fit(X, y),
        "predict": lambda: model.predict(X),
        "coding": lambda: LocalCoordinateCoding(4, random_state=0).fit(X),
    }
    filters, errors = list(warnings.filters), np.geterr()
    try:
        raised_in("__exit__", file)
        with pytest.raises(KeyboardInterrupt):
            calls[call]()
    finally:
        sys.setprofile(None)
    assert list(warnings.filters) == filters
    assert np.geterr() == errors


@pytest.fixture
def sigint_heard():
    """Let SIGINT interrupt, also where a shell has started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_compiler_that_goes_on_after_an_interrupt_leaves_no_filters_behind(sigint_heard):
    """Numba catches warnings while it compiles, and puts back the filters that it has found."""
    interrupted, ended = Event(), Event()

    def compile_for():
        with warnings.catch_warnings():
            signal.pthread_kill(main_thread().ident, signal.SIGINT)  # it wakes whatever waits
            assert interrupted.wait(10)
        ended.set()

    compiled = SimpleNamespace(_compile_for_args=compile_for)
    compile_beside(compiled)
    filters = warnings.filters
    with pytest.raises(KeyboardInterrupt), handling_restored(), quiet():
        compiled._compile_for_args()
    assert warnings.filters is filters
    interrupted.set()
    assert ended.wait(10)
    [thread.join(10) for thread in enumerate_threads() if "loclin compiles" in thread.name]
    assert warnings.filters is filters


def test_rows_are_not_compared_as_structured_arrays():
    """NumPy's comparison of these, as of `unique` by axis, turns an interrupt into a TypeError."""
    calls = [
        node
        for path in Path(loclin.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "unique"
    ]
    assert calls
    assert not [one.lineno for one in calls if any(word.arg == "axis" for word in one.keywords)]


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (300, 2), (300, 5)])
def test_distinct_rows(shape, dtype):
    rows = np.random.default_rng(0).integers(-2, 3, shape).astype(dtype)
    firsts, kinds = distinct_rows(rows)
    expected = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(firsts, expected[1])
    np.testing.assert_array_equal(kinds, expected[2].reshape(-1))


def test_what_predicts_during_a_refit_sees_the_old_model(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = loclin.ML3Classifier(2, max_iter=3, calibrate=False, **FEW).fit(X, y)
    old, seen = model.predict(X), []
    start = ML3Recipe.start

    def beside(self, *arguments, **options):
        happens = lambda: seen.append(model.predict(X))  # noqa: E731
        return Beside(start(self, *arguments, **options), happens)

    monkeypatch.setattr(ML3Recipe, "start", beside)
    model.fit(X[:, :2], 1 - (y > 0))  # of another width, with other classes
    assert [found.tolist() for found in seen] == [old.tolist()]
    assert model.n_features_in_ == 2


def test_what_predicts_while_a_fit_ends_sees_one_model(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = loclin.ML3Classifier(2, max_iter=3, calibrate=False, **FEW).fit(X, y)
    old, scores_of = model.predict(X), loclin.ML3Classifier._scores_of

    def refits(self, rows, **options):
        found = scores_of(self, rows, **options)
        model.fit(X, np.array(["c", "b", "a"])[y])
        return found

    monkeypatch.setattr(loclin.ML3Classifier, "_scores_of", refits)
    assert model.predict(X).tolist() == old.tolist()
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "model",
    [
        loclin.ML3Classifier(2, max_iter=5, **FEW),
        loclin.SAPLClassifier(4, 2, max_iter=5, **FEW),
        loclin.LocallyLinearEnsemble(
            [loclin.ML3Classifier(2, max_iter=3)], n_folds=2, random_state=0
        ),
    ],
    ids=["ML3", "SAPL", "ensemble"],
)
def test_of_two_fits_at_once_one_stands_whole(model):
    X, y = load_iris(return_X_y=True)
    parts = [(X, y), (X[:, :3], y[::-1] % 2)]
    alone = [clone(model).fit(*part) for part in parts]
    model, together = clone(model), Barrier(2)

    def fit(part):
        together.wait()
        model.fit(*part)

    for _ in range(5):
        threads = [Thread(target=fit, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one = next(one for one in alone if one.n_features_in_ == model.n_features_in_)
        rows = X[:, : one.n_features_in_]
        np.testing.assert_array_equal(model.decision_function(rows), one.decision_function(rows))
        np.testing.assert_array_equal(model.predict_proba(rows), one.predict_proba(rows))
