"""Graphs of ONNX over tables, in onnxruntime, against the models that they were written from."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from loclin.tables import TableEncoder
from tests.test_onnx import run
from tests.test_portable import MODELS, problem

to_onnx = pytest.importorskip("loclin.onnx", reason="needs the extra [onnx]").to_onnx

each = pytest.mark.parametrize
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table():
    """A table of numbers with gaps, whole numbers and categories, and labels."""
    X, y = problem(3)
    frame = pd.DataFrame(X[:, :3] + [1e5, 0.0, 0.0], columns=["age", "income", "debt"])
    frame.loc[::7, "debt"] = np.nan
    frame["children"] = np.random.default_rng(0).integers(0, 4, len(X))
    frame["town"] = np.random.default_rng(1).choice(["Ulm", "Bonn", "Köln"], len(X))
    return frame, y


def test_whole_pipelines_over_a_table():
    frame, y = table()
    numbers = ["age", "income", "debt"]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(), ["town", "children"]),
    )
    model = make_pipeline(columns, MODELS["ml3"]).fit(frame, y)
    graph = to_onnx(model, frame, dtype="float32", scores=True)
    assert [one.name for one in graph.graph.input] == list(frame)
    told = run(graph, frame)
    frame[numbers] = frame[numbers].astype(np.float32).astype(float)
    decisions = model.decision_function(frame)
    np.testing.assert_allclose(told["scores"], decisions, atol=3e-6 * np.abs(decisions).max())
    np.testing.assert_array_equal(told["label"], model.predict(frame))


@each("dtype", ["float32", "float64"])
def test_a_table_encoder_of_numbers_flags_and_categories(dtype):
    frame, y = table()
    frame["owner"] = frame["income"] > 0
    frame.loc[::9, "town"] = None
    frame["row_id"] = np.arange(len(frame)) + 10_000  # which the encoder leaves out
    model = make_pipeline(TableEncoder(max_categories=3), StandardScaler(), MODELS["ml3"])
    model.fit(frame, y)
    graph = to_onnx(model, frame, dtype=dtype, scores=True)
    used = [name for name in frame if name != "row_id"]
    assert [one.name for one in graph.graph.input] == used
    numbers = ["age", "income", "debt"]
    frame[numbers] = frame[numbers].astype(dtype).astype(float)
    frame.loc[2:4, "town"] = ["Rom", "?", "Ulm"]
    frame.loc[5:6, "children"] = [8, 9]
    decisions = model.decision_function(frame)
    told = run(graph, frame.fillna({"town": ""}))
    tolerance = {"float32": 3e-6, "float64": 1e-11}[dtype] * np.abs(decisions).max()
    np.testing.assert_allclose(told["scores"], decisions, rtol=0, atol=tolerance)


@each("column, kind, match", [
    (["2024-01-05", "2023-11-30"], "date", "has dates, which no graph reads"),
    (["a long road", "a short lane"], "text", "has texts, which no graph reads"),
    (pd.to_datetime(["2024-01-05", "2023-11-30"]), "date", "has dates, which no graph reads"),
    (["1.5", "2.5"], "number", "is numbers in other words"),
    (["yes", "no"], "flag", "is true or false in other words"),
    ([1.0, 2.0], "category", "give them as texts, or as whole numbers"),
])  # fmt: skip
def test_other_columns_of_a_table_are_refused_by_name(column, kind, match):
    frame, y = table()
    frame = frame[["age"]].assign(other=np.resize(column, len(frame)))
    model = make_pipeline(TableEncoder(kinds={"other": kind}), MODELS["l3m"]).fit(frame, y)
    with pytest.raises(ValueError, match=f"The column 'other'.*{match}"):
        to_onnx(model, frame)


@each("dtype", ["float32", "float64"])
def test_a_table_of_numbers_has_one_input_a_column(dtype):
    frame, y = table()
    frame = frame.drop(columns=["town", "debt"])
    model = make_pipeline(StandardScaler(), MODELS["soft full"]).fit(frame, y)
    graph = to_onnx(model, frame, dtype=dtype, scores=True)
    assert [one.name for one in graph.graph.input] == list(frame)
    scores = run(graph, frame)["scores"]
    expected = model.decision_function(frame.astype(dtype).astype(float))
    np.testing.assert_allclose(scores, expected, atol={"float32": 1e-5, "float64": 1e-12}[dtype])


@each("first", [StandardScaler(), MinMaxScaler(clip=True), PCA(2)])
def test_columns_are_those_of_the_training_rows(first):
    frame, y = table()
    frame = frame[["age", "income", "children"]]
    model = make_pipeline(first, MODELS["l3m"]).fit(frame, y)
    with pytest.raises(ValueError, match="give \\['age', 'income', 'children'\\]"):
        to_onnx(model, frame[["income", "age", "children"]])
    with pytest.raises(ValueError, match="X has 2 features, but the model 3"):
        to_onnx(model, frame[["age", "income"]])
    told = run(to_onnx(model, frame), frame)
    np.testing.assert_allclose(told["probabilities"], model.predict_proba(frame), atol=1e-11)


@each("steps", [
    [], [TableEncoder()], [MinMaxScaler(clip=True)], [TableEncoder(), PCA(2)],
    [make_column_transformer((StandardScaler(), ["time", "count"]))],
], ids=lambda steps: "+".join(type(one).__name__ for one in steps))  # fmt: skip
def test_whole_numbers_keep_their_digits(steps):
    rng = np.random.default_rng(0)
    time, count = 1_700_000_000 + rng.integers(0, 2000, 300), rng.integers(0, 9, 300)
    frame = pd.DataFrame({"time": time, "count": count})
    y = (time - 1_700_001_000) * (count - 4) > 0
    for last in (MODELS["ml3"], CalibratedClassifierCV(MODELS["ml3"], cv=2)):
        model = make_pipeline(*map(clone, steps), clone(last)).fit(frame, y)
        for dtype in ("float64", None):
            told = run(to_onnx(model, frame, dtype=dtype), frame)["probabilities"]
            assert told.dtype == np.float64
            np.testing.assert_allclose(told, model.predict_proba(frame), atol=1e-7)
        with pytest.raises(ValueError, match="'time' has whole numbers beyond 2\\*\\*24"):
            to_onnx(model, frame, dtype="float32")


def test_whole_numbers_that_are_categories_may_be_large():
    frame, y = table()
    frame = frame[["age"]].assign(shop=10**9 + frame["children"])
    first = make_column_transformer((OneHotEncoder(), ["shop"]), (StandardScaler(), ["age"]))
    for one in (TableEncoder(kinds={"shop": "category"}), first):
        model = make_pipeline(one, MODELS["l3m"]).fit(frame, y)
        told = run(to_onnx(model, frame, dtype="float32"), frame)
        np.testing.assert_allclose(told["probabilities"], model.predict_proba(frame), atol=1e-4)


def test_categories_with_zeros_in_front_are_no_whole_numbers():
    frame, y = table()
    frame = frame[["age"]].assign(shop=np.resize(["007", "7", "07"], len(frame)))
    model = make_pipeline(TableEncoder(kinds={"shop": "category"}), MODELS["l3m"]).fit(frame, y)
    told = run(to_onnx(model, frame), frame)
    np.testing.assert_allclose(told["probabilities"], model.predict_proba(frame), atol=1e-11)
    with pytest.raises(
        ValueError, match=r"'shop' has the category '007'.*give the column as texts"
    ):
        to_onnx(model, frame.assign(shop=7))


@each("name", ["constant_1", "output", "add_1", "input_1", "income (EUR)", "1st", "x.y"])
def test_columns_may_have_any_name(name):
    frame, y = table()
    frame = frame[["age", "income", "children"]].rename(columns={"income": name})
    frame["income__EUR_"] = frame[name] + 1
    for first in (TableEncoder(), MinMaxScaler(clip=True)):
        model = make_pipeline(first, MODELS["l3m"]).fit(frame, y)
        graph = to_onnx(model, frame)
        assert [one.name for one in graph.graph.input] == list(frame)
        told = run(graph, frame)["probabilities"]
        np.testing.assert_allclose(told, model.predict_proba(frame), atol=1e-11)


@each("names, match", [
    (["", "b"], "a column without a name"), (["b", "b"], "two columns 'b'"),
    (["label", "b"], "'label' has the name of an output"),
])  # fmt: skip
def test_names_that_no_graph_has_are_refused(names, match):
    X, y = problem(2)
    model = clone(MODELS["l3m"]).fit(X[:, :2], y)
    with pytest.raises(ValueError, match=match):
        to_onnx(model, pd.DataFrame(X[:, :2], columns=names))


def test_tables_that_an_encoder_does_not_know_are_refused():
    frame, y = table()
    model = make_pipeline(TableEncoder(), MODELS["l3m"]).fit(frame, y)
    with pytest.raises(ValueError, match="X lacks the columns \\['debt', 'town'\\]"):
        to_onnx(model, frame.drop(columns=["debt", "town"]))
    with pytest.raises(ValueError, match="X is an array, but the model takes a table"):
        to_onnx(model, frame.to_numpy())


@each("dtype", ["float32", "float64"])
@each("name", ["alone", "of one column", "of encoders", "behind an encoder", "of columns"])
def test_calibrated_classifiers_take_tables(name, dtype):
    frame, y = table()
    frame = frame[["town", "children", "age", "income"]]
    last = clone(MODELS["l3m"])
    columns = make_column_transformer(
        (OneHotEncoder(), ["town", "children"]), (StandardScaler(), ["age", "income"])
    )
    model, used = {
        "alone": (CalibratedClassifierCV(last, cv=2), ["children", "age"]),
        "of one column": (CalibratedClassifierCV(last, cv=2), ["income"]),
        "of encoders": (
            CalibratedClassifierCV(make_pipeline(TableEncoder(), last), cv=2),
            list(frame),
        ),
        "behind an encoder": (
            make_pipeline(TableEncoder(), CalibratedClassifierCV(last, cv=2)),
            list(frame),
        ),
        "of columns": (CalibratedClassifierCV(make_pipeline(columns, last), cv=2), list(frame)),
    }[name]
    model.fit(frame[used], y)
    graph = to_onnx(model, frame[used], dtype=dtype)
    assert [one.name for one in graph.graph.input] == used
    told = run(graph, frame)["probabilities"]
    assert told.dtype == dtype
    numbers = [name for name in used if frame[name].dtype.kind == "f"]
    rounded = (
        frame[used].astype(dict.fromkeys(numbers, dtype)).astype(dict.fromkeys(numbers, float))
    )
    chances = model.predict_proba(rounded)
    np.testing.assert_allclose(told, chances, atol={"float32": 1e-4, "float64": 1e-11}[dtype])


def test_an_encoder_inside_a_column_transformer_is_refused():
    frame, y = table()
    columns = make_column_transformer((TableEncoder(), ["town"]), (StandardScaler(), ["age"]))
    model = make_pipeline(columns, MODELS["l3m"]).fit(frame, y)
    with pytest.raises(ValueError, match="make it the first step of the pipeline"):
        to_onnx(model, frame)
