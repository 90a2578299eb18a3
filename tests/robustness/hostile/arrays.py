"""Cases of files of arrays: npz and Parquet."""

from __future__ import annotations

import io
import itertools
import struct
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.robustness.hostile.case import (
    GOOD,
    INDPTR,
    PARTS,
    Case,
    X,
    Y,
    archive,
    header,
    npy,
    on_file,
)


def npz_bomb() -> bytes:
    """Return an archive whose X is 2 GB of zeros."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed,
        packed.open("X.npy", "w", force_zip64=True) as X,
    ):
        X.write(header((40, 25 * 10**6)))
        for _ in range(80):
            X.write(bytes(25 * 10**6))
    with zipfile.ZipFile(file, "a") as packed:
        packed.writestr("y.npy", npy(Y))
    return file.getvalue()


def npz_bombs() -> Iterator[Case]:
    """Make small archives that are gigabytes once they are decompressed."""
    yield on_file("bomb npz deflated", "t.npz", npz_bomb)
    yield on_file("bomb npz in npz", "t.npz", archive(X=archive(**GOOD), y=npy(Y)))


def npz_arrays() -> Iterator[Case]:
    """Arrays of wrong shapes and types."""
    arrays: dict[str, dict[str, Any]] = {
        "y 0-d": {"y": np.array(1)},
        "y 2-d": {"y": np.ones((40, 2))},
        "y too short": {"y": Y[:7]},
        "y empty": {"y": np.array([])},
        "y of NaN": {"y": np.full(40, np.nan)},
        "y of objects": {"y": np.array([{}, []] * 20, dtype=object)},
        "y complex": {"y": Y + 1j},
        "y of dates": {"y": Y.astype("M8[s]")},
        "y of records": {"y": np.zeros(40, [("a", "i4")])},
        "y of bytes": {"y": np.array([b"\xff", b"\xfe"])[Y]},
        "y with escapes": {"y": np.array(["\x1b[2J", "b"])[np.minimum(np.arange(40), 1)]},
        "y of long text": {"y": np.array(["a" * 10**5, "b"])[Y]},
        "y huge numbers": {"y": np.array([1e300, -1e300])[Y]},
        "X 0-d": {"X": np.array(1.0)},
        "X 1-d": {"X": np.ones(40)},
        "X 4-d": {"X": np.ones((40, 2, 2, 2))},
        "X without rows": {"X": np.ones((0, 3)), "y": np.array([])},
        "X 3-d without rows": {"X": np.ones((0, 3, 2)), "y": np.array([])},
        "X without columns": {"X": np.ones((40, 0))},
        "X of text": {"X": np.full((40, 3), "a")},
        "X complex": {"X": X + 1j},
        "X of NaN": {"X": X * np.nan},
        "X infinite": {"X": X / 0.0 if False else np.full((40, 3), np.inf)},
        "X long double": {"X": X.astype(np.longdouble) * np.longdouble("1e4000")},
        "X 1e300": {"X": X * 1e300},
        "X of booleans": {"X": X > 0},
        "X of dates": {"X": np.zeros((40, 3), "M8[s]")},
        "classes 0-d": {"classes": np.array("a")},
        "classes 2-d": {"classes": np.array([["a", "b"]])},
        "classes too few": {"classes": np.array(["a"])},
        "classes alike": {"classes": np.array(["a", "a"])},
        "X twice": {"x": X},
        "no y": {"y": None},
        "no X": {"X": None},
        "y_train alone": {"y": None, "y_train": Y},
        "a split that does not fit": {"X_train": X, "y_train": Y, "X_test": X[:, :2], "y_test": Y},
        "test labels unseen": {"X_train": X, "y_train": Y, "X_test": X, "y_test": Y + 7},
    }  # fmt: skip
    for what, other in arrays.items():
        given = {"X": X, "y": Y} | other
        members = {name: npy(array) for name, array in given.items() if array is not None}
        yield on_file(f"npz {what}", "t.npz", archive(**members))


def npz_csr() -> Iterator[Case]:
    """Forged parts of a sparse matrix."""

    def changed(name: str, place: int, value: float, dtype: Any = np.int64) -> dict[str, Any]:
        array = PARTS[name].astype(dtype)
        array[place] = value
        return {name: array}

    forged: dict[str, dict[str, Any]] = {
        **{f"index {value:g}": changed("indices", 7, value)
           for value in (3, 4, 10**9, -1, -(10**9), 2**31, 2**62, -(2**63))},
        **{f"indptr[{place}] {value:g}": changed("indptr", place, value)
           for place, value in itertools.product((0, 5, -1), (-3, 90, 10**9, 2**62))},
        "indices of floats": changed("indices", 7, 1.5, float),
        "indices of NaN": changed("indices", 7, np.nan, float),
        "indptr of floats": {"indptr": INDPTR.astype(float)},
        "indices unsigned": {"indices": PARTS["indices"].astype(np.uint64) + np.uint64(2**63)},
        "indices of text": {"indices": PARTS["indices"].astype(str)},
        "indices 2-d": {"indices": PARTS["indices"].reshape(40, 3)},
        "indices short": {"indices": PARTS["indices"][:50]},
        "data short": {"data": X.ravel()[:50]},
        "data of text": {"data": X.ravel().astype(str)},
        "data of NaN": {"data": X.ravel() * np.nan},
        "data 1e300": {"data": X.ravel() * 1e300},
        "data 2-d": {"data": X},
        "indptr short": {"indptr": INDPTR[:20]},
        "indptr empty": {"indptr": INDPTR[:0]},
        "shape 0-d": {"shape": np.array(40)},
        "shape of three": {"shape": np.array([40, 3, 1])},
        "shape of floats": {"shape": np.array([40.0, 3.5])},
        "shape negative": {"shape": np.array([40, -3])},
        "shape of rows huge": {"shape": np.array([2**62, 3])},
        "shape of columns huge": {"shape": np.array([40, 2**62])},
        "shape of columns 10**9": {"shape": np.array([40, 10**9])},
        "shape empty": {"shape": np.array([], int)},
    }  # fmt: skip
    for what, other in forged.items():
        members = {name: npy(part) for name, part in (PARTS | {"y": Y} | other).items()}
        yield on_file(f"npz csr {what}", "t.npz", archive(**members))


def npz_files() -> Iterator[Case]:
    """Make archives that are no archives, or lie about what they hold."""
    whole = archive(**GOOD)

    def flagged(place: int, value: int) -> bytes:
        bits = bytearray(whole)
        bits[place] = value
        bits[bits.index(b"PK\x01\x02") + place + 2] = value
        return bytes(bits)

    shapes = [(10**12,), (40, 10**9), (2**62, 4), (-5, 3), (40, 3, 10**15)]
    files = {
        **{f"header of {shape}": archive(X=header(shape) + bytes(99), y=npy(Y))
           for shape in shapes},
        "header of text": archive(X=header((1,), "|S1000000000") + b"a", y=npy(Y)),
        "header of objects": archive(X=header((40,), "|O") + b"cos\nsystem\n.", y=npy(Y)),
        "header of junk": archive(X=b"\x93NUMPY\x01\x00v\x00{'descr': __import__('os')}", y=npy(Y)),
        "header too long": archive(X=b"\x93NUMPY\x02\x00\xff\xff\xff\xffx", y=npy(Y)),
        "header nested": archive(X=b"\x93NUMPY\x01\x00\xf0\x0f" + b"(" * 4080, y=npy(Y)),
        "header version 9": archive(X=b"\x93NUMPY\x09\x00v\x00{}", y=npy(Y)),
        "member of text": archive(**GOOD, classes=b"just text"),
        "member empty": archive(X=b"", y=npy(Y)),
        "encrypted": flagged(6, 1),
        "compression unknown": flagged(8, 97),
        "sizes forged": whole.replace(struct.pack("<I", len(GOOD["X"])), struct.pack("<I", 2**31)),
        "checks forged": whole[:14] + b"\x00" * 4 + whole[18:],
        "an npy": npy(X),
        "a pickle": b"\x80\x04cos\nsystem\n(S'true'\ntR.",
        "a zip of a folder": archive(**{"../../X": npy(X), "y": npy(Y)}),
        "many members": archive(**{f"m{i}": b"" for i in range(20_000)}, **GOOD),
        "lzma inside": archive(zipfile.ZIP_LZMA, **GOOD),
    }  # fmt: skip
    for what, content in files.items():
        yield on_file(f"npz file {what}", "t.npz", content)


def parquet() -> Iterator[Case]:
    """Parquet files; the writer is PyArrow, without which there are none."""
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError:
        return

    def table(**columns: Any) -> bytes:
        file = io.BytesIO()
        pq.write_table(pa.table(columns), file)
        return file.getvalue()

    kind = pa.array(["x", "y"] * 20)
    a = pa.array(np.arange(40.0))
    twice = io.BytesIO()
    pq.write_table(pa.table([a, a, kind], names=["a", "a", "kind"]), twice)
    whole = table(a=a, kind=kind)
    bits = bytearray(whole)
    bits[len(bits) // 2] ^= 0xFF
    files: dict[str, bytes | Callable[[], bytes]] = {
        "lists": table(a=a, kind=pa.array([[1], [2]] * 20)),
        "structs": table(a=pa.array([{"b": 1}] * 40), kind=kind),
        "maps": table(a=pa.array([[("b", 1)]] * 40, pa.map_(pa.string(), pa.int64())), kind=kind),
        "nulls": table(a=pa.nulls(40), kind=kind),
        "null labels": table(a=a, kind=pa.nulls(40)),
        "missing labels": table(a=a, kind=pa.array(["x", None] * 20)),
        "missing values": table(a=pa.array([1.0, None] * 20), kind=kind),
        "missing integers": table(a=pa.array([2**60, None] * 20), kind=kind),
        "times": table(a=pa.array([0] * 40, pa.timestamp("s")), kind=kind),
        "decimals": table(a=pa.array([1] * 40, pa.decimal128(5, 2)), kind=kind),
        "bytes": table(a=a, kind=pa.array([b"\xff", b"\xfe"] * 20)),
        "dictionaries": table(a=a, kind=kind.dictionary_encode()),
        "text of 100 kB": table(a=a, kind=pa.array(["x" * 10**5, "y"] * 20)),
        "names twice": twice.getvalue(),
        "names with escapes": table(**{"a\x1b[2J": kind, "kind": kind}),
        "one column": table(kind=kind),
        "no rows": table(a=a[:0], kind=kind[:0]),
        "no columns": table(),
        "half": whole[: len(whole) // 2],
        "a flipped byte": bytes(bits),
        "no end": whole[:-8],
        "ends alone": b"PAR1PAR1",
        "a footer of 4 GB": b"PAR1" + bytes(99) + b"\xff\xff\xff\xffPAR1",
        "junk": b"PAR1" + b"\x15" * 5000 + struct.pack("<I", 4990) + b"PAR1",
        "bomb of zeros": lambda: table(a=np.zeros(70_000_000), kind=np.zeros(70_000_000, bool)),
        "bomb of text": lambda: table(
            a=np.arange(5000.0), kind=pa.array(["x" * 10**5, "y"]).take(np.arange(5000) % 2)
        ),
        "bomb of a dictionary": lambda: table(
            a=np.arange(10**6), kind=pa.DictionaryArray.from_arrays(
                np.arange(10**6, dtype=np.int32) % 2, ["x" * 10**4, "y"])
        ),
        "10,000 columns": lambda: table(**{f"c{i}": kind for i in range(10_000)}),
    }  # fmt: skip
    for what, content in files.items():
        yield on_file(f"parquet {what}", "t.parquet", content)
