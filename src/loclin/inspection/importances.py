"""How much columns add to scores, over many rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from loclin.fitting.checks import check_option
from loclin.inspection.parts import parts_of
from loclin.inspection.ruling import Rulers, part
from loclin.inspection.steps import columns_of
from loclin.inspection.text import required

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_NUMBERS = 2**22  # coefficients that are held at once


def feature_importances(
    model: Any, X: Any, *, reference: Any = None, by: str | None = None
) -> Series | DataFrame:
    """Return the mean absolute contribution of each column.

    Contributions are those of `LocalModelDisplay`: what a column adds to the score of the class
    that is decided for, against the second. Their sizes depend on the reference and on the rows.

    Parameters
    ----------
    model : classifier or Pipeline
        As in `LocalModelDisplay.from_estimator`.
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_columns)
        Rows to take the mean over. They are looked at part by part.
    reference : row, array-like, DataFrame or None, default=None
        As in `LocalModelDisplay.from_estimator`.
    by : {None, "class", "model"}, default=None
        "class" takes a mean for each class, over the rows for which it is decided; "model" one
        for each local model, over the rows where it counts most, as in `ModelUsageDisplay`.

    Returns
    -------
    importances : Series or DataFrame
        One number for each column. With ``by="class"`` one line for each class, NaN where no row
        is decided so; with ``by="model"`` one for each local model that counts most anywhere.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import feature_importances
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = ML3Classifier(random_state=0).fit(X, y)
    >>> sorted(feature_importances(model, X, reference=X).nlargest(2).index)
    ['petal length (cm)', 'petal width (cm)']
    >>> feature_importances(model, X, reference=X, by="class").shape
    (3, 4)
    """
    if by is not None:
        check_option("by", by, {"class", "model"})
    pd = required("pandas", '"loclin[tables]"')
    columns, classifier = columns_of(model, X)
    compared = columns.reference(reference)
    rulers = Rulers(classifier) if by == "model" else None
    sums: dict[int, Any] = {}
    counts: Counter[int] = Counter()
    step = max(1, _NUMBERS // (len(classifier.classes_) * len(compared.features)))
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    for start in range(0, n_rows, step):
        rows = part(X, start, step)
        parts = parts_of(columns, classifier, compared, rows)
        first, second = parts.winners()
        sizes = abs(parts.between(first, second).added)
        groups = first if rulers is None else rulers.of(columns.features(rows), first)
        for group in np.unique(groups).tolist():
            sums[group] = sums.get(group, 0.0) + sizes[groups == group].sum(axis=0)
        counts.update(groups.tolist())
    if not n_rows:
        raise ValueError("There are no rows to take a mean over.")
    if by is None:
        total = sum(sums.values()) / n_rows
        return pd.Series(total, index=columns.names, name="importance")
    if rulers is None:
        names = dict(enumerate(np.asarray(classifier.classes_)))
    else:
        names = rulers.names(list(counts))
    nothing = np.full(len(columns.names), np.nan)
    means = [sums[k] / counts[k] if counts[k] else nothing for k in names]
    return pd.DataFrame(
        means, index=pd.Index(names.values(), name=by), columns=columns.names
    )
