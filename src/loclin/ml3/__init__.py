"""ML3: multiclass latent locally linear SVM (Fornoni, Caputo and Orabona, 2013)."""

from loclin.ml3.classifier import ML3Classifier

__all__ = ["ML3Classifier"]
