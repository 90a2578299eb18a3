"""Codes and scores of rows, by the words that say what a fitted model computes.

`codes_by` takes the loop that writes codes by the coder's type; each loop is registered
where it stands. A few coders have scores of their own that are faster than their codes.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix
from scipy.special import softmax

from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.leaves import leaf_codes, leaf_scores
from loclin.engine.scores import (
    coded_scores,
    pooled_scores,
    pooling_codes,
    regional_scores,
    regions_of,
    shared_code_scores,
)
from loclin.portable.words import (
    Coder,
    CodesByScorer,
    ConstantCode,
    Leaves,
    LinearGates,
    Pooling,
    Term,
)

# With fewer nonzeros a row than this part of its codes, only those models are scored.
_DENSE = 0.5


def scores_of(term: Term, X: Matrix, *, ranks: bool = False) -> Floats:
    """Score of every scorer, (n, s).

    Parameters
    ----------
    term : Term
    X : {ndarray, csr} of shape (n, d)
        Rows as the term sees them: its columns, centred and scaled.
    ranks : bool, default=False
        Whether any numbers will do that are in the order of the scores, row by row.
    """
    bias = term.bias
    match term.coder:
        case Pooling(q) if term.coef is not None:
            ranks = ranks and not bias.any()
            scores = pooled_scores(X, term.coef, term.intercept, q, rooted=not ranks)
        case ConstantCode(codes) if term.coef is not None and len(term.coef) == 1:
            if term.intercept.any():
                bias = (
                    bias + np.asarray(codes.multiply(term.intercept).sum(axis=1)).ravel()
                )
            return shared_code_scores(X, term.coef[0].T, codes, bias)
        case LinearGates(coef, intercept, "one_hot") if (
            term.coef is not None and term.root is None
        ):
            scores = regional_scores(X, coef, intercept, term.coef, term.intercept)
        case Leaves() as coder if term.coef is None:
            scores = leaf_scores(coder, in_metric(X, term.root), term.intercept)
        case CodesByScorer(parts):
            scores = _scores_by_scorer(parts, term, X)
        case coder:
            codes = in_best_form(codes_by(coder, in_metric(X, term.root)), X)
            scores = coded_scores(X, codes, term.coef, term.intercept)
    return scores + bias if bias.any() else scores


def codes_of(term: Term, X: Matrix) -> Any:
    """Codes behind the scores: CSR (n, m) where the scorers share them,
    else dense (n, s, m).
    """
    if isinstance(term.coder, Pooling) and term.coef is not None:
        return pooling_codes(X, term.coef, term.intercept, term.coder.q)
    codes = codes_by(term.coder, in_metric(X, term.root))
    return codes if codes.ndim == 3 else csr_matrix(codes, dtype=X.dtype)


def in_metric(X: Matrix, root: Floats | None) -> Any:
    """Return the rows ``root x``: sparse ones stay sparse.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    root : ndarray of shape (d,) or (d, d), or None
        Square root of a metric, by its diagonal or whole and symmetric, of the type of X;
        None for the plain one.
    """
    if root is None:
        return X
    if root.ndim == 2:
        return X @ root
    if not is_sparse(X):
        return X * root
    changed = X.copy()
    changed.data *= root[X.indices]
    return changed


def in_best_form(codes: Any, X: Matrix) -> Any:
    """Return codes of the rows X in the form that is scored faster, and in their type."""
    if is_sparse(codes) and codes.nnz > _DENSE * np.prod(codes.shape, dtype=float):
        codes = codes.toarray()
    return codes.astype(X.dtype, copy=False)


@singledispatch
def codes_by(coder: Any, X: Matrix) -> Any:
    """Write the codes of rows as the coder sees them:
    (n, m), CSR or dense, or dense (n, s, m).
    """
    raise TypeError(
        f"No loop writes the codes of {type(coder).__name__}; register one with codes_by.register."
    )


@codes_by.register
def _(coder: ConstantCode, X: Matrix) -> Floats:
    codes = coder.codes.toarray() if is_sparse(coder.codes) else coder.codes
    return np.broadcast_to(codes, (X.shape[0], *codes.shape))


@codes_by.register
def _(coder: LinearGates, X: Matrix) -> Any:
    if coder.into == "one_hot":
        return one_hot(
            regions_of(X, coder.coef, coder.intercept), len(coder.coef), X.dtype
        )
    outputs = X @ coder.coef.T
    if coder.intercept.any():
        outputs += coder.intercept
    if coder.into == "softmax":
        return softmax(outputs, axis=1)
    if coder.into == "l1":
        return _divided(outputs, np.abs(outputs).sum(axis=1, keepdims=True))
    # Divide by the largest first: squares may be too large, or vanish.
    outputs = _divided(outputs, np.abs(outputs).max(axis=1, keepdims=True))
    return _divided(outputs, np.linalg.norm(outputs, axis=1, keepdims=True))


@codes_by.register
def _(coder: Leaves, X: Matrix) -> csr_matrix:
    return leaf_codes(coder, X)


@codes_by.register
def _(coder: CodesByScorer, X: Matrix) -> Floats:
    return _stacked([codes_by(part, X) for part in coder.parts]).astype(
        X.dtype, copy=False
    )


def one_hot(places: NDArray[np.intp], m: int, dtype: DTypeLike) -> csr_matrix:
    """Return codes (n, m) with a one at each row's place."""
    n = len(places)
    parts = np.ones(n, dtype), places.astype(np.int32), np.arange(n + 1, dtype=np.int32)
    return csr_matrix(parts, shape=(n, m))


def _scores_by_scorer(parts: tuple[Coder, ...], term: Term, X: Matrix) -> Floats:
    """Scores without the bias: of dense codes all at once, else scorer by scorer."""
    seen = in_metric(X, term.root)
    codes = [in_best_form(codes_by(part, seen), X) for part in parts]
    if not any(map(is_sparse, codes)):
        return coded_scores(X, _stacked(codes), term.coef, term.intercept)
    coefs = [None if term.coef is None else term.coef[[k]] for k in range(len(codes))]
    intercepts = (term.intercept[[k]] for k in range(len(codes)))
    return np.hstack(
        [
            coded_scores(X, *models)
            for models in zip(codes, coefs, intercepts, strict=True)
        ]
    )


def _stacked(codes: list[Any]) -> Floats:
    """Return codes of scorers side by side, (n, s, m); each scorer's are contiguous."""
    dense = [part.toarray() if is_sparse(part) else part for part in codes]
    return np.stack(dense).transpose(1, 0, 2)


def _divided(codes: Floats, lengths: Floats) -> Floats:
    """Divide the codes of each row, in place, but those of rows of zeros."""
    codes /= np.where(lengths == 0, 1, lengths)
    return codes
