"""US-SVM: linear classifiers as sparse codes over a learned dictionary (Lyu et al., 2015)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from loclin.engine.data import Rows
from loclin.engine.threads import threads_for
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.checks import check_flag, check_number
from loclin.fitting.iterations import Iterations
from loclin.engine.targets import signs_of
from loclin.ussvm.atoms import AtomsMixin
from loclin.ussvm.codes import (
    CodesFit,
    Penalty,
    largest,
    pruned,
    root_mean_square,
    solve_problem,
)
from loclin.ussvm.descent import DescentFit, DictionaryDescent, first_atoms
from loclin.ussvm.many_rows import code_problems

_AUTO_BETA = 0.02
# tol=0 asks for all passes of the descent, not for codes beyond rounding.
_SMALLEST_GAP = 1e-8


class USSVMClassifier(AtomsMixin, LocallyLinearClassifier):
    """US-SVM: linear classifiers that are sparse codes over a dictionary which they share.

    The weights of class y are ``w_y = D z_y``: a few atoms, the columns of D, each at most of unit
    length. Training minimises, over D, the codes z and the intercepts,

        sum_y [ alpha/2 ||D z_y||^2 + beta (r ||z_y||_1 + (1 - r) ||z_y||^2) ]
            + sum_i w_i sum_y hinge(+-(z_y . D' x_i + b_y)) / sum_i w_i,

    one class against the rest (equations 4 and 5), by Algorithm 1; then, for the dictionary found,
    the convex problem of each class (equation 3) to a duality gap. With a `dictionary`, only these
    are solved: a code for a new class is learned in milliseconds.

    Features should have comparable scales: put a ``StandardScaler`` or a ``Normalizer`` in front.

    Parameters
    ----------
    n_atoms : int, default=None
        Atoms of the dictionary. None takes twice the number of scorers, at least 10. With as many
        atoms as classes the best dictionary is that of the classes' own SVMs; fewer have to be
        shared.
    alpha : float, default=0.0
        Strength of ``||D z||^2 / 2``. At 0, the terms it brings are not computed, and the penalty
        on z alone bounds the weights.
    beta : float or "auto", default="auto"
        Strength of the penalty on the codes. "auto" is 0.02 times the root mean square of
        ``D' x`` over the square root of n_samples. The value used is `beta_`.
    l1_ratio : float, default=1.0
        The r of the elastic net: 1 is the l1 norm, 0 the squared l2 norm (without a 1/2). Below 1
        the model is US-SVM-E.
    nonnegative : bool, default=False
        Keep codes from being negative: US-SVM-N and, with ``l1_ratio < 1``, -NE.
    n_nonzero : int, default=None
        Most nonzeros of a code. `beta` is doubled until at most twice as many are left; then the
        largest are kept, and fitted again as an SVM in the span of their atoms: problem 3 with
        ``beta=0``, and with `alpha` or, if that is 0, with 0.05 times the mean squared norm of the
        kept part of ``D' x`` over n_samples.
    positive_weight : float, default=1.0
        What the hinge of a row is multiplied by for the row's own class. More than 1 helps where
        atoms are few: else the best code of a class that they do not separate from all others is
        none at all. ``sqrt(n_classes - 1)`` is a good value.
    dictionary : array-like of shape (n_features, n_atoms) or fitted USSVMClassifier, default=None
        A dictionary to use as it is. ``sklearn.clone``, and so a search, copies estimators
        unfitted: there wrap it in ``sklearn.frozen.FrozenEstimator``, or give the array.
    code_lr : float, default=30.0
        First step of a code, in units of the inverse root mean square of ``D' x``.
    atom_lr : float, default=1.0
        First step of an atom; its length.
    block_iter : int, default=10
        Batches that move the codes before as many move the dictionary (the paper's B).
    max_iter : int, default=100
        Most passes over the data. With a given dictionary, most steps of the interior-point method;
        from 8,192 rows on, most rounds, each of which solves the problem of a part of the rows.
    tol : float, default=1e-4
        The learning of the dictionary ends when the objective has not fallen by this much for
        `n_iter_no_change` passes (`average` passes follow); that of codes over a dictionary, when
        the duality gap of every problem is at most this part of its objective. With
        `early_stopping`, the validation accuracy is watched.
    n_iter_no_change : int, default=20
        See `tol`.
    batch_size : int or "auto", default="auto"
        Rows that are scored by one matrix product. "auto" is 64, or n_samples / 100 if that is
        less.
    average : int, default=5
        Number of last passes whose dictionaries are averaged; 0 keeps the last one.
    early_stopping : bool, default=False
        Hold out a part of the rows and watch the accuracy there.
    validation_fraction : float, default=0.1
        The part held out.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights. None for several labels a row.
    warm_start : bool, default=False
        Let `fit` go on from the dictionary and the codes of the fit before.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the rows, and of the atoms to start from.
    verbose : int, default=0
        Print a line for each pass.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; ``0 .. n_labels - 1`` for an indicator matrix.
    dictionary_ : ndarray of shape (n_features, n_atoms)
        The atoms, as columns.
    codes_ : csr_matrix of shape (n_scorers, n_atoms)
        The codes. n_scorers is n_classes, but 1 for two classes, where it is that of the second.
    intercept_ : ndarray of shape (n_scorers,)
        Intercepts.
    beta_ : float
        The strength used.
    dual_gap_ : ndarray of shape (n_scorers,)
        Duality gaps of the codes over `dictionary_`, before `n_nonzero` prunes them.
    local_coef_, local_intercept_ : ndarray of shape (n_scorers, n_atoms, n_features) and without \
            the last axis
        The atoms as local models that all scorers share: read-only views.
    objective_ : list of float
        Objective, one for each pass: the running estimate gathered during the pass.
    validation_scores_ : list of float
        Accuracy on the rows held out, one for each pass; empty without `early_stopping`.
    n_iter_ : int
        Passes done.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` was a data frame.

    Notes
    -----
    y may be an indicator matrix of several labels a row; each label is then a problem of its own.
    On a stream (`partial_fit`) codes are those of the descent, with a thirtieth of `code_lr`,
    pruned but not fitted again.

    References
    ----------
    X. Lyu, J. Zepeda and P. Perez. Maximum margin linear classifiers in unions of subspaces.
    BMVC, 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from loclin import USSVMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> old, new = y < 6, y >= 6
    >>> model = USSVMClassifier(16, n_nonzero=4, random_state=0).fit(X[old] / 16, y[old])
    >>> bool((model.codes_.getnnz(axis=1) <= 4).all())
    True
    >>> other = USSVMClassifier(dictionary=model, n_nonzero=4).fit(X[new] / 16, y[new])
    >>> bool(other.score(X[new] / 16, y[new]) > 0.8)
    True
    """

    _takes_indicator = True
    dictionary_: NDArray[Any]
    codes_: Any
    intercept_: NDArray[Any]

    def __init__(
        self,
        n_atoms: int | None = None,
        *,
        alpha: float = 0.0,
        beta: float | str = "auto",
        l1_ratio: float = 1.0,
        nonnegative: bool = False,
        n_nonzero: int | None = None,
        positive_weight: float = 1.0,
        dictionary: Any = None,
        code_lr: float = 30.0,
        atom_lr: float = 1.0,
        block_iter: int = 10,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_iter_no_change: int = 20,
        batch_size: int | str = "auto",
        average: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_atoms = n_atoms
        self.alpha = alpha
        self.beta = beta
        self.l1_ratio = l1_ratio
        self.nonnegative = nonnegative
        self.n_nonzero = n_nonzero
        self.positive_weight = positive_weight
        self.dictionary = dictionary
        self.code_lr = code_lr
        self.atom_lr = atom_lr
        self.block_iter = block_iter
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.batch_size = batch_size
        self.average = average
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.n_atoms is not None:
            check_number("n_atoms", self.n_atoms, Integral, low=1, open_high=True, hint="or None")
        check_number("alpha", self.alpha, low=0, open_high=True)
        if self.beta != "auto":
            check_number("beta", self.beta, low=0, open_high=True, hint='or "auto"')
        check_number("l1_ratio", self.l1_ratio, low=0, high=1)
        check_flag("nonnegative", self.nonnegative)
        if self.n_nonzero is not None:
            check_number("n_nonzero", self.n_nonzero, Integral, low=1, open_high=True,
                         hint="or None")  # fmt: skip
        for name in ("code_lr", "atom_lr", "positive_weight"):
            check_number(name, getattr(self, name), low=0, open_low=True, open_high=True)
        check_number("block_iter", self.block_iter, Integral, low=1, open_high=True)
        if self.alpha == 0 and self.beta == 0:
            raise ValueError("alpha=0 and beta=0 leave no penalty. Raise one of the two.")

    def _begin_fit(self, rows: Rows, rng: np.random.Generator) -> Iterations:
        given = self._given_dictionary(rows.X)
        if given is not None:
            self._check_n_nonzero(given.shape[1])
            P = rows.X @ given
            self.beta_ = self._beta(root_mean_square(P), len(P))
            problems = self._problems(P, given, self._signs(rows.y), rows.weights, self._penalty())
            return CodesFit(list(problems), given, self.tol)
        continued = bool(self.warm_start) and hasattr(self, "codes_")
        descent = self._descent(rows, rng, continued, self.code_lr)
        self._histories = descent.histories if self.warm_start else None
        return DescentFit(descent, rows, self._batch_size(len(rows.y)), rng)

    def _finish(self, rows: Rows) -> None:
        """Solve the convex problems over the dictionary found, and prune their codes."""
        if self.dictionary is None or self.n_nonzero is not None:
            P, signs = rows.X @ self.dictionary_, self._signs(rows.y)
            found = self._solve(P, signs, rows.weights, self._penalty())
            self.codes_, self.intercept_, self.dual_gap_ = found

    def _solve(self, P: NDArray[Any], signs: NDArray[Any], weights: NDArray[Any],
               penalty: Penalty | None = None) -> tuple[Any, ...]:  # fmt: skip
        D, found = self.dictionary_, []
        tol = max(self.tol, _SMALLEST_GAP)
        penalty = penalty or self._penalty(self._beta(root_mean_square(P), len(P)))
        with threads_for(float(len(P)) * P.shape[1] ** 2):
            for problem in self._problems(P, D, signs, weights, penalty):
                code, intercept = solve_problem(problem, tol).code, problem.intercept
                if not problem.solved(tol):
                    warnings.warn(
                        f"The duality gap of a code is {problem.gap:.2g}, with an objective of "
                        f"{problem.objective:.2g}: above tol={tol:g}. Scale the features, raise "
                        "beta or tol.",
                        ConvergenceWarning,
                        stacklevel=2,
                    )
                if self.n_nonzero is not None:
                    code, intercept = pruned(problem, D, self.n_nonzero, penalty, tol)
                found.append((code, intercept, problem.gap))
        codes, intercepts, gaps = map(np.array, zip(*found, strict=True))
        return sparse.csr_matrix(codes.astype(D.dtype)), intercepts.astype(D.dtype), gaps

    def _problems(self, P: NDArray[Any], D: NDArray[Any], signs: NDArray[Any],
                  weights: NDArray[Any], penalty: Penalty) -> Iterator[Any]:  # fmt: skip
        return code_problems(P, D, signs, weights, penalty, float(self.positive_weight))

    def _beta(self, unit: float, n_samples: int) -> float:
        """Return beta; `unit` is the root mean square of the precomputed features."""
        return _AUTO_BETA * unit / np.sqrt(n_samples) if self.beta == "auto" else float(self.beta)

    def _penalty(self, beta: float | None = None) -> Penalty:
        beta = self.beta_ if beta is None else beta
        return Penalty(float(self.alpha), beta, float(self.l1_ratio), bool(self.nonnegative))

    def _signs(self, y: NDArray[Any]) -> NDArray[np.int8]:
        """Targets of the scorers, (n, s)."""
        return signs_of(y, 1 if len(self.classes_) == 2 else len(self.classes_))

    def _given_dictionary(self, X: Any) -> NDArray[Any] | None:
        """Return the dictionary to use as it is, atom by atom in memory."""
        given = getattr(self.dictionary, "dictionary_", self.dictionary)
        if given is None:
            return None
        if hasattr(given, "fit"):
            raise ValueError(
                f"dictionary={given!r} is not fitted. Fit it; where scikit-learn's clone unfits "
                "it, wrap it in sklearn.frozen.FrozenEstimator, or give the array dictionary_."
            )
        D = check_array(given, dtype=X.dtype, input_name="dictionary")
        if D.shape[0] != X.shape[1]:
            raise ValueError(
                f"dictionary has shape {D.shape}; X has {X.shape[1]} features. Give one row for "
                "each feature, and the atoms as columns."
            )
        return np.array(D, order="F")

    def _check_n_nonzero(self, n_atoms: int) -> None:
        if self.n_nonzero is not None and self.n_nonzero > n_atoms:
            raise ValueError(
                f"n_nonzero={self.n_nonzero} is more than the {n_atoms} atoms there are. Lower it, "
                "or raise n_atoms."
            )

    def _descent(self, rows: Rows, rng: np.random.Generator, continued: bool,
                 code_lr: float) -> DictionaryDescent:  # fmt: skip
        """Algorithm 1 at its start, or where the fit before ended."""
        s = self._signs(rows.y[:1]).shape[1]
        if continued:
            atoms = np.ascontiguousarray(self.dictionary_.T)
            codes, intercept = self.codes_.toarray(), self.intercept_
            if self.n_atoms not in (None, len(atoms)):
                raise ValueError(
                    f"n_atoms={self.n_atoms} differs from the {len(atoms)} of the fit that is to "
                    "go on. Leave it as it was, or start afresh with warm_start=False."
                )
        else:
            given = self._given_dictionary(rows.X)
            atoms = (
                first_atoms(rows, s, self.n_atoms or max(10, 2 * s), rng)
                if given is None
                else np.ascontiguousarray(given.T)
            )
            codes, intercept = np.zeros((s, len(atoms)), atoms.dtype), np.zeros(s, atoms.dtype)
        self._check_n_nonzero(len(atoms))
        unit = root_mean_square(rows.X @ atoms.T)
        self.beta_ = self._beta(unit, len(rows.y))
        atom_lr = self.atom_lr if self.dictionary is None else 0.0
        descent = DictionaryDescent(
            atoms, codes, intercept, unit, self._penalty(), code_lr=code_lr,
            atom_lr=atom_lr, block_iter=self.block_iter,
            positive_weight=float(self.positive_weight),
        )  # fmt: skip
        histories = getattr(self, "_histories", None)
        if continued and histories is not None:
            descent.histories = histories
        elif continued:
            descent.rest().iterate(rows, self._batch_size(len(rows.y)), rng)
        return descent

    def _continue_stream(self, rows: Rows, rng: np.random.Generator) -> None:
        if self._stream is None:
            # Large steps find dictionaries, but leave the codes themselves too noisy.
            self._stream = self._descent(rows, rng, hasattr(self, "codes_"), self.code_lr / 30)
            self._n_seen = 0
        self._n_seen += len(rows.y)
        stream = self._stream
        self.beta_ = self._beta(stream.unit, self._n_seen)
        stream.penalty = self._penalty()
        with self._threads(rows.X):
            objective = stream.iterate(rows, self._batch_size(self._n_seen), rng)
        self.objective_, self.n_iter_ = [objective], 1
        for name, value in stream.attributes().items():
            setattr(self, name, value)
        if self.n_nonzero is not None:
            self.codes_ = largest(self.codes_, self.dictionary_, self.n_nonzero)

    def _n_local_models(self) -> int:
        return self.n_atoms or 10
