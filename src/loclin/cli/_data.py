"""From a data set's name or a file to rows and labels, checked and split."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.model_selection import train_test_split

from loclin import datasets
from loclin.cli._arrays import (
    Arrays,
    Matrix,
    alike,
    arrays,
    checked,
    is_table,
    label_text,
    labels_of,
)
from loclin.cli._errors import InputError, listed, near, one_line, plural

if TYPE_CHECKING:
    from pandas import DataFrame

    from loclin.tables import TableEncoder

__all__ = ["Data", "Labelled", "load", "split"]

DENSE_SHARE = 0.5  # of values that are not zero, from which on sparse rows become dense
CONTINUOUS = 20  # more distinct fractional labels than this: the target is a quantity


@dataclass(frozen=True)
class Labelled:
    """Rows with labels.

    Attributes
    ----------
    name, description : str
        What the user called them, and what they are.
    X : DataFrame, ndarray or csr_array
        A table as it is, or features.
    y : ndarray of str
        Labels, without blanks around them.
    target : str or None
        The table's column of labels.
    test : tuple or None
        Test rows and their labels, where the source has a split of its own.
    notes : tuple of str
        What the user should know of how they were read.
    """

    name: str
    description: str
    X: Any = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    target: str | None = None
    test: tuple[Any, NDArray[Any]] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Data:
    """Features to learn from and to test on; labels count the classes from 0.

    Attributes
    ----------
    name, description, split : str
        What the user called it, what it is, and where its test rows come from.
    X_train, X_test : ndarray or csr_array of shape (n, n_features)
        Of a table, what its encoder made of it.
    y_train, y_test : ndarray of shape (n,)
        Index into ``classes``; -1 for a test label that training does not have.
    classes, notes : tuple of str
        The labels as the source writes them, and what to know of how it was read.
    frame : DataFrame or None
        The training rows of a table, for folds to be encoded anew.
    encoder : TableEncoder or None
        Fitted to them.
    """

    name: str
    description: str
    split: str
    X_train: Matrix = field(repr=False)
    y_train: NDArray[Any] = field(repr=False)
    X_test: Matrix = field(repr=False)
    y_test: NDArray[Any] = field(repr=False)
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    frame: DataFrame | None = field(default=None, repr=False)
    encoder: TableEncoder | None = field(default=None, repr=False)


def load(
    source: str, *, target: str | None = None, header: bool = True, limit: float = 1e9
) -> Labelled:
    """Read and check labelled rows.

    Parameters
    ----------
    source : str
        A name that `loclin.datasets.load` knows, a file, or ``-``.
    target : str or None
        A table's column of labels; None for its last column.
    header : bool
        Whether the first line of a text table holds the names of its columns.
    limit : float
        The most bytes that a file may take.

    Raises
    ------
    InputError
        If the data cannot be used.
    """
    named = source in datasets.names()
    path = Path(source)
    is_file = source == "-" or path.suffix or len(path.parts) > 1 or os.path.exists(path)
    if named or not is_file:
        return _named(source, named, target)
    if is_table(source):
        found = _of_table(source, target, header, limit)
        _checked_labels(found.y, source, f"the target '{found.target}'")
        return found
    if target is not None:
        raise InputError(f"--target is for tables; leave it out for '{source}'")
    rows, test = arrays(source, limit)
    y = _checked_labels(labels_of(rows, source), source, "the target")
    of_test = None if test is None else (checked(test, source), labels_of(test, source))
    X: Any = checked(rows, source)
    notes: tuple[str, ...] = ()
    is_text = path.suffix.lower() != ".npz"
    if is_text and X.nnz >= DENSE_SHARE * np.prod(X.shape, dtype=float):
        X, notes = X.toarray(), ("most values are not zero: read as dense",)
    return Labelled(source, f"file {path.name}", X, y, None, of_test, notes)


def _named(source: str, known: bool, target: str | None) -> Labelled:
    if target is not None:
        raise InputError(f"--target is for tables; leave it out for '{source}'")
    if not known:
        raise InputError(
            f"no data set '{source}'; {near(source, datasets.names())} "
            "(a file's name ends in .csv, .npz, .svm, .parquet ...)"
        )
    try:
        loaded = datasets.load(source)
    except (ValueError, OSError) as error:
        raise InputError(one_line(error)) from error

    def rows(X: Any, y: NDArray[Any]) -> tuple[Matrix, NDArray[Any]]:
        names = loaded.class_names
        labels = label_text(y if names is None else np.asarray(names)[y])
        csr: Any = csr_array(cast(Any, X)) if issparse(X) else X
        held = Arrays(csr, labels)
        return checked(held, source), labels

    X, y = rows(loaded.X_train, loaded.y_train)
    no_test = loaded.X_test is None or loaded.y_test is None
    test = None if no_test else rows(loaded.X_test, np.asarray(loaded.y_test))
    return Labelled(source, loaded.description, X, y, None, test)


def _of_table(source: str, target: str | None, header: bool, limit: float) -> Labelled:
    from loclin.tables import read

    frame = read(source, header=header, max_bytes=limit)
    notes = list(frame.attrs.get("doubts", ()))
    names = [str(name) for name in frame.columns]
    if target is None:  # separators at the ends of lines make columns of nothing
        filled = [name for name in names if frame[name].notna().any()]
        target = (filled or names)[-1]
        notes.append(f"the last column, '{target}', is taken for the target (--target)")
    if target not in names:
        last = len(names) - 1
        cure = near(target, names) if header else f"with --no-header it is 0 to {last}"
        raise InputError(f"{source}: no column '{target}'; {cure}")
    if len(names) < 2:
        raise InputError(f"{source}: has one column; it needs features and a target")
    labels = label_text(frame[target].astype(object).to_list())
    missing = int((labels == "").sum())
    if missing:
        notes.append(f"{plural(missing, 'row')} without a label left out")
        frame, labels = frame[labels != ""], labels[labels != ""]
    X = frame.drop(columns=target).reset_index(drop=True)
    file = "standard input" if source == "-" else f"file {Path(source).name}"
    return Labelled(source, file, X, labels, target, None, tuple(notes))


def split(
    rows: Labelled,
    *,
    test: str | None = None,
    test_size: float | None = None,
    seed: int = 0,
    header: bool = True,
    limit: float = 1e9,
) -> Data:
    """Split rows into training and test rows, and encode a table.

    Parameters
    ----------
    rows : Labelled
    test : str or None
        A file of test rows.
    test_size : float or None
        The share of rows to hold out where there is no other split; None means 0.25.
    seed : int
        Seed of the held-out split.
    header, limit
        As of `load`, for ``test``.
    """
    source, given = rows.name, rows.test
    if test is not None and test_size is not None:
        raise InputError("--test and --test-size exclude each other; leave one out")
    if test_size is not None and not 0 < test_size < 1:
        raise InputError(f"--test-size {test_size:g} is not between 0 and 1; try 0.25")
    if test is not None:
        given = _test_rows(rows, test, header, limit)
    elif given is not None and test_size is not None:
        raise InputError(f"{source} has a test split of its own; leave out --test-size")
    names, y = np.unique(rows.y, return_inverse=True)
    notes = list(rows.notes)
    doubts = [note for note in notes if "--no-header" in note]
    if given is None:
        _check_classes(y, names, source, doubts)
        size = test_size or 0.25
        train, held = _held_out(y, names, size, seed, source)
        X_train, y_train = _taken(rows.X, train), y[train]
        X_test, y_test = _taken(rows.X, held), y[held]
        how = f"{100 * size:g} % held out, stratified, seed {seed}"
    else:
        (X_test, labels), X_train, y_train = given, rows.X, y
        where = test if test is not None else f"the test split of {source}"
        y_test, unseen = _encode_test(labels, names, where)
        notes += unseen
        how = (
            "the data's own test split" if test is None else f"rows of {Path(test).name}"
        )
    _check_classes(y_train, names, source, doubts)
    classes, about = tuple(map(str, names)), (rows.name, rows.description, how)
    if not hasattr(X_train, "columns"):
        return Data(*about, X_train, y_train, X_test, y_test, classes, tuple(notes))
    encoder, features, X_test = _encoded(X_train, y_train, X_test, source)
    notes += encoder.notes_
    return Data(
        *about,
        features,
        y_train,
        X_test,
        y_test,
        classes,
        tuple(notes),
        X_train,
        encoder,
    )


def _encoded(
    train: DataFrame, y: NDArray[Any], test: DataFrame, source: str
) -> tuple[TableEncoder, Matrix, Matrix]:
    from loclin.tables import TableEncoder

    encoder = TableEncoder()
    try:
        return encoder, encoder.fit_transform(train, y), encoder.transform(test)
    except ValueError as error:
        raise InputError(f"{source}: {one_line(error)}") from error


def _taken(X: Any, rows: NDArray[Any]) -> Any:
    return X.iloc[rows] if hasattr(X, "columns") else X[rows]


def _test_rows(
    rows: Labelled, test: str, header: bool, limit: float
) -> tuple[Any, NDArray[Any]]:
    """Return test rows of a file, as the training rows are."""
    same = hasattr(rows.X, "columns")
    if same != is_table(test):
        raise InputError(f"{test}: not the kind of file that the training rows are of")
    if same:
        held = _of_table(test, rows.target, header, limit)
        lacking = [name for name in rows.X.columns if name not in held.X.columns]
        if lacking:
            raise InputError(f"{test}: lacks {listed(lacking)} of the training data")
        return held.X, held.y
    part, inner = arrays(test, limit)
    part = inner or part
    return alike(checked(part, test), rows.X, test), labels_of(part, test)


def _checked_labels(labels: NDArray[Any], where: str, target: str) -> NDArray[Any]:
    """Return labels, or raise if they are no classes."""
    missing = int((labels == "").sum())
    if missing:
        raise InputError(
            f"{where}: {target} has {plural(missing, 'missing value')}; drop those rows"
        )
    classes = np.unique(labels)
    if len(classes) < 2:
        only = f" only ('{classes[0]}')" if len(classes) else ""
        raise InputError(
            f"{where}: {target} has {len(classes)} class{only}; "
            "it needs two or more: check --target and the file"
        )
    every_row = 2 * len(classes) > len(labels) and len(classes) > 2
    if every_row or (len(classes) > CONTINUOUS and _are_quantities(classes)):
        raise InputError(
            f"{where}: {target} has {len(classes)} distinct values in "
            f"{plural(len(labels), 'row')}: it looks like a regression target; "
            "name a column of classes (--target), or bin the values"
        )
    return labels


def _are_quantities(classes: NDArray[Any]) -> bool:
    """Tell whether labels are numbers of which some are not whole."""
    try:
        numbers = classes.astype(float)
    except ValueError:
        return False
    return bool((numbers != np.round(numbers)).any())


def _encode_test(
    labels: NDArray[Any], names: Sequence[str] | NDArray[Any], where: str
) -> tuple[NDArray[Any], list[str]]:
    """Return test labels as indices into ``names``, -1 where training has none such.

    Every model gets such a row wrong, so that it counts as an error for all alike.
    """
    index = {name: number for number, name in enumerate(names)}
    values, inverse = np.unique(labels, return_inverse=True)
    known = np.array([index.get(value, -1) for value in values])
    encoded, unseen = known[inverse], values[known < 0]
    if len(unseen) == len(values):
        raise InputError(
            f"{where}: none of its labels ({listed(unseen)}) is in the training data "
            f"({listed(names)}); write them alike in both"
        )
    if not len(unseen):
        return encoded, []
    rows = int((encoded < 0).sum())
    have, them = ("has a label", "it") if rows == 1 else ("have labels", "them")
    return encoded, [
        f"{plural(rows, 'test row')} of {len(labels):,} {have} that training lacks "
        f"({listed(unseen)}): every model gets {them} wrong, and only errors count {them}"
    ]


def _held_out(
    y: NDArray[Any],
    names: Sequence[str] | NDArray[Any],
    share: float,
    seed: int,
    where: str,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Split the rows, stratified by class, into training and test rows."""
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


def _check_classes(
    y: NDArray[Any],
    names: Sequence[str] | NDArray[Any],
    where: str,
    doubts: Sequence[str],
) -> None:
    """Raise where classes have too few training rows to be cross-validated."""
    counts = np.bincount(y, minlength=len(names))
    rare = [str(name) for name, count in zip(names, counts, strict=True) if count < 2]
    if rare:
        cure = "drop those classes or merge them with others"
        raise InputError(
            f"{where}: too few training rows of {listed(rare)}; each class needs 2 for "
            f"cross-validation: {'; '.join([cure, *doubts])}"
        )
