"""Rows that weigh nothing count as if they were not there; so do classes of such rows alone."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import loclin
from loclin import (
    CSVMClassifier,
    ForestClassifier,
    KernelLMKLClassifier,
    L3MClassifier,
    LDKLClassifier,
    LLSVMClassifier,
    LMKLClassifier,
    LocallyLinearEnsemble,
    ML3Classifier,
    SAPLClassifier,
    SVMKNNClassifier,
    USSVMClassifier,
)
from loclin.codings import OrthogonalCoding

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"max_iter": 2, "random_state": 0}
MODELS = {
    "ML3": ML3Classifier(2, **SHORT),
    "SAPL": SAPLClassifier(4, 2, **SHORT),
    "SAPL, own anchors": SAPLClassifier(4, 2, share_anchors=False, metric=None, **SHORT),
    "LDKL": LDKLClassifier(2, **SHORT),
    "L-MKL": LMKLClassifier(3, **SHORT),
    "LL-SVM": LLSVMClassifier(**SHORT),
    "LL-SVM, dual": LLSVMClassifier(solver="dual_cd", metric=None, **SHORT),
    "LL-SVM, competing": LLSVMClassifier(multi_class="crammer_singer", metric=None, **SHORT),
    "LL-SVM, OCC": LLSVMClassifier(OrthogonalCoding(2, per_class=True), metric=None, **SHORT),
    "L3M": L3MClassifier(2, **SHORT),
    "L3M, online": L3MClassifier(2, solver="online", n_restarts=1, **SHORT),
    "CSVM": CSVMClassifier(3, **SHORT),
    "US-SVM": USSVMClassifier(4, **SHORT),
    "SVM-KNN": SVMKNNClassifier(10),
    "forest": ForestClassifier(5, random_state=0),
    "L-MKL, kernels": KernelLMKLClassifier(**SHORT),
    "ensemble": LocallyLinearEnsemble([ML3Classifier(2, max_iter=2)], n_folds=2, random_state=0),
}
STREAMS = [
    name for name in MODELS
    if name not in ("LL-SVM, dual", "LL-SVM, OCC", "L3M", "SVM-KNN", "forest", "L-MKL, kernels")
]  # fmt: skip
X, NUMBERS = load_iris(return_X_y=True)
X = X[::2] - X.mean(axis=0)
NUMBERS = NUMBERS[::2]
y = np.array(["a", "b", "c"])[NUMBERS]
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
FAR = np.random.default_rng(1).normal(0, 6, (300, 4))
LEFT = np.flatnonzero(y != "b")


def with_class_weight(model, class_weight):
    model = clone(model)
    if isinstance(model, LocallyLinearEnsemble):
        return model.set_params(
            estimators=[one.set_params(class_weight=class_weight) for one in model.estimators]
        )
    return model.set_params(class_weight=class_weight)


def check_same(model, expected):
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    np.testing.assert_array_equal(model.decision_function(FAR), expected.decision_function(FAR))
    np.testing.assert_array_equal(model.predict(FAR), expected.predict(FAR))


@pytest.mark.parametrize("name", MODELS)
def test_a_class_without_weight_is_no_class_of_the_fit(name):
    model = MODELS[name]
    expected = clone(model).fit(X[LEFT], y[LEFT])
    assert expected.classes_.tolist() == ["a", "c"]
    check_same(clone(model).fit(X, y, (y != "b").astype(float)), expected)
    check_same(with_class_weight(model, {"b": 0.0}).fit(X, y), expected)
    expected = clone(model).fit(X[LEFT], y[LEFT], WEIGHTS[LEFT])
    check_same(clone(model).fit(X, y, WEIGHTS * (y != "b")), expected)
    if hasattr(expected, "predict_proba"):
        assert expected.predict_proba(FAR).shape == (300, 2)


@pytest.mark.parametrize("name", MODELS)
def test_rows_without_weight_change_nothing(name):
    dropped = np.arange(len(y)) % 3 > 0
    expected = clone(MODELS[name]).fit(X[dropped], y[dropped], WEIGHTS[dropped])
    check_same(clone(MODELS[name]).fit(X, y, WEIGHTS * dropped), expected)


@pytest.mark.parametrize("name", MODELS)
def test_one_class_of_weight_is_one_class_only(name):
    model, told = MODELS[name], r"y has one class only \('a'\) .* those of \['b', 'c'\] have weight"
    with pytest.raises(ValueError, match=told):
        clone(model).fit(X, y, (y == "a").astype(float))
    with pytest.raises(ValueError, match=told):
        with_class_weight(model, {"a": 1.0, "b": 0.0, "c": 0.0}).fit(X, y)
    with pytest.raises(ValueError, match=told):
        with_class_weight(model, {"c": 0.0}).fit(X, y, (y != "b").astype(float))
    with pytest.raises(ValueError, match="zero for every row"):
        clone(model).fit(X, y, np.zeros(len(y)))


def test_weights_beside_which_others_are_nothing_leave_no_class():
    weights = np.where(y == "b", 1e-300, 1.0)
    for name in ("ML3", "SVM-KNN", "ensemble"):
        expected = clone(MODELS[name]).fit(X[LEFT], y[LEFT])
        check_same(clone(MODELS[name]).fit(X, y, weights), expected)
        check_same(with_class_weight(MODELS[name], {"b": 1e-300}).fit(X, y), expected)


@pytest.mark.parametrize("name", ["ML3", "LL-SVM, dual", "SVM-KNN"])
def test_balanced_classes_are_those_of_rows_with_weight(name):
    model = with_class_weight(MODELS[name], "balanced")
    kept = (y != "b") & (np.arange(len(y)) > 9)
    check_same(clone(model).fit(X, y, kept.astype(float)), clone(model).fit(X[kept], y[kept]))


@pytest.mark.parametrize("name", ["ML3", "US-SVM"])
def test_early_stopping_holds_out_rows_with_weight(name):
    model = clone(MODELS[name]).set_params(early_stopping=True)
    expected = clone(model).fit(X[LEFT], y[LEFT])
    check_same(clone(model).fit(X, y, (y != "b").astype(float)), expected)


def test_the_ensemble_stops_early_by_rows_with_weight():
    model = clone(MODELS["ensemble"]).set_params(early_stopping=True, validation_fraction=0.3)
    expected = clone(model).fit(X[LEFT], y[LEFT])
    check_same(clone(model).fit(X, y, (y != "b").astype(float)), expected)


def test_kinds_that_leave_out_different_classes_are_refused():
    kinds = [ML3Classifier(class_weight={"a": 0.0}), ML3Classifier(class_weight={"b": 0.0})]
    with pytest.raises(ValueError, match="leave out different classes"):
        LocallyLinearEnsemble(kinds).fit(X, y)
    with pytest.raises(ValueError, match="leave out different classes"):
        LocallyLinearEnsemble(kinds).partial_fit(X, y, ["a", "b", "c"])


def test_a_fit_that_goes_on_needs_weight_in_every_class():
    model = clone(MODELS["ML3"]).set_params(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="y must have the classes of the earlier fit"):
        model.fit(X, y, (y != "b").astype(float))


def test_labels_a_row_without_weight():
    members = np.stack([NUMBERS == 0, NUMBERS > 0], axis=1)
    kept = (np.arange(len(y)) % 2).astype(bool)
    model = clone(MODELS["US-SVM"])
    expected = clone(model).fit(X[kept], members[kept])
    check_same(model.fit(X, members, kept.astype(float)), expected)


def test_codes_of_new_classes_are_those_of_rows_with_weight():
    model = clone(MODELS["US-SVM"]).fit(X, y)
    codes, _ = model.fit_codes(X, y, sample_weight=(y != "b").astype(float))
    expected, _ = model.fit_codes(X[LEFT], y[LEFT])
    np.testing.assert_array_equal(codes.toarray(), expected.toarray())
    with pytest.raises(ValueError, match="one class only"):
        model.add_class(X, y == "b", "d", sample_weight=(y != "b").astype(float))


# Streams: the classes are those declared; rows without weight are not learned.


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_does_not_learn_rows_without_weight(name):
    """Chunk by chunk, also where all of the first, or of a later one, weigh nothing."""
    model, by_class = clone(MODELS[name]), with_class_weight(MODELS[name], {"b": 0.0})
    expected = clone(MODELS[name])
    order, nothing = np.random.default_rng(2).permutation(len(y)), np.flatnonzero(y == "b")
    for rows in [nothing, *np.array_split(order, 3), nothing]:
        model.partial_fit(X[rows], y[rows], ["a", "b", "c"], (y[rows] != "b").astype(float))
        by_class.partial_fit(X[rows], y[rows], ["a", "b", "c"])
        left = rows[y[rows] != "b"]
        if len(left):
            expected.partial_fit(X[left], y[left], ["a", "b", "c"])
    check_same(model, expected)
    check_same(by_class, expected)
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["ML3", "L3M, online", "ensemble"])
def test_a_first_call_without_weight_only_tells_the_classes(name):
    model = clone(MODELS[name]).partial_fit(X, y, ["a", "b", "c"], np.zeros(len(y)))
    assert model.classes_.tolist() == ["a", "b", "c"]
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="differs from the earlier ones"):
        model.partial_fit(X, y, ["a", "b"])
    check_same(model.partial_fit(X, y), clone(model).partial_fit(X, y, ["a", "b", "c"]))
    before = dict(vars(model))
    model.partial_fit(X, y, sample_weight=np.zeros(len(y)))
    assert model.decision_function(X).shape == (75, 3)
    assert vars(model) == before


# What is no weight, and no class.


@pytest.mark.parametrize("name", ["ML3", "SVM-KNN", "ensemble"])
def test_one_number_is_no_weight_of_each_row(name):
    with pytest.raises(
        ValueError, match=r"sample_weight=2.0 is not valid; give one weight for each"
    ):
        clone(MODELS[name]).fit(X, y, 2.0)


@pytest.mark.parametrize("weights", ["balance", ["balanced"], [1.0, 2.0, 3.0], 2.0, {"a": "much"}])
@pytest.mark.parametrize("name", ["ML3", "SVM-KNN", "ensemble"])
def test_class_weights_that_are_none(name, weights):
    with pytest.raises(ValueError, match=r"^class_weight=.* is not valid; "):
        with_class_weight(MODELS[name], weights).fit(X, y)


def test_a_set_of_classes():
    expected = clone(MODELS["ML3"]).partial_fit(X, y, ["a", "b", "c"])
    for classes in ({"a", "b", "c"}, frozenset("abc"), dict.fromkeys("abc").keys()):
        model = clone(MODELS["ML3"]).partial_fit(X, y, classes).partial_fit(X, y, classes)
        assert model.classes_.tolist() == expected.classes_.tolist()
    with pytest.raises(ValueError, match="differs from the earlier ones"):
        model.partial_fit(X, y, {"a", "b"})


@pytest.mark.parametrize("odd", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [list, np.array, lambda labels: np.array(labels, object)])
def test_nan_is_no_class(kind, odd):
    with pytest.raises(ValueError, match=r"(?s)has NaN or infinity, which is no label; leave it"):
        clone(MODELS["ML3"]).partial_fit(X, NUMBERS, kind([0, 1, 2, odd]))


def test_the_public_classes_are_all_here():
    kinds = {type(model).__name__ for model in MODELS.values()}
    assert kinds == {name for name in loclin.__all__ if name.endswith(("Classifier", "Ensemble"))}


@pytest.mark.parametrize("name", ["ML3", "US-SVM", "SVM-KNN", "ensemble"])
def test_rows_without_weight_may_be_of_any_scale(name):
    wild = np.vstack([X, np.full((1, 4), 1e200)])
    model = clone(MODELS[name]).fit(wild, np.append(y, "z"), np.append(np.ones(len(y)), 0.0))
    check_same(model, clone(model).fit(X, y))
    if name in STREAMS:
        stream = clone(model).partial_fit(X, y, ["a", "b", "c"])
        expected = clone(model).partial_fit(X, y, ["a", "b", "c"])
        stream.partial_fit(wild, np.append(y, "a"), None, np.append(np.ones(len(y)), 0.0))
        check_same(stream, expected.partial_fit(X, y))
