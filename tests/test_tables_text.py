"""Cells as a file has them, all texts: what kind a column is, and what its values say."""

import datetime
import time
import warnings
from decimal import Decimal

import numpy as np
import pytest

from loclin.tables import TableEncoder

pd = pytest.importorskip("pandas", reason="needs the extra [tables]")

from loclin.tables.cells import Cells  # noqa: E402
from loclin.tables.kinds import kind_of, values_of  # noqa: E402
from loclin.tables.numbers import MARKS, read  # noqa: E402

N = 24
NAN = float("nan")


def column(*values):
    """A column of these values in turn."""
    return pd.Series([values[k % len(values)] for k in range(N)])


def told(*values, name="x"):
    """The kind of a column, what is said of it, and what its first values are."""
    cells = Cells(column(*values))
    found = kind_of(name, cells)
    if found.kind not in ("number", "date", "flag"):
        return found.kind, found.reason, None
    numbers = values_of(found.kind, cells, found.style)[0][: len(values)]
    return found.kind, found.reason, numbers.tolist()


def days(text):
    return float(np.datetime64(text, "s").astype(int) / 86_400)


@pytest.mark.parametrize(
    ("written", "values", "said"),
    [
        (["0,5", "1,25", "-3"], [0.5, 1.25, -3], "'0,5' is 0.5"),
        (["1.234,56", "1.234", "7,5"], [1234.56, 1234, 7.5], "'1.234' is 1234"),
        (["1.234.567", "1.234"], [1234567, 1234], "'1.234' is 1234"),
        (["1.234", "5.678"], [1.234, 5.678], ""),
        (["1,234", "5,678"], [1234, 5678], "no value tells"),
        (["1,234", "0,5"], [1.234, 0.5], "'1,234' is 1.234"),
        (["1,234", "1,25"], [1.234, 1.25], "'1,234' is 1.234"),
        (["1,000", "12,3456"], [1, 12.3456], "'1,000' is 1"),
        (["1,000", "2.000.000"], [1, 2_000_000], "'1,000' is 1"),
        (["1,000", "1,234.5"], [1000, 1234.5], "'1,000' is 1000"),
        (["12,34,567", "1"], [1234567, 1], "is 1234567"),
        (["1 000", "2 500,5"], [1000, 2500.5], "'2 500,5' is 2500.5"),
        (["1\u00a0000", "2\u202f500.5"], [1000, 2500.5], "is 1000"),
        (["1'000", "2\u2019500.25"], [1000, 2500.25], '"1\'000" is 1000'),
        (["5%", "7.5 %"], [0.05, 0.075], "'5%' is 0.05"),
        (["$0.5", "12 €", "CHF 3"], [0.5, 12, 3], "'$0.5' is 0.5"),
        (["\u2212$1,200", "$-5"], [-1200, -5], "is -1200"),
        (["\u22125", "+6", "1e5"], [-5, 6, 1e5], ""),
        (["1,5e3", "2"], [1500, 2], "'1,5e3' is 1500"),
        (["inf", "1e400", "2", "3"], [NAN, NAN, 2, 3], ""),
        (["0", "1"], [0, 1], ""),
    ],
)
def test_numbers_as_people_write_them(written, values, said):
    kind, reason, found = told(*written)
    assert kind == "number"
    np.testing.assert_allclose(found, values, rtol=1e-15)
    assert said in reason
    assert bool(said) == bool(reason)


@pytest.mark.parametrize(
    "written",
    [
        ["1.2.3", "4.5.6"],
        ["1,2,3", "4"],
        ["0x10", "0x11"],
        ["1 2", "3"],
        ["5 %%", "6"],
        ["$5€", "6"],
    ],
)
def test_what_is_no_number(written):
    assert told(*written)[0] == "category"


@pytest.mark.parametrize("mark", sorted(MARKS))
def test_marks_of_missing_values_are_gaps_but_in_categories(mark):
    for values, kind in [(["1", "2.5"], "number"), (["2024-01-05", "2024-05-01"], "date"),
                         (["yes", "no"], "flag")]:  # fmt: skip
        for shown in (mark, mark.upper(), f" {mark} "):
            found, reason, numbers = told(*values, shown)
            assert found == kind
            assert np.isnan(numbers).tolist() == [False, False, True]
            # pandas reads some of them as no number, and nothing is said of these
            assert "as missing" in reason or mark in ("nan", "-nan")
    names = (
        TableEncoder().fit(pd.DataFrame({"x": column("NL", "DE", mark)})).get_feature_names_out()
    )
    assert f"x = {mark}" in names


@pytest.mark.parametrize(
    ("written", "values"),
    [
        (["TRUE", "False"], [1, 0]),
        (["yes", "No"], [1, 0]),
        (["Y", "n"], [1, 0]),
        (["t", "F"], [1, 0]),
    ],
)
def test_flags(written, values):
    assert told(*written) == ("flag", "", values)


@pytest.mark.parametrize("written", [["yes", "n"], ["yes", "no", "maybe"], ["m", "f"]])
def test_what_is_no_flag(written):
    assert told(*written)[0] == "category"


@pytest.mark.parametrize(
    ("written", "values", "said"),
    [
        (["31/12/2024", "01/02/2024"], ["2024-12-31", "2024-02-01"], "days come first"),
        (["12/31/2024", "01/02/2024"], ["2024-12-31", "2024-01-02"], "months come first"),
        (["31.12.2024", "1.2.2024"], ["2024-12-31", "2024-02-01"], "days come first"),
        (["01/02/2024", "03/04/2024"], ["2024-01-02", "2024-03-04"], "months are taken"),
        (["01.02.2024", "03.04.2024"], ["2024-02-01", "2024-04-03"], "days are taken"),
        (["31-12-24", "1-2-99"], ["2024-12-31", "1999-02-01"], "days come first"),
        (["2024/12/31", "2024/1/5"], ["2024-12-31", "2024-01-05"], ""),
        (["31/12/2024 10:30", "01/02/2024 9:05:07"], ["2024-12-31T10:30", "2024-02-01T09:05:07"],
         "days"),
        (["12/31/2024 9:30 PM", "1/2/2024 12:00 AM"], ["2024-12-31T21:30", "2024-01-02"], "months"),
        (["2024-01-05T10:00:00+02:00", "2024-01-05 10:00Z"], ["2024-01-05T08:00",
         "2024-01-05T10:00"], ""),
        (["5 Dec 2024", "Dec 31, 2024"], ["2024-12-05", "2024-12-31"], ""),
    ],
)  # fmt: skip
def test_dates_as_people_write_them(written, values, said):
    kind, reason, found = told(*written)
    assert kind == "date"
    assert found == pytest.approx([days(value) for value in values], abs=1e-9)
    assert said in reason
    assert bool(said) == bool(reason)


@pytest.mark.parametrize(
    "written", [["13/13/2024", "1/2/2024"], ["31/12/2024", "12/31/2024"], ["1.2.3", "1.2.4"],
                ["2024-02-30", "2024-02-31"]]
)  # fmt: skip
def test_what_is_no_date(written):
    assert told(*written)[0] == "category"


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__", "id", "customerId", "Row"])
def test_columns_that_number_the_rows_are_left_out_whatever_their_order(name):
    numbers = np.random.default_rng(0).permutation(N)
    for values in (numbers, numbers.astype(str), numbers.astype(float)):
        assert told(*values, name=name)[:2] == ("leave out", "it numbers the rows")
        assert told(*values, name="paid")[0] == "number"
    assert told(*(numbers // 2), name=name)[0] == "number"
    assert told(*(numbers + 0.5), name=name)[0] == "number"


def test_whole_numbers_that_no_float_tells_apart_are_ids():
    large = [2**53 + k for k in range(N)]
    for values in (large, list(map(str, large))):
        assert told(*values)[:2] == (
            "leave out", "its whole numbers are distinct and beyond 2**53, as ids are",
        )  # fmt: skip
        assert told(*values[:3])[0] == "number"  # they are not distinct
    table = pd.DataFrame({"x": large, "y": range(N)})
    assert TableEncoder(kinds={"x": "number"}).fit(table).kinds_["x"] == "number"


def test_zeros_in_front_make_codes():
    assert told("01234", "12345")[:2] == (
        "category", "its zeros in front make codes of its numbers",
    )  # fmt: skip
    assert told("1234", "12345")[0] == "number"


def test_few_values_of_another_kind_are_missing():
    values = [str(k + 0.5) for k in range(N)]
    kind, reason, found = told("a lot", *values[1:])
    assert kind == "number"
    assert np.isnan(found[0])
    assert "1 of its values are no number, such as 'a lot', and count as missing" in reason
    assert told("a lot", "some", "few", *values[3:])[0] == "leave out"
    # one word for all that is missing, of another language
    kind, reason, found = told("k.A.", *values[:22])
    assert kind == "number"
    assert "2 of its values are no number, such as 'k.A.'" in reason
    encoder = TableEncoder().fit(pd.DataFrame({"x": column("k.A.", *values[:22])}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.transform(pd.DataFrame({"x": ["k.A.", "1.5"]}))
    with pytest.warns(UserWarning, match="1 of 2 values are no number"):
        encoder.transform(pd.DataFrame({"x": ["k.A.", "keine"]}))


def test_objects():
    table = pd.DataFrame({
        "decimal": column(Decimal("1.5"), Decimal(2), None),
        "bytes": column(b"x", b"y"),
        "bytes of numbers": column(b"1,5", b"2"),
        "date": column(datetime.date(2024, 1, 5), datetime.date(2024, 1, 6)),
        "list": [[k] for k in range(N)],
        "dict": [{}] * N,
        "text": [f"a{k} b{k} c{k} d{k}" for k in range(N)],
    })  # fmt: skip
    encoder = TableEncoder().fit(table)
    assert list(encoder.kinds_.values()) == [
        "number", "category", "number", "date", "leave out", "leave out", "leave out",
    ]  # fmt: skip
    assert encoder.notes_ == [
        "'bytes of numbers' is read as a number: '1,5' is 1.5",
        "'list' is left out: its values are of the type list",
        "'dict' is left out: its values are of the type dict",
        "'text' is left out: no word occurs twice in it",
    ]
    expected = [[1.5, 0, 1, 0, 1.5, days("2024-01-05"), 4]]
    np.testing.assert_array_equal(encoder.transform(table[:1]), expected)
    assert "bytes = x" in encoder.get_feature_names_out()


def written(n=60):
    """A table of texts whose first rows could mean something else."""
    return pd.DataFrame({
        "price": [*["1,234", "5,678"] * (n // 2 - 1), "0,5", "1,25"],
        "when": [*["01/02/2024", "03/04/2024"] * (n // 2 - 1), "31/12/2024", "02/01/2024"],
        "paid": ["y", "N", "?"] * (n // 3),
        "size": ["3 %", "NA", "5.5 %"] * (n // 3),
        "shop": ["1", "2.0", "x"] * (n // 3),
    })  # fmt: skip


@pytest.mark.parametrize("dtype", ["object", "string"])
def test_a_table_means_the_same_in_parts(dtype):
    table = written().astype(dtype)
    encoder = TableEncoder()
    features = encoder.fit_transform(table)
    parts = [encoder.transform(table[k : k + 1]) for k in range(len(table))]
    np.testing.assert_array_equal(np.vstack(parts), features)
    assert features[0, 0] == 1.234
    assert encoder.transform(table[:1])[0, 1] == days("2024-02-01")


@pytest.mark.parametrize("odd", [True, datetime.timedelta(1), 2.0, b"x", datetime.date(2024, 1, 5)])
def test_a_category_of_several_types_means_the_same_in_parts(odd):
    table = pd.DataFrame({"x": pd.Series([odd, "a", odd, "b"] * 6, dtype=object)})
    encoder = TableEncoder()
    features = encoder.fit_transform(table)
    assert encoder.kinds_ == {"x": "category"}
    parts = [encoder.transform(table[k : k + 1]) for k in range(len(table))]
    np.testing.assert_array_equal(np.vstack(parts), features)


def test_categories_of_numbers_mean_the_same_of_any_type():
    table = pd.DataFrame({"store": column(1, 2, 3)})
    encoder = TableEncoder(kinds={"store": "category"}).fit(table)
    for dtype in ("float", "str", "Int64", "object", "category"):
        features = encoder.transform(table.astype(dtype))
        np.testing.assert_array_equal(features, encoder.transform(table))
        assert features.sum(axis=1).tolist() == [1] * N


def test_marks_in_new_rows_warn_of_nothing_and_other_texts_do():
    encoder = TableEncoder().fit(written())
    new = written()[:3].assign(price="n/a", when="-", paid="unknown", size="null")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.transform(new)
    with pytest.warns(UserWarning, match="'when': 1 of 3 values are no date"):
        encoder.transform(new.assign(when=["-", "?", "soon"]))


def test_all_problems_of_a_table_are_told_at_once():
    table = written()
    kinds = {"shop": "date", "paid": "number", "age": "number", "size": "numbers"}
    with pytest.raises(ValueError) as caught:
        TableEncoder(kinds=kinds).fit(pd.concat([table, table[["when"]]], axis=1))
    for what in ("kinds['size']='numbers'", "kinds names 'age'", "columns 'when' are there more"):
        assert what in str(caught.value)
    with pytest.raises(ValueError) as caught:
        TableEncoder(kinds={"paid": "number", "shop": "date"}).fit(table)
    for what in ("'paid'", "'shop'"):
        assert f"kinds[{what}]" in str(caught.value)
    encoder = TableEncoder().fit(table)
    with pytest.raises(ValueError, match="has no column 'price', 'size', which"):
        encoder.transform(table.drop(columns=["price", "size"]))
    with pytest.raises(ValueError, match="no rows"):
        TableEncoder().fit(table[:0])


def test_notes_that_many_columns_share_are_one():
    table = pd.DataFrame({f"q{k}": column("1", "2", "NA") for k in range(20)})
    notes = TableEncoder().fit(table).notes_
    others = ", ".join(f"'q{k}'" for k in range(1, 11))
    assert notes == [
        f"'q0' is read as a number: 'NA' counts as missing (likewise {others}, and 9 more)"
    ]


@pytest.mark.parametrize("decimal", [".", ","])
def test_many_numbers_are_read_as_one_is(decimal):
    """Many texts are read in bulk, few one by one: a part of a table means the same."""
    rng = np.random.default_rng(0)
    values = 10.0 ** rng.uniform(-2, 7, 600) * rng.choice([-1, 1], 600)
    point = [f"{value:,.{k % 4}f}" for k, value in enumerate(values)]
    comma = [text.translate(str.maketrans(",.", ".,")) for text in point]
    plain = [f"{value:.{k % 4}f}" for k, value in enumerate(values)]
    odd = ["1.2.3", "1,2,3", "5%", "$5", "x", "1,234\n5", "0,123", "0.123", "1,234", "1.234", "."]
    texts = np.array([*point, *comma, *plain, *odd], object)
    found = read(texts, decimal)
    np.testing.assert_allclose(
        found, [read(texts[k : k + 1], decimal)[0] for k in range(len(texts))]
    )
    own = point if decimal == "." else comma
    exact = np.array([np.round(value, k % 4) for k, value in enumerate(values)])
    np.testing.assert_allclose(read(np.array(own, object), decimal), exact, atol=1e-9)


def test_long_runs_of_blanks_are_read_in_no_time():
    start = time.process_time()
    table = pd.DataFrame({"a": [f"{k}{' ' * 20_000}x" for k in range(6)] * 10})
    encoder = TableEncoder().fit(table)
    assert encoder.kinds_ == {"a": "category"}
    assert time.process_time() - start < 3
