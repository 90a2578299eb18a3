"""Softmax gates over local linear models, and both ways to learn them.

Both minimise, over the models ``W`` (s, m, d), ``b`` (s, m), global intercepts ``g`` (s,)
and the gates ``V`` (m, d), ``v0`` (m,),

    alpha/2 (||W||^2 + ||b||^2 + ||g||^2) + 1/(sum w) sum_i w_i sum_y loss(+-f_y(x_i)),
    f_y(x) = sum_j code_j(x) (w_yj . x + b_yj) + g_y,      code(x) = softmax(V x + v0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from loclin.engine.averaging import DescentModels
from loclin.engine.coders import room_for_codes
from loclin.engine.data import Floats, Matrix, Rows
from loclin.engine.dual import DualFit, DualModels
from loclin.engine.linear_outputs import LearnedOutputs
from loclin.engine.prediction import codes_by
from loclin.engine.procedure import LocalModels, Predictor, Procedure
from loclin.engine.shapes import Shape
from loclin.engine.targets import signs_of
from loclin.lmkl.kernels import MovingGates
from loclin.portable.words import LinearGates

_MOST_PASSES = 1000  # of one SVM


@dataclass(frozen=True, kw_only=True)
class Gates(Predictor):
    """Softmax gates over local models."""

    units: ClassVar[dict[str, int]] = {"local_coef": 1, "gate_coef": 1}
    constants: ClassVar[dict[str, str]] = LocalModels.constants | {
        "gate_intercept": "gate_coef"
    }

    gate_coef: Annotated[Floats, Shape("m d")]
    gate_intercept: Annotated[Floats, Shape("m")]

    def coder(self, root: Floats | None) -> LinearGates:
        """Say that codes are the softmax of the gates."""
        return LinearGates(self.gate_coef, self.gate_intercept, "softmax")


@dataclass(frozen=True, kw_only=True)
class GatedModels(Gates, DescentModels):
    """Local models and their gates, learned together."""

    history: Annotated[Floats, Shape("m", np.float64)]


@dataclass(frozen=True, kw_only=True)
class AlternatedModels(Gates, DualModels):
    """Local models and their gates, learned in turn."""


def gate_codes(X: Matrix, V: Floats, v0: Floats) -> Floats:
    """Codes of the rows, (n, m): ``softmax(V x + v0)``."""
    return np.asarray(codes_by(LinearGates(V, v0, "softmax"), X))


def solved(fit: DualFit) -> DualFit:
    """Run a dual fit to its gap, or so many passes."""
    for _ in range(_MOST_PASSES):
        fit.iterate(average=False)
        if fit.gap <= fit.tol:
            break
    fit.result()  # with exact objectives
    return fit


class LearnedGates(LearnedOutputs):
    """Gates that are learned with the models, by their own steps."""

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        n_gates, m = len(self.c), sizes.get("m", len(self.c))
        return None if n_gates == m else f"c has {n_gates} gates, for {m} models"

    def codes(self, Z: Matrix) -> Floats:
        """Codes of rows, by the gates as they stand."""
        return gate_codes(Z, self.U, self.c)

    def begin_pass(
        self, Z: Matrix, batch_size: int, *, moves: bool, average: bool
    ) -> MovingGates:
        """Return the gates as a pass takes them."""
        codes = room_for_codes(Z, batch_size, len(self.c), self.U.dtype)
        return MovingGates(codes, self.outputs(Z, batch_size, average))

    def fitted(self, models: DescentModels, *iterate: Floats) -> GatedModels:
        """Add the gates to fitted models."""
        V, v0 = iterate
        return GatedModels(
            **vars(models), gate_coef=V, gate_intercept=v0, history=self.history.copy()
        )


class Alternation(Procedure):
    """SVMs with the gates at rest, to a duality gap, and steps of the gates, in turn.

    What the least risk by the models falls with the gates is what the risk itself does at
    those models, each row counting by its dual variable. A step after which the least
    risk is no less is taken back, and the next is half as long; after one that is kept,
    the next is longer.

    Parameters
    ----------
    rows : Rows
    V, v0 : ndarray of shape (m, d) and (m,)
        Gates, where they start.
    solve : callable
        ``solve(codes, duals)`` returns the solved problems of the scorers with these
        codes, which start from the dual variables of others, or from nothing.
    step : float
        Length of the first step.
    """

    gap = None  # of the gates, none is known

    def __init__(self, rows: Rows, V: Floats, v0: Floats,
                 solve: Callable[[Floats, Any], DualFit], step: float) -> None:  # fmt: skip
        self.rows, self.V, self.v0, self.solve, self.step = rows, V, v0, solve, step
        self.codes = gate_codes(rows.X, V, v0)
        self.models = solve(self.codes, None)

    @property
    def products(self) -> float:
        """Multiply-adds of what the models say of the rows, of one scorer."""
        return float(len(self.rows.y) * self.V.size)

    def iterate(self, *, average: bool) -> float:
        """Try a step of the gates; return the least risk."""
        by_V, by_v0 = self.slopes()
        length = np.sqrt(np.vdot(by_V, by_V) + np.vdot(by_v0, by_v0))
        if length > 0:
            share = self.V.dtype.type(self.step / length)
            V, v0 = self.V + share * by_V, self.v0 + share * by_v0
            codes = gate_codes(self.rows.X, V, v0)
            models = self.solve(
                codes, [one.relative_dual for one in self.models.problems]
            )
            falls = models.objectives.sum() < self.models.objectives.sum()
            self.step *= 1.5 if falls else 0.5
            if falls:
                self.V, self.v0, self.codes, self.models = V, v0, codes, models
        return float(self.models.objectives.sum())

    def slopes(self) -> tuple[Floats, Floats]:
        """Slopes of minus the least risk by the gates: (m, d) and (m,)."""
        X, y, weights, _ = self.rows
        found, problems = self.models.result(), self.models.problems
        signs, pulls = signs_of(y, len(problems)), np.zeros_like(self.codes)
        for k, problem in enumerate(problems):
            said = X @ found.local_coef[k].T + found.local_intercept[k]
            said -= np.einsum("nm,nm->n", said, self.codes)[:, None]
            slopes = signs[:, k] * problem.relative_dual * weights / weights.sum()
            pulls += slopes.astype(X.dtype)[:, None] * said
        pulls *= self.codes
        return (X.T @ pulls).T, pulls.sum(axis=0)

    def result(self, *, final: bool = False) -> AlternatedModels:
        """Return the model as it stands."""
        known = vars(self.models.result())
        return AlternatedModels(**known, gate_coef=self.V, gate_intercept=self.v0)
