"""L-MKL with linear kernels: softmax gates over linear models (Gönen and Alpaydin, 2008)."""

from loclin.lmkl.classifier import LMKLClassifier

__all__ = ["LMKLClassifier"]
