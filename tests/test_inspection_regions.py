"""Maps of classes and local models: colours and borders are where the model says."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import loclin
from loclin.inspection import RegionsDisplay
from loclin.inspection.borders import borders
from loclin.inspection.colors import colors_of, tinted
from loclin.tables import TableEncoder
from tests.test_inspection import CLASSIFIERS, FAST, quick
from tests.test_tables import churn

pytest.importorskip("pandas", reason="needs the extra [tables]")
matplotlib = pytest.importorskip("matplotlib", reason="needs the extra [plot]")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize
MOONS, SIDES = make_moons(200, noise=0.15, random_state=0)
IRIS, KINDS = load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def l3m():
    """Four regions of moons, whose labels are words."""
    names = np.array(["left", "right"])[SIDES]
    return loclin.L3MClassifier(4, pieces=None, alpha=1e-4, random_state=0).fit(MOONS, names)


def look(model, X=MOONS, **options):
    return RegionsDisplay.from_estimator(model, X, **{"grid_resolution": 40, **options})


def grid_of(display):
    return np.stack(np.meshgrid(display.x, display.y), axis=2).reshape(-1, 2)


def test_classes_and_models_at_the_grid_are_those_of_the_model(l3m):
    display = look(l3m)
    grid = grid_of(display)
    classes = np.array(display.classes)[display.predicted.ravel()]
    np.testing.assert_array_equal(classes, l3m.predict(grid))
    np.testing.assert_array_equal(display.models.ravel(), l3m.regions(grid))
    np.testing.assert_allclose(display.margins.ravel(), abs(l3m.decision_function(grid)))
    low, high = MOONS.min(axis=0), MOONS.max(axis=0)
    assert (grid.min(axis=0) < low).all()
    assert (grid.max(axis=0) > high).all()


def test_borders_lie_where_two_sides_differ(l3m):
    display = look(l3m)
    assert len(np.unique(display.models)) > 2
    step = np.array([np.diff(display.x)[0], np.diff(display.y)[0]])
    for pieces, of in ((display.boundary, l3m.predict), (display.borders, l3m.regions)):
        assert len(pieces) > 40
        assert (abs(pieces[:, 0] - pieces[:, 1]) <= step + 1e-9).all()
        straight = [piece for piece in pieces.reshape(-1, 2) if on_an_edge(piece, display)]
        assert len(straight) > 80
        around = np.array(straight)[:, None] + 0.01 * step * [[1, 0], [-1, 0], [0, 1], [0, -1]]
        found = of(around.reshape(-1, 2)).reshape(-1, 4)
        assert all(len(set(row)) > 1 for row in found.tolist())


def on_an_edge(point, display):
    """Whether a point is on a line of the grid, not a centre where three regions meet."""
    return any(
        abs(axis - x).min() < 1e-9 for axis, x in zip((display.x, display.y), point, strict=True)
    )


def test_borders_of_three_regions_meet():
    axis = np.linspace(-1, 1, 8)

    def label_of(points):
        return np.where(points[:, 1] < 0.1, 0, 1 + (points[:, 0] > 0.1))

    grid = np.stack(np.meshgrid(axis, axis), axis=2).reshape(-1, 2)
    pieces = borders(axis, axis, label_of(grid).reshape(8, 8), label_of)
    lengths = np.linalg.norm(pieces[:, 0] - pieces[:, 1], axis=1)
    assert lengths.sum() == pytest.approx(2 + 0.9, abs=0.1)
    assert abs(pieces - 0.1).min(axis=2).max() < 0.1
    assert not len(borders(axis, axis, np.zeros((8, 8), int), label_of))


@each("response", ["predict", "regions", "score"])
def test_the_picture_has_these_numbers(l3m, response):
    display = look(l3m, y=l3m.predict(MOONS), response=response).plot()
    colors = np.asarray(display.surface_.get_array())
    assert colors.shape == (40, 40, 3)
    left, bottom = display.surface_.get_extent()[::2]
    assert left == pytest.approx(display.x[0] - np.diff(display.x)[0] / 2)
    assert bottom == pytest.approx(display.y[0] - np.diff(display.y)[0] / 2)
    if response == "predict":
        np.testing.assert_allclose(colors, tinted(colors_of(display.predicted), 0.33))
    if response == "regions":
        shown = {tuple(color) for color in colors.reshape(-1, 3).round(6).tolist()}
        assert len(shown) == len(np.unique(display.models))
        for text in display.text_:
            column, row = (
                abs(axis - at).argmin()
                for axis, at in zip((display.x, display.y), text.get_position(), strict=True)
            )
            assert text.get_text() == str(display.models[row, column])
        assert len(display.text_) > 2
    if response == "score":
        darkness = (1 - colors).sum(axis=2)[display.predicted == 0]
        margins = display.margins[display.predicted == 0]
        assert (np.diff(darkness[np.argsort(margins)]) > -1e-9).all()
    np.testing.assert_allclose(np.array(display.boundary_.get_segments()), display.boundary)
    np.testing.assert_allclose(np.array(display.borders_.get_segments()), display.borders)
    for number, drawn in enumerate(display.points_):
        own = MOONS[l3m.predict(MOONS) == display.classes[number]]
        np.testing.assert_allclose(drawn.get_offsets(), own)
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["left", "right"]
    assert display.ax_.get_xlabel() == "x0"
    display.figure_.canvas.draw()


def test_keywords_and_given_axes_are_used(l3m):
    _, ax = pyplot.subplots()
    display = look(l3m, y=l3m.predict(MOONS))
    display.plot(ax, point_kw={"s": 3.0}, border_kw={"colors": "red"})
    assert display.ax_ is ax
    assert display.points_[0].get_sizes().tolist() == [3.0]
    assert display.borders_.get_edgecolor()[0, :3].tolist() == [1, 0, 0]
    assert not look(l3m).plot().points_


@each("name", CLASSIFIERS)
def test_every_classifier_is_drawn(name):
    model = quick(name).fit(IRIS, KINDS)
    display = look(model, IRIS, grid_resolution=12, features=(2, "petal width (cm)"), y=KINDS)
    assert display.names == ["petal length (cm)", "petal width (cm)"]
    rows = np.tile(IRIS.mean().to_numpy(), (144, 1))
    rows[:, 2:] = grid_of(display)
    rows = IRIS.iloc[:0].reindex(range(144)).assign(**dict(zip(IRIS.columns, rows.T, strict=True)))
    np.testing.assert_array_equal(display.predicted.ravel(), model.predict(rows))
    assert (display.models is None) == (not hasattr(model, "local_weights"))
    display.plot()
    if display.models is None:
        with pytest.raises(ValueError, match="no numbered local models"):
            look(model, IRIS, response="regions")


def test_models_of_a_class_are_told_apart():
    model = loclin.ML3Classifier(3, **FAST).fit(IRIS, KINDS)
    display = look(model, IRIS, features=(2, 3))
    counting = display.models >= 0
    np.testing.assert_array_equal((display.models // 3)[counting], display.predicted[counting])
    codes = model.local_weights(IRIS.assign(**{"sepal width (cm)": 3.0}))[:5]
    assert codes.shape == (5, 3, 3)
    number = int(display.models[counting][0])
    assert display.model_names[number] == f"class {number // 3}, model {number % 3}"
    frame = display.frame()
    assert list(frame) == ["petal length (cm)", "petal width (cm)", "class", "margin", "model"]
    assert len(frame) == 1600
    assert frame["model"][5] == display.model_names[int(display.models.ravel()[5])]
    assert frame["class"].tolist() == display.predicted.ravel().tolist()


def test_scalers_and_another_reference():
    model = make_pipeline(MinMaxScaler(), StandardScaler(), loclin.SAPLClassifier(8, **FAST))
    model.fit(IRIS, KINDS)
    display = look(model, IRIS, features=(3, 0), reference=IRIS.iloc[120], grid_resolution=9)
    rows = np.tile(IRIS.to_numpy()[120], (81, 1))
    rows[:, [3, 0]] = grid_of(display)
    frame = IRIS.iloc[:0].reindex(range(81)).assign(**dict(zip(IRIS.columns, rows.T, strict=True)))
    np.testing.assert_array_equal(display.predicted.ravel(), model.predict(frame))


def test_a_projection():
    array = IRIS.to_numpy()
    model = make_pipeline(StandardScaler(), loclin.ML3Classifier(2, **FAST)).fit(array, KINDS)
    pca = PCA(2).fit(array)
    display = look(model, array, features=pca, y=KINDS)
    rows = pca.inverse_transform(grid_of(display))
    np.testing.assert_array_equal(display.predicted.ravel(), model.predict(rows))
    np.testing.assert_allclose(display.points, pca.transform(array))
    with pytest.raises(ValueError, match="to 3 components, not to two"):
        look(model, array, features=PCA(3).fit(array))


def test_a_table():
    table, y = churn(120)
    model = make_pipeline(TableEncoder(n_components=2), loclin.ML3Classifier(2, **FAST))
    model.fit(table, y)
    options = {"features": ("charge", "visits"), "grid_resolution": 9}
    display = look(model, table, reference=table[7:8], y=y, **options)
    rows = table.iloc[[7] * 81].reset_index(drop=True)
    rows = rows.assign(charge=grid_of(display)[:, 0], visits=grid_of(display)[:, 1])
    found = np.array(display.classes)[display.predicted.ravel()]
    np.testing.assert_array_equal(found, model.predict(rows))
    display.plot()
    at_mean = look(model, table, **options)
    assert (at_mean.margins != display.margins).any()
    with pytest.raises(ValueError, match="'contract' is a category"):
        look(model, table, features=("charge", "contract"))
    with pytest.raises(ValueError, match="no projection"):
        look(model, table, features=PCA(2))


@each(
    ("options", "said"),
    [
        ({"features": (0, 0)}, "two columns"),
        ({"features": "x0"}, "two columns"),
        ({"features": (0, 2)}, "no column 2"),
        ({"features": (0, "height")}, "no column 'height'"),
        ({"response": "proba"}, "response"),
        ({"grid_resolution": 1}, "2 at least"),
        ({"y": ["left"]}, "200 rows"),
        ({"y": ["up"] * 200}, "no classes of the model"),
    ],
)
def test_what_cannot_be_is_said(l3m, options, said):
    with pytest.raises(ValueError, match=said):
        look(l3m, **options)


def test_several_labels_a_row_have_no_map():
    model = loclin.USSVMClassifier(random_state=0, max_iter=5)
    model.fit(MOONS, np.stack([SIDES, 1 - SIDES], axis=1))
    with pytest.raises(ValueError, match="several labels"):
        look(model)


def test_names_of_classes_are_no_mathematics():
    names = np.array(["$a", "b$"])[SIDES]
    model = quick("CSVMClassifier").fit(MOONS, names)
    display = look(model, sparse.csr_array(MOONS), y=names).plot()
    assert not display.ax_.get_legend().get_texts()[0].get_parse_math()
    display.figure_.canvas.draw()


def test_plain_arrays_make_a_display():
    display = RegionsDisplay([0, 1], [0, 1], [[0, 1], [0, 1]], np.ones((2, 2)), classes="ab")
    display.plot()
    assert display.frame()["class"].tolist() == ["a", "b", "a", "b"]
    with pytest.raises(ValueError, match="needs models"):
        RegionsDisplay([0], [0], [[0]], [[1]], classes="ab", response="regions")
