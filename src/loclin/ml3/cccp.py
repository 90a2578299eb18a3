"""ML3's constrained concave-convex procedure (Algorithms 1 and 2 of the paper).

Minimises, over the local models ``W`` (c, m, d) and ``b`` (c, m),

    alpha/2 ||W||^2 + 1/(sum w) sum_i w_i loss(s(x_i, y_i) - max_{y != y_i} s(x_i, y)),
    s(x, y) = || max(W_y x + b_y, 0) ||_q,

by freezing, at every iteration, the codes of the true classes and taking one pass of SGD
over the convex problem that remains (equation 13).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from loclin.engine.averaging import AveragedWeights, DescentModels
from loclin.engine.data import Floats, Labels, Matrix
from loclin.engine.iterates import Progress
from loclin.engine.jit import kept_for
from loclin.engine.losses import loss_value
from loclin.engine.procedure import Part, Predictor
from loclin.engine.rows import compiled_form
from loclin.engine.shapes import Size
from loclin.ml3.kernels import PassSettings, cccp_pass, freeze_codes
from loclin.portable.words import Pooling
from loclin.projections import dual_exponent

# Rows scored together when codes are frozen: large enough for BLAS, small enough for the
# cache.
_FREEZE_BLOCK = 256


@dataclass(frozen=True, kw_only=True)
class PooledModels(DescentModels, Predictor):
    """Local models, and the exponent of the ball that their codes live in."""

    p: float

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        return None if self.p >= 1 else f"p is {self.p}, but should be at least 1"

    def coder(self, root: Floats | None) -> Pooling:
        """Say how models count: by the exponent of the fit."""
        return Pooling(dual_exponent(self.p))


class CCCPSettings(NamedTuple):
    """What the iterations need to know besides the data.

    `alpha` is the L2 strength, `p` the exponent of the ball, `loss` an integer of `Loss`;
    `revive` gives a row whose true class has no positive response to that class's
    strongest model.
    """

    alpha: float
    n_models: Annotated[int, Size("m")]
    p: float
    loss: Any
    batch_size: int
    penalize_intercept: bool
    revive: bool

    @property
    def radius(self) -> float:
        """Radius of a ball that holds the optimum: ``alpha/2 ||W||^2 <= loss(0)``."""
        return float(np.sqrt(2.0 * loss_value(self.loss, 0.0) / self.alpha))

    def of_pass(self, start: bool) -> PassSettings:
        """Return what a compiled pass takes."""
        return PassSettings(
            alpha=self.alpha, q=dual_exponent(self.p), loss=self.loss, radius=self.radius,
            batch_size=self.batch_size, start=start, penalize_intercept=self.penalize_intercept,
            revive=self.revive,
        )  # fmt: skip


def random_codes(
    rng: np.random.Generator, n: int, m: int, p: float, dtype: Any
) -> Floats:
    """Draw `n` codes on the positive part of the p-norm sphere:
    uniform entries, normalised.
    """
    return onto_sphere(rng.random((n, m), dtype=dtype), p)


def onto_sphere(codes: Floats, p: float) -> Floats:
    """Scale codes onto the p-norm sphere, in place; zeros stay."""
    tiny = np.finfo(codes.dtype).tiny
    for block in np.array_split(codes, max(1, len(codes) // _FREEZE_BLOCK)):
        # or high powers are lost
        block /= np.maximum(block.max(axis=1, keepdims=True), tiny)
        norms = np.linalg.norm(block, ord=p, axis=1, keepdims=True)
        block /= np.maximum(norms, tiny)
    return codes


def rows_by_class(y: Labels, n_classes: int) -> tuple[Labels, Labels]:
    """Return the rows class by class,
    and where each class starts (and the last one ends).
    """
    # sorted by their digits, in linear time
    narrow = y.astype(np.min_scalar_type(n_classes))
    order = np.argsort(narrow, kind="stable").astype(np.int32)
    return order, np.searchsorted(y, np.arange(n_classes + 1), sorter=order)


class CCCP(AveragedWeights):
    """The state of the procedure: weights, step counter, running average.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
        Only its kind, width and dtype are used here.
    n_classes : int
    settings : CCCPSettings
    """

    settings: CCCPSettings

    def __init__(self, X: Matrix, n_classes: int, settings: CCCPSettings) -> None:
        super().__init__(X, n_classes, settings.n_models, settings)

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if sizes.get("c", self.n_scorers) != self.n_scorers:
            return f"n_scorers is {self.n_scorers}, but there are {sizes['c']} classes"
        return None

    @property
    def products(self) -> float:
        """Multiply-adds of the scores of a batch."""
        return float(self.settings.batch_size) * self.weights.W.size

    def start(
        self, X: Matrix, y: Labels, weights: Floats, codes: Floats,
        rng: np.random.Generator,
    ) -> float:  # fmt: skip
        """Fit the models to fixed codes, shared by the classes; return the objective."""
        return self._pass(X, y, weights, codes, rng, start=True, average=False)

    def iterate(
        self, X: Matrix, y: Labels, weights: Floats, rng: np.random.Generator, *,
        average: bool = False, by_batch: bool = False,
    ) -> float:  # fmt: skip
        """One CCCP iteration, or with `by_batch` one a batch. Return the objective.

        It is the running estimate gathered during the pass, with the penalty at its end.
        """
        codes = np.empty((0, self.n_models), X.dtype) if by_batch else self.freeze(X, y)
        return self._pass(X, y, weights, codes, rng, start=False, average=average)

    def freeze(self, X: Matrix, y: Labels) -> Floats:
        """Return the codes (n, m) of the rows' true classes at the weights as they stand."""
        W, b, _ = self.weights
        codes = np.empty((len(y), self.n_models), X.dtype)
        freeze_codes(
            compiled_form(X), *rows_by_class(y, self.n_scorers), W, b,
            dual_exponent(self.settings.p), _FREEZE_BLOCK, self.settings.revive, codes,
        )  # fmt: skip
        return codes

    def _pass(
        self, X: Matrix, y: Labels, weights: Floats, codes: Floats,
        rng: np.random.Generator, *, start: bool, average: bool,
    ) -> float:  # fmt: skip
        sums, begun = self.begin_pass(average)
        order = rng.permutation(np.arange(len(y), dtype=np.int32))
        ended, total_loss = kept_for(cccp_pass, self.settings.loss)(
            compiled_form(X), y, weights, order, codes, self.weights, sums, begun,
            self.settings.of_pass(start),
        )  # fmt: skip
        self.end_pass(Progress(*ended), average)
        return total_loss / float(weights.sum()) + self.penalty()

    def parts(self, iterate: tuple[Floats, ...] | None = None) -> list[Part]:
        """Return the weights: nothing else is learned."""
        return self.weight_parts(iterate)

    def current(self) -> tuple[Floats, ...]:
        """Mean of the iterates since averaging began, or the last one."""
        return self.mean_weights()

    def fitted(self, t: int, *iterate: Floats) -> PooledModels:
        """Return what `current` gave, after t rows, as a fitted model."""
        W, b, g = iterate
        return PooledModels(**vars(self.models(t, W, b, g)), p=self.settings.p)

    def forget_average(self) -> None:
        """Begin averaging anew."""
        self.forget_weights()
