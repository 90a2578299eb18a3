"""LLC-SAPL: anchors that are learned with the models (Mao et al., 2015)."""

from loclin.sapl.classifier import SAPLClassifier

__all__ = ["SAPLClassifier"]
