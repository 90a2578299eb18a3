"""US-SVM: classifiers in unions of subspaces (Lyu, Zepeda and Perez, 2016)."""

from loclin.ussvm.classifier import USSVMClassifier

__all__ = ["USSVMClassifier"]
