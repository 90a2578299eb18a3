"""CSVM: clustered support vector machines (Gu and Han, 2013)."""

from loclin.csvm.classifier import CSVMClassifier

__all__ = ["CSVMClassifier"]
