"""A decision written down: what went in, what came out, and why."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from numbers import Integral
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import loclin
import loclin.io
from loclin.fitting.checks import check_number
from loclin.inspection.columns import Reference
from loclin.inspection.parts import parts_of
from loclin.inspection.steps import columns_of
from loclin.portable import describe
from loclin.portable.describing import steps_of

# Where scikit-learn keeps an object's address, which differs in each process.
_ADDRESSES = {"_stop_words_id"}


def record(
    model: Any, row: Any, *, n_reasons: int = 4, reference: Any = None
) -> dict[str, Any]:
    """Write down a decision for those who must check it later.

    The record has no time and no names of files. So the same model and row give the same
    text by ``json.dumps``, also in another process.

    Parameters
    ----------
    model : classifier or Pipeline
        Fitted: a classifier with `local_model`, alone or behind a `TableEncoder` and
        scalers of scikit-learn.
    row : DataFrame, Series or array-like
        One row.
    n_reasons : int, default=4
        Maximum number of reasons for, and of reasons against.
    reference : row, array-like, DataFrame or None, default=None
        What the row is compared with, as in `LocalModelDisplay.from_estimator`. None takes
        the mean training row, if the model has kept it.

    Returns
    -------
    record : dict
        With numbers, texts, lists and None alone:

        - "loclin": the version; "model": the kind of classifier, and the SHA-256 of
          the model.
        - "inputs": the values of the columns.
        - "label": what is decided; "against": the class that came second.
        - "scores": one for each class, or one for the second of two.
        - "probabilities": one for each class; None where there are none.
        - "score": of the label against the other class. It is the sum of "base", what the
          row's linear model says of the reference, of all contributions, and of
          "residual", which is rounding.
        - "reasons": the columns that say most for the label, and most "against" it.
          "other_columns" is the sum of all others.
        - "reference": its name and values.

    Raises
    ------
    TypeError
        If a step in front of the classifier cannot be explained in columns.
    ValueError
        If there is not one row, or the model has no reference.

    Notes
    -----
    The hash is that of ``json.dumps(describe(model).to_dict(), sort_keys=True)``. Where
    there is no such description, it is that of what `loclin.io.save` writes of each step,
    without versions and times. So such a model must be one that can be saved.

    Scores are the same to the last digit on the same machine with the same versions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import ML3Classifier
    >>> from loclin.inspection import record
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = ML3Classifier(random_state=0).fit(X, y)
    >>> kept = record(model, X[120:121], reference=X, n_reasons=1)
    >>> kept["label"], kept["against"], kept["inputs"]["petal length (cm)"]
    (2, 1, 5.7)
    >>> [reason["column"] for reason in kept["reasons"]["for"]]
    ['petal width (cm)']
    """
    check_number("n_reasons", n_reasons, Integral, low=1)
    check_is_fitted(model)
    rows = as_rows(row)
    columns, classifier = columns_of(model, rows)
    values = columns.values(rows)
    if len(values) != 1:
        raise ValueError(f"row has {len(values)} rows; give one.")
    compared = columns.reference(reference)
    parts = parts_of(columns, classifier, compared, rows)
    first, second = parts.winners()
    chosen = parts.between(first, second)
    classes = [_plain(one) for one in np.asarray(classifier.classes_)]
    label, against = _plain(model.predict(rows)[0]), classes[second[0]]
    if label != classes[first[0]]:
        raise ValueError(
            "The model predicts another class than the one with the largest score."
        )
    added = chosen.added[0].tolist()
    shown = _reasons(columns.names, values[0].tolist(), added, n_reasons)
    named = {one["column"] for reasons in shown.values() for one in reasons}
    others = (
        one for name, one in zip(columns.names, added, strict=True) if name not in named
    )
    base, score = float(chosen.base[0]), float(chosen.scores[0])
    return {
        "loclin": loclin.__version__,
        "model": {"kind": type(steps_of(model)[-1]).__name__, "sha256": hash_of(model)},
        "inputs": _by_name(columns.names, values[0].tolist()),
        "label": label,
        "against": against,
        "scores": _scores(classes, parts.scores[0].tolist()),
        "probabilities": _probabilities(model, classifier, rows, classes),
        "score": score,
        "base": base,
        "reasons": shown,
        "other_columns": math.fsum(others),
        "residual": score - math.fsum([base, *added]),
        "reference": _reference(columns.names, compared),
    }


def hash_of(model: Any) -> str:
    """Return the SHA-256 of a model, the same in each process.

    Parameters
    ----------
    model : classifier or Pipeline

    Returns
    -------
    digest : str
        Hexadecimal.
    """
    try:
        return _hash_of(describe(model).to_dict())
    except ValueError:
        if not isinstance(model, Pipeline):
            return _hash_of(_content(model))
    steps = steps_of(model)
    return _hash_of([[type(step).__name__, hash_of(step)] for step in steps])


def _hash_of(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _content(model: Any) -> Any:
    """Return what a file of the model has, but versions and times."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.loclin"
        loclin.io.save(model, path)
        with ZipFile(path) as archive:
            read = {name: archive.read(name) for name in archive.namelist()}
    (tree,) = (json.loads(read[name]) for name in read if name.endswith(".json"))
    arrays = {name: hashlib.sha256(content).hexdigest() for name, content in read.items()}
    return _in_order(tree["model"], arrays)


def _in_order(node: Any, arrays: dict[str, str]) -> Any:
    """Return a node without what differs between processes: addresses, and sets' order."""
    if isinstance(node, list):
        return [_in_order(one, arrays) for one in node if not _is_address(one)]
    if not isinstance(node, dict):
        return node
    found = {key: _in_order(value, arrays) for key, value in node.items()}
    for key in {"set", "frozenset", "state"} & set(found):
        found[key] = sorted(found[key], key=json.dumps)
    if "array" in found:
        found["array"] = arrays[found["array"]]
    return found


def _is_address(node: Any) -> bool:
    return isinstance(node, list) and bool(node) and str(node[0]) in _ADDRESSES


def as_rows(row: Any) -> Any:
    """Return a row as a table or matrix of one row; a text as a list of one."""
    if hasattr(row, "columns") or hasattr(row, "tocsr"):
        return row
    values = np.asarray(row)
    if values.size == 1 and isinstance(values.ravel()[0], str):
        return [str(values.ravel()[0])]
    if hasattr(row, "to_frame"):
        return row.to_frame().T.infer_objects()
    return np.atleast_2d(values)


def _reasons(
    names: list[str], values: list[Any], added: list[float], most: int
) -> dict[str, list[dict[str, Any]]]:
    """Return the columns that say most for and against, the largest first."""
    order = sorted(range(len(names)), key=lambda k: (-abs(added[k]), k))
    lines = [
        {"column": names[k], "value": _plain(values[k]), "contribution": added[k]}
        for k in order
    ]
    return {
        "for": [line for line in lines if line["contribution"] > 0][:most],
        "against": [line for line in lines if line["contribution"] < 0][:most],
    }


def _scores(classes: list[Any], scores: list[float]) -> dict[str, float]:
    return _by_name(classes[-len(scores) :], scores)


def _probabilities(
    model: Any, classifier: Any, rows: Any, classes: list[Any]
) -> dict[str, float] | None:
    if getattr(classifier, "temperature_", None) is None:
        return None
    return _by_name(classes, model.predict_proba(rows)[0].tolist())


def _reference(names: list[str], compared: Reference) -> dict[str, Any]:
    return {"name": compared.name, "values": _by_name(names, compared.values)}


def _by_name(names: list[Any], values: list[Any]) -> dict[str, Any]:
    return {str(name): _plain(value) for name, value in zip(names, values, strict=True)}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: a gap is None, a date a text.

    >>> _plain(np.float32(0.5)), _plain(float("nan")), _plain(np.datetime64("2024-05-31"))
    (0.5, None, '2024-05-31')
    """
    if isinstance(value, np.generic) and not isinstance(
        value, np.datetime64 | np.timedelta64
    ):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return (
            None if math.isnan(value) else value if math.isfinite(value) else str(value)
        )
    text = str(value)
    return None if text in ("NaT", "<NA>") else text
