"""The papers' data sets by name, and their synthetic problems.

`load` returns one of `names` with its official split, from the folder that the
environment variable ``LOCLIN_DATA`` names, from OpenML or from scikit-learn itself.
Nothing is scaled: put a scaler before the classifier. `make_xor`, `make_gaussian_line`
and `make_sine` draw synthetic problems.
"""

import difflib
import os
import warnings
import zipfile
import zlib
from dataclasses import dataclass, field
from http.client import HTTPException
from numbers import Integral, Real
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.npyio import NpzFile
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch, check_random_state, check_scalar

__all__ = ["Dataset", "load", "make_gaussian_line", "make_sine", "make_xor", "names"]

_DAMAGED = (
    KeyError, TypeError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_Seed = int | np.random.RandomState | None
_Labelled = tuple[np.ndarray, np.ndarray]
_Matrix: TypeAlias = np.ndarray | csr_matrix


class _Facts(NamedTuple):
    about: str
    n_train: int
    n_test: int  # 0: no official split
    n_features: int
    # name and version; None: not there, or not the same set
    openml: tuple[str, int] | None = None
    order: int = 0  # _row_order of the labels, official train rows first, then test rows
    bundled: bool = False  # comes with scikit-learn


# OpenML's liver-disorders has another target, its ijcnn has more rows than the two
# official parts. Whether a fetched copy can be split depends on its row order: letter's
# there is Statlog's, not UCI's, so that its first 16,000 rows are not the official ones.
_SETS: dict[str, _Facts] = {
    "banana": _Facts("two banana-shaped classes", 5300, 0, 2, ("banana", 1)),
    "breast_cancer": _Facts("Wisconsin diagnostic", 569, 0, 30, bundled=True),
    "covtype_16pct": _Facts("forest cover types, 16 % sample", 92962, 0, 54),
    "digits": _Facts("handwritten digits, 8 x 8", 1797, 0, 64, bundled=True),
    "dna": _Facts(
        "splice junctions, 180 indicators", 2000, 1186, 180, ("dna", 1), 0x4A811FA8
    ),
    "flowers5_inceptionv3": _Facts("flower photos, Inception-v3 features", 3670, 0, 2048),
    "german": _Facts("German credit, numeric form", 1000, 0, 24),
    "glass": _Facts("kinds of glass", 214, 0, 9, ("glass", 1)),
    "heart": _Facts("Statlog heart disease", 270, 0, 13, ("heart-statlog", 1)),
    "ijcnn1": _Facts("IJCNN 2001 challenge", 49990, 91701, 22),
    "ionosphere": _Facts("radar returns", 351, 0, 34, ("ionosphere", 1)),
    "iris": _Facts("iris flowers", 150, 0, 4, bundled=True),
    "isolet": _Facts("spoken letters", 6238, 1559, 617, ("isolet", 1), 0x39735BB4),
    "letter": _Facts(
        "printed capital letters", 16000, 4000, 16, ("letter", 1), 0xEB3EBF71
    ),
    "liver": _Facts("BUPA liver disorders, selector as label", 345, 0, 6),
    "mnist": _Facts(
        "handwritten digits", 60000, 10000, 784, ("mnist_784", 1), 0x8443B90C
    ),
    "newsgroups20": _Facts("20 newsgroups, term counts", 18221, 0, 36568),
    "optdigits": _Facts(
        "handwritten digits", 3823, 1797, 64, ("optdigits", 1), 0x98D92626
    ),
    "pendigits": _Facts(
        "pen strokes of digits", 7494, 3498, 16, ("pendigits", 1), 0xB93952E1
    ),
    "pima": _Facts("Pima Indians diabetes", 768, 0, 8, ("diabetes", 1)),
    "ringnorm": _Facts("Breiman's ringnorm", 7400, 0, 20, ("ringnorm", 1)),
    "satimage": _Facts(
        "Statlog satellite pixels", 4435, 2000, 36, ("satimage", 1), 0x4D71C580
    ),
    "segment": _Facts("image segments", 210, 2100, 19, ("segment", 1), 0xD734A361),
    "sonar": _Facts("sonar, mines and rocks", 208, 0, 60, ("sonar", 1)),
    "spambase": _Facts("spam mail", 4601, 0, 57, ("spambase", 1)),
    "usps": _Facts(
        "handwritten digits, 16 x 16", 7291, 2007, 256, ("USPS", 2), 0x27EE4D75
    ),
    "vehicle": _Facts("vehicle silhouettes", 846, 0, 18, ("vehicle", 1)),
    "vowel": _Facts("spoken vowels, by speaker", 528, 462, 10, ("vowel", 2), 0x2AF8F4FB),
    "wbc_original": _Facts("Wisconsin original", 683, 0, 9, ("breast-w", 1)),
    "wdbc": _Facts("Wisconsin diagnostic", 569, 0, 30, ("wdbc", 1)),
    "wine": _Facts("wine cultivars", 178, 0, 13, bundled=True),
}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set as its source gives it: labels not shifted, features not scaled.

    Attributes
    ----------
    name, description : str
        The name given to `load`; one line on what it is and how it is split.
    X_train, y_train : ndarray or csr_matrix (n_train, n_features), ndarray (n_train,)
        Training rows and their integer labels; all rows where there is no official split.
    X_test, y_test : the same of the official test rows, or None
    feature_names, class_names : tuple of str, or None
        The source's names, where it has them; ``class_names[y]`` is the name of label
        ``y``.
    source : {"folder", "openml", "scikit-learn"}
    """

    name: str
    X_train: _Matrix = field(repr=False)
    y_train: np.ndarray = field(repr=False)
    X_test: _Matrix | None = field(repr=False)
    y_test: np.ndarray | None = field(repr=False)
    feature_names: tuple[str, ...] | None = field(repr=False)
    class_names: tuple[str, ...] | None = field(repr=False)
    description: str
    source: Literal["folder", "openml", "scikit-learn"]


def names() -> tuple[str, ...]:
    """Names that `load` knows, sorted.

    Examples
    --------
    >>> names()[:3]
    ('banana', 'breast_cancer', 'covtype_16pct')
    """
    return tuple(sorted(_SETS))


def load(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by name.

    Four sets come with scikit-learn; any other is read from ``NAME.npz`` in the folder or
    else fetched from OpenML. Rows keep the order of their source, often sorted by class.
    OpenML's copy is split only if its rows stand in the official order, which is checked;
    columns of words and rows with missing values are left out of it; its labels may
    differ from the folder's.

    Parameters
    ----------
    name : str
        One of `names`.
    data_home : path-like, default=None
        Folder of npz files; by default the one that the environment variable
        ``LOCLIN_DATA`` names. A file holds ``X_train, y_train, X_test, y_test``, or
        ``X, y``; for a sparse ``X`` its CSR parts ``data, indices, indptr, shape``
        instead (``data_train`` and so on where split); and may hold the class names as
        ``classes``.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If the name is unknown, or the file is not as described above.
    OSError
        If the folder does not exist, or the set is not in it and cannot be fetched.
    ImportError
        If the set must be fetched and pandas, which reads OpenML's files, is not
        installed.

    Examples
    --------
    >>> iris = load("iris")
    >>> iris.X_train.shape, iris.class_names
    ((150, 4), ('setosa', 'versicolor', 'virginica'))
    """
    if name not in _SETS:
        close = " or ".join(map(repr, difflib.get_close_matches(str(name), _SETS)))
        hint = f"did you mean {close}? " if close else ""
        raise ValueError(
            f"Unknown data set {name!r}: {hint}loclin.datasets.names() lists all."
        )
    facts = _SETS[name]
    if facts.bundled:
        return _from_sklearn(name, facts)
    folder = data_home or os.environ.get("LOCLIN_DATA")
    if folder:
        path = Path(folder).expanduser() / f"{name}.npz"
        if not path.parent.is_dir():
            raise NotADirectoryError(
                f"{path.parent} (data_home or LOCLIN_DATA) is not a folder."
            )
        if path.is_file():
            return _from_folder(name, facts, path)
    if facts.openml is None:
        raise FileNotFoundError(
            f"No copy of {name!r} to fetch: set LOCLIN_DATA to a folder that holds {name}.npz."
        )
    return _from_openml(name, facts, facts.openml)


def _from_sklearn(name: str, facts: _Facts) -> Dataset:
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name}")()
    about = f"{facts.about}; {_split_note(0, 0)}"
    strings = tuple(map(str, bunch.feature_names)), tuple(map(str, bunch.target_names))
    return Dataset(
        name, bunch.data, bunch.target, None, None, *strings, about, "scikit-learn"
    )


def _from_folder(name: str, facts: _Facts, path: Path) -> Dataset:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            split = "y_train" in file
            X, y = _rows(file, "_train" if split else "")
            X_test, y_test = _rows(file, "_test") if split else (None, None)
            classes = tuple(map(str, file["classes"])) if "classes" in file else None
    except _DAMAGED as error:
        raise ValueError(
            f"{path} is not as loclin.datasets.load describes: {error}"
        ) from error
    about = f"{facts.about}; {_split_note(len(y), 0 if y_test is None else len(y_test))}"
    return Dataset(name, X, y, X_test, y_test, None, classes, about, "folder")


def _rows(file: NpzFile, suffix: str) -> tuple[_Matrix, np.ndarray]:
    y = file[f"y{suffix}"]
    if f"indptr{suffix}" not in file:
        return file[f"X{suffix}"], y
    parts = tuple(file[f"{part}{suffix}"] for part in ("data", "indices", "indptr"))
    return csr_matrix(parts, shape=tuple(file[f"shape{suffix}"].tolist())), y


def _from_openml(name: str, facts: _Facts, openml: tuple[str, int]) -> Dataset:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f"Fetching {name!r} from OpenML needs pandas: pip install pandas, "
            f"or set LOCLIN_DATA to a folder that holds {name}.npz."
        ) from error
    bunch = _fetch(name, *openml)
    frame = bunch.data.apply(pd.to_numeric, errors="coerce").dropna(axis=1, how="all")
    complete = frame.notna().all(axis=1).to_numpy()
    X = _narrowed(frame[complete].to_numpy())
    y, classes = _encoded(np.asarray(bunch.target, dtype=str)[complete])
    n, d = facts.n_train + facts.n_test, facts.n_features
    split = facts.n_test > 0 and len(y) == n and _row_order(y) == facts.order
    k = facts.n_train if split else len(y)
    X_test, y_test = (X[k:], y[k:]) if split else (None, None)
    notes = [facts.about, _split_note(k, len(y) - k)]
    if facts.n_test and not split:
        notes[1] = "no split: OpenML's rows are not in the official order"
    if X.shape != (n, d):
        notes.append(
            f"OpenML's copy is {X.shape[0]:,} x {X.shape[1]:,}, not {n:,} x {d:,}"
        )
    if not complete.all():
        notes.append(f"{(~complete).sum():,} rows with missing values left out")
    features, about = tuple(map(str, frame.columns)), "; ".join(notes)
    return Dataset(name, X[:k], y[:k], X_test, y_test, features, classes, about, "openml")


def _fetch(name: str, openml_name: str, version: int) -> Bunch:
    from sklearn.datasets import fetch_openml

    # Without a dtype of its own, scikit-learn's reader fails on numeric classes under
    # pandas 3.1.
    options = {"as_frame": True, "parser": "pandas", "read_csv_kwargs": {"dtype": None}}
    try:
        with warnings.catch_warnings():
            # the error below says it
            warnings.filterwarnings("ignore", "A network error")
            return fetch_openml(openml_name, version=version, n_retries=1, **options)
    except (OSError, HTTPException) as error:
        raise OSError(
            f"{name!r} could not be fetched from OpenML ({error}): connect to the network, "
            f"or set LOCLIN_DATA to a folder that holds {name}.npz."
        ) from error


def _narrowed(X: np.ndarray) -> np.ndarray:
    """Whole numbers in the smallest integer type that holds them:
    MNIST as 55 MB, not 439.
    """
    if X.dtype.kind != "i":
        return X
    low, high = X.min(), X.max()
    return X.astype(np.min_scalar_type(high if low >= 0 else min(low, -high - 1)))


def _encoded(labels: np.ndarray) -> tuple[np.ndarray, tuple[str, ...] | None]:
    labels = np.char.strip(labels, "'")  # ARFF may quote them
    try:
        return labels.astype(np.int64), None
    except ValueError:
        classes, y = np.unique(labels, return_inverse=True)
        return y, tuple(map(str, classes))


def _row_order(y: np.ndarray) -> int:
    """Checksum of the sequence of labels, the same however the classes are named."""
    _, first, code = np.unique(y, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # classes numbered as they first appear
    return zlib.crc32(rank[code].astype(np.uint8).tobytes())


def _split_note(n_train: int, n_test: int) -> str:
    return f"official split {n_train:,} / {n_test:,}" if n_test else "no official split"


def make_xor(
    n_samples: int = 400, *, std: float = 0.25, random_state: _Seed = None
) -> _Labelled:
    """Draw the XOR of Gaussians:
    one blob at each of (+-1, +-1), opposite corners a class.

    The problem of L3M's figures 3 and 4 and of ML3's figure 1; the papers do not print
    the deviation. No linear classifier does much better than 25 % error; two local ones
    suffice.

    Parameters
    ----------
    n_samples : int, default=400
        Points in all, at least 1, shared out evenly among the blobs.
    std : float, default=0.25
        Standard deviation of each blob, at least 0. At the default they hardly meet.
    random_state : int, RandomState or None, default=None
        The same seed gives the same points.

    Returns
    -------
    X : float64 ndarray of shape (n_samples, 2)
    y : int64 ndarray of shape (n_samples,)
        1 where the blob's two coordinates have the same sign, else 0.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, or is out of its range.

    Examples
    --------
    >>> X, y = make_xor(100, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 2), 50)
    """
    centers = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]])
    return _alternating_blobs(n_samples, centers, std, random_state)


def make_gaussian_line(
    n_samples: int = 400,
    n_blobs: int = 4,
    *,
    std: float = 0.1,
    random_state: _Seed = None,
) -> _Labelled:
    """Draw Gaussians in a row at (0, 0), (1, 0), (2, 0), ..., of alternating classes.

    The second problem of L3M's figure 3, with four blobs; the paper does not print the
    deviation.

    Parameters
    ----------
    n_samples : int, default=400
        Points in all, at least 1, shared out evenly among the blobs.
    n_blobs : int, default=4
        Blobs in the row, at least 2.
    std : float, default=0.1
        Standard deviation of each blob, at least 0. At the default they hardly meet.
    random_state : int, RandomState or None, default=None
        The same seed gives the same points.

    Returns
    -------
    X : float64 ndarray of shape (n_samples, 2)
    y : int64 ndarray of shape (n_samples,)
        1 for the blobs at 0, 2, ..., and 0 for the others.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, or is out of its range.

    Examples
    --------
    >>> X, y = make_gaussian_line(100, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 2), 50)
    """
    check_scalar(n_blobs, "n_blobs", Integral, min_val=2)
    centers = np.column_stack([np.arange(n_blobs), np.zeros(n_blobs)])
    return _alternating_blobs(n_samples, centers, std, random_state)


def _alternating_blobs(
    n_samples: int, centers: np.ndarray, std: float, random_state: _Seed
) -> _Labelled:
    check_scalar(n_samples, "n_samples", Integral, min_val=1)
    check_scalar(std, "std", Real, min_val=0)
    rng = check_random_state(random_state)
    blob = rng.permutation(np.arange(n_samples) % len(centers))
    X = centers[blob] + std * rng.standard_normal((n_samples, centers.shape[1]))
    return X, (blob + 1) % 2


def make_sine(
    n_samples: int = 2000,
    *,
    gap: float = 1.0,
    noise: float = 0.2,
    random_state: _Seed = None,
) -> _Labelled:
    """Draw points from two noisy sine signals, one above the other, a class each.

    SAPL's synthetic problem (section 4.1: 1,000 points a signal). The paper prints
    neither length nor noise; one and a half periods bend often enough for its four
    anchors. The best classifier, the sign of ``X[:, 1] - sin(X[:, 0])``, has 0.6 %
    error at the defaults, a linear one 29 %.

    Parameters
    ----------
    n_samples : int, default=2000
        Points in all, at least 1, half of them (to within one) from each signal.
    gap : float, default=1.0
        Vertical distance of the two signals, at least 0; their amplitude is 1.
    noise : float, default=0.2
        Standard deviation of the vertical Gaussian noise, at least 0.
    random_state : int, RandomState or None, default=None
        The same seed gives the same points.

    Returns
    -------
    X : float64 ndarray of shape (n_samples, 2)
    y : int64 ndarray of shape (n_samples,)
        1 for the upper signal, 0 for the lower.

    Raises
    ------
    TypeError, ValueError
        If a parameter has another type, or is out of its range.

    Examples
    --------
    >>> X, y = make_sine(random_state=0)
    >>> X.shape, int(y.sum())
    ((2000, 2), 1000)
    """
    check_scalar(n_samples, "n_samples", Integral, min_val=1)
    check_scalar(gap, "gap", Real, min_val=0)
    check_scalar(noise, "noise", Real, min_val=0)
    rng = check_random_state(random_state)
    y = rng.permutation(np.arange(n_samples) % 2)
    angle = rng.uniform(0.0, 3.0 * np.pi, n_samples)
    height = np.sin(angle) + gap * (y - 0.5) + noise * rng.standard_normal(n_samples)
    return np.column_stack([angle, height]), y
