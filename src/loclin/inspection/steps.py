"""A model's steps: those that are explained in columns, and the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from loclin.inspection.columns import Columns, PlainColumns, WordColumns, texts_of
from loclin.inspection.mixing import Behind, is_linear
from loclin.inspection.table_columns import TableColumns
from loclin.inspection.tracing import Trace
from loclin.portable.describing import steps_of
from loclin.tables import TableEncoder


def columns_of(model: Any, X: Any) -> tuple[Columns, Any]:
    """Return the columns that a model's features come from, and its classifier.

    Linear steps that mix columns, such as a `PCA`, are a part of the classifier that is returned.

    Raises
    ------
    TypeError
        If the model has other steps, or no local models.
    ValueError
        If X is no table of rows.
    """
    *before, classifier = steps_of(model)
    if not hasattr(classifier, "local_model"):
        raise TypeError(
            f"{type(classifier).__name__} has no method local_model: pass a classifier that has, "
            "or a pipeline that ends in one; of a search, its best_estimator_."
        )
    check_is_fitted(classifier)
    first = [*before, classifier][0]
    if isinstance(first, CountVectorizer):  # and TfidfVectorizer
        texts_of(X)
        own, mixing, trace = _traced(before[1:], len(first.get_feature_names_out()))
        behind = _behind(mixing, classifier)
        return WordColumns(first, own, trace, behind), behind
    own, mixing, trace = _traced(before, int(getattr(first, "n_features_in_", 0)))
    behind = _behind(mixing, classifier)
    if np.ndim(X) != 2:
        raise ValueError("X must have rows and columns: pass X[:1], not X[0].")
    is_table = isinstance(first, TableEncoder | ColumnTransformer)
    if own and (is_table or not np.isfinite(trace.slopes).all()):
        return TableColumns(own, trace, behind, X), behind
    return PlainColumns(own, trace, behind, X), behind


def _traced(steps: list[Any], n_columns: int) -> tuple[list[Any], list[Any], Trace]:
    """Return the steps that make features of one column each, the others, and the trace."""
    trace = Trace.of_columns(n_columns)
    for k, step in enumerate(steps):
        further = trace.through(step)
        if further is None:
            return steps[:k], steps[k:], trace
        trace = further
    return steps, [], trace


def _behind(mixing: list[Any], classifier: Any) -> Any:
    for step in mixing:
        if not is_linear(step):
            raise _strange(step)
    return Behind(mixing, classifier) if mixing else classifier


def _strange(step: Any) -> TypeError:
    name = f"The step {type(step).__name__}"
    if isinstance(step, ColumnTransformer):
        name = f"A step inside the {type(step).__name__}"
    return TypeError(
        f"{name} cannot be explained in the columns in front of it. Steps may be encoders and "
        "scalers of single columns, a ColumnTransformer of these, a TfidfVectorizer, and linear "
        "projections such as PCA. Or transform the rows first, and pass the classifier alone."
    )
