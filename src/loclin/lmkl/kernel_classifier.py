"""L-MKL as published, with kernels of any kind: SVMs on a locally combined kernel (2008)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.preprocessing import add_dummy_feature
from sklearn.svm import SVC
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from loclin.engine.data import Floats, Matrix, Rows, mean_squared_norm
from loclin.engine.schedule import auto_alpha
from loclin.engine.shapes import Shape
from loclin.engine.targets import signs_of
from loclin.engine.warned import warn
from loclin.fitting.atomic import atomic, snapshot
from loclin.fitting.checks import (
    check_feature_scale,
    check_flag,
    check_number,
    check_option,
    read_labelled_rows,
    read_rows,
)
from loclin.fitting.consistent import missing, wrong_with_classes
from loclin.fitting.ending import Plateau
from loclin.fitting.probability import splits_for
from loclin.fitting.rows import weighed
from loclin.fitting.scored import Scored
from loclin.fitting.targets import n_scorers
from loclin.fitting.temperature import rescaled, smoothing_of, spread, temperature_of

_PATIENCE = 5  # steps of the gates without a gain
_BLOCK_ROWS = 1000  # rows that are scored at once
_LARGEST_DUAL = 1e9  # dual variable, over the inverse of the kernel's mean
Kernel = str | Callable[[Any, Any], Any]


class KernelLMKLClassifier(Scored, BaseEstimator):
    """Take this for several kernels, each where it is best,
    on a few thousand rows: localized MKL.

    What matters most is `kernels`, `alpha` and `gate_lr`. A score is that of an SVM on
    the kernels k_m, combined by the softmax of learned linear gates:

        score_y(x) = sum_i a_yi sum_m eta_m(x) k_m(x_i, x) eta_m(x_i) + b_y
        eta_m(x) = exp(v_m . x + v_m0) / sum_l exp(v_l . x + v_l0)

    SVMs and gates take turns, as the paper has it: `sklearn.svm.SVC` solves the SVMs, one
    class against the rest with the same gates, and the gates step along the gradient of
    their value,

        alpha/2 sum_ym ||w_ym||^2 + sum_i w_i sum_y hinge(+-score_y(x_i)) / sum_i w_i

    A score is no linear model of the row, so there is no `local_model`; where all kernels
    are linear, `LMKLClassifier` has one, and learns from any number of rows. This one
    holds the kernel matrices of all pairs of training rows: it is for a few thousand.

    Features, and kernels, should have comparable scales: put a ``StandardScaler`` in
    front.

    Parameters
    ----------
    kernels : sequence of {str, callable}, default=("linear", "poly")
        Names of `sklearn.metrics.pairwise.pairwise_kernels`, with their default
        parameters, or functions that take two matrices of rows and return a kernel
        matrix, as `SVC` takes them: ``partial(polynomial_kernel, degree=2)``.
    gate_lr : float, default=1.0
        Length of the first step of the gates, at least 0, over the root of the rows' mean
        squared norm. Later ones are half as long where the objective does not fall, else
        longer. 0 leaves the gates as they start: at random, near equal shares.
    alpha : float or "scale", default="scale"
        Strength of the L2 penalty, above 0: the larger, the simpler the model. "scale"
        is 0.05 times the mean of ``sum_m eta_m(x)^2 k_m(x, x)`` at the start, over
        n_samples. Smaller values than 1e-9 of that mean over n_samples count as that.
        ``C`` of `SVC` is ``1 / (n_samples * alpha)``.
    max_iter : int, default=100
        Maximum number of iterations; a fit that needs more warns. An iteration is a
        step of the gates, for which all SVMs are solved anew. The default is lower,
        100.
    tol : float, default=1e-3
        A fit ends when five iterations in a row each lower the objective by less than
        this. Also the tolerance of the SVMs, whose solver ends after 100,000 steps, or
        100 a row, with a warning.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights.
    calibrate : bool, default=True
        Find the temperature of the probabilities. False saves the short fits for it, as
        in a search by accuracy, and leaves no `predict_proba`. These are SVMs under the
        same gates.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is drawn at random; a number makes fits repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    gate_coef_, gate_intercept_ : ndarray of shape (n_kernels, n_features) and (n_kernels,)
    X_ : {ndarray, csr_matrix} of shape (n_support, n_features)
        Support vectors of all scores.
    dual_coef_ : ndarray of shape (s, n_support)
        The a_yi. s is the number of scores: n_classes, but 1 for two classes.
    intercept_ : ndarray of shape (s,)
    alpha_ : float
    temperature_ : float or None
        Scores are divided by it; their softmax is `predict_proba`. It is chosen on
        held-out rows.
    smoothing_ : float
        Share of probability that is divided equally among the classes: 1 / (n + 2),
        where n rows were held out.
    objective_ : list of float
        The value after each step of the gates.
    n_iter_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Notes
    -----
    The paper's are the gates, the score, the combined kernel, the SVM's dual on it and
    the gradient of its value by the gates; gates that several classes share are loclin's.

    References
    ----------
    M. Gönen and E. Alpaydin. Localized multiple kernel learning. ICML, 2008.

    Examples
    --------
    >>> from loclin import KernelLMKLClassifier
    >>> from loclin.datasets import make_xor
    >>> X, y = make_xor(400, random_state=0)
    >>> model = KernelLMKLClassifier(["linear", "rbf"], random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    gate_coef_: Annotated[Floats, Shape("k d", np.float64)]
    gate_intercept_: Annotated[Floats, Shape("k", np.float64)]
    X_: Annotated[Any, Shape("n d", np.float64)]
    dual_coef_: Annotated[Floats, Shape("s n", np.float64)]
    intercept_: Annotated[Floats, Shape("s", np.float64)]
    alpha_: float
    objective_: list[float]
    n_iter_: int

    def __init__(
        self,
        kernels: Sequence[Kernel] = ("linear", "poly"),
        *,
        gate_lr: float = 1.0,
        alpha: float | str = "scale",
        max_iter: int = 100,
        tol: float = 1e-3,
        class_weight: dict[Any, float] | str | None = None,
        calibrate: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernels = kernels
        self.gate_lr = gate_lr
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.random_state = random_state

    @atomic
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; sparse ones where all kernels take them.
        y : array-like of shape (n_samples,)
            Class labels: strings, integers or booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0 and not all 0.

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
        data, target = read_labelled_rows(self, X, y, dtype=np.float64)
        self.classes_, rows = weighed(data, target, self.class_weight, sample_weight)
        check_feature_scale(rows.X)
        rng = check_random_state(self.random_state)
        kernels = [kernel_matrix(k, rows.X, rows.X) for k in self.kernels]
        V, svms = self._learn(rows, kernels, rng)
        self.gate_intercept_, self.gate_coef_ = V[0], V[1:].T
        support = np.abs(svms.dual).sum(axis=1) > 0
        support[0] |= not support.any()  # of one label
        self.X_, self.dual_coef_ = rows.X[support], svms.dual[support].T
        self.intercept_ = svms.intercept
        self.temperature_, self.smoothing_ = None, 0.0
        if self.calibrate:
            self._find_temperature(rows, kernels, svms, int(rng.randint(2**31 - 1)))
        return self

    @snapshot
    def local_weights(self, X: ArrayLike) -> Floats:
        """Return the gates: how much each kernel counts at each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        gates : ndarray of shape (n_samples, n_kernels)
        """
        return self._gates(self._validate_new(X))

    # How it is done.

    def _check_parameters(self) -> None:
        if isinstance(self.kernels, str) or not len(self.kernels):
            raise ValueError(
                f"kernels={self.kernels!r} is not valid; give one kernel at least, as a list."
            )
        for kernel in self.kernels:
            if not callable(kernel):
                check_option(
                    "kernels", kernel, PAIRWISE_KERNEL_FUNCTIONS, hint=" or a function"
                )
        check_number("gate_lr", self.gate_lr, low=0, open_high=True)
        if not (isinstance(self.alpha, str) and self.alpha == "scale"):
            check_number("alpha", self.alpha, low=0, open_low=True, open_high=True,
                         hint='or "scale"')  # fmt: skip
        check_number("max_iter", self.max_iter, Integral, low=1)
        check_number("tol", self.tol, low=0, open_low=True, open_high=True)
        check_flag("calibrate", self.calibrate)

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if not hasattr(self, "n_features_in_"):
            return None
        held = (
            "X_",
            "dual_coef_",
            "gate_coef_",
            "gate_intercept_",
            "intercept_",
            "classes_",
        )
        if lacks := missing(self, *held):
            return lacks
        if sizes["k"] != len(self.kernels):
            return f"there are gates of {sizes['k']} kernels, but {len(self.kernels)} kernels"
        return wrong_with_classes(self.classes_, sizes, False)

    def _learn(
        self, rows: Rows, kernels: list[Floats], rng: np.random.RandomState
    ) -> tuple[Floats, SVMs]:
        """Return the gates' weights, (1 + d, n_kernels),
        and the SVMs on the combined kernel.
        """
        Z, unit = add_dummy_feature(rows.X), 1 / np.sqrt(1 + mean_squared_norm(rows.X))
        V = unit * rng.normal(size=(Z.shape[1], len(kernels)))
        gates, step = softmax(Z @ V, axis=1), self.gate_lr * unit
        alpha: Any = self.alpha
        if isinstance(alpha, str):
            norms = (gates**2 * np.stack([np.diag(K) for K in kernels], axis=1)).sum(
                axis=1
            )
            alpha = auto_alpha(float(norms.mean()) or 1.0, len(gates))
        bounds, signs = (
            bounds_of(rows.weights, alpha),
            signs_of(rows.y, n_scorers(self.classes_)),
        )
        svms = solved(kernels, gates, signs, bounds, self.tol)
        plateau, objective = Plateau(self.tol, _PATIENCE), [alpha * svms.value]
        while not plateau.reached(objective[-1]):
            if len(objective) > self.max_iter:
                warn(
                    f"The objective had not levelled off (tol={self.tol:g}) when "
                    f"max_iter={self.max_iter} steps were done. Raise max_iter or tol.",
                    ConvergenceWarning,
                )
                break
            slopes = Z.T @ (svms.slopes / (np.abs(svms.slopes).max() or 1.0))
            there = V - step / (np.linalg.norm(slopes) or 1.0) * slopes
            tried = solved(kernels, softmax(Z @ there, axis=1), signs, bounds, self.tol)
            if tried.value < svms.value:
                V, svms, step = there, tried, 1.5 * step
            else:
                step *= 0.5
            objective.append(alpha * svms.value)
        if not svms.done:
            warn(
                f"SVMs were not solved to tol={self.tol:g} in {most_steps(len(gates)):,} steps. "
                "Scale the features, raise alpha or tol.",
                ConvergenceWarning,
            )
        self.alpha_, self.objective_, self.n_iter_ = (
            alpha,
            objective[1:],
            len(objective) - 1,
        )
        return V, svms

    def _find_temperature(
        self, rows: Rows, kernels: list[Floats], svms: SVMs, seed: int
    ) -> None:
        """Set the temperature by rows that SVMs under the gates as they are hold out.

        Where a class has too few rows, those of the fit itself must do.
        """
        gates, signs = self._gates(rows.X), signs_of(rows.y, n_scorers(self.classes_))
        own = self._decisions(svms.scores(kernels, gates, gates))
        tested, decisions = np.arange(len(rows.y)), own
        parts = list(splits_for(rows, seed))
        if parts:
            said = []
            for train, test in parts:
                inner = [kernel[np.ix_(train, train)] for kernel in kernels]
                bounds = bounds_of(rows.weights[train], self.alpha_)
                short = solved(inner, gates[train], signs[train], bounds, self.tol)
                across = [kernel[np.ix_(test, train)] for kernel in kernels]
                said.append(
                    self._decisions(short.scores(across, gates[test], gates[train]))
                )
            tested, decisions = (
                np.concatenate([test for _, test in parts]),
                np.concatenate(said),
            )
        found = temperature_of(decisions, rows.y[tested], rows.weights[tested])
        self.temperature_ = float(rescaled(found, spread(own[tested]), spread(decisions)))
        self.smoothing_ = smoothing_of(len(tested))

    def _validate_new(self, X: Any) -> Matrix:
        check_is_fitted(self, "dual_coef_")
        return read_rows(self, X, reset=False, dtype=np.float64)

    def _gates(self, rows: Matrix) -> Floats:
        return np.asarray(
            softmax(rows @ self.gate_coef_.T + self.gate_intercept_, axis=1)
        )

    def _scores_of(self, X: Any, *, ranks: bool = False) -> Floats:
        rows, own = self._validate_new(X), self._gates(self.X_)
        gates, scores = self._gates(rows), np.tile(self.intercept_, (rows.shape[0], 1))
        for some in gen_batches(rows.shape[0], _BLOCK_ROWS):
            for m, kernel in enumerate(self.kernels):
                K = kernel_matrix(kernel, rows[some], self.X_)
                scores[some] += gates[some, m, None] * (
                    K @ (own[:, m] * self.dual_coef_).T
                )
        return scores


class SVMs(NamedTuple):
    """The SVMs of all scores on a combined kernel."""

    dual: Floats  # shape: (n, s)
    intercept: Floats  # shape: (s,)
    value: float  # of the dual problems, in sum
    slopes: Floats  # shape: (n, n_kernels), of the value by the gates' outputs
    done: bool  # to the tolerance

    def scores(self, kernels: list[Floats], gates: Floats, own: Floats) -> Floats:
        """Return the scores of rows,
        by kernels with the SVMs' rows, and the gates of both.
        """
        by_kernel = (
            gate[:, None] * (kernel @ (of_own[:, None] * self.dual))
            for kernel, gate, of_own in zip(kernels, gates.T, own.T, strict=True)
        )
        return sum(by_kernel) + self.intercept


def bounds_of(weights: Floats, alpha: float) -> Floats:
    """Return the bounds of the dual variables of rows with these weights."""
    with np.errstate(over="ignore"):  # bounds have a bound
        return np.asarray(weights / (alpha * weights.sum()))


def most_steps(n: int) -> int:
    """Return the most steps of an SVM's solver:
    where alpha is small it may go on for hours.
    """
    return max(100_000, 100 * n)


def solved(
    kernels: list[Floats], gates: Floats, signs: NDArray[Any], bounds: Floats, tol: float
) -> SVMs:
    """Solve the SVMs of all scores on the kernels that the gates combine.

    Parameters
    ----------
    kernels : list of ndarray of shape (n, n)
    gates : ndarray of shape (n, n_kernels)
    signs : ndarray of shape (n, s)
    bounds : ndarray of shape (n,)
        Of the dual variables.
    tol : float
    """
    K = sum(
        np.outer(gate, gate) * kernel
        for gate, kernel in zip(gates.T, kernels, strict=True)
    )
    # the solver's steps are for kernels near 1
    unit = float(np.abs(np.diag(K)).mean()) or 1.0
    bounds = unit * np.minimum(bounds, _LARGEST_DUAL / unit)
    dual, intercept, done = np.zeros(signs.shape), signs[0].astype(float), True
    for y in np.flatnonzero(np.ptp(signs, axis=0)):
        svm = SVC(kernel="precomputed", C=1.0, tol=tol, max_iter=most_steps(len(signs)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the fit warns, once
            svm.fit(K / unit, signs[:, y], bounds)
        done &= svm.fit_status_ == 0
        dual[svm.support_, y], intercept[y] = svm.dual_coef_[0] / unit, svm.intercept_[0]
    said = [
        kernel @ (gate[:, None] * dual)
        for gate, kernel in zip(gates.T, kernels, strict=True)
    ]
    by_gates = -np.stack([(dual * one).sum(axis=1) for one in said], axis=1)
    mean = (gates * by_gates).sum(axis=1, keepdims=True)
    value = np.abs(dual).sum() + mean.sum() / 2
    return SVMs(dual, intercept, value, gates * (by_gates - mean), done)


def kernel_matrix(kernel: Kernel, X: Matrix, Y: Matrix) -> Floats:
    """Return the kernel of all pairs of rows.

    Raises
    ------
    ValueError
        If it is not a matrix of numbers.
    """
    K = np.asarray(
        kernel(X, Y) if callable(kernel) else pairwise_kernels(X, Y, metric=kernel)
    )
    if K.shape != (X.shape[0], Y.shape[0]) or not np.isfinite(K).all():
        raise ValueError(
            f"The kernel {kernel!r} does not give a matrix of finite numbers for all pairs of "
            f"{X.shape[0]} and {Y.shape[0]} rows. Scale the features, or take another kernel."
        )
    return K
