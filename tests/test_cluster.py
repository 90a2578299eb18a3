"""Rows in parts: what each does with them, and that rounds over them learn as one fit does."""

from copy import deepcopy
from dataclasses import replace
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import loclin
import loclin.cluster
import loclin.io
from loclin.cluster import plan, rounds
from loclin.cluster.parts import Counts, Learned, Round, Sample, count, draw, learn
from loclin.engine.procedure import Part
from tests.test_callbacks import Recorder

each = pytest.mark.parametrize
N = 3000
SHORT = {"random_state": 0, "alpha": "scale"}
PLAIN = SHORT | {"metric": None, "pieces": None}
MODELS = {
    "ml3": loclin.ML3Classifier(4, **PLAIN),
    "llsvm": loclin.LLSVMClassifier(solver="sgd", **PLAIN),
    "llsvm constant": loclin.LLSVMClassifier(weights="constant", solver="sgd", **PLAIN),
    "sapl": loclin.SAPLClassifier(20, **PLAIN),
    "sapl own": loclin.SAPLClassifier(10, share_anchors=False, **PLAIN),
    "sapl metric": loclin.SAPLClassifier(20, metric="diagonal", **SHORT),
    "ml3 pieces": loclin.ML3Classifier(4, pieces=3, **SHORT),
    "csvm": loclin.CSVMClassifier(8, **SHORT),
    "ldkl": loclin.LDKLClassifier(3, **SHORT),
    "lmkl": loclin.LMKLClassifier(6, solver="sgd", **SHORT),
    "ussvm": loclin.USSVMClassifier(8, beta="scale", random_state=0),
    "l3m": loclin.L3MClassifier(4, solver="online", **SHORT),
}
FAST = clone(MODELS["ml3"]).set_params(calibrate=False)


def sines(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = (np.sin(4 * X[:, 0]) > X[:, 1]).astype(int) + (X[:, 2] > 0.4)
    return X, y


X, Y = sines(N, 0)
NEW, LABELS = sines(4000, 1)


def in_parts(*arrays, n_parts=3):
    return [tuple(one[k::n_parts] for one in arrays) for k in range(n_parts)]


def in_turn(of_part, merge, parts, state):
    """Run one part after the other: the shortest executor."""
    return reduce(merge, [of_part(k, [part], state) for k, part in enumerate(parts)])


def fit(model, parts, **parameters):
    given = {"executor": in_turn, "rounds": 3, "sample_rows": 600} | parameters
    return loclin.cluster.fit(model, parts, **given)


def planned(parts, sample_rows=300):
    counts = in_turn(count, Counts.merge, parts, FAST)
    drawing = plan.planned(FAST, counts, sample_rows)
    return counts, drawing.view, drawing


def error(model):
    return np.mean(model.predict(NEW) != LABELS)


# What one part does.


def test_parts_are_counted():
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float)
    parts = in_parts(X, Y, weights)
    counts, view, _ = planned(parts)
    for number, (_, y, own) in enumerate(parts):
        of_part = counts.part == number
        for label in range(3):
            here = of_part & (counts.label == label)
            assert counts.n_rows[here] == np.count_nonzero((y == label) & (own > 0))
            assert counts.weight[here] == own[y == label].sum()
    np.testing.assert_allclose(view.by_class, 1 / weights[weights > 0].mean())
    assert list(counts.kinds) == [(4, None, False)]


@each("share", [0.0, 0.1, 0.37, 1.0, 7.0])
def test_of_each_class_a_share_is_drawn_to_a_row(share):
    rng = np.random.default_rng(0)
    n_rows = rng.integers(0, 30, (50, 6))
    n_rows[:, 0] = 0
    drawn = plan._drawn(n_rows, share, rng)
    assert (drawn >= 0).all()
    assert (drawn <= n_rows).all()
    assert (np.abs(drawn.sum(axis=0) - min(share, 1) * n_rows.sum(axis=0)) < 1).all()


def test_a_part_draws_rows_to_begin_with_and_rows_to_hold_out_and_learns_the_others():
    """Also where its rows come in blocks; and none is of two kinds."""
    parts = in_parts(X, Y)
    _, view, drawing = planned(parts)
    n_watched = 0
    for number, (of_part, labels) in enumerate(parts):
        blocks = [(of_part[:100], labels[:100]), (of_part[100:], labels[100:])]
        sample = draw(number, blocks, drawing)
        np.testing.assert_array_equal(np.bincount(sample.start.y), drawing.n_start[number])
        stream = Recording()
        learned = learn(number, blocks, round_of(view, stream, passes=2))
        first, again = map(rows_of, np.split(np.concatenate(stream.seen), 2))
        begun, held_out = rows_of(sample.start.X), rows_of(sample.watched.X)
        assert first == again == rows_of(of_part) - held_out
        assert learned.n_rows == len(first)
        assert begun < first
        n_watched += len(held_out)
    assert n_watched == pytest.approx(0.05 * N, rel=0.3)


class Recording:
    """A stream that notes the rows it is to learn, and whose copies do it there too."""

    def __init__(self):
        self.seen = []

    def __deepcopy__(self, memo):
        return self

    def learn(self, rows, alpha, batch_size):
        self.seen.append(rows.X)
        return 1.0


def rows_of(matrix):
    return {tuple(row) for row in matrix}


def round_of(view, stream, **changes):
    features = loclin.fitting.features.PLAIN
    return replace(Round(0, view, features, stream, None, 16, 1, None), **changes)


def test_blocks_may_be_held_out_whole():
    names = np.array(["low", "middle", "high"])[Y]
    blocks = [(X[k : k + 1], names[k : k + 1]) for k in range(200)]

    def in_one(of_part, merge, parts, state):
        return of_part(0, parts, state)

    found = fit(FAST, blocks, executor=in_one, rounds=20)
    assert np.mean(found.predict(X) != names) < 0.4
    assert found.t_ == pytest.approx(found.n_iter_ * 2 * 0.95 * 200, rel=0.05)


def test_rows_held_out_are_the_same_where_a_block_is_lost():
    _, view, _ = planned(in_parts(X, Y))
    blocks = in_parts(X, Y)
    _, *others = view.split(5, blocks)
    without = view.split(5, [(np.empty((0, 0)), np.empty(0)), *blocks[1:]])
    for (rows, *places), (expected, *expected_places) in zip(without, others, strict=True):
        np.testing.assert_array_equal(rows.X, expected.X)
        for found, wanted in zip(places, expected_places, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_large_parts_draw_so_many_rows_of_a_pass_anew():
    parts = in_parts(X, Y)
    _, view, _ = planned(parts)
    stream = Recording()
    learned = learn(0, [parts[0]], round_of(view, stream, passes=3, most_rows=100))
    passes = [rows_of(rows) for rows in stream.seen]
    assert [len(rows) for rows in passes] == [100] * 3
    assert len(set.union(*passes)) > 200
    assert learned.objective == pytest.approx(learned.n_rows)


def test_what_parts_learned_is_merged_by_rows():
    stream = clone(FAST).partial_fit(X[:100], Y[:100], classes=[0, 1, 2])._stream
    one, other = (
        clone(FAST).partial_fit(X[:n], Y[:n], classes=[0, 1, 2])._stream for n in (200, 50)
    )
    both = Learned(one, 30, 3.0).merge(Learned(other, 10, 5.0))
    assert both[1:] == (40, 8.0)
    for part, a, b in zip(both.stream.state(), one.state(), other.state(), strict=True):
        np.testing.assert_allclose(part.value, 0.75 * a.value + 0.25 * b.value, rtol=1e-12)
    empty = Learned(stream, 0, 0.0)
    assert both.merge(empty) is both is empty.merge(both)
    assert empty.merge(empty).n_rows == 0


class Fixed:
    """A stream of two numbers, one of which is of linear models."""

    def __init__(self, coef, anchor):
        self.parts = Part("coef", np.array([coef])), Part("anchors", np.array([anchor]))

    def state(self):
        return self.parts


def test_linear_models_go_on_by_nesterovs_rule():
    velocity, at, v = {}, 1.0, 0.0
    stream = Fixed(at, 0.0)
    for target in (3.0, 2.0, 5.0):
        learned = 0.5 * (at + target)
        v = 0.5 * v + (learned - at)
        at = learned + 0.5 * v
        now = Fixed(learned, target)
        stream = rounds._hastened(stream, now, velocity)
        assert stream.state()[0].value == pytest.approx(at)
        assert stream.state()[1].value == target


# All of it.


@each("name", MODELS)
def test_parts_learn_what_one_machine_does(name):
    model = MODELS[name]
    alone = clone(model).fit(X, Y)
    found = fit(model, in_parts(X, Y), rounds=60, sample_rows=2000)
    assert error(found) < 1.3 * error(alone) + 0.02
    assert error(alone) < 0.4, "it has learned nothing: one class has half of the rows"
    name_of_strength = "beta_" if name == "ussvm" else "alpha_"
    strengths = [getattr(one, name_of_strength) for one in (found, alone)]
    assert strengths[0] == pytest.approx(strengths[1], rel=0.1)
    losses = [
        -np.log(one.predict_proba(NEW)[np.arange(len(LABELS)), LABELS]).mean()
        for one in (found, alone)
    ]
    assert losses[0] < 1.35 * losses[1]
    assert not hasattr(model, "classes_")
    assert found.get_params() == pytest.approx(model.get_params())
    assert len(found.objective_) == found.n_iter_ <= 60


def test_ussvm_ends_with_the_codes_of_problem_3_of_the_sample():
    model, parts = clone(MODELS["ussvm"]).set_params(tol=1e-8), in_parts(X, Y)
    found = fit(model, parts)
    counts = in_turn(count, Counts.merge, parts, model)
    start = in_turn(draw, Sample.merge, parts, plan.planned(model, counts, 600)).start
    found.set_params(beta=found.beta_)
    codes, intercept = found.fit_codes(start.X, start.y, sample_weight=start.weights)
    np.testing.assert_allclose(found.codes_.toarray(), codes.toarray(), atol=1e-9)
    np.testing.assert_allclose(found.intercept_, intercept, atol=1e-9)


@each("executor", ["threads", "processes"])
def test_executors_find_the_same(executor):
    parts = in_parts(X, Y)
    expected = fit(FAST, parts)
    found = fit(FAST, parts, executor=executor, n_jobs=2)
    np.testing.assert_array_equal(found.local_coef_, expected.local_coef_)


def test_means_of_all_rounds_err_less_than_one_mean():
    """One round of many passes is what rounds are for: models of a class are permuted."""
    once = fit(FAST, in_parts(X, Y), rounds=1, passes=2)
    often = fit(FAST, in_parts(X, Y), rounds=20, passes=2)
    assert error(often) < 0.9 * error(once)


def test_a_part_may_be_a_function_and_rows_frames_or_sparse():
    expected = fit(FAST, in_parts(X, Y))
    called = [lambda part=part: part for part in in_parts(X, Y)]
    np.testing.assert_array_equal(fit(FAST, called).local_coef_, expected.local_coef_)
    frame = pd.DataFrame(X, columns=list("abcd"))
    framed = fit(FAST, [(frame[k::3], pd.Series(Y)[k::3]) for k in range(3)])
    np.testing.assert_array_equal(framed.local_coef_, expected.local_coef_)
    assert framed.feature_names_in_.tolist() == list("abcd")
    assert np.mean(framed.predict(pd.DataFrame(NEW, columns=list("abcd"))) != LABELS) < 0.4
    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.3, X, 0.0))
    dense, thin = (
        fit(FAST.set_params(standardize=False), in_parts(kind, Y))
        for kind in (rows.toarray(), rows)
    )
    FAST.set_params(standardize=True)
    np.testing.assert_allclose(thin.local_coef_, dense.local_coef_, atol=1e-6)


def test_class_weights_are_sample_weights():
    weights = np.array([1.0, 3.0, 0.5])
    expected = fit(FAST, in_parts(X, Y, weights[Y]))
    by_class = clone(FAST).set_params(class_weight=dict(enumerate(weights)))
    found = fit(by_class, in_parts(X, Y))
    np.testing.assert_allclose(found.local_coef_, expected.local_coef_, rtol=1e-9)
    assert found.class_weight == by_class.class_weight
    balanced = fit(clone(FAST).set_params(class_weight="balanced"), in_parts(X, Y))
    same = fit(FAST, in_parts(X, Y, (1 / np.bincount(Y))[Y]))
    np.testing.assert_allclose(balanced.local_coef_, same.local_coef_, rtol=1e-9)


def test_a_class_may_be_in_one_part_and_parts_may_be_empty():
    names = np.array(["low", "middle", "high"])[Y]
    order = np.argsort(names, kind="stable")  # "high" first
    cut = np.count_nonzero(names == "high")
    mixed = np.random.default_rng(0).permutation(N - cut) + cut
    places = [order[: cut + 500], np.empty(0, int), order[mixed]]
    found = fit(FAST, [(X[one], names[one]) for one in places], rounds=20)
    assert found.classes_.tolist() == ["high", "low", "middle"]
    assert np.mean(found.predict(NEW) != np.array(["low", "middle", "high"])[LABELS]) < 0.3


def test_a_part_may_weigh_nothing():
    nothing = (X[:50], Y[:50], np.zeros(50))
    expected = fit(FAST, in_parts(X, Y))
    found = fit(FAST, [*in_parts(X, Y), nothing])
    np.testing.assert_array_equal(found.local_coef_, expected.local_coef_)
    ensemble = loclin.cluster.fit_members(FAST, [*in_parts(X, Y), nothing], executor=in_turn)
    assert len(ensemble.estimators) == 3


@each("dtype", ["M8[ns]", "M8[D]", np.int8])
def test_labels_are_of_their_type(dtype):
    labels = np.arange(3).astype(dtype)
    found, expected = (fit(FAST, in_parts(X, y)) for y in (labels[Y], Y))
    assert found.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(found.predict(NEW), labels[expected.predict(NEW)])


def test_rare_classes_are_in_the_sample():
    y = Y.copy()
    y[:3] = 7
    found = fit(FAST, in_parts(X, y), sample_rows=50)
    assert found.classes_.tolist() == [0, 1, 2, 7]


def test_what_is_wrong_with_a_block_is_said_with_its_name():
    parts = in_parts(X, Y)
    bad = X[1::3].copy()
    bad[5, 2] = np.nan
    with pytest.raises(ValueError, match="In part 1: Input X contains NaN"):
        fit(FAST, [parts[0], (bad, parts[1][1])])
    with pytest.raises(ValueError, match=r"In part 1: .*inconsistent numbers of samples"):
        fit(FAST, [parts[0], (X[:5], Y[:4])])
    with pytest.raises(ValueError, match=r"part 0 and part 1 do not .* columns: 4 and 3"):
        fit(FAST, [parts[0], (X[:, :3], Y)])
    wide = sparse.csr_matrix(X), sparse.csr_matrix(X[:, :2])
    with pytest.raises(ValueError, match="columns: 4 and 2"):
        fit(FAST, [(one, Y) for one in wide])
    with pytest.raises(ValueError, match="sparse rows: False and True"):
        fit(FAST, [parts[0], (sparse.csr_matrix(X), Y)])
    frames = [pd.DataFrame(X, columns=list(names)) for names in ("abcd", "abce")]
    with pytest.raises(ValueError, match="names of columns: 'd' and 'e'"):
        fit(FAST, [(one, Y) for one in frames])
    with pytest.raises(ValueError, match="names of columns: 'a' and None"):
        fit(FAST, [(frames[0], Y), (X, Y)])
    with pytest.raises(TypeError, match="mixes labels"):
        fit(FAST, [parts[0], (X[:9], list("aabbccaab"))])
    with pytest.raises(ValueError, match=r"In part 1: .*negative values"):
        fit(FAST, [parts[0], (X, Y, -np.ones(N))])
    with pytest.raises(ValueError, match="In part 0: Unknown label type"):
        fit(FAST, [(X, X[:, 0])])
    with pytest.raises(ValueError, match="rows of 1 classes"):
        fit(FAST, [(X, np.ones(N, int))] * 2)
    with pytest.raises(ValueError, match="no rows"):
        fit(FAST, [(X[:0], Y[:0])])
    with pytest.raises(ValueError, match="weights of 0"):
        fit(clone(FAST).set_params(class_weight={0: 0, 1: 1, 2: 1}), parts)
    with pytest.raises(ValueError, match=r"In part 0: .*inhomogeneous"):
        fit(FAST, [([[1, 2], [1]], [1, 2])])


@each("executor", ["threads", "processes"])
def test_parts_that_are_none_are_refused(executor):
    parts = in_parts(X, Y)
    for given in [], iter(parts), dict(enumerate(parts)), X, None:
        with pytest.raises(TypeError, match="parts must be a list, and not empty"):
            fit(FAST, given, executor=executor)
    for given in (X, Y), [X], [(X,)], [None], [lambda: None]:
        with pytest.raises(TypeError, match=r"Part 0 is of \w+; make it a tuple \(X, y\)"):
            fit(FAST, given, executor=executor, n_jobs=1)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="on_round=5 is no function"):
        fit(FAST, in_parts(X, Y), on_round=5)
    with pytest.raises(ValueError, match="executor=None is not valid; use one of"):
        fit(FAST, in_parts(X, Y), executor=None)


def test_weights_that_are_nothing_or_overflow_are_refused():
    """Models of fewer classes than there are labels would be read beyond their end."""
    tiny = np.where(Y == 2, 1e-300, 1.0)
    for fit_all in fit, loclin.cluster.fit_members:
        with pytest.raises(ValueError, match=r"Rows of \[2\] weigh nothing beside the others"):
            fit_all(FAST, in_parts(X, Y, tiny))
    for weight in 1e308, 5e-324:
        with pytest.raises(ValueError, match=r"mean of the weights, .* is too large or too small"):
            fit(FAST, in_parts(X, Y, np.full(N, weight)))
    huge = fit(FAST, in_parts(X, Y, np.full(N, 1e300)))
    np.testing.assert_allclose(huge.local_coef_, fit(FAST, in_parts(X, Y)).local_coef_)


@each(
    ("model", "said"),
    [
        (loclin.SVMKNNClassifier(), "SVMKNNClassifier cannot be fitted in parts. ML3"),
        (loclin.LLSVMClassifier(solver="dual_cd"), "needs solver='sgd'"),
        (loclin.SAPLClassifier("auto"), "needs a number of anchors"),
        (loclin.L3MClassifier(solver="refined"), "needs solver='online'"),
        (loclin.ForestClassifier(), "Parts are learned as streams are"),
    ],
)
def test_models_without_a_stream_are_refused(model, said):
    with pytest.raises(TypeError, match=said):
        fit(model, in_parts(X, Y))


def test_wrong_parameters_are_refused():
    for name in ("rounds", "passes", "sample_rows"):
        with pytest.raises(ValueError, match=f"{name}=0"):
            fit(FAST, in_parts(X, Y), **{name: 0})
    with pytest.raises(ValueError, match="executor='ray' is not valid"):
        fit(FAST, in_parts(X, Y), executor="ray")
    with pytest.raises(ValueError, match="alpha=-1"):
        fit(clone(FAST).set_params(alpha=-1), in_parts(X, Y))


def test_rows_that_are_lost_are_counted_and_the_fit_goes_on():
    n_calls = 0

    def losing(of_part, merge, parts, state):
        nonlocal n_calls
        n_calls += 1  # the first two count and draw
        return in_turn(of_part, merge, parts[: 2 if n_calls > 4 else 3], state)

    parts = in_parts(X, Y)
    lost = learn(2, [parts[2]], round_of(planned(parts, 600)[1], Recording())).n_rows
    with pytest.warns(
        loclin.cluster.RowsLeftOutWarning, match=f"Round 3 left out {lost} of"
    ) as said:
        found = fit(FAST, parts, executor=losing, rounds=8)
    assert len(said) == 1  # not in each round
    assert error(found) < 0.3


def test_a_round_tells_the_model_and_may_be_the_last():
    told = []

    def note(model):
        told.append((model.n_iter_, error(model)))
        return model.n_iter_ == 4

    found = fit(FAST, in_parts(X, Y), rounds=20, on_round=note)
    assert [n for n, _ in told] == [1, 2, 3, 4]
    assert told[-1][1] == error(found)


def test_early_stopping_watches_rows_held_out(capsys):
    model = clone(FAST).set_params(early_stopping=True, n_iter_no_change=2, verbose=1)
    found = fit(model, in_parts(X, Y), rounds=40)
    assert len(found.validation_scores_) == found.n_iter_ < 40
    best = max(found.validation_scores_[:-2])
    assert max(found.validation_scores_[-2:]) < best + model.tol / 10
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 + found.n_iter_  # none of the fit to the sample
    assert printed[0] == f"ML3Classifier: {N} rows of 3 classes and 4 features, in 3 parts"
    assert printed[1].startswith("ML3Classifier: begins with a fit to 60")
    assert printed[2].startswith("ML3Classifier: round 1/40")

    fit(found.set_params(warm_start=True), in_parts(X, Y), rounds=1)
    assert capsys.readouterr().out.splitlines()[1] == "ML3Classifier: goes on from an earlier fit"


def test_early_stopping_needs_rows_held_out():
    watched = clone(FAST).set_params(early_stopping=True)
    few = np.concatenate([np.flatnonzero(label == Y)[:15] for label in range(3)])
    with pytest.raises(ValueError, match="no rows for early_stopping=True: 45 are too few"):
        fit(watched, in_parts(X[few], Y[few]))


def test_rows_that_are_there_only_once_are_said_to_be_gone():
    reads = iter([(X, Y), (X[:0], Y[:0])])
    with pytest.raises(RuntimeError, match="function must return the same rows"):
        fit(FAST, [lambda: next(reads)])


def test_callbacks_watch_no_fit_to_some_rows():
    pytest.importorskip("sklearn.callback")
    parts, told = in_parts(X, Y), Recorder()
    fit(clone(FAST).set_callbacks(told), parts)
    loclin.cluster.fit_members(clone(FAST).set_callbacks(told), parts, n_jobs=1)
    assert told.events == []


def test_a_saved_round_goes_on(tmp_path):
    begun = fit(FAST, in_parts(X, Y), rounds=4)
    loclin.io.save(begun, tmp_path / "round.loclin")
    again = loclin.io.load(tmp_path / "round.loclin").set_params(warm_start=True)
    longer = fit(again, in_parts(X, Y), rounds=4)
    assert longer.objective_[0] < min(begun.objective_)
    assert longer.t_ > begun.t_
    assert longer.alpha_ == begun.alpha_
    with pytest.raises(ValueError, match="must have the classes of the earlier fit"):
        fit(again, in_parts(X, np.minimum(Y, 1)))


@each("name", ["ussvm", "l3m"])
def test_what_goes_on_keeps_its_strength(name):
    model = MODELS[name]
    begun = fit(model, in_parts(X, Y))
    longer = fit(begun.set_params(warm_start=True), in_parts(X, Y))
    strength = "beta_" if name == "ussvm" else "alpha_"
    assert getattr(longer, strength) == getattr(begun, strength)


def test_what_goes_on_knows_its_features_parameters_and_precision():
    parts = [(pd.DataFrame(part, columns=list("abcd")), y) for part, y in in_parts(X, Y)]
    first = fit(MODELS["llsvm"], parts).set_params(warm_start=True)
    for names, said in (("dcba", "feature names should match"), ("abc", "missing")):
        others = [(part[list(names)], y) for part, y in parts]
        with pytest.raises(ValueError, match=f"In part 0: [^$]*{said}"):
            fit(first, others)
    single = [(part.astype(np.float32), y) for part, y in parts]
    assert fit(first, single).local_coef_.dtype == np.float64
    with pytest.raises(ValueError, match="standardize=False differs from the True of the fit"):
        fit(first.set_params(standardize=False), parts)


def test_what_goes_on_has_one_label_a_row():
    several = loclin.USSVMClassifier(4, random_state=0, warm_start=True)
    several.fit(X, np.column_stack([Y > 0, Y > 1]))
    with pytest.raises(ValueError, match="one label a row, but the rows before had several"):
        fit(several, in_parts(X, Y > 0))


def test_a_stream_after_parts_knows_no_weights_of_a_stream_before():
    streamed = clone(FAST).set_params(warm_start=True)
    streamed.partial_fit(X, Y, classes=[0, 1, 2], sample_weight=np.full(N, 1000.0))
    found = fit(streamed, in_parts(X, Y))
    heavy, light = (
        deepcopy(found).partial_fit(X[:100], Y[:100], sample_weight=np.full(100, weight))
        for weight in (1000.0, 1.0)
    )
    np.testing.assert_allclose(light.local_coef_, heavy.local_coef_)


def test_the_result_is_a_plain_classifier():
    found = fit(FAST, in_parts(X, Y))
    coef, intercept = found.local_model(NEW)
    scores = np.einsum("nkd,nd->nk", coef, NEW) + intercept
    np.testing.assert_allclose(scores, found.decision_function(NEW), atol=1e-9)
    before = found.t_
    assert found.t_ == pytest.approx(
        3 * 2 * 0.95 * N / 3, rel=0.01
    )  # of one part, held-out rows aside
    found.partial_fit(X[:50], Y[:50])
    assert found.t_ == before + 50


# An ensemble of members that are fitted a part each.


@each("executor", ["threads", "processes", in_turn])
def test_members_are_those_fitted_by_hand_and_weighed_on_rows_held_out(executor):
    names = np.array(["low", "middle", "high"])[Y]
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float)
    parts = in_parts(X, names, weights)
    heavy = clone(MODELS["sapl"]).set_params(class_weight={"low": 2.0, "middle": 1.0, "high": 0.5})
    found = loclin.cluster.fit_members(heavy, parts, executor=executor, n_jobs=2)
    counts = in_turn(count, Counts.merge, parts, heavy)
    view = plan.planned(heavy, counts, 0).view
    members, watched = [], []
    for number, (of_part, labels, own) in enumerate(parts):
        ((rows, learned, held_out),) = view.split(number, [(of_part, labels, own)])
        assert not rows_of(rows.X[learned]) & rows_of(rows.X[held_out])
        classed = np.select([rows.y == "low", rows.y == "high"], [2.0, 0.5], 1.0) * rows.weights
        classed /= np.mean(weights[weights > 0] * np.array([2.0, 1.0, 0.5])[Y[weights > 0]])
        unweighed = clone(heavy).set_params(class_weight=None)
        members.append(unweighed.fit(rows.X[learned], rows.y[learned], classed[learned]))
        watched.append((rows.X[held_out], rows.y[held_out], classed[held_out]))
    expected = loclin.LocallyLinearEnsemble.of(
        members, *(np.concatenate(one) for one in zip(*watched, strict=True))
    )
    assert sum(len(y) for _, y, _ in watched) == pytest.approx(0.05 * 2 / 3 * N, rel=0.3)
    np.testing.assert_allclose(found.shares_, expected.shares_)
    np.testing.assert_allclose(found.predict_proba(NEW), expected.predict_proba(NEW), rtol=1e-6)
    assert [one.class_weight for one in found.estimators] == [heavy.class_weight] * 3
    assert not hasattr(heavy, "classes_")


def test_an_ensemble_errs_less_than_its_members_and_knows_names():
    frame = pd.DataFrame(X, columns=list("abcd"))
    forest = loclin.ForestClassifier(5, random_state=0)  # one without a stream
    parts = [(frame[k::3], Y[k::3]) for k in range(3)]
    found = loclin.cluster.fit_members(forest, [*parts, (frame[:0], Y[:0])], n_jobs=1)
    assert len(found.estimators) == 3
    assert found.feature_names_in_.tolist() == list("abcd")
    new = pd.DataFrame(NEW, columns=list("abcd"))
    assert error_of(found, new) < min(error_of(one, NEW) for one in found.members_)


def error_of(model, rows):
    return np.mean(model.predict(rows) != LABELS)


def test_members_that_cannot_be_weighed_are_refused():
    fit_members = loclin.cluster.fit_members
    by_label = np.argsort(Y, kind="stable")
    with pytest.raises(ValueError, match=r"Part 0 has no rows of \[2\]; each member needs"):
        fit_members(FAST, [(X[by_label[:2000]], Y[by_label[:2000]]), (X, Y)])
    with pytest.raises(ValueError, match="hold out no rows to weigh members by: 18 are too few"):
        fit_members(FAST, in_parts(X[:18], np.arange(18) // 3 % 3), executor=in_turn)
    with pytest.raises(TypeError, match=r"SVMKNNClassifier cannot be a member .* ML3"):
        fit_members(loclin.SVMKNNClassifier(), in_parts(X, Y))
    with pytest.raises(ValueError, match="alpha=-1"):
        fit_members(clone(FAST).set_params(alpha=-1), in_parts(X, Y))
    with pytest.raises(ValueError, match="In part 1: Input X contains NaN"):
        fit_members(FAST, [(X, Y), (np.where(X > 0.9, np.nan, X), Y)])


def test_members_that_are_lost_are_counted():
    n_calls = 0

    def losing(of_part, merge, parts, state):
        nonlocal n_calls
        n_calls += 1
        return in_turn(of_part, merge, parts[: 4 - n_calls], state)

    with pytest.warns(loclin.cluster.RowsLeftOutWarning, match=f"1000 of {N} rows are left out"):
        found = loclin.cluster.fit_members(FAST, in_parts(X, Y), executor=losing)
    assert len(found.estimators) == 2
