"""Summaries of fitted models: what they say is so, and harmless in a notebook."""

import json

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import loclin
from loclin.inspection import summary
from tests.test_flip import CLASSIFIERS, made

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize
X, Y = load_iris(return_X_y=True)


@each("name", CLASSIFIERS)
def test_every_classifier_has_a_summary(name):
    model = make_pipeline(StandardScaler(), made(name)).fit(X, Y)
    found = summary(model)
    assert (found.kind, found.steps) == (name, ("StandardScaler",))
    assert found.classes == (0, 1, 2)
    assert found.n_bytes > 1000
    assert 0 < found.seconds_a_row < 0.01
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert f"StandardScaler > {name}" in str(found)
    if name in ("SVMKNNClassifier", "KernelLMKLClassifier"):
        assert (found.n_models, found.coding, found.weights) == (None, (), {})
        return
    assert sum(found.weights.values()) == pytest.approx(1)
    assert list(found.weights.values()) == sorted(found.weights.values(), reverse=True)
    if name not in ("LocallyLinearEnsemble", "ForestClassifier"):
        assert found.n_models == model[-1].local_coef_.shape[1]
        assert found.strength == getattr(model[-1], "alpha_", None) or model[-1].beta_


def test_weights_are_shares_of_the_local_models():
    model = loclin.ML3Classifier(3, alpha=0.1, metric=None, pieces=None, random_state=0).fit(X, Y)
    sizes = (abs(model.local_coef_) * X.std(axis=0)).mean(axis=(0, 1))
    expected = {f"x{k}": share for k, share in enumerate(sizes / sizes.sum())}
    assert summary(model).weights == pytest.approx(expected)
    bent = loclin.L3MClassifier(2, alpha=0.1, pieces=4, random_state=0).fit(X, Y)
    assert set(summary(bent).weights) == {"x0", "x1", "x2", "x3"}
    flat = loclin.ML3Classifier(2, alpha=0.1, random_state=0).fit(np.c_[X, np.ones(150)], Y)
    assert summary(flat).weights["x4"] == 0


def test_codings_are_said_in_words():
    for name, words in {
        "ML3Classifier": "pooling of their positive scores, q = 3",
        "L3MClassifier": "regions of 6 linear gates",
        "LMKLClassifier": "softmax of 15 linear gates",
        "SAPLClassifier": "the 8 nearest of 15 anchors",
        "LDKLClassifier": "the path in a tree of 7 gates",
        "USSVMClassifier": "one code for all rows",
    }.items():
        assert summary(made(name).fit(X, Y)).coding == (words,)
    planes = loclin.codings.OrthogonalCoding(2, per_class=True)
    model = loclin.LLSVMClassifier(planes, alpha=0.1, random_state=0).fit(X, Y)
    assert summary(model).coding[0].endswith(", for each class")


def test_names_are_escaped_and_long_lists_cut():
    pd = pytest.importorskip("pandas", reason="needs the extra [tables]")
    names = ["<script>alert(1)</script>", "a & b", "c\n", "d" * 100]
    labels = np.array([f"<b>{k}" for k in range(10)])[np.arange(150) % 10]
    model = made("ML3Classifier").fit(pd.DataFrame(X, columns=names), labels)
    page = summary(model)._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;b&gt;0" in page
    assert "5 more" in page
    assert "d" * 50 not in page
    assert page.startswith("<table>")


def test_a_table_s_weights_are_by_column():
    pytest.importorskip("pandas", reason="needs the extra [tables]")
    from loclin.tables import TableEncoder
    from tests.test_tables import KINDS, churn

    frame, y = churn(200)
    model = make_pipeline(TableEncoder(kinds=KINDS), made("ML3Classifier")).fit(frame, y)
    found = summary(model)
    assert found.steps == ("TableEncoder",)
    assert set(found.weights) == set(model[0].origins_)
    assert sum(found.weights.values()) == pytest.approx(1)


def test_several_labels_and_functions_of_one_s_own():
    several = loclin.USSVMClassifier(random_state=0).fit(X, np.eye(3, dtype=int)[Y])
    assert summary(several).n_models == several.local_coef_.shape[1]
    kernel = loclin.KernelLMKLClassifier([lambda A, B: A @ B.T], max_iter=10).fit(X, Y)
    assert summary(kernel).n_bytes is None


def test_names_of_columns_go_through_other_steps():
    pd = pytest.importorskip("pandas", reason="needs the extra [tables]")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(k=np.where(X[:, 0] > 5.5, "u", "v"))
    front = make_column_transformer((OneHotEncoder(), ["k"]), (StandardScaler(), ["d", "b"]))
    found = summary(make_pipeline(front, made("ML3Classifier")).fit(frame, Y))
    assert (found.steps, set(found.weights)) == (("ColumnTransformer",), {"k", "d", "b"})
    mixed = summary(make_pipeline(StandardScaler(), PCA(2), made("ML3Classifier")).fit(X, Y))
    assert set(mixed.weights) == {"x0", "x1"}  # features of the classifier
