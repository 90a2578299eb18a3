"""LL-SVM over any coding (Ladicky and Torr, 2011; Zhang et al., 2011)."""

from loclin.llsvm.classifier import LLSVMClassifier

__all__ = ["LLSVMClassifier"]
