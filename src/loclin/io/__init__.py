"""Models in files that hold arrays and parameters, and no code.

A file is a zip: ``loclin.json``, a tree of parameters, attributes and names of classes,
and the arrays, each a ``.npy``. Loading makes estimators of loclin, transformers of
scikit-learn and what these hold, found by name in a closed list; a file that names
anything else is refused before anything is made. What it cannot promise: that a model
from a stranger predicts what it should.
"""

from __future__ import annotations

import io
import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

import loclin
from loclin.fitting.consistent import check_consistent
from loclin.io._classes import Classes, Refused, Trusted, trusted_types
from loclin.io._decode import Decoder
from loclin.io._encode import Encoder
from loclin.io._tree import DEEPEST, Survey

__all__ = ["load", "replaced", "save", "trusted_types"]

_FORMAT = 1
_TREE = "loclin.json"
# A longer tree is stored as it is, like the arrays: a file has at most so much more in
# memory.
_MOST_UNPACKED = 2**20
# Seconds after which nobody can still be writing to a file.
_STALE = 3600
# Letters of a file, and names, that a message shows at most.
_MOST_SHOWN = 200
_MOST_NAMES = 10


def save(
    model: object, path: str | os.PathLike[str], *, trusted: Iterable[Trusted] = ()
) -> None:
    """Save a model, fitted or not, with all that a later `fit` or `partial_fit` needs.

    The file at `path` is replaced as a whole or not at all, whatever fails or kills the
    process. Callbacks are not saved. Nor is ``memory``, the folder in which a pipeline
    keeps results: a loaded one has None, as a later fit would read pickles there.

    Parameters
    ----------
    model : estimator
        A classifier or coding of loclin, or a pipeline with transformers of scikit-learn.
    path : str or path-like
        Path of the file.
    trusted : iterable of type, default=()
        Classes of your own that may be in the file: estimators and holders of data, whose
        state is their attributes. Functions, as of a `FunctionTransformer`, need not be
        named here: the file has their import path alone.

    Raises
    ------
    ValueError
        If the model holds what a file cannot: a class that is not trusted, a function
        without an import path (a lambda), an estimator that holds itself, or a vectorizer
        that reads files.

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
    with replaced(path) as file, _archive_in(file) as archive:
        try:
            node = Encoder(archive, Classes(trusted)).node(model)
        except RecursionError:
            raise ValueError(
                f"the model cannot be saved: nested deeper than {DEEPEST} levels."
            ) from None
        about = {"format": _FORMAT, "loclin": loclin.__version__}
        tree = json.dumps(
            about | {"scikit-learn": sklearn.__version__, "model": node}
        ).encode()
        try:
            Survey(node, len(tree), _arrays(archive))
        except ValueError as error:
            raise ValueError(f"the model cannot be saved: {error}.") from None
        short = len(tree) <= _MOST_UNPACKED
        archive.writestr(_TREE, tree, ZIP_DEFLATED if short else ZIP_STORED)


@contextmanager
def _archive_in(file: BinaryIO) -> Iterator[ZipFile]:
    """Open an archive to be written, which is left as it is where writing fails.

    Closing one that an interrupt has left with a file half written would raise another
    error.
    """
    archive = ZipFile(file, "w", ZIP_STORED)
    try:
        yield archive
    except BaseException:
        archive.fp = None
        raise
    archive.close()


def load(path: str | os.PathLike[str], *, trusted: Iterable[Trusted] = ()) -> Any:
    """Load a model that `save` has written. No code from the file is run.

    Parameters
    ----------
    path : str or path-like
        Path of the file.
    trusted : iterable of type, function or str, default=()
        What of your own may be in the file: classes, as for `save`; functions that
        transformers hold, besides NumPy's plain ones (``np.log1p``) and scikit-learn's
        scores of features; and texts that could take any time: a ``token_pattern`` with
        several repetitions, or with a repeated group. Nothing is imported because a file
        names it.

    Returns
    -------
    model : estimator
        It predicts bit for bit what the saved one did, and goes on learning where that
        could: streams, warm starts, and fits of which a `loclin.callbacks.Checkpoint` was
        written.

    Raises
    ------
    ValueError
        If the file is not one of `save`, is damaged, is of a newer format, or names what
        is not trusted.

    Examples
    --------
    See `save`.
    """
    content = Path(path).read_bytes()
    classes = Classes(trusted)
    try:
        return _model(content, classes)
    except InconsistentVersionWarning:  # made an error by the caller's filters
        raise
    except Refused as error:
        raise ValueError(f"{path} {error}") from None
    except Exception as error:
        # whatever reading raises where a file is damaged or forged
        shown = _shown(f"{type(error).__name__}: {error}")
        raise ValueError(f"{path} is damaged ({shown}). Save the model again.") from None


def _model(content: bytes, classes: Classes) -> Any:
    """Return the model of a file."""
    try:
        archive = ZipFile(io.BytesIO(content))
        if _TREE not in archive.namelist():
            raise BadZipFile("it is another kind of zip")
    except BadZipFile as error:
        raise Refused(
            f"is cut off, or not a file of loclin.io.save ({_shown(error)}). Save the model again."
        ) from None
    with archive:
        text = _text(archive, len(content))
        tree = json.loads(text)
        found = tree["format"]
        if type(found) is not int or found < 1:
            raise ValueError(f"no format {found!r}")
        if found > _FORMAT:
            raise Refused(
                f"has format {_shown(found)}, and loclin {loclin.__version__} reads up to "
                f"{_FORMAT}. Upgrade to loclin {_shown(tree.get('loclin'))} or later."
            )
        survey = Survey(tree["model"], len(text), _arrays(archive))
        _refuse_unknown(survey.names, classes)
        model = Decoder(archive, classes).value(tree["model"])
        check_consistent(model)
    if not isinstance(model, BaseEstimator):
        raise Refused("holds no estimator. Save a model with loclin.io.save.")
    return model


def _text(archive: ZipFile, n_bytes: int) -> bytes:
    """Return the tree, still as text.
    Raise where the file would unpack to more than `save` does.

    What is stored as it is has the size that is declared for it; what is packed may have
    any.
    """
    parts = archive.infolist()
    for part in parts:
        allowed = {ZIP_STORED, ZIP_DEFLATED} if part.filename == _TREE else {ZIP_STORED}
        if part.compress_type not in allowed:
            raise ValueError("it is packed in another way than loclin's files")
    stored = [part for part in parts if part.compress_type == ZIP_STORED]
    if any(part.file_size != part.compress_size for part in stored):
        raise ValueError("its parts have other sizes")
    if sum(part.file_size for part in stored) > n_bytes or len(
        {part.filename for part in parts}
    ) < len(parts):
        raise ValueError("its parts overlap")
    most = n_bytes if archive.getinfo(_TREE) in stored else _MOST_UNPACKED
    with archive.open(_TREE) as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError("it unpacks to more than loclin writes")
    return text


def _arrays(archive: ZipFile) -> dict[str, int]:
    """Return the size of each array."""
    return {
        part.filename: part.file_size
        for part in archive.infolist()
        if part.filename != _TREE
    }


def _refuse_unknown(names: Iterable[tuple[str, str]], classes: Classes) -> None:
    """Raise where a file names what it may not; nothing has been made of it."""
    refused: list[str] = []
    for of_what, name in sorted(names, key=lambda pair: pair[::-1]):
        if not classes.knows(name, of_what):
            refused.append(name)
            # looking further takes time, and tells no more
            if len(refused) == _MOST_NAMES:
                break
    if refused:
        own = ", ".join(name.rpartition(".")[2] for name in refused)
        raise Refused(
            f"names {', '.join(map(_shown, refused))}, which loclin does not load. If these are "
            f"your own, name them: load(path, trusted=[{_shown(own)}]); else do not use the file."
        )


def _shown(text: Any) -> str:
    """Return a text from a file in one line that a terminal can show."""
    line = " ".join(str(text)[: 2 * _MOST_SHOWN].split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)[:_MOST_SHOWN]


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file beside `path` for writing,
    and put it in its place once it is whole on disk.

    Whatever fails in the ``with`` block, or kills the process, leaves the earlier file as
    it was.

    Parameters
    ----------
    path : str or path-like
        Path of the file.

    Yields
    ------
    file : binary file
    """
    target = Path(os.path.realpath(path))
    # by a process that was killed
    for left in target.parent.glob(f".{escape(target.name)}.*.tmp"):
        if time.time() - left.stat().st_mtime > _STALE:
            left.unlink(missing_ok=True)
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = os.fspath(target)  # of a full disk: which one is it?
        raise
    if os.name == "posix":  # so that a power cut does not bring the old name back
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
