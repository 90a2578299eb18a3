"""Reading a data file to arrays: which kind it is, and NumPy's and svmlight's kinds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile, is_zipfile

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_files

from loclin.cli._errors import InputError, listed, one_line
from loclin.cli._limits import PACKED, Limit
from loclin.cli._part import Matrix, Part
from loclin.cli._tables import read_csv, read_parquet

__all__ = ["read_files"]

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
VALUE_BYTES = 16  # of a value read from an svmlight file, ...
ROW_BYTES = 24  # ... and of a row
FEATURE_BYTES = 8 * 64  # of the weights that 64 linear models give a feature


def read_files(
    path: Path,
    target: str | None = None,
    test: Path | None = None,
    limit: Limit | None = None,
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
    limit : Limit or None
        The most that a file may take; None is the default limit.

    Returns
    -------
    (Part, Part or None)
        The training rows (all rows where there is no split) and the test rows.
    """
    limit = limit or Limit()
    paths = [name for name in (path, test) if name is not None]
    kinds = [_kind(name) for name in paths]
    if target is not None and not {"table", "parquet"} & set(kinds):
        raise InputError(
            f"{path}: --target is for CSV and Parquet files; leave it out here"
        )
    if kinds == ["svmlight", "svmlight"] and test is not None:
        with _explained(path):
            train_part, test_part = _read_svmlight([path, test], limit)
        return train_part, test_part
    first, own_test = _read(path, kinds[0], target, limit)
    if test is None:
        return first, own_test
    second, extra = _read(
        test, kinds[1], target if target is not None else first.label, limit
    )
    return first, extra if extra is not None else second


def _kind(path: Path) -> str:
    """Return the kind of a file that is there, with something in it, by its suffix."""
    with _explained(path):
        if path.is_dir():
            raise InputError(f"{path}: is a folder; name a file in it")
        suffixes = ["", *(suffix.lower() for suffix in path.suffixes)]
        packed = suffixes[-1] in PACKED
        kind = KINDS.get(suffixes[-2] if packed else suffixes[-1])
        if kind is None or (packed and kind in ("npz", "parquet")):
            raise InputError(
                f"{path}: unknown kind of file; its name must end in "
                ".csv, .tsv, .svm, .libsvm, .svmlight, .txt (each also with .gz, .bz2 or .xz), "
                ".npz or .parquet"
            )
        if not path.exists():
            raise InputError(f"{path}: no such file; check the name and the folder")
        if not path.is_file():
            raise InputError(f"{path}: is a pipe or a device; save the data to a file")
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty; save the data again")
        return kind


def _read(
    path: Path, kind: str, target: str | None, limit: Limit
) -> tuple[Part, Part | None]:
    """Read one file by its kind."""
    with _explained(path):
        if kind == "npz":
            return _read_npz(path, limit)
        if kind == "svmlight":
            return _read_svmlight([path], limit)[0], None
        read_table = read_csv if kind == "table" else read_parquet
        return read_table(path, target, limit), None


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever a reader raises on a broken file into an InputError."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not in UTF-8; save it in that encoding") from error
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or one_line(error)}); check the name, the "
            "folder and the file"
        ) from error
    except Exception as error:
        raise InputError(
            f"{path}: cannot be read ({one_line(error)}); mend it or save it again"
        ) from error


def _read_svmlight(paths: list[Path], limit: Limit) -> list[Part]:
    """Read svmlight files together, so that they get the same number of features."""
    for path in paths:
        rows, values = limit.count(path, b"\n", b":")
        limit.check(path, ROW_BYTES * rows + VALUE_BYTES * values, "its rows take")
    try:
        loaded = load_svmlight_files([str(path) for path in paths])
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{listed(paths)}: not in svmlight format ({one_line(error)}); rows read "
            "'label index:value ...' with indices that rise, below 2**31; name a table .csv"
        ) from error
    pairs = [(csr_array(X), y) for X, y in zip(loaded[::2], loaded[1::2], strict=True)]
    for path, (X, _) in zip(paths, pairs, strict=True):
        if not X.nnz:
            raise InputError(
                f"{path}: has no features, only labels; rows read 'label index:value ...'"
            )
        features = X.shape[1]
        limit.check(
            path, FEATURE_BYTES * features, f"models of {features:,} features may take"
        )
    cells = sum(X.shape[0] * X.shape[1] for X, _ in pairs)
    full = (
        sum(X.nnz for X, _ in pairs) >= DENSE_SHARE * cells and 8 * cells <= DENSE_BYTES
    )
    notes = (
        ("most values are not zero, so the svmlight file is read as dense",)
        if full
        else ()
    )
    return [Part(X.toarray() if full else X, y, notes=notes) for X, y in pairs]


def _read_npz(path: Path, limit: Limit) -> tuple[Part, Part | None]:
    """Read an npz file of arrays, dense or as CSR parts, with or without a test split."""
    if not is_zipfile(path):
        raise InputError(f"{path}: not an npz file; save the arrays with numpy.savez")
    with ZipFile(path) as packed:
        size = sum(member.file_size for member in packed.infolist())
    limit.check(path, size, "its arrays take")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key.lower(): archive[key] for key in archive.files}
            twice = len(arrays) < len(archive.files)
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        raise InputError(
            f"{path}: holds pickled Python objects, which are not read for safety; "
            "save plain arrays of numbers or strings"
        ) from error
    bad = [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]
    if bad or twice:
        what = f"{listed(bad)}: no array" if bad else "two arrays of one name"
        raise InputError(f"{path}: has {what}; save the arrays anew with numpy.savez")
    if "y_train" in arrays:
        test = _npz_part(path, arrays, "_test", limit) if "y_test" in arrays else None
        return _npz_part(path, arrays, "_train", limit), test
    return _npz_part(path, arrays, "", limit), None


def _npz_part(
    path: Path, arrays: Mapping[str, np.ndarray], end: str, limit: Limit
) -> Part:
    """Take the features and labels whose keys end in ``end``."""
    sparse_keys = [key + end for key in ("data", "indices", "indptr", "shape")]
    if "y" + end not in arrays or not (
        "x" + end in arrays or set(sparse_keys) <= set(arrays)
    ):
        raise InputError(
            f"{path}: needs X and y, or X_train, y_train, X_test, y_test (for sparse X: "
            f"data, indices, indptr, shape); it has {listed(arrays, 8)}"
        )
    y = arrays["y" + end]
    if "x" + end in arrays:
        dense = arrays["x" + end]
        X: Matrix = (
            dense.reshape(len(dense), -1) if dense.ndim > 2 and dense.size else dense
        )
    else:
        X = _npz_csr(path, *(arrays[key] for key in sparse_keys))
        limit.check(
            path,
            FEATURE_BYTES * X.shape[1],
            f"models of {X.shape[1]:,} features may take",
        )
    if X.ndim != 2 or y.ndim == 0 or y.size != y.shape[0] or X.shape[0] != len(y):
        raise InputError(
            f"{path}: X{end} of shape {X.shape} and y{end} of shape {y.shape} do not fit; "
            "they must be (rows, features) and (rows,)"
        )
    return Part(X, _named(path, y.ravel(), arrays.get("classes")))


def _npz_csr(
    path: Path,
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    shape: np.ndarray,
) -> csr_array:
    """Return the sparse matrix with these parts, whose indices lie within it."""
    cure = "save the parts of a csr_array"
    if shape.shape != (2,) or any(
        part.dtype.kind not in "iu" for part in (shape, indices, indptr)
    ):
        raise InputError(
            f"{path}: indices, indptr and shape must be integers, and shape two of them; {cure}"
        )
    try:
        X = csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
        X.check_format(full_check=True)
        if (np.diff(X.indptr) < 0).any():  # with no values at all, that is not checked
            raise ValueError("indptr falls")
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{path}: no sparse matrix ({one_line(error)}); {cure}"
        ) from error
    return X


def _named(path: Path, y: np.ndarray, names: np.ndarray | None) -> np.ndarray:
    """Return the labels by the names of their classes, where the file has these."""
    if names is None or y.dtype.kind not in "iu" or not len(y):
        return y
    if names.ndim != 1:
        raise InputError(
            f"{path}: classes has shape {names.shape}; it must be a list of the classes' names"
        )
    return names[y] if 0 <= y.min() <= y.max() < len(names) else y
