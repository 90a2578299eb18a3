"""A model of one's own: two linear models, and a gate that says how much each counts.

    score_y(x) = g(x) (w_y0 . x + b_y0) + (1 - g(x)) (w_y1 . x + b_y1),    g(x) = sigmoid(v . x + c)

The gate is learned with the models. It is the coder of the compiled descent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.averaging import DescentModels
from loclin.engine.coders import (
    Coder,
    average_coder,
    code_places,
    is_kind,
    move_coder,
    room_for_codes,
    write_codes,
)
from loclin.engine.codes import Intercepts
from loclin.engine.data import Rows
from loclin.engine.jit import OPTIONS
from loclin.engine.prediction import codes_by
from loclin.engine.procedure import LocalModels, Part, Predictor
from loclin.engine.rows import add_outer, compiled_form, gather, row_buffer, score
from loclin.engine.sgd import SGD, SGDFit, SGDStream
from loclin.engine.shapes import Shape
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.checks import check_loss_for, check_number
from loclin.fitting.encode import Views
from loclin.fitting.recipe import Before, Recipe, Trial
from loclin.fitting.strength import check_strength
from loclin.portable.words import LinearGates

# 1. The compiled half of the coder: a NamedTuple, and three functions for it.


class Gate(NamedTuple):
    """The gate as a pass takes it."""

    codes: Any  # parts of a CSR matrix, both entries in every row: of a batch, or of all rows
    X: Any  # compiled form of the rows (n, d)
    v: NDArray  # shape: (1, d) for dense rows, (d, 1) for sparse rows
    c: NDArray  # shape: (1,)
    rate: float
    averages: bool
    sum_v: NDArray  # shape of v
    sum_c: NDArray  # shape: (1,)


@overload(write_codes, jit_options=OPTIONS)
def _write_gate(coder, rows):
    if not is_kind(coder, Gate):
        return None

    def write(coder, rows):
        values, _, _ = coder.codes
        n, places = rows.shape[0], code_places(coder.codes, rows)
        buffer = row_buffer(coder.X, n, coder.v.size)
        z = np.empty((n, 1), values.dtype)
        gather(coder.X, rows, buffer)
        score(coder.X, rows, buffer, coder.v, 0, 1, z)
        for i in range(n):
            g = 1 / (1 + np.exp(-(z[i, 0] + coder.c[0])))
            values[2 * places[i]], values[2 * places[i] + 1] = g, 1 - g

    return write


@overload(move_coder, jit_options=OPTIONS)
def _move_gate(coder, rows, slopes, responses):
    """Descend: the score of y rises by ``g (1 - g) (r_y0 - r_y1)`` with v . x."""
    if not is_kind(coder, Gate):
        return None

    def move(coder, rows, slopes, responses):
        values, _, _ = coder.codes
        places = code_places(coder.codes, rows)
        buffer = row_buffer(coder.X, rows.shape[0], coder.v.size)
        one = np.ones(1, values.dtype)
        gather(coder.X, rows, buffer)
        for i in range(rows.shape[0]):
            pull = values.dtype.type(0)
            for y in range(slopes.shape[1]):
                pull += slopes[i, y] * (responses[i, 2 * y] - responses[i, 2 * y + 1])
            pull *= values[2 * places[i]] * values[2 * places[i] + 1]
            step = values.dtype.type(coder.rate) * pull
            add_outer(coder.X, rows[i], buffer, i, one, 0, coder.v, step)
            coder.c[0] += step

    return move


@overload(average_coder, jit_options=OPTIONS)
def _average_gate(coder, n):
    if not is_kind(coder, Gate):
        return None

    def average(coder, n):
        if coder.averages:
            for j in range(coder.v.shape[0]):
                for f in range(coder.v.shape[1]):
                    coder.sum_v[j, f] += n * coder.v[j, f]
            coder.sum_c[0] += n * coder.c[0]

    return average


# 2. The other half: what the coder is between the passes, and what it adds to the fitted model.


@dataclass(frozen=True, kw_only=True)
class GatedModels(DescentModels, Predictor):
    """Two local models and their gate."""

    units: ClassVar[dict[str, int]] = {"local_coef": 1, "gate_coef": 1}
    constants: ClassVar[dict[str, str]] = DescentModels.constants | {"gate_intercept": "gate_coef"}

    gate_coef: Annotated[NDArray[Any], Shape("d")]
    gate_intercept: float

    def coder(self, root: Any) -> LinearGates:
        return shares_of(self.gate_coef, self.gate_intercept)


class LearnedGate(Coder):
    """The gate on its way."""

    v: Annotated[NDArray[Any], Shape("1 d", looped=True)]
    c: Annotated[NDArray[Any], Shape("1", looped=True)]
    sum_v: Annotated[NDArray[Any], Shape("1 d", looped=True)]
    sum_c: Annotated[NDArray[Any], Shape("1", looped=True)]
    rate: float

    def __init__(self, v: NDArray[Any], c: float, rate: float) -> None:
        self.v, self.c, self.rate = v.reshape(1, -1).copy(), np.array([c], v.dtype), rate
        self.forget_average()

    def codes(self, Z: Any) -> sparse.csr_matrix:
        return sparse.csr_matrix(codes_by(shares_of(self.v[0], self.c[0]), Z))

    def learned(self) -> list[Part]:
        return [Part("gate", self.v, power=1), Part("constant", self.c, of="gate")]

    def begin_pass(self, Z: Any, batch_size: int, *, moves: bool, average: bool) -> Gate:
        codes = room_for_codes(Z, batch_size, 2, Z.dtype)
        codes[1][0::2], codes[1][1::2] = 0, 1
        layout = (-1, 1) if sparse.issparse(Z) else (1, -1)  # views: the pass moves v itself
        return Gate(
            codes, compiled_form(Z), self.v.reshape(layout), self.c, self.rate, average,
            self.sum_v.reshape(layout), self.sum_c,
        )  # fmt: skip

    def end_pass(self, compiled: Gate, *, average: bool) -> None:
        """The pass has moved the gate itself."""

    def forget_average(self) -> None:
        self.sum_v, self.sum_c = np.zeros_like(self.v), np.zeros_like(self.c)

    def current(self, n_averaged: float) -> tuple[NDArray[Any], ...]:
        if not n_averaged:
            return self.v.copy(), self.c.copy()
        dtype = self.v.dtype.type
        return self.sum_v / dtype(n_averaged), self.sum_c / dtype(n_averaged)

    def fitted(self, models: LocalModels, *iterate: NDArray[Any]) -> GatedModels:
        v, c = iterate
        return GatedModels(**vars(models), gate_coef=v[0], gate_intercept=float(c[0]))


def shares_of(v: NDArray[Any], c: float) -> LinearGates:
    """Say how much each of the two models counts: the softmax of the gate's output and of zero."""
    return LinearGates(np.stack([v, 0 * v]), np.array([c, 0], v.dtype), "softmax")


# 3. The recipe: what a fit needs, and where its procedures start.


@dataclass(frozen=True, kw_only=True)
class TwoGatesRecipe(Recipe):
    """What a fit needs: this parameter, and those that all recipes have."""

    gate_lr: float

    def check(self) -> None:
        check_number("gate_lr", self.gate_lr, low=0, open_high=True)
        check_loss_for("descent", self.loss)
        check_strength("alpha", self.alpha)

    def stream_refusal(self) -> None:
        """Every parameter leaves a way to learn from a stream."""

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        return Trial({})

    def start(self, rows: Rows, rng: np.random.Generator, before: Before | None) -> SGDFit:
        solver = self._solver(rows, rng, before)
        norm2 = solver.mean_squared_norm(rows.X, rows.X)
        solver.settings = solver.settings._replace(alpha=self.strength(norm2, len(rows.y)))
        solver.count_steps(norm2, self.eta0)
        return SGDFit(solver, self.rounds(rows, rng, before), VIEWS, rng)

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> SGDStream:
        stream = SGDStream(self._solver(rows, rng, before), rng, VIEWS)
        return stream if before is None else stream.follow(before.learned.alpha, before.learned.t)

    def _solver(self, rows: Rows, rng: np.random.Generator, before: Before | None) -> SGD:
        """Return the descent at its start, or where the fit before ended."""
        if before is None:
            v = rng.standard_normal(rows.X.shape[1]).astype(rows.X.dtype)
            gate = LearnedGate(v, 0.0, self.gate_lr)
        else:
            learned = before.learned
            gate = LearnedGate(learned.gate_coef, learned.gate_intercept, self.gate_lr)
        settings = self.settings(1.0, len(rows.y), Intercepts(local=True, extra=False))
        solver = SGD(rows.X, self.n_scorers, 2, settings, gate)
        if before is not None:
            solver.set_models(before.learned.local_coef, before.learned.local_intercept)
        return solver


VIEWS = Views(coding=None, linear=True)

# 4. The classifier: its parameters.


class TwoGatesClassifier(LocallyLinearClassifier):
    """Two linear models a class and a learned gate between them."""

    _recipe_type = TwoGatesRecipe
    _fitted_models = (GatedModels,)
    gate_coef_: NDArray[Any]
    gate_intercept_: float
    alpha_: float
    t_: int
    _fits_may_change = frozenset({"gate_lr"})

    def __init__(
        self,
        *,
        gate_lr: float = 0.1,
        loss: str = "hinge",
        alpha: float | str = "auto",
        standardize: bool = True,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_iter_no_change: int = 5,
        batch_size: int | str = "auto",
        average: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.gate_lr = gate_lr
        self.loss = loss
        self.alpha = alpha
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.batch_size = batch_size
        self.average = average
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
