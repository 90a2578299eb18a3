"""Dates as people write them.

A date as ISO 8601 has it says its own order. Of 31/12/2024 and 12/31/2024 the column decides: a
part above 12 is a day.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.tables.cells import pandas, stamps

_DAY = 86_400.0  # seconds
_LOOKED_AT = 1000  # texts, to see whether a column has dates
_MOSTLY = 0.9
_MONTHS = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
_NAME = r"([a-z]{3})[a-z]*\.?"
_TIME = (
    r"(?:(?:T|,? +)(\d{1,2}):(\d{2})((?::\d{2}(?:[.,]\d{1,9})?)?) ?([ap]\.?m\.?)?"
    r" ?(Z|UTC|GMT|[-+]\d{2}:?(?:\d{2})?)?)?"
)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_PARTS = re.compile(
    rf"(\d{{4}}|\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}|\d{{1,2}}){_TIME}", re.I
)
_NAMED = re.compile(rf"(\d{{1,2}})[- .]+{_NAME}[- ,]+(\d{{4}}|\d{{2}}){_TIME}", re.I)
_NAME_FIRST = re.compile(rf"{_NAME} (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}}){_TIME}", re.I)


def is_date(text: str) -> bool:
    """Tell whether a text has the shape of a date."""
    match = _PARTS.fullmatch(text)
    if match:  # one of its ends is a year
        return len(match[1]) == 4 or len(match[4]) > 1
    return bool(_ISO.match(text) or _NAMED.fullmatch(text) or _NAME_FIRST.fullmatch(text))


def order_of(texts: NDArray[Any]) -> tuple[str, str]:
    """Return the order of the parts of dates, and what to say of it, or nothing.

    Parameters
    ----------
    texts : ndarray of str
        The different texts of the column.

    Returns
    -------
    order : str
        "iso", or of dates whose year comes last "dmy" or "mdy"; nothing where they are no dates.
    note : str
    """
    if sum(map(is_date, texts[:_LOOKED_AT])) < _MOSTLY * len(texts[:_LOOKED_AT]):
        return "", ""
    firsts, seconds, example = 0, 0, ""
    for match in filter(None, map(_PARTS.fullmatch, texts)):
        first, mark, second = match.groups()[:3]
        if len(first) < 3:
            firsts += int(first) > 12
            seconds += int(second) > 12
            example = example or mark
    if not example:
        return "iso", ""
    if firsts != seconds:
        order = "dmy" if firsts > seconds else "mdy"
        return order, f"{'days' if order == 'dmy' else 'months'} come first in its dates"
    order = "mdy" if example == "/" else "dmy"
    first = "months" if order == "mdy" else "days"
    return order, f"{first} are taken to come first in its dates: no part is above 12"


def _iso(text: str, order: str) -> str:
    """Return a date as ISO 8601 has it; nothing where it is none."""
    if match := _PARTS.fullmatch(text):
        first, mark, second, third, *time = match.groups()
        if len(first) > 2:
            year, month, day = first, second, third
        else:
            year = third
            month_first = order == "mdy" or (order != "dmy" and mark == "/")
            day, month = (second, first) if month_first else (first, second)
    elif match := _NAMED.fullmatch(text):
        day, month, year, *time = match.groups()
    elif match := _NAME_FIRST.fullmatch(text):
        month, day, year, *time = match.groups()
    else:
        return ""
    if month.lower() in _MONTHS:
        month = str(_MONTHS.index(month.lower()) + 1)
    if len(year) == 2:  # as POSIX has it
        year = f"{19 if int(year) > 68 else 20}{year}"
    return f"{year:0>4}-{month:0>2}-{day:0>2}{_clock(*time)}"


def _clock(
    hour: str | None,
    minute: str | None,
    rest: str | None,
    half: str | None,
    zone: str | None,
) -> str:
    if hour is None:
        return ""
    if half:
        hour = str(int(hour) % 12 + 12 * (half[0] in "pP"))
    zone = {"UTC": "Z", "GMT": "Z"}.get((zone or "").upper(), zone or "")
    return f"T{hour:0>2}:{minute}{(rest or '').replace(',', '.')}{zone}"


def read(texts: NDArray[Any], order: str) -> NDArray[np.float64]:
    """Return days since 1970 of the dates that texts say, NaN of those that say none.

    Parameters
    ----------
    texts : ndarray of str
    order : str
        Of dates whose year comes last: "dmy" or "mdy".
    """
    found = _seconds([text if _ISO.match(text) else _iso(text, order) for text in texts])
    left = np.flatnonzero(np.isnan(found))
    if len(left):  # "2024-01-05 9:30 PM"
        found[left] = _seconds([_iso(texts[place], order) for place in left])
    return found / _DAY


def _seconds(written: list[str]) -> NDArray[np.float64]:
    pd = pandas()
    series = pd.Series([text or None for text in written], dtype=object)
    return stamps(pd.to_datetime(series, errors="coerce", format="ISO8601", utc=True))


PARTS = {
    "month": lambda days: _stamps(days).astype("datetime64[M]").astype(int) % 12 + 1.0,
    "weekday": lambda days: (np.floor(days) + 3) % 7,  # 1970 began on a Thursday
    "hour": lambda days: days % 1 * 24,
}


def _stamps(days: NDArray[np.float64]) -> NDArray[Any]:
    return np.floor(days).astype("int64").astype("datetime64[D]")
