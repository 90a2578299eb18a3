"""The two exact answers and the parts of scores, in the columns that a person knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.inspection.columns import Columns
from loclin.inspection.parts import parts_of
from loclin.inspection.steps import columns_of
from loclin.inspection.text import free_name, required
from loclin.inspection.tracing import dense
from loclin.portable.reader import of_both_classes

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]


class LocalModels(NamedTuple):
    """The linear models that make scores: ``intercept + (coef * values).sum(axis=-1)``.

    With an axis of classes, values are ``values[:, None]`` there.

    Parameters
    ----------
    coef : ndarray of shape (n_rows, n_columns) or (n_rows, n_classes, n_columns)
        Of a number: what a unit of its column adds to the score of this row's model. Of any other
        cell, such as a category or a gap: what the cell adds.
    intercept : ndarray of shape (n_rows,) or (n_rows, n_classes)
    values : ndarray of shape (n_rows, n_columns)
        Numbers as they are. Any other cell counts as 1.
    columns : list of str
        Names of the columns.
    """

    coef: Floats
    intercept: Floats
    values: Floats
    columns: list[str]


def local_model(model: Any, X: Any, *, by_class: bool = False) -> LocalModels:
    """Return the linear model that makes each row's score, in columns and units as given.

    The same as the method `local_model` of classifiers, through the steps of a pipeline: encoders
    and scalers of single columns, and linear projections. The columns of 0 and 1 of a category
    become one.

    Parameters
    ----------
    model : classifier or Pipeline
        As in `LocalModelDisplay.from_estimator`.
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_columns)
        A few rows, as the model takes them.
    by_class : bool, default=False
        Whether two classes have a model each, as several have: half of the decision for the
        second, the opposite for the first.

    Returns
    -------
    models : LocalModels

    Raises
    ------
    TypeError
        If the pipeline has a step that cannot be explained in the columns in front of it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import local_model
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), ML3Classifier(random_state=0)).fit(X, y)
    >>> found = local_model(model, X[:5])
    >>> scores = found.intercept + (found.coef * found.values[:, None]).sum(axis=-1)
    >>> bool(abs(scores - model.decision_function(X[:5])).max() < 1e-9)
    True
    """
    columns, classifier = columns_of(model, X)
    features = columns.features(X)
    models = classifier.local_model(features)
    coef, constant = (np.asarray(part, np.float64) for part in models)
    if coef.ndim == 2:
        coef, constant = coef[:, None], constant[:, None]
    values, is_number = _numbers_of(columns, X)
    added = columns.by_column(coef * dense(features)[:, None].astype(np.float64))
    slopes = _slopes_by_column(columns, coef)
    own = np.where(is_number[:, None], slopes, added)
    # what a number's features add beyond its slope times its value, such as a scaler's centre
    rest = np.where(is_number[:, None], added - slopes * values[:, None], 0.0)
    return LocalModels(
        _per_class(own, by_class),
        _per_class(constant + rest.sum(axis=-1), by_class),
        values,
        columns.names,
    )


def local_gradient(model: Any, X: Any, *, by_class: bool = False) -> Floats:
    """Return what a small change of each column does to the scores, in units as given.

    The same as the method `local_gradient` of classifiers, through the steps of a pipeline. NaN
    stands where a cell is no number or where a step bends the column, such as a
    `QuantileTransformer`: there `EffectDisplay` tells what other values do.

    Parameters
    ----------
    model : classifier or Pipeline
        As in `LocalModelDisplay.from_estimator`.
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_columns)
        A few rows, as the model takes them.
    by_class : bool, default=False
        Whether two classes have a derivative each: half of the decision's for the second, the
        opposite for the first.

    Returns
    -------
    slopes : ndarray of shape (n_rows, n_columns) or (n_rows, n_classes, n_columns)

    Raises
    ------
    TypeError
        If the pipeline has a step that cannot be explained in the columns in front of it.
    ValueError
        If the classifier's codes have no derivative in closed form.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from loclin import SAPLClassifier
    >>> from loclin.inspection import local_gradient
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), SAPLClassifier(random_state=0)).fit(X, y)
    >>> slopes = local_gradient(model, X[:1])[0, :, 2]
    >>> further = X[:1] + [0, 0, 1e-6, 0]
    >>> change = model.decision_function(further)[0] - model.decision_function(X[:1])[0]
    >>> bool(abs(change - 1e-6 * slopes).max() < 1e-9)
    True
    """
    columns, classifier = columns_of(model, X)
    slopes = np.asarray(classifier.local_gradient(columns.features(X)), np.float64)
    slopes = slopes[:, None] if slopes.ndim == 2 else slopes
    _, is_number = _numbers_of(columns, X)
    found = _slopes_by_column(columns, slopes)
    return _per_class(np.where(is_number[:, None], found, np.nan), by_class)


def contributions(model: Any, X: Any, *, reference: Any = None) -> DataFrame:
    """Return what each column adds to scores because it differs from a reference.

    A row's score is a sum. The column "reference" is the score of a reference by the row's own
    linear model; the others are what each column adds. A forest's score is in the reference
    alone, because its local models are constants. `LocalModelDisplay` draws the same.

    Parameters
    ----------
    model : classifier or Pipeline
        As in `LocalModelDisplay.from_estimator`.
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_columns)
        A few rows, as the model takes them.
    reference : row, array-like, DataFrame or None, default=None
        As in `LocalModelDisplay.from_estimator`.

    Returns
    -------
    added : DataFrame
        One line for each row; with more than two classes, one for each row and class. The
        columns are those that were learned from, and "reference". They sum to
        `decision_function`; with two classes, positive numbers speak for the second.

    Raises
    ------
    TypeError
        If the pipeline has a step that cannot be explained in the columns in front of it.
    ValueError
        If there is no reference.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import contributions
    >>> from loclin.tables import TableEncoder
    >>> table = pd.DataFrame({"age": [31, 45, 23, 52] * 10, "plan": ["basic", "gold"] * 20})
    >>> model = make_pipeline(TableEncoder(), ML3Classifier(random_state=0))
    >>> model = model.fit(table, ["no", "yes", "no", "yes"] * 10)
    >>> contributions(model, table[:1], reference=table[:1]).iloc[0, :2].tolist()
    [0.0, 0.0]
    """
    pd = required("pandas", '"loclin[tables]"')
    columns, classifier = columns_of(model, X)
    parts = parts_of(columns, classifier, columns.reference(reference), X)
    added = np.concatenate([parts.added, parts.base[..., None]], axis=2)
    names = [*columns.names, free_name("reference", columns.names)]
    index = X.index if hasattr(X, "iloc") else pd.RangeIndex(len(added))
    if added.shape[1] > 1:
        index = pd.MultiIndex.from_product([index, classifier.classes_])
    by_row = added.reshape(-1, added.shape[2])
    return pd.DataFrame(by_row, index=index, columns=names)


def _slopes_by_column(columns: Columns, by_feature: Floats) -> Floats:
    """Return slopes by a unit of each column; any number where there is none."""
    return columns.by_column(by_feature * np.nan_to_num(columns.trace.slopes))


def _numbers_of(columns: Columns, X: Any) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the values of rows, 1 for what is no number, and which are numbers."""
    cells = columns.values(X)
    values = np.ones(cells.shape)
    is_number = np.zeros(cells.shape, bool)
    for k in range(len(columns.names)):
        if columns.is_linear(k):
            numbers = columns.numbers(k, cells[:, k])
            is_number[:, k] = np.isfinite(numbers)
            values[:, k] = np.where(is_number[:, k], numbers, 1.0)
    return values, is_number


def _per_class(found: Floats, by_class: bool) -> Floats:
    """Return what one scorer says, of both classes if so asked."""
    if found.shape[1] > 1:
        return found
    return of_both_classes(found[:, 0]) if by_class else found[:, 0]
