import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import loclin
from loclin.datasets import make_xor
from loclin.fitting import strength

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows", "no_metric")

# By the rule alone: what alpha="auto" does beside it is tested in test_strength.py.
ML3Classifier = partial(loclin.ML3Classifier, alpha="scale")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def binary():
    X, y = make_xor(300, std=0.3, random_state=0)
    return X, y


def test_digits_beat_a_linear_svm_and_near_a_kernel_svm(digits, monkeypatch):
    monkeypatch.setattr(strength, "HELD_OUT", 1000)  # one draw of the folds
    X, X_test, y, y_test = digits
    accuracy = (
        loclin.ML3Classifier(random_state=0, standardize=False).fit(X, y).score(X_test, y_test)
    )
    assert accuracy > LinearSVC(random_state=0).fit(X, y).score(X_test, y_test) + 0.01
    assert accuracy > SVC().fit(X, y).score(X_test, y_test) - 0.01


@pytest.mark.parametrize(
    ("n_classes", "rows_of_class", "expected"), [(3, 40, 16), (3, 31, 15), (20, 4, 2), (20, 1, 1)]
)
def test_classes_of_few_rows_have_few_models(n_classes, rows_of_class, expected):
    y = np.repeat(np.arange(n_classes), rows_of_class)
    X = np.random.default_rng(0).normal(size=(len(y), 4)) + 9 * np.cos(np.outer(y, np.arange(4)))
    model = ML3Classifier(max_iter=3, random_state=0, standardize=False).fit(X, y)
    assert model.local_coef_.shape == (n_classes, expected, 4)
    model.partial_fit(X, y)  # goes on with as many
    assert model.local_coef_.shape == (n_classes, expected, 4)
    model.set_params(warm_start=True).fit(X, y)
    assert model.local_coef_.shape == (n_classes, expected, 4)
    assert (
        ML3Classifier(standardize=False)
        .partial_fit(X, y, classes=np.unique(y))
        .local_coef_.shape[1]
        == 16
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_models", [2, 4, 16])
def test_xor_is_solved_from_every_start(n_models, seed):
    X, y = make_xor(400, std=0.25, random_state=0)
    assert (
        ML3Classifier(n_models, random_state=seed, standardize=False).fit(X, y).score(X, y) > 0.99
    )


def test_paper_s_settings_can_leave_a_class_dead_on_xor():
    # Without `revive` a class whose responses are all negative never moves again.
    X, y = make_xor(400, std=0.25, random_state=0)
    scores = [
        ML3Classifier(2, revive=False, random_state=seed, standardize=False).fit(X, y).score(X, y)
        for seed in range(8)
    ]
    assert min(scores) < 0.8


def test_one_model_per_class_is_a_linear_competition(iris):
    # m = 1: score = max(w.x + b, 0), nearly a Crammer-Singer linear SVM.
    X, y = iris
    # liblinear comes to this tolerance in a few hundred passes, and not always to its default
    svm = LinearSVC(multi_class="crammer_singer", tol=1e-2, max_iter=100_000, random_state=0)
    linear = svm.fit(X, y).score(X, y)
    model = ML3Classifier(1, random_state=0, standardize=False).fit(X, y)
    assert abs(model.score(X, y) - linear) < 0.04


@pytest.mark.parametrize("p", [1, 1.1, 1.5, 2, 10, np.inf])
def test_shapes_and_local_model(iris, binary, p):
    for X, y in (iris, binary):
        c, (n, d) = len(np.unique(y)), X.shape
        clf = ML3Classifier(5, p=p, max_iter=10, random_state=0, standardize=False).fit(X, y)
        assert clf.local_coef_.shape == (c, 5, d)
        assert clf.local_intercept_.shape == (c, 5)
        np.testing.assert_array_equal(clf.intercept_, np.zeros(c))
        assert clf.n_iter_ == len(clf.objective_) == 10
        scores = clf.decision_function(X)
        assert scores.shape == ((n,) if c == 2 else (n, c))
        assert clf.local_weights(X).shape == (n, c, 5)
        coef, intercept = clf.local_model(X)
        assert coef.shape == ((n, d) if c == 2 else (n, c, d))
        np.testing.assert_allclose(
            np.einsum("n...d,nd->n...", coef, X) + intercept, scores, rtol=1e-9, atol=1e-9
        )


def test_binary_decision_is_the_difference_of_the_classes(binary):
    X, y = binary
    clf = ML3Classifier(4, random_state=0, standardize=False).fit(X, y)
    labels = np.where(clf.decision_function(X) > 0, clf.classes_[1], clf.classes_[0])
    np.testing.assert_array_equal(labels, clf.predict(X))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
def test_sparse_input_gives_the_dense_model(digits, kind):
    X, X_test, y, _ = digits
    X, X_test = np.where(np.abs(X) > 0.5, X, 0), np.where(np.abs(X_test) > 0.5, X_test, 0)
    dense = ML3Classifier(6, max_iter=8, random_state=0, standardize=False).fit(X, y)
    thin = ML3Classifier(6, max_iter=8, random_state=0, standardize=False).fit(kind(X), y)
    np.testing.assert_allclose(thin.local_coef_, dense.local_coef_, rtol=1e-6, atol=1e-8)
    for a in (X_test, kind(X_test)):
        for clf in (dense, thin):
            np.testing.assert_allclose(
                clf.decision_function(a), dense.decision_function(X_test), rtol=1e-6, atol=1e-8
            )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_float32_stays_float32(digits, kind):
    X, X_test, y, y_test = digits
    clf = ML3Classifier(8, max_iter=20, random_state=0, standardize=False).fit(
        kind(X.astype(np.float32)), y
    )
    assert clf.local_coef_.dtype == clf.local_intercept_.dtype == np.float32
    assert clf.decision_function(kind(X_test)).dtype == np.float32
    assert clf.local_weights(kind(X_test[:5])).dtype == np.float32
    double = ML3Classifier(8, max_iter=20, random_state=0, standardize=False).fit(kind(X), y)
    assert double.local_coef_.dtype == np.float64
    assert abs(clf.score(kind(X_test), y_test) - double.score(kind(X_test), y_test)) < 0.01


def test_integers_become_float64(digits):
    clf = ML3Classifier(3, max_iter=3, random_state=0, standardize=False).fit(
        np.arange(40).reshape(20, 2), [0, 1] * 10
    )
    assert clf.local_coef_.dtype == np.float64


@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [7, -3], [False, True], [2.0, 1.0], np.array(["b", "a"], dtype=object)],
)
def test_any_label_type(binary, labels):
    X, y = binary
    named = np.asarray(labels)[y]
    clf = ML3Classifier(4, random_state=0, standardize=False).fit(X, named)
    np.testing.assert_array_equal(clf.classes_, np.unique(named))
    assert clf.score(X, named) > 0.98
    assert clf.predict(X).dtype == clf.classes_.dtype


def test_data_frames_with_feature_names(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = ML3Classifier(3, max_iter=10, random_state=0, standardize=False).fit(frame, pd.Series(y))
    np.testing.assert_array_equal(clf.feature_names_in_, list("abcd"))
    np.testing.assert_array_equal(clf.predict(frame), clf.predict(frame.copy()))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[list("dcba")])


def test_read_only_memory_maps(tmp_path, iris):
    X, y = iris
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    a = ML3Classifier(3, max_iter=5, random_state=0, standardize=False).fit(mapped, y)
    b = ML3Classifier(3, max_iter=5, random_state=0, standardize=False).fit(X, y)
    np.testing.assert_array_equal(a.local_coef_, b.local_coef_)
    np.testing.assert_array_equal(a.predict(mapped), b.predict(X))


def test_same_seed_same_bits_and_input_untouched(iris):
    X, y = iris
    before = X.copy(), y.copy()
    fits = [
        ML3Classifier(4, max_iter=10, random_state=3, standardize=False).fit(X, y) for _ in range(2)
    ]
    np.testing.assert_array_equal(fits[0].local_coef_, fits[1].local_coef_)
    other = ML3Classifier(4, max_iter=10, random_state=4, standardize=False).fit(X, y)
    assert np.abs(other.local_coef_ - fits[0].local_coef_).max() > 0
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_integer_weights_pull_like_repeated_rows():
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, flip_y=0.2, random_state=0)
    weights = np.where(y == 1, 4, 1)
    clf = ML3Classifier(2, alpha=0.1, max_iter=100, batch_size=1, random_state=0, standardize=False)
    weighted = clone(clf).fit(X, y, weights)
    repeated = clone(clf).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    plain = clone(clf).fit(X, y)

    def objective(model):  # the weighted one, at the final models
        margin = model.decision_function(X) * np.where(y == 1, 1, -1)
        square = np.sum(model.local_coef_**2) + np.sum(model.local_intercept_**2)
        return np.average(np.maximum(0, 1 - margin), weights=weights) + 0.05 * square

    assert objective(weighted) == pytest.approx(objective(repeated), rel=0.01)
    assert objective(plain) > 1.1 * objective(weighted)
    assert (weighted.predict(X) == repeated.predict(X)).mean() > 0.95


def test_zero_weight_leaves_the_row_out(iris):
    X, y = iris
    spoiled = np.where(np.arange(150) % 5 == 0, (y + 1) % 3, y)
    weights = (spoiled == y).astype(float)
    clf = ML3Classifier(4, max_iter=10, random_state=0, standardize=False).fit(
        X, spoiled, sample_weight=weights
    )
    kept = ML3Classifier(4, max_iter=10, random_state=0, standardize=False).fit(
        X[weights > 0], y[weights > 0]
    )
    np.testing.assert_array_equal(clf.local_coef_, kept.local_coef_)


def test_scaled_weights_change_nothing(iris):
    X, y = iris
    fits = [
        ML3Classifier(3, max_iter=5, random_state=0, standardize=False).fit(
            X, y, sample_weight=np.full(150, w)
        )
        for w in (1.0, 1024.0)
    ]
    np.testing.assert_allclose(fits[0].local_coef_, fits[1].local_coef_, rtol=1e-12)


def test_class_weight(binary):
    X, y = make_classification(400, 4, weights=[0.85], flip_y=0.15, random_state=0)
    recall = {}
    for weight in (None, "balanced", {0: 1, 1: 6}):
        clf = ML3Classifier(
            2, alpha=0.05, class_weight=weight, random_state=0, standardize=False
        ).fit(X, y)
        recall[str(weight)] = clf.predict(X)[y == 1].mean()
    assert recall["balanced"] > recall["None"] + 0.1
    assert recall[str({0: 1, 1: 6})] > recall["None"] + 0.1


def test_objective_falls_and_is_the_stated_one(digits):
    X, _, y, _ = digits
    clf = ML3Classifier(
        8, alpha=1e-3, metric=None, max_iter=40, average=0, random_state=0, standardize=False
    )
    clf.fit(X, y)
    assert clf.objective_[-1] < 0.5 * clf.objective_[0]
    scores = clf.decision_function(X)
    right = scores[np.arange(len(y)), y]
    scores[np.arange(len(y)), y] = -np.inf
    loss = np.maximum(0, 1 - right + scores.max(axis=1)).mean()
    square = np.sum(clf.local_coef_**2) + np.sum(clf.local_intercept_**2)
    # objective_ is gathered while the weights still move
    assert clf.objective_[-1] == pytest.approx(loss + 0.5e-3 * square, rel=0.1)


def test_tol_stops_and_then_averages(iris):
    X, y = iris
    clf = ML3Classifier(
        3, tol=0.5, n_iter_no_change=2, average=3, random_state=0, standardize=False
    ).fit(X, y)
    alone = ML3Classifier(
        3, tol=0.5, n_iter_no_change=2, average=0, random_state=0, standardize=False
    ).fit(X, y)
    best, waited, stop = np.inf, 0, 0
    for value in alone.objective_:
        waited = 0 if value < best - 0.5 else waited + 1
        best, stop = min(best, value), stop + 1
        if waited == 2:
            break
    assert alone.n_iter_ == stop < alone.max_iter
    assert clf.n_iter_ == alone.n_iter_ + 3


def test_early_stopping_watches_held_out_accuracy(digits):
    X, X_test, y, y_test = digits
    clf = ML3Classifier(
        early_stopping=True, tol=1e-3, max_iter=200, random_state=0, standardize=False
    ).fit(X, y)
    assert len(clf.validation_scores_) == clf.n_iter_ < 200
    assert max(clf.validation_scores_) > 0.95
    assert clf.score(X_test, y_test) > 0.95


def test_warm_start_goes_on(digits):
    X, _, y, _ = digits
    clf = ML3Classifier(
        8, max_iter=10, average=0, warm_start=True, random_state=0, standardize=False
    ).fit(X, y)
    first, t = clf.objective_, clf.t_
    clf.fit(X, y)
    assert clf.objective_[0] < first[0] / 2
    assert clf.objective_[-1] < first[-1]
    assert clf.t_ == t + 10 * len(y)
    with pytest.raises(ValueError, match="warm_start"):
        clf.fit(X, y % 3)
    with pytest.raises(ValueError, match="n_models=9 differs from the 8"):
        clf.set_params(n_models=9).fit(X, y)


@pytest.mark.slow
def test_huge_weights_in_float32(iris):
    X, y = iris
    fits = [
        ML3Classifier(3, max_iter=5, random_state=0, standardize=False).fit(
            X.astype(np.float32), y, np.full(150, w)
        )
        for w in (1.0, 1e100)
    ]
    np.testing.assert_allclose(fits[0].local_coef_, fits[1].local_coef_, rtol=1e-5)


def test_kmeans_start(digits):
    X, X_test, y, y_test = digits
    for a, b in ((X, X_test), (sparse.csr_matrix(X), X_test)):
        clf = ML3Classifier(8, init="kmeans", max_iter=20, random_state=0, standardize=False).fit(
            a, y
        )
        assert clf.score(b, y_test) > 0.95
    tiny = ML3Classifier(30, init="kmeans", max_iter=5, random_state=0, standardize=False).fit(
        X[:12], y[:12] % 2
    )
    assert tiny.local_coef_.shape == (2, 30, 64)
    repeated = np.repeat(X[:3], 4, axis=0)  # fewer distinct rows than models, without a warning
    few = ML3Classifier(6, init="kmeans", max_iter=5, random_state=0, standardize=False)
    few.fit(repeated, np.repeat([0, 1, 1], 4))
    assert few.local_coef_.shape == (2, 6, 64)


def test_logistic_loss(digits):
    X, X_test, y, y_test = digits
    clf = ML3Classifier(8, loss="logistic", max_iter=30, random_state=0, standardize=False).fit(
        X, y
    )
    assert clf.score(X_test, y_test) > 0.95


def test_unpenalised_intercept():
    X, y = make_classification(
        300, 3, n_informative=2, n_redundant=0, weights=[0.9], random_state=0
    )
    strong = {"alpha": 30.0, "max_iter": 50, "random_state": 0}
    free = ML3Classifier(1, penalize_intercept=False, **strong, standardize=False).fit(X, y)
    tied = ML3Classifier(1, **strong, standardize=False).fit(X, y)
    assert np.abs(free.local_intercept_).max() > 5 * np.abs(tied.local_intercept_).max()


def test_verbose_prints_each_iteration(iris, capsys):
    ML3Classifier(2, max_iter=3, verbose=1, random_state=0, standardize=False).fit(*iris)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("ML3Classifier: iteration 1/3, objective ")


def test_small_data_has_small_batches():
    X, y = make_xor(320, std=0.4, random_state=0)
    X_test, y_test = make_xor(2000, std=0.4, random_state=1)
    auto = ML3Classifier(10, alpha="scale", metric=None, random_state=0, standardize=False).fit(
        X, y
    )
    three = ML3Classifier(
        10, alpha="scale", metric=None, batch_size=3, random_state=0, standardize=False
    ).fit(X, y)
    np.testing.assert_array_equal(auto.local_coef_, three.local_coef_)
    assert auto.score(X_test, y_test) > 0.97


def test_works_in_pipelines_searches_and_pickles(iris):
    X, y = iris
    pipe = make_pipeline(
        StandardScaler(), ML3Classifier(max_iter=5, random_state=0, standardize=False)
    )
    search = GridSearchCV(pipe, {"ml3classifier__n_models": [2, 4]}, cv=3).fit(X, y)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    assert cross_val_score(clone(pipe), X, y, cv=3).mean() > 0.85


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_tiny_data(kind):
    clf = ML3Classifier(max_iter=3, random_state=0, standardize=False).fit(
        kind([[0.0], [1.0]]), ["a", "b"]
    )
    assert clf.predict(kind([[0.0]])).shape == (1,)


def test_no_warnings_on_ordinary_data(digits):
    X, _, y, _ = digits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ML3Classifier(4, random_state=0, standardize=False).fit(X, y)


BAD_VALUES = {
    "n_models": [0, 2.5],
    "p": [0.9, float("nan"), "2"],
    "alpha": [0, -1.0, np.inf, "best"],
    "loss": ["ramp", "squared_hinge"],
    "init": ["zeros"],
    "max_iter": [0],
    "batch_size": [0, 1.5, "all"],
    "average": [-1, True],
    "eta0": [0],
    "s0": [0, np.inf],
    "tol": [-1],
    "n_iter_no_change": [0],
    "validation_fraction": [1.0],
    "early_stopping": ["yes"],
    "warm_start": [1],
    "revive": [None],
    "penalize_intercept": [2],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_VALUES.items() for value in values]
)
def test_bad_parameters_are_named(iris, name, value):
    with pytest.raises((TypeError, ValueError), match=rf"{name}={value!r}"):
        ML3Classifier(**{name: value}, standardize=False).fit(*iris)


def bad(change):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    return change(X.copy(), y)


def put(value):
    def change(X, y):
        X[3, 1] = value
        return X, y

    return change


BAD_DATA = [
    (put(np.nan), "contains NaN"),
    (put(np.inf), "infinity"),
    (lambda X, y: (X[:, 0], y), "Expected 2D array"),
    (lambda X, y: (X, np.zeros(20)), "y has one class only"),
    (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    (lambda X, y: (X + 1j, y), "Complex data not supported"),
    (lambda X, y: (np.full((20, 3), "word", dtype=object), y), "could not convert string to float"),
    (lambda X, y: (X * 1e30, y), "Scale the features"),
    (lambda X, y: ((X * 1e30).astype(np.float32), y), "Scale the features"),
    (lambda X, y: (X, np.linspace(0, 1, 20)), "Unknown label type"),
    (lambda X, y: (X[:0], y[:0]), "0 sample"),
    (lambda X, y: (X[:, :0], y), "0 feature"),
]


@pytest.mark.parametrize(("change", "message"), BAD_DATA)
def test_bad_data_is_refused_with_its_cure(change, message):
    X, y = bad(change)
    with pytest.raises(ValueError, match=message):
        ML3Classifier(2, max_iter=2, standardize=False).fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(20), "negative"),
        (np.zeros(20), "zero for every row"),
        (np.full(20, np.nan), "NaN"),
        (np.ones(5), "one weight for each"),
        (np.ones((20, 2)), "one weight for each"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    X, y = bad(lambda X, y: (X, y))
    with pytest.raises(ValueError, match=message):
        ML3Classifier(2, max_iter=2, standardize=False).fit(X, y, sample_weight=weights)


def test_wrong_width_and_unfitted(iris):
    X, y = iris
    with pytest.raises(NotFittedError, match="not fitted"):
        ML3Classifier(standardize=False).predict(X)
    clf = ML3Classifier(2, max_iter=2, random_state=0, standardize=False).fit(X, y)
    for method in (clf.predict, clf.decision_function, clf.local_weights, clf.local_model):
        with pytest.raises(ValueError, match="X has 3 features, but ML3Classifier is expecting 4"):
            method(X[:, :3])


def test_overflow_never_leaves_nan_weights():
    # Under the limit on X, with weights of 1e300 on one row of either class.
    X, y = bad(lambda X, y: (X * 1e12, y))
    weights = np.where(np.arange(20) // 2 == 1, 1e300, 1.0)
    clf = ML3Classifier(2, max_iter=5, alpha=1e-300, eta0=np.inf, random_state=0, standardize=False)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="Training overflowed"):
        clf.fit(X, y, sample_weight=weights)
    assert not hasattr(clf, "local_coef_")
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_held_out_split_that_cannot_be_made(iris):
    X, y = iris
    with pytest.raises(ValueError, match="early_stopping=True cannot hold out"):
        ML3Classifier(early_stopping=True, standardize=False).fit(X[[0, 1, 70]], y[[0, 1, 70]])
