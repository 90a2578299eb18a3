"""Which local models act where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import pairwise_distances

from loclin.inspection.colors import FAINT, INK, class_legend, colors_of
from loclin.inspection.columns import PlainColumns
from loclin.inspection.drawing import class_text
from loclin.inspection.planes import named
from loclin.inspection.ruling import Floats, Indices, Rulers, decisions_of
from loclin.inspection.steps import columns_of
from loclin.inspection.text import required, shortened

if TYPE_CHECKING:
    from pandas import DataFrame

_COMPARED = 500  # rows that a typical row is compared with
_LEGEND = 10  # classes that have colours of their own
_PICTURE = 24.0  # points of a small picture
_BAR = 0.36  # inches


class ModelUsageDisplay:
    """How many rows each local model rules, and a typical row of each.

    The model that rules a row is the one that counts most there, by `local_weights`. Where
    classes have models of their own, it is one of the class that is decided for.

    Use `from_estimator` to make one.

    Parameters
    ----------
    shares : array-like of shape (n_models, n_classes)
        Shares of all rows: those that a model rules, and that are predicted so. The models that
        rule most come first, and those that rule none are left out.
    classes : sequence
        Labels.
    names : sequence of str
        Names of the models.
    numbers : array-like of int of shape (n_models,)
        Numbers of the models; -1 stands for rows where no model counts.
    typical : array-like of int of shape (n_models,)
        The place in X of a typical row: of those that the model rules, the one with the lowest
        mean distance to them.
    prototypes : array-like of shape (n_models, n_columns), default=None
        The model's anchor, if the classifier has anchors of the columns as given; else the mean
        of the rows that it rules. None where columns are not numbers.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : list of BarContainer
        One for each class.
    images_ : list of AxesImage or of OffsetImage
        The prototypes as pictures, if `image_shape` is given.
    text_ : list of Text
        The shares beside the bars.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from loclin import SAPLClassifier
    >>> from loclin.inspection import ModelUsageDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SAPLClassifier(20, random_state=0).fit(X, y)
    >>> display = ModelUsageDisplay.from_estimator(model, X)
    >>> float(display.shares.sum().round(9))
    1.0
    >>> int(model.predict(X[display.typical[:1]])[0]) == display.classes[display.shares[0].argmax()]
    True
    """

    ax_: Any
    figure_: Any
    bars_: list[Any]
    images_: list[Any]
    text_: list[Any]

    def __init__(
        self,
        shares: ArrayLike,
        *,
        classes: Sequence[Any],
        names: Sequence[str],
        numbers: ArrayLike,
        typical: ArrayLike,
        prototypes: ArrayLike | None = None,
    ) -> None:
        self.shares = np.asarray(shares, np.float64)
        self.classes = list(classes)
        self.names = list(names)
        self.numbers = np.asarray(numbers, np.intp)
        self.typical = np.asarray(typical, np.intp)
        self.prototypes = (
            None if prototypes is None else np.asarray(prototypes, np.float64)
        )

    @classmethod
    def from_estimator(cls, model: Any, X: Any) -> Self:
        """Count the rows that each local model rules. Nothing is drawn yet.

        Parameters
        ----------
        model : classifier or Pipeline
            As in `LocalModelDisplay.from_estimator`, with `local_weights`.
        X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_columns)
            Rows, such as the training rows.

        Returns
        -------
        display : ModelUsageDisplay

        Raises
        ------
        TypeError
            If the model has other steps, or no `local_weights`.
        ValueError
            If there are no rows.
        """
        columns, classifier = columns_of(model, X)
        if not hasattr(classifier, "local_weights"):
            raise TypeError(f"{type(classifier).__name__} has no method local_weights.")
        features = named(classifier, columns.features(X))
        if not np.shape(features)[0]:
            raise ValueError("There are no rows to count.")
        decisions = decisions_of(classifier, features)
        best, rulers = decisions.argmax(axis=1), Rulers(classifier)
        ruling = rulers.of(features, best)
        numbers, counts = np.unique(ruling, return_counts=True)
        numbers = numbers[np.argsort(-counts, kind="stable")]
        classes = np.asarray(classifier.classes_)
        members = [np.flatnonzero(ruling == number) for number in numbers]
        shares = [np.bincount(best[rows], minlength=len(classes)) for rows in members]
        dense = _dense(features)
        spread = dense.std(axis=0)
        scaled = dense / np.where(spread > 0, spread, 1.0)
        return cls(
            np.array(shares) / len(best),
            classes=classes.tolist(),
            names=[rulers.name(int(number)) for number in numbers],
            numbers=numbers,
            typical=[rows[_medoid(scaled[rows])] for rows in members],
            prototypes=_prototypes(columns, model, classifier, X, numbers, members),
        )

    def plot(
        self,
        ax: Any = None,
        *,
        max_models: int = 12,
        image_shape: tuple[int, ...] | None = None,
        bar_kw: Mapping[str, Any] | None = None,
        image_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw the shares as bars, the largest on top, in the colours of the classes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a figure.
        max_models : int, default=12
            Maximum number of models with bars of their own. All others are added up in one bar.
        image_shape : tuple of int, default=None
            The shape of rows that are pictures, such as ``(8, 8)``: each model's prototype is
            drawn beside its bar.
        bar_kw : dict, default=None
            Keywords of `matplotlib.axes.Axes.barh`.
        image_kw : dict, default=None
            Keywords of `matplotlib.offsetbox.OffsetImage`, such as ``{"cmap": "viridis"}``.

        Returns
        -------
        display : ModelUsageDisplay
            Itself, with `ax_`, `figure_`, `bars_`, `images_` and `text_`.
        """
        names, shares = self.names[:max_models], self.shares[:max_models]
        n_others = len(self.names) - len(names)
        if n_others:
            names = [*names, f"{n_others:,} other model{'s' if n_others > 1 else ''}"]
            shares = np.vstack([shares, self.shares[max_models:].sum(axis=0)])
        if ax is None:
            pyplot = required("matplotlib.pyplot", '"loclin[plot]"')
            bar = _BAR if image_shape is None else 1.3 * _PICTURE / 72
            size = (5.6, 1.0 + bar * len(names))
            _, ax = pyplot.subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.bars_ = self._draw_bars(ax, shares, bar_kw or {})
        totals = shares.sum(axis=1)
        self.text_ = ax.bar_label(
            self.bars_[-1], [_percent(total) for total in totals], padding=3, fontsize=9
        )
        labels = [shortened(name, 30) for name in names]
        ax.set_yticks(range(len(names)), labels, fontsize=9, parse_math=False)
        self.images_ = []
        if image_shape is not None:
            self.images_ = self._draw_images(ax, min(max_models, len(self.names)),
                                             image_shape, image_kw or {})  # fmt: skip
        ax.tick_params(axis="y", length=0, pad=_PICTURE + 12 if self.images_ else 4)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlim(0, 1.12 * totals.max())
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        ax.set_xlabel("rows where the model counts most")
        return self

    def frame(self) -> DataFrame:
        """Return the numbers as a data frame.

        Returns
        -------
        frame : DataFrame
            A line for each model and class: "model", "number", "class", "share" and "typical",
            the place of a typical row of the model.
        """
        pd = required("pandas", '"loclin[tables]"')
        n_models, n_classes = self.shares.shape
        return pd.DataFrame(
            {
                "model": np.repeat(np.array(self.names, dtype=object), n_classes),
                "number": np.repeat(self.numbers, n_classes),
                "class": self.classes * n_models,
                "share": self.shares.ravel(),
                "typical": np.repeat(self.typical, n_classes),
            }
        )

    def _draw_bars(self, ax: Any, shares: Floats, bar_kw: Mapping[str, Any]) -> list[Any]:
        """Draw a bar for each model, of the parts of its classes."""
        bars, left, few = [], np.zeros(len(shares)), len(self.classes) <= _LEGEND
        for number, label in enumerate(self.classes):
            name = class_text(str(label)).strip('"')
            color = colors_of([number])[0] if few else FAINT
            settings = {"color": color, "height": 0.7, "label": name, **bar_kw}
            bars.append(
                ax.barh(range(len(shares)), shares[:, number], left=left, **settings)
            )
            left = left + shares[:, number]
        if few:
            class_legend(ax, handlelength=1, title="predicted")
        return bars

    def _draw_images(
        self, ax: Any, n_models: int, shape: tuple[int, ...], image_kw: Mapping[str, Any]
    ) -> list[Any]:
        """Draw the prototypes of models between their names and their bars."""
        if self.prototypes is None:
            raise ValueError("image_shape needs rows of numbers.")
        if np.prod(shape) != self.prototypes.shape[1]:
            raise ValueError(
                f"image_shape={shape} does not hold rows of {self.prototypes.shape[1]} numbers."
            )
        boxes = required("matplotlib.offsetbox", '"loclin[plot]"')
        known = self.prototypes[:n_models]
        images = []
        for place, row in enumerate(known):
            settings = {"cmap": "Greys", "zoom": _PICTURE / max(shape[:2]), **image_kw}
            image = boxes.OffsetImage(row.reshape(shape), **settings)
            box = boxes.AnnotationBbox(
                image, (0, place), xybox=(-6, 0), xycoords=ax.get_yaxis_transform(),
                boxcoords="offset points", box_alignment=(1, 0.5), pad=0,
                bboxprops={"edgecolor": INK, "linewidth": 0.5},
            )  # fmt: skip
            ax.add_artist(box)
            images.append(image)
        return images


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, np.float64)


def _medoid(rows: Floats) -> int:
    """Return the row with the least mean distance to the others, or to 500 of them."""
    others = rows[np.linspace(0, len(rows) - 1, min(len(rows), _COMPARED)).astype(int)]
    step = max(1, 2**22 // len(others))
    parts = [
        pairwise_distances(rows[first : first + step], others).sum(axis=1)
        for first in range(0, len(rows), step)
    ]
    return int(np.concatenate(parts).argmin())


def _prototypes(
    columns: Any,
    model: Any,
    classifier: Any,
    X: Any,
    numbers: Indices,
    members: list[Indices],
) -> Floats | None:
    """Return a picture of what each model stands for, if columns are numbers."""
    if not isinstance(columns, PlainColumns):
        return None
    values = np.asarray(columns.values(X), np.float64)
    means = np.stack([values[rows].mean(axis=0) for rows in members])
    anchors = getattr(classifier, "anchors_", None)
    if model is not classifier or anchors is None or np.ndim(anchors) != 2:
        return means
    # anchors have pieces after the columns
    of_columns = np.asarray(anchors, np.float64)[:, : values.shape[1]]
    return np.where((numbers < 0)[:, None], means, of_columns[numbers])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"
