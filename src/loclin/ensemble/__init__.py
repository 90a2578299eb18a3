"""Several locally linear classifiers as one."""

from loclin.ensemble.classifier import LocallyLinearEnsemble

__all__ = ["LocallyLinearEnsemble"]
