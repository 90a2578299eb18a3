"""How much the local models of a classifier weigh each feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.portable import Description, Leaves, Term, describe

Floats = NDArray[np.float64]


def feature_weights(model: Any) -> Floats:
    """Return each feature's share of the local models' weights.

    It needs no rows. So it serves as `importance_getter` of scikit-learn's `RFE` and
    `SelectFromModel`. How much columns add to the scores of given rows is another question:
    `feature_importances`.

    Parameters
    ----------
    model : classifier or Pipeline
        Fitted: a classifier, alone or behind a `StandardScaler`.

    Returns
    -------
    weights : ndarray of shape (n_features,)
        Mean absolute coefficients, in the units that the model learned in, as shares that sum to
        1. Of trees alone it is the share of their questions. Zeros where no feature counts.

    Raises
    ------
    ValueError
        If the model has no description in words, as `SVMKNNClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.feature_selection import RFE
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import feature_weights
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> chosen = RFE(ML3Classifier(random_state=0), n_features_to_select=5, step=0.5,
    ...              importance_getter=feature_weights).fit(X, y)
    >>> int(chosen.support_.sum())
    5
    """
    return weights_of(describe(model))


def weights_of(description: Description) -> Floats:
    """Return the share of the weights, or of the questions that trees ask, (n_features,)."""
    linear = [term for term in description.terms if term.coef is not None]
    sums = np.zeros(description.n_features)
    for term in linear or description.terms:
        sums += _of_term(term, description.n_features)
    total = sums.sum()
    return sums / total if total else sums


def _of_term(term: Term, n_features: int) -> Any:
    """Return how much a term's models weigh each feature as it is given."""
    columns = np.arange(n_features) if term.columns is None else np.asarray(term.columns)
    if term.coef is None:
        asked: Any = term.coder.feature if isinstance(term.coder, Leaves) else []
        return np.bincount(columns[asked], minlength=n_features).astype(np.float64)
    weights = abs(term.factor) * np.abs(np.asarray(term.coef, np.float64)).mean(
        axis=(0, 1)
    )
    own = weights[: len(columns)]
    if term.pieces is not None:
        own = own + np.bincount(
            np.asarray(term.pieces.feature),
            weights[len(columns) :],
            minlength=len(columns),
        )
    return np.bincount(columns, own, minlength=n_features)
