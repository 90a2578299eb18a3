"""SVM-KNN: a linear SVM on the nearest neighbours of each row (Zhang et al., 2006)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from numbers import Integral
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches, gen_even_slices
from sklearn.utils.validation import check_is_fitted

from loclin.anchors import clipped
from loclin.engine.data import Floats, Matrix, distinct_rows, is_sparse
from loclin.engine.shapes import Shape, Size
from loclin.engine.targets import signs_of
from loclin.engine.threads import limits_restored, side_by_side, threads_for
from loclin.engine.warned import warn
from loclin.fitting.atomic import atomic, snapshot
from loclin.fitting.checks import (
    check_feature_scale,
    check_flag,
    check_n_jobs,
    check_number,
    read_labelled_rows,
    read_reference,
    read_rows,
)
from loclin.fitting.consistent import missing, wrong_with_classes
from loclin.fitting.features import PLAIN, standardized
from loclin.fitting.rows import weighed
from loclin.fitting.scored import Scored
from loclin.fitting.targets import n_scorers
from loclin.fitting.temperature import smoothing_of, temperature_of
from loclin.svmknn.kernels import MOST_STEPS, solve_sets

_NEIGHBORS = 50
_STRENGTH = 0.3  # of "scale"
# Least strength, in units of the rows' mean squared deviation over k: dual variables of
# rows that contradict one another grow to its inverse, and their sums lose as many
# digits.
_WEAKEST = 1e-9
_BLOCK_ROWS = 2000  # rows that are scored at once, at most
_NUMBERS = 2**22  # features of neighbours, or products, that are held at once, about
_CALIBRATING = 1000  # rows left out one by one for the temperature


class Neighbourhoods(NamedTuple):
    """The SVMs of some rows' neighbours: rows with the same neighbours share one."""

    sets: NDArray[np.intp]  # shape: (n_sets, k); training rows, in their order
    set_of: NDArray[np.intp]  # shape: (n_rows,)
    duals: NDArray[np.float64]  # shape: (n_sets, s, k)
    scores: NDArray[np.float64]  # shape: (n_rows, s)


# Distances that are of any features.
_DISTANCES = {"euclidean", "l2", "manhattan", "l1", "cityblock", "chebyshev", "minkowski"}


class SVMKNNClassifier(Scored, BaseEstimator):
    """Take this to predict without training, from the rows nearest to each: SVM-KNN.

    What matters most is `n_neighbors`, `alpha` and `metric`. `fit` keeps the rows. For
    a row x the k nearest of them are found. If all have one label, that is the answer.
    Else a linear SVM is solved on them, one class against the rest,

        alpha/2 ||w||^2 + sum_i w_i hinge(y_i (w . x_i + b)) / sum_i w_i    (over the k neighbours)

    with b free, and its score of x is the score. Rows with the same neighbours share
    their SVM.

    In loclin's equation the local models are the training rows, and the code of x is
    the dual solution of its neighbourhood:
    ``score_y(x) = sum_i code_yi(x) x_i . x + b_y(x)``. So there are as many linear
    models as neighbourhoods, and no `local_coef_`. `local_model` returns the exact one
    of every row given.

    Parameters
    ----------
    n_neighbors : int or None, default=None
        Number of training rows that an SVM is learned from, at least 1; all of them,
        with a warning, where there are fewer. None takes 50, but no more than a quarter
        of the rows: the SVM of most of few rows is one linear model for all. Tune it.
    alpha : float or "scale", default="scale"
        Strength of the L2 penalty, above 0: the larger, the simpler the model. "scale" is
        0.3 times the mean squared distance of the neighbours to their mean, over their
        number, anew for each neighbourhood. No strength is below 1e-9 of that distance
        over that number. ``C`` of scikit-learn's ``SVC`` is
        ``1 / (n_neighbors * alpha)``.
    metric : str or callable, default="euclidean"
        Distance that tells neighbours, as `sklearn.neighbors.NearestNeighbors` takes it.
        The SVM is linear in the features whatever it is. Others than "euclidean",
        "manhattan", "chebyshev" and "minkowski" may need features as they are: with those
        they are not standardized.
    standardize : bool, default=True
        Centre the features, and divide them by their standard deviations, as
        `StandardScaler` does. Sparse rows are not centred. Models and explanations are of
        the features as given.
    tol : float, default=1e-3
        Maximum violation of an SVM's optimality conditions, in units of the margin.
        After 100,000 steps a warning gives the one that is left.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights.
    n_jobs : int or None, default=None
        Number of tasks done at once, in threads; -1 takes as many as there are
        processors. Tasks are parts of the search for neighbours.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_neighbors_ : int
    X_ : {ndarray, csr_matrix} of shape (n_rows, n_features)
        Training rows of positive weight, standardized.
    y_ : ndarray of shape (n_rows,)
        Their places in `classes_`.
    weights_ : ndarray of shape (n_rows,)
    temperature_ : float
        Scores are divided by it; their softmax is `predict_proba`. It has the lowest
        log loss on 1,000 training rows, each scored by its neighbours without itself.
    smoothing_ : float
        Share of probability that is divided equally among the classes.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Notes
    -----
    The paper's is the algorithm: neighbours, their label if it is one, else an SVM on
    them. Several classes are one against the rest here, in place of pairs (DAGSVM), and
    there is no cheaper first distance that prunes.

    A class that no neighbour has scores 1 less than 0 and than all others, so that it
    never wins. A prediction takes an SVM: some 10 to 1,000 microseconds a row, and memory
    is that of the training rows. Other classifiers of this package predict in less, and
    learn from streams.

    References
    ----------
    H. Zhang, A. C. Berg, M. Maire and J. Malik. SVM-KNN: Discriminative nearest neighbor
    classification for visual category recognition. CVPR, 2006.

    Examples
    --------
    >>> from sklearn.model_selection import train_test_split
    >>> from loclin import SVMKNNClassifier
    >>> from loclin.datasets import make_sine
    >>> X, y = make_sine(1000, random_state=0)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = SVMKNNClassifier().fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    X_: Annotated[Any, Shape("n d")]
    y_: Annotated[NDArray[np.integer], Shape("n", np.integer)]
    weights_: Annotated[Floats, Shape("n", np.float64)]
    n_neighbors_: Annotated[int, Size("k")]

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        alpha: float | str = "scale",
        metric: str | Callable[..., float] = "euclidean",
        standardize: bool = True,
        tol: float = 1e-3,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.metric = metric
        self.standardize = standardize
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    @atomic
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Keep the rows, and find the temperature of their scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. float32 stays float32; everything else becomes float64.
        y : array-like of shape (n_samples,)
            Class labels: strings, integers or booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0 and not all 0. A row of weight 0 is no
            neighbour.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        ValueError
            If a parameter or the data is not valid.
        """
        self._check_parameters()
        rows, target = read_labelled_rows(self, X, y)
        self.classes_, kept = weighed(rows, target, self.class_weight, sample_weight)
        scales = self.standardize and self.metric in _DISTANCES
        self._features = standardized(kept) if scales else PLAIN
        kept = self._features.of_rows(kept)
        check_feature_scale(kept.X)
        self.X_, self.y_, self.weights_ = kept.X, kept.y, kept.weights.astype(np.float64)
        n = len(self.y_)
        if self.n_neighbors is None:
            self.n_neighbors_ = min(_NEIGHBORS, max(1, n // 4))
        else:
            self.n_neighbors_ = clipped(
                "n_neighbors", self.n_neighbors, n, f"X has {n} rows"
            )
        self.__dict__.pop("_index", None)
        self._calibrate_by_rows_left_out()
        return self

    @snapshot
    def local_model(
        self, X: ArrayLike, *, by_class: bool = False
    ) -> tuple[Floats, Floats]:
        """Return the linear model that acts at each row: the SVM of its neighbours.

        ``decision_function(X)`` equals ``einsum("nd,nd->n", coef, X) + intercept`` for
        two classes and ``einsum("ncd,nd->nc", coef, X) + intercept`` otherwise, to
        rounding. Where all neighbours have one label, and for classes that none has, the
        model is a constant.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A few rows: the result has n_samples * n_classes * n_features numbers.
        by_class : bool, default=False
            Whether two classes have a model each, as several have: half of the decision
            for the second, the opposite for the first.

        Returns
        -------
        coef : ndarray of shape (n_samples, n_features) or (n_samples, n_classes, n_features)
        intercept : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_flag("by_class", by_class)
        rows = self._validate_new(X)
        coef, scores, _ = self._models(rows)
        at_rows = [(rows[[i]] @ of_row.T)[0] for i, of_row in enumerate(coef)]
        intercept = within(rows.dtype, scores - np.stack(at_rows))
        coef = self._features.back(self._decisions(within(rows.dtype, coef)), 1)
        constant = self._features.constants(self._decisions(intercept), coef)
        return self._per_class(coef, by_class), self._per_class(constant, by_class)

    @snapshot
    def contributions(
        self, X: ArrayLike, reference: ArrayLike, *, by_class: bool = False
    ) -> tuple[Floats, Floats]:
        """Return what each feature adds to the scores because it differs from a reference.

        The neighbours, and so their SVM, stay those of the row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        reference : array-like of shape (n_features,)
        by_class : bool, default=False
            As in `local_model`.

        Returns
        -------
        added : ndarray of shape (n_samples, n_features) or \
                (n_samples, n_classes, n_features)
        base : ndarray of shape (n_samples,) or (n_samples, n_classes)
            What the row's own SVM says of the reference.
        """
        models = self.local_model(X, by_class=by_class)
        at = read_reference(reference, self.n_features_in_)
        return PLAIN.contributions(*models, self._read_new(X), at)

    @snapshot
    def local_gradient(self, X: ArrayLike, *, by_class: bool = False) -> Floats:
        """Return what a small change of each feature does to the scores of each row.

        This is the derivative of `decision_function` by the features. As long as the
        neighbours are the same, their SVM is, so these are the coefficients of
        `local_model`. Only a class that no neighbour has differs: it follows the lowest
        score. Where neighbours change, the derivative is that of those that the
        prediction takes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A few rows: the result has n_samples * n_classes * n_features numbers.
        by_class : bool, default=False
            As in `local_model`.

        Returns
        -------
        slopes : ndarray of shape (n_samples, n_features) or \
                (n_samples, n_classes, n_features)

        Examples
        --------
        >>> from loclin import SVMKNNClassifier
        >>> from loclin.datasets import make_sine
        >>> X, y = make_sine(500, random_state=0)
        >>> SVMKNNClassifier().fit(X, y).local_gradient(X[:3]).shape
        (3, 2)
        """
        check_flag("by_class", by_class)
        rows = self._validate_new(X)
        coef, scores, absent = self._models(rows)
        known = np.where(absent, np.inf, scores)
        lowest = coef[np.arange(len(coef)), known.argmin(axis=1)]
        lowest[known.min(axis=1) >= 0] = 0.0  # then it is 1 below 0
        slopes = np.where(absent[:, :, None], lowest[:, None], coef)
        slopes = self._features.back(self._decisions(within(rows.dtype, slopes)), 1)
        return self._per_class(slopes, by_class)

    @snapshot
    def neighbors(self, X: ArrayLike) -> NDArray[np.intp]:
        """Return the training rows, as places in `X_`,
        that the SVM of each row is learned from.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        neighbors : ndarray of shape (n_samples, n_neighbors)
            Nearest first.
        """
        return self._nearest(self._validate_new(X), self.n_neighbors_)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles:
        the search for neighbours is built anew from the rows.
        """
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_index"}

    # How it is done.

    def _check_parameters(self) -> None:
        if self.n_neighbors is not None:
            check_number("n_neighbors", self.n_neighbors, Integral, low=1, open_high=True,
                         hint="or None")  # fmt: skip
        if not (isinstance(self.alpha, str) and self.alpha == "scale"):
            check_number("alpha", self.alpha, low=0, open_low=True, open_high=True,
                         hint='or "scale"')  # fmt: skip
        check_number("tol", self.tol, low=0, open_low=True, open_high=True)
        check_flag("standardize", self.standardize)
        check_n_jobs(self.n_jobs)

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if not hasattr(self, "n_features_in_"):
            return None
        if lacks := missing(self, "X_", "y_", "weights_", "n_neighbors_", "classes_"):
            return lacks
        if not 0 <= self.y_.min() <= self.y_.max() < sizes["c"]:
            return f"y_ should be places among {sizes['c']} classes"
        if sizes["k"] > sizes["n"]:
            return f"n_neighbors_ is {sizes['k']}, but there are {sizes['n']} rows"
        return wrong_with_classes(self.classes_, sizes, False)

    def _nearest(self, rows: Matrix, k: int) -> NDArray[np.intp]:
        if not hasattr(self, "_index"):
            self._index = NearestNeighbors(metric=self.metric).fit(self.X_)
        search = partial(self._index.kneighbors, n_neighbors=k, return_distance=False)
        n_parts = min(effective_n_jobs(self.n_jobs), max(1, rows.shape[0]))
        parts = gen_even_slices(rows.shape[0], n_parts)
        # in threads of our own: an interrupt in a destructor of joblib's would be lost
        return np.concatenate(
            side_by_side(search, [(rows[part],) for part in parts], self.n_jobs)
        )

    def _read_new(self, X: Any) -> Matrix:
        """Return checked rows, as they are given."""
        check_is_fitted(self, "X_")
        return read_rows(self, X, reset=False, dtype=self.X_.dtype)

    def _validate_new(self, X: Any) -> Matrix:
        rows = self._read_new(X)
        if is_sparse(self.X_):
            return self._features.of_matrix(sparse.csr_matrix(rows))
        return self._features.of_matrix(rows.toarray() if is_sparse(rows) else rows)

    def _scores_of(self, X: Any, *, ranks: bool = False) -> Floats:
        rows = self._validate_new(X)
        scores = np.empty((rows.shape[0], n_scorers(self.classes_)), rows.dtype)
        for some, near in self._neighbourhoods(rows):
            scores[some] = within(rows.dtype, near.scores)
        return scores

    def _blocks(self, rows: Matrix) -> Iterator[slice]:
        """Yield as many rows as are scored at once."""
        k, (n, d) = self.n_neighbors_, rows.shape
        width = k if is_sparse(rows) else max(k, d)
        return gen_batches(n, max(1, min(_BLOCK_ROWS, _NUMBERS // (k * width))))

    def _neighbourhoods(self, rows: Matrix) -> Iterator[tuple[slice, Neighbourhoods]]:
        """Yield blocks of rows, and the SVMs of their neighbours."""
        for some in self._blocks(rows):
            yield (
                some,
                self._solved(rows[some], self._nearest(rows[some], self.n_neighbors_)),
            )

    def _models(self, rows: Matrix) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return coefficients of the SVMs at rows, (n, s, d),
        their scores, and which classes no neighbour has, (n, s).
        """
        shape = rows.shape[0], n_scorers(self.classes_)
        coef, scores = np.empty((*shape, rows.shape[1])), np.empty(shape)
        absent = np.zeros(shape, bool)
        for some, near in self._neighbourhoods(rows):
            dual = near.duals[near.set_of]
            scores[some] = near.scores
            for at, row in enumerate(range(some.start, some.stop)):
                places = near.sets[near.set_of[at]]
                neighbors = self.X_[places]
                neighbors = neighbors.toarray() if is_sparse(neighbors) else neighbors
                # dual variables sum to zero
                coef[row] = dual[at] @ (neighbors - neighbors[0])
                if shape[1] > 1:
                    absent[row] = ~np.isin(np.arange(shape[1]), self.y_[places])
        return coef, scores, absent

    def _solved(self, rows: Matrix, nearest: NDArray[np.intp]) -> Neighbourhoods:
        """Solve the SVMs of these neighbours of the rows, and score the rows."""
        nearest = np.sort(nearest, axis=1)
        firsts, set_of = distinct_rows(nearest)
        sets, s = nearest[firsts], n_scorers(self.classes_)
        n_sets, k = sets.shape
        duals = np.zeros((n_sets, s, k))
        with limits_restored(), threads_for(float(k * k * rows.shape[1])):
            K, products = centred_products(self.X_, sets, rows, set_of)
        limits, intercepts = self._limits(K, sets)
        worst = solve_sets(K, limits, self.tol, duals, intercepts)
        scores = np.einsum("nk,nsk->ns", products, duals[set_of]) + intercepts[set_of]
        if worst > self.tol:
            warn(
                f"SVMs of neighbours violate their optimality conditions by up to {worst:.2g} "
                f"after {MOST_STEPS:,} steps, more than tol={self.tol:g}. Scale the features, "
                "raise alpha or tol.",
                ConvergenceWarning,
            )
        least = np.nan_to_num(scores).min(axis=1, initial=0.0, keepdims=True)
        return Neighbourhoods(
            sets, set_of, duals, np.where(np.isnan(scores), least - 1.0, scores)
        )

    def _limits(self, K: Floats, sets: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return the limits of the dual variables,
        (n_sets, s, k), and intercepts of one label.

        Those are NaN where no row is of the class.
        """
        (n_sets, k), s = sets.shape, n_scorers(self.classes_)
        deviations = (np.einsum("gii->g", K) - K.sum(axis=(1, 2)) / k) / k
        # any, for neighbours of one point
        units = np.where(deviations > 0, deviations, k) / k
        strengths = (
            _STRENGTH * units if isinstance(self.alpha, str) else float(self.alpha)
        )
        weights = self.weights_[sets]
        totals = np.maximum(strengths, _WEAKEST * units) * weights.sum(axis=1)
        signs = (
            signs_of(self.y_[sets.ravel()], s).reshape(n_sets, k, s).transpose(0, 2, 1)
        )
        constants = np.where(signs[:, :, 0] > 0, 1.0, -1.0 if s == 1 else np.nan)
        return signs * (weights / totals[:, None])[:, None], constants

    def _calibrate_by_rows_left_out(self) -> None:
        """Set the temperature by some rows, each without itself among its neighbours."""
        n = len(self.y_)
        self.temperature_, self.smoothing_ = 1.0, smoothing_of(0)
        if n == 1:  # the only one of positive weight
            return
        some = np.linspace(0, n - 1, min(n, _CALIBRATING)).astype(np.intp)
        nearest = self._nearest(self.X_[some], min(self.n_neighbors_ + 1, n))
        rows, others = self.X_[some], without(nearest, some)
        parts = [
            self._solved(rows[part], others[part]).scores for part in self._blocks(rows)
        ]
        decisions = self._decisions(np.concatenate(parts))
        self.temperature_ = temperature_of(decisions, self.y_[some], self.weights_[some])
        self.smoothing_ = smoothing_of(len(some))


def centred_products(
    X: Matrix, sets: NDArray[np.intp], asked: Matrix, own: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Products of the rows of each set, (n_sets, k, k),
    and of rows with their own set, (n, k).

    The first row of a set is the origin.
    """
    if is_sparse(X):
        near = [X[rows].astype(np.float64) for rows in sets]
        K = np.stack([(rows @ rows.T).toarray() for rows in near])
        products = np.stack(
            [(asked[[i]] @ near[g].T).toarray()[0] for i, g in enumerate(own)]
        )
        products -= products[:, :1] + K[own, 0] - K[own, :1, 0]
        return K - K[:, :1] - K[:, :, :1] + K[:, :1, :1], products
    centred, origins = X[sets].astype(np.float64), X[sets[:, 0]]
    centred -= origins[:, None]
    K = centred @ centred.transpose(0, 2, 1)
    return K, np.einsum("nkf,nf->nk", centred[own], asked - origins[own])


def within(dtype: DTypeLike, values: Floats) -> Floats:
    """Return values that all are numbers of the type.

    Raises
    ------
    ValueError
        If one is too large.
    """
    if not (np.abs(values) <= np.finfo(dtype).max).all():
        raise ValueError(
            f"The SVMs of neighbours overflow in {dtype}. Scale the features first, for example "
            "with make_pipeline(StandardScaler(), ...), or raise alpha."
        )
    return values.astype(dtype, copy=False)


def without(nearest: NDArray[np.intp], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the neighbours less the row itself,
    or less the last where it is not among them.
    """
    own = nearest == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return nearest[~own].reshape(len(rows), -1)
