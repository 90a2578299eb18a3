"""Explanations in the columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from loclin.tables.cells import frame_of, pandas
from loclin.tables.encoder import TableEncoder

if TYPE_CHECKING:
    from pandas import DataFrame

# What may stand between: a feature of theirs is one feature before them, times a number, plus one.
_LINEAR = MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler, SelectorMixin


def contributions(model: Pipeline, X: Any, *, reference: Any = None) -> DataFrame:
    """Explain scores in the table's own columns.

    A row's score is a sum. The column "reference" is the score of a reference by the row's own
    linear model; the others are what each column adds because it differs from the reference. A
    forest's score is in the reference alone, because its local models are constants.

    Parameters
    ----------
    model : Pipeline
        Fitted: a `TableEncoder`, and a classifier of loclin. Scalers of scikit-learn that are
        linear, such as `StandardScaler`, and selections of features may stand between.
    X : DataFrame of shape (n_samples, n_columns)
        A few rows.
    reference : DataFrame or None, default=None
        What rows are compared with: a row, or the mean features of several rows. None is the mean
        training row.

    Returns
    -------
    added : DataFrame
        One row for each row of X; with more than two classes, one for each row and class. The
        columns are those of the table that were learned from, and "reference". They sum to
        `decision_function`; with two classes, positive numbers speak for the second.

    Raises
    ------
    TypeError
        If the pipeline has other steps.
    ValueError
        If the reference has no rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from loclin import ML3Classifier
    >>> from loclin.tables import TableEncoder, contributions
    >>> table = pd.DataFrame({"age": [31, 45, 23, 52] * 10, "plan": ["basic", "gold"] * 20})
    >>> model = make_pipeline(TableEncoder(), ML3Classifier(random_state=0))
    >>> model = model.fit(table, ["no", "yes", "no", "yes"] * 10)
    >>> contributions(model, table[:1], reference=table[:1]).iloc[0, :2].tolist()
    [0.0, 0.0]
    """
    pd = pandas()
    encoder, between, classifier = _steps(model)
    frame = frame_of(X)
    means = encoder.means_
    if reference is not None:
        others = frame_of(reference)
        if not len(others):
            raise ValueError("reference has no rows; give one row or more, or None.")
        means = np.asarray(encoder.transform(others), np.float64).mean(axis=0)
    features: Any = encoder.transform(frame)
    at: Any = means[None, :]
    if isinstance(features, pd.DataFrame):
        at = pd.DataFrame(at, columns=features.columns)
    origins = np.array(encoder.origins_, dtype=object)
    for step in between:
        features, at = step.transform(features), step.transform(at)
        if isinstance(step, SelectorMixin):
            origins = origins[step.get_support()]
    coef, constant = classifier.local_model(features)
    added, names = _added(coef, constant, features, at, origins)
    index: Any = frame.index
    if coef.ndim == 3:
        index = pd.MultiIndex.from_product([frame.index, classifier.classes_])
    return pd.DataFrame(added, index=index, columns=[*names, "reference"])


def _steps(model: Pipeline) -> tuple[TableEncoder, list[Any], Any]:
    """Return the encoder, what stands between, and the classifier."""
    steps = [step for _, step in model.steps if step not in (None, "passthrough")]
    is_ours = (
        len(steps) > 1
        and isinstance(steps[0], TableEncoder)
        and all(isinstance(step, _LINEAR) for step in steps[1:-1])
        and not any(getattr(step, "clip", False) for step in steps[1:-1])
        and hasattr(steps[-1], "local_model")
    )
    if not is_ours:
        raise TypeError(
            "contributions explains a pipeline of a TableEncoder and a classifier of loclin, such "
            "as make_pipeline(TableEncoder(), ML3Classifier()); linear scalers, such as "
            "StandardScaler, and selections of features may stand between."
        )
    return steps[0], steps[1:-1], steps[-1]


def _added(
    coef: NDArray[Any],
    constant: NDArray[Any],
    features: Any,
    at: Any,
    origins: NDArray[Any],
) -> tuple[NDArray[np.float64], list[str]]:
    """Return what each column adds, and at the end the score of the reference."""
    rows, reference = np.asarray(features, np.float64), np.asarray(at, np.float64)[0]
    names = list(dict.fromkeys(origins))
    place = {name: k for k, name in enumerate(names)}
    groups = np.zeros((len(origins), len(names)))
    groups[np.arange(len(origins)), [place[origin] for origin in origins]] = 1.0
    by_class = (coef[:, None, :] if coef.ndim == 2 else coef).astype(np.float64)
    away = ((rows - reference)[:, None, :] * by_class) @ groups
    at_reference = np.asarray(constant).reshape(len(rows), -1) + by_class @ reference
    added = np.concatenate([away, at_reference[:, :, None]], axis=2)
    return added.reshape(-1, len(names) + 1), names
