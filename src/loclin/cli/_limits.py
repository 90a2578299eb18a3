"""How much of a data file is read: one limit in bytes, and what counts against it."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from loclin.cli._errors import InputError

__all__ = ["PACKED", "Limit", "opened"]

PACKED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
CHUNK = 2**20
LINE_SHARE = 0.1  # one line may take so much of the limit


def opened(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed where its suffix says that it is packed."""
    file: BinaryIO = PACKED.get(path.suffix.lower(), open)(path, "rb")
    return file


@dataclass(frozen=True)
class Limit:
    """The most that a data file may take, decompressed and in memory."""

    gigabytes: float = 1.0

    def check(self, path: Path, needed: float, what: str) -> None:
        """Raise where `what` needs more bytes than the limit."""
        if needed > 1e9 * self.gigabytes:
            raise InputError(
                f"{path}: {what} {needed / 1e9:,.3g} GB, and the limit is {self.gigabytes:g} GB; "
                "if the file is right, raise it with --max-gb"
            )

    def count(self, path: Path, *marks: bytes) -> list[int]:
        """Return how often each byte occurs in a text file, which is read but not kept.

        Raises
        ------
        InputError
            If the file, once decompressed, or one of its lines is above the limit.
        """
        counts: Counter[bytes] = Counter()
        size = line = 0
        with opened(path) as file:
            while chunk := file.read(CHUNK):
                size += len(chunk)
                end = chunk.rfind(b"\n")
                line = line + len(chunk) if end < 0 else len(chunk) - end - 1
                self.check(path, size, "its text takes more than")
                self.check(
                    path, line / LINE_SHARE, f"a line of {line / 1e6:,.0f} MB may take"
                )
                counts.update({mark: chunk.count(mark) for mark in marks})
        return [counts[mark] for mark in marks]
