"""Which local models act where: shares are counts, and typical rows are of their models."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import loclin
from loclin.inspection import ModelUsageDisplay
from loclin.tables import TableEncoder
from tests.test_inspection import CLASSIFIERS, FAST, quick
from tests.test_tables import churn

pytest.importorskip("pandas", reason="needs the extra [tables]")
matplotlib = pytest.importorskip("matplotlib", reason="needs the extra [plot]")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize
X, Y = load_iris(return_X_y=True)
PIXELS, DIGITS = (part[:300] for part in load_digits(return_X_y=True))
look = ModelUsageDisplay.from_estimator


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def sapl():
    return loclin.SAPLClassifier(16, **FAST).fit(PIXELS, DIGITS)


@each("name", CLASSIFIERS)
def test_shares_of_every_classifier_are_counts(name):
    model = quick(name).fit(X, Y)
    if not hasattr(model, "local_weights"):
        with pytest.raises(TypeError, match="local_weights"):
            look(model, X)
        return
    display = look(model, X)
    weights, predicted = model.local_weights(X), model.predict(X)
    weights = weights.toarray() if sparse.issparse(weights) else weights
    for number, typical, shares in zip(
        display.numbers, display.typical, display.shares, strict=True
    ):
        of_class, model_number = divmod(int(number), weights.shape[-1])
        own = weights if weights.ndim == 2 else weights[np.arange(len(X)), predicted]
        rules = (abs(own).argmax(axis=1) == model_number) & (abs(own).max(axis=1) > 0)
        rules &= (predicted == of_class) | (weights.ndim == 2)
        assert rules[typical]
        counts = np.bincount(predicted[rules], minlength=3)
        np.testing.assert_allclose(150 * shares, counts, atol=1e-9)
    assert display.shares.sum() == pytest.approx(1)
    assert (np.diff(display.shares.sum(axis=1)) <= 1e-12).all()
    display.plot()


def test_typical_rows_are_medoids(sapl):
    display = look(sapl, PIXELS)
    rules = abs(sapl.local_weights(PIXELS)).toarray().argmax(axis=1)
    spread = np.where(PIXELS.std(axis=0) > 0, PIXELS.std(axis=0), 1)
    for number, typical in zip(display.numbers, display.typical, strict=True):
        rows = np.flatnonzero(rules == number)
        scaled = PIXELS[rows] / spread
        away = np.linalg.norm(scaled[:, None] - scaled, axis=2).sum(axis=1)
        assert away[rows.tolist().index(typical)] == pytest.approx(away.min())


def test_the_picture_has_these_numbers(sapl):
    display = look(sapl, PIXELS)
    assert len(display.names) > 6
    display.plot(max_models=5, image_shape=(8, 8), image_kw={"cmap": "viridis"})
    found = np.array([[bar.get_width() for bar in bars] for bars in display.bars_]).T
    np.testing.assert_allclose(found[:5], display.shares[:5])
    np.testing.assert_allclose(found[5], display.shares[5:].sum(axis=0))
    ends = [bar.get_x() + bar.get_width() for bar in display.bars_[-1]]
    np.testing.assert_allclose(ends, found.sum(axis=1))
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == [*display.names[:5], f"{len(display.names) - 5} other models"]
    assert display.text_[0].get_text() == f"{100 * display.shares[0].sum():.0f} %"
    assert len(display.images_) == 5
    for image, number in zip(display.images_, display.numbers[:5], strict=True):
        pixels = sapl.anchors_[number].reshape(8, 8)
        np.testing.assert_allclose(image.get_data(), pixels)
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="rows of 64 numbers"):
        display.plot(image_shape=(7, 8))


def test_prototypes_are_means_where_there_are_no_anchors():
    model = make_pipeline(StandardScaler(), loclin.ML3Classifier(2, **FAST)).fit(PIXELS, DIGITS)
    display = look(model, PIXELS)
    weights = model[-1].local_weights(model[:-1].transform(PIXELS))
    predicted = model.predict(PIXELS)
    own = weights[np.arange(300), predicted]
    of_class, number = divmod(int(display.numbers[0]), 2)
    rows = (own.argmax(axis=1) == number) & (predicted == of_class)
    assert display.names[0] == f"class {of_class}, model {number}"
    np.testing.assert_allclose(display.prototypes[0], PIXELS[rows].mean(axis=0))
    assert display.plot().images_ == []


def test_a_table_has_no_pictures():
    table, y = churn(120)
    model = make_pipeline(TableEncoder(n_components=2), loclin.ML3Classifier(2, **FAST))
    display = look(model.fit(table, y), table)
    assert display.prototypes is None
    frame = display.frame()
    assert list(frame) == ["model", "number", "class", "share", "typical"]
    assert frame["share"].sum() == pytest.approx(1)
    assert frame["class"].tolist() == ["no", "yes"] * len(display.names)
    with pytest.raises(ValueError, match="rows of numbers"):
        display.plot(image_shape=(2, 2))
    with pytest.raises(ValueError, match="no rows"):
        look(model, table[:0])
