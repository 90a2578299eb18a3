"""Calls run down: in real fits, few go from a file to one that stands above it.

A file's rank is the longest path of its imports. What is left to climb are hooks: the recipe's
start, a procedure's iterations, what was learned says its coder, and functions handed to threads.
"""

import functools
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import loclin
from tests.test_architecture import MODULES, PACKAGE, imports_of

FILES = {str(path): path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}


def file_of(module):
    path = Path(*module.split("."))
    named = [path.with_suffix(".py").as_posix(), (path / "__init__.py").as_posix()]
    return next(name for name in named if name in FILES.values())


IMPORTS = {
    file_of(module): {file_of(one) for one in imports_of(module) if one in MODULES}
    for module in MODULES
}


@functools.cache
def rank(file):
    return 1 + max((rank(one) for one in IMPORTS.get(file, ())), default=-1)


def climbs(act):
    """Return pairs of files, a caller and a callee that ranks above it, in what `act` does."""
    pairs = set()

    def note(frame, event, _):
        callee = FILES.get(frame.f_code.co_filename)
        if event != "call" or callee is None:
            return
        caller = frame.f_back
        while caller is not None and caller.f_code.co_filename not in FILES:
            caller = caller.f_back
        if caller is not None:
            pairs.add((FILES[caller.f_code.co_filename], callee))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted((one, other) for one, other in pairs if rank(other) > rank(one))


X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_calls_of_fits_run_down():
    model = loclin.ML3Classifier(random_state=0, max_iter=5)
    model.fit(X, y)  # compiled before
    found = climbs(lambda: model.fit(X, y))
    assert len(found) <= 11, found


def test_calls_of_streams_run_down():
    model = loclin.SAPLClassifier(random_state=0).partial_fit(X, y, classes=np.unique(y))
    again = loclin.SAPLClassifier(random_state=0)
    assert len(climbs(lambda: again.partial_fit(X, y, classes=np.unique(y)))) <= 7
    # the second call asks classes what they declare of what they hold
    assert len(climbs(lambda: model.partial_fit(X, y))) <= 15
