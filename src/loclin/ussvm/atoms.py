"""What can be done with a learned dictionary: features, codes of new classes, what atoms mean."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from loclin.engine.scores import answer_scores, shared_code_scores
from loclin.fitting.checks import check_number
from loclin.fitting.rows import weigh
from loclin.engine.targets import signs_of
from loclin.fitting.targets import find_classes, labels_or_indicator


class AtomsMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Classes as sparse codes over atoms: ``score_y(x) = z_y . D' x + b_y``.

    A subclass has `dictionary_` (d, A), `codes_` (CSR, s by A), `intercept_` (s,) and `classes_`,
    and solves for codes.
    """

    dictionary_: NDArray[Any]
    codes_: Any
    intercept_: NDArray[Any]
    classes_: NDArray[Any]
    _multilabel: bool
    _stream: Any
    _histories: Any
    nonnegative: bool

    @abstractmethod
    def _solve(self, P: NDArray[Any], signs: NDArray[Any], weights: NDArray[Any]) -> Any:
        """Codes (CSR), intercepts and gaps from precomputed features, for targets (n, s)."""

    # The one equation, with a code that is the same at every row.

    @property
    def local_coef_(self) -> NDArray[Any]:
        """The atoms as local models of every scorer, (s, A, d)."""
        return np.broadcast_to(
            self.dictionary_.T, (len(self.intercept_), *self.dictionary_.T.shape)
        )

    @property
    def local_intercept_(self) -> NDArray[Any]:
        """Zeros: atoms have no intercepts, (s, A)."""
        return np.broadcast_to(self.intercept_.dtype.type(0), self.codes_.shape)

    def _codes(self, X: Any) -> NDArray[Any]:
        return np.broadcast_to(self.codes_.toarray(), (X.shape[0], *self.codes_.shape))

    def _class_scores(self, X: Any) -> NDArray[Any]:
        return shared_code_scores(X, self.dictionary_, self.codes_, self.intercept_)

    # Precomputed features.

    @property
    def _n_features_out(self) -> int:
        return self.dictionary_.shape[1]

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Precompute the features that codes are applied to: ``X @ dictionary_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        P : ndarray of shape (n_samples, n_atoms)
        """
        return self._validate_new(X) @ self.dictionary_

    def score_precomputed(self, P: ArrayLike) -> NDArray[Any]:
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
        found = self._validate_precomputed(P)
        return self._decisions(answer_scores(found, self.codes_, self.intercept_))

    def _validate_precomputed(self, P: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self, "dictionary_")
        found = check_array(P, dtype=self.dictionary_.dtype, input_name="P")
        if found.shape[1] != self.dictionary_.shape[1]:
            raise ValueError(
                f"The precomputed features have {found.shape[1]} columns, but there are "
                f"{self.dictionary_.shape[1]} atoms. Give what transform(X) returns."
            )
        return found

    # Classes that come later.

    def fit_codes(self, X: ArrayLike, y: ArrayLike, *, precomputed: bool = False,
                  sample_weight: ArrayLike | None = None) -> tuple[Any, NDArray[Any]]:  # fmt: skip
        """Learn codes of new classes over the dictionary as it is (problem 3).

        The model does not change. Where classes share their negatives, ``transform`` these once.

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
        P = self._validate_precomputed(X) if precomputed else self.transform(X)
        target = labels_or_indicator(np.asarray(y) if not sparse.issparse(y) else y)
        check_consistent_length(P, target)
        classes, labels = find_classes(target)
        rows = weigh(P, labels, None, sample_weight)
        signs = signs_of(rows.y, 1 if len(classes) == 2 else len(classes))
        codes, intercept, _ = self._solve(rows.X, signs, rows.weights)
        return codes, intercept

    def add_class(self, X: ArrayLike, y: ArrayLike, label: Any = None, *,
                  precomputed: bool = False,
                  sample_weight: ArrayLike | None = None) -> Self:  # fmt: skip
        """Learn one more class over the dictionary as it is; the others do not change.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_atoms)
            Rows of the new class and of others.
        y : array-like of shape (n_samples,)
            True (or 1) for rows of the new class, False (or 0) for others.
        label : object, default=None
            Label of the new class; not for indicators, where the label is the next column.
        precomputed : bool, default=False
            Is `X` what `transform` gave?
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The classifier, with one class more. One that had two classes then has a score for each.

        Raises
        ------
        ValueError
            If y has other values, or the label is missing or known; or if the model has two classes
            and `nonnegative` codes, where the one code there is cannot be turned round.
        """
        members = np.asarray(y)
        if members.ndim != 1 or not np.isin(members, (0, 1)).all():
            raise ValueError(f"y={y!r} must tell of each row whether it is of the new class: 0, 1.")
        check_is_fitted(self, "dictionary_")
        if self._multilabel == (label is not None) or label in self.classes_.tolist():
            known = "None, as each column is its own" if self._multilabel else "a new one"
            raise ValueError(f"label={label!r} is not valid; use {known}. Known: {self.classes_}.")
        turned = len(self.intercept_) == 1 and not self._multilabel
        if turned and self.nonnegative:
            raise ValueError(
                "A model of two classes has one code, that of the second; with nonnegative=True "
                "its opposite is no code for the first. Fit an indicator with a column for each."
            )
        code, intercept = self.fit_codes(
            X, members.astype(np.int8), precomputed=precomputed, sample_weight=sample_weight
        )
        codes, intercepts = self.codes_, self.intercept_
        if turned:
            codes = sparse.vstack([-codes, codes])
            intercepts = np.append(-intercepts, intercepts)
        label = len(self.classes_) if self._multilabel else label
        classes = np.append(self.classes_, label)
        order = np.argsort(classes)
        self.codes_ = sparse.csr_matrix(sparse.vstack([codes, code]))[order]
        self.intercept_ = np.append(intercepts, intercept)[order]
        self.classes_, self._stream, self._histories = classes[order], None, None
        return self

    # What atoms mean.

    def top_atoms(self, label: Any, k: int = 5) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Atoms that count most for a class: its modalities.

        Parameters
        ----------
        label : object
            One of `classes_`.
        k : int, default=5
            Most atoms to name.

        Returns
        -------
        atoms : ndarray of shape (n_named,)
            Columns of `dictionary_`, the largest coefficient first; only those with a nonzero one.
        coefficients : ndarray of shape (n_named,)
        """
        check_is_fitted(self, "dictionary_")
        check_number("k", k, low=1)
        at = np.flatnonzero(self.classes_ == label)
        if not len(at):
            raise ValueError(f"label={label!r} is not among the classes {self.classes_}.")
        single = len(self.intercept_) == 1
        code = self.codes_[0 if single else at[0]].toarray()[0]
        if single and not self._multilabel and at[0] == 0:
            code = -code
        atoms = np.argsort(-np.abs(code), kind="stable")[: int(k)]
        atoms = atoms[code[atoms] != 0]
        return atoms, code[atoms]

    def top_samples(self, X: ArrayLike, atom: int, k: int = 10) -> NDArray[np.intp]:
        """Rows that an atom alone scores highest: what it has learned to see.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        atom : int
            Column of `dictionary_`.
        k : int, default=10
            Most rows to name.

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

    def atom_usage(self) -> NDArray[np.intp]:
        """Count the scorers that use each atom: an attribute is shared by several classes.

        Returns
        -------
        counts : ndarray of shape (n_atoms,)
        """
        check_is_fitted(self, "dictionary_")
        return np.bincount(self.codes_.indices, minlength=self.dictionary_.shape[1])
