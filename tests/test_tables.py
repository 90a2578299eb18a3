"""Tables of mixed columns: what columns are, what becomes of them, and what is said of rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import loclin
import loclin.io
from loclin.inspection import contributions
from loclin.tables import TableEncoder
from loclin.tables.kinds import MISSING, OTHER, Unreadable, kind_of

pd = pytest.importorskip("pandas", reason="needs the extra [tables]")
FAST = {"random_state": 0, "alpha": 0.1, "metric": None, "pieces": None, "max_iter": 10}


def churn(n=400, seed=0):
    """Customers, and whether they left: numbers, categories, dates, texts, flags and gaps."""
    rng = np.random.default_rng(seed)
    contract = rng.choice(["monthly", "one year", "two years"], n, p=[0.6, 0.3, 0.1])
    charge = np.round(rng.gamma(4, 15, n), 2)
    city = rng.choice([f"city {k}" for k in range(60)], n)
    since = np.datetime64("2021-03-01") + rng.integers(0, 900, n).astype("timedelta64[D]")
    leaves = 1.5 * (contract == "monthly") + 0.03 * charge - 3 + rng.normal(0, 0.7, n)
    words = ["slow", "expensive", "friendly", "good", "support", "line", "price", "router"]
    table = pd.DataFrame({
        "customer_id": np.arange(10_000, 10_000 + n),
        "signup": since,
        "contract": contract,
        "city": city,
        "charge": charge,
        "visits": rng.integers(0, 9, n),
        "paperless": rng.random(n) < 0.5,
        "comment": [" ".join(rng.choice(words, rng.integers(4, 9))) for _ in range(n)],
        "country": "NL",
        "email": [f"user{k}@example.org" for k in rng.permutation(n)],
    })  # fmt: skip
    for name in ("charge", "contract", "signup"):
        table.loc[rng.random(n) < 0.1, name] = None
    return table, np.where(leaves > 0, "yes", "no")


KINDS = {
    "customer_id": "leave out",
    "signup": "date",
    "contract": "category",
    "city": "category",
    "charge": "number",
    "visits": "number",
    "paperless": "flag",
    "comment": "text",
    "country": "leave out",
    "email": "leave out",
}


def test_kinds_of_columns_and_what_is_said_of_them():
    table, y = churn()
    encoder = TableEncoder().fit(table, y)
    assert encoder.kinds_ == KINDS
    assert encoder.notes_ == [
        "'customer_id' is left out: it numbers the rows",
        "'country' is left out: all its values are one",
        "'email' is left out: each of its values occurs once, so that none can be learned",
    ]
    names = list(encoder.get_feature_names_out())
    assert names[:4] == ["signup", "signup month", "signup weekday", f"signup {MISSING}"]
    assert {f"contract = {MISSING}", "contract = two years", f"city = {OTHER}"} <= set(names)
    assert {"charge", f"charge {MISSING}", "visits", "paperless", "comment, component 0"} <= set(
        names
    )
    features = encoder.transform(table)
    assert features.shape == (len(table), len(names)) == (len(table), len(encoder.origins_))
    assert np.isfinite(features).all()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 2, None], "number"),
        (["1.5", "2", None, "3e4"], "number"),
        ([True, False, None, True], "flag"),
        (pd.array([True, None, False, True], dtype="boolean"), "flag"),
        (pd.array([1, None, 3, 3], dtype="Int64"), "number"),
        (pd.to_timedelta([1, 2, 3, 3], unit="h"), "number"),
        (["2024-01-05", "2023-11-30", None, "2023-11-30"], "date"),
        (["2024-01-05T10:30:00Z", "2023-11-30T00:00:00Z", None, None], "date"),
        (["a", "b", "a", None], "category"),
        ([1, "b", 1.5, None], "category"),
        (pd.Categorical(["x", "y", "x", "y"]), "category"),
        (["True", "false ", None, "TRUE"], "flag"),
        ([None, None, None, None], "leave out"),
        (["only", "only", "only", "only"], "leave out"),
        (["only", None, "only", None], "category"),
        ([[1], [2], [1], [2]], "leave out"),
        ([1j, 2j, 3j, 1j], "leave out"),
        (pd.period_range("2024-01", periods=4, freq="M"), "date"),
    ],
)
def test_kind_of(values, kind):
    assert kind_of("x", pd.Series(values))[0] == kind


def test_numbers_dates_flags_and_gaps_written_out():
    table = pd.DataFrame({
        "when": ["2024-01-31", "2024-03-01", "2024-05-05", None],
        "x": [1.0, np.inf, 5.0, 2.0],
        "flag": [True, False, None, True],
    })  # fmt: skip
    encoder = TableEncoder()
    features = encoder.fit_transform(table)
    median = 19783.0  # days from 1970 to 2024-03-01
    expected = [
        [19753, 1, 2, 0, 1, 0, 1, 0],
        [19783, 3, 4, 0, 2, 1, 0, 0],
        [19848, 5, 6, 0, 5, 0, 1, 1],
        [median, 3, 4, 1, 2, 0, 1, 0],
    ]
    assert list(encoder.get_feature_names_out()) == [
        "when", "when month", "when weekday", f"when {MISSING}", "x", f"x {MISSING}", "flag",
        f"flag {MISSING}",
    ]  # fmt: skip
    np.testing.assert_array_equal(features, expected)


def test_new_rows_may_have_other_categories_types_orders_and_gaps():
    table, y = churn()
    encoder = TableEncoder().fit(table, y)
    new = table.iloc[:6, ::-1].assign(more=1).astype({"visits": object, "city": object})
    new.loc[:, "city"] = "a new one"
    new.loc[0, "visits"] = "many"
    with pytest.warns(Unreadable, match="'visits': 1 of 6 values are no number"):
        features = encoder.transform(new)
    names = list(encoder.get_feature_names_out())
    assert (features[:, names.index(f"city = {OTHER}")] == 1).all()
    assert features[0, names.index("visits")] == table["visits"].median()
    assert encoder.transform(table[:0]).shape == (0, len(names))
    with pytest.raises(ValueError, match="has no column 'city', 'charge'"):
        encoder.transform(table.drop(columns=["city", "charge"]))


@pytest.mark.parametrize("seed", range(3))
def test_many_categories_leak_no_targets(seed):
    """Values that tell nothing gain nothing, though almost every row has one of its own."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"shop": rng.integers(0, 400, 600).astype(str)})
    table["shop"] = "shop " + table["shop"]
    y = rng.integers(0, 2, 600)
    model = make_pipeline(TableEncoder(min_frequency=1), LogisticRegression(max_iter=1000))
    scores = cross_val_score(model, table, y, cv=3, scoring="roc_auc")
    assert scores.mean() < 0.58
    features = TableEncoder(min_frequency=1).fit_transform(table, y)
    assert abs(np.corrcoef(features[:, -1], y)[0, 1]) < 0.2, "a row's own target has a part"


def test_gaps_are_filled_inside_the_folds():
    table, _ = churn(60)
    encoder, other = TableEncoder().fit(table[:30]), TableEncoder().fit(table[30:])
    assert encoder._columns["charge"] != other._columns["charge"]
    gap = pd.DataFrame({name: [None] for name in table.columns})
    place = list(encoder.get_feature_names_out()).index("charge")
    assert encoder.transform(gap)[0, place] == table["charge"][:30].median()


@pytest.mark.parametrize("classes", [2, 3])
def test_contributions_sum_to_the_scores_in_the_tables_own_columns(classes):
    table, y = churn()
    if classes == 3:
        y = np.where(table["visits"] > 6, "maybe", y)
    model = make_pipeline(TableEncoder(), loclin.ML3Classifier(4, **FAST)).fit(table, y)
    rows = table.iloc[:5]
    added = contributions(model, rows)
    kept = [name for name, kind in KINDS.items() if kind != "leave out"]
    assert list(added.columns) == [*kept, "reference"]
    scores = model.decision_function(rows)
    np.testing.assert_allclose(added.sum(axis=1), scores.ravel(), rtol=1e-9, atol=1e-9)
    assert len(added) == 5 * (1 if classes == 2 else 3)
    if classes == 2:  # what made the labels counts most
        size = contributions(model, table).abs().mean()
        assert set(size[kept].nlargest(2).index) == {"contract", "charge"}


def test_it_is_cloned_searched_saved_and_named(tmp_path):
    table, y = churn()
    model = make_pipeline(TableEncoder(n_components=3), loclin.ML3Classifier(4, **FAST))
    assert cross_val_score(clone(model), table, y, cv=3).mean() > 0.7
    model.fit(table, y)
    path = tmp_path / "churn.loclin"
    loclin.io.save(model, path)
    again = loclin.io.load(path)
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    frame = TableEncoder().set_output(transform="pandas").fit_transform(table, y)
    assert list(frame.columns)[-1].startswith("comment")


def test_bad_parameters_and_tables_are_named():
    table, y = churn(40)
    for encoder, told in [
        (TableEncoder(kinds={"age": "number"}), "which are no columns"),
        (TableEncoder(kinds={"visits": "numbers"}), "kinds\\['visits'\\]"),
        (TableEncoder(max_categories=1), "max_categories"),
        (TableEncoder(kinds={"city": "number"}), "none of its values is a number"),
    ]:
        with pytest.raises(ValueError, match=told):
            encoder.fit(table, y)
    with pytest.raises(ValueError, match="No column is left"):
        TableEncoder().fit(table[["country", "customer_id"]])
    with pytest.raises(ValueError, match="more than once"):
        TableEncoder().fit(pd.concat([table, table], axis=1))
    with pytest.raises(TypeError, match="not sparse matrices"):
        TableEncoder().fit(sparse.eye(5).tocsr())


@pytest.mark.skipif(int(pd.__version__.split(".")[0]) < 3, reason="pandas 2 counts nanoseconds")
def test_dates_of_other_centuries():
    dates = ["0001-01-01", "1500-05-05", "2500-01-01"]
    days = np.array(dates, "datetime64[D]").astype(int)
    found = TableEncoder().fit_transform(pd.DataFrame({"when": dates}))
    np.testing.assert_array_equal(found[:, 0], days)


def test_a_fit_that_fails_leaves_the_encoder_as_it_was():
    table, y = churn(60)
    encoder = TableEncoder().fit(table, y)
    features = encoder.transform(table)
    with pytest.raises(ValueError, match="No column is left"):
        encoder.fit(table[["country"]])
    np.testing.assert_array_equal(encoder.transform(table), features)


def test_few_rows_of_text_are_counted_by_word():
    table = pd.DataFrame({"x": [1.0], "said": ["good support line"]})
    kinds = {"said": "text", "x": "number"}
    encoder = TableEncoder(kinds=kinds)
    features = encoder.fit_transform(table)
    assert features.shape == (1, len(encoder.get_feature_names_out())) == (1, 4)
