"""What a model hands to the loops of `fit` and `partial_fit`,
and what it gets back from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from loclin.engine.data import Floats, Rows
from loclin.engine.shapes import Shape
from loclin.portable.words import Coder, Term


class Change(NamedTuple):
    """A change of the units of the features, and of their origin.

    Parameters
    ----------
    of_field : callable
        A field in the new units, by the field and its power of them
        (`FittedModel.units`).
    added : callable or None
        What constants of linear functions gain, (...), by the coefficients before,
        (..., d).
    """

    of_field: Callable[[Any, int], Any]
    added: Callable[[Floats], Floats] | None = None


class Part(NamedTuple):
    """An array that a stream learns, as the last step left it:
    learning changes it in place.

    Parameters
    ----------
    name : str
    value : ndarray
    mean : ndarray or None
        Running mean of its iterates, which is what is predicted by; None where there is
        none.
    power : int
        Of the features' unit, as in `FittedModel.units`.
    of : str or None
        The part that has the coefficients of the functions whose constants these are.
    adds_up : bool
        Whether it is a sum over the rows, such as that of squared gradients.
    """

    name: str
    value: Any
    mean: Any = None
    power: int = 0
    of: str | None = None
    adds_up: bool = False


@dataclass(frozen=True, kw_only=True)
class FittedModel:
    """What a procedure has learned:
    field `name` is read as the fitted attribute ``name_``.

    The arrays are the model's own: the procedure does not change them afterwards.
    """

    units: ClassVar[dict[str, int]] = {}
    """Fields that change with the unit of the features:
    the power of ``1 / unit`` they have.
    """

    constants: ClassVar[dict[str, str]] = {}
    """Fields that are constants of linear functions, and the field of their coefficients."""

    intercept: Annotated[Floats, Shape("s")]

    @classmethod
    def names(cls) -> list[str]:
        """Names of the fields."""
        return [field.name for field in fields(cls)]


@dataclass(frozen=True, kw_only=True)
class Predictor(FittedModel, ABC):
    """What was learned, and all that predictions need."""

    @abstractmethod
    def coder(self, root: Floats | None) -> Coder:
        """Say how it writes codes, in the words of `portable.words`.

        Parameters
        ----------
        root : ndarray or None
            Of the metric: the coder sees rows ``root x``.
        """

    def term(self, root: Floats | None = None) -> Term:
        """Say what it computes, of rows as the model sees them; what scorers share, once."""
        learned: Any = self
        coef: Floats = learned.local_coef
        is_zero = not any(coef.strides) and not coef.flat[0]  # models say constants
        shared = len(coef) > 1 and coef.strides[0] == 0
        models = None if is_zero else coef[:1] if shared else coef
        return Term(
            self.coder(root), models, learned.local_intercept, self.intercept, root
        )


@dataclass(frozen=True, kw_only=True)
class LocalModels(FittedModel):
    """Local models of every scorer, and the L2 strength they were learned with."""

    units: ClassVar[dict[str, int]] = {"local_coef": 1}
    constants: ClassVar[dict[str, str]] = {"local_intercept": "local_coef"}

    local_coef: Annotated[Floats, Shape("s m d", constant=True)]
    local_intercept: Annotated[Floats, Shape("s m")]
    alpha: float

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles and files: weights of sparse rows stay by feature."""
        state = dict(vars(self))
        if not self.local_coef.flags.c_contiguous:
            state |= {
                "local_coef": None,
                "by_feature": np.moveaxis(self.local_coef, 2, 0),
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        by_feature = state.get("by_feature")
        if by_feature is not None:
            state = state | {"local_coef": np.moveaxis(by_feature, 0, 2)}
        self.__dict__.update(
            {name: state[name] for name in self.names() if name in state}
        )


class Learning(ABC):
    """A model on its way: over rows held in memory, or over rows that come once."""

    kept: Any = None
    """What a fit that goes on needs besides the fitted attributes.
    It copies before it changes.
    """

    @property
    @abstractmethod
    def products(self) -> float:
        """Multiply-adds of a typical matrix product: small ones get one thread."""

    @abstractmethod
    def result(self, *, final: bool = False) -> FittedModel:
        """Return the model as it stands; `final` where nothing more is to be learned."""


class Procedure(Learning):
    """A procedure over rows held in memory."""

    @property
    @abstractmethod
    def gap(self) -> float | None:
        """Duality gap over the objective; None where the procedure knows none."""

    @abstractmethod
    def iterate(self, *, average: bool) -> float:
        """Run one iteration and return the objective; average its iterates if asked."""


class Descent(Procedure):
    """A procedure that can go on with less of a penalty."""

    @abstractmethod
    def weaken(self, ratio: float) -> bool:
        """Go on with so much of the L2 strength; False where what it wraps cannot."""


def summed(values: Sequence[Any], shares: Floats, begun: Any = 0) -> Any:
    """Return what values have in common at the beginning, and what each adds, times its
    share; of whole numbers a whole one.
    """
    pairs = zip(values, shares, strict=True)
    total = begun + sum(share * (value - begun) for value, share in pairs)
    return round(total) if isinstance(values[0], int) else total


class StreamProcedure(Learning):
    """A procedure over rows that come once."""

    n_seen: int = 0  # rows so far
    counts: ClassVar[tuple[str, ...]] = ("n_seen",)
    """Attributes that add up over rows."""

    @abstractmethod
    def state(self) -> tuple[Part, ...]:
        """Return all arrays that it learns, in an order that its copies share."""

    def count_in(self, others: Sequence[Any], since: Any, shares: Floats) -> None:
        """Be the stream of the others together, once all parts are their means.

        Counts are what each has counted since they began as one, times its share, and
        what that had counted.
        """
        for name in self.counts:
            begun = 0 if since is None else getattr(since, name)
            setattr(
                self, name, summed([getattr(one, name) for one in others], shares, begun)
            )

    @abstractmethod
    def learn(self, rows: Rows, alpha: float | None, batch_size: int) -> float:
        """Learn from some more rows; return the objective over them.

        This is one pass over the rows, in the order of the procedure's generator, from
        the state as it stands: the last iterate is in its parts, and steps go on where
        the rows seen before have left them. So copies of a stream may each learn some of
        the rows, and `engine.merging` makes one of them.

        Weights are in units of the mean weight so far. `alpha` is the L2 strength; None
        stands for the procedure's rule, by the rows seen so far.
        """
