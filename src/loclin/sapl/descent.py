"""Joint stochastic descent on local models and the anchors that weigh them (LLC-SAPL).

Minimises, over the models ``W`` (s, m, d), ``b`` (s, m), the anchors ``V`` (m, d) and, if asked,
the bandwidth,

    alpha/2 ||W||^2 + 1/(sum w) sum_i w_i sum_y loss(+-f_y(x_i)),
    f_y(x) = sum_j code_j(x) (w_yj . x + b_yj),      code = localised soft assignment to V

(eq. 21 of Mao et al., 2015). The weights take the steps of `sgd`; the anchors their own, which
AdaGrad measures: ``rate / sqrt(sum of squared gradient lengths)``, one number an anchor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse

from loclin.codings import SoftAssignmentCoding
from loclin.engine.data import Rows
from loclin.engine.moving_anchors import MovingAnchors
from loclin.engine.rows import compiled_form
from loclin.engine.sgd import SGD, SGDSettings
from loclin.fitting.encode import encode

# Fitted attributes that write the codes.
OF_CODE = ("anchors_", "bandwidth_", "history_")


class SAPL(SGD):
    """The state of the joint descent.

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
        Rows as the models see them; only kind, width and dtype are used.
    n_scorers : int
    coding : SoftAssignmentCoding
        Fitted: where the anchors start.
    settings : SGDSettings
    anchor_lr : float
        First step of an anchor, in units of ``1 / sqrt(bandwidth)``, the reach of its code.
    bandwidth_lr : float
        The same of the bandwidth's logarithm; 0 keeps the bandwidth.
    n_start : int
        Passes before the anchors move.
    """

    sum_V: NDArray[Any]
    sum_log_bandwidth: NDArray[Any]

    def __init__(self, X: Any, n_scorers: int, coding: Any, settings: SGDSettings,
                 anchor_lr: float, bandwidth_lr: float, n_start: int) -> None:  # fmt: skip
        self.V: NDArray[Any] = coding.anchors_.astype(X.dtype, order="C", copy=True)
        self.n_neighbors = min(coding.n_neighbors, len(self.V))
        self.bandwidth = np.array([coding.bandwidth_])
        self.rates = np.array([anchor_lr / np.sqrt(coding.bandwidth_), bandwidth_lr])
        self.history, self.n_start = np.zeros(len(self.V) + 1), n_start
        super().__init__(X, n_scorers, len(self.V), settings)

    def coding(self) -> SoftAssignmentCoding:
        """Return the coding of the anchors as they stand."""
        return written_by(self.V, self.n_neighbors, float(self.bandwidth[0]))

    def mean_squared_norm(self, X: Any, codes: Any) -> float:
        """Mean squared norm of the implicit features, with the codes of the anchors."""
        return super().mean_squared_norm(X, encode(self.coding(), codes))

    def iterate(self, X: Any, codes: Any, y: NDArray[Any], weights: NDArray[Any],
                rng: np.random.Generator, *, average: bool = False) -> float:  # fmt: skip
        """One pass over the rows. Return the objective.

        X are the rows as the models see them, and `codes` the rows as the anchors do. Before the
        first pass come `n_start` with the anchors at rest: LL-SVM (eq. 20). The last of them
        measures the anchors' gradients, so that their first steps are not long.
        """
        rates, self.rates = self.rates, np.zeros(2)
        for _ in range(self.n_start):
            self.history[:] = 0
            self._descend(X, codes, y, weights, rng, average=False)
        self.n_start, self.rates = 0, rates
        return self._descend(X, codes, y, weights, rng, average=average)

    def _descend(self, X: Any, Z: Any, y: NDArray[Any], weights: NDArray[Any],
                 rng: np.random.Generator, *, average: bool) -> float:  # fmt: skip
        n, (m, d), k = len(y), self.V.shape, self.n_neighbors
        dtype, batch = self.V.dtype, self.settings.batch_size
        codes = np.empty(n * k, dtype), np.empty(n * k, np.int32), np.arange(0, n * k + 1, k)
        if average and not len(self.sum_V):
            self.sum_V = np.zeros_like(self.V)
        lengths = np.einsum("jf,jf->j", self.V, self.V, dtype=np.float64)
        turned = sparse.issparse(Z)  # weights of sparse rows lie feature by feature
        V = np.ascontiguousarray(self.V.T) if turned else self.V
        sums = self.sum_V if average and not turned else np.zeros_like(V if average else V[:0])
        scales, counts = np.ones(m), np.zeros(m)
        anchors = MovingAnchors(
            X=compiled_form(Z), V=V, squares=np.einsum("jf,jf->j", self.V, self.V),
            bandwidth=self.bandwidth, rates=self.rates, history=self.history,
            gradient=np.zeros_like(V), pulls=np.empty(n * k, dtype),
            buffer=np.empty((0 if turned else batch, d), dtype),
            products=np.empty((m, batch), dtype), sums=sums,
            sum_log_bandwidth=self.sum_log_bandwidth, scales=scales, counts=counts,
            lengths=lengths, touched=np.zeros(d, np.bool_),
        )  # fmt: skip
        objective = self._pass(X, codes, anchors, y, weights, rng, average)
        if turned:
            if average:
                self.sum_V += (counts * V + sums).T
            self.V[:] = (scales * V).T
        return objective

    def forget_average(self) -> None:
        """Begin averaging anew."""
        super().forget_average()
        self.sum_V = np.zeros((0, self.V.shape[1]), self.V.dtype)
        self.sum_log_bandwidth = np.zeros(1)

    def current(self) -> tuple[NDArray[Any], ...]:
        """Mean of the iterates since averaging began, or the last one: W, b, g, V, bandwidth."""
        steps = self.averaged[1]
        V = self.sum_V / self.V.dtype.type(steps) if steps else self.V.copy()
        learned = steps and self.rates[1] > 0
        bandwidth = np.exp(self.sum_log_bandwidth / steps) if learned else self.bandwidth.copy()
        return *super().current(), V, bandwidth

    def models(self, W: NDArray[Any], b: NDArray[Any], g: NDArray[Any], *of_code: Any) -> Any:
        """Weights, anchors and bandwidth as fitted attributes."""
        V, bandwidth = of_code
        found = super().models(W, b, g)
        code = {"anchors_": V, "bandwidth_": float(bandwidth[0]), "history_": self.history.copy()}
        return found | code


def written_by(anchors: NDArray[Any], n_neighbors: int, bandwidth: float) -> SoftAssignmentCoding:
    """Return the coding of these anchors, fitted."""
    coding = SoftAssignmentCoding(len(anchors), n_neighbors, bandwidth, anchors)
    return coding.fit(anchors)


class Together:
    """Fits, or streams, of one scorer each, run as one.

    Parameters
    ----------
    parts : list of SGDFit or of SGDStream
    n_jobs : int or None
        Parts that run at once.
    """

    gap: float | None = None  # the procedure knows none

    def __init__(self, parts: list[Any], n_jobs: int | None) -> None:
        self.parts, self.n_jobs = parts, n_jobs

    def _each(self, calls: Any) -> list[Any]:
        return list(Parallel(self.n_jobs, prefer="threads")(calls))

    def iterate(self, *, average: bool) -> float:
        """Pass over the rows once."""
        return float(sum(self._each(delayed(part.iterate)(average=average) for part in self.parts)))

    def learn(self, rows: Rows, *arguments: Any) -> tuple[float, float]:
        """Learn from rows of a stream; returns alpha and the objective over the rows."""
        found = self._each(
            delayed(part.learn)(Rows(rows.X, against_the_rest(rows.y, k), rows.weights), *arguments)
            for k, part in enumerate(self.parts)
        )
        return found[0][0], float(sum(objective for _, objective in found))

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model as it stands."""
        found = [part.attributes() for part in self.parts]
        names = ("local_coef_", "local_intercept_", "intercept_")
        joined = {name: np.concatenate([one[name] for one in found]) for name in names}
        stacked = {name: np.stack([one[name] for one in found]) for name in OF_CODE}
        return found[0] | joined | stacked


def against_the_rest(y: NDArray[Any], k: int) -> NDArray[Any]:
    """Labels of scorer k's own problem: 1 for its class, 0 for the rest."""
    return (y == k).astype(np.int32)
