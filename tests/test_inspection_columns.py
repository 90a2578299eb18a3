"""Both exact answers in the columns in front of a pipeline, by sums and by differences."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from loclin import (
    CSVMClassifier,
    ForestClassifier,
    LocallyLinearEnsemble,
    ML3Classifier,
    SAPLClassifier,
    SVMKNNClassifier,
    USSVMClassifier,
)
from loclin.inspection import (
    EffectDisplay,
    LocalModelDisplay,
    ModelUsageDisplay,
    box,
    contributions,
    feature_importances,
    feature_weights,
    local_gradient,
    local_model,
    record,
)
from loclin.tables import TableEncoder

pd = pytest.importorskip("pandas", reason="needs the extra [tables]")
X, Y = load_iris(return_X_y=True)
X = X + np.random.default_rng(0).normal(0, 0.01, X.shape)  # no row at a knot
EXACT = {"rtol": 1e-9, "atol": 1e-9}
MODELS = [
    ML3Classifier(3, random_state=0, max_iter=5),
    SAPLClassifier(8, random_state=0, max_iter=5),
    LocallyLinearEnsemble(n_folds=2, random_state=0),
]
LINEAR = {
    "scaled": [StandardScaler()],
    "components": [StandardScaler(), PCA(3, whiten=True)],
    "many": [SimpleImputer(), MinMaxScaler(), SelectKBest(k=3), IncrementalPCA(2), RobustScaler()],
    "not centred": [TruncatedSVD(3)],
    "selected": [SelectKBest(k=2)],
}


@pytest.fixture(scope="module")
def fitted():
    """Fitted pipelines of numbers, by steps, model and number of classes."""
    known = {}

    def of(steps, model, n_classes):
        key = steps, id(model), n_classes
        if key not in known:
            y = Y if n_classes == 3 else (Y == 1).astype(int)
            known[key] = clone(make_pipeline(*LINEAR[steps], model)).fit(X, y)
        return known[key]

    return of


def of_classes(decisions, by_class):
    two = decisions.ndim == 1 and by_class
    return np.stack([-decisions / 2, decisions / 2], axis=1) if two else decisions


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("steps", LINEAR)
def test_both_answers_hold_in_units_as_given(fitted, steps, model, n_classes, by_class):
    pipeline, rows = fitted(steps, model, n_classes), X[::15]
    decisions = of_classes(pipeline.decision_function(rows), by_class)

    found = local_model(pipeline, rows, by_class=by_class)
    values = found.values if found.coef.ndim == 2 else found.values[:, None]
    np.testing.assert_allclose(found.intercept + (found.coef * values).sum(-1), decisions, **EXACT)
    np.testing.assert_array_equal(found.values, rows)

    slopes = local_gradient(pipeline, rows, by_class=by_class)
    assert slopes.shape == found.coef.shape
    for k in range(X.shape[1]):
        step = 1e-6 * np.eye(4)[k]
        up, down = (
            of_classes(pipeline.decision_function(rows + sign * step), by_class) for sign in (1, -1)
        )
        # differences of scores lose digits
        close = {"rtol": 1e-4, "atol": 1e-6 * abs(slopes).max()}
        np.testing.assert_allclose((up - down) / 2e-6, slopes[..., k], **close)


def mixed(n=160):
    """A table of numbers, categories and gaps, and a label that hangs on all of them."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({
        "age": rng.integers(18, 80, n).astype(float),
        "plan": rng.choice(["basic", "gold", "silver"], n),
        "size": rng.choice(["S", "M", "L"], n),
        "pay": rng.gamma(5, 500, n),
        "note": rng.choice(["a", "b"], n),
    })  # fmt: skip
    score = (table["age"] - 49) / 18 * np.where(table["plan"] == "gold", -1, 1)
    score += (table["size"] == "L") + table["pay"] / 4000
    table.loc[::7, "age"] = np.nan
    return table, np.where(score > score.median(), "yes", "no")


NUMBERS = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
FRONTS = {
    "names": make_column_transformer(
        (NUMBERS, ["pay", "age"]), (OneHotEncoder(drop="if_binary"), ["plan", "size"])
    ),
    "selected by type": ColumnTransformer(
        [("category", OneHotEncoder(min_frequency=60), make_column_selector(dtype_exclude=float)),
         ("number", NUMBERS, make_column_selector(dtype_include=float))]
    ),
    "slice, order": make_column_transformer(
        (OneHotEncoder(drop="first", sparse_output=False), slice("plan", "plan")),
        (OrdinalEncoder(), ["size"]), (NUMBERS, ["age"]), ("passthrough", ["pay"]),
    ),
    "rest as it is": make_column_transformer(
        (OneHotEncoder(), [1, 2]), (NUMBERS, [0]), ("drop", ["note"]), remainder="passthrough"
    ),
    "bent": make_column_transformer(
        (OneHotEncoder(), ["plan"]), (NUMBERS, ["age"]),
        (make_pipeline(FunctionTransformer(np.log1p), QuantileTransformer(n_quantiles=9)), ["pay"]),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("behind", [[], [StandardScaler(with_mean=False), TruncatedSVD(3)]])
@pytest.mark.parametrize("front", [*FRONTS, "table"])
def test_columns_of_a_table_are_folded(front, behind):
    table, y = mixed()
    first = TableEncoder() if front == "table" else FRONTS[front]
    model = make_pipeline(first, *behind, SAPLClassifier(8, random_state=0, max_iter=5))
    model.fit(table, y)
    rows = table[:40]
    assert rows["age"].isna().any()
    scores = model.decision_function(rows)

    found = local_model(model, rows)
    np.testing.assert_allclose(found.intercept + (found.coef * found.values).sum(-1), scores,
                               **EXACT)  # fmt: skip
    assert found.columns == [name for name in table if name in found.columns]

    added = contributions(model, rows, reference=table)
    assert list(added) == [*found.columns, "reference"]
    np.testing.assert_allclose(added.sum(axis=1), scores, **EXACT)
    itself = contributions(model, rows[:1], reference=rows[:1]).drop(columns="reference")
    np.testing.assert_allclose(itself, 0.0, atol=1e-12)
    display = LocalModelDisplay.from_estimator(model, rows[:1], reference=table)
    shown = abs(display.contributions[0])
    np.testing.assert_allclose(shown, abs(added.iloc[0, :-1]), **EXACT)

    slopes = pd.DataFrame(local_gradient(model, rows), columns=found.columns)
    assert slopes[["plan"]].isna().all(axis=None)
    np.testing.assert_array_equal(slopes["age"].isna(), rows["age"].isna())
    for name in ("age", "pay"):
        if front == "bent" and name == "pay":
            assert slopes[name].isna().all()
            continue
        step = 1e-6 * table[name].std()
        up, down = (
            model.decision_function(rows.assign(**{name: rows[name] + sign * step}))
            for sign in (1, -1)
        )
        expected = np.where(slopes[name].isna(), np.nan, (up - down) / (2 * step))
        close = {"rtol": 1e-4, "atol": 1e-5 * abs(slopes[name]).max()}
        np.testing.assert_allclose(slopes[name], expected, **close)


def test_the_rest_of_inspection_goes_through_the_same_steps():
    table, y = mixed()
    model = make_pipeline(FRONTS["names"], PCA(4), ML3Classifier(3, random_state=0, max_iter=5))
    model.fit(table, y)
    importances = feature_importances(model, table, reference=table)
    assert list(importances.index) == ["age", "plan", "size", "pay"]
    added = contributions(model, table, reference=table)
    np.testing.assert_allclose(importances, added.iloc[:, :-1].abs().mean(), **EXACT)
    effect = EffectDisplay.from_estimator(model, table[:2], "pay", values=table["pay"])
    moved = table[:1].assign(pay=effect.values[3])
    assert abs(effect.scores[0, 0, 3]) == pytest.approx(
        abs(model.decision_function(moved)[0]), abs=1e-9
    )
    found = record(model, table[:1], reference=table)
    assert found["model"]["kind"] == "ML3Classifier"
    assert {one["column"] for side in found["reasons"].values() for one in side} <= set(added)


def test_a_step_that_mixes_otherwise_is_named():
    model = make_pipeline(PolynomialFeatures(), CSVMClassifier(1, random_state=0)).fit(X, Y)
    for explain in (local_model, local_gradient):
        with pytest.raises(TypeError, match="PolynomialFeatures cannot be explained"):
            explain(model, X[:1])
    words = make_pipeline(HashingVectorizer(n_features=64), ML3Classifier(2, random_state=0))
    words.fit(["good bad", "bad ugly", "good ugly"] * 9, [0, 1, 2] * 9)
    with pytest.raises(TypeError, match="HashingVectorizer cannot be explained"):
        local_model(words, ["good"])
    projected = make_pipeline(PCA(2), ML3Classifier(2, random_state=0, max_iter=3)).fit(X, Y)
    with pytest.raises(ValueError, match="mix columns"):
        box(projected, X[:1])
    table, y = mixed()
    model = make_pipeline(FRONTS["names"], ML3Classifier(2, random_state=0, max_iter=3))
    model.fit(table, y)
    for row, told in [
        (table.iloc[0], "rows and columns"),
        (table[:1].drop(columns="age"), "columns are missing: {'age'}"),
        (table.to_numpy()[:1, :2], "X has 2 features"),
    ]:
        with pytest.raises(ValueError, match=told):
            local_model(model, row)
    for reference in ({"age": 3}, 0, "mean"):
        with pytest.raises(ValueError, match="must be a row"):
            contributions(model, table[:1], reference=reference)
    copies = np.hstack([X, X[:, :1]])
    whitened = make_pipeline(PCA(whiten=True), ML3Classifier(2, random_state=0, max_iter=3))
    with pytest.raises(ValueError, match="almost 0"):
        contributions(whitened.fit(copies, Y), copies[:1], reference=copies)
    unscaled = USSVMClassifier(3, random_state=0, max_iter=3).fit(X, Y)
    for kept in (unscaled, projected):
        with pytest.raises(ValueError, match="Pass reference="):
            contributions(kept, X[:1])


TEXTS = ["a good plot", "bad and ugly", "good but long", "an ugly plot", "long and bad", "good"] * 6
MARKS = [1, 0, 1, 0, 0, 1] * 6


@pytest.mark.parametrize("behind", [[], [MaxAbsScaler()], [TruncatedSVD(3)]])
def test_words_are_the_columns_of_texts(behind):
    model = make_pipeline(TfidfVectorizer(), *behind, ML3Classifier(3, random_state=0, max_iter=5))
    model.fit(TEXTS, MARKS)
    words, texts = list(model[0].get_feature_names_out()), TEXTS[:3]
    for reference in (None, "long", TEXTS):
        added = contributions(model, texts, reference=reference)
        assert list(added) == [*words, "reference"]
        np.testing.assert_allclose(added.sum(axis=1), model.decision_function(texts), **EXACT)
    assert not contributions(model, texts).loc[0, ["bad", "ugly", "long"]].any()  # not in it
    display = LocalModelDisplay.from_estimator(model, texts[:1])
    assert display.reference == "a text without words"
    slopes, features = local_gradient(model, texts), model[0].transform(texts).toarray()
    step = 1e-6 * np.eye(len(words))[words.index("good")]
    up, down = (model[1:].decision_function(features + sign * step) for sign in (1, -1))
    close = {"rtol": 1e-4, "atol": 1e-6 * abs(slopes).max()}
    np.testing.assert_allclose((up - down) / 2e-6, slopes[:, words.index("good")], **close)
    series = pd.Series(TEXTS, index=range(10, 46))
    assert list(contributions(model, series[:2]).index) == [10, 11]


def test_words_of_a_column_of_a_table_are_one_column():
    table = pd.DataFrame({"text": TEXTS, "size": np.arange(36.0)})
    text = make_pipeline(TfidfVectorizer(), TruncatedSVD(3))
    front = make_column_transformer((text, "text"), (StandardScaler(), ["size"]))
    model = make_pipeline(front, ML3Classifier(3, random_state=0, max_iter=5)).fit(table, MARKS)
    added = contributions(model, table[:5], reference=table)
    assert list(added) == ["text", "size", "reference"]
    np.testing.assert_allclose(added.sum(axis=1), model.decision_function(table[:5]), **EXACT)


def test_a_box_ends_where_single_columns_bend_or_jump():
    table, y = mixed()
    steps = [TableEncoder(), StandardScaler()]
    bent = make_pipeline(*steps, CSVMClassifier(1, pieces=5, random_state=0)).fit(table, y)
    found = box(bent, table[1:2])
    assert found.columns == ["age", "plan", "size", "pay", "note"]
    place, here = found.columns.index("pay"), local_gradient(bent, table[1:2])[0]
    low, high = found.low[place], found.high[place]
    assert low < table["pay"][1] <= high < np.inf
    for pay, inside in [(low - 1e-6, 0), (low + 1e-6, 1), (high - 1e-6, 1), (high + 1e-6, 0)]:
        moved = local_gradient(bent, table[1:2].assign(pay=pay))[0, place]
        assert np.isclose(moved, here[place], rtol=1e-9) == inside
    assert f"pay = {table['pay'][1]:.6g}: above {low:.6g}, at most {high:.6g}" in str(found)
    assert np.isinf([found.low[1], found.high[1]]).all()  # a category
    assert np.isinf(box(bent, table[:1]).low[0])  # a gap
    assert np.isfinite(found.low[0])

    trees = make_pipeline(*steps, ForestClassifier(10, random_state=0))
    trees.fit(table, y)
    jump = box(trees, table[1:2])
    inside = table[1:2].assign(pay=jump.high[place] - 1e-9)
    same = trees.decision_function(table[1:2])
    assert trees.decision_function(inside) == same
    flat = make_pipeline(*steps, ML3Classifier(2, pieces=None, random_state=0, max_iter=3))
    assert str(box(flat.fit(table, y), table[:1])) == "no column has a border of its own"
    with pytest.raises(ValueError, match="row has 2 rows"):
        box(flat, table[:2])


def test_importances_by_model_are_means_over_the_rows_it_rules():
    model = ML3Classifier(3, random_state=0, max_iter=5).fit(X, Y)
    by_model = feature_importances(model, X, reference=X, by="model")
    usage = ModelUsageDisplay.from_estimator(model, X)
    assert sorted(by_model.index) == sorted(usage.names)
    shares = dict(zip(usage.names, usage.shares.sum(axis=1), strict=True))
    mean = sum(shares[name] * by_model.loc[name] for name in by_model.index)
    np.testing.assert_allclose(mean, feature_importances(model, X, reference=X), **EXACT)


def test_weights_serve_feature_selection():
    rng = np.random.default_rng(0)
    noisy = np.hstack([rng.normal(size=(150, 4)), X])
    model = ML3Classifier(3, random_state=0, max_iter=5)
    chosen = RFE(model, n_features_to_select=3, importance_getter=feature_weights).fit(noisy, Y)
    assert not chosen.support_[:4].any()
    weights = feature_weights(clone(model).fit(noisy, Y))
    assert weights.sum() == pytest.approx(1)
    kept = SelectFromModel(model, importance_getter=feature_weights).fit(noisy, Y)
    np.testing.assert_array_equal(kept.get_support(), weights >= weights.mean())
    with pytest.raises(ValueError, match="SVMKNN"):
        feature_weights(SVMKNNClassifier(5).fit(X, Y))


@pytest.mark.parametrize("front", ["alone", "names", "rest as it is"])
def test_the_reference_is_the_training_mean_where_the_classifier_keeps_it(front):
    table, y = mixed()
    table, y = (pd.DataFrame(X, columns=list("abcd")), Y) if front == "alone" else (table, y)
    model = ML3Classifier(3, random_state=0, max_iter=5)
    model = model if front == "alone" else make_pipeline(FRONTS[front], model)
    model.fit(table, y)
    expected = contributions(model, table[:9], reference=table)
    np.testing.assert_allclose(contributions(model, table[:9]), expected, **EXACT)
    found = LocalModelDisplay.from_estimator(model, table[:1])
    assert found.reference == "the mean training row"
    if front == "alone":
        np.testing.assert_allclose(found.reference_values, X.mean(axis=0))


@pytest.mark.parametrize("steps", [[], [StandardScaler(), PCA(4)]])
def test_a_feature_in_pieces_adds_the_change_of_its_curve(steps):
    """One model a class is additive: a column adds what the score loses without its change."""
    model = make_pipeline(*steps, CSVMClassifier(1, pieces=6, random_state=0)).fit(X, Y == 1)
    rows, at = X[:20], X.mean(axis=0)
    added = contributions(model, rows, reference=at)
    scores = model.decision_function(rows)
    np.testing.assert_allclose(added.sum(axis=1), scores, **EXACT)
    if steps:  # components are curves of all columns
        return
    for k, name in enumerate(found := list(added)[:-1]):
        moved = np.array(rows)
        moved[:, k] = at[k]
        np.testing.assert_allclose(added[name], scores - model.decision_function(moved), **EXACT)
    assert len(found) == 4
    slopes = local_model(model, rows).coef * (rows - at)
    assert abs(slopes - added.to_numpy()[:, :4]).max() > 0.1


def test_columns_are_taken_by_name():
    """A ColumnTransformer takes columns in any order, and others beside them."""
    table, y = mixed()
    front = make_column_transformer((NUMBERS, ["pay", "age"]))
    model = make_pipeline(front, ML3Classifier(3, random_state=0, max_iter=5)).fit(table, y)
    for given in (table[table.columns[::-1]], table.assign(zz=1.0)[["zz", *table]]):
        for reference in (table, given):
            pd.testing.assert_frame_equal(
                contributions(model, given[:3], reference=reference),
                contributions(model, table[:3], reference=table),
            )
        assert local_model(model, given[:3]).columns == ["age", "pay"]
        effect = EffectDisplay.from_estimator(model, given[:1], "pay", values=table["pay"])
        moved = given[:1].assign(pay=effect.values[5])
        expected = model.decision_function(moved)[0]
        assert abs(effect.scores[0, 0, 5]) == pytest.approx(abs(expected), abs=1e-9)
        assert box(model, given[:1]).columns == ["age", "pay"]


def test_sparse_rows_are_compared_with_zeros():
    rows = sparse.csr_matrix(X)
    model = ML3Classifier(3, random_state=0, max_iter=5).fit(rows, Y)
    display = LocalModelDisplay.from_estimator(model, rows[:3])
    assert display.reference == "a row of zeros"
    expected = contributions(model, rows[:3], reference=np.zeros(4))
    np.testing.assert_allclose(contributions(model, rows[:3]), expected, **EXACT)


def test_a_number_that_marks_gaps_is_no_number():
    rows = np.where(X > 6, -1.0, X)
    model = make_pipeline(SimpleImputer(missing_values=-1.0), ML3Classifier(3, random_state=0))
    model.fit(rows, Y)
    assert np.isnan(local_gradient(model, rows)).all()
    found = local_model(model, rows[:5])
    scores = found.intercept + (found.coef * found.values[:, None]).sum(axis=-1)
    np.testing.assert_allclose(scores, model.decision_function(rows[:5]), **EXACT)


def test_empty_selections_and_taken_names():
    table, y = mixed()
    none = make_column_selector(pattern="there is none")
    front = make_column_transformer((OneHotEncoder(), none), (NUMBERS, ["age", "pay"]))
    table = table.rename(columns={"age": "reference"})
    front = make_column_transformer((OneHotEncoder(), none), (NUMBERS, ["reference", "pay"]))
    model = make_pipeline(front, ML3Classifier(3, random_state=0, max_iter=5)).fit(table, y)
    assert list(contributions(model, table[:2])) == ["reference", "pay", "(reference)"]
    shown = LocalModelDisplay.from_estimator(model, table[:1]).frame()
    assert list(shown["column"]) == ["reference", "pay", "(reference)"]


def test_texts_are_recorded_and_tables_of_texts_refused():
    model = make_pipeline(TfidfVectorizer(), ML3Classifier(3, random_state=0, max_iter=5))
    model.fit(TEXTS, MARKS)
    for row in ("a good plot", ["a good plot"], pd.Series(["a good plot"])):
        kept = record(model, row)
        assert kept["label"] == 1
        assert "good" in kept["inputs"]
    frame = pd.DataFrame({"t": TEXTS})
    with pytest.raises(ValueError, match="X must be a list of texts"):
        contributions(model, frame)
    with pytest.raises(ValueError, match="reference must be a list of texts"):
        contributions(model, TEXTS[:1], reference=frame)
