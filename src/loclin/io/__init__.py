"""Models in files that hold arrays and parameters, and no code.

A file is a zip: ``loclin.json``, a tree of parameters, attributes and names of classes, and the
arrays, each a ``.npy``. Loading makes estimators of loclin, transformers of scikit-learn and what
these hold, found by name in a closed list; a file that names anything else is refused before
anything is made. What it cannot promise: that a model from a stranger predicts what it should.
"""

from __future__ import annotations

import io
import json
import os
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import sklearn
from sklearn.base import BaseEstimator

import loclin
from loclin.fitting.consistent import check_consistent
from loclin.io._classes import Classes
from loclin.io._decode import Decoder, refused_names
from loclin.io._encode import Encoder

__all__ = ["load", "replaced", "save"]

_FORMAT = 1
_TREE = "loclin.json"
# A longer tree is stored as it is, like the arrays: a file has at most so much more in memory.
_MOST_UNPACKED = 2**20
# Seconds after which nobody can still be writing to a file.
_STALE = 3600
# What reading raises where a file is damaged or forged.
_DAMAGES = (
    ArithmeticError, AttributeError, BadZipFile, EOFError, LookupError, NotImplementedError,
    RecursionError, RuntimeError, TypeError, ValueError, zlib.error,
)  # fmt: skip


def save(model: Any, path: str | os.PathLike[str], *, trusted: Iterable[type] = ()) -> None:
    """Save a model, fitted or not, with all that a later `fit` or `partial_fit` needs.

    The file at `path` is replaced as a whole or not at all, whatever fails or kills the process.
    Callbacks are not saved.

    Parameters
    ----------
    model : estimator
        A classifier or coding of loclin, or a pipeline with transformers of scikit-learn.
    path : str or path-like
        Of the file.
    trusted : iterable of type, default=()
        Classes of your own that may be in the file: estimators and holders of data, whose state is
        their attributes.

    Raises
    ------
    ValueError
        If the model holds what a file cannot: a function, or a class that is not trusted.

    See Also
    --------
    load : The way back.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> import loclin.io
    >>> X, y = load_iris(return_X_y=True)
    >>> model = loclin.ML3Classifier(2, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.loclin")
    ...     loclin.io.save(model, path)
    ...     again = loclin.io.load(path)
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    """
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"model={model!r} is not valid; give an estimator.")
    check_consistent(model)
    with replaced(path) as file, ZipFile(file, "w", ZIP_STORED) as archive:
        node = Encoder(archive, Classes(trusted)).node(model)
        about = {"format": _FORMAT, "loclin": loclin.__version__}
        tree = json.dumps(about | {"scikit-learn": sklearn.__version__, "model": node}).encode()
        short = len(tree) <= _MOST_UNPACKED
        archive.writestr(_TREE, tree, ZIP_DEFLATED if short else ZIP_STORED)


def load(path: str | os.PathLike[str], *, trusted: Iterable[type] = ()) -> Any:
    """Load a model that `save` has written. No code from the file is run.

    Parameters
    ----------
    path : str or path-like
        Of the file.
    trusted : iterable of type, default=()
        Classes of your own that may be in the file, as for `save`.

    Returns
    -------
    model : estimator
        It predicts bit for bit what the saved one did, and goes on learning where that could:
        streams, warm starts, and fits of which a `loclin.callbacks.Checkpoint` was written.

    Raises
    ------
    ValueError
        If the file is not one of `save`, is damaged, is of a newer format, or names classes that
        are not trusted.

    Examples
    --------
    See `save`.
    """
    content = Path(path).read_bytes()
    classes = Classes(trusted)
    try:
        archive = ZipFile(io.BytesIO(content))
        if _TREE not in archive.namelist():
            raise BadZipFile("it is another kind of zip")
    except BadZipFile as error:
        raise ValueError(
            f"{path} is cut off, or not a file of loclin.io.save ({error}). Save the model again."
        ) from None
    with archive:
        try:
            _check_sizes(archive, len(content))
            tree = json.loads(archive.read(_TREE))
            newest, refused = int(tree["format"]), refused_names(tree["model"], classes)
        except _DAMAGES as error:
            raise _damaged(path, error) from None
        if newest > _FORMAT:
            raise ValueError(
                f"{path} has format {newest}, and loclin {loclin.__version__} reads up to "
                f"{_FORMAT}. Upgrade to loclin {tree.get('loclin')} or later."
            )
        if refused:
            raise ValueError(
                f"{path} names {', '.join(refused)}, which loclin does not load. If these are "
                "classes of your own, name them in trusted=[...]; else do not use the file."
            )
        try:
            model = Decoder(archive, classes).value(tree["model"])
            check_consistent(model)
        except _DAMAGES as error:
            raise _damaged(path, error) from None
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"{path} holds no estimator. Save a model with loclin.io.save.")
    return model


def _check_sizes(archive: ZipFile, n_bytes: int) -> None:
    """Raise where the parts of a file would take more memory than a file of `save` does."""
    parts = archive.infolist()
    packed = [part for part in parts if part.compress_type != ZIP_STORED]
    if any(part.filename != _TREE or part.file_size > _MOST_UNPACKED for part in packed):
        raise ValueError("it unpacks to more than loclin writes")
    stored = sum(part.file_size for part in parts if part.compress_type == ZIP_STORED)
    if stored > n_bytes or len({part.filename for part in parts}) < len(parts):
        raise ValueError("its parts overlap")


def _damaged(path: Any, error: BaseException) -> ValueError:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return ValueError(f"{path} is damaged ({reason}). Save the model again.")


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file beside `path` for writing, and put it in its place once it is whole on disk.

    Whatever fails in the ``with`` block, or kills the process, leaves the earlier file as it was.

    Parameters
    ----------
    path : str or path-like
        Of the file.

    Yields
    ------
    file : binary file
    """
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f".{escape(target.name)}.*.tmp"):  # by a process that was killed
        if time.time() - left.stat().st_mtime > _STALE:
            left.unlink(missing_ok=True)
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # so that a power cut does not bring the old name back
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
