"""From a data set's name or files to checked arrays with a training and a test split."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.model_selection import train_test_split

from loclin import datasets
from loclin.cli._errors import InputError, listed, near, one_line, plural
from loclin.cli._files import read_files
from loclin.cli._limits import Limit
from loclin.cli._part import Matrix, Part

__all__ = ["Data", "load_data"]

LARGEST = 1e150  # above, the squares that standardising sums overflow
WHOLE = 1e15  # up to here a whole number is written without a point
CONTINUOUS = 20  # more distinct fractional labels than this: the target is a quantity


@dataclass(frozen=True)
class Data:
    """A data set split for training and testing; labels count the classes from 0.

    Attributes
    ----------
    name : str
        What the user called it.
    description, split : str
        What it is, and where its test rows come from.
    X_train, X_test : ndarray or csr_array of shape (n, n_features)
        float32 where the source is float32 or small integers, float64 otherwise.
    y_train, y_test : ndarray of shape (n,)
        Index into ``classes``; -1 for a test label that training does not have.
    classes : tuple of str
        The labels as the source writes them.
    notes : tuple of str
        What the user should know of how the data was read.
    """

    name: str
    description: str
    split: str
    X_train: Matrix = field(repr=False)
    y_train: np.ndarray = field(repr=False)
    X_test: Matrix = field(repr=False)
    y_test: np.ndarray = field(repr=False)
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def load_data(
    source: str,
    *,
    target: str | None = None,
    test: Path | None = None,
    test_size: float | None = None,
    seed: int = 0,
    limit: Limit | None = None,
) -> Data:
    """Load, check and split the data.

    Parameters
    ----------
    source : str
        A name that `loclin.datasets.load` knows, or a file.
    target : str or None
        The column of labels, for tables.
    test : Path or None
        A file of test rows.
    test_size : float or None
        The share of rows to hold out where there is no other split; None means 0.25.
    seed : int
        Seed of the held-out split.
    limit : Limit or None
        The most that a file may take; None is the default limit.

    Raises
    ------
    InputError
        If the data cannot be used.
    """
    if test is not None and test_size is not None:
        raise InputError("--test and --test-size exclude each other; leave one out")
    if test_size is not None and not 0 < test_size < 1:
        raise InputError(f"--test-size {test_size:g} is not between 0 and 1; try 0.25")
    train_part, test_part, description = _read(source, target, test, limit)
    if test_part is not None and test_size is not None:
        raise InputError(f"{source} has a test split of its own; leave out --test-size")
    train_part = _checked(train_part, source)
    y, names = _encode(train_part, source)
    if test_part is None:
        rows_train, rows_test = _held_out(y, names, test_size or 0.25, seed, source)
        X_train, X_test = train_part.X[rows_train], train_part.X[rows_test]
        y_train, y_test = y[rows_train], y[rows_test]
        split = f"{100 * (test_size or 0.25):g} % held out, stratified, seed {seed}"
        notes: tuple[str, ...] = train_part.notes
    else:
        where = str(test) if test is not None else f"the test split of {source}"
        test_part = _checked(_aligned(train_part, test_part, where), where)
        y_test, warned = _encode_test(test_part.y, names, where)
        X_train, y_train, X_test = train_part.X, y, test_part.X
        split = (
            f"test rows from {test.name}"
            if test is not None
            else "the data's own test split"
        )
        notes = tuple(dict.fromkeys((*train_part.notes, *test_part.notes, *warned)))
    _check_classes(y_train, names, source)
    return Data(
        source, description, split, X_train, y_train, X_test, y_test, tuple(names), notes
    )


def _read(
    source: str, target: str | None, test: Path | None, limit: Limit | None
) -> tuple[Part, Part | None, str]:
    """Read ``source`` as a file if it looks like one, else as the name of a data set."""
    path = Path(source)
    named = source in datasets.names()
    if not named and (path.suffix or len(path.parts) > 1 or os.path.exists(path)):
        train, held = read_files(path, target, test, limit)
        return train, held, f"file {path.name}"
    if target is not None:
        raise InputError(
            f"--target is for CSV and Parquet files; leave it out for '{source}'"
        )
    if not named:
        raise InputError(
            f"no data set '{source}'; {near(source, datasets.names())} "
            "(a file's name ends in .csv, .npz, .svm, .parquet ...)"
        )
    try:
        loaded = datasets.load(source)
    except (ValueError, OSError) as error:
        raise InputError(one_line(error)) from error

    def part(X: np.ndarray | csr_matrix, y: np.ndarray) -> Part:
        names = loaded.class_names
        labels = y if names is None else np.asarray(names)[y]
        return Part(csr_array(X) if issparse(X) else X, labels, loaded.feature_names)

    train = part(loaded.X_train, loaded.y_train)
    if test is not None:
        return train, read_files(test, limit=limit)[0], loaded.description
    if loaded.X_test is None or loaded.y_test is None:
        return train, None, loaded.description
    return train, part(loaded.X_test, loaded.y_test), loaded.description


def _checked(part: Part, where: str) -> Part:
    """Return the part with finite floating-point features, or raise."""
    X = part.X
    if X.dtype.kind not in "fiub":
        raise InputError(
            f"{where}: features are of type {X.dtype}, not numbers; encode them"
        )
    if 0 in X.shape:
        raise InputError(
            f"{where}: has {X.shape[0]} rows and {X.shape[1]} features; none to use"
        )
    small = X.dtype.itemsize <= (4 if X.dtype.kind == "f" else 2)
    with np.errstate(over="ignore"):
        X = X.astype(np.float32 if small else np.float64, copy=False)
    finite = np.isfinite(X.data if issparse(X) else X)
    if not finite.all():
        raise InputError(f"{where}: {_bad_values(X, finite, part.columns)}")
    _check_scale(X, part.columns, where)
    return replace(part, X=X)


def _check_scale(X: Matrix, columns: Sequence[str] | None, where: str) -> None:
    """Raise where features are so large that they cannot be standardised."""
    values = X.data if issparse(X) else X
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    if largest > LARGEST:
        place = np.argmax(np.abs(values))
        column = int(X.indices[place] if issparse(X) else place % X.shape[1])
        name = columns[column] if columns else column
        raise InputError(
            f"{where}: column '{name}' has values as "
            f"large as {largest:.3g}, too large to be scaled; divide it, or drop it"
        )


def _bad_values(X: Matrix, finite: np.ndarray, columns: Sequence[str] | None) -> str:
    """Say how many values are missing or infinite, and in which columns."""
    values = X.data if issparse(X) else X
    missing = bool(np.isnan(values).any())
    bad = np.isnan(values) if missing else ~finite
    hit = np.unique(X.indices[bad] if issparse(X) else np.flatnonzero(bad.any(axis=0)))
    names = [columns[index] if columns else str(index) for index in hit]
    what = plural(int(bad.sum()), "missing value" if missing else "infinite value")
    cure = "fill them in" if missing else "replace them"
    place = "column" if len(names) == 1 else "columns"
    return f"{what} in {place} {listed(names)}; {cure} or drop those rows or columns"


def _encode(part: Part, where: str) -> tuple[np.ndarray, list[str]]:
    """Return the labels as indices, and the classes' names,
    or raise if they are no classes.
    """
    y, target = part.y, f"the target '{part.label}'" if part.label else "the target"
    _check_missing_labels(y, where)
    classes, encoded = np.unique(y, return_inverse=True)
    fractional = y.dtype.kind == "f" and bool((classes != np.round(classes)).any())
    if len(classes) < 2:
        raise InputError(
            f"{where}: {target} has one class only ('{_label(classes[0])}'); "
            "it needs two or more: check --target and the file"
        )
    every_row = 2 * len(classes) > len(y) and len(classes) > 2
    if every_row or (fractional and len(classes) > CONTINUOUS):
        raise InputError(
            f"{where}: {target} has {len(classes)} distinct values in "
            f"{plural(len(y), 'row')}: it looks like a regression target; "
            "name a column of classes (--target), or bin the values"
        )
    return encoded.astype(np.int64), [_label(value) for value in classes]


def _check_missing_labels(y: np.ndarray, where: str) -> None:
    """Raise where labels are missing, or of a type that cannot be labels."""
    if y.dtype.kind not in "fiubUS":
        raise InputError(f"{where}: labels of type {y.dtype}; use numbers or strings")
    missing = 0 if y.dtype.kind != "f" else int((~np.isfinite(y)).sum())
    if missing:
        raise InputError(
            f"{where}: the target has {plural(missing, 'missing value')}; drop those rows"
        )


def _label(value: object) -> str:
    """Write a label as its source does: a whole number without a point, text as it is."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, float | np.floating) and abs(float(value)) < WHOLE:
        return str(value) if value != round(value) else str(int(value))
    return str(value)


def _encode_test(
    y: np.ndarray, names: Sequence[str], where: str
) -> tuple[np.ndarray, list[str]]:
    """Return the test labels as indices into ``names``,
    -1 where training has no such label.

    Every model must get such a row wrong, so it counts as an error for all of them alike.
    """
    _check_missing_labels(y, where)
    index = {name: number for number, name in enumerate(names)}
    labels, inverse = np.unique(y, return_inverse=True)
    known = np.array([index.get(_label(value), -1) for value in labels])
    encoded = known[inverse].astype(np.int64)
    unseen = [
        _label(value) for value, number in zip(labels, known, strict=True) if number < 0
    ]
    if len(unseen) == len(labels):
        raise InputError(
            f"{where}: none of its labels ({listed(unseen)}) is in the training data "
            f"({listed(names)}); write them alike in both"
        )
    if not unseen:
        return encoded, []
    rows = int((encoded < 0).sum())
    return encoded, [
        f"{plural(rows, 'test row')} of {len(y):,} "
        f"{'has a label' if rows == 1 else 'have labels'} that training lacks "
        f"({listed(unseen)}): every model gets {'it' if rows == 1 else 'them'} wrong, "
        f"and the log loss leaves {'it' if rows == 1 else 'them'} out"
    ]


def _aligned(train: Part, test: Part, where: str) -> Part:
    """Return the test part with the training part's columns in their order, or raise."""
    if train.columns and test.columns and set(train.columns) == set(test.columns):
        order = [test.columns.index(name) for name in train.columns]
        test = replace(test, X=test.X[:, order], columns=train.columns)
    elif train.columns and test.columns:
        lacking = [name for name in train.columns if name not in test.columns]
        extra = [name for name in test.columns if name not in train.columns]
        parts = [f"lacks {listed(lacking)}"] if lacking else []
        parts += [f"has also {listed(extra)}"] if extra else []
        raise InputError(
            f"{where}: not the columns of the training data: {' and '.join(parts)}; "
            "make them the same"
        )
    elif train.X.shape[1] != test.X.shape[1]:
        raise InputError(
            f"{where}: has {plural(test.X.shape[1], 'feature')}, the training data has "
            f"{train.X.shape[1]:,}; make them the same"
        )
    if issparse(train.X) and not issparse(test.X):
        return replace(test, X=csr_array(test.X))
    if issparse(test.X) and not issparse(train.X):
        return replace(test, X=test.X.toarray())
    return test


def _held_out(
    y: np.ndarray, names: Sequence[str], share: float, seed: int, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Split the rows, stratified by class, into training and test rows."""
    _check_classes(y, names, where)
    try:
        first, second = train_test_split(
            np.arange(len(y)), test_size=share, stratify=y, random_state=seed
        )
    except ValueError as error:
        raise InputError(
            f"{where}: {plural(len(y), 'row')} of {len(names)} classes cannot be split with "
            f"--test-size {share:g}, which leaves a side with fewer rows than classes; "
            "choose another"
        ) from error
    return np.sort(first), np.sort(second)


def _check_classes(y: np.ndarray, names: Sequence[str], where: str) -> None:
    """Raise where a class has too few training rows to be cross-validated."""
    counts = np.bincount(y, minlength=len(names))
    rare = int(counts.argmin())
    if counts[rare] < 2:
        raise InputError(
            f"{where}: class '{names[rare]}' has {plural(int(counts[rare]), 'training row')}, "
            "and cross-validation needs 2; drop the class or merge it with another"
        )
