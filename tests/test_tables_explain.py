"""Explanations in a table's columns, of all classifiers and references; and that nothing leaks."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import SparseRandomProjection

import loclin
from loclin.inspection import contributions
from loclin.tables import TableEncoder

pd = pytest.importorskip("pandas", reason="needs the extra [tables]")

NAMES = [
    name
    for name in loclin.__all__
    if (name.endswith("Classifier") or name == "LocallyLinearEnsemble")
    and hasattr(getattr(loclin, name), "local_model")
]


def table_of(n=160, classes=2):
    """Columns of three kinds with gaps, and labels that hang on two of them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "age": rng.integers(18, 80, n).astype(float),
        "plan": rng.choice(["basic", "gold", "silver"], n),
        "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
    })  # fmt: skip
    scores = (table["age"] - 49) / 18 * np.where(table["plan"] == "gold", -1, 1)
    y = np.digitize(scores, np.quantile(scores, np.arange(1, classes) / classes))
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    return table, np.array(["low", "mid", "top"])[y]


def quick(name):
    """A classifier whose fit is short."""
    kind = getattr(loclin, name)
    known = kind().get_params()
    short = {"max_iter": 5, "n_folds": 2, "calibrate": False, "random_state": 0}
    return kind(**{key: value for key, value in short.items() if key in known})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_columns_and_reference_sum_to_the_score(name, classes):
    table, y = table_of(classes=classes)
    model = make_pipeline(TableEncoder(), quick(name)).fit(table, y)
    rows = table[:4]
    scores = model.decision_function(rows).ravel()
    for reference in (None, table[7:8], table[:50]):
        added = contributions(model, rows, reference=reference)
        np.testing.assert_allclose(added.sum(axis=1), scores, rtol=1e-9, atol=1e-9)
    same = contributions(model, rows[:1], reference=rows[:1])
    np.testing.assert_array_equal(same.drop(columns="reference"), 0)


@pytest.mark.parametrize(
    "scalers",
    [[StandardScaler()], [MinMaxScaler()], [MaxAbsScaler(), RobustScaler()], ["passthrough"],
     [StandardScaler(), SelectKBest(k=4)], [MinMaxScaler(clip=True)],
     [StandardScaler(), PCA(3, whiten=True), MaxAbsScaler()], [TruncatedSVD(4)],
     [QuantileTransformer(n_quantiles=20), RobustScaler()], [FastICA(3, random_state=0)],
     [SparseRandomProjection(4, random_state=0)]],
)  # fmt: skip
@pytest.mark.parametrize("name", ["ML3Classifier", "USSVMClassifier"])
def test_steps_may_stand_between(name, scalers):
    table, y = table_of()
    model = make_pipeline(TableEncoder(), *scalers, quick(name)).fit(table, y)
    added = contributions(model, table[:5], reference=table[5:6])
    scores = model.decision_function(table[:5])
    np.testing.assert_allclose(added.sum(axis=1), scores, rtol=1e-9, atol=1e-9)
    if isinstance(scalers[-1], SelectKBest):
        kept = model[:-1].get_feature_names_out()
        used = [name for name in table if any(one.startswith(name) for one in kept)]
    else:
        used = list(table)
    assert list(added.columns) == [*used, "reference"]


def test_a_scaler_folds_back_into_the_units_of_the_table():
    """A column adds the coefficient per year times years away, whatever the units inside."""
    table, y = table_of()
    table = table[["age"]].fillna(40.0)
    for scaler in (StandardScaler(), MinMaxScaler()):
        model = make_pipeline(TableEncoder(), scaler, quick("L3MClassifier")).fit(table, y)
        features = model[1].transform(model[0].transform(table[:1]))
        per_year = model[-1].local_model(features)[0][0, 0] * model[1].transform([[1.0]])[0, 0]
        per_year -= model[-1].local_model(features)[0][0, 0] * model[1].transform([[0.0]])[0, 0]
        reference = pd.DataFrame({"age": [table["age"][0] - 3]})
        added = contributions(model, table[:1], reference=reference)["age"].iloc[0]
        assert added == pytest.approx(3 * per_year, rel=1e-9)


def test_frames_inside_the_pipeline_are_explained_the_same():
    table, y = table_of()
    model = make_pipeline(TableEncoder(), StandardScaler(), quick("ML3Classifier"))
    arrays = contributions(model.fit(table, y), table[:3])
    model.set_output(transform="pandas").fit(table, y)
    pd.testing.assert_frame_equal(contributions(model, table[:3]), arrays)


def test_steps_that_are_not_linear_and_references_without_rows_are_refused():
    table, y = table_of()
    model = make_pipeline(TableEncoder(), PolynomialFeatures(), quick("ML3Classifier"))
    with pytest.raises(TypeError, match="PolynomialFeatures cannot be explained"):
        contributions(model.fit(table, y), table[:1])
    model = make_pipeline(TableEncoder(), quick("ML3Classifier")).fit(table, y)
    with pytest.raises(ValueError, match="reference has no rows"):
        contributions(model, table[:1], reference=table[:0])


def test_mean_targets_leak_only_where_the_encoder_is_fitted_before_the_split():
    """Shops tell nothing: only those who have seen the labels held out find something."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"shop": [f"shop {k}" for k in rng.integers(0, 300, 600)]})
    y = rng.integers(0, 2, 600)
    classifier = LogisticRegression(max_iter=1000)

    def auc(model, rows):
        return cross_val_score(model, rows, y, cv=3, scoring="roc_auc").mean()

    encoder = TableEncoder(min_frequency=20)
    assert auc(make_pipeline(encoder, classifier), table) < 0.57
    assert auc(classifier, encoder.fit(table, y).transform(table)) > 0.8


def test_what_fills_gaps_leaks_only_where_the_encoder_is_fitted_before_the_split():
    """One class has gaps among the rows learned from, and a value of its own among the others."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 0, 1], [40, 40, 40, 160])
    x = np.where(y == 0, rng.random(280), 5.0)
    x[40:80] = np.nan  # where the median of all rows stands, 5, if those held out have a part
    table, learned, held_out = pd.DataFrame({"x": x}), slice(0, 80), slice(80, None)
    only_x = FunctionTransformer(lambda features: features[:, :1])
    classifier = make_pipeline(only_x, KNeighborsClassifier(1))

    inside = make_pipeline(TableEncoder(), classifier).fit(table[learned], y[learned])
    assert inside.score(table[held_out][y[held_out] == 1], y[held_out][y[held_out] == 1]) == 0
    before = TableEncoder().fit_transform(table)
    leaked = classifier.fit(before[learned], y[learned])
    assert leaked.score(before[held_out], y[held_out]) == 1
