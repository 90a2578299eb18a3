"""Forests of scikit-learn: the case in which all local models are constants."""

from loclin.forest.classifier import ForestClassifier

__all__ = ["ForestClassifier"]
