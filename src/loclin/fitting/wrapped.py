"""Procedures that change what others learn, on its way out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from loclin.engine.data import Floats, Rows
from loclin.engine.procedure import (
    Change,
    Descent,
    FittedModel,
    LocalModels,
    Part,
    StreamProcedure,
)
from loclin.engine.shapes import Size, Within
from loclin.fitting.mapped import LinearMap


class Wrapped(Descent, StreamProcedure):
    """A procedure whose model is changed on its way out.

    Parameters
    ----------
    inner : Procedure or StreamProcedure
    """

    inner: Any

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @abstractmethod
    def seen(self, rows: Rows) -> Rows:
        """Return rows of a stream as the procedure takes them."""

    @abstractmethod
    def changed(self, learned: Any) -> FittedModel:
        """Return the model in the place of the procedure's."""

    @property
    def products(self) -> float:
        """Multiply-adds of a typical product."""
        return self.inner.products

    @property
    def gap(self) -> float | None:
        """Duality gap over the objective; None where the procedure knows none."""
        return self.inner.gap

    @property
    def kept(self) -> Any:
        """What a fit that goes on needs."""
        return self.inner.kept

    def iterate(self, *, average: bool) -> float:
        """Run one iteration."""
        return self.inner.iterate(average=average)

    def weaken(self, ratio: float) -> bool:
        """Go on with so much of the L2 strength, if the procedure can."""
        return isinstance(self.inner, Descent) and self.inner.weaken(ratio)

    def learn(self, rows: Rows, alpha: float | None, batch_size: int) -> float:
        """Learn from some more rows of a stream."""
        self.n_seen += len(rows.y)
        return self.inner.learn(self.seen(rows), alpha, batch_size)

    def state(self) -> tuple[Part, ...]:
        """Return the arrays that the procedure learns."""
        parts: tuple[Part, ...] = self.inner.state()
        return parts

    def count_in(self, others: Sequence[Any], since: Any, shares: Floats) -> None:
        """Let the counts be those of the others together."""
        super().count_in(others, since, shares)
        begun = None if since is None else since.inner
        self.inner.count_in([one.inner for one in others], begun, shares)

    def result(self, *, final: bool = False) -> FittedModel:
        """Return the model as it stands."""
        return self.changed(self.inner.result(final=final))


class Constants(Wrapped):
    """A procedure over a column of ones:
    its weights are the constants that the models say.

    Parameters
    ----------
    inner : Procedure or StreamProcedure
    n_features : int
        Of the rows, of which the models see nothing.
    """

    inner: Annotated[Any, Within(p="1")]
    n_features: Annotated[int, Size("d")]

    def __init__(self, inner: Any, n_features: int) -> None:
        super().__init__(inner)
        self.n_features = n_features

    def seen(self, rows: Rows) -> Rows:
        """Return the rows: the procedure's views make ones of them."""
        return rows

    def remap(self, change: Change) -> None:
        """Go on in other units of the features, of which the constants have none."""
        self.inner.remap(
            Change(
                lambda value, power: (
                    value if power == 1 else change.of_field(value, power)
                )
            )
        )

    def changed(self, model: LocalModels) -> LocalModels:
        """Return the model with weights of zero."""
        constants = np.ascontiguousarray(model.local_coef[:, :, 0])
        zeros = np.broadcast_to(
            np.zeros((), constants.dtype), (*constants.shape, self.n_features)
        )
        return replace(model, local_coef=zeros, local_intercept=constants)


class Mapped(Wrapped):
    """A procedure over mapped rows, whose models are those of the rows themselves.

    Parameters
    ----------
    inner : Procedure or StreamProcedure
    linear_map : LinearMap
    """

    linear_map: LinearMap

    def __init__(self, inner: Any, linear_map: LinearMap) -> None:
        super().__init__(inner)
        self.linear_map = linear_map

    def move(self, linear_map: LinearMap) -> None:
        """Go on with a stream under another map."""
        before, self.linear_map = self.linear_map, linear_map
        self.inner.remap(
            Change(
                lambda value, power: linear_map.of_field(before.back(value, power), power)
            )
        )

    def remap(self, change: Change) -> None:
        """Go on in other units of the features that are mapped."""
        seen, added = self.linear_map, change.added
        self.inner.remap(
            Change(
                lambda value, power: seen.of_field(
                    change.of_field(seen.back(value, power), power), power
                ),
                None if added is None else lambda coef: added(seen.back(coef, 1)),
            )
        )

    def seen(self, rows: Rows) -> Rows:
        """Return the rows mapped."""
        return self.linear_map.of_rows(rows)

    def changed(self, model: FittedModel) -> FittedModel:
        """Return the model of the rows as they were."""
        units = {
            name: self.linear_map.back(getattr(model, name), power)
            for name, power in model.units.items()
        }
        return replace(model, **units)
