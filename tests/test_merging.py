"""Streams that learned different rows become one: to the weights, and in what they predict."""

from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse

import loclin
from loclin.codings import OrthogonalCoding
from loclin.engine.data import Rows
from loclin.engine.merging import merged

N, BEGUN = 3000, 600
SHORT = {"random_state": 0, "calibrate": False}
MODELS = {
    "ml3": loclin.ML3Classifier(4, **SHORT),
    "llsvm": loclin.LLSVMClassifier(OrthogonalCoding(3, random_state=0), metric=None, **SHORT),
    "llsvm constant": loclin.LLSVMClassifier(weights="constant", metric=None, **SHORT),
    "sapl": loclin.SAPLClassifier(10, **SHORT),
    "sapl own": loclin.SAPLClassifier(10, share_anchors=False, **SHORT),
    "sapl metric": loclin.SAPLClassifier(10, metric="diagonal", **SHORT),
    "csvm": loclin.CSVMClassifier(8, **SHORT),
    "ldkl": loclin.LDKLClassifier(3, **SHORT),
    "lmkl": loclin.LMKLClassifier(6, **SHORT),
    "ussvm": loclin.USSVMClassifier(8, **SHORT),
    "l3m": loclin.L3MClassifier(4, solver="online", **SHORT),
}


def sines(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = (np.sin(4 * X[:, 0]) > X[:, 1]).astype(int) + (X[:, 2] > 0.4)
    return X, y


def seen(model, X, y):
    """Return rows as the stream of a model takes them, of weights 1."""
    rows = Rows(X, y.astype(np.int32), np.ones(len(y)))
    return model._features.of_rows(rows)


@pytest.fixture(params=MODELS)
def begun(request):
    """Return a model whose stream has begun, and the rows that are to come."""
    X, y = sines(N, 0)
    model = deepcopy(MODELS[request.param])
    model.partial_fit(X[:BEGUN], y[:BEGUN], classes=[0, 1, 2])
    return request.param, model, X[BEGUN:], y[BEGUN:]


def learned(stream, model, X, y):
    other = deepcopy(stream)
    other.learn(seen(model, X, y), None, 16)
    return other


def test_parts_are_the_weighted_means_and_counts_add_up(begun):
    _, model, X, y = begun
    start = model._stream
    streams = [learned(start, model, X[part], y[part]) for part in (slice(200), slice(200, 500))]
    before = [deepcopy(one.state()) for one in streams]
    whole = merged(streams, [1.0, 3.0], since=start)
    for part, first, one, other in zip(whole.state(), start.state(), *before, strict=True):
        if part.adds_up:
            expected = one.value + other.value - first.value
        elif part.name in ("u", "v"):  # of which one is zero again: see the codes below
            continue
        else:
            expected = 0.25 * one.value + 0.75 * other.value
            if part.mean is not None:
                mean = 0.25 * one.mean + 0.75 * other.mean
                np.testing.assert_allclose(part.mean, mean, rtol=1e-12)
        np.testing.assert_allclose(part.value, expected, rtol=1e-12)
    assert whole.n_seen == start.n_seen + 500
    for one, state in zip(streams, before, strict=True):  # they are not changed
        for part, as_it_was in zip(one.state(), state, strict=True):
            np.testing.assert_array_equal(part.value, as_it_was.value)


def test_counts_that_do_not_add_up_are_means_and_pairs_merge_as_all_at_once(begun):
    """So parts of a cluster may be merged two by two, and steps go on as in each of them."""
    _, model, X, y = begun
    ends = 100, 300, 700
    streams = [learned(model._stream, model, X[:end], y[:end]) for end in ends]
    weights = [1.0, 2.0, 5.0]
    whole = merged(streams, weights, adds_up=False)
    first = merged(streams[:2], weights[:2], adds_up=False)
    in_pairs = merged([first, streams[2]], [3.0, 5.0], adds_up=False)
    assert whole.n_seen == round(np.average([one.n_seen for one in streams], weights=weights))
    assert abs(in_pairs.n_seen - whole.n_seen) <= 1  # of whole numbers twice
    for part, other, *parts in zip(
        whole.state(), in_pairs.state(), *(one.state() for one in streams), strict=True
    ):
        np.testing.assert_allclose(other.value, part.value, rtol=1e-9, atol=1e-12)
        if part.name not in ("u", "v"):
            expected = np.average([one.value for one in parts], axis=0, weights=weights)
            np.testing.assert_allclose(part.value, expected, rtol=1e-9, atol=1e-12)


def test_one_stream_merged_is_itself(begun):
    _, model, X, y = begun
    one = learned(model._stream, model, X, y)
    alone = merged([one], [7], since=model._stream)
    assert alone.n_seen == one.n_seen
    one.learn(seen(model, X, y), None, 16)
    alone.learn(seen(model, X, y), None, 16)
    for part, expected in zip(alone.state(), one.state(), strict=True):
        np.testing.assert_allclose(part.value, expected.value, rtol=1e-9, atol=1e-12)


def test_two_halves_merged_in_rounds_err_as_one_stream_of_all_rows(begun):
    """Each learns half of the rows of a round from where the round before has left all."""
    name, model, X, y = begun
    alone = learned(model._stream, model, X, y)
    whole = model._stream
    for first in range(0, len(y), 400):
        halves = [slice(first, first + 200), slice(first + 200, first + 400)]
        streams = [learned(whole, model, X[half], y[half]) for half in halves]
        whole = merged(streams, [200, 200], since=whole)
    assert whole.n_seen == alone.n_seen
    tested, labels = sines(4000, 1)
    errors = []
    for stream in (alone, whole):
        other = deepcopy(model)
        other._learned = stream.result(final=True)
        errors.append(np.mean(other.predict(tested) != labels))
    assert errors[1] < 1.1 * errors[0]
    assert errors[0] < 0.45, f"{name} has learned nothing: one class has half of the rows"


def test_what_is_not_alike_is_refused():
    X, y = sines(300, 0)
    kinds = loclin.ML3Classifier, loclin.SAPLClassifier

    def stream(kind=kinds[0], dtype=np.float64, layout=np.asarray, **parameters):
        model = kind(8, **SHORT | parameters)
        return model.partial_fit(layout(X.astype(dtype)), y, classes=[0, 1, 2])._stream

    one, chunks = stream(), [slice(0, 100), slice(100, 300)]
    moved = [loclin.SAPLClassifier(8, metric="full", **SHORT) for _ in range(2)]
    for model, part in zip(moved, chunks, strict=True):
        model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    for other in (
        stream(kinds[1]), stream(loss="logistic"), stream(dtype=np.float32),
        stream(layout=sparse.csr_matrix), "no stream",
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Only copies of one stream"):
            merged([one, other], [1, 1])
        with pytest.raises(ValueError, match="Only copies of one stream"):
            merged([one, one], [1, 1], since=other)
    with pytest.raises(ValueError, match="their metrics have moved apart"):
        merged([model._stream for model in moved], [1, 1])
    for weights in ([1, 1, 1], [0, 0], [1, -1], [1, np.inf], [np.nan, 1]):
        with pytest.raises(ValueError, match="must be 2 numbers"):
            merged([one] * 2, weights)
    with pytest.raises(ValueError, match="no stream"):
        merged([], [])
