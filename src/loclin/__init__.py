"""Locally linear classifiers with a scikit-learn interface.

Every model here scores a class as a sum of linear models weighted by a code of the
sample: ``score_y(x) = sum_j code_yj(x) * (w_yj . x + b_yj) + b_y``.
"""

from loclin import _models
from loclin._models import *  # noqa: F403
from loclin._warmup import warmup
from loclin.engine.warned import CompileCacheWarning
from loclin.ensemble import LocallyLinearEnsemble
from loclin.l3m import vc_bound
from loclin.projections import argmax_lp_ball

__version__ = "0.1.0.dev0"

__all__ = [
    *_models.__all__,
    "CompileCacheWarning",
    "LocallyLinearEnsemble",
    "__version__",
    "argmax_lp_ball",
    "vc_bound",
    "warmup",
]
