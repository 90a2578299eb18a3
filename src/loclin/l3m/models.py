"""What L3M learns: a linear partition, and linear models of its regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from loclin.engine.data import Floats
from loclin.engine.procedure import LocalModels, Predictor
from loclin.engine.shapes import Shape, Size
from loclin.portable.words import LinearGates


class RegionalModels(NamedTuple):
    """Partition functions and local models, as `regional_scores` takes them."""

    partition: NDArray[np.floating]  # shape: (r, d)
    thresholds: NDArray[np.floating]  # shape: (r,)
    coef: NDArray[np.floating]  # shape: (s, r, d)
    intercept: NDArray[np.floating]  # shape: (s, r)


@dataclass(frozen=True, kw_only=True)
class PartitionedModels(LocalModels, Predictor):
    """Local models of the regions of a partition."""

    units: ClassVar[dict[str, int]] = {"local_coef": 1, "partition_coef": 1}
    constants: ClassVar[dict[str, str]] = LocalModels.constants | {
        "partition_intercept": "partition_coef",
    }

    n_regions: Annotated[int, Size("m")]
    partition_coef: Annotated[NDArray[np.floating], Shape("m d")]
    partition_intercept: Annotated[NDArray[np.floating], Shape("m")]

    def coder(self, root: Floats | None) -> LinearGates:
        """Say that the model of the region with the largest function counts alone."""
        return LinearGates(self.partition_coef, self.partition_intercept, "one_hot")

    @property
    def regional(self) -> RegionalModels:
        """The same as the procedures take it."""
        return RegionalModels(
            self.partition_coef,
            self.partition_intercept,
            self.local_coef,
            self.local_intercept,
        )

    @classmethod
    def of(cls, models: RegionalModels, alpha: float, **more: Any) -> Self:
        """Return these models with the L2 strength, and with fields of a subclass."""
        return cls(
            n_regions=len(models.partition),
            partition_coef=models.partition,
            partition_intercept=models.thresholds,
            local_coef=models.coef,
            local_intercept=models.intercept,
            intercept=np.zeros(len(models.coef), models.coef.dtype),
            alpha=alpha,
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class ConvexModels(PartitionedModels):
    """Models of the convex program."""

    constraint_rows: Annotated[NDArray[np.intp], Shape("m-1", np.integer)]
    dual_gap: float


@dataclass(frozen=True, kw_only=True)
class OnlineModels(PartitionedModels):
    """Models of the online algorithm, after `t` rows."""

    constraint_rows: Annotated[NDArray[np.intp], Shape("m-1", np.integer)]
    t: int
