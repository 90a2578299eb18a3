"""L3M: locally linear learning machines (Wang and Saligrama, 2013)."""

from loclin.l3m.bounds import vc_bound
from loclin.l3m.classifier import L3MClassifier

__all__ = ["L3MClassifier", "vc_bound"]
