"""Locally linear classifiers with a scikit-learn interface.

Every model here scores a class as a sum of linear models weighted by a code of the sample:
``score_y(x) = sum_j code_yj(x) * (w_yj . x + b_yj) + b_y``.
"""

from loclin._warmup import warmup
from loclin.csvm import CSVMClassifier
from loclin.engine.warned import CompileCacheWarning
from loclin.ensemble import LocallyLinearEnsemble
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
    "KernelLMKLClassifier",
    "L3MClassifier",
    "LDKLClassifier",
    "LLSVMClassifier",
    "LMKLClassifier",
    "LocallyLinearEnsemble",
    "ML3Classifier",
    "SAPLClassifier",
    "SVMKNNClassifier",
    "USSVMClassifier",
    "__version__",
    "argmax_lp_ball",
    "vc_bound",
    "warmup",
]
