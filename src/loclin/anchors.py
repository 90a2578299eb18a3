"""Where anchors and anchor planes come from, and which anchors are nearest.

`make_anchors` gives the anchors of a coding, (n_anchors, n_features): by k-means over all
rows or over those of each class, drawn from the rows, or as the user gave them.
`nearest_anchors` finds the nearest of them, and `anchor_planes` the planes of orthogonal
coordinate coding.
"""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import (
    check_array,
    check_consistent_length,
    check_random_state,
    column_or_1d,
)

from loclin.engine.data import Floats, Matrix, distinct_rows, is_sparse
from loclin.engine.neighbors import nearest_of_checked
from loclin.engine.threads import threads_for
from loclin.engine.warned import warn
from loclin.fitting.checks import check_number

__all__ = [
    "anchor_planes",
    "auto_bandwidth",
    "kmeans_anchors",
    "make_anchors",
    "nearest_anchors",
    "random_anchors",
]

Data: TypeAlias = ArrayLike | csr_matrix
RandomState: TypeAlias = int | np.random.RandomState | None

_SOURCES = ("kmeans", "kmeans_per_class", "random")
# beyond, k-means on mini-batches: a few passes instead of a hundred
_KMEANS_ROWS = 20_000
_SMALL_SIDE = 3000  # up to here a sparse matrix gets all its singular vectors
_BANDWIDTH_ROWS = 10_000  # evenly spaced; a median needs no more
_FLOATS = (np.float64, np.float32)


def check_anchors(name: str, how: str | ArrayLike) -> None:
    """Raise ValueError where `how` is a string that names no source of anchors."""
    if how is None or isinstance(how, str):
        hint = ", or give an array of shape (n_anchors, n_features)"
        if how not in _SOURCES:
            raise ValueError(
                f"{name}={how!r} is not valid; use one of {sorted(_SOURCES)}{hint}."
            )


def clipped(name: str, value: int, limit: int, reason: str) -> int:
    """Return min(value, limit), with a warning that says the number used."""
    if value <= limit:
        return int(value)
    warn(f"{name}={value} is too large: {reason}. Using {name}={limit}.")
    return int(limit)


def make_anchors(
    X: Data,
    n_anchors: int = 100,
    how: str | ArrayLike = "kmeans",
    random_state: RandomState = None,
    y: ArrayLike | None = None,
) -> Floats:
    """Anchors for the rows of X, from the source that `how` names.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows.
    n_anchors : int, default=100
        Number of anchors: the papers' number. Not used where `how` is an array.
    how : {"kmeans", "kmeans_per_class", "random"} or array-like of shape (n_anchors, n_features), \
            default="kmeans"
        Centres of k-means over all rows or over those of each class, distinct rows at
        random, or these anchors (copied).
    random_state : int, RandomState instance or None, default=None
        Seed of k-means and of the draw.
    y : array-like of shape (n_samples,) or None, default=None
        Classes of the rows; used by "kmeans_per_class" only.

    Returns
    -------
    anchors : ndarray of shape (n_anchors, n_features)
        Dense, float32 if X is, else float64. Fewer than `n_anchors`, with one warning
        that says the number, where X has fewer distinct rows.

    Raises
    ------
    ValueError, TypeError
        If `how` or `n_anchors` is not valid, or given anchors do not fit X.

    Examples
    --------
    >>> from loclin.anchors import make_anchors
    >>> sorted(make_anchors([[0.0], [2.0], [10.0], [12.0]], 2, random_state=0).ravel().tolist())
    [1.0, 11.0]
    """
    check_anchors("how", how)
    rows = _checked(X)
    if not isinstance(how, str):
        return _given_anchors(how, rows)
    if how == "kmeans_per_class":
        return _class_anchors(rows, y, n_anchors, random_state)
    source = kmeans_anchors if how == "kmeans" else random_anchors
    return source(rows, n_anchors, random_state)


def kmeans_anchors(X: Data, n_anchors: int, random_state: RandomState = None) -> Floats:
    """Centres of k-means over the rows of X; on mini-batches beyond 20,000 rows.

    Parameters, result and errors are those of `make_anchors`.
    """
    _check_number_of_anchors(n_anchors)
    rows = _checked(X)
    centres = distinct_centres(rows, min(n_anchors, rows.shape[0]), random_state)
    clipped(
        "n_anchors",
        n_anchors,
        len(centres),
        f"X has only {len(centres)} distinct clusters",
    )
    return centres


def distinct_centres(X: Matrix, wanted: int, random_state: RandomState) -> Floats:
    """Distinct centres of k-means, at most `wanted`."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    whole = X.shape[0] <= _KMEANS_ROWS
    if whole:
        model = KMeans(wanted, n_init=1, random_state=random_state)
    else:
        batch = max(2048, 4 * wanted)
        model = MiniBatchKMeans(
            wanted, n_init=1, batch_size=batch, random_state=random_state
        )
    with threads_for(float(X.shape[0]) * X.shape[1] * wanted), warnings.catch_warnings():
        # few distinct rows: said by the caller
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = model.fit(X).cluster_centers_.astype(X.dtype, copy=False)
    # centres without rows repeat others, up to rounding; mini-batches do not move them to
    # rows
    kept = np.unique(model.labels_) if whole else np.sort(distinct_rows(centres)[0])
    return np.ascontiguousarray(centres[kept])


def _class_anchors(
    X: Matrix, y: ArrayLike | None, n_anchors: int, random_state: RandomState
) -> Floats:
    """Centres of each class, in the order of the classes, in equal shares.

    What a class with few rows cannot take goes to the others.
    """
    if y is None:
        raise ValueError("Anchors by 'kmeans_per_class' need y, the classes of the rows.")
    _check_number_of_anchors(n_anchors)
    labels = column_or_1d(y)
    check_consistent_length(X, labels)
    classes, sizes = np.unique(labels, return_counts=True)
    if n_anchors < len(classes):
        raise ValueError(
            f"n_anchors={n_anchors} is too small for 'kmeans_per_class': there are {len(classes)} "
            "classes, and each needs an anchor."
        )
    random_state = check_random_state(random_state)
    shares, left = np.zeros_like(sizes), n_anchors
    for turn, of_class in enumerate(np.argsort(sizes, kind="stable")):
        shares[of_class] = min(sizes[of_class], left // (len(classes) - turn))
        left -= shares[of_class]
    centres = np.vstack(
        [
            distinct_centres(X[labels == c], m, random_state)
            for c, m in zip(classes, shares, strict=True)
        ]
    )
    reason = f"the classes have only {len(centres)} distinct clusters"
    clipped("n_anchors", n_anchors, len(centres), reason)
    return centres


def random_anchors(X: Data, n_anchors: int, random_state: RandomState = None) -> Floats:
    """Distinct rows of X, drawn at random without replacement.

    Parameters, result and errors are those of `make_anchors`.
    """
    _check_number_of_anchors(n_anchors)
    rows = _checked(X)
    seen: set[bytes] = set()
    chosen = []
    for row in check_random_state(random_state).permutation(rows.shape[0]):
        size = len(seen)
        seen.add((_dense(rows[[row]]) + 0.0).tobytes())  # + 0.0: minus zero is zero
        if len(seen) > size:
            chosen.append(row)
        if len(chosen) == n_anchors:
            break
    clipped(
        "n_anchors", n_anchors, len(chosen), f"X has only {len(chosen)} distinct rows"
    )
    return np.ascontiguousarray(_dense(rows[chosen]))


def nearest_anchors(
    X: Data, anchors: ArrayLike, k: int
) -> tuple[NDArray[np.intp], Floats]:
    """Find the k nearest anchors of each row, nearest first.

    One product a block of rows: ||x - a||^2 = ||x||^2 - 2 x.a + ||a||^2. Where so little
    is left of these terms that rounding counts, the distance is taken again from the
    difference: a row on an anchor is at distance 0 exactly.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows. A sparse X is never made dense.
    anchors : array-like of shape (n_anchors, n_features)
        Anchors.
    k : int
        Number of nearest anchors, at most n_anchors.

    Returns
    -------
    indices : ndarray of shape (n_samples, k)
        Nearest first; of equally near anchors the one with the smaller index first.
    distances : ndarray of shape (n_samples, k)
        Squared Euclidean distances, float32 if X is, else float64.

    Raises
    ------
    ValueError, TypeError
        If k is not valid, the shapes do not fit, or squares of X overflow.

    Examples
    --------
    >>> from loclin.anchors import nearest_anchors
    >>> indices, distances = nearest_anchors([[1.0, 0.0]], [[3.0, 0.0], [1.0, 1.0]], k=2)
    >>> indices.tolist(), distances.tolist()
    ([[1, 0]], [[1.0, 4.0]])
    """
    rows = _checked(X, ensure_min_samples=0)
    points = _given_anchors(anchors, rows)
    n_anchors = len(points)
    check_number(
        "k", k, Integral, low=1, high=n_anchors, hint=f"there are {n_anchors} anchors"
    )
    return nearest_of_checked(rows, points, k)


def auto_bandwidth(X: Matrix, anchors: ArrayLike, k: int) -> float:
    """1 / (median squared distance of the rows to their k-th anchor),
    from at most 10,000 rows.

    Where most rows are on their anchors, the mean takes the place of the median; 1 where
    all are.
    """
    n_samples = X.shape[0]
    if n_samples > _BANDWIDTH_ROWS:
        X = X[np.linspace(0, n_samples - 1, _BANDWIDTH_ROWS).astype(np.intp)]
    farthest = nearest_anchors(X, anchors, k)[1][:, -1].astype(float)
    return 1.0 / float(np.median(farthest) or farthest.mean() or 1.0)


def anchor_planes(
    X: Data, n_planes: int | None = None, random_state: RandomState = None
) -> tuple[Floats, Floats]:
    """Leading right singular vectors and values of X,
    which is not centred (OCC, after equation 8).

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows.
    n_planes : int or None, default=None
        Maximum number of planes; None for rank(X).
    random_state : int, RandomState instance or None, default=None
        Start of the iterations for a large sparse X (both sides above 3000).

    Returns
    -------
    planes : ndarray of shape (min(n_planes, rank), n_features)
        Orthonormal; the entry of largest magnitude is positive.
    singular_values : ndarray of shape (min(n_planes, rank),)
        Falling and positive.

    Raises
    ------
    ValueError
        If X is sparse and large, and `n_planes` is None.
    """
    rows = _checked(X)
    side = min(rows.shape)
    if is_sparse(rows) and side > _SMALL_SIDE:
        if n_planes is None:
            raise ValueError(
                "n_planes=None takes every singular vector, too many for a sparse X of shape "
                f"{rows.shape}. Give a number, for example n_planes=100."
            )
        start = check_random_state(random_state).uniform(-1, 1, side).astype(rows.dtype)
        _, values, planes = svds(rows, k=min(n_planes, side - 1), v0=start)
        values, planes = values[::-1], planes[::-1]
    elif is_sparse(rows) and rows.shape[0] < rows.shape[1]:
        # X' = Q R, so X = R'Q' shares its left vectors
        left, values, _ = np.linalg.svd(_triangle(rows.T.tocsr()).T)
        real = np.finfo(rows.dtype)
        planes = (rows.T @ left).T / np.maximum(values, values[0] * real.eps + real.tiny)[
            :, None
        ]
    else:
        _, values, planes = np.linalg.svd(
            _triangle(rows) if rows.shape[0] > rows.shape[1] else _dense(rows),
            full_matrices=False,
        )
    # As matrix_rank does.
    smallest = values.max(initial=0) * max(rows.shape) * np.finfo(rows.dtype).eps
    kept = int(np.count_nonzero(values > smallest))
    kept = kept if n_planes is None else min(n_planes, kept)
    planes, values = planes[:kept], values[:kept]
    peak = np.take_along_axis(planes, np.abs(planes).argmax(axis=1)[:, None], axis=1)
    return np.ascontiguousarray(planes * np.sign(peak)), np.ascontiguousarray(values)


def _checked(X: Data, *, ensure_min_samples: int = 1) -> Matrix:
    return check_array(
        X, accept_sparse="csr", dtype=_FLOATS, ensure_min_samples=ensure_min_samples
    )


def _check_number_of_anchors(n_anchors: int) -> None:
    check_number("n_anchors", n_anchors, Integral, low=1, open_high=True)


def _given_anchors(anchors: ArrayLike, X: Matrix) -> Floats:
    points = _dense(
        check_array(
            anchors,
            accept_sparse="csr",
            dtype=X.dtype,
            input_name="anchors",
            order="C",
            copy=True,
        )
    )
    if points.shape[1] != X.shape[1]:
        raise ValueError(
            f"anchors has shape {points.shape}; X has {X.shape[1]} features, so anchors must have "
            f"the shape (n_anchors, {X.shape[1]})."
        )
    return points


def _dense(X: Matrix) -> Floats:
    return X.toarray() if is_sparse(X) else X


def _triangle(X: Matrix) -> Floats:
    """R of X = QR; a sparse X is folded in block by block."""
    if not is_sparse(X):
        return np.asarray(np.linalg.qr(X, mode="r"))
    triangle = np.zeros((0, X.shape[1]), X.dtype)
    step = max(_SMALL_SIDE, X.shape[1])
    for start in range(0, X.shape[0], step):
        stacked = np.vstack([triangle, X[start : start + step].toarray()])
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
    return triangle
