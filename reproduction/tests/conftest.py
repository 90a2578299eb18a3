"""The quick size of everything, and two small sets in place of all."""

import os

os.environ["REPRODUCTION_QUICK"] = "1"

import numpy as np
import pytest
from sklearn.datasets import load_digits

from loclin import datasets
from loclin.datasets import Dataset
from reproduction.entry import Entry
from reproduction.runner import run, undisturbed
from reproduction.store import Cache

SPLIT = ("usps", "letter", "mnist", "segment", "isolet", "vowel")


@pytest.fixture(autouse=True)
def _undisturbed():
    with undisturbed():
        yield


@pytest.fixture
def digits(monkeypatch):
    """Ten features of five of their classes in place of every set; XOR in place of Banana."""
    plane = datasets.make_xor(250, random_state=0)
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 5][:, 20:30] / 16.0 + np.random.default_rng(0).normal(0, 0.01, (901, 10)), y[y < 5]

    def load(name):
        if name == "banana":
            return Dataset(name, *plane, None, None, None, None, "XOR", "scikit-learn")
        parts = (X[:90], y[:90], X[90:180], y[90:180]) if name in SPLIT else (X, y, None, None)
        return Dataset(name, *parts, None, None, "digits", "scikit-learn")

    monkeypatch.setattr(datasets, "load", load)


@pytest.fixture
def computed(tmp_path):
    """Compute entries; asked again, nothing is computed."""

    def compute(entries: list[Entry]):
        done = run(entries, tmp_path, 1)
        assert not "".join(outcome.error for outcome in done)
        stored = {e.key: Cache(tmp_path / e.paper).stored[e.key]["result"] for e in entries}
        assert not any(outcome.computed for outcome in run(entries, tmp_path, 1))
        return stored

    return compute
