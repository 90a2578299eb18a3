"""Figures 2 and 3 of US-SVM on USPS's digits: what atoms are about.

A dictionary of all ten digits, nonnegative codes. Figure 2: the test images that score highest on
an atom alone, for the three atoms that most classes use. Figure 3: for one digit the images that
score highest on each of its three strongest atoms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from loclin import USSVMClassifier
from reproduction.data import load
from reproduction.shapes import images
from reproduction.store import Cache

ATOMS, NONZERO, DIGIT, SIDE = 40, 5, 7, 16


def fitted() -> tuple[Any, Any, Any, Any]:
    """Return the model, the test rows' scores by atom, the test images and their labels."""
    data: Any = load("usps")
    scaler = StandardScaler(with_std=False).fit(data.X_train)
    model = USSVMClassifier(ATOMS, beta="scale", n_nonzero=NONZERO, nonnegative=True, max_iter=100,
                            random_state=0)  # fmt: skip
    model.fit(scaler.transform(data.X_train), data.y_train)
    return model, scaler.transform(data.X_test) @ model.dictionary_, data.X_test, data.y_test


def attributes() -> dict[str, Any]:
    model, scores, X, y = fitted()
    most = np.argsort(-model.codes_.getnnz(axis=0), kind="stable")[:3]
    best = {f"atom {k}": np.argsort(-scores[:, k])[:10] for k in most}
    return images([(name, (X[rows] + 1) / 2, y[rows]) for name, rows in best.items()], SIDE)


def modalities() -> dict[str, Any]:
    model, scores, X, y = fitted()
    code = model.codes_[np.flatnonzero(model.classes_ == DIGIT)[0]].toarray().ravel()
    of_digit = np.flatnonzero(y == DIGIT)
    best = {f"atom {k}": of_digit[np.argsort(-scores[of_digit, k])[:5]]
            for k in np.argsort(-np.abs(code))[:3]}  # fmt: skip
    return images([(name, (X[rows] + 1) / 2, y[rows]) for name, rows in best.items()], SIDE)


def figure_2(cache: Cache) -> dict[str, Any]:
    """Ten test images for each of three atoms."""
    return cache("figure 2 | usps | curves", {"atoms": ATOMS, "nonzero": NONZERO}, attributes)


def figure_3(cache: Cache) -> dict[str, Any]:
    """Five images of a digit for each of its three strongest atoms."""
    settings = {"atoms": ATOMS, "nonzero": NONZERO, "digit": DIGIT}
    return cache("figure 3 | usps | curves", settings, modalities)
