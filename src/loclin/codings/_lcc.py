"""Local coordinate coding: rows from few, near anchors; anchors from the rows they code."""

from __future__ import annotations

from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from loclin.anchors import RandomState, check_anchors, make_anchors
from loclin.codings._base import AnchorCoding
from loclin.codings._lcc_kernels import code_rows
from loclin.engine.data import Floats, Matrix, is_sparse, stacked
from loclin.engine.neighbors import row_blocks, squared_norms
from loclin.engine.warned import warn
from loclin.fitting.atomic import atomic, snapshot
from loclin.fitting.checks import check_number

_STEPS = 10  # per anchor, for a row: 3 sufficed for thousands of random problems


class LocalCoordinateCoding(AnchorCoding):
    """Local coordinate coding (LCC):
    a row rebuilt from few, near anchors, which are learned.

    The code of a row x solves, exactly and for given anchors v_j::

        minimise  1/2 ||x - sum_j c_j v_j||^2 + locality * sum_j |c_j| ||v_j - x||^2
        subject to  sum_j c_j = 1

    and the anchors minimise the mean of this over the rows, plus
    ``shrinkage * sum_j ||v_j||^2``: the objective of Nonlinear learning using local
    coordinate coding (Yu, Zhang and Gong, 2009), equation 7 of Learning anchor planes for
    classification (Zhang et al., 2011), over n. `fit` alternates codes of the rows with
    least squares for the anchors. Codes are sparse and may be negative.

    Parameters
    ----------
    n_anchors : int, default=512
        Number of anchors (that of published figures). Memory grows with its square.
    locality : float, default=0.1
        The mu of equation 7, at least 1e-6: the smaller, the more anchors count, and
        from farther away. It has no unit, so it need not follow the scale of X. On
        MNIST with 512 anchors 0.3, 0.1, 0.03 and 0.01 give a row 3, 5 to 7, 25 and 60
        nonzeros; a linear SVM on the codes has its lowest error at 0.1
        (cross-validation, 5,000 training rows). Time grows with the cube of the
        nonzeros.
    shrinkage : float, default=1e-8
        The lambda of equation 7, at least 0. It is not needed for a solution, and it
        draws anchors to the origin, which need not mean anything. The default is so
        small that it matters only for anchors with less than a millionth of the
        weights.
    max_iter : int, default=10
        Alternations. 0 takes the anchors as they start.
    tol : float, default=1e-3
        Stop where an alternation makes the objective fall by no more than this part of
        it.
    max_samples : int or None, default=20000
        Alternate on at most this many rows, drawn at random: a few dozen rows an anchor
        place it well. None for all.
    anchors : {"kmeans", "kmeans_per_class", "random"} or array-like of shape \
            (n_anchors, n_features), default="kmeans"
        Where the anchors start.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors, n_features)
    objective_ : list of float, of length `n_iter_` + 1
        The objective over the rows used, after each alternation, the start first. It does
        not rise.
    n_iter_ : int
        Alternations done.

    Notes
    -----
    Codes meet the optimality conditions of their problem to 1e-12 of
    ``(1 + locality) (||x||^2 + max_j ||v_j||^2)``, lengths taken from the mean of the
    anchors. A row on an anchor gets that anchor alone. An anchor that no row uses stays
    where it is.

    Examples
    --------
    >>> from loclin.codings import LocalCoordinateCoding
    >>> coding = LocalCoordinateCoding(anchors=[[0.0], [4.0], [9.0]], max_iter=0)
    >>> coding.fit_transform([[1.0], [4.0]]).toarray().round(2).tolist()
    [[0.8, 0.2, 0.0], [0.0, 1.0, 0.0]]
    """

    objective_: list[float]
    n_iter_: int

    def __init__(
        self,
        n_anchors: int = 512,
        locality: float = 0.1,
        shrinkage: float = 1e-8,
        max_iter: int = 10,
        tol: float = 1e-3,
        max_samples: int | None = 20_000,
        anchors: str | ArrayLike = "kmeans",
        random_state: RandomState = None,
    ) -> None:
        self.n_anchors = n_anchors
        self.locality = locality
        self.shrinkage = shrinkage
        self.max_iter = max_iter
        self.tol = tol
        self.max_samples = max_samples
        self.anchors = anchors
        self.random_state = random_state

    @atomic
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn the anchors.

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
        self._check_parameters()
        rows = self._training_rows(X)
        random_state = check_random_state(self.random_state)
        start = make_anchors(rows, self.n_anchors, self.anchors, random_state, y)
        anchors: Floats = start.astype(np.float64)
        n = rows.shape[0]
        if self.max_samples is not None and self.max_samples < n:
            rows = rows[np.sort(random_state.choice(n, self.max_samples, replace=False))]
        objective, better = self._alternate(rows, anchors)
        self.objective_ = [objective]
        self.n_iter_ = 0
        while self.n_iter_ < self.max_iter:
            anchors = better
            objective, better = self._alternate(rows, anchors)
            self.objective_.append(objective)
            self.n_iter_ += 1
            before, now = self.objective_[-2:]
            if before - now <= self.tol * before:
                break
        self.anchors_ = anchors.astype(rows.dtype, copy=False)
        self._n_features_out = len(self.anchors_)
        return self

    @snapshot
    def transform(self, X: ArrayLike) -> csr_matrix:
        """Code the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        codes : csr_matrix of shape (n_samples, n_anchors)
            Rows sum to one.
        """
        check_is_fitted(self)
        rows = self._new_rows(X, self.anchors_.dtype)
        codes, _ = _coded(
            rows, self.anchors_.astype(np.float64, copy=False), self.locality
        )
        return codes.astype(rows.dtype, copy=False)

    def _check_parameters(self) -> None:
        check_number("n_anchors", self.n_anchors, Integral, low=1, open_high=True)
        check_number(
            "locality",
            self.locality,
            low=1e-6,
            open_high=True,
            hint="without it codes are not unique, and far anchors count",
        )
        check_number("shrinkage", self.shrinkage, low=0, open_high=True)
        check_number("max_iter", self.max_iter, Integral, low=0, open_high=True)
        check_number("tol", self.tol, low=0, open_high=True)
        if self.max_samples is not None:
            check_number(
                "max_samples",
                self.max_samples,
                Integral,
                low=1,
                open_high=True,
                hint="or None for all rows",
            )
        check_anchors("anchors", self.anchors)

    def _alternate(self, X: Matrix, anchors: Floats) -> tuple[float, Floats]:
        """Objective of these anchors with their best codes C,
        and the best anchors for these codes.

        The anchors solve (C'C + 2 mu diag(|C|'1) + 2 n lambda) V = (C + 2 mu |C|)'X.
        """
        codes, objective = _coded(X, anchors, self.locality)
        sizes = abs(codes)
        use = np.asarray(sizes.sum(axis=0)).ravel()
        left = (codes.T @ codes).toarray()
        left[np.diag_indices_from(left)] += 2 * (
            self.locality * use + self.shrinkage * X.shape[0]
        )
        weights = codes + 2 * self.locality * sizes
        right = safe_sparse_dot(
            weights.T, X.astype(np.float64, copy=False), dense_output=True
        )
        used = use > 0  # the others would all go to the origin
        better = anchors.copy()
        better[used] = cho_solve(cho_factor(left[np.ix_(used, used)]), right[used])
        return objective + self.shrinkage * float(np.sum(anchors**2)), better


def _coded(X: Matrix, anchors: Floats, locality: float) -> tuple[csr_matrix, float]:
    """Codes of the rows, in float64, and the mean of their objectives."""
    for name, points in (("X", X), ("anchors", anchors)):
        squared_norms(name, points)  # raises where they overflow
    centre = anchors.mean(axis=0)
    anchors = anchors - centre
    gram = anchors @ anchors.T
    blocks = []
    total = 0.0
    unsolved = 0
    row_size = len(anchors) if is_sparse(X) else max(anchors.shape)
    for rows in row_blocks(X.shape[0], row_size):
        block = X[rows].astype(np.float64)
        if is_sparse(block):
            squares = (
                row_norms(block, squared=True) - 2 * (block @ centre) + centre @ centre
            )
            products = block @ anchors.T - anchors @ centre
        else:
            block -= centre
            squares = row_norms(block, squared=True)
            products = block @ anchors.T
        codes, objectives = np.zeros_like(products), np.empty(len(products))
        failed = code_rows(
            products,
            squares,
            gram,
            float(locality),
            _STEPS * len(anchors),
            codes,
            objectives,
        )
        blocks.append(csr_matrix(codes))
        total += objectives.sum()
        unsolved += failed
    if unsolved:
        warn(
            f"{unsolved} of {X.shape[0]} rows have codes that are not exact but sum to one. "
            f"A larger locality than {locality:g} or anchors of like scales help.",
            ConvergenceWarning,
        )
    return stacked(blocks), float(total / X.shape[0])
