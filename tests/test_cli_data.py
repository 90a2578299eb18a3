"""Reading data: every kind of file, and every bad input with its one line and exit status."""

import gzip
import inspect
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from loclin.cli._app import app
from loclin.cli._data import load, split
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


def load_data(path, *, target=None, header=True, limit=1e9, **how):
    """Return rows that are read and split."""
    files = {"header": header, "limit": limit}
    return split(load(str(path), target=target, **files), **files, **how)


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
        ("t.tsv", {"sep": "\t"}),
        ("t.tsv.gz", {"sep": "\t"}),
        ("semicolons.csv", {"sep": ";"}),
        ("bars.csv", {"sep": "|"}),
        ("t.txt", {"sep": "\t"}),
        ("mark.csv", {"encoding": "utf-8-sig"}),
    ],
)
def test_tables(frame, tmp_path, name, options):
    path = tmp_path / name
    frame.to_csv(path, index=False, **options)
    data = load_data(path)
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))
    assert data.classes == ("no", "yes")
    assert (len(data.y_train), len(data.y_test)) == (30, 10)


def test_parquet(frame, tmp_path):
    path = tmp_path / "t.parquet"
    frame.astype({"label": "category"}).to_parquet(path)
    data = load_data(path)
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))
    assert data.classes == ("no", "yes")


@pytest.mark.parametrize("name", ["pandas", "duckdb"])
def test_tables_say_what_they_need(frame, tmp_path, monkeypatch, name):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    monkeypatch.setitem(sys.modules, name, None)
    assert f'needs {name}: pip install "loclin[tables]"' in rejected(path)


@pytest.mark.parametrize("target", ["label", None])
def test_target_by_name(frame, tmp_path, target):
    path = tmp_path / "t.csv"
    (frame if target is None else frame[["label", "a", "b"]]).to_csv(path, index=False)
    data = load_data(path, target=target)
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))


def test_target_by_number_in_a_bare_table(frame, tmp_path):
    path = tmp_path / "t.csv"
    frame[["label", "a", "b"]].to_csv(path, index=False, header=False)
    data = load_data(path, target="0", header=False)
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))


@pytest.mark.parametrize(
    "names", [["0", "1", "2"], ["2018", "2019", "2020"], ["400", "402.5", "label"]]
)
def test_numbers_may_be_names(frame, tmp_path, names):
    path = tmp_path / "t.csv"
    frame.set_axis(names, axis=1).to_csv(path, index=False)
    data = load_data(path)
    assert len(data.y_train) + len(data.y_test) == ROWS
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))
    doubtful = any("is read as column names" in note for note in data.notes)
    assert doubtful is (names[0] == "2018"), "0, 1, 2 is what pandas writes"


def test_a_table_without_names_is_told(frame, tmp_path):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    with pytest.raises(InputError, match=r"'label'; .* leave out --no-header"):
        load_data(path, header=False)
    frame.assign(label=0).rename(columns={"label": "1"}).to_csv(path, index=False)
    assert "leave out --no-header" in rejected(path, "--no-header")


def test_an_index_that_pandas_wrote_is_left_out(frame, tmp_path):
    path = tmp_path / "t.csv"
    frame.sample(frac=1, random_state=0).to_csv(path)
    data = load_data(path)
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))
    assert any("'Unnamed: 0'" in note for note in data.notes)


def test_separators_at_the_ends_of_lines_make_no_target(frame, tmp_path):
    path = tmp_path / "t.csv"
    lines = frame.to_csv(index=False).splitlines()
    path.write_text("".join(f"{line},\n" for line in lines))
    data = load_data(path)
    np.testing.assert_allclose(all_rows(data), expected_rows(frame))


def test_labels_do_not_depend_on_the_others_of_a_file(tmp_path):
    def written(name, labels, n_rows):
        rows = [f"{i % 7},{i % 5},{labels[i % len(labels)]}" for i in range(n_rows)]
        (tmp_path / name).write_text("\n".join(["x1,x2,code", *rows]))
        return tmp_path / name

    for train, test in ((["01", "10", "x"], ["01", "10"]), (["true", "maybe"], ["true"])):
        data = load_data(written("a.csv", train, 90), test=str(written("b.csv", test, 40)))
        assert (data.y_test >= 0).all()
    assert load_data(written("m.csv", ["01", "1", "2"], 90)).classes == ("01", "1", "2")
    assert load_data(written("s.csv", ["yes", "yes ", "no"], 90)).classes == ("no", "yes")


def test_a_parquet_file_of_other_types(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "a": [Decimal(i) for i in range(40)],
        "b": [i % 7 + 0.5 for i in range(40)],
        "nothing": arrow.nulls(40),
        "label": [b"x", b"y"] * 20,
    }
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    data = load_data(tmp_path / "t.parquet")
    assert data.classes == ("x", "y")
    assert data.encoder.kinds_ == {"a": "number", "b": "number", "nothing": "leave out"}
    assert data.X_train.dtype == np.float64


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
    data = load_data(path)
    if kind == "csv" and isinstance(labels[0], float):
        classes = tuple(map(str, labels))  # as they are written
    assert data.classes == classes
    assert np.bincount(data.y_train).tolist() == [15, 15]


def test_npz_keeps_float32_and_narrows_small_integers(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    for dtype, expected in (("f4", "f4"), ("f8", "f8"), ("u1", "f4"), ("i8", "f8"), ("?", "f4")):
        path = tmp_path / "t.npz"
        np.savez(path, X=rng.integers(0, 2, (20, 3)).astype(dtype), y=y)
        assert load_data(path).X_train.dtype == np.dtype(expected)


def test_npz_with_a_split_and_class_names(tmp_path):
    path = tmp_path / "t.npz"
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    np.savez(path, X_train=X, y_train=y, X_test=X[:6] + 1, y_test=y[:6], classes=["off", "on"])
    data = load_data(path)
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
    data = load_data(path)
    assert issparse(data.X_train)
    assert issparse(data.X_test)
    if split:
        np.testing.assert_array_equal(data.X_train.toarray(), X)
        np.testing.assert_array_equal(data.X_test.toarray(), X)
    else:
        assert data.X_train.shape[0] + data.X_test.shape[0] == 20
        assert data.X_train.sum() + data.X_test.sum() == X.sum()


@pytest.mark.parametrize(
    "name", ["t.svm", "t.libsvm", "t.svmlight", "t.txt", "t.svm.gz", "t.txt.gz"]
)
def test_svmlight(tmp_path, name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 12)) * (rng.random((24, 12)) < 0.1)
    X[0, -1] = 1.0
    plain = tmp_path / "plain"
    dump_svmlight_file(X, np.arange(24) % 3, str(plain))
    packer = {"gz": gzip.compress}.get(name.split(".")[-1], bytes)
    (tmp_path / name).write_bytes(packer(plain.read_bytes()))
    data = load_data(tmp_path / name)
    assert issparse(data.X_train)
    assert data.classes == ("0", "1", "2")
    np.testing.assert_allclose(data.X_train.sum() + data.X_test.sum(), X.sum())


def test_svmlight_files_get_the_same_width(tmp_path):
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    train.write_text("1 1:1\n2 3:1\n" * 6)
    test.write_text("1 2:5\n2 5:1\n")
    data = load_data(train, test=str(test))
    assert data.X_train.shape == (12, 3)
    assert data.X_test.toarray().tolist() == [[0, 5, 0], [0, 0, 0]], "no model knows feature 5"
    test.write_text("1 2:5\n2 1:1\n")
    assert load_data(train, test=str(test)).X_test.shape == (2, 3)


def test_a_full_svmlight_file_becomes_dense(tmp_path):
    path = tmp_path / "t.svm"
    X = np.random.default_rng(0).normal(size=(20, 3))
    dump_svmlight_file(X, np.arange(20) % 2, str(path))
    data = load_data(path)
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
    data = load_data(train, test=str(test))
    np.testing.assert_allclose(data.X_test, frame[["a", "b"]].head(8).to_numpy(float))
    assert data.split == "rows of test.csv"
    assert len(data.y_train) == ROWS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="b"), "lacks 'b' of the training data"),
        (lambda t: t.assign(label="maybe"), "none of its labels ('maybe') is in the training data"),
        (lambda t: t.drop(columns="label"), "no column 'label'; there are 'a', 'b'"),
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


def test_test_file_of_another_kind_or_number_of_features(frame, tmp_path):
    table, train, test = tmp_path / "t.csv", tmp_path / "train.npz", tmp_path / "test.npz"
    frame.to_csv(table, index=False)
    np.savez(train, X=frame[["a", "b"]].to_numpy(), y=frame["label"].to_numpy(str))
    np.savez(test, X=np.zeros((4, 3)), y=["no"] * 4)
    assert "not the kind of file" in rejected(table, "--test", str(test))
    assert "has 3 features, the training data has 2; make" in rejected(train, "--test", str(test))


def test_labels_unseen_in_training_count_as_errors_and_are_told(frame, tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    frame.to_csv(train, index=False)
    other = frame.head(10).copy()
    other.loc[:2, "label"] = "maybe"
    other.to_csv(test, index=False)
    data = load_data(train, test=str(test))
    assert data.y_test[:3].tolist() == [-1, -1, -1]
    assert any("3 test rows of 10 have labels that training lacks" in note for note in data.notes)
    words = [str(train), "--test", str(test), "--models", "majority", "--jobs", "1",
             "--time-limit", "0"]  # fmt: skip
    result = runner().invoke(app, ["compare", *words])
    assert result.exit_code == 0
    assert "note: 3 test rows of 10 have labels" in result.stdout


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(label="one"), "the target 'label' has 1 class only ('one')"),
        (lambda t: t.assign(label=t["a"]), "it looks like a regression target; name a column"),
        (lambda t: t.assign(label=np.arange(ROWS)), "40 distinct values in 40 rows: it looks like"),
        (
            lambda t: t.assign(label=[f"id{i}" for i in t.index]),
            "it looks like a regression target",
        ),
        (
            lambda t: t.assign(label=np.where(t.index == 0, "rare", t["label"])),
            "too few training rows of 'rare'; each class needs 2",
        ),
        (
            lambda t: t.assign(label=np.where(t.index < 2, "rare", t["label"])),
            "too few training rows of 'rare'; each class needs 2",
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
        table.astype({c: "string" for c in table if table[c].dtype == object}).to_parquet(path)
    assert message in rejected(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "label_"], "no column 'label_'; did you mean 'label'?"),
        (["--target", "2"], "no column '2'; there are 'a', 'b', 'label'"),
        (["--target", "3", "--no-header"], "no column '3'; with --no-header it is 0 to 2"),
    ],
)
def test_missing_target_column(frame, tmp_path, words, message):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    assert message in rejected(path, *words)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "the file is empty; save the data again"),
        ("t.csv", b"\n \n", "has one column"),
        ("t.csv", b"a,b,c\n1,2\n", "line 2 has 2 cells, the first line 3; mend that line"),
        ("t.csv", b'a,b\n1,"2\n3,4\n', "a quote is not closed"),
        ("t.csv", "a,b,\u00e9\n1,2,3\n".encode("latin-1"), "not in UTF-8; save it"),
        ("t.csv", b"a,b,c\n1,2,3\n1,2,3,4\n", "line 3 has 4 cells, the first line 3"),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:30],
            "cannot be read",
        ),
        ("t.csv.gz", b"a,b\n1,2\n", "cannot be read (Not a gzipped file"),
        ("t.npz", b"what is this", "not an npz file; save the arrays with numpy.savez"),
        ("t.svm", b"hello world\n", "not in svmlight format"),
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
    assert "--target is for tables; leave it out" in rejected(path, "--target", "y")


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
        ({"X": np.eye(4), "y": [0, 0, 1, np.nan]}, "the target has 1 missing value"),
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
    assert len(load_data(path).classes) == 150


def test_a_quantity_with_few_values_is_a_class(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.random.default_rng(0).normal(size=(60, 2)), y=np.arange(60) % 3 / 2)
    assert load_data(path).classes == ("0", "0.5", "1")
    np.savez(path, X=np.zeros((600, 2)), y=np.arange(600) % 30 / 7)
    with pytest.raises(InputError, match="30 distinct values in 600 rows"):
        load_data(path)
