"""Local models and the coding that weighs them, which was fitted before."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, Self

from loclin.engine.averaging import DescentModels
from loclin.engine.data import Floats, Rows
from loclin.engine.dual import DualModels
from loclin.engine.procedure import Predictor
from loclin.fitting.wrapped import Wrapped
from loclin.portable.describing import coder_of
from loclin.portable.words import Coder


@dataclass(frozen=True, kw_only=True)
class CodedModels(Predictor):
    """A coding, fitted in the metric, whose codes weigh local models."""

    coding: Any

    def coder(self, root: Floats | None) -> Coder:
        """Say what the coding computes."""
        return coder_of(self.coding)


@dataclass(frozen=True, kw_only=True)
class DescentCodedModels(DescentModels, CodedModels):
    """The same, learned by stochastic descent."""


@dataclass(frozen=True, kw_only=True)
class SolvedCodedModels(DualModels, CodedModels):
    """The same, and how far each problem is from its solution."""


class Coded(Wrapped):
    """A procedure over codes, whose models keep the coding.

    Parameters
    ----------
    inner : Procedure or StreamProcedure
    coding : transformer
        Fitted.
    """

    coding: Any

    def __init__(self, inner: Any, coding: Any) -> None:
        super().__init__(inner)
        self.coding = coding

    def seen(self, rows: Rows) -> Rows:
        """Return the rows: the procedure's views know the coding."""
        return rows

    def changed(
        self, model: DescentModels | DualModels
    ) -> DescentCodedModels | SolvedCodedModels:
        """Return the models with their coding."""
        if isinstance(model, DualModels):
            return SolvedCodedModels(**vars(model), coding=self.coding)
        return DescentCodedModels(**vars(model), coding=self.coding)

    def __deepcopy__(self, memo: Any) -> Self:
        """Return a copy that shares the coding, which does not change."""
        other = copy(self)
        other.inner = deepcopy(self.inner, memo)
        return other
