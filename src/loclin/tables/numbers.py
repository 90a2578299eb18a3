"""Numbers as people write them.

Of "1,234.5" and "1.234,5" each says by itself what its marks mean; "1,234" and "1.234" do not.
These are read as the others of their column say, and that is kept.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.tables.cells import parsed

# What programs write for no value (pandas, R, SQL, Excel, SAS), and what people do. None of them
# is a number, date or flag, so that nothing is lost: a gap has a feature of its own.
MARKS = frozenset([
    "?", "-", "--", "\u2013", "\u2014", ".", "na", "n/a", "n.a.", "#n/a", "#na", "n.d.", "nd",
    "nan", "-nan", "<na>", "nat", "null", "nil", "none", "missing", "(missing)", "unknown", "unk",
    "not available", "#null!", "#value!", "#ref!", "#div/0!", "#num!", "#name?",
])  # fmt: skip

_BLANKS = " \u00a0\u2009\u202f'\u2019"
_MONEY = (
    r"(?:US|CA|AU|NZ|HK|R|A|C|S)?\$|[€£¥₹₽₩₺₫₴₪₿₦₱]|Fr\.|zł|kr\.?|Kč|Ft|лв|"
    r"USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|RUB|TRY|BRL|AUD|CAD|NZD|MXN"
)
_WRITTEN = re.compile(
    rf"([-+\u2212]?)\s*({_MONEY})?\s*([-+\u2212]?)([.,]?\d[\d.,{_BLANKS}]*)(e[-+]?\d+)?\s*"
    rf"(%|{_MONEY})?",
    re.IGNORECASE,
)
_BY_BLANKS = re.compile(rf"[1-9]\d{{0,2}}(?:[{_BLANKS}]\d{{3}})+(?:[.,]\d*)?")
_GROUPED = {
    ".": re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?"),
    ",": re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d*)?"),
}
_LONGEST = 100  # characters of a number
_MANY = 100  # texts that are looked at in bulk
_MOST_LOOKED_AT = 20_000  # different texts of a column that say what its marks mean
_POINT = re.compile(r"(?:[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}|\d*)(?:\.\d*)?")
_COMMA = re.compile(r"(?:[1-9]\d{0,2}(?:\.\d{3})+|\d*)(?:,\d*)?")


def _plain(body: str, decimal: str) -> tuple[str, str]:
    """Return digits as a computer writes them, and what decided.

    That is "point" or "comma", the mark of decimals, "blank", "either" where nothing did, or
    nothing where it is no number.
    """
    if not body.strip(_BLANKS).isdigit() and any(blank in body for blank in _BLANKS):
        if not _BY_BLANKS.fullmatch(body):
            return "", ""
        for blank in _BLANKS:
            body = body.replace(blank, "")
        return body.replace(",", "."), "comma" if "," in body else "blank"
    point, comma = _POINT.fullmatch(body), _COMMA.fullmatch(body)
    if not (point or comma):
        return "", ""
    decided = "either" if point and comma else "point" if point else "comma"
    if decided == "comma" or (decided == "either" and decimal == ","):
        return body.replace(".", "").replace(",", "."), decided
    return body.replace(",", ""), decided


def read_one(text: str, decimal: str) -> tuple[float, set[str]]:
    """Return the number that a text says, NaN where it says none, and what is special about it.

    Special are "money", "percent", "thousands", a decimal "comma", and "either" where the column
    had to decide.
    """
    match = _WRITTEN.fullmatch(text) if len(text) <= _LONGEST else None
    if not match:
        return np.nan, set()
    sign, money, inner, body, power, after = match.groups()
    if (sign and inner) or (money and after and after != "%"):
        return np.nan, set()
    body = body.rstrip(_BLANKS)
    digits, decided = _plain(body, decimal)
    if not any(mark.isdigit() for mark in digits):
        return np.nan, set()
    value = float(digits + (power or ""))
    special = {"percent"} if after == "%" else {"money"} if money or after else set()
    marks = sum(body.count(mark) for mark in f",.{_BLANKS}")
    if decided in ("comma", "either") and marks:
        special.add(decided)
    if marks > digits.count("."):
        special.add("thousands")
    value *= -1.0 if (sign or inner) in ("-", "\u2212") else 1.0
    return value / 100 if after == "%" else value, special


def read(texts: NDArray[Any], decimal: str) -> NDArray[np.float64]:
    """Return the numbers that texts say, NaN of those that say none.

    Parameters
    ----------
    texts : ndarray of str
    decimal : str
        "." or ",": the mark of decimals where a text does not tell.
    """
    values = _swapped(texts) if decimal == "," else parsed(texts).astype(np.float64)
    odd = np.flatnonzero(np.isnan(values))
    if len(odd) > _MANY:  # the commonest form by itself: a loop over texts is slow
        grouped = _GROUPED[decimal].fullmatch
        odd = odd[[grouped(text) is not None for text in texts[odd]]]
        thousands = "," if decimal == "." else "."
        joined = "\n".join(texts[odd]).replace(thousands, "").replace(",", ".")
        values[odd] = parsed(np.array(joined.split("\n"), object)) if len(odd) else 0.0
        odd = np.flatnonzero(np.isnan(values))
    for place in odd:
        values[place] = read_one(texts[place], decimal)[0]
    return values


def _swapped(texts: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers whose only mark is a decimal comma, NaN of others."""
    swapped = "\n".join(texts).replace(".", ";").replace(",", ".").split("\n")
    if len(swapped) != len(texts):  # there are line ends in them
        return np.full(len(texts), np.nan)
    return parsed(np.array(swapped, object)).astype(np.float64)


def decimal_of(texts: NDArray[Any]) -> tuple[str, str]:
    """Return the mark of decimals of a column, and what to say of its numbers, or nothing.

    Parameters
    ----------
    texts : ndarray of str
        The different texts of the column.
    """
    odd = np.isnan(parsed(texts).astype(np.float64))
    if not odd.any():
        return ".", ""
    marked = texts[odd | np.array(["." in text for text in texts])]
    marked = marked[:: -(-len(marked) // _MOST_LOOKED_AT)]
    found = [(text, *read_one(text, ".")) for text in marked]
    kinds = [(text, kind) for text, value, kind in found if value == value]
    commas = sum("comma" in kind for _, kind in kinds)
    points = sum(
        not kind & {"either", "comma"} and ("." in text or "," in text)
        for text, kind in kinds
    )
    decimal = "," if commas > points else "."
    return decimal, _examples(texts[odd], kinds, decimal, bool(commas or points))


def _examples(
    odd: NDArray[Any], kinds: list[tuple[str, set[str]]], decimal: str, decided: bool
) -> str:
    """Return how one number of each special kind was read."""
    shown: dict[str, float] = {}
    doubt, of_odd = "", set(odd)
    for special in ("comma", "thousands", "either", "percent", "money"):
        found = (
            text
            for text, kind in kinds
            if special in kind
            and (text in of_odd or (special == "either" and decimal == ","))
        )
        text = next(found, None)
        if text is None:
            continue
        shown.setdefault(text, read_one(text, decimal)[0])
        if special == "either" and not decided:
            doubt = "; no value tells whether its comma marks thousands or decimals"
    return ", ".join(f"{text!r} is {value:.12g}" for text, value in shown.items()) + doubt
