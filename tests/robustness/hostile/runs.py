"""Cases of names, options, outputs, streams and models."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from tests.robustness.hostile.case import (
    CSV,
    MAJORITY,
    PARTS,
    Case,
    X,
    Y,
    archive,
    close_all,
    close_out,
    compare,
    npy,
    on_file,
)


def names() -> Iterator[Case]:
    """Names of files and data sets."""
    for what, name in {
        "escapes": "red\x1b[31m\x07.csv",
        "a line break": "a\nb.csv",
        "a carriage return": "a\rloclin: all is well.csv",
        "right to left": "a\u202egnp.csv",
        "bytes that are no text": b"a\xff.csv".decode(errors="surrogateescape"),
        "markup": "[bold]<script>&amp;$x^2$.csv",
        "a dash first": "-x.csv",
        "blanks": " .csv",
        "dots": "...csv",
        "255 letters": "n" * 251 + ".csv",
    }.items():
        yield Case(f"name with {what}", partial(_named, name))
    for what, name in {
        "300 letters": "n" * 300 + ".csv",
        "5,000 letters": "n" * 5000,
        "many folders": "a/" * 3000 + "t.csv",
        "nothing": "",
        "a dot": ".",
        "no such set": "mnits",
        "escapes": "\x1b[2J",
        "no such file": "no/such/file.csv",
        "a device": "/dev/zero",
        "an archive": "t.tar.gz",
        "a packed npz": "t.npz.gz",
    }.items():
        yield Case(f"no file: {what}", lambda folder, name=name: ["compare", name, *MAJORITY])
    yield Case("a pipe", _pipe)
    yield Case("a link to itself", _loop)
    yield Case("a link to a device", _device)
    yield Case("a folder", _folder)


def _named(name: str, folder: Path) -> list[str]:
    files = ["--html", "t.html", "--plot", "t.svg", "--csv", "t.out"]
    return ["compare", *files, *compare(name, CSV, folder=folder)[2:], "--", name]


def _pipe(folder: Path) -> list[str]:
    os.mkfifo(folder / "t.csv")
    return ["compare", "t.csv", *MAJORITY]


def _loop(folder: Path) -> list[str]:
    (folder / "t.csv").symlink_to("t.csv")
    return ["compare", "t.csv", *MAJORITY]


def _device(folder: Path) -> list[str]:
    (folder / "t.csv").symlink_to("/dev/zero")
    return ["compare", "t.csv", *MAJORITY]


def _folder(folder: Path) -> list[str]:
    (folder / "t.csv").mkdir()
    return ["compare", "t.csv", *MAJORITY]


def options() -> Iterator[Case]:
    """Options out of range, of the wrong type, or unknown."""
    values = {
        "--threads": ("1000000000", "-1", "x", "1e3", "9" * 5000),
        "--jobs": ("1000000000", "0"),
        "--folds": ("1", "1000000000", "9" * 30),
        "--candidates": ("0", "9" * 30),
        "--budget": ("0", "-1", "nan", "inf", "1e400", "1e308"),
        "--seed": ("-1", "4294967296", "9" * 400),
        "--test-size": ("0", "1", "nan", "1e-300", "0.999999"),
        "--time-limit": ("-1", "nan", "1e400"),
        "--max-gb": ("0", "-1", "nan", "1e-9", "inf"),
        "--models": ("", ",", "svc", "\x1b[2J", "x" * 10**5),
        "--test": ("no.csv", ".", "t.csv", "\x1b.csv", "t.npz"),
        "--nonsense": ("1",),
    }  # fmt: skip
    for option, tried in values.items():
        for value in tried:
            title = f"option {option} {value[:12]!r}"
            yield on_file(title, "t.csv", CSV, option, value)
    for words in (["compare", "a", "b"], ["nonsense"], ["--nonsense"], ["compare", "--"]):
        yield Case(f"words {' '.join(words)}", lambda folder, words=words: [*words, *MAJORITY])


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))


def outputs() -> Iterator[Case]:
    """Results that cannot be written."""
    for option in ("--csv", "--html", "--plot", "--save"):
        yield on_file(f"output {option} on a full disk", "t.csv", CSV, option, "t.svg",
                      statuses=(1, 2), prepare=_small_files)  # fmt: skip
    for what, path in {
        "no folder": "no/such/file.png",
        "a folder": ".",
        "300 letters": "n" * 300 + ".png",
        "the data": "t.csv",
        "a full device": "/dev/full",
        "below a file": "t.csv/out.png",
        "escapes": "no\x1b[2J/x.png",
        "a folder of the system": "/proc/x.png",
    }.items():
        for option in ("--html", "--plot"):
            yield on_file(f"output {option} to {what}", "t.csv", CSV, option, path)
    yield on_file("output twice", "t.csv", CSV, "--html", "a", "--csv", "./a")


def _no_reader(file: IO[bytes]) -> Any:
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "wb")


def _full(file: IO[bytes]) -> Any:
    return open("/dev/full", "wb")


def streams() -> Iterator[Case]:
    """Make standard streams that are closed, full, or without a reader."""
    for what, words in {
        "compare": ["compare", "t.csv", *MAJORITY],
        "compare --json": ["compare", "t.csv", *MAJORITY, "--json"],
        "help": ["compare", "--help"],
        "version": ["--version"],
        "an error": ["compare", "no.csv"],
    }.items():
        make = partial(_with_table, words)
        yield Case(f"stdout full: {what}", make, (1, 2), stream=_full)
        yield Case(f"stdout without reader: {what}", make, (0, 1, 2), stream=_no_reader)
        yield Case(f"stdout closed: {what}", make, (0, 1, 2), prepare=close_out)
    yield Case("all streams closed", partial(_with_table, ["--version"]), (0, 1),
               prepare=close_all)  # fmt: skip


def _with_table(words: list[str], folder: Path) -> list[str]:
    (folder / "t.csv").write_bytes(CSV)
    return words


def values() -> Iterator[Case]:
    """Features that make models overflow or hang: here models run, in a process that is limited."""
    rng = np.random.default_rng(0)
    for scale in (1e-320, 1e-200, 1e30, 1e100, 1e149, 1e153, 1e200, 1e300):
        members = {"X": npy(rng.normal(size=(60, 3)) * scale), "y": npy(np.arange(60) % 2)}
        words = ["--models", "linearsvc,knn", "--budget", "0.1", "--time-limit", "8"]
        yield on_file(f"values of {scale:g}", "t.npz", archive(**members), *words, models=True)
    sparse = PARTS | {"data": X.ravel() * 1e300, "y": Y}
    members = {name: npy(part) for name, part in sparse.items()}
    words = ["--models", "linearsvc", "--budget", "0.1", "--time-limit", "8"]
    yield on_file("values of 1e300, sparse", "t.npz", archive(**members), *words, models=True)
    yield on_file("a limit of no time", "t.csv", CSV, "--models", "linearsvc,svc-rbf",
                  "--time-limit", "0.001", models=True)  # fmt: skip
