"""Reading arrays: npz with NumPy, svmlight with scikit-learn."""

from __future__ import annotations

import gzip
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import ZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.datasets import load_svmlight_file

from loclin.cli._errors import listed, one_line, plural
from loclin.tables.files import (
    UnreadableFile,
    check_size,
    explained,
    suffix_of,
    text_size,
)
from loclin.tables.reading import PARQUET

__all__ = [
    "Arrays",
    "Matrix",
    "alike",
    "arrays",
    "checked",
    "features",
    "is_table",
    "label_text",
    "labels_of",
]

Matrix: TypeAlias = np.ndarray | csr_array

TABLES = (".csv", ".tsv", ".tab", *PARQUET)
ARRAYS = (".npz", ".svm", ".libsvm", ".svmlight")
LARGEST = 1e150  # above, the squares that standardising sums overflow
FEATURE_BYTES = 10_000  # that models of a feature may take
EITHER = (".txt", ".data")  # svmlight where the first line looks like it


@dataclass(frozen=True)
class Arrays:
    """Rows that a file holds as numbers, and their labels as texts, if it has some."""

    X: Matrix
    y: NDArray[Any] | None


def is_table(path: str) -> bool:
    """Tell whether a file holds a table; ``-`` is a CSV table on standard input.

    Raises
    ------
    UnreadableFile
        If there is no such file, or it is of a kind that cannot be read.
    """
    if path == "-":
        return True
    with explained(path):
        file = Path(path)
        if file.is_dir():
            raise UnreadableFile(f"{path}: is a folder; name a file in it")
        kind = suffix_of(file)
        if kind not in (*TABLES, *ARRAYS, *EITHER):
            raise UnreadableFile(
                f"{path}: unknown kind of file; its name must end in .csv or .tsv (also .gz), "
                ".parquet, .npz, .svm, .svmlight or .txt (unpack others first)"
            )
        if not file.exists():
            raise UnreadableFile(f"{path}: no such file; check the name and the folder")
        if not file.is_file():
            raise UnreadableFile(
                f"{path}: is a pipe or a device; save the data to a file"
            )
        if file.stat().st_size == 0:
            raise UnreadableFile(f"{path}: the file is empty; save the data again")
        return kind in TABLES or (kind in EITHER and not _looks_svmlight(file))


def arrays(path: str, limit: float) -> tuple[Arrays, Arrays | None]:
    """Return the rows of an npz or svmlight file, and its test rows if it has some."""
    with explained(path), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if suffix_of(Path(path)) == ".npz":
            return _read_npz(path, limit)
        return _read_svmlight(path, limit), None


def _read_svmlight(path: str, limit: float) -> Arrays:
    check_size(path, text_size(Path(path), limit), limit, "its text takes")
    try:
        X, y = load_svmlight_file(path)
    except (ValueError, OverflowError) as error:
        raise UnreadableFile(
            f"{path}: not in svmlight format ({one_line(error)}); rows read "
            "'label index:value ...' with indices that rise, below 2**31; name a table .csv"
        ) from error
    if not X.nnz:
        raise UnreadableFile(
            f"{path}: has no features, only labels; rows read 'label index:value ...'"
        )
    what = f"models of {X.shape[1]:,} features may take"
    check_size(path, FEATURE_BYTES * X.shape[1], limit, what)
    return Arrays(csr_array(X), label_text(y, path, limit))


def _read_npz(path: str, limit: float) -> tuple[Arrays, Arrays | None]:
    """Read an npz file of arrays, dense or as CSR parts, with or without a test split."""
    if not is_zipfile(path):
        raise UnreadableFile(f"{path}: not an npz file; save the arrays with numpy.savez")
    with ZipFile(path) as packed:
        size = sum(member.file_size for member in packed.infolist())
    check_size(path, size, limit, "its arrays take")
    try:
        with np.load(path, allow_pickle=False) as archive:
            held = {key.lower(): archive[key] for key in archive.files}
            twice = len(held) < len(archive.files)
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        raise UnreadableFile(
            f"{path}: holds pickled Python objects, which are not read for safety; "
            "save plain arrays of numbers or strings"
        ) from error
    bad = [key for key, array in held.items() if not isinstance(array, np.ndarray)]
    if bad or twice:
        what = f"{listed(bad)}: no array" if bad else "two arrays of one name"
        raise UnreadableFile(f"{path}: has {what}; save the arrays anew with numpy.savez")
    if "y_train" not in held:
        return _npz_part(path, held, "", limit), None
    test = _npz_part(path, held, "_test", limit) if "y_test" in held else None
    return _npz_part(path, held, "_train", limit), test


def _npz_part(
    path: str, held: Mapping[str, NDArray[Any]], end: str, limit: float
) -> Arrays:
    """Take the features and labels whose keys end in ``end``."""
    sparse_keys = [key + end for key in ("data", "indices", "indptr", "shape")]
    if not ("x" + end in held or set(sparse_keys) <= set(held)):
        raise UnreadableFile(
            f"{path}: needs X and y, or X_train, y_train, X_test, y_test (for sparse X: "
            f"data, indices, indptr, shape); it has {listed(held, 8)}"
        )
    if "x" + end in held:
        X: Any = held["x" + end]
        X = X.reshape((len(X), -1)) if X.ndim > 2 and X.size else X
    else:
        X = _npz_csr(path, *(held[key] for key in sparse_keys))
        what = f"models of {X.shape[1]:,} features may take"
        check_size(path, FEATURE_BYTES * X.shape[1], limit, what)
    y = held.get("y" + end, np.zeros(X.shape[0]) if X.ndim else np.zeros(0))
    if X.ndim != 2 or y.ndim == 0 or y.size != y.shape[0] or X.shape[0] != len(y):
        raise UnreadableFile(
            f"{path}: X{end} of shape {X.shape} and y{end} of shape {y.shape} do not fit; "
            "they must be (rows, features) and (rows,)"
        )
    if "y" + end not in held:
        return Arrays(X, None)
    y, names = y.ravel(), held.get("classes")
    if names is not None and y.dtype.kind in "iu" and len(y):
        if names.ndim != 1:
            raise UnreadableFile(
                f"{path}: classes has shape {names.shape}; it must be a list of the classes' names"
            )
        y = names[y] if 0 <= y.min() <= y.max() < len(names) else y
    return Arrays(X, label_text(y, path, limit))


def _npz_csr(
    path: str,
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    shape: NDArray[Any],
) -> csr_array:
    """Return the sparse matrix with these parts, whose indices lie within it."""
    cure = "save the parts of a csr_array"
    integers = all(part.dtype.kind in "iu" for part in (shape, indices, indptr))
    if shape.shape != (2,) or not integers:
        raise UnreadableFile(
            f"{path}: indices, indptr and shape must be integers, and shape two of them; {cure}"
        )
    try:
        X = csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
        X.check_format(full_check=True)
        if (np.diff(X.indptr) < 0).any():  # with no values at all, that is not checked
            raise ValueError("indptr falls")
    except (ValueError, OverflowError) as error:
        raise UnreadableFile(
            f"{path}: no sparse matrix ({one_line(error)}); {cure}"
        ) from error
    return X


def label_text(labels: Any, where: str = "", limit: float = np.inf) -> NDArray[Any]:
    """Return labels as texts, missing ones as ``""``.

    Whole numbers stand without a point, and bytes as the text that they are.
    """
    if isinstance(labels, list):
        texts, places = [_one_label(value) for value in labels], None
    else:
        if labels.dtype.kind not in "biufSUO":
            raise UnreadableFile(f"labels of type {labels.dtype}; use numbers or texts")
        values, places = np.unique(labels, return_inverse=True)
        texts = [_one_label(value) for value in values.tolist()]
    longest = max(map(len, texts), default=0)
    what = f"labels of up to {longest:,} characters take"
    check_size(where, 4 * longest * len(labels), limit, what)
    found = np.array(texts, dtype=str)
    return found if places is None else found[places]


def _one_label(value: Any) -> str:
    if value is None or value != value or str(value) == "<NA>":
        return ""
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="backslashreplace").strip()
    if isinstance(value, float | np.floating) and abs(float(value)) < 1e15:
        return str(int(value)) if value == round(float(value)) else str(value)
    return str(value).strip()


def _looks_svmlight(path: Path) -> bool:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rb") as file:
        return bool(
            re.match(rb"\s*[^\s,;|]+( +\d+:\S+)+ *(#.*)?[\r\n]", file.read(10_000))
        )


def features(path: str, limit: float, like: Matrix) -> Matrix:
    """Return the features of an array file, whose labels are not used.

    Parameters
    ----------
    path : str
    limit : float
        The most bytes that it may take.
    like : ndarray or csr_array
        Features that these must be like.
    """
    rows, _ = arrays(path, limit)
    return alike(checked(rows, path), like, path)


def labels_of(rows: Arrays, where: str) -> NDArray[Any]:
    if rows.y is None:
        raise UnreadableFile(
            f"{where}: needs X and y, or X_train, y_train, X_test, y_test"
        )
    return rows.y


def alike(X: Any, like: Any, where: str) -> Any:
    """Return features with the number of columns, and dense or sparse, as others are."""
    n_features = like.shape[1]
    n_rows, n_own = X.shape
    if isinstance(X, csr_array) and n_own < n_features:
        # svmlight files end at their last value
        X = csr_array((X.data, X.indices, X.indptr), shape=(n_rows, n_features))
    elif isinstance(X, csr_array):
        X = X[:, :n_features]  # of features that training lacks nothing is known
    if X.shape[1] != n_features:
        raise UnreadableFile(
            f"{where}: has {plural(X.shape[1], 'feature')}, the training data has "
            f"{n_features:,}; make them the same"
        )
    if issparse(like) == issparse(X):
        return X
    return csr_array(X) if issparse(like) else X.toarray()


def checked(rows: Arrays, where: str) -> Matrix:
    """Return finite floating-point features, or raise."""
    X = rows.X
    if X.dtype.kind not in "fiub":
        raise UnreadableFile(
            f"{where}: features are of type {X.dtype}, not numbers; encode them"
        )
    if 0 in X.shape:
        raise UnreadableFile(
            f"{where}: has {X.shape[0]} rows and {X.shape[1]} features; none to use"
        )
    small = X.dtype.itemsize <= (4 if X.dtype.kind == "f" else 2)
    with np.errstate(over="ignore"):
        X = X.astype(np.float32 if small else np.float64, copy=False)
    values: NDArray[Any] = X.data if issparse(X) else X
    largest = min(LARGEST, float(np.finfo(values.dtype).max))
    for bad, what, cure in (
        (np.isnan(values), "missing value", "fill them in"),
        (np.isinf(values), "infinite value", "replace them"),
        (np.abs(values) > largest, "value too large to be scaled", "divide them"),
    ):
        if bad.any():
            found = np.unique(X.indices[bad] if issparse(X) else bad.nonzero()[1])
            count = plural(int(bad.sum()), what, what.replace("value", "values", 1))
            columns = "column" if len(found) == 1 else "columns"
            raise UnreadableFile(
                f"{where}: {count} in {columns} {listed(found.tolist())}; {cure}, or drop those "
                "rows or columns"
            )
    return X
