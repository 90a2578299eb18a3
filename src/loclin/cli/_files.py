"""Reading a data file to arrays: which kind it is, and NumPy's and svmlight's kinds."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile, is_zipfile

import numpy as np

from loclin.cli._errors import InputError, listed, one_line

__all__ = ["Part", "kind_of", "read_files"]

T = TypeVar("T")

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


@dataclass(frozen=True)
class Part:
    """Rows of one file: features, labels as they stand there, and the features' names."""

    X: Any
    y: np.ndarray
    columns: tuple[str, ...] | None = None
    label: str | None = None  # the name of the target column
    notes: tuple[str, ...] = ()


def kind_of(path: Path) -> str:
    """Return the kind of file that the suffix of ``path`` stands for."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in COMPRESSED
    suffix = suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    kind = KINDS.get(suffix)
    if kind is None or (packed and kind in ("npz", "parquet")):
        raise InputError(
            f"{path}: unknown kind of file; its name must end in "
            ".csv, .tsv, .svm, .libsvm, .svmlight, .txt (each also with .gz or .bz2), "
            ".npz or .parquet"
        )
    return kind


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
    kinds = [_kind_of_existing(name) for name in paths]
    if target is not None and not {"table", "parquet"} & set(kinds):
        raise InputError(f"{path}: --target is for CSV and Parquet files; leave it out here")
    if kinds == ["svmlight", "svmlight"] and test is not None:
        train_part, test_part = _guard(path, lambda: _read_svmlight([path, test]))
        return train_part, test_part
    first, own_test = _read(path, target)
    if test is None:
        return first, own_test
    second, extra = _read(test, target if target is not None else first.label)
    return first, extra if extra is not None else second


def _kind_of_existing(path: Path) -> str:
    """Return the kind of a file that is there, with something in it."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file in it")
    kind = kind_of(path)
    if not path.exists():
        raise InputError(f"{path}: no such file; check the name and the folder")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; save the data again")
    return kind


def _read(path: Path, target: str | None) -> tuple[Part, Part | None]:
    """Read one file by its kind."""
    kind = kind_of(path)
    if kind == "npz":
        return _guard(path, lambda: _read_npz(path))
    if kind == "svmlight":
        return _guard(path, lambda: _read_svmlight([path])[0]), None
    from loclin.cli import _tables

    reader = _tables.read_csv if kind == "table" else _tables.read_parquet
    return _guard(path, lambda: reader(path, target)), None


def _guard(path: Path, read: Callable[[], T]) -> T:
    """Call ``read`` and turn what a broken file raises into an InputError."""
    try:
        return read()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not in UTF-8; save it in that encoding") from error
    except UNREADABLE as error:
        raise InputError(
            f"{path}: cannot be read ({one_line(error)}); mend it or save it again"
        ) from error


def _read_svmlight(paths: list[Path]) -> list[Part]:
    """Read svmlight files together, so that they get the same number of features."""
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_files

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
    from scipy.sparse import csr_array

    sparse_keys = [key + end for key in ("data", "indices", "indptr", "shape")]
    if "y" + end not in arrays or not ("x" + end in arrays or set(sparse_keys) <= set(arrays)):
        raise InputError(
            f"{path}: needs X and y, or X_train, y_train, X_test, y_test (for sparse X: "
            f"data, indices, indptr, shape); it has {listed(arrays, 8)}"
        )
    y = arrays["y" + end]
    if "x" + end in arrays:
        X: Any = arrays["x" + end]
        X = X.reshape(len(X), -1) if X.ndim > 2 else X
    else:
        data, indices, indptr, shape = (arrays[key] for key in sparse_keys)
        X = csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
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
