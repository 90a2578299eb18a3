"""What an estimator from a file may say: nothing that reaches for files, or never ends."""

from __future__ import annotations

import inspect
import os
import re
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import OneHotEncoder

from loclin.io._classes import Classes, Refused

# Parts of regular expressions: an escape or set of letters, a group's first letters, a
# repetition.
_LETTER = re.compile(r"\\\D|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_GROUP = re.compile(r"\(\?(?:[aiLmsu]+\)|[:=!]|<[=!])")
_REPEAT = re.compile(r"(?:[*+?]|\{[\d,]*\}?)[?+]?")
_NAMES_OUT = re.compile(r"(?:[^{}]|\{(?:transformer|feature)_name\})*")
_LONGEST = 200


def without_memory(kind: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an object without the folder in
    which an estimator keeps pickles.
    """
    memory = state.get("memory")
    keeps = isinstance(memory, str | os.PathLike) or hasattr(memory, "cache")
    return (
        state | {"memory": None} if keeps and issubclass(kind, BaseEstimator) else state
    )


def reads_files(kind: type, state: dict[str, Any]) -> bool:
    """Tell whether an object is a vectorizer that would read
    the files that the rows name.
    """
    source = state.get("input", "content")
    return hasattr(kind, "build_tokenizer") and not (
        type(source) is str and source == "content"
    )


def is_of_class(kind: type, name: str) -> bool:
    """Tell whether a class has a method of this name, which an attribute would hide.

    A property cannot be hidden.
    """
    found = inspect.getattr_static(kind, name, None)
    return hasattr(found, "__get__") and not isinstance(found, property)


def counts_wrongly(kind: type, state: dict[str, Any]) -> str | None:
    """Tell which numbers of a transformer reach beyond its columns; None if none do.

    Neither its compiled code nor that of the transformer behind it looks.
    """
    words = state.get("vocabulary_")
    if isinstance(words, dict) and sorted(words.values()) != list(range(len(words))):
        return "vocabulary_"
    n_features = state.get("n_features", 1)
    hashes = issubclass(kind, FeatureHasher | HashingVectorizer)
    if hashes and not (
        isinstance(n_features, int | np.integer) and 0 < n_features < 2**31
    ):
        return "n_features"
    if issubclass(kind, OneHotEncoder) and "_n_features_outs" in state:
        return _encodes_wrongly(state)
    return None


def _encodes_wrongly(state: dict[str, Any]) -> str | None:
    """Tell which numbers of a OneHotEncoder reach beyond its columns; None if none do."""
    n = len(state["categories_"])
    rare = state.get("_infrequent_indices") or [None] * n
    places = state.get("_default_to_infrequent_mappings") or [None] * n
    dropped = state.get("_drop_idx_after_grouping")
    dropped = [None] * n if dropped is None else list(dropped)
    widths = []
    for of_feature, few, at, drop in zip(
        state["categories_"], rare, places, dropped, strict=True
    ):
        width = len(of_feature) - (0 if few is None else len(few) - 1)
        if at is not None and not (
            len(at) == len(of_feature) and set(at) <= set(range(width))
        ):
            return "_default_to_infrequent_mappings"
        if drop is not None and not 0 <= drop < width:
            return "_drop_idx_after_grouping"
        widths.append(width - (drop is not None))
    return None if list(state["_n_features_outs"]) == widths else "_n_features_outs"


_LISTS = {"steps": 2, "transformer_list": 2, "transformers": 3, "transformers_": 3}


def lists_wrongly(state: dict[str, Any]) -> str | None:
    """Tell which list of named parts has one that is no tuple
    of so many; None if none has.
    """
    for name, n_parts in _LISTS.items():
        for part in state.get(name) or ():
            if not (isinstance(part, tuple | list) and len(part) == n_parts):
                return name
    return None


def check(found: Any, classes: Classes) -> None:
    """Look at an object of a file, made and filled; raise where it must not be used.

    All that it holds has been looked at before.
    """
    kind, state = type(found), getattr(found, "__dict__", {})
    held = state.get("estimator")
    if isinstance(found, FrozenEstimator) and not isinstance(held, BaseEstimator):
        # it would ask itself for all
        raise ValueError("a FrozenEstimator holds no estimator")
    if reads_files(kind, state):
        raise Refused(f"has a {kind.__name__} that reads the files that the rows name.")
    if isinstance(found, BaseEstimator):
        unlike = lists_wrongly(state)
        if unlike is not None:
            raise ValueError(
                f"{unlike} of a {kind.__name__} has a part of another length"
            )
        wrong = counts_wrongly(kind, state)
        if wrong is not None:
            raise ValueError(
                f"{wrong} of a {kind.__name__} counts columns that are not there"
            )
        for name, value in state.items():
            if isinstance(value, np.ndarray) and value.ndim == 0:
                raise ValueError(
                    f"{name} of a {kind.__name__} is an array without an axis"
                )
    for name, is_safe in _SAFE.items():
        text = state.get(name)
        if isinstance(text, str) and not is_safe(text) and text not in classes.texts:
            raise Refused(
                f"has {name}={text[:_LONGEST]!r}, which can take any time or memory. If it is "
                f"your own, name it: load(path, trusted=[{text[:_LONGEST]!r}]); else do not use "
                "the file."
            )


def ends_soon(pattern: str) -> bool:
    r"""Tell whether a regular expression is plain enough to take n^2 steps at most.

    It repeats no group, and one letter or set of letters at most: as ``(?u)\b\w\w+\b``
    does. Repetitions within one another may take 2^n steps, and k in a row n^k.
    """
    plain = _GROUP.sub("(", _LETTER.sub("a", pattern))
    repeats = [*_REPEAT.finditer(plain)]
    of_group = any(plain[: one.start()].endswith((")", "(")) for one in repeats)
    return (
        len(pattern) <= _LONGEST
        and "\\" not in plain
        and len(repeats) <= 1
        and not of_group
    )


_SAFE = {
    "token_pattern": ends_soon,
    "pattern": ends_soon,
    "verbose_feature_names_out": lambda text: bool(_NAMES_OUT.fullmatch(text)),
}
