"""What the columns of a table are, and their values as arrays."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.tables import dates, numbers
from loclin.tables.cells import Cells, pandas, parsed
from loclin.tables.numbers import MARKS

KINDS = ("category", "date", "flag", "leave out", "number", "text")
MISSING, OTHER = "(missing)", "(other)"
_IS_ID = re.compile(
    r"(?i:(^|[_\s.-])(id|index|uuid|guid|key)$|^__index_level_\d+__$|^\s*$"
    r"|^row[_\s]?(number|num|nr|no|id)?$|^unnamed(: ?\d+)?$)|[a-z](Id|ID|Key)$"
)
_WORDS = 4  # of a text on average; names and categories have fewer
_DISTINCT_TEXTS = 0.3  # share of different values from which words make a text
_FEWEST_IDS = 20  # different values that make a column of strings one of names
_MOST_WORDS = 100  # that count as missing, of a column
_LOOKED_AT = 1000  # values, to see whether strings are texts
_MOSTLY = 0.95  # share of rows that makes a column one of numbers or dates
_HALF, _FEW_WORDS = 0.5, 2  # the same, where so few words are none: "k.A.", "n.v.t."
_LARGE = 2.0**53  # whole numbers beyond it have no exact float
_CODE = 3  # digits of numbers with zeros before them that are codes
_FLAGS = {"true": 1.0, "yes": 1.0, "y": 1.0, "t": 1.0, "1": 1.0,
          "false": 0.0, "no": 0.0, "n": 0.0, "f": 0.0, "0": 0.0}  # fmt: skip
_PAIRS = [{"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"}]


class Unreadable(UserWarning):
    """Some values of a column are not of the kind that its training values were."""


class Decision(NamedTuple):
    """What a column is.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    reason : str
        Why it is left out, or what to say of how it is read; or nothing.
    style : str
        How numbers or dates are written: the mark of decimals, or the order of the parts.
    """

    kind: str
    reason: str = ""
    style: str = ""


def kind_of(name: str, column: Any) -> Decision:
    """Return what a column is, by its values and its name."""
    cells = column if isinstance(column, Cells) else Cells(column)
    if cells.form == "others":
        return Decision("leave out", f"its values are of the type {cells.what}")
    if cells.gaps.all():
        return Decision("leave out", "it has no values")
    if cells.form == "texts":
        return _of_texts(name, cells)
    known = cells.data[~cells.gaps] if cells.gaps.any() else cells.data
    if known.min() == known.max():
        return _of_one(len(known) == len(cells.data))
    if cells.form != "numbers":
        return Decision("date" if cells.form == "dates" else "flag")
    if not np.isfinite(known).any():
        return Decision("leave out", "it has no values")
    return _of_numbers(name, known, lambda: len(np.unique(known)) == len(known))


def _of_one(everywhere: bool) -> Decision:
    """Return what a column of a single value is: nothing, or a value or none."""
    if everywhere:
        return Decision("leave out", "all its values are one")
    return Decision("category")


def _of_numbers(name: str, known: NDArray[Any], are_distinct: Any) -> Decision:
    """Return whether numbers count something, or number the rows."""
    is_id = is_large = False
    if known.dtype.kind in "iu":
        is_large = float(np.median(np.abs(known.astype(float)))) >= _LARGE
    if _IS_ID.search(name):
        is_id = bool((known == np.floor(known)).all())
    if (is_id or is_large) and are_distinct():
        why = "it numbers the rows" if is_id else (
            "its whole numbers are distinct and beyond 2**53, as ids are")  # fmt: skip
        return Decision("leave out", why, ".")
    return Decision("number", "", ".")


def _of_plain_numbers(name: str, cells: Cells) -> Decision | None:
    """Return the decision on texts that are all numbers that a computer writes, else None."""
    few = np.flatnonzero(~cells.gaps)[:_FEWEST_IDS]
    if np.isnan(parsed(cells.data[few]).astype(np.float64)).any():
        return None
    known = cells.parsed[~cells.gaps] if cells.gaps.any() else cells.parsed
    if known.dtype.kind not in "iuf" or np.isnan(known).any():
        return None
    least, most = known.min(), known.max()
    if least == most:
        return _of_one(len(known) == len(cells.data))
    width = len(str(cells.data[~cells.gaps][0]))
    if width >= _CODE and 0 <= least < 10.0 ** (width - 1) and most < 10.0**width:
        return None  # they may be codes
    return _of_numbers(name, known, lambda: len(np.unique(known)) == len(known))


def _of_texts(name: str, cells: Cells) -> Decision:
    found = None if cells.declared else _of_plain_numbers(name, cells)
    if found is not None:
        return found
    texts, places = cells.distinct
    if not len(texts):
        return Decision("leave out", "it has no values")
    lower = [text.lower() for text in texts]
    marks = np.array([text in MARKS for text in lower])
    real = texts[~marks]
    if len(texts) == 1:
        return _of_one(not (places < 0).any())
    if cells.declared:
        return Decision("category")
    if len(real) > 1:
        if set(lower) - MARKS in _PAIRS:
            return Decision("flag", _said_missing(texts[marks]))
        found = _of_written(name, cells, texts, marks)
        if found is not None:
            return found
    n_words = np.mean([len(text.split()) for text in texts[:_LOOKED_AT]])
    n_known = int((places >= 0).sum())
    if n_words >= _WORDS and len(texts) > _DISTINCT_TEXTS * n_known:
        return Decision("text")
    if len(texts) == n_known and n_known >= _FEWEST_IDS:
        return Decision(
            "leave out", "each of its values occurs once, so that none can be learned"
        )
    return Decision(
        "category", "its zeros in front make codes of its numbers" if _codes(real) else ""
    )


def _of_written(
    name: str, cells: Cells, texts: NDArray[Any], marks: NDArray[np.bool_]
) -> Decision | None:
    """Return the decision on numbers or dates that are written; None where they are neither."""
    real, places = texts[~marks], cells.distinct[1]
    rows = np.bincount(places[places >= 0], minlength=len(texts))[~marks]
    if _codes(real):
        return None
    for kind in ("number", "date"):
        style, note = style_of(kind, real)
        if not style:
            continue
        values = _read(kind, cells, style)[~marks]
        is_read = ~np.isnan(values)
        share = rows[is_read].sum() / rows.sum()
        n_words = int((~is_read).sum())
        enough = share >= (_MOSTLY if n_words > _FEW_WORDS else _HALF)
        if n_words and not (enough and is_read.sum() >= _FEWEST_IDS):
            continue
        notes = [note, _said_missing(texts[marks])]
        if not is_read.all():
            notes.append(
                f"{rows[~is_read].sum()} of its values are no {kind}, such as "
                f"{real[~is_read][0]!r}, and count as missing"
            )
        said = "; ".join(filter(None, notes))
        if kind == "date":
            return Decision("date", said, style)
        exact = parsed(real)
        exact = exact if exact.dtype.kind in "iu" else values[is_read]
        found = _of_numbers(name, exact, lambda: bool((rows == 1).all()))
        return found._replace(reason=found.reason or said, style=style)
    return None


def style_of(kind: str, texts: NDArray[Any]) -> tuple[str, str]:
    """Return how numbers or dates are written, and what to say of it; nothing if they are none."""
    if kind == "number":
        if np.isnan(numbers.read(texts[:_LOOKED_AT], ".")).mean() > 0.5:
            return "", ""
        return numbers.decimal_of(texts)
    return dates.order_of(texts) if kind == "date" else ("", "")


def _codes(texts: NDArray[Any]) -> bool:
    """Tell whether texts are digits, as many in each, and zeros in front."""
    width = len(texts[0]) if len(texts) else 0
    return (
        width >= _CODE
        and all(len(text) == width and text.isdigit() for text in texts)
        and any(text[0] == "0" for text in texts)
    )


def _said_missing(marks: NDArray[Any]) -> str:
    if not len(marks):
        return ""
    shown = ", ".join(map(repr, sorted(marks)))
    return f"{shown} {'count' if len(marks) > 1 else 'counts'} as missing"


def _flags(texts: NDArray[Any], style: str) -> NDArray[np.float64]:
    return np.array([_FLAGS.get(text.lower(), np.nan) for text in texts], float)


READERS: Any = {"number": numbers.read, "date": dates.read, "flag": _flags}


def _read(kind: str, cells: Cells, style: str) -> NDArray[np.float64]:
    """Return what the different texts of a column say, once."""
    if (kind, style) not in cells.read:
        cells.read[kind, style] = READERS[kind](cells.distinct[0], style)
    return cells.read[kind, style]


def values_of(
    kind: str, cells: Cells, style: str, words: tuple[str, ...] = ()
) -> tuple[NDArray[np.float64], int]:
    """Return a column as numbers, days or flags, NaN where there is none or an infinity.

    Parameters
    ----------
    kind : str
        "number", "date" or "flag".
    cells : Cells
    style : str
    words : tuple of str
        Further marks of missing values.

    Returns
    -------
    values : ndarray of shape (n_samples,)
    n_unread : int
        Values that are none of that kind, nor a mark of missing values.
    """
    if cells.form == "others":
        return np.full(len(cells.data), np.nan), int((~cells.gaps).sum())
    direct = {"number": ("numbers", "flags"), "date": ("dates",), "flag": ("flags",)}[
        kind
    ]
    if cells.form in direct:
        values = cells.data.astype(np.float64) / (86_400.0 if kind == "date" else 1.0)
        wrong = np.isinf(values)
        return np.where(wrong, np.nan, values) if wrong.any() else values, int(
            wrong.sum()
        )
    is_plain = kind == "number" and style == "." and (kind, style) not in cells.read
    if is_plain and cells.form == "texts" and not cells.declared:
        return _numbers_of(cells, style, words)
    texts, places = cells.distinct
    values = _read(kind, cells, style)
    values = np.where(np.isinf(values), np.nan, values)
    odd = np.isnan(values) & ~_are_marks(texts, words)
    n_unread = int(np.append(odd, False)[places].sum()) if odd.any() else 0
    return np.append(values, np.nan)[places], n_unread


def _numbers_of(
    cells: Cells, style: str, words: tuple[str, ...]
) -> tuple[NDArray[np.float64], int]:
    """Return numbers of texts that computers write, for the most part."""
    values = cells.parsed.astype(np.float64)
    values[np.isinf(values)] = np.nan
    left = np.flatnonzero(np.isnan(values) & ~cells.gaps)
    if not len(left):
        return values, 0
    few = Cells(pandas().Series(cells.data[left], dtype=object))
    texts, places = few.distinct
    found = numbers.read(texts, style)
    found[np.isinf(found)] = np.nan
    values[left] = np.append(found, np.nan)[places]
    odd = np.append(np.isnan(found) & ~_are_marks(texts, words), False)
    return values, int(odd[places].sum())


def _are_marks(texts: NDArray[Any], words: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([text.lower() in MARKS or text in words for text in texts], bool)


def unread_words(kind: str, cells: Cells, style: str) -> tuple[str, ...]:
    """Return texts that are none of the kind, nor a mark of missing values: some of them."""
    texts = cells.distinct[0]
    odd = ~np.isfinite(_read(kind, cells, style)) & ~_are_marks(texts, ())
    return tuple(texts[odd][:_MOST_WORDS])
