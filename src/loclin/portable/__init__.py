"""Fitted models as data, which any program can read: `describe`, and the words it uses.

>>> import json
>>> from sklearn.datasets import load_iris
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import StandardScaler
>>> from loclin import ML3Classifier
>>> from loclin.portable import Description, describe
>>> X, y = load_iris(return_X_y=True)
>>> model = make_pipeline(StandardScaler(), ML3Classifier(2, random_state=0)).fit(X, y)
>>> text = json.dumps(describe(model).to_dict())
>>> again = Description.from_dict(json.loads(text))
>>> bool((again.predict(X) == model.predict(X)).all())
True
"""

from loclin.portable.describing import describe
from loclin.portable.description import Description
from loclin.portable.words import (
    CodesByScorer,
    ConstantCode,
    Leaves,
    LinearGates,
    NearestAnchors,
    Pieces,
    Pooling,
    TangentCodes,
    Term,
    TreePath,
)

__all__ = [
    "CodesByScorer",
    "ConstantCode",
    "Description",
    "Leaves",
    "LinearGates",
    "NearestAnchors",
    "Pieces",
    "Pooling",
    "TangentCodes",
    "Term",
    "TreePath",
    "describe",
]
