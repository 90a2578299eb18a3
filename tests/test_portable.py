"""Descriptions of fitted models against the models, there and back through JSON, and refusals."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import loclin
import loclin.io
from loclin.codings import (
    InverseDistanceCoding,
    LLCCoding,
    LocalCoordinateCoding,
    OrthogonalCoding,
    SoftAssignmentCoding,
    TangentCoding,
)
from loclin.engine.prediction import codes_by
from loclin.portable import CodesByScorer, Description, Pooling, Term, describe

each = pytest.mark.parametrize
SHORT = {"alpha": "scale", "max_iter": 3, "random_state": 0}
PLAIN = SHORT | {"metric": None}
SOFT = SoftAssignmentCoding(8, 3, random_state=0)
ROWS = np.random.default_rng(0).normal(size=(40, 6))


def over(coding, **options):
    return loclin.LLSVMClassifier(coding, **PLAIN | {"bias": "both"} | options)


MODELS = {
    "ml3": loclin.ML3Classifier(3, **PLAIN),
    "ml3 p=1": loclin.ML3Classifier(3, p=1, **PLAIN),
    "ml3 p=inf": loclin.ML3Classifier(3, p=np.inf, **PLAIN),
    "ml3 p=4": loclin.ML3Classifier(3, p=4, **PLAIN),
    "ml3 metric": loclin.ML3Classifier(3, metric="diagonal", **SHORT),
    "ml3 pieces": loclin.ML3Classifier(3, pieces=4, **PLAIN),
    "ml3 pieces as given": loclin.ML3Classifier(3, pieces=4, standardize=False, **PLAIN),
    "soft pieces": over(SOFT, pieces=3, metric="diagonal"),
    "l3m pieces": loclin.L3MClassifier(3, pieces=4, n_restarts=1, alpha="scale", max_iter=8,
                                       random_state=0),
    "soft": over(SOFT),
    "soft frozen": over(FrozenEstimator(clone(SOFT).fit(ROWS))),
    "soft global": over(SOFT, bias="global"),
    "soft diagonal": over(SOFT, metric="diagonal"),
    "soft full": over(SOFT, metric="full"),
    "soft constant": over(SOFT, weights="constant"),
    "soft competing": over(SOFT, multi_class="crammer_singer", bias="local"),
    "inverse": over(InverseDistanceCoding(8, 3, random_state=0)),
    "rebuild": over(LLCCoding(8, 3, random_state=0)),
    "tangents": over(TangentCoding(SOFT, 2)),
    "planes": over(OrthogonalCoding(3)),
    "planes l2": over(OrthogonalCoding(3, whiten=False, norm="l2")),
    "planes by class": over(OrthogonalCoding(3, per_class=True)),
    "planes dual": over(OrthogonalCoding(3), solver="dual_cd", bias="local"),
    "sapl": loclin.SAPLClassifier(8, 3, **PLAIN),
    "sapl full": loclin.SAPLClassifier(8, 3, metric="full", **SHORT),
    "sapl own": loclin.SAPLClassifier(5, 2, share_anchors=False, metric="diagonal", **SHORT),
    "sapl constant": loclin.SAPLClassifier(8, 3, weights="constant", **PLAIN),
    "l3m": loclin.L3MClassifier(3, n_restarts=1, alpha="scale", max_iter=8, random_state=0),
    "l3m online": loclin.L3MClassifier(3, solver="online", **SHORT),
    "ldkl": loclin.LDKLClassifier(2, **SHORT),
    "forest": loclin.ForestClassifier(5, random_state=0),
    "ldkl root": loclin.LDKLClassifier(0, **SHORT),
    "lmkl": loclin.LMKLClassifier(4, **SHORT),
    "csvm": loclin.CSVMClassifier(4, alpha="scale", random_state=0),
    "ussvm": loclin.USSVMClassifier(6, beta="scale", max_iter=3, random_state=0),
    "ensemble": loclin.LocallyLinearEnsemble(
        [loclin.ML3Classifier(2, **PLAIN), loclin.SAPLClassifier(6, 3, pieces=3, **PLAIN),
         over(OrthogonalCoding(3), solver="dual_cd", bias="local")],
        n_folds=2, random_state=0,
    ),
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def problem(n_classes, dtype=float):
    X, y = make_classification(
        240, 6, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=1
    )
    return X.astype(dtype), np.array(["b", "c", "a"])[y]


def hold_alike(description, model, X, tolerance):
    """Hold a description against its model, number by number."""
    decisions, found = model.decision_function(X), description.decision_function(X)
    unit = np.abs(decisions).max()
    np.testing.assert_allclose(found, decisions, rtol=0, atol=tolerance * unit)
    np.testing.assert_allclose(
        description.predict_proba(X), model.predict_proba(X), rtol=0, atol=10 * tolerance
    )
    clear = np.abs(decisions).min() > tolerance if decisions.ndim == 1 else True
    if clear:
        np.testing.assert_array_equal(description.predict(X), model.predict(X))
    for said, expected in zip(description.local_model(X), model.local_model(X), strict=True):
        atol = 10 * tolerance * max(np.abs(expected).max(), unit)
        np.testing.assert_allclose(said, expected, rtol=0, atol=atol)


@each("n_classes", [2, 3])
@each("name", MODELS)
def test_a_description_says_what_its_model_says(name, n_classes):
    X, y = problem(n_classes)
    model = clone(MODELS[name]).fit(X, y)
    described = describe(model)
    hold_alike(described, model, X, 1e-12)
    again = Description.from_dict(json.loads(json.dumps(described.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(again.decision_function(X), described.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), described.predict(X))
    for said, few in zip(described.local_model(X[:0]), described.local_model(X[:1]), strict=True):
        assert said.shape == (0, *few.shape[1:])
    assert described.predict(X[:0]).shape == (0,)


@pytest.mark.slow  # loops of single precision
@each("name", MODELS)
def test_so_it_does_in_single_precision(name):
    X, y = problem(3, np.float32)
    model = clone(MODELS[name]).fit(X, y)
    found, decisions = describe(model).decision_function(X), model.decision_function(X)
    differs = np.abs(found - decisions).max(axis=1) > 1e-4 * np.abs(decisions).max()
    assert differs.mean() < 0.01  # rows between two neighbours


@each("scaler", [
    StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False),
    MinMaxScaler((-1, 2)), MaxAbsScaler(), RobustScaler(), RobustScaler(with_centering=False),
])  # fmt: skip
def test_scalers_in_front_are_part_of_it(scaler):
    X, y = problem(3)
    X = 1e2 + X * [1.0, 10.0, 1e-3, 1.0, 2.0, 3.0]
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    model = make_pipeline(scaler, StandardScaler(), MODELS["ml3"]).fit(frame, y)
    described = describe(model)
    assert described.feature_names == tuple("uvwxyz")
    decisions = model.decision_function(frame)
    np.testing.assert_allclose(described.decision_function(frame), decisions, rtol=0, atol=1e-9)
    coef, intercept = described.local_model(frame)
    scores = np.einsum("ncd,nd->nc", coef, X) + intercept
    np.testing.assert_allclose(scores, decisions, rtol=0, atol=1e-7)  # of numbers near 1e5


def test_the_mean_comes_first_where_it_is_large():
    X, y = problem(3)
    X = (1e4 + X).astype(np.float32)
    model = make_pipeline(StandardScaler(), MODELS["ml3"]).fit(X, y)
    described = describe(model)
    np.testing.assert_allclose(
        described.decision_function(X), model.decision_function(X), rtol=0, atol=1e-2
    )
    assert np.mean(described.predict(X) == model.predict(X)) > 0.99


def test_names_that_look_like_numbers_stay_names():
    X, y = problem(3)
    frame = pd.DataFrame(X, columns=["nan", "inf", "-inf", "a", "b", "c"])
    described = describe(clone(MODELS["soft"]).fit(frame, np.where(y == "a", "nan", y)))
    again = Description.from_dict(json.loads(json.dumps(described.to_dict())))
    assert again.feature_names == tuple(frame.columns)
    assert set(again.predict(X)) == {"nan", "b", "c"}


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_a_reader_in_another_language_says_the_same(tmp_path):
    reader = Path(__file__).parents[1] / "examples" / "reader.js"
    names = ["ml3 p=1", "ml3 metric", "soft pieces", "soft full", "inverse", "rebuild", "tangents",
             "ensemble", "planes by class", "sapl own", "l3m", "ldkl", "lmkl", "csvm",
             "ussvm"]  # fmt: skip
    models, cases = [], []
    for name, n_classes in product(names, [2, 3]):
        X, y = problem(n_classes)
        models.append(make_pipeline(StandardScaler(), clone(MODELS[name])).fit(X, y))
        cases.append({"description": describe(models[-1]).to_dict(), "rows": X.tolist()})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    code = f"""
    const reader = require({json.dumps(str(reader))}), fs = require("fs");
    const cases = JSON.parse(fs.readFileSync({json.dumps(str(tmp_path / "cases.json"))}));
    const what = ["decisions", "predict", "probabilities", "localModel"];
    console.log(JSON.stringify(cases.map((one) => what.map(
      (name) => reader[name](one.description, one.rows)))));
    """
    told = subprocess.run(["node", "-e", code], capture_output=True, check=True, text=True).stdout
    for model, case, (decisions, labels, chances, local) in zip(
        models, cases, json.loads(told), strict=True
    ):
        X = np.array(case["rows"])
        expected = model.decision_function(X)
        found = np.array(decisions).reshape(expected.shape)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
        np.testing.assert_array_equal(labels, model.predict(X))
        np.testing.assert_allclose(chances, model.predict_proba(X), rtol=0, atol=1e-11)
        coef, intercept = describe(model).local_model(X)
        for name, right in [("coef", coef), ("intercept", intercept)]:
            said = np.reshape([[one[name] for one in row] for row in local], right.shape)
            np.testing.assert_allclose(said, right, rtol=0, atol=1e-11 * np.abs(right).max())


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_that_reader_refuses_what_is_not_whole():
    reader = Path(__file__).parents[1] / "examples" / "reader.js"
    X, y = problem(2)
    whole = describe(clone(MODELS["soft pieces"]).fit(X, y)).to_dict()
    row = X[0].tolist()
    cases = [[whole, [row]]]
    cases += [
        [{key: value for key, value in whole.items() if key != lost}, [row]]
        for lost in ("temperature", "smoothing", "classes")
    ]
    for change in ({"scale": None}, {"coder": {"word": "toString"}}, {"factor": None}):
        term = whole["terms"][0] | change
        if None in change.values():
            term = {key: value for key, value in term.items() if key not in change}
        cases.append([whole | {"terms": [term]}, [row]])
    cases += [[whole, rows] for rows in ([row[1:]], [[*row, 1.0]], row, [[None, *row[1:]]])]
    code = f"""
    const reader = require({json.dumps(str(reader))}), cases = {json.dumps(cases)};
    console.log(JSON.stringify(cases.map(([one, rows]) => {{
      try {{ return reader.predict(one, rows).length; }} catch (error) {{ return error.message; }}
    }})));
    """
    run = subprocess.run(["node"], input=code, capture_output=True, check=True, text=True)
    first, *others = json.loads(run.stdout)
    assert first == 1
    told = "lacks|unknown word toString|give a list of rows, each of"
    assert all(re.search(told, str(one)) for one in others), others


def test_several_labels_a_row():
    X, y = problem(3)
    labels = np.stack([y == "a", (y == "b") | (X[:, 0] > 0)], axis=1).astype(int)
    model = clone(MODELS["ussvm"]).fit(X, labels)
    described = describe(model)
    np.testing.assert_allclose(described.predict_proba(X), model.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(described.predict(X), model.predict(X))


def test_models_that_are_shared_are_held_once():
    X, y = problem(3)
    assert describe(clone(MODELS["ussvm"]).fit(X, y)).terms[0].coef.shape == (1, 6, 6)
    assert describe(clone(MODELS["sapl constant"]).fit(X, y)).terms[0].coef is None


@each("model", [
    loclin.SVMKNNClassifier(), loclin.KernelLMKLClassifier(max_iter=2),
    over(LocalCoordinateCoding(4, max_iter=2)), over(make_pipeline(SOFT)),
    over(TangentCoding(LocalCoordinateCoding(4, max_iter=2), 1)),
    make_pipeline(MinMaxScaler(clip=True), loclin.ML3Classifier(2, **PLAIN)),
])  # fmt: skip
def test_what_has_no_words_is_refused_by_name(model):
    X, y = problem(2)
    names = "SVMKNN|KernelLMKL|LocalCoordinateCoding|Pipeline|MinMaxScaler"
    with pytest.raises(ValueError, match=f"({names})\\w* has no words"):
        describe(model.fit(X, y))


def test_what_is_not_fitted_is_not_described():
    with pytest.raises(NotFittedError):
        describe(loclin.ML3Classifier())
    with pytest.raises(NotFittedError):
        describe(make_pipeline(StandardScaler(), loclin.ML3Classifier()))


def test_bad_rows_and_bad_dictionaries_are_refused():
    X, y = problem(2)
    described = describe(clone(MODELS["ml3"]).fit(X, y))
    with pytest.raises(ValueError, match="give rows of 6 features"):
        described.predict(X[:, :5])
    with pytest.raises(ValueError, match="give rows of 6 features"):
        described.predict(X[0])
    data = described.to_dict()
    for wrong, match in [
        (data | {"format": 2}, "format=2 is not known"),
        ([data], "A description is a dictionary, not list"),
        ({k: v for k, v in data.items() if k != "terms"}, "terms is missing"),
        (data | {"colour": 1}, "unknown parts: 'colour'"),
        (data | {"multilabel": "false"}, "multilabel is 'false'"),
        (data | {"n_features": "6"}, "n_features is '6'"),
        (data | {"smoothing": None}, "smoothing is None"),
        (data | {"smoothing": 10**400}, "smoothing is 1000"),
        (data | {"temperature": 1e-320}, "should be positive"),
        (data | {"temperature": "inf"}, "should be positive"),
        (data | {"feature_names": "abcdef"}, "list of texts"),
        (data | {"feature_names": 3}, "list of texts"),
        (data | {"classes": [0, 0]}, "distinct"),
        (data | {"classes": [0, "b"]}, "numbers, booleans or strings"),
        (data | {"classes": [{}, None]}, "numbers, booleans or strings"),
        (data | {"terms": [{"word": "Magic"}]}, "there is no word 'Magic'"),
        (data | {"terms": [{"word": []}]}, r"there is no word \[\]"),
        (data | {"terms": [{"word": "Pooling"}]}, r"terms\[0\], Pooling: q is missing"),
        (data | {"terms": nested(3000)}, "nested too deeply"),
    ]:
        with pytest.raises(ValueError, match=match):
            Description.from_dict(wrong)
    plain = clone(MODELS["ml3"]).set_params(calibrate=False).fit(X, y)
    with pytest.raises(ValueError, match="calibrate=False"):
        describe(plain).predict_proba(X)


def arrays_in(data, path=()):
    """Yield where the arrays of a description's dictionary are."""
    if isinstance(data, dict) and "values" in data:
        yield path
    elif isinstance(data, dict | list):
        for key, part in data.items() if isinstance(data, dict) else enumerate(data):
            yield from arrays_in(part, (*path, key))


def changed_at(data, path, change):
    """Return a copy in which one part is another."""
    if not path:
        return change(data)
    first, *rest = path
    copied = dict(data) if isinstance(data, dict) else list(data)
    copied[first] = changed_at(data[first], rest, change)
    return copied


def shorter(array):
    found = np.reshape(array["values"], array["shape"])[:-1]
    return array | {"shape": list(found.shape), "values": found.ravel().tolist()}


@each("name", MODELS)
def test_no_array_of_a_description_may_be_another(name):
    X, y = problem(3)
    data = describe(clone(MODELS[name]).fit(X, y)).to_dict()
    paths = list(arrays_in(data["terms"]))
    assert paths
    for path in paths:
        for change, match in [
            (shorter, "shape|coders|give no|scorers|no full tree"),
            (
                lambda a: a | {"values": [np.nan, *a["values"][1:]]},
                "not finite|array of numbers|NaN",
            ),
            (lambda a: a | {"dtype": "bool"}, "array of numbers"),
            (lambda _: 3.0, "should be"),
        ]:
            wrong = data | {"terms": changed_at(data["terms"], path, change)}
            with pytest.raises(ValueError, match=match):
                Description.from_dict(wrong)


ONE = Term(Pooling(2.0), np.ones((1, 2, 3)), np.zeros((1, 2)), np.zeros(1))


@each("parts, match", [
    ({"terms": ()}, "one Term at least"),
    ({"terms": (Pooling(2.0),)}, "no Term, but Pooling"),
    ({"terms": (replace(ONE, coder=Pooling(0.5)),)}, "q is 0.5"),
    ({"terms": (replace(ONE, coder=CodesByScorer((Pooling(2.0),))),)}, "does not code rows alone"),
    ({"terms": (replace(ONE, factor=np.inf),)}, "factor is inf"),
    ({"terms": (replace(ONE, scale=np.array([1.0, 0.0, 1.0])),)}, "no 0"),
    ({"terms": (replace(ONE, columns=np.array([0, 1, 9])),)}, "places among 3"),
    ({"classes": np.array(["a", "b", "c"])}, "1 scorers, but there are 3 classes"),
    ({"classes": np.array(["a"])}, "two labels at least"),
    ({"temperature": 0.0}, "should be positive"),
    ({"smoothing": 2.0}, "between 0 and 1"),
    ({"feature_names": ("a",)}, "feature_names are 1 names"),
])  # fmt: skip
def test_parts_that_do_not_fit_together_are_refused(parts, match):
    given = {"terms": (ONE,), "classes": np.array(["a", "b"]), "n_features": 3}
    Description(**given)
    with pytest.raises(ValueError, match=match):
        Description(**given | parts)


@each("change, match", [
    (lambda model: vars(model._learned).update(coding=True), "True"),
    (lambda model: delattr(model.coding_, "_n_neighbors"), "_n_neighbors"),
    (lambda model: setattr(model.coding_, "_n_neighbors", 99), "99"),
])  # fmt: skip
def test_what_a_model_predicts_by_is_looked_at_before_it_is_saved(change, match, tmp_path):
    X, y = problem(3)
    model = clone(MODELS["soft"]).fit(X, y)
    change(model)
    with pytest.raises(ValueError, match=match):
        loclin.io.save(model, tmp_path / "model.loclin")


def nested(depth):
    found = {}
    for _ in range(depth):
        found = {"word": "TangentCodes", "weights": found, "anchors": 0, "tangents": 0, "scale": 0}
    return found


@each("part", ["centre", "scale", "coder", "columns", "pieces", "bias", "factor"])
def test_a_term_that_lacks_something_is_refused(part):
    X, y = problem(3)
    data = describe(clone(MODELS["soft"]).fit(X, y)).to_dict()
    del data["terms"][0][part]
    with pytest.raises(ValueError, match=rf"terms\[0\], Term: {part} is missing"):
        Description.from_dict(data)


@each("change, match", [
    ({"dtype": "f9"}, "is no array"), ({"dtype": None}, "is no array|of numbers"),
    ({"shape": [3, -1, 6]}, "no shape"), ({"shape": "x"}, "no shape"), ({"shape": [2]}, "no shape"),
    ({"values": "2"}, "no shape"), ({"values": [[1.0]]}, "no shape"),
    ({"values": [{}]}, "no array"), ({"values": [10**400]}, "no array"),
])  # fmt: skip
def test_what_is_no_array_is_refused_by_name(change, match):
    X, y = problem(3)
    data = describe(clone(MODELS["ml3"]).fit(X, y)).to_dict()
    data["terms"][0]["coef"] |= change
    with pytest.raises(ValueError, match=rf"terms\[0\]\.coef.*{match}|coef.*{match}"):
        Description.from_dict(data)


def test_rows_of_a_description_are_looked_at():
    X, y = problem(3)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    described = describe(clone(MODELS["soft"]).fit(frame, y))
    np.testing.assert_array_equal(described.predict(frame), described.predict(X))
    np.testing.assert_array_equal(described.predict(sparse.csr_matrix(X)), described.predict(X))
    with pytest.raises(ValueError, match="X has the columns"):
        described.predict(frame[list("fedcba")])
    with pytest.raises(ValueError, match="NaN or infinity"):
        described.predict(np.where(X > 1, np.nan, X))


def test_labels_and_parameters_that_json_has_not():
    X, y = problem(3)
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "M8[D]")[
        np.unique(y, return_inverse=True)[1]
    ]
    described = describe(clone(MODELS["ml3"]).fit(X, days))
    assert described.predict(X).dtype == days.dtype
    with pytest.raises(ValueError, match="numbers, booleans or strings"):
        described.to_dict()
    coding = LLCCoding(8, 3, regularization=np.float32(1e-3), random_state=0)
    json.dumps(describe(over(coding).fit(X, y)).to_dict())


def test_descriptions_are_equal_where_they_are_the_same():
    X, y = problem(3)
    one, other = (describe(clone(MODELS["ml3"]).fit(X, y)) for _ in range(2))
    assert one == one
    assert one != other
    assert len({one, other}) == 2


@each("attribute, value", [
    ("temperature_", -1.0), ("temperature_", np.nan), ("temperature_", np.inf),
    ("smoothing_", np.nan), ("smoothing_", 2.0),
])  # fmt: skip
def test_temperatures_that_are_none_are_refused(attribute, value, tmp_path):
    X, y = problem(3)
    model = clone(MODELS["ml3"]).fit(X, y)
    setattr(model, attribute, value)
    with pytest.raises(ValueError, match=attribute[:-1]):
        loclin.io.save(model, tmp_path / "model.loclin")


@each("model, attribute", [
    (loclin.SVMKNNClassifier(), "y_"), (loclin.SVMKNNClassifier(), "X_"),
    (loclin.KernelLMKLClassifier(max_iter=2), "gate_coef_"),
    (loclin.KernelLMKLClassifier(max_iter=2), "intercept_"),
    (MODELS["ensemble"], "units_"), (MODELS["ensemble"], "shares_"),
])  # fmt: skip
def test_what_is_gone_is_told(model, attribute, tmp_path):
    X, y = problem(3)
    fitted = clone(model).fit(X[:60], y[:60])
    delattr(fitted, attribute)
    with pytest.raises(ValueError, match=f"{attribute} is missing"):
        loclin.io.save(fitted, tmp_path / "model.loclin")


def test_labels_of_training_rows_are_those_of_the_classes(tmp_path):
    X, y = problem(3)
    model = loclin.SVMKNNClassifier().fit(X[:60], y[:60])
    model.classes_ = model.classes_[:2]
    with pytest.raises(ValueError, match="y_ should be places among 2 classes"):
        loclin.io.save(model, tmp_path / "model.loclin")


def test_no_rows_have_no_scores():
    X, y = problem(3)
    described = describe(clone(MODELS["soft"]).fit(X, y))
    assert described.decision_function(X[:0]).shape == (0, 3)
    assert described.predict(X[:0]).shape == (0,)


def test_a_description_is_made_by_hand():
    term = Term(Pooling(2.0), np.array([[[3.0, 0.0], [0.0, 4.0]], [[1.0, 1.0], [0.0, 0.0]]]),
                np.zeros((2, 2)), np.array([0.0, 1.0]))  # fmt: skip
    made = Description((term,), np.array(["no", "yes"]), 2, temperature=2.0)
    assert made.decision_function([[1.0, 1.0]]) == pytest.approx([2.0 + 1.0 - 5.0])
    assert made.predict([[1.0, 1.0]]) == ["no"]
    assert made.predict_proba([[1.0, 1.0]])[0, 1] == pytest.approx(1 / (1 + np.e))
    coef, intercept = made.local_model([[1.0, 1.0]])
    np.testing.assert_allclose(coef, [[1.0 - 9 / 5, 1.0 - 16 / 5]])
    np.testing.assert_allclose(intercept, [1.0])


class Doubled(SoftAssignmentCoding):
    """A coding of one's own, which transforms otherwise than the one it is made from."""

    def transform(self, X):
        return super().transform(X) * 2


def test_predictions_go_by_what_a_subclass_transforms():
    X, y = problem(3)
    model = over(Doubled(8, 3, random_state=0), standardize=False).fit(X, y)
    codes = model.coding_.transform(X)
    np.testing.assert_allclose(codes.sum(axis=1), 2)
    np.testing.assert_array_equal(model.local_weights(X).toarray(), codes.toarray())
    with pytest.raises(ValueError, match="Doubled has no words"):
        describe(model)


@each("name", ["soft", "rebuild", "planes", "tangents"])
def test_a_coding_of_double_precision_codes_rows_of_single(name):
    X, y = problem(3)
    known = FrozenEstimator(clone(MODELS[name].coding).fit(X))
    single = over(known).fit(X.astype(np.float32), y)
    codes = single.local_weights(X)
    assert codes.dtype == single.local_coef_.dtype == np.float32
    expected = known.transform(X.astype(np.float32)).toarray()
    np.testing.assert_allclose(codes.toarray(), expected, rtol=1e-5, atol=1e-6)


def test_a_coder_without_a_loop_says_how_it_gets_one():
    with pytest.raises(TypeError, match=r"Pooling.*codes_by\.register"):
        codes_by(Pooling(2.0), ROWS)


def test_predictions_go_by_what_a_subclass_transforms_by_class():
    X, y = problem(3)
    model = over(Halved(3, per_class=True), standardize=False).fit(X, y)
    np.testing.assert_array_equal(model.local_weights(X), model.coding_.transform_by_class(X))


class Halved(OrthogonalCoding):
    """The same, of codes by class."""

    def transform_by_class(self, X):
        return super().transform_by_class(X) / 2


@each("kind", [OrthogonalCoding, Halved])
def test_codes_by_class_have_the_model_s_precision(kind):
    X, y = problem(3)
    known = FrozenEstimator(kind(3, per_class=True).fit(X, y))
    single = over(known).fit(X.astype(np.float32), y)
    told = (single.local_weights(X), *single.local_model(X), single.decision_function(X))
    assert {one.dtype for one in told} == {np.dtype(np.float32)}


@each("n_classes", [2, 3])
def test_one_atom_of_one_feature_is_no_constant(n_classes):
    X = np.linspace(-2, 2, 60)[:, None]
    y = np.digitize(X[:, 0], [-0.7, 0.7][: n_classes - 1])
    model = loclin.USSVMClassifier(1, random_state=0).fit(X, y)
    hold_alike(describe(model), model, X, 1e-12)
    coef, intercept = model.local_model(X)
    scores = (coef * X[:, None] if coef.ndim == 3 else coef * X).sum(axis=-1) + intercept
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
    assert np.ptp(scores) > 0.1


def test_shared_codes_keep_their_precision():
    """A stream's codes of US-SVM are in double precision, whatever its atoms are of."""
    X, y = problem(3, np.float32)
    model = clone(MODELS["ussvm"]).partial_fit(X, y, classes=["a", "b", "c"])
    assert model.local_weights(X).dtype == model.codes_.dtype == np.float64
    coef, intercept = model.local_model(X)
    scores = np.einsum("ncd,nd->nc", coef, X.astype(float)) + intercept
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-10, atol=1e-10)
