"""What the command says when its input is at fault: one line that names the cure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["InputError", "listed", "near", "one_line", "plural", "printable"]


class InputError(ValueError):
    """Input that the command cannot use; its text is the one line the user reads."""


def one_line(error: BaseException | str) -> str:
    """Return the text of ``error`` on one line, or its type where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def printable(text: str) -> str:
    r"""Write out what is not printable, such as ``\x1b``:
    a name in data must not steer a terminal.

    >>> print(printable("red\x1b[2J\n"))
    red\x1b[2J\n
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def listed(items: Iterable[object], most: int = 3) -> str:
    """Return the first ``most`` items in quotes, and how many more there are."""
    names = [f"'{item}'" for item in items]
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def near(wanted: str, names: Iterable[str]) -> str:
    """Return a sentence that lists the names nearest to ``wanted``, else the first ones."""
    known = {name.lower(): name for name in names}
    close = get_close_matches(wanted.lower(), known, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(f"'{known[name]}'" for name in close) + "?"
    return f"there are {listed(known.values(), 12)}"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return the count with its noun: ``1 row``, ``2,000 rows``."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
