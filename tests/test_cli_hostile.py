"""Files that cannot be used: each gets one line that names the cure, and nothing crashes."""

import gzip
import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from loclin import ML3Classifier
from loclin.cli._errors import printable
from loclin.codings import SoftAssignmentCoding
from tests.test_cli import refused
from tests.test_cli_data import load_data, rejected

Y = np.arange(40) % 2


def csr_parts(**other):
    """Parts of a good CSR matrix (40, 3), some replaced."""
    X = csr_array(np.random.default_rng(0).normal(size=(40, 3)))
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    return {key: np.asarray(value) for key, value in (parts | other).items()}


def with_index(value, dtype=np.int64):
    indices = csr_parts()["indices"].astype(dtype)
    indices[7] = value
    return {"indices": indices}


def with_indptr(place, value):
    indptr = csr_parts()["indptr"].copy()
    indptr[place] = value
    return {"indptr": indptr}


FORGED = {
    "index 10**9": (with_index(10**9), "no sparse matrix (indices must be < 3)"),
    "index -10**9": (with_index(-(10**9)), "no sparse matrix (indices must be >= 0)"),
    "index one past the end": (with_index(3), "no sparse matrix (indices must be < 3)"),
    "indptr falls": (with_indptr(5, 90), "no sparse matrix"),
    "indptr negative": (with_indptr(5, -3), "no sparse matrix"),
    "indptr ends below 0": (with_indptr(-1, -3), "no sparse matrix"),
    "indptr ends at 0": (with_indptr(-1, 0), "no sparse matrix (indptr falls)"),
    "indptr past the end": (with_indptr(-1, 10**6), "no sparse matrix"),
    "indices are floats": (with_index(1.5, float), "must be integers"),
    "shape is one number": ({"shape": 40}, "must be integers, and shape two of them"),
    "shape is huge": ({"shape": [40, 10**15]}, "allow more (max_bytes, --max-gb)"),
    "shape is negative": ({"shape": [40, -1]}, "no sparse matrix"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_csr_parts(tmp_path, name):
    parts, message = FORGED[name]
    path = tmp_path / "t.npz"
    np.savez(path, y=Y, **csr_parts(**parts))
    assert message in rejected(path)


@pytest.mark.parametrize("name", [name for name in FORGED if "ind" in name and "flo" not in name])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_estimators_refuse_forged_sparse_rows(name, kind):
    X = csr_array(np.random.default_rng(0).normal(size=(40, 3)))
    model = ML3Classifier(2, max_iter=2, random_state=0).fit(X, Y)
    coding = SoftAssignmentCoding(4, 2, random_state=0).fit(X)
    X = X.T if kind == "csc" else X
    for key, value in FORGED[name][0].items():
        setattr(X, key, value)
    with pytest.raises(ValueError, match="X is no valid sparse matrix: "):
        clone(model).fit(X, Y)
    with pytest.raises(ValueError, match="X is no valid sparse matrix: "):
        model.predict(X)
    with pytest.raises(ValueError, match="X is no valid sparse matrix: "):
        coding.transform(X)


def npz(path, **arrays):
    np.savez(path, **({"X": np.ones((40, 3)), "y": Y} | arrays))


def test_npz_arrays_of_wrong_dimensions(tmp_path):
    path = tmp_path / "t.npz"
    npz(path, y=np.array(3))
    assert "y of shape () do not fit" in rejected(path)
    for names in (np.array("a"), np.array([["a", "b"]])):
        npz(path, classes=names)
        assert "it must be a list of the classes' names" in rejected(path)


def test_npz_member_that_is_no_array(tmp_path):
    path = tmp_path / "t.npz"
    npz(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("classes", "just text")
    assert "has 'classes': no array" in rejected(path)


def header(shape, descr="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


@pytest.mark.parametrize("shape", [(10**12,), (40, 10**9), (2**62, 4)])
def test_npz_with_a_forged_header(tmp_path, shape):
    path = tmp_path / "t.npz"
    npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("y.npy", header(shape) + b"12345678")
    assert "cannot be read" in rejected(path)


@pytest.mark.parametrize(("place", "value"), [(6, 1), (8, 97)])
def test_npz_encrypted_or_packed_in_an_unknown_way(tmp_path, place, value):
    path = tmp_path / "t.npz"
    npz(path)
    content = bytearray(path.read_bytes())
    content[place] = value  # in the local header, and in the directory
    content[content.index(b"PK\x01\x02") + place + 2] = value
    path.write_bytes(content)
    assert "cannot be read" in rejected(path)


@pytest.mark.parametrize("index", [10**9, 2**31, 2**63])
def test_svmlight_index_out_of_range(tmp_path, index):
    path = tmp_path / "t.svm"
    path.write_text(f"1 1:2 {index}:1\n0 1:3\n" * 20)
    line = rejected(path)
    assert (
        "allow more (max_bytes, --max-gb)" in line or "with indices that rise, below 2**31" in line
    )


def test_svmlight_without_features(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1\n0\n" * 20)
    assert "has no features, only labels" in rejected(path)


@pytest.mark.parametrize("end", [".csv.gz", ".svm.gz"])
def test_junk_in_packed_files(tmp_path, end):
    path = tmp_path / f"t{end}"
    whole = gzip.compress(b"a,b,c\n" + b"1,2,x\n3,4,y\n" * 2000)
    for content in (b"junk", whole[: len(whole) // 2], whole[:6] + b"junk" + whole[6:]):
        path.write_bytes(content)
        line = rejected(path)
        assert "cannot be read" in line or "not in svmlight format" in line


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2,x\n3,4,y\n", "a,b,c\n1,2,x,5\n3,4,y,5\n", "# made, in\na,b,c\n1,2,x\n3,4,y\n"],
)
def test_rows_longer_than_the_header(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert "cells, the first line" in rejected(path)


def test_a_name_in_quotes_may_hold_a_line_break(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i},{i % 3},{'xy'[i % 2]}\n" for i in range(40))
    path.write_text(f'a,"b\nc",kind\n{rows}')
    assert load_data(path).X_train.shape == (30, 2)


def test_a_long_name_is_a_name(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i},{i % 3},{'xy'[i % 2]}\n" for i in range(40))
    path.write_text(f"a,{'b' * 200_000},kind\n{rows}")
    assert load_data(path).X_train.shape == (30, 2)


def test_names_that_are_too_long_or_no_names(tmp_path):
    for name in (f"{'n' * 300}.csv", "n\0.csv", f"{'n' * 5000}"):
        assert rejected(tmp_path / name)
    for option in ("--csv", "--html"):
        frame = tmp_path / "t.csv"
        frame.write_text("a,b\n1,x\n2,y\n")
        for letters in (250, 300):
            assert "File name too long" in rejected(frame, option, str(tmp_path / ("n" * letters)))


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders")
def test_a_pipe_is_no_data_file(tmp_path):
    import os

    os.mkfifo(tmp_path / "t.csv")
    assert "is a pipe or a device" in rejected(tmp_path / "t.csv")


def test_columns_of_one_name(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i},{i % 3},{i},{'xy'[i % 2]}\n" for i in range(40))
    path.write_text(f"a,a,a.1,kind\n{rows}")
    data = load_data(path)
    assert list(data.encoder.kinds_) == ["a", "a.2", "a.1"]


def test_parquet_lists(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"a": np.arange(40.0), "kind": [[i % 2] for i in range(40)]})
    frame.to_parquet(path)
    assert "'kind': lists or structs; give each value a column" in rejected(path)


def test_labels_close_to_one_another_stay_apart(tmp_path):
    path = tmp_path / "t.npz"
    y = np.array([0.1234567, 0.1234568, 2.0])[np.arange(60) % 3]
    np.savez(path, X=np.random.default_rng(0).normal(size=(60, 2)), y=y)
    assert load_data(path).classes == ("0.1234567", "0.1234568", "2")
    np.savez(path, X=np.ones((60, 2)), y=np.array([b"\xff", b"\xfe"])[np.arange(60) % 2])
    assert load_data(path).classes == ("\\xfe", "\\xff")


def test_features_too_large_to_be_scaled(tmp_path):
    path = tmp_path / "t.npz"
    npz(path, X=np.arange(120.0).reshape(40, 3) * 1e300)
    assert "119 values too large to be scaled in columns '0', '1', '2'" in rejected(path)


def test_control_characters_are_written_out(tmp_path):
    assert printable("é\x1b]0;x\x07\n\u202e\x9b\udcff") == "é\\x1b]0;x\\x07\\n\\u202e\\x9b\\udcff"
    assert "red\\x1b[2J.csv" in rejected(tmp_path / "red\x1b[2J.csv")
    path = tmp_path / "t.csv"
    path.write_text("a,kind\x1b[31m\n" + "1,x\n" * 9)
    assert "'kind\\x1b[31m' has 1 class" in rejected(path)


# --- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", ".gz"])
def test_text_is_limited_once_unpacked(tmp_path, end):
    pack = gzip.compress if end else bytes
    path = tmp_path / f"t.csv{end}"
    path.write_bytes(pack(b"a,b,c\n" + b"1,2,x\n3,4,y\n" * 2 * 10**5))
    assert "its text takes 0.00" in rejected(path, "--max-gb", "0.002")
    path.write_bytes(pack(b"a,b,c\n1,2,x\n" + b"1" * 3 * 10**6))
    assert "line 3 cannot be read (it is too long)" in rejected(path)


def test_cells_and_columns_of_tables_are_limited(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join("abc") + "\n" + "1,2,3\n" * 10**5)
    assert "its cells take more than 0.018 GB" in rejected(path, "--max-gb", "0.01")
    path.write_text(",".join(["1"] * 10**5 + ["x"]) + "\n")
    assert "100,001 columns of a table take 1 GB" in rejected(path)


def test_parquet_is_limited_before_it_is_read(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.arange(10.0**6), "kind": ["x"] * 10**6}).to_parquet(path)
    assert "its cells take more than" in rejected(path, "--max-gb", "0.01")
    pd.DataFrame({"a": [1.0, 2.0] * 20, "kind": ["x" * 10**6, "y"] * 20}).to_parquet(path)
    assert "its texts take 0.02 GB" in rejected(path, "--max-gb", "0.01")
    pd.DataFrame({f"c{i}": [1.0] for i in range(2000)}).to_parquet(path)
    assert "2,000 columns take 0.02 GB" in rejected(path, "--max-gb", "0.01")
    kinds = pd.Categorical.from_codes(np.arange(10**4) % 2, ["x" * 10**4, "y"])
    pd.DataFrame({"a": np.zeros(10**4), "kind": kinds}).to_parquet(path)
    assert path.stat().st_size < 10**5
    assert "its texts take 0.05 GB" in rejected(path, "--max-gb", "0.01")


def test_npz_is_limited_before_it_is_read(tmp_path):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.zeros((10**5, 30)), y=np.zeros(10**5))
    assert path.stat().st_size < 10**5
    assert "its arrays take 0.0248 GB" in rejected(path, "--max-gb", "0.01")


def test_svmlight_text_is_limited(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:1 2:1 3:1\n0 1:1\n" * 10**4)
    assert "its text takes" in rejected(path, "--max-gb", "0.0001")


def test_a_limit_can_be_raised(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,x\n2,y\n" * 1000)
    with pytest.raises(ValueError, match="allow more"):
        load_data(path, limit=1e3)
    assert load_data(path, limit=1e6).X_train.shape == (1500, 1)


@pytest.mark.slow
def test_a_column_costs_little(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join([",".join(["1.5"] * 20_000 + [label]) for label in "xyxyxyxy"]))
    from time import process_time

    start = process_time()
    load_data(path)
    assert (process_time() - start) / 20_000 < 2e-4


@pytest.mark.parametrize("option", ["--threads", "--jobs"])
def test_too_many_threads(option, capsys, monkeypatch):
    words = ["compare", "iris", option, "1000000000"]
    assert f"'{option}'" in refused(capsys, monkeypatch, *words)
