"""Fitted models as ONNX graphs, for programs without Python: ``pip install "loclin[onnx]"``.

`to_onnx` writes a classifier, or a whole pipeline. Importing this module also tells skl2onnx
how to write all classifiers and codings of loclin, wherever they stand in a model.

>>> import numpy as np
>>> from sklearn.datasets import load_iris
>>> from loclin import ML3Classifier
>>> from loclin.onnx import to_onnx
>>> X, y = load_iris(return_X_y=True)
>>> graph = to_onnx(ML3Classifier(2, random_state=0).fit(X, y), X[:1], dtype=np.float32)
>>> type(graph).__name__, graph.graph.input[0].name
('ModelProto', 'X')
"""

try:
    import skl2onnx  # noqa: F401
except ImportError as error:
    raise ImportError('This needs skl2onnx: pip install "loclin[onnx]"') from error

from loclin.onnx.converters import register
from loclin.onnx.exporting import to_onnx

__all__ = ["register", "to_onnx"]

register()
