"""Pictures, tables and pages that explain predictions.

`LocalModelDisplay` shows what each column adds to a score, `explanation_page` writes it as one
HTML page, and `feature_importances` takes the mean over rows. `flip` finds a small change that
changes a prediction, `record` writes a decision down, and `summary` says what a model is. They
read a classifier of loclin, alone or behind scalers or a `TableEncoder` in a pipeline.

Pictures need matplotlib (``pip install "loclin[plot]"``), pages Jinja2 as well
(``pip install "loclin[html]"``), data frames pandas (``pip install "loclin[tables]"``).
"""

from loclin.inspection.flips import Flip, flip
from loclin.inspection.importances import feature_importances
from loclin.inspection.local_model import LocalModelDisplay
from loclin.inspection.merging import Merged, merge_models
from loclin.inspection.page import explanation_page
from loclin.inspection.records import record
from loclin.inspection.summaries import Summary, summary

__all__ = [
    "Flip",
    "LocalModelDisplay",
    "Merged",
    "Summary",
    "explanation_page",
    "feature_importances",
    "flip",
    "merge_models",
    "record",
    "summary",
]
