"""Local models pulled to a global one:
one linear SVM on long vectors, which are never formed.

With ``w_l = w + v_l`` and u = sqrt(lambda) w, CSVM's penalty
``lambda ||w||^2 + sum_l ||v_l||^2`` is ``||u||^2 + sum_l ||v_l||^2``, and the score of a
row x of cluster l is ``u . x / sqrt(lambda) + v_l . x``: that of an LL-SVM with m + 1
models, whose code has ``1 / sqrt(lambda)`` at the first model and 1 at the cluster's. So
the descents of the engine solve it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.averaging import DescentModels
from loclin.engine.data import Floats, Matrix, Rows
from loclin.engine.dual import DualModels
from loclin.engine.neighbors import nearest_of_checked
from loclin.engine.procedure import LocalModels, Predictor
from loclin.engine.shapes import Shape, Within
from loclin.fitting.wrapped import Wrapped
from loclin.portable.words import NearestAnchors


@dataclass(frozen=True, kw_only=True)
class ClusterModels(LocalModels, Predictor):
    """Models of the clusters, the one they are pulled to, and the clusters' centres."""

    units: ClassVar[dict[str, int]] = {
        "local_coef": 1,
        "global_coef": 1,
        "cluster_centers": -1,
    }
    constants: ClassVar[dict[str, str]] = LocalModels.constants | {
        "global_intercept": "global_coef",
    }

    cluster_centers: Annotated[Floats, Shape("k d")]  # k = m
    global_coef: Annotated[Floats, Shape("s d")]
    global_intercept: Annotated[Floats, Shape("s")]

    def coder(self, root: Floats | None) -> NearestAnchors:
        """Say that the model of the nearest centre counts alone."""
        return NearestAnchors(self.cluster_centers, 1, "exp")


@dataclass(frozen=True, kw_only=True)
class SolvedClusterModels(ClusterModels):
    """Models of a fit, and how far each problem is from its solution."""

    # of the problems, in units of the objective
    dual_gap: Annotated[NDArray[np.float64], Shape("q", np.float64, finite=False)]


@dataclass(frozen=True, kw_only=True)
class StreamedClusterModels(ClusterModels):
    """Models of a stream after t rows."""

    t: int


@dataclass(frozen=True)
class LongVectors:
    """Rows as the descents see them:
    with the code of the global model and of their cluster.

    Parameters
    ----------
    centers : ndarray of shape (m, d)
    pull : float
        ``1 / sqrt(lambda)``.
    """

    centers: Annotated[Floats, Shape("k d")]
    pull: float

    def __call__(self, X: Matrix) -> tuple[Matrix, sparse.csr_matrix]:
        """Return the rows, and their codes (n, m + 1)."""
        n = X.shape[0]
        columns = np.zeros((n, 2), np.int32)
        columns[:, 1] = 1 + clusters_of(X, self.centers)
        codes = np.ones((n, 2), X.dtype)
        codes[:, 0] = self.pull
        parts = codes.ravel(), columns.ravel(), np.arange(0, 2 * n + 1, 2, dtype=np.int32)
        return X, sparse.csr_matrix(parts, shape=(n, len(self.centers) + 1))

    def long_models(self, learned: ClusterModels) -> tuple[Floats, Floats]:
        """Return models as the descents take them:
        the global one, and what is added to it.
        """
        coef, intercept = learned.global_coef[:, None], learned.global_intercept[:, None]
        return (
            np.concatenate([coef / self.pull, learned.local_coef - coef], axis=1),
            np.concatenate(
                [intercept / self.pull, learned.local_intercept - intercept], axis=1
            ),
        )


class Pulled(Wrapped):
    """A descent over the long vectors, whose models are those of the clusters.

    Parameters
    ----------
    inner : DualFit or SGDStream
    views : LongVectors
    """

    inner: Annotated[Any, Within(m="m+1")]
    views: LongVectors

    def __init__(self, inner: Any, views: LongVectors) -> None:
        super().__init__(inner)
        self.views = views

    def seen(self, rows: Rows) -> Rows:
        """Return the rows: the descent's views know the clusters."""
        return rows

    def changed(self, model: DualModels | DescentModels) -> ClusterModels:
        """Return the models of the clusters: the global one and what each adds to it."""
        pull = model.local_coef.dtype.type(self.views.pull)
        coef, intercept = (
            pull * model.local_coef[:, 0],
            pull * model.local_intercept[:, 0],
        )
        # of sparse rows, feature by feature
        local = np.array(model.local_coef[:, 1:], order="K")
        local += coef[:, None]
        found: dict[str, Any] = vars(model) | {
            "local_coef": local,
            "local_intercept": model.local_intercept[:, 1:] + intercept[:, None],
            "global_coef": coef,
            "global_intercept": intercept,
            "cluster_centers": self.views.centers,
        }
        kind = (
            SolvedClusterModels
            if isinstance(model, DualModels)
            else StreamedClusterModels
        )
        return kind(**found)


def clusters_of(X: Matrix, centers: Floats) -> NDArray[np.intp]:
    """Return the number of each row's nearest centre."""
    return nearest_of_checked(X, centers, 1)[0][:, 0]
