"""Anchors that are learned with the local models they weigh (LLC-SAPL).

Minimises, over the models ``W`` (s, m, d), ``b`` (s, m), the anchors ``V`` (m, d) and, if
asked, the bandwidth,

    alpha/2 ||W||^2 + 1/(sum w) sum_i w_i sum_y loss(+-f_y(x_i)),
    f_y(x) = sum_j code_j(x) (w_yj . x + b_yj),      code = localised soft assignment to V

(equation 21 of Mao et al., 2015). The weights take the steps of `engine.sgd`; the anchors
their own, which AdaGrad measures: ``rate / sqrt(sum of squared gradient lengths)``, one
number an anchor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from loclin.engine.averaging import DescentModels
from loclin.engine.coders import Coder as LearnedCoder
from loclin.engine.coders import room_for_codes
from loclin.engine.data import Floats, Labels, Matrix, Rows, is_sparse
from loclin.engine.neighbors import soft_assignment
from loclin.engine.prediction import codes_by, in_best_form
from loclin.engine.procedure import Change, Descent, Part, Predictor, StreamProcedure
from loclin.engine.rows import compiled_form
from loclin.engine.shapes import Shape, Size, Within
from loclin.engine.threads import side_by_side
from loclin.fitting.mapped import LinearMap
from loclin.portable.words import Coder, CodesByScorer, NearestAnchors
from loclin.sapl.kernels import MovingAnchors

# Passes with the anchors at rest, before those of max_iter (equation 20).
AT_REST = 5


@dataclass(frozen=True, kw_only=True)
class AnchoredModels(DescentModels, Predictor):
    """Local models and what writes their codes; s of each where scorers have their own."""

    units: ClassVar[dict[str, int]] = {"local_coef": 1, "anchors": -1, "bandwidth": 2}

    anchors: Annotated[Floats, Shape("m d | s m d")]
    n_neighbors: Annotated[int, Size("k")]
    bandwidth: float | Annotated[Floats, Shape("s", np.float64)]
    # of anchors, bandwidth, stretches
    history: Annotated[Floats, Shape("h | s h", np.float64)]

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        m, by_scorer = sizes["m"], self.anchors.ndim == 3
        if sizes["k"] > m:
            return f"n_neighbors is {sizes['k']}, but there are {m} anchors"
        if [np.ndim(self.bandwidth), self.history.ndim - 1] != [by_scorer] * 2:
            return "bandwidth and history are not those of as many sets of anchors"
        if sizes["h"] not in (m + 1, m + 1 + sizes["d"]):
            return f"history has shape {self.history.shape}, but there are {m} anchors"
        if by_scorer and sizes["s"] != sizes.get("c", sizes["s"]):
            return f"anchors are of {sizes['s']} classes, but there are {sizes['c']}"
        return None

    def assignments(self, root: Floats | None = None) -> tuple[NearestAnchors, ...]:
        """Say the soft assignment of each scorer, by its anchors;
        one where they share these.
        """
        anchors = LinearMap(root=root).of_field(self.anchors, -1)
        by_scorer = anchors.reshape(-1, *anchors.shape[-2:])
        bandwidths = np.ravel(self.bandwidth)
        return tuple(
            soft_assignment(of_scorer, self.n_neighbors, float(bandwidth))
            for of_scorer, bandwidth in zip(by_scorer, bandwidths, strict=True)
        )

    def coder(self, root: Floats | None) -> Coder:
        """Say how anchors count: all scorers', or those of each."""
        parts = self.assignments(root)
        return parts[0] if len(parts) == 1 else CodesByScorer(parts)


class LearnedAnchors(LearnedCoder):
    """Anchors, and the bandwidth of localised soft assignment to them, on their way.

    Parameters
    ----------
    coder : NearestAnchors
        Fitted: where the anchors start.
    dtype : dtype
    anchor_lr : float
        First step of an anchor, in units of ``1 / sqrt(bandwidth)``, the reach of its
        code: as a pass begins, but no longer than at the start.
    bandwidth_lr : float
        The same of the bandwidth's logarithm; 0 keeps the bandwidth.
    stretch_lr : float
        The same of the logarithms by which all anchors together are stretched along each
        feature; 0 stretches none.
    n_at_rest : int
        Passes before the anchors move: LL-SVM (equation 20). The last of them measures
        the anchors' gradients, so that their first steps are not long.
    """

    scores_all_models = False
    first_bandwidth: float = np.inf  # where a stream's file has none, as of the next two
    stretch_lr: float = 0.0
    n_stretched: int = 0
    V: Annotated[Floats, Shape("m d", looped=True)]
    n_neighbors: Annotated[int, Size("k")]
    bandwidth: Annotated[Floats, Shape("1", np.float64, looped=True)]
    rates: Annotated[Floats, Shape("2", np.float64)]
    history: Annotated[Floats, Shape("h", np.float64, looped=True)]
    sum_V: Annotated[Floats, Shape("m d", looped=True, empty=True)]
    sum_log_bandwidth: Annotated[Floats, Shape("1", np.float64, looped=True)]

    def __init__(self, coder: NearestAnchors, dtype: DTypeLike, anchor_lr: float,
                 bandwidth_lr: float, stretch_lr: float, n_at_rest: int) -> None:  # fmt: skip
        self.V = coder.anchors.astype(dtype, order="C", copy=True)
        self.n_neighbors = min(coder.n_neighbors, len(self.V))
        self.bandwidth = np.array([coder.parameter])
        self.rates = np.array([anchor_lr / np.sqrt(coder.parameter), bandwidth_lr])
        self.stretch_lr = stretch_lr
        self.first_bandwidth = coder.parameter
        self.n_stretched = self.V.shape[1] if stretch_lr > 0 else 0
        self.history = np.zeros(len(self.V) + 1 + self.n_stretched)
        self.n_at_rest = n_at_rest
        self.forget_average()

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        m, d = self.V.shape
        if self.n_neighbors > m:
            return f"n_neighbors is {self.n_neighbors}, but there are {m} anchors"
        if (
            self.n_stretched not in (0, d)
            or len(self.history) != m + 1 + self.n_stretched
        ):
            return f"history has shape {self.history.shape}, but there are {m} anchors"
        return None

    def learned(self) -> list[Part]:
        """Return the anchors and their bandwidth,
        and the sums of their squared gradients.
        """
        return [
            Part("anchors", self.V, power=-1),
            Part("bandwidth", self.bandwidth, power=2),
            Part("history", self.history, adds_up=True),
        ]

    def follow(self, history: Floats) -> Self:
        """Go on with the steps of an earlier fit; stretch features only if it did."""
        self.n_stretched = min(self.n_stretched, len(history) - len(self.V) - 1)
        self.history = np.array(history[: len(self.V) + 1 + self.n_stretched])
        return self

    def codes(self, Z: Matrix) -> Matrix:
        """Codes of rows, by the anchors as they stand."""
        coder = soft_assignment(self.V, self.n_neighbors, float(self.bandwidth[0]))
        return in_best_form(codes_by(coder, Z), Z)

    def begin_pass(
        self, Z: Matrix, batch_size: int, *, moves: bool, average: bool
    ) -> MovingAnchors:
        """Return the anchors as a pass takes them: for sparse rows feature by feature."""
        (m, d), k = self.V.shape, self.n_neighbors
        dtype, by_feature = self.V.dtype, is_sparse(Z)
        if not moves:
            self.history[:] = 0
        if average and not len(self.sum_V):
            self.sum_V = np.zeros_like(self.V)
        V = np.ascontiguousarray(self.V.T) if by_feature else self.V
        # of a pass over sparse rows; over dense ones the sums go on from pass to pass
        sums = np.zeros_like(V if average else V[:0])
        # longer steps would blur the codes further, and the bandwidth would fall without
        # end
        shorter = min(1.0, float(np.sqrt(self.first_bandwidth / self.bandwidth[0])))
        rates = np.array([*(self.rates * (shorter, 1.0)), self.stretch_lr])
        codes = room_for_codes(Z, batch_size, k, dtype)
        return MovingAnchors(
            codes=codes,
            X=compiled_form(Z),
            V=V,
            squares=np.einsum("jf,jf->j", self.V, self.V),
            bandwidth=self.bandwidth,
            rates=rates if moves else np.zeros(3),
            history=self.history,
            pace=self.pace if moves else 1.0,
            gradient=np.zeros_like(V),
            centre=self.V.mean(axis=0),
            stretch=np.zeros(self.n_stretched, dtype),
            pulls=np.empty_like(codes[0]),
            buffer=np.empty((0 if by_feature else batch_size, d), dtype),
            products=np.empty((m, batch_size), dtype),
            averages=average,
            sums=self.sum_V if average and not by_feature else sums,
            sum_log_bandwidth=self.sum_log_bandwidth,
            scales=np.ones(m),
            counts=np.zeros(m),
            lengths=np.einsum("jf,jf->j", self.V, self.V, dtype=np.float64),
            touched=np.zeros(d, np.bool_),
        )

    def end_pass(self, compiled: MovingAnchors, *, average: bool) -> None:
        """Take back what a pass over sparse rows has kept feature by feature."""
        if compiled.V is self.V:
            return
        if average:
            self.sum_V += (compiled.counts * compiled.V + compiled.sums).T
        self.V[:] = (compiled.scales * compiled.V).T

    def forget_average(self) -> None:
        """Begin averaging anew."""
        self.sum_V = np.zeros((0, self.V.shape[1]), self.V.dtype)
        self.sum_log_bandwidth = np.zeros(1)

    def current(self, n_averaged: float) -> tuple[Floats, ...]:
        """Mean of anchors and of the bandwidth's logarithm since
        averaging began, or the last.
        """
        steps = n_averaged
        V = self.sum_V / self.V.dtype.type(steps) if steps else self.V.copy()
        learned = steps and self.rates[1] > 0
        bandwidth = (
            np.exp(self.sum_log_bandwidth / steps) if learned else self.bandwidth.copy()
        )
        return V, bandwidth

    def fitted(self, models: DescentModels, *iterate: Floats) -> AnchoredModels:
        """Add the anchors to fitted models."""
        V, bandwidth = iterate
        return AnchoredModels(
            **vars(models),
            anchors=V,
            n_neighbors=self.n_neighbors,
            bandwidth=float(bandwidth[0]),
            history=self.history.copy(),
        )


class ByScorer(Descent, StreamProcedure):
    """Fits, or streams, of one scorer each, run as one.

    Parameters
    ----------
    parts : list of SGDFit or of SGDStream
    n_jobs : int or None
        Parts that run at once.
    """

    gap = None  # the procedure knows none
    parts: Annotated[list[Any], Within(s="1")]
    n_jobs: int | None

    def __init__(self, parts: list[Any], n_jobs: int | None) -> None:
        self.parts, self.n_jobs = parts, n_jobs

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if len(self.parts) != sizes.get("c", len(self.parts)) or not self.parts:
            return f"parts are {len(self.parts)}, but there are {sizes.get('c', 'some')} classes"
        return None

    @property
    def products(self) -> float:
        """Multiply-adds of the products of a batch, of one part."""
        return self.parts[0].products

    def iterate(self, *, average: bool) -> float:
        """Pass over the rows once."""
        tasks = [(part,) for part in self.parts]
        return sum(
            side_by_side(lambda part: part.iterate(average=average), tasks, self.n_jobs)
        )

    def weaken(self, ratio: float) -> bool:
        """Go on with so much of the L2 strength, if the procedure can."""
        return all(part.weaken(ratio) for part in self.parts)

    def learn(self, rows: Rows, alpha: float | None, batch_size: int) -> float:
        """Learn from rows of a stream; return the objective over them."""
        self.n_seen += len(rows.y)

        def learn(k: int, part: Any) -> float:
            own = rows._replace(y=one_against_rest(rows.y, k))
            return float(part.learn(own, alpha, batch_size))

        return sum(side_by_side(learn, enumerate(self.parts), self.n_jobs))

    def state(self) -> tuple[Part, ...]:
        """Return the arrays of all parts, one after the other."""
        return tuple(array for part in self.parts for array in part.state())

    def count_in(self, others: Sequence[Any], since: Any, shares: Floats) -> None:
        """Let the counts be those of the others together."""
        super().count_in(others, since, shares)
        for k, part in enumerate(self.parts):
            begun = None if since is None else since.parts[k]
            part.count_in([one.parts[k] for one in others], begun, shares)

    def remap(self, change: Change) -> None:
        """Go on in other units of the features."""
        for part in self.parts:
            part.remap(change)

    def result(self, *, final: bool = False) -> AnchoredModels:
        """Return the model as it stands."""
        found = [part.result() for part in self.parts]
        joined = {name: np.concatenate([getattr(one, name) for one in found])
                  for name in ("local_coef", "local_intercept", "intercept")}  # fmt: skip
        stacked = {name: np.stack([getattr(one, name) for one in found])
                   for name in ("anchors", "bandwidth", "history")}  # fmt: skip
        return AnchoredModels(**vars(found[0]) | joined | stacked)


def one_against_rest(y: Labels, k: int) -> Labels:
    """Labels of scorer k's own problem: 1 for its class, 0 for the rest."""
    return (y == k).astype(np.int32)
