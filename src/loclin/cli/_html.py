"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

from html import escape
from pathlib import Path

from loclin.cli._plot import svg
from loclin.cli._report import Report, footnotes, how_measured, legend, versions
from loclin.cli._text import COLUMNS, cells, late_cells, parameters, percent

__all__ = ["page"]

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: #20262d;
  max-width: 60rem; margin: 2.5rem auto; padding: 0 1.25rem; background: #fff; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
.facts { color: #5a6673; margin: 0; }
.verdict { border-left: 4px solid #c2263f; background: #fbf3f4; padding: .8rem 1rem;
  margin: 1.4rem 0; font-size: 1.05rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .6rem; text-align: right; border-bottom: 1px solid #e9ecef;
  white-space: nowrap; }
th { font-weight: 600; color: #5a6673; font-size: .85rem; border-bottom: 2px solid #c9d0d7;
  vertical-align: bottom; }
.left { text-align: left; }
.own { color: #c2263f; font-weight: 600; }
.front { background: #f4f8f4; }
.baseline { color: #7c8792; }
.small, .small td { font-size: .87rem; }
.chosen { white-space: normal; font-family: ui-monospace, Consolas, monospace; font-size: .8rem; }
sup { color: #7c8792; line-height: 0; }
svg { width: 100%; height: auto; margin-top: 2rem; }
ul { padding-left: 1.2rem; }
code { font-family: ui-monospace, Consolas, monospace; font-size: .85rem; background: #f3f5f7;
  padding: .15rem .35rem; overflow-wrap: anywhere; }
"""

INTERRUPTED = (
    '<p class="verdict">'
    "The run was interrupted: models that had not finished are missing.</p>"
)


def page(report: Report) -> str:
    """Return the page; every text that is not ours is escaped."""
    data = report.data
    facts = (
        f"{data.description}. {len(data.y_train):,} training rows, {len(data.y_test):,} test rows "
        f"({data.split}), {data.X_train.shape[1]:,} features, {len(data.classes)} classes."
    )
    title = f"{Path(data.name).name}: classifiers compared"
    picture = svg(report) or (
        '<p class="facts">The plot is left out: matplotlib is not installed '
        "(<code>pip install &quot;loclin[plot]&quot;</code>).</p>"
    )
    numbers = ", ".join(f"{name} {number}" for name, number in versions().items())
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="facts">{escape(facts)}</p>',
        f'<p class="verdict">{escape(_micro(report.verdict))}</p>',
        INTERRUPTED if report.interrupted else "",
        _table(report),
        picture,
        "<h2>Tuning</h2>",
        _tuning(report),
        "<h2>How it was measured</h2>",
        "<ul>",
        *(f"<li>{escape(_micro(sentence))}</li>" for sentence in how_measured(report)),
        "</ul>",
        "<h2>To repeat it</h2>",
        f"<p><code>{escape(report.command)}</code></p>",
        f'<p class="facts">{escape(numbers)}.</p>',
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head>",
            "<body>",
            *filter(None, body),
            "</body></html>",
            "",
        ]
    )


def _micro(text: str) -> str:
    """Write microseconds with their sign."""
    return text.replace(" us ", " µs ")


def _table(report: Report) -> str:
    """Return the table of results with its footnotes."""
    notes, marks = footnotes(report)
    head = "".join(
        f"<th{' class=left' if index == 0 else ''}>{escape(name.replace('us ', 'µs '))}</th>"
        for index, name in enumerate(COLUMNS)
    )
    lines = []
    for row, mark in zip(report.rows, marks, strict=True):
        name, *figures = (escape(cell).replace(" - ", " &ndash; ") for cell in cells(row))
        own = ' class="left own"' if row.own else " class=left"
        sup = f" <sup>{escape(mark)}</sup>" if mark else ""
        style = " class=front" if row.front else " class=baseline" if row.baseline else ""
        lines.append(
            f"<tr{style}><td{own}>{name}{sup}</td>"
            + "".join(f"<td>{figure}</td>" for figure in figures)
            + "</tr>"
        )
    for item in report.late:
        name, *words = map(escape, late_cells(item))
        late = "".join(f"<td>{word}</td>" for word in words)
        lines.append(f"<tr class=baseline><td class=left>{name}</td>{late}</tr>")
    below = legend(report) + notes
    below += [f"{item.model} left out: {item.reason}" for item in report.skipped]
    below += [f"Note: {note}" for note in report.data.notes]
    footer = "".join(f'<p class="facts small">{escape(note)}</p>' for note in below)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>{footer}"
    )


def _tuning(report: Report) -> str:
    """Return the table of what tuning chose."""
    lines = [
        f'<tr><td class="left">{escape(row.model)}</td>'
        f'<td class="left chosen">{escape(parameters(row.parameters))}</td>'
        f"<td>{percent(row.tuned.error, row.tuned.rows)}</td>"
        f"<td>{row.tuned.tried}</td><td>{row.tuned.rows:,}</td>"
        f"<td>{row.tuned.seconds:.1f}</td></tr>"
        for row in report.rows
        if row.tuned.error is not None
    ]
    head = (
        "<th class=left>model</th><th class=left>chosen</th><th>CV error %</th>"
        "<th>candidates</th><th>rows</th><th>seconds</th>"
    )
    return (
        f'<div class="wide"><table class="small"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )
