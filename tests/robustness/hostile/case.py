"""One case, and whole files for cases to break."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

MAJORITY = ["--models", "majority", "--time-limit", "0"]
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
ROWS = b"".join(b"%d,%d.5,%d,%s\n" % (i, i % 7, i % 3, b"xy"[i % 2 : i % 2 + 1]) for i in range(40))
CSV = b"a,b,c,kind\n" + ROWS
SVM = b"".join(b"%d 1:%d 2:%d.5 3:1\n" % (i % 2, i, i % 7) for i in range(40))


def _nothing() -> None:
    pass


def _given(file: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(file)


def close_out() -> None:
    os.close(1)


def close_all() -> None:
    for number in range(3):
        os.close(number)


@dataclass(frozen=True)
class Case:
    """One run: `make` fills a folder and returns the words after ``loclin``."""

    name: str
    make: Callable[[Path], list[str]]
    statuses: tuple[int, ...] = (0, 2)
    environment: Mapping[str, str] = field(default_factory=dict)
    stream: Callable[[IO[bytes]], AbstractContextManager[IO[bytes]]] = _given
    prepare: Callable[[], None] = _nothing
    models: bool = False

    @property
    def fresh(self) -> bool:
        """Tell whether the case needs a Python of its own."""
        return (
            self.models
            or bool(self.environment)
            or self.stream is not _given
            or (self.prepare in (close_out, close_all))
        )


def compare(
    name: str, content: bytes | Callable[[], bytes], *words: str, folder: Path
) -> list[str]:
    """Write the file, and return the words that compare models on it."""
    (folder / name).write_bytes(content() if callable(content) else content)
    return ["compare", name, *MAJORITY, *words]


def on_file(
    title: str, name: str, content: bytes | Callable[[], bytes], *words: str, **settings: Any
) -> Case:
    """Return a case of one file."""
    return Case(title, lambda folder: compare(name, content, *words, folder=folder), **settings)


Y = np.arange(40) % 2
X = np.random.default_rng(0).normal(size=(40, 3))
INDPTR = np.arange(0, 121, 3)
PARTS: dict[str, Any] = {
    "data": X.ravel(),
    "indices": np.tile(np.arange(3), 40),
    "indptr": INDPTR,
    "shape": np.array([40, 3]),
}


def npy(array: Any) -> bytes:
    """Return an array as an npy file."""
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


GOOD = {"X": npy(X), "y": npy(Y)}


def archive(compression: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    """Return an npz file of members as they are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return file.getvalue()


def header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    """Return the head of an npy file."""
    file = io.BytesIO()
    about = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue()
