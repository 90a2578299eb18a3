"""What is common to readers of files: their kind, their size, and what is said of broken ones."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UnreadableFile(ValueError):
    """A file that cannot be read, or not as what it was taken for."""


def suffix_of(path: Path) -> str:
    """Return what tells a file's kind, in lower case; ``.gz`` after it does not."""
    name = path.name.lower()
    packed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    return "" if packed and suffix in (".npz", ".parquet", ".pq") else suffix


def text_size(path: Path, limit: float) -> int:
    """Return a text file's length, unpacked, or one above the limit."""
    if path.suffix.lower() != ".gz":
        return path.stat().st_size
    size = 0
    with gzip.open(path) as file:
        while size <= limit and (chunk := file.read(2**20)):
            size += len(chunk)
    return size


def check_size(path: str, needed: float, limit: float, what: str) -> None:
    """Raise where ``what`` needs more bytes than the limit."""
    if needed > limit:
        raise UnreadableFile(
            f"{path}: {what} {needed / 1e9:,.3g} GB, and the limit is {limit / 1e9:g} GB; "
            "if the file is right, allow more (max_bytes, --max-gb)"
        )


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn whatever a reader raises on a broken file into an UnreadableFile."""
    try:
        yield
    except (UnreadableFile, ImportError, GeneratorExit):
        raise
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path}: not in UTF-8; save it in that encoding") from error
    except OSError as error:
        why = error.strerror or " ".join(str(error).split())
        raise UnreadableFile(
            f"{path}: cannot be read ({why}); check the name, the folder and the file"
        ) from error
    except Exception as error:
        raise UnreadableFile(f"{path}: {_why(str(error))}") from error


def _why(text: str) -> str:
    """Say what is wrong with a file in a few words."""
    line = re.search(r"on Line: (\d+)", text)
    widths = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if line and widths:
        return (
            f"line {line[1]} has {widths[2]} cells, the first line {widths[1]}; mend that line, "
            "drop lines above the names, and put texts with separators in quotes"
        )
    if "unicode" in text.lower():
        return "not in UTF-8; save it in that encoding"
    if "state machine" in text:
        return "its lines end in different ways; save it with one kind of line end"
    if line:
        last = "it is too long" if "line size" in text else "a quote is not closed"
        return f"line {line[1]} cannot be read ({last}); mend that line"
    return f"cannot be read ({' '.join(text.split())[:160]}); mend it or save it again"
