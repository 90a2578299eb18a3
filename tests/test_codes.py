"""The code loader against einsum on explicit features, in every form of rows and codes."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

from loclin.engine.coders import code_places, room_for_codes
from loclin.engine.codes import (
    Intercepts,
    add_batch,
    code_gram,
    code_scores,
    product_room,
    squared_norms,
)
from loclin.engine.iterates import Progress, Weights
from loclin.engine.jit import jit
from loclin.engine.rows import as_models, compiled_form, gather, row_buffer, weights_for

N, D, S, M = 12, 5, 3, 4
ROWS = np.array([7, 0, 3, 11, 4, 8], dtype=np.int32)
FORMS = {
    "shared": lambda codes: codes[:, 0].copy(),
    "by class": lambda codes: codes.transpose(1, 0, 2).copy().transpose(1, 0, 2),  # as OCC's
    "csr": lambda codes: sparse.csr_matrix(codes[:, 0]),
}


@jit
def scores_of(X, rows, codes, W, scale, b, s):
    buffer = row_buffer(X, len(rows), W.shape[1])
    gather(X, rows, buffer)
    responses, out = np.empty((len(rows), len(b)), b.dtype), np.empty((len(rows), s), b.dtype)
    code_scores(X, rows, buffer, codes, W, scale, b, responses, out)
    return out


@jit
def add(X, rows, codes, slopes, weights, sums, progress, intercepts):
    buffer = row_buffer(X, len(rows), weights.W.shape[1])
    gather(X, rows, buffer)
    room = product_room(X, codes, len(rows), len(weights.b) // len(weights.g))
    add_batch(X, rows, buffer, codes, slopes, weights, sums, progress, intercepts, room)


@jit
def gram_of(X, rows, codes, local, extra, m):
    buffer = row_buffer(X, len(rows), X.shape[1])
    gather(X, rows, buffer)
    gram = np.empty((len(rows), len(rows)), X.dtype)
    some_codes = np.full((len(rows), m), np.nan, X.dtype)
    code_gram(X, rows, buffer, codes, local, extra, some_codes, gram)
    return gram


class Case(NamedTuple):
    """Rows and codes as the loops take them, and dense: X (n, d), codes (n, s, m)."""

    parts: tuple
    kind: object
    dense: np.ndarray
    codes: np.ndarray
    rtol: float

    def weights(self, seed):
        """Random weights in the layout of the loops, and the same as (s, m, d)."""
        W = weights_for(self.kind(self.dense), S * M)
        W[:] = np.random.default_rng(seed).normal(size=W.shape)
        return W, as_models(W, self.kind is sparse.csr_matrix, M)

    def same(self, got, expected):
        assert got.dtype == self.dense.dtype
        np.testing.assert_allclose(got, expected, rtol=self.rtol, atol=self.rtol)


KINDS = {"dense": np.asarray, "sparse": sparse.csr_matrix}
DTYPES = {"double": np.float64, "single": np.float32}
# Every combination is compiled anew. The default run has none in single precision.
RARE = {("sparse", "shared"), ("sparse", "by class")}


def combinations(kinds=KINDS, forms=FORMS):
    for kind, form, dtype in itertools.product(kinds, forms, DTYPES):
        slow = (kind, form) in RARE or dtype == "single"
        marks = [pytest.mark.slow] if slow else []
        yield pytest.param((kind, form, dtype), id=f"{kind}-{form}-{dtype}", marks=marks)


@pytest.fixture(params=combinations())
def case(request):
    kind, form, dtype = request.param
    kind, dtype = KINDS[kind], DTYPES[dtype]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6)
    codes = rng.normal(size=(N, S, M)) * (rng.random((N, S, M)) < 0.7)
    X[3], codes[4] = 0, 0  # a row and a code of zeros
    X, codes = X.astype(dtype), codes.astype(dtype)
    parts = compiled_form(kind(X)), compiled_form(FORMS[form](codes))
    if form != "by class":
        codes = np.repeat(codes[:, :1], S, axis=1)
    return Case(parts, kind, X, codes, 1e-12 if dtype == np.float64 else 1e-5)


def test_scores(case):
    (X, codes), dtype = case.parts, case.dense.dtype.type
    W, models = case.weights(1)
    b = np.random.default_rng(2).normal(size=S * M).astype(dtype)
    got = scores_of(X, ROWS, codes, W, dtype(0.3), b, S)
    responses = 0.3 * np.einsum("nd,smd->nsm", case.dense[ROWS], models) + b.reshape(S, M)
    case.same(got, np.einsum("nsm,nsm->ns", case.codes[ROWS], responses))


@pytest.mark.parametrize("intercepts", [Intercepts(True, False), Intercepts(False, True)])
@pytest.mark.parametrize("summing", [True, False])
@pytest.mark.parametrize("n_moved", [0, 3, 6])  # loops for few rows, a product for many
def test_additions(case, n_moved, summing, intercepts):
    (X, codes), dtype = case.parts, case.dense.dtype.type
    W, models = case.weights(1)
    sum_W, sums = case.weights(2) if summing else (W[:0], None)
    weights = Weights(W, np.ones(S * M, dtype), np.ones(S, dtype))
    slopes = np.random.default_rng(3).normal(size=(len(ROWS), S)).astype(dtype)
    slopes[n_moved:, 1] = 0  # other scorers move by all rows
    before, before_sums = models.copy(), None if sums is None else sums.copy()
    progress = Progress(t=0.0, scale=2.0, c=7.0, n_averaged=0.0)
    add(X, ROWS, codes, slopes, weights, Weights(sum_W, *weights[1:]), progress, intercepts)
    some, rows = case.codes[ROWS], case.dense[ROWS]
    update = 0.5 * np.einsum("ns,nsm,nd->smd", slopes, some, rows)
    case.same(models, before + update)
    if summing:
        case.same(sums, before_sums + 7 * update)
    case.same(weights.b, 1 + intercepts.local * np.einsum("ns,nsm->sm", slopes, some).ravel())
    case.same(weights.g, 1 + intercepts.extra * slopes.sum(axis=0))


@pytest.mark.parametrize("extra", [0.0, 1.0])
@pytest.mark.parametrize("local", [0.0, 1.0])
def test_squared_norms(case, local, extra):
    X, codes = case.parts
    with_one = np.hstack([case.dense, np.full((N, 1), local)])
    features = np.einsum("nsm,nd->snmd", case.codes, with_one).reshape(S, N, -1)
    for y in range(S):
        out = np.empty(N)
        squared_norms(X, codes, y, local, extra, out)
        np.testing.assert_allclose(out, (features[y] ** 2).sum(axis=1) + extra, rtol=case.rtol)


@pytest.mark.parametrize("extra", [0.0, 1.0])
@pytest.mark.parametrize("local", [0.0, 1.0])
@pytest.mark.parametrize("case", combinations(["dense"], ["shared", "csr"]), indirect=True)
def test_gram(case, local, extra):
    dtype = case.dense.dtype.type
    got = gram_of(case.parts[0], ROWS, case.parts[1], dtype(local), dtype(extra), M)
    with_one = np.hstack([case.dense, np.full((N, 1), local)])[ROWS]
    features = np.einsum("nm,nd->nmd", case.codes[ROWS, 0], with_one).reshape(len(ROWS), -1)
    case.same(got, features @ features.T + extra)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_coder_keeps_the_codes_of_a_batch_of_dense_rows(kind):
    X = kind(np.random.default_rng(0).standard_normal((500, 3)))
    codes = room_for_codes(X, 20, 4, np.float32)
    of_batch = isinstance(X, np.ndarray)
    assert [len(part) for part in codes] == ([80, 80, 21] if of_batch else [2000, 2000, 501])
    assert codes[0].dtype == np.float32
    rows = np.array([7, 490, 3], np.int32)
    places = jit(lambda codes, rows: code_places(codes, rows), keeps=False)(codes, rows)
    np.testing.assert_array_equal(places, [0, 1, 2] if of_batch else rows)
