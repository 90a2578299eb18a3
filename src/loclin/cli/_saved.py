"""A saved model with what it was fitted on, and how good it was on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

import loclin
import loclin.io
from loclin.cli._data import Labelled
from loclin.cli._errors import InputError, one_line
from loclin.cli._settings import METRICS
from loclin.tables import TableEncoder

__all__ = ["About", "encoder_of", "load_model", "save_model"]


@dataclass(frozen=True)
class About:
    """What a file of ``loclin fit`` or ``loclin compare`` says of its model.

    Attributes
    ----------
    version : str
        Of loclin.
    model, target, source : str
        The classifier, the column that it predicts, and the data that it was fitted on.
    rows : int
        Rows it was fitted on.
    classes : list of str
    measured_on : str
        What the figures are of: "test rows" or "cross-validation".
    measured_rows : int
    figures : dict
        By metric; None where there is none.
    """

    version: str
    model: str
    target: str
    source: str
    rows: int
    classes: list[str]
    measured_on: str
    measured_rows: int
    figures: dict[str, float | None]

    @classmethod
    def of(
        cls,
        rows: Labelled,
        model: str,
        measured_on: str,
        figures: Mapping[str, float | None],
        measured_rows: int,
    ) -> About:
        """Return what to say of a model that was fitted to all rows."""
        classes = sorted(set(map(str, rows.y)))
        return cls(
            loclin.__version__,
            model,
            rows.target or "label",
            rows.description,
            len(rows.y),
            classes,
            measured_on,
            measured_rows,
            dict(figures),
        )


def save_model(model: Any, about: About, path: Path) -> None:
    """Save a fitted pipeline with what there is to say of it."""
    model.about_ = asdict(about)
    loclin.io.save(model, path)


def load_model(path: Path) -> tuple[Any, About]:
    """Return a model that ``loclin fit`` or ``loclin compare`` has saved."""
    model = loclin.io.load(path)
    try:
        about = About(**model.about_)
        if not isinstance(model, Pipeline) or set(about.figures) - set(METRICS):
            raise TypeError("it says other things of its model")
    except (AttributeError, TypeError) as error:
        raise InputError(
            f"{path} was not written by `loclin fit` or `loclin compare`; load it with "
            f"loclin.io.load ({one_line(error)})"
        ) from error
    return model, about


def encoder_of(model: Any) -> TableEncoder | None:
    """Return the encoder of a model of tables; None of a model of arrays."""
    return model[0] if isinstance(model[0], TableEncoder) else None
