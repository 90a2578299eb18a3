"""Files of models: what is saved comes back, and nothing else ever does."""

import errno
import inspect
import io
import json
import os
import pickle
import sys
import zipfile
from importlib import import_module

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler

import loclin
import loclin.io
from loclin import codings
from loclin.io import _classes
from tests import golden, stored
from tests.test_architecture import MODULES

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

resource = pytest.importorskip("resource", reason="limits the size of files")

X = np.random.default_rng(0).standard_normal((80, 4))
y = (X[:, 0] * X[:, 1] > 0).astype(int)


def small(**parameters):
    short = {"n_models": 2, "alpha": "scale", "max_iter": 3, "random_state": 0}
    return loclin.ML3Classifier(**short | parameters)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.loclin"


@pytest.fixture
def there_and_back(path):
    def run(model, **options):
        loclin.io.save(model, path, **options)
        return loclin.io.load(path, **options)

    return run


# What comes back.


def tried(case):
    """Every model and way to learn, on three classes in double precision."""
    first = case.layout == "dense" or case.model in (
        "ml3",
        "llsvm",
        "sapl",
        "l3m online",
        "ussvm",
        "csvm",
    )
    return case.dtype == "float64" and case.n_classes == 3 and first


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case.name, marks=[pytest.mark.slow] if case.layout == "sparse" else []
        )
        for case in filter(tried, golden.CASES)
    ],
)
def test_a_model_predicts_and_goes_on_as_before(case, there_and_back):
    data = golden.data_of(case)
    model = getattr(golden, case.learn)(golden.make(case.model), data)
    again = there_and_back(model)
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys() - {"_index"}  # SVM-KNN's is made anew

    def same():
        one, other = (each.decision_function(data.X) for each in (model, again))
        np.testing.assert_array_equal(one, other)

    same()
    if case.learn in ("stream", "then_stream"):
        for each in (model, again):
            each.partial_fit(data.X[:50], data.y[:50])
    if case.learn == "continued":
        for each in (model, again):
            each.fit(data.X, data.y)
    same()


CODINGS = [
    codings.SoftAssignmentCoding(6, 3),
    codings.InverseDistanceCoding(6, 3),
    codings.LLCCoding(6, 3),
    codings.LocalCoordinateCoding(6, max_iter=2),
    codings.TangentCoding(codings.SoftAssignmentCoding(6, 3), 2),
    codings.OrthogonalCoding(2),
    codings.OrthogonalCoding(2, per_class=True),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("coding", CODINGS, ids=repr)
def test_codings_code_as_before(coding, there_and_back):
    coding.fit(X, y)
    found, expected = there_and_back(coding).transform(X), coding.transform(X)
    assert sparse.issparse(found) == sparse.issparse(expected)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())


def test_pipelines_with_columns_and_missing_values(there_and_back):
    table = np.array([[f"c{k % 3}", *row] for k, row in enumerate(X)], dtype=object)
    table[3, 2] = np.nan
    columns = ColumnTransformer(
        [
            ("kind", OneHotEncoder(handle_unknown="ignore"), [0]),
            ("some", make_pipeline(SimpleImputer(), StandardScaler()), slice(1, 3)),
            ("both", FeatureUnion([("a", MinMaxScaler()), ("b", StandardScaler())]), [3]),
        ],
        remainder="passthrough",
    )
    model = make_pipeline(columns, small()).fit(table, y)
    again = there_and_back(model)
    np.testing.assert_array_equal(again.decision_function(table), model.decision_function(table))


@pytest.mark.slow  # sparse rows in single precision are compiled for this alone
def test_pipelines_with_words(there_and_back):
    words = ["a fine day", "rain and wind", "sun, what a day", "wind and more rain"] * 10
    labels = ["good", "bad", "good", "bad"] * 10
    model = make_pipeline(TfidfVectorizer(dtype=np.float32), small()).fit(words, labels)
    again = there_and_back(model)
    assert again.predict(["a day of rain"]).tolist() == model.predict(["a day of rain"]).tolist()
    assert again[0].dtype is np.float32


def test_data_frames_and_column_selectors(there_and_back):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcd"))
    columns = ColumnTransformer([("all", StandardScaler(), make_column_selector(pattern="[abc]"))])
    model = make_pipeline(columns, small()).fit(table, y)
    again = there_and_back(model)
    np.testing.assert_array_equal(again.decision_function(table), model.decision_function(table))
    assert again[0].feature_names_in_.tolist() == list("abcd")


PARAMETERS = {
    "booleans as keys": {"class_weight": {True: 2.0, False: 1.0}},
    "numbers and strings as keys": {"class_weight": {1: 2.0, "1": 1.0, 0.5: 1, None: 3}},
    "numbers of NumPy": {"class_weight": {np.int64(1): np.float32(0.1), np.str_("a"): np.True_}},
    "infinite and tiny": {"p": np.inf, "tol": 5e-324, "eta0": 0.1 + 0.2},
    "a random state": {"random_state": np.random.RandomState(3)},
    "types": {"init": [np.float32, int, np.dtype("<f4"), slice(1, None), {1, 2}, frozenset("a")]},
    "arrays": {"init": [np.array(3.5), np.zeros((0, 3)), np.asfortranarray(X), X[::2, ::-1],
                        np.array(["a", None, 1.5, [2]], dtype=object),
                        np.broadcast_to(np.float32(2), (1000, 1000)),
                        np.array(["2024-01-02"], "M8[D]")]},
    "sparse": {"init": [sparse.csr_array(X), sparse.csc_matrix(X), sparse.csr_matrix((3, 0))]},
    "generators": {"init": [np.random.default_rng(1), np.random.Generator(np.random.Philox(2))]},
    "nested": {"init": make_pipeline(StandardScaler(), codings.LLCCoding(5))},
}  # fmt: skip


def alike(one, other):
    """Tell whether two values are the same, of the same types."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert [*map(repr, one)] == [*map(repr, other)]
        return all(map(alike, one.values(), other.values()))
    if isinstance(one, list | tuple) or (isinstance(one, np.ndarray) and one.dtype.kind == "O"):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.flags.f_contiguous == other.flags.f_contiguous or not one.flags.forc
        return bool((one == other).all())
    if sparse.issparse(one):
        return alike(one.toarray(), other.toarray())
    if isinstance(one, np.random.Generator):
        return alike(one.random(3), other.random(3)) and alike(*(
            each.spawn(1)[0].random(2) for each in (one, other)
        ))  # fmt: skip
    if isinstance(one, np.random.RandomState):
        return alike(one.rand(3), other.rand(3))
    if isinstance(one, BaseEstimator):
        return repr(one) == repr(other)
    return one == other and repr(one) == repr(other)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_come_back_as_they_are(name, there_and_back):
    again = there_and_back(FunctionTransformer(kw_args=PARAMETERS[name]))
    for key, value in PARAMETERS[name].items():
        assert alike(value, again.kw_args[key])


def test_what_is_shared_stays_shared(there_and_back):
    array = np.arange(3.0)
    rows = [array]
    held = {"rows": [array, array, rows, rows]}
    again = there_and_back(FunctionTransformer(kw_args=held)).kw_args["rows"]
    assert again[0] is again[1] is again[2][0]
    assert again[2] is again[3]


def test_weights_that_are_all_zero_take_no_room(there_and_back, path):
    model = loclin.LLSVMClassifier(
        weights="constant", alpha="scale", pieces=None, random_state=0
    ).fit(np.tile(X, 2500), y)
    there_and_back(model)
    known = model.coding_.anchors_.nbytes + 2 * model._features.scale.nbytes
    assert path.stat().st_size < 1.2 * known


def test_callbacks_are_left_out(there_and_back):
    class Callback:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context): ...

    if not hasattr(small(), "set_callbacks"):
        pytest.skip("needs scikit-learn 1.9")
    model = small().set_callbacks(Callback()).fit(X, y)
    assert not hasattr(there_and_back(model), "_skl_callbacks")
    assert model._skl_callbacks


# What is not saved.


class Majority(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.most_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.most_)


def test_classes_of_one_s_own_are_named(there_and_back, path):
    model = make_pipeline(StandardScaler(), Majority()).fit(X, y)
    with pytest.raises(ValueError, match=r"the model.steps\[1\] cannot be saved: .* Majority"):
        there_and_back(model)
    assert not path.exists()
    again = there_and_back(model, trusted=[Majority])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"names .*Majority, which loclin does not load"):
        loclin.io.load(path)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (lambda x: x, "function <lambda>"),
        (os.system, "builtin_function_or_method system"),
        (os, "module os"),
        (np.zeros(1, "i4,f8"), "ndarray"),
        (sparse.coo_array(X), "coo_array"),
        (open, "open"),
    ],
)
def test_code_is_not_saved(value, named, path):
    model = make_pipeline(FunctionTransformer(value), small())
    with pytest.raises(ValueError, match=r"the model.steps\[0\].*cannot be saved: .* ") as caught:
        loclin.io.save(model, path)
    assert named in str(caught.value)
    assert not [*path.parent.iterdir()]


def test_only_estimators_are_saved(path):
    with pytest.raises(ValueError, match="is not valid; give an estimator"):
        loclin.io.save({"a": 1}, path)


def test_a_save_that_fails_leaves_the_file_before(path):
    loclin.io.save(small().fit(X, y), path)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            loclin.io.save(small(n_models=50).fit(X, y), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]


def test_a_full_disk_is_said_with_the_name_of_the_file(path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"No space left on device: .*{path.name}"):
        loclin.io.save(loclin.ML3Classifier(), path)


def test_what_a_killed_save_left_is_removed_later(path):
    old, new = (path.with_name(f".{path.name}.{name}.tmp") for name in ("old", "new"))
    for left in (old, new):
        left.write_text("half a file")
    os.utime(old, (0, 0))
    loclin.io.save(small(), path)
    assert {*path.parent.iterdir()} == {path, new}


def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(path)
    loclin.io.save(small(), link)
    assert link.is_symlink()
    assert path.is_file()


# What is not loaded.


def forged(path, node, arrays=(), method=zipfile.ZIP_STORED, **about):
    """Write a file with that tree."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in arrays:
            archive.writestr(name, content)
        archive.writestr("loclin.json", json.dumps({"format": 1, "model": node} | about))
    return path


def refused(path, match):
    with pytest.raises(ValueError, match=match) as caught:
        loclin.io.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_a_file_cut_off_anywhere_is_refused(path):
    loclin.io.save(small().fit(X, y), path)
    content = path.read_bytes()
    for end in [*range(0, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:end])
        refused(path, "is cut off, or not a file of loclin.io.save")


def test_a_bit_that_has_turned_is_seen(path):
    loclin.io.save(small().fit(X, y), path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        starts = [part.header_offset + 200 for part in archive.infolist()]
    for place in starts:
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        refused(path, "is damaged")


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + bytes(18), b"text", pickle.dumps([1])])
def test_foreign_files_are_refused(path, content):
    path.write_bytes(content)
    refused(path, "not a file of loclin.io.save")


def test_newer_formats_say_what_to_upgrade(path):
    forged(path, {"what": "ever"}, format=2, loclin="9.0")
    refused(path, "has format 2, and loclin .* reads up to 1. Upgrade to loclin 9.0 or later")


RUNS = [
    "os.system", "posix.system", "builtins.eval", "builtins.exec", "builtins.open", "eval",
    "subprocess.Popen", "functools.partial", "operator.methodcaller", "types.FunctionType",
    "numpy.sin", "numpy.load", "numpy.vectorize", "numpy.f2py.compile", "scipy.special.expit",
    "sklearn.pipeline.make_pipeline", "sklearn.svm.SVC", "sklearn.tree._tree.Tree",
    "sklearn.preprocessing.FunctionTransformer.fit", "sklearn.feature_selection.f_classif",
    "sklearn.utils.Bunch", "joblib.Memory", "joblib.numpy_pickle.load", "antigravity.fly",
    "loclin.io.save", "loclin.io.load", "loclin.callbacks.Checkpoint", "loclin.datasets.load",
    "loclin.cli.main", "loclin.vc_bound", "loclin.engine.jit.jit", "loclin.engine.jit.os",
    "loclin.fitting.encode.clone", "loclin.ml3.runs.np", "loclin.ml3.classifier.Integral",
    "loclin.engine.dual.ThreadPoolExecutor", "loclin.l3m.online.Parallel", "", ".", 3, None, ["os"],
]  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_file_that_tries_to_run_code_is_refused_and_runs_none(name, path, tmp_path, monkeypatch):
    ran = tmp_path / "ran"
    command = f"touch {ran}"
    monkeypatch.setattr(os, "system", lambda *_: ran.touch())
    for node in (
        {"object": name, "state": [["args", [command]]]},
        {"object": "loclin.ML3Classifier", "state": [["init", {"type": name}]]},
        {"tuple": [command], "class": name},
        {"enum": name, "value": command},
        [1, {"dict": [[{"object": name, "state": []}, 1]]}],
    ):
        before = set(sys.modules)
        message = refused(forged(path, node), "which loclin does not load")
        assert str(name) in message
        assert not {"antigravity", "numpy.f2py"} & (set(sys.modules) - before)
    assert not ran.exists()


def test_every_name_that_is_refused_is_told(path):
    node = [{"object": "os.system", "state": []}, {"type": "eval"}, {"enum": "a.b", "value": 1}]
    assert "names a.b, eval, os.system, which" in refused(forged(path, node), "names")


def test_the_zip_of_another_library_is_refused(path):
    schema = {
        "__class__": "system",
        "__module__": "os",
        "__loader__": "FunctionNode",
        "protocol": 2,
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    refused(path, "another kind of zip")


def pickled_array():
    file = io.BytesIO()
    np.save(file, np.array([os.system], dtype=object), allow_pickle=True)
    return file.getvalue()


def header(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


FORGED = {
    "a pickle in an array": ({"array": "a"}, pickled_array()),
    "an array too large": ({"array": "a"}, header((2**40,))),
    "an array too small": ({"array": "a"}, header((1,)) + bytes(80)),
    "a negative shape": ({"array": "a"}, header((-1, -1)) + bytes(8)),
    "no array": ({"array": "b"}, b""),
    "indices outside": (
        {"csr": [{"array": "a"}] * 3, "shape": [1, 2], "is_array": False},
        header((2,)) + bytes(16),
    ),
    "an unknown kind": ({"what": 1}, b""),
    "no kind": ({}, b""),
    "a place that is not there": ({"same": 7}, b""),
    "an instance of an enumeration": ({"object": "loclin.engine.losses.Loss", "state": []}, b""),
    "no named tuple": ({"tuple": [1], "class": "loclin.ml3.cccp.CCCP"}, b""),
    "a tuple too short": ({"tuple": [1], "class": "loclin.engine.iterates.Weights"}, b""),
    "no enumeration": ({"enum": "loclin.ml3.cccp.CCCP", "value": 1}, b""),
    "an abstract class": ({"object": "loclin.engine.streams.Stream", "state": []}, b""),
    "no bits": ({"generator": {"dict": [["bit_generator", "seed"]]}, "seed": None}, b""),
    "no type": ({"dtype": "no such"}, b""),
    "a type of objects": ({"number": 1, "dtype": "O"}, b""),
    "a list": ([1, 2], b""),
    "a number": (1, b""),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_trees_are_refused(name, path):
    node, array = FORGED[name]
    refused(forged(path, node, [("a", array)]), "is damaged|holds no estimator")


def test_a_deep_tree_is_refused(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("loclin.json", b'{"format": 1, "model": ' + b"[" * 400_000)
    refused(path, "is damaged")


def test_bombs_are_refused_unread(path, monkeypatch):
    tree = [("a", bytes(2**24))]
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("unpacked"))
    refused(forged(path, {"array": "a"}, tree, zipfile.ZIP_DEFLATED), "packed in another way")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("loclin.json", b" " * 2**24)
    refused(path, "unpacks to more")
    with pytest.warns(UserWarning, match="Duplicate"):
        forged(path, 1, [("loclin.json", b"{}")])
    refused(path, "parts overlap")


@pytest.mark.parametrize("state", [[], [["estimator", 3]], [["estimator", {"same": 0}]]])
def test_a_frozen_estimator_that_holds_none_is_refused(path, state):
    """It passes what it is asked on to what it holds."""
    state = [["_sklearn_version", sklearn.__version__], *state]
    node = {"object": "sklearn.frozen.FrozenEstimator", "state": state}
    refused(forged(path, node), "is damaged")


def test_classes_that_a_file_may_name_do_nothing_when_they_are_made():
    """Python calls these by itself; a class that has one must be looked at before it is let in."""
    checked = {"__init__", "__init_subclass__", "__post_init__"}  # not called, or not by a file
    active = {"__new__", "__setstate__", "__reduce__", "__reduce_ex__", "__del__", "__set_name__",
              "__getattr__", "__getattribute__", "__setattr__", "__hash__"} - checked  # fmt: skip
    known = {
        ("LocalModels", "__setstate__"),
        ("ForestModels", "__setstate__"),
        ("Loss", "__setstate__"),  # it checks what it is given
    }
    for name in MODULES:
        if not f"loclin.{name}.".startswith(_classes.HOLDERS):
            continue
        for kind in vars(import_module(f"loclin.{name}")).values():
            if inspect.isclass(kind) and kind.__module__ == f"loclin.{name}":
                if _classes.is_named_tuple(kind) or _classes.is_enum(kind):
                    continue
                own = {each for each in active if callable(vars(kind).get(each))}
                data = hasattr(kind, "__dataclass_fields__")  # compares, and so hashes, by fields
                own -= {"__hash__", "__setattr__"} if data else set()
                assert not {(kind.__name__, each) for each in own} - known


# Files of earlier versions.


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=stored.path_of(case).stem,
            marks=[pytest.mark.slow] if case.dtype == "float32" else [],  # compiled for alone
        )
        for case in stored.CASES
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")  # of a scaler
def test_files_of_earlier_versions_are_read(case):
    model = loclin.io.load(stored.path_of(case))
    data = golden.data_of(case)
    expected = np.load(stored.SCORES)[stored.path_of(case).stem]
    atol = (1e-9 if case.dtype == "float64" else 1e-4) * np.abs(expected).max()
    np.testing.assert_allclose(model.decision_function(data.X), expected, rtol=0, atol=atol)
    assert stored.path_of(case).stat().st_size < 25_000
    if case.learn == "stream":
        assert model.t_ >= len(data.y)
        model.partial_fit(data.X, data.y)
        assert np.isfinite(model.decision_function(data.X)).all()


def test_every_stored_file_is_read():
    assert {*stored.DATA.glob("*.loclin")} == {stored.path_of(case) for case in stored.CASES}
