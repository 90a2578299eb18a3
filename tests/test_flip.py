"""The smallest change that flips a prediction: by `predict`, within limits, in whole values."""

import datetime

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import loclin
from loclin.codings import LocalCoordinateCoding
from loclin.datasets import make_sine
from loclin.inspection import flip
from loclin.inspection.boxes import boxes_of
from loclin.inspection.flipping import nearest_beyond
from loclin.inspection.moves import PlainMoves, Steps
from loclin.inspection.table_moves import _date_like
from loclin.portable import describe

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize
FAST = {"alpha": 0.1, "metric": None, "pieces": None, "max_iter": 5, "calibrate": False,
        "random_state": 0}  # fmt: skip
SETTINGS = {
    "LocallyLinearEnsemble": {
        "estimators": [loclin.ML3Classifier(2, **FAST), loclin.ForestClassifier(5)],
        "n_folds": 2,
    },
    "ForestClassifier": {"n_trees": 20},
    "KernelLMKLClassifier": {"max_iter": 50},
    "SVMKNNClassifier": {"metric": "euclidean"},
}
CLASSIFIERS = [
    name for name in loclin.__all__ if name.endswith(("Classifier", "Ensemble"))
]  # fmt: skip
X, Y = load_iris(return_X_y=True)
CELLS, CANCER = load_breast_cancer(return_X_y=True)


def made(name, **settings):
    kind = getattr(loclin, name)
    known = kind().get_params()
    return kind(**{key: value for key, value in (FAST | SETTINGS.get(name, {}) | settings).items()
                   if key in known})  # fmt: skip


def holds(found, model, row, scale):
    """Hold a flip against what the model says of its row."""
    assert found.verified
    before, after = model.predict(row[None])[0], model.predict(found.row[None])[0]
    assert found.label_before == before != after == found.label_after
    moved = np.flatnonzero(found.row != row)
    assert {f"x{k}": (row[k], found.row[k]) for k in moved} == found.changed
    np.testing.assert_allclose(found.distance, np.linalg.norm((found.row - row) / scale))


@each("name", CLASSIFIERS)
def test_every_classifier_flips_in_the_columns_in_front_of_scalers(name):
    scaler = StandardScaler()
    model = make_pipeline(scaler, made(name)).fit(X, Y)
    for row in X[::29]:
        holds(flip(model, row), model, row, scaler.scale_)


@each("name", ["ML3Classifier", "SAPLClassifier", "ForestClassifier", "KernelLMKLClassifier"])
def test_two_classes_flip_and_features_that_may_not_move_stay(name):
    model = make_pipeline(StandardScaler(), made(name)).fit(CELLS, CANCER)
    for row in CELLS[::120]:
        free = flip(model, row)
        few = flip(model, row, features=range(20, 30))
        assert free.verified
        others = np.column_stack([np.tile(row[:20], (len(CELLS), 1)), CELLS[:, 20:]])
        possible = (model.predict(others) != free.label_before).any()
        assert few.verified or not possible
        assert few.row[:20].tobytes() == row[:20].tobytes()
        assert (few.row[20:] != row[20:]).any()


def test_the_distance_to_a_linear_border_is_exact():
    model = make_pipeline(StandardScaler(), loclin.USSVMClassifier(random_state=0))
    model.fit(CELLS, CANCER)
    coef = model[-1].local_model(model[:-1].transform(CELLS[:5]))[0]
    lengths = abs(model.decision_function(CELLS[:5])) / np.linalg.norm(coef, axis=1)
    found = [flip(model, row).distance for row in CELLS[:5]]
    np.testing.assert_allclose(found, lengths, rtol=1e-3)


def test_units_are_those_of_the_classifier_or_given():
    model = made("ML3Classifier").fit(CELLS, CANCER)
    own = flip(model, CELLS[0])
    told = flip(model, CELLS[0], scale=CELLS.std(axis=0))
    np.testing.assert_allclose(own.row, told.row, rtol=1e-6)
    assert own.distance == pytest.approx(told.distance, rel=1e-6)
    raw = flip(model, CELLS[0], scale=1.0)
    assert raw.distance == pytest.approx(np.linalg.norm(raw.row - CELLS[0]))
    assert raw.distance < 0.9 * np.linalg.norm(own.row - CELLS[0])
    one = flip(model, CELLS[0], scale={"x0": 1e-9})
    assert abs(one.row[0] - CELLS[0, 0]) < 1e-6 < abs(own.row[0] - CELLS[0, 0])


@each("name", ["SAPLClassifier", "LMKLClassifier", "LDKLClassifier", "KernelLMKLClassifier"])
def test_in_two_dimensions_it_is_as_near_as_a_search_on_a_grid(name):
    points, labels = make_sine(200, random_state=0)
    model = make_pipeline(StandardScaler(), made(name, max_iter=50)).fit(points, labels)
    angles = np.linspace(0, 2 * np.pi, 180, endpoint=False)
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1) * model[0].scale_
    ratios = []
    for row, label in zip(points[:8], model.predict(points[:8]), strict=True):
        lengths = np.arange(0.02, 6, 0.02)
        circles = row + lengths[:, None, None] * ways
        other = (model.predict(circles.reshape(-1, 2)) != label).reshape(len(lengths), -1)
        ratios.append(flip(model, row).distance / lengths[np.argmax(other.any(axis=1))])
    assert np.median(ratios) < 1.02
    assert np.max(ratios) < 1.5


def test_bounds_are_kept_and_what_is_impossible_is_said():
    model = make_pipeline(StandardScaler(), made("SAPLClassifier")).fit(X, Y)
    row = X[60]
    free = flip(model, row)
    (name, (before, after)), *_ = sorted(
        free.changed.items(), key=lambda one: -abs(one[1][1] - one[1][0])
    )
    middle = (before + after) / 2
    limits = (None, middle) if after > before else (middle, None)
    found = flip(model, row, bounds={name: limits})
    assert found.verified
    assert found.distance > free.distance
    assert min(before, middle) <= found.row[int(name[1:])] <= max(before, middle)
    none = flip(model, row, bounds={k: (row[k], row[k] + 1e-3) for k in range(4)})
    assert not none.verified
    assert none.label_after == none.label_before
    assert ((none.row >= row) & (none.row <= row + 1e-3)).all()
    nothing = flip(model, row, features=[])
    assert not nothing.verified
    assert nothing.changed == {}
    assert nothing.row.tobytes() == row.tobytes()


@each("name", ["ML3Classifier", "LLSVMClassifier", "ForestClassifier"])
def test_a_target_is_reached(name):
    labels = load_iris().target_names[Y]
    model = make_pipeline(StandardScaler(), made(name)).fit(X, labels)
    for row in X[::40]:
        found = flip(model, row)
        by_target = {
            label: flip(model, row, target=label).distance
            for label in set(labels) - {found.label_before}
            if flip(model, row, target=label).label_after == label
        }
        assert len(by_target) == 2
        assert found.distance < 1.1 * min(by_target.values())


@each("scaler", [MinMaxScaler(), MaxAbsScaler(), RobustScaler()], ids=repr)
def test_scalers_in_front_do_not_matter_where_units_are_given(scaler):
    inner = made("SAPLClassifier").fit(scaler.fit_transform(X), Y)
    model = make_pipeline(scaler, made("SAPLClassifier")).fit(X, Y)
    for row in X[::40]:
        units = 1 / (scaler.transform([row + 1]) - scaler.transform([row]))[0]
        found = flip(model, row, scale=units)
        inside = flip(inner, scaler.transform([row])[0], scale=1.0)
        np.testing.assert_allclose(found.distance, inside.distance, rtol=1e-3)


def test_rows_come_back_as_they_are_given():
    pd = pytest.importorskip("pandas")
    model = made("ML3Classifier").fit(X.astype(np.float32), Y)
    row = X[70].astype(np.float32)
    found = flip(model, row, features=["x2", 3])
    assert found.row.dtype == np.float32
    assert found.row.shape == (4,)
    assert set(found.changed) <= {"x2", "x3"}
    assert flip(model, row[None]).row.shape == (1, 4)
    whole = flip(model, [5, 3, 4, 1])
    assert whole.row.dtype == np.float64
    assert model.predict([whole.row])[0] == whole.label_after

    frame = load_iris(as_frame=True).data
    named = make_pipeline(StandardScaler(), made("ML3Classifier")).fit(frame, Y)
    part = flip(named, frame[70:71], features=["petal width (cm)"])
    assert isinstance(part.row, pd.DataFrame)
    pd.testing.assert_frame_equal(
        part.row.drop(columns="petal width (cm)"), frame[70:71].drop(columns="petal width (cm)")
    )
    assert named.predict(part.row)[0] == part.label_after != part.label_before
    series = flip(named, frame.iloc[70], features=["petal width (cm)"])
    assert series.changed == part.changed
    assert series.row.drop("petal width (cm)").equals(frame.iloc[70].drop("petal width (cm)"))
    assert series.row.name == 70
    assert flip(named, frame.iloc[70].to_numpy(), features=[3]).changed == part.changed


def test_what_slopes_cannot_tell_differences_do():
    coding = LocalCoordinateCoding(8, random_state=0)
    model = loclin.LLSVMClassifier(coding, **FAST).fit(X, Y)
    moves = PlainMoves(model, Steps(model), X[0], None)
    assert moves.kinds == ["local_model"]
    assert flip(model, X[60]).verified
    kernel = made("KernelLMKLClassifier").fit(X, Y)
    moves = PlainMoves(kernel, Steps(kernel), X[60], None)
    assert moves.kinds == ["difference"]
    slopes = moves.slopes(X[60], "difference")
    step = np.array([0, 0, 1e-3, 0])
    up, down = moves.scores(np.stack([X[60] + step, X[60] - step]))
    np.testing.assert_allclose(slopes[:, 2] / moves.units[2], (up - down) / 2e-3, rtol=1e-3)


def test_a_box_is_where_the_trees_say_one_thing():
    forest = loclin.ForestClassifier(3, random_state=0).fit(X, Y)
    description = describe(forest)
    low, high = boxes_of(description)
    (term,) = description.terms
    assert len(low) == len(high) == term.intercept.shape[1]
    inside = np.clip(X.mean(axis=0), low + 1e-6, high - 1e-6)
    codes = forest.local_weights(inside).toarray()
    assert (codes.sum(axis=1) == 3).all()
    # the rows of boxes between them meet each leaf of the forest
    assert (codes.sum(axis=0) > 0).all()


@example([(5.656526533966053e-162, 0.0, 0.0, 0.0)], 1.0)
@given(
    st.lists(st.tuples(*[st.floats(-3, 3)] * 2, *[st.floats(0, 2)] * 2), min_size=1, max_size=5),
    st.floats(0, 5),
)
def test_the_nearest_point_beyond_a_border_within_limits(columns, need):
    slope, _, below, above = np.array(columns).T
    low, high = -below, above
    change = nearest_beyond(slope, need, low, high)
    assert ((change >= low) & (change <= high)).all()
    most = np.where(slope > 0, high, low) @ slope
    assert change @ slope == pytest.approx(min(need, most), abs=1e-9)
    # optimality: what is within its limits is a multiple of the slope, what is not, less
    free = (change > low) & (change < high) & (abs(slope) > 1e-3)
    if need < most and free.any():
        multiple = (change[free] / slope[free]).max()
        np.testing.assert_allclose(change[free], multiple * slope[free], atol=1e-9)
        assert (abs(change) <= abs(multiple * slope) + 1e-9).all()


@each(
    ("wrong", "message"),
    [
        ({"features": ["x9"]}, "features has 'x9', which is no column that can move"),
        ({"bounds": {"x0": (9, None)}}, "bounds of 'x0' are 9 and inf, but the row has 5.1"),
        ({"target": 0}, "target=0 must be one of .*, and not 0"),
        ({"target": "setosa"}, "target='setosa' must be one of"),
        ({"scale": 0}, "scale must have positive numbers"),
        ({"scale": {"x7": 1}}, "scale has 'x7'"),
        ({"max_steps": 0}, "max_steps=0 is not valid"),
    ],
)
def test_wrong_parameters_are_refused(wrong, message):
    model = made("ML3Classifier").fit(X, Y)
    with pytest.raises(ValueError, match=message):
        flip(model, X[0], **wrong)


def test_wrong_models_and_rows_are_refused():
    model = made("ML3Classifier").fit(X, Y)
    with pytest.raises(ValueError, match=r"shape \(2, 4\); give one row of 4"):
        flip(model, X[:2])
    with pytest.raises(ValueError, match="NaN"):
        flip(model, [np.nan, 1, 1, 1])
    squares = make_pipeline(PolynomialFeatures(), made("ML3Classifier")).fit(X, Y)
    with pytest.raises(TypeError, match="PolynomialFeatures cannot be a step"):
        flip(squares, X[0])
    several = loclin.USSVMClassifier(random_state=0).fit(X, np.eye(3, dtype=int)[Y])
    with pytest.raises(ValueError, match="several labels a row"):
        flip(several, X[0])


# Tables.


@pytest.fixture(scope="module")
def table():
    pd = pytest.importorskip("pandas", reason="needs the extra [tables]")
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame({
        "id": np.arange(n) + 1000,
        "plan": rng.choice(["basic", "silver", "gold"], n),
        "charge": np.round(rng.gamma(4, 15, n), 2),
        "since": np.datetime64("2021-03-01") + rng.integers(0, 900, n).astype("timedelta64[D]"),
        "paperless": rng.random(n) < 0.5,
        "comment": [" ".join(rng.choice(["slow", "good", "line", "price"], 6)) for _ in range(n)],
    })  # fmt: skip
    frame.loc[::7, "charge"] = None
    score = 2.0 * (frame["plan"] == "basic") + 0.03 * frame["charge"].fillna(50)
    score += 1.0 * frame["paperless"] + (frame["since"] - pd.Timestamp("2022-01-01")).dt.days / 400
    return frame, np.where(score > score.median(), "stays", "leaves")


@pytest.fixture(scope="module", params=["ML3Classifier", "ForestClassifier"])
def of_table(request, table):
    from loclin.tables import TableEncoder

    frame, y = table
    kinds = {"comment": "text"}
    steps = TableEncoder(kinds=kinds), StandardScaler(), made(request.param, max_iter=30)
    return make_pipeline(*steps).fit(frame, y)


def test_a_row_of_a_table_flips_by_whole_values(table, of_table):
    frame, _ = table
    moved = set()
    for k in range(7):
        row = frame[k : k + 1]
        found = flip(of_table, row)
        assert found.verified
        assert list(found.row.columns) == list(frame.columns)
        assert found.row.index.equals(row.index)
        assert of_table.predict(found.row)[0] == found.label_after != found.label_before
        for name in frame.columns:
            same = found.row[name].equals(row[name])
            assert same == (name not in found.changed)
            if not same:
                assert found.changed[name] == (row[name].iloc[0], found.row[name].iloc[0])
        assert not {"id", "comment"} & set(found.changed)
        assert found.row["plan"].iloc[0] in {"basic", "silver", "gold"}
        assert found.row["paperless"].dtype == bool
        assert found.row["since"].iloc[0] == found.row["since"].iloc[0].normalize()
        if row["charge"].isna().iloc[0]:
            assert "charge" not in found.changed
        moved |= set(found.changed)
    assert {"plan", "charge"} <= moved
    assert frame[:7].isna().any(axis=None)


def test_only_what_may_move_does_in_a_table(table, of_table):
    frame, _ = table
    row = frame[1:2]
    found = flip(of_table, row, features=["plan", "paperless"])
    assert set(found.changed) <= {"plan", "paperless"}
    if found.verified:
        assert found.distance == pytest.approx(np.sqrt(len(found.changed)))
    same = flip(of_table, row, features=["plan"], bounds={"plan": [row["plan"].iloc[0]]})
    assert not same.verified
    assert same.changed == {}
    late = flip(of_table, row, features=["since"], bounds={"since": ("2020-01-01", "2024-01-01")})
    assert late.row["since"].iloc[0] <= np.datetime64("2024-01-01")
    for wrong in ("comment", "id", 1):
        with pytest.raises(ValueError, match=f"features has {wrong!r}, which is no column"):
            flip(of_table, row, features=[wrong])
    assert flip(of_table, frame.iloc[1]).changed == flip(of_table, row).changed
    with pytest.raises(ValueError, match="x has 2 rows"):
        flip(of_table, frame[:2])


def test_a_category_counts_less_where_it_is_told_to(table, of_table):
    frame, _ = table
    cheap = [flip(of_table, frame[k : k + 1], scale={"plan": 1e3}) for k in range(3)]
    dear = [flip(of_table, frame[k : k + 1], scale={"plan": 1e-3}) for k in range(3)]
    assert all(found.verified for found in cheap + dear)
    assert sum("plan" in found.changed for found in cheap) > 1
    for k, found in enumerate(dear):
        others = flip(of_table, frame[k : k + 1], features=["charge", "since", "paperless"])
        assert "plan" not in found.changed or not others.verified


@each(
    "cell",
    ["2024-05-31", "2024-05-31T12:00:00", datetime.date(2024, 5, 31),
     datetime.datetime(2024, 5, 31, 12), np.datetime64("2024-05-31T12:00")],
    ids=repr,
)  # fmt: skip
def test_dates_are_written_as_they_were(cell):
    pd = pytest.importorskip("pandas")
    from loclin.tables.cells import Cells
    from loclin.tables.kinds import values_of

    def days_of(column):
        return values_of("date", Cells(column), "")[0]

    for one in (cell, pd.Timestamp(cell), pd.Timestamp(cell).tz_localize("Asia/Tokyo")):
        days = float(days_of(pd.Series([one]))[0]) + 3
        later = _date_like(one, days)
        known = pd.Timestamp if isinstance(one, np.datetime64) else type(one)
        assert type(later) is known
        assert pd.Timestamp(later) - pd.Timestamp(one) == pd.Timedelta(3, "D")
    period = pd.Period("2024-05", "M")
    assert _date_like(period, float(days_of(pd.Series([period]))[0]) + 40) == pd.Period("2024-06")


def test_cells_of_other_types_move(table):
    pd = pytest.importorskip("pandas")
    from loclin.tables import TableEncoder

    rng = np.random.default_rng(1)
    frame = pd.DataFrame({
        "level": rng.integers(1, 4, 200),
        "size": pd.Categorical(rng.choice(["s", "m", "l"], 200)),
        "agreed": rng.choice(["TRUE", "FALSE"], 200),
        "lasted": pd.to_timedelta(rng.integers(1, 100, 200), unit="s"),
    })  # fmt: skip
    score = frame["level"] + (frame["size"] == "l") + 2 * (frame["agreed"] == "TRUE")
    score += frame["lasted"].dt.total_seconds() / 50
    kinds = {"level": "category"}
    model = make_pipeline(TableEncoder(kinds=kinds), made("ML3Classifier", max_iter=30))
    model.fit(frame, score > score.median())
    for name, types in {
        "level": np.integer, "size": str, "agreed": str, "lasted": pd.Timedelta,
    }.items():  # fmt: skip
        found = [flip(model, frame[k : k + 1], features=[name]) for k in range(12)]
        flipped = [one for one in found if one.verified]
        assert flipped
        for one in flipped:
            assert set(one.changed) == {name}
            assert isinstance(one.row[name].iloc[0], types)
            assert one.row[name].dtype == frame[name].dtype
            assert model.predict(one.row)[0] == one.label_after
