"""The tables that the encoder is measured by: the same each time, read as meant, with a signal."""

import ast
import inspect

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="needs the extra [tables]")

from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: E402
from sklearn.metrics import roc_auc_score  # noqa: E402

from benchmarks import tables  # noqa: E402
from loclin.tables import TableEncoder  # noqa: E402

KINDS = {
    "churn": {"leave out": 1, "date": 1, "category": 3, "number": 4, "flag": 1},
    "credit": {"leave out": 1, "number": 6, "category": 3, "flag": 1},
    "sensors": {"date": 1, "category": 3, "number": 4},
    "survey": {"leave out": 1, "number": 14, "flag": 1, "category": 1, "date": 1},
    "reviews": {"text": 1, "number": 3, "flag": 1, "category": 1, "date": 1},
    "prices": {"number": 5, "category": 2, "date": 1},
    "shops": {"leave out": 1, "category": 4, "number": 2, "flag": 1},
    "fraud": {"leave out": 1, "number": 4, "category": 4},
    "many_rows": {"category": 5, "number": 4, "flag": 2, "date": 1},
    "wide": {"number": 2800, "category": 200},
}


@pytest.mark.parametrize("name", tables.NAMES)
def test_a_table_is_the_same_each_time_and_its_columns_are_what_they_are(name, tmp_path):
    n_rows = 150 if name == "wide" else 1500
    path = tables.write(name, tmp_path, n_rows)
    written = path.read_bytes()
    assert tables.write(name, tmp_path, n_rows).read_bytes() == written
    assert tables.write(name, tmp_path, n_rows, seed=1).read_bytes() != written
    frame, y = tables.read(path)
    assert len(frame) == n_rows
    assert len(np.unique(y)) == 2
    kinds = list(TableEncoder().fit(frame, y).kinds_.values())
    found = {kind: kinds.count(kind) for kind in set(kinds)}
    assert found == KINDS[name]


@pytest.mark.parametrize("name", [name for name in tables.NAMES if name != "wide"])
def test_a_table_has_a_signal(name, tmp_path):
    n_rows = {"fraud": 4000, "many_rows": 8000}.get(name, 2000)
    frame, y = tables.read(tables.write(name, tmp_path, n_rows))
    half, positive = len(y) // 2, np.unique(y)[1]
    encoder = TableEncoder().fit(frame[:half], y[:half])
    trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    trees.fit(encoder.transform(frame[:half]), y[:half])
    shares = trees.predict_proba(encoder.transform(frame[half:]))[:, 1]
    assert roc_auc_score(y[half:] == positive, shares) > 0.6


def test_each_is_short():
    tree = ast.parse(inspect.getsource(tables))
    lengths = {
        node.name: node.end_lineno - node.lineno + 1
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in tables.NAMES
    }
    assert sorted(lengths) == sorted(tables.NAMES)
    assert max(lengths.values()) <= 40
