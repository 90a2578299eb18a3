"""An average of locally linear classifiers, which is one itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import product
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from loclin.engine.data import Floats, Rows
from loclin.engine.threads import side_by_side
from loclin.engine.warned import SomeRowsWarning, quiet
from loclin.ensemble.adding import add_members, watched_apart
from loclin.ensemble.kinds import (
    FEW_ROWS,
    check_kinds,
    check_some_learn,
    check_streams,
    clone_with_state,
    counted,
    kinds_of,
    know_units,
    like_first,
    unfitted_member,
)
from loclin.ensemble.members import (
    Kinds,
    Members,
    fitted_alike,
    is_forest,
    mean_scores,
    share_maps,
    sums_of,
    terms_of,
    weights_of,
    without_names,
)
from loclin.ensemble.merging import merged
from loclin.ensemble.selection import folds_of
from loclin.ensemble.weighing import (
    Weighing,
    evenly,
    units_by,
    weighing_after,
    weighing_by,
)
from loclin.fitting.atomic import atomic, snapshot
from loclin.fitting.begun import Begun
from loclin.fitting.callbacks import CallbackSupportMixin, with_callbacks
from loclin.fitting.checks import (
    check_flag,
    check_n_jobs,
    check_number,
    check_weights,
    read_labelled_rows,
    read_reference,
    read_rows,
)
from loclin.fitting.features import PLAIN, standardized
from loclin.fitting.probability import StreamedTemperature
from loclin.fitting.rows import near_one, of_positive_weight, without_tiny
from loclin.fitting.scored import InWords
from loclin.fitting.targets import classes_of_stream, find_classes, in_classes, that_occur
from loclin.portable.words import Term


class LocallyLinearEnsemble(CallbackSupportMixin, Members, InWords, Begun):
    """Take this for the lowest error and log loss without tuning; it makes up to 25 fits.

    What matters most is `estimators`, `n_folds` and, with many folds, `early_stopping`.
    Each kind of classifier is fitted `n_folds` times, each time without one fold of the
    rows and with a seed of its own. The folds left out tell how much each kind counts
    (forward selection with replacement, Caruana et al. 2004, by lowest log loss) and
    the temperature of the probabilities. The score is

        score_y(x) = sum_k share_k / unit_k * (mean over the folds of the kind's score_y(x)),

    a unit being the spread of the kind's scores. It is a locally linear classifier
    itself, with the members' models side by side and their codes times share / unit:
    `local_model` stays exact. Members that share one frozen coding are merged into one,
    whose models are the mean of theirs. From 1,000 rows on, members take over what the
    first of their kind has chosen: the strength, the metric, pieces of features, and
    planes.

    Parameters
    ----------
    estimators : list of classifiers or None, default=None
        Kinds, unfitted classifiers of this package for one label a row; not changed.
        None stands for ``ML3Classifier()``, ``SAPLClassifier()`` and two of
        ``LLSVMClassifier(coding, bias="both", metric=None)`` with planes:
        ``OrthogonalCoding("auto", whiten=False, norm="l2")`` of all rows, frozen, whose
        scores are quadratic over the length of the row; and
        ``OrthogonalCoding("auto")``, the paper's codes. With 1,000 dense rows or more
        there is also ``ForestClassifier(40)``, unless classes are very many. With fewer
        rows, of 200 features at most, ``L3MClassifier(solver="online")`` takes its
        place, which may be nearly linear. A kind that does not help gets no share, and
        its members are not kept. ML3 and SAPL are alone with more than 2,000 features,
        where planes take long to fit. They are alone, too, where all kinds count the
        same: on a stream, and if most rows are of classes with fewer rows than there
        are folds. ML3 is alone where the models of SAPL would have 500 times as many
        numbers as the rows, and 2^24 at least.
    n_folds : int, default=5
        Maximum number of members of each kind. Error falls with it, less and less, and
        time rises.
    standardize : bool, default=True
        Centre the features, and divide them by their standard deviations, as
        `StandardScaler` does. Sparse rows are not centred. Models and explanations are of
        the features as given. It is done once for all members. On a stream each member
        does it for itself, as its own `standardize` says. The same holds where a kind is
        given anchors, centres or a frozen coding, which know the rows as they are, and
        for given kinds where this is False.
    tol : float, default=1e-3
        Members are added while `n_iter_no_change` iterations together lower the log loss
        on rows held out by this part of itself. Only with `early_stopping`.
    n_iter_no_change : int, default=3
        Iterations in a row without a gain of `tol`, after which a fit ends. An iteration
        adds one member of each kind. The default is lower, 3.
    early_stopping : bool, default=False
        Hold out rows, and stop when they are predicted no better. Log loss counts, by
        `tol` of itself. Members, one of each kind at a time, are added until then. It is
        for many folds: with the default 5 there is little to save, and rows held out cost
        more.
    validation_fraction : float, default=0.1
        Part of the rows that `early_stopping` holds out.
    n_jobs : int or None, default=None
        Number of tasks done at once, in threads; -1 takes as many as there are
        processors. Tasks are members; with `early_stopping`, one of each kind at most.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is drawn at random; a number makes fits repeatable. Members that
        have none get one from it.
    verbose : int, default=0
        If above 0, print how far a fit has come, a line at a time. Members have a line
        each.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    members_ : list of classifiers
        Fitted, kind by kind: as many of each, one where its members are merged, and none
        where the kind has no share.
    shares_ : ndarray of shape (n_kinds,)
        How much each kind counts; they sum to one.
    units_ : ndarray of shape (n_kinds,)
        Spread of the kinds' scores.
    temperature_ : float
        Scores are divided by it; their softmax is `predict_proba`.
    smoothing_ : float
        Share of probability that is divided equally among the classes.
    local_coef_ : ndarray of shape (n_scorers, n_models, n_features)
        The members' linear models side by side; n_scorers is n_classes. Where members see
        pieces of features, those of each in turn follow as further columns.
    local_intercept_ : ndarray of shape (n_scorers, n_models)
        Their intercepts.
    intercept_ : ndarray of shape (n_scorers,)
        Mean global intercepts.
    validation_losses_ : list of float
        With early stopping, the log loss on the rows held out from all: with one member
        of each kind, with two, and so on; else empty.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` was a data frame.

    Notes
    -----
    Rows of a class that has fewer of them than `n_folds` are never held out: every member
    learns from them, and the others tell shares and temperature. If such rows are the
    most, or one class alone has more, no rows are held out: all kinds count the same, and
    the temperature is that of the rows learned from. Probabilities are then too sure.
    Lower `n_folds`, or trust the labels only.

    On a stream (`partial_fit`) every member learns all rows, each in an order of its own;
    kinds count the same, and units and temperature come from rows before they are
    learned. Where a stream goes on from a fit, forests stay as they are.

    A forest's models are constants. Each forest is one model here: a constant of 1,
    whose weight in `local_weights` is the forest's score.

    References
    ----------
    R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes. Ensemble selection from
    libraries of models. ICML, 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import LocallyLinearEnsemble
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LocallyLinearEnsemble(n_folds=3, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    temperature_: float

    def __init__(
        self,
        estimators: list[Any] | None = None,
        *,
        n_folds: int = 5,
        standardize: bool = True,
        tol: float = 1e-3,
        n_iter_no_change: int = 3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.n_folds = n_folds
        self.standardize = standardize
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # What the user calls.

    @classmethod
    def of(
        cls, members: Sequence[Any], X: ArrayLike, y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Return the ensemble of members that are fitted already:
        on any rows, machines or days.

        Parameters
        ----------
        members : list of classifiers
            Fitted classifiers of this package, of the same features, classes and
            precision. Each is a kind of its own. They are not changed.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that no member has learned from: they tell shares and temperature. Of
            rows that some have learned, these would count too much.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        ensemble : LocallyLinearEnsemble
            It predicts, and may go on with `partial_fit` if its members can; `fit` fits
            members of the same kinds anew.

        Raises
        ------
        ValueError
            If members are not fitted alike, or if the data is not valid.
        sklearn.exceptions.NotFittedError
            If one is not fitted.
        """
        classes = fitted_alike(members)
        whole = cls([clone(member) for member in members], standardize=False)
        whole._check_parameters()
        whole._keep_parameters("a clone", goes_on=False)
        rows, target = read_labelled_rows(
            whole, X, y, dtype=members[0]._learned.local_coef.dtype
        )
        whole.classes_, labels = classes, in_classes(target, classes)
        weights = near_one(check_weights(sample_weight, len(labels)))
        rows, labels, weights, _ = of_positive_weight(rows, labels, weights)
        by_kind = [[without_names(member, whole)] for member in members]
        whole._weigh(by_kind, Rows(rows, labels, weights))
        whole.validation_losses_ = []
        return whole

    @atomic
    @with_callbacks
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. float32 stays float32; everything else becomes float64.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0 and not all 0. Rows of weight 0 count as if
            they were not there; so do classes that have no others.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is not valid, or if training overflowed.
        """
        self._check_parameters()
        self._keep_parameters("a clone", goes_on=False)
        rows, target = read_labelled_rows(self, X, y)
        classes, labels = find_classes(target)
        weights = without_tiny(near_one(check_weights(sample_weight, len(labels))), rows)
        weights *= counted(self.estimators, classes, labels, weights, rows)[labels]
        rows, labels, weights, _ = of_positive_weight(rows, labels, weights)
        self.classes_, labels = that_occur(classes, labels)
        every = Rows(rows, labels, weights, np.arange(len(labels)))
        standardizes = self.standardize and not know_units(self.estimators)
        self._features = standardized(every) if standardizes else PLAIN
        every, watched = every._replace(X=self._features.of_matrix(rows)), None
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if self.early_stopping:
            every, watched = watched_apart(every, self.validation_fraction, seed)
        rows, labels, weights, _ = every
        folds = folds_of(labels, self.n_folds, seed)
        n_classes, told = len(self.classes_), weights if (folds >= 0).any() else None
        kinds = kinds_of(self.estimators, rows, told, n_classes, self.n_folds, seed)
        jobs = list(product(range(self.n_folds), range(len(kinds))))
        context = self._init_callback_context(
            max_subtasks=len(jobs), sequential_subtasks=False
        )
        context.call_on_fit_task_begin(estimator=self)
        as_given = standardizes or self.estimators is None  # the ensemble does it
        alike = as_given and len(labels) >= FEW_ROWS  # else each member may choose
        firsts: list[Any] = []  # of each kind, once they are fitted

        def fit_member(fold: int, kind: int) -> Any:
            member = unfitted_member(kinds[kind], kind, fold, seed, self.classes_,
                                     as_given=as_given, standardized=standardizes)  # fmt: skip
            if alike and firsts:
                member = like_first(member, firsts[kind])
            kept = folds != fold
            given = None if sample_weight is None else weights[kept]
            number = fold * len(kinds) + kind
            task = context.subcontext(task_name="member", task_id=number)
            task.call_on_fit_task_begin(estimator=self)
            with task.propagate_callback_context(member):
                member.fit(rows[kept], self.classes_[labels[kept]], given)
            task.call_on_fit_task_end(estimator=self)
            if self.verbose:
                which = f"{type(member).__name__} {fold + 1}/{self.n_folds}"
                print(f"{type(self).__name__}: {which}")
            return member

        self.validation_losses_ = []
        # Nobody chose the default.
        with nullcontext() if self.estimators else quiet(SomeRowsWarning):
            fit_members = partial(side_by_side, fit_member, n_jobs=self.n_jobs)
            members = fit_members(jobs[: len(kinds)])
            firsts += share_maps(members)
            add_members(members, fit_members, jobs[len(kinds) :], watched,
                        self.validation_losses_, tol=self.tol,
                        n_iter_no_change=self.n_iter_no_change)  # fmt: skip
        by_kind = [members[kind :: len(kinds)] for kind in range(len(kinds))]
        self._weigh(by_kind, Rows(rows, labels, weights), folds)
        context.call_on_fit_task_end(estimator=self)
        return self

    @atomic
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from some more rows of a stream.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Some rows; any number of them.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All classes that will ever come; needed at the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The classifier, able to predict.

        Raises
        ------
        ValueError
            See `LocallyLinearClassifier.partial_fit` of the members.
        """
        self._check_parameters()
        first = not hasattr(self, "members_")
        self._keep_parameters("fit or a clone", goes_on=not first, streams=not first)
        self.classes_ = classes_of_stream(classes, vars(self).get("classes_"))
        rows, target = read_labelled_rows(self, X, y, reset=first)
        labels = in_classes(target, self.classes_)
        weights: Floats = check_weights(sample_weight, len(labels), some=False)
        by_class = counted(self.estimators, self.classes_, labels, weights)
        weights = weights * by_class[labels]
        rows, labels, weights, _ = of_positive_weight(rows, labels, weights)
        if not len(labels):
            return self
        if first:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            n_classes = len(self.classes_)
            kinds = kinds_of(self.estimators, rows, None, n_classes, self.n_folds, seed)
            as_given = not self.standardize and self.estimators is None
            self.members_ = [
                unfitted_member(one, kind, fold, seed, self.classes_, as_given=as_given)
                for kind, one in enumerate(kinds) for fold in range(self.n_folds)
            ]  # fmt: skip
            known = evenly(len(kinds), len(labels))
            check_streams(self.members_)
            self._streamed = StreamedTemperature(n_rows=len(labels))
            self._features = PLAIN
        else:
            check_some_learn(self.members_)
            rows = self._features.of_matrix(rows)
            known = Weighing(
                self.shares_, self.units_, self.temperature_, self.smoothing_
            )
            known, self._streamed = weighing_after(
                known, self._streamed, self._n_seen, self._by_kind(), rows, labels, weights,
                len(self.classes_),
            )  # fmt: skip

        def learn(member: Any) -> Any:
            if not first and is_forest(member):  # it stays as it was fitted
                return member
            member = clone_with_state(member)
            order = np.random.default_rng(member._seed()).permutation(len(labels))
            given = None if sample_weight is None else weights[order]
            return member.partial_fit(
                rows[order], self.classes_[labels[order]], self.classes_, given
            )

        jobs = [(member,) for member in self.members_]
        self.members_ = side_by_side(learn, jobs, self.n_jobs)
        self._take(known)
        if first:
            self.units_ = units_by(self._by_kind(), rows)
        self._n_seen += len(labels)
        return self

    @snapshot
    def local_weights(self, X: ArrayLike) -> Floats:
        """Return the weights of the local models at each row, also called its code.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_scorers, n_models)
        """
        return weights_of(self._factors(), self._validate_new(X), len(self.classes_))

    @snapshot
    def local_model(
        self, X: ArrayLike, *, by_class: bool = False
    ) -> tuple[Floats, Floats]:
        """Return the linear model that acts at each row:
        the exact explanation of its score.

        ``decision_function(X)`` equals ``einsum("nd,nd->n", coef, X) + intercept`` for
        two classes and ``einsum("ncd,nd->nc", coef, X) + intercept`` otherwise, to
        rounding. What a change of a feature does is another question: `local_gradient`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
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
        coef, intercept = sums_of(
            self._factors(), rows, lambda member: member.local_model(rows)
        )
        coef = np.asarray(self._features.back(coef, 1))
        intercept = self._features.constants(intercept, coef)
        return self._per_class(coef, by_class), self._per_class(intercept, by_class)

    @snapshot
    def contributions(
        self, X: ArrayLike, reference: ArrayLike, *, by_class: bool = False
    ) -> tuple[Floats, Floats]:
        """Return what each feature adds to the scores because it differs from a reference.

        The same as of its members: the weights of their local models stay those of the row.
        What forests say is in the base.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        reference : array-like of shape (n_features,)
        by_class : bool, default=False
            Whether two classes have contributions each, as several have: half of the
            decision's for the second, the opposite for the first.

        Returns
        -------
        added : ndarray of shape (n_samples, n_features) or \
                (n_samples, n_classes, n_features)
        base : ndarray of shape (n_samples,) or (n_samples, n_classes)
            What the row's own local models say of the reference.
        """
        check_flag("by_class", by_class)
        rows = self._validate_new(X)
        at = self._features.of_matrix(
            read_reference(reference, self.n_features_in_)[None]
        )
        added, base = sums_of(
            self._factors(), rows, lambda member: member.contributions(rows, at)
        )
        return self._per_class(added, by_class), self._per_class(base, by_class)

    # How it is done.

    def _check_parameters(self) -> None:
        check_number("n_folds", self.n_folds, Integral, low=2)
        check_number("validation_fraction", self.validation_fraction, low=0, high=1,
                     open_low=True, open_high=True)  # fmt: skip
        check_number("tol", self.tol, low=0, open_high=True)
        check_number("n_iter_no_change", self.n_iter_no_change, Integral, low=1)
        check_flag("early_stopping", self.early_stopping)
        check_flag("standardize", self.standardize)
        check_n_jobs(self.n_jobs)
        check_kinds(self.estimators)

    def _take(self, known: Weighing) -> None:
        """Publish how much the kinds count."""
        self.shares_, self.units_, self.temperature_, self.smoothing_ = known

    def _keep_members(self, by_kind: Kinds, known: Weighing) -> None:
        """Publish the members of kinds with a share, merged where that is exact."""
        self._take(known)
        kept = [
            merged(members) if share > 0 else []
            for members, share in zip(by_kind, self.shares_, strict=True)
        ]
        self._n_each = [len(members) for members in kept]
        self.members_ = [member for members in kept for member in members]

    def _weigh(
        self, by_kind: Kinds, rows: Rows, folds: NDArray[np.intp] | None = None
    ) -> None:
        """Publish fitted members, weighed by rows that they did not learn from.

        Parameters
        ----------
        by_kind : list of list of classifiers
        rows : Rows
            As the members see them.
        folds : ndarray of shape (n,), default=None
            The member of each kind that has not seen the row; -1 where all have. None: no
            member has seen any.
        """
        X, y, weights, _ = rows
        known = weighing_by(by_kind, X, y, weights, folds, len(self.classes_))
        self._keep_members(by_kind, known)
        self._streamed, self._n_seen = None, len(y)

    def _scores_of(self, X: Any, *, ranks: bool = False) -> Floats:
        return self._class_scores(self._validate_new(X))

    def _class_scores(self, X: Any, *, ranks: bool = False) -> Floats:
        """Scores of rows that are checked."""
        return mean_scores(self._factors(), X, len(self.classes_))

    def _terms(self) -> tuple[Term, ...]:
        return terms_of(self._factors(), self._features)

    def _read_new(self, X: Any, finite: bool = True) -> Any:
        check_is_fitted(self, "members_")
        dtype = self.members_[0]._learned.local_coef.dtype
        return read_rows(self, X, reset=False, dtype=dtype, ensure_all_finite=finite)

    def _validate_new(self, X: Any) -> Any:
        return self._features.of_matrix(self._read_new(X))
