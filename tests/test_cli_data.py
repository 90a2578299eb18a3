"""Reading data: every kind of file, and every bad input with its one line and exit status."""

import bz2
import gzip
import inspect
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from loclin.cli._app import app
from loclin.cli._data import load_data
from loclin.cli._errors import InputError

ROWS = 40


@pytest.fixture
def frame():
    """Forty rows of two features and two string labels."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=ROWS), "b": rng.integers(0, 9, ROWS)})
    table["label"] = np.where(np.arange(ROWS) % 4 == 0, "yes", "no")
    return table


def runner():
    """Return a runner that keeps stderr apart, as older ones do only when told to."""
    old = "mix_stderr" in inspect.signature(CliRunner).parameters
    return CliRunner(mix_stderr=False) if old else CliRunner()


def rejected(path, *words):
    """Run the command on bad data and return its one line."""
    result = runner().invoke(app, ["compare", str(path), "--models", "majority", *words])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("loclin: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def all_rows(data):
    """Put the split together again, in any order."""
    X = [part.toarray() if issparse(part) else part for part in (data.X_train, data.X_test)]
    rows = np.column_stack([np.vstack(X), np.concatenate([data.y_train, data.y_test])])
    return rows[np.lexsort(rows.T)]


def expected_rows(frame):
    codes = (frame["label"] == "yes").to_numpy(float)
    rows = np.column_stack([frame[["a", "b"]].to_numpy(float), codes])
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("t.csv", {}),
        ("t.csv.gz", {}),
        ("t.csv.bz2", {}),
        ("t.tsv", {"sep": "\t"}),
        ("t.tsv.gz", {"sep": "\t"}),
        ("semicolons.csv", {"sep": ";"}),
        ("bare.csv", {"header": False}),
        ("mark.csv", {"encoding": "utf-8-sig"}),
    ],
)
def test_tables(frame, tmp_path, name, options):
    path = tmp_path / name
    frame.to_csv(path, index=False, **options)
    data = load_data(str(path))
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))
    assert data.classes == ("no", "yes")
    assert (len(data.y_train), len(data.y_test)) == (30, 10)


def test_parquet(frame, tmp_path):
    path = tmp_path / "t.parquet"
    frame.astype({"label": "category"}).to_parquet(path)
    data = load_data(str(path))
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))
    assert data.classes == ("no", "yes")


def test_parquet_needs_pyarrow(frame, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 'reading Parquet needs pyarrow: pip install "loclin[parquet]"' in rejected(path)


@pytest.mark.parametrize("target", ["label", None])
def test_target_by_name(frame, tmp_path, target):
    path = tmp_path / "t.csv"
    (frame if target is None else frame[["label", "a", "b"]]).to_csv(path, index=False)
    data = load_data(str(path), target=target)
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))


@pytest.mark.parametrize("target", ["0", "-3"])
def test_target_by_number_in_a_bare_table(frame, tmp_path, target):
    path = tmp_path / "t.csv"
    frame[["label", "a", "b"]].to_csv(path, index=False, header=False)
    data = load_data(str(path), target=target)
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))


@pytest.mark.parametrize("start", [0, 1])
def test_names_that_count_are_names(tmp_path, start):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame(np.arange(80.0).reshape(20, 4) % 7, columns=range(start, start + 4))
    frame["label"] = np.arange(20) % 2
    frame.to_csv(path, index=False)  # columns 0, 1, 2, 3, label
    data = load_data(str(path))
    assert data.X_train.shape[1] == 4
    assert len(data.y_train) + len(data.y_test) == 20


def test_an_index_that_pandas_wrote_is_left_out(frame, tmp_path):
    path = tmp_path / "t.csv"
    frame.to_csv(path)
    data = load_data(str(path))
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))
    assert data.notes == ("the first column has no name and counts the rows: left out",)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([True, False], ("False", "True")),
        ([3, -1], ("-1", "3")),
        ([1.0, 2.0], ("1", "2")),
        ([0.5, 1.5], ("0.5", "1.5")),
        (["NA", "None"], ("NA", "None")),
        (["b", "10"], ("10", "b")),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_labels_are_kept(frame, tmp_path, labels, classes, kind):
    path = tmp_path / f"t.{kind}"
    y = np.array(labels)[np.arange(ROWS) % 2]
    if kind == "csv":
        frame.assign(label=y).to_csv(path, index=False)
    else:
        np.savez(path, X=frame[["a", "b"]].to_numpy(), y=y)
    data = load_data(str(path))
    assert data.classes == classes
    assert np.bincount(data.y_train).tolist() == [15, 15]


def test_npz_keeps_float32_and_narrows_small_integers(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    for dtype, expected in (("f4", "f4"), ("f8", "f8"), ("u1", "f4"), ("i8", "f8"), ("?", "f4")):
        path = tmp_path / "t.npz"
        np.savez(path, X=rng.integers(0, 2, (20, 3)).astype(dtype), y=y)
        assert load_data(str(path)).X_train.dtype == np.dtype(expected)


def test_npz_with_a_split_and_class_names(tmp_path):
    path = tmp_path / "t.npz"
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    np.savez(path, X_train=X, y_train=y, X_test=X[:6] + 1, y_test=y[:6], classes=["off", "on"])
    data = load_data(str(path))
    np.testing.assert_array_equal(data.X_test, X[:6] + 1)
    np.testing.assert_array_equal(data.y_test, y[:6])
    assert data.classes == ("off", "on")
    assert "leave out --test-size" in rejected(path, "--test-size", "0.3")


@pytest.mark.parametrize("split", [False, True])
def test_npz_of_csr_parts(tmp_path, split):
    path = tmp_path / "t.npz"
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (20, 5)) * 1.0, np.arange(20) % 2
    arrays = {}
    for end in ("_train", "_test") if split else ("",):
        part = csr_array(X)
        arrays |= {"data" + end: part.data, "indices" + end: part.indices, "y" + end: y}
        arrays |= {"indptr" + end: part.indptr, "shape" + end: part.shape}
    np.savez(path, **arrays)
    data = load_data(str(path))
    assert issparse(data.X_train)
    assert issparse(data.X_test)
    if split:
        np.testing.assert_array_equal(data.X_train.toarray(), X)
        np.testing.assert_array_equal(data.X_test.toarray(), X)
    else:
        assert data.X_train.shape[0] + data.X_test.shape[0] == 20
        assert data.X_train.sum() + data.X_test.sum() == X.sum()


@pytest.mark.parametrize(
    "name", ["t.svm", "t.libsvm", "t.svmlight", "t.txt", "t.svm.gz", "t.txt.bz2"]
)
def test_svmlight(tmp_path, name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 12)) * (rng.random((24, 12)) < 0.1)
    X[0, -1] = 1.0
    plain = tmp_path / "plain"
    dump_svmlight_file(X, np.arange(24) % 3, str(plain))
    packer = {"gz": gzip.compress, "bz2": bz2.compress}.get(name.split(".")[-1], bytes)
    (tmp_path / name).write_bytes(packer(plain.read_bytes()))
    data = load_data(str(tmp_path / name))
    assert issparse(data.X_train)
    assert data.classes == ("0", "1", "2")
    np.testing.assert_allclose(data.X_train.sum() + data.X_test.sum(), X.sum())


def test_svmlight_files_get_the_same_width(tmp_path):
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    train.write_text("1 1:1\n2 3:1\n" * 6)
    test.write_text("1 2:5\n2 5:1\n")
    data = load_data(str(train), test=test)
    assert data.X_train.shape == (12, 5)
    assert data.X_test.shape == (2, 5)


def test_a_full_svmlight_file_becomes_dense(tmp_path):
    path = tmp_path / "t.svm"
    X = np.random.default_rng(0).normal(size=(20, 3))
    dump_svmlight_file(X, np.arange(20) % 2, str(path))
    data = load_data(str(path))
    assert isinstance(data.X_train, np.ndarray)
    assert "read as dense" in data.notes[0]


def test_named_data_and_its_split_by_seed():
    first, again, other = (load_data("iris", seed=seed) for seed in (0, 0, 1))
    assert first.classes == ("setosa", "versicolor", "virginica")
    np.testing.assert_array_equal(first.X_test, again.X_test)
    assert not np.array_equal(first.X_test, other.X_test)
    assert np.bincount(first.y_test).tolist() == [13, 13, 12] or len(first.y_test) == 38
    rows = {tuple(row) for row in first.X_train} & {tuple(row) for row in first.X_test}
    assert len(rows) <= 2, "iris repeats a row; otherwise the parts are apart"


def test_unknown_name():
    assert "no data set 'digts'; did you mean 'digits'" in rejected("digts")


def test_target_is_not_for_named_data():
    assert "leave it out for 'iris'" in rejected("iris", "--target", "a")


def test_offline_is_one_line(monkeypatch):
    from loclin import datasets

    def offline(name):
        raise OSError("'usps' could not be fetched:\n no network")

    monkeypatch.setattr(datasets, "load", offline)
    assert rejected("usps") == "loclin: 'usps' could not be fetched: no network\n"


# --- test files ---------------------------------------------------------------------------------


def test_test_file_with_columns_in_another_order(frame, tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    frame.to_csv(train, index=False)
    frame[["label", "b", "a"]].head(8).to_csv(test, index=False)
    data = load_data(str(train), test=test)
    np.testing.assert_allclose(data.X_test, frame[["a", "b"]].head(8).to_numpy(float))
    assert data.split == "test rows from test.csv"
    assert len(data.y_train) == ROWS


def test_test_file_of_another_kind(frame, tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.npz"
    frame.to_csv(train, index=False)
    np.savez(test, X=frame[["a", "b"]].to_numpy(), y=frame["label"].to_numpy(str))
    data = load_data(str(train), test=test)
    np.testing.assert_allclose(data.X_test, data.X_train)
    np.testing.assert_array_equal(data.y_test, data.y_train)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="b"), "not the columns of the training data: lacks 'b'; make"),
        (lambda t: t.rename(columns={"b": "c"}), "lacks 'b' and has also 'c'; make them the same"),
        (lambda t: t.assign(label="maybe"), "none of its labels ('maybe') is in the training data"),
        (lambda t: t.drop(columns="label"), "no column 'label'; there are 'a', 'b'"),
        (lambda t: t.assign(a=np.nan), "40 missing values in column 'a'"),
        (lambda t: t.head(0), "has no rows below the column names"),
    ],
)
def test_bad_test_files(frame, tmp_path, change, message):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    frame.to_csv(train, index=False)
    change(frame).to_csv(test, index=False)
    line = rejected(train, "--test", str(test))
    assert message in line
    assert "test.csv" in line


def test_test_file_with_another_number_of_features(frame, tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.npz"
    frame.to_csv(train, index=False)
    np.savez(test, X=np.zeros((4, 3)), y=["no"] * 4)
    assert "has 3 features, the training data has 2; make" in rejected(train, "--test", str(test))


def test_labels_unseen_in_training_count_as_errors_and_are_told(frame, tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    frame.to_csv(train, index=False)
    other = frame.head(10).copy()
    other.loc[:2, "label"] = "maybe"
    other.to_csv(test, index=False)
    data = load_data(str(train), test=test)
    assert data.y_test[:3].tolist() == [-1, -1, -1]
    assert "3 test rows of 10 have labels that training lacks ('maybe')" in data.notes[0]
    words = [str(train), "--test", str(test), "--models", "majority", "--jobs", "1",
             "--time-limit", "0"]  # fmt: skip
    result = runner().invoke(app, ["compare", *words])
    assert result.exit_code == 0
    assert "note: 3 test rows of 10 have labels" in result.stdout


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(a=t["a"].where(t.index > 2)), "3 missing values in column 'a'; fill"),
        (
            lambda t: t.assign(a=t["a"].where(t.index > 2), b=t["b"].where(t.index > 0)),
            "4 missing values in columns 'a', 'b'; fill",
        ),
        (lambda t: t.assign(a=t["a"].replace(t["a"][5], np.inf)), "1 infinite value in column 'a'"),
        (lambda t: t.assign(label=t["label"].where(t.index > 1)), "'label' has 2 missing values"),
        (
            lambda t: t.assign(b=t["b"].astype(object).where(t.index != 3, "wide")),
            "column 'b' is not numeric: 'wide' in row 5; drop such columns or encode them",
        ),
        (
            lambda t: t.assign(a="x", b="y"),
            "column 'a' is not numeric (nor are 'b'): 'x' in row 2",
        ),
        (lambda t: t[["label", "a", "b"]], "if it holds the labels, give --target label"),
        (lambda t: t.assign(label="one"), "the target 'label' has one class only ('one')"),
        (lambda t: t.assign(label=t["a"]), "it looks like a regression target; name a column"),
        (lambda t: t.assign(label=np.arange(ROWS)), "40 distinct values in 40 rows: it looks like"),
        (
            lambda t: t.assign(label=[f"id{i}" for i in t.index]),
            "it looks like a regression target",
        ),
        (
            lambda t: t.assign(label=np.where(t.index == 0, "rare", t["label"])),
            "class 'rare' has 1 training row, and cross-validation needs 2",
        ),
        (
            lambda t: t.assign(label=np.where(t.index < 2, "rare", t["label"])),
            "class 'rare' has 1 training row, and cross-validation needs 2",
        ),
        (lambda t: t.head(0), "has no rows below the column names"),
        (lambda t: t[["label"]], "has one column; it needs features and a target"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_bad_tables(frame, tmp_path, change, message, kind):
    path = tmp_path / f"t.{kind}"
    table = change(frame)
    if kind == "csv":
        table.to_csv(path, index=False)
    else:
        table = table.astype({c: "string" for c in table if table[c].dtype == object})
        table.to_parquet(path)
        message = message.replace("row 5", "row 4").replace("row 2", "row 1")
    assert message in rejected(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "label_"], "no column 'label_'; did you mean 'label'?"),
        (["--target", "2"], "no column '2'; there are 'a', 'b', 'label'"),
    ],
)
def test_missing_target_column(frame, tmp_path, words, message):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    assert message in rejected(path, *words)


def test_missing_target_column_in_a_bare_table(frame, tmp_path):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False, header=False)
    for target in ("3", "label"):
        assert "--target takes a number from 0 to 2" in rejected(path, "--target", target)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "the file is empty; save the data again"),
        ("t.csv", b"\n \n", "the file is empty"),
        ("t.csv", "a,b,\u00e9\n1,2,3\n".encode("latin-1"), "not in UTF-8; save it"),
        ("t.csv", b"a,b,c\n1,2,3\n1,2,3,4\n", "cannot be read (Error tokenizing data"),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:30],
            "cannot be read (Compressed file",
        ),
        ("t.csv.gz", b"a,b\n1,2\n", "cannot be read (Not a gzipped file"),
        ("t.npz", b"what is this", "not an npz file; save the arrays with numpy.savez"),
        ("t.svm", b"hello world\n", "not in svmlight format"),
        ("t.txt", b"a,b,c\n1,2,3\n", "name a table .csv"),
        ("t.parquet", b"PAR", "cannot be read"),
        ("t.xlsx", b"PK", "unknown kind of file; its name must end in .csv"),
        ("t.npz.gz", b"PK", "unknown kind of file"),
    ],
)
def test_unreadable_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    assert message in rejected(path)


def test_missing_file_and_folder(tmp_path):
    assert "no such file; check the name" in rejected(tmp_path / "no.csv")
    assert "is a folder; name a file in it" in rejected(tmp_path)


def test_target_is_not_for_npz(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.eye(4), y=[0, 0, 1, 1])
    assert "--target is for CSV and Parquet files" in rejected(path, "--target", "y")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"A": np.eye(4)}, "needs X and y, or X_train"),
        ({"X": np.eye(4)}, "needs X and y, or X_train"),
        ({"X": np.eye(4), "y": np.arange(3)}, "X of shape (4, 4) and y of shape (3,) do not fit"),
        ({"X": np.arange(4), "y": np.arange(4)}, "do not fit"),
        ({"X": np.eye(4), "y": np.array([0, 1, None, 1])}, "holds pickled Python objects"),
        ({"X": np.full((4, 2), "x"), "y": [0, 0, 1, 1]}, "features are of type <U1, not numbers"),
        ({"X": np.zeros((4, 0)), "y": [0, 0, 1, 1]}, "has 4 rows and 0 features"),
        ({"X": np.eye(4), "y": [0, 0, 1, np.nan]}, "the target has 1 missing value; drop"),
        ({"X": np.eye(4), "y": [0, 0, 1, 1j]}, "labels of type complex128; use numbers"),
        (
            {"X": np.diag([1, np.nan, 1, 1]), "y": [0, 0, 1, 1]},
            "1 missing value in column '1'; fill",
        ),
        ({"X": np.diag([1, 1, np.inf, 1]), "y": [0, 0, 1, 1]}, "1 infinite value in column '2'"),
    ],
)
def test_bad_npz(tmp_path, arrays, message):
    path = tmp_path / "t.npz"
    np.savez(path, **arrays)
    assert message in rejected(path)


def test_bad_values_in_sparse_features(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 2:1\n2 9:nan\n" + "1 3:1\n2 1:1\n" * 5)
    assert "1 missing value in column '8'" in rejected(path)


def test_many_classes_are_no_quantity(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.zeros((600, 2)), y=np.arange(600) % 150)
    assert len(load_data(str(path)).classes) == 150


def test_a_quantity_with_few_values_is_a_class(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.random.default_rng(0).normal(size=(60, 2)), y=np.arange(60) % 3 / 2)
    assert load_data(str(path)).classes == ("0", "0.5", "1")
    np.savez(path, X=np.zeros((600, 2)), y=np.arange(600) % 30 / 7)
    with pytest.raises(InputError, match="30 distinct values in 600 rows"):
        load_data(str(path))
