"""scikit-learn's own checks, for every public classifier."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import loclin
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding
from tests.checks import mark_slow, of_read_only_rows, of_single_precision, without_repetition

CLASSIFIERS = [getattr(loclin, name) for name in loclin.__all__ if name.endswith("Classifier")]

# Every fit with one strength: what alpha="auto" does beside it is tested in test_strength.py.
FEW = {"max_iter": 5, "random_state": 0}
PLAIN = {"alpha": "scale", "metric": None, "random_state": 0}
ESTIMATORS = [
    loclin.ML3Classifier(alpha="scale", **FEW),
    loclin.LLSVMClassifier(alpha="scale", **FEW),
    loclin.SAPLClassifier(alpha="scale", **FEW),
    loclin.L3MClassifier(alpha="scale", n_restarts=1, **FEW),
    loclin.USSVMClassifier(beta="scale", **FEW),
    loclin.CSVMClassifier(alpha="scale", tol=0.1, random_state=0),
    loclin.LDKLClassifier(alpha="scale", **FEW),
    loclin.SVMKNNClassifier(),
    loclin.ForestClassifier(5, random_state=0),
    loclin.LMKLClassifier(alpha="scale", **FEW),
    loclin.KernelLMKLClassifier(max_iter=5, random_state=0),
]
ESTIMATORS += [
    loclin.LLSVMClassifier(solver="dual_cd", tol=0.1, **PLAIN),
    loclin.LLSVMClassifier(OrthogonalCoding(), max_iter=20, **PLAIN),
    loclin.LLSVMClassifier(OrthogonalCoding(per_class=True), solver="dual_cd", tol=0.1, **PLAIN),
    loclin.LLSVMClassifier(SoftAssignmentCoding(3, 2), weights="constant", max_iter=20, **PLAIN),
    loclin.SAPLClassifier(share_anchors=False, weights="constant", max_iter=20, **PLAIN),
    loclin.ML3Classifier(max_iter=5, **PLAIN),
    loclin.SAPLClassifier(alpha="scale", metric="diagonal", **FEW),
    loclin.L3MClassifier(alpha="scale", solver="online", max_iter=20, random_state=0),
    loclin.L3MClassifier(2, solver="convex", n_restarts=1, tol=0.5, random_state=0),
    loclin.CSVMClassifier(3, alpha="scale", multi_class="crammer_singer", tol=0.1, random_state=0),
    loclin.USSVMClassifier(
        5, beta="scale", n_nonzero=2, nonnegative=True, l1_ratio=0.5, max_iter=5, random_state=0
    ),
    loclin.LMKLClassifier(
        3, solver="alternating", alpha="scale", bias="global", tol=0.1, max_iter=5, random_state=0
    ),
]

# One of each class, whose metric and temperature these checks find by rows held out, as a user's
# fit does. Elsewhere there is no metric, and the rows of the fit tell the temperature: folds take
# several times as long.
FIRST = {repr(estimator) for estimator in ESTIMATORS[: len(CLASSIFIERS)]}
WITH_FOLDS = {
    "check_classifiers_one_label",
    "check_classifiers_train",
    "check_estimators_overwrite_params",
    "check_fit_idempotent",
    "check_fit2d_1sample",
}

# Not fitted with a strength, or without local models of all rows.
OTHERS = (
    loclin.USSVMClassifier, loclin.SVMKNNClassifier, loclin.KernelLMKLClassifier,
    loclin.ForestClassifier,
)  # fmt: skip


def excused(estimator):
    """Tell why a weight of two and a row given twice are not the same.

    They are the same problem, but not the same path of stochastic steps; scikit-learn excuses its
    SGDClassifier for this.
    """
    reason = "stochastic steps"
    if isinstance(estimator, loclin.SVMKNNClassifier | loclin.KernelLMKLClassifier):
        reason = "neighbours, or the rows that alpha goes by, are counted"
    elif isinstance(estimator, loclin.ForestClassifier):
        reason = "random splits"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@mark_slow(
    without_repetition(
        parametrize_with_checks(ESTIMATORS, expected_failed_checks=excused), spared=FIRST
    ),
    lambda estimator, check: (
        repr(estimator) not in FIRST
        or of_single_precision(check)  # loops are compiled anew
        or (of_read_only_rows(check) and not isinstance(estimator, loclin.ML3Classifier))
    ),
)
def test_scikit_learn_checks(estimator, check, request):
    if repr(estimator) not in FIRST or check.func.__name__ not in WITH_FOLDS:
        request.getfixturevalue("told_by_its_own_rows")
        request.getfixturevalue("no_metric")
    check(estimator)


# They solve, or evaluate kernels, when they predict, as scikit-learn's neighbours and SVC do.
LAZY = loclin.SVMKNNClassifier, loclin.KernelLMKLClassifier


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("told_by_its_own_rows", "no_metric")
@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if not isinstance(e, LAZY)], ids=repr)
def test_predictions_do_not_read_parameters(estimator):
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    model = clone(estimator).fit(X, y)
    scores, (coef, intercept) = model.decision_function(X), model.local_model(X)
    for name in model.get_params(deep=False):
        setattr(model, name, object())
    np.testing.assert_array_equal(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.local_model(X)[0], coef)
    np.testing.assert_array_equal(model.local_model(X)[1], intercept)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "make_copy",
    [
        pytest.param(deepcopy, marks=pytest.mark.slow),
        lambda model: pickle.loads(pickle.dumps(model)),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("cls", [cls for cls in CLASSIFIERS if cls not in OTHERS])
def test_copies_have_the_weights_as_they_lay(cls, form, make_copy):
    X, y = load_iris(return_X_y=True)
    model = cls(alpha="scale", max_iter=3, random_state=0).fit(form(X), y)
    copied = make_copy(model)
    np.testing.assert_array_equal(copied.local_coef_, model.local_coef_)
    np.testing.assert_array_equal(
        copied.decision_function(form(X)), model.decision_function(form(X))
    )
    assert copied.local_coef_.strides == model.local_coef_.strides


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_public_classifiers_are_classifiers(cls):
    assert is_classifier(cls())
