"""L-MKL: softmax gates over linear models, or over kernels (Gönen and Alpaydin, 2008)."""

from loclin.lmkl.classifier import LMKLClassifier
from loclin.lmkl.kernel_classifier import KernelLMKLClassifier

__all__ = ["KernelLMKLClassifier", "LMKLClassifier"]
