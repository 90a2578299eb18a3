"""LDKL: a tree of gates whose path says which local models count (Jose et al., 2013)."""

from loclin.ldkl.classifier import LDKLClassifier

__all__ = ["LDKLClassifier"]
