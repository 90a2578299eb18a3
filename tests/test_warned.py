"""Warnings point to the line that called the library, however many calls lie between."""

import ast

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from loclin.codings import OrthogonalCoding
from tests.test_architecture import FILES

X, Y = np.random.default_rng(0).standard_normal((60, 4)), np.arange(60) % 2
CALLS = {
    "itself": lambda model: model[1].fit(X),
    "in a pipeline": lambda model: model.fit(X, Y),
    "in a search": lambda model: cross_val_score(model, X, Y, cv=2),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_warning_points_to_the_caller(call):
    model = make_pipeline(StandardScaler(), OrthogonalCoding(9), LinearSVC())
    with pytest.warns(UserWarning, match="Using n_planes=4") as caught:
        CALLS[call](model)
    assert {warning.filename for warning in caught} == {__file__}


def test_no_file_counts_calls():
    calls = [
        (path.name, node.lineno)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"
    ]
    assert not calls, "use loclin.engine.warned.warn"
