"""Tables and text in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all columns but the first to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    lines = (
        f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in (head, rule, *rows)
    )
    return "\n".join(lines) + "\n"


def joined(parts: Iterable[str]) -> str:
    """Join paragraphs, which end with a line break, and list items, which do not."""
    return "\n".join(parts).rstrip("\n") + "\n"
