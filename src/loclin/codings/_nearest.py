"""Codings by the k nearest anchors: soft assignment, inverse distances, LLC."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from loclin.anchors import (
    RandomState,
    auto_bandwidth,
    check_anchors,
    clipped,
    make_anchors,
)
from loclin.codings._base import AnchorCoding
from loclin.engine.data import Floats, Matrix
from loclin.engine.neighbors import nearest_codes
from loclin.engine.shapes import Shape, Size
from loclin.fitting.atomic import atomic, snapshot
from loclin.fitting.checks import check_number
from loclin.portable.words import NearestAnchors


class NearestCoding(AnchorCoding):
    """A coding by the k nearest anchors; a subclass supplies the weights."""

    n_anchors: int
    n_neighbors: int
    anchors: str | ArrayLike
    random_state: RandomState
    _n_neighbors: Annotated[int, Size("k")]

    @abstractmethod
    def _learn(self, X: Matrix) -> None:
        """Set what the weights need besides the anchors."""

    @abstractmethod
    def _coder(self) -> NearestAnchors:
        """Say what the fitted coding computes."""

    @atomic
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Find the anchors.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            float32 stays float32; everything else becomes float64.
        y : array-like of shape (n_samples,) or None
            Classes; used where `anchors` is "kmeans_per_class".

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is not valid.
        """
        self._checked_parameters()
        rows = self._training_rows(X)
        self.anchors_ = make_anchors(
            rows, self.n_anchors, self.anchors, self.random_state, y
        )
        n_anchors = len(self.anchors_)
        self._n_features_out = n_anchors
        reason = f"there are {n_anchors} anchors"
        self._n_neighbors = clipped("n_neighbors", self.n_neighbors, n_anchors, reason)
        self._learn(rows)
        return self

    def _checked_parameters(self) -> None:
        """Raise where a parameter of the coding, or one that all have, is not valid."""
        self._check_parameters()
        check_number("n_anchors", self.n_anchors, Integral, low=1, open_high=True)
        check_number("n_neighbors", self.n_neighbors, Integral, low=1, open_high=True)
        check_anchors("anchors", self.anchors)

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        m, k = sizes.get("a"), sizes.get("k", 1)
        if m and k > m:
            return f"_n_neighbors is {k}, but there are {m} anchors"
        return None

    @snapshot
    def transform(self, X: ArrayLike) -> csr_matrix:
        """Code the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        codes : csr_matrix of shape (n_samples, n_anchors)
            At most `n_neighbors` nonzeros a row, which sum to one.
        """
        check_is_fitted(self)
        rows = self._new_rows(X, self.anchors_.dtype)
        return nearest_codes(self._coder(), rows)


class SoftAssignmentCoding(NearestCoding):
    """Localised soft assignment: weights that fall with the squared distance.

    ``code_j(x) = exp(-bandwidth ||x - v_j||^2) / sum over the k nearest anchors of the same``,
    and 0 for the other anchors: equation 2 of Locally linear classifiers with supervised
    anchor point learning (Mao et al., 2015).

    Parameters
    ----------
    n_anchors : int, default=100
        Number of anchors (the paper's number).
    n_neighbors : int, default=8
        Number of nearest anchors that count at a row (the paper's number).
    bandwidth : float or "auto", default="auto"
        The beta of equation 2, above 0: the larger, the more the nearest anchor counts.
        "auto" takes 1 / (median squared distance of the training rows to their k-th
        anchor), so that weights within a row differ by a factor of about e. It matters as
        much as anything else: tune it.
    anchors : {"kmeans", "kmeans_per_class", "random"} or array-like of shape \
            (n_anchors, n_features), default="kmeans"
        Where the anchors come from; given ones are used as they are.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors, n_features)
    bandwidth_ : float

    Examples
    --------
    >>> from loclin.codings import SoftAssignmentCoding
    >>> coding = SoftAssignmentCoding(anchors=[[0.0], [1.0], [9.0]], n_neighbors=2, bandwidth=1.0)
    >>> coding.fit_transform([[0.5], [1.0]]).toarray().round(2).tolist()
    [[0.5, 0.5, 0.0], [0.27, 0.73, 0.0]]
    """

    bandwidth_: float
    _can_do_with_columns = True

    def __init__(
        self,
        n_anchors: int = 100,
        n_neighbors: int = 8,
        bandwidth: float | str = "auto",
        anchors: str | ArrayLike = "kmeans",
        random_state: RandomState = None,
    ) -> None:
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.anchors = anchors
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "auto"):
            check_number(
                "bandwidth",
                self.bandwidth,
                low=0,
                open_low=True,
                open_high=True,
                hint='or "auto"',
            )

    def _learn(self, X: Matrix) -> None:
        if isinstance(self.bandwidth, str):
            self.bandwidth_ = auto_bandwidth(X, self.anchors_, self._n_neighbors)
        else:
            self.bandwidth_ = min(float(self.bandwidth), float(np.finfo(X.dtype).max))

    def _coder(self) -> NearestAnchors:
        return NearestAnchors(self.anchors_, self._n_neighbors, "exp", self.bandwidth_)


class InverseDistanceCoding(NearestCoding):
    """Inverse Euclidean distances to the k nearest anchors, scaled to sum to one.

    ``code_j(x) = (1 / ||x - v_j||) / sum over the k nearest anchors of the same``: the
    coding of LL-SVM (Ladicky and Torr, 2011). A row on an anchor gets that anchor alone.

    Parameters
    ----------
    n_anchors : int, default=100
        Number of anchors (the paper's number).
    n_neighbors : int, default=8
        Number of nearest anchors that count at a row (the paper's number).
    anchors : {"kmeans", "kmeans_per_class", "random"} or array-like of shape \
            (n_anchors, n_features), default="kmeans"
        Where the anchors come from; given ones are used as they are.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors, n_features)

    Examples
    --------
    >>> from loclin.codings import InverseDistanceCoding
    >>> coding = InverseDistanceCoding(anchors=[[0.0], [4.0], [9.0]], n_neighbors=2)
    >>> coding.fit_transform([[1.0], [4.0]]).toarray().tolist()
    [[0.75, 0.25, 0.0], [0.0, 1.0, 0.0]]
    """

    def __init__(
        self,
        n_anchors: int = 100,
        n_neighbors: int = 8,
        anchors: str | ArrayLike = "kmeans",
        random_state: RandomState = None,
    ) -> None:
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.anchors = anchors
        self.random_state = random_state

    def _check_parameters(self) -> None: ...

    def _learn(self, X: Matrix) -> None: ...

    def _coder(self) -> NearestAnchors:
        return NearestAnchors(self.anchors_, self._n_neighbors, "inverse")


class LLCCoding(NearestCoding):
    """Approximated locality-constrained linear coding:
    a row rebuilt from its k nearest anchors.

    The weights minimise ``||x - sum_j w_j v_j||^2`` subject to ``sum_j w_j = 1`` over
    the k nearest anchors, with ``regularization * trace(C)`` added to the diagonal of
    ``C = (V_k - 1 x')(V_k - 1 x')'``. So solve ``C w = 1``, and divide by the sum
    (section 3 of Locality-constrained linear coding, Wang et al., 2010). Weights may be
    negative.

    Parameters
    ----------
    n_anchors : int, default=512
        Number of anchors; least squares need many. Memory grows with its square.
    n_neighbors : int, default=5
        Number of nearest anchors that rebuild a row (the paper's number).
    regularization : float, default=1e-4
        Above 0, as a part of the trace of C (the authors' number): the larger, the more
        equal the weights.
    anchors : {"kmeans", "kmeans_per_class", "random"} or array-like of shape \
            (n_anchors, n_features), default="kmeans"
        Where the anchors come from; given ones are used as they are.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors, n_features)

    Examples
    --------
    >>> from loclin.codings import LLCCoding
    >>> coding = LLCCoding(anchors=[[0.0], [4.0], [9.0]], n_neighbors=2)
    >>> coding.fit_transform([[1.0], [4.0]]).toarray().round(2).tolist()
    [[0.75, 0.25, 0.0], [0.0, 1.0, 0.0]]
    """

    _squared_distances: Annotated[Floats, Shape("a a", np.float64)]

    def __init__(
        self,
        n_anchors: int = 512,
        n_neighbors: int = 5,
        regularization: float = 1e-4,
        anchors: str | ArrayLike = "kmeans",
        random_state: RandomState = None,
    ) -> None:
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.regularization = regularization
        self.anchors = anchors
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number(
            "regularization",
            self.regularization,
            Real,
            low=1e-12,
            open_high=True,
            hint="0 leaves the weights of a row on an anchor undefined",
        )

    def _learn(self, X: Matrix) -> None:
        self._squared_distances = cdist(self.anchors_, self.anchors_, "sqeuclidean")

    def _coder(self) -> NearestAnchors:
        between = self._squared_distances
        return NearestAnchors(
            self.anchors_, self._n_neighbors, "rebuild", self.regularization, between
        )
