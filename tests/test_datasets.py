import email.message
import hashlib
import io
import json
import os
import sys
import urllib.request
import warnings
from http.client import IncompleteRead
from types import SimpleNamespace
from urllib.error import URLError
from urllib.response import addinfourl

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.datasets import fetch_openml
from sklearn.linear_model import LogisticRegression
from sklearn.utils import shuffle

from loclin import datasets
from loclin.datasets import load, make_gaussian_line, make_sine, make_xor, names

FOLDER = os.environ.get("LOCLIN_DATA")


@pytest.fixture(autouse=True)
def no_folder_no_network(monkeypatch):
    def refuse(name, **options):
        raise AssertionError(f"fetch_openml({name!r}) was called")

    monkeypatch.delenv("LOCLIN_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)


@pytest.fixture
def openml(monkeypatch):
    """Let fetch_openml return this frame and these labels; gives back the list of its calls."""

    def install(frame, labels):
        calls = []

        def fetch(name, **options):
            calls.append((name, options["version"]))
            target = pd.Series(pd.Categorical([str(label) for label in labels]))
            return SimpleNamespace(data=frame, target=target)

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return calls

    return install


# -- names


def test_names_are_sorted_and_complete():
    assert list(names()) == sorted(names())
    assert {"letter", "mnist", "isolet", "flowers5_inceptionv3", "iris"} < set(names())
    assert len(names()) == 31


@pytest.mark.parametrize(
    ("wrong", "hint"), [("leter", "'letter'"), ("Mnist", "'mnist'"), ("wbc", "'wdbc'")]
)
def test_unknown_name_lists_close_ones(wrong, hint):
    with pytest.raises(ValueError, match=rf"Unknown data set '{wrong}'.*{hint}.*names\(\)"):
        load(wrong)


@pytest.mark.parametrize("wrong", ["", "zzzz", 3, None])
def test_unknown_name_without_close_ones(wrong):
    with pytest.raises(ValueError, match=r"Unknown data set .*: loclin\.datasets\.names\(\)"):
        load(wrong)


# -- scikit-learn


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [
        ("digits", (1797, 64), 10),
        ("iris", (150, 4), 3),
        ("wine", (178, 13), 3),
        ("breast_cancer", (569, 30), 2),
    ],
)
def test_bundled_sets_need_neither_folder_nor_network(name, shape, n_classes):
    data = load(name)
    assert (data.name, data.source) == (name, "scikit-learn")
    assert data.X_train.shape == shape
    assert data.X_test is None
    assert data.y_test is None
    assert len(data.class_names) == n_classes == len(np.unique(data.y_train))
    assert len(data.feature_names) == shape[1]
    assert data.description.endswith("; no official split")


def test_dataset_is_frozen_and_prints_short():
    data = load("wine")
    with pytest.raises(AttributeError):
        data.name = "beer"
    assert len(repr(data)) < 200


# -- the folder


def write(path, rng, *parts, sparse=False, **extra):
    """An npz file in the folder's format; returns the arrays as written."""
    arrays = dict(extra)
    for part in parts:
        if sparse:
            X = csr_matrix(rng.integers(0, 3, (12, 7)))
            arrays[f"shape{part}"] = np.array(X.shape)
            for name in ("data", "indices", "indptr"):
                arrays[f"{name}{part}"] = getattr(X, name)
        else:
            arrays[f"X{part}"] = rng.integers(0, 16, (12, 3)).astype(np.uint8)
        arrays[f"y{part}"] = rng.integers(1, 4, 12).astype(np.uint8)
    np.savez_compressed(path, **arrays)
    return arrays


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_dense_file_with_split(tmp_path, monkeypatch, rng):
    arrays = write(
        tmp_path / "letter.npz", rng, "_train", "_test", classes=np.array(["A", "B", "C", "D"])
    )
    monkeypatch.setenv("LOCLIN_DATA", str(tmp_path))
    data = load("letter")
    for name in ("X_train", "y_train", "X_test", "y_test"):
        got = getattr(data, name)
        np.testing.assert_array_equal(got, arrays[name])
        assert got.dtype == np.uint8
    assert data.class_names == ("A", "B", "C", "D")
    assert data.feature_names is None
    assert data.source == "folder"
    assert data.description.endswith("; official split 12 / 12")


def test_dense_file_without_split(tmp_path, rng):
    arrays = write(tmp_path / "banana.npz", rng, "")
    data = load("banana", data_home=tmp_path)
    np.testing.assert_array_equal(data.X_train, arrays["X"])
    np.testing.assert_array_equal(data.y_train, arrays["y"])
    assert data.X_test is None
    assert data.y_test is None
    assert data.class_names is None
    assert data.description.endswith("; no official split")


@pytest.mark.parametrize("parts", [("",), ("_train", "_test")])
def test_sparse_file(tmp_path, rng, parts):
    arrays = write(tmp_path / "newsgroups20.npz", rng, *parts, sparse=True)
    data = load("newsgroups20", data_home=tmp_path)
    for part, X in zip(parts, (data.X_train, data.X_test), strict=False):
        assert issparse(X)
        assert X.format == "csr"
        assert X.shape == (12, 7)
        np.testing.assert_array_equal(X.data, arrays[f"data{part}"])
        np.testing.assert_array_equal(X.indices, arrays[f"indices{part}"])
        np.testing.assert_array_equal(X.indptr, arrays[f"indptr{part}"])
    np.testing.assert_array_equal(data.y_train, arrays[f"y{parts[0]}"])
    assert (data.X_test is None) == (parts == ("",))


def test_data_home_goes_before_the_environment(tmp_path, monkeypatch, rng):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write(tmp_path / "a" / "heart.npz", rng, "")
    wanted = write(tmp_path / "b" / "heart.npz", rng, "")
    monkeypatch.setenv("LOCLIN_DATA", str(tmp_path / "a"))
    np.testing.assert_array_equal(load("heart", data_home=tmp_path / "b").X_train, wanted["X"])


def test_missing_folder(tmp_path, monkeypatch):
    with pytest.raises(NotADirectoryError, match=r"nowhere.*not a folder"):
        load("letter", data_home=tmp_path / "nowhere")
    monkeypatch.setenv("LOCLIN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match="LOCLIN_DATA"):
        load("letter")


def test_file_with_an_array_missing(tmp_path, rng):
    write(tmp_path / "letter.npz", rng, "_train")
    with pytest.raises(ValueError, match=r"letter\.npz.*load describes.*y_test"):
        load("letter", data_home=tmp_path)


def test_pickled_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "letter.npz", X=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(ValueError, match=r"letter\.npz.*allow_pickle"):
        load("letter", data_home=tmp_path)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 cut short"])
def test_file_that_is_no_npz(tmp_path, content):
    (tmp_path / "letter.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"letter\.npz is not as"):
        load("letter", data_home=tmp_path)


def test_damaged_file(tmp_path, rng):
    path, refusals = tmp_path / "letter.npz", []
    write(path, rng, "")
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            load("letter", data_home=tmp_path)
        except ValueError as error:
            refusals.append(str(error))
    assert len(refusals) > len(whole) / 7 / 2
    assert all(f"{path} is not as" in told for told in refusals)


@pytest.mark.parametrize(
    "name", ["covtype_16pct", "flowers5_inceptionv3", "german", "ijcnn1", "liver", "newsgroups20"]
)
def test_sets_that_only_a_folder_can_hold(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=rf"set LOCLIN_DATA to a folder.*{name}\.npz"):
        load(name)
    with pytest.raises(FileNotFoundError, match=rf"{name}\.npz"):
        load(name, data_home=tmp_path)


# -- OpenML


def vowel(rng):
    """A stand-in for the copy on OpenML: its order of labels, and two columns of words."""
    labels = np.tile([f"h{i}d" for i in range(11)], 90)
    words = {
        "Speaker": pd.Categorical(np.repeat(["Ann", "Bob"], 495)),
        "Sex": pd.Categorical(np.repeat(["Female", "Male"], 495)),
    }
    numbers = {f"Feature_{i}": rng.normal(size=990) for i in range(10)}
    return pd.DataFrame(words | numbers), labels


def test_openml_copy_in_official_order_is_split(openml, tmp_path, rng):
    frame, labels = vowel(rng)
    calls = openml(frame, labels)
    data = load("vowel", data_home=tmp_path)
    assert calls == [("vowel", 2)]
    assert (data.X_train.shape, data.X_test.shape) == ((528, 10), (462, 10))
    numbers = frame.iloc[:, 2:].to_numpy()
    np.testing.assert_array_equal(np.vstack([data.X_train, data.X_test]), numbers)
    y = np.concatenate([data.y_train, data.y_test])
    np.testing.assert_array_equal(np.array(data.class_names)[y], labels)
    assert data.feature_names == tuple(f"Feature_{i}" for i in range(10))
    assert data.source == "openml"
    assert data.description.endswith("; official split 528 / 462")


def test_openml_copy_in_another_order_is_not_split(openml, rng):
    openml(*shuffle(*vowel(rng), random_state=0))
    data = load("vowel")
    assert data.X_train.shape == (990, 10)
    assert data.X_test is None
    assert data.y_test is None
    assert data.description.endswith("; no split: OpenML's rows are not in the official order")


def test_openml_copy_with_rows_missing_is_not_split(openml, rng):
    frame, labels = vowel(rng)
    openml(frame.iloc[:-1], labels[:-1])
    data = load("vowel")
    assert data.X_test is None
    assert "OpenML's copy is 989 x 10, not 990 x 10" in data.description


def test_openml_rows_with_missing_values_are_left_out(openml):
    frame = pd.DataFrame({"a": np.arange(699.0), "b": np.ones(699)})
    frame.iloc[[3, 5], 1] = np.nan
    openml(frame, ["benign", "malignant", "benign"] * 233)
    data = load("wbc_original")
    assert data.X_train.shape == (697, 2)
    assert data.X_train[3, 0] == 4.0
    assert data.y_train[:5].tolist() == [0, 1, 0, 1, 0]
    assert data.class_names == ("benign", "malignant")
    assert "2 rows with missing values left out" in data.description


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 255, np.uint8), (-1, 127, np.int8), (-1, 128, np.int16), (0, 256, np.uint16)],
)
def test_openml_whole_numbers_come_in_the_smallest_type(openml, low, high, dtype):
    openml(pd.DataFrame({"a": [low, high], "b": [0, 1]}), [1, 2])
    data = load("vehicle")
    assert data.X_train.dtype == dtype
    assert data.X_train.tolist() == [[low, 0], [high, 1]]


def test_openml_indicators_stored_as_categories_are_numbers(openml):
    column = pd.Categorical(["0", "1", "1"])
    openml(pd.DataFrame({"A0": column, "A1": column}), [3, 1, 2])
    data = load("dna")
    assert data.X_train.tolist() == [[0, 0], [1, 1], [1, 1]]
    assert data.y_train.tolist() == [3, 1, 2]  # numeric labels stay the source's own
    assert data.class_names is None


@pytest.mark.parametrize(
    "cause", [URLError("no route"), TimeoutError("no route"), IncompleteRead(b"no route")]
)
def test_offline_names_the_cure(monkeypatch, cause):
    def fail(name, **options):
        warnings.warn("A network error occurred while downloading. Retrying...", stacklevel=2)
        raise cause

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)
    with pytest.raises(OSError, match=r"connect to the network, or set LOCLIN_DATA.*usps\.npz"):
        load("usps")


def test_fetching_without_pandas_names_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas: pip install pandas, or set LOCLIN_DATA"):
        load("usps")


ARFF = """@relation glass
@attribute RI numeric
@attribute Na numeric
@attribute Type {%s,%s}
@data
1, 13.5, %s
2, ?, %s
3, 12.5, %s
"""


class OpenMLServer(urllib.request.HTTPSHandler):
    """Answers the requests of scikit-learn's fetch_openml for one small set."""

    def __init__(self, arff):
        super().__init__()
        columns = [("RI", "numeric"), ("Na", "numeric"), ("Type", "nominal")]
        features = [
            {
                "index": str(i),
                "name": name,
                "data_type": kind,
                "is_target": str(kind == "nominal").lower(),
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for i, (name, kind) in enumerate(columns)
        ]
        about = {
            "id": "41",
            "name": "glass",
            "version": "1",
            "description": "",
            "format": "ARFF",
            "status": "active",
            "file_id": "41",
            "url": "https://data.invalid/glass.arff",
            "md5_checksum": hashlib.md5(arff).hexdigest(),
        }
        quality = [{"name": "NumberOfInstances", "value": "3"}]
        pages = {
            "/data_version/1": {"data": {"dataset": [{"did": 41, "status": "active"}]}},
            "/data/41": {"data_set_description": about},
            "/features/41": {"data_features": {"feature": features}},
            "/qualities/41": {"data_qualities": {"quality": quality}},
        }
        self.pages = {end: json.dumps(page).encode() for end, page in pages.items()}
        self.pages["/glass.arff"] = arff

    def https_open(self, request):
        page = next(page for end, page in self.pages.items() if request.full_url.endswith(end))
        response = addinfourl(io.BytesIO(page), email.message.Message(), request.full_url, 200)
        response.msg = "OK"
        return response


@pytest.mark.parametrize(
    ("classes", "names_found", "y"),
    [
        (("1", "2"), None, [2, 1]),
        (("'build wind'", "headlamps"), ("build wind", "headlamps"), [1, 0]),
    ],
)
def test_what_scikit_learn_fetches_is_understood(monkeypatch, tmp_path, classes, names_found, y):
    a, b = classes
    server = OpenMLServer((ARFF % (a, b, b, b, a)).encode())
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    urllib.request.install_opener(urllib.request.build_opener(server))
    try:
        data = load("glass")
    finally:
        urllib.request.install_opener(None)
    assert data.X_train.tolist() == [[1.0, 13.5], [3.0, 12.5]]
    assert data.y_train.tolist() == y
    assert data.class_names == names_found
    assert data.feature_names == ("RI", "Na")


def test_row_order_does_not_depend_on_names():
    order = datasets._row_order(np.array([7, 1, 1, 2]))
    assert order == datasets._row_order(np.array(["b", "c", "c", "a"]))
    assert order != datasets._row_order(np.array([7, 1, 2, 1]))


# -- synthetic problems

MAKERS = [make_xor, make_gaussian_line, make_sine]


@pytest.mark.parametrize("make", MAKERS)
def test_points_are_balanced_shuffled_and_reproducible(make):
    X, y = make(401, random_state=3)
    assert X.shape == (401, 2)
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert set(y) == {0, 1}
    assert abs(int((y == 1).sum()) - 200) <= 1
    assert 150 < (np.diff(y) != 0).sum() < 250
    for again in (3, np.random.RandomState(3)):
        X2, y2 = make(401, random_state=again)
        np.testing.assert_array_equal(X2, X)
        np.testing.assert_array_equal(y2, y)
    assert not np.array_equal(make(401, random_state=4)[0], X)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples == 0"),
        ({"n_samples": 2.5}, TypeError, "n_samples"),
        ({"noise": -1.0}, ValueError, "== -1.0"),
        ({"noise": "a"}, TypeError, "must be an instance"),
    ],
)
def test_impossible_parameters(make, parameters, error, message):
    if "noise" in parameters and make is not make_sine:
        parameters = {"std": parameters["noise"]}
    with pytest.raises(error, match=message):
        make(**parameters)


def test_xor_is_no_linear_problem_but_a_matter_of_quadrants():
    X, y = make_xor(2000, random_state=0)
    assert LogisticRegression().fit(X, y).score(X, y) < 0.8
    assert np.mean((X[:, 0] * X[:, 1] > 0) == y) > 0.999
    for quadrant in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        blob = X[(np.sign(X) == quadrant).all(axis=1)]
        assert abs(len(blob) - 500) <= 3
        np.testing.assert_allclose(blob.mean(axis=0), quadrant, atol=0.05)
        np.testing.assert_allclose(blob.std(axis=0), 0.25, atol=0.03)


@pytest.mark.parametrize("n_blobs", [2, 4, 5])
def test_gaussian_line_alternates(n_blobs):
    X, y = make_gaussian_line(1000, n_blobs, random_state=0)
    blob = np.round(X[:, 0]).astype(int)
    assert np.bincount(blob).tolist() == [1000 // n_blobs] * n_blobs
    np.testing.assert_array_equal(y, 1 - blob % 2)
    np.testing.assert_allclose((X - np.column_stack([blob, 0 * blob])).std(axis=0), 0.1, atol=0.01)


def test_gaussian_line_needs_two_blobs():
    with pytest.raises(ValueError, match="n_blobs == 1"):
        make_gaussian_line(n_blobs=1)


def test_sine_is_decided_by_the_curve_between_the_signals():
    X, y = make_sine(20_000, random_state=0)
    error = np.mean((X[:, 1] > np.sin(X[:, 0])) != y)
    assert 0.004 < error < 0.009  # 0.0062: the normal tail beyond gap / 2 / noise = 2.5
    linear = 1 - LogisticRegression().fit(X, y).score(X, y)
    assert 0.26 < linear < 0.32
    assert X[:, 0].min() >= 0
    assert X[:, 0].max() < 3 * np.pi


def test_sine_without_noise_lies_on_the_signals():
    X, y = make_sine(100, gap=0.6, noise=0, random_state=0)
    np.testing.assert_allclose(X[:, 1], np.sin(X[:, 0]) + np.where(y == 1, 0.3, -0.3))


# -- the papers' sets, as their manifest describes them

U8, I16, F32 = np.uint8, np.int16, np.float32
MANIFEST = {  # name: rows to train, rows to test, features, type, labels, their counts if given
    "letter": (16000, 4000, 16, U8, range(26), None),
    "usps": (7291, 2007, 256, F32, range(10), None),
    "mnist": (60000, 10000, 784, U8, range(10), None),
    "pendigits": (7494, 3498, 16, U8, range(10), None),
    "optdigits": (3823, 1797, 64, U8, range(10), None),
    "satimage": (4435, 2000, 36, U8, [1, 2, 3, 4, 5, 7], None),
    "vowel": (528, 462, 10, F32, range(1, 12), [48] * 11),
    "segment": (210, 2100, 19, F32, range(7), [30] * 7),
    "dna": (2000, 1186, 180, U8, range(3), [464, 485, 1051]),
    "banana": (5300, 0, 2, F32, range(2), [2376, 2924]),
    "ringnorm": (7400, 0, 20, F32, range(2), None),
    "german": (1000, 0, 24, U8, [1, 2], [700, 300]),
    "heart": (270, 0, 13, F32, [1, 2], [150, 120]),
    "ionosphere": (351, 0, 34, F32, range(2), [126, 225]),
    "liver": (345, 0, 6, F32, [1, 2], [145, 200]),
    "pima": (768, 0, 8, F32, range(2), [500, 268]),
    "sonar": (208, 0, 60, F32, range(2), [111, 97]),
    "spambase": (4601, 0, 57, F32, range(2), [2788, 1813]),
    "wdbc": (569, 0, 30, F32, range(2), [357, 212]),
    "wbc_original": (683, 0, 9, U8, range(2), [444, 239]),
    "vehicle": (846, 0, 18, I16, range(4), [218, 212, 217, 199]),
    "glass": (214, 0, 9, F32, range(6), [70, 76, 17, 13, 9, 29]),
    "ijcnn1": (49990, 91701, 22, F32, [-1, 1], [45137, 4853]),
    "covtype_16pct": (92962, 0, 54, I16, range(1, 8), None),
    "newsgroups20": (18221, 0, 36568, np.uint16, range(1, 21), None),
    "flowers5_inceptionv3": (3670, 0, 2048, F32, range(5), [633, 898, 641, 699, 799]),
    "isolet": (6238, 1559, 617, F32, range(1, 27), None),
}


def test_table_agrees_with_the_manifest():
    bundled = {name for name, facts in datasets._SETS.items() if facts.bundled}
    assert set(names()) - bundled == set(MANIFEST)
    for name, (n_train, n_test, n_features, *_) in MANIFEST.items():
        assert datasets._SETS[name][1:4] == (n_train, n_test, n_features)


@pytest.mark.data
@pytest.mark.skipif(not FOLDER, reason="LOCLIN_DATA is not set")
@pytest.mark.parametrize("name", MANIFEST)
def test_every_set_of_the_manifest(name):
    n_train, n_test, n_features, dtype, labels, counts = MANIFEST[name]
    data = load(name, data_home=FOLDER)
    assert data.source == "folder"
    assert data.X_train.shape == (n_train, n_features)
    assert data.X_train.dtype == dtype
    assert issparse(data.X_train) == (name == "newsgroups20")
    found, found_counts = np.unique(data.y_train, return_counts=True)
    assert found.tolist() == list(labels)
    assert counts is None or found_counts.tolist() == counts
    if data.class_names is not None:
        assert len(data.class_names) == len(found)
    if not n_test:
        assert data.X_test is None
        assert data.y_test is None
        return
    assert data.X_test.shape == (n_test, n_features)
    assert np.unique(data.y_test).tolist() == list(labels)
    facts = datasets._SETS[name]
    if facts.openml:
        order = datasets._row_order(np.concatenate([data.y_train, data.y_test]))
        assert order == facts.order
