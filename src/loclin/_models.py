"""The models of the package, in one list: what goes through all models goes by it.

Files, `warmup`, the command line and the tests do. A new model is a folder, and two lines
here.
"""

from loclin.csvm import CSVMClassifier
from loclin.forest import ForestClassifier
from loclin.l3m import L3MClassifier
from loclin.ldkl import LDKLClassifier
from loclin.llsvm import LLSVMClassifier
from loclin.lmkl import KernelLMKLClassifier, LMKLClassifier
from loclin.ml3 import ML3Classifier
from loclin.sapl import SAPLClassifier
from loclin.svmknn import SVMKNNClassifier
from loclin.ussvm import USSVMClassifier

__all__ = [
    "CSVMClassifier",
    "ForestClassifier",
    "KernelLMKLClassifier",
    "L3MClassifier",
    "LDKLClassifier",
    "LLSVMClassifier",
    "LMKLClassifier",
    "ML3Classifier",
    "SAPLClassifier",
    "SVMKNNClassifier",
    "USSVMClassifier",
]

MODELS = tuple(globals()[name] for name in __all__)
FOLDERS = tuple(dict.fromkeys(kind.__module__.split(".")[1] for kind in MODELS))
