"""One HTML page that explains predictions, and needs nothing else."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loclin.inspection.bars import LocalModelDisplay
from loclin.inspection.drawing import Row, draw, height_of, limits_of, others_text
from loclin.inspection.text import printable, required, shortened, signed, value_text

_INSTALL = '"loclin[html]"'
_WIDTH = 4.5  # inches: letters stay readable on a phone
_BARS = 12
_MOST_LISTED = 100  # columns of a row's table
_LONGEST = 300  # characters of a text in the table
_ONE_AT_A_TIME = threading.Lock()  # matplotlib has its settings for all threads


def explanation_page(
    display: LocalModelDisplay,
    *,
    title: str = "Why this prediction?",
    notes: Sequence[str] = (),
    facts: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
) -> str:
    """Write an explanation as one HTML page.

    The page has a picture and a table for each row, and says what the numbers mean. It loads
    nothing from elsewhere and has no scripts. All texts are escaped.

    Parameters
    ----------
    display : LocalModelDisplay
        Explanations of a few rows.
    title : str
    notes : sequence of str, default=()
        Sentences to add at the end, such as what the table's columns were taken for.
    facts : mapping or iterable of pairs, default=()
        What else to say at the head, such as ``{"model": "ML3Classifier"}``.

    Returns
    -------
    page : str
        Write it to a file with ``encoding="utf-8"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import LocalModelDisplay, explanation_page
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = ML3Classifier(random_state=0).fit(X, y)
    >>> display = LocalModelDisplay.from_estimator(model, X[:1], reference=X)
    >>> page = explanation_page(display, title="Why setosa?", facts={"rows": len(X)})
    >>> page[:15]
    '<!DOCTYPE html>'
    """
    jinja2 = required("jinja2", _INSTALL)
    rows = display._few_rows()
    limits = limits_of(rows, _BARS)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("loclin.inspection"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = printable
    page = environment.get_template("explanation.html").render(
        title=title,
        facts=[(name, value_text(value)) for name, value in dict(facts).items()],
        notes=notes,
        rows=[
            {"row": row, "score": signed(row.score, row.decimals),
                "lines": _lines(row, display.reference_values),
             "picture": _svg(row, limits, number)}
            for number, row in enumerate(rows)
        ],
    )  # fmt: skip
    return str(page)


def _lines(row: Row, reference_values: list[Any] | None) -> list[dict[str, Any]]:
    """Return the lines of a row's table: the columns, the largest first."""
    shown, others = row.ranked(_MOST_LISTED)
    values = reference_values or [""] * len(row.columns)
    lines = [
        {
            "column": shortened(printable(row.columns[k]), _LONGEST),
            "value": shortened(value_text(row.values[k]), _LONGEST),
            "reference": shortened(value_text(values[k]), _LONGEST),
            "adds": signed(row.contributions[k], row.decimals),
        }
        for k in shown
    ]
    if others:
        sum_of_others = signed(row.contributions[others].sum(), row.decimals)
        lines.append({"column": others_text(len(others)), "adds": sum_of_others})
    base = signed(row.base, row.decimals)
    return [*lines, {"column": "The row's model at the reference", "adds": base}]


def _svg(row: Row, limits: tuple[float, float], number: int) -> str:
    """Return a row's picture as an element of the page."""
    style = required("matplotlib.style", _INSTALL)
    new_figure = required("matplotlib.figure", _INSTALL).Figure
    # letters are the browser's, and names of elements differ between the pictures of a page
    settings = {"svg.fonttype": "none", "svg.hashsalt": f"loclin {number}"}
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    written = io.StringIO()
    with (
        _ONE_AT_A_TIME,
        style.context(["default", settings]),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure = new_figure(figsize=(_WIDTH, height_of(row, _BARS)), layout="constrained")
        ax = figure.add_subplot()
        draw(ax, row, _BARS, {})
        ax.set_xlim(limits)
        ax.set_title("", loc="left")  # the page says it
        figure.savefig(written, format="svg", metadata=nothing)
    return "<svg" + written.getvalue().partition("<svg")[2]
