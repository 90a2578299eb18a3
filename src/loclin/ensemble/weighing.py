"""How much the members of an ensemble count, and how sure its scores are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.data import Floats, Labels
from loclin.ensemble.members import Members
from loclin.ensemble.selection import select
from loclin.fitting.probability import (
    StreamedTemperature,
    rescaled,
    smoothing_of,
    spread,
    temperature_of,
)
from loclin.fitting.trials import decisions_of

_MEMORY = 20_000  # rows of a stream that the units of scores remember, about
_MOST_SCORED = 500  # rows of a call


class WeighedMembers(Members):
    """Members whose units, shares and temperature rows tell."""

    def _weigh(
        self, rows: Any, labels: Labels, weights: Floats, folds: NDArray[np.intp], kinds: int
    ) -> None:
        """Set units, shares and the temperature, by the rows that members did not see."""
        n_each = len(self.members_) // kinds
        self.shares_, self.units_ = np.full(kinds, 1 / kinds), np.ones(kinds)
        some = np.flatnonzero((folds >= 0) & (folds < n_each))
        self.smoothing_ = smoothing_of(len(some) or len(labels))
        if not len(some):
            self._set_units(rows)
            self.temperature_ = temperature_of(decisions_of(self, rows), labels, weights)
            return
        shape = (len(labels),) if len(self.classes_) == 2 else (len(labels), len(self.classes_))
        held_out = [np.zeros(shape) for _ in range(kinds)]
        for number, member in enumerate(self.members_):
            kind, fold = divmod(number, n_each)
            out = np.flatnonzero(folds == fold)
            if len(out):
                held_out[kind][out] = member.decision_function(rows[out])
        parts = [part[some] for part in held_out]
        self.units_ = np.array([spread(part) or 1.0 for part in parts])
        parts = [part / unit for part, unit in zip(parts, self.units_, strict=True)]
        self.shares_ = select(parts, labels[some], weights[some])
        mean = np.asarray(sum(s * part for s, part in zip(self.shares_, parts, strict=True)))
        of_one = temperature_of(mean, labels[some], weights[some])
        few = some[:: -(-len(some) // _MEMORY)]
        here = spread(decisions_of(self, rows[few]))
        self.temperature_ = float(rescaled(of_one, here, spread(mean)))

    def _set_units(self, rows: Any) -> None:
        """Let the spread of scores on some rows be the kinds' units."""
        self.units_ = self._spreads(rows[:: -(-rows.shape[0] // _MOST_SCORED)])

    def _spreads(self, rows: Any) -> NDArray[np.float64]:
        return np.array([
            np.mean([spread(member.decision_function(rows)) or 1.0 for member in members])
            for members in self._by_kind()
        ])  # fmt: skip

    def _watch(self, rows: Any, labels: Labels, weights: Floats) -> None:
        """Let rows that are about to be learned tell units and temperature."""
        few = np.arange(len(labels))[:: -(-len(labels) // _MOST_SCORED)]
        share = min(1.0, len(labels) / min(self._n_seen + len(labels), _MEMORY))
        self.units_ = self.units_ + share * (self._spreads(rows[few]) - self.units_)
        known = self._streamed
        if not known.precision and self._n_seen:  # a fit came before
            n_rows = max(known.n_rows, round(1 / self.smoothing_) - 2)
            known = StreamedTemperature(-float(np.log(self.temperature_)), 10.0, n_rows)
        self._streamed = known.after(decisions_of(self, rows[few]), labels[few], weights[few])
        self.temperature_ = self._streamed.temperature
        self.smoothing_ = smoothing_of(self._streamed.n_rows)
