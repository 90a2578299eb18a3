"""An ensemble over rows in parts: each kind learns as it does alone, and parts grow a forest."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import loclin
import loclin.cluster
import loclin.io
from loclin.cluster import plan
from loclin.cluster.parts import Counts, Sample, count, draw
from loclin.ensemble.selection import select
from loclin.fitting.temperature import temperature_of
from tests.test_cluster import FAST, LABELS, MODELS, NEW, N, X, Y, error, fit, in_parts, in_turn

FAR = X * [1.0, 10.0, 0.1, 3.0] + 5
SAPL = clone(MODELS["sapl"]).set_params(calibrate=False)


def ensemble(*kinds, **parameters):
    return loclin.LocallyLinearEnsemble(
        [*kinds], **({"random_state": 0, "n_folds": 2} | parameters)
    )


def drawn(estimator, parts, sample_rows=600):
    counts = in_turn(count, Counts.merge, parts, estimator)
    drawing = plan.planned(estimator, counts, sample_rows)
    return drawing.view, in_turn(draw, Sample.merge, parts, drawing)


@pytest.mark.parametrize("class_weight", [None, {0: 2.0, 1: 1.0, 2: 0.5}])
def test_members_of_a_kind_learn_as_it_does_alone(class_weight):
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float)
    parts = in_parts(X, Y, weights)
    kind = clone(SAPL).set_params(class_weight=class_weight)
    alone = fit(kind, parts)
    first, *others = fit(ensemble(kind, n_folds=3, standardize=False), parts).members_
    np.testing.assert_array_equal(first.local_coef_, alone.local_coef_)
    for one in others:
        assert np.abs(one.local_coef_ - alone.local_coef_).max() > 0.1
        assert error(one) < error(alone) + 0.05
        assert one.alpha_ == pytest.approx(alone.alpha_, rel=0.05)
        assert one._features is first._features
    assert len({one.random_state for one in others}) == 2


def test_rows_are_standardized_once_as_the_sample_says():
    parts = in_parts(FAR, Y)
    start = drawn(ensemble(FAST), parts)[1].start
    mean = np.average(start.X, axis=0, weights=start.weights)
    spread = np.sqrt(np.average((start.X - mean) ** 2, axis=0, weights=start.weights))
    given = in_parts((FAR - mean) / spread, Y)
    for kind in FAST, SAPL:
        member, _ = fit(ensemble(kind), parts).members_
        alone = fit(clone(kind).set_params(standardize=False), given)
        np.testing.assert_allclose(member.local_coef_, alone.local_coef_, rtol=1e-7, atol=1e-9)


def test_rows_held_out_weigh_the_kinds():
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float)
    names = np.array(["low", "middle", "high"])[Y]
    parts = in_parts(X, names, weights)
    model = ensemble(SAPL, clone(MODELS["ldkl"]), standardize=False)
    found = fit(model, parts)
    watched = drawn(model, parts)[1].watched
    assert len(found.members_) == 4
    decisions = [
        np.mean([one.decision_function(watched.X) for one in found.members_[k : k + 2]], axis=0)
        for k in (0, 2)
    ]
    units = [np.abs(one - one.mean(axis=1, keepdims=True)) for one in decisions]
    units = [np.sqrt(np.mean(one**2, axis=1)).mean() for one in units]
    np.testing.assert_allclose(found.units_, units, rtol=1e-9)
    shares = select(
        [one / unit for one, unit in zip(decisions, units, strict=True)],
        watched.y, watched.weights,
    )  # fmt: skip
    assert (shares > 0).all()
    np.testing.assert_allclose(found.shares_, shares)
    scores = sum(
        share * one / unit for share, one, unit in zip(shares, decisions, units, strict=True)
    )
    np.testing.assert_allclose(found.decision_function(watched.X), scores, rtol=1e-9, atol=1e-9)
    expected = temperature_of(scores, watched.y, watched.weights)
    assert found.temperature_ == pytest.approx(expected)
    assert repr(found) == repr(model)
    assert not hasattr(model, "classes_")


def test_a_kind_without_a_share_gets_no_more_members():
    told = []
    useless = loclin.LDKLClassifier(1, alpha=1e6, random_state=0)
    model = ensemble(SAPL, useless, n_folds=3)
    found = fit(model, in_parts(X, Y), on_round=lambda model: told.append(len(model.members_)))
    assert found.shares_.tolist() == [1, 0]
    assert len(found.members_) == 3
    assert len(told) == 4 * 3  # three members of one kind, one of the other


@pytest.mark.parametrize("n_folds", [2, 4])
def test_each_part_adds_trees_to_a_forest(n_folds):
    """Fitted by hand to the same rows."""
    parts = [*in_parts(X, Y), (X[Y == 0][:50], Y[Y == 0][:50])]  # one without two classes
    forest = loclin.ForestClassifier(6, random_state=0)
    model = ensemble(forest, n_folds=n_folds, standardize=False)
    (found,) = fit(model, parts).members_  # the trees of all folds
    view, _ = drawn(model, parts)
    by_hand = clone(forest).set_params(n_trees=-(-6 * n_folds // 4), standardize=False)
    scores = 0.0
    for number, part in enumerate(parts[:3]):
        ((rows, learned, _),) = view.split(number, [part])
        alone = clone(by_hand).fit(rows.X[learned], rows.y[learned])
        scores += alone.decision_function(NEW) / 3
    np.testing.assert_allclose(found.decision_function(NEW), scores, atol=1e-6)


def test_an_ensemble_without_trees_is_said_to_have_none():
    order = np.argsort(Y, kind="stable")
    parts = [(X[some], Y[some]) for some in np.array_split(order, 3)]
    forest = loclin.ForestClassifier(6, random_state=0)
    with pytest.warns(UserWarning, match="No part has rows of all classes"):
        found = fit(ensemble(forest, FAST), parts)
    assert {type(one) for one in found.members_} == {type(FAST)}
    with (
        pytest.warns(UserWarning, match="No part"),
        pytest.raises(ValueError, match="No part has rows of all classes, which trees need"),
    ):
        fit(ensemble(forest), parts)


def test_a_forest_grows_on_some_rows_of_large_parts():
    forest = loclin.ForestClassifier(6, most_rows=20, random_state=0)
    seen = []

    def noting(of_part, merge, parts, state):
        if of_part.__name__ == "fit_alone":
            seen.append(state.drawing.n_start)
        return in_turn(of_part, merge, parts, state)

    y = Y.copy()
    y[:3] = 7
    fit(ensemble(forest, FAST), in_parts(X, y), executor=noting)
    (n_start,) = seen
    assert n_start[:, :3].sum() == pytest.approx(10 * 20 * 3, abs=3)
    assert n_start[:, 3].sum() == 3  # all of a rare class


def test_the_default_learns_what_one_machine_does(tmp_path):
    names = np.array(["low", "middle", "high"])[Y]
    frame = pd.DataFrame(FAR, columns=list("abcd"))
    parts = [(frame[k::3], names[k::3]) for k in range(3)]
    model = loclin.LocallyLinearEnsemble(n_folds=2, random_state=0)
    found, alone = fit(model, parts, rounds=20), clone(model).fit(frame, names)
    new = pd.DataFrame(NEW * [1.0, 10.0, 0.1, 3.0] + 5, columns=list("abcd"))
    expected = np.array(["low", "middle", "high"])[LABELS]
    errors = [np.mean(one.predict(new) != expected) for one in (found, alone)]
    assert errors[0] < 1.3 * errors[1] + 0.01
    assert found.feature_names_in_.tolist() == list("abcd")
    loclin.io.save(found, tmp_path / "whole.loclin")
    same = loclin.io.load(tmp_path / "whole.loclin")
    np.testing.assert_array_equal(same.predict_proba(new), found.predict_proba(new))
    coef, intercept = found.local_model(new)
    scores = np.einsum("nkd,nd->nk", coef, new.to_numpy()) + intercept
    np.testing.assert_allclose(scores, found.decision_function(new), atol=1e-8)
    assert found.partial_fit(frame[:50], names[:50]).predict(new[:5]).shape == (5,)


def test_a_round_tells_the_kinds_so_far_and_may_be_the_last(capsys):
    told = []

    def note(model):
        told.append((len(model.members_), error(model)))
        return len(told) == 5

    model = ensemble(FAST, SAPL, loclin.ForestClassifier(5), verbose=1)
    found = fit(model, in_parts(X, Y), on_round=note)
    assert len(told) == 5  # three of the first kind, two of the second
    assert [n for n, _ in told[:3]] == [1, 1, 1]
    assert told[-1][1] == error(found)
    assert [line for line in capsys.readouterr().out.splitlines() if "/3" in line] == [
        "LocallyLinearEnsemble: ML3Classifier 1/3",
        "LocallyLinearEnsemble: SAPLClassifier 2/3",
    ]


def test_few_rows_hold_none_out():
    rows = np.arange(18)
    found = fit(ensemble(FAST, SAPL), in_parts(X[:18], rows // 3 % 3))
    np.testing.assert_allclose(found.shares_, 0.5)


def test_kinds_without_a_stream_are_refused():
    with pytest.raises(TypeError, match="needs solver='sgd'"):
        fit(ensemble(FAST, loclin.LLSVMClassifier(solver="dual_cd")), in_parts(X, Y))
    with pytest.raises(ValueError, match="n_folds=1"):
        fit(ensemble(FAST, n_folds=1), in_parts(X, Y))
    with pytest.raises(ValueError, match=r"\[1, 2\], are not in class_weight"):
        fit(ensemble(clone(FAST).set_params(class_weight={0: 2.0, "1": 3.0})), in_parts(X, Y))
    with pytest.raises(ValueError, match="estimators="):
        fit(loclin.LocallyLinearEnsemble([]), in_parts(X, Y))


def test_trees_of_parts_that_are_lost_are_counted():
    def losing(of_part, merge, parts, state):
        lost = of_part.__name__ == "fit_alone"
        return in_turn(of_part, merge, parts[: 2 if lost else 3], state)

    model = ensemble(loclin.ForestClassifier(6), FAST)
    with pytest.warns(loclin.cluster.RowsLeftOutWarning, match=f"1000 of {N} rows are left out"):
        fit(model, in_parts(X, Y), executor=losing)
