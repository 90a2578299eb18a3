"""Scores along one column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loclin.inspection.colors import FAINT, INK, class_legend, colors_of
from loclin.inspection.curves import Curves, class_pairs, values_along
from loclin.inspection.drawing import class_text
from loclin.inspection.planes import place_of
from loclin.inspection.steps import columns_of
from loclin.inspection.text import printable, required, shortened, value_text

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_ROWS = 100
_LONG = 6  # letters of a value, from which names are slanted

Floats = NDArray[np.float64]


class EffectDisplay:
    """The scores of rows along one column, all others as they are.

    The scores are the model's own, at a fine grid and on both sides of every place where they
    bend or jump: knots of pieces, thresholds of trees, borders of regions. Between these the
    line is straight. Categories and flags are points, one for each value.

    Use `from_estimator` to make one.

    Parameters
    ----------
    values : array-like of shape (n_values,)
        Values of the column: numbers or dates, ascending, or categories.
    scores : array-like of shape (n_rows, n_curves, n_values)
        One curve for each row: the score of a class against another. Or one for each class.
    slopes : array-like of shape (n_rows, n_curves, n_values), default=None
        Derivatives of the scores by the column. None where there are none.
    own : array-like of shape (n_rows,)
        The value that each row has.
    own_scores : array-like of shape (n_rows, n_curves)
        The scores of the rows as they are.
    column : str
        Its name.
    curves : sequence of tuples of two labels
        For each curve the class that speaks for it and the class against, None where it is the
        score of the class alone.
    rows : sequence, default=None
        Names of the rows; None counts them from 0.
    highlight : int, default=0
        The place of the row that is drawn strongly.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of Line2D
        The lines, or the points, row by row and curve by curve.
    own_ : list of Line2D
        The row highlighted as it is: a dot on each of its curves.

    Notes
    -----
    A curve says what the model does, not what would happen: other columns may not stay as they
    are where this one changes.

    With one linear model a class, and pieces, the whole model is a sum of functions of single
    columns. ``CSVMClassifier(1, pieces=16)`` is one. Its curves are the same for all rows, but
    for a constant. Less their mean over the training rows, they are its shape functions::

        display = EffectDisplay.from_estimator(model, X[:1], k, values=X[:, k], classes="each")
        curves = display.scores[0]  # (n_classes, n_values)
        mean = [np.interp(X[:, k], display.values, curve).mean() for curve in curves]
        shapes = curves - np.array(mean)[:, None]

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import EffectDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = ML3Classifier(random_state=0).fit(X, y)
    >>> display = EffectDisplay.from_estimator(model, X[::50], "petal width (cm)")
    >>> display.curves, display.own.tolist()
    ([(0, 1)], [0.2, 1.4, 2.5])
    >>> bool(display.scores[0, 0, 0] > 0 > display.scores[0, 0, -1])
    True
    """

    ax_: Any
    figure_: Any
    lines_: list[Any]
    own_: list[Any]

    def __init__(
        self,
        values: ArrayLike,
        scores: ArrayLike,
        slopes: ArrayLike | None = None,
        *,
        own: ArrayLike,
        own_scores: ArrayLike,
        column: str,
        curves: Sequence[tuple[Any, Any]],
        rows: Sequence[Any] | None = None,
        highlight: int = 0,
    ) -> None:
        self.values = np.asarray(values)
        self.scores = np.asarray(scores, np.float64)
        self.slopes = None if slopes is None else np.asarray(slopes, np.float64)
        self.own = np.asarray(own)
        self.own_scores = np.asarray(own_scores, np.float64)
        self.column = str(column)
        self.curves = list(curves)
        self.rows = list(range(len(self.scores)) if rows is None else rows)
        self.highlight = highlight

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        feature: Any,
        *,
        values: ArrayLike | None = None,
        classes: tuple[Any, Any] | str | None = None,
        grid_resolution: int = 100,
        highlight: int = 0,
    ) -> Self:
        """Move rows along a column. Nothing is drawn yet.

        Parameters
        ----------
        model : classifier or Pipeline
            As in `LocalModelDisplay.from_estimator`.
        X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_columns)
            Up to 100 rows, as the model takes them.
        feature : int or str
            The column, by place or name.
        values : array-like, default=None
            Values that the column takes, such as those of the training rows: of numbers and
            dates their range, of others each. None takes those of X.
        classes : tuple of two labels or "each", default=None
            The class to speak for, and the one against. "each" draws the score of every class,
            of the row highlighted alone. None takes the two classes of largest score at the row
            highlighted.
        grid_resolution : int, default=100
            Places along a column of numbers, beside those where a score bends.
        highlight : int, default=0
            The place of the row that is drawn strongly.

        Returns
        -------
        display : EffectDisplay

        Raises
        ------
        TypeError
            If the model has other steps, or no `local_model`.
        ValueError
            If there is no such column or class, or the column has one value alone.
        """
        columns, classifier = columns_of(model, X)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if not 0 < n_rows <= _MOST_ROWS:
            raise ValueError(f"One picture holds 1 to {_MOST_ROWS} rows, not {n_rows}.")
        if not 0 <= highlight < n_rows:
            raise ValueError(f"highlight={highlight} must be one of the {n_rows} rows.")
        place = place_of(columns, feature)
        of_rows = columns.values(X)[:, place]
        known = np.asarray(of_rows if values is None else values)
        curves = Curves(columns, classifier, X, place)
        labels = np.asarray(classifier.classes_)
        own_scores = curves.own_scores()
        pairs = class_pairs(classes, labels, own_scores[highlight])
        places, kind = values_along(columns, place, known, of_rows, grid_resolution)
        if kind == "number":
            places = curves.with_kinks(places, pairs)
        rows = list(X.index) if hasattr(X, "iloc") else None
        return cls(
            places,
            curves.scores(places, pairs),
            curves.slopes(places, pairs) if kind == "number" else None,
            own=of_rows,
            own_scores=pairs.between(own_scores),
            column=columns.names[place],
            curves=pairs.named(labels),
            rows=rows,
            highlight=highlight,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        line_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw the curves; a dot stands where the row highlighted is.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a figure.
        line_kw : dict, default=None
            Keywords of `matplotlib.axes.Axes.plot`, for the row highlighted.

        Returns
        -------
        display : EffectDisplay
            Itself, with `ax_`, `figure_`, `lines_` and `own_`.
        """
        if ax is None:
            pyplot = required("matplotlib.pyplot", '"loclin[plot]"')
            _, ax = pyplot.subplots(figsize=(5.6, 3.8), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_, self.own_ = [], []
        ordered = self._is_ordered
        at = self.values if ordered else np.arange(len(self.values))
        several = len(self.curves) > 1
        for row in range(len(self.scores)):
            strong = row == self.highlight
            if several and not strong:
                continue
            for k, score in enumerate(self.scores[row]):
                color = (
                    colors_of([k])[0]
                    if several
                    else colors_of([0])[0]
                    if strong
                    else FAINT
                )
                style = (
                    {"linewidth": 2.2 if strong else 0.8}
                    if ordered
                    else {
                        "linestyle": "none",
                        "marker": "o",
                        "markersize": 7 if strong else 3.5,
                    }
                )
                label = class_text(str(self.curves[k][0])).strip('"') if several else None
                settings = {
                    "color": color,
                    "zorder": 3 if strong else 1,
                    "label": label,
                    **style,
                }
                settings |= (line_kw or {}) if strong else {}
                self.lines_ += ax.plot(at, score, **settings)
                if strong:
                    self.own_ += self._draw_own(ax, row, k, settings["color"])
        self._dress(ax)
        return self

    def frame(self) -> DataFrame:
        """Return the numbers as a data frame.

        Returns
        -------
        frame : DataFrame
            A line for each row, curve and value: "row", "class", "against", "value", "score" and
            "slope", what a small change of the value does to the score. The slope is NaN where
            there is none.
        """
        pd = required("pandas", '"loclin[tables]"')
        n_rows, n_curves, n_values = self.scores.shape
        first, second = zip(*self.curves, strict=True)
        each = n_curves * n_values
        slopes = (
            np.full(self.scores.shape, np.nan) if self.slopes is None else self.slopes
        )
        return pd.DataFrame(
            {
                "row": [name for name in self.rows for _ in range(each)],
                "class": [
                    one for _ in self.rows for one in first for _ in range(n_values)
                ],
                "against": [
                    one for _ in self.rows for one in second for _ in range(n_values)
                ],
                "value": np.tile(self.values, n_rows * n_curves),
                "score": self.scores.ravel(),
                "slope": slopes.ravel(),
            }
        )

    @property
    def _is_ordered(self) -> bool:
        return self.values.dtype.kind in "iufM"

    def _draw_own(self, ax: Any, row: int, curve: int, color: Any) -> list[Any]:
        """Draw the row as it is, if its value is among those shown."""
        own = self.own[row]
        if not self._is_ordered:
            same = [
                k
                for k, one in enumerate(self.values)
                if value_text(one) == value_text(own)
            ]
            own = same[0] if same else np.nan
        elif self.values.dtype.kind == "M":
            own = np.datetime64(own, "us")
        drawn = ax.plot(
            [own], [self.own_scores[row, curve]], linestyle="none", marker="o", markersize=10,
            markerfacecolor="white" if self._is_ordered else "none", markeredgecolor=color,
            markeredgewidth=2, zorder=4,
        )  # fmt: skip
        return list(drawn)

    def _dress(self, ax: Any) -> None:
        """Name axes and values."""
        plain = {"parse_math": False}
        ax.axhline(0, color=INK, linewidth=0.8, zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlabel(shortened(printable(self.column), 60), **plain)
        first, second = self.curves[0]
        if len(self.curves) > 1:
            ax.set_ylabel("score of each class")
            class_legend(ax)
        else:
            against = (
                f"score of {class_text(str(first))}\nagainst {class_text(str(second))}"
            )
            ax.set_ylabel(against, **plain)
        if self.values.dtype.kind == "M":
            dates = required("matplotlib.dates", '"loclin[plot]"')
            axis, locator = ax.xaxis, dates.AutoDateLocator(maxticks=8)
            axis.set_major_locator(locator)
            axis.set_major_formatter(dates.ConciseDateFormatter(locator))
        if not self._is_ordered:
            names = [shortened(value_text(one), 20) for one in self.values]
            slanted = (
                {"rotation": 30, "ha": "right"} if max(map(len, names)) > _LONG else {}
            )
            ax.set_xticks(range(len(names)), names, **plain, **slanted)
            ax.margins(x=0.08)
