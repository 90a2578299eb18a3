"""Pictures, tables and pages that explain predictions.

`LocalModelDisplay` shows what each column adds to a score, `explanation_page` writes it as one
HTML page, and `feature_importances` takes the mean over rows. `local_model`, `local_gradient` and
`contributions` return the numbers. `EffectDisplay` draws scores along a column, `RegionsDisplay`
the classes and local models over two of them, and `ModelUsageDisplay` which local models act
where. `flip` finds a small change that changes a prediction, and `box` says how far an
explanation holds. `record` writes a decision down, and `summary` says what a model is.
`merge_models` makes it smaller, and `feature_weights` serves scikit-learn's feature selection.

They read a classifier of loclin, alone or in a pipeline: behind a `TableEncoder`, a
`ColumnTransformer`, a `TfidfVectorizer`, scalers, or linear projections such as PCA. `flip` and
`merge_models` take a `TableEncoder` and scalers only.

Pictures need matplotlib (``pip install "loclin[plot]"``), pages Jinja2 as well
(``pip install "loclin[html]"``), data frames pandas (``pip install "loclin[tables]"``).
"""

from loclin.inspection.bars import LocalModelDisplay
from loclin.inspection.box import Box, box
from loclin.inspection.effect import EffectDisplay
from loclin.inspection.explained import (
    LocalModels,
    contributions,
    local_gradient,
    local_model,
)
from loclin.inspection.flips import Flip, flip
from loclin.inspection.importances import feature_importances
from loclin.inspection.merging import Merged, merge_models
from loclin.inspection.page import explanation_page
from loclin.inspection.records import record
from loclin.inspection.regions import RegionsDisplay
from loclin.inspection.summaries import Summary, summary
from loclin.inspection.usage import ModelUsageDisplay
from loclin.inspection.weights import feature_weights

__all__ = [
    "Box",
    "EffectDisplay",
    "Flip",
    "LocalModelDisplay",
    "LocalModels",
    "Merged",
    "ModelUsageDisplay",
    "RegionsDisplay",
    "Summary",
    "box",
    "contributions",
    "explanation_page",
    "feature_importances",
    "feature_weights",
    "flip",
    "local_gradient",
    "local_model",
    "merge_models",
    "record",
    "summary",
]
