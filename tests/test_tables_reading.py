"""Files of tables as people have them: what is read of each, and what columns it makes."""

import gzip

import numpy as np
import pytest

from loclin.tables import TableEncoder, UnreadableFile, read, read_parts, reading

pd = pytest.importorskip("pandas", reason="needs the extra [tables]")
pytest.importorskip("duckdb", reason="needs the extra [tables]")

N = 40
YN = ["yn"[i % 2] for i in range(N)]


def lines(head, row):
    """Return a file of a first line and N rows."""
    return "\n".join([*([head] if head is not None else []), *(row(i) for i in range(N))]) + "\n"


# name, text, names of the columns, the first row, and kinds of the columns but the last
FILES = {
    "commas": (
        lines("a,b,label", lambda i: f"{i / 2},{i % 5},{YN[i]}"),
        ["a", "b", "label"],
        ["0.0", "0", "y"],
        ["number", "number"],
    ),
    "names are counts (pandas)": (
        lines("0,1,2", lambda i: f"{i / 2},{i % 5},{YN[i]}"),
        ["0", "1", "2"],
        ["0.0", "0", "y"],
        ["number", "number"],
    ),
    "names are years": (
        lines("2018,2019,2020", lambda i: f"{i / 2},{i % 5},{i % 2}"),
        ["2018", "2019", "2020"],
        ["0.0", "0", "0"],
        ["number", "number"],
    ),
    "semicolons and decimal commas": (
        lines("a;b;label", lambda i: f"{i},5;{i % 5},25;{YN[i]}"),
        ["a", "b", "label"],
        ["0,5", "0,25", "y"],
        ["number", "number"],
    ),
    "semicolons, thousands with points": (
        lines("a;b;label", lambda i: f"1.{100 + i},5;{i % 7};{YN[i]}"),
        ["a", "b", "label"],
        ["1.100,5", "0", "y"],
        ["number", "number"],
    ),
    "one feature with decimal commas": (
        lines("a;label", lambda i: f"{i},5;{YN[i]}"),
        ["a", "label"],
        ["0,5", "y"],
        ["number"],
    ),
    "separators in quoted names": (
        lines('"a;1;2;3","b","label"', lambda i: f"{i / 2},{i % 5},{YN[i]}"),
        ["a;1;2;3", "b", "label"],
        ["0.0", "0", "y"],
        ["number", "number"],
    ),
    "bars in a name": (
        lines("a,b,x|y|z", lambda i: f"{i / 2},{i % 5},{YN[i]}"),
        ["a", "b", "x|y|z"],
        ["0.0", "0", "y"],
        ["number", "number"],
    ),
    "bars": (
        lines("a|b|label", lambda i: f"{i / 2}|{i},{i % 9}|{YN[i]}"),
        ["a", "b", "label"],
        ["0.0", "0,0", "y"],
        ["number", "number"],
    ),
    "tabs": (
        lines("a\tb\tlabel", lambda i: f"{i / 2}\tx, {i % 3}\t{YN[i]}"),
        ["a", "b", "label"],
        ["0.0", "x, 0", "y"],
        ["number", "category"],
    ),
    "texts with separators and quotes": (
        lines("a,note,label", lambda i: f'{i / 2},"so; it, ""was"" {i % 3}",{YN[i]}'),
        ["a", "note", "label"],
        ["0.0", 'so; it, "was" 0', "y"],
        ["number", "category"],
    ),
    "line breaks in quotes": (
        lines('"a\nb",c,label', lambda i: f'{i / 2},"x\ny{i % 2}",{YN[i]}'),
        ["a\nb", "c", "label"],
        ["0.0", "x\ny0", "y"],
        ["number", "category"],
    ),
    "an index of pandas, shuffled": (
        lines(",a,label", lambda i: f"{(7 * i) % N},{i / 2},{YN[i]}"),
        ["Unnamed: 0", "a", "label"],
        ["0", "0.0", "y"],
        ["leave out", "number"],
    ),
    "separators at the ends of lines": (
        lines("a,label,", lambda i: f"{i / 2},{YN[i]},"),
        ["a", "label", "Unnamed: 2"],
        ["0.0", "y", None],
        ["number", "flag"],
    ),
    "a byte-order mark and DOS lines": (
        "\ufeff" + lines("a,label", lambda i: f"{i / 2},{YN[i]}").replace("\n", "\r\n"),
        ["a", "label"],
        ["0.0", "y"],
        ["number"],
    ),
    "blank lines": (
        "\n\n" + lines("a,label", lambda i: f"{i / 2},{YN[i]}\n"),
        ["a", "label"],
        ["0.0", "y"],
        ["number"],
    ),
    "blanks around cells": (
        lines("a, b , label", lambda i: f"{i / 2}, {i % 5} , {YN[i]} "),
        ["a", "b", "label"],
        ["0.0", " 0 ", " y "],
        ["number", "number"],
    ),
    "marks of missing values": (
        lines("a,b,label", lambda i: f"{i / 2 if i % 3 else '?'},{'n/a' if i % 4 else i},{YN[i]}"),
        ["a", "b", "label"],
        ["?", "0", "y"],
        ["number", "number"],
    ),
    "percents, money and signs": (
        lines("a,b,c,label", lambda i: f"{i}%,$0.{10 + i},\u2212{i / 2},{YN[i]}"),
        ["a", "b", "c", "label"],
        ["0%", "$0.10", "\u22120.0", "y"],
        ["number", "number", "number"],
    ),
    "flags with gaps": (
        lines("a,b,label", lambda i: f"{'' if i % 5 == 0 else i % 2 == 0},{i / 2},{YN[i]}"),
        ["a", "b", "label"],
        [None, "0.0", "y"],
        ["flag", "number"],
    ),
    "dates with the day first": (
        lines("a,b,label", lambda i: f"{1 + i % 28}.0{1 + i % 9}.2024,{i / 2},{YN[i]}"),
        ["a", "b", "label"],
        ["1.01.2024", "0.0", "y"],
        ["date", "number"],
    ),
    "names that occur twice": (
        lines("a,a,label", lambda i: f"{i / 2},{i % 5},{YN[i]}"),
        ["a", "a.1", "label"],
        ["0.0", "0", "y"],
        ["number", "number"],
    ),
    "quotes inside cells": (
        lines("a,b,label", lambda i: f'{i / 2},{i % 2}" pipe,{YN[i]}'),
        ["a", "b", "label"],
        ["0.0", '0" pipe', "y"],
        ["number", "category"],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files_as_people_have_them(tmp_path, name):
    text, names, first, kinds = FILES[name]
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    frame = read(path)
    assert list(frame.columns) == names
    assert len(frame) == N
    assert [None if pd.isna(cell) else cell for cell in frame.iloc[0]] == first
    encoder = TableEncoder().fit(frame.iloc[:, :-1])
    assert list(encoder.kinds_.values()) == kinds


def test_a_table_means_the_same_in_parts(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(FILES["semicolons and decimal commas"][0].encode()))
    whole = read(path)
    monkeypatch.setattr(reading, "CELLS_AT_ONCE", 1)
    found = list(read_parts(path))
    pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), whole)


def test_a_first_line_of_numbers_is_doubtful(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines(None, lambda i: f"{i / 2 + 7},{i % 5},{i % 2}"))
    assert "if it is a row, give" in read(path).attrs["doubts"][0]
    frame = read(path, header=False)
    assert (len(frame), list(frame.columns), frame.attrs["doubts"]) == (N, ["0", "1", "2"], [])
    path.write_text(FILES["names are counts (pandas)"][0])
    assert read(path).attrs["doubts"] == []
    assert "words over numbers" not in str(read(path, header=False).attrs["doubts"])
    path.write_text(FILES["commas"][0])
    assert "words over numbers ('a')" in read(path, header=False).attrs["doubts"][0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, the first line 2"),
        (b"a,b\n1,2\n3\n", "line 3 has 1 cells, the first line 2"),
        (b'a,b\n1,"2\n3,4\n', "line 2 cannot be read .a quote is not closed"),
        (
            b"# made by hand\na,b\n1,2\n",
            "line 2 has 2 cells, the first line 1; .* drop lines above",
        ),
        ("a,b\n1,\u00e9\n".encode("latin-1"), "not in UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "not in UTF-8"),
        (np.random.default_rng(0).bytes(5000), "not in UTF-8"),
        (b"a,b\n", "has no rows below the column names"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=message):
        read(path)


def test_a_row_far_below_that_is_uneven_is_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 30_000 + "1,2,3\n" + "1,2\n" * 50_000)
    with pytest.raises(UnreadableFile, match="line 30002 has 3 cells"):
        read(path)


def test_the_separator_that_makes_most_cells_is_taken(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("a,b|c,label", lambda i: f"{i},x|z,{YN[i]}"))
    assert list(read(path).columns) == ["a", "b|c", "label"]
    path.write_text(lines("a", lambda i: f"{i}"))
    assert read(path)["a"].tolist() == [str(i) for i in range(N)]


def test_folders_are_no_columns(tmp_path):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "year=2020"
    folder.mkdir()
    (folder / "t.csv").write_text(FILES["commas"][0])
    assert list(read(folder / "t.csv").columns) == ["a", "b", "label"]
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(folder / "t.parquet")
    assert list(read(folder / "t.parquet").columns) == ["a", "b"]


def test_names_that_are_patterns_are_names(tmp_path):
    for name in ("t[1].csv", "t*.csv", "t?.csv", "a b;'--.csv"):
        (tmp_path / name).write_text(f"a,b\n{len(name)},x\n")
        assert read(tmp_path / name)["a"].tolist() == [str(len(name))]


def test_parquet_columns_become_numbers_texts_flags_and_dates(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    import datetime
    from decimal import Decimal

    path = tmp_path / "t.parquet"
    columns = {
        "decimal": [Decimal("1.5")] * 2,
        "bytes": [b"x", b"\xff"],
        "nulls": arrow.nulls(2),
        "day": [datetime.date(2024, 1, 1)] * 2,
        "zoned": arrow.array(
            [datetime.datetime(2024, 1, 1, 5)] * 2, arrow.timestamp("us", tz="UTC")
        ),
        "flag": [True, None],
        "category": arrow.array(["u", "v"]).dictionary_encode(),
        "clock": [datetime.time(1)] * 2,
        "large": arrow.array([2**63] * 2, arrow.uint64()),
    }
    parquet.write_table(arrow.table(columns), path)
    frame = read(path)
    assert list(frame.columns) == list(columns)
    assert frame["decimal"].tolist() == [1.5, 1.5]
    assert frame["bytes"].tolist() == ["x", "\\xFF"]
    assert frame["nulls"].isna().all()
    assert str(frame["day"][0])[:10] == "2024-01-01"
    assert str(frame["zoned"][0]) == "2024-01-01 05:00:00"
    assert frame["clock"][0] == "01:00:00"
    assert frame["category"].tolist() == ["u", "v"]
    assert int(frame["large"][0]) == 2**63
    parquet.write_table(arrow.table({"a": [1], "b": [[1]], "c": [{"d": 1}]}), path)
    with pytest.raises(UnreadableFile, match="'b', 'c': lists or structs"):
        read(path)


def test_every_column_gets_a_name_of_its_own(tmp_path):
    path = tmp_path / "t.csv"
    names = ["a", "a", "", "a.1", "a", "Unnamed: 2", "a.1"]
    path.write_text(",".join(names) + "\n" + ",".join("1234567") + "\n")
    found = list(read(path).columns)
    assert len(set(found)) == 7
    assert found == ["a", "a.2", "Unnamed: 2", "a.1", "a.3", "Unnamed: 2.1", "a.1.1"]
    assert len(set(reading._unique(["x"] * 50_000))) == 50_000
