"""Locally linear classifiers with a scikit-learn interface.

Every model here scores a class as a weighted sum of linear models. The weights differ from
sample to sample; they are called gating weights, or the code of the sample:
``score_y(x) = sum_j code_yj(x) * (w_yj . x + b_yj) + b_y``.

Names are imported when they are first used: ``loclin --help`` must not wait for all models.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from loclin._names import FOLDER_OF

if TYPE_CHECKING:
    from loclin._warmup import warmup
    from loclin.csvm import CSVMClassifier
    from loclin.engine.warned import CompileCacheWarning, SomeRowsWarning
    from loclin.ensemble import LocallyLinearEnsemble
    from loclin.forest import ForestClassifier
    from loclin.l3m import L3MClassifier, vc_bound
    from loclin.ldkl import LDKLClassifier
    from loclin.llsvm import LLSVMClassifier
    from loclin.lmkl import KernelLMKLClassifier, LMKLClassifier
    from loclin.ml3 import ML3Classifier
    from loclin.projections import argmax_lp_ball
    from loclin.sapl import SAPLClassifier
    from loclin.svmknn import SVMKNNClassifier
    from loclin.ussvm import USSVMClassifier

__version__ = "0.1.0.dev0"

__all__ = [
    "CSVMClassifier",
    "CompileCacheWarning",
    "ForestClassifier",
    "KernelLMKLClassifier",
    "L3MClassifier",
    "LDKLClassifier",
    "LLSVMClassifier",
    "LMKLClassifier",
    "LocallyLinearEnsemble",
    "ML3Classifier",
    "SAPLClassifier",
    "SVMKNNClassifier",
    "SomeRowsWarning",
    "USSVMClassifier",
    "__version__",
    "argmax_lp_ball",
    "vc_bound",
    "warmup",
]

_HOMES = {
    **FOLDER_OF,
    "CompileCacheWarning": "engine.warned",
    "LocallyLinearEnsemble": "ensemble",
    "SomeRowsWarning": "engine.warned",
    "argmax_lp_ball": "projections",
    "vc_bound": "l3m",
    "warmup": "_warmup",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
