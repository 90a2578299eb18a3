"""SVM-KNN: a linear SVM on the nearest neighbours of each row (Zhang et al., 2006)."""

from loclin.svmknn.classifier import SVMKNNClassifier

__all__ = ["SVMKNNClassifier"]
