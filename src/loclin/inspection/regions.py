"""Which class and which local model rule where, over two features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import distance_transform_edt

from loclin.fitting.checks import check_option
from loclin.inspection.borders import borders
from loclin.inspection.colors import INK, class_legend, colors_of, tinted
from loclin.inspection.drawing import class_text
from loclin.inspection.planes import plane_of
from loclin.inspection.ruling import Rulers, decisions_of
from loclin.inspection.steps import columns_of
from loclin.inspection.text import printable, required, shortened

if TYPE_CHECKING:
    from pandas import DataFrame

_TINT = 0.33  # of colours behind points
_STRONG = 0.75  # of the largest scores
_ROOM = 0.06  # around the rows, of their range
_LABELLED = 0.01  # of the picture: a smaller region gets no number
_LEGEND = 10  # classes that a legend names
_LONGEST = 24  # letters of a class in the picture

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class RegionsDisplay:
    """The class that is decided for, and the local model that rules, over two features.

    The model that rules at a point is the one that counts most there, by `local_weights`.
    Borders between models, and between classes, are found between the points of the grid.

    Use `from_estimator` to make one.

    Parameters
    ----------
    x : array-like of shape (w,)
        Places of the grid along the first axis.
    y : array-like of shape (h,)
        Places along the second axis.
    predicted : array-like of int of shape (h, w)
        The class at each point of the grid: a place in `classes`.
    margins : array-like of shape (h, w)
        The score of that class against the second.
    classes : sequence
        Labels.
    models : array-like of int of shape (h, w), default=None
        The number of the model that rules at each point; -1 where none does.
    model_names : dict, default=None
        Names of the models, by number.
    boundary : array-like of shape (n, 2, 2), default=()
        Pieces of the lines between classes: two ends, each with x and y.
    borders : array-like of shape (n, 2, 2), default=()
        Pieces of the lines between models.
    points : array-like of shape (n, 2), default=None
        Rows to draw, on these axes.
    labels : array-like of shape (n,), default=None
        Their classes. Without them no rows are drawn.
    names : sequence of two str, default=("x0", "x1")
        Names of the axes.
    response : {"predict", "regions", "score"}, default="predict"
        What the colours say.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    surface_ : AxesImage
        The colours at the points of the grid.
    boundary_, borders_ : LineCollection
    points_ : list of PathCollection
        One for each class of the rows drawn.
    text_ : list of Text
        The numbers of the models, with ``response="regions"``.

    Notes
    -----
    Two features of many are a cut: other columns stay at the reference. A projection shows the
    rows of its plane. So a row may stand on the colour of another class than it is predicted.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import RegionsDisplay
    >>> X, y = make_moons(300, noise=0.15, random_state=0)
    >>> model = ML3Classifier(random_state=0).fit(X, y)
    >>> display = RegionsDisplay.from_estimator(model, X, y=y, grid_resolution=30)
    >>> display.predicted.shape, display.names
    ((30, 30), ['x0', 'x1'])
    >>> ends = display.boundary.reshape(-1, 2)
    >>> bool(abs(model.decision_function(ends)).max() < 0.1 * display.margins.max())
    True
    """

    ax_: Any
    figure_: Any
    surface_: Any
    boundary_: Any
    borders_: Any
    points_: list[Any]
    text_: list[Any]

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        predicted: ArrayLike,
        margins: ArrayLike,
        *,
        classes: Sequence[Any],
        models: ArrayLike | None = None,
        model_names: Mapping[int, str] | None = None,
        boundary: ArrayLike = (),
        borders: ArrayLike = (),
        points: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        names: Sequence[str] = ("x0", "x1"),
        response: str = "predict",
    ) -> None:
        check_option("response", response, {"predict", "regions", "score"})
        if response == "regions" and models is None:
            raise ValueError('response="regions" needs models that rule.')
        self.x, self.y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        self.predicted = np.asarray(predicted, np.intp)
        self.margins = np.asarray(margins, np.float64)
        self.classes = list(classes)
        self.models = None if models is None else np.asarray(models, np.intp)
        self.model_names = dict(model_names or {})
        self.boundary = np.asarray(boundary, np.float64).reshape(-1, 2, 2)
        self.borders = np.asarray(borders, np.float64).reshape(-1, 2, 2)
        self.points = None if points is None else np.asarray(points, np.float64)
        self.labels = None if labels is None else np.asarray(labels)
        self.names = [str(name) for name in names]
        self.response = response

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        features: Any = (0, 1),
        response: str = "predict",
        grid_resolution: int = 150,
        reference: Any = None,
        y: ArrayLike | None = None,
    ) -> Self:
        """Look at a model over two features. Nothing is drawn yet.

        Parameters
        ----------
        model : classifier or Pipeline
            As in `LocalModelDisplay.from_estimator`.
        X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_columns)
            Rows whose range is shown.
        features : tuple of two int or str, or projection, default=(0, 1)
            Two columns of numbers, by place or name. Or a fitted transformer to two components
            that has `inverse_transform`, such as a PCA of X.
        response : {"predict", "regions", "score"}, default="predict"
            What the colours say: the class; the local model that rules; or the class, and how
            far its score is above the second. "regions" needs a classifier with
            `local_weights`.
        grid_resolution : int, default=150
            Points of the grid along each axis.
        reference : row, array-like, DataFrame or None, default=None
            What other columns stay at: a row, or the mean of rows. None takes those of X.
        y : array-like of shape (n_rows,), default=None
            Labels of X: its rows are drawn in their colours. None draws no rows.

        Returns
        -------
        display : RegionsDisplay

        Raises
        ------
        TypeError
            If the model has other steps, or no `local_model`.
        ValueError
            If features are not two columns of numbers, or do not fit the model.
        """
        check_option("response", response, {"predict", "regions", "score"})
        if grid_resolution < 2:
            raise ValueError(f"grid_resolution={grid_resolution} must be 2 at least.")
        columns, classifier = columns_of(model, X)
        plane = plane_of(columns, classifier, X, features, reference)
        classes = np.asarray(classifier.classes_)
        labels = _checked_labels(y, classes, len(plane.points))
        rulers = Rulers(classifier) if hasattr(classifier, "local_weights") else None
        if rulers is None and response == "regions":
            raise ValueError(f"{type(classifier).__name__} has no numbered local models.")

        def winners(points: Floats) -> Indices:
            return decisions_of(classifier, plane.features(points)).argmax(axis=1)

        def ruling(points: Floats) -> Indices:
            at = plane.features(points)
            assert rulers is not None
            return rulers.of(at, decisions_of(classifier, at).argmax(axis=1))

        x, z = (_range(of_axis, grid_resolution) for of_axis in plane.points.T)
        grid = np.stack(np.meshgrid(x, z), axis=2).reshape(-1, 2)
        shape = len(z), len(x)
        at_grid = plane.features(grid)
        decisions = decisions_of(classifier, at_grid)
        best = decisions.argmax(axis=1)
        models = None
        if rulers is not None:
            models = rulers.of(at_grid, best).reshape(shape)
        first, second = np.sort(decisions, axis=1)[:, :-3:-1].T
        return cls(
            x,
            z,
            best.reshape(shape),
            (first - second).reshape(shape),
            classes=classes.tolist(),
            models=models,
            model_names=None if rulers is None else rulers.names(models),
            boundary=borders(x, z, best.reshape(shape), winners),
            borders=() if models is None else borders(x, z, models, ruling),
            points=None if labels is None else plane.points,
            labels=labels,
            names=plane.names,
            response=response,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        point_kw: Mapping[str, Any] | None = None,
        border_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw the colours, the borders and the rows.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a figure.
        point_kw : dict, default=None
            Keywords of `matplotlib.axes.Axes.scatter`, for the rows.
        border_kw : dict, default=None
            Keywords of `matplotlib.collections.LineCollection`, for the borders of models.

        Returns
        -------
        display : RegionsDisplay
            Itself, with `ax_`, `figure_`, `surface_`, `boundary_`, `borders_`, `points_` and
            `text_`.
        """
        if ax is None:
            pyplot = required("matplotlib.pyplot", '"loclin[plot]"')
            _, ax = pyplot.subplots(figsize=(5.6, 4.4), layout="constrained")
        lines = required("matplotlib.collections", '"loclin[plot]"').LineCollection
        self.ax_, self.figure_ = ax, ax.figure
        half_x, half_y = (np.diff(of_axis[:2])[0] / 2 for of_axis in (self.x, self.y))
        extent = (self.x[0] - half_x, self.x[-1] + half_x,
                  self.y[0] - half_y, self.y[-1] + half_y)  # fmt: skip
        self.surface_ = ax.imshow(
            self._colors(), extent=extent, origin="lower", aspect="auto", zorder=-3,
            interpolation="bilinear",
        )  # fmt: skip
        thin = {"colors": INK, "linewidths": 0.7, "alpha": 0.55, "zorder": -2}
        thick = {"colors": INK, "linewidths": 1.9, "zorder": -1, "capstyle": "round"}
        self.borders_ = ax.add_collection(
            lines(self.borders, **{**thin, **(border_kw or {})})
        )
        self.boundary_ = ax.add_collection(lines(self.boundary, **thick))
        self.points_ = self._draw_points(ax, point_kw or {})
        self.text_ = self._draw_numbers(ax) if self.response == "regions" else []
        ax.set_xlim(self.x[0], self.x[-1])
        ax.set_ylim(self.y[0], self.y[-1])
        ax.set_xlabel(printable(self.names[0]), parse_math=False)
        ax.set_ylabel(printable(self.names[1]), parse_math=False)
        return self

    def frame(self) -> DataFrame:
        """Return the numbers as a data frame.

        Returns
        -------
        frame : DataFrame
            A line for each point of the grid: its place on both axes, "class", "margin" and,
            where models rule, "model".
        """
        pd = required("pandas", '"loclin[tables]"')
        first, second = (of_axis.ravel() for of_axis in np.meshgrid(self.x, self.y))
        named = np.array([*self.classes, None], dtype=object)[:-1]
        columns: dict[str, Any] = {
            self.names[0]: first,
            self.names[1]: second,
            "class": named[self.predicted.ravel()],
            "margin": self.margins.ravel(),
        }
        if self.models is not None:
            columns["model"] = [self._name(k) for k in self.models.ravel().tolist()]
        return pd.DataFrame(columns)

    def _name(self, number: int) -> str:
        return self.model_names.get(number, f"model {number}")

    def _colors(self) -> Floats:
        """Return the colours at the points of the grid."""
        if self.response == "regions":
            shown, rank = np.unique(np.asarray(self.models), return_inverse=True)
            numbers = np.where(shown < 0, -1, len(self.classes) + np.arange(len(shown)))
            return tinted(colors_of(numbers[rank.reshape(self.predicted.shape)]), _TINT)
        colors = colors_of(self.predicted)
        if self.response == "predict":
            return tinted(colors, _TINT)
        most = np.quantile(self.margins, 0.95) or 1.0
        return tinted(colors, _STRONG * np.minimum(self.margins / most, 1))

    def _draw_points(self, ax: Any, point_kw: Mapping[str, Any]) -> list[Any]:
        """Draw rows in the colours of their classes, and name these."""
        if self.points is None or self.labels is None:
            return []
        drawn = []
        for number, label in enumerate(self.classes):
            x, y = self.points[self.labels == label].T
            settings = {"s": 16, "color": colors_of([number]), "edgecolors": "white",
                        "linewidths": 0.5}  # fmt: skip
            name = class_text(str(label)).strip('"')
            drawn.append(ax.scatter(x, y, label=name, **{**settings, **point_kw}))
        if len(drawn) <= _LEGEND:
            class_legend(ax, handletextpad=0.1)
        return drawn

    def _draw_numbers(self, ax: Any) -> list[Any]:
        """Write the models' numbers where their regions are widest."""
        texts = []
        for number in np.unique(np.asarray(self.models)).tolist():
            inside = self.models == number
            if number < 0 or inside.mean() < _LABELLED:
                continue
            depth = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
            row, column = np.unravel_index(depth.argmax(), depth.shape)
            lines = self._name(number).removeprefix("model ").split(", model ")
            name = "\nmodel ".join(shortened(line, _LONGEST) for line in lines)
            texts.append(
                ax.text(self.x[column], self.y[row], name, fontsize=9,
                        ha="center", va="center", color=INK, parse_math=False,
                        bbox={"boxstyle": "round,pad=0.25", "facecolor": "white",
                              "edgecolor": "none", "alpha": 0.8})
            )  # fmt: skip
        return texts


def _range(values: Floats, n_places: int) -> Floats:
    """Return places that hold the values, with some room."""
    known = values[np.isfinite(values)]
    if not len(known):
        raise ValueError("There are no rows to show the range of.")
    low, high = known.min(), known.max()
    room = _ROOM * (high - low) or 1.0
    return np.linspace(low - room, high + room, n_places)


def _checked_labels(
    y: ArrayLike | None, classes: NDArray[Any], n_rows: int
) -> NDArray[Any] | None:
    """Return labels of rows, which are classes of the model."""
    if y is None:
        return None
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise ValueError(f"y has the shape {labels.shape}, but X has {n_rows} rows.")
    strange = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if strange:
        raise ValueError(f"y has {strange[:3]}, which are no classes of the model.")
    return labels
