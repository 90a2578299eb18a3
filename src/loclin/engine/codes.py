"""One loader for codes, so that no solver is written once for each kind of code.

A solver's features are implicit: ``code (x) [x; 1]`` for every row, never formed. Codes
come as

- an array (n, m), shared by the scorers: scores are one matrix product, then m sums a
  scorer;
- an array (n, s, m), one code a scorer;
- the parts (data, indices, indptr) of a CSR matrix (n, m), shared: only the models with a
  nonzero code are scored.

Models are numbered scorer by scorer, as in `rows`: those of scorer y begin at y * m. The
compiler picks the form from the types.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from loclin.engine.jit import OPTIONS, inner, jit
from loclin.engine.rows import add_outer, is_dense, score, squared_norm

# So many rows must move a scorer before one matrix product is faster than as many loops.
_WORTH_A_PRODUCT = 4


def code_scores(X, rows, buffer, codes, W, scale, b, responses, out):
    """Scores of the gathered rows: ``sum_j code_j (scale w_yj . x + b_yj)``.

    Parameters
    ----------
    X : compiled form of {ndarray, csr} of shape (n, d)
    rows : ndarray of shape (n_batch,)
        Rows of X in the batch.
    buffer : ndarray of shape (>= n_batch, d)
        These rows, gathered; not used for a sparse X.
    codes : ndarray of shape (n, m) or (n, s, m), or parts of a CSR matrix (n, m)
    W : ndarray of shape (s m, d), or (d, s m) for a sparse X
    scale : float
    b : ndarray of shape (s m,)
    responses : ndarray of shape (>= n_batch, s m)
        Overwritten. With CSR codes by what the models at a row say, without the codes:
        scorer by scorer, in the order of the row's entries.
    out : ndarray of shape (>= n_batch, s)
        Overwritten by the scores.
    """


def add_code(X, row, buffer, i, codes, y, first, W, step):
    """Add ``step * code_y (x) x`` to the models that begin at `first`,
    x being gathered row i.

    Parameters
    ----------
    X, buffer, codes, W
        See `code_scores`.
    row, i : int
        The row in X, and in the buffer.
    y, first : int
        The scorer, and its first model.
    step : float
    """


def add_code_only(codes, row, y, first, b, step):
    """Add ``step * code_y`` to the intercepts (s m,) that begin at `first`."""


def add_product(rows, buffer, codes, slopes, y, W, unit, sum_W, c, room):
    """Add ``unit * slope * code_y (x) x`` of many gathered
    rows to scorer y by one product.

    False, with nothing done, where the forms have no such product.

    Parameters
    ----------
    rows, buffer, codes, W
        See `code_scores`.
    slopes : ndarray of shape (>= n_batch, s)
    y : int
    unit, c : float
    sum_W : ndarray of the shape of W, or empty
        Gets c times what W gets.
    room : tuple of ndarray or None
        See `product_room`.
    """


def product_room(X, codes, batch, m):
    """Room for `add_product`: codes (batch, m),
    rows (batch, d), their product (m, d); or None.
    """


def squared_code(codes, row, y):
    """Squared Euclidean norm of the code of a row for scorer y."""


def copy_codes(codes, row, out):
    """Write the code of a row, shared by the scorers, as an array (m,)."""


def code_gram(X, rows, buffer, codes, local, extra, some_codes, gram):
    """Kernel of the gathered rows: ``code .
    code' (x . x' + local) + extra``, for dense X.

    Parameters
    ----------
    X, rows, buffer
        See `code_scores`.
    codes : ndarray of shape (n, m), or parts of a CSR matrix (n, m)
    local, extra : float
        1 where there are such intercepts, else 0.
    some_codes : ndarray of shape (>= n_batch, m)
        Overwritten.
    gram : ndarray of shape (>= n_batch, >= n_batch)
        Overwritten by the kernel.
    """


def _ndim(codes) -> int:
    return codes.ndim if isinstance(codes, types.Array) else 0


@overload(code_scores, jit_options=OPTIONS)
def _code_scores(X, rows, buffer, codes, W, scale, b, responses, out):
    if _ndim(codes) == 2 and is_dense(X):
        return _scores_along_the_batch
    if _ndim(codes):
        return _scores_of_all_models(_ndim(codes) == 3)
    return _scores_of_few_models if is_dense(X) else _scores_of_few_models_and_features


def _scores_along_the_batch(X, rows, buffer, codes, W, scale, b, responses, out):
    # With one row of the product a model, sums over models run along the batch: no sum
    # within a vector register is needed.
    n = rows.shape[0]
    s = out.shape[1]
    m = codes.shape[1]
    by_model = responses.reshape(-1)[: s * m * n].reshape((s * m, n))
    np.dot(W, buffer[:n].T, by_model)
    some_codes = np.empty((m, n), b.dtype)
    for i in range(n):
        for j in range(m):
            some_codes[j, i] = codes[rows[i], j]
    total = np.empty(n, b.dtype)
    for y in range(s):
        total[:] = 0
        for j in range(m):
            at = y * m + j
            for i in range(n):
                total[i] += some_codes[j, i] * (scale * by_model[at, i] + b[at])
        for i in range(n):
            out[i, y] = total[i]


def _scores_of_all_models(a_scorer):
    def scores(X, rows, buffer, codes, W, scale, b, responses, out):
        s = out.shape[1]
        m = b.shape[0] // s
        score(X, rows, buffer, W, 0, s * m, responses)
        for i in range(rows.shape[0]):
            row = rows[i]
            for y in range(s):
                total = b.dtype.type(0)
                for j in range(m):
                    at = y * m + j
                    code = codes[row, y, j] if a_scorer else codes[row, j]
                    total += code * (scale * responses[i, at] + b[at])
                out[i, y] = total

    return scores


def _scores_of_few_models(X, rows, buffer, codes, W, scale, b, responses, out):
    values, columns, starts = codes
    s = out.shape[1]
    m = b.shape[0] // s
    for i in range(rows.shape[0]):
        first, stop = starts[rows[i]], starts[rows[i] + 1]
        at_row = 0
        for y in range(s):
            total = b.dtype.type(0)
            for e in range(first, stop):
                at = y * m + columns[e]
                product = b.dtype.type(0)
                for f in range(W.shape[1]):
                    product += W[at, f] * buffer[i, f]
                response = scale * product + b[at]
                responses[i, at_row] = response
                at_row += 1
                total += values[e] * response
            out[i, y] = total


def _scores_of_few_models_and_features(
    X, rows, buffer, codes, W, scale, b, responses, out
):
    data, features, row_starts = X
    values, columns, starts = codes
    s = out.shape[1]
    m = b.shape[0] // s
    for i in range(rows.shape[0]):
        first, stop = starts[rows[i]], starts[rows[i] + 1]
        k = stop - first
        for y in range(s):
            for e in range(k):
                responses[i, y * k + e] = b[y * m + columns[first + e]]
        for entry in range(row_starts[rows[i]], row_starts[rows[i] + 1]):
            f, x = features[entry], scale * data[entry]
            for y in range(s):
                for e in range(k):
                    responses[i, y * k + e] += x * W[f, y * m + columns[first + e]]
        for y in range(s):
            total = b.dtype.type(0)
            for e in range(k):
                total += values[first + e] * responses[i, y * k + e]
            out[i, y] = total


@overload(add_code, jit_options=OPTIONS)
def _add_code(X, row, buffer, i, codes, y, first, W, step):
    if is_dense(X) and _ndim(codes):
        a_scorer = _ndim(codes) == 3

        def every_model(X, row, buffer, i, codes, y, first, W, step):
            for j in range(codes.shape[-1]):
                weight = step * (codes[row, y, j] if a_scorer else codes[row, j])
                for f in range(W.shape[1]):
                    W[first + j, f] += weight * buffer[i, f]

        return every_model
    if _ndim(codes) == 3:
        return lambda X, row, buffer, i, codes, y, first, W, step: add_outer(
            X, row, buffer, i, codes[row, y], first, W, step
        )
    if _ndim(codes) == 2:
        return lambda X, row, buffer, i, codes, y, first, W, step: add_outer(
            X, row, buffer, i, codes[row], first, W, step
        )
    if is_dense(X):

        def few_models(X, row, buffer, i, codes, y, first, W, step):
            values, columns, starts = codes
            for e in range(starts[row], starts[row + 1]):
                weight, at = step * values[e], first + columns[e]
                for f in range(W.shape[1]):
                    W[at, f] += weight * buffer[i, f]

        return few_models

    def few_models_and_features(X, row, buffer, i, codes, y, first, W, step):
        data, features, row_starts = X
        values, columns, starts = codes
        for entry in range(row_starts[row], row_starts[row + 1]):
            f, x = features[entry], step * data[entry]
            for e in range(starts[row], starts[row + 1]):
                W[f, first + columns[e]] += x * values[e]

    return few_models_and_features


@overload(add_code_only, jit_options=OPTIONS)
def _add_code_only(codes, row, y, first, b, step):
    if _ndim(codes):
        a_scorer = _ndim(codes) == 3

        def every_model(codes, row, y, first, b, step):
            for j in range(codes.shape[-1]):
                b[first + j] += step * (codes[row, y, j] if a_scorer else codes[row, j])

        return every_model

    def few_models(codes, row, y, first, b, step):
        values, columns, starts = codes
        for e in range(starts[row], starts[row + 1]):
            b[first + columns[e]] += step * values[e]

    return few_models


@overload(squared_code, jit_options=OPTIONS)
def _squared_code(codes, row, y):
    if _ndim(codes):
        a_scorer = _ndim(codes) == 3

        def every_model(codes, row, y):
            total = codes.dtype.type(0)
            for j in range(codes.shape[-1]):
                code = codes[row, y, j] if a_scorer else codes[row, j]
                total += code * code
            return total

        return every_model

    def few_models(codes, row, y):
        values, _, starts = codes
        total = values.dtype.type(0)
        for e in range(starts[row], starts[row + 1]):
            total += values[e] * values[e]
        return total

    return few_models


@overload(product_room, jit_options=OPTIONS)
def _product_room(X, codes, batch, m):
    if is_dense(X) and _ndim(codes):
        return lambda X, codes, batch, m: (
            np.empty((batch, m), X.dtype),
            np.empty((batch, X.shape[1]), X.dtype),
            np.empty((m, X.shape[1]), X.dtype),
        )
    return lambda X, codes, batch, m: None


@overload(add_product, jit_options=OPTIONS)
def _add_product(rows, buffer, codes, slopes, y, W, unit, sum_W, c, room):
    if isinstance(room, types.NoneType):
        return lambda rows, buffer, codes, slopes, y, W, unit, sum_W, c, room: False
    a_scorer = _ndim(codes) == 3

    def product(rows, buffer, codes, slopes, y, W, unit, sum_W, c, room):
        some_codes, some_rows, added = room
        m, d = added.shape
        n_moved = 0
        for i in range(rows.shape[0]):
            slope, row = unit * slopes[i, y], rows[i]
            if slope != 0:
                for j in range(m):
                    code = codes[row, y, j] if a_scorer else codes[row, j]
                    some_codes[n_moved, j] = slope * code
                for f in range(d):
                    some_rows[n_moved, f] = buffer[i, f]
                n_moved += 1
        np.dot(some_codes[:n_moved].T, some_rows[:n_moved], added)
        for j in range(m):
            for f in range(d):
                W[y * m + j, f] += added[j, f]
        if sum_W.shape[0] > 0:
            for j in range(m):
                for f in range(d):
                    sum_W[y * m + j, f] += c * added[j, f]
        return True

    return product


@overload(copy_codes, jit_options=OPTIONS)
def _copy_codes(codes, row, out):
    if _ndim(codes):

        def every_model(codes, row, out):
            for j in range(out.shape[0]):
                out[j] = codes[row, j]

        return every_model

    def few_models(codes, row, out):
        values, columns, starts = codes
        out[:] = 0
        for e in range(starts[row], starts[row + 1]):
            out[columns[e]] = values[e]

    return few_models


@overload(code_gram, jit_options=OPTIONS)
def _code_gram(X, rows, buffer, codes, local, extra, some_codes, gram):
    if not is_dense(X):
        return lambda X, rows, buffer, codes, local, extra, some_codes, gram: None

    def dense(X, rows, buffer, codes, local, extra, some_codes, gram):
        n = rows.shape[0]
        for i in range(n):
            copy_codes(codes, rows[i], some_codes[i])
        by_code = np.dot(some_codes[:n], some_codes[:n].T)
        by_rows = np.dot(buffer[:n], buffer[:n].T)
        for i in range(n):
            for k in range(n):
                gram[i, k] = by_code[i, k] * (by_rows[i, k] + local) + extra

    return dense


class Intercepts(NamedTuple):
    """Which intercepts there are: one for each model, one for each scorer."""

    local: bool
    extra: bool


@inner
def add_batch(X, rows, buffer, codes, slopes, weights, sums, progress, intercepts, room):
    """Add ``slope_y * code_y (x) [x; 1]`` of the gathered rows to every scorer y.

    Parameters
    ----------
    X : compiled form of {ndarray, csr} of shape (n, d)
    rows : ndarray of shape (n_batch,)
        Rows of X in the batch.
    buffer : ndarray of shape (>= n_batch, d)
        These rows, gathered; not used for a sparse X.
    codes : ndarray of shape (n, m) or (n, s, m), or parts of a CSR matrix (n, m)
    slopes : ndarray of shape (>= n_batch, s)
    weights : Weights
        ``scale * W``, b and g; moved in place.
    sums : Weights
        Where not empty, W gets c times what the weights get.
    progress : Progress
    intercepts : Intercepts
    room : tuple of ndarray or None
        See `product_room`.
    """
    b = weights.b
    dtype = b.dtype.type
    unit, c = dtype(1.0 / progress.scale), dtype(progress.c)
    averaging = sums.W.shape[0] > 0
    n, s = rows.shape[0], slopes.shape[1]
    m = b.shape[0] // s
    moved = np.zeros(s, np.int64)
    for i in range(n):
        for y in range(s):
            moved[y] += slopes[i, y] != 0
    for y in range(s):
        if moved[y] >= _WORTH_A_PRODUCT and add_product(
            rows, buffer, codes, slopes, y, weights.W, unit, sums.W, c, room
        ):
            moved[y] = 0
    for i in range(n):
        row = rows[i]
        for y in range(s):
            slope = slopes[i, y]
            if slope != 0:
                if moved[y]:
                    add_code(X, row, buffer, i, codes, y, y * m, weights.W, unit * slope)
                    if averaging:
                        add_code(
                            X, row, buffer, i, codes, y, y * m, sums.W, c * unit * slope
                        )
                if intercepts.local:
                    add_code_only(codes, row, y, y * m, b, slope)
                if intercepts.extra:
                    weights.g[y] += slope


@jit
def squared_norms(X, codes, y, local, extra, out):
    """Write the squared norms of the implicit features of all rows, for scorer y."""
    for row in range(out.shape[0]):
        out[row] = squared_code(codes, row, y) * (squared_norm(X, row) + local) + extra
