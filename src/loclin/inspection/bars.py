"""What each column adds to a score, as a picture and as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loclin.inspection.drawing import Row, draw, height_of, limits_of
from loclin.inspection.parts import pair_of, parts_of
from loclin.inspection.steps import columns_of
from loclin.inspection.text import free_name, required

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_DRAWN = 6  # rows in one picture
_ABREAST = 3
_WIDTH = 5.2  # inches of one row's picture


class LocalModelDisplay:
    """What each column adds to the score of a row.

    A score is that of one class against another. One linear model makes it at each row, so it is
    a sum, exactly:

        score = the row's model at the reference + contributions of the columns

    where a contribution is ``coefficient * (value - reference value)``. Of a feature with pieces
    it is the change of its bent line, from the reference value to the value. Columns that are
    several features, such as the categories of a table, are added up.

    Use `from_estimator` to make one.

    Parameters
    ----------
    contributions : array-like of shape (n_rows, n_columns)
    base : array-like of shape (n_rows,)
        What the row's own linear model says of the reference. It is no average of predictions.
    scores : array-like of shape (n_rows,)
        Scores of one class against the other.
    values : array-like of shape (n_rows, n_columns)
        Values of the columns, in their own units. They are shown as text.
    columns : sequence of str
        Names of the columns.
    classes : array-like of shape (n_rows,)
        The class that positive numbers speak for.
    against : array-like of shape (n_rows,)
        The class that negative numbers speak for.
    rows : sequence, default=None
        Names of the rows; None counts them from 0.
    predicted : array-like of shape (n_rows,), default=None
        The classes that the model predicts.
    reference : str, default="the reference"
        What rows are compared with, in words.
    reference_values : sequence, default=None
        Values of the reference, one for each column.

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of Axes
        An array where there are several rows.
    figure_ : matplotlib Figure
    bars_ : list of BarContainer
        One for each row. Its last bar is the row's model at the reference. The widths of a row's
        bars sum to its score.
    text_ : list of lists of Text
        The numbers beside the bars.

    Notes
    -----
    Contributions are parts of this score. They are not causes. They do not tell what happens if
    a value changes either: another linear model may act there.

    Another reference gives other contributions, and another order of columns. The sum stays.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import LocalModelDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), ML3Classifier(random_state=0)).fit(X, y)
    >>> display = LocalModelDisplay.from_estimator(model, X[:1])
    >>> display.reference, int(display.classes[0]), int(display.against[0])
    ('the mean training row', 0, 1)
    >>> bool(abs(display.contributions.sum() + display.base - display.scores).max() < 1e-9)
    True
    """

    ax_: Any
    figure_: Any
    bars_: list[Any]
    text_: list[list[Any]]

    def __init__(
        self,
        contributions: ArrayLike,
        base: ArrayLike,
        scores: ArrayLike,
        *,
        values: ArrayLike,
        columns: Sequence[str],
        classes: ArrayLike,
        against: ArrayLike,
        rows: Sequence[Any] | None = None,
        predicted: ArrayLike | None = None,
        reference: str = "the reference",
        reference_values: Sequence[Any] | None = None,
    ) -> None:
        self.contributions = np.asarray(contributions, np.float64)
        self.base = np.asarray(base, np.float64)
        self.scores = np.asarray(scores, np.float64)
        self.values = np.asarray(values)
        self.columns = list(columns)
        self.classes = np.asarray(classes)
        self.against = np.asarray(against)
        self.rows = list(range(len(self.base)) if rows is None else rows)
        self.predicted = None if predicted is None else np.asarray(predicted)
        self.reference = reference
        self.reference_values = (
            None if reference_values is None else list(reference_values)
        )

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        reference: Any = None,
        classes: tuple[Any, Any] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Explain the scores of rows. Nothing is drawn yet.

        Parameters
        ----------
        model : classifier or Pipeline
            Fitted: a classifier of loclin that has `local_model`. In a pipeline may stand before
            it: steps that make features of single columns (a `TableEncoder`, scalers,
            `SimpleImputer`, `OneHotEncoder`, `OrdinalEncoder`, `QuantileTransformer`,
            selections of features), a `ColumnTransformer` of such, and then linear projections
            (`PCA`, `TruncatedSVD`, `FastICA`, random projections). Behind a `TfidfVectorizer`
            or `CountVectorizer`, words are the columns.
        X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_columns)
            A few rows, as the model takes them.
        reference : row, array-like, DataFrame or None, default=None
            What rows are compared with: a row, or rows whose mean is taken. None is the mean
            training row, if an encoder, a scaler or the classifier has kept it; of sparse rows
            zeros, and of texts a text without words.
        classes : tuple of two labels, default=None
            The class to speak for, and the one against. None takes the class with the largest
            score and the second.
        feature_names : sequence of str, default=None
            Names to show for the columns.

        Returns
        -------
        display : LocalModelDisplay

        Raises
        ------
        TypeError
            If the model has other steps, or no `local_model`.
        ValueError
            If there is no reference, or no class of that label.
        """
        columns, classifier = columns_of(model, X)
        compared = columns.reference(reference)
        parts = parts_of(columns, classifier, compared, X)
        if not len(parts.scores):
            raise ValueError("There are no rows to explain.")
        names = columns.names if feature_names is None else list(feature_names)
        if len(names) != len(columns.names):
            raise ValueError(
                f"feature_names has {len(names)} names for {len(columns.names)} columns."
            )
        known = np.asarray(classifier.classes_)
        first, second = won, _ = parts.winners()
        if classes is not None:
            pair = pair_of(classes, known)
            first, second = (np.full(len(won), place) for place in pair)
        chosen = parts.between(first, second)
        return cls(
            *chosen,
            values=columns.values(X),
            columns=names,
            classes=known[first],
            against=known[second],
            rows=list(X.index) if hasattr(X, "iloc") else None,
            predicted=known[won],
            reference=compared.name,
            reference_values=compared.values,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        max_columns: int = 12,
        bar_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw the contributions of each row as bars, the largest on top.

        Parameters
        ----------
        ax : matplotlib Axes or array of Axes, default=None
            Axes to draw on, one for each row. None makes a figure.
        max_columns : int, default=12
            Maximum number of columns with bars of their own. All others are added up in one bar.
        bar_kw : dict, default=None
            Keywords of `matplotlib.axes.Axes.barh`, such as ``{"color": "gray"}``.

        Returns
        -------
        display : LocalModelDisplay
            Itself, with `ax_`, `figure_`, `bars_` and `text_`.
        """
        rows = self._few_rows()
        axes = np.asarray(self._new_axes(rows, max_columns) if ax is None else ax)
        if axes.size != len(rows):
            raise ValueError(f"ax has {axes.size} axes for {len(rows)} rows.")
        drawn = [
            draw(one, row, max_columns, bar_kw or {})
            for one, row in zip(axes.ravel(), rows, strict=True)
        ]
        limits = limits_of(rows, max_columns)
        for one in axes.ravel():
            one.set_xlim(limits)
        self.ax_ = axes.item() if len(rows) == 1 else axes
        self.figure_ = axes.flat[0].figure
        self.bars_ = [bars for bars, _ in drawn]
        self.text_ = [texts for _, texts in drawn]
        return self

    def frame(self) -> DataFrame:
        """Return the numbers as a data frame.

        Returns
        -------
        frame : DataFrame
            A line for each row and column, and one for the row's model at the reference, whose
            column is called "reference": "row", "class", "against", "column", "value" and
            "contribution". The contributions of a row sum to its score.
        """
        pd = required("pandas", '"loclin[tables]"')
        n_rows, n_columns = len(self.base), len(self.columns) + 1
        nothing = np.full((n_rows, 1), None, object)
        values = np.hstack([self.values.astype(object), nothing])
        base = free_name("reference", self.columns)
        return pd.DataFrame(
            {
                "row": [name for name in self.rows for _ in range(n_columns)],
                "class": np.repeat(self.classes, n_columns),
                "against": np.repeat(self.against, n_columns),
                "column": [*self.columns, base] * n_rows,
                "value": values.ravel(),
                "contribution": np.column_stack([self.contributions, self.base]).ravel(),
            }
        )

    def to_shap(self) -> Any:
        """Return the numbers for the plots of the package shap.

        These are not Shapley values, and the base is not the expected value that plots of shap
        call it: it is the row's own model at the reference, and differs from row to row. So
        `shap.plots.decision`, which takes one base, is for one row.

        Returns
        -------
        explanation : shap.Explanation
        """
        return required("shap", "shap").Explanation(
            values=self.contributions,
            base_values=self.base,
            data=self.values,
            feature_names=self.columns,
        )

    def _row(self, k: int) -> Row:
        return Row(
            str(self.rows[k]),
            "" if self.predicted is None else str(self.predicted[k]),
            str(self.classes[k]),
            str(self.against[k]),
            self.reference,
            [str(name) for name in self.columns],
            list(self.values[k]),
            self.contributions[k],
            float(self.base[k]),
            float(self.scores[k]),
        )

    def _few_rows(self) -> list[Row]:
        """Return the rows, if one picture holds them."""
        if len(self.base) > _MOST_DRAWN:
            raise ValueError(
                f"One picture holds {_MOST_DRAWN} rows, not {len(self.base)}. Pass fewer."
            )
        return [self._row(k) for k in range(len(self.base))]

    def _new_axes(self, rows: list[Row], max_columns: int) -> NDArray[Any]:
        """Return axes of a new figure, one for each row."""
        pyplot = required("matplotlib.pyplot", '"loclin[plot]"')
        down = -(-len(rows) // _ABREAST)
        across = -(-len(rows) // down)
        height = max(height_of(row, max_columns) for row in rows)
        figure, axes = pyplot.subplots(
            down, across, figsize=(_WIDTH * across, height * down), squeeze=False,
            layout="constrained",
        )  # fmt: skip
        for spare in axes.ravel()[len(rows) :]:
            figure.delaxes(spare)
        return np.array(axes.ravel()[: len(rows)])
