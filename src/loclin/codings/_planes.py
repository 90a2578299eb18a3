"""Orthogonal coordinate coding: planes in place of anchors."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from loclin.anchors import RandomState, anchor_planes, clipped
from loclin.codings._base import Coding
from loclin.engine.data import Floats, Matrix
from loclin.engine.prediction import codes_by
from loclin.engine.shapes import Shape
from loclin.fitting.atomic import atomic, snapshot
from loclin.fitting.checks import check_flag, check_number, check_option
from loclin.portable.words import CodesByScorer, LinearGates

_MOST_PLANES = 40  # planes, where their number is ours


class OrthogonalCoding(Coding):
    """Orthogonal coordinate coding (OCC): coordinates on the leading singular vectors.

    ``code~_j(x) = v_j . x / sigma_j`` with v_j and sigma_j the right singular vectors
    and values of the training rows, not centred. Then codes are divided by the sum of
    magnitudes (section 2.3 of Learning anchor planes for classification, Zhang et al.,
    2011). Codes are signed; the magnitudes of a row sum to one. A row of zeros has a
    code of zeros.

    With ``OrthogonalCoding(whiten=False, norm="l2")`` codes are the row's projection on
    the space of the planes, at unit length; their products with each other know no
    rotation of the planes. Beyond the paper, and better in most cases: a model's score is
    a quadratic form over the length.

    Parameters
    ----------
    n_planes : int, "auto" or None, default=None
        Number of vectors; None takes as many as the rank of X, "auto" these but at most
        40. Fewer are faster (published figures are with 90 on MNIST, 80 on USPS, 16 on
        LETTER).
    per_class : bool, default=False
        Learn one set of planes on the rows of each class (C-OCC), `n_planes` of each or
        as many as its rank; the codes stand side by side, class by class, each normalised
        on its own.
    random_state : int, RandomState instance or None, default=None
        Start of the iterations, for a large sparse X.
    whiten : bool, default=True
        Divide by sigma_j, so that all planes count the same however little rows vary
        along them.
    norm : {"l1", "l2"}, default="l1"
        What is one for the code of each row: the sum of magnitudes, or the length.

    Attributes
    ----------
    planes_ : ndarray of shape (m, n_features)
        The vectors v_j; those of each class one after the other.
    singular_values_ : ndarray of shape (m,)
    n_planes_ : ndarray of shape (1,) or (n_classes,)
        Planes of each set; they sum to m.
    classes_ : ndarray of shape (n_classes,)
        Only if `per_class`.

    Examples
    --------
    >>> from loclin.codings import OrthogonalCoding
    >>> coding = OrthogonalCoding().fit([[4.0, 0.0], [0.0, 2.0]])
    >>> coding.transform([[0.0, 3.0], [4.0, -2.0]]).toarray().tolist()
    [[0.0, 1.0], [0.5, -0.5]]
    """

    _can_do_with_columns = True
    classes_: Annotated[NDArray, Shape("z", None)]
    planes_: Annotated[Floats, Shape("m d")]
    singular_values_: Annotated[Floats, Shape("m")]
    n_planes_: Annotated[NDArray[np.integer], Shape("z", np.integer)]  # of z sets

    def __init__(
        self,
        n_planes: int | str | None = None,
        per_class: bool = False,
        random_state: RandomState = None,
        *,
        whiten: bool = True,
        norm: str = "l1",
    ) -> None:
        self.n_planes = n_planes
        self.per_class = per_class
        self.whiten = whiten
        self.norm = norm
        self.random_state = random_state

    @atomic
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Find the planes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            float32 stays float32; everything else becomes float64.
        y : array-like of shape (n_samples,), default=None
            Class labels, used only if `per_class`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is not valid, X is zero, or `n_planes` is None for
            a large sparse X.
        """
        self._check_parameters()
        auto = self._is_auto
        most: Any = _MOST_PLANES if auto else self.n_planes
        if self.per_class:
            rows, labels = self._training_rows_and_labels(X, y)
            check_classification_targets(labels)
            self.classes_ = np.unique(labels)
            sets = [rows[labels == label] for label in self.classes_]
        else:
            sets = [self._training_rows(X)]
            self.__dict__.pop("classes_", None)
        found = [anchor_planes(rows, most, self.random_state) for rows in sets]
        self.planes_ = np.concatenate([planes for planes, _ in found])
        self.singular_values_ = np.concatenate([values for _, values in found])
        self.n_planes_ = np.array([len(planes) for planes, _ in found])
        # any plane gives rows of zeros a code of zeros
        if not len(self.planes_) and auto:
            self.planes_ = np.eye(1, self.n_features_in_, dtype=self.planes_.dtype)
            self.singular_values_ = np.ones(1, self.planes_.dtype)
            self.n_planes_[0] = 1
        if not len(self.planes_):
            raise ValueError(
                "X is zero everywhere, as equal rows are once they are centred; orthogonal coding "
                "needs rows that are not."
            )
        if not (auto or self.n_planes is None):
            largest = int(self.n_planes_.max())
            whose = "the largest rank of a class" if self.per_class else "the rank of X"
            clipped("n_planes", most, largest, f"{whose} is {largest}")
        self._n_features_out = len(self.planes_)
        return self

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.n_planes, str) and self.n_planes == "auto"

    def _check_parameters(self) -> None:
        if not (self._is_auto or self.n_planes is None):
            check_number(
                "n_planes",
                self.n_planes,
                Integral,
                low=1,
                open_high=True,
                hint='or None for the rank of X, or "auto" for at most 40',
            )
        check_flag("per_class", self.per_class)
        check_flag("whiten", self.whiten)
        check_option("norm", self.norm, {"l1", "l2"})

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if not hasattr(self, "planes_"):
            return None
        if self.n_planes_.sum(dtype=float) != sizes["m"] or self.n_planes_.min() < 0:
            return f"n_planes_ is {self.n_planes_}, but there are {sizes['m']} planes_"
        return None

    @snapshot
    def transform(self, X: ArrayLike) -> csr_matrix:
        """Code the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        codes : csr_matrix of shape (n_samples, n_planes)
            Signed; all sets of planes side by side.
        """
        rows = self._validated(X)
        return csr_matrix(np.hstack([codes_by(gates, rows) for gates in self._sets()]))

    @snapshot
    def transform_by_class(self, X: ArrayLike) -> Floats:
        """Code the rows by each class's planes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_classes, n_planes)
            The dense codes of each class; those of a class with fewer planes than another
            end in zeros. The memory is that of a contiguous
            (n_classes, n_samples, n_planes).
        """
        return codes_by(CodesByScorer(self._padded()), self._validated(X))

    def _validated(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        return self._new_rows(X, self.planes_.dtype)

    def _sets(self) -> tuple[LinearGates, ...]:
        """Say what each set of planes computes; there is one a class, or one."""
        directions = self.planes_
        if self.whiten:
            directions = directions / self.singular_values_[:, None]
        return tuple(
            LinearGates(of_set, np.zeros(len(of_set), of_set.dtype), self.norm)
            for of_set in np.split(directions, np.cumsum(self.n_planes_)[:-1])
        )

    def _padded(self) -> tuple[LinearGates, ...]:
        """Say the same, with planes of zeros where a set has fewer than another."""
        most = int(self.n_planes_.max())
        return tuple(
            one if len(one.coef) == most else LinearGates(
                np.pad(one.coef, ((0, most - len(one.coef)), (0, 0))),
                np.zeros(most, one.coef.dtype),
                one.into,
            )
            for one in self._sets()
        )  # fmt: skip

    def _coder(self) -> LinearGates | CodesByScorer:
        return CodesByScorer(self._padded()) if self.per_class else self._sets()[0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(self.per_class)
        return tags
