"""The metric that is learned from gradients: its products, the way back, and when it is taken."""

import re
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import sqrtm
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import loclin.io
from loclin import LLSVMClassifier, ML3Classifier, SAPLClassifier
from loclin.codings import OrthogonalCoding, SoftAssignmentCoding
from loclin.fitting import mapped, metric
from loclin.fitting.mapped import LinearMap

pytestmark = pytest.mark.usefixtures("told_by_its_own_rows")

FEW = {"alpha": "scale", "max_iter": 12, "random_state": 0}
PLAIN = FEW | {"metric": None, "standardize": False}
MODELS = {
    "ml3": ML3Classifier(3, **PLAIN),
    "sapl": SAPLClassifier(12, 4, **PLAIN),
    "sapl own": SAPLClassifier(6, 3, share_anchors=False, bandwidth="learned", **PLAIN),
    "llsvm": LLSVMClassifier(**PLAIN),
    "llsvm planes": LLSVMClassifier(OrthogonalCoding(3, random_state=0), **PLAIN),
    "llsvm dual": LLSVMClassifier(SoftAssignmentCoding(8, 3), solver="dual_cd", alpha="scale",
                                  metric=None, random_state=0, standardize=False),
}  # fmt: skip
N, D = 150, 6


def problem(n_classes=3, n=N, d=D, seed=0):
    """Classes on curves in the first two features; a third of the entries are zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[rng.random(X.shape) < 0.3] = 0.0
    y = np.floor(n_classes * (0.5 + 0.49 * np.sin(2 * X[:, 0] + X[:, 1] ** 2))).astype(int)
    return X, np.array(["a", "b", "c"])[y]


def products_at(model, X, weights, *, whole):
    """Products of the gradients at these rows, by the codes' moments."""
    moments = metric.code_moments(model._codes(X), weights)
    return metric.gradient_products(moments, model.local_coef_, whole=whole)


def plain_products(gradients, weights):
    """Mean outer products of gradients (n, c, d), those of each row less their mean."""
    total = 0.0
    for g, weight in zip(gradients, weights, strict=True):
        for of_class in g - g.mean(axis=0) if len(g) > 1 else g:
            total += weight * np.outer(of_class, of_class)
    return total / weights.sum()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", ["ml3", "llsvm dual", "llsvm planes"])
def test_products_row_by_row_are_those_of_the_moments(name, whole, monkeypatch):
    X, y = problem()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = clone(MODELS[name]).fit(X, y)
    codes = model._codes(X)
    codes = codes.toarray() if sparse.issparse(codes) else codes
    found = metric.products_by_row(codes, weights, model.local_coef_, whole=whole)
    expected = products_at(model, X, weights, whole=whole)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_products_are_those_of_finite_differences_of_the_scores(n_classes):
    """ML3's code maximises, so that its slope counts for nothing: the envelope theorem."""
    X, y = problem(n_classes)
    X, y, weights = X[:40], y[:40], np.random.default_rng(1).uniform(1, 3, 40)
    model = clone(MODELS["ml3"]).fit(X, y)
    gradients = np.empty((len(X), n_classes, D))
    for f in range(D):
        up, down = X.copy(), X.copy()
        up[:, f] += 1e-6
        down[:, f] -= 1e-6
        gradients[:, :, f] = (model._class_scores(up) - model._class_scores(down)) / 2e-6
    expected = plain_products(gradients, weights)
    found = products_at(model, X, weights, whole=True)
    np.testing.assert_allclose(found, expected, atol=1e-6 * expected.max())
    found = products_at(model, X, weights, whole=False)
    np.testing.assert_allclose(found, np.diag(expected), atol=1e-6 * expected.max())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["sapl", "sapl own", "llsvm planes"])
def test_products_are_those_of_the_models_that_act(name, n_classes):
    X, y = problem(n_classes)
    weights = np.random.default_rng(1).uniform(1, 3, N)
    model = clone(MODELS[name]).fit(X, y)
    gradients = model.local_model(X)[0]
    gradients = gradients.reshape(N, -1, D)
    expected = plain_products(gradients, weights)
    for whole, wanted in ((True, expected), (False, np.diag(expected))):
        found = products_at(model, X, weights, whole=whole)
        if n_classes == 2 and len(model.local_coef_) == 2:  # of two scorers half the difference
            found = 2 * found
        np.testing.assert_allclose(found, wanted, atol=1e-12 * expected.max())


def test_root_is_that_of_the_metric_and_keeps_the_norm():
    rng = np.random.default_rng(0)
    A, X = rng.standard_normal((D, D)), rng.standard_normal((50, D))
    products = A @ A.T
    root = metric.root_of(products, X)
    power = np.real(sqrtm(sqrtm(products)))
    np.testing.assert_allclose(root, power * root[0, 0] / power[0, 0], atol=1e-10)
    assert np.mean((X @ root) ** 2) == pytest.approx(np.mean(X**2))
    weights = metric.root_of(np.diag(products), X)
    np.testing.assert_allclose(weights / weights[0], (np.diag(products) / products[0, 0]) ** 0.25)
    for nothing in (0.0, np.nan, np.inf):
        assert metric.root_of(np.full(D, nothing), X) is None
        assert metric.root_of(np.full((D, D), nothing), X) is None


@pytest.mark.parametrize(
    "model",
    [ML3Classifier(standardize=False), SAPLClassifier(30, standardize=False)],
    ids=["ml3", "sapl"],
)
def test_a_rank_finds_the_few_directions_that_tell(model):
    """Labels depend on two directions of twenty, none of them a feature, and not linearly."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 20))
    directions = np.linalg.qr(rng.standard_normal((20, 2)))[0]
    u, v = (X @ directions).T
    y = np.sin(2 * u) > 0.8 * v
    errors = {}
    for rank in (None, 2):
        fitted = clone(model).set_params(metric=rank, random_state=0).fit(X[:2000], y[:2000])
        errors[rank] = np.mean(fitted.predict(X[2000:]) != y[2000:])
    assert errors[2] < 0.6 * errors[None]
    values, vectors = np.linalg.eigh(fitted.metric_)
    assert values[-3] < 1e-3 * values[-2]
    assert np.linalg.svd(directions.T @ vectors[:, -2:])[1].min() > 0.9
    coef, intercept = fitted.local_model(X)
    scores = np.einsum("nd,nd->n", coef, X) + intercept
    np.testing.assert_allclose(scores, fitted.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("rank", [1, 3, D, 99])
def test_a_rank_is_the_number_of_directions_that_count(rank):
    X, y = problem()
    values = np.linalg.eigvalsh(clone(MODELS["ml3"]).set_params(metric=rank).fit(X, y).metric_)
    assert np.count_nonzero(values > 1.01e-4 * values.max()) == min(rank, D)


@pytest.mark.parametrize(
    ("metric", "error"), [(0, ValueError), (True, TypeError), (1.5, ValueError)]
)
def test_ranks_that_are_none(metric, error):
    X, y = problem()
    with pytest.raises(error, match="metric"):
        clone(MODELS["ml3"]).set_params(metric=metric).fit(X, y)


@pytest.mark.parametrize("multiplier", [1.0, 0.5])
@pytest.mark.parametrize("whole", [True, False])
def test_what_is_learned_comes_back_and_goes_there(whole, multiplier):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((D, D))
    change = mapped.LinearMap(multiplier, A @ A.T if whole else np.abs(A[0]) + 0.1)
    X, coef, anchors = rng.standard_normal((9, D)), A[None, :3], A[3:]
    seen = change.of_matrix(X)
    np.testing.assert_allclose(seen @ coef[0].T, X @ change.back(coef, 1)[0].T)
    np.testing.assert_allclose(change.of_matrix(change.back(anchors, -1)), anchors)
    for power, value in ((1, coef), (-1, anchors), (2, 3.0)):
        np.testing.assert_allclose(change.of_field(change.back(value, power), power), value)


@pytest.mark.parametrize(
    ("kind", "form", "dtype"),
    [
        pytest.param("diagonal", np.asarray, np.float64, id="diagonal, dense"),
        pytest.param("diagonal", sparse.csr_matrix, np.float64, id="diagonal, sparse"),
        pytest.param("full", np.asarray, np.float64, id="full, dense"),
        pytest.param(
            "diagonal", np.asarray, np.float32, id="dense, single", marks=pytest.mark.slow
        ),
        pytest.param(
            "full", np.asarray, np.float32, id="full, dense, single", marks=pytest.mark.slow
        ),
        pytest.param(
            "diagonal", sparse.csr_matrix, np.float32, id="sparse, single", marks=pytest.mark.slow
        ),
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_a_metric_is_a_fit_to_rows_transformed(name, kind, form, dtype):
    X, y = problem()
    X = X.astype(dtype)
    model = clone(MODELS[name]).set_params(metric=kind).fit(form(X), y)
    weights = model.feature_weights_
    root = np.real(sqrtm(model.metric_)) if kind == "full" else np.diag(weights)
    assert (np.diag(root @ root) > 0).all()
    transformed = form((X @ root).astype(dtype))
    plain = clone(MODELS[name]).fit(transformed, y)
    exact = dtype == np.float64
    scale = np.abs(plain.decision_function(transformed)).max()
    difference = plain.decision_function(transformed) - model.decision_function(form(X))
    assert np.abs(difference).max() < (1e-6 if exact else 0.2) * scale
    coef, intercept = model.local_model(form(X))
    scores = np.einsum("ncd,nd->nc", coef, X) + intercept
    np.testing.assert_allclose(
        scores, model.decision_function(form(X)), atol=(1e-12 if exact else 1e-5) * scale
    )
    assert model.decision_function(form(X)).dtype == dtype
    if hasattr(model, "anchors_") and exact:
        np.testing.assert_allclose(model.anchors_ @ root, plain.anchors_, atol=1e-6)


def test_given_anchors_are_in_the_units_of_the_rows():
    X, y = problem()
    anchors = X[:12]
    for kind in ("diagonal", "full"):
        model = SAPLClassifier(
            12, 4, anchors=anchors, anchor_lr=0.0, metric=kind, **FEW, standardize=False
        ).fit(X, y)
        np.testing.assert_allclose(model.anchors_, anchors, atol=1e-10)
        coding = SoftAssignmentCoding(anchors=anchors, n_neighbors=4)
        other = LLSVMClassifier(coding, metric=kind, **FEW, standardize=False).fit(X, y)
        root = np.real(sqrtm(other.metric_)) if kind == "full" else np.diag(other.feature_weights_)
        np.testing.assert_allclose(other.coding_.anchors_, anchors @ root, atol=1e-10)


@pytest.fixture(scope="module")
def relevant():
    """Two features whose product tells the class, one that tells it alone, and thirty of noise."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1200, 33))
    return X, (X[:, 0] * X[:, 1] + 0.7 * X[:, 2] > 0).astype(int)


@pytest.mark.parametrize("kind", ["auto", "diagonal"])
@pytest.mark.parametrize("name", ["ml3", "sapl", "llsvm"])
def test_relevant_features_are_found(name, kind, relevant):
    X, y = relevant
    half = slice(None, 600)
    cls = type(MODELS[name])
    options = {"alpha": "scale", "pieces": None, "random_state": 0}
    plain = cls(metric=None, **options).fit(X[half], y[half])
    model = cls(metric=kind, **options).fit(X[half], y[half])
    weights = model.feature_weights_
    assert set(np.argsort(weights)[-3:]) == {0, 1, 2}
    assert weights[:3].min() > 1.3 * weights[3:].max()
    assert 1 - model.score(X[600:], y[600:]) < 0.85 * (1 - plain.score(X[600:], y[600:]))


@pytest.mark.parametrize("name", MODELS)
def test_a_metric_that_does_not_win_is_not_taken(name, monkeypatch):
    monkeypatch.setattr(metric, "held_out_loss", lambda *_: 1.0)
    X, y = problem()
    plain = clone(MODELS[name]).fit(X, y)
    # the default coding gets its seed from the generator, whatever metric has been tried
    model = clone(MODELS[name]).set_params(metric="auto").fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(model.feature_weights_, np.ones(D))


def test_few_rows_and_rare_classes_leave_the_plain_metric():
    X, y = problem()
    rare = np.append(y[:-2], ["rare", "rare"])
    for rows, labels in ((X[:40], y[:40]), (X, rare)):
        model = ML3Classifier(2, metric="auto", **FEW, standardize=False).fit(rows, labels)
        np.testing.assert_array_equal(model.feature_weights_, np.ones(D))


def test_many_rows_leave_the_plain_metric(monkeypatch, relevant):
    X, y = relevant
    model = ML3Classifier(2, **FEW, standardize=False)
    assert model.fit(X, y).feature_weights_.max() > 1.2
    monkeypatch.setattr(metric, "MOST_CHOSEN_FOR", len(y) - 1)
    np.testing.assert_array_equal(model.fit(X, y).feature_weights_, np.ones(X.shape[1]))
    fixed = LLSVMClassifier(
        **FEW, standardize=False
    )  # anchors that stay where they are see noise in all rows
    assert fixed.fit(X, y).feature_weights_.max() > 1.2


def test_features_that_tell_nothing_and_constant_models():
    X, y = problem()
    X[:, 3] = 0.0
    weights = (
        ML3Classifier(2, metric="diagonal", **FEW, standardize=False).fit(X, y).feature_weights_
    )
    assert 0 < weights[3] < 0.05 * weights.max()
    model = SAPLClassifier(
        6, 3, weights="constant", metric="diagonal", **FEW, standardize=False
    ).fit(X, y)
    np.testing.assert_array_equal(model.feature_weights_, np.ones(D))


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "llsvm dual"])
def test_files_warm_starts_and_streams_keep_the_metric(name, kind, tmp_path):
    X, y = problem()
    model = clone(MODELS[name]).set_params(metric=kind, warm_start=True).fit(X, y)
    weights, said = model.feature_weights_, model.decision_function(X)
    loclin.io.save(model, tmp_path / "model.loclin")
    again = loclin.io.load(tmp_path / "model.loclin")
    np.testing.assert_array_equal(again.decision_function(X), said)
    for one in (model, again):
        one.partial_fit(X[:50], y[:50])
        np.testing.assert_array_equal(one.feature_weights_, weights)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    loclin.io.save(model, tmp_path / "stream.loclin")
    again = loclin.io.load(tmp_path / "stream.loclin").partial_fit(X[50:], y[50:])
    model.partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    before = model.objective_[-1]
    assert model.fit(X, y).objective_[0] < 2 * max(before, 0.3)
    np.testing.assert_array_equal(model.feature_weights_, weights)


def test_a_metric_is_of_one_fit():
    X, y = problem()
    model = ML3Classifier(2, metric="full", **FEW, standardize=False).fit(X, y)
    assert model.metric_.shape == (D, D)
    model.set_params(metric=None).fit(X, y)
    assert not {"metric_", "feature_weights_"} & set(vars(model))
    plain = ML3Classifier(2, **PLAIN).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("value", ["diag", 2.0, np.eye(2)])
def test_bad_metric(value):
    with pytest.raises((TypeError, ValueError), match=r"(?s)metric=.* is not valid; use one of"):
        ML3Classifier(metric=value, standardize=False).fit(*problem())


def test_what_a_metric_cannot_be():
    X, y = problem()
    with pytest.raises(ValueError, match="metric='full' would make sparse rows dense"):
        ML3Classifier(metric="full", standardize=False).fit(sparse.csr_matrix(X), y)
    with pytest.raises(ValueError, match="metric='full' takes at most 2000 features"):
        ML3Classifier(metric="full", standardize=False).fit(np.hstack([X] * 400), y)
    wide = ML3Classifier(metric="auto", **FEW, standardize=False).fit(np.hstack([X] * 400), y)
    np.testing.assert_array_equal(wide.feature_weights_, np.ones(400 * D))
    frozen = FrozenEstimator(SoftAssignmentCoding(6, 3).fit(X))
    with pytest.raises(ValueError, match=re.escape("needs a coding that is fitted in the metric")):
        LLSVMClassifier(frozen, metric="diagonal", standardize=False).fit(X, y)
    model = LLSVMClassifier(frozen, metric="auto", **FEW, standardize=False).fit(X, y)
    np.testing.assert_array_equal(model.feature_weights_, np.ones(D))


@pytest.mark.parametrize("kind", ["diagonal", "full", "auto"])
def test_a_stream_takes_the_metric_of_its_first_rows(kind):
    X, y = problem(n=300)
    plain = SAPLClassifier(8, 3, metric=None, random_state=0, standardize=False)
    model = clone(plain).set_params(metric=kind)
    plain.partial_fit(X[:100], y[:100], np.unique(y)).partial_fit(X[100:], y[100:])
    model.partial_fit(X[:100], y[:100], np.unique(y))
    if kind == "auto":
        assert not hasattr(model, "feature_weights_")
    else:
        weights = model.feature_weights_
        model.partial_fit(X[100:], y[100:])
        np.testing.assert_array_equal(model.feature_weights_, weights)
        assert model.score(X, y) > plain.score(X, y)
    coef, intercept = model.local_model(X)
    scores = np.einsum("ncd,nd->nc", coef, X) + intercept
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-10)


MOVING = ["ml3", "sapl", "sapl own"]
CHUNKS = [slice(0, 60), slice(60, 100), slice(100, 110), slice(110, 200), slice(200, 300)]


def streamed(model, X, y, chunks):
    for chunk in chunks:
        model.partial_fit(X[chunk], y[chunk], np.unique(y))
    return model


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, id=f"{name}-{kind}", marks=marks)
        for name in [*MOVING, "sapl constant"]
        for kind, form, marks in (
            ("dense", np.asarray, []),
            ("sparse", sparse.csr_matrix, pytest.mark.slow),
        )
    ],
)
def test_a_stream_is_the_same_model_in_any_metric(name, form):
    X, y = problem(n=300)
    X = form(X)
    start = MODELS["sapl" if name == "sapl constant" else name]
    model = clone(start).set_params(metric="diagonal")
    if name == "sapl constant":
        model.set_params(weights="constant")
    streamed(model, X, y, [slice(0, 200), slice(200, 260)])
    before = model._stream.result()
    root = np.random.default_rng(0).uniform(0.5, 2, (D, D))
    moved, there_and_back = deepcopy(model), deepcopy(model)
    whole = np.eye(D) + root @ root.T / D  # well-conditioned: what is compared is exact to rounding
    for other in [root[0]] if sparse.issparse(X) else [root[0], whole]:
        moved._stream.move(LinearMap(model._multiplier, other))
        after = moved._stream.result()
        for field in after.units:
            np.testing.assert_allclose(getattr(after, field), getattr(before, field), atol=1e-10)
    there_and_back._stream.move(LinearMap(model._multiplier, root[0]))
    there_and_back._stream.move(LinearMap(model._multiplier, model._root))
    for one in (model, moved, there_and_back):
        streamed(one, X, y, [slice(260, 300)])  # the metric does not move by itself
    said = model.decision_function(X)
    np.testing.assert_allclose(there_and_back.decision_function(X), said, atol=1e-8)
    assert name == "sapl constant" or not np.allclose(moved.decision_function(X), said)


@pytest.mark.parametrize("kind", ["diagonal", "full", 2])
@pytest.mark.parametrize("name", MOVING)
def test_the_metric_of_a_stream_follows_its_gradients_as_its_rows_double(name, kind):
    X, y = problem(n=300)
    model = clone(MODELS[name]).set_params(metric=kind)
    moments, n_averaged, moved = 0.0, 0, []
    for chunk in CHUNKS:
        rows, labels = X[chunk], y[chunk]
        weights, expected = getattr(model, "feature_weights_", None), None
        if weights is not None:
            codes = model.local_weights(rows)
            codes = codes.toarray() if sparse.issparse(codes) else codes.reshape(len(rows), -1)
            share = 4 * len(rows) / (4 * len(rows) + n_averaged) if n_averaged else 1.0
            moments = (1 - share) * moments + share * codes.T @ codes / len(rows)
            n_averaged += len(rows)
            whole = kind != "diagonal"
            products = metric.gradient_products(moments, model.local_coef_, whole=whole)
            root = metric.root_of(products, rows, kind if kind == 2 else None)
            expected = root if root.ndim == 1 else np.sqrt(np.diag(root @ root))
        model.partial_fit(rows, labels, np.unique(y))
        moved.append(weights is not None and not np.array_equal(weights, model.feature_weights_))
        if moved[-1]:
            np.testing.assert_allclose(model.feature_weights_, expected)
    assert moved == [False, False, False, False, True]  # 60 rows to begin with, 200 before the last


@pytest.mark.parametrize(
    "model",
    [ML3Classifier(standardize=False), SAPLClassifier(30, standardize=False)],
    ids=["ml3", "sapl"],
)
def test_few_first_rows_do_not_settle_the_metric(model, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 20))
    y = np.sin(2 * X[:, 0]) > X[:, 1]
    chunks = [slice(start, start + 50) for start in range(0, 4000, 50)]
    moving = clone(model).set_params(metric="diagonal", random_state=0)
    still = clone(moving)
    streamed(moving, X, y, chunks)
    monkeypatch.setattr(type(model)._recipe_type, "learns_codes", False)
    streamed(still, X, y, chunks)
    errors = [np.mean(one.predict(X[4000:]) != y[4000:]) for one in (moving, still)]
    assert errors[0] < 0.9 * errors[1]
    assert moving.feature_weights_[:2].min() > 3 * moving.feature_weights_[2:].max()


def test_the_codings_of_llsvm_stay_in_the_metric_of_the_first_rows():
    X, y = problem(n=300)
    model = clone(MODELS["llsvm"]).set_params(metric="diagonal")
    weights = streamed(model, X, y, CHUNKS[:1]).feature_weights_
    np.testing.assert_array_equal(streamed(model, X, y, CHUNKS[1:]).feature_weights_, weights)


@pytest.mark.parametrize("name", MOVING)
def test_files_keep_where_a_moving_metric_is(name, tmp_path):
    X, y = problem(n=300)
    model = streamed(clone(MODELS[name]).set_params(metric="diagonal"), X, y, CHUNKS[:4])
    loclin.io.save(model, tmp_path / "stream.loclin")
    again = loclin.io.load(tmp_path / "stream.loclin")
    for one in (model, again):
        weights = one.feature_weights_
        streamed(one, X, y, CHUNKS[4:])
        assert not np.array_equal(one.feature_weights_, weights)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_small_features_have_the_same_metric():
    X, y = problem()
    models = [
        SAPLClassifier(8, 3, metric="full", **FEW, standardize=False).fit(X * scale, y)
        for scale in (2.0**-6, 2.0**-30)
    ]
    np.testing.assert_allclose(models[0].metric_, models[1].metric_)
    np.testing.assert_array_equal(
        models[0].decision_function(X * 2.0**-6), models[1].decision_function(X * 2.0**-30)
    )
