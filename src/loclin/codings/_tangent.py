"""Local tangents: beside each weight of a row,
where the row lies along the anchor's tangents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted

from loclin.anchors import anchor_planes, clipped, nearest_anchors
from loclin.codings._base import AnchorCoding, Coding
from loclin.codings._lcc import LocalCoordinateCoding
from loclin.engine.data import Floats, Labels, Matrix, is_sparse
from loclin.engine.prediction import codes_by
from loclin.engine.shapes import Shape
from loclin.fitting.atomic import atomic, snapshot
from loclin.fitting.checks import check_number
from loclin.portable.describing import coder_of
from loclin.portable.words import TangentCodes

_MOST_ROWS = 1000  # near an anchor; more hardly turn its tangents


class TangentCoding(Coding):
    """Improved LCC: a coding by anchors,
    and local coordinates along the anchors' tangents.

    For each anchor v, of weight ``code_v(x)`` in the wrapped coding, the code of x has
    entries::

        scale * code_v(x),    code_v(x) * U_v (x - v)

    with U_v of shape (n_tangents, n_features) orthonormal: the tangents at v. A linear
    function of them has a value and a slope at every anchor, where one of the weights
    alone has a value: far fewer anchors approximate a smooth function as well (Improved
    local coordinate coding using local tangents, Yu and Zhang, 2010).

    The tangents are the directions u in which the rows near v lie: the leading right
    singular vectors of their x - v. Near are the rows whose nearest anchor is v, 1000 of
    them if there are more, and the ``2 * n_tangents`` rows closest to v if there are
    fewer than that.

    Parameters
    ----------
    coding : coding by anchors or None, default=None
        What gives the weights: any coding of this package with anchors, not changed. None
        for `LocalCoordinateCoding` with its defaults (the paper).
    n_tangents : int, default=8
        Tangents an anchor, at most n_features. Time and memory grow with it.
    scale : float, default=1.0
        The paper's s, above 0: what the weights count for against the coordinates, which
        have the unit of X. Without other knowledge take the usual distance of a row from
        its nearest anchors; 1 is near it for rows of length 1.

    Attributes
    ----------
    coding_ : the coding, fitted
    anchors_ : ndarray of shape (n_anchors, n_features)
    tangents_ : ndarray of shape (n_anchors, n_tangents, n_features)
        Leading tangents first. Zeros in place of those that the rows near an anchor do
        not span.

    Notes
    -----
    Anchor by anchor, the columns are its weight and its `n_tangents` coordinates: the
    coefficients of a linear model, reshaped to (n_anchors, 1 + n_tangents), have one row
    an anchor.

    Examples
    --------
    >>> from loclin.codings import InverseDistanceCoding, TangentCoding
    >>> X = [[0.0, 1.0], [0.0, -1.0], [3.0, 0.0], [5.0, 0.0]]
    >>> coding = InverseDistanceCoding(anchors=[[0.0, 0.0], [4.0, 0.0]], n_neighbors=1)
    >>> TangentCoding(coding, n_tangents=1).fit_transform(X).toarray().round(2).tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0], [0.0, 0.0, 1.0, 1.0]]
    """

    anchors_: Annotated[Floats, Shape("a d")]
    tangents_: Annotated[Floats, Shape("a t d")]
    coding_: Any  # a fitted AnchorCoding

    def __init__(
        self, coding: AnchorCoding | None = None, n_tangents: int = 8, scale: float = 1.0
    ) -> None:
        self.coding = coding
        self.n_tangents = n_tangents
        self.scale = scale

    @atomic
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the coding, and find the tangents.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            float32 stays float32; everything else becomes float64.
        y : array-like of shape (n_samples,) or None
            Classes; used where the coding's anchors are "kmeans_per_class".

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is not valid.
        """
        self._check_parameters()
        coding = LocalCoordinateCoding() if self.coding is None else self.coding
        rows = self._training_rows(X)
        n_features = rows.shape[1]
        t = clipped(
            "n_tangents", self.n_tangents, n_features, f"X has {n_features} features"
        )
        self.coding_ = clone(coding).fit(rows, y)
        self.anchors_ = self.coding_.anchors_
        self.tangents_ = np.zeros((len(self.anchors_), t, n_features), rows.dtype)
        near = _near(rows, self.anchors_, 2 * t)
        for some, anchor, tangents in zip(
            near, self.anchors_, self.tangents_, strict=True
        ):
            found, _ = anchor_planes(some - anchor, t)
            tangents[: len(found)] = found
        self._n_features_out = len(self.anchors_) * (1 + t)
        return self

    def _check_parameters(self) -> None:
        coding = self.coding
        if not (coding is None or isinstance(coding, AnchorCoding)):
            raise TypeError(
                f"coding={coding!r} has type {type(coding).__name__}; use a coding of "
                "loclin.codings with anchors, for example LocalCoordinateCoding(), or None."
            )
        check_number("n_tangents", self.n_tangents, Integral, low=1, open_high=True)
        check_number("scale", self.scale, low=0, open_low=True, open_high=True)

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        known = sizes.get("a"), sizes.get("d")
        if hasattr(self, "coding_") and self.coding_.anchors_.shape != known:
            return (
                f"coding_ has anchors of shape {self.coding_.anchors_.shape}, not {known}"
            )
        return None

    @snapshot
    def transform(self, X: ArrayLike) -> csr_matrix:
        """Code the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        codes : csr_matrix of shape (n_samples, n_anchors * (1 + n_tangents))
            Anchor by anchor, its weight and its coordinates.
        """
        check_is_fitted(self)
        return tangent_codes(self._coder(), self._new_rows(X, self.anchors_.dtype))

    def _coder(self) -> TangentCodes:
        weights = coder_of(self.coding_)
        return TangentCodes(weights, self.anchors_, self.tangents_, float(self.scale))


@codes_by.register
def tangent_codes(coder: TangentCodes, X: Matrix) -> csr_matrix:
    """Codes of rows by anchors and their tangents, CSR (n, m)."""
    weights = csr_matrix(codes_by(coder.weights, X))
    samples = np.repeat(np.arange(X.shape[0]), np.diff(weights.indptr))
    width = 1 + coder.tangents.shape[1]
    entries = np.empty((weights.nnz, width), X.dtype)
    entries[:, 0] = coder.scale * weights.data
    for places, anchor, tangents in zip(
        _places(weights.indices, len(coder.anchors)),
        coder.anchors,
        coder.tangents,
        strict=True,
    ):
        coordinates = X[samples[places]] @ tangents.T - tangents @ anchor
        entries[places, 1:] = weights.data[places, None] * coordinates
    columns = weights.indices[:, None] * width + np.arange(width)
    parts = entries.ravel(), columns.ravel(), weights.indptr.astype(np.int64) * width
    codes = csr_matrix(parts, shape=(X.shape[0], weights.shape[1] * width))
    codes.eliminate_zeros()
    return codes


def _places(labels: Labels, n_labels: int) -> list[NDArray[np.intp]]:
    """Find where each of the labels 0, 1, ... stands."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.searchsorted(labels[order], np.arange(1, n_labels)))


def _near(X: Matrix, anchors: Floats, least: int) -> Iterator[Floats]:
    """Yield the rows near each anchor, dense."""
    squares = row_norms(X, squared=True)
    owners = nearest_anchors(X, anchors, 1)[0][:, 0]
    for anchor, near in zip(anchors, _places(owners, len(anchors)), strict=True):
        if len(near) < least:
            near = np.argsort(squares - 2 * (X @ anchor), kind="stable")[:least]
        elif len(near) > _MOST_ROWS:
            near = near[np.linspace(0, len(near) - 1, _MOST_ROWS).astype(np.intp)]
        rows = X[near]
        yield rows.toarray() if is_sparse(rows) else rows
