"""Explanations in the columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from loclin.tables.encoder import TableEncoder
from loclin.tables.kinds import frame_of, pandas

if TYPE_CHECKING:
    from pandas import DataFrame


def contributions(model: Pipeline, X: Any) -> DataFrame:
    """Explain scores in the table's own columns.

    A row's score is that of the mean training row at the row's own linear model, in the column
    "reference", plus what each column adds for being other than in that mean row.

    Parameters
    ----------
    model : Pipeline
        Fitted: a `TableEncoder`, and a classifier of loclin.
    X : DataFrame of shape (n_samples, n_columns)
        A few rows.

    Returns
    -------
    added : DataFrame
        One row for each row of X; of more than two classes, one for each row and class. The
        columns are those of the table that were learned from, and "reference". They sum to
        `decision_function`: of two classes, positive numbers speak for the second.

    Raises
    ------
    TypeError
        If the pipeline is of other steps.
    """
    pd = pandas()
    steps = [step for _, step in model.steps if step not in (None, "passthrough")]
    is_ours = len(steps) == 2 and isinstance(steps[0], TableEncoder)
    if not (is_ours and hasattr(steps[1], "local_model")):
        raise TypeError(
            "contributions explains a pipeline of a TableEncoder and a classifier of loclin, such "
            "as make_pipeline(TableEncoder(), ML3Classifier())."
        )
    encoder, classifier = steps
    frame = frame_of(X)
    features = encoder.transform(frame)
    coef, constant = classifier.local_model(features)
    names = list(dict.fromkeys(encoder.origins_))
    groups = np.array([[origin == name for name in names] for origin in encoder.origins_])
    by_class = coef[:, None, :] if coef.ndim == 2 else coef
    away = (features - encoder.means_)[:, None, :] * by_class
    at_reference = (
        np.asarray(constant).reshape(len(features), -1) + by_class @ encoder.means_
    )
    added = np.concatenate([away @ groups, at_reference[:, :, None]], axis=2)
    flat = added.reshape(-1, len(names) + 1)
    index: Any = frame.index
    if coef.ndim == 3:
        index = pd.MultiIndex.from_product([frame.index, classifier.classes_])
    return pd.DataFrame(flat, index=index, columns=[*names, "reference"])
