"""The search for the smallest change that flips a prediction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loclin.inspection.moves import Floats, Moves

_FARTHER = 1.02  # past the border of a linear model, so that rounding does not decide
_PARTS = np.array([0.3, 0.6, 1.5])  # of a step, tried beside the whole
_LENGTHS = np.array([0.1, 0.4, 1.6])  # units, where a step is longer than the model holds
_ON_PATH = 16  # points looked at on a path, at once
_ROUNDS = 4
_LESS = 1e-3  # share of the distance that another try must save
_RIVALS = 3  # classes that may be reached first
_SHORTEST = 1e-3  # units that a jump is taken to be at least
_MORE = 3  # jumps after the first flip, for a nearer one
_MOST_TIMES = 50  # that single changes are made smaller
_FEW = 8  # numbers, each of which is tried alone, also where slopes lead to a flip
_RAYS = 2.0 ** np.arange(-3, 7)  # units of these tries


class Found(NamedTuple):
    """Where a search has come to.

    Parameters
    ----------
    z : ndarray of shape (n_names,)
    distance : float
    margin : float
        Positive where the prediction has flipped.
    n_steps : int
    """

    z: Floats
    distance: float
    margin: float
    n_steps: int

    def is_better(self, other: Found) -> bool:
        """Tell whether it has flipped, and nearer; or has come nearer to it."""
        if (self.margin > 0) != (other.margin > 0):
            return self.margin > 0
        if self.margin > 0:
            return self.distance < other.distance
        return self.margin > other.margin


class Search:
    """A search from one row.

    Parameters
    ----------
    moves : Moves
    before : int
        The class predicted.
    target : int or None
        The class to reach; None for any other.
    max_steps : int
    """

    def __init__(
        self, moves: Moves, before: int, target: int | None, max_steps: int
    ) -> None:
        self.moves, self.before, self.target = moves, before, target
        self.max_steps = max_steps
        self._jumped = False

    def found(self) -> Found:
        """Return the nearest flip, or the nearest try."""
        moves = self.moves
        best = self._at(moves.start[None], 0)
        numbers = np.flatnonzero(moves.may_move & ~moves.is_choice)
        kinds = self._kinds() if len(numbers) else []
        best = self._by_jumps(kinds, best, choices=False)
        if (moves.may_move & moves.is_choice).any():
            best = self._by_jumps(kinds, best, choices=True)
        if len(numbers) <= _FEW or best.margin <= 0:
            best = _better(self._by_rays(numbers), best)
        return self._with_less(best) if best.margin > 0 and self._jumped else best

    def _by_jumps(self, kinds: list[str], best: Found, choices: bool) -> Found:
        """Return the best of where slopes lead to, from the start and after each jump."""
        moves, base = self.moves, self.moves.start
        n_more = self.max_steps
        for n_jumps in range(self.max_steps):
            if n_jumps or not choices:  # they have been asked at the start
                for kind in kinds:
                    best = _better(self._by_slopes(base, kind, n_jumps), best)
            tried = moves.snapped(moves.jumps_from(base, choices))
            if not len(tried):
                break
            self._jumped = True
            after = self._at(tried, n_jumps + 1)
            best = _better(self._shortened(moves.start, after), best)
            farther = self._after_jump(base, tried, best, n_jumps)
            n_more = min(n_more, _MORE) - 1 if best.margin > 0 else n_more
            if farther is None or n_more < 0:
                break
            base = farther
        return best

    def margins(self, Z: Floats) -> Floats:
        """Return how far rows have flipped: the score that should win less the others'."""
        scores = self.moves.scores(Z)
        one = self.before if self.target is None else self.target
        others = np.delete(scores, one, axis=1).max(axis=1)
        sign = -1.0 if self.target is None else 1.0
        return np.asarray(sign * (scores[:, one] - others))

    def _at(self, Z: Floats, n_steps: int) -> Found:
        """Return the best of some places, as they can be written."""
        Z = self.moves.snapped(Z)
        margins, distances = self.margins(Z), self.moves.distance(Z)
        flipped = margins > 0
        order = np.where(flipped, distances, np.inf) if flipped.any() else -margins
        k = int(np.argmin(order))
        return Found(Z[k], float(distances[k]), float(margins[k]), n_steps)

    # Numbers, by slopes.

    def _kinds(self) -> list[str]:
        """Return what tells slopes: one of two where they agree at the start."""
        kinds = self.moves.kinds
        first, *others = (self.moves.slopes(self.moves.start, kind) for kind in kinds)
        return kinds[:1] if all(np.allclose(first, one) for one in others) else kinds

    def _by_slopes(self, base: Floats, kind: str, n_steps: int) -> Found:
        """Return where linear models lead to, each at the place before."""
        here = self._at(base[None], n_steps)
        for step in range(1, self.max_steps + 1):
            if here.margin > 0:
                break
            ends = self._ends(base, here.z, kind)
            if not len(ends):
                break
            ways = ends - here.z
            lengths = np.linalg.norm(ways / self.moves.units, axis=1)
            shares = [np.full(len(ends), part) for part in _PARTS]
            shares += [most / np.maximum(lengths, most) for most in _LENGTHS]
            parts = here.z + np.stack(shares)[:, :, None] * ways
            tried = np.concatenate([ends, parts.reshape(-1, len(base))])
            after = self._at(tried, n_steps + step)
            if not after.is_better(here):
                break
            here = after
        return self._nearer(base, here, kind)

    def _ends(self, base: Floats, z: Floats, kind: str) -> Floats:
        """Return where the linear model at a place says the border is, nearest first.

        As seen from the base, and from the place itself.
        """
        moves = self.moves
        slopes, scores = moves.slopes(z, kind), moves.scores(z[None])[0]
        ends = []
        for winner, loser in self._pairs(slopes, scores):
            slope = slopes[winner] - slopes[loser]
            lacks = _FARTHER * (scores[loser] - scores[winner]) + 1e-9 * abs(scores).max()
            away = (z - base) / moves.units
            for origin, need in ((base, lacks + slope @ away), (z, lacks)):
                low, high = (
                    (limit - origin) / moves.units for limit in (moves.low, moves.high)
                )
                change = nearest_beyond(slope, need, low, high)
                if change.any():
                    ends.append(origin + change * moves.units)
        return np.array(ends).reshape(-1, len(z))

    def _pairs(self, slopes: Floats, scores: Floats) -> list[tuple[int, int]]:
        """Return pairs of the class that should win and the one that should lose."""
        if self.target is not None:
            others = np.where(np.arange(len(scores)) == self.target, -np.inf, scores)
            return [(self.target, int(np.argmax(others)))]
        lacks = np.maximum(scores[self.before] - scores, 0.0)
        steep = np.linalg.norm(slopes - slopes[self.before], axis=1)
        far = np.where(steep > 0, lacks / np.where(steep > 0, steep, 1.0), np.inf)
        far[self.before] = np.inf
        nearest = np.argsort(far, kind="stable")[:_RIVALS].tolist()
        return [(k, self.before) for k in nearest if np.isfinite(far[k])]

    def _nearer(self, base: Floats, best: Found, kind: str) -> Found:
        """Return a flip that is nearer, on straight paths from the base."""
        if best.margin <= 0:
            return best
        best = self._shortened(base, best)
        kind = "local_gradient" if "local_gradient" in self.moves.kinds else kind
        for _ in range(self.max_steps):
            ends = self._ends(base, best.z, kind)
            if not len(ends):
                break
            shares = np.linspace(0, 1.3, 27)[1:, None, None]
            tried = (base + shares * (ends - base)).reshape(-1, len(base))
            after = self._at(tried, best.n_steps + 1)
            if after.margin <= 0:
                break
            after = self._shortened(base, after)
            if after.distance > (1 - _LESS) * best.distance:
                return after if after.is_better(best) else best
            best = after
        return best

    def _shortened(self, base: Floats, best: Found) -> Found:
        """Return the first flip on the path from the base, to some digits."""
        if best.margin <= 0:
            return best
        low, high = 0.0, 1.0
        way = best.z - base
        for _ in range(_ROUNDS):
            shares = np.linspace(low, high, _ON_PATH + 1)[1:]
            places = base + shares[:, None] * way
            places[-1] = best.z if high == 1.0 else places[-1]
            places = np.where(self.moves.is_choice, best.z, self.moves.snapped(places))
            margins = self.margins(places)
            if not (margins > 0).any():
                break
            first = int(np.argmax(margins > 0))
            high, low = shares[first], shares[first - 1] if first else low
            z = places[first]
            best = Found(
                z, float(self.moves.distance(z)), float(margins[first]), best.n_steps
            )
        return best

    def _by_rays(self, numbers: NDArray[np.intp]) -> Found:
        """Return the best of places along each number, and of straight paths to some."""
        moves = self.moves
        best = self._at(moves.start[None], 0)
        ways = np.concatenate([-np.eye(len(moves.start)), np.eye(len(moves.start))])
        rays = moves.units * ways[np.concatenate([numbers, numbers + len(moves.start)])]
        found = [self._at(moves.start + _RAYS[:, None] * ray, 1) for ray in rays]
        flipped = sorted(
            (one for one in found if one.margin > 0), key=lambda one: one.distance
        )
        for one in flipped[:_RIVALS]:
            best = _better(self._nearer(moves.start, one, moves.kinds[0]), best)
        for one in found:
            best = _better(one, best)
        return best

    # Choices, and boxes of trees.

    def _after_jump(
        self, base: Floats, tried: Floats, best: Found, n_steps: int
    ) -> Floats | None:
        """Return the place of those tried that gains most for its length, to go on from."""
        margins, distances = self.margins(tried), self.moves.distance(tried)
        here = self.margins(base[None])[0]
        nearer = distances < best.distance if best.margin > 0 else True
        gain = np.where((margins <= 0) & nearer, margins - here, 0.0)
        if gain.max() <= 0:
            return None
        # at such a pace the prediction flips within the steps that are left
        pace = min(-0.5 * here / (self.max_steps - n_steps), gain.max())
        longer = np.maximum(distances - self.moves.distance(base), _SHORTEST)
        return np.asarray(
            tried[np.argmax(np.where(gain >= pace, gain / longer, -np.inf))]
        )

    def _with_less(self, best: Found) -> Found:
        """Return the flip with changes as small as each by itself can be."""
        moves = self.moves
        shares = np.arange(_ON_PATH) / _ON_PATH
        for _ in range(_MOST_TIMES):
            changed = np.flatnonzero(best.z != moves.start)
            Z = np.repeat(best.z[None], len(changed) * len(shares), axis=0)
            k, share = np.repeat(changed, len(shares)), np.tile(shares, len(changed))
            part = moves.start[k] + share * (best.z - moves.start)[k]
            Z[np.arange(len(Z)), k] = np.where(moves.is_choice[k], moves.start[k], part)
            if not len(Z):
                break
            after = self._at(Z, best.n_steps)
            if not after.is_better(best):
                break
            best = after
        return best


def nearest_beyond(slope: Floats, need: float, low: Floats, high: Floats) -> Floats:
    """Return the least change within limits that a linear function gains as much from.

    Parameters
    ----------
    slope : ndarray of shape (d,)
    need : float
    low, high : ndarray of shape (d,)
        Limits of the change, which hold no change.

    Returns
    -------
    change : ndarray of shape (d,)
        Where nothing gains as much, the one that gains most.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_beyond(np.array([3.0, 4.0]), 5.0, np.full(2, -9.0), np.array([9.0, 0.5]))
    array([1. , 0.5])
    """
    if need <= 0:
        return np.zeros_like(slope)
    limit = np.where(slope > 0, high, np.where(slope < 0, low, 0.0))
    # how far along the slope each number meets its limit
    with np.errstate(all="ignore"):
        meets = np.where(slope == 0, np.inf, limit / slope)
    order = np.argsort(meets, kind="stable")
    meets, steep = meets[order], slope[order] ** 2
    rest = np.cumsum(steep[::-1])[::-1]  # what still moves
    gained, least = 0.0, need / np.finfo(np.float64).max
    for k in range(len(order)):
        if rest[k] <= least:  # or the change would have no number
            break
        length = (need - gained) / rest[k]
        if length <= meets[k]:
            return np.clip(length * slope, np.minimum(low, 0), np.maximum(high, 0))
        gained += steep[k] * meets[k]
    return limit


def _better(one: Found, other: Found) -> Found:
    return one if one.is_better(other) else other
