"""Cases of text files: CSV and svmlight, packed or not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tests.robustness.hostile.case import (
    CSV,
    GOOD,
    PACK,
    ROWS,
    SVM,
    Case,
    archive,
    on_file,
)


def packed() -> Iterator[Case]:
    """Make truncated files, junk, flipped bytes, of every kind and compression."""
    wholes = {"csv": CSV, "tsv": CSV.replace(b",", b"\t"), "svm": SVM, "npz": archive(**GOOD)}
    for kind, whole in wholes.items():
        for end, pack in PACK.items():
            if kind == "npz" and end:
                continue
            content = pack(whole)
            half, bits = len(content) // 2, bytearray(content)
            bits[half] ^= 0xFF
            broken = {
                "half": content[:half],
                "all but a byte": content[:-1],
                "ten bytes": content[:10],
                "a flipped byte": bytes(bits),
                "junk": bytes(np.random.default_rng(0).integers(0, 256, 4000, dtype=np.uint8)),
                "junk behind": content + b"\x00\xff junk" * 9,
                "zeros": bytes(5000),
                "nothing": b"",
            }
            for what, broke in broken.items():
                yield on_file(f"{kind}{end} {what}", f"t.{kind}{end}", broke)


def bombs() -> Iterator[Case]:
    """Small files that are gigabytes once they are decompressed."""
    for end in (".gz", ".bz2", ".xz"):
        for what, unit in {"one line": b"1" * 2**20, "short lines": b"1,2\n" * 2**18}.items():
            yield on_file(f"bomb csv{end} {what}", f"t.csv{end}", partial(bomb, end, unit))
        rows = b"1 1:1\n" * 2**17
        yield on_file(f"bomb svm{end}", f"t.svm{end}", partial(bomb, end, rows))
    wide = b",".join([b"1"] * 3000) + b"\n" + b"1\n" * 10**6
    yield on_file("bomb csv of short rows", "t.csv", wide)
    yield on_file("bomb csv of commas", "t.csv", b",".join([b""] * 2 * 10**6) + b"\n1\n")
    yield on_file("bomb long label", "t.csv", CSV + (b"1,2,3," + b"z" * 10**7 + b"\n") * 3)
    yield on_file(
        "bomb label of 100 MB", "t.csv", partial(bytes.join, b"", [CSV, b"1,2,3,", b"z" * 10**8])
    )


def bomb(end: str, unit: bytes, size: int = 3 * 10**9) -> bytes:
    """Return about so many bytes of a unit, compressed in parts, as all these formats allow."""
    return PACK[end](unit * 8) * (size // (8 * len(unit)) + 1)


def tables() -> Iterator[Case]:
    """CSV of odd shapes."""
    rows = ROWS
    shapes = {
        "rows longer than the header": b"a,b,kind\n" + rows,
        "rows much longer": b"a,b\n" + rows,
        "rows shorter": b"a,b,c,d,e,kind\n" + rows,
        "trailing commas": CSV.replace(b"\n", b",\n"),
        "trailing commas in rows": b"a,b,c,kind\n" + rows.replace(b"\n", b",\n"),
        "values beyond the header": b"a,b,c,kind\n" + rows.replace(b"\n", b",7\n"),
        "write.table of R": b"a b c kind\n" + rows.replace(b",", b" "),
        "a comment first": b"# made, by hand\n" + CSV,
        "a comment without commas": b"# made by hand\n" + CSV,
        "line break in a name": b'a,"b\nb",c,kind\n' + rows,
        "line breaks in values": b"a,b,c,kind\n" + rows.replace(b"x", b'"x\nx"'),
        "a quote that never ends": b'a,"b,c,kind\n' + rows,
        "a quote in the middle": b'a,b"b,c,kind\n' + rows,
        "quotes everywhere": b'"""a""","b""","c","kind"\n' + rows,
        "one row": b"a,b,c,kind\n1,2,3,x\n",
        "a header alone": b"a,b,c,kind\n",
        "one column": b"kind\n" + b"x\ny\n" * 20,
        "one cell": b"1",
        "commas alone": b",,,\n" * 20,
        "blank lines": b"\n" * 5000,
        "blanks and tabs": b" \t \n" * 500,
        "carriage returns": CSV.replace(b"\n", b"\r"),
        "mixed ends": CSV.replace(b"\n", b"\r\n", 20),
        "names twice": b"a,a,a.1,kind\n" + rows,
        "names all empty": b",,,\n" + rows,
        "a name of 200,000 letters": b"a," + b"b" * 200_000 + b",c,kind\n" + rows,
        "names with escapes": b"a\x1b[31m,b\x07,c\x9b,kind\n" + rows.replace(b".5", b"what"),
        "labels with escapes": b"a,b,c,kind\n" + rows.replace(b"x", b"\x1b[2Jx\x00"),
        "a label once": CSV + b"1,2,3,\x1b[31mz\n",
        "numbers in words": CSV + b"one,2,3,x\n",
        "missing values": CSV + b"NA,2,,x\n?,1,1,y\n",
        "missing labels": CSV + b"1,2,3,\n",
        "infinite values": CSV + b"inf,2,3,x\n-Infinity,1,2,y\n",
        "1e400": CSV + b"1e400,2,3,x\n",
        "1e300": CSV + b"1e300,2,3,x\n-1e300,2,3,x\n",
        "hexadecimal": CSV + b"0x1F,2,3,x\n",
        "integers of 400 digits": CSV + b"1" * 400 + b",2,3,x\n",
        "integers above 2**64": CSV + b"18446744073709551617,2,3,x\n",
        "booleans": CSV.replace(b".5", b""). replace(b",0,", b",True,"),
        "dates": CSV.replace(b".5", b"-01-01"),
        "100,000 columns": b",".join([b"1"] * 10**5 + [b"x"]) + b"\n",
        "million columns": b",".join([b"1"] * 10**6 + [b"x"]) + b"\n",
        "million columns, no commas": b";".join([b"1"] * 10**6) + b"\n",
        "50,000 columns": b"".join(b"1," * 50_000 + b"%c\n" % kind for kind in b"xyxyxy"),
        "a class a row": b"a,kind\n" + b"".join(b"%d,k%d\n" % (i, i) for i in range(90)),
        "a quantity": b"a,kind\n" + b"".join(b"%d,%d.25\n" % (i, i) for i in range(90)),
        "close floats": b"a,kind\n" + b"".join(b"%d,0.123456%d\n" % (i, i % 2) for i in range(90)),
        "NUL bytes": CSV.replace(b"3", b"\x00"),
        "html": b"<!doctype html><html><body>404, not found</body></html>\n" * 9,
        "json": b'{"a": [1, 2, 3], "b": 4}\n' * 9,
    }  # fmt: skip
    for what, content in shapes.items():
        yield on_file(f"csv {what}", "t.csv", content)
    for target in ("none", "", "-1", "4", "99999999999999999999", "\x1b[2J", "b" * 10**5, "a"):
        title = f"csv target {target[:8]!r}"
        yield on_file(title, "t.csv", CSV, f"--target={target}")
    yield on_file("csv target twice", "t.csv", b"a,a,c,kind\n" + ROWS, "--target=a")


def encodings() -> Iterator[Case]:
    """Tables in other encodings, and under other locales."""
    text = CSV.decode().replace("kind", "Größe").replace("x", "é")
    for coding in ("latin-1", "utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7", "cp037"):
        yield on_file(f"encoding {coding}", "t.csv", text.encode(coding))
    rare = "x\u202ey\u2028z\U0001f600"
    for coding in ("ascii", "latin-1", "utf-8"):
        yield on_file(
            f"printed in {coding}", "t\u00e9.csv", text.replace("é", rare).encode() + b"1,2,3,q\n",
            environment={"PYTHONIOENCODING": coding},
        )  # fmt: skip
    yield on_file("locale C", "t\u00e9.csv", text.encode(), environment={"LC_ALL": "C"})
    broken = CSV.replace(b"x", b"\xc3\x28")
    yield on_file("encoding invalid UTF-8", "t.csv", broken)
    yield on_file("encoding surrogates", "t.csv", CSV.replace(b"x", b"\xed\xa0\x80"))


def svmlight() -> Iterator[Case]:
    """Numbers and lines that svmlight does not have."""
    for index in (10**6, 10**7, 10**9, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30, -1, 0, 1.5):
        yield on_file(f"svm index {index}", "t.svm", SVM + f"1 {index}:1\n".encode())
    for value in ("1e400", "nan", "inf", "1e300", "x", "", "1:2", "0x10", "1_0", "1" * 5000):
        yield on_file(f"svm value {value[:8]!r}", "t.svm", SVM + f"1 7:{value}\n".encode())
    for label in ("nan", "x", "1,2", "", "1e400", "0.1234567", "9" * 400):
        yield on_file(f"svm label {label[:8]!r}", "t.svm", SVM + f"{label} 1:1\n".encode() * 3)
    lines = {
        "without features": b"1\n0\n" * 20,
        "one row": b"1 1:1\n",
        "comments alone": b"# nothing\n" * 20,
        "indices that fall": SVM + b"1 3:1 2:1\n",
        "indices twice": SVM + b"1 2:1 2:1\n",
        "qid": SVM.replace(b" 1:", b" qid:3 1:"),
        "no newline": SVM[:-1],
        "NUL": SVM.replace(b"3:1", b"3:\x001"),
        "a long line": SVM + b"1 " + b" ".join(b"%d:1" % i for i in range(1, 200_000)) + b"\n",
        "a csv": CSV,
        "blank lines": SVM.replace(b"\n", b"\n\n"),
    }
    for what, content in lines.items():
        yield on_file(f"svm {what}", "t.txt", content)
