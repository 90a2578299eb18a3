"""Scores along a column: each is the model's own, and bends and jumps are where they are."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import loclin
from loclin.codings import SoftAssignmentCoding
from loclin.inspection import EffectDisplay
from loclin.inspection.colors import colors_of
from loclin.tables import TableEncoder
from tests.test_inspection import CLASSIFIERS, FAST, quick
from tests.test_tables import churn

pd = pytest.importorskip("pandas", reason="needs the extra [tables]")
matplotlib = pytest.importorskip("matplotlib", reason="needs the extra [plot]")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
EXACT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    pyplot.close("all")


def moved(row, place, values):
    rows = np.tile(row, (len(values), 1))
    rows[:, place] = values
    return rows


def along(model, rows, feature=2, **options):
    options = {"values": X[:, 2], "grid_resolution": 20, **options}
    return EffectDisplay.from_estimator(model, rows, feature, **options)


@each("n_classes", [2, 3])
@each("name", CLASSIFIERS)
def test_scores_and_slopes_are_those_of_every_classifier(name, n_classes):
    model = quick(name).fit(X, np.minimum(Y, n_classes - 1))
    rows = X[[0, 60, 120]]
    display = along(model, rows, highlight=1)
    first, second = display.curves[0]
    assert first == model.predict(rows)[1]
    for k, row in enumerate(rows):
        scores = model.decision_function(moved(row, 2, display.values))
        slopes = model.local_gradient(moved(row, 2, display.values))[..., 2]
        if n_classes == 3:
            scores, slopes = (one[:, first] - one[:, second] for one in (scores, slopes))
        elif first == 0:
            scores, slopes = -scores, -slopes
        np.testing.assert_allclose(display.scores[k, 0], scores, **EXACT)
        np.testing.assert_allclose(display.slopes[k, 0], slopes, **EXACT)
    assert set(rows[:, 2]) <= set(display.values)
    assert display.values[[0, -1]].tolist() == [X[:, 2].min(), X[:, 2].max()]
    display.plot()


def test_knots_of_pieces_behind_scalers():
    """Between two places of the curve a sum of pieces is straight."""
    steps = MinMaxScaler(), StandardScaler()
    model = make_pipeline(*steps, loclin.CSVMClassifier(1, pieces=6, alpha=0.01, random_state=0))
    model.fit(X, Y)
    display = along(model, X[:1], grid_resolution=2)
    pieces = model[-1].pieces_
    knots = pieces.low[pieces.feature == 2][1:]
    assert len(knots) > 2
    own = np.zeros((len(knots), 4))
    own[:, 2] = knots
    for step in reversed(model[:-1]):
        own = step.inverse_transform(own)
    for side in (-1, 1):
        near = abs(display.values[:, None] - own[:, 2] - side * 5.9e-9)
        assert near.min(axis=0).max() < 1e-10
    middle = (display.values[1:] + display.values[:-1]) / 2
    first, second = display.curves[0]
    scores = model.decision_function(moved(X[0], 2, middle))
    curve = display.scores[0, 0]
    straight = (curve[1:] + curve[:-1]) / 2
    np.testing.assert_allclose(scores[:, first] - scores[:, second], straight, atol=1e-8)
    step = np.diff(display.values) > 1e-3
    slope = np.diff(curve)[step] / np.diff(display.values)[step]
    np.testing.assert_allclose(display.slopes[0, 0, :-1][step], slope, rtol=1e-6)


def test_jumps_of_trees_are_where_their_thresholds_are():
    """Between them the score is constant."""
    model = loclin.ForestClassifier(5, random_state=0).fit(X, Y)
    display = along(model, X[60:61], grid_resolution=7)
    change, width = abs(np.diff(display.scores[0, 0])), np.diff(display.values)
    assert (change[width > 2e-8] < 1e-12).all()
    assert change.max() > 0.5


def test_jumps_between_regions_are_found():
    """A step of the grid away, the curve would be slanted."""
    model = loclin.L3MClassifier(3, pieces=None, random_state=0).fit(X, Y)
    rows = X[:30:10]
    display = along(model, rows, grid_resolution=7)
    at = [model.regions(moved(row, 2, display.values)) for row in rows]
    assert (np.diff(at, axis=1) != 0).any()
    width = np.broadcast_to(np.diff(display.values), (3, len(display.values) - 1))
    assert width[np.diff(at, axis=1) != 0].max() < 1.3e-8


def test_one_model_a_class_has_shape_functions():
    model = loclin.CSVMClassifier(1, pieces=6, alpha=0.01, random_state=0).fit(X, Y)
    display = along(model, X[::10], classes="each")
    shapes = display.scores - display.scores.mean(axis=2, keepdims=True)
    np.testing.assert_allclose(shapes, np.broadcast_to(shapes[:1], shapes.shape), **EXACT)
    parts = []
    for place in range(4):
        one = along(model, X[:1], place, values=X[:, place], classes="each")
        parts.append([np.interp(X[:, place], one.values, curve) for curve in one.scores[0]])
    constant = 3 * model.decision_function(X[:1])[0]
    found = np.sum(parts, axis=0).T - constant
    np.testing.assert_allclose(found, model.decision_function(X), atol=1e-6)


@each("classes", [None, ("virginica", "setosa"), "each"])
def test_the_picture_has_these_numbers(classes):
    model = loclin.SAPLClassifier(8, **FAST).fit(X, NAMES[Y])
    display = along(model, X[[0, 70, 120]], classes=classes, highlight=2).plot()
    if classes == "each":
        assert [line.get_label() for line in display.lines_] == list(NAMES)
        drawn = display.scores[2]
        assert display.curves == [(name, None) for name in NAMES]
        total = model.decision_function(X[[120]])[0]
        np.testing.assert_allclose([dot.get_ydata()[0] for dot in display.own_], total)
    else:
        drawn = display.scores[:, 0]
        pair = classes or tuple(NAMES[np.argsort(-model.decision_function(X[[120]])[0])[:2]])
        assert display.curves == [pair]
        assert f'"{pair[0]}" against "{pair[1]}"' in display.ax_.get_ylabel().replace("\n", " ")
        strong = [line.get_color() for line in display.lines_]
        assert [np.array_equal(one, colors_of([0])[0]) for one in strong] == [False, False, True]
        dot = display.own_[0].get_xydata()[0]
        np.testing.assert_allclose(dot, [X[120, 2], display.own_scores[2, 0]])
        assert display.own_scores[2, 0] == pytest.approx(
            np.interp(X[120, 2], display.values, display.scores[2, 0])
        )
    assert len(display.lines_) == 3
    for line, scores in zip(display.lines_, drawn, strict=True):
        np.testing.assert_allclose(line.get_xdata(), display.values)
        np.testing.assert_allclose(line.get_ydata(), scores)
    display.figure_.canvas.draw()


@pytest.fixture(scope="module")
def shop():
    table, y = churn(150)
    model = make_pipeline(TableEncoder(n_components=2), loclin.ML3Classifier(2, **FAST))
    return table, model.fit(table, y)


@each("column", ["contract", "paperless", "charge", "signup"])
def test_columns_of_a_table(shop, column):
    table, model = shop
    rows = table.iloc[3:6]
    display = EffectDisplay.from_estimator(model, rows, column, values=table[column],
                                           grid_resolution=15)  # fmt: skip
    sign = 1 if display.curves[0][0] == "yes" else -1
    for k in range(3):
        frame = rows.iloc[[k] * len(display.values)].reset_index(drop=True)
        frame[column] = display.values
        np.testing.assert_allclose(
            display.scores[k, 0], sign * model.decision_function(frame), **EXACT
        )
    np.testing.assert_allclose(display.own_scores[:, 0], sign * model.decision_function(rows))
    assert display.rows == [3, 4, 5]
    if column in ("contract", "paperless"):
        shown = set(table[column].dropna())
        assert set(display.values) >= shown
        assert len(display.values) == len(shown) + table[column].isna().any()
    if column == "charge":
        step = np.diff(display.values) > 1e-3
        slope = np.diff(display.scores[0, 0])[step] / np.diff(display.values)[step]
        assert abs(display.slopes[0, 0, :-1][step] - slope).max() < 0.1 * abs(slope).max()
    else:
        assert display.slopes is None
    display.plot()
    if column == "contract":
        names = [text.get_text() for text in display.ax_.get_xticklabels()]
        assert names == ["missing", "monthly", "one year", "two years"]
        assert display.own_[0].get_xdata()[0] == names.index(rows["contract"].iloc[0])
    frame = display.frame()
    assert list(frame) == ["row", "class", "against", "value", "score", "slope"]
    assert len(frame) == 3 * len(display.values)
    assert frame["score"].tolist() == display.scores.ravel().tolist()
    display.figure_.canvas.draw()


def test_frames_have_their_names():
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(4)], index=range(150, 300))
    model = quick("L3MClassifier").fit(frame, Y)
    display = along(model, frame.iloc[:2], "c2")
    assert display.column == "c2"
    assert display.frame()["row"].unique().tolist() == [150, 151]
    with pytest.raises(ValueError, match="no column 'x2'"):
        along(model, frame.iloc[:2], "x2")


@each(
    ("options", "said"),
    [
        ({"feature": 4}, "no column 4"),
        ({"feature": "width"}, "no column 'width'"),
        ({"values": [X[0, 2]]}, "one value alone"),
        ({"classes": ("setosa", "rose")}, "classes"),
        ({"classes": "all"}, "classes"),
        ({"highlight": 1}, "highlight"),
        ({"rows": X[:0]}, "1 to 100 rows"),
        ({"rows": X[:101]}, "1 to 100 rows"),
    ],
)
def test_what_cannot_be_is_said(options, said):
    model = quick("CSVMClassifier").fit(X, NAMES[Y])
    with pytest.raises(ValueError, match=said):
        along(model, **{"rows": X[:1], **options})


def test_many_categories_are_too_many(shop):
    table, model = shop
    with pytest.raises(ValueError, match="a picture holds 40"):
        EffectDisplay.from_estimator(model, table[:1], "city", values=table["city"])


def test_codes_without_a_derivative_have_no_slopes():
    coding = make_pipeline(SoftAssignmentCoding(4, n_neighbors=4, random_state=0))
    model = loclin.LLSVMClassifier(coding, **FAST).fit(X, Y)
    display = along(model, X[:1])
    assert display.slopes is None
    assert display.frame()["slope"].isna().all()
    first, second = display.curves[0]
    scores = model.decision_function(moved(X[0], 2, display.values))
    np.testing.assert_allclose(display.scores[0, 0], scores[:, first] - scores[:, second])
