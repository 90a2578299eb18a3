"""The Python code that builds a model of the comparison."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from operator import methodcaller
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator

from loclin import datasets
from loclin.cli._data import Labelled

__all__ = ["python_code"]


def python_code(rows: Labelled, model: BaseEstimator, *, header: bool = True) -> str:
    """Return a program that reads the rows and fits an unfitted model to them.

    Parameters
    ----------
    rows : Labelled
        As `loclin.cli._data.load` has read them.
    model : estimator
        Unfitted.
    header : bool
        Whether the first line of a text table holds names.
    """
    imports, reading = _reading(rows, header)
    imports += _imports(model)
    with config_context(print_changed_only=True):
        built = model.__repr__(N_CHAR_MAX=10**6)
    plain = sorted({line for line in imports if line.startswith("import")})
    named: dict[str, set[str]] = {}
    for line in set(imports) - set(plain):
        _, module, _, name = line.split()
        named.setdefault(module, set()).add(name)
    named_imports = [
        f"from {module} import {', '.join(sorted(named[module]))}"
        for module in sorted(named)
    ]
    lines = [*plain, *named_imports, "", *reading, f"model = {built}", "model.fit(X, y)"]
    return "\n".join(lines)


def _reading(rows: Labelled, header: bool) -> tuple[list[str], list[str]]:
    """Return the imports and lines that give ``X`` and ``y``."""
    source = rows.name
    if rows.target is not None:
        no_names = "" if header else ", header=False"
        lines = [
            f"X = read({source!r}{no_names})",
            f"y = X.pop({rows.target!r}).fillna('').astype(str).str.strip()",
            "X, y = X[y != ''], y[y != '']",
        ]
        return ["from loclin.tables import read"], lines
    if source in datasets.names():
        lines = [f"rows = datasets.load({source!r})", "X, y = rows.X_train, rows.y_train"]
        return ["from loclin import datasets"], lines
    if source.lower().endswith(".npz"):
        return _reading_npz(source)
    dense = "" if issparse(rows.X) else "X = X.toarray()"
    lines = [f"X, y = load_svmlight_file({source!r})", *([dense] if dense else [])]
    return ["from sklearn.datasets import load_svmlight_file"], lines


def _reading_npz(source: str) -> tuple[list[str], list[str]]:
    with np.load(source, allow_pickle=False) as archive:
        keys = {key.lower(): f"held[{key!r}]" for key in archive.files}
    end = "_train" if "y_train" in keys else ""
    lines = [f"held = np.load({source!r})", f"y = {keys['y' + end]}.ravel()"]
    if "x" + end in keys:
        dense = f"X = {keys['x' + end]}.reshape(len(y), -1)"
        return ["import numpy as np"], [*lines, dense]
    data, indices, indptr, shape = (
        keys[key + end] for key in ("data", "indices", "indptr", "shape")
    )
    sparse = f"X = csr_array(({data}, {indices}, {indptr}), shape={shape})"
    imports = ["import numpy as np", "from scipy.sparse import csr_array"]
    return imports, [*lines, sparse]


def _imports(model: Any) -> Iterator[str]:
    """Yield the imports of an estimator's class and of those in its parameters."""
    values = [model]
    while values:
        value = values.pop()
        if isinstance(value, BaseEstimator):
            yield f"from {_public(type(value))} import {type(value).__name__}"
            values += value.get_params(deep=False).values()
        elif isinstance(value, list | tuple):
            values += value
        elif isinstance(value, methodcaller):
            yield "import operator"


def _public(kind: type) -> str:
    """Return the shortest module that has a class."""
    names = kind.__module__.split(".")
    modules = [".".join(names[:length]) for length in range(1, len(names))]
    for module in modules:
        if hasattr(importlib.import_module(module), kind.__name__):
            return module
    return kind.__module__
