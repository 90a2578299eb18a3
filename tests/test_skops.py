"""Models in files of skops, and in MLflow: what must be trusted, and that they come back."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import StackingClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import loclin
import loclin.io
from loclin.tables import TableEncoder
from tests import golden

skops = pytest.importorskip("skops.io", reason="needs skops")

pytestmark = [
    pytest.mark.usefixtures("told_by_its_own_rows"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

CASES = [
    case
    for case in golden.CASES
    if (case.layout, case.dtype, case.n_classes) == ("dense", "float64", 3)
    and case.learn in ("fit", "stream")
]
ROWS = np.random.default_rng(0).standard_normal((80, 3))
TARGET = (ROWS[:, 0] * ROWS[:, 1] > 0).astype(int)


def again(model):
    """Return the model after its way through skops; it must ask for the names that we give."""
    content, trusted = skops.dumps(model), loclin.io.trusted_types(model)
    asked = set(skops.get_untrusted_types(data=content))
    assert asked <= set(trusted)
    assert {name for name in set(trusted) - asked if not name.startswith("sklearn.")} == set()
    return skops.loads(content, trusted=trusted)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_model_comes_back(case):
    data = golden.data_of(case)
    model = getattr(golden, case.learn)(golden.make(case.model), data)
    found = again(model)
    if case.learn == "stream":
        for each in (model, found):
            each.partial_fit(data.X[:50], data.y[:50])
    scores = model.decision_function(data.X)
    np.testing.assert_array_equal(found.decision_function(data.X), scores)


@pytest.mark.parametrize("model", [
    loclin.KernelLMKLClassifier(max_iter=2),
    loclin.ForestClassifier(3, random_state=0),
    loclin.ML3Classifier(2, pieces=4, metric="full", max_iter=2, random_state=0),
])  # fmt: skip
def test_so_do_kernels_forests_and_metrics(model):
    model.fit(ROWS, TARGET)
    np.testing.assert_array_equal(again(model).predict_proba(ROWS), model.predict_proba(ROWS))


def table():
    kinds = np.resize(["red", "green", "blue"], len(ROWS))
    days = pd.date_range("2024-01-01", periods=len(ROWS)).strftime("%Y-%m-%d")
    texts = [f"row {k} is {kind}" for k, kind in enumerate(kinds)]
    found = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    return found.assign(kind=kinds, day=days, text=texts, flag=ROWS[:, 2] > 0)


@pytest.mark.parametrize("classifier", [
    loclin.ML3Classifier(2, max_iter=2, random_state=0),
    loclin.LocallyLinearEnsemble(
        [loclin.ML3Classifier(2, max_iter=2), loclin.ForestClassifier(3)],
        n_folds=2, random_state=0,
    ),
])  # fmt: skip
def test_so_does_a_pipeline_of_tables(classifier):
    model = make_pipeline(TableEncoder(), classifier).fit(table(), TARGET)
    expected = model.predict_proba(table())
    np.testing.assert_array_equal(again(model).predict_proba(table()), expected)


def test_a_fit_has_no_state_of_streams():
    model = loclin.ML3Classifier(2, max_iter=2, random_state=0).fit(ROWS, TARGET)
    assert loclin.io.trusted_types(make_pipeline(StandardScaler(), model)) == [
        "loclin.fitting.features.FeatureMap",
        "loclin.ml3.cccp.PooledModels",
        "loclin.ml3.classifier.ML3Classifier",
    ]


@pytest.mark.parametrize("kind", [
    lambda model: GridSearchCV(model, {"n_models": [2]}, cv=StratifiedKFold(2)),
    lambda model: CalibratedClassifierCV(model, cv=2),
    lambda model: StackingClassifier([("one", model)], cv=2),
    lambda model: make_pipeline(
        make_column_transformer((StandardScaler(), make_column_selector("[ab]"))), model
    ),
])  # fmt: skip
def test_so_do_models_inside_those_of_scikit_learn(kind):
    rows = table()[["a", "b", "c"]]
    model = kind(loclin.ML3Classifier(2, max_iter=2, random_state=0)).fit(rows, TARGET)
    np.testing.assert_array_equal(again(model).predict(rows), model.predict(rows))
    with pytest.raises(TypeError, match="NoneType is no estimator"):
        loclin.io.trusted_types(None)


class Own(loclin.ML3Classifier):
    """A class of the user's, which loclin cannot vouch for."""


def test_classes_of_others_are_not_named():
    model = make_pipeline(StandardScaler(), Own())
    assert loclin.io.trusted_types(model) == []
    assert loclin.io.trusted_types(loclin.L3MClassifier()) == [
        "loclin.l3m.classifier.L3MClassifier"
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_mlflow_saves_and_loads(tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn", reason="needs MLflow")
    model = make_pipeline(TableEncoder(), loclin.ML3Classifier(2, max_iter=2, random_state=0))
    model.fit(table(), TARGET)
    with pytest.raises(Exception, match="untrusted types"):
        mlflow.save_model(model, tmp_path / "refused", pip_requirements=[])
    trusted = loclin.io.trusted_types(model)
    mlflow.save_model(model, tmp_path / "model", skops_trusted_types=trusted, pip_requirements=[])
    found = mlflow.load_model(str(tmp_path / "model"))  # knows by itself what to trust
    np.testing.assert_array_equal(found.predict_proba(table()), model.predict_proba(table()))
