"""What a fit needs, as a value:
the parameters, what was chosen for its rows, and its beginning.

Short fits to parts of the rows choose strength, metric, pieces and temperature. Each is a
recipe with some fields replaced, so that none needs an estimator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from loclin.engine.codes import Intercepts
from loclin.engine.data import Floats, Rows
from loclin.engine.losses import Loss, loss_of
from loclin.engine.procedure import Procedure, StreamProcedure
from loclin.engine.rounds import AS_PASS, Rounds
from loclin.engine.schedule import auto_alpha
from loclin.engine.sgd_pass import PassSettings
from loclin.fitting.features import PLAIN, FeatureMap
from loclin.fitting.mapped import LinearMap, multiplier_of
from loclin.fitting.rows import auto_batch_size
from loclin.fitting.targets import n_scorers
from loclin.fitting.wrapped import Mapped


class EndOfRounds(NamedTuple):
    """How fits in rounds end, beside those whose iterations take all rows.

    Parameters
    ----------
    patience : int, default=1
        Times `n_iter_no_change`: the objective watched is a mean over some rounds, and
        late.
    share : float, default=0.0
        Of the objective, over `tol`, that a round is to take off, instead of `tol`. A
        round of few of many rows lowers the objective by little, if for long, the less
        the lower it is.
    averaged : int, default=1
        Times `average`.
    """

    patience: int = 1
    share: float = 0.0
    averaged: int = 1


class Before(NamedTuple):
    """What a fit, or a stream, goes on from.

    Parameters
    ----------
    learned : FittedModel
        Of the rows as the procedure takes them.
    kept : object
        What the procedure before has kept (`Learning.kept`).
    n_done : int
        Iterations of a fit that was cut off; else 0.
    """

    learned: Any
    kept: Any = None
    n_done: int = 0

    def mapped(self, linear_map: LinearMap) -> Before:
        """Return it for rows that are mapped."""
        changed = {
            name: linear_map.of_field(getattr(self.learned, name), power)
            for name, power in self.learned.units.items()
        }
        return self._replace(learned=replace(self.learned, **changed))


class Trial(NamedTuple):
    """Short fits of a model, by which it finds strength, metric and temperature.

    Those that tell strengths apart cost a fit or so, all of them.

    Parameters
    ----------
    changes : dict
        Fields of the recipe that are others.
    n_iterations : int, default=3
        Of each strength; the last is averaged. On 13 sets of training rows, three choose
        as well as all of a fit. With 0 the rule stands.
    goes_on : bool, default=True
        Whether each strength starts where the next stronger ended. From the weakest to
        the strongest instead, the choice is worse than the rule.
    most_draws : int, default=1
        Of the folds.
    n_calibrating : int, default=8
        Iterations of the fits whose held-out scores tell the temperature.
    longer : int, default=1
        Times as many of both, where rows suffice to hold out only once: the more a fit
        knows its rows by heart, the less its scores are worth elsewhere.
    n_learning : int, default=4
        Iterations of the fits whose gradients tell the metric.
    in_metric : bool, default=True
        Whether the codes can be those of rows in a metric.
    """

    changes: dict[str, Any]
    n_iterations: int = 3
    goes_on: bool = True
    most_draws: int = 1
    n_calibrating: int = 8
    longer: int = 1
    n_learning: int = 4
    in_metric: bool = True


# Passes of dual coordinate descent, begun anew with each strength, prefer strong ones for
# longer.
DUAL_TRIAL = Trial({}, n_iterations=5, longer=2)


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a fit knows of its rows, and what was chosen for them.

    Parameters
    ----------
    classes : ndarray of shape (c,)
    seed : int
        Of all that is drawn.
    n_features : int
        Of the rows as they are given.
    multilabel : bool
        Whether a row has several labels.
    streams : bool
        Whether more rows will come.
    features : FeatureMap
        Of the rows, to those that the model sees. What a recipe is given are these.
    largest : float
        At least the largest absolute value of the features as the model sees them; 0: not
        known.
    root : ndarray or None
        Of the metric.
    factor : float
        On the rule for the strength.
    multiplier : float
        Of the features while they are learned from.
    """

    classes: NDArray[Any] = field(default_factory=lambda: np.arange(2))
    seed: int = 0
    n_features: int = 0
    multilabel: bool = False
    streams: bool = False
    features: FeatureMap = PLAIN
    largest: float = 0.0
    root: Floats | None = None
    factor: float = 1.0
    multiplier: float = 1.0


class EndsWithRows(ABC):
    """A recipe whose stream needs rows once more, where its rounds over parts end."""

    @abstractmethod
    def ended(self, learned: Any, rows: Rows) -> Any:
        """Return what is learned in the end; the rows are some of all parts."""


@dataclass(frozen=True, kw_only=True)
class Recipe(Known, ABC):
    """What a fit needs. A model adds its parameters, and says how it begins.

    Parameters that a model's constructor has not keep these defaults.
    """

    loss: str | Loss = "hinge"
    alpha: float | str = "auto"
    metric: str | int | None = None
    pieces: str | int | None = None
    standardize: bool = False
    max_iter: int = 1
    round_rows: int | None = None
    tol: float = 0.0
    n_iter_no_change: int = 1
    batch_size: int | str = "auto"
    average: int = 0
    eta0: float = 10.0
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_jobs: int | None = None
    calibrate: bool = True
    warm_start: bool = False
    class_weight: Any = None
    random_state: Any = None
    verbose: int = 0

    # The parameter that "auto" leaves to held-out rows.
    strength_name: ClassVar[str] = "alpha"
    # The rule's strength falls as this power of the rows.
    strength_falls: ClassVar[float] = 1.0
    # The strength by the rule for alpha, in units of that of most models.
    alpha_unit: ClassVar[float] = 1.0
    end_of_rounds: ClassVar[EndOfRounds] = EndOfRounds()
    # Are there intercepts that are weights of a constant 1?
    multiplies_features: ClassVar[bool] = False
    # Are codes learned along with the models? Else the coding stays as it was.
    learns_codes: ClassVar[bool] = False
    # The parameter that may be a coding, or points.
    coding_name: ClassVar[str | None] = None
    # Can a fit do with the columns that are used, and the model with all of them later?
    can_do_with_columns: ClassVar[bool] = False
    # Can a stream's model be carried to another map?
    follows_moments: ClassVar[bool] = False

    # What a model supplies.

    @abstractmethod
    def check(self) -> None:
        """Raise where a parameter of the model is not valid."""

    @abstractmethod
    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """

    @abstractmethod
    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return the short fits that choose the strength on few rows,
        and the temperature.

        Parameters
        ----------
        rows : Rows
        learned : Predictor, default=None
            What a fit to the rows has learned, where there is one.
        """

    @abstractmethod
    def start(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> Procedure:
        """Begin a fit, or go on from the one before."""

    @abstractmethod
    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> StreamProcedure:
        """Begin a stream, these being its first rows, or go on from a fit before."""

    # What it tells.

    @classmethod
    @cache
    def parameters(cls) -> frozenset[str]:
        """Return the names of the fields that are parameters."""
        return frozenset(one.name for one in fields(cls)) - {
            one.name for one in fields(Known)
        }

    @classmethod
    @cache
    def needed(cls) -> frozenset[str]:
        """Return the names of the parameters without a default."""
        return frozenset(
            one.name
            for one in fields(cls)
            if one.default is MISSING and one.default_factory is MISSING
        )

    @classmethod
    def of(cls, given: Mapping[str, Any], **known: Any) -> Self:
        """Return the recipe with those of the parameters that are given."""
        return cls(
            **{name: given[name] for name in cls.parameters() & given.keys()}, **known
        )

    @property
    def linear_map(self) -> LinearMap:
        """The map of the rows that are learned from."""
        return LinearMap(self.multiplier, self.root)

    @property
    def coding_given(self) -> Any:
        """The coding, or the points, that the user gave;
        None where the model takes neither.
        """
        return getattr(self, self.coding_name) if self.coding_name else None

    @property
    def n_scorers(self) -> int:
        """One scorer for each class or label, and one for two classes."""
        return len(self.classes) if self.multilabel else n_scorers(self.classes)

    def strength(self, norm2: float, n_samples: float) -> float:
        """Return the L2 strength: the one given, or the rule's times the factor chosen."""
        if isinstance(self.alpha, str):
            return self.factor * self.alpha_unit * auto_alpha(norm2, n_samples)
        return float(self.alpha)

    def rows_of_batch(self, n_samples: int) -> int:
        """Return the rows that are scored together, of so many."""
        if isinstance(self.batch_size, str):
            return auto_batch_size(n_samples)
        return min(int(self.batch_size), n_samples)

    def takes_rounds(self, n_samples: int) -> bool:
        """Tell whether an iteration of a fit to so many rows takes some of them only."""
        return self.round_rows is not None and n_samples > self.round_rows

    def starting_eta0(self, n_samples: int, part: float) -> float:
        """Return `eta0`, or a part of it in rounds:
        there are few to make up for a wild start.
        """
        return float(self.eta0 * (part if self.takes_rounds(n_samples) else 1))

    def rounds(
        self, rows: Rows, rng: np.random.Generator, before: Before | None = None,
        as_pass: float = AS_PASS,
    ) -> Rounds:  # fmt: skip
        """Return the rows of the iterations, all of which make a pass at least."""
        n, passed = len(rows.y), 0 if before is None else getattr(before.learned, "t", 0)
        if self.round_rows is None or n <= self.round_rows:
            return Rounds(rows, None, rng, passed)
        n_rows = max(int(self.round_rows), -(-n // self.max_iter))
        return Rounds(rows, n_rows, rng, passed, as_pass=as_pass)

    def settings(
        self, alpha: float, n_samples: int, intercepts: Intercepts, *,
        competing: bool = False, penalize_intercept: bool = True,
    ) -> PassSettings:  # fmt: skip
        """Return what a pass of the descent needs to know, of so many rows."""
        loss, batch_size = loss_of(self.loss).compiled, self.rows_of_batch(n_samples)
        return PassSettings(
            alpha, loss, batch_size, competing, intercepts, penalize_intercept
        )

    # How a fit begins.

    def measured(self, rows: Rows) -> Self:
        """Return the recipe with the multiplier that suits these rows."""
        if not (self.multiplies_features and isinstance(self.alpha, str)):
            return replace(self, multiplier=1.0)
        return replace(self, multiplier=multiplier_of(rows.X, self.largest))

    def begin(
        self, rows: Rows, rng: np.random.Generator, before: Before | None = None
    ) -> Procedure:
        """Begin a fit, or go on, over rows that may be mapped."""
        if self.linear_map.is_plain:
            return self.start(rows, rng, before)
        seen, before = (
            self.linear_map.of_rows(rows),
            before and before.mapped(self.linear_map),
        )
        return Mapped(self.start(seen, rng, before), self.linear_map)

    def begin_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None = None,
        *, moves: bool = False,
    ) -> StreamProcedure:  # fmt: skip
        """Begin a stream, or go on, in the same way; `moves` where the map will change."""
        if self.linear_map.is_plain and not moves:
            return self.start_stream(rows, rng, before)
        seen, before = (
            self.linear_map.of_rows(rows),
            before and before.mapped(self.linear_map),
        )
        return Mapped(self.start_stream(seen, rng, before), self.linear_map)
