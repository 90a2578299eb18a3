"""When a running fit has gone far enough, and procedures that change what others learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from loclin.engine.data import Rows, is_sparse
from loclin.engine.procedure import Change, Descent, FittedModel, LocalModels, StreamProcedure
from loclin.engine.scores import winners
from loclin.engine.shapes import Size, Within
from loclin.engine.warned import warn
from loclin.fitting.rows import in_rounds
from loclin.fitting.targets import share_right


class EndOfRounds(NamedTuple):
    """How fits in rounds end, beside those whose iterations take all rows.

    Parameters
    ----------
    patience : int, default=1
        Times `n_iter_no_change`: the objective watched is a mean over some rounds, and late.
    share : float, default=0.0
        Of the objective, over `tol`, that a round is to take off, instead of `tol`. A round of few
        of many rows lowers the objective by little, if for long, the less the lower it is.
    averaged : int, default=1
        Times `average`.
    """

    patience: int = 1
    share: float = 0.0
    averaged: int = 1


@dataclass
class Plateau:
    """A value that is to fall, by `tol` and by a share, and the iterations since it last did."""

    tol: float
    patience: int
    share: float = 0.0
    best: float = np.inf
    waited: int = 0

    def reached(self, value: float) -> bool:
        """Tell whether the value has not fallen so far for `patience` iterations in a row."""
        fell = value < min(self.best - self.tol, self.best * (1 - self.share))
        self.waited = 0 if fell else self.waited + 1
        self.best = min(self.best, value)
        return self.waited >= self.patience

    def replay(self, values: Sequence[float]) -> int:
        """Take the values of a fit that goes on; return how many it took to the plateau, or 0."""
        return next((n for n, value in enumerate(values, 1) if self.reached(value)), 0)


def end_of(classifier: Any, n_samples: int) -> tuple[Plateau, int]:
    """Return the plateau that ends a fit to so many rows, and the iterations averaged after it."""
    plateau, average = Plateau(classifier.tol, classifier._patience), classifier.average
    if not in_rounds(classifier, n_samples):
        return plateau, average
    patience, share, averaged = classifier._end_of_rounds
    if not classifier.early_stopping:
        plateau = replace(plateau, patience=patience * plateau.patience)
        if share:
            plateau = replace(plateau, tol=plateau.tol / 10, share=share * plateau.tol)
    return plateau, averaged * average


def accuracy_with(classifier: Any, fitted: FittedModel, rows: Rows) -> float:
    """Weighted accuracy of the classifier with this model, on rows held out."""
    model = copy(classifier)
    model._learned = fitted
    found = winners(model._class_scores(rows.X), model._multilabel)
    return float(np.average(share_right(found, rows.y), weights=rows.weights))


def warn_of_end(classifier: Any, gap: float | None) -> None:
    """Warn that all iterations were done before the duality gap, or a plateau, was reached."""
    end, tol = f"max_iter={classifier.max_iter} iterations", classifier.tol
    is_raw = classifier._features.is_raw
    if gap is None:
        watched = "held-out accuracy" if classifier.early_stopping else "objective"
        told = (
            f"The {watched} had not levelled off (tol={tol:g}) when {end} were done. "
            "Raise max_iter or tol."
        )
    elif gap > tol:
        told = (
            f"The duality gap is {gap:.2g} of the objective after {end}, above tol={tol:g}. "
            f"{'Scale the features, raise' if is_raw else 'Raise'} alpha, max_iter or tol."
        )
    else:
        return
    warn(told, ConvergenceWarning)


def check_learned(classifier: Any) -> None:
    """Raise where something that was learned is not finite."""
    learned = [value for name, value in vars(classifier._learned).items() if name != "dual_gap"]
    learned += classifier.objective_[-1:]
    parts = [value.data if is_sparse(value) else np.asarray(value) for value in learned]
    if not all(np.isfinite(part).all() for part in parts if part.dtype.kind == "f"):
        floats = [(k, v) for k, v in classifier.get_params().items() if isinstance(v, float)]
        odd = [f"{k}={v:g}" for k, v in floats if 1e30 < v < np.inf or 0 < v < 1e-30]
        cure = f"take {' and '.join(odd)} nearer to 1." if odd else "raise alpha."
        if classifier._features.is_raw:
            cure = f"scale the features first, for example by standardize=True, or {cure}"
        raise ValueError(f"Training overflowed: some weights are no longer finite; {cure}")


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
    def changed(self, model: Any) -> FittedModel:
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

    def result(self, *, final: bool = False) -> FittedModel:
        """Return the model as it stands."""
        return self.changed(self.inner.result(final=final))


class Constants(Wrapped):
    """A procedure over a column of ones: its weights are the constants that the models say.

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
            Change(lambda value, power: value if power == 1 else change.of_field(value, power))
        )

    def changed(self, model: LocalModels) -> LocalModels:
        """Return the model with weights of zero."""
        constants = np.ascontiguousarray(model.local_coef[:, :, 0])
        zeros = np.broadcast_to(np.zeros((), constants.dtype), (*constants.shape, self.n_features))
        return replace(model, local_coef=zeros, local_intercept=constants)
