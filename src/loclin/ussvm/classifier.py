"""US-SVM: linear classifiers as sparse codes over a learned
dictionary (Lyu et al., 2015).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from loclin.engine.data import is_sparse, stacked
from loclin.engine.scores import answer_scores
from loclin.engine.targets import signs_of
from loclin.fitting.atomic import atomic, snapshot
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.checks import check_number
from loclin.fitting.rows import weighed
from loclin.fitting.targets import labels_or_indicator, n_scorers
from loclin.ussvm.checks import (
    check_new_label,
    precomputed_features,
)
from loclin.ussvm.codes import root_mean_square
from loclin.ussvm.procedures import MODELS
from loclin.ussvm.recipe import USSVMRecipe
from loclin.ussvm.solver import Codes


class USSVMClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, LocallyLinearClassifier
):
    """Take this for many classes, new ones in milliseconds,
    or several labels a row: US-SVM.

    Linear classifiers are sparse codes over a dictionary that they share. What matters
    most is `n_atoms`, `beta` and `n_nonzero`. The weights of class y are ``w_y = D z_y``:
    a few atoms, the columns of D, each at most of unit length. Training minimises, over
    D, the codes z and the intercepts,

        sum_y [ alpha/2 ||D z_y||^2 + beta (r ||z_y||_1 + (1 - r) ||z_y||^2) ]
            + sum_i w_i sum_y hinge(+-(z_y . D' x_i + b_y)) / sum_i w_i,

    one class against the rest (equations 4 and 5), by Algorithm 1; then, for the
    dictionary found, the convex problem of each class (equation 3) to a duality gap. With
    a `dictionary`, only these are solved: a code for a new class is learned in
    milliseconds.

    Features should have comparable scales: put a ``StandardScaler`` or a ``Normalizer``
    in front.

    Parameters
    ----------
    n_atoms : int, default=None
        Number of atoms in the dictionary. None takes twice the number of scores, at
        least 10, and at most the larger of 100 and n_features. A step over codes costs
        the square of it. With as many atoms as classes the best dictionary is that of
        the classes' own SVMs; fewer have to be shared.
    alpha : float, default=0.0
        Strength of ``||D z||^2 / 2``. The default is 0: the terms it brings are not
        computed, and the penalty on z alone bounds the weights.
    beta : float, "auto" or "scale", default="auto"
        Strength of the penalty on the codes. "scale" is 0.02 times the root mean square
        of ``D' x`` over the square root of n_samples. "auto" multiplies it by 1/4, 1,
        4, 16 or 64, on 50 to 50,000 rows of one label each. It takes the factor of
        lowest log loss on rows held out of short fits. With a `dictionary` and on a
        stream both are the same. The value used is `beta_`.
    l1_ratio : float, default=1.0
        The r of the elastic net: 1 is the l1 norm, 0 the squared l2 norm (without a 1/2).
        Below 1 the model is US-SVM-E.
    nonnegative : bool, default=False
        Keep codes from being negative: US-SVM-N and, with ``l1_ratio < 1``, -NE.
    n_nonzero : int, default=None
        Maximum number of nonzeros in a code. `beta` is doubled until at most twice as
        many are left. Then the largest are kept, and fitted again as an SVM in the span
        of their atoms: problem 3 with ``beta=0`` and `alpha`. If `alpha` is 0, the
        strength is 0.05 times the mean squared norm of the kept part of ``D' x`` over
        n_samples.
    positive_weight : float, default=1.0
        Factor on the hinge of a row for the row's own class. More than 1 helps where
        atoms are few: else the best code of a class that they do not separate from all
        others is none at all. ``sqrt(n_classes - 1)`` is a good value.
    dictionary : array-like of shape (n_features, n_atoms) or fitted USSVMClassifier, default=None
        A dictionary to use as it is. ``sklearn.clone``, and so a search, copies
        estimators unfitted: there wrap it in ``sklearn.frozen.FrozenEstimator``, or give
        the array.
    code_lr : float, default=30.0
        First step of a code, in units of the inverse root mean square of ``D' x``.
    atom_lr : float, default=1.0
        First step of an atom; its length.
    block_iter : int, default=10
        Batches that move the codes before as many move the dictionary (the paper's B).
    max_iter : int, default=1000
        Maximum number of iterations; a fit that needs more warns. An iteration is a
        pass over the rows. With a given dictionary it is a step of the interior-point
        method; from 8,192 rows on, a round that solves the problem of a part of the
        rows.
    tol : float, default=1e-4
        A fit ends when `n_iter_no_change` iterations in a row each lower the objective by
        less than this. Codes over a dictionary are learned until the duality gap of every
        problem is at most this part of its objective. The default is lower, 1e-4.
    n_iter_no_change : int, default=20
        Iterations in a row without a gain of `tol`, after which a fit ends. The default
        is higher, 20.
    batch_size : int or "auto", default="auto"
        Rows that are scored by one matrix product before any of them updates the models.
        "auto" is 64, or n_samples / 100 if that is less.
    average : int, default=5
        Number of iterations, after `tol` is reached, whose models are averaged; 0 keeps
        the last model alone. What is averaged is the dictionary.
    early_stopping : bool, default=False
        Hold out rows, and stop when they are predicted no better. Accuracy counts, by
        `tol`.
    validation_fraction : float, default=0.1
        Part of the rows that `early_stopping` holds out.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights. None for several
        labels a row.
    n_jobs : int or None, default=None
        Number of tasks done at once, in threads; -1 takes as many as there are
        processors. Tasks are the short fits that choose parameters and the temperature.
    calibrate : bool, default=True
        Find the temperature of the probabilities. False saves the short fits for it, as
        in a search by accuracy, and leaves no `predict_proba`.
    warm_start : bool, default=False
        Let `fit` go on from the fit before.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is drawn at random; a number makes fits repeatable.
    verbose : int, default=0
        If above 0, print how far a fit has come, a line at a time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; ``0 .. n_labels - 1`` for an indicator matrix.
    dictionary_ : ndarray of shape (n_features, n_atoms)
        The atoms, as columns.
    codes_ : csr_matrix of shape (n_scorers, n_atoms)
        The codes. n_scorers is n_classes, but 1 for two classes, where it is that of the
        second.
    intercept_ : ndarray of shape (n_scorers,)
        Intercepts.
    beta_ : float
        The strength used.
    dual_gap_ : ndarray of shape (n_scorers,)
        Duality gaps of the codes over `dictionary_`, before `n_nonzero` prunes them.
    local_coef_, local_intercept_ : ndarray of shape (n_scorers, n_atoms, n_features) and without \
            the last axis
        The atoms as local models that all scorers share: read-only views.
    temperature_ : float, ndarray of shape (n_labels,) or None
        Scores are divided by it; their softmax is `predict_proba`. It is chosen on
        held-out rows. Several labels a row have one each; a late one has the geometric
        mean of the others'.
    smoothing_ : float
        Share of probability that is divided equally among the classes: 1 / (n + 2),
        where n rows were held out.
    objective_ : list of float
        Objective, one for each pass: the running estimate gathered during the pass.
    validation_scores_ : list of float
        Accuracy on the rows held out, one for each pass; empty without `early_stopping`.
    n_iter_ : int
        Passes done.
    t_ : int
        Rows seen by `partial_fit`; only after it.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` was a data frame.

    Notes
    -----
    y may be an indicator matrix of several labels a row; each label is then a problem of
    its own. On a stream (`partial_fit`) codes are those of the descent, with a thirtieth
    of `code_lr`, pruned but not fitted again.

    References
    ----------
    X. Lyu, J. Zepeda and P. Perez. Maximum margin linear classifiers in unions of
    subspaces. BMVC, 2016.

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
    _fitted_models = MODELS
    _recipe_type = USSVMRecipe
    _fits_may_change = frozenset(
        {"atom_lr", "beta", "block_iter", "code_lr", "l1_ratio", "positive_weight"}
    )
    dictionary_: NDArray[np.floating]
    codes_: sparse.csr_matrix

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
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_iter_no_change: int = 20,
        batch_size: int | str = "auto",
        average: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        calibrate: bool = True,
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
        self.n_jobs = n_jobs
        self.calibrate = calibrate
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # From rows to a model.

    # Precomputed features.

    @property
    def _n_features_out(self) -> int:
        return self.dictionary_.shape[1]

    @snapshot
    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Precompute the features that codes are applied to: ``X @ dictionary_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        P : ndarray of shape (n_samples, n_atoms)
        """
        return self._precompute(X)

    def _precompute(self, X: Any) -> NDArray[np.floating]:
        """Return what `transform` does, whatever `set_output` asks of it."""
        return self._validate_new(X) @ self.dictionary_

    @snapshot
    def score_precomputed(self, P: ArrayLike) -> NDArray[np.floating]:
        """Decisions from precomputed features, at the cost of a few products a class.

        Parameters
        ----------
        P : array-like of shape (n_samples, n_atoms)
            What `transform` gave.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            As from `decision_function`.
        """
        check_is_fitted(self, "dictionary_")
        features = precomputed_features(P, self.dictionary_)
        return self._decisions(answer_scores(features, self.codes_, self.intercept_))

    # Classes that come later.

    @snapshot
    def fit_codes(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        precomputed: bool = False,
        sample_weight: ArrayLike | None = None,
    ) -> tuple[sparse.csr_matrix, NDArray[np.floating]]:
        """Learn codes of new classes over the dictionary as it is (problem 3).

        The model does not change. Where classes share their negatives, ``transform``
        these once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_atoms)
            Rows, or their precomputed features.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels of the rows, or an indicator matrix.
        precomputed : bool, default=False
            Is `X` what `transform` gave?
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        codes : csr_matrix of shape (n_scorers, n_atoms)
            One code a class, in sorted order; for two classes only that of the second.
        intercept : ndarray of shape (n_scorers,)
        """
        found = self._found_codes(X, y, precomputed, sample_weight)
        return found.codes, found.intercept

    def _found_codes(
        self, X: Any, y: Any, precomputed: bool, sample_weight: Any
    ) -> Codes:
        check_is_fitted(self, "dictionary_")
        P = (
            precomputed_features(X, self.dictionary_)
            if precomputed
            else self._precompute(X)
        )
        target = labels_or_indicator(y if is_sparse(y) else np.asarray(y))
        check_consistent_length(P, target)
        classes, rows = weighed(P, target, None, sample_weight)
        signs = signs_of(rows.y, n_scorers(classes))
        recipe: Any = self._recipe(0)
        solver = recipe.code_solver(root_mean_square(rows.X), len(rows.y))
        problems = solver.problems(rows.X, self.dictionary_, signs, rows.weights)
        return solver.solve(problems, self.dictionary_)

    @atomic
    def add_class(
        self,
        X: ArrayLike,
        y: ArrayLike,
        label: Any = None,
        *,
        precomputed: bool = False,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn one more class over the dictionary as it is; the others do not change.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_atoms)
            Rows of the new class and of others.
        y : array-like of shape (n_samples,)
            True (or 1) for rows of the new class, False (or 0) for others.
        label : object, default=None
            Label of the new class; not for indicators, where the label is the next
            column.
        precomputed : bool, default=False
            Is `X` what `transform` gave?
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The classifier, with one class more. One that had two classes then has a score
            for each.

        Raises
        ------
        ValueError
            If y has other values, or the label is missing or known; or if the model has
            two classes and `nonnegative` codes, where the one code there is cannot be
            turned round.
        TypeError
            If the label is a string and the classes are numbers, or the other way round.
        """
        members = np.asarray(y)
        if members.ndim != 1 or not np.isin(members, (0, 1)).all():
            raise ValueError(
                f"y={y!r} must tell of each row whether it is of the new class: 0, 1."
            )
        check_is_fitted(self, "dictionary_")
        if not self._multilabel:
            check_new_label(label, self.classes_)
        elif label is not None:
            raise ValueError(
                f"label={label!r} is not valid; use None, as each column is its own."
            )
        two_classes = len(self.intercept_) == 1 and not self._multilabel
        if two_classes and self.nonnegative:
            raise ValueError(
                "A model of two classes has one code, that of the second; with nonnegative=True "
                "its opposite is no code for the first. Fit an indicator with a column for each."
            )
        found = self._found_codes(X, members.astype(np.int8), precomputed, sample_weight)
        codes = [self.codes_, found.codes]
        intercepts = [self.intercept_, found.intercept]
        old_gap = getattr(self._learned, "dual_gap", None)  # None after a stream
        if two_classes:  # one code, that of the second: its opposite is that of the first
            codes.insert(0, -self.codes_)
            intercepts.insert(0, -self.intercept_)
        classes = np.append(
            self.classes_, len(self.classes_) if self._multilabel else label
        )
        order = np.argsort(classes)
        changed = {
            "codes": stacked(codes)[order],
            "intercept": np.concatenate(intercepts)[order],
        }
        if old_gap is not None:
            # both classes have that of their code
            old_gaps = np.resize(old_gap, len(order) - 1)
            changed["dual_gap"] = np.append(old_gaps, found.dual_gap)[order]
        self._learned = replace(self._learned, **changed)
        self.classes_ = classes[order]
        # the others tell of this one too
        if self._multilabel and self.temperature_ is not None:
            usual = np.exp(np.log(self.temperature_).mean())
            self.temperature_ = np.append(self.temperature_, usual)
        self._temperatures = ()
        self._stream = self._kept = None
        return self

    # What atoms mean.

    @snapshot
    def top_atoms(
        self, label: Any, k: int = 5
    ) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
        """Atoms that count most for a class: its modalities.

        Parameters
        ----------
        label : object
            One of `classes_`.
        k : int, default=5
            Maximum number of atoms to name.

        Returns
        -------
        atoms : ndarray of shape (n_named,)
            Columns of `dictionary_`, the largest coefficient first; only those with a
            nonzero one.
        coefficients : ndarray of shape (n_named,)
        """
        check_is_fitted(self, "dictionary_")
        check_number("k", k, low=1)
        known = self.classes_.tolist()
        if label not in known:
            raise ValueError(f"label={label!r} is not among the classes {self.classes_}.")
        place = known.index(label)
        if len(self.intercept_) == 1 and not self._multilabel:
            code = self.codes_.toarray()[0] * (1 if place == 1 else -1)
        else:
            code = self.codes_[place].toarray()[0]
        atoms = np.argsort(-np.abs(code), kind="stable")[: int(k)]
        atoms = atoms[code[atoms] != 0]
        return atoms, code[atoms]

    @snapshot
    def top_samples(self, X: ArrayLike, atom: int, k: int = 10) -> NDArray[np.intp]:
        """Rows that an atom alone scores highest: what it has learned to see.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        atom : int
            Column of `dictionary_`.
        k : int, default=10
            Maximum number of rows to name.

        Returns
        -------
        rows : ndarray of shape (n_named,)
            Indices of rows of `X`, the highest ``d . x`` first.
        """
        rows = self._validate_new(X)
        n_atoms = self.dictionary_.shape[1]
        if not 0 <= atom < n_atoms:
            raise ValueError(f"atom={atom!r} must be one of 0 .. {n_atoms - 1}.")
        check_number("k", k, low=1)
        return np.argsort(-(rows @ self.dictionary_[:, atom]), kind="stable")[: int(k)]

    @snapshot
    def atom_usage(self) -> NDArray[np.intp]:
        """Count the scorers that use each atom:
        an attribute is shared by several classes.

        Returns
        -------
        counts : ndarray of shape (n_atoms,)
        """
        check_is_fitted(self, "dictionary_")
        return np.bincount(self.codes_.indices, minlength=self.dictionary_.shape[1])
