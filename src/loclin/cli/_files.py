"""Reading a data file to arrays: which kind it is, and NumPy's and svmlight's kinds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile, is_zipfile

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_files

from loclin.cli._errors import InputError, listed, one_line
from loclin.cli._part import Matrix, Part
from loclin.cli._tables import read_csv, read_parquet

__all__ = ["read_files"]

COMPRESSED = (".gz", ".bz2", ".xz")
KINDS = {
    ".csv": "table",
    ".tsv": "table",
    ".parquet": "parquet",
    ".npz": "npz",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
    ".txt": "svmlight",
}
DENSE_SHARE = 0.3  # an svmlight file at least this full is read as a dense array ...
DENSE_BYTES = 2**29  # ... where that stays below this size

UNREADABLE = (ValueError, OSError, EOFError, KeyError, zlib.error, BadZipFile)


def read_files(
    path: Path, target: str | None = None, test: Path | None = None
) -> tuple[Part, Part | None]:
    """Read the data file and, where given, the test file that goes with it.

    Parameters
    ----------
    path : Path
        The data file; an npz file may hold a test split of its own.
    target : str or None
        The column of labels, for tables; None takes the last one.
    test : Path or None
        A file of test rows of any kind; it replaces a test split that ``path`` holds.

    Returns
    -------
    (Part, Part or None)
        The training rows (all rows where there is no split) and the test rows.
    """
    paths = [name for name in (path, test) if name is not None]
    kinds = [_kind(name) for name in paths]
    if target is not None and not {"table", "parquet"} & set(kinds):
        raise InputError(f"{path}: --target is for CSV and Parquet files; leave it out here")
    if kinds == ["svmlight", "svmlight"] and test is not None:
        with _explained(path):
            train_part, test_part = _read_svmlight([path, test])
        return train_part, test_part
    first, own_test = _read(path, kinds[0], target)
    if test is None:
        return first, own_test
    second, extra = _read(test, kinds[1], target if target is not None else first.label)
    return first, extra if extra is not None else second


def _kind(path: Path) -> str:
    """Return the kind of a file that is there, with something in it, by its suffix."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file in it")
    suffixes = ["", *(suffix.lower() for suffix in path.suffixes)]
    packed = suffixes[-1] in COMPRESSED
    kind = KINDS.get(suffixes[-2] if packed else suffixes[-1])
    if kind is None or (packed and kind in ("npz", "parquet")):
        raise InputError(
            f"{path}: unknown kind of file; its name must end in "
            ".csv, .tsv, .svm, .libsvm, .svmlight, .txt (each also with .gz or .bz2), "
            ".npz or .parquet"
        )
    if not path.exists():
        raise InputError(f"{path}: no such file; check the name and the folder")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; save the data again")
    return kind


def _read(path: Path, kind: str, target: str | None) -> tuple[Part, Part | None]:
    """Read one file by its kind."""
    with _explained(path):
        if kind == "npz":
            return _read_npz(path)
        if kind == "svmlight":
            return _read_svmlight([path])[0], None
        read_table = read_csv if kind == "table" else read_parquet
        return read_table(path, target), None


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what a broken file raises into an InputError."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not in UTF-8; save it in that encoding") from error
    except UNREADABLE as error:
        raise InputError(
            f"{path}: cannot be read ({one_line(error)}); mend it or save it again"
        ) from error


def _read_svmlight(paths: list[Path]) -> list[Part]:
    """Read svmlight files together, so that they get the same number of features."""
    try:
        loaded = load_svmlight_files([str(path) for path in paths])
    except ValueError as error:
        raise InputError(
            f"{listed(paths)}: not in svmlight format ({one_line(error)}); rows read "
            "'label index:value ...' with indices that rise; name a table .csv"
        ) from error
    pairs = [(csr_array(X), y) for X, y in zip(loaded[::2], loaded[1::2], strict=True)]
    cells = sum(X.shape[0] * X.shape[1] for X, _ in pairs)
    full = sum(X.nnz for X, _ in pairs) >= DENSE_SHARE * cells and 8 * cells <= DENSE_BYTES
    notes = ("most values are not zero, so the svmlight file is read as dense",) if full else ()
    return [Part(X.toarray() if full else X, y, notes=notes) for X, y in pairs]


def _read_npz(path: Path) -> tuple[Part, Part | None]:
    """Read an npz file of arrays, dense or as CSR parts, with or without a test split."""
    if not is_zipfile(path):
        raise InputError(f"{path}: not an npz file; save the arrays with numpy.savez")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key.lower(): archive[key] for key in archive.files}
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        raise InputError(
            f"{path}: holds pickled Python objects, which are not read for safety; "
            "save plain arrays of numbers or strings"
        ) from error
    if "y_train" in arrays:
        test = _npz_part(path, arrays, "_test") if "y_test" in arrays else None
        return _npz_part(path, arrays, "_train"), test
    return _npz_part(path, arrays, ""), None


def _npz_part(path: Path, arrays: Mapping[str, np.ndarray], end: str) -> Part:
    """Take the features and labels whose keys end in ``end``."""
    sparse_keys = [key + end for key in ("data", "indices", "indptr", "shape")]
    if "y" + end not in arrays or not ("x" + end in arrays or set(sparse_keys) <= set(arrays)):
        raise InputError(
            f"{path}: needs X and y, or X_train, y_train, X_test, y_test (for sparse X: "
            f"data, indices, indptr, shape); it has {listed(arrays, 8)}"
        )
    y = arrays["y" + end]
    if "x" + end in arrays:
        dense = arrays["x" + end]
        X: Matrix = dense.reshape(len(dense), -1) if dense.ndim > 2 else dense
    else:
        data, indices, indptr, shape = (arrays[key] for key in sparse_keys)
        n_rows, n_features = map(int, shape)
        X = csr_array((data, indices, indptr), shape=(n_rows, n_features))
    if X.ndim != 2 or y.size != y.shape[0] or X.shape[0] != len(y):
        raise InputError(
            f"{path}: X{end} of shape {X.shape} and y{end} of shape {y.shape} do not fit; "
            "they must be (rows, features) and (rows,)"
        )
    names = arrays.get("classes")
    y = y.ravel()
    if (
        names is not None
        and y.dtype.kind in "iu"
        and len(y)
        and 0 <= y.min() <= y.max() < len(names)
    ):
        y = names[y]
    return Part(X, y)
