"""What an ensemble holds: its members, and how much each kind of them counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.shapes import Shape
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.consistent import wrong_with_classes
from loclin.fitting.probability import StreamedTemperature


class Members:
    """The members of an ensemble of k kinds."""

    members_: list[Any]
    shares_: Annotated[NDArray[np.float64], Shape("k", np.float64)]
    units_: Annotated[NDArray[np.float64], Shape("k", np.float64)]
    validation_losses_: list[float]
    _streamed: StreamedTemperature = StreamedTemperature()
    _n_seen: int = 0
    _n_each: list[int] | None = None  # members of each kind; None: as many of each

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if not hasattr(self, "members_"):
            return None
        members, n_kinds = self.members_, sizes["k"]
        numbers = self._n_each or [len(members) // n_kinds] * n_kinds
        if len(numbers) != n_kinds or sum(numbers) != len(members) or min(numbers) < 1:
            return f"members_ are {len(members)}, but there should be {numbers} of each kind"
        for one in members:
            if not (isinstance(one, LocallyLinearClassifier) and one._is_fitted()):
                return f"members_ have a {type(one).__name__} that is no fitted classifier"
            told = one.n_features_in_, len(one.classes_), one.local_coef_.dtype
            if told != (sizes["d"], sizes["c"], members[0].local_coef_.dtype):
                return "members_ are not of the same features, classes and precision"
        return wrong_with_classes(self, sizes, False)
