"""Pictures, tables and pages that explain predictions.

`LocalModelDisplay` shows what each column adds to a score, `explanation_page` writes it as one
HTML page, and `feature_importances` takes the mean over rows. `EffectDisplay` draws scores along
a column, `RegionsDisplay` the classes and local models over two of them, and `ModelUsageDisplay`
which local models act where. `flip` finds a small change that changes a prediction, `record`
writes a decision down, `summary` says what a model is, and `merge_models` makes it smaller. They
read a classifier of loclin, alone or behind scalers or a `TableEncoder` in a pipeline.

Pictures need matplotlib (``pip install "loclin[plot]"``), pages Jinja2 as well
(``pip install "loclin[html]"``), data frames pandas (``pip install "loclin[tables]"``).
"""

from loclin.inspection.effect import EffectDisplay
from loclin.inspection.flips import Flip, flip
from loclin.inspection.importances import feature_importances
from loclin.inspection.local_model import LocalModelDisplay
from loclin.inspection.merging import Merged, merge_models
from loclin.inspection.page import explanation_page
from loclin.inspection.records import record
from loclin.inspection.regions import RegionsDisplay
from loclin.inspection.summaries import Summary, summary
from loclin.inspection.usage import ModelUsageDisplay

__all__ = [
    "EffectDisplay",
    "Flip",
    "LocalModelDisplay",
    "Merged",
    "ModelUsageDisplay",
    "RegionsDisplay",
    "Summary",
    "explanation_page",
    "feature_importances",
    "flip",
    "merge_models",
    "record",
    "summary",
]
