"""Numbers, values and names as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

_MISSING = {"nan", "NaT", "<NA>", "None"}
_MOST_DECIMALS = 6
_WHOLE = 1e15  # below it a float holds every whole number


def required(module: str, install: str) -> Any:
    """Return a module of another package, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f"This needs {name}: pip install {install}") from error


def printable(text: object) -> str:
    r"""Return a text with control characters written out, on one line.

    >>> print(printable("red\x1b[2J\n"))
    red\x1b[2J\n
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(text)
    )


def free_name(name: str, taken: Sequence[str]) -> str:
    """Return a name that no column has: in brackets, if need be.

    >>> free_name("reference", ["age", "reference"])
    '(reference)'
    """
    while name in taken:
        name = f"({name})"
    return name


def shortened(text: str, most: int) -> str:
    """Return a text of so many characters at most; the middle is cut.

    >>> shortened("a very long name", 9)
    'a ve…name'
    """
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def value_text(value: Any) -> str:
    """Return a value of a column as a text.

    >>> value_text(31.0), value_text(0.1 + 0.2), value_text(None)
    ('31', '0.3', 'missing')
    """
    if isinstance(value, str):
        return printable(value)
    if str(value) in _MISSING:
        return "missing"
    if isinstance(value, float | np.floating):
        number = float(value)
        is_whole = number.is_integer() and abs(number) < _WHOLE
        return str(int(number)) if is_whole else f"{number:.6g}"
    return printable(value).removesuffix(" 00:00:00")


def decimals_of(numbers: Iterable[float]) -> int:
    """Return decimals that give the largest of some numbers three digits."""
    largest = max((abs(number) for number in numbers), default=0.0)
    return max(0, 2 - math.floor(math.log10(largest))) if largest > 0 else 2


def signed(number: float, decimals: int) -> str:
    """Return a number with its sign.

    >>> signed(1.234, 2), signed(-0.0004, 2), signed(-0.0004, 7)
    ('+1.23', '0.00', '−4.0e-04')
    """
    form = "+.1e" if decimals > _MOST_DECIMALS else f"+.{decimals}f"
    text = format(number, form)
    if not float(text):
        return text[1:]
    sign = "+" if number > 0 else "\N{MINUS SIGN}"
    return sign + text[1:]
