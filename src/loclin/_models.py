"""The classes of all models: importing them takes a second."""

from importlib import import_module
from typing import Any

from loclin._names import FOLDER_OF

__all__ = ["MODELS"]

MODELS: tuple[Any, ...] = tuple(
    getattr(import_module(f"loclin.{folder}"), name) for name, folder in FOLDER_OF.items()
)
