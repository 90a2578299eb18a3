"""Graphs of ONNX in onnxruntime, against the models that they were written from."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC

import loclin
from loclin.codings import (
    LocalCoordinateCoding,
    OrthogonalCoding,
    SoftAssignmentCoding,
)
from loclin.portable import (
    Description,
    Leaves,
    LinearGates,
    NearestAnchors,
    Pieces,
    Pooling,
    Term,
    TreePath,
    describe,
)
from loclin.tables import TableEncoder
from tests.test_portable import MODELS, PLAIN, SOFT, over, problem

onnx = pytest.importorskip("onnx", reason="needs the extra [onnx]")
runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx", reason="needs the extra [onnx]")

from loclin.onnx import to_onnx  # noqa: E402
from loclin.onnx.writing import write  # noqa: E402

each = pytest.mark.parametrize
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TOLERANCE = {"float32": 3e-6, "float64": 1e-13}
# Every word, once.
CORE = ["ml3", "ml3 p=1", "ml3 p=4", "ml3 pieces", "soft full", "soft pieces", "soft constant",
        "inverse", "rebuild", "tangents", "planes l2", "planes by class", "sapl own", "l3m", "ldkl",
        "ldkl root", "lmkl", "csvm", "ussvm", "forest", "ensemble"]  # fmt: skip


def run(graph, X):
    """Return the outputs of a graph by name."""
    onnx.checker.check_model(graph, full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = {"X": X}
    if hasattr(X, "columns"):
        feeds = {}
        for one in session.get_inputs():
            kind = {"float": np.float32, "double": np.float64, "int64": np.int64, "string": object,
                    "bool": bool}  # fmt: skip
            feeds[one.name] = X[[one.name]].to_numpy(kind[one.type[7:-1]])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def hold_alike(graph, model, X, dtype, tolerance=None):
    """Hold a graph with all outputs against its model."""
    tolerance = tolerance or TOLERANCE[dtype]
    told = run(graph, X.astype(dtype))
    X = X.astype(dtype).astype(float)
    decisions = model.decision_function(X)
    unit = np.abs(decisions).max()
    np.testing.assert_allclose(told["scores"], decisions, rtol=0, atol=tolerance * unit)
    ranked = np.sort(decisions, axis=1) if decisions.ndim == 2 else decisions
    margin = ranked[:, -1] - ranked[:, -2] if decisions.ndim == 2 else np.abs(decisions)
    clear = margin > 2 * tolerance * unit
    assert clear.mean() > 0.95
    np.testing.assert_array_equal(told["label"][clear], model.predict(X)[clear])
    if "probabilities" in told:
        chances = model.predict_proba(X)
        np.testing.assert_allclose(told["probabilities"], chances, rtol=0, atol=20 * tolerance)
    if "coefficients" in told:
        local = told["coefficients"], told["intercepts"]
        for said, expected in zip(local, model.local_model(X), strict=True):
            assert said.shape == expected.shape
            atol = 100 * tolerance * max(np.abs(expected).max(), unit)
            np.testing.assert_allclose(said, expected, rtol=0, atol=atol)


@each("dtype", ["float32", "float64"])
@each("n_classes", [2, 3])
@each("name", CORE)
def test_a_graph_says_what_its_model_says(name, n_classes, dtype):
    X, y = problem(n_classes)
    model = clone(MODELS[name]).fit(X, y)
    graph = to_onnx(model, X[:1], dtype=dtype, scores=True, explain=True)
    names = ["label", "probabilities", "scores", "coefficients", "intercepts"]
    assert [one.name for one in graph.graph.output] == names
    hold_alike(graph, model, X, dtype)


@pytest.mark.slow
@each("unit", [1e-6, 1e6])
@each("n_classes", [2, 3])
@each("name", [name for name in MODELS if name != "soft frozen"])  # it knows where X was
def test_so_it_does_in_pipelines_and_any_unit(name, n_classes, unit):
    X, y = problem(n_classes)
    X = (X + np.array([0.0, 1.0, 10.0, 100.0, 1e3, 1e4])) * unit
    for scalers in ([], [StandardScaler()], [MinMaxScaler()]):
        if name == "ussvm" and not scalers:
            continue  # it does not standardize
        model = make_pipeline(*scalers, clone(MODELS[name])).fit(X, y)
        for dtype, tolerance in (("float32", 2e-5), ("float64", 1e-10)):
            graph = to_onnx(model, X, dtype=dtype, scores=True)
            hold_alike(graph, model, X, dtype, tolerance)
    model = make_pipeline(PCA(4), clone(MODELS[name])).fit(X, y)  # loses digits in float32
    hold_alike(to_onnx(model, X, scores=True), model, X, "float64", 1e-10)


@each("dtype", ["float32", "float64"])
def test_a_scaler_in_front_is_part_of_the_graph(dtype):
    """In float32 the mean is subtracted in two parts: a centre far away costs no digits."""
    X, y = problem(3)
    X = X * [1.0, 10.0, 1e-3, 1.0, 2.0, 3.0] + 1e4 + 1 / 3
    X = X.astype(np.float32).astype(float)
    model = make_pipeline(MaxAbsScaler(), StandardScaler(), MODELS["ml3 pieces"]).fit(X, y)
    graph = to_onnx(model, X, dtype=dtype, scores=True, explain=True)
    assert not any(node.op_type == "Scaler" for node in graph.graph.node)
    told = run(graph, X.astype(dtype))
    decisions = model.decision_function(X)
    unit = np.abs(decisions).max()
    tolerance = {"float32": 2e-6, "float64": 1e-10}[dtype]  # means are near 1e7 deviations
    np.testing.assert_allclose(told["scores"], decisions, rtol=0, atol=tolerance * unit)
    local, constants = describe(model).local_model(X)
    if dtype == "float64":
        for said, expected in ((told["coefficients"], local), (told["intercepts"], constants)):
            unit = np.abs(expected).max()
            np.testing.assert_allclose(said / unit, expected / unit, atol=1e-7)


@each("labels, given", [
    (["b", "c", "a"], object), ([3, -7, 12], np.int64), ([0, 1, 2], np.int64),
    ([1.0, 2.0, 4.0], np.int64),
])  # fmt: skip
def test_labels_keep_their_kind(labels, given):
    X, y = problem(3)
    y = np.array(labels)[np.unique(y, return_inverse=True)[1]]
    model = clone(MODELS["l3m"]).fit(X, y)
    told = run(to_onnx(model, X), X)["label"]
    assert told.dtype == given
    np.testing.assert_array_equal(told, model.predict(X))


def test_labels_that_are_true_or_false_become_numbers():
    X, y = problem(2)
    model = clone(MODELS["l3m"]).fit(X, y == "b")
    np.testing.assert_array_equal(run(to_onnx(model, X), X)["label"], model.predict(X).astype(int))


def described(coder, coef, n_features=None, **parts):
    """Return a description of one term."""
    coef = np.asarray(coef, float)
    s, m, d = coef.shape
    term = Term(coder, coef, np.zeros((s, m)), np.zeros(s), **parts)
    classes = np.arange(max(s, 2)) * 10
    return Description((term,), classes, n_features or d, temperature=0.5, smoothing=0.01)


def told_by(description, X, dtype):
    outputs = ["label", "probabilities", "scores", "coefficients", "intercepts"]
    return run(write(description, dtype, outputs=outputs), X.astype(dtype))


def hold_local(told, description, X, tolerance):
    """Hold told local models against those of a description."""
    local = description.local_model(X)
    for said, expected in zip((told["coefficients"], told["intercepts"]), local, strict=True):
        assert said.shape == expected.shape
        unit = np.abs(expected).max()
        np.testing.assert_allclose(said, expected, rtol=0, atol=tolerance * unit)


@each("dtype", ["float32", "float64"])
def test_of_several_the_first_wins(dtype):
    ones = np.ones((1, 2, 2)) * [[[1.0], [-1.0]]]
    middle = np.array([[1.0, 0.0], [2.0, 0.0]])
    anchors = np.array([[2.0, 1.0], [0.0, 1.0], [2.0, -1.0], [0.0, -1.0]])
    tree = np.arange(14.0).reshape(1, 7, 2)
    cases = [
        # no model responds; of two classes the score is 0, not above it
        (described(Pooling(3.0), -np.ones((3, 2, 2))), middle),
        (described(Pooling(np.inf), -np.ones((2, 2, 2))), middle),
        (described(Pooling(2.0), np.ones((4, 2, 2))), middle),
        (described(LinearGates(np.zeros((2, 2)), np.zeros(2), "one_hot"), ones), middle),
        (described(NearestAnchors(anchors[:2], 1, "exp"), ones), middle[:1]),
        # the way down a tree is told by outputs of 0
        (described(TreePath(np.eye(10, 2), np.ones(10) * (np.arange(10) > 2)), tree), -middle * 0),
    ]
    weights = np.arange(8.0).reshape(1, 4, 2)
    for k, by in [(2, "exp"), (3, "exp"), (2, "inverse")]:
        cases.append((described(NearestAnchors(anchors, k, by, 0.5), weights), middle[:1]))
    cases.append((described(NearestAnchors(anchors, 2, "inverse"), weights), anchors))
    for description, X in cases:
        told = told_by(description, X, dtype)
        np.testing.assert_array_equal(told["label"], description.predict(X))
        np.testing.assert_allclose(told["scores"], description.decision_function(X), rtol=1e-6)
        hold_local(told, description, X, 1e-6)


@each("q", [1.0, 1.5, 2.0, 3.0, 4.0, 9.0, 40.0, np.inf])
@each("size", [1e-30, 1e-9, 1.0, 1e15, 1e30])
def test_pooling_neither_overflows_nor_vanishes(size, q):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)).astype(np.float32).astype(float)
    coef = size * rng.normal(size=(3, 4, 3)) * np.array([1.0, 1e-2, 1e-3])[:, None, None]
    description = replace(described(Pooling(q), coef), temperature=size)
    told = told_by(description, X, "float32")
    decisions = description.decision_function(X)
    np.testing.assert_allclose(told["scores"], decisions, rtol=1e-5, atol=1e-9 * size)
    np.testing.assert_array_equal(told["label"], description.predict(X))
    np.testing.assert_allclose(told["probabilities"], description.predict_proba(X), atol=1e-5)
    hold_local(told, description, X, 1e-4)


@each("p", [1, 4 / 3, 1.5, 2, np.inf])
def test_usual_norms_take_no_powers(p):
    X, y = problem(3)
    graph = to_onnx(loclin.ML3Classifier(3, p=p, **PLAIN).fit(X, y), X, explain=True)
    operators = [node.op_type for node in graph.graph.node]
    assert "Pow" not in operators
    roots = {4 / 3: 2, 1.5: 2}.get(p, 0)  # of the scores, and of the codes
    assert operators.count("Log") == roots


@each("dtype", ["float32", "float64"])
def test_rows_on_thresholds_and_knots_go_where_they_should(dtype):
    thresholds = np.array([0.1, 0.2, 0.3, 0.7])  # in float32 two are larger, two smaller
    X = np.concatenate([thresholds, np.nextafter(thresholds, 1), thresholds.astype(np.float32)])
    X = X.astype(dtype).astype(float)[:, None]
    nodes = np.arange(4)
    stumps = Leaves(
        nodes, 0 * nodes, thresholds, np.stack([-1 - 2 * nodes, -2 - 2 * nodes], axis=1)
    )
    said = np.arange(1.0, 9.0) ** 2
    term = Term(stumps, None, np.stack([said, -said, 0 * said]), np.array([0.0, 1.0, 2.0]))
    trees = Description((term,), np.arange(3), 1, temperature=1.0)
    pieces = Pieces(0 * nodes[:3], thresholds[:3], thresholds[1:])
    bent = described(Pooling(2.0), np.arange(24.0).reshape(3, 2, 4) - 11, 1, pieces=pieces)
    for description in (trees, bent):
        told = told_by(description, X, dtype)
        decisions = description.decision_function(X)
        np.testing.assert_allclose(told["scores"], decisions, rtol=1e-5, atol=1e-6)
    hold_local(told, description, X, {"float32": 1e-6, "float64": 1e-12}[dtype])


def test_columns_that_nobody_uses_cost_nothing():
    rng, places = np.random.default_rng(0), np.array([5, 700, 2999])
    description = described(Pooling(3.0), rng.normal(size=(3, 2, 3)), 3000, columns=places)
    X = rng.normal(size=(20, 3000))
    told = told_by(description, X, "float64")
    np.testing.assert_allclose(told["scores"], description.decision_function(X), atol=1e-12)
    hold_local(told, description, X, 1e-12)


@each("n_classes", [2, 3])
@each("name", ["isotonic", "sigmoid", "isotonic of pipelines", "isotonic behind PCA", "fitted"])
def test_calibrated_probabilities_are_those_of_scikit_learn(name, n_classes):
    """Not so with skl2onnx alone, whose issues 200 and 1246 are about these."""
    X, y = problem(n_classes)
    ml3, method = MODELS["ml3"], name.partition(" ")[0]
    model = {
        "isotonic": lambda: CalibratedClassifierCV(ml3, method=method, cv=2),
        "sigmoid": lambda: CalibratedClassifierCV(ml3, method=method, cv=2),
        "isotonic of pipelines": lambda: CalibratedClassifierCV(
            make_pipeline(PCA(4), StandardScaler(), ml3), method=method, cv=2
        ),
        "isotonic behind PCA": lambda: make_pipeline(
            PCA(4), CalibratedClassifierCV(ml3, method=method, cv=2)
        ),
        "fitted": lambda: CalibratedClassifierCV(FrozenEstimator(clone(ml3).fit(X, y))),
    }[name]()
    model.fit(X, y)
    for dtype, tolerance in (("float32", 1e-4), ("float64", 1e-12)):
        told = run(to_onnx(model, X, dtype=dtype), X.astype(dtype))
        rows = X.astype(dtype).astype(float)
        chances = model.predict_proba(rows)
        np.testing.assert_allclose(told["probabilities"], chances, rtol=0, atol=tolerance)
        ranked = np.sort(chances, axis=1)
        clear = ranked[:, -1] - ranked[:, -2] > 2 * tolerance
        np.testing.assert_array_equal(told["label"][clear], model.predict(rows)[clear])


def test_where_all_curves_say_0_all_classes_are_as_likely():
    X, y = problem(3)
    model = CalibratedClassifierCV(MODELS["ml3"], method="isotonic", cv=2).fit(X, y)
    for part in model.calibrated_classifiers_:
        part.calibrators = [IsotonicRegression(out_of_bounds="clip").fit([5, 9], [0, 1])] * 3
    chances = model.predict_proba(X)
    assert np.isclose(chances, 1 / 3).all(axis=1).mean() > 0.1
    told = run(to_onnx(model, X), X)
    np.testing.assert_allclose(told["probabilities"], chances, atol=1e-12)


def test_several_labels_a_row():
    X, y = problem(3)
    labels = np.stack([y == "a", (y == "b") | (X[:, 0] > 0)], axis=1).astype(int)
    model = clone(MODELS["ussvm"]).fit(X, labels)
    told = run(to_onnx(model, X, scores=True), X)
    np.testing.assert_array_equal(told["label"], model.predict(X))
    np.testing.assert_allclose(told["probabilities"], model.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(told["scores"], model.decision_function(X), atol=1e-12)


def test_a_model_without_probabilities_has_scores():
    X, y = problem(2)
    model = clone(MODELS["ml3"]).set_params(calibrate=False).fit(X, y)
    graph = to_onnx(model, X, scores=True)
    assert [one.name for one in graph.graph.output] == ["label", "scores"]
    np.testing.assert_allclose(run(graph, X)["scores"], model.decision_function(X), atol=1e-12)


def test_the_best_model_of_a_search_is_taken():
    X, y = problem(2)
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    pipeline = make_pipeline(TableEncoder(), MODELS["l3m"])
    search = GridSearchCV(pipeline, {"l3mclassifier__alpha": [1e-3, 1e-2]}, cv=2).fit(frame, y)
    told = run(to_onnx(search, frame), frame)
    np.testing.assert_array_equal(told["label"], search.predict(frame))


def test_pipelines_inside_pipelines_are_as_one():
    X, y = problem(3)
    inner = make_pipeline(StandardScaler(), MODELS["ml3"])
    model = make_pipeline(MinMaxScaler(), inner).fit(X, y)
    graph = to_onnx(model, X, scores=True, explain=True)
    assert [one.name for one in graph.graph.output][2:] == ["scores", "coefficients", "intercepts"]
    np.testing.assert_allclose(
        run(graph, X)["scores"], model.decision_function(X), rtol=0, atol=1e-11
    )
    model = CalibratedClassifierCV(model, cv=2).fit(X, y)
    told = run(to_onnx(model, X), X)
    np.testing.assert_allclose(told["probabilities"], model.predict_proba(X), atol=1e-11)


def test_scores_are_never_called_probabilities():
    X, y = problem(3)
    plain = clone(MODELS["l3m"]).set_params(calibrate=False)
    search = GridSearchCV(plain, {"alpha": [1e-3, 1e-2]}, cv=2)
    for last in (search, make_pipeline(StandardScaler(), plain)):
        model = make_pipeline(StandardScaler(), last).fit(X, y)
        graph = to_onnx(model, X)
        assert [one.name for one in graph.graph.output] == ["label", "scores"]
        expected = model.decision_function(X)
        np.testing.assert_allclose(run(graph, X)["scores"], expected, atol=1e-11)


L3M = MODELS["l3m"]
PLAIN_L3M = clone(L3M).set_params(calibrate=False)


@each("model, match", [
    (OneVsRestClassifier(L3M), "OneVsRestClassifier over L3MClassifier.*compares scores"),
    (OneVsOneClassifier(L3M), "OneVsOneClassifier over L3MClassifier.*compares scores"),
    (GridSearchCV(OneVsRestClassifier(make_pipeline(StandardScaler(), L3M)), {}, cv=2),
     "OneVsRestClassifier over L3MClassifier.*compares scores"),
    (VotingClassifier([("a", OneVsRestClassifier(L3M))], voting="soft"), "compares scores"),
    (make_pipeline(PCA(2), OneVsRestClassifier(BaggingClassifier(L3M, 2))), "compares scores"),
    (BaggingClassifier(PLAIN_L3M, 2), "BaggingClassifier over L3MClassifier.*calibrate=True"),
    (StackingClassifier([("a", PLAIN_L3M)], cv=2), "StackingClassifier over.*calibrate=True"),
    (StackingClassifier([("a", L3M)], cv=2, stack_method="decision_function"),
     'only with stack_method="predict_proba"'),
    (StackingClassifier([("a", L3M)], cv=2, stack_method="predict"),
     'only with stack_method="predict_proba"'),
    (VotingClassifier([("a", L3M)], voting="soft"), "cannot write this model: flatten_transform"),
    (make_pipeline(SplineTransformer(), L3M), "cannot write this model: Unable to find a shape"),
    (make_pipeline(PowerTransformer(), L3M), "some steps need dtype=np.float32"),
    (make_pipeline(PolynomialFeatures(), L3M), "some steps need dtype=np.float32"),
])  # fmt: skip
def test_wrappers_that_would_say_something_else_are_refused(model, match):
    X, y = problem(3)
    with pytest.raises(ValueError, match=match):
        to_onnx(clone(model).fit(X, y), X)


@each("model", [
    OneVsRestClassifier(CalibratedClassifierCV(L3M, cv=2)), BaggingClassifier(L3M, 2),
    VotingClassifier([("a", L3M)], voting="soft", flatten_transform=False),
    StackingClassifier([("a", L3M), ("b", LinearSVC())], cv=2),
    CalibratedClassifierCV(PLAIN_L3M, cv=2),
])  # fmt: skip
def test_wrappers_that_ask_for_probabilities_are_written(model):
    X, y = problem(3)
    model = clone(model).fit(X, y)
    told = run(to_onnx(model, X), X)
    np.testing.assert_allclose(told["probabilities"], model.predict_proba(X), atol=1e-11)
    np.testing.assert_array_equal(told["label"], model.predict(X))


def test_a_tuned_threshold_is_refused():
    X, y = problem(2)
    model = TunedThresholdClassifierCV(clone(L3M), scoring="balanced_accuracy", cv=2).fit(X, y)
    with pytest.raises(ValueError, match="leaves out its threshold"):
        to_onnx(model, X)


def test_other_steps_may_choose_features():
    X, y = problem(3)
    model = make_pipeline(SelectFromModel(LogisticRegression()), clone(L3M)).fit(X, y)
    hold_alike(to_onnx(model, X, scores=True), model, X, "float64", 1e-11)


def test_one_against_the_rest_is_written_where_it_compares_nothing():
    X, y = problem(3)
    for labels in (y == "a", np.stack([y == "a", X[:, 0] > 0], axis=1).astype(int)):
        model = OneVsRestClassifier(clone(L3M)).fit(X, labels)
        told = run(to_onnx(model, X), X)
        np.testing.assert_allclose(told["probabilities"], model.predict_proba(X), atol=1e-11)
        np.testing.assert_array_equal(told["label"], model.predict(X))


def test_skl2onnx_itself_knows_the_models():
    X, y = problem(2)
    model = make_pipeline(StandardScaler(), MODELS["ml3"]).fit(X, y)
    chances = model.predict_proba(X)
    single = X.astype(np.float32)
    told = run(skl2onnx.to_onnx(model, single, target_opset=18), single)
    said = [[row[name] for name in model.classes_] for row in told["output_probability"]]
    np.testing.assert_allclose(said, chances, atol=1e-5)
    options = {id(model[-1]): {"zipmap": False, "raw_scores": True}}
    scores = run(skl2onnx.to_onnx(model, X, target_opset=18, options=options), X)
    decisions = model.decision_function(X)
    expected = np.stack([-decisions, decisions], axis=1)
    np.testing.assert_allclose(scores["probabilities"], expected, atol=1e-12)


@each("coding", [
    SOFT, MODELS["inverse"].coding, MODELS["rebuild"].coding, MODELS["tangents"].coding,
    OrthogonalCoding(3), OrthogonalCoding("auto", per_class=True),
])  # fmt: skip
def test_codings_are_steps_of_pipelines(coding):
    X, y = problem(3)
    model = make_pipeline(StandardScaler(), clone(coding), LogisticRegression()).fit(X, y)
    told = run(to_onnx(model, X), X)
    np.testing.assert_allclose(told["probabilities"], model.predict_proba(X), atol=1e-12)
    (codes,) = run(to_onnx(model[:-1], X), X).values()
    np.testing.assert_allclose(codes, model[:-1].transform(X).toarray(), atol=1e-12)


class Own(SoftAssignmentCoding):
    """A coding that nobody knows."""

    def transform(self, X):
        return 2 * super().transform(X)


class ByClass(OrthogonalCoding):
    """One with codes for each class."""

    def transform_by_class(self, X):
        return super().transform_by_class(X) / 2


@each("dtype", ["float32", "float64"])
@each("coding", [make_pipeline(StandardScaler(), SOFT), PCA(3)])
def test_a_coding_of_others_is_written_by_skl2onnx(coding, dtype):
    X, y = problem(3)
    model = over(coding).fit(X, y)
    hold_alike(to_onnx(model, X, dtype=dtype, scores=True, explain=True), model, X, dtype)


@each("model, match", [
    (loclin.SVMKNNClassifier(), "SVMKNNClassifier has no words.*Serve it from Python"),
    (loclin.KernelLMKLClassifier(max_iter=2), "KernelLMKLClassifier has no words"),
    (make_pipeline(PCA(2), loclin.SVMKNNClassifier()), "SVMKNNClassifier has no words"),
    (over(LocalCoordinateCoding(4, max_iter=2)), "are no formula"),
    (over(Own(4, 2)), "Own cannot be an ONNX graph yet: register a converter"),
    (over(ByClass(4, per_class=True)), "ByClass cannot be an ONNX graph: it has codes for each"),
    (make_pipeline(LocalCoordinateCoding(4, max_iter=2), LinearSVC()), "are no formula"),
    (CalibratedClassifierCV(LinearSVC(), cv=2), "LinearSVC has no words"),
])  # fmt: skip
def test_what_cannot_be_a_graph_is_refused(model, match):
    X, y = problem(2)
    with pytest.raises(ValueError, match=match):
        to_onnx(model.fit(X, y), X)


def test_wrong_arguments_are_refused():
    X, y = problem(2)
    model = clone(MODELS["l3m"]).fit(X, y)
    for wrong, match in [
        ({"dtype": "float16"}, "dtype is 'float16'"),
        ({"opset": 17}, "opset=17"),
        ({"scores": 1}, "scores"),
        ({"X": X[0]}, "pass a few rows"),
        ({"X": X[:, :4]}, "X has 4 features, but the model 6"),
        ({"X": X.astype(str)}, "X has texts"),
        ({"X": sparse.csr_array(X)}, "X is sparse"),
    ]:
        with pytest.raises((ValueError, TypeError), match=match):
            to_onnx(model, **{"X": X} | wrong)
    for unfitted in (
        loclin.ML3Classifier(),
        make_pipeline(StandardScaler(), loclin.ML3Classifier()),
    ):
        with pytest.raises(NotFittedError):
            to_onnx(unfitted, X)
    halves = clone(MODELS["l3m"]).fit(X, np.where(y == "b", 0.5, 1.5).astype(str).astype(object))
    halves.classes_ = np.array([0.5, 1.5])
    with pytest.raises(ValueError, match=r"not float64 such as 1\.5: fit with such labels"):
        to_onnx(halves, X)
    halves.classes_ = np.array([1, 2**63], np.uint64)
    with pytest.raises(ValueError, match="whole numbers of int64, not uint64 such as 9223372036"):
        to_onnx(halves, X)
    halves.n_features_in_ = 9
    with pytest.raises(ValueError, match=r"cannot be an ONNX graph.*[^.]\. Serve it from Python"):
        to_onnx(halves, np.ones((1, 9)))
    calibrated = CalibratedClassifierCV(clone(MODELS["l3m"]), cv=2).fit(X, y)
    with pytest.raises(ValueError, match=r"CalibratedClassifierCV has neither.*leave out scores"):
        to_onnx(make_pipeline(StandardScaler().fit(X), calibrated), X, scores=True)
    huge = described(Pooling(2.0), 1e60 * np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="beyond those of float32"):
        write(huge, "float32", outputs=["scores"])


def test_files_are_of_the_operators_that_are_asked_for():
    X, y = problem(2)
    model = clone(MODELS["ensemble"]).fit(X, y)
    for opset in (18, 20):
        graph = to_onnx(model, X, opset=opset)
        assert graph.ir_version <= 9
        assert {one.domain: one.version for one in graph.opset_import}[""] == opset
        np.testing.assert_array_equal(run(graph, X)["label"], model.predict(X))
