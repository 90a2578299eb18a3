"""Explanations that people see: their numbers sum to the scores, and pages are harmless."""

import sys
import warnings
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import loclin
from loclin.inspection import (
    LocalModelDisplay,
    contributions,
    explanation_page,
    feature_importances,
    importances,
)
from loclin.tables import TableEncoder
from tests.test_tables import KINDS, churn

pd = pytest.importorskip("pandas", reason="needs the extra [tables]")
matplotlib = pytest.importorskip("matplotlib", reason="needs the extra [plot]")
pytest.importorskip("jinja2", reason="needs the extra [html]")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize
FAST = {"alpha": 0.1, "metric": None, "pieces": None, "max_iter": 5, "calibrate": False,
        "random_state": 0}  # fmt: skip
SETTINGS = {
    "LocallyLinearEnsemble": {"estimators": [loclin.ML3Classifier(2, **FAST)], "n_folds": 2},
    "ForestClassifier": {"n_estimators": 5},
}
CLASSIFIERS = [
    name
    for name in loclin.__all__
    if hasattr(getattr(loclin, name), "local_model")
]  # fmt: skip
X, Y = load_iris(return_X_y=True, as_frame=True)
ARRAY = X.to_numpy()
EXACT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    pyplot.close("all")


def ml3():
    return loclin.ML3Classifier(3, **FAST)


def quick(name):
    kind = getattr(loclin, name)
    known = kind().get_params()
    shared = {key: value for key, value in FAST.items() if key in known}
    if name in ("SVMKNNClassifier", "ForestClassifier", "LocallyLinearEnsemble"):
        shared = {"random_state": 0} if "random_state" in known else {}
    return kind(**{**shared, **{k: v for k, v in SETTINGS.get(name, {}).items() if k in known}})


def labels(n_classes):
    names = np.array(["setosa", "versicolor", "virginica"])
    return names[Y] if n_classes == 3 else names[np.minimum(Y, 1)]


@pytest.fixture(scope="module")
def tables():
    """A table, and a fitted pipeline for two classes and for three."""
    table, y = churn(150)
    three = np.where(table["visits"] > 5, "maybe", y)
    models = {
        n: make_pipeline(TableEncoder(n_components=2), ml3()).fit(table, target)
        for n, target in ((2, y), (3, three))
    }
    return table, models


def differences(model, rows, display):
    """Scores of a display's classes against the others, from `decision_function`."""
    scores = model.decision_function(rows)
    known = list(model.classes_)
    first = [known.index(one) for one in display.classes]
    second = [known.index(one) for one in display.against]
    if scores.ndim == 1:
        return np.where(np.array(first) == 1, scores, -scores)
    at = np.arange(len(first))
    return scores[at, first] - scores[at, second]


def sums_to_the_score(model, rows, display):
    found = display.contributions.sum(axis=1) + display.base
    np.testing.assert_allclose(found, differences(model, rows, display), **EXACT)
    np.testing.assert_allclose(display.scores, differences(model, rows, display), **EXACT)
    return True


@each("n_classes", [2, 3])
@each("name", CLASSIFIERS)
def test_parts_of_every_classifier_sum_to_its_scores(name, n_classes):
    model = quick(name).fit(ARRAY, labels(n_classes))
    rows = ARRAY[[0, 60, 70, 120]]
    for reference in (ARRAY[3], ARRAY, -ARRAY[::50], np.zeros(4)):
        display = LocalModelDisplay.from_estimator(model, rows, reference=reference)
        assert sums_to_the_score(model, rows, display)
    np.testing.assert_array_equal(display.classes, model.predict(rows))
    np.testing.assert_array_equal(display.predicted, model.predict(rows))
    assert display.columns == ["x0", "x1", "x2", "x3"]
    coef, _ = model.local_model(rows)
    if n_classes == 3:
        _, second, best = np.sort(model.decision_function(rows), axis=1).T
        np.testing.assert_allclose(display.scores, best - second, **EXACT)
    else:
        sign = np.where(display.classes == model.classes_[1], 1, -1)[:, None]
        np.testing.assert_allclose(display.contributions, sign * coef * rows, **EXACT)


SCALERS = {  # what a step multiplies a column by
    StandardScaler: lambda step: 1 / step.scale_,
    MinMaxScaler: lambda step: step.scale_,
    MaxAbsScaler: lambda step: 1 / step.scale_,
    RobustScaler: lambda step: 1 / step.scale_,
}


@each("steps", [[kind] for kind in SCALERS] + [[MinMaxScaler, "passthrough", StandardScaler]])
@each("frame", [False, True])
def test_scalers_are_folded_back_to_units(steps, frame):
    steps = [step if isinstance(step, str) else step() for step in steps]
    rows = X if frame else ARRAY
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "X (has|does not have)")
        model = make_pipeline(*steps, ml3()).set_output(transform="pandas" if frame else "default")
        model.fit(rows, labels(3))
        display = LocalModelDisplay.from_estimator(model, rows[:60:10], reference=rows[50:])
        kept = any(isinstance(step, StandardScaler) for step in steps)
        if kept:
            default = LocalModelDisplay.from_estimator(model, rows[:60:10])
    factor = np.prod([SCALERS[type(s)](s) for s in steps if not isinstance(s, str)], axis=0)
    coef, _ = model[-1].local_model(model[:-1].transform(rows[:60:10]))
    known = list(model.classes_)
    at = np.arange(6)
    first = [known.index(one) for one in display.classes]
    second = [known.index(one) for one in display.against]
    in_units = (coef[at, first] - coef[at, second]) * factor
    expected = in_units * (ARRAY[:60:10] - ARRAY[50:].mean(axis=0))
    np.testing.assert_allclose(display.contributions, expected, **EXACT)
    assert sums_to_the_score(model, rows[:60:10], display)
    np.testing.assert_allclose(display.reference_values, ARRAY[50:].mean(axis=0), **EXACT)
    if kept:
        assert default.reference == "the mean training row"
        np.testing.assert_allclose(default.reference_values, ARRAY.mean(axis=0), **EXACT)
        expected = in_units * (ARRAY[:60:10] - ARRAY.mean(axis=0))
        np.testing.assert_allclose(default.contributions, expected, **EXACT)


@each("n_classes", [2, 3])
def test_tables_are_explained_in_their_columns(tables, n_classes):
    table, models = tables
    model, rows = models[n_classes], table[:5]
    display = LocalModelDisplay.from_estimator(model, rows)
    assert display.columns == [name for name, kind in KINDS.items() if kind != "leave out"]
    added = contributions(model, rows)
    for k in range(5):
        if n_classes == 2:
            expected = added.iloc[k] * (1 if display.classes[k] == "yes" else -1)
        else:
            expected = added.loc[(k, display.classes[k])] - added.loc[(k, display.against[k])]
        np.testing.assert_allclose(display.contributions[k], expected[display.columns], **EXACT)
        np.testing.assert_allclose(display.base[k], expected["reference"], **EXACT)
    for reference in (table.iloc[7], table.iloc[[7]], table[table["visits"] > 3], table):
        other = LocalModelDisplay.from_estimator(model, rows, reference=reference)
        assert sums_to_the_score(model, rows, other)
        changed = abs(other.contributions - display.contributions).max(axis=0)
        assert (changed.max() > 0.01) == (reference is not table)
    # those of a city have a mean target, which is another one in training
    np.testing.assert_allclose(np.delete(changed, 2), 0, atol=1e-9)
    itself = LocalModelDisplay.from_estimator(model, rows[2:3], reference=rows.iloc[2])
    assert not itself.contributions.any()
    np.testing.assert_allclose(itself.base, itself.scores, **EXACT)
    assert itself.reference == "the row given"


def test_a_table_s_reference_is_shown_in_its_own_units(tables):
    table, models = tables
    display = LocalModelDisplay.from_estimator(models[2], table[:1])
    shown = dict(zip(display.columns, display.reference_values, strict=True))
    assert shown["contract"] == shown["comment"] == "(mean)"
    assert shown["visits"] == pytest.approx(table["visits"].mean())
    assert shown["paperless"] == f"{100 * table['paperless'].mean():.0f} % true"
    days = table["signup"].fillna(table["signup"].median())
    assert shown["signup"] == str(days.mean().date())
    row = LocalModelDisplay.from_estimator(models[2], table[:1], reference=table.iloc[9])
    shown = dict(zip(row.columns, row.reference_values, strict=True))
    assert shown["city"] == table["city"][9]
    assert shown["visits"] == table["visits"][9]


@pytest.fixture(scope="module")
def display():
    model = make_pipeline(StandardScaler(), ml3()).fit(X, labels(3))
    return LocalModelDisplay.from_estimator(model, X[45:145:20])


def widths(bars):
    return [bar.get_width() for bar in bars]


def ticks(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@each("max_columns", [1, 2, 4, 12])
def test_bars_sum_to_the_score(display, max_columns):
    assert display.plot(max_columns=max_columns) is display
    assert len(display.bars_) == len(display.text_) == len(display.ax_) == 5
    for k, (ax, bars, texts) in enumerate(
        zip(display.ax_, display.bars_, display.text_, strict=True)
    ):
        found = widths(bars)
        assert sum(found) == pytest.approx(display.scores[k], rel=1e-9, abs=1e-9)
        assert found[-1] == display.base[k]
        largest = sorted(display.contributions[k], key=abs, reverse=True)
        assert found[:-1][:max_columns] == largest[:max_columns]
        assert len(found) == min(max_columns + 1, 4) + 1
        for width, text in zip(found, texts, strict=True):
            assert text.get_text()[0] == ("+" if width > 0 else "\N{MINUS SIGN}")
        tops = [bar.get_y() for bar in bars]
        low, high = ax.get_ylim()
        assert low > high, "the first is not on top"
        assert tops == sorted(tops)
        assert ax.figure is display.figure_
    if max_columns < 4:
        assert ticks(ax)[-2] == f"{4 - max_columns} other column{'s' * (max_columns < 3)}"
    assert ticks(ax)[-1] == "the row's model\nat the reference"


def test_a_picture_says_what_it_shows(display):
    one = LocalModelDisplay(
        [[0.5, -2.0, 0.25]], [0.75], [-0.5], values=[[31, "monthly", None]],
        columns=["age", "plan", "$x^$"], classes=["yes"], against=["no"], predicted=["no"],
        reference="the mean training row",
    ).plot()  # fmt: skip
    assert ticks(one.ax_)[:3] == ["plan = monthly", "age = 31", "$x^$ = missing"]
    assert one.ax_.get_title(loc="left") == 'row 0: predicted "no"\n' + (
        'score of "yes" against "no": \N{MINUS SIGN}0.50'
    )
    assert one.ax_.get_xlabel() == (
        '\N{LEFTWARDS ARROW} for "no" | for "yes" \N{RIGHTWARDS ARROW}\n'
        "reference: the mean training row"
    )
    colors = [bar.get_facecolor() for bar in one.bars_[0]]
    assert len(set(colors)) == 3
    assert colors[1] == colors[2] != colors[0]
    one.figure_.canvas.draw()  # a dollar sign is no formula
    _, ax = pyplot.subplots()
    assert one.plot(ax, bar_kw={"color": "red"}).ax_ is ax
    assert one.bars_[0][0].get_facecolor() == (1, 0, 0, 1)
    _, axes = pyplot.subplots(5)
    assert display.plot(axes).ax_[3] is axes[3]
    with pytest.raises(ValueError, match="ax has 2 axes for 5 rows"):
        display.plot(axes[:2])


def test_classes_are_chosen(display):
    model = make_pipeline(StandardScaler(), ml3()).fit(X, labels(3))
    pair = ("virginica", "setosa")
    rows = X[::40]
    display = LocalModelDisplay.from_estimator(model, rows, classes=pair)
    assert set(display.classes) == {pair[0]}
    assert set(display.against) == {pair[1]}
    assert sums_to_the_score(model, rows, display)
    np.testing.assert_array_equal(display.predicted, model.predict(rows))
    assert (display.scores < 0).any()
    two = make_pipeline(StandardScaler(), ml3()).fit(X, labels(2))
    for pair in [("setosa", "versicolor"), ("versicolor", "setosa")]:
        display = LocalModelDisplay.from_estimator(two, rows, classes=pair)
        assert sums_to_the_score(two, rows, display)
        assert set(display.classes) == {pair[0]}
    for pair in [("setosa", "setosa"), ("setosa", "rose"), ("setosa",)]:
        with pytest.raises(ValueError, match="two of the model's classes"):
            LocalModelDisplay.from_estimator(model, rows, classes=pair)


def test_numbers_come_as_a_frame_and_for_shap(display, monkeypatch):
    frame = display.frame()
    assert list(frame) == ["row", "class", "against", "column", "value", "contribution"]
    assert len(frame) == 5 * 5
    assert frame["column"][4] == "reference"
    line = frame.iloc[5 * 2 + 1]
    assert list(line[:4]) == [85, display.classes[2], display.against[2], X.columns[1]]
    assert line["value"] == X.iloc[85, 1]
    sums = frame.groupby("row")["contribution"].sum().to_numpy()
    np.testing.assert_allclose(sums, display.scores, **EXACT)
    monkeypatch.setitem(sys.modules, "shap", SimpleNamespace(Explanation=SimpleNamespace))
    found = display.to_shap()
    np.testing.assert_array_equal(found.values, display.contributions)
    np.testing.assert_array_equal(found.base_values, display.base)
    np.testing.assert_array_equal(found.data, X[45:145:20])
    assert found.feature_names == list(X.columns)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="pip install shap"):
        display.to_shap()


def test_importances_are_mean_sizes_of_contributions(tables, monkeypatch):
    table, models = tables
    frame = LocalModelDisplay.from_estimator(models[3], table).frame()
    frame = frame[frame["column"] != "reference"].copy()
    frame["size"] = frame["contribution"].abs()
    found = feature_importances(models[3], table)
    expected = frame.groupby("column", sort=False)["size"].mean()
    pd.testing.assert_series_equal(found, expected, check_names=False)
    monkeypatch.setattr(importances, "_NUMBERS", 7_000)  # in parts
    by_class = feature_importances(models[3], table, by="class")
    expected = frame.pivot_table(index="class", columns="column", values="size")[found.index]
    pd.testing.assert_frame_equal(by_class, expected, check_names=False)
    model = models[3][-1]
    rows = models[3][0].transform(table)
    whole = feature_importances(model, sparse.csr_matrix(rows), reference=rows)
    np.testing.assert_allclose(whole, feature_importances(model, rows, reference=rows))
    nobody = feature_importances(models[2], table[:1], by="class")
    assert nobody.isna().sum().sum() == len(found)
    with pytest.raises(ValueError, match="by"):
        feature_importances(models[2], table, by="region")


def test_sparse_rows_frames_and_names(display):
    model = loclin.ML3Classifier(3, **FAST).fit(ARRAY, labels(2))
    dense = LocalModelDisplay.from_estimator(model, ARRAY[:3], reference=ARRAY)
    csr = LocalModelDisplay.from_estimator(
        model, sparse.csr_matrix(ARRAY[:3]), reference=sparse.csr_matrix(ARRAY),
        feature_names=list("abcd"),
    )  # fmt: skip
    np.testing.assert_allclose(csr.contributions, dense.contributions, **EXACT)
    np.testing.assert_array_equal(csr.values, ARRAY[:3])
    assert csr.columns == list("abcd")
    named = loclin.ML3Classifier(3, **FAST).fit(X, labels(2))
    turned = X[X.columns[::-1]].assign(more=1.0)
    framed = LocalModelDisplay.from_estimator(named, X[:3], reference=turned)
    np.testing.assert_allclose(framed.contributions, dense.contributions, **EXACT)
    row = LocalModelDisplay.from_estimator(named, X[:3], reference=turned.iloc[5])
    np.testing.assert_array_equal(row.reference_values, ARRAY[5])


def test_what_cannot_be_explained_is_said(tables):
    explain = LocalModelDisplay.from_estimator
    model = ml3().fit(X, labels(3))
    for reference, told in [
        (ARRAY[:, :3], "reference has 3 columns, but the rows have 4"),
        (X.drop(columns=X.columns[1]), "has no column 'sepal width"),
        (np.full(4, np.nan), "finite"),
        (ARRAY[:0], "no rows"),
    ]:
        with pytest.raises(ValueError, match=told):
            explain(model, X[:2], reference=reference)
    table, models = tables
    with pytest.raises(ValueError, match="reference has no rows"):
        explain(models[2], table[:2], reference=table[:0])
    with pytest.raises(ValueError, match="feature_names has 1 names for 4 columns"):
        explain(model, X[:2], reference=X, feature_names=["a"])
    with pytest.raises(ValueError, match="holds 6 rows, not 7"):
        explain(model, X[:7], reference=X).plot()
    with pytest.raises(TypeError, match="The step PolynomialFeatures cannot"):
        explain(make_pipeline(PolynomialFeatures(), ml3()).fit(X, Y), X)
    with pytest.raises(TypeError, match="StandardScaler has no method local_model"):
        explain(StandardScaler(), X)
    with pytest.raises(ValueError, match="rows and columns"):
        explain(model, ARRAY[0], reference=X)
    for new in (ml3(), make_pipeline(TableEncoder(), ml3())):
        with pytest.raises(NotFittedError):
            explain(new, X[:2], reference=X)
    several = loclin.USSVMClassifier(3, random_state=0, max_iter=3)
    several.fit(ARRAY, np.stack([Y == 0, Y > 0], axis=1).astype(int))
    with pytest.raises(ValueError, match="several labels a row"):
        explain(several, ARRAY[:2], reference=ARRAY)


class Reader(HTMLParser):
    """Keeps a page's elements and texts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.texts, self.links = set(), [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href", "style")]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag != "meta":
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


HOSTILE = "列<script>alert(1)</script>\x1b[2J\u202e&amp;\"'\n{{ 7 * 7 }}"
SHOWN = "列<script>alert(1)</script>\\x1b[2J\\u202e&amp;\"'\\n{{ 7 * 7 }}"


def test_a_page_escapes_what_it_shows_and_loads_nothing():
    rng = np.random.default_rng(0)
    parts, base = rng.normal(size=(2, 120)), np.array([1.0, 2.0])
    display = LocalModelDisplay(
        parts, base, parts.sum(axis=1) + base, values=np.full((2, 120), HOSTILE, object),
        columns=[f"{k} {HOSTILE}" for k in range(120)], classes=[HOSTILE] * 2, against=["b"] * 2,
        rows=[HOSTILE, 1], predicted=[HOSTILE, "b"], reference_values=[HOSTILE] * 120,
        reference=HOSTILE,
    )  # fmt: skip
    page = explanation_page(display, title=HOSTILE, notes=[HOSTILE], facts={HOSTILE: HOSTILE})
    read = Reader(page)
    assert not read.open
    assert not read.tags & {"script", "img", "link", "iframe", "object", "image"}
    assert not [link for link in read.links if "//" in link or "url(" in link.replace("url(#", "")]
    assert not [letter for letter in page if ord(letter) < 32 and letter != "\n"]
    assert "\u202e" not in page
    assert read.texts.count(SHOWN) > 200
    assert "20 other columns" in read.texts
    assert "108 other columns" in "".join(read.texts), "the picture's"


def test_a_page_says_what_the_numbers_mean(display, tables):
    page = explanation_page(display, title="Irises", facts=[("model", "ML3")], notes=["A note."])
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30}):
        again = explanation_page(display, title="Irises", facts={"model": "ML3"}, notes=["A note."])
    assert page == again
    assert page.count("<svg") == 5
    text = " ".join(" ".join(Reader(page).texts).split())
    for said in ("not causes", "not say what happens if a value changes", "not Shapley values",
                 "not an average of predictions", "the mean training row", "A note.",
                 "Row 45 : predicted setosa"):  # fmt: skip
        assert said in text
    table, models = tables
    one = LocalModelDisplay.from_estimator(models[2], table[:1])
    lines = Reader(explanation_page(one, title="Churn")).texts
    numbers = [float(line.replace("\N{MINUS SIGN}", "-")) for line in lines if line[0] in "+\u2212"
               and line[1:].replace(".", "").isdigit()]  # fmt: skip
    *parts, score = numbers[-9:]
    assert score == pytest.approx(one.scores[0], abs=0.005)
    assert sum(parts) == pytest.approx(score, abs=0.045)  # each is rounded
